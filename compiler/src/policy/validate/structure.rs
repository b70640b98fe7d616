//! Structural checks of the written policy (docs/spec/policies.md §2.1 rows 1, 8 and 9,
//! and section 2.2).

use std::collections::HashSet;

use kpvm_syntax::tree::{Span, Tree, TreeValue};

use super::conflicts;
use super::selectors;
use super::{Bodies, Report, pod_security};
use crate::policy::autogen::autogen_annotation;
use crate::policy::model::{Filter, MatchBlock, Policy, PolicyKind, Rule};
use crate::policy::read::{field, items};

pub(super) fn check(policy: &Policy, report: &mut Report<'_>) {
    check_metadata(policy, report);
    if let Some(spec) = field(&policy.tree, "spec") {
        check_spec(policy, spec, report);
    }
    let mut names: HashSet<&str> = HashSet::new();
    for rule in &policy.rules {
        report.enter_rule(rule);
        if !names.insert(&rule.name.value) {
            let message = format!("there is already a rule named {:?}", rule.name.value);
            report.error(
                "duplicate-rule-name",
                rule.name.span,
                message,
                "rename one of them",
            );
        }
        check_rule(policy, rule, report);
    }
    report.leave_rule();
}

fn check_metadata(policy: &Policy, report: &mut Report<'_>) {
    if policy.name.value.len() > 63 {
        let message = format!(
            "a policy name has at most 63 bytes, this one has {}",
            policy.name.value.len()
        );
        report.error(
            "policy-name-too-long",
            policy.name.span,
            message,
            "shorten the name",
        );
    }
    let has_namespace = policy
        .namespace
        .as_ref()
        .is_some_and(|name| !name.is_empty());
    if policy.kind == PolicyKind::ClusterPolicy && has_namespace {
        report.error(
            "cluster-policy-namespace",
            span_at(&policy.tree, &["metadata", "namespace"]),
            "a ClusterPolicy has no namespace",
            "remove metadata.namespace, or make it a Policy",
        );
    }
    if autogen_annotation(policy) == Some("all") {
        report.error(
            "autogen-all",
            span_at(&policy.tree, &["metadata", "annotations"]),
            "the autogen annotation no longer takes the value `all`",
            "remove the annotation: without it, all controllers are generated",
        );
    }
}

fn check_spec(policy: &Policy, spec: &Tree, report: &mut Report<'_>) {
    let webhook = field(spec, "webhookConfiguration");
    let both = [
        ("webhookTimeoutSeconds", "timeoutSeconds"),
        ("failurePolicy", "failurePolicy"),
    ];
    for (old, new) in both {
        let new_is_set = webhook.is_some_and(|webhook| field(webhook, new).is_some());
        if let Some(value) = field(spec, old).filter(|_| new_is_set) {
            let message = format!("spec.{old} and spec.webhookConfiguration.{new} are both set");
            report.error(
                "deprecated-field",
                value.span,
                message,
                "remove the deprecated one",
            );
        }
    }
    if let Some(value) = field(spec, "generateExistingOnPolicyUpdate") {
        report.error(
            "deprecated-field",
            value.span,
            "spec.generateExistingOnPolicyUpdate is no longer accepted",
            "use generateExisting inside the generate rule",
        );
    }
    let timeouts = [
        field(spec, "webhookTimeoutSeconds"),
        webhook.and_then(|webhook| field(webhook, "timeoutSeconds")),
    ];
    for timeout in timeouts.into_iter().flatten() {
        if !matches!(timeout.value, TreeValue::Int(1..=30)) {
            report.error(
                "webhook-timeout",
                timeout.span,
                "the webhook timeout is between 1 and 30 seconds",
                "use a value from 1 to 30",
            );
        }
    }
    if policy.kind == PolicyKind::Policy && !policy.failure_action_overrides.is_empty() {
        report.error(
            "overrides-in-namespaced-policy",
            span_at(spec, &["validationFailureActionOverrides"]),
            "only a ClusterPolicy may override the failure action per namespace",
            "remove the overrides, or make it a ClusterPolicy",
        );
    }
    check_processing(policy, spec, report);
}

fn check_processing(policy: &Policy, spec: &Tree, report: &mut Report<'_>) {
    if policy.admission {
        return;
    }
    let span = span_at(spec, &["admission"]);
    if !policy.background {
        report.error(
            "never-processed",
            span,
            "with neither admission nor background processing the policy never runs",
            "enable one of spec.admission and spec.background",
        );
    }
    let only_validates = |rule: &Rule| {
        let bodies = Bodies::of(rule);
        !bodies.mutate && !bodies.generate && !bodies.verify_images
    };
    if !policy.rules.iter().all(only_validates) {
        report.error(
            "admission-disabled",
            span,
            "only policies of validate rules may disable admission processing",
            "remove spec.admission, or move the other rules to another policy",
        );
    }
}

