//! `MatchResources` of admission policies: `matchConstraints` of Kyverno's CEL policies
//! and of ValidatingAdmissionPolicies, `matchResources` of their bindings
//! (docs/spec/cel.md §6.1).

use kpvm_syntax::tree::Tree;

use super::model::{LabelRequirement, LabelSelector};
use super::read::{field, items, label_selector, text_of, texts};

/// Requests that a policy applies to.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchResources {
    /// `resourceRules`: if there are any, one of them must match.
    pub resource_rules: Vec<ResourceRule>,
    /// `excludeResourceRules`: none of them may match.
    pub exclude_resource_rules: Vec<ResourceRule>,
    /// `namespaceSelector`; absent if it has no requirements.
    pub namespace_selector: Option<LabelSelector>,
    /// `objectSelector`; absent if it has no requirements.
    pub object_selector: Option<LabelSelector>,
    /// As written.
    pub tree: Tree,
}

/// One of `resourceRules` and `excludeResourceRules`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourceRule {
    /// `apiGroups`: names (empty for the core group) or `*`.
    pub api_groups: Vec<String>,
    /// `apiVersions`: versions, or `*`.
    pub api_versions: Vec<String>,
    /// `operations`: those of Kubernetes, or `*`.
    pub operations: Vec<String>,
    /// `resources`: `pods`, `pods/log`, `pods/*`, `*/log`, `*`, `*/*`.
    pub resources: Vec<String>,
    /// `resourceNames`; empty for all.
    pub resource_names: Vec<String>,
    /// `scope`: `Namespaced`, `Cluster`; any other value is no restriction.
    pub scope: String,
}

impl MatchResources {
    /// Reads the fields that have the right types.
    pub fn read(tree: &Tree) -> Self {
        let rules = |key| items(tree, key).iter().map(ResourceRule::read).collect();
        let selector = |key| {
            let selector = field(tree, key).map(label_selector)?;
            Some(plain(selector)).filter(|selector| !selector.match_expressions.is_empty())
        };
        Self {
            resource_rules: rules("resourceRules"),
            exclude_resource_rules: rules("excludeResourceRules"),
            namespace_selector: selector("namespaceSelector"),
            object_selector: selector("objectSelector"),
            tree: tree.clone(),
        }
    }

    /// Whether responses without results are dropped because the constraints are plain
    /// (docs/spec/cli.md §3.1).
    pub fn is_plain(&self) -> bool {
        let [rule] = self.resource_rules.as_slice() else {
            return false;
        };
        rule.resource_names.is_empty()
            && self.exclude_resource_rules.is_empty()
            && self.namespace_selector.is_none()
            && self.object_selector.is_none()
    }
}

impl ResourceRule {
    fn read(tree: &Tree) -> Self {
        Self {
            api_groups: texts(tree, "apiGroups"),
            api_versions: texts(tree, "apiVersions"),
            operations: texts(tree, "operations"),
            resources: texts(tree, "resources"),
            resource_names: texts(tree, "resourceNames"),
            scope: text_of(tree, "scope"),
        }
    }
}

/// Turns `matchLabels` into requirements: this is Kubernetes' selector, in which `*` in a
/// value is not a wildcard.
fn plain(selector: LabelSelector) -> LabelSelector {
    let of_label = |(key, value): (String, String)| LabelRequirement {
        key,
        operator: "In".to_owned(),
        values: vec![value],
    };
    let labels = selector.match_labels.into_iter().map(of_label);
    LabelSelector {
        match_labels: Vec::new(),
        match_expressions: labels.chain(selector.match_expressions).collect(),
        span: selector.span,
    }
}
