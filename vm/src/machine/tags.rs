//! Label and annotation patterns with wildcards in their keys (docs/spec/patterns.md §9).
//!
//! A wildcard key becomes the first key of the resource that matches it (in byte order;
//! Kyverno takes any). The choice is kept for the rest of the rule: later items of a list
//! and the old object are checked for the same key.

use std::borrow::Cow;

use kpvm_format::Tables;
use kpvm_format::instruction::{SlotId, TagPatternId};
use kpvm_format::site::InstructionId;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{NONE, TagEntry};
use kpvm_semantics::anchor::Anchor;

use super::explain::TagText;
use super::pattern::FoldState;
use super::trace::SeenTag;
use super::{ErrorKind, Machine, Mode, Scene, leaf};
use crate::document::{Kind, NodeId, View};
use kpvm_semantics::wildcard;

/// The keys that wildcard keys became, by entry of the bundle's `tag_entries`.
#[derive(Debug, Default)]
pub(super) struct ExpandedTags {
    /// The entry, and the member of the resource whose key it took.
    chosen: Vec<(u32, NodeId)>,
}

impl ExpandedTags {
    pub(super) fn clear(&mut self) {
        self.chosen.clear();
    }

    fn get(&self, entry: u32) -> Option<NodeId> {
        self.chosen
            .iter()
            .find(|(number, _)| *number == entry)
            .map(|&(_, node)| node)
    }

    /// Chooses keys for the entries of a pattern that have none yet.
    pub(super) fn expand(&mut self, pattern: TagPatternId, map: NodeId, scene: Scene<'_>) {
        let Some(pattern) = scene.tables.tag_patterns.get(pattern.index()) else {
            return;
        };
        let view = &scene.view;
        let metadata = view.get(map, SymbolId(pattern.metadata.get()));
        let tags = view.get(metadata, SymbolId(pattern.tag.get()));
        let start = pattern.entries.start.get();
        for (offset, entry) in Tables::range(scene.tables.tag_entries, pattern.entries)
            .iter()
            .enumerate()
        {
            let number = start + offset as u32;
            if entry.wildcard == 0 || self.get(number).is_some() {
                continue;
            }
            let key = scene.tables.text(entry.key).as_bytes();
            let found = view
                .children(tags)
                .filter(|&member| view.kind(member) == Some(Kind::String))
                .filter(|&member| wildcard::matches(key, view.key_bytes(member)))
                .min_by_key(|&member| view.key_bytes(member));
            self.chosen.extend(found.map(|member| (number, member)));
        }
    }
}

/// An entry with its current key. Validation has no `+( )`: the whole text is then the key
/// (docs/spec/patterns.md §4.1).
struct Entry<'e> {
    number: u32,
    record: &'e TagEntry,
    anchor: Anchor,
    key: Cow<'e, str>,
    /// The pattern computed for the value, if it has variables.
    computed: Option<NodeId>,
}

impl Entry<'_> {
    /// Anchored entries come first; within each group entries are ordered by the text of
    /// the key, but global anchors come before plain keys (as keys with anchors) and
    /// descending.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let class = |entry: &Self| match entry.anchor {
            Anchor::Conditional | Anchor::Equality | Anchor::Negation | Anchor::Existence => 0,
            Anchor::Global => 1,
            Anchor::None | Anchor::AddIfNotPresent => 2,
        };
        let own = (self.anchor.modifier(), &*self.key);
        let by_text = own.cmp(&(other.anchor.modifier(), &*other.key));
        class(self).cmp(&class(other)).then(if class(self) == 1 {
            by_text.reverse()
        } else {
            by_text
        })
    }
}

/// The result of one entry.
enum Outcome {
    Holds,
    Fails(ErrorKind),
}

