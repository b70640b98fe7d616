//! The worked cases of docs/spec/assert.md, each as a whole policy, and rows for the
//! sections they do not cover.
//!
//! Omitted: 37's "order between sibling keys unspecified" (here it is that of the text),
//! and functions of values of unknown type in 42 and 44.

use crate::common::{compile_with, create, evaluate, policy};
use kpvm::document::Numbers;
use kpvm::engine::{Engine, Input, Operation, Request, Session, UserInfo};
use kpvm_compiler::compile::Options;
use kpvm_compiler::diagnostic::Severity;

const THINGS: &str = "match: {any: [{resources: {kinds: [Thing]}}]}";

fn thing(input: &str) -> String {
    format!(
        r#"{{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {{"name": "t"}}, "in": {input}}}"#
    )
}

fn asserting(tree: &str, more: &str) -> String {
    let rule = format!("{{name: r, {more}{THINGS}, validate: {{assert: {tree}}}}}");
    policy(&[rule], "")
}

/// `STATUS: MESSAGE` of each response.
fn outcomes(policies: &str, request: &Request<'_>) -> Vec<String> {
    evaluate(policies, request)
        .into_iter()
        .map(|response| format!("{}: {}", response.status, response.message))
        .collect()
}

/// Outcomes of a tree for a value, without the leading part of the paths.
fn found_with(tree: &str, input: &str, more: &str) -> Vec<String> {
    let policy = asserting(&format!("{{object: {{in: {tree}}}}}"), more);
    outcomes(
        &policy,
        &Request::create(Input::Json(thing(input).as_bytes())),
    )
    .into_iter()
    .map(|outcome| {
        outcome
            .replace("failed to apply assertion: ", "")
            .replace("object.in.", "")
            .replace("object.in[", "[")
    })
    .collect()
}

fn found(tree: &str, input: &str) -> Vec<String> {
    found_with(tree, input, "")
}

const PASS: &str = "pass: Validation rule 'r' passed.";
const MISSING: &str = "Required value: field not found in the input object";

fn check(rows: &[(&str, &str, &str, &[&str])]) {
    for (case, tree, input, expected) in rows {
        assert_eq!(
            found(tree, input),
            *expected,
            "case {case}: {tree} over {input}"
        );
    }
}

