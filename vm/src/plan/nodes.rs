//! Walking an object that is built, along the spots of a plan.

use kpvm_format::Tables;
use kpvm_semantics::anchor::Anchor;

use super::{Demand, Plan, Spot, Survey};
use crate::document::{Kind, NodeId, View};
use crate::machine::{leaf_holds, scalar_of};
use kpvm_semantics::wildcard;

/// What a walk over nodes needs.
pub(super) struct NodeWalk<'w> {
    plan: &'w Plan,
    tables: &'w Tables<'w>,
    view: View<'w>,
    /// What was not built was walked over as text.
    has_text_walk: bool,
    survey: &'w mut Survey,
}

impl Plan {
    /// Tests an object that is built. With `has_text_walk` parts that are not were tested
    /// as text before; otherwise nothing is looked at inside of them.
    pub(crate) fn test_nodes(
        &self,
        root: NodeId,
        view: View<'_>,
        tables: &Tables<'_>,
        has_text_walk: bool,
        survey: &mut Survey,
    ) {
        let mut walk = NodeWalk {
            plan: self,
            tables,
            view,
            has_text_walk,
            survey,
        };
        walk.visit(root, Spot::ROOT);
    }
}

impl NodeWalk<'_> {
    /// Tests a value and what is inside; spots nest as deep as plans do, so this recurses.
    fn visit(&mut self, node: NodeId, spot: Spot) {
        let Some(step) = self.plan.step(spot) else {
            return;
        };
        let kind = match self.view.kind(node) {
            Some(kind @ (Kind::Map | Kind::List)) => kind,
            _ => {
                if let Some(value) = scalar_of(node, &self.view) {
                    step.test_scalar(value, self.tables, self.survey);
                }
                return;
            }
        };
        let is_unread = self.view.is_unread(node);
        if is_unread && self.has_text_walk {
            return;
        }
        step.test_container(kind, self.survey);
        for test in &step.tests {
            if let Demand::Tags(pattern) = test.demand
                && !self.tags_hold(pattern, node)
            {
                self.survey.break_all(&test.breaks);
            }
        }
        if !step.looks_inside(kind) {
            return;
        }
        if is_unread {
            return self.survey.give_up();
        }
        if kind == Kind::List {
            let Some(items) = step.items else { return };
            for item in self.view.children(node) {
                self.survey.items += 1;
                self.visit(item, items);
            }
            return;
        }
        let mut seen = 0;
        for member in self.view.children(node) {
            if let Some(key) = self.view.key_symbol(member)
                && let Some((child, bit)) = self.plan.child(spot, key)
            {
                seen |= bit;
                self.visit(member, child);
            }
        }
        step.end_map(seen, self.survey);
    }

    /// Whether a pattern for labels or annotations surely holds: none of them is described
    /// by a key with wildcards, and what stands under the other keys fits.
    fn tags_hold(&self, pattern: u32, map: NodeId) -> bool {
        let Some(pattern) = self.tables.tag_patterns.get(pattern as usize) else {
            return false;
        };
        let mut entries = Tables::range(self.tables.tag_entries, pattern.entries).iter();
        entries.all(|entry| {
            let key = self.tables.text(entry.key).as_bytes();
            let value = self.view.get_text(map, key);
            if entry.anchor != Anchor::Equality as u8 {
                return false;
            }
            if entry.wildcard == 0 {
                return value.is_missing()
                    || leaf_holds(entry.leaf.get(), value, &self.view, self.tables);
            }
            let mut members = self.view.children(map);
            value.is_missing()
                && !members.any(|member| wildcard::matches(key, self.view.key_bytes(member)))
        })
    }
}
