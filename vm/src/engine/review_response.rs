//! The answer to an AdmissionReview, as Kyverno's webhook gives it (docs/spec/cli.md §12).

use std::collections::BTreeMap;

use kpvm_format::table::BodyKind;
use kpvm_semantics::go_yaml;
use kpvm_semantics::quote::append_json;

use super::response::{RuleResponse, Status};
use super::review::Review;

/// What a rule's error does to the request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FailurePolicy {
    /// It denies the request.
    #[default]
    Fail,
    /// It becomes a warning.
    Ignore,
}

/// The response of an AdmissionReview.
///
/// ```
/// use kpvm::engine::ReviewResponse;
///
/// let response = ReviewResponse::denied("705ab4f5", "no").with_code(403);
/// assert_eq!(
///     response.to_json(),
///     concat!(
///         r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"#,
///         r#""uid":"705ab4f5","allowed":false,"#,
///         r#""status":{"metadata":{},"status":"Failure","message":"no","code":403}}}"#,
///     )
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewResponse {
    uid: String,
    /// Message of a denied request.
    denial: Option<String>,
    code: Option<u16>,
    warnings: Vec<String>,
    audit_annotations: BTreeMap<String, String>,
}

impl ReviewResponse {
    /// Allows the request of the review with this identifier.
    pub fn allowed(uid: impl Into<String>) -> Self {
        Self {
            uid: uid.into(),
            denial: None,
            code: None,
            warnings: Vec::new(),
            audit_annotations: BTreeMap::new(),
        }
    }

