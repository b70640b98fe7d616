//! Documents generated for an API server: webhooks (docs/spec/policies.md §13) and
//! ValidatingAdmissionPolicies (docs/spec/cel.md §4, cited as sections and cases below).

use kpvm_compiler::generated_admission_policy::{
    Generated, Refusal, generate, generate_from_validating,
};
use kpvm_compiler::policy::discovery::Discovery;
use kpvm_compiler::policy::model::{Policy, PolicyException};
use kpvm_compiler::policy::read::{read_exception, read_policy};
use kpvm_compiler::policy::read_validating::{read_cel_exception, read_validating_policy};
use kpvm_compiler::policy::validating_policy::ValidatingPolicy;
use kpvm_compiler::source::SourceId;
use kpvm_compiler::webhooks::{Service, derive};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::{self, DuplicateKeys};
use serde_json::{Value, json};

fn tree(text: &str) -> Tree {
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let mut all = yaml::read_all(text, options);
    all.remove(0)
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn policy_of(kind: &str, name: &str, spec: &str) -> Policy {
    let text = format!(
        "{{apiVersion: kyverno.io/v1, kind: {kind}, metadata: {{name: {name}, namespace: ns}}, spec: {{{spec}}}}}"
    );
    let mut found = Vec::new();
    let mut policy = read_policy(&tree(&text), SourceId(0), &mut found)
        .unwrap_or_else(|| panic!("{found:?}: {text}"));
    if kind == "ClusterPolicy" {
        policy.namespace = None;
    }
    policy
}

fn policy(spec: &str) -> Policy {
    policy_of("ClusterPolicy", "p", spec)
}

fn deny(matched: &str) -> String {
    format!("rules: [{{name: r, {matched}, validate: {{message: m, deny: {{}}}}}}]")
}

/// Name, failure policy and rules of each webhook, a rule as
/// `groups versions resources scope operations`.
fn shown(policies: &[Policy]) -> Vec<String> {
    let webhooks = derive(policies, &[], &Discovery::default(), &Service::default());
    let list = |value: &Value| {
        let items = value.as_array().unwrap().iter();
        let items: Vec<&str> = items.map(|item| item.as_str().unwrap()).collect();
        items.join(",")
    };
    let mut shown = Vec::new();
    for webhook in webhooks.configuration["webhooks"].as_array().unwrap() {
        for rule in webhook["rules"].as_array().unwrap() {
            shown.push(format!(
                "{}: {} {} {} {} {}",
                webhook["failurePolicy"].as_str().unwrap(),
                list(&rule["apiGroups"]),
                list(&rule["apiVersions"]),
                list(&rule["resources"]),
                rule["scope"].as_str().unwrap(),
                list(&rule["operations"]),
            ));
        }
    }
    shown
}

#[test]
fn rules_of_webhooks() {
    const EVERY: &str = "CONNECT,CREATE,DELETE,UPDATE";
    let any = |filters: &str| deny(&format!("match: {{any: [{filters}]}}"));
    let rows = [
        (
            "the example of the section",
            any("{resources: {kinds: [Namespace], operations: [CREATE]}}, {resources: {kinds: [Deployment], operations: [UPDATE]}}"),
            vec![
                "Fail:  v1 namespaces * CREATE".to_owned(),
                "Fail: apps v1 deployments Namespaced UPDATE".to_owned(),
            ],
        ),
        (
            "generated rules count, pods bring their ephemeral containers",
            any("{resources: {kinds: [Pod], operations: [CREATE]}}"),
            vec![
                "Fail:  v1 pods,pods/ephemeralcontainers,replicationcontrollers Namespaced CREATE"
                    .to_owned(),
                "Fail: apps v1 daemonsets,deployments,replicasets,statefulsets Namespaced CREATE"
                    .to_owned(),
                "Fail: batch v1 cronjobs,jobs Namespaced CREATE".to_owned(),
            ],
        ),
        (
            "a subresource",
            any("{resources: {kinds: [Pod/exec], operations: [CONNECT]}}"),
            vec!["Fail:  v1 pods/exec Namespaced CONNECT".to_owned()],
        ),
        (
            "every kind",
            any("{resources: {kinds: ['*']}}"),
            vec![format!(
                "Fail: * * *,pods/ephemeralcontainers * {EVERY}"
            )],
        ),
        (
            "what a broader rule covers goes, for the same operation only",
            any("{resources: {kinds: ['*'], operations: [CREATE]}}, {resources: {kinds: [Service], operations: [CREATE, UPDATE]}}"),
            vec![
                "Fail:  v1 services Namespaced UPDATE".to_owned(),
                "Fail: * * *,pods/ephemeralcontainers * CREATE".to_owned(),
            ],
        ),
        (
            "kinds of one scope and one set of operations share a rule",
            any("{resources: {kinds: [Service, Secret, Node], operations: [CREATE]}}, {resources: {kinds: [ConfigMap]}}"),
            vec![
                format!("Fail:  v1 configmaps Namespaced {EVERY}"),
                "Fail:  v1 nodes * CREATE".to_owned(),
                "Fail:  v1 secrets,services Namespaced CREATE".to_owned(),
            ],
        ),
        (
            "every served version",
            any("{resources: {kinds: [HorizontalPodAutoscaler], operations: [CREATE]}}"),
            vec![
                "Fail: autoscaling v1 horizontalpodautoscalers Namespaced CREATE".to_owned(),
                "Fail: autoscaling v2 horizontalpodautoscalers Namespaced CREATE".to_owned(),
            ],
        ),
        (
            "excluded kinds and operations",
            deny("match: {any: [{resources: {kinds: [Service, Secret]}}]}, exclude: {any: [{resources: {kinds: [Secret]}}, {resources: {operations: [DELETE, CONNECT]}}]}"),
            vec!["Fail:  v1 services Namespaced CREATE,UPDATE".to_owned()],
        ),
        (
            "an exclusion that asks for more excludes nothing, nor does one of all",
            deny("match: {any: [{resources: {kinds: [Service], operations: [CREATE]}}]}, exclude: {any: [{resources: {kinds: [Service], namespaces: [a]}}, {subjects: [{kind: User, name: u}]}]}"),
            vec!["Fail:  v1 services Namespaced CREATE".to_owned()],
        ),
        (
            "not for admission",
            format!("admission: false, {}", any("{resources: {kinds: [Service]}}")),
            vec![],
        ),
        (
            "ignored failures",
            format!("failurePolicy: Ignore, {}", any("{resources: {kinds: [Service], operations: [CREATE]}}")),
            vec!["Ignore:  v1 services Namespaced CREATE".to_owned()],
        ),
        (
            "a rule that changes only",
            "rules: [{name: r, match: {any: [{resources: {kinds: [Service]}}]}, mutate: {patchStrategicMerge: {a: b}}}]".to_owned(),
            vec![],
        ),
        (
            "what a rule generates is watched",
            "rules: [{name: r, match: {any: [{resources: {kinds: [Namespace], operations: [CREATE]}}]}, generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {}}}]".to_owned(),
            vec![
                "Fail:  v1 configmaps Namespaced CREATE,DELETE,UPDATE".to_owned(),
                "Fail:  v1 namespaces * CREATE".to_owned(),
            ],
        ),
    ];
    for (name, spec, expected) in rows {
        assert_eq!(shown(&[policy(&spec)]), expected, "{name}");
    }
}

/// Ignoring webhooks first, then those of single policies; the longest timeout applies, at
/// most 30 seconds.
#[test]
fn webhooks_by_failure_policy_and_match_conditions() {
    let matched = deny("match: {any: [{resources: {kinds: [Service]}}]}");
    let with = |name, kind, fields: &str| policy_of(kind, name, &format!("{fields} {matched}"));
    let policies = [
        with(
            "a",
            "ClusterPolicy",
            "webhookConfiguration: {timeoutSeconds: 15},",
        ),
        with("b", "ClusterPolicy", "webhookTimeoutSeconds: 99,"),
        with("c", "ClusterPolicy", "failurePolicy: Ignore,"),
        with(
            "d",
            "Policy",
            "webhookConfiguration: {failurePolicy: Ignore, matchConditions: [{name: x, expression: 'true'}]},",
        ),
        with(
            "e",
            "ClusterPolicy",
            "webhookConfiguration: {matchConditions: [{name: x, expression: 'true'}]},",
        ),
    ];
    let webhooks = derive(&policies, &[], &Discovery::default(), &Service::default());
    let found: Vec<Value> = webhooks.configuration["webhooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|webhook| {
            json!([
                webhook["name"],
                webhook["clientConfig"]["service"]["path"],
                webhook["timeoutSeconds"],
                webhook["matchConditions"],
            ])
        })
        .collect();
    let conditions = json!([{"name": "x", "expression": "true"}]);
    let expected = [
        json!(["validate.kyverno.svc-ignore", "/validate/ignore", 10, null]),
        json!(["validate.kyverno.svc-fail", "/validate/fail", 30, null]),
        json!([
            "validate.kyverno.svc-ignore-finegrained-ns-d",
            "/validate/ignore/finegrained/ns/d",
            10,
            conditions
        ]),
        json!([
            "validate.kyverno.svc-fail-finegrained-e",
            "/validate/fail/finegrained/e",
            10,
            conditions
        ]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn kinds_that_nobody_knows_are_named() {
    let policy = policy(&deny(
        "match: {any: [{resources: {kinds: [Swan, Service]}}]}",
    ));
    let mut discovery = Discovery::default();
    let unknown = |discovery: &Discovery| {
        let webhooks = derive(
            std::slice::from_ref(&policy),
            &[],
            discovery,
            &Service::default(),
        );
        let unknown = webhooks.unknown.into_iter();
        unknown.map(|unknown| unknown.kind).collect::<Vec<_>>()
    };
    assert_eq!(unknown(&discovery), ["Swan"]);
    discovery.define(&tree("{kind: CustomResourceDefinition, spec: {group: lake.io, scope: Cluster, names: {kind: Swan, plural: swans}, versions: [{name: v1, served: true}]}}"));
    assert!(unknown(&discovery).is_empty());
}

const MATCH: &str = "match: {any: [{resources: {kinds: [Pod]}}]}";

/// A policy with one rule that qualifies except for the given parts.
fn cel(fields: &str, rule: &str) -> String {
    format!(
        "{fields} rules: [{{name: r, {rule}, validate: {{cel: {{generate: true, expressions: [{{expression: 'true'}}]}}}}}}]"
    )
}

fn exception(spec: &str) -> PolicyException {
    let text = format!(
        "{{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {{name: e, namespace: ns}}, spec: {{{spec}}}}}"
    );
    let mut found = Vec::new();
    read_exception(&tree(&text), SourceId(0), &mut found)
        .unwrap_or_else(|| panic!("{found:?}: {text}"))
}

fn generated(spec: &str, exceptions: &[PolicyException]) -> Generated {
    generate(&policy(spec), exceptions, &Discovery::default())
        .unwrap_or_else(|refusal| panic!("{refusal:?}: {spec}"))
}

/// Section 4.1, in the order of its table.
#[test]
fn policies_that_do_not_qualify() {
    let any = |filter: &str| cel("", &format!("match: {{any: [{filter}]}}"));
    let exclude = |block: &str| cel("", &format!("{MATCH}, exclude: {{{block}}}"));
    let validate = |validate: &str| format!("rules: [{{name: r, {MATCH}, validate: {validate}}}]");
    let pod = "{resources: {kinds: [Pod]}}";
    let rows = [
        (
            format!(
                "rules: [{{name: a, {MATCH}, validate: {{deny: {{}}}}}}, {{name: b, {MATCH}, validate: {{deny: {{}}}}}}]"
            ),
            "multiple rules are not applicable.",
        ),
        (validate("{deny: {}}"), "for non CEL rules."),
        (
            validate("{cel: {expressions: [{expression: 'true'}]}}"),
            "validate.cel.generate is not set to true.",
        ),
        (
            cel(
                "validationFailureActionOverrides: [{action: Audit}, {action: Enforce}],",
                MATCH,
            ),
            "multiple validationFailureActionOverrides are not applicable.",
        ),
        (
            cel(
                "validationFailureActionOverrides: [{action: Audit, namespaces: [a]}],",
                MATCH,
            ),
            "Namespaces in validationFailureActionOverrides is not applicable.",
        ),
        (
            validate(
                "{failureActionOverrides: [{action: Audit, namespaces: [a]}], cel: {generate: true, expressions: [{expression: 'true'}]}}",
            ),
            "Namespaces in validationFailureActionOverrides is not applicable.",
        ),
        (
            any("{resources: {kinds: [Pod]}, roles: [a]}"),
            "Roles / ClusterRoles / Subjects in `any/all` is not applicable.",
        ),
        (
            any("{resources: {kinds: [Pod], annotations: {a: b}}}"),
            "Annotations in resource description is not applicable.",
        ),
        (
            any("{resources: {kinds: [Pod], names: ['a*']}}"),
            "wildcards in resource name is not applicable.",
        ),
        (
            any("{resources: {kinds: [Pod], namespaces: ['a?']}}"),
            "wildcards in namespace name is not applicable.",
        ),
        (
            any(&format!(
                "{pod}, {{resources: {{kinds: [Service], selector: {{matchLabels: {{a: b}}}}}}}}"
            )),
            "NamespaceSelector / ObjectSelector across multiple resources in the match block are not applicable.",
        ),
        (
            cel("", &format!("match: {{all: [{pod}, {pod}]}}")),
            "multiple 'all' in the match block is not applicable.",
        ),
        (
            exclude("any: [{resources: {kinds: [Pod], namespaces: [a]}}]"),
            "excluding a resource within a namespace is not applicable.",
        ),
        (
            exclude("any: [{resources: {kinds: [Pod], selector: {matchLabels: {a: b}}}}]"),
            "NamespaceSelector / ObjectSelector in the exclude block is not applicable.",
        ),
        (
            exclude(&format!("all: [{pod}, {pod}]")),
            "multiple 'all' in the exclude block is not applicable.",
        ),
    ];
    for (spec, reason) in rows {
        let message = format!("skip generating ValidatingAdmissionPolicy: {reason}")
            .replace(": for non", " for non");
        let found = generate(&policy(&spec), &[], &Discovery::default());
        assert_eq!(found, Err(Refusal::Disqualified(message)), "{spec}");
    }
    let namespaced = generate(
        &policy_of("Policy", "p", &cel("", MATCH)),
        &[],
        &Discovery::default(),
    );
    assert!(matches!(namespaced, Err(Refusal::NotConsidered(_))));
}

#[test]
fn exceptions_that_disqualify() {
    let of = |rules: &str, rest: &str| {
        exception(&format!(
            "exceptions: [{{policyName: p, ruleNames: {rules}}}], {rest}"
        ))
    };
    let block = "match: {any: [{resources: {names: [a]}}]}";
    for (exception, reason) in [
        (
            of("[r, s]", block),
            "multiple ruleNames in PolicyException is not applicable.",
        ),
        (
            of("[r]", &format!("{block}, conditions: {{all: []}}")),
            "Conditions in PolicyException is not applicable.",
        ),
        (
            of("[r]", "match: {any: [{resources: {names: ['a*']}}]}"),
            "wildcards in resource name is not applicable.",
        ),
        (
            of(
                "[r]",
                "match: {all: [{resources: {names: [a]}}, {resources: {names: [b]}}]}",
            ),
            "multiple 'all' in the PolicyException's match block is not applicable.",
        ),
    ] {
        let found = generate(
            &policy(&cel("", MATCH)),
            &[exception],
            &Discovery::default(),
        );
        let message = format!("skip generating ValidatingAdmissionPolicy: {reason}");
        assert_eq!(found, Err(Refusal::Disqualified(message)));
    }
    // Exceptions for another rule are ignored.
    let other = of("[other, s]", block);
    assert!(generate(&policy(&cel("", MATCH)), &[other], &Discovery::default()).is_ok());
}

const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "CONNECT", "DELETE"];

/// Section 4.2, and cases 52 and 53.
#[test]
fn match_constraints() {
    let any = |filter: &str| cel("", &format!("match: {{any: [{filter}]}}"));
    let pods = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": OPERATIONS,
                      "resources": ["pods", "pods/ephemeralcontainers"]});
    for (spec, expected) in [
        (
            any("{resources: {kinds: [Pod, Service]}}"),
            json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": OPERATIONS,
                "resources": ["pods", "pods/ephemeralcontainers", "services"]}]}),
        ),
        (
            any("{resources: {kinds: [Pod], namespaces: [a]}}"),
            json!({"resourceRules": [pods], "namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}]}}),
        ),
        (
            cel(
                "",
                &format!("{MATCH}, exclude: {{any: [{{resources: {{namespaces: [b]}}}}]}}"),
            ),
            json!({"resourceRules": [pods], "excludeResourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": OPERATIONS,
                 "resources": ["namespaces"], "resourceNames": ["b"]}]}),
        ),
        // Operations and names of a later filter with the same group are lost.
        (
            any(
                "{resources: {kinds: [Service], operations: [UPDATE, CREATE], names: [a], name: b}}, {resources: {kinds: [ConfigMap], operations: [DELETE], names: [z]}}, {resources: {kinds: [Deployment], operations: [DELETE]}}",
            ),
            json!({"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE", "CREATE"],
                 "resources": ["configmaps", "services"], "resourceNames": ["a", "b"]},
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["DELETE"],
                 "resources": ["deployments"]}]}),
        ),
        (
            any(
                "{resources: {kinds: ['*'], selector: {matchLabels: {a: b}}, namespaceSelector: {matchExpressions: [{key: c, operator: Exists}]}}}",
            ),
            json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
                    "operations": OPERATIONS, "resources": ["*"]}],
                "objectSelector": {"matchLabels": {"a": "b"}},
                "namespaceSelector": {"matchExpressions": [{"key": "c", "operator": "Exists"}]}}),
        ),
        (
            any("{resources: {kinds: [Deployment/scale]}}"),
            json!({"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
                "operations": OPERATIONS, "resources": ["deployments/scale"]}]}),
        ),
    ] {
        let found = generated(&spec, &[]).policy["spec"]["matchConstraints"].clone();
        assert_eq!(found, expected, "{spec}");
    }
    for (kind, error) in [
        (
            "HorizontalPodAutoscaler",
            "no unique match for kind HorizontalPodAutoscaler",
        ),
        ("Swan", "failed to find resource (*/*/Swan/)"),
    ] {
        let spec = any(&format!("{{resources: {{kinds: [{kind}]}}}}"));
        let found = generate(&policy(&spec), &[], &Discovery::default());
        assert_eq!(found, Err(Refusal::Failed(error.to_owned())));
    }
}

