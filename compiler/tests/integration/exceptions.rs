//! PolicyExceptions: docs/spec/policies.md §9 and its worked cases 43 to 46b, as whole
//! policies. Each row cites the sentence it checks.

use crate::common::{compile, compile_with, create, evaluate, policy, rule};
use kpvm::engine::{Bundle, Engine, Input, Operation, Request, Session, UserInfo};
use kpvm_compiler::compile::{Options, add_exceptions};
use kpvm_compiler::source::{SourceId, Sources};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::yaml::{self, DuplicateKeys};

const DENY: &str = "{message: denied, deny: {}}";
const PODS: &str = "match: {any: [{resources: {kinds: [Pod]}}]}";
const SKIPPED: &str = "rule is skipped due to policy exceptions";

/// An exception `ns1/NAME` with this spec.
fn exception(name: &str, spec: &str) -> String {
    format!(
        "\n---\n{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: {name}, namespace: ns1}}, spec: {{{spec}}}}}"
    )
}

/// An exception `ns1/ex1` of rule `r` of policy `p` with this match block and further
/// fields.
fn of_r(matched: &str, more: &str) -> String {
    exception(
        "ex1",
        &format!("match: {matched}, exceptions: [{{policyName: p, ruleNames: [r]}}]{more}"),
    )
}

fn deny_rule() -> String {
    policy(&[rule("r", PODS, DENY)], "background: false,")
}

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata":
    {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"a/b": "c"}}}"#;

fn pod() -> Request<'static> {
    Request::create(Input::Json(POD.as_bytes()))
}

#[test]
fn names_of_policies_and_rules() {
    let named = |policy: &str, rules: &str| {
        let spec = format!(
            "match: {{any: [{{resources: {{kinds: [Pod, Deployment]}}}}]}}, exceptions: [{{policyName: {policy}, ruleNames: {rules}}}]"
        );
        exception("ex1", &spec)
    };
    let namespaced = deny_rule()
        .replace("ClusterPolicy", "Policy")
        .replace("{name: p}", "{name: p, namespace: shop}");
    let cluster = deny_rule();
    let deployment = r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}"#;
    // Case or sentence, policy, object, policyName, ruleNames, whether it is skipped.
    let rows = [
        ("case 43", &cluster, POD, "p", "[r]", true),
        ("case 43", &cluster, deployment, "p", "[r]", false),
        ("case 43", &cluster, deployment, "p", "[autogen-r]", true),
        ("case 43", &cluster, POD, "p", "['*r']", true),
        ("case 43", &cluster, deployment, "p", "['*r']", true),
        ("case 44", &namespaced, POD, "shop/p", "[r]", true),
        ("case 44", &namespaced, POD, "p", "[r]", false),
        ("policyName exactly", &cluster, POD, "shop/p", "[r]", false),
        ("policyName exactly", &cluster, POD, "'*'", "['*']", false),
        ("some ruleNames entry", &cluster, POD, "p", "[x, '?']", true),
        ("some ruleNames entry", &cluster, POD, "p", "[]", false),
    ];
    for (source, policy, object, policy_name, rule_names, skipped) in rows {
        let found = create(
            &format!("{policy}{}", named(policy_name, rule_names)),
            object,
        );
        let context = format!("{source}: {policy_name} {rule_names}");
        assert_eq!(found.len(), 1, "{context}");
        let expected = if skipped { "skip" } else { "fail" };
        assert_eq!(found[0].status, expected, "{context}");
        if skipped {
            assert_eq!(found[0].message, format!("{SKIPPED}ns1/ex1"), "{context}");
        }
    }
}

