//! ValidatingAdmissionPolicies and their bindings (docs/spec/cel.md §5 and §8). Sections
//! and cases below are of that page.

use crate::common::{compile, compile_with};
use kpvm::engine::{Engine, Input, Request, Session, UserInfo};
use kpvm::host::{ExternalQuery, Host, NoHost, Timestamp};
use kpvm_compiler::compile::Options;
use kpvm_compiler::diagnostic::Severity;
use serde_json::{Value, json};

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "d", "labels": {"app": "x"}}, "spec": {"replicas": 3}}"#;
const NODE: &str = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}"#;

const PODS: &str = "resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]";

fn policy(spec: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec: {{{spec}}}\n"
    )
}

/// A policy for Pods with these validations and further fields.
fn pods(validations: &str, rest: &str) -> String {
    policy(&format!(
        "matchConstraints: {{{PODS}}}, validations: [{validations}]{rest}"
    ))
}

fn binding(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: {name}}}\nspec: {{policyName: p{spec}}}\n"
    )
}

#[derive(Debug, PartialEq)]
struct Found {
    status: String,
    message: String,
    binding: Option<String>,
}

/// The only response, if there is one.
fn run(policies: &str, request: &Request<'_>, host: &mut dyn Host) -> Option<Found> {
    let bytes = compile(policies).unwrap_or_else(|error| panic!("{error}\n{policies}"));
    let engine = Engine::load(bytes).unwrap();
    let mut session = Session::new(&engine);
    let evaluation = session.evaluate_with(request, host).unwrap();
    let responses: Vec<_> = evaluation.responses().collect();
    assert!(responses.len() < 2, "{policies}");
    responses.first().map(|response| {
        assert_eq!(response.rule(), "p");
        Found {
            status: response.status().to_string(),
            message: response.message().into_owned(),
            binding: response
                .properties()
                .find(|(key, _)| *key == "binding")
                .map(|(_, value)| value.to_owned()),
        }
    })
}

fn create(policies: &str, object: &str) -> Option<Found> {
    run(
        policies,
        &Request::create(Input::Json(object.as_bytes())),
        &mut NoHost,
    )
}

fn outcome(policies: &str, object: &str) -> (String, String) {
    let found = create(policies, object).unwrap();
    (found.status, found.message)
}

fn texts(status: &str, message: &str) -> (String, String) {
    (status.to_owned(), message.to_owned())
}

/// Section 5, and cases 2, 37 and 41.
#[test]
fn results() {
    for (validations, rest, status, message) in [
        ("{expression: 'true'}", "", "pass", ""),
        ("{expression: 'false', message: ' no '}", "", "fail", "no"),
        (
            "{expression: object.metadata.name == 'b'}",
            "",
            "fail",
            "failed expression: object.metadata.name == 'b'",
        ),
        (
            "{expression: 'false', messageExpression: \"'is ' + object.metadata.name\"}",
            "",
            "fail",
            "is a",
        ),
        (
            "{expression: object.metadata.annotations.app == 'x'}",
            "",
            "error",
            "expression 'object.metadata.annotations.app == 'x'' resulted in error: no such key: annotations",
        ),
        (
            "{expression: object.spec.replicas}",
            "",
            "error",
            "compilation error: must evaluate to bool but got dyn",
        ),
        (
            "{expression: 'true'}, {expression: 'false', message: m2}, {expression: object.nope == 1}",
            "",
            "fail",
            "m2",
        ),
        (
            "{expression: object.nope == 1}, {expression: 'false'}",
            "",
            "error",
            "expression 'object.nope == 1' resulted in error: no such key: nope",
        ),
        // Errors of validations are errors, whatever the failure policy.
        (
            "{expression: object.nope == 1}",
            ", failurePolicy: Ignore",
            "error",
            "expression 'object.nope == 1' resulted in error: no such key: nope",
        ),
        (
            "{expression: 'false'}",
            ", matchConditions: [{name: a, expression: 'false'}]",
            "skip",
            "match conditions aren't met",
        ),
        (
            "{expression: 'true'}",
            ", matchConditions: [{name: a, expression: object.nope == 1}]",
            "error",
            "expression 'object.nope == 1' resulted in error: no such key: nope",
        ),
        (
            "{expression: 'true'}",
            ", failurePolicy: Ignore, matchConditions: [{name: a, expression: object.nope == 1}]",
            "skip",
            "match conditions aren't met",
        ),
        // A false condition decides, whatever errors others had.
        (
            "{expression: 'true'}",
            ", matchConditions: [{name: a, expression: object.nope == 1}, {name: b, expression: 'false'}]",
            "skip",
            "match conditions aren't met",
        ),
        (
            "{expression: variables.v == 4}",
            ", variables: [{name: v, expression: object.spec.replicas + 1}]",
            "pass",
            "",
        ),
        (
            "{expression: authorizer.path('/x').check('get').allowed()}",
            "",
            "error",
            "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | authorizer.path('/x').check('get').allowed()\n | ^",
        ),
    ] {
        let expected = texts(status, message);
        let found = outcome(&pods(validations, rest), POD);
        assert_eq!(found, expected, "{validations}{rest}");
    }
}