#[test]
fn exceptions_become_exclusions() {
    let exception = exception(
        "exceptions: [{policyName: p, ruleNames: ['r*']}], match: {any: [{resources: {kinds: [Deployment], names: [legacy]}}]}",
    );
    let found = generated(&cel("", MATCH), &[exception]).policy["spec"]["matchConstraints"]
        ["excludeResourceRules"]
        .clone();
    assert_eq!(
        found,
        json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": OPERATIONS,
                "resources": ["deployments"], "resourceNames": ["legacy"]}])
    );
}

/// Sections 4.2 and 4.3: what is copied, names, labels, actions.
#[test]
fn whole_documents() {
    let text = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p, uid: u, labels: {reports.kyverno.io/disabled: ''}},
        spec: {validationFailureAction: Enforce, failurePolicy: Ignore, rules: [{name: r, match: {any: [{resources: {kinds: [Service]}}]},
        celPreconditions: [{name: c, expression: 'true'}],
        validate: {message: not copied, failureAction: Audit, cel: {generate: true,
            paramKind: {apiVersion: v1, kind: ConfigMap}, paramRef: {name: a, parameterNotFoundAction: Deny},
            variables: [{name: v, expression: '1'}], auditAnnotations: [{key: k, valueExpression: \"'x'\"}],
            expressions: [{expression: variables.v == 1, message: m, messageExpression: null, reason: Invalid}]}}}]}}";
    let mut found = Vec::new();
    let policy = read_policy(&tree(text), SourceId(0), &mut found).unwrap();
    let Generated { policy, binding } = generate(&policy, &[], &Discovery::default()).unwrap();
    let owner =
        json!([{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "name": "p", "uid": "u"}]);
    assert_eq!(
        policy,
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {
                "name": "cpol-p",
                "labels": {"app.kubernetes.io/managed-by": "kyverno", "reports.kyverno.io/disabled": "true"},
                "ownerReferences": owner,
            },
            "spec": {
                "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                    "operations": OPERATIONS, "resources": ["services"]}]},
                "matchConditions": [{"name": "c", "expression": "true"}],
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "variables": [{"name": "v", "expression": "1"}],
                "auditAnnotations": [{"key": "k", "valueExpression": "'x'"}],
                "validations": [{"expression": "variables.v == 1", "message": "m", "reason": "Invalid"}],
            },
        })
    );
    assert_eq!(
        binding,
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {
                "name": "cpol-p-binding",
                "labels": {"app.kubernetes.io/managed-by": "kyverno"},
                "ownerReferences": owner,
            },
            "spec": {
                "policyName": "cpol-p",
                "paramRef": {"name": "a", "parameterNotFoundAction": "Deny"},
                "validationActions": ["Audit", "Warn"],
            },
        })
    );
    for (fields, actions) in [
        ("validationFailureAction: enforce,", json!(["Deny"])),
        ("", json!(["Audit", "Warn"])),
    ] {
        let binding = generated(&cel(fields, MATCH), &[]).binding;
        assert_eq!(binding["spec"]["validationActions"], actions);
    }
}

