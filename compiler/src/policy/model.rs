//! The typed policy model: `ClusterPolicy` and `Policy` of kyverno.io v1 and
//! v2beta1, `PolicyException` of v2 and v2beta1, every spelling of a field brought to
//! one form.
//!
//! After reading, nobody checks again whether a rule has a name. Free-form parts
//! (patterns, condition values, ...) stay [`Tree`]s with their places.

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
    /// `spec.validationFailureAction` as written; anything but `Enforce`/`enforce` is audit.
    pub failure_action: Option<String>,
    /// `spec.validationFailureActionOverrides`.
    pub failure_action_overrides: Vec<FailureActionOverride>,
    /// `spec.failurePolicy` or `spec.webhookConfiguration.failurePolicy`.
    pub failure_policy: Option<String>,
    /// `spec.webhookConfiguration.matchConditions`, not read further yet.
    pub match_conditions: Option<Tree>,
    /// The written rules.
    pub rules: Vec<Rule>,
    /// The file.
    pub source: SourceId,
    /// The whole document as read.
    pub tree: Tree,
}

impl Policy {
    /// Makes `validate.assert` a part that is read over, as since Kyverno 1.19
    /// (docs/spec/assert.md §1); the trees stay as read.
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

/// How many rules of a policy give a result (docs/spec/policies.md §7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApplyRules {
    /// All of them.
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
    /// The whole rule as read.
    pub tree: Tree,
}

/// `match` or `exclude` (docs/spec/policies.md §5.1).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MatchBlock {
    /// `any`; `None` when absent, which an explicit empty list is not.
    pub any: Option<Vec<Filter>>,
    /// `all`.
    pub all: Option<Vec<Filter>>,
    /// The deprecated direct form.
    pub direct: Filter,
    /// Where the block stands.
    pub span: Span,
}

/// One resource filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    /// `resources`.
    pub resources: ResourceDescription,
    /// `roles`; `None` when absent, which an explicit empty list is not.
    pub roles: Option<Vec<String>>,
    /// `clusterRoles`.
    pub cluster_roles: Option<Vec<String>>,
    /// `subjects`.
    pub subjects: Option<Vec<Subject>>,
    /// Where the filter stands.
    pub span: Span,
}

/// `resources` of a filter; empty lists and empty texts mean absent.
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
    /// `annotations`; an explicit `{}` is not absent (autogen looks at that).
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
    /// Where the selector stands.
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
    /// `assert`; `None` too where it is to be ignored.
    pub assert: Option<Tree>,
    /// `manifests`
    pub manifests: Option<Tree>,
    /// `failureAction`
    pub failure_action: Option<String>,
    /// `failureActionOverrides`
    pub failure_action_overrides: Vec<FailureActionOverride>,
    /// `allowExistingViolations`, default true.
    pub allow_existing_violations: bool,
    /// Where it stands.
    pub span: Span,
}

/// One entry of `failureActionOverrides` (docs/spec/policies.md §11.2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FailureActionOverride {
    /// `action`, unchecked.
    pub action: String,
    /// `namespaces`; an explicit empty list never matches, so it is not absent.
    pub namespaces: Option<Vec<String>>,
    /// `namespaceSelector`
    pub namespace_selector: Option<LabelSelector>,
}

/// One `PolicyException` (docs/spec/policies.md §9).
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyException {
    /// `metadata.name`.
    pub name: Spanned<String>,
    /// `metadata.namespace`, empty when absent.
    pub namespace: String,
    /// `spec.background`, default true; forbids user information and no more.
    pub background: bool,
    /// `spec.match`; only `any` and `all` count.
    pub match_block: MatchBlock,
    /// `spec.conditions`.
    pub conditions: Option<AnyAll>,
    /// `spec.exceptions`.
    pub covered: Vec<CoveredRules>,
    /// `spec.podSecurity`, each entry as read.
    pub pod_security: Vec<Tree>,
    /// The file.
    pub source: SourceId,
    /// The whole document as read.
    pub tree: Tree,
}

impl PolicyException {
    /// How people name it: `namespace/name`, or its name alone.
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
    /// `ruleNames`: wildcards over the names of rules, generated ones included.
    pub rules: Vec<Spanned<String>>,
}
