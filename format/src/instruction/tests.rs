use zerocopy::FromZeros;
use zerocopy::little_endian::{U16, U32};

use super::*;
use crate::table::{Block, NONE, Shape};
use crate::verify::MAX_LOOP_DEPTH;
use crate::{Bundle, BundleBuilder};

#[test]
fn numbers_and_names_are_one_to_one() {
    for (number, &op) in Op::ALL.iter().enumerate() {
        assert_eq!(Op::decode(number as u8), Some(op));
        assert!(!op.documentation().is_empty());
    }
    assert_eq!(Op::decode(Op::ALL.len() as u8), None);
}

#[test]
fn no_two_operands_share_a_field() {
    for &op in Op::ALL {
        let operands = op.operands();
        for (index, operand) in operands.iter().enumerate() {
            assert!(
                operands[..index]
                    .iter()
                    .all(|other| other.field != operand.field),
                "{} encodes two operands in one field",
                op.name()
            );
        }
    }
}

#[test]
fn effects_agree_with_operands() {
    for &op in Op::ALL {
        let jumps = op
            .operands()
            .iter()
            .any(|operand| matches!(operand.kind, OperandKind::Forward | OperandKind::Backward));
        assert_eq!(jumps, op.effects().has(Effects::JUMPS), "{}", op.name());
        let is_target = |operand: &Operand| {
            matches!(operand.kind, OperandKind::Forward | OperandKind::Backward)
        };
        let mut targets = op.operands().iter().filter(|operand| is_target(operand));
        assert!(
            targets.all(|target| target.field == Field::D),
            "{}",
            op.name()
        );
        let loops = matches!(op, Op::LoopBegin | Op::LoopNext);
        assert_eq!(loops, op.effects().has(Effects::LOOPS), "{}", op.name());
    }
}

/// A bundle of one block over tables of one record each.
fn bundle(code: &[Instruction]) -> Vec<u8> {
    let mut builder = BundleBuilder::new();
    let text = builder.text("text");
    builder.symbols.intern("symbol");
    builder.texts.push(text);
    builder.paths.push(crate::table::Path {
        parent: U32::new(NONE),
        symbol: U32::ZERO,
    });
    builder.leaves.push(FromZeros::new_zeroed());
    builder.kind_lists.push(FromZeros::new_zeroed());
    builder.text_lists.push(FromZeros::new_zeroed());
    builder.pair_lists.push(FromZeros::new_zeroed());
    builder.subject_lists.push(FromZeros::new_zeroed());
    builder.selectors.push(FromZeros::new_zeroed());
    builder.tag_patterns.push(FromZeros::new_zeroed());
    builder.constants.push(FromZeros::new_zeroed());
    builder.slices.push(FromZeros::new_zeroed());
    builder.slots.push(FromZeros::new_zeroed());
    builder.entries.push(FromZeros::new_zeroed());
    builder.entry_places.push(FromZeros::new_zeroed());
    builder.controls.push(FromZeros::new_zeroed());
    builder.exclusions.push(FromZeros::new_zeroed());
    builder.shapes.push(Shape {
        item: U32::new(NONE),
        ..FromZeros::new_zeroed()
    });
    builder.meta.sources.push(String::new());
    builder.blocks.push(Block {
        start: U32::ZERO,
        length: U32::new(code.len() as u32),
        registers: U16::new(1),
        loops: 1,
        folds: 1,
        lists: 1,
        accumulators: 1,
        sites: crate::table::Range::EMPTY,
    });
    builder.code.extend(code);
    builder.finish()
}

