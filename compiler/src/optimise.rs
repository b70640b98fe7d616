//! The optimiser: works on blocks of the IR and knows no dialect.
//!
//! - *jump threading*: a jump to a jump goes to where that one goes;
//! - *dead code*: instructions that nothing reaches, labels that nobody jumps to,
//!   jumps to the next instruction;
//! - *common loads*: a value loaded on every way to an instruction is not loaded again;
//! - *dead loads*: a load whose register nobody reads goes.
//!
//! Nothing here changes an outcome, a message or the order of checks.

use std::collections::{HashMap, HashSet};

use kpvm_format::instruction::{Op, OperandKind};

use crate::ir::{Block, Instruction, Item, Label, Register};

/// Runs every pass until none finds anything.
pub fn optimise(block: &mut Block) {
    thread_jumps(block);
    while remove_unreachable(block) || remove_idle_jumps(block) || remove_unused_labels(block) {}
    share_loads(block);
    while remove_dead_loads(block) {}
}

/// The items behind a label up to the first instruction.
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

fn thread_jumps(block: &mut Block) {
    let mut forwarded: HashMap<Label, Label> = label_targets(block)
        .into_iter()
        .filter(|(_, instruction)| instruction.op == Op::Jump)
        .filter_map(|(label, instruction)| Some((label, instruction.jump()?)))
        .collect();
    // Jumps only go forward, so following them ends.
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
        for operand in instruction.op.operands() {
            if operand.kind == OperandKind::Forward {
                let field = instruction.field_mut(operand.field);
                *field = forwarded
                    .get(&Label(*field))
                    .map_or(*field, |label| label.0);
            }
        }
    }
}

/// Removes what stands behind an end and in front of the next label that is used.
///
/// The instructions of a loop (`LoopBegin`, `LoopNext`) always stay, because they
/// are a pair.
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
            let keep = reachable || matches!(instruction.op, Op::LoopBegin | Op::LoopNext);
            reachable = if keep {
                !instruction.op.ends_block()
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

/// Removes jumps to what stands behind them anyway.
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
        instruction.op == Op::Jump
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

/// What identifies a loaded value: operation, source register, and path, key or index.
type Load = (Op, u32, u32);

fn load_of(instruction: &Instruction) -> Option<Load> {
    match instruction.op {
        Op::LoadPath | Op::LoadField | Op::LoadIndex => {
            Some((instruction.op, instruction.b, instruction.c))
        }
        _ => None,
    }
}

/// Replaces loads of values that some register holds already on every way here.
///
/// Jumps only go forward but for the back edge of a loop, whose body starts with
/// what was known in front of the loop, so one pass in order sees every way to a
/// label before the label.
fn share_loads(block: &mut Block) {
    let mut known: Option<HashMap<Load, Register>> = Some(HashMap::new());
    let mut at_label: HashMap<Label, HashMap<Load, Register>> = HashMap::new();
    let mut renamed: HashMap<Register, Register> = HashMap::new();
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
            if let Some(load) = load_of(instruction) {
                if let Some(&register) = available.get(&load) {
                    renamed.insert(Register(instruction.a), register);
                    return false;
                }
                available.insert(load, Register(instruction.a));
            }
            if instruction.op == Op::LoopNext {
                // The item of the next round is another value.
                forget(available, Register(instruction.e));
            } else if let Some(label) = instruction.jump() {
                let met = meet(Some(available.clone()), at_label.get(&label));
                at_label.extend(met.map(|met| (label, met)));
            }
            if instruction.op.ends_block() {
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
            load_of(instruction).is_none() || read.contains(&Register(instruction.a))
        }
        Item::Label(_) => true,
    });
    block.items.len() != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(block: &Block) -> Vec<&'static str> {
        block
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Instruction(instruction) => Some(instruction.op.name()),
                Item::Label(_) => None,
            })
            .collect()
    }

    fn load(block: &mut Block, source: Register, key: u32) -> Register {
        let register = block.register();
        block.push(
            Instruction::new(Op::LoadField)
                .a(register.0)
                .b(source.0)
                .c(key),
        );
        register
    }

    fn check(block: &mut Block, register: Register, label: Label) {
        block.push(Instruction::new(Op::RequireMap).a(register.0).target(label));
    }

    #[test]
    fn a_value_loaded_on_every_way_is_loaded_once() {
        let mut block = Block::new();
        let fail = block.label();
        let first = load(&mut block, Register::SUBJECT, 7);
        check(&mut block, first, fail);
        let second = load(&mut block, Register::SUBJECT, 7);
        check(&mut block, second, fail);
        block.push(Instruction::new(Op::ReturnPass));
        block.place(fail);
        block.push(Instruction::new(Op::ReturnError));
        optimise(&mut block);
        assert_eq!(
            names(&block),
            [
                "LoadField",
                "RequireMap",
                "RequireMap",
                "ReturnPass",
                "ReturnError"
            ]
        );
    }

    #[test]
    fn a_value_loaded_on_one_way_only_is_loaded_again() {
        let mut block = Block::new();
        let (fail, join) = (block.label(), block.label());
        let optional = load(&mut block, Register::SUBJECT, 1);
        block.push(
            Instruction::new(Op::JumpIfMissing)
                .a(optional.0)
                .target(join),
        );
        let inside = load(&mut block, Register::SUBJECT, 2);
        check(&mut block, inside, fail);
        block.place(join);
        let behind = load(&mut block, Register::SUBJECT, 2);
        check(&mut block, behind, fail);
        block.push(Instruction::new(Op::ReturnPass));
        block.place(fail);
        block.push(Instruction::new(Op::ReturnError));
        optimise(&mut block);
        assert_eq!(
            names(&block)
                .iter()
                .filter(|&&name| name == "LoadField")
                .count(),
            3
        );
    }

    #[test]
    fn dead_code_and_idle_jumps_go() {
        let mut block = Block::new();
        let (over, end) = (block.label(), block.label());
        load(&mut block, Register::SUBJECT, 1);
        block.jump(over);
        block.push(Instruction::new(Op::ReturnError));
        block.place(over);
        block.jump(end);
        block.place(end);
        block.push(Instruction::new(Op::ReturnPass));
        optimise(&mut block);
        assert_eq!(names(&block), ["ReturnPass"]);
    }
}
