//! Common loads: a value that was loaded on every path to an instruction is not loaded
//! again, and a field that was found is not tested again.

use std::collections::HashMap;

use kpvm_format::instruction::Op;

use super::registers::writers;
use crate::ir::{Block, Instruction, Item, Label, Operation, Register, Rename};

/// What identifies a loaded value: the operation without its register and its target.
type Load = Operation;

/// The value that an instruction loads, if it is one that can be shared.
fn load_of(operation: Operation) -> Option<Load> {
    let load = match operation {
        // A field that is present has the value that `CelSelect` loads.
        Operation::CelIfHas {
            dst,
            src,
            key,
            target,
            ..
        } => Operation::CelSelect {
            dst,
            src,
            key,
            target,
        },
        Operation::LoadPath { .. }
        | Operation::LoadField { .. }
        | Operation::LoadIndex { .. }
        | Operation::CelPath { .. }
        | Operation::CelSelect { .. }
        | Operation::CelRange { .. }
        | Operation::CelRoot { .. }
        | Operation::CelVariable { .. } => operation,
        _ => return None,
    };
    Some(load.translate(&mut Rename {
        source: |register| register,
        destination: |_| Register::SUBJECT,
        target: |_| Label(0),
    }))
}

/// The largest number of loads remembered at a time: each keeps a register from other uses.
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
    // The load of a test, known after its `CelOnError`.
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
            let operation = instruction.operation;
            if operation.op() == Op::CelOnError && std::mem::take(&mut drops_on_error) {
                return false;
            }
            let jumps_if_there = matches!(operation, Operation::CelIfHas { when: true, .. });
            let mut loaded = None;
            if let (Some(load), Some(dst)) = (load_of(operation), operation.destination())
                && writers.get(&dst) == Some(&1)
            {
                if let Some(&register) = available.get(&load) {
                    renamed.insert(dst, register);
                    let Operation::CelIfHas { when, target, .. } = operation else {
                        return false;
                    };
                    // The field is present.
                    drops_on_error = true;
                    if !when {
                        return false;
                    }
                    *instruction = Operation::Jump { target }.into();
                } else if available.len() < MOST_KNOWN {
                    loaded = Some((load, dst));
                }
            }
            match instruction.operation {
                // The item of the next iteration is another value.
                Operation::LoopNext { item, .. } => forget(available, item),
                // Other parameters mean other variables.
                Operation::CelBindParams { .. } => available.clear(),
                operation => {
                    if let Some(label) = operation.target() {
                        let mut there = available.clone();
                        if jumps_if_there {
                            there.extend(loaded.take());
                        }
                        let met = meet(Some(there), at_label.get(&label));
                        at_label.extend(met.map(|met| (label, met)));
                    }
                    match operation.op() {
                        Op::CelIfHas => tested = loaded,
                        Op::CelOnError => available.extend(tested.take()),
                        _ => available.extend(loaded),
                    }
                }
            }
            if instruction.op().ends_block() && !drops_on_error {
                known = None;
            }
            true
        }
    });
    block.items = items;
}

fn rename_sources(instruction: &mut Instruction, renamed: &HashMap<Register, Register>) {
    instruction.operation = instruction.operation.translate(&mut Rename {
        source: |register| renamed.get(&register).copied().unwrap_or(register),
        destination: |register| register,
        target: |label| label,
    });
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

/// Forgets everything that was loaded from `register`, directly or indirectly.
fn forget(available: &mut HashMap<Load, Register>, register: Register) {
    let mut stale = vec![register];
    while let Some(register) = stale.pop() {
        available.retain(|load, loaded| {
            let derived = load.sources().any(|source| source == register);
            if derived {
                stale.push(*loaded);
            }
            !derived
        });
    }
}
