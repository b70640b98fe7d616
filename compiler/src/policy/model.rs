//! The typed policy model: `ClusterPolicy` and `Policy` of kyverno.io v1 and v2beta1,
//! `PolicyException` of v2 and v2beta1, with every spelling of a field normalised.
//!
//! After reading, nobody checks again whether a rule has a name. Free-form parts (patterns,
//! condition values, ...) stay [`Tree`]s with their locations.

use kpvm_syntax::tree::{Span, Tree};

use super::condition::AnyAll;
pub use super::spanned::Spanned;
use crate::source::SourceId;

/// One policy document.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// `ClusterPolicy` or `Policy`.
    pub kind: PolicyKind,
    /// `kyverno.io/v1` or `kyverno.io/v2beta1`.
    pub api_version: String,
    /// `metadata.name`.
    pub name: Spanned<String>,
    /// `metadata.namespace` as written.
    pub namespace: Option<String>,
    /// `metadata.annotations`, in the order of the text.
    pub annotations: Vec<(String, String)>,
    /// `spec.applyRules`.
    pub apply_rules: ApplyRules,
    /// `spec.admission`, default true.
    pub admission: bool,
    /// `spec.background`, default true.
    pub background: bool,
    /// `spec.validationFailureAction` as written; any value but `Enforce`/ `enforce` is
    /// audit.
    pub failure_action: Option<String>,
    /// `spec.validationFailureActionOverrides`.
    pub failure_action_overrides: Vec<FailureActionOverride>,
    /// `spec.failurePolicy` or `spec.webhookConfiguration.failurePolicy`.
    pub failure_policy: Option<String>,
    /// `spec.webhookConfiguration.matchConditions`, unparsed.
    pub match_conditions: Option<Tree>,
    /// The written rules.
    pub rules: Vec<Rule>,
    /// The file.
    pub source: SourceId,
    /// The whole document.
    pub tree: Tree,
}

impl Policy {
    /// Removes `validate.assert`, which has no effect since Kyverno 1.19
    /// (docs/spec/assert.md §1); the trees are unchanged.
    pub fn ignore_assert(&mut self) {
        let bodies = self
            .rules
            .iter_mut()
            .filter_map(|rule| rule.validate.as_mut());
        bodies.for_each(|validate| validate.assert = None);
    }
}

/// Scope of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// Applies to the whole cluster.
    ClusterPolicy,
    /// Applies to its own namespace.
    Policy,
}

/// How many rules of a policy produce a result (docs/spec/policies.md §7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApplyRules {
    /// All rules.
    #[default]
    All,
    /// Stop after the first pass or fail.
    One,
}

/// One rule, written or generated.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Unique in its policy.
    pub name: Spanned<String>,
    /// `match`.
    pub match_block: MatchBlock,
    /// `exclude`.
    pub exclude_block: Option<MatchBlock>,
    /// `context`, each entry as read.
    pub context: Vec<Tree>,
    /// `preconditions`.
    pub preconditions: Option<Tree>,
    /// `celPreconditions`.
    pub cel_preconditions: Option<Tree>,
    /// `reportProperties`.
    pub report_properties: Vec<(String, Spanned<String>)>,
    /// `validate`.
    pub validate: Option<Validate>,
    /// `mutate`, as read.
    pub mutate: Option<Tree>,
    /// `generate`, as read.
    pub generate: Option<Tree>,
    /// `verifyImages`, as read.
    pub verify_images: Option<Tree>,
    /// `imageExtractors`, as read.
    pub image_extractors: Option<Tree>,
    /// The whole rule.
    pub tree: Tree,
}

/// `match` or `exclude` (docs/spec/policies.md §5.1).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MatchBlock {
    /// `any`; `None` if absent, unlike an explicit empty list.
    pub any: Option<Vec<Filter>>,
    /// `all`.
    pub all: Option<Vec<Filter>>,
    /// The deprecated direct form.
    pub direct: Filter,
    /// Location of the block.
    pub span: Span,
}

