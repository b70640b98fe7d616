//! Autogen of ValidatingPolicies: derives policies for controllers from a policy for Pods
//! (docs/spec/cel.md §6.4).
//!
//! Unlike for ClusterPolicies, this is purely textual: every `object.spec` and
//! `object.metadata`, also in messages, is replaced by the path of the template.

use kpvm_syntax::tree::{Tree, TreeValue};

use super::match_resources::{MatchResources, ResourceRule};
use super::validating_policy::{Mode, ValidatingPolicy, ValidatingSpec};

/// One variant that a policy is evaluated as.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Content of the variant.
    pub spec: ValidatingSpec,
    /// Whether autogen made it.
    pub is_generated: bool,
}

impl Variant {
    /// Whether it produces no response, not even an empty one, for objects it does not
    /// match (docs/spec/cli.md §3.1).
    pub fn is_plain(&self) -> bool {
        let constraints = self.spec.constraints.as_ref();
        constraints.is_some_and(MatchResources::is_plain)
    }
}

/// Group, resource and the path of the pod template.
const CONTROLLERS: [(&str, &str); 6] = [
    ("batch", "cronjobs"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
];

/// Variants of a policy: itself, then those for cron jobs and for the other controllers.
/// Kyverno evaluates the last two in random order.
pub fn variants(policy: &ValidatingPolicy) -> Vec<Variant> {
    let mut variants = vec![Variant {
        spec: policy.spec.clone(),
        is_generated: false,
    }];
    let Some(constraints) = policy.spec.constraints.as_ref() else {
        return variants;
    };
    if policy.mode != Mode::Kubernetes || !is_about_pods(constraints) {
        return variants;
    }
    let is_wanted = |resource: &str| {
        let controllers = policy.controllers.as_ref();
        controllers.is_none_or(|wanted| wanted.iter().any(|one| one == resource))
    };
    let wanted: Vec<(&str, &str)> = CONTROLLERS
        .into_iter()
        .filter(|(_, resource)| is_wanted(resource))
        .collect();
    let (cron, others): (Vec<_>, Vec<_>) = wanted
        .into_iter()
        .partition(|(_, resource)| *resource == "cronjobs");
    for (targets, path) in [
        (cron, "spec.jobTemplate.spec.template"),
        (others, "spec.template"),
    ] {
        if !targets.is_empty() {
            variants.push(Variant {
                spec: generate(&policy.spec, constraints, &targets, path),
                is_generated: true,
            });
        }
    }
    variants
}

/// First of these controllers that is not built in but has the form
/// `resource.version.group`: Kyverno (`pkg/cel/autogen`) searches the objects of that
/// resource for pod templates. Other unknown names are ignored, as in Kyverno.
pub(super) fn other_controller<'t>(
    policy: &ValidatingPolicy,
    controllers: &'t [Tree],
) -> Option<&'t Tree> {
    let constraints = policy.spec.constraints.as_ref();
    let has_variants = policy.mode == Mode::Kubernetes && constraints.is_some_and(is_about_pods);
    let names_resource = |controller: &&Tree| {
        let mut parts = controller.as_str().unwrap_or_default().splitn(3, '.');
        (0..3).all(|_| parts.next().is_some_and(|part| !part.is_empty()))
    };
    has_variants.then(|| controllers.iter().find(names_resource))?
}

fn is_about_pods(constraints: &MatchResources) -> bool {
    let is_only = |list: &[String], text: &str| matches!(list, [only] if only == text);
    let [rule] = constraints.resource_rules.as_slice() else {
        return false;
    };
    is_only(&rule.api_groups, "")
        && is_only(&rule.api_versions, "v1")
        && is_only(&rule.resources, "pods")
        && rule.resource_names.is_empty()
        && constraints.exclude_resource_rules.is_empty()
        && constraints.object_selector.is_none()
}

fn generate(
    spec: &ValidatingSpec,
    constraints: &MatchResources,
    targets: &[(&str, &str)],
    path: &str,
) -> ValidatingSpec {
    let operations = constraints.resource_rules.first();
    let operations = operations.map_or(&[][..], |rule| &rule.operations);
    let rule = |group: &str| {
        let of_group = targets.iter().filter(|(known, _)| *known == group);
        ResourceRule {
            api_groups: vec![group.to_owned()],
            api_versions: vec!["v1".to_owned()],
            operations: operations.to_vec(),
            resources: of_group
                .map(|(_, resource)| (*resource).to_owned())
                .collect(),
            ..ResourceRule::default()
        }
    };
    let rules = ["apps", "batch"].map(rule).into_iter();
    let matching = MatchResources {
        resource_rules: rules.filter(|rule| !rule.resources.is_empty()).collect(),
        ..constraints.clone()
    };
    let all = |trees: &[Tree]| -> Vec<Tree> {
        trees.iter().map(|tree| rewrite_tree(tree, path)).collect()
    };
    ValidatingSpec {
        // Without operations Kyverno creates no constraints, so nothing matches.
        constraints: (!operations.is_empty()).then_some(matching),
        conditions: all(&spec.conditions),
        variables: all(&spec.variables),
        validations: all(&spec.validations),
        annotations: all(&spec.annotations),
        ignores_failure: spec.ignores_failure,
    }
}

/// Rewrites every text. Recursion depth: that of a document, which its reader limits.
fn rewrite_tree(tree: &Tree, path: &str) -> Tree {
    let value = match &tree.value {
        TreeValue::String(text) => TreeValue::String(rewrite(text, path).into()),
        TreeValue::List(items) => {
            TreeValue::List(items.iter().map(|item| rewrite_tree(item, path)).collect())
        }
        TreeValue::Map(members) => {
            let mut members = members.clone();
            for member in &mut members {
                member.value = rewrite_tree(&member.value, path);
            }
            TreeValue::Map(members)
        }
        other => other.clone(),
    };
    Tree::new(value, tree.span)
}

fn rewrite(text: &str, path: &str) -> String {
    ["spec", "metadata"]
        .into_iter()
        .flat_map(|part| ["object", "oldObject"].map(|object| (object, part)))
        .fold(text.to_owned(), |text, (object, part)| {
            let from = format!("{object}.{part}");
            let to = format!("{object}.{path}.{part}");
            let mut rewritten = String::with_capacity(text.len());
            let mut rest = text.as_str();
            while let Some((before, behind)) = rest.split_once(from.as_str()) {
                rewritten.push_str(before);
                let stays = is_namespace(behind);
                rewritten.push_str(if stays { &from } else { &to });
                rest = behind;
            }
            rewritten + rest
        })
}

/// Whether the next segment is `namespace`, which a template lacks.
fn is_namespace(behind: &str) -> bool {
    let rest = behind.strip_prefix(".namespace");
    let next = rest.map(|rest| rest.chars().next());
    next.is_some_and(|next| next.is_none_or(|next| !next.is_alphanumeric() && next != '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/spec/cel.md §6.4 and §8, case 50.
    #[test]
    fn texts_are_rewritten() {
        for (text, expected) in [
            ("object.spec.containers", "object.T.spec.containers"),
            (
                "oldObject.metadata.name == object.metadata.name",
                "oldObject.T.metadata.name == object.T.metadata.name",
            ),
            (
                "object.metadata.namespace == 'x'",
                "object.metadata.namespace == 'x'",
            ),
            ("object.metadata.namespaces", "object.T.metadata.namespaces"),
            ("object.?spec.containers", "object.?spec.containers"),
            ("request.object.spec.x", "request.object.T.spec.x"),
            ("object['spec']", "object['spec']"),
        ] {
            assert_eq!(rewrite(text, "T"), expected, "{text}");
        }
    }
}
