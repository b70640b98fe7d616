//! Warnings about valid policies (docs/spec/policies.md §2.10, and lower-case actions of
//! §1.2).

use kpvm_syntax::tree::{Span, Tree};

use super::structure::span_at;
use super::walk::{Element, walk};
use super::{Bodies, CheckedRule, Report};
use crate::policy::autogen::{autogen_annotation, filters};
use crate::policy::condition::Conditions;
use crate::policy::kind_selector::KindSelector;
use crate::policy::model::{FailureActionOverride, Policy, Rule};
use crate::policy::read::{field, items};

/// Warnings about the policy as a whole.
pub(super) fn check_policy(policy: &Policy, report: &mut Report<'_>) {
    if let Some(spec) = field(&policy.tree, "spec") {
        let span = span_at(spec, &["validationFailureAction"]);
        let action = policy.failure_action.as_deref();
        check_case(action, &policy.failure_action_overrides, span, report);
    }
}

/// Warnings about one computed rule.
pub(super) fn check_rule(policy: &Policy, checked: &CheckedRule, report: &mut Report<'_>) {
    let rule = &checked.rule;
    check_pods_of_controllers(policy, rule, report);
    if !Bodies::of(rule).validate {
        return;
    }
    if let Some(validate) = rule
        .validate
        .as_ref()
        .filter(|one| one.failure_action.is_some())
    {
        let span = span_at(&rule.tree, &["validate", "failureAction"]);
        let action = validate.failure_action.as_deref();
        check_case(action, &validate.failure_action_overrides, span, report);
    }
    check_subresources(checked, report);
    check_operators(rule, report);
}

fn check_case(
    action: Option<&str>,
    overrides: &[FailureActionOverride],
    span: Span,
    report: &mut Report<'_>,
) {
    let overriding = overrides.iter().map(|one| one.action.as_str());
    let mut actions = action.into_iter().chain(overriding);
    if actions.any(|action| action == "enforce" || action == "audit") {
        let message = "lower-case failure actions are deprecated";
        report.warning("lower-case-action", span, message, "write Enforce or Audit");
    }
}

/// A rule for Pods alone also matches the Pods of controllers excluded from autogen.
fn check_pods_of_controllers(policy: &Policy, rule: &Rule, report: &mut Report<'_>) {
    let mut kinds = filters(&rule.match_block)
        .flat_map(|filter| &filter.resources.kinds)
        .map(|kind| KindSelector::parse(&kind.value).kind)
        .peekable();
    let only_pods = kinds.peek().is_some() && kinds.all(|kind| kind == "Pod");
    let chosen = autogen_annotation(policy).filter(|value| *value != "none");
    let Some(chosen) = chosen.filter(|_| only_pods) else {
        return;
    };
    let chosen = chosen.to_lowercase();
    let mut chosen: Vec<&str> = chosen.split(',').collect();
    chosen.sort_unstable();
    if chosen != ["cronjob", "daemonset", "deployment", "job", "statefulset"] {
        report.warning(
            "autogen-leaves-pods",
            rule.match_block.span,
            "the Pods of controllers that the annotation leaves out are matched all the same",
            "exclude them with preconditions",
        );
    }
}

/// Fields that change through a subresource that the rule does not select.
fn check_subresources(checked: &CheckedRule, report: &mut Report<'_>) {
    let rule = &checked.rule;
    let Some(validate) = field(&checked.encoded, "validate") else {
        return;
    };
    let blocks = [Some(&rule.match_block), rule.exclude_block.as_ref()];
    let kinds: Vec<String> = blocks
        .into_iter()
        .flatten()
        .flat_map(filters)
        .flat_map(|filter| &filter.resources.kinds)
        .map(|kind| kind.value.to_lowercase())
        .collect();
    let selects = |name: &str| kinds.iter().any(|kind| kind.contains(name));
    let mentions = Mentions::of(validate);
    if mentions.replicas && !selects("scale") {
        report.warning(
            "replicas-without-scale",
            validate.span,
            "`replicas` also changes through the scale subresource, which the rule does not select",
            "add the scale subresource to `kinds`",
        );
    }
    if mentions.status && !selects("status") {
        report.warning(
            "status-without-subresource",
            validate.span,
            "`status` changes through the status subresource, which the rule does not select",
            "add the status subresource to `kinds`",
        );
    }
}

/// Fields mentioned in the texts of a validate body, except in the conditions of its deny.
#[derive(Default)]
struct Mentions {
    replicas: bool,
    status: bool,
}

impl Mentions {
    fn of(validate: &Tree) -> Self {
        let mut mentions = Self::default();
        walk(validate, &mut |visit| {
            let Element::Text(text) = visit.element else {
                return;
            };
            if visit.path.starts_with("/deny/conditions") {
                return;
            }
            mentions.replicas |= text.contains("replicas");
            mentions.status |= text.contains(".status");
        });
        mentions.status |= has_key(validate, "status");
        mentions
    }
}

fn has_key(tree: &Tree, key: &str) -> bool {
    let members = tree.as_map().unwrap_or_default();
    members.iter().any(|member| {
        &*member.key == key || (&*member.key != "deny" && has_key(&member.value, key))
    }) || tree
        .as_list()
        .unwrap_or_default()
        .iter()
        .any(|item| has_key(item, key))
}

/// Deprecated operators in deny and foreach blocks; preconditions are not checked.
fn check_operators(rule: &Rule, report: &mut Report<'_>) {
    let Some(validate) = field(&rule.tree, "validate") else {
        return;
    };
    let of_deny = |tree: &Tree| {
        field(tree, "deny")
            .and_then(|deny| field(deny, "conditions"))
            .cloned()
    };
    let foreach = items(validate, "foreach").iter();
    let of_foreach =
        foreach.flat_map(|entry| [field(entry, "preconditions").cloned(), of_deny(entry)]);
    for tree in of_deny(validate).into_iter().chain(of_foreach.flatten()) {
        let Ok(block) = Conditions::read(&tree) else {
            continue;
        };
        for condition in block.iter() {
            let better = match condition.operator.value.as_str() {
                "In" => "AllIn or AnyIn",
                "NotIn" => "AllNotIn or AnyNotIn",
                _ => continue,
            };
            let message = format!("operator {} is deprecated", condition.operator.value);
            let hint = format!("use {better}");
            report.warning(
                "deprecated-operator",
                condition.operator.span,
                message,
                &hint,
            );
        }
    }
}