#[test]
fn matching() {
    // Sentence of §9, match block, whether the exception applies to the pod.
    let rows = [
        (
            "any: at least one filter",
            "{any: [{resources: {kinds: [Job]}}, {resources: {names: ['w*']}}]}",
            true,
        ),
        (
            "any: at least one filter",
            "{any: [{resources: {kinds: [Job]}}]}",
            false,
        ),
        (
            "all: every filter",
            "{all: [{resources: {kinds: [Pod]}}, {resources: {names: [x]}}]}",
            false,
        ),
        (
            "all: every filter",
            "{all: [{resources: {kinds: [Pod]}}, {resources: {names: [web]}}]}",
            true,
        ),
        ("neither: never", "{}", false),
        ("neither: never", "{any: [], all: []}", false),
        ("an empty filter never matches", "{any: [{}]}", false),
        (
            "an empty filter never matches",
            "{any: [{resources: {kinds: []}}]}",
            false,
        ),
        (
            "explicit empty lists count as empty",
            "{any: [{subjects: [], roles: []}]}",
            false,
        ),
        (
            "operations are ignored (case 45)",
            "{any: [{resources: {kinds: [Pod], operations: [DELETE]}}]}",
            true,
        ),
        (
            "operations make a filter no empty one",
            "{any: [{resources: {operations: [DELETE]}}]}",
            true,
        ),
        (
            "constraints as 5.3",
            "{any: [{resources: {kinds: [v1/Pod], namespaces: ['sh*'], selector: {matchLabels: {app: w*}}, annotations: {'a/*': '?'}}}]}",
            true,
        ),
        (
            "constraints as 5.3",
            "{any: [{resources: {kinds: [Pod], namespaces: [dev]}}]}",
            false,
        ),
        (
            "user info is not dropped",
            "{any: [{resources: {kinds: [Pod]}, roles: ['shop:x']}]}",
            false,
        ),
        (
            "user info is not dropped",
            "{any: [{resources: {kinds: [Pod]}, clusterRoles: [x]}]}",
            false,
        ),
        (
            "user info is not dropped",
            "{any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: alice}]}]}",
            false,
        ),
    ];
    for (sentence, matched, holds) in rows {
        let found = create(&format!("{}{}", deny_rule(), of_r(matched, "")), POD);
        let expected = if holds { "skip" } else { "fail" };
        assert_eq!(found[0].status, expected, "{sentence}: {matched}");
    }
}

#[test]
fn users_and_namespaces() {
    let by_user = of_r(
        "{any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: alice}], clusterRoles: [admin]}]}",
        ", background: false",
    );
    let policies = format!("{}{by_user}", deny_rule());
    let status = |username: &str, roles: &[&str]| {
        let user = UserInfo {
            username,
            cluster_roles: roles,
            ..UserInfo::default()
        };
        let request = Request {
            user: Some(user),
            ..pod()
        };
        evaluate(&policies, &request)[0].status.clone()
    };
    assert_eq!(status("alice", &["admin"]), "skip");
    assert_eq!(status("alice", &[]), "fail");
    assert_eq!(status("bob", &["admin"]), "fail");

    // `namespaceSelector` is ignored for a Namespace, where a policy's would not match.
    let selector =
        "{any: [{resources: {kinds: [Pod, Namespace], namespaceSelector: {matchLabels: {a: b}}}}]}";
    let kinds = PODS.replace("Pod", "Pod, Namespace");
    let policies = format!(
        "{}{}",
        policy(&[rule("r", &kinds, DENY)], ""),
        of_r(selector, "")
    );
    let namespace = r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}"#;
    assert_eq!(create(&policies, namespace)[0].status, "skip");
    assert_eq!(create(&policies, POD)[0].status, "fail");
    let labelled = Request {
        namespace_labels: &[("a", "b")],
        ..pod()
    };
    assert_eq!(evaluate(&policies, &labelled)[0].status, "skip");
}

