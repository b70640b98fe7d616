//! Exceptions (row 99), which must never excuse more than they state.

use kpvm::engine::{Input, Request};
use proptest::prelude::*;

use super::oracle::{Expect, Seen, check_policy, compile_excepted, evaluate, policy_with, thing};

const FAIL: Expect = Expect::Results(&["r fail"]);
const SKIP: Expect = Expect::Results(&["r skip"]);
const MATCH: &str = "match: {any: [{resources: {kinds: [Thing]}}]}";
const COVERS: &str = "exceptions: [{policyName: p, ruleNames: [r]}]";

fn exception(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {{name: {name}, namespace: other}}\nspec: {{{spec}}}\n"
    )
}

fn run(policies: &str, exceptions: &str, object: &str) -> Seen {
    match compile_excepted(policies, exceptions) {
        Err(message) => Seen::Refused(message),
        Ok(bytes) => evaluate(bytes, &Request::create(Input::Json(object.as_bytes()))),
    }
}

#[test]
fn what_an_exception_does_not_say_it_does_not_excuse() {
    let policies = policy_with("{message: m, deny: {}}");
    let annotated = r#"{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "annotations": {"x": "{{ 'yes' }}", "y": "yes"}}}"#;
    let with_condition = |condition: &str| {
        let conditions = format!("conditions: {{all: [{condition}]}}");
        exception("e", &format!("{MATCH}, {COVERS}, {conditions}"))
    };
    let doublings = format!("'a'{}", " | join('', [@, @])".repeat(40));
    let regex = "regex_match('(a{500}){500}', 'a')";
    let many: String = (0..2_000)
        .map(|number| exception(&format!("e{number}"), &format!("{MATCH}, {COVERS}")))
        .collect();
    let stars = "*a".repeat(2_000);
    let rows: Vec<(&str, String, Expect)> = vec![
        (
            "99, stars and an empty match",
            exception(
                "e",
                "match: {}, exceptions: [{policyName: '*', ruleNames: ['*']}]",
            ),
            FAIL,
        ),
        (
            "99, stars",
            exception(
                "e",
                &format!("{MATCH}, exceptions: [{{policyName: '*', ruleNames: ['*']}}]"),
            ),
            FAIL,
        ),
        (
            "99, an empty filter",
            exception("e", &format!("match: {{any: [{{}}]}}, {COVERS}")),
            FAIL,
        ),
        (
            "99, a filter of nothing",
            exception(
                "e",
                &format!("match: {{any: [{{resources: {{}}}}]}}, {COVERS}"),
            ),
            FAIL,
        ),
        (
            "99, the rule alone",
            exception(
                "e",
                &format!("{MATCH}, exceptions: [{{policyName: '', ruleNames: ['*']}}]"),
            ),
            Expect::Refused("exception.yaml:"),
        ),
        (
            "a real one",
            exception("e", &format!("{MATCH}, {COVERS}")),
            SKIP,
        ),
        (
            "68, text of the object in a condition",
            with_condition(
                "{key: '{{ request.object.metadata.annotations.x }}', operator: Equals, value: 'yes'}",
            ),
            FAIL,
        ),
        (
            "68, the same without",
            with_condition(
                "{key: '{{ request.object.metadata.annotations.y }}', operator: Equals, value: 'yes'}",
            ),
            SKIP,
        ),
        (
            "a condition that cannot be evaluated",
            with_condition("{key: '{{ request.object.nothing }}', operator: Equals, value: ''}"),
            FAIL,
        ),
        (
            "a condition that fails",
            with_condition(&format!(
                "{{key: \"{{{{ {regex} }}}}\", operator: Equals, value: true}}"
            )),
            FAIL,
        ),
        (
            "a condition without an operator",
            with_condition("{key: a, value: a}"),
            FAIL,
        ),
        (
            "a condition that runs away",
            with_condition(&format!(
                "{{key: \"{{{{ {doublings} }}}}\", operator: NotEquals, value: ''}}"
            )),
            Expect::NeverPass,
        ),
        ("2,000 exceptions", many, SKIP),
        (
            "names of many stars",
            exception(
                "e",
                &format!(
                    "match: {{any: [{{resources: {{kinds: [Thing], names: ['{stars}b']}}}}]}}, exceptions: [{{policyName: p, ruleNames: ['{stars}b', r]}}]"
                ),
            ),
            FAIL,
        ),
        (
            "15, an unknown field",
            exception("e", &format!("{MATCH}, {COVERS}, mach: {{}}")),
            Expect::Refused("exception.yaml:5:"),
        ),
        (
            "no map",
            "---\n[]\n".into(),
            Expect::Refused("expected a PolicyException"),
        ),
        (
            "another kind",
            policies.clone(),
            Expect::Refused("expected a PolicyException"),
        ),
        (
            "no spec",
            "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e}\n".into(),
            Expect::Refused("expected a field `spec`"),
        ),
        (
            "types",
            exception("e", "match: [], exceptions: {}, conditions: 5"),
            Expect::Refused("exception.yaml:5:"),
        ),
    ];
    for (row, exceptions, expect) in rows {
        check_policy(row, policies.len() + exceptions.len(), expect, || {
            run(&policies, &exceptions, annotated)
        });
    }
}

