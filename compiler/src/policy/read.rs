//! Reads a document: a tree with locations becomes a typed [`Policy`] or
//! [`PolicyException`].
//!
//! All schema violations are reported, not only the first, and nothing is returned then.
//! The meaning of fields is not checked here; see [`super::validate`].

use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};

use super::condition::AnyAll;
use super::model::{
    ApplyRules, CoveredRules, FailureActionOverride, Filter, LabelRequirement, LabelSelector,
    MatchBlock, Policy, PolicyException, PolicyKind, ResourceDescription, Rule, Spanned, Subject,
    Validate,
};
use super::schema;
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Location, SourceId};

/// Kind of a document (docs/spec/policies.md §1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentKind {
    /// A policy that [`read_policy`] reads.
    Policy(PolicyKind),
    /// A `ValidatingPolicy` or `NamespacedValidatingPolicy`, which
    /// [`super::validating_policy`] reads.
    ValidatingPolicy,
    /// A `ValidatingAdmissionPolicy`, which [`super::admission_policy`] reads.
    AdmissionPolicy,
    /// A `ValidatingAdmissionPolicyBinding`, likewise.
    AdmissionBinding,
    /// A `PolicyException` that [`read_exception`] reads.
    PolicyException,
    /// A `PolicyException` for CEL policies, which [`super::validating_policy`] reads.
    CelException,
    /// Any other object, with its `apiVersion` and `kind`.
    Other {
        /// `apiVersion`, empty if absent.
        api_version: String,
        /// `kind`, empty if absent.
        kind: String,
    },
    /// Not a map, so not a Kubernetes object.
    NotAnObject,
}

/// Determines the kind of a document from `apiVersion` and `kind`.
pub fn document_kind(tree: &Tree) -> DocumentKind {
    if tree.as_map().is_none() {
        return DocumentKind::NotAnObject;
    }
    let text = |key| tree.get(key).and_then(Tree::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        ("kyverno.io/v1" | "kyverno.io/v2beta1", "ClusterPolicy") => {
            DocumentKind::Policy(PolicyKind::ClusterPolicy)
        }
        ("kyverno.io/v1" | "kyverno.io/v2beta1", "Policy") => {
            DocumentKind::Policy(PolicyKind::Policy)
        }
        ("kyverno.io/v2" | "kyverno.io/v2beta1", "PolicyException") => {
            DocumentKind::PolicyException
        }
        (
            "admissionregistration.k8s.io/v1"
            | "admissionregistration.k8s.io/v1beta1"
            | "admissionregistration.k8s.io/v1alpha1",
            kind @ ("ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding"),
        ) => match kind.strip_suffix("Binding") {
            None => DocumentKind::AdmissionPolicy,
            Some(_) => DocumentKind::AdmissionBinding,
        },
        (api_version, kind) => match (api_version.strip_prefix("policies.kyverno.io/"), kind) {
            (Some("v1" | "v1beta1" | "v1alpha1"), "ValidatingPolicy")
            | (Some("v1" | "v1beta1"), "NamespacedValidatingPolicy") => {
                DocumentKind::ValidatingPolicy
            }
            (Some("v1" | "v1beta1" | "v1alpha1"), "PolicyException") => DocumentKind::CelException,
            _ => DocumentKind::Other {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
            },
        },
    }
}

