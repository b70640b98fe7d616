//! Operands: how an instruction names registers, records of the bundle and places to
//! jump to.
//!
//! The same instructions exist in two representations: [`Encoded`] in bundles, where
//! registers are bytes and targets are positions, and the compiler's, where registers are
//! virtual and targets are labels. Everything else is the same in both.

use std::fmt::{self, Debug};
use std::hash::Hash;

use super::immediate::ImmediateType;
use crate::symbol::SymbolId;
use crate::table::NONE;

/// How code names registers and jump targets.
pub trait Representation: Copy + Debug + Eq + Hash + 'static {
    /// A register.
    type Register: Copy + Debug + Eq + Hash;
    /// A place in the block.
    type Target: Copy + Debug + Eq + Hash;

    /// The number of a register.
    fn register_number(register: Self::Register) -> u32;

    /// The number of a place.
    fn target_number(target: Self::Target) -> u32;
}

/// The representation in bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Encoded;

impl Representation for Encoded {
    type Register = RegisterId;
    type Target = Position;

    #[inline(always)]
    fn register_number(register: RegisterId) -> u32 {
        u32::from(register.0)
    }

    #[inline(always)]
    fn target_number(target: Position) -> u32 {
        target.0
    }
}

/// A register of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegisterId(pub u8);

/// An instruction's position in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position(pub u32);

/// Changes the representation of an instruction's operands.
pub trait Translate<R: Representation, S: Representation> {
    /// A register that is read.
    fn source(&mut self, register: R::Register) -> S::Register;
    /// A register that is written.
    fn destination(&mut self, register: R::Register) -> S::Register;
    /// A place to jump to.
    fn target(&mut self, target: R::Target) -> S::Target;
}

/// What an operand's number means, and therefore what the verifier checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandKind {
    /// A register of the frame that is read.
    Source,
    /// A register of the frame that is written.
    Destination,
    /// A loop slot of the frame.
    Loop,
    /// A fold slot of the frame.
    Fold,
    /// A list accumulator of the frame.
    List,
    /// A text accumulator of the frame.
    Accumulator,
    /// A symbol.
    Symbol,
    /// A static path from the root of the subject.
    Path,
    /// A leaf predicate.
    Leaf,
    /// A text of the string pool.
    Text,
    /// A list of kind selectors.
    Kinds,
    /// A list of texts.
    Texts,
    /// A list of annotation pairs.
    Pairs,
    /// A label selector.
    Selector,
    /// A list of subjects.
    Subjects,
    /// A label or annotation pattern whose keys have wildcards.
    TagPattern,
    /// A constant value.
    Constant,
    /// A slice of a list.
    Slice,
    /// A variable of the rule's context.
    Slot,
    /// A context entry.
    Entry,
    /// A block.
    Block,
    /// A block, or none.
    OptionalBlock,
    /// A shape that a value is decoded into.
    Shape,
    /// A control that a finding belongs to.
    Control,
    /// An exclusion of findings.
    Exclusion,
    /// A value of a type of immediates.
    Immediate(ImmediateType),
    /// A jump forward in the block.
    Forward,
    /// A jump back to the instruction after the `LoopBegin` of the same slot.
    Backward,
}

/// A type of operands, as the instruction table names it.
pub trait OperandType {
    /// The operand in a representation.
    type Of<R: Representation>: Copy + Debug + Eq + Hash;

    /// What its number means.
    const KIND: OperandKind;

    /// The operand's number in the encoding.
    fn number<R: Representation>(value: Self::Of<R>) -> u32;

    /// The operand with that number, if it can be one.
    fn decode(number: u32) -> Option<Self::Of<Encoded>>;

    /// The operand with that number in verified code. A number that the verifier rejects
    /// yields some value of the type.
    fn read(number: u32) -> Self::Of<Encoded>;

    /// The operand in another representation.
    fn translate<R, S, T>(value: Self::Of<R>, translate: &mut T) -> Self::Of<S>
    where
        R: Representation,
        S: Representation,
        T: Translate<R, S>;

    /// The jump target, if it is one.
    fn target<R: Representation>(_: Self::Of<R>) -> Option<R::Target> {
        None
    }

    /// The register, if it is read.
    fn source<R: Representation>(_: Self::Of<R>) -> Option<R::Register> {
        None
    }

    /// The register, if it is written.
    fn destination<R: Representation>(_: Self::Of<R>) -> Option<R::Register> {
        None
    }
}

