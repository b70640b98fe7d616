//! YAML as a format, read like resources.

use std::time::Duration;

use kpvm::engine::{Input, Request};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::{Tree, TreeValue};
use kpvm_syntax::yaml::{self, DuplicateKeys};

use super::oracle::{Clock, Expect, Seen, check, compile_policies, evaluate, policy_with_pattern};

/// Reads documents; errors name line and column.
fn read(text: &str) -> Result<Vec<Tree>, String> {
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::LastWins,
        limits: &Limits::DEFAULT,
    };
    yaml::read_all(text, options)
        .into_iter()
        .map(|document| document.map_err(|error| error.to_string()))
        .collect()
}

/// Evaluates every document of a file against the pattern `{spec: {x: …}}`.
fn run(pattern: &str, text: &str) -> Seen {
    let bytes = compile_policies(&policy_with_pattern(&format!("{{spec: {pattern}}}"))).unwrap();
    let documents = match read(text) {
        Ok(documents) => documents,
        Err(message) => return Seen::Refused(message),
    };
    let mut results = Vec::new();
    for document in &documents {
        match evaluate(bytes.clone(), &Request::create(Input::Tree(document))) {
            Seen::Refused(message) => return Seen::Refused(message),
            Seen::Evaluated(more) => results.extend(more),
        }
    }
    Seen::Evaluated(results)
}

fn thing(spec: &str) -> String {
    format!("apiVersion: example.com/v1\nkind: Thing\nmetadata: {{name: t}}\nspec:\n{spec}\n")
}

#[test]
fn documents() {
    const PASS: Expect = Expect::Results(&["r pass"]);
    const FAIL: Expect = Expect::Results(&["r fail"]);
    const REFUSED: Expect = Expect::Refused("");
    let bomb = {
        let mut text = String::from("  a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..9 {
            let items = vec![format!("*a{}", level - 1); 9].join(", ");
            text += &format!("  a{level}: &a{level} [{items}]\n");
        }
        text
    };
    let merge_bomb = {
        let mut text = String::from("  m0: &m0 {k: v}\n");
        for level in 1..40 {
            let items = vec![format!("*m{}", level - 1); 9].join(", ");
            text += &format!(
                "  m{level}: &m{level} {{<<: [{items}], k{level}: *m{}}}\n",
                level - 1
            );
        }
        text
    };
    let rows: Vec<(&str, &str, String, Expect)> = vec![
        ("31", "{x: ok}", thing(&bomb), REFUSED),
        ("32", "{x: ok}", thing("  x: &a [*a]"), REFUSED),
        ("32", "{x: ok}", thing("  x: *a\n  y: &a 1"), REFUSED),
        (
            "32",
            "{x: ok}",
            thing(&format!(
                "  x: ok\n  y: &a v\n  z: [{}]",
                "*a,".repeat(1_000_000)
            )),
            Expect::Either,
        ),
        ("33", "{x: ok}", thing(&merge_bomb), REFUSED),
        (
            "34",
            "{c: [{privileged: false}]}",
            thing("  d: &p {privileged: true}\n  c:\n  - <<: *p\n    name: a"),
            FAIL,
        ),
        (
            "34",
            "{c: [{privileged: false}]}",
            thing("  d: &p {privileged: true}\n  c:\n  - privileged: false\n    <<: *p"),
            FAIL,
        ),
        (
            "34",
            "{c: [{privileged: false}]}",
            thing("  d: &p {privileged: false}\n  c:\n  - <<: *p"),
            PASS,
        ),
        ("35", "{x: '1'}", thing("  x: !!float 1"), PASS),
        ("35", "{x: true}", thing("  x: !!str true"), FAIL),
        ("35", "{x: ok}", thing("  x: !foo ok"), Expect::Either),
        (
            "35",
            "{x: ok}",
            thing("  x: !!python/object:os.system ok"),
            Expect::Either,
        ),
        (
            "36",
            "{x: ok}",
            thing(&format!(
                "  x: ok\n  y: {}{}",
                "[".repeat(900),
                "]".repeat(900)
            )),
            PASS,
        ),
        (
            "36",
            "{x: ok}",
            thing(&format!("  x: ok\n  y: {}", "[".repeat(1_000_000))),
            REFUSED,
        ),
        (
            "36",
            "{x: ok}",
            thing(&format!("  x: ok\n  y:\n    {}", "- ".repeat(1_000_000))),
            REFUSED,
        ),
        (
            "36",
            "{x: ok}",
            thing(&format!("  x: ok\n  y: {}", "{a: ".repeat(100_000))),
            REFUSED,
        ),
        ("41", "{x: ok}", thing("  x: bad\n  x: ok"), PASS),
        ("41", "{x: ok}", thing("  x: ok\n  x: bad"), FAIL),
        ("41", "{'1': ok}", thing("  1: bad\n  \"1\": ok"), PASS),
        ("42", "{'true': ok}", thing("  true: ok"), PASS),
        ("42", "{x: ok}", thing("  x: ok\n  ? [a]\n  : 1"), REFUSED),
        (
            "42",
            "{x: ok}",
            thing("  x: ok\n  ? {a: b}\n  : 1"),
            REFUSED,
        ),
        ("42", "{x: ok}", thing("  x: ok\n  ~: 1"), REFUSED),
        (
            "43",
            "{x: ok}",
            format!("\u{feff}{}", thing("  x: ok")),
            PASS,
        ),
        ("44", "{x: ok}", thing("  x: ok\n  y: \"a\u{0}\""), REFUSED),
        (
            "44",
            "{x: ok}",
            thing("  x: ok\n  y: a\u{85}  x: bad"),
            REFUSED,
        ),
        (
            "44",
            "{x: ok}",
            thing("  x: ok\n  y: a\u{2028}  x: bad"),
            REFUSED,
        ),
        ("44", "{x: ok}", thing("\tx: ok"), REFUSED),
        (
            "44",
            "{x: ok}",
            thing("  x: ok").replace('\n', "\r\n"),
            PASS,
        ),
        (
            "44",
            "{x: ok}",
            thing("  x: ok").replace('\n', "\r"),
            Expect::Either,
        ),
        (
            "46",
            "{x: ok}",
            "apiVersion: v1\nkind: List\nitems: [null, {kind: List, items: []}, {a: b}]\n".into(),
            Expect::NeverPass,
        ),
        (
            "48",
            "{x: ok}",
            format!("%YAML 1.2\n---\n{}", thing("  x: ok")),
            Expect::Either,
        ),
        (
            "48",
            "{x: ok}",
            format!("%TAG ! tag:example.com,2000:\n---\n{}", thing("  x: ok")),
            Expect::Either,
        ),
    ];
    for (number, pattern, text, expect) in rows {
        let shown: String = text.chars().skip(72).take(60).collect();
        check(
            &format!("row {number}, {shown:?}"),
            text.len(),
            expect,
            || run(pattern, &text),
        );
    }
}

