//! Policies, rules and exceptions as they go into a bundle.

use std::ops::Range;

use kpvm_format::table::{BodyKind, KeyKind, MessageKind};

use super::id::{BlockId, EntryId, PolicyId, RuleId, SelectorId, SlotId, TextListId};
use crate::source::Location;

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Namespace of a namespaced policy, else empty.
    pub namespace: String,
    /// Bits of [`kpvm_format::table::PolicyFlags`].
    pub flags: u8,
    /// Its rules.
    pub rules: Range<RuleId>,
    /// The failure actions of some namespaces.
    pub overrides: Vec<ActionOverride>,
}

/// A rule as evaluated: written or generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The policy it belongs to.
    pub policy: PolicyId,
    /// Its name.
    pub name: String,
    /// Its blocks of code.
    pub blocks: RuleBlocks,
    /// The variables of its context.
    pub slots: Range<SlotId>,
    /// The entries of its context.
    pub entries: Range<EntryId>,
    /// The kind of body.
    pub body: BodyKind,
    /// Bits of [`kpvm_format::table::RuleFlags`].
    pub flags: u8,
    /// The kind of message.
    pub message_kind: MessageKind,
    /// The message if it is a constant text; `level:version` for podSecurity.
    pub message: String,
    /// Kinds, or names of resources, under which the index lists the rule.
    pub kinds: Vec<String>,
    /// An object must have one of these to match; empty if nothing is known.
    pub keys: Vec<IndexKey>,
    /// Kinds for which autogen drops the rule.
    pub dropped_kinds: Vec<String>,
    /// The failure actions of some namespaces.
    pub overrides: Vec<ActionOverride>,
    /// `reportProperties`
    pub properties: Vec<(String, String)>,
    /// Where it is written.
    pub location: Location,
}

/// The blocks of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleBlocks {
    /// Decides whether the rule applies.
    pub matching: BlockId,
    /// Decides whether the body runs.
    pub preconditions: Option<BlockId>,
    /// Decides the outcome.
    pub body: BlockId,
    /// Computes a message with variables.
    pub message: Option<BlockId>,
    /// Computes report properties with variables.
    pub properties: Option<BlockId>,
}

impl RuleBlocks {
    /// Every block with its purpose.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, BlockId)> {
        let blocks = [
            ("match", Some(self.matching)),
            ("preconditions", self.preconditions),
            ("body", Some(self.body)),
            ("message", self.message),
            ("properties", self.properties),
        ];
        let named = |(name, block): (_, Option<BlockId>)| Some((name, block?));
        blocks.into_iter().filter_map(named)
    }
}

/// A text that an object must have for a rule to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexKey {
    /// Where the text is.
    pub kind: KeyKind,
    /// Whether it is the whole text rather than a prefix.
    pub whole: bool,
    /// The text.
    pub text: String,
}

impl IndexKey {
    /// A whole text.
    pub fn whole(kind: KeyKind, text: &str) -> Self {
        Self {
            kind,
            whole: true,
            text: text.to_owned(),
        }
    }
}

/// One entry of `validationFailureActionOverrides` (docs/spec/policies.md §11.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionOverride {
    /// Whether failures are enforced.
    pub enforces: bool,
    /// Namespace wildcards; `None` when absent.
    pub namespaces: Option<TextListId>,
    /// Selector over the labels of the namespace.
    pub selector: Option<SelectorId>,
}

/// A `PolicyException` as it concerns one rule (docs/spec/policies.md §9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The rule, of this module or of the bundle that it extends.
    pub rule: RuleId,
    /// Its namespace, empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Decides whether it applies.
    pub block: BlockId,
    /// Removes the findings that its `podSecurity` entries exempt.
    pub exclusion_block: Option<BlockId>,
    /// Whether the exempted resources pass rather than being skipped.
    pub passes: bool,
    /// Of several exceptions the one with the highest priority counts, then the first.
    pub priority: u32,
    /// What it allows instead of exempting from the whole policy: images and values.
    pub allowed: [Option<TextListId>; 2],
    /// Where it is written.
    pub location: Location,
}