fn is_accepted(code: &[Instruction]) -> Result<(), String> {
    Bundle::load(bundle(code))
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// A block around an operation with all operands zero, and the operation's position.
fn block_around(op: Op) -> (Vec<Instruction>, usize) {
    let jump = |op, target| {
        let mut instruction = Instruction::new(op);
        instruction.d = U32::new(target);
        instruction
    };
    let end = Instruction::new(Op::ReturnPass);
    let jumps = op.effects().has(Effects::JUMPS);
    match op {
        Op::LoopBegin => (vec![jump(op, 2), jump(Op::LoopNext, 1), end], 0),
        Op::LoopNext => (vec![jump(Op::LoopBegin, 2), jump(op, 1), end], 1),
        Op::CelOnError => (vec![jump(Op::CelIf, 2), jump(op, 2), end], 1),
        op if op.is_test() => (vec![jump(op, 2), jump(Op::CelOnError, 2), end], 0),
        op if jumps => (vec![jump(op, 1), end], 0),
        op => (vec![Instruction::new(op), end], 0),
    }
}

/// Numbers outside an operand's type: the one after its last, and the largest.
fn outside(operand: &Operand, position: usize, length: usize, symbols: u32) -> Vec<u32> {
    let most = match operand.field {
        Field::A | Field::B | Field::E => u32::from(u8::MAX),
        Field::C | Field::D => u32::MAX,
    };
    let numbers = match operand.kind {
        OperandKind::Immediate(kind) => match kind.last().checked_add(1) {
            Some(first) => vec![first, most],
            None => Vec::new(),
        },
        // Neither itself nor anything before it.
        OperandKind::Forward => vec![0, position as u32, length as u32, most],
        // Only the instruction after its `LoopBegin`.
        OperandKind::Backward => vec![0, 2, most],
        OperandKind::Symbol => vec![symbols, most],
        // `NONE` is valid.
        OperandKind::OptionalBlock => vec![1, NONE - 1],
        OperandKind::Loop => vec![1, MAX_LOOP_DEPTH as u32, most],
        OperandKind::Source
        | OperandKind::Destination
        | OperandKind::Fold
        | OperandKind::List
        | OperandKind::Accumulator
        | OperandKind::Path
        | OperandKind::Leaf
        | OperandKind::Text
        | OperandKind::Kinds
        | OperandKind::Texts
        | OperandKind::Pairs
        | OperandKind::Selector
        | OperandKind::Subjects
        | OperandKind::TagPattern
        | OperandKind::Constant
        | OperandKind::Slice
        | OperandKind::Slot
        | OperandKind::Entry
        | OperandKind::Block
        | OperandKind::Shape
        | OperandKind::Control
        | OperandKind::Exclusion => vec![1, most],
    };
    numbers
        .into_iter()
        .filter(|&number| number <= most)
        .collect()
}

#[test]
fn a_number_outside_of_an_operands_type_is_refused() {
    let bytes = bundle(&[Instruction::new(Op::ReturnPass)]);
    let symbols = Bundle::load(&bytes[..]).map_or(0, |bundle| bundle.tables().symbols.len());
    assert_ne!(symbols, 0);
    for &op in Op::ALL {
        let (code, position) = block_around(op);
        assert_eq!(is_accepted(&code), Ok(()), "{}", op.name());
        for operand in op.operands() {
            for number in outside(operand, position, code.len(), symbols as u32) {
                let mut code = code.clone();
                code[position].set(operand.field, number);
                assert!(
                    is_accepted(&code).is_err(),
                    "{} with {} {number}",
                    op.name(),
                    operand.name
                );
            }
        }
    }
}

#[test]
fn the_last_value_of_an_immediate_is_accepted() {
    for &op in Op::ALL {
        let (mut code, position) = block_around(op);
        for operand in op.operands() {
            if let OperandKind::Immediate(kind) = operand.kind {
                code[position].set(operand.field, kind.last());
                assert_eq!(code[position].operand(operand.field), kind.last());
                assert_eq!(is_accepted(&code), Ok(()), "{}", op.name());
            }
        }
    }
}

#[test]
fn a_field_without_an_operand_is_zero() {
    for &op in Op::ALL {
        let (code, position) = block_around(op);
        for field in [Field::A, Field::B, Field::E, Field::C, Field::D] {
            if op.operands().iter().all(|operand| operand.field != field) {
                let mut code = code.clone();
                code[position].set(field, 1);
                assert!(is_accepted(&code).is_err(), "{}", op.name());
            }
        }
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    for &op in Op::ALL {
        let (code, position) = block_around(op);
        let operation = Operation::decode(&code[position]);
        let operation = operation.unwrap_or_else(|| panic!("{} is not decoded", op.name()));
        assert_eq!(operation.op(), op);
        assert_eq!(operation.encode(), code[position]);
    }
    let mut unknown = Instruction::new(Op::ReturnPass);
    unknown.op = Op::ALL.len() as u8;
    assert_eq!(Operation::decode(&unknown), None);
}
