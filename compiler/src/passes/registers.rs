//! The writers of a block's registers.

use std::collections::HashMap;

use crate::ir::{Block, Item, Register};

/// How many instructions write each register.
pub(super) fn writers(block: &Block) -> HashMap<Register, usize> {
    let mut writers = HashMap::new();
    for item in &block.items {
        if let Item::Instruction(instruction) = item
            && let Some(register) = instruction.writes()
        {
            *writers.entry(register).or_insert(0) += 1;
        }
    }
    writers
}
