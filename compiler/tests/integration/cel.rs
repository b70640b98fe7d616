//! The worked cases of docs/spec/cel.md for `validate.cel`, and the limits. Sections and
//! cases below are of that page.
//!
//! Omitted are the cases, and parts of cases, about ValidatingPolicies (see
//! `validating_policies.rs`) and ValidatingAdmissionPolicies.

use crate::common::{Response, create, evaluate, policy, rule};
use kpvm::cel::CelValue;
use kpvm::document::Numbers;
use kpvm::engine::{Bundle, ExpressionSession, Input, Operation, Request};
use kpvm_compiler::expression::compile_cel;
use kpvm_compiler::frontend::cel::Environment;

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "d"},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]}}"#;

/// A policy with a rule `r` for every kind, in YAML flow style.
fn cel(fields: &str) -> String {
    policy(
        &[rule(
            "r",
            "match: {any: [{resources: {kinds: ['*']}}]}",
            fields,
        )],
        "",
    )
}

/// A text as a YAML double-quoted scalar.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn expression(text: &str) -> String {
    cel(&format!(
        "{{cel: {{expressions: [{{expression: {}}}]}}}}",
        quoted(text)
    ))
}

fn only(responses: Vec<Response>) -> (String, String) {
    let [response] = <[Response; 1]>::try_from(responses).unwrap();
    (response.status, response.message)
}

/// Status and message of one expression for an object.
fn outcome(text: &str, object: &str) -> (String, String) {
    only(create(&expression(text), object))
}

/// Result of an expression: `pass`, `fail` (it does not hold), `error …` (the text after
/// the common prefix), `no: …` (the first compile error).
fn result(text: &str, object: &str) -> String {
    let (status, message) = outcome(text, object);
    let failed = format!("expression '{text}' resulted in error: ");
    if let Some(error) = message.strip_prefix(&failed) {
        return format!("error {error}");
    }
    if let Some(errors) = message.strip_prefix("compilation error: ") {
        let line = errors.lines().next().unwrap_or_default();
        let line = line.strip_prefix("compilation failed: ").unwrap_or(line);
        let problem = line
            .strip_prefix("ERROR: <input>:")
            .and_then(|rest| rest.split_once(": "))
            .map_or(line, |(_, problem)| problem);
        return format!("no: {problem}");
    }
    if status == "fail" {
        assert_eq!(message, format!("failed expression: {text}"));
    } else {
        assert_eq!(message, "Validation rule 'r' passed.");
    }
    status
}

fn check(object: &str, rows: &[(&str, &str, &str)]) {
    for (case, text, expected) in rows {
        assert_eq!(result(text, object), *expected, "case {case}: {text}");
    }
}

/// An object with these members of `spec`.
fn with_spec(spec: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Thing", "metadata": {{"name": "a", "namespace": "d"}}, "spec": {spec}}}"#
    )
}

#[test]
fn fields_presence_and_optionals() {
    check(
        POD,
        &[
            (
                "1",
                "object.metadata.labels.app == 'x'",
                "error no such key: labels",
            ),
            ("3", "has(object.metadata.labels)", "fail"),
            (
                "4",
                "has(object.metadata.labels.app)",
                "error no such key: labels",
            ),
            ("5", "has(object.metadata.name.x)", "fail"),
            (
                "7",
                "object.?metadata.?labels.?app.orValue('') == 'x'",
                "fail",
            ),
            (
                "8",
                "object.?spec.?hostNetwork.orValue(false)",
                "no: must evaluate to bool but got dyn",
            ),
            ("9", "!object.?spec.?hostNetwork.orValue(false)", "pass"),
            (
                "10",
                "object.spec.containers.orValue([]).all(c, true)",
                "pass",
            ),
            (
                "11",
                "object.?spec.orValue(object.missing) != null",
                "error no such key: missing",
            ),
            (
                "23",
                "object.spec.containers[5].name == ''",
                "error index out of bounds: 5",
            ),
            ("23", "object.spec.containers[?5].?name.hasValue()", "fail"),
            (
                "18",
                "object.?spec.?containers.all(c, true)",
                "no: expression of type 'optional_type(dyn)' cannot be range of a comprehension (must be list, map, or dynamic)",
            ),
            // Section 3.4.
            ("3.4", "object.?spec.?missing.?deeper.hasValue()", "fail"),
            ("3.4", "object.spec.?missing.?deeper.hasValue()", "fail"),
            (
                "3.4",
                "object.nope.?missing.hasValue()",
                "error no such key: nope",
            ),
            ("3.4", "object.metadata.name.?x.hasValue()", "fail"),
            ("3.4", "has(object.?spec.containers)", "pass"),
            (
                "3.4",
                "'name' in object.metadata && !('x' in object.metadata)",
                "pass",
            ),
            (
                "3.4",
                "'x' in object.metadata.name",
                "error no such overload",
            ),
        ],
    );
    let labels_null =
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": null}}"#;
    check(
        labels_null,
        &[
            ("6", "has(object.metadata.labels)", "pass"),
            ("6", "object.?metadata.?labels.orValue({}) == null", "pass"),
            (
                "6",
                "'a' in object.?metadata.?labels.orValue({})",
                "error no such overload",
            ),
        ],
    );
}