#[test]
fn section_10_values() {
    check(&[
        ("7", "{foo: {bar: 4}}", r#"{"foo": {"bar": 4}}"#, &[PASS]),
        ("7", "{foo: {bar: 4}}", r#"{"foo": {"bar": 4.0}}"#, &[PASS]),
        (
            "8",
            "{foo: {bar: 4}}",
            r#"{"foo": {"bar": "4"}}"#,
            &["error: foo.bar: Internal error: types are not comparable, int64 - string"],
        ),
        (
            "9",
            "{foo: {bar: 4}}",
            r#"{"foo": {}}"#,
            &[&format!("fail: foo.bar: {MISSING}")],
        ),
        (
            "10",
            "{foo: {bar: 4}}",
            r#"{"foo": 7}"#,
            &["error: foo.bar: Internal error: projection not recognized"],
        ),
        (
            "11",
            "{foo: {bar: 4}}",
            r#"{"foo": null}"#,
            &[&format!("fail: foo.bar: {MISSING}")],
        ),
        (
            "12",
            "{foo: {'(bar > `3`)': true, '(!baz)': false, '(bar + bat)': 10}}",
            r#"{"foo": {"baz": true, "bar": 4, "bat": 6}}"#,
            &[PASS],
        ),
        (
            "13",
            "{foo: {bar: [1, 2, 3]}}",
            r#"{"foo": {"bar": [1, 2, 3]}}"#,
            &[PASS],
        ),
        (
            "13",
            "{foo: {bar: [1, 2, 3]}}",
            r#"{"foo": {"bar": [1, 2]}}"#,
            &["fail: foo.bar: Invalid value: []interface {}{1, 2}: lengths of slices don't match"],
        ),
        (
            "13",
            "{foo: {bar: [1, 2, 3]}}",
            r#"{"foo": {"bar": [1, 3, 2]}}"#,
            &[
                "fail: foo.bar[1]: Invalid value: 3: Expected value: 2",
                "fail: foo.bar[2]: Invalid value: 2: Expected value: 3",
            ],
        ),
        (
            "14",
            "{bar: []}",
            r#"{"bar": null}"#,
            &["fail: bar: Invalid value: \"null\": value is null"],
        ),
        (
            "14",
            "{bar: []}",
            r#"{"bar": {}}"#,
            &["error: bar: Invalid value: map[string]interface {}{}: expected a slice"],
        ),
        ("14", "{bar: []}", r#"{"bar": []}"#, &[PASS]),
        ("34", "{a: {}}", r#"{"a": 5}"#, &[PASS]),
        (
            "35",
            "{flag: true}",
            r#"{"flag": "true"}"#,
            &["error: flag: Internal error: types are not comparable, bool - string"],
        ),
        (
            "36",
            "{'n': 1}",
            r#"{"n": null}"#,
            &["fail: n: Invalid value: \"null\": Expected value: 1"],
        ),
        ("49", "{image: (@)}", r#"{"image": {"a": [1]}}"#, &[PASS]),
        ("50", "{a: 'x->y'}", r#"{"a": "x->y"}"#, &[PASS]),
    ]);
}

#[test]
fn section_10_iteration_and_bindings() {
    check(&[
        (
            "15",
            "{'~.bar': {'(@ < `5`)': true}}",
            r#"{"bar": [1, 9]}"#,
            &["fail: ~.bar[1].(@ < `5`): Invalid value: false: Expected value: true"],
        ),
        (
            "16",
            "{'~.bar': {x: 1}}",
            r#"{"bar": {"q": {"x": 2}, "p": {"x": 1}}}"#,
            &["fail: ~.bar[q].x: Invalid value: 2: Expected value: 1"],
        ),
        (
            "17",
            "{'~.bar': 1}",
            r#"{"bar": "s"}"#,
            &["error: ~.bar: Invalid value: \"s\": expected a slice or a map"],
        ),
        (
            "18",
            "{'~.(spec.initContainers)': 1}",
            "{}",
            &["error: ~.(spec.initContainers): Invalid value: \"null\": expected a slice or a map"],
        ),
        (
            "18",
            "{'~.(spec.initContainers || `[]`)': 1}",
            "{}",
            &[PASS],
        ),
        (
            "19",
            "{'~i.bar': {'(to_number($i))': 0}}",
            r#"{"bar": [5]}"#,
            &[PASS],
        ),
        (
            "19",
            "{'~i.bar': {'(to_number($i))': 0}}",
            r#"{"bar": [5, 6]}"#,
            &["fail: ~i.bar[1].(to_number($i)): Invalid value: 1: Expected value: 0"],
        ),
        (
            "4.1",
            "{'~k.bar': {'($k)': p}}",
            r#"{"bar": {"p": 1}}"#,
            &[PASS],
        ),
        (
            "20",
            "{'(bar + bat)->sum': {'($sum)': 10}}",
            r#"{"bar": 4, "bat": 6}"#,
            &[PASS],
        ),
        (
            "21",
            "{'($nope)': 1}",
            "{}",
            &["error: ($nope): Internal error: variable not defined: $nope"],
        ),
        (
            "5.4",
            "{a->x: {b: ($x.b)}, '(`1`)': {'(@)': 1}}",
            r#"{"a": {"b": 3}}"#,
            &[PASS],
        ),
        (
            "5.4",
            "{a->x: 1, '($x)': 1}",
            r#"{"a": 1}"#,
            &["error: ($x): Internal error: variable not defined: $x"],
        ),
        (
            "5.4",
            "{a->x: {'(`7`)->x': {'($x)': 7}, b: ($x.b)}}",
            r#"{"a": {"b": 3}}"#,
            &[PASS],
        ),
    ]);
}

#[test]
fn section_10_keys() {
    check(&[
        ("23", "{'\\(bar)\\': 4}", r#"{"(bar)": 4}"#, &[PASS]),
        (
            "24",
            "{'\\(bar)\\->t': {'($t)': 4}}",
            r#"{"(bar)": 4}"#,
            &[PASS],
        ),
        ("25", "{'\\(bar)->t\\': 6}", r#"{"(bar)->t": 6}"#, &[PASS]),
        (
            "26",
            "{'\\~foos\\': [1, 2, 3]}",
            r#"{"~foos": [1, 2, 3]}"#,
            &[PASS],
        ),
        (
            "27",
            "{a.b: 1}",
            r#"{"a": {"b": 1}}"#,
            &[&format!("fail: a.b: {MISSING}")],
        ),
        ("27", "{(a.b): 1}", r#"{"a": {"b": 1}}"#, &[PASS]),
        (
            "47",
            "{'(a) ->b': 1}",
            r#"{"a": 1}"#,
            &[&format!("fail: (a) ->b: {MISSING}")],
        ),
        (
            "48",
            "{\"(a\\n)\": 1}",
            r#"{"a": 1}"#,
            &[&format!("fail: (a\n): {MISSING}")],
        ),
        (
            "7",
            "{'': 1}",
            r#"{"": 2}"#,
            &["fail: []: Invalid value: 2: Expected value: 1"],
        ),
        ("4.1", "{'(cel; a)': 1}", r#"{"a": 1}"#, &[PASS]),
    ]);
}

#[test]
fn section_10_expected_values_of_expressions() {
    let row = |tags: &str| {
        found(
            "{'(@)->all': {'(`{\"Team\":\"Kyverno\"}`)->want': {'($all.tags)': ($want)}}}",
            &format!(r#"{{"tags": {tags}}}"#),
        )
    };
    assert_eq!(
        row(r#"{"Team": "Kyverno", "Env": "dev"}"#),
        [PASS],
        "case 29"
    );
    let path = "(@)->all.(`{\"Team\":\"Kyverno\"}`)->want.($all.tags)";
    assert_eq!(
        row(r#"{"Env": "dev"}"#),
        [format!(
            "fail: {path}: Invalid value: map[string]interface {{}}{{\"Env\":\"dev\"}}: Expected value: map[string]interface {{}}{{\"Team\":\"Kyverno\"}}"
        )],
        "case 30"
    );
    assert_eq!(
        row("null"),
        [format!(
            "error: {path}: Internal error: invalid actual value, must be a map, found invalid"
        )],
        "case 31"
    );
    let list = "{x: '(`[1,2]`)'}";
    assert_eq!(
        found(list, r#"{"x": [1, 2, 3]}"#),
        ["fail: x: Invalid value: []interface {}{1, 2, 3}: Expected value: []interface {}{1, 2}"],
        "case 32"
    );
    assert_eq!(
        found(list, r#"{"x": {"a": 1}}"#),
        ["error: x: Internal error: invalid actual value, must be a slice, found map"],
        "section 6"
    );
    assert_eq!(found(list, r#"{"x": [1, 2.0]}"#), [PASS], "section 6");
}

/// Section 5.5, with case 33: a tree over `{}` and over `{a: null}`.
#[test]
fn missing_fields() {
    let missing = format!("fail: a: {MISSING}");
    let missing_below = format!("fail: a.b: {MISSING}");
    let null = |key: &str| format!("fail: {key}: Invalid value: \"null\": Expected value: 1");
    let empty = |key: &str| {
        format!("fail: {key}: Invalid value: \"null\": invalid value, must not be null")
    };
    let nothing =
        |key: &str| format!("error: {key}: Invalid value: \"null\": expected a slice or a map");
    let pass = || PASS.to_owned();
    for (tree, of_nothing, of_null) in [
        ("{a: 1}", missing.clone(), null("a")),
        ("{a: null}", missing.clone(), pass()),
        ("{(a): null}", pass(), pass()),
        ("{(a): 1}", null("(a)"), null("(a)")),
        ("{a: {}}", missing.clone(), empty("a")),
        ("{(a): {}}", empty("(a)"), empty("(a)")),
        ("{a: {b: 1}}", missing.clone(), missing_below),
        (
            "{'~.a': 1}",
            format!("fail: ~.a: {MISSING}"),
            nothing("~.a"),
        ),
        ("{'~.(a)': 1}", nothing("~.(a)"), nothing("~.(a)")),
        ("{'~.(a || `[]`)': 1}", pass(), pass()),
        ("{(a.b.c): null}", pass(), pass()),
    ] {
        assert_eq!(found(tree, "{}"), [of_nothing], "{tree} over {{}}");
        assert_eq!(found(tree, r#"{"a": null}"#), [of_null], "{tree} over null");
    }
}

/// Section 8.
#[test]
fn expressions() {
    for (expression, input, expected) in [
        ("a + b", r#"{"a": 1, "b": 2.5}"#, "3.5"),
        ("a - b * `2`", r#"{"a": 1, "b": 2}"#, "-3"),
        ("a / b", r#"{"a": 7, "b": 2}"#, "3.5"),
        ("a // b", r#"{"a": 7, "b": 2}"#, "3"),
        ("a % b", r#"{"a": -7, "b": 2}"#, "-1"),
        ("-a", r#"{"a": 7}"#, "-7"),
        ("a + b", r#"{"a": "7", "b": 1}"#, "null"),
        ("a < b", r#"{"a": "7", "b": "8"}"#, "null"),
        ("a < b", r#"{"a": 7, "b": 7.5}"#, "true"),
        ("a == `7`", r#"{"a": 7}"#, "true"),
        ("!a", "{}", "true"),
        ("!a", r#"{"a": 0}"#, "false"),
        ("a[1:3]", r#"{"a": "abcd"}"#, "bc"),
        ("a[::-1]", r#"{"a": "abcd"}"#, "dcba"),
        ("length(a[1:3])", r#"{"a": [1, 2, 3]}"#, "2"),
        ("$", "{}", "null"),
        ("let $x = a in $x + $x", r#"{"a": 2}"#, "4"),
        ("length([a, b])", "{}", "2"),
        ("at(a, `1`)", r#"{"a": [1, 2]}"#, "2"),
        ("concat(a, 'x')", r#"{"a": "b"}"#, "bx"),
        ("json_parse(a).b", r#"{"a": "{\"b\": 3}"}"#, "3"),
        ("wildcard('ngin*', a)", r#"{"a": "nginx"}"#, "true"),
        ("to_upper(a)", r#"{"a": "b"}"#, "B"),
        ("upper(a)", r#"{"a": "b"}"#, "B"),
        ("truncate(a, `1`)", r#"{"a": "bc"}"#, "b"),
        ("length(items(a, 'k', 'v'))", r#"{"a": {"x": 1}}"#, "1"),
        ("find_first(a, 'b')", r#"{"a": "abab"}"#, "1"),
        ("find_last(a, 'b')", r#"{"a": "abab"}"#, "3"),
        ("find_first(a, 'b', `2`)", r#"{"a": "abab"}"#, "3"),
        ("from_items(zip(a, b)).x", r#"{"a": ["x"], "b": [4]}"#, "4"),
        (
            "length(group_by(a, &k).x)",
            r#"{"a": [{"k": "x"}, {"k": "x"}, {"k": "y"}]}"#,
            "2",
        ),
        ("pad_left(a, `3`, '0')", r#"{"a": "7"}"#, "007"),
        ("pad_right(a, `3`)", r#"{"a": "7"}"#, "7  "),
        ("trim_left(a)", r#"{"a": "  x "}"#, "x "),
        ("trim_right(a, 'x')", r#"{"a": "axx"}"#, "a"),
        (
            "sort_by(a, &p)[0].n",
            r#"{"a": [{"p": 9, "n": "i"}, {"p": 8, "n": "j"}]}"#,
            "j",
        ),
        ("max(a)", r#"{"a": [1, 3, 2]}"#, "3"),
        ("contains(a, `3`)", r#"{"a": [1, 3, 2]}"#, "true"),
    ] {
        let expected = match expected.parse::<f64>() {
            Ok(_) => expected.to_owned(),
            Err(_) if ["null", "true", "false"].contains(&expected) => expected.to_owned(),
            Err(_) => format!("'{expected}'"),
        };
        // YAML's way to have both kinds of quotes in a key.
        let key = expression.replace('\\', "\\\\").replace('"', "\\\"");
        let expected = if expression.starts_with("pad_left") {
            "'007'".into()
        } else {
            expected
        };
        let tree = format!("{{\"({key})\": {expected}}}");
        assert_eq!(found(&tree, input), [PASS], "{expression} over {input}");
    }
    for (expression, input, error) in [
        (
            "at(a, `5`)",
            r#"{"a": [1]}"#,
            "index out of range [5] with length 1",
        ),
        (
            "to_upper(a)",
            "{}",
            "Invalid type for: <nil>, expected: []jmespath.JpType{\"string\"}",
        ),
        (
            "from_items(a)",
            r#"{"a": [[1]]}"#,
            "invalid value, each array must contain two elements, a pair of string and value",
        ),
        (
            "pad_left(a, `3`, 'xy')",
            r#"{"a": "7"}"#,
            "invalid value, the function 'pad_left' expects its 'pad' argument to be a string of length 1",
        ),
    ] {
        let found = found(&format!("{{\"({expression})\": 1}}"), input);
        assert_eq!(
            found,
            [format!("error: ({expression}): Internal error: {error}")]
        );
    }
}

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "ns1"},
    "spec": {"serviceAccountName": "default", "containers": [{"image": "a:latest"}, {"image": "b:1"}]}}"#;

fn pods(tree: &str, more: &str) -> String {
    let kinds = "match: {any: [{resources: {kinds: [Pod]}}]}";
    policy(
        &[format!(
            "{{name: r, {more}{kinds}, validate: {{message: unused, assert: {tree}}}}}"
        )],
        "",
    )
}

fn over_pod(tree: &str) -> Vec<String> {
    outcomes(
        &pods(tree, ""),
        &Request::create(Input::Json(POD.as_bytes())),
    )
}

#[test]
fn section_10_whole_objects() {
    let account = "{object: {spec: {\"(serviceAccountName == 'default')\": false}}}";
    let path = "object.spec.(serviceAccountName == 'default')";
    assert_eq!(
        over_pod(account),
        [format!(
            "fail: {path}: Invalid value: true: Expected value: false"
        )],
        "case 4"
    );
    for (case, pod) in [
        ("5", POD.replace("\"default\"", "\"build\"")),
        (
            "6",
            POD.replace("\"serviceAccountName\": \"default\", ", ""),
        ),
    ] {
        let found = outcomes(
            &pods(account, ""),
            &Request::create(Input::Json(pod.as_bytes())),
        );
        assert_eq!(found, [PASS], "case {case}");
    }
    let tagged = "{object: {spec: {'~.containers': {'(ends_with(image, $tag))': false}}}}";
    let context = "context: [{name: tag, variable: {value: ':latest'}}], ";
    let found = outcomes(
        &pods(tagged, context),
        &Request::create(Input::Json(POD.as_bytes())),
    );
    assert_eq!(
        found,
        [
            "fail: object.spec.~.containers[0].(ends_with(image, $tag)): Invalid value: true: Expected value: false"
        ],
        "case 22"
    );
    assert_eq!(
        over_pod("{object: {metadata: {name: 'we*'}}}"),
        ["fail: object.metadata.name: Invalid value: \"web\": Expected value: \"we*\""],
        "case 28"
    );
    assert_eq!(
        over_pod("{object: {metadata: {\"(wildcard('we*', name))\": true}}}"),
        [PASS],
        "case 28"
    );
    assert_eq!(
        over_pod("{object: {spec: {'~.containers': {image: x}}}}"),
        [
            "fail: object.spec.~.containers[0].image: Invalid value: \"a:latest\": Expected value: \"x\"",
            "fail: object.spec.~.containers[1].image: Invalid value: \"b:1\": Expected value: \"x\"",
        ],
        "case 37"
    );
    assert_eq!(
        over_pod("{object: {kind: x, metadata: {name: 1}}}"),
        [
            "error: failed to apply assertion: object.metadata.name: Internal error: types are not comparable, int64 - string"
        ],
        "case 38"
    );
}

/// Section 3, with cases 42 to 44.
#[test]
fn payload() {
    let user = UserInfo {
        username: "jane",
        uid: "",
        groups: &["dev"],
        roles: &["ns1:editor"],
        cluster_roles: &["view"],
    };
    let request = Request {
        operation: Operation::Update,
        object: Some(Input::Json(POD.as_bytes())),
        user: Some(user),
        namespace_labels: &[("env", "prod")],
        ..Request::create(Input::Json(POD.as_bytes()))
    };
    let error = |path: &str, text: &str| {
        vec![format!(
            "error: failed to apply assertion: {path}: Internal error: {text}"
        )]
    };
    let unknown = "projection not recognized";
    let fail = |text: &str| vec![format!("fail: {text}")];
    let null = |path: &str, expected: &str| {
        fail(&format!(
            "{path}: Invalid value: \"null\": Expected value: {expected}"
        ))
    };
    let pass = || vec![PASS.to_owned()];
    for (case, tree, expected) in [
        (
            "42",
            "{operation: UPDATE}",
            error("operation", "types are not comparable, string - string"),
        ),
        (
            "42",
            "{\"(operation == 'UPDATE')\": true}",
            fail("(operation == 'UPDATE'): Invalid value: false: Expected value: true"),
        ),
        ("43", "{namespaceLabels: {env: prod}}", pass()),
        (
            "43",
            "{namespaceLabels: {env: dev}}",
            fail("namespaceLabels.env: Invalid value: \"prod\": Expected value: \"dev\""),
        ),
        (
            "43",
            "{(namespaceLabels.env): prod}",
            null("(namespaceLabels.env)", "\"prod\""),
        ),
        (
            "44",
            "{admissionInfo: {clusterRoles: [view]}}",
            error("admissionInfo.clusterRoles", unknown),
        ),
        ("44", "{(admissionInfo.clusterRoles): [view]}", pass()),
        ("44", "{admissionInfo: {(roles): ['ns1:editor']}}", pass()),
        (
            "44",
            "{(admissionInfo.admissionUserInfo.username): jane}",
            pass(),
        ),
        ("44", "{(admissionInfo.userInfo): null}", pass()),
        (
            "3",
            "{admissionInfo: x}",
            error("admissionInfo", "types are not comparable, string - struct"),
        ),
        ("3", "{admissionInfo: {}}", pass()),
        (
            "3",
            "{'~.admissionInfo': {a: 1}}",
            vec![over_struct("~.admissionInfo", "a slice or a map")],
        ),
        (
            "3",
            "{admissionInfo: []}",
            vec![over_struct("admissionInfo", "a slice")],
        ),
        (
            "3",
            "{requestResource: {resource: pods}}",
            error("requestResource.resource", unknown),
        ),
        (
            "3",
            "{admissionOperation: true, (admissionOperation): true}",
            pass(),
        ),
        (
            "3",
            "{resourceKind: {group: '', version: v1, kind: Pod, subResource: ''}}",
            pass(),
        ),
        ("3", "{(resourceKind.kind): Pod}", pass()),
        ("3", "{oldObject: {}}", pass()),
        (
            "3",
            "{oldObject: {a: 1}}",
            fail(&format!("oldObject.a: {MISSING}")),
        ),
        ("3", "{(oldObject == null)->x: false}", pass()),
        ("3", "{nothing: 1}", fail(&format!("nothing: {MISSING}"))),
        ("3", "{}", pass()),
        ("7", "{(object.metadata)->m: {'($m.name)': web}}", pass()),
        ("7", "'(`{}`)'", pass()),
    ] {
        assert_eq!(
            outcomes(&pods(tree, ""), &request),
            expected,
            "case {case}: {tree}"
        );
    }
    assert!(
        over_pod("[]")[0]
            .starts_with("error: failed to apply assertion: <nil>: Invalid value: map[")
    );
    assert_eq!(
        over_pod("{admissionOperation: false, operation: {}}"),
        [PASS]
    );
}

/// A struct is shown as a map.
fn over_struct(path: &str, wanted: &str) -> String {
    let info = "map[string]interface {}{\"groups\":[]interface {}{\"dev\"}, \"uID\":\"\", \"username\":\"jane\"}";
    format!(
        "error: failed to apply assertion: {path}: Invalid value: map[string]interface {{}}{{\"admissionUserInfo\":{info}, \"clusterRoles\":[]interface {{}}{{\"view\"}}, \"dryRun\":false, \"roles\":[]interface {{}}{{\"ns1:editor\"}}}}: expected {wanted}"
    )
}

/// Section 2: DELETE is not special, and `message` is not used.
#[test]
fn deletion() {
    let request = Request::delete(Input::Json(POD.as_bytes()));
    let of = |tree: &str| outcomes(&pods(tree, ""), &request);
    assert_eq!(
        of("{object: {kind: Pod}}"),
        [format!("fail: object.kind: {MISSING}")]
    );
    assert_eq!(of("{object: {}, oldObject: {kind: Pod}}"), [PASS]);
}

/// Cases 39 to 41.
#[test]
fn autogen() {
    let object = |kind: &str, spec: &str| {
        let group = if kind == "Deployment" {
            "apps"
        } else {
            "batch"
        };
        format!(
            r#"{{"apiVersion": "{group}/v1", "kind": "{kind}", "metadata": {{"name": "web"}}, "spec": {spec}}}"#
        )
    };
    let template = r#"{"template": {"metadata": {"name": "t"}, "spec": {"hostNetwork": true}}}"#;
    let job = format!(r#"{{"jobTemplate": {{"spec": {template}}}}}"#);
    let over = |tree: &str, kind: &str, spec: &str| -> Vec<String> {
        create(&pods(tree, ""), &object(kind, spec))
            .into_iter()
            .map(|response| {
                format!(
                    "{} {}: {}",
                    response.rule, response.status, response.message
                )
            })
            .collect()
    };
    let network = "{object: {spec: {hostNetwork: false}}}";
    let body = "Invalid value: true: Expected value: false";
    assert_eq!(
        over(network, "Deployment", template),
        [format!(
            "autogen-r fail: object.spec.template.spec.hostNetwork: {body}"
        )],
        "case 39"
    );
    assert_eq!(
        over(network, "CronJob", &job),
        [format!(
            "autogen-cronjob-r fail: object.spec.jobTemplate.spec.template.spec.hostNetwork: {body}"
        )],
        "case 39"
    );
    assert_eq!(
        over("{object: {kind: Pod}}", "Deployment", template),
        [format!(
            "autogen-r fail: object.spec.template.kind: {MISSING}"
        )],
        "case 40"
    );
    assert_eq!(
        over("{(object.spec.hostNetwork): null}", "Deployment", template),
        ["autogen-r pass: Validation rule 'autogen-r' passed."],
        "case 41"
    );
}

/// Cases 45 and 46, and section 2, step 6a.
#[test]
fn exceptions_and_existing_violations() {
    let exception = "\n---\n{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: ex, namespace: ns1}, spec: {exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Pod]}}]}}}";
    let tree = "{object: {metadata: {name: x}}}";
    let excepted = pods(tree, "") + exception;
    let request = Request::create(Input::Json(POD.as_bytes()));
    assert_eq!(
        outcomes(&excepted, &request),
        ["skip: rule is skipped due to policy exceptionsns1/ex"],
        "case 45"
    );
    let enforced = |tree: &str| pods(tree, "").replace("message: unused", "failureAction: Enforce");
    let good = POD.replace("\"web\"", "\"x\"");
    let bad = "fail: object.metadata.name: Invalid value: \"web\": Expected value: \"x\"";
    let existing = "skip: skipping the rule evaluation as pre-existing violations are allowed";
    let not_evaluated = "skip: failed to validate old object";
    for (policy, old, expected) in [
        (enforced(tree), POD, existing),
        (enforced(tree), &*good, bad),
        (pods(tree, ""), POD, bad),
        (enforced(tree), &*POD.replace("\"web\"", "7"), not_evaluated),
    ] {
        let request = Request::update(Input::Json(old.as_bytes()), Input::Json(POD.as_bytes()));
        assert_eq!(outcomes(&policy, &request), [expected], "{policy} {old}");
    }
    // The old object is evaluated alone: `oldObject` is then null.
    let alone = enforced("{object: {metadata: {name: x}}, (oldObject == null): false}");
    let request = Request::update(Input::Json(good.as_bytes()), Input::Json(POD.as_bytes()));
    assert_eq!(outcomes(&alone, &request), [existing]);
}

/// Section 1, cases 1 to 3: Kyverno since 1.19.
#[test]
fn ignored() {
    let run = |validate: &str, check: bool| {
        let rule = format!("{{name: r, {THINGS}, validate: {validate}}}");
        let options = Options {
            check,
            ignore_assert: true,
            ..Options::default()
        };
        let compilation = compile_with(&policy(&[rule], ""), &options);
        let refusal = compilation
            .diagnostics
            .iter()
            .find(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| diagnostic.code);
        let Some(bytes) = compilation.bundle else {
            return Err(refusal.unwrap());
        };
        let engine = Engine::load(bytes).unwrap();
        let mut session = Session::new(&engine);
        let object = thing("1");
        let evaluation = session
            .evaluate(&Request::create(Input::Json(object.as_bytes())))
            .unwrap();
        let statuses = evaluation
            .responses()
            .map(|response| response.status().to_string());
        Ok(statuses.collect::<Vec<String>>())
    };
    let alone = "{assert: {object: {in: 2}}}";
    assert_eq!(run(alone, false), Ok(vec![]), "case 1");
    let beside = "{assert: {object: {in: 2}}, pattern: {in: 1}}";
    assert_eq!(run(beside, true), Ok(vec!["pass".into()]), "case 2");
    assert_eq!(run(alone, true), Err("assert-has-no-effect"), "case 3");
}

/// Section 7: how values are shown. Secrets keep theirs.
#[test]
fn shown_values() {
    check(&[
        (
            "7",
            "{a: x}",
            r#"{"a": "\"\n"}"#,
            &[r#"fail: a: Invalid value: "\"\n": Expected value: "x""#],
        ),
        (
            "7",
            "{a: 1}",
            r#"{"a": 1000000}"#,
            &["fail: a: Invalid value: 1000000: Expected value: 1"],
        ),
        (
            "7",
            "{a: 1.5}",
            r#"{"a": 1000000.5}"#,
            &["fail: a: Invalid value: 1.0000005e+06: Expected value: 1.5"],
        ),
        (
            "7",
            "{a: null}",
            r#"{"a": {"b": [null, true, "x"]}}"#,
            &[
                r#"fail: a: Invalid value: map[string]interface {}{"b":[]interface {}{interface {}(nil), true, "x"}}: Expected value: <nil>"#,
            ],
        ),
        (
            "7",
            "{(`1000000`): 1}",
            "{}",
            &["fail: (`1000000`): Invalid value: 1e+06: Expected value: 1"],
        ),
    ]);
    let float = Request {
        numbers: Numbers::Float,
        ..Request::create(Input::Json(
            br#"{"apiVersion": "v1", "kind": "Thing", "in": 1000000}"#,
        ))
    };
    assert_eq!(
        outcomes(&asserting("{object: {in: 1}}", ""), &float),
        ["fail: object.in: Invalid value: 1e+06: Expected value: 1"]
    );
    let secret = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "c2VjcmV0"}}"#;
    let of = |tree: &str| {
        let rule = format!(
            "{{name: r, match: {{any: [{{resources: {{kinds: [Secret]}}}}]}}, validate: {{assert: {tree}}}}}"
        );
        create(&policy(&[rule], ""), secret).remove(0).message
    };
    assert_eq!(
        of("{object: {data: {k: x}}}"),
        "object.data.k: Invalid value: ***: Expected value: ***"
    );
    assert_eq!(
        of("{object: {metadata: {name: x}}}"),
        "object.metadata.name: Invalid value: \"s\": Expected value: \"x\""
    );
    assert_eq!(
        of("{object: {data: []}}"),
        "failed to apply assertion: object.data: Invalid value: ***: expected a slice"
    );
}

/// Trees that can never be evaluated say where.
#[test]
fn malformed_trees() {
    let refusal = |tree: &str| {
        let policy = asserting(tree, "");
        let compilation = compile_with(&policy, &Options::default());
        let mut errors = compilation
            .diagnostics
            .into_iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error);
        let error = errors.next().unwrap_or_else(|| panic!("accepted: {tree}"));
        let span = error.location.span;
        let place = &policy[span.start as usize..span.end as usize];
        (error.code, error.message, place.to_owned())
    };
    for (tree, message, place) in [
        (
            "{object: {(a b): 1}}",
            "`a b` is no expression: SyntaxError: Unexpected token at the end of the expression: tUnquotedIdentifier",
            "(a b)",
        ),
        (
            "{object: {a: (lenght(b))}}",
            "`lenght(b)` is no expression: there is no function `lenght`",
            "(lenght(b))",
        ),
        (
            "{object: {a: (b)->c}}",
            "binding is not supported on the RHS",
            "(b)->c",
        ),
        (
            "{object: {a: ~i.(b)}}",
            "foreach is not supported on the RHS",
            "~i.(b)",
        ),
    ] {
        assert_eq!(
            refusal(tree),
            ("invalid-assertion", message.to_owned(), place.to_owned()),
            "{tree}"
        );
    }
    let deep = format!("{}1{}", "{a: ".repeat(300), "}".repeat(300));
    assert_eq!(refusal(&deep).1, "the tree is nested deeper than 256");
}
