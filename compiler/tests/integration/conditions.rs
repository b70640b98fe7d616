//! The worked cases of docs/spec/conditions.md, each as a whole policy with one rule `r`:
//! its status and message.
//!
//! Omitted: the background-scan half of 17 and 34 (covered by other rows), 41 (results of
//! variables are never searched for variables), 45's second half and 50 (a host).

use crate::common::{evaluate, policy};
use kpvm::document::Numbers;
use kpvm::engine::{Input, Request};

const OBJECT: &str = r#"{
    "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"},
    "spec": {
        "five": 5, "list": [1], "million": 1000000, "nothing": null, "map": {"a": "<b>"},
        "names": ["k", "l"], "empty": [], "z": "Z",
        "items": [{"name": "a"}, {"name": "b", "bad": true}, {"name": "c"}],
        "holes": [null, {"name": "b"}]
    }
}"#;

/// `STATUS`, or `STATUS: message`; `nothing` for no response. Resources of the command line
/// contain only floats.
fn found(rule: &str) -> String {
    let rule = format!("{{name: r, match: {{any: [{{resources: {{kinds: [Thing]}}}}]}}, {rule}}}");
    let request = Request {
        numbers: Numbers::Float,
        ..Request::create(Input::Json(OBJECT.as_bytes()))
    };
    match evaluate(&policy(&[rule], ""), &request).first() {
        None => "nothing".into(),
        Some(response) => format!("{}: {}", response.status, response.message),
    }
}

fn check(rows: &[(&str, &str, &str)]) {
    for (case, rule, expected) in rows {
        let found = found(rule);
        let holds = if expected.contains(':') || *expected == "nothing" {
            found == *expected
        } else {
            found.starts_with(&format!("{expected}:"))
        };
        assert!(
            holds,
            "case {case}: {rule}\n  expected {expected}\n  found    {found}"
        );
    }
}

const T: &str = "key: a, operator: Equals, value: a";
const F: &str = "key: a, operator: Equals, value: b";

#[test]
fn blocks_and_messages() {
    let missing = "key: '{{ nope }}', operator: Equals, value: a";
    let skip = |conditions: &str| format!("preconditions: {conditions}, validate: {{deny: {{}}}}");
    let deny = |message: &str, conditions: &str| {
        format!("validate: {{{message} deny: {{conditions: {conditions}}}}}")
    };
    check(&[
        (
            "1",
            "validate: {deny: {}}",
            "fail: validation error: rule r failed",
        ),
        ("2", &deny("", "{any: []}"), "pass"),
        ("3", &skip("[]"), "fail"),
        ("3", &skip("{any: []}"), "skip: preconditions not met"),
        (
            "4",
            &skip(&format!(
                "{{any: [{{{F}, message: m1}}, {{{F}, message: m2}}]}}"
            )),
            "skip: preconditions not met; m1; m2",
        ),
        (
            "5",
            &skip(&format!(
                "{{any: [{{{F}, message: m1}}, {{{T}, message: m2}}], all: [{{{F}, message: m3}}]}}"
            )),
            "skip: preconditions not met; m1; m3",
        ),
        (
            "6",
            &deny(
                "message: R,",
                &format!(
                    "{{any: [{{{T}, message: a}}, {{{T}, message: b}}], all: [{{{T}, message: c}}]}}"
                ),
            ),
            "fail: R; a; c",
        ),
        (
            "7",
            &deny(
                "message: R,",
                &format!("[{{{T}, message: a}}, {{{T}, message: b}}]"),
            ),
            "fail: R; a;b",
        ),
        (
            "8",
            &skip(&format!("{{any: [{{{F}}}], all: [{{{missing}}}]}}")),
            "error: failed to evaluate preconditions: failed to substitute variables in condition key: failed to resolve nope at path : JMESPath query failed: Unknown key \"nope\" in path",
        ),
        (
            "9",
            &skip(&format!("{{all: [{{{F}}}, {{{missing}}}]}}")),
            "skip: preconditions not met",
        ),
        (
            "10",
            &deny("", "[{key: a, operator: equals, value: a}]"),
            "fail",
        ),
        (
            "10",
            &deny("", "[{key: 5, operator: greaterthan, value: 1}]"),
            "pass",
        ),
        (
            "11",
            &deny("", "[{key: a, operator: Foo, value: a}]"),
            "error: failed to check deny conditions: failed to create handler for condition operator: %!w(<nil>)",
        ),
        (
            "12",
            &deny("", "[{key: null, operator: NotEquals, value: x}]"),
            "pass",
        ),
        (
            "12",
            &deny("", "[{key: null, operator: AnyNotIn, value: []}]"),
            "pass",
        ),
    ]);
}

