//! Dead code: removes unreachable instructions, labels without jumps, and jumps to the next
//! instruction.

use std::collections::HashSet;

use kpvm_format::instruction::Op;

use crate::ir::{Block, Item, Label};

/// Runs the pass over a block.
pub(super) fn run(block: &mut Block) {
    while remove_unreachable(block) || remove_idle_jumps(block) || remove_unused_labels(block) {}
}

/// Removes the instructions between an end and the next label that is used.
///
/// `LoopBegin` and `LoopNext` always stay, because they are a pair.
fn remove_unreachable(block: &mut Block) -> bool {
    let used = used_labels(block);
    let before = block.items.len();
    let mut reachable = true;
    block.items.retain(|item| match item {
        Item::Label(label) => {
            reachable |= used.contains(label);
            true
        }
        Item::Instruction(instruction) => {
            let keep = reachable || matches!(instruction.op(), Op::LoopBegin | Op::LoopNext);
            reachable = if keep {
                !instruction.op().ends_block()
            } else {
                false
            };
            keep
        }
    });
    block.items.len() != before
}

fn used_labels(block: &Block) -> HashSet<Label> {
    block
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Instruction(instruction) => instruction.jump(),
            Item::Label(_) => None,
        })
        .collect()
}

fn remove_unused_labels(block: &mut Block) -> bool {
    let used = used_labels(block);
    let before = block.items.len();
    block.items.retain(|item| match item {
        Item::Label(label) => used.contains(label),
        Item::Instruction(_) => true,
    });
    block.items.len() != before
}

/// Removes jumps to the next instruction.
fn remove_idle_jumps(block: &mut Block) -> bool {
    let idle = |position: usize| {
        let Some(Item::Instruction(instruction)) = block.items.get(position) else {
            return false;
        };
        let behind = block.items[position + 1..]
            .iter()
            .map_while(|item| match item {
                Item::Label(label) => Some(*label),
                Item::Instruction(_) => None,
            });
        instruction.op() == Op::Jump
            && instruction
                .jump()
                .is_some_and(|label| behind.into_iter().any(|next| next == label))
    };
    let idle: HashSet<usize> = (0..block.items.len())
        .filter(|&position| idle(position))
        .collect();
    let mut position = 0;
    block.items.retain(|_| {
        position += 1;
        !idle.contains(&(position - 1))
    });
    !idle.is_empty()
}
