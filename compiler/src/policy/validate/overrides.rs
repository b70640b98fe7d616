//! Checks failure action overrides: no namespace may be both enforced and audited
//! (docs/spec/policies.md §2.4).

use kpvm_syntax::tree::{Span, Tree};

use super::structure::span_at;
use super::{Bodies, Report};
use crate::policy::model::{FailureActionOverride, Policy, PolicyKind};
use crate::policy::read::{field, items};
use kpvm_semantics::wildcard::{contains_wildcard, matches};

pub(super) fn check(policy: &Policy, report: &mut Report<'_>) {
    if policy.kind == PolicyKind::Policy {
        return;
    }
    for rule in policy.rules.iter().filter(|rule| Bodies::of(rule).validate) {
        report.enter_rule(rule);
        if let (Some(validate), Some(tree)) = (&rule.validate, field(&rule.tree, "validate")) {
            let trees = items(tree, "failureActionOverrides");
            check_list(&validate.failure_action_overrides, trees, report);
        }
    }
    report.leave_rule();
    if let Some(spec) = field(&policy.tree, "spec") {
        let trees = items(spec, "validationFailureActionOverrides");
        check_list(&policy.failure_action_overrides, trees, report);
    }
}

/// One namespace or pattern, and whether it is enforced.
struct Entry<'a> {
    namespace: &'a str,
    enforce: bool,
}

impl Entry<'_> {
    /// Whether both are the same literal, or one is a pattern that matches the other.
    fn conflicts(&self, other: &Entry<'_>) -> bool {
        let covers =
            |pattern: &str, text: &str| contains_wildcard(pattern) && matches(pattern, text);
        self.enforce != other.enforce
            && (self.namespace == other.namespace
                || covers(self.namespace, other.namespace)
                || covers(other.namespace, self.namespace))
    }
}

fn check_list(overrides: &[FailureActionOverride], trees: &[Tree], report: &mut Report<'_>) {
    let mut before: Vec<Entry<'_>> = Vec::new();
    for (one, tree) in overrides.iter().zip(trees) {
        let enforce = match one.action.as_str() {
            "Enforce" | "enforce" => true,
            "Audit" | "audit" => false,
            other => {
                let message = format!("expected the action Enforce or Audit, found {other:?}");
                let span = span_at(tree, &["action"]);
                report.error("bad-action", span, message, "use Enforce or Audit");
                continue;
            }
        };
        for namespace in one.namespaces.iter().flatten() {
            let entry = Entry { namespace, enforce };
            if let Some(other) = before.iter().find(|other| other.conflicts(&entry)) {
                report_conflict(namespace, other, span_at(tree, &["namespaces"]), report);
            }
            before.push(entry);
        }
    }
}

fn report_conflict(namespace: &str, other: &Entry<'_>, span: Span, report: &mut Report<'_>) {
    let opposite = if other.enforce { "enforced" } else { "audited" };
    let message = format!(
        "{namespace:?} conflicts with {:?}, which is {opposite} by an earlier override",
        other.namespace
    );
    let hint = "let the overrides name different namespaces";
    report.error("conflicting-overrides", span, message, hint);
}
