//! Walking over an object that is built, along the spots of a plan.

use kpvm_format::Tables;
use kpvm_format::plan::{DemandKind, PlanView};
use kpvm_semantics::anchor::Anchor;

use super::{ROOT, Survey, looks_inside};
use crate::document::{Kind, NodeId, View};
use crate::machine::{leaf_holds, scalar_of};
use kpvm_semantics::wildcard;

/// What a walk over nodes needs.
struct NodeWalk<'w> {
    plan: &'w PlanView<'w>,
    tables: &'w Tables<'w>,
    view: View<'w>,
    /// What was not built was walked over as text.
    has_text_walk: bool,
    survey: &'w mut Survey,
}

/// Tests an object that is built. With `has_text_walk` parts that are not were tested as text
/// before; otherwise nothing is looked at inside of them.
pub(crate) fn test_nodes(
    plan: &PlanView<'_>,
    root: NodeId,
    view: View<'_>,
    tables: &Tables<'_>,
    has_text_walk: bool,
    survey: &mut Survey,
) {
    let mut walk = NodeWalk {
        plan,
        tables,
        view,
        has_text_walk,
        survey,
    };
    walk.visit(root, ROOT);
}

impl NodeWalk<'_> {
    /// Tests a value and what is inside; spots nest at most 64 deep, so this recurses.
    fn visit(&mut self, node: NodeId, number: u32) {
        let Some(spot) = self.plan.spot(number) else {
            return;
        };
        let kind = match self.view.kind(node) {
            Some(kind @ (Kind::Map | Kind::List)) => kind,
            _ => {
                if let Some(value) = scalar_of(node, &self.view) {
                    self.survey.test_scalar(self.plan, spot, value, self.tables);
                }
                return;
            }
        };
        let is_unread = self.view.is_unread(node);
        if is_unread && self.has_text_walk {
            return;
        }
        self.survey.test_container(self.plan, spot, kind);
        for test in self.plan.tests(spot) {
            if test.kind() == DemandKind::Tags && !self.tags_hold(test.operand.get(), node) {
                self.survey.break_all(self.plan, test.breaks.get());
            }
        }
        if !looks_inside(spot, kind) {
            return;
        }
        if is_unread {
            return self.survey.give_up();
        }
        if kind == Kind::List {
            for item in self.view.children(node) {
                self.survey.items += 1;
                self.visit(item, spot.items.get().into());
            }
            return;
        }
        let mut seen = 0;
        for member in self.view.children(node) {
            if let Some(key) = self.view.key_symbol(member)
                && let Some((child, bit)) = self.plan.child(number, key)
            {
                seen |= bit;
                self.visit(member, child);
            }
        }
        self.survey.end_map(self.plan, spot, seen);
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