/// Rows 37 to 40: types of plain scalars in go-yaml v2 (docs/spec/cli.md §8.3).
#[test]
fn scalars() {
    let text = |text: &str| Some(TreeValue::String(text.into()));
    let int = |number| Some(TreeValue::Int(number));
    let float = |number| Some(TreeValue::Float(number));
    let rows: Vec<(&str, Option<TreeValue>)> = vec![
        ("0777", int(511)),
        ("0o777", int(511)),
        ("0b11", int(3)),
        ("0x1F", int(31)),
        ("1_000", int(1000)),
        ("+1", int(1)),
        (".5", float(0.5)),
        ("1e3", int(1000)),
        ("08", int(8)),
        ("yes", Some(TreeValue::Bool(true))),
        ("No", Some(TreeValue::Bool(false))),
        ("on", Some(TreeValue::Bool(true))),
        ("y", Some(TreeValue::Bool(true))),
        ("yES", text("yES")),
        ("~", Some(TreeValue::Null)),
        ("", Some(TreeValue::Null)),
        ("Null", Some(TreeValue::Null)),
        ("NULL", Some(TreeValue::Null)),
        ("nULL", text("nULL")),
        ("1:30:00", text("1:30:00")),
        ("2001-01-01", text("2001-01-01")),
        (".nan", None),
        ("-.inf", None),
        ("1e400", None),
        ("\"yes\"", text("yes")),
        ("'0777'", text("0777")),
    ];
    for (written, expected) in rows {
        let document = format!("v: {written}\n");
        let found = read(&document).ok().and_then(|documents| {
            let value = documents.first()?.get("v")?;
            Some(value.value.clone())
        });
        assert_eq!(found, expected, "{written}");
    }
}

#[test]
fn wide_encodings_are_never_an_empty_document() {
    // Row 43: read as UTF-8, with the zero bytes of UTF-16 and UTF-32.
    let wide: String = thing("  x: ok").chars().flat_map(|c| [c, '\0']).collect();
    assert!(read(&wide).is_err());
}

#[test]
fn an_alias_bomb_is_refused_at_once() {
    // Row 31: within half a second even in unoptimised builds.
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        text += &format!("a{level}: &a{level} [{items}]\n");
    }
    let clock = Clock::start();
    assert!(read(&text).is_err());
    let elapsed = clock.elapsed();
    assert!(elapsed < Duration::from_millis(500), "{elapsed:?}");
}