/// One resource filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    /// `resources`.
    pub resources: ResourceDescription,
    /// `roles`; `None` if absent, unlike an explicit empty list.
    pub roles: Option<Vec<String>>,
    /// `clusterRoles`.
    pub cluster_roles: Option<Vec<String>>,
    /// `subjects`.
    pub subjects: Option<Vec<Subject>>,
    /// Location of the filter.
    pub span: Span,
}

/// `resources` of a filter; empty lists and texts mean absent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourceDescription {
    /// `kinds`
    pub kinds: Vec<Spanned<String>>,
    /// `name`
    pub name: String,
    /// `names`
    pub names: Vec<String>,
    /// `namespaces`
    pub namespaces: Vec<String>,
    /// `annotations`; an explicit `{}` is not absent (autogen distinguishes them).
    pub annotations: Option<Vec<(String, String)>>,
    /// `selector`
    pub selector: Option<LabelSelector>,
    /// `namespaceSelector`
    pub namespace_selector: Option<LabelSelector>,
    /// `operations`
    pub operations: Vec<String>,
}

/// A Kubernetes label selector as written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LabelSelector {
    /// `matchLabels`, in the order of the text.
    pub match_labels: Vec<(String, String)>,
    /// `matchExpressions`.
    pub match_expressions: Vec<LabelRequirement>,
    /// Location of the selector.
    pub span: Span,
}

/// One of `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LabelRequirement {
    /// `key`
    pub key: String,
    /// `operator`, unchecked.
    pub operator: String,
    /// `values`
    pub values: Vec<String>,
}

/// One of `subjects`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Subject {
    /// `kind`, unchecked.
    pub kind: String,
    /// `name`
    pub name: String,
    /// `namespace`
    pub namespace: String,
}

/// `validate` of a rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Validate {
    /// `message`
    pub message: Option<Spanned<String>>,
    /// `pattern`; `null` counts as absent.
    pub pattern: Option<Tree>,
    /// `anyPattern`; `null` counts as absent.
    pub any_pattern: Option<Tree>,
    /// `deny`
    pub deny: Option<Tree>,
    /// `foreach`
    pub foreach: Option<Tree>,
    /// `podSecurity`
    pub pod_security: Option<Tree>,
    /// `cel`
    pub cel: Option<Tree>,
    /// `assert`; also `None` if assertions are ignored.
    pub assert: Option<Tree>,
    /// `manifests`
    pub manifests: Option<Tree>,
    /// `failureAction`
    pub failure_action: Option<String>,
    /// `failureActionOverrides`
    pub failure_action_overrides: Vec<FailureActionOverride>,
    /// `allowExistingViolations`, default true.
    pub allow_existing_violations: bool,
    /// Location.
    pub span: Span,
}

/// One entry of `failureActionOverrides` (docs/spec/policies.md §11.2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FailureActionOverride {
    /// `action`, unchecked.
    pub action: String,
    /// `namespaces`; an explicit empty list never matches, unlike an absent one.
    pub namespaces: Option<Vec<String>>,
    /// `namespaceSelector`
    pub namespace_selector: Option<LabelSelector>,
}

/// One `PolicyException` (docs/spec/policies.md §9).
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyException {
    /// `metadata.name`.
    pub name: Spanned<String>,
    /// `metadata.namespace`, empty if absent.
    pub namespace: String,
    /// `spec.background`, default true; only restricts the use of user information.
    pub background: bool,
    /// `spec.match`; only `any` and `all` count.
    pub match_block: MatchBlock,
    /// `spec.conditions`.
    pub conditions: Option<AnyAll>,
    /// `spec.exceptions`.
    pub covered: Vec<CoveredRules>,
    /// `spec.podSecurity`, entries as read.
    pub pod_security: Vec<Tree>,
    /// The file.
    pub source: SourceId,
    /// The whole document.
    pub tree: Tree,
}

impl PolicyException {
    /// Display name: `namespace/name`, or only the name.
    pub fn key(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.value.clone(),
            namespace => format!("{namespace}/{}", self.name.value),
        }
    }
}

/// One of `spec.exceptions`: rules of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct CoveredRules {
    /// `policyName`: `name`, or `namespace/name` of a `Policy`; not a wildcard.
    pub policy: Spanned<String>,
    /// `ruleNames`: wildcards over rule names, including generated ones.
    pub rules: Vec<Spanned<String>>,
}
