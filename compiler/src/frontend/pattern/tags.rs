//! Labels and annotations, whose keys may be wildcards (docs/spec/patterns.md §9).

use kpvm_format::instruction::Op;
use kpvm_format::table;
use kpvm_semantics::anchor::Anchor;
use kpvm_semantics::wildcard::contains_wildcard;
use kpvm_syntax::tree::{Member, Tree, TreeValue};
use zerocopy::little_endian::U32;

use super::Lowering;
use super::anchors::find_inner;
use crate::ir::{Instruction, Register};
use crate::source::Location;
use kpvm_semantics::anchor::{self, AnchoredKey};

/// A map under `metadata.labels` or `metadata.annotations`: entries that are not text
/// are dropped there (section 9).
#[derive(Debug, Clone, Copy)]
pub(super) enum Tags {
    /// No key has a wildcard.
    Static,
    /// Some key has one: expanded at run time.
    Dynamic(u32),
}

impl Lowering<'_, '_, '_> {
    /// Section 9: looks for label and annotation maps below this map's `metadata`.
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
            // What a variable gives may be no text, which is known only then.
            let is_dynamic = |member: &Member| {
                matches!(member.value.value, TreeValue::String(_))
                    && (contains_wildcard(anchor::parse(&member.key).inner)
                        || self
                            .computed
                            .contains_key(&std::ptr::from_ref(&member.value)))
            };
            let plan = if entries.iter().any(is_dynamic) {
                let tags = self.write_tag_pattern(tag, entries);
                self.emitter
                    .block
                    .push(Instruction::new(Op::ExpandTags).a(register.0).c(tags));
                Tags::Dynamic(tags)
            } else {
                Tags::Static
            };
            self.tags.insert(std::ptr::from_ref(tree), plan);
        }
    }

    fn write_tag_pattern(&mut self, tag: &str, members: &[Member]) -> u32 {
        let mut entries = Vec::new();
        let mut places = Vec::new();
        for member in members {
            let TreeValue::String(value) = &member.value.value else {
                continue;
            };
            let AnchoredKey { anchor, inner } = anchor::parse(&member.key);
            let wildcard = contains_wildcard(inner);
            let Some(leaf) = self.emitter.pools.leaf(&member.value.value) else {
                continue;
            };
            let star = anchor == Anchor::None && &**value == "*";
            // A value with variables travels in a variable of its own.
            let slot = match self.computed.get(&std::ptr::from_ref(&member.value)) {
                None => table::NONE,
                Some(&computed) => {
                    let slot = self.emitter.pools.slot("");
                    let store = Instruction::new(Op::StoreVariable).a(computed.0).c(slot);
                    self.emitter.block.push(store);
                    slot
                }
            };
            let key = self.emitter.pools.bundle.text(inner);
            entries.push(table::TagEntry {
                anchor: anchor as u8,
                wildcard: u8::from(wildcard),
                star: u8::from(star),
                key,
                leaf: U32::new(leaf),
                slot: U32::new(slot),
            });
            let place = self.emitter.pools.place(Location {
                source: self.emitter.source,
                span: member.value.span,
            });
            places.push(table::SitePlace::from(place));
        }
        let bundle = &mut self.emitter.pools.bundle;
        let range = table::Range::new(bundle.tag_entries.len(), entries.len());
        bundle.tag_entries.extend(&entries);
        bundle.tag_places.extend(&places);
        let (metadata, tag) = (
            bundle.symbols.intern("metadata"),
            bundle.symbols.intern(tag),
        );
        bundle.tag_patterns.push(table::TagPattern {
            metadata: U32::new(metadata.0),
            tag: U32::new(tag.0),
            entries: range,
        });
        bundle.tag_patterns.len() as u32 - 1
    }
}
