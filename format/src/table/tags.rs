//! Label and annotation patterns, and the anchors of keys.

use zerocopy::little_endian::U32;

use super::{Range, Text};

record! {
    /// A pattern over labels or annotations with wildcards in its keys.
    TagPattern {
        /// The symbol of `metadata`.
        metadata: U32,
        /// The symbol of `labels` or `annotations`.
        tag: U32,
        /// Range of `tag_entries`.
        entries: Range,
    }
}

record! {
    /// One entry of a [`TagPattern`].
    TagEntry {
        /// An [`Anchor`].
        anchor: u8,
        /// 1 when the key has a wildcard.
        wildcard: u8,
        /// 1 when the value is exactly `*` under a plain key: any value that is not null.
        star: u8,
        /// The key without anchor.
        key: Text,
        /// The predicate for the value.
        leaf: U32,
        /// The variable that holds the pattern computed for the value, or [`NONE`].
        slot: U32,
    }
}

/// Anchors of a key (docs/spec/patterns.md §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Anchor {
    /// A plain key.
    None,
    /// `(key)`
    Conditional,
    /// `=(key)`
    Equality,
    /// `X(key)`
    Negation,
    /// `^(key)`
    Existence,
    /// `<(key)`
    Global,
    /// `+(key)`, for mutation only.
    AddIfNotPresent,
}

impl Anchor {
    /// Every anchor in the order of its number.
    pub const ALL: [Anchor; 7] = [
        Anchor::None,
        Anchor::Conditional,
        Anchor::Equality,
        Anchor::Negation,
        Anchor::Existence,
        Anchor::Global,
        Anchor::AddIfNotPresent,
    ];

    /// The characters in front of the parenthesis.
    pub fn modifier(self) -> &'static str {
        match self {
            Anchor::None | Anchor::Conditional => "",
            Anchor::Equality => "=",
            Anchor::Negation => "X",
            Anchor::Existence => "^",
            Anchor::Global => "<",
            Anchor::AddIfNotPresent => "+",
        }
    }
}
