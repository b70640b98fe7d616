//! Answers to AdmissionReviews (docs/spec/cli.md §12).

use kpvm::document::DocumentBuffer;
use kpvm::engine::{Engine, FailurePolicy, Review, ReviewResponse, Session};
use kpvm_semantics::limits::Limits;

use crate::common::compile;

const REVIEW: &str = r#"{"request": {"uid": "1", "operation": "CREATE",
    "kind": {"group": "", "version": "v1", "kind": "Pod"}, "name": "nginx", "namespace": "default",
    "object": {"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": "nginx", "namespace": "default"}}}}"#;

/// A ClusterPolicy of one rule, which asks for a label that the Pod does not have.
fn policy(name: &str, action: &str, message: &str) -> String {
    format!(
        "---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: {name}}}
spec:
  rules:
  - name: check-label
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
    validate:
      failureAction: {action}
      message: {message}
      pattern: {{metadata: {{labels: {{app: '?*'}}}}}}
"
    )
}

/// A rule whose deny condition cannot be evaluated.
fn erroneous(name: &str) -> String {
    format!(
        "---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: {name}}}
spec:
  rules:
  - name: fails
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
    validate:
      failureAction: Enforce
      message: cannot be said
      deny: {{conditions: {{any: [{{key: '{{{{ request.object.spec.x }}}}', operator: Equals, value: a}}]}}}}
"
    )
}

fn answer(policies: &str, failure_policy: FailurePolicy) -> ReviewResponse {
    let engine = Engine::load(compile(policies).unwrap()).unwrap();
    let mut session = Session::new(&engine);
    let mut buffer = DocumentBuffer::new();
    let review = Review::read(REVIEW.as_bytes(), &mut buffer, &Limits::DEFAULT).unwrap();
    let request = review.request();
    let evaluation = session.evaluate(&request).unwrap();
    ReviewResponse::from_responses(&review, evaluation.responses(), failure_policy)
}

#[test]
fn enforced_failures_deny() {
    let policies = policy("z-labels", "Enforce", "'label: missing'")
        + &policy("audited", "Audit", "unseen")
        + &policy("a-labels", "Enforce", "a label");
    let response = answer(&policies, FailurePolicy::Fail);
    assert_eq!(
        response.message(),
        "\n\nresource Pod/default/nginx was blocked due to the following policies \n\n\
         a-labels:\n  check-label: 'validation error: a label. rule check-label failed at path \
         /metadata/labels/'\n\
         z-labels:\n  check-label: 'validation error: label: missing. rule check-label failed \
         at path /metadata/labels/'\n"
    );
    assert!(!response.is_allowed());
    assert!(response.to_json().starts_with(
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"\n\nresource Pod/"#
    ));
}

#[test]
fn audited_failures_are_silent() {
    let response = answer(&policy("audited", "Audit", "unseen"), FailurePolicy::Fail);
    let expected = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1","allowed":true}}"#;
    assert_eq!(response.to_json(), expected);
}

#[test]
fn errors_deny_or_warn() {
    let denied = answer(&erroneous("broken"), FailurePolicy::Fail);
    assert!(
        denied.message().contains("broken:\n  fails: "),
        "{denied:?}"
    );
    let allowed = answer(&erroneous("broken"), FailurePolicy::Ignore);
    assert!(allowed.is_allowed());
    let [warning] = allowed.warnings() else {
        panic!("{allowed:?}");
    };
    assert!(warning.starts_with("policy broken.fails: "), "{warning}");
    let json = allowed.to_json();
    assert!(
        json.contains(r#""allowed":true,"warnings":["policy broken.fails: "#),
        "{json}"
    );
}

#[test]
fn policies_of_cel_have_their_own_words() {
    let validating = "
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: by-cel}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: 'false', message: never}]
";
    let response = answer(validating, FailurePolicy::Fail);
    assert_eq!(response.message(), "Policy by-cel failed: never");
    let admission = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: native}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: 'false', message: never}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: native, validationActions: [Deny]}
";
    let response = answer(admission, FailurePolicy::Fail);
    assert_eq!(
        response.message(),
        "ValidatingAdmissionPolicy 'native' with binding 'everywhere' denied request: never"
    );
}
