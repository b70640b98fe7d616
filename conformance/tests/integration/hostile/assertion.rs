//! Assertion trees: hostile keys and leaves, and a walk over literal trees with which the
//! bytecode has to agree.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::oracle::{Expect, Seen, check, check_policy, policy_with, run, thing};

const PASS: Expect = Expect::Results(&["r pass"]);
const FAIL: Expect = Expect::Results(&["r fail"]);
const ERROR: Expect = Expect::Results(&["r error"]);

/// A policy that asserts a tree (YAML in flow style) of the object's spec.
fn asserting(tree: &str) -> String {
    policy_with(&format!("{{assert: {{object: {{spec: {tree}}}}}}}"))
}

#[test]
fn trees() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!("{}1{}", open.repeat(depth), close.repeat(depth))
    };
    let bindings: Vec<String> = (0..300).map(|number| format!("$x{number} = a")).collect();
    let uses: Vec<String> = (0..300).map(|number| format!("$x{number}")).collect();
    let (bindings, uses) = (bindings.join(", "), uses.join(", "));
    let held = format!("{{a: '(let {bindings} in length([{uses}]))'}}");
    let keys: String = (0..5_000).map(|number| format!("k{number}: 1, ")).collect();
    let doublings = "let $a = concat($a, $a) in ".repeat(60);
    let rows: Vec<(&str, String, &str, Expect)> = vec![
        (
            "deep",
            nested("{a: ", "}", 300),
            "{}",
            Expect::Refused("the tree is nested deeper than 256"),
        ),
        ("deep enough", nested("{a: ", "}", 200), "{}", FAIL),
        (
            "deep lists",
            nested("[", "]", 300),
            "[]",
            Expect::Refused("the tree is nested deeper than 256"),
        ),
        (
            "loops in loops",
            nested("{'~.a': ", "}", 200),
            "{}",
            Expect::Refused("rule-too-big"),
        ),
        (
            "300 values held",
            held,
            "{}",
            Expect::Refused("rule-too-big"),
        ),
        ("many keys", format!("{{{keys}}}"), "{}", Expect::NeverPass),
        (
            "deep expression",
            format!("{{a: '({}a{})'}}", "(".repeat(5_000), ")".repeat(5_000)),
            "{}",
            Expect::Refused("levels deep"),
        ),
        (
            "deep arithmetic",
            format!("{{a: '(a{})'}}", " + a".repeat(5_000)),
            "{}",
            Expect::Refused("levels deep"),
        ),
        (
            "long expression",
            format!("{{a: '({})'}}", "a".repeat(70_000)),
            "{}",
            FAIL,
        ),
        (
            "doublings",
            format!("{{a: \"(let $a = 'aaaaaaaa' in {doublings} length($a))\"}}"),
            "{}",
            Expect::NeverPass,
        ),
        (
            "a wide text",
            "{\"(pad_left('a', `1000000000000`))\": 1}".into(),
            "{}",
            ERROR,
        ),
        ("no number", "{'(a / a)': null}".into(), r#"{"a": 0}"#, FAIL),
        (
            "an infinite number",
            "{'(b / a > `1`)': true}".into(),
            r#"{"a": 0, "b": 1}"#,
            PASS,
        ),
        (
            "an index beyond",
            "{'(at(a, `99999999999999999999`))': null}".into(),
            r#"{"a": [1]}"#,
            ERROR,
        ),
        (
            "a slice without a step",
            "{'(a[::0])': null}".into(),
            r#"{"a": [1]}"#,
            Expect::Refused("step 0"),
        ),
        (
            "an end in front",
            "{\"(find_first(a, 'a', `3`, `1`))\": null}".into(),
            r#"{"a": "aaaa"}"#,
            PASS,
        ),
        (
            "a regular expression",
            "{\"(regex_match('(a{500}){500}', 'a'))\": true}".into(),
            "{}",
            ERROR,
        ),
        (
            "an expression that is none",
            "{'(a ||)': 1}".into(),
            "{}",
            Expect::Refused("policy.yaml:8:"),
        ),
        (
            "a leaf that is none",
            "{a: '(b[)'}".into(),
            "{}",
            Expect::Refused("policy.yaml:8:"),
        ),
        (
            "an unknown function",
            "{'(system(a))': 1}".into(),
            "{}",
            Expect::Refused("there is no function `system`"),
        ),
        ("outside a tree", "{'(a)': 1}".into(), "5", FAIL),
        (
            "68, expressions in the object",
            "{a: '(`1`)'}".into(),
            r#"{"a": "(`1`)"}"#,
            ERROR,
        ),
        (
            "68, a variable in the object",
            "{a: x}".into(),
            r#"{"a": "{{ 'x' }}"}"#,
            FAIL,
        ),
        (
            "68, a key of the object",
            "{'~.@': x}".into(),
            r#"{"@": {"(a)": "x"}}"#,
            PASS,
        ),
        ("no wildcard", "{a: '?*'}".into(), r#"{"a": "x"}"#, FAIL),
        ("no anchor", "{'=(a)': x}".into(), r#"{"a": "x"}"#, FAIL),
        ("no operator", "{a: '!x'}".into(), r#"{"a": "y"}"#, FAIL),
        (
            "a text for a number",
            "{a: 5}".into(),
            r#"{"a": "5"}"#,
            ERROR,
        ),
        (
            "an error behind a failure",
            "{a: 1, b: 1}".into(),
            r#"{"a": 2, "b": "x"}"#,
            ERROR,
        ),
    ];
    for (row, tree, spec, expect) in rows {
        let (policy, object) = (asserting(&tree), thing(spec));
        check_policy(row, policy.len(), expect, || {
            run(&policy, object.as_bytes())
        });
    }
}

#[test]
fn large_objects() {
    let list = |item: &str, count: usize| format!("[{}{item}]", format!("{item}, ").repeat(count));
    let map: String = (0..100_000)
        .map(|number| format!("\"k{number}\": 1, "))
        .collect();
    let wide = format!("\"{}\"", "x".repeat(1 << 20));
    let rows = [
        (
            "many failures",
            "{'~.a': 1}",
            format!(r#"{{"a": {}}}"#, list("2", 100_000)),
            Expect::NeverPass,
        ),
        (
            "many that hold",
            "{'~.a': 2}",
            format!(r#"{{"a": {}}}"#, list("2", 100_000)),
            PASS,
        ),
        (
            "a wide map",
            "{'~k.a': {'(starts_with($k, `\"k\"`))': true}}",
            format!(r#"{{"a": {{{map}"k": 1}}}}"#),
            PASS,
        ),
        ("a long text", "{a: x}", format!(r#"{{"a": {wide}}}"#), FAIL),
        (
            "a long text in many failures",
            "{a->a: {'(`[1,2,3,4]`)->n': {'~.($n)': ($a)}}}",
            format!(r#"{{"a": {wide}}}"#),
            ERROR,
        ),
        (
            "loops over loops",
            "{'~.a': {'~.(`[1,2,3,4,5,6,7,8]`)': {'~.(`[1,2,3,4,5,6,7,8]`)': {'~.(`[1,2,3,4,5,6,7,8]`)': {(@): 1}}}}}",
            format!(r#"{{"a": {}}}"#, list("2", 50_000)),
            Expect::NeverPass,
        ),
    ];
    for (row, tree, spec, expect) in rows {
        let (policy, object) = (asserting(tree), thing(&spec));
        check(row, object.len(), expect, || {
            run(&policy, object.as_bytes())
        });
    }
}

/// The text of a failure is limited, and so is the sum of all.
#[test]
fn messages_have_their_limit() {
    let object = thing(&format!(r#"{{"a": "{}"}}"#, "\\n".repeat(100_000)));
    let Seen::Evaluated(results) = run(&asserting("{a: x}"), object.as_bytes()) else {
        panic!("refused");
    };
    assert_eq!(results[0].2.len(), 4096);
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "b", "~.a", "a->b", "\\", "a.b", "?*", "é"])
        .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        Just(json!(1.5)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The literal tree that a value satisfies, with special keys escaped.
fn literal(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(literal).collect(),
        Value::Object(members) => {
            let escaped = |key: &String| match key.as_str() {
                "" => String::new(),
                key => format!("\\{key}\\"),
            };
            let members = members
                .iter()
                .map(|(key, value)| (escaped(key), literal(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        scalar => scalar.clone(),
    }
}

/// Number of failures of a literal tree (docs/spec/assert.md §5 and 6); `None` if it cannot
/// be evaluated.
fn failures(expected: &Value, found: &Value) -> Option<usize> {
    match (expected, found) {
        (Value::Object(members), _) if members.is_empty() => Some(usize::from(found.is_null())),
        (Value::Object(members), found) => {
            let values = members.iter().map(|(key, expected)| match found {
                Value::Null => Some(1),
                Value::Object(found) => match found.get(key) {
                    None => Some(1),
                    Some(found) => failures(expected, found),
                },
                _ => None,
            });
            values.sum()
        }
        (Value::Array(_), Value::Null) => Some(1),
        (Value::Array(items), Value::Array(found)) if items.len() != found.len() => Some(1),
        (Value::Array(items), Value::Array(found)) => {
            let pairs = items.iter().zip(found);
            pairs
                .map(|(expected, found)| failures(expected, found))
                .sum()
        }
        (Value::Array(_), _) => None,
        (Value::Null, _) | (_, Value::Null) => Some(usize::from(expected != found)),
        (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => {
            Some(usize::from(expected != found))
        }
        (Value::Number(expected), Value::Number(found)) => {
            Some(usize::from(expected.as_f64() != found.as_f64()))
        }
        _ => None,
    }
}

fn statuses(tree: &Value, found: &Value) -> Vec<String> {
    let policy = policy_with(&json!({"assert": {"object": {"spec": tree}}}).to_string());
    match run(&policy, thing(&found.to_string()).as_bytes()) {
        Seen::Evaluated(results) => results.into_iter().map(|(_, status, _)| status).collect(),
        Seen::Refused(reason) => panic!("{reason}: {tree}"),
    }
}

/// A token; several together form an expression.
fn token() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a", "b", ".", "[", "]", "0", "*", "@", "$", "$x", "`1`", "'t'", "+", "-", "/", "//", "%",
        "(", ")", "length", "==", "<", "||", "&&", "!", "|", ",", "let", "in", "=", "[?", "{", "}",
        ":", "&", "at", " ",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_literal_tree_of_a_value_holds_for_it(value in value()) {
        prop_assert_eq!(statuses(&literal(&value), &value), ["pass"]);
    }

    #[test]
    fn literal_trees_fail_as_specified(expected in value(), found in value()) {
        let outcome = statuses(&literal(&expected), &found);
        match failures(&expected, &found) {
            None => prop_assert_eq!(outcome, ["error"]),
            Some(0) => prop_assert_eq!(outcome, ["pass"]),
            Some(count) => prop_assert_eq!(outcome, vec!["fail"; count]),
        }
    }

    /// Any text in parentheses is either refused with its place or evaluated.
    #[test]
    fn expressions_of_any_kind(tokens in prop::collection::vec(token(), 1..12), value in value()) {
        let expression = tokens.concat();
        let tree = json!({"a->x": {format!("({expression})"): 1, "~.(b || a)": format!("({expression})")}});
        let policy = policy_with(&json!({"assert": {"object": {"spec": tree}}}).to_string());
        match run(&policy, thing(&json!({"a": value}).to_string()).as_bytes()) {
            Seen::Refused(reason) => prop_assert!(reason.starts_with("policy.yaml:8:"), "{}", reason),
            Seen::Evaluated(results) => prop_assert!(!results.is_empty()),
        }
    }
}