/// Reads a `ClusterPolicy` or `Policy` of kyverno.io v1 or v2beta1.
///
/// Returns `None` after an error, which is reported in the diagnostics.
pub fn read_policy(
    tree: &Tree,
    source: SourceId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Policy> {
    let kind = match document_kind(tree) {
        DocumentKind::Policy(kind) => kind,
        other => {
            diagnostics.push(unexpected(&other, &A_POLICY, tree, source));
            return None;
        }
    };
    let api_version = text_of(tree, "apiVersion");
    let before = diagnostics.len();
    let v2beta1 = api_version == "kyverno.io/v2beta1";
    schema::check(tree, &schema::POLICY, source, v2beta1, diagnostics);
    let mut policy = typed_policy(tree, kind, api_version, source);
    let found = diagnostics.get_mut(before..).unwrap_or_default();
    for diagnostic in &mut *found {
        diagnostic.subject = Some(subject_at(&policy, diagnostic.location.span));
    }
    if found.iter().any(|one| one.severity == Severity::Error) {
        return None;
    }
    // v2beta1 lacks the field, and without it the engine's default applies.
    for validate in policy
        .rules
        .iter_mut()
        .filter_map(|rule| rule.validate.as_mut())
    {
        validate.allow_existing_violations |= v2beta1;
    }
    Some(policy)
}

/// Reads a `PolicyException` of kyverno.io v2 or v2beta1.
///
/// Returns `None` after an error, which is reported in the diagnostics.
pub fn read_exception(
    tree: &Tree,
    source: SourceId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<PolicyException> {
    let kind = document_kind(tree);
    if kind != DocumentKind::PolicyException {
        diagnostics.push(unexpected(&kind, &AN_EXCEPTION, tree, source));
        return None;
    }
    let before = diagnostics.len();
    schema::check(tree, &schema::EXCEPTION, source, false, diagnostics);
    let exception = typed_exception(tree, source);
    let found = diagnostics.get_mut(before..).unwrap_or_default();
    for diagnostic in &mut *found {
        diagnostic.subject = Some(exception.key());
    }
    let failed = found.iter().any(|one| one.severity == Severity::Error);
    (!failed).then_some(exception)
}

/// Expected kind of document, in words.
struct Expected {
    code: &'static str,
    what: &'static str,
    label: &'static str,
    hint: &'static str,
}

const A_POLICY: Expected = Expected {
    code: "not-a-policy",
    what: "a ClusterPolicy or Policy of kyverno.io/v1",
    label: "not a Kyverno policy",
    hint: "supported are apiVersion kyverno.io/v1 and kyverno.io/v2beta1, ValidatingPolicy of policies.kyverno.io, and ValidatingAdmissionPolicy of admissionregistration.k8s.io",
};

const AN_EXCEPTION: Expected = Expected {
    code: "not-an-exception",
    what: "a PolicyException of kyverno.io/v2",
    label: "not an exception of Kyverno",
    hint: "supported are apiVersion kyverno.io/v2 and kyverno.io/v2beta1",
};

fn unexpected(
    found: &DocumentKind,
    expected: &Expected,
    tree: &Tree,
    source: SourceId,
) -> Diagnostic {
    let found = match found {
        DocumentKind::Policy(PolicyKind::ClusterPolicy) => "a ClusterPolicy".to_owned(),
        DocumentKind::Policy(PolicyKind::Policy) => "a Policy".to_owned(),
        DocumentKind::ValidatingPolicy => "a ValidatingPolicy".to_owned(),
        DocumentKind::AdmissionPolicy => "a ValidatingAdmissionPolicy".to_owned(),
        DocumentKind::AdmissionBinding => "a ValidatingAdmissionPolicyBinding".to_owned(),
        DocumentKind::PolicyException | DocumentKind::CelException => {
            "a PolicyException".to_owned()
        }
        DocumentKind::Other { api_version, kind } if kind.is_empty() => {
            format!("an object of apiVersion {api_version:?} without a kind")
        }
        DocumentKind::Other { api_version, kind } => format!("{api_version} {kind}"),
        DocumentKind::NotAnObject => tree.describe().to_owned(),
    };
    let location = Location {
        source,
        span: tree.get("kind").map_or(tree.span, |kind| kind.span),
    };
    let message = format!("expected {}, found {found}", expected.what);
    Diagnostic::error(expected.code, message, location)
        .label(expected.label)
        .hint(expected.hint)
}

fn typed_exception(tree: &Tree, source: SourceId) -> PolicyException {
    let nothing = Tree::new(TreeValue::Null, tree.span);
    let metadata = field(tree, "metadata").unwrap_or(&nothing);
    let spec = field(tree, "spec").unwrap_or(&nothing);
    let covered = |tree: &Tree| CoveredRules {
        policy: spanned_text(tree, "policyName"),
        rules: items(tree, "ruleNames").iter().map(spanned).collect(),
    };
    PolicyException {
        name: spanned_text(metadata, "name"),
        namespace: text_of(metadata, "namespace"),
        background: bool_of(spec, "background", true),
        match_block: field(spec, "match")
            .map(match_block)
            .unwrap_or_else(|| MatchBlock {
                span: spec.span,
                ..MatchBlock::default()
            }),
        conditions: field(spec, "conditions").and_then(|tree| AnyAll::read(tree).ok()),
        covered: items(spec, "exceptions").iter().map(covered).collect(),
        pod_security: items(spec, "podSecurity").to_vec(),
        source,
        tree: tree.clone(),
    }
}

/// `policy` or `policy/rule` at a location.
fn subject_at(policy: &Policy, span: Span) -> String {
    let inside =
        |rule: &&Rule| rule.tree.span.start <= span.start && span.end <= rule.tree.span.end;
    match policy.rules.iter().find(inside) {
        Some(rule) => format!("{}/{}", policy.name.value, rule.name.value),
        None => policy.name.value.clone(),
    }
}

fn typed_policy(tree: &Tree, kind: PolicyKind, api_version: String, source: SourceId) -> Policy {
    let nothing = Tree::new(TreeValue::Null, tree.span);
    let metadata = field(tree, "metadata").unwrap_or(&nothing);
    let spec = field(tree, "spec").unwrap_or(&nothing);
    let webhook = field(spec, "webhookConfiguration").unwrap_or(&nothing);
    Policy {
        kind,
        api_version,
        name: spanned_text(metadata, "name"),
        namespace: optional_text(metadata, "namespace"),
        annotations: text_map(metadata, "annotations").unwrap_or_default(),
        apply_rules: match text_of(spec, "applyRules").as_str() {
            "One" => ApplyRules::One,
            _ => ApplyRules::All,
        },
        admission: bool_of(spec, "admission", true),
        background: bool_of(spec, "background", true),
        failure_action: optional_text(spec, "validationFailureAction"),
        failure_action_overrides: overrides(spec, "validationFailureActionOverrides"),
        failure_policy: optional_text(webhook, "failurePolicy")
            .or_else(|| optional_text(spec, "failurePolicy")),
        match_conditions: field(webhook, "matchConditions").cloned(),
        rules: items(spec, "rules").iter().map(read_rule).collect(),
        source,
        tree: tree.clone(),
    }
}

/// Typed form of a rule that conforms to the schema.
pub(super) fn read_rule(tree: &Tree) -> Rule {
    let raw = |key| field(tree, key).cloned();
    Rule {
        name: spanned_text(tree, "name"),
        match_block: field(tree, "match")
            .map(match_block)
            .unwrap_or_else(|| MatchBlock {
                span: tree.span,
                ..MatchBlock::default()
            }),
        exclude_block: field(tree, "exclude").map(match_block),
        context: items(tree, "context").to_vec(),
        preconditions: raw("preconditions"),
        cel_preconditions: raw("celPreconditions"),
        report_properties: members(tree, "reportProperties")
            .iter()
            .map(|member| (member.key.to_string(), spanned(&member.value)))
            .collect(),
        validate: field(tree, "validate").map(validate),
        mutate: raw("mutate"),
        generate: raw("generate"),
        verify_images: raw("verifyImages"),
        image_extractors: raw("imageExtractors"),
        tree: tree.clone(),
    }
}

fn validate(tree: &Tree) -> Validate {
    let raw = |key| field(tree, key).cloned();
    Validate {
        message: field(tree, "message").map(spanned),
        pattern: raw("pattern"),
        any_pattern: raw("anyPattern"),
        deny: raw("deny"),
        foreach: raw("foreach"),
        pod_security: raw("podSecurity"),
        cel: raw("cel"),
        assert: raw("assert"),
        manifests: raw("manifests"),
        failure_action: optional_text(tree, "failureAction"),
        failure_action_overrides: overrides(tree, "failureActionOverrides"),
        allow_existing_violations: bool_of(tree, "allowExistingViolations", true),
        span: tree.span,
    }
}

pub(super) fn match_block(tree: &Tree) -> MatchBlock {
    let filters = |key| {
        let list = field(tree, key)?.as_list()?;
        Some(list.iter().map(filter).collect())
    };
    MatchBlock {
        any: filters("any"),
        all: filters("all"),
        direct: filter(tree),
        span: tree.span,
    }
}

fn filter(tree: &Tree) -> Filter {
    Filter {
        resources: field(tree, "resources").map(resources).unwrap_or_default(),
        roles: optional_texts(tree, "roles"),
        cluster_roles: optional_texts(tree, "clusterRoles"),
        subjects: field(tree, "subjects")
            .and_then(Tree::as_list)
            .map(|subjects| subjects.iter().map(subject).collect()),
        span: tree.span,
    }
}

fn resources(tree: &Tree) -> ResourceDescription {
    ResourceDescription {
        kinds: items(tree, "kinds").iter().map(spanned).collect(),
        name: text_of(tree, "name"),
        names: texts(tree, "names"),
        namespaces: texts(tree, "namespaces"),
        annotations: text_map(tree, "annotations"),
        selector: field(tree, "selector").map(label_selector),
        namespace_selector: field(tree, "namespaceSelector").map(label_selector),
        operations: texts(tree, "operations"),
    }
}

fn subject(tree: &Tree) -> Subject {
    Subject {
        kind: text_of(tree, "kind"),
        name: text_of(tree, "name"),
        namespace: text_of(tree, "namespace"),
    }
}

pub(super) fn label_selector(tree: &Tree) -> LabelSelector {
    LabelSelector {
        match_labels: text_map(tree, "matchLabels").unwrap_or_default(),
        match_expressions: items(tree, "matchExpressions")
            .iter()
            .map(|tree| LabelRequirement {
                key: text_of(tree, "key"),
                operator: text_of(tree, "operator"),
                values: texts(tree, "values"),
            })
            .collect(),
        span: tree.span,
    }
}

fn overrides(tree: &Tree, key: &str) -> Vec<FailureActionOverride> {
    items(tree, key)
        .iter()
        .map(|tree| FailureActionOverride {
            action: text_of(tree, "action"),
            namespaces: optional_texts(tree, "namespaces"),
            namespace_selector: field(tree, "namespaceSelector").map(label_selector),
        })
        .collect()
}

/// Value of a field; null counts as absent, as in Kyverno's decoder.
pub(crate) fn field<'a>(tree: &'a Tree, key: &str) -> Option<&'a Tree> {
    tree.get(key).filter(|value| !value.is_null())
}

