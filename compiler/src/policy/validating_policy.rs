//! `ValidatingPolicy` and `NamespacedValidatingPolicy` of policies.kyverno.io, and the
//! `PolicyException` of that group (docs/spec/cel.md §6.1 and §6.5).

use kpvm_syntax::tree::{Tree, TreeValue};

use super::match_resources::MatchResources;
use super::model::Spanned;
use super::read::{field, items, text_of};
use crate::source::SourceId;

/// One policy document.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatingPolicy {
    /// Whether it is a `NamespacedValidatingPolicy`.
    pub is_namespaced: bool,
    /// `policies.kyverno.io/v1`, `v1beta1` or `v1alpha1`.
    pub api_version: String,
    /// `metadata.name`.
    pub name: Spanned<String>,
    /// `metadata.namespace`; empty if absent.
    pub namespace: String,
    /// `metadata.annotations`, in the order of the text.
    pub annotations: Vec<(String, String)>,
    /// The part that autogen rewrites.
    pub spec: ValidatingSpec,
    /// `spec.validationActions`; the default is to deny.
    pub actions: Vec<String>,
    /// `spec.autogen.podControllers.controllers`; an empty list disables autogen.
    pub controllers: Option<Vec<String>>,
    /// `spec.evaluation.mode`.
    pub mode: Mode,
    /// `spec.evaluation.background.enabled`, default true.
    pub background: bool,
    /// `spec.evaluation.admission.enabled`, default true.
    pub admits: bool,
    /// `spec.autogen.validatingAdmissionPolicy.enabled`, default false.
    pub becomes_admission_policy: bool,
    /// The file.
    pub source: SourceId,
    /// The whole document.
    pub tree: Tree,
}

/// What a policy evaluates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Kubernetes objects.
    Kubernetes,
    /// Any JSON.
    Json,
}

/// The part of a policy that autogen rewrites.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatingSpec {
    /// `matchConstraints`; without them nothing matches.
    pub constraints: Option<MatchResources>,
    /// `matchConditions`.
    pub conditions: Vec<Tree>,
    /// `variables`.
    pub variables: Vec<Tree>,
    /// `validations`.
    pub validations: Vec<Tree>,
    /// `auditAnnotations`.
    pub annotations: Vec<Tree>,
    /// `failurePolicy: Ignore`: whether an error of a match condition counts as false.
    pub ignores_failure: bool,
}

impl ValidatingPolicy {
    /// Namespace of a namespaced policy. Without one it is about the whole cluster: only an
    /// API server adds it.
    pub fn own_namespace(&self) -> Option<&str> {
        let is_written = self.is_namespaced && !self.namespace.is_empty();
        is_written.then_some(self.namespace.as_str())
    }

    /// `spec.webhookConfiguration.timeoutSeconds`.
    pub fn timeout(&self) -> Option<i64> {
        let webhook = field(field(&self.tree, "spec")?, "webhookConfiguration")?;
        match field(webhook, "timeoutSeconds")?.value {
            TreeValue::Int(seconds) => Some(seconds),
            _ => None,
        }
    }

    /// `matchPolicy: Exact`: whether only the listed versions match.
    pub fn is_exact(&self) -> bool {
        let constraints = self.spec.constraints.as_ref();
        constraints.is_some_and(|constraints| text_of(&constraints.tree, "matchPolicy") == "Exact")
    }

    /// Whether a failure denies the request.
    pub fn denies(&self) -> bool {
        self.actions.is_empty() || self.actions.iter().any(|action| action == "Deny")
    }
}

impl ValidatingSpec {
    pub(super) fn read(tree: &Tree) -> Self {
        Self {
            constraints: field(tree, "matchConstraints").map(MatchResources::read),
            conditions: items(tree, "matchConditions").to_vec(),
            variables: items(tree, "variables").to_vec(),
            validations: items(tree, "validations").to_vec(),
            annotations: items(tree, "auditAnnotations").to_vec(),
            ignores_failure: text_of(tree, "failurePolicy") == "Ignore",
        }
    }
}

/// One `PolicyException` of policies.kyverno.io.
#[derive(Debug, Clone, PartialEq)]
pub struct CelException {
    /// `metadata.name`.
    pub name: Spanned<String>,
    /// `metadata.namespace`, empty if absent.
    pub namespace: String,
    /// `spec.policyRefs`: policies by kind and name.
    pub policies: Vec<PolicyRef>,
    /// `spec.matchConditions`.
    pub conditions: Vec<Tree>,
    /// `spec.images`.
    pub images: Vec<String>,
    /// `spec.allowedValues`.
    pub values: Vec<String>,
    /// Whether `spec.reportResult` is `pass`; otherwise it is `skip`.
    pub reports_pass: bool,
    /// Label `polex.kyverno.io/priority` if it is a positive number, otherwise 0.
    pub priority: u32,
    /// The file.
    pub source: SourceId,
    /// The whole document.
    pub tree: Tree,
}

/// Reference to a policy in an exception.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRef {
    /// `kind`
    pub kind: String,
    /// `name`
    pub name: Spanned<String>,
}

impl CelException {
    /// Display name: `namespace/name`, or only the name.
    pub fn key(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.value.clone(),
            namespace => format!("{namespace}/{}", self.name.value),
        }
    }

    /// Whether it exempts objects from the whole policy instead of allowing images or
    /// values.
    pub fn is_whole(&self) -> bool {
        self.images.is_empty() && self.values.is_empty()
    }
}
