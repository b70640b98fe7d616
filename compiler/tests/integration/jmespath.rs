//! Expressions as bytecode compared with recorded outcomes: Kyverno's own (three files),
//! the public suite of JMESPath with the answers of Kyverno's dialect, and random
//! expressions compared with the run-time evaluator.

use crate::recorded::{read_public_suite, read_recorded, run_expression, walk_expression};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Whether our outcome is the recorded one. Where Kyverno crashes, any error is accepted.
fn agrees(case: &Value, outcome: &Result<Value, String>) -> bool {
    match outcome {
        Ok(value) => case.get("result") == Some(value),
        Err(text) => match text.strip_prefix("compile: ") {
            Some(text) => case["compile_error"] == text,
            None => case["error"] == *text || case.get("panic").is_some(),
        },
    }
}

/// Runs a file of Kyverno's outcomes with both evaluators; the expressions in `differences`
/// must differ.
fn run_kyverno(file: &str, differences: &[&str]) {
    let cases = read_recorded(&format!("jmespath-kyverno/{file}"));
    let cases = cases.as_array().unwrap();
    let (mut passed, mut wrong) = (0, 0);
    for case in cases {
        let expression = case["expression"].as_str().unwrap();
        for run in [run_expression, walk_expression] {
            let outcome = run(expression, &case["input"]);
            let agrees = agrees(case, &outcome);
            passed += usize::from(agrees);
            if agrees == differences.contains(&expression) {
                wrong += 1;
                println!("{expression}\n  expected {case}\n  got      {outcome:?}");
            }
        }
    }
    println!("{file}: {passed} of {}, both ways", 2 * cases.len());
    assert_eq!(wrong, 0, "outcomes differ from what is expected of them");
}

#[test]
fn functions_agree_with_kyverno() {
    run_kyverno(
        "cases.json",
        &[
            // Texts are UTF-8 here: the byte FF has become U+FFFD.
            "base64_encode(base64_decode('/w=='))",
            // Errors in both; our YAML reader has its own texts.
            r#"parse_yaml(`"null: x"`)"#,
            r#"parse_yaml(`"? [a]\n: b"`)"#,
            r#"parse_yaml(`"[1, 2"`)"#,
            r#"parse_yaml(`"a: b: c"`)"#,
            r#"parse_yaml(`"\"\\ud800\""`)"#,
            // Our YAML reader allows a tab before the first key of a document.
            r#"parse_yaml(`"\ta: 1"`)"#,
            // Our YAML reader rejects a number that it would have to treat as text.
            r#"parse_yaml(`"1e400"`)"#,
        ],
    );
}

#[test]
fn the_language_agrees_with_kyverno() {
    run_kyverno(
        "language.json",
        &[
            // Kyverno prints internals of the expression in the error.
            "length(&a)",
        ],
    );
}

#[test]
fn quantities_and_durations_agree_with_kyverno() {
    run_kyverno(
        "quantities-durations.json",
        &[
            // Kyverno truncates the exponent to 32 bits.
            "add('1e99999999999','0')",
        ],
    );
}

/// Kyverno's answer where it differs from the public suite (docs/spec/jmespath.md §14; the
/// mean of nothing: §6).
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

/// Numbers of the suite compare by value, however they are written.
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

