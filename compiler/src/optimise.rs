//! The optimiser: works on blocks of the IR and knows no dialect.
//!
//! - *jump threading*: a jump to a jump goes to where that one goes;
//! - *dead code*: instructions that nothing reaches, labels that nobody jumps to,
//!   jumps to the next instruction;
//! - *common loads*: a value loaded on every way to an instruction is not loaded again, and
//!   where a field was found it is not tested for again;
//! - *dead loads*: a load whose register nobody reads goes;
//! - *copies*: what is only computed to be copied is computed in place.
//!
//! Nothing here changes an outcome, a message or the order of checks.

use std::collections::{HashMap, HashSet};

use kpvm_format::instruction::{Op, OperandKind};

use crate::ir::{Block, Instruction, Item, Label, Register};

/// Runs every pass until none finds anything.
pub(crate) fn optimise(block: &mut Block) {
    thread_jumps(block);
    while remove_unreachable(block) || remove_idle_jumps(block) || remove_unused_labels(block) {}
    share_loads(block);
    while remove_unreachable(block) || remove_idle_jumps(block) || remove_unused_labels(block) {}
    while remove_dead_loads(block) {}
    write_in_place(block);
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
    let op = match instruction.op {
        // Where the field is there, it is what `CelSelect` gives.
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
    // `CelRange` has no operand `c`, but another one that counts.
    let what = match op {
        Op::CelRange => instruction.e,
        _ => instruction.c,
    };
    Some((op, instruction.b, what))
}

/// Whether all that the operation does is to write its register.
fn is_pure(op: Op) -> bool {
    matches!(
        op,
        Op::LoadPath | Op::LoadField | Op::LoadIndex | Op::CelRoot
    )
}

/// Loads that are remembered at a time: each keeps a register from other uses.
const MOST_KNOWN: usize = 64;

/// Replaces loads of values that some register holds already on every way here.
///
/// Jumps only go forward but for the back edge of a loop, whose body starts with
/// what was known in front of the loop, so one pass in order sees every way to a
/// label before the label.
fn share_loads(block: &mut Block) {
    let writers = writers(block);
    let mut known: Option<HashMap<Load, Register>> = Some(HashMap::new());
    let mut at_label: HashMap<Label, HashMap<Load, Register>> = HashMap::new();
    let mut renamed: HashMap<Register, Register> = HashMap::new();
    // What a test loaded, which is known behind its `CelOnError`.
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

/// How many instructions write each register.
fn writers(block: &Block) -> HashMap<Register, usize> {
    let mut writers = HashMap::new();
    for item in &block.items {
        if let Item::Instruction(instruction) = item {
            for register in instruction.writes() {
                *writers.entry(register).or_insert(0) += 1;
            }
        }
    }
    writers
}

/// Where a value is computed and then only copied, it is computed where it is copied to.
fn write_in_place(block: &mut Block) {
    let writers = writers(block);
    let mut readers: HashMap<Register, usize> = HashMap::new();
    for item in &block.items {
        if let Item::Instruction(instruction) = item {
            for register in instruction.reads() {
                *readers.entry(register).or_insert(0) += 1;
            }
        }
    }
    // The last instruction that only computes, if nothing but its `CelOnError` is behind it.
    let mut computes: Option<usize> = None;
    let mut copies = HashSet::new();
    for position in 0..block.items.len() {
        let Some(Item::Instruction(instruction)) = block.items.get(position) else {
            computes = None;
            continue;
        };
        let (into, from) = (instruction.a, Register(instruction.b));
        match instruction.op {
            Op::Move if writers.get(&from) == Some(&1) && readers.get(&from) == Some(&1) => {
                let computed = computes.take().and_then(|at| block.items.get_mut(at));
                if let Some(Item::Instruction(computed)) = computed
                    && computed.a == from.0
                {
                    computed.a = into;
                    copies.insert(position);
                }
            }
            Op::CelOnError => {}
            Op::LoadConstant
            | Op::CelPath
            | Op::CelSelect
            | Op::CelFind
            | Op::CelFindIndex
            | Op::CelIfFind
            | Op::CelUnary
            | Op::CelBinary
            | Op::CelCall
            | Op::CelVariable => computes = Some(position),
            _ => computes = None,
        }
    }
    let mut position = 0;
    block.items.retain(|_| {
        position += 1;
        !copies.contains(&(position - 1))
    });
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
            !is_pure(instruction.op) || read.contains(&Register(instruction.a))
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

    fn has(block: &mut Block, when: u32, target: Label, on_error: Label) -> Register {
        let field = block.register();
        let test = Instruction::new(Op::CelIfHas).a(field.0).e(when).c(7);
        block.push(test.target(target));
        block.push(Instruction::new(Op::CelOnError).target(on_error));
        field
    }

    fn select(block: &mut Block, on_error: Label) -> Register {
        let field = block.register();
        let select = Instruction::new(Op::CelSelect).a(field.0).c(7);
        block.push(select.target(on_error));
        field
    }

    fn finish(block: &mut Block, value: Register, others: &[Label]) {
        block.push(Instruction::new(Op::ReturnValue).a(value.0));
        for &label in others {
            block.place(label);
        }
        block.push(Instruction::new(Op::ReturnNothing));
        optimise(block);
    }

    #[test]
    fn a_field_that_was_found_is_neither_tested_for_nor_loaded_again() {
        let mut block = Block::new();
        let (absent, failed) = (block.label(), block.label());
        has(&mut block, 0, absent, failed);
        has(&mut block, 0, absent, failed);
        let value = select(&mut block, failed);
        finish(&mut block, value, &[absent, failed]);
        let expected = ["CelIfHas", "CelOnError", "ReturnValue", "ReturnNothing"];
        assert_eq!(names(&block), expected);
    }

    /// With an error, or where the field is not there, nothing was found.
    #[test]
    fn a_field_is_known_only_where_it_was_found() {
        for (when, expected) in [(0, 3), (1, 2)] {
            let mut block = Block::new();
            let (target, failed) = (block.label(), block.label());
            has(&mut block, when, target, failed);
            let behind = select(&mut block, failed);
            block.push(Instruction::new(Op::ReturnValue).a(behind.0));
            block.place(target);
            let there = select(&mut block, failed);
            block.push(Instruction::new(Op::ReturnValue).a(there.0));
            block.place(failed);
            let failed = block.label();
            let again = select(&mut block, failed);
            finish(&mut block, again, &[failed]);
            // Behind the test, at its target, and with its error.
            let selects = names(&block)
                .iter()
                .filter(|&&name| name == "CelSelect")
                .count();
            assert_eq!(
                selects,
                if when == 0 { expected - 1 } else { expected },
                "{when}"
            );
        }
    }

    #[test]
    fn what_is_only_copied_is_computed_in_place() {
        let mut block = Block::new();
        let failed = block.label();
        let into = block.register();
        let value = select(&mut block, failed);
        block.push(Instruction::new(Op::Move).a(into.0).b(value.0));
        finish(&mut block, into, &[failed]);
        assert_eq!(names(&block), ["CelSelect", "ReturnValue", "ReturnNothing"]);
        // Somebody else reads it.
        let mut block = Block::new();
        let failed = block.label();
        let into = block.register();
        let value = select(&mut block, failed);
        block.push(Instruction::new(Op::Move).a(into.0).b(value.0));
        check(&mut block, value, failed);
        finish(&mut block, into, &[failed]);
        assert!(names(&block).contains(&"Move"));
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