/// One condition in a deny: `true` is a failure of the rule.
fn check_conditions(rows: &[(&str, &str, &str, &str, bool)]) {
    for (case, key, operator, value, expected) in rows {
        let rule = format!(
            "validate: {{deny: {{conditions: [{{key: {key}, operator: {operator}, value: {value}}}]}}}}"
        );
        let status = if *expected { "fail" } else { "pass" };
        check(&[(case, &rule, status)]);
    }
}

#[test]
fn equality_and_order() {
    check_conditions(&[
        ("13", "'1h'", "Equals", "'60m'", true),
        ("13", "'1h'", "Equals", "3600", true),
        ("13", "3600", "Equals", "'1h'", false),
        ("13", "'1Gi'", "Equals", "'1024Mi'", true),
        ("13", "'1024'", "Equals", "'1Ki'", true),
        ("14", "'5'", "Equals", "5", false),
        ("14", "5", "Equals", "'5'", true),
        ("14", "5", "Equals", "'5.0'", true),
        ("15", "'1.5.2'", "Equals", "'1.5.*'", true),
        ("15", "'15'", "Equals", "'1*'", false),
        ("15", "v15", "Equals", "'v1*'", true),
        ("15", "'1*'", "Equals", "'15'", false),
        ("16", "true", "Equals", "'true'", false),
        ("16", "true", "NotEquals", "'true'", true),
        ("17", "[a, b]", "Equals", "[b, a]", false),
        (
            "17",
            "'{{ request.object.spec.list }}'",
            "Equals",
            "[1]",
            false,
        ),
        ("18", "'0'", "Equals", "'0s'", false),
        ("19", "''", "NotEquals", "''", false),
        ("19", "100Mi", "NotEquals", "''", true),
        ("20", "500m", "GreaterThanOrEquals", "'0.5'", true),
        ("20", "1.5.5", "GreaterThan", "1.5.0", true),
        ("20", "v1.2.3", "GreaterThan", "1.0.0", false),
        ("21", "2000", "GreaterThan", "1Ki", false),
        ("21", "'2000'", "GreaterThan", "1Ki", true),
        ("22", "30m", "LessThan", "3600", true),
        ("22", "3600", "GreaterThan", "30m", true),
        ("22", "1.9", "GreaterThan", "1s", false),
        ("23", "'5'", "LessThan", "1h", true),
        ("24", "true", "GreaterThan", "5", false),
        ("24", "['1']", "GreaterThan", "0", false),
        ("25", "'120'", "DurationGreaterThan", "1m", false),
        ("25", "120", "DurationGreaterThan", "1m", true),
    ]);
}