/// Items of a list field; empty if absent.
pub(crate) fn items<'a>(tree: &'a Tree, key: &str) -> &'a [Tree] {
    field(tree, key).and_then(Tree::as_list).unwrap_or_default()
}

fn members<'a>(tree: &'a Tree, key: &str) -> &'a [Member] {
    field(tree, key).and_then(Tree::as_map).unwrap_or_default()
}

/// Text of a field; empty if absent.
pub(crate) fn text_of(tree: &Tree, key: &str) -> String {
    optional_text(tree, key).unwrap_or_default()
}

fn optional_text(tree: &Tree, key: &str) -> Option<String> {
    field(tree, key).and_then(Tree::as_str).map(str::to_owned)
}

fn spanned(tree: &Tree) -> Spanned<String> {
    Spanned {
        value: tree.as_str().unwrap_or_default().to_owned(),
        span: tree.span,
    }
}

pub(super) fn spanned_text(tree: &Tree, key: &str) -> Spanned<String> {
    field(tree, key).map(spanned).unwrap_or_else(|| Spanned {
        value: String::new(),
        span: tree.span,
    })
}

/// A boolean field.
pub(crate) fn bool_of(tree: &Tree, key: &str, default: bool) -> bool {
    match tree.get(key).map(|tree| &tree.value) {
        Some(TreeValue::Bool(value)) => *value,
        _ => default,
    }
}