fn check_rule(policy: &Policy, rule: &Rule, report: &mut Report<'_>) {
    let bodies = Bodies::of(rule);
    let name = &rule.name.value;
    if bodies.count() == 0 {
        let message = format!("rule {name:?} does nothing");
        let hint = "give it one of validate, mutate, generate, verifyImages";
        report.error("no-operation", rule.tree.span, message, hint);
    } else if bodies.count() > 1 {
        let message = format!(
            "rule {name:?} has {} operations, one is allowed",
            bodies.count()
        );
        let hint = "make one rule of each operation";
        report.error("several-operations", rule.tree.span, message, hint);
    }
    if let Some(extractors) = rule
        .image_extractors
        .as_ref()
        .filter(|_| !bodies.verify_images)
    {
        report.error(
            "image-extractors",
            extractors.span,
            "imageExtractors only go with verifyImages",
            "remove imageExtractors",
        );
    }
    if name.chars().count() > 63 {
        report.warning(
            "rule-name-too-long",
            rule.name.span,
            "the schema allows rule names of at most 63 characters: an API server refuses this one",
            "shorten the name",
        );
    }
    conflicts::check(rule, report);
    check_block(policy, &rule.match_block, rule.tree.get("match"), report);
    if let Some(exclude) = &rule.exclude_block {
        check_block(policy, exclude, rule.tree.get("exclude"), report);
    }
    if let Some(pod_security) = rule
        .validate
        .as_ref()
        .and_then(|one| one.pod_security.as_ref())
    {
        pod_security::check(pod_security, report);
    }
}

fn check_block(policy: &Policy, block: &MatchBlock, tree: Option<&Tree>, report: &mut Report<'_>) {
    let filled = |list: &Option<Vec<Filter>>| list.as_ref().is_some_and(|list| !list.is_empty());
    if filled(&block.any) && filled(&block.all) {
        report.error(
            "any-and-all",
            block.span,
            "`any` and `all` cannot be used together",
            "keep one of them",
        );
    }
    let Some(tree) = tree else {
        return;
    };
    let trees = [items(tree, "any"), items(tree, "all")].concat();
    let filters = [&block.any, &block.all].into_iter().flatten().flatten();
    for (filter, tree) in filters.zip(&trees).chain([(&block.direct, tree)]) {
        check_filter(filter, tree, policy.kind == PolicyKind::Policy, report);
    }
}

/// Checks one filter: its subjects and roles, then its resources. Also used for exceptions.
pub(super) fn check_filter(
    filter: &Filter,
    tree: &Tree,
    namespaced: bool,
    report: &mut Report<'_>,
) {
    check_user_info(filter, tree, report);
    let resources = &filter.resources;
    let at = |key| span_at(tree, &["resources", key]);
    if !resources.name.is_empty() && !resources.names.is_empty() {
        report.error(
            "name-and-names",
            at("name"),
            "`name` and `names` cannot be used together",
            "move the name to `names`",
        );
    }
    if let Some(problem) = resources.selector.as_ref().and_then(selectors::problem) {
        let hint = "write a selector that Kubernetes accepts";
        report.error("bad-selector", at("selector"), problem, hint);
    }
    if namespaced && !resources.namespaces.is_empty() {
        report.error(
            "namespaces-in-namespaced-policy",
            at("namespaces"),
            "a namespaced Policy cannot filter by namespace",
            "remove `namespaces`: the policy only sees its own",
        );
    }
}

fn check_user_info(filter: &Filter, tree: &Tree, report: &mut Report<'_>) {
    for (role, tree) in filter.roles.iter().flatten().zip(items(tree, "roles")) {
        if role.split(':').count() != 2 {
            let message = format!("expected a role as `namespace:name`, found {role:?}");
            report.error("bad-role", tree.span, message, "write namespace:name");
        }
    }
    for (subject, tree) in filter
        .subjects
        .iter()
        .flatten()
        .zip(items(tree, "subjects"))
    {
        let span = |key| span_at(tree, &[key]);
        if !["User", "Group", "ServiceAccount"].contains(&subject.kind.as_str()) {
            let message = format!(
                "expected a subject kind User, Group or ServiceAccount, found {:?}",
                subject.kind
            );
            report.error(
                "bad-subject",
                span("kind"),
                message,
                "use one of the three kinds",
            );
        }
        if subject.name.is_empty() {
            report.error(
                "bad-subject",
                span("name"),
                "a subject needs a name",
                "add `name`",
            );
        }
        if subject.kind == "ServiceAccount" && subject.namespace.is_empty() {
            let message = "a ServiceAccount subject needs a namespace";
            report.error("bad-subject", span("namespace"), message, "add `namespace`");
        }
    }
}

/// Location of the innermost existing part of a path.
pub(super) fn span_at(tree: &Tree, path: &[&str]) -> Span {
    let mut here = tree;
    for key in path {
        match here.get(key) {
            Some(next) => here = next,
            None => break,
        }
    }
    here.span
}