#[test]
fn membership() {
    check_conditions(&[
        ("26", "'5'", "AnyIn", "1-10", true),
        ("26", "5.5", "AllNotIn", "6-10", true),
        ("26", "[1, 5, 11]", "AnyNotIn", "0-10", true),
        ("26", "[2, 6]", "AllNotIn", "5-10", false),
        ("27", "'6'", "AnyNotIn", "'5'", false),
        ("27", "b", "AnyNotIn", "a", true),
        ("28", "a", "AnyIn", r#"'["a*"]'"#, false),
        ("28", "[abc]", "AnyIn", r#"'["a*"]'"#, true),
        ("29", "a", "NotIn", "b", false),
        ("29", "a", "AnyNotIn", "b", true),
        ("30", "[x]", "NotIn", "x", true),
        ("30", "[x]", "AnyNotIn", "x", false),
        ("31", "[1, 2, 3]", "AnyIn", "2", true),
        ("31", "[1, 2, 3]", "AllIn", "2", false),
        ("31", "[1]", "AllNotIn", "2", false),
        ("32", "[]", "AllIn", "[a]", true),
        ("32", "[]", "AnyNotIn", "[a]", false),
        ("32", "''", "AnyNotIn", "[a]", true),
        ("33", "['1*']", "AllIn", "[1.1.1.1]", true),
        ("33", "['1*']", "In", "[1.1.1.1]", false),
        ("33", "'1*'", "In", "[1.1.1.1]", true),
        (
            "34",
            r#""{{ to_number('1000000') }}""#,
            "AnyIn",
            "[1000000]",
            false,
        ),
        ("34", "1000000", "AnyIn", "[1000000]", false),
        ("34", "1000000", "AnyIn", "['1000000']", false),
        ("34", "[1000000]", "AnyIn", "['1000000']", true),
        (
            "34",
            "'{{ request.object.spec.million }}'",
            "AnyIn",
            "[1000000]",
            false,
        ),
        ("35", "{a: 1}", "AnyNotIn", "[b]", false),
        ("36", "64", "AllNotIn", "default", true),
    ]);
}

#[test]
fn substitution() {
    check_conditions(&[
        (
            "37",
            "'{{ request.object.spec.five }}'",
            "Equals",
            "5",
            true,
        ),
        (
            "37",
            "'v{{ request.object.spec.five }}'",
            "Equals",
            "v5",
            true,
        ),
        (
            "37",
            "'v{{ request.object.spec.nothing }}'",
            "Equals",
            "vnull",
            true,
        ),
        (
            "38",
            "'{{ request.object.spec.map }}!'",
            "Equals",
            r#"'{"a":"\u003cb\u003e"}!'"#,
            true,
        ),
        ("39", r"'\{{ x }}'", "Equals", r"'\{{ x }}'", true),
        (
            "40",
            r#""{{ '' }}{{ request.object.spec.names }}""#,
            "Equals",
            "[k, l]",
            true,
        ),
        (
            "40",
            r#""{{ 'x' }}{{ request.object.spec.names }}""#,
            "Equals",
            r#"'x["k","l"]'"#,
            true,
        ),
        (
            "42",
            "'{{ {a: {b: c}} }}'",
            "Equals",
            "'{{ {a: {b: c}} }}'",
            true,
        ),
    ]);
    check(&[
        (
            "44",
            "validate: {pattern: {spec: {z: '{{ request.object.nope }}'}}}",
            "error: variable substitution failed: failed to resolve request.object.nope at path /spec/z: JMESPath query failed: Unknown key \"nope\" in path",
        ),
        (
            "45",
            r"validate: {deny: {conditions: [{key: '\$(POD)', operator: Equals, value: '\$(POD)'}]}}",
            "fail",
        ),
    ]);
}

#[test]
fn context_entries() {
    let used = |entries: &str, query: &str, value: &str| {
        format!(
            "context: {entries}, validate: {{deny: {{conditions: [{{key: '{{{{ {query} }}}}', operator: Equals, value: {value}}}]}}}}"
        )
    };
    let error = |text: &str| {
        format!(
            "error: failed to check deny conditions: failed to substitute variables in condition key: failed to resolve v at path : {text}"
        )
    };
    let missing = error(
        "failed to apply jmespath missing to variable <nil>: JMESPath query failed: Unknown key \"missing\" in path",
    );
    let nil = error("failed to add context entry for variable v since it evaluated to nil");
    let value = error(
        "failed to substitute variables in context entry v {{ missing }}: failed to resolve missing at path : JMESPath query failed: Unknown key \"missing\" in path",
    );
    let broken = "{name: v, variable: {jmesPath: missing}}";
    check(&[
        (
            "46",
            &used(
                "[{name: v, variable: {jmesPath: missing.path, default: d}}]",
                "v",
                "d",
            ),
            "fail",
        ),
        (
            "46",
            &used(&format!("[{broken}]"), "request.object.spec.five", "5"),
            "fail",
        ),
        ("46", &used(&format!("[{broken}]"), "v", "5"), &missing),
        (
            "47",
            &used(
                "[{name: v, variable: {value: {a: null}, jmesPath: a, default: d}}]",
                "v",
                "d",
            ),
            &nil,
        ),
        (
            "48",
            &used(
                "[{name: v, variable: {value: '{{ missing }}', default: d}}]",
                "v",
                "d",
            ),
            &value,
        ),
        (
            "49",
            &used(
                "[{name: a, variable: {value: 1}}, {name: a, variable: {jmesPath: 'add(a,`1`)'}}]",
                "a",
                "2",
            ),
            "fail",
        ),
        (
            "49",
            &used(
                "[{name: v, variable: {jmesPath: c}}, {name: c, variable: {value: 1}}]",
                "v",
                "1",
            ),
            "error",
        ),
    ]);
}

#[test]
fn foreach() {
    let named = |list: &str, rest: &str| {
        format!("validate: {{message: m, foreach: [{{list: '{list}', {rest}}}]}}")
    };
    let bad = "deny: {conditions: [{key: '{{ element.bad || `false` }}', operator: Equals, value: true}]}";
    let never = "deny: {conditions: {any: []}}";
    let unmet = "preconditions: {all: [{key: a, operator: Equals, value: b}]}, deny: {}";
    let missing_precondition =
        "preconditions: {all: [{key: '{{ element.nope }}', operator: Equals, value: b}]}, deny: {}";
    let missing = "deny: {conditions: [{key: '{{ element.nope }}', operator: Equals, value: b}]}";
    let index = |value: &str| {
        format!(
            "deny: {{conditions: [{{key: '{{{{ elementIndex }}}}', operator: NotEquals, value: {value}}}]}}"
        )
    };
    check(&[
        (
            "52",
            &named("request.object.spec.nothing", never),
            "nothing",
        ),
        ("52", &named("request.object.spec.nope", never), "nothing"),
        ("52", &named("request.object.spec.empty", never), "nothing"),
        (
            "53",
            &named("request.object.spec.items", bad),
            "fail: validation failure: m",
        ),
        ("54", &named("request.object.spec.items", unmet), "nothing"),
        (
            "54",
            &named("request.object.spec.items", never),
            "pass: rule passed",
        ),
        (
            "55",
            &named("request.object.spec.items", missing_precondition),
            "nothing",
        ),
        (
            "55",
            &named("request.object.spec.items", missing),
            "error: validation failure: failed to check deny conditions: failed to substitute variables in condition key: failed to resolve element.nope at path : JMESPath query failed: Unknown key \"nope\" in path",
        ),
        (
            "56",
            &named("foo[", never),
            "error: failed to evaluate list: incorrect query foo[: SyntaxError: Expected tStar, received: tEOF",
        ),
        (
            "56",
            &format!(
                "validate: {{foreach: [{{list: 'foo[', {never}}}, {{list: request.object.spec.items, {never}}}]}}"
            ),
            "pass: rule passed",
        ),
        (
            "57",
            &named("request.object.spec.names", "pattern: {spec: {z: Z}}"),
            "pass",
        ),
        (
            "58",
            &named(
                "request.object.spec.names",
                "elementScope: true, pattern: {spec: {z: Z}}",
            ),
            "error: failed to process foreach: cannot use elementScope=true foreach rules for elements that are not maps, expected type=map got type=string",
        ),
        ("59", &named("request.object.metadata", &index("0")), "pass"),
        (
            "60",
            &named("request.object.spec.holes", &index("1")),
            "pass",
        ),
    ]);
}
