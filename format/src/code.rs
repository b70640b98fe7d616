//! Packed code: how bundles store instructions.
//!
//! One byte for the operation, then a varint for each operand that the operation has, in the
//! order of the table of instructions: about a third of the fixed-size [`Instruction`]s that
//! run. A jump forward is stored as the distance from the instruction after it, a jump back as
//! the distance from the jump. Loading unpacks each piece of code once; operations and unused
//! fields are right by construction.

use crate::instruction::{Instruction, Op, OperandKind};
use crate::varint;

/// Unpacks pieces of code of these lengths; `None` unless the bytes are exactly these and each
/// instruction is of a known operation with operands that its fields can hold.
pub(crate) fn unpack(
    mut bytes: &[u8],
    lengths: impl Iterator<Item = u32>,
) -> Option<Vec<Instruction>> {
    let mut code = Vec::with_capacity(bytes.len() / 3);
    for length in lengths {
        for position in 0..length {
            code.push(read(&mut bytes, position)?);
        }
    }
    bytes.is_empty().then_some(code)
}

fn read(bytes: &mut &[u8], position: u32) -> Option<Instruction> {
    let (&op, rest) = bytes.split_first()?;
    *bytes = rest;
    let op = Op::decode(op)?;
    let mut instruction = Instruction::new(op);
    for operand in op.operands() {
        let value = varint::read(bytes)?;
        let value = match operand.kind {
            OperandKind::Forward => position.checked_add(1)?.checked_add(value)?,
            OperandKind::Backward => position.checked_sub(value)?,
            _ => value,
        };
        instruction.set(operand.field, value);
        if instruction.operand(operand.field) != value {
            return None;
        }
    }
    Some(instruction)
}

/// What is packed instead of an instruction that is none.
const NO_INSTRUCTION: u8 = u8::MAX;

/// Packs one piece of code. An instruction that does not exist is packed as one that is
/// refused.
pub(crate) fn pack(code: &[Instruction], bytes: &mut Vec<u8>) {
    for (position, instruction) in (0u32..).zip(code) {
        let Some(op) = Op::decode(instruction.op).filter(|&op| is_exact(op, instruction)) else {
            bytes.push(NO_INSTRUCTION);
            continue;
        };
        bytes.push(op as u8);
        for operand in op.operands() {
            let value = instruction.operand(operand.field);
            let value = match operand.kind {
                OperandKind::Forward => value.wrapping_sub(position).wrapping_sub(1),
                OperandKind::Backward => position.wrapping_sub(value),
                _ => value,
            };
            varint::write(value, bytes);
        }
    }
}

/// Whether every field without an operand is zero.
fn is_exact(op: Op, instruction: &Instruction) -> bool {
    let mut exact = Instruction::new(op);
    for operand in op.operands() {
        exact.set(operand.field, instruction.operand(operand.field));
    }
    exact == *instruction
}
