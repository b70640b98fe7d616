//! The worked cases 59 to 73 of docs/spec/cel.md §8, in which Kyverno 1.19.1 does something
//! else than the public conformance suite. The recorded table of expressions
//! (`conformance/data/cel`) has many more.

use crate::common::{create, policy, rule};

const OBJECT: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {
    "ttl": "1.5s", "mem": "1.5Gi", "at": "2024-01-15T10:30:00+02:00", "lt": "2024-01-01t00:00:00z",
    "u": "https://e.com/?x=1#f", "l": [1, 2, 3], "containers": [{"name": "a"}, {"name": "b"}]}}"#;

/// `pass`, `fail`, or the error without what precedes it.
fn result(expression: &str) -> String {
    let quoted = serde_json::to_string(expression).unwrap();
    let policy = policy(
        &[rule(
            "r",
            "match: {any: [{resources: {kinds: ['*']}}]}",
            &format!("{{cel: {{expressions: [{{expression: {quoted}}}]}}}}"),
        )],
        "",
    );
    let responses = create(&policy, OBJECT);
    let response = &responses[0];
    let prefix = format!("expression '{expression}' resulted in error: ");
    match response.message.strip_prefix(&prefix) {
        Some(error) => error.to_owned(),
        None => match response.message.strip_prefix("compilation error: ") {
            Some(error) => error.lines().next().unwrap_or_default().to_owned(),
            None => response.status.clone(),
        },
    }
}

#[test]
fn the_worked_cases_hold() {
    let rows = [
        (
            61,
            "'%s'.format([object.spec.containers.map(c, c.name)]) == '[\"a\", \"b\"]'",
            "pass",
        ),
        (61, "'%s'.format([{'k': 'v'}]) == '{\"k\":\"v\"}'", "pass"),
        (62, "'%.1f'.format([12345.67]) == '12,345.7'", "pass"),
        (62, "'%.1e'.format([12345.67]) == '1.234567×10⁰⁴'", "pass"),
        (
            63,
            "duration(object.spec.ttl).getMilliseconds() == 1500",
            "pass",
        ),
        (
            64,
            "string(timestamp(object.spec.at)) == object.spec.at",
            "pass",
        ),
        (
            64,
            "string(timestamp(object.spec.at) + duration('1h')) == '2024-01-15T11:30:00+02:00'",
            "pass",
        ),
        (
            64,
            "timestamp(object.spec.lt) == timestamp(0)",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            65,
            "quantity('1') == object.metadata.name",
            "no such overload",
        ),
        (65, "object.metadata.name == quantity('1')", "fail"),
        (65, "quantity('1') != object.metadata.name", "pass"),
        (65, "ip('::1') == object.metadata.name", "no such overload"),
        (66, "quantity(object.spec.mem).isInteger()", "fail"),
        (
            66,
            "quantity(object.spec.mem).asInteger() == 1",
            "cannot convert value to integer",
        ),
        (66, "quantity('1.2').asApproximateFloat() == 1.2", "fail"),
        (67, "sign(quantity('1')) == 1", "pass"),
        (
            67,
            "quantity('1').sign() == 1",
            "compilation failed: ERROR: <input>:1:19: found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'",
        ),
        (68, "url(object.spec.u).getQuery()['x'] == ['1']", "pass"),
        (69, "'web'.indexOf('b', 30) == -1", "pass"),
        (69, "'web'.lastIndexOf('b', 30) == -1", "pass"),
        (70, "{'a': 1, 'a': 2}.size() == 1", "pass"),
        (70, "{1.5: 'a'}[1.5] == 'a'", "pass"),
        (
            71,
            "format.dns1123LabelPrefix().validate('-').hasValue()",
            "pass",
        ),
        (
            71,
            "format.dns1123SubdomainPrefix().validate('-').hasValue()",
            "pass",
        ),
        (
            72,
            "string(object.spec.l.first().value()) == '1'",
            "no such overload: string(int)",
        ),
        (
            72,
            "string(object.spec.l.reverse()[0]) == '3'",
            "no such overload: string(int)",
        ),
        (
            73,
            "object.spec[?{}].hasValue()",
            "program instantiation failed: invalid qualifier type: *types.baseMap",
        ),
        (73, "object.metadata.name[0] == 'w'", "no such key: 0"),
    ];
    for (case, expression, expected) in rows {
        assert_eq!(result(expression), expected, "case {case}: {expression}");
    }
}