#[test]
fn conditions() {
    let condition =
        |key: &str, value: &str| format!("{{key: \"{key}\", operator: Equals, value: {value}}}");
    let (yes, no) = (condition("a", "a"), condition("a", "b"));
    let unresolvable = condition("{{ request.object.spec.x }}", "1");
    let of_the_object = condition("{{ request.object.metadata.name }}", "web");
    let of_the_context = condition("{{ who }}", "web");
    // Case or sentence, conditions, whether the exception applies.
    let rows = [
        ("case 46b", "{any: []}".to_owned(), true),
        ("case 46b", "{}".to_owned(), true),
        ("case 46b", format!("{{all: [{no}]}}"), false),
        ("case 46b", format!("{{all: [{unresolvable}]}}"), false),
        ("any", format!("{{any: [{no}, {yes}]}}"), true),
        ("any", format!("{{any: [{no}, {no}]}}"), false),
        (
            "all decides alone when false",
            format!("{{any: [{yes}], all: [{no}]}}"),
            false,
        ),
        (
            "an empty any counts as absent",
            format!("{{any: [], all: [{yes}]}}"),
            true,
        ),
        (
            "an error does not apply",
            format!("{{any: [{unresolvable}, {yes}]}}"),
            false,
        ),
        (
            "a true one before an error",
            format!("{{any: [{yes}, {unresolvable}]}}"),
            true,
        ),
        ("variables", format!("{{all: [{of_the_object}]}}"), true),
        (
            "the rule's context",
            format!("{{all: [{of_the_context}]}}"),
            true,
        ),
    ];
    let context = "context: [{name: who, variable: {jmesPath: request.object.metadata.name}}], ";
    let policy = deny_rule().replace("validate:", &format!("{context}validate:"));
    for (source, conditions, holds) in rows {
        let exception = of_r(
            "{any: [{resources: {kinds: [Pod]}}]}",
            &format!(", conditions: {conditions}"),
        );
        let found = create(&format!("{policy}{exception}"), POD);
        let expected = if holds { "skip" } else { "fail" };
        assert_eq!(found[0].status, expected, "{source}: {conditions}");
    }
}

#[test]
fn place_in_the_flow() {
    let exception = of_r("{any: [{resources: {kinds: [Pod]}}]}", "");
    let with = |rule: &str| format!("{}{exception}", policy(&[rule.to_owned()], ""));
    let skipped = [("skip".to_owned(), format!("{SKIPPED}ns1/ex1"))];
    let run = |policies: &str, request: &Request<'_>| -> Vec<(String, String)> {
        let found = evaluate(policies, request);
        found
            .into_iter()
            .map(|response| (response.status, response.message))
            .collect()
    };
    // Whatever the body's result would be, and before its variables are evaluated.
    for validate in [
        DENY,
        "{pattern: {metadata: {name: web}}}",
        "{pattern: {metadata: {name: '{{ request.object.nothing }}'}}}",
        "{anyPattern: [{metadata: {name: x}}]}",
        "{foreach: [{list: '`[1]`', deny: {}}]}",
        "{foreach: [{list: 'request.object.nothing', deny: {}}]}",
    ] {
        let policies = with(&rule("r", PODS, validate));
        assert_eq!(run(&policies, &pod()), skipped, "{validate}");
    }
    // Sentence "exceptions apply on DELETE", although a pattern has no response there.
    let delete = Request {
        operation: Operation::Delete,
        object: None,
        old_object: Some(Input::Json(POD.as_bytes())),
        ..pod()
    };
    let pattern = with(&rule("r", PODS, "{pattern: {metadata: {name: x}}}"));
    assert_eq!(run(&pattern, &delete), skipped);
    // Case 46: preconditions come first. A rule that does not match has no response.
    let preconditions = DENY.to_owned()
        + ", preconditions: {all: [{key: a, operator: Equals, value: b, message: nope}]}";
    let found = run(&with(&rule("r", PODS, &preconditions)), &pod());
    let message = "preconditions not met; nope".to_owned();
    assert_eq!(found, [("skip".to_owned(), message)]);
    let jobs = PODS.replace("Pod", "Job");
    assert_eq!(run(&with(&rule("r", &jobs, DENY)), &pod()), []);
}

#[test]
fn all_that_hold_are_named_in_order() {
    let any_pod = "match: {any: [{resources: {kinds: [Pod]}}]}";
    let spec = |matched: &str| {
        format!(
            "{matched}, exceptions: [{{policyName: p, ruleNames: [r, '*']}}, {{policyName: p, ruleNames: ['*']}}]"
        )
    };
    let without_namespace = exception("ex3", &spec(any_pod)).replace(", namespace: ns1", "");
    let policies = [
        deny_rule(),
        exception("ex2", &spec(any_pod)),
        exception(
            "other",
            &spec("match: {any: [{resources: {kinds: [Job]}}]}"),
        ),
        exception("ex1", &spec(any_pod)),
        without_namespace,
    ]
    .concat();
    let bytes = compile(&policies).unwrap();
    let engine = Engine::load(bytes).unwrap();
    let mut session = Session::new(&engine);
    let evaluation = session.evaluate(&pod()).unwrap();
    let response = evaluation.responses().next().unwrap();
    assert_eq!(
        response.message(),
        format!("{SKIPPED}ns1/ex2, ns1/ex1, ex3")
    );
    let exceptions: Vec<_> = response.exceptions().collect();
    assert_eq!(exceptions, [("ns1", "ex2"), ("ns1", "ex1"), ("", "ex3")]);
    assert!(session.decide(&pod()).unwrap().is_admitted());
}

