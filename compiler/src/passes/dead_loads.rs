//! Dead loads: removes loads whose register is never read.

use std::collections::HashSet;

use kpvm_format::instruction::Op;

use crate::ir::{Block, Item, Register};

/// Runs the pass over a block.
pub(super) fn run(block: &mut Block) {
    while remove_dead_loads(block) {}
}

/// Whether all that the operation does is to write its register.
fn is_pure(op: Op) -> bool {
    matches!(
        op,
        Op::LoadPath | Op::LoadField | Op::LoadIndex | Op::CelRoot
    )
}

fn remove_dead_loads(block: &mut Block) -> bool {
    let read: HashSet<Register> = block
        .items
        .iter()
        .flat_map(|item| match item {
            Item::Instruction(instruction) => instruction.reads().collect::<Vec<_>>(),
            Item::Label(_) => Vec::new(),
        })
        .collect();
    let before = block.items.len();
    block.items.retain(|item| match item {
        Item::Instruction(instruction) => {
            !is_pure(instruction.op) || read.contains(&Register(instruction.a))
        }
        Item::Label(_) => true,
    });
    block.items.len() != before
}
