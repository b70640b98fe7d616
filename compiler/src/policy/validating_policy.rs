//! `ValidatingPolicy` and `NamespacedValidatingPolicy` of policies.kyverno.io, and the
//! `PolicyException` of that group (docs/spec/cel.md §6.1 and 6.5).

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
    /// `metadata.namespace`; empty when absent.
    pub namespace: String,
    /// `metadata.annotations`, in the order of the text.
    pub annotations: Vec<(String, String)>,
    /// What the requests are held against; those that autogen makes of it are others.
    pub spec: ValidatingSpec,
    /// `spec.validationActions`; without any a failure is denied.
    pub actions: Vec<String>,
    /// `spec.autogen.podControllers.controllers`; an empty list turns autogen off.
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
    /// The whole document as read.
    pub tree: Tree,
}

/// What a policy looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Objects of Kubernetes.
    Kubernetes,
    /// Any JSON.
    Json,
}

/// The part of a policy that autogen rewrites.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatingSpec {
    /// `matchConstraints`; without them nothing is matched.
    pub constraints: Option<MatchResources>,
    /// `matchConditions`.
    pub conditions: Vec<Tree>,
    /// `variables`.
    pub variables: Vec<Tree>,
    /// `validations`.
    pub validations: Vec<Tree>,
    /// `auditAnnotations`.
    pub annotations: Vec<Tree>,
    /// Whether an error of a match condition means that it does not hold:
    /// `failurePolicy: Ignore`.
    pub ignores_failure: bool,
}

impl ValidatingPolicy {
    /// The namespace of a namespaced policy.
    pub fn own_namespace(&self) -> Option<&str> {
        let namespace = match self.namespace.as_str() {
            "" => "default",
            namespace => namespace,
        };
        self.is_namespaced.then_some(namespace)
    }

    /// `spec.webhookConfiguration.timeoutSeconds`.
    pub fn timeout(&self) -> Option<i64> {
        let webhook = field(field(&self.tree, "spec")?, "webhookConfiguration")?;
        match field(webhook, "timeoutSeconds")?.value {
            TreeValue::Int(seconds) => Some(seconds),
            _ => None,
        }
    }

    /// Whether only the versions that it names are sent: `matchPolicy: Exact`.
    pub fn is_exact(&self) -> bool {
        let constraints = self.spec.constraints.as_ref();
        constraints.is_some_and(|constraints| text_of(&constraints.tree, "matchPolicy") == "Exact")
    }

    /// Whether a failure refuses a request.
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
    /// `metadata.namespace`, empty when absent.
    pub namespace: String,
    /// `spec.policyRefs`: the policies by kind and name.
    pub policies: Vec<PolicyRef>,
    /// `spec.matchConditions`.
    pub conditions: Vec<Tree>,
    /// `spec.images`.
    pub images: Vec<String>,
    /// `spec.allowedValues`.
    pub values: Vec<String>,
    /// Whether `spec.reportResult` is `pass`; else it is `skip`.
    pub reports_pass: bool,
    /// The label `polex.kyverno.io/priority` if it is a positive number, else 0.
    pub priority: u32,
    /// The file.
    pub source: SourceId,
    /// The whole document as read.
    pub tree: Tree,
}

/// A policy as an exception names it.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRef {
    /// `kind`
    pub kind: String,
    /// `name`
    pub name: Spanned<String>,
}

impl CelException {
    /// How people name it: `namespace/name`, or its name alone.
    pub fn key(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.value.clone(),
            namespace => format!("{namespace}/{}", self.name.value),
        }
    }

    /// Whether it exempts from the whole policy rather than allowing images or values.
    pub fn is_whole(&self) -> bool {
        self.images.is_empty() && self.values.is_empty()
    }
}
