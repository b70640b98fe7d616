//! Failure actions: whether a failure of a rule is enforced (docs/spec/policies.md §11).

use kpvm_format::Tables;
use kpvm_format::instruction::{SelectorId, TextListId};
use kpvm_format::table::{NONE, Policy, PolicyFlags, Range, Rule, RuleFlags};

use super::Evaluator;
use crate::machine::{SelectorLabels, Subject, selector_matches, wildcard_list_matches};

impl Evaluator<'_, '_> {
    /// docs/spec/policies.md §11.1.
    pub(super) fn is_enforced(&self, rule: &Rule, policy: &Policy, subject: &Subject<'_>) -> bool {
        self.override_action(rule.overrides, subject)
            .unwrap_or_else(|| {
                if rule.flags & RuleFlags::OWN_ACTION != 0 {
                    rule.flags & RuleFlags::ENFORCE != 0
                } else {
                    self.override_action(policy.overrides, subject)
                        .unwrap_or(policy.flags & PolicyFlags::ENFORCE != 0)
                }
            })
    }

    /// The first override that holds for the object's namespace (docs/spec/policies.md §11.2).
    fn override_action(&self, overrides: Range, subject: &Subject<'_>) -> Option<bool> {
        let labels = SelectorLabels::Pairs(self.facts.namespace_labels);
        Tables::range(self.tables.action_overrides, overrides)
            .iter()
            .find(|entry| {
                let in_namespaces = entry.namespaces.get() == NONE
                    || wildcard_list_matches(
                        TextListId(entry.namespaces.get()),
                        subject.namespace,
                        self.tables,
                    );
                let selected = entry.selector.get() == NONE
                    || selector_matches(SelectorId(entry.selector.get()), self.tables, &labels);
                in_namespaces && selected
            })
            .map(|entry| entry.enforce != 0)
    }
}