#[test]
fn exceptions_join_a_bundle_later() {
    let context = "context: [{name: who, variable: {value: web}}], ";
    let policies = policy(
        &[
            rule("r", PODS, DENY).replace("validate:", &format!("{context}validate:")),
            rule("s", PODS, DENY),
        ],
        "",
    );
    let first = of_r("{any: [{resources: {kinds: [Pod]}}]}", "");
    let condition =
        "{key: '{{ who }}', operator: Equals, value: '{{ request.object.metadata.name }}'}";
    let second = of_r(
        "{any: [{resources: {kinds: [Pod], selector: {matchLabels: {app: web}}}}]}",
        &format!(", conditions: {{all: [{condition}]}}"),
    )
    .replace("ex1", "ex2");
    let later = |bytes: Vec<u8>, exception: &str| {
        let bundle = Bundle::load(bytes).unwrap();
        let mut sources = Sources::new();
        sources.add("later.yaml", exception);
        let reading = yaml::Options {
            duplicate_keys: DuplicateKeys::Refuse,
            limits: &Limits::DEFAULT,
        };
        let documents: Vec<_> = yaml::read_all(exception, reading)
            .into_iter()
            .map(|tree| (SourceId(0), tree.unwrap()))
            .filter(|(_, tree)| !tree.is_null())
            .collect();
        let added = add_exceptions(&bundle, &documents, &sources, &Options::default(), vec![]);
        assert_eq!(added.diagnostics, []);
        assert_eq!((added.policies, added.rules, added.exceptions), (1, 6, 1));
        added.bundle.unwrap()
    };
    let run = |bytes: Vec<u8>| {
        let engine = Engine::load(bytes).unwrap();
        let mut session = Session::new(&engine);
        let evaluation = session.evaluate(&pod()).unwrap();
        let shown = |response: kpvm::engine::RuleResponse<'_>| {
            format!(
                "{} {} {}",
                response.rule(),
                response.status(),
                response.message()
            )
        };
        evaluation.responses().map(shown).collect::<Vec<_>>()
    };
    let together = compile(&format!("{policies}{first}{second}")).unwrap();
    let expected = [
        format!("r skip {SKIPPED}ns1/ex1, ns1/ex2"),
        "s fail denied".to_owned(),
    ];
    assert_eq!(run(together), expected);
    let alone = compile(&policies).unwrap();
    let joined = later(later(alone, &first), &second);
    assert_eq!(run(joined), expected);
    let behind = later(compile(&format!("{policies}{first}")).unwrap(), &second);
    assert_eq!(run(behind), expected);
}

