//! Dead loads: removes loads whose register is never read.

use std::collections::HashSet;

use kpvm_format::instruction::{Effects, Op};

use crate::ir::{Block, Item, Register};

/// Runs the pass over a block.
pub(super) fn run(block: &mut Block) {
    while remove_dead_loads(block) {}
}

/// Whether the operation only writes its register.
fn is_pure(op: Op) -> bool {
    op.effects().are_within(Effects::READING)
}

fn remove_dead_loads(block: &mut Block) -> bool {
    let read: HashSet<Register> = block
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Instruction(instruction) => Some(instruction.reads()),
            Item::Label(_) => None,
        })
        .flatten()
        .collect();
    let before = block.items.len();
    block.items.retain(|item| match item {
        Item::Instruction(instruction) => {
            let is_read = |register| read.contains(&register);
            !is_pure(instruction.op()) || instruction.writes().is_none_or(is_read)
        }
        Item::Label(_) => true,
    });
    block.items.len() != before
}
