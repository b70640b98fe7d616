//! Leaf predicates of patterns, parsed at compile time (docs/spec/patterns.md §5).

use zerocopy::little_endian::{I64, U64, U128};

use super::{Range, Text};

/// Number of comparison operators, `kpvm_semantics::Operator`.
pub const OPERATORS: u8 = 6;

/// Number of wildcard shapes, `kpvm_semantics::WildcardClass`.
pub const WILDCARD_CLASSES: u8 = 6;

record! {
    /// A leaf predicate (docs/spec/patterns.md §5): the pattern's type and value.
    Leaf {
        /// A [`LeafKind`].
        kind: u8,
        /// bool: 0 or 1; int: two's complement; float: bits.
        value: U64,
        /// The pattern's text for a string; what `%v` prints for others.
        text: Text,
        /// Range of `alternatives`, for a string.
        alternatives: Range,
    }
}

/// Type of a leaf's pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LeafKind {
    /// `null`
    Null,
    /// A boolean.
    Bool,
    /// An int64.
    Int,
    /// A float64.
    Float,
    /// A text with operators, alternatives and wildcards.
    String,
}

impl LeafKind {
    /// Every kind in the order of its number.
    pub const ALL: [LeafKind; 5] = [
        LeafKind::Null,
        LeafKind::Bool,
        LeafKind::Int,
        LeafKind::Float,
        LeafKind::String,
    ];
}

record! {
    /// One comparison of a string pattern, operand parsed at compile time.
    Comparison {
        /// A `kpvm_semantics::Operator`, below [`OPERATORS`].
        operator: u8,
        /// The operand's `kpvm_semantics::WildcardClass`, below [`WILDCARD_CLASSES`].
        class: u8,
        /// Bits of [`ComparisonFlags`].
        flags: u8,
        /// A [`Join`]: how the next comparison of the pattern goes on.
        join: u8,
        /// The operand's text.
        operand: Text,
        /// The operand as nanoseconds, if flagged.
        duration: I64,
        /// The operand as 1e-9 units of a quantity (two's complement), if flagged.
        quantity: U128,
    }
}

/// What [`Comparison::flags`] says.
pub struct ComparisonFlags;

impl ComparisonFlags {
    /// The operand is a duration.
    pub const DURATION: u8 = 1;
    /// The operand is a quantity that fits [`Comparison::quantity`].
    pub const QUANTITY: u8 = 2;
    /// The operand is a quantity beyond that; it is parsed from the text when needed.
    pub const BIG_QUANTITY: u8 = 4;
    /// All bits that mean something.
    pub const ALL: u8 = 7;
}

/// How a comparison is joined with the one behind it.
///
/// A string pattern is alternatives of conjunctions of comparisons; a range outside
/// (`a!-b`) is two comparisons of which one must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Join {
    /// Both must hold.
    And,
    /// One of the two must hold (an outside range); binds tighter than [`Join::And`].
    Either,
    /// The last of its alternative.
    End,
}

impl Join {
    /// Every join in the order of its number.
    pub const ALL: [Join; 3] = [Join::And, Join::Either, Join::End];
}