/// Section 5, and cases 32 and 46.
#[test]
fn what_expressions_see() {
    let user = UserInfo {
        username: "ann",
        groups: &["dev"],
        ..UserInfo::default()
    };
    let labels = [("e", "p")];
    let request = Request {
        user: Some(user),
        namespace_labels: &labels,
        ..Request::create(Input::Json(POD.as_bytes()))
    };
    for expression in [
        "object.metadata.name == 'a' && oldObject == null",
        "request.resource == request.requestResource && request.resource.resource == 'pods'",
        "request.resource.group == '' && request.resource.version == 'v1' && request.kind.kind == 'Pod'",
        "request.operation == 'CREATE' && !has(request.subResource) && !request.dryRun",
        "request.userInfo.username == 'ann' && request.userInfo.groups == ['dev']",
        "namespaceObject.metadata.name == 'd' && namespaceObject.metadata.labels['e'] == 'p'",
    ] {
        let quoted = serde_json::to_string(expression).unwrap();
        let policies = pods(&format!("{{expression: {quoted}}}"), "");
        let found = run(&policies, &request, &mut NoHost).unwrap();
        assert_eq!(found.status, "pass", "{expression}: {}", found.message);
    }
    let node = policy(
        "matchConstraints: {resourceRules: []}, validations: [{expression: '!has(namespaceObject.metadata.name)'}]",
    );
    assert_eq!(outcome(&node, NODE).0, "pass");
}

/// Section 5: what is matched; cases 45 and 47.
#[test]
fn bindings_take_the_place_of_constraints() {
    let deny = pods("{expression: 'false', message: m}", "");
    let with = |bindings: &[String]| format!("{deny}{}", bindings.concat());
    let only = |names: &str| {
        format!(
            ", matchResources: {{resourceRules: [{{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], resourceNames: [{names}]}}]}}"
        )
    };
    // Without a binding the constraints apply; with one they are ignored.
    assert_eq!(create(&deny, POD).unwrap().binding, None);
    assert_eq!(create(&deny, NODE), None);
    let all = with(&[binding("all", "")]);
    for object in [POD, NODE] {
        assert_eq!(create(&all, object).unwrap().binding.unwrap(), "all");
    }
    assert_eq!(create(&with(&[binding("b", &only("b"))]), POD), None);
    // The last matching binding wins.
    for (bindings, answers) in [
        (vec![binding("one", ""), binding("two", "")], Some("two")),
        (
            vec![binding("one", ""), binding("two", &only("b"))],
            Some("one"),
        ),
        (
            vec![binding("one", &only("a")), binding("two", &only("a"))],
            Some("two"),
        ),
        (
            vec![binding("one", &only("a")), binding("two", &only("b"))],
            Some("one"),
        ),
        (
            vec![binding("one", &only("b")), binding("two", &only("c"))],
            None,
        ),
    ] {
        let found = create(&with(&bindings), POD);
        let found = found.map(|found| found.binding.unwrap());
        assert_eq!(found.as_deref(), answers, "{bindings:?}");
    }
    let excluded = ", matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}";
    assert_eq!(create(&with(&[binding("b", excluded)]), POD), None);
    let labelled = ", matchResources: {objectSelector: {matchLabels: {app: z}}}";
    assert_eq!(create(&with(&[binding("b", labelled)]), POD), None);
}

