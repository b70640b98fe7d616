//! Records of the match index; [`crate::index`] builds and searches it.

use zerocopy::little_endian::U32;

use super::{Range, Text};

/// What an index key looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum KeyKind {
    /// The namespace of the object; of a Namespace its name.
    Namespace,
    /// The name of the object.
    Name,
    /// The operation: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    Operation,
}

impl KeyKind {
    /// Every kind in the order of its number.
    pub const ALL: [KeyKind; 3] = [KeyKind::Namespace, KeyKind::Name, KeyKind::Operation];
}

record! {
    /// A text that an object must have for a rule to match.
    IndexKey {
        /// A [`KeyKind`].
        kind: u8,
        /// 1: the whole text; 0: what it begins with.
        whole: u8,
        /// The text, not empty unless whole.
        text: Text,
    }
}

record! {
    /// The rules to try for one kind, or for one resource (`pods`).
    IndexEntry {
        /// The symbol of the kind or resource; [`NONE`], in the last entry, stands for every kind: its
        /// rules name kinds with wildcards.
        kind: U32,
        /// The rules to try always: range of `index_rules`, ascending.
        rules: Range,
        /// The rules with keys, by [`KeyKind`]: ranges of `index_nodes`, ascending by
        /// text, the whole text behind the same beginning.
        keyed: [Range; 3],
    }
}

record! {
    /// The rules to try for objects that have a key.
    IndexNode {
        /// The text of the key.
        text: Text,
        /// 1: the whole text; 0: what it begins with.
        whole: u8,
        /// The node of the longest other beginning of the text, counted from the first
        /// node of the list, or [`NONE`].
        parent: U32,
        /// The rules: range of `index_rules`, ascending.
        rules: Range,
    }
}
