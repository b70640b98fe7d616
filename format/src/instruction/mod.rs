//! The instruction set, defined once: the table in `table.rs` lists every operation with its
//! typed operands and its effects. [`Op`], [`Operation`], the encoder, the decoder, the
//! verifier, the disassembler and the documentation derive from it.
//!
//! An instruction is twelve bytes: operation, three one-byte operands `a`, `b`
//! and `e` (registers and slots), and two four-byte operands `c` (a number of a
//! table entry, or an immediate) and `d` (a jump target, counted in instructions
//! from the start of the block). All integers are little endian; no alignment is
//! needed, so code is run in place from the bundle's bytes.
//!
//! A *check* falls through when it holds; otherwise it sets the machine's error
//! (kind, text, path) and jumps to `d`. A *match* operation does the same without
//! an error. The kinds of error and how folds combine them: docs/spec/patterns.md §3.
//! A *test* has three ways to continue: at `d`, after the `CelOnError` that follows it, or
//! with an error at that `CelOnError`.

mod effect;
pub mod immediate;
mod operand;
mod table;
#[cfg(test)]
mod tests;

pub use effect::Effects;
pub use immediate::{Immediate, ImmediateType};
pub use operand::*;
pub use table::{Decoded, Op, Operation, operands};

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One encoded instruction.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Instruction {
    /// Number of the operation, an [`Op`].
    pub op: u8,
    /// First small operand.
    pub a: u8,
    /// Second small operand.
    pub b: u8,
    /// Third small operand.
    pub e: u8,
    /// Table entry or immediate.
    pub c: U32,
    /// Jump target, or a second table entry.
    pub d: U32,
}

/// The field of the instruction that holds an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// [`Instruction::a`]
    A,
    /// [`Instruction::b`]
    B,
    /// [`Instruction::e`]
    E,
    /// [`Instruction::c`]
    C,
    /// [`Instruction::d`]
    D,
}

/// One operand of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Name shown by the disassembler.
    pub name: &'static str,
    /// Where it is encoded.
    pub field: Field,
    /// What it means.
    pub kind: OperandKind,
}

impl Op {
    /// The operation with that number.
    #[inline]
    pub fn decode(number: u8) -> Option<Op> {
        Op::ALL.get(number as usize).copied()
    }

    /// Whether the block never continues after it.
    pub fn ends_block(self) -> bool {
        self.effects().has(Effects::ENDS)
    }

    /// Whether a `CelOnError` belongs to it.
    pub fn is_test(self) -> bool {
        self.effects().has(Effects::TESTS)
    }
}

impl Instruction {
    /// An instruction with all operands zero.
    pub fn new(op: Op) -> Self {
        Self {
            op: op as u8,
            a: 0,
            b: 0,
            e: 0,
            c: U32::ZERO,
            d: U32::ZERO,
        }
    }

    /// The position that it may jump to; without meaning for an operation that never jumps.
    #[inline(always)]
    pub fn target(&self) -> usize {
        self.d.get() as usize
    }

    /// Sets the operand in `field`; of a small one only the low byte is kept.
    pub fn set(&mut self, field: Field, value: u32) {
        match field {
            Field::A => self.a = value as u8,
            Field::B => self.b = value as u8,
            Field::E => self.e = value as u8,
            Field::C => self.c = U32::new(value),
            Field::D => self.d = U32::new(value),
        }
    }

    /// The value of the operand in `field`.
    #[inline(always)]
    pub fn operand(&self, field: Field) -> u32 {
        match field {
            Field::A => u32::from(self.a),
            Field::B => u32::from(self.b),
            Field::E => u32::from(self.e),
            Field::C => self.c.get(),
            Field::D => self.d.get(),
        }
    }
}
