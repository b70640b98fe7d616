//! Attempts to get a violating object past a rule.

use kpvm::engine::{
    Bundle, Config, Decision, Engine, GroupVersionKind, Input, Request, Session, Status,
};
use kpvm_semantics::limits::Limits;

use super::oracle::{
    Expect, Seen, check, compile_policies, evaluate, policy_with, policy_with_pattern, run, thing,
};

const PASS: Expect = Expect::Results(&["r pass"]);
const FAIL: Expect = Expect::Results(&["r fail"]);

/// Row 67: outcomes are never derived from texts.
#[test]
fn texts_that_look_like_an_outcome() {
    for phrase in [
        "conditional anchor mismatch",
        "global anchor mismatch",
        "negation anchor matched in resource",
        "conditional anchor mismatch: global anchor mismatch: x",
    ] {
        let value = format!(r#"{{"x": "{phrase}", "l": [{{"image": "{phrase}"}}]}}"#);
        let key = format!(r#"{{"{phrase}": 1, "x": "{phrase}"}}"#);
        for spec in [value, key] {
            for validate in [
                "{pattern: {spec: {x: ok}}}".to_owned(),
                "{pattern: {spec: {=(l): [{image: ok}], x: ok}}}".to_owned(),
                "{anyPattern: [{spec: {x: ok}}, {spec: {x: fine}}]}".to_owned(),
                format!("{{message: '{phrase}', pattern: {{spec: {{x: ok}}}}}}"),
            ] {
                let object = thing(&spec);
                check(
                    &format!("row 67, {validate}, {spec}"),
                    object.len(),
                    FAIL,
                    || run(&policy_with(&validate), object.as_bytes()),
                );
            }
        }
    }
}

/// A decision refuses what cannot be evaluated, whatever the failure action: an error is never
/// a pass (docs/spec/policies.md §11.2).
#[test]
fn what_cannot_be_evaluated_is_refused() {
    let unresolved = "{deny: {conditions: {any: [{key: '{{ request.object.spec.none }}', operator: Equals, value: a}]}}}";
    let passing = "{pattern: {spec: {x: '?*'}}}";
    let failing = "{pattern: {spec: {x: other}}}";
    let runaway = format!(
        "{{deny: {{conditions: {{any: [{{key: \"{{{{ 'a'{} }}}}\", operator: Equals, value: a}}]}}}}}}",
        " | join('', [@, @])".repeat(40)
    );
    let little_fuel = Limits {
        rule_fuel: 2,
        ..Limits::DEFAULT
    };
    let (plenty, little) = (Limits::DEFAULT, little_fuel);
    // validate, limits, what refuses under Audit and under Enforce
    let rows: [(&str, Limits, [Option<Status>; 2]); 6] = [
        (passing, plenty, [None, None]),
        (failing, plenty, [None, Some(Status::Fail)]),
        (unresolved, plenty, [Some(Status::Error); 2]),
        (&runaway, plenty, [Some(Status::Error); 2]),
        (passing, little, [Some(Status::Error); 2]),
        (failing, little, [Some(Status::Error); 2]),
    ];
    let object = thing(r#"{"x": "y"}"#);
    for (validate, limits, expected) in rows {
        for (action, expected) in ["Audit", "Enforce"].into_iter().zip(expected) {
            let validate = validate.replacen('{', &format!("{{failureAction: {action}, "), 1);
            let bytes = compile_policies(&policy_with(&validate)).unwrap();
            let bundle = Bundle::load(bytes).unwrap();
            let engine = Engine::with_config(bundle, Config::new().with_limits(limits));
            let mut session = Session::new(&engine);
            let request = Request::create(Input::Json(object.as_bytes()));
            let refused = match session.decide(&request).unwrap() {
                Decision::Admitted => None,
                Decision::Refused(response) => Some(response.status()),
            };
            assert_eq!(refused, expected, "{validate}, {} steps", limits.rule_fuel);
        }
    }
}

/// Row 68: texts of an object are data.
#[test]
fn text_of_the_object_is_never_evaluated() {
    for text in [
        "{{ request.userInfo }}",
        "\\\\{{ a }}",
        "$(POD)",
        "$(./../y)",
        "a {{ b }} c",
    ] {
        let object = thing(&format!(r#"{{"x": "{text}", "y": "ok"}}"#));
        check(&format!("row 68, {text}"), object.len(), FAIL, || {
            run(&policy_with_pattern("{spec: {x: ok}}"), object.as_bytes())
        });
        check(&format!("row 68, {text}"), object.len(), PASS, || {
            run(&policy_with_pattern("{spec: {x: '?*'}}"), object.as_bytes())
        });
    }
}

const NO_PRIVILEGED: &str = "{spec: {\
    =(ephemeralContainers): [{=(securityContext): {=(privileged): false}}], \
    =(initContainers): [{=(securityContext): {=(privileged): false}}], \
    containers: [{=(securityContext): {=(privileged): false}}]}}";

/// Row 71: a single violation is found at any place.
#[test]
fn violations_in_one_place_only() {
    let policy = policy_with_pattern(NO_PRIVILEGED).replace("[Pod, Thing]", "[Pod]");
    let bad = r#"{"name": "b", "securityContext": {"privileged": true}}"#;
    let good = r#"{"name": "a"}"#;
    let many = format!("{}{bad}", format!("{good},").repeat(499));
    let specs = [
        format!(r#"{{"containers": [{good}], "ephemeralContainers": [{bad}]}}"#),
        format!(r#"{{"containers": [{good}], "initContainers": [{bad}]}}"#),
        format!(r#"{{"containers": [{many}]}}"#),
        format!(r#"{{"containers": [{good}], "initContainers": [{many}]}}"#),
    ];
    for spec in specs {
        let pod = |spec: &str| {
            format!(
                r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p"}}, "spec": {spec}}}"#
            )
        };
        let deployment = format!(
            r#"{{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {{"name": "p"}}, "spec": {{"template": {{"spec": {spec}}}}}}}"#
        );
        let job = format!(
            r#"{{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {{"name": "p"}}, "spec": {{"jobTemplate": {{"spec": {{"template": {{"spec": {spec}}}}}}}}}}}"#
        );
        let rows = [
            (pod(&spec), FAIL),
            (deployment, Expect::Results(&["autogen-r fail"])),
            (job, Expect::Results(&["autogen-cronjob-r fail"])),
            (pod(&spec.replace("true", "false")), PASS),
        ];
        for (object, expect) in rows {
            check("row 71", object.len(), expect, || {
                run(&policy, object.as_bytes())
            });
        }
    }
}

fn request_seen(policy: &str, request: &Request<'_>) -> Seen {
    match compile_policies(policy) {
        Ok(bytes) => evaluate(bytes, request),
        Err(message) => Seen::Refused(message),
    }
}

/// Row 72: subresources (docs/spec/policies.md, cases 1, 2 and 4).
#[test]
fn subresources() {
    let rows: [(&str, &str, Expect); 8] = [
        ("Pod", "ephemeralcontainers", FAIL),
        ("v1/Pod", "ephemeralcontainers", FAIL),
        ("Pod", "exec", Expect::Results(&[])),
        ("Pod/exec", "exec", FAIL),
        ("'*/*'", "exec", FAIL),
        ("'*/status'", "status", FAIL),
        ("Pod", "status", Expect::Results(&[])),
        ("Pod/exec", "unknown", Expect::Results(&[])),
    ];
    let object = br#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}"#;
    for (kinds, subresource, expect) in rows {
        let policy = policy_with("{message: m, deny: {}}")
            .replace("Pod, Thing", kinds)
            .replace("spec:\n", "spec:\n  background: false\n");
        let request = Request {
            subresource,
            kind: Some(GroupVersionKind {
                group: "",
                version: "v1",
                kind: "Pod",
            }),
            ..Request::create(Input::Json(object))
        };
        check(
            &format!("row 72, {kinds} {subresource}"),
            object.len(),
            expect,
            || request_seen(&policy, &request),
        );
    }
}

/// Rows 74 and 75: namespace and name come from the object, the kind from the request.
#[test]
fn names_and_namespaces() {
    // Filter, metadata, required outcome.
    let rows: [(&str, &str, Expect); 14] = [
        (
            "namespaces: [shop]",
            r#"{"name": "t", "namespace": "shop"}"#,
            FAIL,
        ),
        (
            "namespaces: [shop]",
            r#"{"name": "t", "namespace": ""}"#,
            Expect::Results(&[]),
        ),
        (
            "namespaces: [shop]",
            r#"{"name": "t"}"#,
            Expect::Results(&[]),
        ),
        // docs/spec/policies.md, case 14: `*` matches the empty namespace, `?*` does not.
        ("namespaces: ['*']", r#"{"name": "t"}"#, FAIL),
        (
            "namespaces: ['?*']",
            r#"{"name": "t"}"#,
            Expect::Results(&[]),
        ),
        // docs/spec/policies.md, case 12.
        ("names: ['web-*']", r#"{"generateName": "web-"}"#, FAIL),
        (
            "names: ['web-*']",
            r#"{"name": "web-1", "generateName": "db-"}"#,
            FAIL,
        ),
        (
            "names: ['web-*']",
            r#"{"name": "db-1", "generateName": "web-"}"#,
            Expect::Results(&[]),
        ),
        ("names: ['web-*']", r#"{}"#, Expect::Results(&[])),
        ("names: ['*']", r#"{}"#, FAIL),
        // Wildcards in the object's own name are plain text.
        (
            "names: ['web-1']",
            r#"{"name": "web-*"}"#,
            Expect::Results(&[]),
        ),
        ("names: ['web-1']", r#"{"name": "*"}"#, Expect::Results(&[])),
        (
            "names: ['web-1']",
            r#"{"name": "web-?"}"#,
            Expect::Results(&[]),
        ),
        (
            "namespaces: [shop]",
            r#"{"name": "t", "namespace": "*"}"#,
            Expect::Results(&[]),
        ),
    ];
    for (filter, metadata, expect) in rows {
        let policy = policy_with("{message: m, deny: {}}")
            .replace("kinds: [Pod, Thing]", &format!("kinds: [Thing], {filter}"));
        let object = format!(
            r#"{{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {metadata}}}"#
        );
        check(
            &format!("rows 74, 75, {filter} {metadata}"),
            object.len(),
            expect,
            || run(&policy, object.as_bytes()),
        );
    }
    // docs/spec/policies.md, case 13: a Namespace is matched by its own name.
    let policy = policy_with("{message: m, deny: {}}").replace(
        "kinds: [Pod, Thing]",
        "kinds: [Namespace], namespaces: ['prod-*']",
    );
    let object = br#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod-1"}}"#;
    check("row 74, Namespace", object.len(), FAIL, || {
        run(&policy, object)
    });
}
