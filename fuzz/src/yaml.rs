//! The YAML reader: agreement with what it says of its own result as JSON, with the reader for
//! files (which reads JSON by itself) and between treatments of duplicate keys.

use std::str::from_utf8;

use kpvm::document::{DocumentBuffer, Numbers, Texts};
use kpvm_format::symbol::SymbolTable;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::{DuplicateKeys, Span, Tree};
use kpvm_syntax::yaml::{Options, YamlError, read_all};
use kpvm_syntax::{json, manifest};

use crate::seeds;
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "yaml",
    run,
    seeds,
    words: &[
        "---\n",
        "...\n",
        "- ",
        ": ",
        "? ",
        "|\n",
        ">-\n",
        "|+2\n",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!!binary ",
        "#",
        "\"\\x41\"",
        "\"\\u2028\"",
        "''",
        "~",
        "yes",
        "on",
        "0o17",
        "0x1F",
        "1_000",
        ".inf",
        ".nan",
        "1e3",
        "12:30:45",
        "2001-01-01",
        "{a: b}",
        "[a, b]",
        "\t",
        "\r\n",
        "\u{feff}",
        "\u{85}",
        "%YAML 1.1\n",
    ],
    max_bytes: 2 << 10,
};

fn options(duplicate_keys: DuplicateKeys) -> Options<'static> {
    Options {
        duplicate_keys,
        limits: &Limits::DEFAULT,
    }
}

/// Runs the harness.
pub fn run(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let strict = read_all(text, options(DuplicateKeys::Refuse));
    let lenient = read_all(text, options(DuplicateKeys::LastWins));
    assert_eq!(strict.len(), lenient.len());
    for (strict, lenient) in strict.iter().zip(&lenient) {
        match (strict, lenient) {
            (Ok(strict), lenient) => assert_eq!(Ok(strict), lenient.as_ref()),
            (Err(error), _) => check_error(error, text),
        }
    }
    for tree in lenient.iter().flatten() {
        check_spans(tree, text);
        compare_with_json(tree);
        compare_with_document(tree);
    }
    for duplicate_keys in [DuplicateKeys::Refuse, DuplicateKeys::LastWins] {
        let file = manifest::read_all(text, options(duplicate_keys));
        let yaml = read_all(text, options(duplicate_keys));
        assert_eq!(file, yaml, "as a file and as YAML");
    }
}

fn check_error(error: &YamlError, text: &str) {
    let (start, end) = (error.span.start as usize, error.span.end as usize);
    assert!(start <= end && end <= text.len(), "{error:?}");
    assert!(error.line >= 1 && error.column >= 1, "{error:?}");
    assert!(!error.to_string().is_empty());
}

/// Spans lie in the text; those of aliases and merged members are elsewhere than their parents.
fn check_spans(tree: &Tree, text: &str) {
    let is_in_text = |span: Span| text.get(span.start as usize..span.end as usize).is_some();
    assert!(is_in_text(tree.span), "{tree:?}");
    for item in tree.as_list().unwrap_or_default() {
        check_spans(item, text);
    }
    for member in tree.as_map().unwrap_or_default() {
        assert!(is_in_text(member.key_span), "{member:?}");
        check_spans(&member.value, text);
    }
}

fn compare_with_json(tree: &Tree) {
    let text = tree.to_json().to_string();
    let numbers = json::Numbers::Kubernetes;
    let json_options = json::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        numbers,
        limits: &Limits::DEFAULT,
    };
    let (again, _) = json::read(&text, json_options).expect("JSON");
    assert_eq!(tree.to_json(), again.to_json());
    // YAML refuses some characters, which JSON escapes only by choice.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        let again = read_all(&text, options(DuplicateKeys::Refuse));
        // The reader refuses escapes of half a surrogate pair and long lines of one key.
        if let [Ok(again)] = &again[..] {
            assert_eq!(tree.to_json(), again.to_json());
        } else if !text.contains("\\u") {
            panic!("{again:?}: {text}");
        }
    }
}

fn compare_with_document(tree: &Tree) {
    let mut buffer = DocumentBuffer::new();
    let symbols = SymbolTable::EMPTY;
    let root = buffer
        .push_tree(tree, &symbols, Numbers::Exact)
        .expect("room");
    let value = buffer.view(Texts::NONE, symbols).to_value(root);
    assert_eq!(value, tree.to_json());
}

fn seeds() -> Vec<Vec<u8>> {
    let files = seeds::corpus_files(|name| name.ends_with(".yaml")).into_iter();
    let files = files.filter(|text| text.len() <= 2 << 10).step_by(4);
    let mut seeds: Vec<Vec<u8>> = files.map(String::into_bytes).collect();
    let own = [
        "a: &x {b: 1}\nc: *x\n",
        "a: |\n  text\n  more\nb: >-\n  folded\n  text\n",
        "- 1\n- 0x1f\n- 0o17\n- 1e3\n- .5\n- yes\n- ~\n- 2001-01-01\n- 12:30\n",
        "\"a\\n\\x41\\u00e9\": 'it''s'\n? b\n: c\n",
        "base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n",
        "---\na: 1\n---\n# nothing\n---\n- b\n...\n",
        "a: 1\na: 2\n",
        "{\"a\": [1, 2.0, null, true, \"x\"], \"b\": {}}",
        "a: !!str 1\nb: !!int \"2\"\nc: !!binary aGVsbG8=\n",
    ];
    seeds.extend(own.map(|text| text.as_bytes().to_vec()));
    seeds
}
