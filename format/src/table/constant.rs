//! Constants and slices of expressions.

use zerocopy::little_endian::{I64, U64};

use super::{Range, Text};

record! {
    /// A constant value.
    Constant {
        /// A [`ConstantKind`].
        kind: u8,
        /// bool: 0 or 1; int: two's complement; float: bits.
        value: U64,
        /// The key it stands under in a map.
        key: Text,
        /// The text of a string.
        text: Text,
        /// Range of `constants` with larger numbers: items or members.
        children: Range,
    }
}

/// Type of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ConstantKind {
    /// `null`
    Null,
    /// A boolean.
    Bool,
    /// An int64.
    Int,
    /// A float64.
    Float,
    /// A text.
    String,
    /// A list.
    List,
    /// A map.
    Map,
    /// An expression reference used as a value.
    Reference,
    /// A uint64 of CEL.
    Uint,
    /// Bytes of CEL, each the character with its number in the text.
    Bytes,
    /// A type of CEL, by its name.
    Type,
}

impl ConstantKind {
    /// Every kind in the order of its number.
    pub const ALL: [ConstantKind; 11] = [
        ConstantKind::Null,
        ConstantKind::Bool,
        ConstantKind::Int,
        ConstantKind::Float,
        ConstantKind::String,
        ConstantKind::List,
        ConstantKind::Map,
        ConstantKind::Reference,
        ConstantKind::Uint,
        ConstantKind::Bytes,
        ConstantKind::Type,
    ];
}

record! {
    /// A slice `[start:stop:step]`; each part with a flag for being there.
    Slice {
        /// Bit 0 start, 1 stop, 2 step.
        parts: u8,
        /// First item.
        start: I64,
        /// Item before which to stop.
        stop: I64,
        /// Distance.
        step: I64,
    }
}
