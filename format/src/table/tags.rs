//! Label and annotation patterns.

use zerocopy::little_endian::U32;

use super::{Range, Text};

/// Number of anchors, `kpvm_semantics::anchor::Anchor`.
pub const ANCHORS: u8 = 7;

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
        /// A `kpvm_semantics::anchor::Anchor`, below [`ANCHORS`].
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