/// An exception that crosses a limit is an error of the rule: it counts neither as applying
/// nor as not there, since in doubt nothing may pass (docs/spec/policies.md §9).
#[test]
fn an_exception_that_cannot_be_evaluated_is_an_error() {
    const ERROR: Expect = Expect::Results(&["r error"]);
    let runaway = format!(
        "{{key: \"{{{{ 'a'{} }}}}\", operator: NotEquals, value: ''}}",
        " | join('', [@, @])".repeat(40)
    );
    let condition = format!("conditions: {{all: [{runaway}]}}");
    let runaway = exception("e", &format!("{MATCH}, {COVERS}, {condition}"));
    let sound = exception("f", &format!("{MATCH}, {COVERS}"));
    let pods =
        format!("{MATCH}, {COVERS}, {condition}, podSecurity: [{{controlName: HostPath Volumes}}]");
    let rows = [
        (
            "a pattern that holds",
            "{pattern: {spec: {x: '?*'}}}",
            &runaway,
        ),
        (
            "one that does not",
            "{pattern: {spec: {x: '1?*'}}}",
            &runaway,
        ),
        (
            "a condition that does not deny",
            "{deny: {conditions: {any: [{key: a, operator: Equals, value: b}]}}}",
            &runaway,
        ),
        (
            "CEL that holds",
            "{cel: {expressions: [{expression: 'true'}]}}",
            &runaway,
        ),
        (
            "a profile",
            "{podSecurity: {level: baseline, version: latest}}",
            &exception("e", &pods),
        ),
        (
            "behind one that applies",
            "{pattern: {spec: {x: '?*'}}}",
            &format!("{sound}{runaway}"),
        ),
        (
            "before one that applies",
            "{pattern: {spec: {x: '?*'}}}",
            &format!("{runaway}{sound}"),
        ),
    ];
    let object = thing(r#"{"x": "y"}"#);
    for (row, validate, exceptions) in rows {
        let policies = policy_with(validate);
        check_policy(row, policies.len() + exceptions.len(), ERROR, || {
            run(&policies, exceptions, &object)
        });
    }
}

/// The list of exceptions in a message is bounded.
#[test]
fn a_message_has_its_limit() {
    let policies = policy_with("{message: m, deny: {}}");
    let exceptions: String = (0..500)
        .map(|number| {
            exception(
                &format!("exception-{number}"),
                &format!("{MATCH}, {COVERS}"),
            )
        })
        .collect();
    let Seen::Evaluated(results) = run(&policies, &exceptions, &thing("{}")) else {
        panic!("refused");
    };
    assert_eq!(results[0].1, "skip");
    assert_eq!(results[0].2.len(), 4096);
}

/// A filter of an exception over few values, so that many match.
fn filter() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec!["[Thing]", "[Pod]", "[]", "['*']"]);
    let names = prop::sample::select(vec!["[t]", "[x]", "['?']", "[]"]);
    let namespaces = prop::sample::select(vec!["[a]", "['*']", "[]"]);
    (kinds, names, namespaces).prop_map(|(kinds, names, namespaces)| {
        format!("{{resources: {{kinds: {kinds}, names: {names}, namespaces: {namespaces}}}}}")
    })
}

fn spec() -> impl Strategy<Value = String> {
    let form = prop::sample::select(vec!["any", "all"]);
    let rules = prop::sample::select(vec!["[r]", "['*']", "[x]", "[x, 'r*']"]);
    let condition = prop::sample::select(vec![
        "",
        ", conditions: {all: [{key: a, operator: Equals, value: a}]}",
        ", conditions: {any: [{key: a, operator: Equals, value: b}]}",
        ", conditions: {any: [{key: '{{ request.object.spec.no }}', operator: Equals, value: b}]}",
    ]);
    let filters = prop::collection::vec(filter(), 1..3);
    (form, filters, rules, condition).prop_map(|(form, filters, rules, condition)| {
        format!(
            "match: {{{form}: [{}]}}, exceptions: [{{policyName: p, ruleNames: {rules}}}]{condition}",
            filters.join(", ")
        )
    })
}

fn excuses(exceptions: &str) -> bool {
    let policies = policy_with("{message: m, deny: {}}");
    match run(&policies, exceptions, &thing("{}")) {
        Seen::Evaluated(results) => results[0].1 == "skip",
        Seen::Refused(reason) => panic!("{reason}: {exceptions}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    /// GHSA-gg4x-fgg2-h9w9: two exceptions excuse what one of them does, and no more.
    #[test]
    fn two_exceptions_excuse_what_one_of_them_does(left in spec(), right in spec()) {
        let (left, right) = (exception("a", &left), exception("b", &right));
        prop_assert_eq!(
            excuses(&format!("{left}{right}")),
            excuses(&left) || excuses(&right)
        );
    }
}
