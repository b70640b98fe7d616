//! Labels and annotations, whose keys may be wildcards (docs/spec/patterns.md §9).

use super::Lowering;
use super::anchors::find_inner;
use crate::ir::{Operation, Register, TagEntry, TagPattern, TagPatternId};
use crate::source::Location;
use kpvm_semantics::anchor::Anchor;
use kpvm_semantics::anchor::{self, AnchoredKey};
use kpvm_semantics::wildcard::contains_wildcard;
use kpvm_syntax::tree::{Member, Tree, TreeValue};

/// A map under `metadata.labels` or `metadata.annotations`, from which entries that are not
/// text are dropped (docs/spec/patterns.md §9).
#[derive(Debug, Clone, Copy)]
pub(super) enum Tags {
    /// No key has a wildcard.
    Static,
    /// Some key has one: expanded at run time.
    Dynamic(TagPatternId),
}

impl Lowering<'_, '_> {
    /// docs/spec/patterns.md §9: looks for label and annotation maps below this map's
    /// `metadata`.
    pub(super) fn plan_tags(&mut self, members: &[Member], register: Register) {
        let Some(metadata) = find_inner(members, "metadata").and_then(Tree::as_map) else {
            return;
        };
        for tag in ["labels", "annotations"] {
            let Some(tree) = find_inner(metadata, tag) else {
                continue;
            };
            let Some(entries) = tree.as_map() else {
                continue;
            };
            // The value of a variable may not be a text, which is known only at run time.
            let is_dynamic = |member: &Member| {
                matches!(member.value.value, TreeValue::String(_))
                    && (contains_wildcard(anchor::parse(&member.key).inner)
                        || self
                            .computed
                            .contains_key(&std::ptr::from_ref(&member.value)))
            };
            let plan = if entries.iter().any(is_dynamic) {
                let tags = self.write_tag_pattern(tag, entries);
                self.emitter.block.push(Operation::ExpandTags {
                    src: register,
                    tags,
                });
                Tags::Dynamic(tags)
            } else {
                Tags::Static
            };
            self.tags.insert(std::ptr::from_ref(tree), plan);
        }
    }

    fn write_tag_pattern(&mut self, tag: &str, members: &[Member]) -> TagPatternId {
        let mut entries = Vec::new();
        for member in members {
            let TreeValue::String(value) = &member.value.value else {
                continue;
            };
            let AnchoredKey { anchor, inner } = anchor::parse(&member.key);
            let Some(leaf) = self.emitter.module.leaf(&member.value.value) else {
                continue;
            };
            // A value with variables is passed in a variable of its own.
            let computed = self
                .computed
                .get(&std::ptr::from_ref(&member.value))
                .copied();
            let slot = computed.map(|computed| {
                let slot = self.emitter.module.slot("");
                let store = Operation::StoreVariable {
                    slot,
                    src: computed,
                };
                self.emitter.block.push(store);
                slot
            });
            entries.push(TagEntry {
                anchor,
                has_wildcard: contains_wildcard(inner),
                is_star: anchor == Anchor::None && &**value == "*",
                key: inner.to_owned(),
                leaf,
                slot,
                location: Location {
                    source: self.emitter.source,
                    span: member.value.span,
                },
            });
        }
        let module = &mut self.emitter.module;
        let pattern = TagPattern {
            metadata: module.symbol("metadata"),
            tag: module.symbol(tag),
            entries,
        };
        module.tag_patterns.push(pattern)
    }
}