fn validating(name: &str, spec: &str) -> ValidatingPolicy {
    let text = format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {{name: {name}}}, spec: {{{spec}}}}}"
    );
    let mut found = Vec::new();
    read_validating_policy(&tree(&text), SourceId(0), &mut found)
        .unwrap_or_else(|| panic!("{found:?}: {text}"))
}

const SERVICES: &str = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [services]}]}";
const PODS: &str = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}";

/// `kyverno/kyverno pkg/controllers/webhook/validating.go`.
#[test]
fn webhooks_of_validating_policies() {
    let policies = [
        validating("b", SERVICES),
        validating("a", PODS),
        validating("c", &format!("{SERVICES}, failurePolicy: Ignore")),
        validating(
            "d",
            &format!(
                "{PODS}, matchConditions: [{{name: x, expression: object.metadata.name != 'y'}}]"
            ),
        ),
        validating(
            "e",
            &format!("{SERVICES}, webhookConfiguration: {{timeoutSeconds: 3}}"),
        ),
        validating(
            "f",
            &format!("{SERVICES}, evaluation: {{admission: {{enabled: false}}}}"),
        ),
        validating("g", &format!("{SERVICES}, evaluation: {{mode: JSON}}")),
        validating(
            "h",
            &SERVICES.replace("resourceRules", "matchPolicy: Exact, resourceRules"),
        ),
    ];
    let webhooks = derive(&[], &policies, &Discovery::default(), &Service::default());
    let webhooks = webhooks.configuration["webhooks"]
        .as_array()
        .unwrap()
        .clone();
    let shown: Vec<Value> = webhooks
        .iter()
        .map(|webhook| {
            let rules = webhook["rules"].as_array().unwrap().iter();
            let resources: Vec<&Value> = rules.map(|rule| &rule["resources"]).collect();
            json!([
                webhook["name"],
                webhook["clientConfig"]["service"]["path"],
                webhook["timeoutSeconds"],
                webhook["matchPolicy"],
                resources,
            ])
        })
        .collect();
    let controllers = json!([
        ["pods"],
        ["cronjobs"],
        ["daemonsets", "deployments", "replicasets", "statefulsets"],
        ["jobs"]
    ]);
    let basic = "/vpol/a/b/c";
    let expected = [
        json!([
            "vpol.validate.kyverno.svc-fail-finegrained-d",
            "/vpol/d",
            null,
            null,
            controllers
        ]),
        json!([
            "vpol.validate.kyverno.svc-fail-finegrained-e",
            "/vpol/e",
            3,
            null,
            [["services"]]
        ]),
        json!([
            "vpol.validate.kyverno.svc-fail-finegrained-h",
            "/vpol/h",
            null,
            "Exact",
            [["services"]]
        ]),
        json!([
            "vpol.validate.kyverno.svc-fail",
            basic,
            null,
            null,
            [
                ["services"],
                ["cronjobs"],
                ["daemonsets", "deployments", "replicasets", "statefulsets"],
                ["jobs"],
                ["pods"]
            ]
        ]),
        json!([
            "vpol.validate.kyverno.svc-ignore",
            basic,
            null,
            null,
            [["services"]]
        ]),
    ];
    assert_eq!(shown, expected);
    assert_eq!(
        webhooks[0]["matchConditions"],
        json!([
            {"name": "autogen-x", "expression": "!((object.apiVersion == 'v1' && object.kind =='Pod')) || (object.metadata.name != 'y')"},
            {"name": "autogen-cronjobs-x", "expression": "!((object.apiVersion == 'batch/v1' && object.kind =='CronJob')) || (object.spec.jobTemplate.spec.template.metadata.name != 'y')"},
            {"name": "autogen-defaults-x", "expression": "!((object.apiVersion == 'apps/v1' && object.kind =='DaemonSet') || (object.apiVersion == 'apps/v1' && object.kind =='Deployment') || (object.apiVersion == 'apps/v1' && object.kind =='ReplicaSet') || (object.apiVersion == 'apps/v1' && object.kind =='StatefulSet') || (object.apiVersion == 'batch/v1' && object.kind =='Job')) || (object.spec.template.metadata.name != 'y')"},
        ])
    );
}

