//! Outside data of `validate.cel`: parameters and access checks (docs/spec/cel.md §2.4 and
//! §2.6). Sections and cases below are of that page.

use crate::common::{compile, policy, rule};
use kpvm::engine::{Engine, Input, Request, Session, UserInfo};
use kpvm::host::{ExternalQuery, Host, NoHost, Timestamp};
use serde_json::{Value, json};

const POD: &str =
    r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "d"}}"#;
const NODE: &str = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}"#;

/// A cluster with two limits in the namespace `d`, and an authorizer.
#[derive(Default)]
struct Cluster {
    asked: Vec<String>,
}

fn limit(name: &str, most: u64) -> Value {
    json!({"apiVersion": "shop.io/v1", "kind": "Limit",
           "metadata": {"name": name, "namespace": "d"}, "most": most})
}

impl Host for Cluster {
    fn now(&mut self) -> Option<Timestamp> {
        None
    }

    fn random(&mut self) -> Option<u64> {
        None
    }

    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        match *query {
            ExternalQuery::KindScope { kind: "Limit", .. } => Ok(Some(json!(true))),
            ExternalQuery::KindScope { kind: "Wide", .. } => Ok(Some(json!(false))),
            ExternalQuery::KindScope { .. } => Err("no such kind".to_owned()),
            ExternalQuery::Object {
                namespace, name, ..
            } => {
                self.asked.push(format!("{namespace}/{name}"));
                match name {
                    "low" => Ok(Some(limit(name, 1))),
                    _ => Err(format!("limits.shop.io \"{name}\" not found")),
                }
            }
            ExternalQuery::Objects {
                namespace,
                selector,
                ..
            } => {
                self.asked.push(format!("{namespace}: {selector}"));
                Ok(Some(match selector.pointer("/matchLabels/team") {
                    Some(team) if team == "both" => json!([limit("low", 1), limit("high", 9)]),
                    _ => json!([]),
                }))
            }
            ExternalQuery::AccessReview { spec } => {
                self.asked.push(spec.to_string());
                if spec.pointer("/resourceAttributes/verb") == Some(&json!("fly")) {
                    return Err("no such verb".to_owned());
                }
                let allowed = spec.get("user") == Some(&json!("ann"));
                Ok(Some(json!({"allowed": allowed, "reason": "by rule"})))
            }
            _ => Ok(None),
        }
    }
}

fn run(cel: &str, rest: &str, object: &str, host: &mut dyn Host) -> (String, String) {
    let matched = format!("match: {{any: [{{resources: {{kinds: ['*']}}}}]}}{rest}");
    let policy = policy(&[rule("r", &matched, &format!("{{cel: {{{cel}}}}}"))], "");
    let engine = Engine::load(compile(&policy).unwrap()).unwrap();
    let mut session = Session::new(&engine);
    let request = Request {
        user: Some(UserInfo {
            username: "ann",
            groups: &["dev"],
            ..UserInfo::default()
        }),
        ..Request::create(Input::Json(object.as_bytes()))
    };
    let evaluation = session.evaluate_with(&request, host).unwrap();
    let response = evaluation.responses().next().unwrap();
    let status = response.status().to_string();
    (status, response.message().into_owned())
}

fn with_params(kind: &str, reference: &str, expression: &str, object: &str) -> (String, String) {
    let cel = format!(
        "paramKind: {{apiVersion: shop.io/v1, kind: {kind}}}, paramRef: {{{reference}}}, expressions: [{{expression: '{expression}'}}]"
    );
    run(&cel, "", object, &mut Cluster::default())
}

