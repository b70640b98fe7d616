//! The node: 16 bytes for any value and its key.

use kpvm_format::symbol::{SymbolId, key_hash};

/// Index of a node in a [`super::DocumentBuffer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Result of a lookup that finds nothing: not a value, not even `null`.
    pub const MISSING: NodeId = NodeId(u32::MAX);

    /// Whether this is [`NodeId::MISSING`].
    #[inline]
    pub fn is_missing(self) -> bool {
        self == Self::MISSING
    }
}

/// Kind of a value. Int and Float are distinct, as in docs/spec/patterns.md §1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `null`
    Null,
    /// `false`
    False,
    /// `true`
    True,
    /// A number that Kubernetes' decoder keeps as int64.
    Int,
    /// Any other number.
    Float,
    /// Text.
    String,
    /// A sequence.
    List,
    /// A mapping.
    Map,
}

/// Source of the bytes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TextSource {
    /// JSON text of the object under evaluation.
    Object,
    /// JSON text of the old object.
    OldObject,
    /// The buffer's own bytes: texts with escapes, texts from YAML, computed texts.
    Scratch,
    /// Texts of the bundle.
    Bundle,
}

/// A range in one of the source texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRef {
    /// The source text.
    pub source: TextSource,
    /// Start offset.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

/// Source texts outside the buffer that its nodes point into. Each must be exactly the
/// bytes that were read; otherwise strings are wrong or empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'a> {
    /// See [`TextSource::Object`].
    pub object: &'a [u8],
    /// See [`TextSource::OldObject`].
    pub old_object: &'a [u8],
    /// See [`TextSource::Bundle`].
    pub bundle: &'a [u8],
}

impl<'a> Texts<'a> {
    /// No texts: for values that are entirely in the buffer's scratch bytes.
    pub const NONE: Texts<'static> = Texts {
        object: &[],
        old_object: &[],
        bundle: &[],
    };

    /// `text` for `source`, nothing for the others.
    pub fn only(source: TextSource, text: &'a [u8]) -> Self {
        let mut texts = Texts::NONE;
        match source {
            TextSource::Object => texts.object = text,
            TextSource::OldObject => texts.old_object = text,
            TextSource::Bundle => texts.bundle = text,
            TextSource::Scratch => {}
        }
        texts
    }

    /// All four texts in the order of [`TextSource`].
    pub(super) fn with_scratch(self, scratch: &'a [u8]) -> [&'a [u8]; 4] {
        [self.object, self.old_object, scratch, self.bundle]
    }
}

/// Bytes of a range; empty if it is out of bounds.
#[inline]
pub(super) fn text_bytes<'a>(texts: &[&'a [u8]; 4], piece: TextRef) -> &'a [u8] {
    let start = piece.offset as usize;
    let end = start.saturating_add(piece.length as usize);
    texts[piece.source as usize].get(start..end).unwrap_or(&[])
}

/// A map key: the number of a symbol, or the index in the buffer's table of keys that are
/// not symbols. Meaningless for list items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub(super) u32);

impl Key {
    const UNKNOWN: u32 = 1 << 31;

    /// Key of list items and roots.
    pub(super) const NONE: Key = Key(u32::MAX);

    #[inline]
    pub(super) fn unknown(index: u32) -> Self {
        Key(index | Self::UNKNOWN)
    }

    /// The symbol, if the key is one.
    #[inline]
    pub fn symbol(self) -> Option<SymbolId> {
        (self.0 & Self::UNKNOWN == 0).then_some(SymbolId(self.0))
    }

    /// Index in the table of unknown keys, if the key is in it.
    #[inline]
    pub(super) fn unknown_index(self) -> Option<usize> {
        (self.0 & Self::UNKNOWN != 0).then_some((self.0 & !Self::UNKNOWN) as usize)
    }
}

/// Position of a new value: a key and its hash, or nothing for a list item.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    pub(super) key: Key,
    pub(super) hash: u16,
}

impl Label {
    /// For list items, and for values that are not members.
    pub const ITEM: Label = Label {
        key: Key::NONE,
        hash: 0,
    };

    /// Whether this is [`Label::ITEM`].
    #[inline]
    pub(super) fn is_item(self) -> bool {
        self.key == Key::NONE
    }

    /// Label for the symbol `symbol`.
    #[inline]
    pub fn symbol(symbol: SymbolId) -> Self {
        Label {
            key: Key(symbol.0),
            hash: symbol.0 as u16,
        }
    }

    /// Label for a key that is not a symbol, from its index in the table and the hash of
    /// its text.
    #[inline]
    pub(super) fn unknown(index: u32, hash: u32) -> Self {
        Label {
            key: Key::unknown(index),
            hash: unknown_hash(hash),
        }
    }
}

/// The part of a text's hash that a node stores.
#[inline]
fn unknown_hash(hash: u32) -> u16 {
    (hash >> 16) as u16
}

/// Value of [`Node::hash`] for an unknown key with this text.
pub(super) fn unknown_text_hash(text: &[u8]) -> u16 {
    unknown_hash(key_hash(text))
}

/// One value and its key.
///
/// `x` and `y` contain the 64 bits of an Int or Float, offset and length of a String, or
/// first child and number of children of a container. Children of a container are
/// contiguous in the buffer, in the order of the text.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    pub(super) key: Key,
    pub(super) kind: Kind,
    pub(super) source: TextSource,
    /// Equal keys have equal hashes; most unequal ones do not.
    pub(super) hash: u16,
    pub(super) x: u32,
    pub(super) y: u32,
}

/// `source` of containers with a special meaning; see
/// [`super::DocumentBuffer::finish_entries`] and [`super::DocumentBuffer::push_reference`].
pub(super) const MARKED: TextSource = TextSource::Bundle;

const _: () = assert!(size_of::<Node>() == 16);

impl Node {
    /// A node with a payload in `x` and `y`.
    #[inline]
    pub(super) fn new(label: Label, kind: Kind, x: u32, y: u32) -> Self {
        Node {
            key: label.key,
            kind,
            source: TextSource::Scratch,
            hash: label.hash,
            x,
            y,
        }
    }

    /// Node of a number; `bits` are those of the int64 or float64.
    #[inline]
    pub(super) fn number(label: Label, kind: Kind, bits: u64) -> Self {
        Self::new(label, kind, bits as u32, (bits >> 32) as u32)
    }

    /// Node of a string.
    #[inline]
    pub(super) fn text(label: Label, piece: TextRef) -> Self {
        Node {
            source: piece.source,
            ..Self::new(label, Kind::String, piece.offset, piece.length)
        }
    }

    /// A map or list that exists but was not read; `x` and `y` are the range of its text.
    pub(super) fn unread(label: Label, kind: Kind, piece: TextRef) -> Self {
        Node {
            source: piece.source,
            ..Self::new(label, kind, piece.offset, piece.length)
        }
    }

    /// Whether a map or list was not read. Those that were read have no text range.
    #[inline]
    pub(super) fn is_unread(&self) -> bool {
        matches!(self.source, TextSource::Object | TextSource::OldObject)
    }

    /// Bits of a number.
    #[inline]
    pub(super) fn bits(&self) -> u64 {
        u64::from(self.x) | u64::from(self.y) << 32
    }

    /// Text range of a string.
    #[inline]
    pub(super) fn piece(&self) -> TextRef {
        TextRef {
            source: self.source,
            offset: self.x,
            length: self.y,
        }
    }
}
