//! The JSON readers: the whole of a text, part of it and the walk of a plan accept the same texts,
//! exactly those of RFC 8259 within our limits, and say the same of them.

use std::str::from_utf8;
use std::sync::OnceLock;

use kpvm::document::{DocumentBuffer, JsonProblem, ReadOptions, TextSource, Texts};
use kpvm::engine::{Bundle, Input, Request};
use kpvm_bench::workload::{bundle, twenty_rules};
use kpvm_format::symbol::SymbolTable;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::json;
use kpvm_syntax::tree::{DuplicateKeys, Tree, TreeValue};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::answers::{Engines, OBJECTS};
use crate::seeds;
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "json",
    run,
    seeds,
    words: &[
        "{\"",
        "\":",
        "[{",
        "}]",
        "null",
        "true",
        "false",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud800",
        "\\\"",
        "1e308",
        "1e309",
        "-0",
        "0.1",
        "9223372036854775807",
        "9223372036854775808",
        "\"apiVersion\":\"v1\"",
        "\"kind\":\"Pod\"",
        "\"metadata\":{\"name\":\"a\"}",
        "\"spec\":{",
        "\"containers\":[",
        "\"image\":",
        "\"securityContext\":",
        "\"privileged\":true",
        "\"volumes\":",
        "\"status\":",
        "\"namespace\":",
        "\"labels\":",
        "\"capabilities\":{\"drop\":[\"ALL\"]}",
    ],
    max_bytes: 2 << 10,
};

const OPTIONS: ReadOptions = ReadOptions {
    numbers: kpvm::document::Numbers::Exact,
    limits: Limits::DEFAULT,
};

/// Runs the harness.
pub fn run(input: &[u8]) {
    let document = read_document(input);
    compare_with_serde(input, &document);
    if let Ok(text) = from_utf8(input) {
        compare_with_tree(text, &document);
    }
    compare_ways(input);
}

fn read_document(input: &[u8]) -> Result<Value, JsonProblem> {
    let mut buffer = DocumentBuffer::new();
    let symbols = SymbolTable::EMPTY;
    let root = buffer
        .read_json(input, TextSource::Object, &symbols, &OPTIONS)
        .map_err(|error| {
            assert!(error.offset <= input.len(), "{error:?}");
            error.problem
        })?;
    let texts = Texts::only(TextSource::Object, input);
    Ok(buffer.view(texts, symbols).to_value(root))
}

/// RFC 8259 as serde_json checks it where it skips a value: any nesting, numbers of any size, half
/// surrogate pairs.
fn is_json(input: &[u8]) -> bool {
    from_utf8(input).is_ok() && serde_json::from_slice::<IgnoredAny>(input).is_ok()
}

fn compare_with_serde(input: &[u8], document: &Result<Value, JsonProblem>) {
    let theirs = serde_json::from_slice::<Value>(input);
    match document {
        Ok(value) => {
            assert!(is_json(input), "accepted, but it is not JSON");
            match theirs {
                Ok(theirs) => assert!(same(value, &theirs), "{value} and {theirs}"),
                Err(error) => {
                    let error = error.to_string();
                    let differs = ["recursion", "surrogate", "hex escape"];
                    assert!(differs.iter().any(|part| error.contains(part)), "{error}");
                }
            }
        }
        Err(JsonProblem::NumberRange) => {
            assert!(theirs.is_err(), "a number out of range");
        }
        Err(JsonProblem::TooDeep { .. }) => assert!(input.len() > 1000),
        Err(problem) => assert!(!is_json(input), "refused JSON: {problem}"),
    }
}

/// Equal values; floats may differ in the last bits, where serde_json is not exact.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(one), Value::Number(other)) => {
            if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
                return one == other;
            }
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= one.abs() * 1e-14 || one == other
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|((key, one), (name, other))| key == name && same(one, other))
        }
        (one, other) => one == other,
    }
}

/// The reader with places agrees, but for integral floats, which Kubernetes makes integers.
fn compare_with_tree(text: &str, document: &Result<Value, JsonProblem>) {
    let options = |numbers| json::Options {
        duplicate_keys: DuplicateKeys::LastWins,
        numbers,
        limits: &Limits::DEFAULT,
    };
    let tree = json::read(text, options(json::Numbers::Kubernetes));
    match (&tree, document) {
        (Ok((tree, _)), Ok(value)) => {
            check_spans(tree, 0, text.len());
            assert!(same(&tree.to_json(), value), "{tree:?} and {value}");
            let floats = json::read(text, options(json::Numbers::Float));
            let floats = floats.expect("the same text").0.to_json();
            assert!(same_floats(&floats, value), "{floats} and {value}");
        }
        (Err(_), Err(_)) => {}
        _ => panic!("{tree:?} and {document:?}"),
    }
}

fn same_floats(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| same_floats(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| same_floats(one.1, other.1))
        }
        (one, other) => one == other,
    }
}

/// Spans are in order and inside each other.
fn check_spans(tree: &Tree, from: usize, to: usize) {
    let (start, end) = (tree.span.start as usize, tree.span.end as usize);
    assert!(from <= start && start <= end && end <= to, "{tree:?}");
    match &tree.value {
        TreeValue::List(items) => items.iter().for_each(|item| check_spans(item, start, end)),
        TreeValue::Map(members) => {
            for member in members {
                let (key_start, key_end) = (member.key_span.start, member.key_span.end);
                assert!(start <= key_start as usize && key_start <= key_end);
                check_spans(&member.value, start, end);
            }
        }
        _ => {}
    }
}

/// Projection and plan, for the text as a Pod and as what no rule reads.
fn compare_ways(input: &[u8]) {
    static ENGINES: OnceLock<Engines> = OnceLock::new();
    let engines = ENGINES.get_or_init(|| {
        let bundle = Bundle::load(bundle(&twenty_rules())).expect("a fresh bundle loads");
        Engines::new(&bundle)
    });
    let mut sessions = engines.sessions();
    sessions.assert_same(&Request::create(Input::Json(input)), true);
    for (front, back) in [
        (
            &br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"status":"#[..],
            &b"}"[..],
        ),
        (
            br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":"#,
            b"}",
        ),
    ] {
        let object = [front, input, back].concat();
        sessions.assert_same(&Request::create(Input::Json(&object)), true);
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = OBJECTS.iter().map(|object| object.to_vec()).collect();
    for area in ["patterns", "podsecurity"] {
        let cases = seeds::recorded(area, 100).into_iter();
        seeds.extend(cases.map(|case| case["resource"].to_string().into_bytes()));
    }
    for text in [
        "null",
        "[]",
        "{}",
        "\"\\u00e9\\n\"",
        "-0.5e+3",
        "[1,2.5,true]",
        "\"\\ud800x\"",
        "1e309",
        " {\"a\" : [ ] }\r\n",
        r#"{"a":1,"a":{"b":2}}"#,
    ] {
        seeds.push(text.as_bytes().to_vec());
    }
    seeds
}