/// Section 2.6, step by step; case 44.
#[test]
fn parameters_are_asked_of_the_host() {
    let passed = "Validation rule 'r' passed.";
    for (kind, reference, expression, object, status, message) in [
        (
            "Limit",
            "name: low",
            "params.most == 1",
            POD,
            "pass",
            passed,
        ),
        (
            "Limit",
            "name: low, namespace: x",
            "params.most == 1",
            NODE,
            "pass",
            passed,
        ),
        (
            "Limit",
            "name: low",
            "params.most == 2",
            POD,
            "fail",
            "failed expression: params.most == 2",
        ),
        (
            "Limit",
            "name: none, parameterNotFoundAction: Allow",
            "true",
            POD,
            "error",
            "error in parameterized resource: limits.shop.io \"none\" not found",
        ),
        (
            "Limit",
            "name: low",
            "true",
            NODE,
            "error",
            "error in parameterized resource: can't use namespaced paramRef to match cluster-scoped resources",
        ),
        (
            "Wide",
            "name: low, namespace: d",
            "true",
            POD,
            "error",
            "error in parameterized resource: paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        ),
        (
            "Other",
            "name: low",
            "true",
            POD,
            "error",
            "error in parameterized resource: failed to check if resource is namespaced or not (no such kind)",
        ),
        // Each parameter must hold.
        (
            "Limit",
            "selector: {matchLabels: {team: both}}",
            "params.most < 10",
            POD,
            "pass",
            passed,
        ),
        (
            "Limit",
            "selector: {matchLabels: {team: both}}",
            "params.most < 9",
            POD,
            "fail",
            "failed expression: params.most < 9",
        ),
        ("Limit", "selector: {}", "false", POD, "pass", passed),
        (
            "Limit",
            "selector: {}, parameterNotFoundAction: Deny",
            "true",
            POD,
            "error",
            "error in parameterized resource: no params found",
        ),
    ] {
        let found = with_params(kind, reference, expression, object);
        let expected = (status.to_owned(), message.to_owned());
        assert_eq!(found, expected, "{kind} {reference} {expression}");
    }
}

/// Section 2.2, steps 8 and 9: variables and preconditions are evaluated per parameter.
#[test]
fn every_parameter_has_its_own_variables() {
    let cel = "paramKind: {apiVersion: shop.io/v1, kind: Limit}, \
        paramRef: {selector: {matchLabels: {team: both}}}, \
        variables: [{name: most, expression: params.most}], \
        expressions: [{expression: 'variables.most == params.most'}]";
    let found = run(cel, "", POD, &mut Cluster::default());
    assert_eq!(found.0, "pass", "{}", found.1);
    let cel = cel.replace("variables.most == params.most", "params.most == 1");
    let rest = ", celPreconditions: [{name: low, expression: params.most == 1}]";
    let found = run(&cel, rest, POD, &mut Cluster::default());
    assert_eq!(
        found,
        ("skip".to_owned(), "cel preconditions not met".to_owned())
    );
}

/// One of paramKind and paramRef alone: no parameters.
#[test]
fn both_fields_are_needed() {
    let cel = "paramKind: {apiVersion: v1, kind: ConfigMap}, expressions: [{expression: 'params == null'}]";
    let (status, message) = run(cel, "", POD, &mut Cluster::default());
    assert_eq!(status, "fail");
    assert!(
        message.contains("undeclared reference to 'params'"),
        "{message}"
    );
}

#[test]
fn a_host_without_a_cluster_says_so() {
    let cel = "paramKind: {apiVersion: v1, kind: ConfigMap}, paramRef: {name: a}, expressions: [{expression: 'true'}]";
    assert_eq!(
        run(cel, "", POD, &mut NoHost),
        (
            "error".to_owned(),
            "error in parameterized resource: failed to check if resource is namespaced or not (nothing is known of a cluster here)".to_owned()
        )
    );
    let cel = "expressions: [{expression: \"authorizer.path('/x').check('get').allowed()\"}]";
    let (status, message) = run(cel, "", POD, &mut NoHost);
    assert_eq!(status, "fail");
    assert!(
        message.ends_with("resulted in error: authorizer: who may do what is not known here, only a cluster can check access"),
        "{message}"
    );
}

/// Section 3.9; names and groups as `kubernetes/apiserver pkg/cel/library/authz.go`.
#[test]
fn access_is_asked_of_the_host() {
    for (expression, status, asked) in [
        (
            "authorizer.path('/healthz').check('get').allowed()",
            "pass",
            json!({"user": "ann", "groups": ["dev"],
                   "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}),
        ),
        (
            "authorizer.group('apps').resource('deployments').subresource('scale').namespace('d').name('web').check('update').reason() == 'by rule'",
            "pass",
            json!({"user": "ann", "groups": ["dev"], "resourceAttributes": {
                "group": "apps", "resource": "deployments", "subresource": "scale",
                "namespace": "d", "name": "web", "verb": "update"}}),
        ),
        (
            "authorizer.serviceAccount('n', 'bot').group('').resource('pods').labelSelector('a=b').check('list').allowed()",
            "fail",
            json!({"user": "system:serviceaccount:n:bot",
                   "groups": ["system:serviceaccounts", "system:serviceaccounts:n"],
                   "resourceAttributes": {"group": "", "resource": "pods",
                       "labelSelector": {"rawSelector": "a=b"}, "verb": "list"}}),
        ),
        (
            "authorizer.requestResource.check('delete').allowed()",
            "pass",
            json!({"user": "ann", "groups": ["dev"], "resourceAttributes": {
                "group": "", "resource": "", "subresource": "", "namespace": "d", "name": "a",
                "verb": "delete"}}),
        ),
        (
            "authorizer.requestResource.check('fly').errored() && authorizer.requestResource.check('fly').error() == 'no such verb'",
            "pass",
            Value::Null,
        ),
        (
            "authorizer.path('').check('get').allowed()",
            "fail",
            Value::Null,
        ),
    ] {
        let mut host = Cluster::default();
        let cel = format!("expressions: [{{expression: \"{expression}\"}}]");
        let found = run(&cel, "", POD, &mut host);
        assert_eq!(found.0, status, "{expression}: {}", found.1);
        if !asked.is_null() {
            let spec: Value = serde_json::from_str(&host.asked[0]).unwrap();
            assert_eq!(spec, asked, "{expression}");
        }
    }
}

/// Section 2.4: not available in messages.
#[test]
fn messages_cannot_ask_for_access() {
    let cel = "expressions: [{expression: 'false', message: m, messageExpression: \"authorizer.path('/x').check('get').reason()\"}]";
    let found = run(cel, "", POD, &mut Cluster::default());
    assert_eq!(found, ("fail".to_owned(), "m".to_owned()));
}