/// Section 4.4.
#[test]
fn admission_policies_of_validating_policies() {
    const ENABLED: &str = "autogen: {validatingAdmissionPolicy: {enabled: true}}";
    let refused = |spec: &str| generate_from_validating(&validating("p", spec), &[]).unwrap_err();
    let message = |reason: &str| {
        Refusal::Disqualified(format!(
            "skip generating ValidatingAdmissionPolicy: {reason}"
        ))
    };
    assert_eq!(
        refused(&format!("{PODS}, {ENABLED}")),
        message("pod controllers autogen is enabled.")
    );
    assert_eq!(refused(SERVICES), message("not enabled."));
    let policy = validating(
        "p",
        &format!(
            "{SERVICES}, {ENABLED}, validationActions: [Warn, Audit],
            matchConditions: [{{name: a, expression: 'true'}}], variables: [{{name: v, expression: '1'}}],
            auditAnnotations: [{{key: k, valueExpression: \"'x'\"}}],
            validations: [{{expression: 'object.image in exceptions.allowedImages', message: exceptions.allowedImages}}]"
        ),
    );
    let text = "{apiVersion: policies.kyverno.io/v1, kind: PolicyException, metadata: {name: e},
        spec: {policyRefs: [{name: p, kind: ValidatingPolicy}], images: [i, j], allowedValues: [v],
        matchConditions: [{name: b, expression: one}, {name: c, expression: two}]}}";
    let read = |text: &str| read_cel_exception(&tree(text), SourceId(0), &mut Vec::new()).unwrap();
    let other = text
        .replace("name: p,", "name: q,")
        .replace("name: e", "name: f");
    let exceptions = [read(text), read(&other)];
    let found = generate_from_validating(&policy, &exceptions).unwrap();
    assert_eq!(found.policy["metadata"]["name"], "vpol-p");
    assert_eq!(
        found.policy["spec"],
        json!({
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["services"]}]},
            "matchConditions": [{"name": "a", "expression": "true"},
                {"name": "b", "expression": "!(one)"}, {"name": "c", "expression": "!(two)"}],
            "variables": [{"name": "v", "expression": "1"},
                {"name": "allowedImages", "expression": "['i', 'j']"},
                {"name": "allowedValues", "expression": "['v']"}],
            "validations": [{"expression": "object.image in variables.allowedImages",
                "message": "exceptions.allowedImages"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "'x'"}],
        })
    );
    assert_eq!(
        found.binding["spec"],
        json!({"policyName": "vpol-p", "validationActions": ["Warn", "Audit"]})
    );
}
