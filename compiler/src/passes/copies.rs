//! Copies: a value that is computed only to be copied is computed directly into the copy.

use std::collections::{HashMap, HashSet};

use kpvm_format::instruction::Op;

use super::registers::writers;
use crate::ir::{Block, Item, Operation, Register, Rename};

/// Runs the pass over a block.
pub(super) fn run(block: &mut Block) {
    let writers = writers(block);
    let mut readers: HashMap<Register, usize> = HashMap::new();
    for item in &block.items {
        if let Item::Instruction(instruction) = item {
            for register in instruction.reads() {
                *readers.entry(register).or_insert(0) += 1;
            }
        }
    }
    // The last instruction that only computes, if only its `CelOnError` follows it.
    let mut computes: Option<usize> = None;
    let mut copies = HashSet::new();
    for position in 0..block.items.len() {
        let Some(Item::Instruction(instruction)) = block.items.get(position) else {
            computes = None;
            continue;
        };
        match instruction.operation {
            Operation::Move { dst, src }
                if writers.get(&src) == Some(&1) && readers.get(&src) == Some(&1) =>
            {
                let computed = computes.take().and_then(|at| block.items.get_mut(at));
                if let Some(Item::Instruction(computed)) = computed
                    && computed.writes() == Some(src)
                {
                    computed.operation = computed.operation.translate(&mut Rename {
                        source: |register| register,
                        destination: |_| dst,
                        target: |label| label,
                    });
                    copies.insert(position);
                }
            }
            Operation::CelOnError { .. } => {}
            operation if computes_value(operation.op()) => computes = Some(position),
            _ => computes = None,
        }
    }
    let mut position = 0;
    block.items.retain(|_| {
        position += 1;
        !copies.contains(&(position - 1))
    });
}

/// Whether an operation does nothing but compute the value of its register, or fail.
fn computes_value(op: Op) -> bool {
    matches!(
        op,
        Op::LoadConstant
            | Op::CelPath
            | Op::CelSelect
            | Op::CelFind
            | Op::CelFindIndex
            | Op::CelIfFind
            | Op::CelUnary
            | Op::CelBinary
            | Op::CelCall
            | Op::CelVariable
    )
}
