//! Writers of YAML and JSON: what they write reads back as the same value.

use kpvm_cli::{go_json, serialised};
use kpvm_semantics::go_yaml::{append_key, append_value};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::{DuplicateKeys, Tree};
use kpvm_syntax::yaml::{Options, read_all};
use serde_json::{Value, json};

use crate::seeds;
use crate::target::Target;
use crate::text::texts;

/// The target.
pub const TARGET: Target = Target {
    name: "yaml_writer",
    run,
    seeds,
    words: &[
        "yes",
        "~",
        "null",
        "1e3",
        "0x1f",
        "0o7",
        "1_000",
        "2001-01-01",
        "12:30",
        "- ",
        ": ",
        " #",
        "\\n",
        "\\t",
        "\\u0085",
        "\\u2028",
        "\\u0000",
        "\\ufeff",
        "|",
        ">",
        "---",
        "...",
        "*a",
        "&a",
        "!a",
        "%",
        "@",
        "`",
        "'",
        "\\\"",
        " ",
        "\\r\\n",
        "=",
        "<<",
    ],
    max_bytes: 512,
};

/// A JSON value; other texts are strings.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let value = serde_json::from_slice(input)
        .unwrap_or_else(|_| json!({"a": [text, {text.clone(): text}]}));
    let tree = Tree::from(&value);
    let yaml = serialised::yaml(&value).expect("written to memory");
    if !has_unreadable(&value) {
        assert_eq!(read(&yaml), tree.to_json(), "{yaml}");
    }
    for compact in [true, false] {
        let mut out = Vec::new();
        go_json::write(&value, compact, &mut out).expect("written to memory");
        let again: Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(Tree::from(&again).to_json(), numbers(&value));
    }
    // Go's library writes a merge key for a key that is `<<`, and does not read it back either.
    let text = value["a"][0].as_str().or(value.as_str());
    if let Some(text) = text.filter(|text| *text != "<<") {
        let mut yaml = String::new();
        append_key(text, &mut yaml);
        yaml.push_str(": ");
        append_value(text, 2, &mut yaml);
        yaml.push('\n');
        let expected = json!({text: text});
        if !has_unreadable(&json!(text)) && text.len() < 1000 {
            assert_eq!(read(&yaml), expected, "{yaml}");
        }
    }
}

fn read(text: &str) -> Value {
    let options = Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    match <[_; 1]>::try_from(read_all(text, options)) {
        Ok([Ok(tree)]) => tree.to_json(),
        other => panic!("{other:?}: {text}"),
    }
}

/// Numbers as Go writes them: integral floats are integers.
fn numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            let mut text = String::new();
            kpvm_semantics::number::format_json_float(
                number.as_f64().unwrap_or_default(),
                &mut text,
            );
            let number: Value = serde_json::from_str(&text).expect("a number");
            Tree::from(&number).to_json()
        }
        Value::Array(items) => items.iter().map(numbers).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), numbers(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Values that our reader refuses or changes: floats.
fn has_unreadable(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64().is_none(),
        Value::Array(items) => items.iter().any(has_unreadable),
        Value::Object(members) => members.values().any(has_unreadable),
        _ => false,
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "yes",
        "1e3",
        "a: b",
        "- x",
        "two\nlines\n",
        "  indented\n text",
        "trailing \n",
        "é ü",
        "\t",
        "'",
        "\"",
        "#a",
        "a #b",
        "2001-01-01",
        "",
        "{\"a\": [\"yes\", 1, null, true, {\"b: c\": \"x\\ny\\n\"}], \"\": \" \"}",
        "[[], {}, [[\"|\"]]]",
        "\"\\u2028\\u0085\\u0000\"",
        "null",
    ]);
    for case in seeds::recorded("variables", 60) {
        seeds.push(case["policy"]["spec"].to_string().into_bytes());
    }
    seeds.retain(|seed| seed.len() <= 512);
    seeds
}
