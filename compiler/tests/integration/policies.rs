//! The worked cases of docs/spec/policies.md (matching and rule flow), each as a whole
//! policy.
//!
//! Omitted, since they are about other features: 27 (matchConditions), 29 to 31 and 33
//! (preconditions and conditions), the parts of 34 and 38 with conditions, variables,
//! podSecurity and CEL, 39, 40 and 42 (foreach and context), 63, 64 and 64c (variables,
//! CEL, names that are not text). 43 to 46b are in `exceptions.rs`.

use crate::common::{Response, create, evaluate, letters, policy, rule};
use kpvm::engine::{GroupVersionKind, Input, Operation, Request, UserInfo};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;

const DENY: &str = "{message: m, deny: {}}";
const PODS: &str = "match: {any: [{resources: {kinds: [Pod]}}]}";

/// A pod `web` in namespace `shop` with more fields of the metadata.
fn pod(metadata: &str) -> String {
    let comma = if metadata.is_empty() { "" } else { ", " };
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "web", "namespace": "shop"{comma}{metadata}}}}}"#
    )
}

/// An object of any kind with these metadata.
fn object(api_version: &str, kind: &str, metadata: &str) -> String {
    format!(r#"{{"apiVersion": "{api_version}", "kind": "{kind}", "metadata": {{{metadata}}}}}"#)
}

/// Whether a rule with this match (and exclude) block applies.
fn applies(matched: &str, request: &Request<'_>) -> bool {
    let policy = policy(&[rule("r", matched, DENY)], "");
    !evaluate(&policy, request).is_empty()
}

#[test]
fn kind_selectors() {
    // Case, selector, group, version, kind, subresource, whether it selects.
    type Row = (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        bool,
    );
    let rows: &[Row] = &[
        ("1", "*", "apps", "v1", "Deployment", "", true),
        ("1", "*", "", "v1", "Pod", "status", false),
        ("2", "v1/Pod", "", "v1", "Pod", "ephemeralcontainers", true),
        ("2", "v1/Pod", "", "v1", "Pod", "status", false),
        ("2", "*/*", "", "v1", "Pod", "exec", true),
        ("3", "*.*", "apps", "v1", "Deployment", "scale", true),
        ("3", "*/*", "apps", "v1", "Deployment", "scale", true),
        ("3", "*/*/*", "apps", "v1", "Deployment", "scale", true),
        ("3", "*/*/*/*/*", "apps", "v1", "Deployment", "", false),
        ("3", "*/*/*/*/*", "apps", "v1", "Deployment", "scale", false),
        ("4", "*/scale", "apps", "v1", "Deployment", "scale", true),
        ("4", "*/scale", "apps", "v1", "Deployment", "", false),
        ("4", "*/Scale", "autoscaling", "v1", "Scale", "", true),
        ("4", "*/Scale", "apps", "v1", "Deployment", "Scale", false),
        (
            "5",
            "batch/*/CronJob",
            "batch",
            "v1beta1",
            "CronJob",
            "",
            true,
        ),
        ("5", "batch/*/CronJob", "apps", "v1", "CronJob", "", false),
        ("5", "v1.demo/v1/Demo", "v1.demo", "v1", "Demo", "", true),
        ("5", "v1.demo/v1/Demo", "demo", "v1", "Demo", "", false),
        ("6", "v1beta10/Pod", "", "v1beta10", "Pod", "", true),
        ("6", "v1beta10/Pod", "", "v1", "Pod", "", false),
        ("6", "v1x/Pod", "", "v1x", "Pod", "", false),
        (
            "7",
            "apps/v1/Deployment.scale",
            "apps",
            "v1",
            "Deployment",
            "scale",
            true,
        ),
        (
            "7",
            "apps/v1/Deployment.scale",
            "apps",
            "v1",
            "Deployment",
            "",
            false,
        ),
        (
            "7",
            "Postgresdb",
            "example.com",
            "v1",
            "postgresdb",
            "",
            false,
        ),
        (
            "8",
            "apps/Deployment",
            "apps",
            "v1",
            "Deployment",
            "",
            false,
        ),
        (
            "9",
            "tekton.dev/*/TaskRun",
            "tekton.dev",
            "v1alpha1",
            "TaskRun",
            "",
            true,
        ),
    ];
    let object = pod("");
    for &(case, selector, group, version, kind, subresource, expected) in rows {
        let matched = format!("match: {{any: [{{resources: {{kinds: ['{selector}']}}}}]}}");
        let request = Request {
            kind: Some(GroupVersionKind {
                group,
                version,
                kind,
            }),
            subresource,
            ..Request::create(Input::Json(object.as_bytes()))
        };
        let context = format!("case {case}: {selector} and {group}/{version} {kind} {subresource}");
        assert_eq!(applies(&matched, &request), expected, "{context}");
    }
}

#[test]
fn wildcards() {
    let rows: &[(&str, &str, &str, bool)] = &[
        ("10", "my-?-x", "my--x", false),
        ("10", "my-?-x", "my-1-x", true),
        ("10", "abc????", "abcde", false),
        ("10", "abc????", "abcdefg", true),
        ("10", "mnop*?", "mnop", false),
        ("10", "mnop*?", "mnopq", true),
        ("11", "", "", true),
        ("11", "", "a", false),
        ("11", "*", "", true),
        ("11", "a.c", "abc", false),
        ("11", "é?", "éa", true),
    ];
    for &(case, pattern, name, expected) in rows {
        let matched =
            format!("match: {{any: [{{resources: {{kinds: [Thing], names: ['{pattern}']}}}}]}}");
        let object = object("example.com/v1", "Thing", &format!(r#""name": "{name}""#));
        let request = Request::create(Input::Json(object.as_bytes()));
        assert_eq!(
            applies(&matched, &request),
            expected,
            "case {case}: {pattern} and {name}"
        );
    }
}

/// Match and exclude in a background scan.
#[test]
fn filters() {
    let web = pod("");
    let any = |filter: &str| format!("match: {{any: [{{resources: {{{filter}}}}}]}}");
    let excluding = |exclude: &str| format!("{PODS}, exclude: {exclude}");
    let namespace = object("v1", "Namespace", r#""name": "prod-1""#);
    let role = object(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        r#""name": "c""#,
    );
    let annotated = |annotations: &str| pod(&format!(r#""annotations": {annotations}"#));
    let labelled = |labels: &str| pod(&format!(r#""labels": {labels}"#));
    let team = any("kinds: [Pod], annotations: {'team/*': '?*'}");
    let all = any("kinds: [Pod], selector: {matchLabels: {'*': '*'}}");
    let scale = any("kinds: [Pod], selector: {matchLabels: {test.io/scale: 'f??'}}");
    let rows: Vec<(&str, String, String, bool)> = vec![
        (
            "12",
            any("kinds: [Pod], names: ['web-*']"),
            object("v1", "Pod", r#""generateName": "web-""#),
            true,
        ),
        ("13", any("kinds: [Namespace], namespaces: ['prod-*']"), namespace.clone(), true),
        (
            "13",
            any("kinds: [Namespace], namespaces: ['prod-*'], namespaceSelector: {}"),
            namespace,
            false,
        ),
        ("14", any("kinds: [ClusterRole], namespaces: ['*']"), role.clone(), true),
        ("14", any("kinds: [ClusterRole], namespaces: ['?*']"), role, false),
        ("15", team.clone(), annotated("{}"), false),
        ("15", team.clone(), annotated(r#"{"team/a": ""}"#), false),
        ("15", team, annotated(r#"{"team/a": "x"}"#), true),
        ("16", all.clone(), web.clone(), false),
        ("16", all, labelled(r#"{"a": "b"}"#), true),
        ("16", scale, labelled(r#"{"test.io/scale": "foo"}"#), true),
        ("16", any("kinds: [Pod], selector: {matchLabels: {a/b/c: '*'}}"), labelled(r#"{"a/b/c": "d"}"#), false),
        (
            "17",
            any("kinds: [Pod], selector: {matchExpressions: [{key: tier, operator: NotIn, values: [db]}]}"),
            web.clone(),
            true,
        ),
        (
            "18, scan",
            "match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: alice}], clusterRoles: [admin]}]}".into(),
            web.clone(),
            true,
        ),
        ("19", excluding("{any: [{clusterRoles: [cluster-admin]}]}"), web.clone(), true),
        ("20", excluding("{all: [{resources: {kinds: [Pod]}}, {resources: {namespaces: [other]}}]}"), web.clone(), true),
        ("20", excluding("{any: [{resources: {kinds: [Pod]}}, {resources: {namespaces: [other]}}]}"), web.clone(), false),
        ("21", excluding("{resources: {names: []}}"), web.clone(), true),
        ("22", excluding("{any: [{subjects: []}]}"), web.clone(), false),
        ("24", "match: {any: [], resources: {kinds: [Pod]}}".into(), web, true),
    ];
    for (case, matched, object, expected) in rows {
        let request = Request::create(Input::Json(object.as_bytes()));
        assert_eq!(
            applies(&matched, &request),
            expected,
            "case {case}: {matched} and {object}"
        );
    }
}

#[test]
fn users_and_operations() {
    let web = pod("");
    let with_user = |matched: &str, username: &str| {
        let request = Request {
            user: Some(UserInfo {
                username,
                ..UserInfo::default()
            }),
            ..Request::create(Input::Json(web.as_bytes()))
        };
        applies(matched, &request)
    };
    let alice = "match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: alice}], clusterRoles: [admin]}]}";
    assert!(
        !with_user(alice, "alice"),
        "case 18: all parts of a filter must hold"
    );
    let account = "match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: ServiceAccount, name: '*', namespace: kube-system}]}]}";
    assert!(
        with_user(account, "system:serviceaccount:kube-system:x"),
        "case 25"
    );
    let lower =
        "match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: user, name: alice}]}]}";
    assert!(!with_user(lower, "alice"), "case 25");

    let deleted = "match: {any: [{resources: {kinds: [Pod], operations: [DELETE]}}]}";
    assert!(
        !applies(deleted, &Request::create(Input::Json(web.as_bytes()))),
        "case 23"
    );
    assert!(
        applies(deleted, &Request::delete(Input::Json(web.as_bytes()))),
        "case 23"
    );
}

#[test]
fn namespaced_policies() {
    let in_namespace = |namespace: &str, object: &str| {
        let policy = policy(
            &[rule(
                "r",
                "match: {any: [{resources: {kinds: [Pod, Namespace]}}]}",
                DENY,
            )],
            "",
        );
        let own = policy
            .replace("ClusterPolicy", "Policy")
            .replace("{name: p}", &format!("{{name: p{namespace}}}"));
        create(&own, object).len()
    };
    let pod_in = |namespace: &str| {
        object(
            "v1",
            "Pod",
            &format!(r#""name": "a", "namespace": "{namespace}""#),
        )
    };
    let namespace = object("v1", "Namespace", r#""name": "shop""#);
    assert_eq!(
        in_namespace(", namespace: shop", &pod_in("shop")),
        1,
        "case 26"
    );
    assert_eq!(
        in_namespace(", namespace: shop", &pod_in("dev")),
        0,
        "case 26"
    );
    assert_eq!(in_namespace(", namespace: shop", &namespace), 0, "case 26");
    assert_eq!(in_namespace("", &pod_in("default")), 1, "case 26");
    assert_eq!(in_namespace("", &pod_in("shop")), 0, "case 26");
}

/// Cases 28 and 41: rejected by the load check.
#[test]
fn refused_when_the_policy_is_loaded() {
    let nothing_left =
        "match: {resources: {kinds: [Pod]}}, exclude: {any: [{resources: {kinds: [Pod]}}]}";
    for (case, rule) in [
        ("28", rule("r", nothing_left, DENY)),
        ("41", rule("r", PODS, "{message: m}")),
    ] {
        let mut sources = Sources::new();
        sources.add("policy.yaml", policy(&[rule], ""));
        let compilation = compile(&sources, &Options::default());
        let found = &compilation.diagnostics;
        assert!(compilation.bundle.is_none(), "case {case}: {found:?}");
        let unsupported = found.iter().all(|one| one.code == "unsupported");
        assert!(!unsupported, "case {case}: {found:?}");
    }
}

/// Status and message of the one response.
fn one(found: &[Response]) -> (&str, &str) {
    assert_eq!(found.len(), 1, "{found:?}");
    (&found[0].status, &found[0].message)
}

#[test]
fn messages() {
    let containers = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"image": "a:latest"}]}}"#;
    let pattern = "pattern: {spec: {containers: [{image: '!*:latest'}]}}";
    let failed = "rule r failed at path /spec/containers/0/image/";
    let namespace = "{metadata: {namespace: '?*'}}";
    let skips = "{spec: {(x): 1}}";
    let fails = "{spec: {x: 1}}";
    let holds = "{metadata: {name: web}}";
    let rows: Vec<(&str, String, &str, String)> = vec![
        ("32", DENY.into(), "fail", "m".into()),
        ("34", "{deny: {}}".into(), "fail", "validation error: rule r failed".into()),
        ("34", "{message: '$(zz)', deny: {}}".into(), "fail", String::new()),
        ("35", format!("{{message: Use tags, {pattern}}}"), "fail", format!("validation error: Use tags. {failed}")),
        ("35", format!("{{message: Use tags., {pattern}}}"), "fail", format!("validation error: Use tags. {failed}")),
        ("35", format!("{{{pattern}}}"), "fail", format!("validation error: {failed}")),
        (
            "36",
            format!("{{message: A namespace is required., anyPattern: [{namespace}, {namespace}]}}"),
            "fail",
            "validation error: A namespace is required. rule r[0] failed at path /metadata/namespace/ \
             rule r[1] failed at path /metadata/namespace/"
                .into(),
        ),
        (
            "37",
            format!("{{anyPattern: [{skips}, {fails}]}}"),
            "fail",
            "validation error: rule r[1] failed at path /spec/x/".into(),
        ),
        (
            "37",
            format!("{{anyPattern: [{skips}, {holds}]}}"),
            "pass",
            "validation rule 'r' anyPattern[1] passed.".into(),
        ),
    ];
    for (case, validate, status, message) in rows {
        let found = create(&policy(&[rule("r", PODS, &validate)], ""), containers);
        assert_eq!(one(&found), (status, &*message), "case {case}: {validate}");
    }
    let validate = format!("{{anyPattern: [{skips}, {skips}]}}");
    let found = create(&policy(&[rule("r", PODS, &validate)], ""), containers);
    assert_eq!(one(&found).0, "skip", "case 37");
}

#[test]
fn deletion() {
    let web = pod("");
    let on_delete = |validate: &str| {
        let policy = policy(&[rule("r", PODS, validate)], "");
        letters(&evaluate(
            &policy,
            &Request::delete(Input::Json(web.as_bytes())),
        ))
    };
    assert_eq!(on_delete(DENY), ["r F"], "cases 32 and 38");
    assert!(
        on_delete("{pattern: {metadata: {name: web}}}").is_empty(),
        "case 38"
    );
}

#[test]
fn existing_violations() {
    let labelled = |team: &str| pod(&format!(r#""labels": {{"team": "{team}"}}"#));
    let (bad, good) = (labelled("x"), labelled("ok"));
    let run =
        |spec: &str, matched: &str, extra: &str, operation: Operation, old: &str, new: &str| {
            let validate = format!("{{{extra} pattern: {{metadata: {{labels: {{team: ok}}}}}}}}");
            let policy = policy(&[rule("r", matched, &validate)], spec);
            let request = Request {
                operation,
                user: Some(UserInfo {
                    username: "alice",
                    ..UserInfo::default()
                }),
                ..Request::update(Input::Json(old.as_bytes()), Input::Json(new.as_bytes()))
            };
            evaluate(&policy, &request)
        };
    const ENFORCE: &str = "validationFailureAction: Enforce,";
    let update = Operation::Update;
    let found = run(ENFORCE, PODS, "", update, &bad, &bad);
    let message = "skipping the rule evaluation as pre-existing violations are allowed";
    assert_eq!(one(&found), ("skip", message), "case 47");
    let status = |spec, matched, extra, operation, old: &str, new: &str| {
        one(&run(spec, matched, extra, operation, old, new))
            .0
            .to_owned()
    };
    let audit = "validationFailureAction: Audit,";
    assert_eq!(
        status(audit, PODS, "", update, &bad, &bad),
        "fail",
        "case 47"
    );
    let never = "allowExistingViolations: false,";
    assert_eq!(
        status(ENFORCE, PODS, never, update, &bad, &bad),
        "fail",
        "case 47"
    );
    let only_update = "match: {any: [{resources: {kinds: [Pod], operations: [UPDATE]}}]}";
    assert_eq!(
        status(ENFORCE, only_update, "", update, &bad, &bad),
        "fail",
        "case 47"
    );
    let subjects =
        "match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: alice}]}]}";
    assert_eq!(
        status(ENFORCE, subjects, "", update, &bad, &bad),
        "fail",
        "case 47"
    );
    assert_eq!(
        status(ENFORCE, PODS, "", update, &good, &bad),
        "fail",
        "case 48"
    );
    assert_eq!(
        status(ENFORCE, PODS, "", update, &bad, &good),
        "pass",
        "case 48"
    );
    for new in [&bad, &good] {
        let found = run(ENFORCE, PODS, "", Operation::Create, &bad, new);
        assert_eq!(
            one(&found),
            ("skip", "failed to validate old object"),
            "case 48b"
        );
    }
    let overridden = "validationFailureAction: Audit, validationFailureActionOverrides: [{action: Enforce, namespaces: [shop]}],";
    let found = run(overridden, PODS, "", update, &bad, &bad);
    assert_eq!(one(&found).0, "fail", "case 49");
    assert!(found[0].enforced, "case 49: blocked by the override");
}

#[test]
fn failure_actions() {
    let web = pod("");
    let enforced = |spec: &str, validate: &str| {
        let found = create(&policy(&[rule("r", PODS, validate)], spec), &web);
        assert_eq!(one(&found).0, "fail");
        found[0].enforced
    };
    let overrides = |entry: &str| {
        format!("validationFailureAction: Enforce, validationFailureActionOverrides: [{entry}],")
    };
    let shop = "validationFailureActionOverrides: [{action: Enforce, namespaces: [shop]}],";
    assert!(
        !enforced(shop, "{failureAction: Audit, message: m, deny: {}}"),
        "case 50"
    );
    assert!(enforced(shop, DENY), "case 50");
    let both = "{action: Audit, namespaces: [shop], namespaceSelector: {matchLabels: {a: b}}}";
    assert!(enforced(&overrides(both), DENY), "case 51");
    assert!(!enforced(&overrides("{action: Audit}"), DENY), "case 52");
    assert!(enforced(&overrides("{action: invalid}"), DENY), "case 52");
}

/// Case 53: a request is denied only if a failing rule is enforced.
#[test]
fn one_enforced_failure_is_enough() {
    let audit = rule("r1", PODS, "{failureAction: Audit, message: m, deny: {}}");
    let passes = |name| rule(name, PODS, "{failureAction: Enforce, pattern: {kind: '*'}}");
    let enforce = rule("r2", PODS, "{failureAction: Enforce, message: m, deny: {}}");
    let blocked = |rules: &[String]| {
        let found = create(&policy(rules, ""), &pod(""));
        found.iter().any(|one| one.status == "fail" && one.enforced)
    };
    assert!(!blocked(&[audit.clone(), passes("r2")]));
    assert!(blocked(&[passes("r1"), enforce.clone()]));
    assert!(blocked(&[enforce, passes("r1")]));
    let template = r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}"#;
    let generated = rule("r", PODS, "{failureAction: Enforce, message: m, deny: {}}");
    let found = create(&policy(&[generated], ""), template);
    assert!(
        found[0].enforced && found[0].rule == "autogen-r",
        "{found:?}"
    );
}

#[test]
fn autogen() {
    let controller = |kind: &str| {
        let api_version = match kind {
            "Pod" | "Service" => "v1",
            "Job" | "CronJob" => "batch/v1",
            "CloneSet" => "apps.kruise.io/v1alpha1",
            _ => "apps/v1",
        };
        object(api_version, kind, r#""name": "a", "namespace": "shop""#)
    };
    let run = |rules: &[String], annotation: Option<&str>, kind: &str| -> Vec<String> {
        let mut policy = policy(rules, "");
        if let Some(controllers) = annotation {
            let metadata = format!(
                "{{name: p, annotations: {{pod-policies.kyverno.io/autogen-controllers: '{controllers}'}}}}"
            );
            policy = policy.replace("{name: p}", &metadata);
        }
        let found = create(&policy, &controller(kind));
        found.into_iter().map(|one| one.rule).collect()
    };
    let of_kinds = |name: &str, kinds: &str| {
        rule(
            name,
            &format!("match: {{any: [{{resources: {{kinds: [{kinds}]}}}}]}}"),
            DENY,
        )
    };
    let pods = || of_kinds("r", "Pod");
    let none: [&str; 0] = [];
    assert_eq!(run(&[pods()], None, "Deployment"), ["autogen-r"], "case 54");
    assert_eq!(run(&[pods()], None, "Pod"), ["r"], "case 54");

    let selected = of_kinds(
        "r2",
        "Pod], selector: {matchLabels: {a: b}}, namespaces: ['*'",
    );
    assert_eq!(
        run(&[pods(), selected], None, "Deployment"),
        none,
        "case 55"
    );

    assert_eq!(
        run(&[of_kinds("r", "Pod, Service")], None, "Deployment"),
        none,
        "case 56"
    );
    let two = rule(
        "r",
        "match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Service]}}]}",
        DENY,
    );
    assert_eq!(
        run(std::slice::from_ref(&two), None, "Deployment"),
        ["autogen-r"],
        "case 56"
    );
    assert_eq!(
        run(&[two], None, "CronJob"),
        ["autogen-cronjob-r"],
        "case 56"
    );

    let spelled = of_kinds("v", "v1/Pod");
    assert_eq!(
        run(std::slice::from_ref(&spelled), None, "Deployment"),
        none,
        "case 57"
    );
    assert_eq!(
        run(&[spelled, pods()], None, "Deployment"),
        ["autogen-v", "autogen-r"],
        "case 57"
    );

    assert_eq!(
        run(&[of_kinds("r", "Deployment")], None, "Deployment"),
        ["r"],
        "case 58"
    );

    let spaced = Some("Deployment, Job");
    assert_eq!(
        run(&[pods()], spaced, "Deployment"),
        ["autogen-r"],
        "case 59"
    );
    assert_eq!(run(&[pods()], spaced, "Job"), none, "case 59");

    assert_eq!(
        run(&[pods()], Some("CloneSet"), "CloneSet"),
        ["autogen-r"],
        "case 60"
    );

    let long = "too-long-this-rule-name-will-be-truncated-to-63-characters";
    assert_eq!(
        run(&[of_kinds(long, "Pod")], None, "Deployment"),
        ["autogen-too-long-this-rule-name-will-be-truncated-to-63-charact"],
        "case 61"
    );
    assert_eq!(
        run(&[of_kinds(long, "Pod")], None, "CronJob"),
        ["autogen-cronjob-too-long-this-rule-name-will-be-truncated-to-63"],
        "case 61"
    );

    let excluding = |exclude: &str| rule("r", &format!("{PODS}, exclude: {{{exclude}}}"), DENY);
    let spaces = excluding("resources: {namespaces: [kube-system]}");
    assert_eq!(run(&[spaces], None, "Deployment"), ["autogen-r"], "case 62");
    let own_spaces = excluding("resources: {namespaces: [shop]}");
    assert_eq!(run(&[own_spaces], None, "Deployment"), none, "case 62");
    let same = excluding("any: [{resources: {kinds: [Pod]}}]");
    assert_eq!(run(&[same], None, "Deployment"), none, "case 62");
    let services = excluding("any: [{resources: {kinds: [Service]}}]");
    assert_eq!(run(&[services], None, "Deployment"), none, "case 62");

    assert_eq!(
        run(&[pods()], Some("CronJob"), "Deployment"),
        none,
        "case 64b"
    );
    assert_eq!(
        run(&[pods()], Some("CronJob"), "CronJob"),
        ["autogen-cronjob-r"],
        "case 64b"
    );
    let two = Some("CloneSet,Deployment");
    assert_eq!(run(&[pods()], two, "CloneSet"), ["autogen-r"], "case 64b");

    let named = of_kinds("autogen-x", "Deployment");
    let rules = [named, of_kinds("y", "Pod")];
    assert_eq!(run(&rules, None, "Deployment"), ["autogen-y"], "case 65");
}
