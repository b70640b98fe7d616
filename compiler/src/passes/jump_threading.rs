//! Jump threading: a jump to a jump goes directly to the final target.

use std::collections::HashMap;

use kpvm_format::instruction::Op;

use crate::ir::{Block, Instruction, Item, Label, Rename};

/// Runs the pass over a block.
pub(super) fn run(block: &mut Block) {
    let mut forwarded: HashMap<Label, Label> = label_targets(block)
        .into_iter()
        .filter(|(_, instruction)| instruction.op() == Op::Jump)
        .filter_map(|(label, instruction)| Some((label, instruction.jump()?)))
        .collect();
    // Jumps only go forward, so following them terminates.
    let labels: Vec<Label> = forwarded.keys().copied().collect();
    for label in labels {
        let mut target = forwarded[&label];
        while let Some(&next) = forwarded.get(&target) {
            target = next;
        }
        forwarded.insert(label, target);
    }
    for item in &mut block.items {
        let Item::Instruction(instruction) = item else {
            continue;
        };
        if instruction.op() != Op::LoopNext {
            instruction.operation = instruction.operation.translate(&mut Rename {
                source: |register| register,
                destination: |register| register,
                target: |label| forwarded.get(&label).copied().unwrap_or(label),
            });
        }
    }
}

/// The first instruction after each label.
fn label_targets(block: &Block) -> HashMap<Label, &Instruction> {
    let mut targets = HashMap::new();
    let mut pending = Vec::new();
    for item in &block.items {
        match item {
            Item::Label(label) => pending.push(*label),
            Item::Instruction(instruction) => {
                targets.extend(pending.drain(..).map(|label| (label, instruction)));
            }
        }
    }
    targets
}