/// Only `Deny` denies a request.
#[test]
fn actions_of_bindings() {
    for (actions, enforced) in [
        ("[Deny]", true),
        ("[Warn, Audit]", false),
        ("[Audit, Deny]", true),
    ] {
        let policies = format!(
            "{}{}",
            pods("{expression: 'false'}", ""),
            binding("b", &format!(", validationActions: {actions}"))
        );
        let engine = Engine::load(compile(&policies).unwrap()).unwrap();
        let mut session = Session::new(&engine);
        let request = Request::create(Input::Json(POD.as_bytes()));
        let evaluation = session.evaluate(&request).unwrap();
        let response = evaluation.responses().next().unwrap();
        assert_eq!(response.is_enforced(), enforced, "{actions}");
    }
}

/// Provides the same values for every binding.
struct Params(Value);

impl Host for Params {
    fn now(&mut self) -> Option<Timestamp> {
        None
    }

    fn random(&mut self) -> Option<u64> {
        None
    }

    fn fetch(&mut self, query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        match query {
            ExternalQuery::BoundParameters { reference } => {
                assert_eq!(**reference, json!({"name": "limits"}));
                Ok(Some(self.0.clone()))
            }
            _ => Ok(None),
        }
    }
}

#[test]
fn parameters() {
    let kind = ", paramKind: {apiVersion: v1, kind: ConfigMap}";
    let validation = "{expression: 'params == null || object.spec.replicas <= params.most'}";
    let unbound = pods(validation, kind);
    // Only a kind: the name exists and is null.
    assert_eq!(outcome(&unbound, POD), texts("pass", ""));
    let bound = format!("{unbound}{}", binding("b", ", paramRef: {name: limits}"));
    let request = Request::create(Input::Json(POD.as_bytes()));
    for (params, status) in [
        (json!([{"most": 3}]), "pass"),
        (json!([{"most": 2}]), "fail"),
        (json!([{"most": 9}, {"most": 2}]), "fail"),
        (json!([null]), "pass"),
        (json!([{}]), "error"),
    ] {
        let found = run(&bound, &request, &mut Params(params.clone())).unwrap();
        assert_eq!(found.status, status, "{params}: {}", found.message);
    }
    let found = run(&bound, &request, &mut NoHost).unwrap();
    assert_eq!(found.status, "error");
    assert!(
        found
            .message
            .starts_with("error in parameterized resource: "),
        "{}",
        found.message
    );
}

/// Exceeding the cost limit is also an error (§2.7).
#[test]
fn the_cost_limit_is_an_error() {
    let list = format!("[{}]", vec!["0"; 200].join(", "));
    let text = format!("{list}.all(a, {list}.all(b, {list}.all(c, a + b + c == 0)))");
    let (status, message) = outcome(&pods(&format!("{{expression: '{text}'}}"), ""), POD);
    assert_eq!(status, "error");
    assert!(message.ends_with("cost limit exceeded"), "{message}");
}

#[test]
fn documents_that_are_wrong() {
    for (documents, code) in [
        (pods("{expresion: 'true'}", ""), "unknown-field"),
        (pods("{expression: 'nope'}", ""), "cel-expression"),
        (
            policy("matchConstraints: {objectSelector: {matchLabels: {'a b': c}}}"),
            "selector",
        ),
        (pods("", "").replace("name: p", "labels: {}"), "no-name"),
        (
            format!("{}{}", pods("", ""), binding("b", ", action: Deny")),
            "unknown-field",
        ),
    ] {
        let compilation = compile_with(&documents, &Options::default());
        let mut errors = compilation.diagnostics.iter();
        let error = errors.find(|one| one.severity == Severity::Error);
        assert_eq!(error.map(|one| one.code), Some(code), "{documents}");
    }
    let alone = compile_with(&binding("b", ""), &Options::default());
    let codes: Vec<&str> = alone.diagnostics.iter().map(|one| one.code).collect();
    assert_eq!(codes, ["binding-of-nothing"]);
    let many: String = (0..201).map(|_| binding("b", "")).collect();
    let many = compile_with(&format!("{}{many}", pods("", "")), &Options::default());
    assert_eq!(many.diagnostics[0].code, "too-many-bindings");
    assert!(many.bundle.is_none());
    // Every version is read.
    for version in ["v1alpha1", "v1beta1"] {
        let documents =
            pods("{expression: 'true'}", "").replace("k8s.io/v1\n", &format!("k8s.io/{version}\n"));
        assert_eq!(outcome(&documents, POD).0, "pass");
    }
}