    /// Denies the request of the review with this identifier. The API server prefixes the
    /// message with the name of the webhook.
    pub fn denied(uid: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            denial: Some(message.into()),
            ..Self::allowed(uid)
        }
    }

    /// The answer that follows from the responses of rules. Enforced failures deny the
    /// request, and so do errors under [`FailurePolicy::Fail`]; other errors become
    /// warnings.
    ///
    /// Of an [`Evaluation`](super::Evaluation) pass all responses, and the message names
    /// every rule that denies the request; of a [`Decision`](super::Decision) pass the one
    /// that refuses it. Rules of different kinds of policies never share a message, because
    /// Kyverno has a webhook for each kind: the first kind that denies determines the
    /// message.
    pub fn from_responses<'s>(
        review: &Review<'_>,
        responses: impl IntoIterator<Item = RuleResponse<'s>>,
        failure_policy: FailurePolicy,
    ) -> Self {
        let mut denying = Vec::new();
        let mut warnings = Vec::new();
        for response in responses {
            match response.status() {
                Status::Fail if response.is_enforced() => denying.push(response),
                Status::Error if failure_policy == FailurePolicy::Fail => denying.push(response),
                Status::Error => warnings.push(warning(&response)),
                Status::Fail | Status::Pass | Status::Skip => {}
            }
        }
        let Some(first) = denying.first() else {
            return Self {
                warnings,
                ..Self::allowed(review.uid)
            };
        };
        let kind = PolicyKind::of(first);
        denying.retain(|response| PolicyKind::of(response) == kind);
        let message = match kind {
            PolicyKind::Kyverno => blocked_message(review, &denying),
            PolicyKind::Validating => texts_of_validating(&denying),
            PolicyKind::Admission => text_of_admission(&denying),
        };
        Self::denied(review.uid, message)
    }

    /// Adds an HTTP status code to a denial. Without one, as from Kyverno, the API server
    /// reports 400.
    #[must_use]
    pub fn with_code(mut self, code: u16) -> Self {
        self.code = Some(code);
        self
    }

    /// Adds a warning, which the API server passes on to the client.
    #[must_use]
    pub fn with_warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds an annotation to the request's entry in the audit log.
    #[must_use]
    pub fn with_audit_annotation(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }

    /// Whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none()
    }

    /// The message of a denial; empty if the request is allowed.
    pub fn message(&self) -> &str {
        self.denial.as_deref().unwrap_or("")
    }

    /// Warnings for the client.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The AdmissionReview that carries the response, as JSON text for the content type
    /// `application/json`. The request is not repeated: the API server does not read it.
    pub fn to_json(&self) -> String {
        let mut out = String::from(
            r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"#,
        );
        append_json(&self.uid, &mut out);
        out.push_str(match &self.denial {
            None => r#","allowed":true"#,
            Some(_) => r#","allowed":false"#,
        });
        if let Some(message) = &self.denial {
            out.push_str(r#","status":{"metadata":{},"status":"Failure""#);
            if !message.is_empty() {
                out.push_str(r#","message":"#);
                append_json(message, &mut out);
            }
            if let Some(code) = self.code {
                out.push_str(&format!(r#","code":{code}"#));
            }
            out.push('}');
        }
        for (index, (key, value)) in self.audit_annotations.iter().enumerate() {
            out.push_str(if index == 0 {
                r#","auditAnnotations":{"#
            } else {
                ","
            });
            append_json(key, &mut out);
            out.push(':');
            append_json(value, &mut out);
        }
        if !self.audit_annotations.is_empty() {
            out.push('}');
        }
        for (index, warning) in self.warnings.iter().enumerate() {
            out.push_str(if index == 0 { r#","warnings":["# } else { "," });
            append_json(warning, &mut out);
        }
        if !self.warnings.is_empty() {
            out.push(']');
        }
        out.push_str("}}");
        out
    }
}

/// Policies that Kubernetes or Kyverno evaluates in different places, each with its own message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyKind {
    /// `ClusterPolicy` and `Policy`.
    Kyverno,
    /// `ValidatingPolicy` and its namespaced form.
    Validating,
    /// `ValidatingAdmissionPolicy`.
    Admission,
}

impl PolicyKind {
    fn of(response: &RuleResponse<'_>) -> Self {
        match response.body() {
            Some(BodyKind::Validations) => Self::Validating,
            Some(BodyKind::AdmissionPolicy) => Self::Admission,
            _ => Self::Kyverno,
        }
    }
}

fn warning(response: &RuleResponse<'_>) -> String {
    let (policy, message) = (response.policy(), response.message());
    match PolicyKind::of(response) {
        PolicyKind::Kyverno => format!("policy {policy}.{}: {message}", response.rule()),
        PolicyKind::Validating => text_of_validating(response),
        PolicyKind::Admission => format!(
            "Validation failed for ValidatingAdmissionPolicy '{policy}'{}: {message}",
            with_binding(response)
        ),
    }
}

/// The resource, and the messages as YAML by policy and rule (docs/spec/cli.md §12.2).
fn blocked_message(review: &Review<'_>, responses: &[RuleResponse<'_>]) -> String {
    let mut policies: BTreeMap<&str, (usize, BTreeMap<&str, String>)> = BTreeMap::new();
    for response in responses {
        let index = response.policy_index();
        let (owner, rules) = policies.entry(response.policy()).or_default();
        // Of policies with the same name in different namespaces the last one is shown.
        if *owner != index {
            rules.clear();
        }
        *owner = index;
        rules.insert(response.rule(), response.message().into_owned());
    }
    let kind = review.kind.kind;
    // The request for a Namespace has its name as namespace; the object has none.
    let namespace = if kind == "Namespace" {
        ""
    } else {
        review.namespace
    };
    let mut out = format!(
        "\n\nresource {kind}/{namespace}/{} was blocked due to the following policies \n\n",
        review.name
    );
    for (policy, (_, rules)) in policies {
        go_yaml::append_key(policy, &mut out);
        out.push_str(":\n");
        for (rule, message) in rules {
            out.push_str("  ");
            go_yaml::append_key(rule, &mut out);
            out.push_str(": ");
            go_yaml::append_value(&message, 4, &mut out);
            out.push('\n');
        }
    }
    out
}

/// docs/spec/cli.md §12.4.
fn texts_of_validating(responses: &[RuleResponse<'_>]) -> String {
    let texts: Vec<String> = responses.iter().map(text_of_validating).collect();
    texts.join("; ")
}

fn text_of_validating(response: &RuleResponse<'_>) -> String {
    let word = match response.status() {
        Status::Error => "error",
        Status::Fail | Status::Pass | Status::Skip => "failed",
    };
    format!(
        "Policy {} {word}: {}",
        response.policy(),
        response.message()
    )
}

/// The API server names only the first policy that denies.
fn text_of_admission(responses: &[RuleResponse<'_>]) -> String {
    let text = |response: &RuleResponse<'_>| {
        format!(
            "ValidatingAdmissionPolicy '{}'{} denied request: {}",
            response.policy(),
            with_binding(response),
            response.message()
        )
    };
    responses.first().map(text).unwrap_or_default()
}

fn with_binding(response: &RuleResponse<'_>) -> String {
    let mut properties = response.properties();
    let binding = properties.find(|(key, _)| *key == "binding");
    binding.map_or_else(String::new, |(_, name)| format!(" with binding '{name}'"))
}