/// Operand types whose representation differs.
macro_rules! represented {
    ($( $name:ident: $associated:ident by $to_number:ident as $encoded:ident($number:ty), $accessor:ident; )+) => {$(
        #[doc = concat!("Operand type of [`OperandKind::", stringify!($name), "`].")]
        #[derive(Debug)]
        pub enum $name {}

        impl OperandType for $name {
            type Of<R: Representation> = R::$associated;

            const KIND: OperandKind = OperandKind::$name;

            #[inline(always)]
            fn number<R: Representation>(value: R::$associated) -> u32 {
                R::$to_number(value)
            }

            #[inline(always)]
            fn decode(number: u32) -> Option<$encoded> {
                Some($encoded(number as $number))
            }

            #[inline(always)]
            fn read(number: u32) -> $encoded {
                $encoded(number as $number)
            }

            fn translate<R, S, T>(value: R::$associated, translate: &mut T) -> S::$associated
            where
                R: Representation,
                S: Representation,
                T: Translate<R, S>,
            {
                translate.$accessor(value)
            }

            fn $accessor<R: Representation>(value: R::$associated) -> Option<R::$associated> {
                Some(value)
            }
        }
    )+};
}

represented! {
    Source: Register by register_number as RegisterId(u8), source;
    Destination: Register by register_number as RegisterId(u8), destination;
    Forward: Target by target_number as Position(u32), target;
    Backward: Target by target_number as Position(u32), target;
}

/// Operand types that are numbers in every representation.
macro_rules! ids {
    ($( $(#[doc = $doc:literal])+ $name:ident is $kind:ident, $prefix:literal; )+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<$name> for u32 {
            fn from(id: $name) -> u32 {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!($prefix, "{}"), self.0)
            }
        }

        ids!(@operand $name, $kind);
    )+};
    (@operand $name:ident, $kind:ident) => {
        impl OperandType for $name {
            type Of<R: Representation> = $name;

            const KIND: OperandKind = OperandKind::$kind;

            #[inline(always)]
            fn number<R: Representation>(value: $name) -> u32 {
                value.0
            }

            #[inline(always)]
            fn decode(number: u32) -> Option<$name> {
                Some($name(number))
            }

            #[inline(always)]
            fn read(number: u32) -> $name {
                $name(number)
            }

            fn translate<R, S, T>(value: $name, _: &mut T) -> $name
            where
                R: Representation,
                S: Representation,
                T: Translate<R, S>,
            {
                value
            }
        }
    };
}

ids! {
    /// Number of a loop slot of the frame.
    LoopSlot is Loop, "loop";
    /// Number of a fold slot of the frame.
    FoldSlot is Fold, "fold";
    /// Number of a list accumulator of the frame.
    ListSlot is List, "list";
    /// Number of a text accumulator of the frame.
    TextSlot is Accumulator, "text";
    /// Number of a static path.
    PathId is Path, "path";
    /// Number of a leaf predicate.
    LeafId is Leaf, "leaf";
    /// Number of a text.
    TextId is Text, "text";
    /// Number of a list of kind selectors.
    KindListId is Kinds, "kinds";
    /// Number of a list of texts.
    TextListId is Texts, "texts";
    /// Number of a list of pairs.
    PairListId is Pairs, "pairs";
    /// Number of a label selector.
    SelectorId is Selector, "selector";
    /// Number of a list of subjects.
    SubjectListId is Subjects, "subjects";
    /// Number of a label or annotation pattern.
    TagPatternId is TagPattern, "tags";
    /// Number of a constant value.
    ConstantId is Constant, "constant";
    /// Number of a slice.
    SliceId is Slice, "slice";
    /// Number of a variable of a rule's context.
    SlotId is Slot, "slot";
    /// Number of a context entry.
    EntryId is Entry, "entry";
    /// Number of a block.
    BlockId is Block, "block";
    /// Number of a shape.
    ShapeId is Shape, "shape";
    /// Number of a control.
    ControlId is Control, "control";
    /// Number of an exclusion.
    ExclusionId is Exclusion, "exclusion";
}

ids!(@operand SymbolId, Symbol);

/// Operand type of [`OperandKind::OptionalBlock`].
#[derive(Debug)]
pub enum OptionalBlock {}

impl OperandType for OptionalBlock {
    type Of<R: Representation> = Option<BlockId>;

    const KIND: OperandKind = OperandKind::OptionalBlock;

    fn number<R: Representation>(value: Option<BlockId>) -> u32 {
        value.map_or(NONE, |block| block.0)
    }

    fn decode(number: u32) -> Option<Option<BlockId>> {
        Some(Self::read(number))
    }

    fn read(number: u32) -> Option<BlockId> {
        (number != NONE).then_some(BlockId(number))
    }

    fn translate<R, S, T>(value: Option<BlockId>, _: &mut T) -> Option<BlockId>
    where
        R: Representation,
        S: Representation,
        T: Translate<R, S>,
    {
        value
    }
}
