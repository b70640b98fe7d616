//! Reads Kubernetes' `ValidatingAdmissionPolicy` and `ValidatingAdmissionPolicyBinding`
//! into typed documents (docs/spec/cel.md §5).

use kpvm_syntax::tree::{Tree, TreeValue};

use super::match_resources::MatchResources;
use super::model::Spanned;
use super::read::{field, items, spanned_text, text_map, text_of, texts};
use super::schema::{self, Shape};
use super::validate::selectors;
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Location, SourceId};

/// One policy document, with the bindings that name it.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionPolicy {
    /// `admissionregistration.k8s.io/v1`, `v1beta1` or `v1alpha1`.
    pub api_version: String,
    /// `metadata.name`.
    pub name: Spanned<String>,
    /// `metadata.annotations`, in the order of the text.
    pub annotations: Vec<(String, String)>,
    /// `spec.matchConstraints`; without them nothing matches.
    pub constraints: Option<MatchResources>,
    /// `spec.matchConditions`, unparsed.
    pub conditions: Vec<Tree>,
    /// `spec.variables`.
    pub variables: Vec<Tree>,
    /// `spec.validations`.
    pub validations: Vec<Tree>,
    /// `spec.auditAnnotations`.
    pub audit_annotations: Vec<Tree>,
    /// `spec.paramKind`.
    pub param_kind: Option<Tree>,
    /// `failurePolicy: Ignore`: whether an error of a match condition counts as false.
    pub ignores_failure: bool,
    /// Bindings of the policy, in input order.
    pub bindings: Vec<AdmissionBinding>,
    /// The file.
    pub source: SourceId,
    /// The whole document.
    pub tree: Tree,
}

/// One binding.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionBinding {
    /// `metadata.name`.
    pub name: Spanned<String>,
    /// `spec.policyName`.
    pub policy: Spanned<String>,
    /// `spec.matchResources`; without them everything matches.
    pub matching: Option<MatchResources>,
    /// `spec.paramRef`.
    pub param_ref: Option<Tree>,
    /// `spec.validationActions`.
    pub actions: Vec<String>,
    /// The file.
    pub source: SourceId,
}

/// Reads a policy; `None` after an error, which is reported in the diagnostics.
pub fn read_admission_policy(
    tree: &Tree,
    source: SourceId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<AdmissionPolicy> {
    let mut checker = Checker::new(tree, source, diagnostics);
    checker.check(&schema::ADMISSION_POLICY);
    let nothing = Tree::new(TreeValue::Null, tree.span);
    let spec = field(tree, "spec").unwrap_or(&nothing);
    let metadata = field(tree, "metadata").unwrap_or(&nothing);
    let constraints = field(spec, "matchConstraints").map(MatchResources::read);
    checker.check_selectors(constraints.as_ref());
    let name = checker.finish()?;
    let list = |key: &str| items(spec, key).to_vec();
    Some(AdmissionPolicy {
        api_version: text_of(tree, "apiVersion"),
        name,
        annotations: text_map(metadata, "annotations").unwrap_or_default(),
        constraints,
        conditions: list("matchConditions"),
        variables: list("variables"),
        validations: list("validations"),
        audit_annotations: list("auditAnnotations"),
        param_kind: field(spec, "paramKind").cloned(),
        ignores_failure: text_of(spec, "failurePolicy") == "Ignore",
        bindings: Vec::new(),
        source,
        tree: tree.clone(),
    })
}

/// Reads a binding; `None` after an error, which is reported in the diagnostics.
pub fn read_admission_binding(
    tree: &Tree,
    source: SourceId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<AdmissionBinding> {
    let mut checker = Checker::new(tree, source, diagnostics);
    checker.check(&schema::ADMISSION_BINDING);
    let nothing = Tree::new(TreeValue::Null, tree.span);
    let spec = field(tree, "spec").unwrap_or(&nothing);
    let matching = field(spec, "matchResources").map(MatchResources::read);
    checker.check_selectors(matching.as_ref());
    let name = checker.finish()?;
    Some(AdmissionBinding {
        name,
        policy: spanned_text(spec, "policyName"),
        matching,
        param_ref: field(spec, "paramRef").cloned(),
        actions: texts(spec, "validationActions"),
        source,
    })
}

/// Reports errors of a document.
struct Checker<'c> {
    tree: &'c Tree,
    source: SourceId,
    diagnostics: &'c mut Vec<Diagnostic>,
    before: usize,
}

impl<'c> Checker<'c> {
    fn new(tree: &'c Tree, source: SourceId, diagnostics: &'c mut Vec<Diagnostic>) -> Self {
        Self {
            before: diagnostics.len(),
            tree,
            source,
            diagnostics,
        }
    }

    fn check(&mut self, shape: &Shape) {
        schema::check(self.tree, shape, self.source, false, self.diagnostics);
    }

    fn check_selectors(&mut self, matching: Option<&MatchResources>) {
        let selectors = matching.map(|all| [&all.namespace_selector, &all.object_selector]);
        for selector in selectors.into_iter().flatten().flatten() {
            if let Some(problem) = selectors::problem(selector) {
                let location = Location {
                    source: self.source,
                    span: selector.span,
                };
                let error = Diagnostic::error("selector", problem, location);
                self.diagnostics
                    .push(error.hint("Kubernetes refuses such a selector"));
            }
        }
    }

    /// Name of the document, if it has no errors.
    fn finish(self) -> Option<Spanned<String>> {
        let nothing = Tree::new(TreeValue::Null, self.tree.span);
        let metadata = field(self.tree, "metadata").unwrap_or(&nothing);
        let name = spanned_text(metadata, "name");
        if name.value.is_empty() {
            let location = Location {
                source: self.source,
                span: self.tree.span,
            };
            let error = Diagnostic::error("no-name", "the document has no name", location);
            self.diagnostics
                .push(error.hint("write `metadata: {name: …}`"));
        }
        let found = self.diagnostics.get_mut(self.before..).unwrap_or_default();
        for diagnostic in &mut *found {
            diagnostic.subject = Some(name.value.clone());
        }
        let failed = found.iter().any(|one| one.severity == Severity::Error);
        (!failed).then_some(name)
    }
}
