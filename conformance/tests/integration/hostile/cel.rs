//! CEL: expressions that nest too deeply or do not parse are refused with the policy;
//! expressions that exceed their budget fail the rule.

use super::oracle::{Expect, check_policy, policy_with, run, thing};

const FAILS: Expect = Expect::Results(&["r fail"]);

/// A rule with one CEL expression.
fn policy(expression: &str) -> String {
    let text = serde_json::to_string(expression).unwrap();
    policy_with(&format!(
        "{{cel: {{expressions: [{{expression: {text}}}]}}}}"
    ))
}

fn check_all(object: &str, rows: &[(&str, String, Expect)]) {
    for (row, expression, expect) in rows {
        let policy = policy(expression);
        let shown: String = expression.chars().take(60).collect();
        let row = format!("row {row}: {shown}");
        check_policy(&row, policy.len() + object.len(), *expect, || {
            run(&policy, object.as_bytes())
        });
    }
}

fn row<'r>(number: &'r str, expression: &str, expect: Expect) -> (&'r str, String, Expect) {
    (number, expression.to_owned(), expect)
}

fn around(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn nesting() {
    let too_deep = Expect::Refused("expression recursion limit exceeded: 100");
    let object = thing("{}");
    check_all(
        &object,
        &[
            row(
                "cel-1",
                &around("(", "true", ")", 100_000),
                Expect::NeverPass,
            ),
            row("cel-1", &around("(", "true", ")", 10_000), too_deep),
            row("cel-1", &around("[", "1", "]", 10_000), too_deep),
            row("cel-1", &around("{'a': ", "1", "}", 10_000), too_deep),
            row("cel-1", &format!("{}true", "!".repeat(10_000)), too_deep),
            row("cel-1", &format!("{}1 == 1", "- ".repeat(10_000)), too_deep),
            row(
                "cel-1",
                &format!("1{} == 1", " + 1".repeat(10_000)),
                too_deep,
            ),
            row(
                "cel-1",
                &format!("object{} == 1", ".a".repeat(10_000)),
                too_deep,
            ),
            row(
                "cel-1",
                &format!("object{} == 1", "[0]".repeat(10_000)),
                too_deep,
            ),
            row(
                "cel-1",
                &around("true ? true : ", "true", "", 5_000),
                too_deep,
            ),
            // A chain of one operator does not nest.
            row(
                "cel-1",
                &format!("true{}", " && true".repeat(5_000)),
                Expect::Results(&["r pass"]),
            ),
            // The greatest allowed depth.
            row(
                "cel-1",
                &around("(", "true", ")", 95),
                Expect::Results(&["r pass"]),
            ),
            row(
                "cel-1",
                &format!("{} == []", around("[", "", "]", 90)),
                FAILS,
            ),
            row(
                "cel-1",
                &around("[1].all(x, ", "true", ")", 45),
                Expect::Results(&["r pass"]),
            ),
            row(
                "cel-1",
                &around("[1].all(x, ", "true", ")", 100),
                Expect::NeverPass,
            ),
            row(
                "cel-1",
                &format!("{}== 1", around("object.?a.orValue(", "1", ")", 30)),
                Expect::Results(&["r pass"]),
            ),
        ],
    );
}

#[test]
fn what_runs_away() {
    let items = vec!["1"; 1_000].join(",");
    let object = thing(&format!(
        r#"{{"l": [{items}], "s": "{}", "m": {{{}}}}}"#,
        "a".repeat(100_000),
        (0..1_000)
            .map(|key| format!("\"k{key}\": {key}"))
            .collect::<Vec<_>>()
            .join(",")
    ));
    let list = "object.spec.l";
    let nested =
        |macro_: &str, times: usize| around(&format!("{list}.{macro_}(x, "), "true", ")", times);
    check_all(
        &object,
        &[
            row("cel-2", &nested("all", 3), FAILS),
            row("cel-2", &format!("{} || true", nested("all", 3)), FAILS),
            row(
                "cel-2",
                &format!("size({list}.map(x, {list}.map(y, {list}))) > 0"),
                FAILS,
            ),
            row(
                "cel-2",
                &format!("{list}.all(x, object.spec.s.matches('(a*)*b') == false)"),
                FAILS,
            ),
            row(
                "cel-2",
                &format!("{list}.all(x, object.spec.s.contains('b') == false)"),
                FAILS,
            ),
            row(
                "cel-2",
                &format!("{list}.map(x, object.spec.s + object.spec.s).size() == 1000"),
                FAILS,
            ),
            row(
                "cel-2",
                "object.spec.s.replace('a', object.spec.s).size() > 0",
                FAILS,
            ),
            row("cel-2", "lists.range(1000000000).size() > 0", FAILS),
            row(
                "cel-2",
                "object.spec.s.split('').size() == 100000",
                Expect::Either,
            ),
            row(
                "cel-2",
                &format!("{list}.all(x, {list}.distinct().size() == 1)"),
                Expect::Either,
            ),
            row(
                "cel-2",
                "object.spec.m.all(k, object.spec.m.all(l, object.spec.m.exists(n, false)))",
                FAILS,
            ),
            row(
                "cel-2",
                "'%.1000000f'.format([1.0]).size() > 0",
                Expect::Refused("precision 1000000"),
            ),
            row(
                "cel-2",
                "('%.1000000f' + '').format([1.0]).size() > 0",
                FAILS,
            ),
            row(
                "cel-2",
                &format!("{list}.sort().isSorted() && {list}.flatten(1000).size() == 1000"),
                Expect::Results(&["r pass"]),
            ),
        ],
    );
}

#[test]
fn literals_and_patterns() {
    let object = thing("{}");
    let refused = Expect::Refused("CEL: ");
    check_all(
        &object,
        &[
            row("cel-3", "9223372036854775808 == 1", refused),
            row("cel-3", "18446744073709551616u == 1u", refused),
            row("cel-3", &format!("{} == 1", "9".repeat(50_000)), refused),
            row("cel-3", &format!("{}.0 > 1.0", "9".repeat(50_000)), refused),
            row("cel-3", "'\\ud800' == ''", refused),
            row("cel-3", "'unfinished", refused),
            row(
                "cel-3",
                &format!("'{}' == ''", "x".repeat(200_000)),
                refused,
            ),
            row("cel-3", "'a'.matches('(')", refused),
            row(
                "cel-3",
                "'a'.matches('(' + ')')",
                Expect::Results(&["r pass"]),
            ),
            row("cel-3", "'a'.matches('(a{500}){500}' + '')", FAILS),
            row("cel-3", "'a'.matches('[' + '')", FAILS),
            row(
                "cel-3",
                &format!("'a' in [{}]", vec!["'b'"; 15_000].join(", ")),
                FAILS,
            ),
            row(
                "cel-3",
                &format!(
                    "{{{}}}.size() == 2000",
                    (0..2_000)
                        .map(|key| format!("{key}: 1"))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
                Expect::Results(&["r pass"]),
            ),
            row(
                "cel-3",
                "timestamp('99999-01-01T00:00:00Z') == timestamp(0)",
                refused,
            ),
            row(
                "cel-3",
                "timestamp(9223372036854775807) == timestamp(0)",
                refused,
            ),
            row(
                "cel-3",
                "timestamp(9223372036854775807 + size(object.spec)) == timestamp(0)",
                FAILS,
            ),
            row(
                "cel-3",
                "duration('9999999999h') == duration('1s')",
                refused,
            ),
            row("cel-3", "1 << 2 == 4", refused),
            row("cel-3", "\u{0} == 1", refused),
            row("cel-3", "", Expect::NeverPass),
        ],
    );
}

/// A ValidatingPolicy with these fields and this validation.
fn validating(fields: &str, expression: &str) -> String {
    let text = serde_json::to_string(expression).unwrap();
    format!(
        "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {{name: p}}\n\
         spec: {{matchConstraints: {{resourceRules: [{{apiGroups: ['*'], apiVersions: ['*'], \
         operations: ['*'], resources: ['*']}}]}}, {fields} validations: [{{expression: {text}}}]}}\n"
    )
}

/// Variables that each use the one before.
fn chain(length: usize, first: &str, rest: impl Fn(usize) -> String) -> String {
    let rest = (1..=length).map(|number| {
        let text = rest(number - 1);
        format!(", {{name: v{number}, expression: \"{text}\"}}")
    });
    let rest: String = rest.collect();
    format!("variables: [{{name: v0, expression: \"{first}\"}}{rest}],")
}

#[test]
fn validating_policies() {
    let object = thing("{}");
    let error = Expect::Results(&[" error"]);
    let doubled = chain(60, "'0123456789'", |before| {
        format!("variables.v{before} + variables.v{before}")
    });
    let counted = chain(3_000, "1", |before| format!("variables.v{before} + 1"));
    let circle =
        "variables: [{name: a, expression: variables.b}, {name: b, expression: variables.a}],";
    let held = "variables: [{name: a, expression: 'true'}],";
    let rows = [
        (
            "doubled",
            validating(&doubled, "variables.v60.size() > 0"),
            error,
        ),
        ("far", validating(&counted, "variables.v3000 > 0"), error),
        (
            "circle",
            validating(circle, "variables.a"),
            Expect::Refused("undefined field 'b'"),
        ),
        (
            "random",
            validating("", "random('((a{1000}){1000}){1000}') != ''"),
            error,
        ),
        (
            "random",
            validating("", "random('(((a*)*)*)*b') != ''"),
            Expect::Either,
        ),
        (
            "deep",
            validating("", &around("(", "true", ")", 10_000)),
            Expect::Refused("expression recursion limit exceeded"),
        ),
        (
            "conditions",
            validating(
                "matchConditions: [{name: a, expression: 'dyn(object) == 1 / 0'}],",
                "true",
            ),
            Expect::Results(&["evaluation error"]),
        ),
        (
            "held",
            validating(held, "variables.a"),
            Expect::Results(&[" pass"]),
        ),
    ];
    for (row, policy, expect) in rows {
        let row = format!("row {row}");
        check_policy(&row, policy.len() + object.len(), expect, || {
            run(&policy, object.as_bytes())
        });
    }
}
