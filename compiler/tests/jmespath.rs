//! Expressions as bytecode against recorded outcomes: Kyverno's own (three files), the
//! public suite of JMESPath with the answers of Kyverno's dialect, and random
//! expressions against the evaluator that walks the tree.

#![allow(clippy::print_stdout)] // tests tell what they count
#![allow(clippy::unwrap_used)]

mod recorded;

use recorded::{read, run_expression};
use serde_json::{Value, json};

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

/// Runs a file of Kyverno's outcomes; the expressions in `differences` have to differ.
fn run_kyverno(file: &str, differences: &[&str]) {
    let Some(cases) = read(&format!("jmespath-kyverno/{file}")) else {
        return;
    };
    let cases = cases.as_array().unwrap();
    let (mut passed, mut wrong) = (0, 0);
    for case in cases {
        let expression = case["expression"].as_str().unwrap();
        let outcome = run_expression(expression, &case["input"]);
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
    run_kyverno(
        "cases.json",
        &[
            // Texts here are UTF-8: the byte FF has become U+FFFD.
            "base64_encode(base64_decode('/w=='))",
            // Errors either way; our YAML reader says in its own words what is wrong.
            r#"parse_yaml(`"null: x"`)"#,
            r#"parse_yaml(`"? [a]\n: b"`)"#,
            r#"parse_yaml(`"[1, 2"`)"#,
            r#"parse_yaml(`"a: b: c"`)"#,
            r#"parse_yaml(`"\"\\ud800\""`)"#,
            // Our YAML reader allows a tab before the first key of a document.
            r#"parse_yaml(`"\ta: 1"`)"#,
            // Our YAML reader refuses a number that it would have to read as text.
            r#"parse_yaml(`"1e400"`)"#,
        ],
    );
}

#[test]
fn the_language_agrees_with_kyverno() {
    run_kyverno(
        "language.json",
        &[
            // Kyverno prints the insides of the expression in the error.
            "length(&a)",
        ],
    );
}

#[test]
fn quantities_and_durations_agree_with_kyverno() {
    run_kyverno(
        "quantities-durations.json",
        &[
            // Kyverno cuts the exponent to 32 bits.
            "add('1e99999999999','0')",
        ],
    );
}

/// Kyverno's answer where it is not that of the public suite (sheet 04, section 14; the
/// mean of nothing: section 6).
fn kyvernos_answer(file: &str, group: usize, case: usize) -> Option<Result<Value, &'static str>> {
    let unknown = |error| Some(Err(error));
    match (file, group, case) {
        ("basic", 0, 5..=8) => unknown("Unknown key \"bad\" in path"),
        ("indices", 1, 5) => unknown("Unknown key \"bar\" in path"),
        ("multiselect", 0, 10) => unknown("Unknown key \"badkey\" in path"),
        ("functions", 0, 17) => Some(Ok(json!({"$float": "NaN"}))),
        ("functions", 0, 110) => Some(Err(
            "JMESPath function 'sum': at least one element in the array is required",
        )),
        ("literal", 2, 12) => Some(Err("compile: SyntaxError: Unclosed delimiter: '")),
        ("syntax", 4, 0) => Some(Err("invalid node value type")),
        ("syntax", 8, 1) => Some(Ok(Value::Null)),
        ("syntax", 0, 0 | 1)
        | ("syntax", 9, 0 | 3 | 12 | 13)
        | ("syntax", 11, 5)
        | ("syntax", 14, 0..=2)
        | ("syntax", 10, 14 | 15) => Some(Err("Unknown key")),
        _ => None,
    }
}

/// Numbers of the suite are numbers, whichever way they are written.
fn floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap()),
        Value::Array(items) => items.iter().map(floats).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), floats(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// The suite leaves the order of keys and values open.
fn same(left: &Value, right: &Value) -> bool {
    let sorted = |value: &Value| {
        let mut items: Vec<String> = value
            .as_array()
            .into_iter()
            .flatten()
            .map(Value::to_string)
            .collect();
        items.sort();
        items
    };
    left == right || (left.is_array() && right.is_array() && sorted(left) == sorted(right))
}

#[test]
fn the_public_suite_agrees_but_where_kyverno_does_not() {
    let files = [
        "basic",
        "benchmarks",
        "boolean",
        "current",
        "escape",
        "filters",
        "functions",
        "identifiers",
        "indices",
        "literal",
        "multiselect",
        "pipe",
        "slice",
        "syntax",
        "unicode",
        "wildcard",
    ];
    let (mut cases, mut differing, mut wrong) = (0, 0, 0);
    for file in files {
        let Some(groups) = read(&format!("jmespath/{file}.json")) else {
            return;
        };
        for (group_number, group) in groups.as_array().unwrap().iter().enumerate() {
            let given = floats(&group["given"]);
            for (number, case) in group["cases"].as_array().unwrap().iter().enumerate() {
                let expression = case["expression"].as_str().unwrap();
                let outcome = run_expression(expression, &given);
                if case.get("bench").is_some() {
                    // Benchmarks have no outcome. One nests 104 projections; code nests
                    // at most 64 loops.
                    let error = outcome.err().unwrap_or_default();
                    assert_eq!(
                        error.starts_with("compile: "),
                        (group_number, number) == (2, 4)
                    );
                    continue;
                }
                let kyverno = kyvernos_answer(file, group_number, number);
                let agrees = match (&kyverno, &outcome) {
                    (Some(Ok(wanted)), Ok(value)) => wanted == value,
                    (Some(Err(wanted)), Err(error)) => error.starts_with(wanted),
                    (Some(_), _) => false,
                    (None, Err(_)) => case.get("error").is_some(),
                    (None, Ok(value)) => case
                        .get("result")
                        .is_some_and(|result| same(&floats(result), &floats(value))),
                };
                cases += 1;
                differing += usize::from(kyverno.is_some());
                if !agrees {
                    wrong += 1;
                    println!("{file}[{group_number}][{number}] {case}\n  got {outcome:?}");
                }
            }
        }
    }
    println!("public suite: {cases} cases, {differing} with Kyverno's own answer, {wrong} wrong");
    assert_eq!(wrong, 0);
}
