//! Expressions against recorded outcomes: Kyverno's own (three files) and the public
//! suite of JMESPath as far as Kyverno's dialect agrees with it.
//!
//! The data lies beside the repository; where it is absent, the tests say so.

use std::path::PathBuf;

use kpvm::document::{DocumentBuffer, Kind, Label, NodeId, Texts};
use kpvm::function::{RegexCache, Values};
use kpvm::host::{ExternalQuery, Host, Timestamp};
use kpvm::jmespath::{evaluate, parse};
use kpvm::limits::Limits;
use kpvm_format::symbol::SymbolTable;
use serde_json::{Value, json};

/// Time stands still, and chance always says the same.
struct TestHost;

impl Host for TestHost {
    fn now(&mut self) -> Option<Timestamp> {
        Some(Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 0,
            offset_seconds: 0,
        })
    }

    fn random(&mut self) -> Option<u64> {
        Some(7)
    }

    fn fetch(&mut self, _query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        Ok(None)
    }
}

/// Reads a recorded value: numbers without point or exponent are integers.
fn push(buffer: &mut DocumentBuffer, value: &Value, label: Label) {
    match value {
        Value::Null => buffer.push_null(label),
        Value::Bool(value) => buffer.push_bool(label, *value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => buffer.push_int(label, number),
            None => buffer.push_float(label, number.as_f64().unwrap()),
        },
        Value::String(text) => {
            let text = buffer.copy_text(text.as_bytes()).unwrap();
            buffer.push_text(label, text);
        }
        Value::Array(items) => {
            buffer.begin(label);
            items
                .iter()
                .for_each(|item| push(buffer, item, Label::ITEM));
            buffer.finish_list();
        }
        Value::Object(members) => {
            buffer.begin(label);
            for (key, value) in members {
                let label = buffer.label(key, &SymbolTable::EMPTY).unwrap();
                push(buffer, value, label);
            }
            buffer.finish_map(Texts::NONE);
        }
    }
}

/// The recorded form of a value.
fn recorded(values: &Values<'_>, id: NodeId) -> Value {
    let view = values.view();
    match view.kind(id) {
        Some(Kind::List) => view
            .children(id)
            .map(|item| recorded(values, item))
            .collect(),
        Some(Kind::Map) if view.is_reference(id) => json!({"$go": "jmespath.expRef"}),
        Some(Kind::Map) => view
            .children(id)
            .map(|member| (view.key_str(member).to_owned(), recorded(values, member)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Some(Kind::Float) => match view.float(id).unwrap() {
            number if number.is_nan() => json!({"$float": "NaN"}),
            f64::INFINITY => json!({"$float": "+Inf"}),
            f64::NEG_INFINITY => json!({"$float": "-Inf"}),
            number => json!(number),
        },
        _ => view.to_value(id),
    }
}

/// Evaluates in a fresh buffer.
fn run(expression: &str, input: &Value) -> Result<Value, String> {
    let expression = parse(expression).map_err(|error| format!("compile: {error}"))?;
    let mut buffer = DocumentBuffer::new();
    push(&mut buffer, input, Label::ITEM);
    let root = buffer.take().unwrap();
    let (mut fuel, mut regexes) = (Limits::DEFAULT.rule_fuel, RegexCache::default());
    let mut values = Values {
        buffer: &mut buffer,
        texts: Texts::NONE,
        symbols: SymbolTable::EMPTY,
        host: &mut TestHost,
        limits: Limits::DEFAULT,
        fuel: &mut fuel,
        regexes: &mut regexes,
    };
    let id = evaluate(&expression, root, &mut values).map_err(|error| error.to_string())?;
    Ok(recorded(&values, id))
}

fn read(path: &str) -> Option<Value> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    match std::fs::read_to_string(shared.join(path)) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(_) => {
            println!("skipped: {path} is not there");
            None
        }
    }
}

/// Whether our outcome is the recorded one. Where Kyverno crashes, any error is.
fn agrees(case: &Value, outcome: &Result<Value, String>) -> bool {
    match outcome {
        Ok(value) => case.get("result") == Some(value),
        Err(text) => match text.strip_prefix("compile: ") {
            Some(text) => case["compile_error"] == text,
            None => case["error"] == *text || case.get("panic").is_some(),
        },
    }
}

/// Runs a file of Kyverno's outcomes; `differences` are the expressions that are known
/// to differ, for the reasons given there, and have to.
fn run_kyverno(file: &str, differences: &[&str]) {
    let Some(cases) = read(&format!("jmespath-kyverno/{file}")) else {
        return;
    };
    let cases = cases.as_array().unwrap();
    let (mut passed, mut wrong) = (0, 0);
    for case in cases {
        let expression = case["expression"].as_str().unwrap();
        let outcome = run(expression, &case["input"]);
        let agrees = agrees(case, &outcome);
        passed += usize::from(agrees);
        if agrees == differences.contains(&expression) {
            wrong += 1;
            println!("{expression}\n  expected {case}\n  got      {outcome:?}");
        }
    }
    println!("{file}: {passed} of {}", cases.len());
    assert_eq!(wrong, 0, "outcomes differ from what is expected of them");
}

#[test]
fn functions_agree_with_kyverno() {
    run_kyverno("cases.json", &[]);
}

#[test]
fn the_language_agrees_with_kyverno() {
    run_kyverno("language.json", &[]);
}

#[test]
fn quantities_and_durations_agree_with_kyverno() {
    run_kyverno("quantities-durations.json", &[]);
}