#[test]
fn errors_and_their_absorption() {
    check(
        POD,
        &[
            ("12", "false && object.nope", "fail"),
            ("12", "object.nope && false", "fail"),
            ("12", "object.nope && true", "error no such key: nope"),
            ("12", "object.nope || true", "pass"),
            ("3.6", "object.one && object.two", "error no such key: one"),
            (
                "3.6",
                "object.metadata.name && true",
                "error no such overload",
            ),
            (
                "13",
                "[1, 2].all(x, x == 2 || object.nope)",
                "error no such key: nope",
            ),
            (
                "14",
                "['a', 'b'].all(x, x == 'a' ? object.nope : false)",
                "fail",
            ),
            (
                "14",
                "['a', 'b'].exists(x, x == 'a' ? object.nope : true)",
                "pass",
            ),
            (
                "15",
                "[1, 2].exists_one(x, x == 2 || object.nope)",
                "error no such key: nope",
            ),
            ("3.6", "[1, 2, 2].exists_one(x, x == 2)", "fail"),
            (
                "3.6",
                "[1, 2].filter(x, object.nope).size() == 0",
                "error no such key: nope",
            ),
            ("3.6", "(object.nope ? true : true) || true", "pass"),
            (
                "3.6",
                "object.nope ? true : true",
                "error no such key: nope",
            ),
            ("3.6", "[].all(x, false) && ![].exists(x, true)", "pass"),
        ],
    );
}

