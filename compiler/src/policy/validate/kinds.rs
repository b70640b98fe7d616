//! Restrictions of the kind `*` (docs/spec/policies.md §2.5), and the check that every
//! filter of `match` names kinds (§2.6, last paragraph).

use kpvm_syntax::tree::{Span, Tree};

use super::{Bodies, Report};
use crate::policy::autogen::filters;
use crate::policy::condition::Conditions;
use crate::policy::model::{Filter, MatchBlock, Policy, Rule};
use crate::policy::read::field;

pub(super) fn check(policy: &Policy, rule: &Rule, report: &mut Report<'_>) {
    for block in [Some(&rule.match_block), rule.exclude_block.as_ref()] {
        let Some(block) = block else { continue };
        for filter in filters(block) {
            check_wildcard(policy, rule, filter, report);
        }
    }
    for filter in selecting_filters(&rule.match_block) {
        if filter.resources.kinds.is_empty() {
            report.error(
                "no-kinds",
                filter.span,
                "a filter of `match` must name the kinds it selects",
                "add `resources.kinds`",
            );
        }
    }
}

/// Filters that decide: those of `any`, otherwise of `all`, otherwise the direct one.
pub(super) fn selecting_filters(block: &MatchBlock) -> &[Filter] {
    let filled = |list: &'_ Option<Vec<Filter>>| list.as_ref().is_some_and(|list| !list.is_empty());
    if filled(&block.any) {
        block.any.as_deref().unwrap_or_default()
    } else if filled(&block.all) {
        block.all.as_deref().unwrap_or_default()
    } else {
        std::slice::from_ref(&block.direct)
    }
}

fn check_wildcard(policy: &Policy, rule: &Rule, filter: &Filter, report: &mut Report<'_>) {
    let kinds = &filter.resources.kinds;
    let Some(wildcard) = kinds.iter().find(|kind| kind.value == "*") else {
        return;
    };
    if policy.background {
        let hint = "set spec.background to false, or name the kinds";
        let message = "kind `*` is not allowed in a background scan";
        report.error("wildcard-kind-in-background", wildcard.span, message, hint);
    }
    if kinds.len() > 1 {
        let message = "kind `*` stands alone: it already selects every kind";
        report.error(
            "wildcard-kind-not-alone",
            wildcard.span,
            message,
            "remove the other kinds",
        );
    }
    let bodies = Bodies::of(rule);
    let foreach = rule
        .validate
        .as_ref()
        .and_then(|validate| validate.foreach.as_ref());
    if bodies.generate || bodies.verify_images || foreach.is_some() {
        let message = "kind `*` does not go with generate, verifyImages or validate.foreach";
        report.error(
            "wildcard-kind-rule-type",
            wildcard.span,
            message,
            "name the kinds",
        );
    }
    if let Some(span) = beyond_metadata(rule) {
        report.error(
            "wildcard-kind-beyond-metadata",
            span,
            "a rule about every kind can only look at metadata",
            "name the kinds, or test only metadata",
        );
    }
}

/// First part of the rule that is not about metadata.
fn beyond_metadata(rule: &Rule) -> Option<Span> {
    let validate = rule.validate.as_ref();
    let pattern = validate.and_then(|validate| validate.pattern.as_ref());
    let any_pattern = validate.and_then(|validate| validate.any_pattern.as_ref());
    let patch = rule
        .mutate
        .as_ref()
        .and_then(|mutate| field(mutate, "patchStrategicMerge"));
    let other_key = |pattern: &Tree| {
        let mut members = pattern.as_map().unwrap_or_default().iter();
        members
            .find(|member| &*member.key != "metadata")
            .map(|member| member.key_span)
    };
    let patterns = any_pattern.and_then(Tree::as_list).unwrap_or_default();
    pattern
        .into_iter()
        .chain(patterns)
        .chain(patch)
        .find_map(other_key)
        .or_else(|| {
            any_pattern
                .filter(|tree| tree.as_list().is_none())
                .map(|tree| tree.span)
        })
        .or_else(|| {
            validate
                .and_then(|validate| validate.deny.as_ref())
                .and_then(deny_beyond)
        })
}

/// Only the legacy list of conditions is checked.
fn deny_beyond(deny: &Tree) -> Option<Span> {
    let Ok(Conditions::List(list)) = Conditions::read(field(deny, "conditions")?) else {
        return None;
    };
    list.iter()
        .find(|condition| {
            let key = condition.key.as_ref().and_then(Tree::as_str);
            !key.is_some_and(key_is_about_metadata)
        })
        .map(|condition| condition.span)
}

fn key_is_about_metadata(key: &str) -> bool {
    key.contains("request.object.metadata.")
        || (uses_request(key) && !key.contains("request.object.spec"))
}

/// Whether a variable begins with the request or the service account.
fn uses_request(key: &str) -> bool {
    key.match_indices("{{").any(|(at, _)| {
        let body = key.get(at + 2..).unwrap_or_default();
        let starts = ["request.", "serviceAccountName", "serviceAccountNamespace"];
        let end = body.find(['{', '}']);
        let closed = end
            .and_then(|end| body.get(end..))
            .is_some_and(|rest| rest.starts_with("}}"));
        closed
            && starts
                .iter()
                .any(|start| body.trim_start().starts_with(start))
    })
}