impl Machine {
    /// Checks a label or annotation map against an expanded pattern.
    pub(super) fn test_tags<M: Mode>(
        &mut self,
        pattern: TagPatternId,
        map: NodeId,
        instruction: InstructionId,
        scene: Scene<'_>,
    ) -> Option<ErrorKind> {
        let pattern = scene.tables.tag_patterns.get(pattern.index())?;
        let records = Tables::range(scene.tables.tag_entries, pattern.entries);
        let start = pattern.entries.start.get();
        let entry = |index: usize, record| self.expanded_entry(start + index as u32, record, scene);
        let mut entries: smallvec::SmallVec<[Entry<'_>; 8]> = records
            .iter()
            .enumerate()
            .map(|(index, record)| entry(index, record))
            // Of values computed from variables, only texts are kept.
            .filter(|entry| {
                let kind = entry.computed.and_then(|value| scene.view.kind(value));
                entry.computed.is_none() || kind == Some(Kind::String)
            })
            .collect();
        entries.sort_by(Entry::order);
        // Of entries that became the same key one is kept, in Kyverno any of them.
        entries.dedup_by(|next, kept| next.anchor == kept.anchor && next.key == kept.key);
        let mut fold = FoldState::default();
        let mut skips = String::new();
        for entry in &entries {
            let value = scene.view.get_text(map, entry.key.as_bytes());
            if M::EXPLAIN {
                self.record_tag(entry, value);
            }
            let grouped = !matches!(
                entry.anchor,
                Anchor::None | Anchor::Global | Anchor::AddIfNotPresent
            );
            if !grouped && fold.skipped {
                // The group of anchored keys ends before the first other key.
                if !fold.applied || fold.direct {
                    break;
                }
                fold.skipped = false;
            }
            let outcome = test_entry(entry, value, &scene);
            if M::TRACE {
                self.seen_tags.push(SeenTag {
                    entry: entry.number,
                    expanded: self.tags.get(entry.number),
                    found: value,
                    pattern: entry.computed,
                    held: matches!(outcome, Outcome::Holds),
                });
            }
            let Outcome::Fails(kind) = outcome else {
                fold.applied |= grouped;
                continue;
            };
            if M::EXPLAIN {
                self.explain_tag(
                    entry.anchor,
                    &entry.key,
                    TagText {
                        leaf: entry.record.leaf.get(),
                        computed: entry.computed,
                    },
                    value,
                    kind,
                    instruction,
                    scene,
                );
            }
            if !grouped {
                return Some(kind);
            }
            if kind.is_skip() {
                fold.skipped = true;
                fold.direct = true;
                if M::EXPLAIN {
                    super::explain::join_skip(&mut skips, &self.explanation.text);
                }
            } else if !fold.direct {
                return Some(kind);
            }
        }
        if fold.skipped && (!fold.applied || fold.direct) {
            if M::EXPLAIN {
                self.explanation.text = skips;
            }
            return Some(ErrorKind::MultiSkip);
        }
        None
    }

    fn expanded_entry<'e>(&self, number: u32, record: &'e TagEntry, scene: Scene<'e>) -> Entry<'e> {
        let anchor = Anchor::ALL
            .get(usize::from(record.anchor))
            .copied()
            .unwrap_or(Anchor::None);
        let key = match self.tags.get(number) {
            Some(member) => scene.view.key_str(member),
            None => scene.tables.text(record.key),
        };
        let (anchor, key) = match anchor {
            Anchor::AddIfNotPresent => (Anchor::None, Cow::Owned(format!("+({key})"))),
            anchor => (anchor, Cow::Borrowed(key)),
        };
        let slot = record.slot.get();
        let computed = (slot != NONE)
            .then(|| self.variable(SlotId(slot)))
            .flatten();
        Entry {
            number,
            record,
            anchor,
            key,
            computed,
        }
    }

    fn record_tag(&mut self, entry: &Entry<'_>, value: NodeId) {
        if matches!(entry.anchor, Anchor::Conditional | Anchor::Existence) {
            let text = format!("{}({})", entry.anchor.modifier(), entry.key);
            self.explanation.record_anchor(&text, !value.is_missing());
        }
    }
}

/// Checks one entry; the pattern's values are all texts, so an existence anchor can only
/// match a missing key.
fn test_entry(entry: &Entry<'_>, value: NodeId, scene: &Scene<'_>) -> Outcome {
    let leaf_holds = || match entry.computed {
        None => leaf::holds(entry.record.leaf.get(), value, scene),
        Some(pattern) => {
            let matcher = super::dynamic::Matcher {
                view: scene.view,
                floats: false,
                is_secret: false,
            };
            matcher.matches(value, pattern, "", 0).is_ok()
        }
    };
    let (holds, kind) = match entry.anchor {
        Anchor::None if entry.record.star != 0 => (!is_null(&scene.view, value), ErrorKind::Plain),
        Anchor::None | Anchor::AddIfNotPresent => (leaf_holds(), ErrorKind::Plain),
        Anchor::Conditional => (!value.is_missing() && leaf_holds(), ErrorKind::Conditional),
        Anchor::Equality => (value.is_missing() || leaf_holds(), ErrorKind::Plain),
        Anchor::Negation => (value.is_missing(), ErrorKind::Negation),
        Anchor::Existence => (value.is_missing(), ErrorKind::Plain),
        Anchor::Global => (value.is_missing() || leaf_holds(), ErrorKind::Global),
    };
    if holds {
        Outcome::Holds
    } else {
        Outcome::Fails(kind)
    }
}

fn is_null(view: &View<'_>, node: NodeId) -> bool {
    super::is_null(view, node)
}