#[test]
fn ranges_of_comprehensions() {
    check(
        &with_spec(r#"{"x": null}"#),
        &[(
            "16",
            "object.spec.x.all(c, true)",
            "error got 'types.Null', expected iterable type",
        )],
    );
    check(
        &with_spec(r#"{"x": {"b": 1, "a": 2}}"#),
        &[
            ("17", "object.spec.x.all(k, k != '')", "pass"),
            // In Go the order is random.
            ("3.6", "object.spec.x.map(k, k) == ['a', 'b']", "pass"),
            (
                "3.6",
                "object.spec.x.exists(k, v, k == 'a' && v == 2)",
                "pass",
            ),
        ],
    );
    check(
        POD,
        &[
            ("58", "{'a': 1}.transformList(k, v, v) == [1]", "pass"),
            ("58", "[10, 20].all(i, v, v >= i)", "pass"),
            (
                "3.6",
                "['a', 'b'].transformMap(i, v, v) == {0: 'a', 1: 'b'}",
                "pass",
            ),
            (
                "3.6",
                "['a', 'a'].transformMapEntry(i, v, {v: i}).size() == 1",
                "error insert failed: key a already exists",
            ),
        ],
    );
}

#[test]
fn numbers_and_equality() {
    check(
        &with_spec(r#"{"replicas": 1, "port": "80"}"#),
        &[
            ("19", "object.spec.replicas == 1.0", "pass"),
            (
                "19",
                "1 == 1.0",
                "no: found no matching overload for '_==_' applied to '(int, double)'",
            ),
            ("19", "1 < 1.5", "pass"),
            (
                "20",
                "object.spec.replicas + 1.0 == 2.0",
                "error no such overload",
            ),
            ("20", "object.spec.replicas + 1 == 2", "pass"),
            ("21", "object.spec.replicas > '3'", "error no such overload"),
            ("21", "object.spec.replicas == '3'", "fail"),
            ("22", "object.spec.port == 80", "fail"),
            (
                "3.5",
                "9223372036854775807 + 1 > 0",
                "error integer overflow",
            ),
            ("3.5", "1 / 0 == 0", "error division by zero"),
            ("3.5", "1 % 0 == 0", "error modulus by zero"),
            ("3.5", "-9223372036854775808 < 0", "pass"),
        ],
    );
    // On the command line every number of a resource is a double.
    let object = with_spec(r#"{"replicas": 1}"#);
    let in_cli = |text: &str| {
        let request = Request {
            numbers: Numbers::Float,
            ..Request::create(Input::Json(object.as_bytes()))
        };
        only(evaluate(&expression(text), &request)).0
    };
    assert_eq!(in_cli("object.spec.replicas + 1.0 == 2.0"), "pass");
    assert_eq!(in_cli("object.spec.replicas + 1 == 2"), "fail");
    assert_eq!(in_cli("object.spec.replicas in [1, 2]"), "pass");
}

#[test]
fn texts_and_libraries() {
    check(
        POD,
        &[
            ("24", "'nginx:1'.matches('ngin')", "pass"),
            ("24", "'a'.matches('[')", "no: invalid matches argument"),
            ("25", r"'a\\.b' == r'a\.b'", "pass"),
            ("26", "size('é') == 1 && 'abc'.substring(1) == 'bc'", "pass"),
            ("26", "'a,b'.split(',') == ['a', 'b']", "pass"),
            (
                "27",
                "'abc'.reverse() == ''",
                "no: found no matching overload for 'reverse' applied to 'string.()'",
            ),
            ("27", "[1, 2].reverse() == [2, 1]", "pass"),
            (
                "28",
                "cel.bind(x, 1, x == 1)",
                "no: undeclared reference to 'cel' (in container '')",
            ),
            ("54", "quantity('1Gi') == quantity('1024Mi')", "pass"),
            ("55", "isIP('127.0.0.01')", "fail"),
            (
                "55",
                "format.dns1123Label().validate('A').hasValue()",
                "pass",
            ),
            (
                "55",
                "!format.dns1123Label().validate('a').hasValue()",
                "pass",
            ),
            // Section 3.9.
            (
                "3.9",
                "quantity('1.5Gi').add(quantity('0.5Gi')).compareTo(quantity('2Gi')) == 0",
                "pass",
            ),
            ("3.9", "quantity('50k').asInteger() == 50000", "pass"),
            ("3.9", "quantity('9.5').isInteger()", "fail"),
            (
                "3.9",
                "url('https://u@example.com:80/p?q=1').getHostname() == 'example.com'",
                "pass",
            ),
            (
                "3.9",
                "url('https://example.com:80/p?q=1&q=2').getQuery() == {'q': ['1', '2']}",
                "pass",
            ),
            ("3.9", "isURL('../x') || isURL('')", "fail"),
            ("3.9", "cidr('10.0.0.0/8').containsIP('10.1.2.3')", "pass"),
            (
                "3.9",
                "semver('v1.2', true).isLessThan(semver('1.10.0'))",
                "pass",
            ),
            (
                "3.9",
                "[3, 1, 2].isSorted() || [1.5, 2.5].sum() != 4.0",
                "fail",
            ),
            ("3.9", "'a1b22'.findAll('[0-9]+') == ['1', '22']", "pass"),
            (
                "3.9",
                "[1, 2, 3].slice(1, 2) == [2] && [[1], [2]].flatten() == [1, 2]",
                "pass",
            ),
            (
                "3.9",
                "[{'n': 2}, {'n': 1}].sortBy(m, m.n)[0].n == 1",
                "pass",
            ),
            (
                "3.9",
                "sets.contains([1, 2], [2]) && !sets.intersects([1], [2])",
                "pass",
            ),
            ("3.8", "duration('1h30m') == duration('90m')", "pass"),
            (
                "3.2",
                "duration('7d') > duration('1h')",
                "no: invalid duration argument",
            ),
            (
                "3.8",
                "timestamp('2024-01-01T00:00:00Z').getDayOfWeek() == 1",
                "pass",
            ),
            (
                "3.8",
                "string(1000000.0) == '1e+06' && string(duration('1h')) == '3600s'",
                "pass",
            ),
        ],
    );
    assert_eq!(
        result(r"'\.' == ''", POD),
        "no: Syntax error: invalid escape sequence: write the backslash as `\\\\`, or the text as r'…'"
    );
}

/// Sections 3.9 and 6.7: further functions of Kyverno's own policies.
#[test]
fn libraries_of_kyverno() {
    let rows = [
        ("28", "cel.bind(x, 1, x == 1)"),
        (
            "56",
            "parseImageReference('nginx').registry() == 'index.docker.io'",
        ),
        (
            "56",
            "image('nginx').repository() == 'library/nginx' && image('nginx').tag() == 'latest'",
        ),
        (
            "6.7",
            "image('ghcr.io/a/b:1').identifier() == '1' && !image('ghcr.io/a/b').containsDigest()",
        ),
        ("6.7", "!isImage('UPPER::')"),
        (
            "57",
            "parseServiceAccount('system:serviceaccount:a:b').Name == 'b'",
        ),
        (
            "57",
            "parseServiceAccount('system:serviceaccount:a:b').Namespace == 'a'",
        ),
        ("57", "parseServiceAccount('jane').Name == ''"),
        (
            "6.7",
            "sha256('') == 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'",
        ),
        (
            "6.7",
            "math.round(1.256, 2) == 1.26 && math.round(1.5) == 2.0",
        ),
        ("6.7", "json.unmarshal('{\"a\": [1]}').a[0] == 1.0"),
        (
            "6.7",
            "json.marshal({'b': 'x', 'a': '<'}) == '{\"a\":\"\\\\u003c\",\"b\":\"x\"}'",
        ),
        ("6.7", "yaml.parse('a: 1').a == 1.0"),
        (
            "6.7",
            "time.toCron(timestamp('2024-01-02T03:04:05Z')) == '4 3 2 1 2'",
        ),
        (
            "6.7",
            "time.truncate(timestamp('2024-01-02T03:04:05Z'), duration('1h')) == timestamp('2024-01-02T03:00:00Z')",
        ),
        (
            "6.7",
            "listObjToMap([{'k': 'a'}], [{'v': 1}], 'k', 'v') == {'a': 1}",
        ),
        (
            "3.9",
            "base64.encode(b'hi') == 'aGk=' && regex.extract('a1', '[0-9]').value() == '1'",
        ),
    ];
    for (case, text) in rows {
        let environment = Environment::kyverno(false);
        let bytes = compile_cel(text, &environment).unwrap_or_else(|error| panic!("{error}"));
        let bundle = Bundle::load(bytes).unwrap();
        let mut session = ExpressionSession::new(&bundle);
        let answer = session.evaluate(0).map(|answer| answer.to_cel());
        assert_eq!(answer, Ok(CelValue::Bool(true)), "case {case}: {text}");
    }
}

/// Section 3.2.
#[test]
fn what_the_compiler_finds() {
    check(
        POD,
        &[
            (
                "3.2",
                "nope == 1",
                "no: undeclared reference to 'nope' (in container '')",
            ),
            (
                "29",
                "request.object.spec == object.spec",
                "no: undefined field 'object'",
            ),
            ("2.4", "request.uid == ''", "no: undefined field 'uid'"),
            (
                "3.2",
                "object.spec.containers",
                "no: must evaluate to bool but got dyn",
            ),
            (
                "3.2",
                "[1, 'a'] == []",
                "no: expected type 'int' but found 'string'",
            ),
            ("3.2", "package == 1", "no: reserved identifier: package"),
            ("3.2", "has(object)", "no: invalid argument to has() macro"),
            (
                "3.2",
                "[1].all(x.y, true)",
                "no: argument must be a simple name",
            ),
            (
                "3.2",
                "1 + 'a' == 2",
                "no: found no matching overload for '_+_' applied to '(int, string)'",
            ),
            (
                "3.2",
                "'a'.startsWith(1)",
                "no: found no matching overload for 'startsWith' applied to 'string.(int)'",
            ),
        ],
    );
    let (_, message) = outcome("object.a == 1 &&\n  nope", POD);
    assert_eq!(
        message,
        "compilation error: compilation failed: ERROR: <input>:2:3: undeclared reference to 'nope' (in container '')\n |   nope\n | ..^"
    );
}

#[test]
fn what_expressions_see() {
    check(
        POD,
        &[
            ("31", "oldObject == null", "pass"),
            (
                "2.4",
                "request.operation == 'CREATE' && request.name == 'a' && request.namespace == 'd'",
                "pass",
            ),
            (
                "2.4",
                "request.kind.kind == 'Pod' && request.kind.group == '' && request.resource.resource == ''",
                "pass",
            ),
            ("2.4", "has(request.userInfo.username)", "fail"),
            (
                "2.4",
                "request.userInfo.username == ''",
                "error no such key: username",
            ),
            (
                "2.4",
                "request.dryRun == false && request.options == null",
                "pass",
            ),
            (
                "32",
                "namespaceObject.metadata.labels['e'] == 'p'",
                "error no such key: labels",
            ),
            (
                "2.4",
                "namespaceObject.metadata.name == 'd' && namespaceObject.spec == {}",
                "no: found no matching overload for '_==_' applied to '(kubernetes.NamespaceSpec, map(dyn, dyn))'",
            ),
            (
                "2.4",
                "namespaceObject.metadata.UID == ''",
                "error no such key: UID",
            ),
        ],
    );
    let cluster_role = r#"{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}}"#;
    check(
        cluster_role,
        &[
            (
                "30",
                "request.namespace == ''",
                "error no such key: namespace",
            ),
            ("30", "!has(request.namespace)", "pass"),
        ],
    );
    let delete = Request {
        operation: Operation::Delete,
        object: None,
        old_object: Some(Input::Json(POD.as_bytes())),
        ..Request::create(Input::Json(POD.as_bytes()))
    };
    let policy =
        expression("object == null && oldObject.metadata.name == 'a' && request.name == 'a'");
    assert_eq!(only(evaluate(&policy, &delete)).0, "pass");
}

#[test]
fn preconditions() {
    let met = |conditions: &[&str]| {
        let conditions: Vec<String> = conditions
            .iter()
            .map(|text| format!("{{name: 'n', expression: {}}}", quoted(text)))
            .collect();
        let matched = format!(
            "match: {{any: [{{resources: {{kinds: ['*']}}}}]}}, celPreconditions: [{}]",
            conditions.join(", ")
        );
        let validate = "{cel: {expressions: [{expression: 'false', message: m}]}}";
        only(create(&policy(&[rule("r", &matched, validate)], ""), POD))
    };
    let skipped = ("skip".to_owned(), "cel preconditions not met".to_owned());
    let failed = |text: &str| ("fail".to_owned(), text.to_owned());
    assert_eq!(met(&["object.nope == 1", "false"]), skipped);
    assert_eq!(met(&["false"]), skipped);
    assert_eq!(met(&["true"]), failed("m"));
    assert_eq!(
        met(&["object.nope == 1", "true"]),
        failed("expression 'object.nope == 1' resulted in error: no such key: nope")
    );
    assert_eq!(
        met(&["object.a == 1", "object.b == 1", "object.a == 1"]),
        failed(
            "[expression 'object.a == 1' resulted in error: no such key: a, expression 'object.b == 1' resulted in error: no such key: b]"
        )
    );
    // Case 34: no namespace is known here.
    assert_eq!(
        met(&["namespaceObject.metadata.name == 'd'"]),
        failed(
            "expression 'namespaceObject.metadata.name == 'd'' resulted in error: no such key: metadata"
        )
    );
}

#[test]
fn messages() {
    let message = |fields: &str, rest: &str| {
        let fields = format!("{{cel: {{expressions: [{{expression: 'false', {fields}}}]}}{rest}}}");
        only(create(&cel(&fields), POD)).1
    };
    assert_eq!(message("message: '  no  '", ""), "no");
    assert_eq!(
        message(
            "message: m, messageExpression: \"'a' + object.metadata.name\"",
            ""
        ),
        "aa"
    );
    assert_eq!(
        message("message: m, messageExpression: \"'a\\\\nb'\"", ""),
        "m"
    );
    assert_eq!(message("message: m, messageExpression: \"' '\"", ""), "m");
    assert_eq!(message("message: m, messageExpression: '1'", ""), "m");
    assert_eq!(
        message("messageExpression: \"'x' + object.nope\"", ""),
        "failed expression: false"
    );
    assert_eq!(message("", ", message: fallback"), "fallback");
}

#[test]
fn the_first_failure_decides() {
    let outcome = |expressions: &[&str]| {
        let expressions: Vec<String> = expressions
            .iter()
            .enumerate()
            .map(|(index, text)| format!("{{expression: {}, message: m{index}}}", quoted(text)))
            .collect();
        let fields = format!("{{cel: {{expressions: [{}]}}}}", expressions.join(", "));
        only(create(&cel(&fields), POD)).1
    };
    assert_eq!(outcome(&["true", "false", "object.nope == 1"]), "m1");
    assert_eq!(
        outcome(&["object.nope == 1", "false"]),
        "expression 'object.nope == 1' resulted in error: no such key: nope"
    );
    assert_eq!(outcome(&["true"]), "Validation rule 'r' passed.");
}

#[test]
fn variables() {
    let outcome = |variables: &[(&str, &str)], text: &str| {
        let variables: Vec<String> = variables
            .iter()
            .map(|(name, text)| format!("{{name: '{name}', expression: {}}}", quoted(text)))
            .collect();
        let fields = format!(
            "{{cel: {{variables: [{}], expressions: [{{expression: {}}}]}}}}",
            variables.join(", "),
            quoted(text)
        );
        only(create(&cel(&fields), POD))
    };
    let broken = [("v", "object.nope")];
    assert_eq!(outcome(&broken, "true").0, "pass");
    assert_eq!(outcome(&broken, "variables.v == 1 || true").0, "pass");
    assert_eq!(
        outcome(&broken, "variables.v == 1").1,
        "expression 'variables.v == 1' resulted in error: composited variable \"v\" fails to evaluate: no such key: nope"
    );
    let (status, message) = outcome(&[("b", "variables.a"), ("a", "1")], "variables.b == 1");
    assert_eq!(status, "fail");
    let begin = "expression 'variables.b == 1' resulted in error: composited variable \"b\" fails to compile: ";
    assert!(message.starts_with(begin), "{message}");
    let optional = [
        ("c", "object.spec.containers.map(c, c.image)"),
        ("n", "size(variables.c)"),
    ];
    assert_eq!(
        outcome(&optional, "variables.n == 1 && variables.c[0] == 'nginx'").0,
        "pass"
    );
    assert_eq!(
        outcome(&[("o", "object.?nope")], "!variables.o.hasValue()").0,
        "pass"
    );
    assert_eq!(
        outcome(&[("b", "true")], "variables.c").1.lines().next(),
        Some("compilation error: compilation failed: ERROR: <input>:1:10: undefined field 'c'")
    );
    // The type of a variable is kept: this one is a boolean.
    assert_eq!(outcome(&[("b", "true")], "variables.b").0, "pass");
}

#[test]
fn autogen_rewrites_the_text() {
    let pod_rule = rule(
        "r",
        "match: {any: [{resources: {kinds: [Pod]}}]}",
        &format!(
            "{{cel: {{expressions: [{{expression: {}, message: 'object.spec'}}]}}}}",
            quoted(
                "object.metadata.namespace == 'x' || object.spec.containers.all(c, c.image != 'nginx')"
            )
        ),
    );
    let deployment = r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "x"},
        "spec": {"template": {"metadata": {"labels": {}}, "spec": {"containers": [{"image": "nginx"}]}}}}"#;
    let responses = create(&policy(&[pod_rule], ""), deployment);
    let [response] = responses.as_slice() else {
        panic!("{responses:?}");
    };
    // Case 50: the namespace is looked for in the template.
    assert_eq!(response.rule, "autogen-r");
    assert!(
        response
            .message
            .ends_with("resulted in error: no such key: namespace"),
        "{}",
        response.message
    );
}

#[test]
fn a_runaway_comprehension_ends_in_the_cost_limit() {
    let list = format!("[{}]", vec!["0"; 200].join(", "));
    let text = format!("{list}.all(a, {list}.all(b, {list}.all(c, a + b + c == 0)))");
    let (status, message) = outcome(&text, POD);
    assert_eq!(status, "fail");
    assert!(message.starts_with("expression '[0, 0,"), "{message}");
    // Nothing absorbs the error.
    let text = format!("true || {text}");
    assert_eq!(outcome(&text, POD).0, "pass");
    let text = format!("[1].all(y, {list}.all(a, {list}.all(b, {list}.all(c, true)))) || true");
    assert_eq!(outcome(&text, POD).0, "fail");
}

/// Operand of `&&` and `||`.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Truth {
    True,
    False,
    /// The error of a missing key with this letter.
    Error(char),
}

impl Truth {
    fn and(operands: &[Truth]) -> Truth {
        let is_error = |truth: &&Truth| matches!(truth, Truth::Error(_));
        match operands.contains(&Truth::False) {
            true => Truth::False,
            false => operands
                .iter()
                .find(is_error)
                .copied()
                .unwrap_or(Truth::True),
        }
    }

    fn not(self) -> Truth {
        match self {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            error => error,
        }
    }

    fn or(operands: &[Truth]) -> Truth {
        let inverted: Vec<Truth> = operands.iter().map(|truth| truth.not()).collect();
        Truth::and(&inverted).not()
    }

    fn shown(self) -> String {
        match self {
            Truth::True => "pass".to_owned(),
            Truth::False => "fail".to_owned(),
            Truth::Error(letter) => format!("error no such key: {letter}"),
        }
    }
}

/// Section 3.5: the deciding value takes precedence over errors, and of several errors the
/// first counts; in every order, nested, and with operands that share fields.
#[test]
fn every_order_of_operands() {
    let object = with_spec("{\"t\": true, \"f\": false}");
    let forms: [fn(char) -> (Truth, String); 3] = [
        |_| (Truth::True, "object.spec.t".to_owned()),
        |_| (Truth::False, "!has(object.spec.t)".to_owned()),
        |letter| (Truth::Error(letter), format!("object.spec.{letter} == 'x'")),
    ];
    for number in 0..27 {
        let [a, b, c] = [('x', number % 3), ('y', number / 3 % 3), ('z', number / 9)]
            .map(|(letter, form): (char, usize)| forms[form](letter));
        let (texts, values) = ([&a.1, &b.1, &c.1], [a.0, b.0, c.0]);
        let [x, y, z] = texts;
        let [i, j, k] = values;
        for (text, expected) in [
            (format!("{x} && {y} && {z}"), Truth::and(&values)),
            (format!("{x} || {y} || {z}"), Truth::or(&values)),
            (
                format!("({x} || {y}) && {z}"),
                Truth::and(&[Truth::or(&[i, j]), k]),
            ),
            (
                format!("{x} && ({y} || {z})"),
                Truth::and(&[i, Truth::or(&[j, k])]),
            ),
            (
                format!("!({x} && {y}) || {z}"),
                Truth::or(&[Truth::and(&[i, j]).not(), k]),
            ),
            (
                format!("({x} ? {y} : {z}) && {x}"),
                Truth::and(&[
                    match i {
                        Truth::True => j,
                        Truth::False => k,
                        error => error,
                    },
                    i,
                ]),
            ),
            (
                format!("[1, 2].all(i, {x} && {y} && i > 0) || {z}"),
                Truth::or(&[Truth::and(&[i, j]), k]),
            ),
            (
                format!("[1, 2].exists(i, {x} && ({y} || {z}))"),
                Truth::and(&[i, Truth::or(&[j, k])]),
            ),
        ] {
            assert_eq!(result(&text, &object), expected.shown(), "{text}");
        }
    }
}

/// Comparisons with a constant, presence tests followed by accesses, and absent optionals
/// have specialised code: it must give the same result as the expression whose parts the
/// compiler does not see.
#[test]
fn code_for_common_shapes_says_what_other_code_says() {
    let object = with_spec(
        r#"{"s": "abc", "e": "", "n": 3, "x": 3.5, "b": true, "z": null, "l": ["abc", 3], "m": {"abc": 1, "s": {"abc": 2}}, "o": {}}"#,
    );
    let values = [
        "object.spec.s",
        "object.spec.e",
        "object.spec.n",
        "object.spec.x",
        "object.spec.b",
        "object.spec.z",
        "object.spec.l",
        "object.spec.m",
        "object.spec.missing",
        "object.spec.l.abc",
        "object.spec.s.abc",
        "object.spec.m['abc']",
        "object.spec.l['abc']",
        "object.spec.m.s.abc",
        "dyn(optional.of('abc'))",
        "dyn({1: 'abc', 'abc': 2})",
        "object.spec.?s.orValue('abc')",
        "object.spec.?missing.orValue('abc')",
        "object.spec.?missing.?more.orValue(3)",
        "object.spec.?l.?abc.orValue('abc')",
        "object.spec.?m[?'abc'].orValue('abc')",
        "object.spec.?l[?'abc'].orValue('abc')",
        "object.spec.?missing[?'abc'].orValue(true)",
    ];
    let constants = [
        "'abc'",
        "''",
        "3",
        "3.5",
        "4u",
        "true",
        "null",
        "['abc', 3]",
    ];
    let mut compared = 0;
    for value in values {
        for constant in constants {
            // Nothing is known of a constant behind a macro variable.
            let hidden = |text: &str| format!("[dyn({constant})].all(k, {text})");
            let mut forms = Vec::new();
            for operator in ["==", "!=", "<", ">=", "in"] {
                forms.push(format!("{value} {operator} K"));
                forms.push(format!("K {operator} {value}"));
            }
            for function in ["startsWith", "endsWith", "contains"] {
                forms.push(format!("!{value}.{function}(K)"));
            }
            for form in forms {
                let seen = result(&form.replace('K', constant), &object);
                let unseen = result(&hidden(&form.replace('K', "k")), &object);
                if seen.starts_with("no: ") {
                    // Certain errors are reported at compile time.
                    continue;
                }
                assert_eq!(seen, unseen, "{form} with {constant}");
                compared += 1;
            }
        }
        for (direct, other) in [
            (
                format!("has({value}.abc)"),
                format!("[has({value}.abc)][0]"),
            ),
            (
                format!("has({value}.abc) && {value}.abc == 1"),
                format!("[has({value}.abc)][0] && [{value}][0].abc == [1][0]"),
            ),
            (
                format!("!has({value}.abc) || {value}.abc == 2"),
                format!("![has({value}.abc)][0] || [{value}][0].abc == [2][0]"),
            ),
            (
                format!("(has({value}.abc) ? {value}.abc : 7) == 1"),
                format!("[[has({value}.abc)][0] ? [{value}][0].abc : 7][0] == 1"),
            ),
            (
                format!("dyn({value}).?abc.orValue(1) == 1"),
                format!("[dyn({value}).?abc][0].orValue([1][0]) == [1][0]"),
            ),
            (
                format!("dyn({value}).?abc.?s.orValue([]).all(x, x == 1)"),
                format!("[dyn({value}).?abc.?s][0].orValue([[]][0]).all(x, x == [1][0])"),
            ),
            (
                format!("dyn({value}) && true"),
                format!("[true][0] && [dyn({value})][0]"),
            ),
        ] {
            if value.contains(".orValue") && direct.starts_with("has") {
                continue;
            }
            assert_eq!(
                result(&direct, &object),
                result(&other, &object),
                "{direct}"
            );
            compared += 1;
        }
    }
    assert!(compared > 1_500, "only {compared} compared");
}
