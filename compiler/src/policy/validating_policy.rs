//! `ValidatingPolicy` and `NamespacedValidatingPolicy` of policies.kyverno.io, and the
//! `PolicyException` of that group: a tree in, the typed document out
//! (docs/spec/cel.md §6.1 and 6.5).

use kpvm_syntax::tree::{Tree, TreeValue};

use super::match_resources::MatchResources;
use super::model::Spanned;
use super::read::{bool_of, field, items, spanned_text, text_map, text_of, texts};
use super::schema;
use super::validate::selectors;
use super::validating_autogen;
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Location, SourceId};

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

/// Reads a policy; `None` when there was an error, which is then among the diagnostics.
pub fn read_validating_policy(
    tree: &Tree,
    source: SourceId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ValidatingPolicy> {
    let before = diagnostics.len();
    schema::check(tree, &schema::VALIDATING_POLICY, source, false, diagnostics);
    let nothing = Tree::new(TreeValue::Null, tree.span);
    let metadata = field(tree, "metadata").unwrap_or(&nothing);
    let spec = field(tree, "spec").unwrap_or(&nothing);
    let inside = |parent: &str, key: &str| field(spec, parent).and_then(|tree| field(tree, key));
    let mode = inside("evaluation", "mode");
    let policy = ValidatingPolicy {
        is_namespaced: text_of(tree, "kind") == "NamespacedValidatingPolicy",
        api_version: text_of(tree, "apiVersion"),
        name: spanned_text(metadata, "name"),
        namespace: text_of(metadata, "namespace"),
        annotations: text_map(metadata, "annotations").unwrap_or_default(),
        spec: ValidatingSpec::read(spec),
        actions: texts(spec, "validationActions"),
        controllers: inside("autogen", "podControllers")
            .filter(|controllers| field(controllers, "controllers").is_some())
            .map(|controllers| texts(controllers, "controllers")),
        mode: match mode.and_then(Tree::as_str) {
            Some("JSON") => Mode::Json,
            _ => Mode::Kubernetes,
        },
        background: inside("evaluation", "background")
            .is_none_or(|background| bool_of(background, "enabled", true)),
        admits: inside("evaluation", "admission")
            .is_none_or(|admission| bool_of(admission, "enabled", true)),
        becomes_admission_policy: inside("autogen", "validatingAdmissionPolicy")
            .is_some_and(|generated| bool_of(generated, "enabled", false)),
        source,
        tree: tree.clone(),
    };
    let mut refuse = |code, message: String, span, hint: &str| {
        let location = Location { source, span };
        diagnostics.push(Diagnostic::error(code, message, location).hint(hint));
    };
    if policy.name.value.is_empty() {
        let message = "the policy has no name".to_owned();
        refuse("no-name", message, tree.span, "write `metadata: {name: …}`");
    }
    if let Some(mode) = mode.filter(|mode| matches!(mode.as_str(), Some("HTTP" | "Envoy"))) {
        let shown = mode.as_str().unwrap_or_default();
        let message = format!("the evaluation mode {shown} is not supported yet");
        let hint = "it is about requests of other servers; leave such policies out with --skip-unsupported";
        refuse("unsupported", message, mode.span, hint);
    }
    let controllers = inside("autogen", "podControllers");
    let controllers = controllers.map_or(&[][..], |controllers| items(controllers, "controllers"));
    if let Some(other) = validating_autogen::other_controller(&policy, controllers) {
        let shown = other.as_str().unwrap_or_default();
        let message = format!("controllers of pods like `{shown}` are not supported yet");
        let hint = "Kyverno looks for pod templates in any object of that resource; without the \
            entry the policy is about the built-in controllers";
        refuse("unsupported", message, other.span, hint);
    }
    if let Some(constraints) = &policy.spec.constraints {
        let selectors = [
            &constraints.namespace_selector,
            &constraints.object_selector,
        ];
        for selector in selectors.into_iter().flatten() {
            if let Some(problem) = selectors::problem(selector) {
                let hint = "Kubernetes refuses such a selector";
                refuse("selector", problem, selector.span, hint);
            }
        }
    }
    let found = diagnostics.get_mut(before..).unwrap_or_default();
    for diagnostic in &mut *found {
        diagnostic.subject = Some(policy.name.value.clone());
    }
    let failed = found.iter().any(|one| one.severity == Severity::Error);
    (!failed).then_some(policy)
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

/// Reads an exception; `None` when there was an error, which is then among the
/// diagnostics.
pub fn read_cel_exception(
    tree: &Tree,
    source: SourceId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<CelException> {
    let before = diagnostics.len();
    schema::check(tree, &schema::CEL_EXCEPTION, source, false, diagnostics);
    let nothing = Tree::new(TreeValue::Null, tree.span);
    let metadata = field(tree, "metadata").unwrap_or(&nothing);
    let spec = field(tree, "spec").unwrap_or(&nothing);
    let priority = field(metadata, "labels")
        .map(|labels| text_of(labels, "polex.kyverno.io/priority"))
        .and_then(|text| text.strip_prefix('+').unwrap_or(&text).parse().ok());
    let policy_ref = |tree: &Tree| PolicyRef {
        kind: text_of(tree, "kind"),
        name: spanned_text(tree, "name"),
    };
    let exception = CelException {
        name: spanned_text(metadata, "name"),
        namespace: text_of(metadata, "namespace"),
        policies: items(spec, "policyRefs").iter().map(policy_ref).collect(),
        conditions: items(spec, "matchConditions").to_vec(),
        images: texts(spec, "images"),
        values: texts(spec, "allowedValues"),
        reports_pass: text_of(spec, "reportResult") == "pass",
        priority: priority.unwrap_or(0),
        source,
        tree: tree.clone(),
    };
    let found = diagnostics.get_mut(before..).unwrap_or_default();
    for diagnostic in &mut *found {
        diagnostic.subject = Some(exception.key());
    }
    let failed = found.iter().any(|one| one.severity == Severity::Error);
    (!failed).then_some(exception)
}
