//! Common loads: a value that was loaded on every path to an instruction is not loaded again,
//! and where a field was found it is not tested for again.

use std::collections::HashMap;

use kpvm_format::instruction::{Op, OperandKind};

use super::registers::writers;
use crate::ir::{Block, Instruction, Item, Label, Register};

/// What identifies a loaded value: operation, source register, and path, key or index.
type Load = (Op, u32, u32);

fn load_of(instruction: &Instruction) -> Option<Load> {
    let op = match instruction.op {
        // A field that is there has the value that `CelSelect` gives.
        Op::CelIfHas => Op::CelSelect,
        op @ (Op::LoadPath
        | Op::LoadField
        | Op::LoadIndex
        | Op::CelPath
        | Op::CelSelect
        | Op::CelRange
        | Op::CelRoot
        | Op::CelVariable) => op,
        _ => return None,
    };
    // `CelRange` has no operand `c`; `e` tells its loads apart.
    let what = match op {
        Op::CelRange => instruction.e,
        _ => instruction.c,
    };
    Some((op, instruction.b, what))
}

/// Most loads that are remembered at a time: each keeps a register from other uses.
const MOST_KNOWN: usize = 64;

/// Runs the pass over a block.
///
/// Jumps go forward except the back edge of a loop, whose body starts with what was known
/// before the loop. So one walk in order sees every path to a label before the label.
pub(super) fn run(block: &mut Block) {
    let writers = writers(block);
    let mut known: Option<HashMap<Load, Register>> = Some(HashMap::new());
    let mut at_label: HashMap<Label, HashMap<Load, Register>> = HashMap::new();
    let mut renamed: HashMap<Register, Register> = HashMap::new();
    // What a test loaded, known after its `CelOnError`.
    let mut tested: Option<(Load, Register)> = None;
    let mut drops_on_error = false;
    let mut items = std::mem::take(&mut block.items);
    items.retain_mut(|item| match item {
        Item::Label(label) => {
            known = meet(known.take(), at_label.get(label));
            true
        }
        Item::Instruction(instruction) => {
            rename_sources(instruction, &renamed);
            let Some(available) = &mut known else {
                return true;
            };
            if instruction.op == Op::CelOnError && std::mem::take(&mut drops_on_error) {
                return false;
            }
            let mut loaded = None;
            let dst = Register(instruction.a);
            if let Some(load) = load_of(instruction)
                && writers.get(&dst) == Some(&1)
            {
                if let Some(&register) = available.get(&load) {
                    renamed.insert(dst, register);
                    if instruction.op != Op::CelIfHas {
                        return false;
                    }
                    // The field is there.
                    drops_on_error = true;
                    if instruction.e == 0 {
                        return false;
                    }
                    *instruction = Instruction::new(Op::Jump).d(instruction.d);
                } else if available.len() < MOST_KNOWN {
                    loaded = Some((load, dst));
                }
            }
            match instruction.op {
                // The item of the next round is another value.
                Op::LoopNext => forget(available, Register(instruction.e)),
                // Other parameters, other variables.
                Op::CelBindParams => available.clear(),
                op => {
                    if let Some(label) = instruction.jump() {
                        let mut there = available.clone();
                        if op == Op::CelIfHas && instruction.e != 0 {
                            there.extend(loaded.take());
                        }
                        let met = meet(Some(there), at_label.get(&label));
                        at_label.extend(met.map(|met| (label, met)));
                    }
                    match op {
                        Op::CelIfHas => tested = loaded,
                        Op::CelOnError => available.extend(tested.take()),
                        _ => available.extend(loaded),
                    }
                }
            }
            if instruction.op.ends_block() && !drops_on_error {
                known = None;
            }
            true
        }
    });
    block.items = items;
}

fn rename_sources(instruction: &mut Instruction, renamed: &HashMap<Register, Register>) {
    for operand in instruction.op.operands() {
        if operand.kind == OperandKind::Source {
            let field = instruction.field_mut(operand.field);
            *field = renamed
                .get(&Register(*field))
                .map_or(*field, |register| register.0);
        }
    }
}

fn meet(
    here: Option<HashMap<Load, Register>>,
    there: Option<&HashMap<Load, Register>>,
) -> Option<HashMap<Load, Register>> {
    match (here, there) {
        (None, None) => None,
        (None, Some(there)) => Some(there.clone()),
        (Some(here), None) => Some(here),
        (Some(mut here), Some(there)) => {
            here.retain(|load, register| there.get(load) == Some(register));
            Some(here)
        }
    }
}

/// Forgets everything that was loaded from `register`, directly or not.
fn forget(available: &mut HashMap<Load, Register>, register: Register) {
    let mut stale = vec![register];
    while let Some(register) = stale.pop() {
        available.retain(|&(_, source, _), loaded| {
            let derived = source == register.0;
            if derived {
                stale.push(*loaded);
            }
            !derived
        });
    }
}
