//! Reads policies and exceptions of policies.kyverno.io into typed documents
//! (docs/spec/cel.md §6.1 and §6.5).

use kpvm_syntax::tree::{Tree, TreeValue};

use super::read::{bool_of, field, items, spanned_text, text_map, text_of, texts};
use super::schema;
use super::validate::selectors;
use super::validating_autogen;
use super::validating_policy::{CelException, Mode, PolicyRef, ValidatingPolicy, ValidatingSpec};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Location, SourceId};

/// Reads a policy; `None` after an error, which is reported in the diagnostics.
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

/// Reads an exception; `None` after an error, which is reported in the diagnostics.
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