#[test]
fn findings() {
    let pods = "match: {any: [{resources: {kinds: [Pod]}}]}";
    let covers = "exceptions: [{policyName: p, ruleNames: [r]}]";
    let namespaced = "\n---\n{apiVersion: kyverno.io/v1, kind: Policy, metadata: {name: q, namespace: shop}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {kind: Pod}}}]}}";
    // Source, spec of the exception, code, message, hint.
    let rows = [
        (
            "section 9",
            format!(
                "match: {{any: [{{resources: {{kinds: [Pod]}}, clusterRoles: [a]}}]}}, {covers}"
            ),
            "user-info-in-background",
            "`clusterRoles` cannot be known in a background scan",
            "set spec.background to false, or do without it",
        ),
        (
            "section 9",
            format!(
                "match: {{any: [{{resources: {{kinds: [Pod]}}}}], all: [{{resources: {{kinds: [Pod]}}}}]}}, {covers}"
            ),
            "any-and-all",
            "`any` and `all` cannot be used together",
            "keep one of them",
        ),
        (
            "section 9",
            format!("{pods}, exceptions: [{{ruleNames: [r]}}]"),
            "exception-policy",
            "an exception needs the name of the policy",
            "add `policyName`",
        ),
        (
            "section 9: no direct form",
            format!("match: {{resources: {{kinds: [Pod]}}}}, {covers}"),
            "unknown-field",
            "unknown field `resources` in `spec.match`",
            "known fields here: any, all",
        ),
        (
            "section 9: object form only",
            format!("{pods}, {covers}, conditions: [{{key: a, operator: Equals, value: a}}]"),
            "wrong-type",
            "expected a map at `spec.conditions`, found a list",
            "write a map here",
        ),
        (
            "unknown fields are refused",
            format!("{pods}, {covers}, policies: []"),
            "unknown-field",
            "unknown field `policies` in `spec`",
            "known fields here: background, match, conditions, exceptions, podSecurity",
        ),
        (
            "podSecurity entries as 2.2",
            format!("{pods}, {covers}, podSecurity: [{{controlName: Capabilities}}]"),
            "pod-security-images",
            "\"Capabilities\" is a control of containers, so images must be given",
            "add `images`",
        ),
        (
            "a policy that is not there",
            format!("{pods}, exceptions: [{{policyName: pp, ruleNames: [r]}}]"),
            "exception-unknown-policy",
            "there is no policy `pp` here",
            "did you mean `p`?",
        ),
        (
            "a policy that is not there",
            format!("{pods}, exceptions: [{{policyName: q, ruleNames: [r]}}]"),
            "exception-unknown-policy",
            "there is no policy `q` here",
            "write `shop/q`: a Policy is named with its namespace, a ClusterPolicy without one",
        ),
        (
            "a policy that is not there",
            format!("{pods}, exceptions: [{{policyName: '*', ruleNames: [r]}}]"),
            "exception-unknown-policy",
            "there is no policy `*` here",
            "policyName is no wildcard: name each policy",
        ),
        (
            "a rule that is not there",
            format!("{pods}, exceptions: [{{policyName: p, ruleNames: [r, autogn-r, 'x*']}}]"),
            "exception-unknown-rule",
            "the policy `p` has no rule `autogn-r`",
            "did you mean `autogen-r`?",
        ),
        (
            "an exception that can never hold",
            format!("match: {{any: []}}, {covers}"),
            "exception-without-match",
            "the exception matches no resource, so it never holds",
            "list resources under `spec.match.any` or `spec.match.all`",
        ),
        (
            "an exception that can never hold",
            format!("{pods}, exceptions: []"),
            "exception-without-rules",
            "the exception names no rule, so it covers none",
            "name policies and rules under `spec.exceptions`, e.g. {policyName: p, ruleNames: [\"*\"]}",
        ),
    ];
    let policies = policy(&[rule("r", PODS, "{pattern: {kind: Pod}}")], "") + namespaced;
    for (source, spec, code, message, hint) in rows {
        let compilation = compile_with(
            &format!("{policies}{}", exception("ex1", &spec)),
            &Options::default(),
        );
        let found = compilation
            .diagnostics
            .iter()
            .find(|one| one.code == code)
            .unwrap_or_else(|| panic!("{source}: {:?}", compilation.diagnostics));
        assert_eq!(found.message, message, "{source}");
        assert_eq!(found.hint.as_deref(), Some(hint), "{source}");
        assert_eq!(found.subject.as_deref(), Some("ns1/ex1"), "{source}");
        let text = format!("{policies}{}", exception("ex1", &spec));
        assert!(
            found.location.span.start as usize > text.find("PolicyException").unwrap(),
            "{source}: {:?}",
            found.location
        );
    }
}

#[test]
fn documents_that_are_no_exceptions() {
    let other = "{apiVersion: kyverno.io/v2alpha1, kind: PolicyException, metadata: {name: x}}";
    let reading = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let documents: Vec<_> = yaml::read_all(other, reading)
        .into_iter()
        .map(|tree| (SourceId(0), tree.unwrap()))
        .collect();
    let bundle = Bundle::load(compile(&deny_rule()).unwrap()).unwrap();
    let mut sources = Sources::new();
    sources.add("other.yaml", other);
    let added = add_exceptions(&bundle, &documents, &sources, &Options::default(), vec![]);
    assert!(added.bundle.is_none());
    assert_eq!(
        added.diagnostics[0].message,
        "expected a PolicyException of kyverno.io/v2, found kyverno.io/v2alpha1 PolicyException"
    );
}