/// The suite does not define the order of keys and values.
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
        let Some(groups) = read_public_suite(&format!("{file}.json")) else {
            return;
        };
        for (group_number, group) in groups.as_array().unwrap().iter().enumerate() {
            let given = floats(&group["given"]);
            for (number, case) in group["cases"].as_array().unwrap().iter().enumerate() {
                let expression = case["expression"].as_str().unwrap();
                let outcome = run_expression(expression, &given);
                if case.get("bench").is_some() {
                    // Benchmarks have no outcome. One nests 104 projections; bytecode nests
                    // at most 64 loops.
                    let error = outcome.err().unwrap_or_default();
                    assert_eq!(
                        error.starts_with("compile: "),
                        (group_number, number) == (2, 4)
                    );
                    continue;
                }
                let kyverno = kyvernos_answer(file, group_number, number);
                cases += 1;
                differing += usize::from(kyverno.is_some());
                for outcome in [outcome, walk_expression(expression, &given)] {
                    let agrees = match (&kyverno, &outcome) {
                        (Some(Ok(wanted)), Ok(value)) => wanted == value,
                        (Some(Err(wanted)), Err(error)) => error.starts_with(wanted),
                        (Some(_), _) => false,
                        (None, Err(_)) => case.get("error").is_some(),
                        (None, Ok(value)) => case
                            .get("result")
                            .is_some_and(|result| same(&floats(result), &floats(value))),
                    };
                    if !agrees {
                        wrong += 1;
                        println!("{file}[{group_number}][{number}] {case}\n  got {outcome:?}");
                    }
                }
            }
        }
    }
    println!("public suite: {cases} cases, {differing} with Kyverno's own answer, {wrong} wrong");
    assert_eq!(wrong, 0);
}

/// Values with few keys, so that expressions find something.
fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        (-3i64..4).prop_map(|number| json!(number as f64)),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4).prop_map(|members| members
                .into_iter()
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}

/// Expressions of every kind of node.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => "[abc]",
        1 => Just("@".to_owned()),
        1 => Just("`1`".to_owned()),
        1 => Just("`null`".to_owned()),
        1 => Just("`[1, [2], {\"a\": 3}]`".to_owned()),
        1 => Just("'ab'".to_owned()),
        1 => Just("bad(@)".to_owned()),
        1 => Just("items(@, 'a', 'b')".to_owned()),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (
                two.clone(),
                prop::sample::select(vec![" || ", " && ", " | ", " == ", " != ", " < "])
            )
                .prop_map(|((left, right), operator)| format!("({left}){operator}({right})")),
            (inner.clone(), "[abc]").prop_map(|(left, key)| format!("({left}).{key}")),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "[0]",
                    "[-1]",
                    "[*]",
                    "[]",
                    "[1:]",
                    "[::-1]",
                    "[::0]",
                    ".*",
                    "[*].a",
                    "[].b",
                    ".*.type(@)",
                    "[*].[a, b]",
                    ".{a: a, b: @}",
                ])
            )
                .prop_map(|(left, step)| format!("({left}){step}")),
            (two.clone(), "[abc]")
                .prop_map(|((left, condition), key)| format!("({left})[?{condition}].{key}")),
            two.clone()
                .prop_map(|(left, right)| format!("[{left}, {right}]")),
            two.clone()
                .prop_map(|(left, right)| format!("{{a: {left}, b: {right}}}")),
            inner.clone().prop_map(|operand| format!("!({operand})")),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "length",
                    "keys",
                    "type",
                    "to_string",
                    "sort",
                    "reverse",
                    "max",
                    "not_null",
                    "to_array",
                    "sum",
                    "abs",
                ])
            )
                .prop_map(|(argument, name)| format!("{name}({argument})")),
            (
                two.clone(),
                prop::sample::select(vec!["sort_by", "max_by", "min_by"])
            )
                .prop_map(|((list, key), name)| format!("{name}({list}, &{key})")),
            two.prop_map(|(function, list)| format!("map(&{function}, {list})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytecode and the run-time evaluator are two implementations of one language.
    #[test]
    fn bytecode_and_tree_walker_agree(text in expression(), input in value()) {
        let (compiled, walked) = (run_expression(&text, &input), walk_expression(&text, &input));
        let crash = Err("Kyverno crashes on this call".to_owned());
        if walked == crash && compiled.is_err() {
            // Which of two errors comes first is open where Kyverno crashes.
            return Ok(());
        }
        prop_assert_eq!(compiled, walked, "{} over {}", text, input);
    }
}