/// Kyverno's decoder turns a null item into an empty text.
pub(super) fn texts(tree: &Tree, key: &str) -> Vec<String> {
    optional_texts(tree, key).unwrap_or_default()
}

fn optional_texts(tree: &Tree, key: &str) -> Option<Vec<String>> {
    let list = field(tree, key)?.as_list()?;
    Some(list.iter().map(|item| spanned(item).value).collect())
}

pub(super) fn text_map(tree: &Tree, key: &str) -> Option<Vec<(String, String)>> {
    let members = field(tree, key)?.as_map()?;
    Some(
        members
            .iter()
            .map(|member| (member.key.to_string(), spanned(&member.value).value))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::test_tree::tree;

    fn policy_with(rule: Value) -> Value {
        json!({
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "p"},
            "spec": {"rules": [rule]},
        })
    }

    fn read(value: &Value) -> (Option<Policy>, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let policy = read_policy(&tree(value), SourceId(0), &mut diagnostics);
        (policy, diagnostics)
    }

    #[test]
    fn every_error_is_reported_with_a_hint() {
        let (policy, diagnostics) = read(&policy_with(json!({
            "name": "r",
            "match": {"any": [{"resources": {"kind": ["Pod"]}}]},
            "validate": {"message": 5, "paterns": {}},
        })));
        assert!(policy.is_none());
        let found: Vec<_> = diagnostics
            .iter()
            .map(|one| (one.code, one.message.as_str(), one.hint.as_deref().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                (
                    "unknown-field",
                    "unknown field `kind` in `spec.rules[0].match.any[0].resources`",
                    "did you mean `kinds`?"
                ),
                (
                    "wrong-type",
                    "expected text at `spec.rules[0].validate.message`, found a number",
                    "write text here"
                ),
                (
                    "unknown-field",
                    "unknown field `paterns` in `spec.rules[0].validate`",
                    "did you mean `pattern`?"
                ),
            ]
        );
    }

    #[test]
    fn documents_say_what_they_are() {
        let cases = [
            (
                json!({"apiVersion": "kyverno.io/v1", "kind": "Policy"}),
                DocumentKind::Policy(PolicyKind::Policy),
            ),
            (
                json!({"apiVersion": "kyverno.io/v2", "kind": "PolicyException"}),
                DocumentKind::PolicyException,
            ),
            (
                json!({"apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException"}),
                DocumentKind::CelException,
            ),
            (
                json!({"apiVersion": "policies.kyverno.io/v1beta1", "kind": "NamespacedValidatingPolicy"}),
                DocumentKind::ValidatingPolicy,
            ),
            (
                json!({"apiVersion": "policies.kyverno.io/v1", "kind": "MutatingPolicy"}),
                DocumentKind::Other {
                    api_version: "policies.kyverno.io/v1".into(),
                    kind: "MutatingPolicy".into(),
                },
            ),
            (json!([]), DocumentKind::NotAnObject),
        ];
        for (value, expected) in cases {
            assert_eq!(document_kind(&tree(&value)), expected, "{value}");
        }
    }

    #[test]
    fn v2beta1_has_the_narrower_schema() {
        let mut value = policy_with(json!({
            "name": "r",
            "match": {"resources": {"kinds": ["Pod"]}},
            "preconditions": [],
            "validate": {"allowExistingViolations": false, "pattern": {}},
        }));
        assert!(read(&value).0.is_some());
        value["apiVersion"] = json!("kyverno.io/v2beta1");
        let codes: Vec<_> = read(&value).1.iter().map(|one| one.code).collect();
        assert_eq!(codes, ["not-in-v2beta1"; 3]);
    }

    #[test]
    fn null_is_absent_and_an_explicit_empty_list_is_not() {
        let (policy, diagnostics) = read(&policy_with(json!({
            "name": "r",
            "match": {"any": [{"subjects": [], "roles": null}], "all": null},
            "validate": {"pattern": null, "anyPattern": []},
        })));
        assert_eq!(diagnostics, []);
        let rule = policy.unwrap().rules.remove(0);
        let filter = &rule.match_block.any.as_ref().unwrap()[0];
        assert_eq!((&filter.subjects, &filter.roles), (&Some(vec![]), &None));
        assert_eq!(rule.match_block.all, None);
        let validate = rule.validate.unwrap();
        assert!(validate.pattern.is_none() && validate.any_pattern.is_some());
    }
}