/// docs/spec/policies.md, case 46c; docs/spec/pod-security.md §10 and cases 43 to 45.
#[test]
fn single_controls_of_pod_security() {
    let rule = rule(
        "r",
        PODS,
        "{podSecurity: {level: baseline, version: v1.29}}",
    );
    let policies = policy(&[rule], "");
    let any_pod = "match: {any: [{resources: {kinds: [Pod]}}]}, exceptions: [{policyName: p, ruleNames: [r]}]";
    let whole = |name: &str| exception(name, any_pod);
    let controls = |name: &str, entries: &str| {
        exception(name, &format!("{any_pod}, podSecurity: [{entries}]"))
    };
    let namespaces = "{controlName: Host Namespaces}";
    let ports = "{controlName: Host Ports, images: ['*']}";
    let pod = |spec: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "web", "namespace": "shop"}}, "spec": {spec}}}"#
        )
    };
    let good = pod(r#"{"containers": [{"name": "a", "image": "a:1"}]}"#);
    let bad = pod(
        r#"{"hostNetwork": true, "containers": [{"name": "a", "image": "a:1", "ports": [{"hostPort": 80}]}]}"#,
    );
    let violates = |checks: &str| {
        format!("Validation rule 'r' failed. It violates PodSecurity \"baseline:v1.29\": {checks}")
    };
    let of_namespaces = "(Forbidden reason: host namespaces, field error list: [spec.hostNetwork is forbidden, forbidden values found: true])";
    let of_ports = "(Forbidden reason: hostPort, field error list: [spec.containers[0].ports[0].hostPort is forbidden, forbidden values found: 80])";
    let passed = "Validation rule 'r' passed.".to_owned();
    let one = |key: &str| format!("rule is skipped due to policy exception {key}");
    let all = |keys: &str| format!("rule is skipped due to policy exceptions {keys}");
    // Source, exceptions, pod, status, message.
    let rows = [
        (
            "no exception",
            String::new(),
            &bad,
            "fail",
            violates(&format!("{of_namespaces}{of_ports}")),
        ),
        (
            "01, case 46c",
            controls("a", namespaces) + &whole("b"),
            &bad,
            "skip",
            one("ns1/b"),
        ),
        (
            "05, case 43: even for an allowed pod",
            controls("a", namespaces) + &whole("b"),
            &good,
            "skip",
            one("ns1/b"),
        ),
        (
            "05, section 8, row 2: the first",
            whole("b") + &whole("c"),
            &bad,
            "skip",
            one("ns1/b"),
        ),
        (
            "05, case 44",
            controls("a", namespaces),
            &good,
            "pass",
            passed,
        ),
        (
            "05, case 45",
            controls("a", namespaces),
            &bad,
            "fail",
            violates(of_ports),
        ),
        (
            "05, case 45",
            controls("a", ports),
            &bad,
            "fail",
            violates(of_namespaces),
        ),
        (
            "05, section 10: concatenated",
            controls("a", namespaces) + &controls("b", ports),
            &bad,
            "skip",
            all("ns1/a, ns1/b"),
        ),
        (
            "one is enough",
            controls("a", &format!("{namespaces}, {ports}")),
            &bad,
            "skip",
            all("ns1/a"),
        ),
        (
            "an empty list is none",
            controls("a", ""),
            &bad,
            "skip",
            one("ns1/a"),
        ),
    ];
    for (source, exceptions, pod, status, message) in rows {
        let found = create(&format!("{policies}{exceptions}"), pod);
        assert_eq!(found.len(), 1, "{source}");
        assert_eq!(
            (&*found[0].status, &found[0].message),
            (status, &message),
            "{source}"
        );
    }
    // For other rules the entries have no meaning.
    let denied = create(&format!("{}{}", deny_rule(), controls("a", ports)), &bad);
    assert_eq!(denied[0].message, format!("{SKIPPED}ns1/a"));
}
