//! What code demands, row by row; and which code is not part of a plan.

use kpvm_format::Tables;
use kpvm_format::instruction::{Instruction, Op};
use kpvm_format::plan::DemandKind;
use kpvm_format::symbol::{SymbolId, SymbolTable, SymbolTableBuilder};
use kpvm_format::table::{Block, Leaf, LeafKind, NONE, Path, Range, Text};

use super::body::add_body;
use super::spots::{Demand, Spot, Spots};

/// The paths and keys of the rows: paths are `/spec` (0), `/spec/on` (1) and `/meta` (2).
const KEYS: [&str; 5] = ["spec", "on", "meta", "list", "deep"];
const SPEC: u32 = 0;
const ON: u32 = 1;
const META: u32 = 2;

/// The leaves: `true` (0), and null, which a missing value satisfies (1).
const IS_TRUE: u32 = 0;
const IS_NULL: u32 = 1;

fn key(name: &str) -> u32 {
    let number = KEYS.iter().position(|key| *key == name);
    number.expect("a key of the table") as u32
}

fn op(op: Op) -> Instruction {
    Instruction::new(op)
}

fn load(register: u8, path: u32) -> Instruction {
    Instruction {
        a: register,
        c: path.into(),
        ..op(Op::LoadPath)
    }
}

fn field(register: u8, of: u8, name: &str) -> Instruction {
    Instruction {
        a: register,
        b: of,
        c: key(name).into(),
        ..op(Op::LoadField)
    }
}

/// An instruction about a register that may jump.
fn to(number: Op, register: u8, target: u32) -> Instruction {
    Instruction {
        a: register,
        d: target.into(),
        ..op(number)
    }
}

fn leaf(register: u8, leaf: u32, target: u32) -> Instruction {
    Instruction {
        c: leaf.into(),
        ..to(Op::TestLeaf, register, target)
    }
}

fn begin(list: u8, item: u8, target: u32) -> Instruction {
    Instruction {
        b: list,
        e: item,
        ..to(Op::LoopBegin, 0, target)
    }
}

fn next(item: u8, target: u32) -> Instruction {
    Instruction {
        e: item,
        ..to(Op::LoopNext, 0, target)
    }
}

fn alternative(number: Op, index: u32) -> Instruction {
    Instruction {
        c: index.into(),
        ..op(number)
    }
}

/// The demands in the plan of a block: a line for each spot, with the alternatives that
/// each demand breaks; empty if the block is not part of it.
fn demands(code: &[Instruction]) -> Vec<String> {
    let mut symbols = SymbolTableBuilder::new();
    for key in KEYS {
        symbols.intern(key);
    }
    let symbols = symbols.finish();
    let path = |parent: u32, symbol: &str| Path {
        parent: parent.into(),
        symbol: key(symbol).into(),
    };
    let leaf = |kind: LeafKind, value: u64| Leaf {
        kind: kind as u8,
        value: value.into(),
        text: Text {
            offset: 0.into(),
            length: 0.into(),
        },
        alternatives: Range::EMPTY,
    };
    let block = Block {
        start: 0.into(),
        length: (code.len() as u32).into(),
        registers: 8.into(),
        loops: 1,
        folds: 1,
        lists: 0,
        accumulators: 0,
        sites: Range::EMPTY,
    };
    let tables = Tables {
        symbols: SymbolTable::verify(&symbols).expect("the table is sound"),
        code,
        blocks: &[block],
        paths: &[path(NONE, "spec"), path(SPEC, "on"), path(NONE, "meta")],
        leaves: &[leaf(LeafKind::Bool, 1), leaf(LeafKind::Null, 0)],
        ..Tables::EMPTY
    };
    let mut spots = Spots::new();
    add_body(&mut spots, &tables, 0);
    let mut lines = Vec::new();
    if !spots.bodies.is_empty() {
        show(&spots, Spot::ROOT, "", &tables, &mut lines);
    }
    lines
}

fn show(spots: &Spots, spot: Spot, path: &str, tables: &Tables<'_>, lines: &mut Vec<String>) {
    let node = spots.node(spot).expect("a spot of the plan");
    let name = |key: Option<SymbolId>| match key {
        Some(key) => format!("/{}", tables.symbols.text(key)),
        None => "/*".to_owned(),
    };
    let show_kind = |(kind, operand): &Demand| match kind {
        DemandKind::Leaf | DemandKind::ItemLeaf | DemandKind::Tags => {
            format!("{kind:?}({operand})")
        }
        DemandKind::Map | DemandKind::List | DemandKind::Some | DemandKind::Nothing => {
            format!("{kind:?}")
        }
    };
    let tests = node.tests.iter();
    let mut parts: Vec<String> = tests
        .map(|(demand, breaks)| format!("{}{breaks:?}", show_kind(demand)))
        .collect();
    for below in spots.below(spot) {
        let child = spots.node(below).expect("a spot of the plan");
        if !child.required_by.is_empty() {
            parts.push(format!("needs {}{:?}", name(child.key), child.required_by));
        }
    }
    if !parts.is_empty() {
        lines.push(format!("{path}: {}", parts.join(", ")));
    }
    for below in spots.below(spot) {
        let key = spots.node(below).expect("a spot of the plan").key;
        show(spots, below, &format!("{path}{}", name(key)), tables, lines);
    }
}

#[test]
fn code_is_read_as_demands() {
    let pass = || op(Op::ReturnPass);
    let fail = || op(Op::ReturnError);
    let rows: Vec<(&str, Vec<Instruction>, &[&str])> = vec![
        (
            "a key that has to be there",
            vec![load(1, ON), leaf(1, IS_TRUE, 3), pass(), fail()],
            &[
                ": Map[0], needs /spec[0]",
                "/spec: Map[0], needs /on[0]",
                "/spec/on: Leaf(0)[0]",
                "/spec/on/*: ItemLeaf(0)[0]",
            ],
        ),
        (
            "a key that may be missing, as null fits",
            vec![load(1, ON), leaf(1, IS_NULL, 3), pass(), fail()],
            &["/spec/on: Leaf(1)[0]", "/spec/on/*: ItemLeaf(1)[0]"],
        ),
        (
            "a condition: what is behind it is asked only where the value is there",
            vec![
                load(1, SPEC),
                to(Op::JumpIfMissing, 1, 5),
                to(Op::RequireMap, 1, 6),
                field(2, 1, "on"),
                leaf(2, IS_TRUE, 6),
                pass(),
                fail(),
            ],
            &[
                "/spec: Map[0], needs /on[0]",
                "/spec/on: Leaf(0)[0]",
                "/spec/on/*: ItemLeaf(0)[0]",
            ],
        ),
        (
            "a key that must not be there",
            vec![
                load(1, ON),
                to(Op::JumpIfMissing, 1, 3),
                to(Op::FailNegation, 0, 4),
                pass(),
                fail(),
            ],
            &["/spec/on: Nothing[0]"],
        ),
        (
            "a conditional anchor: without the key the rule is skipped, not passed",
            vec![
                load(1, ON),
                to(Op::JumpIfMissing, 1, 4),
                leaf(1, IS_NULL, 4),
                pass(),
                to(Op::FailConditional, 0, 5),
                fail(),
            ],
            &[
                ": Map[0], needs /spec[0]",
                "/spec: Map[0], needs /on[0]",
                "/spec/on: Leaf(1)[0]",
                "/spec/on/*: ItemLeaf(1)[0]",
            ],
        ),
        (
            "a loop: every item",
            vec![
                load(1, SPEC),
                to(Op::RequireList, 1, 7),
                begin(1, 2, 6),
                field(3, 2, "on"),
                leaf(3, IS_TRUE, 7),
                next(2, 3),
                pass(),
                fail(),
            ],
            &[
                ": Map[0], needs /spec[0]",
                "/spec: List[0]",
                "/spec/*: Map[0], needs /on[0]",
                "/spec/*/on: Leaf(0)[0]",
                "/spec/*/on/*: ItemLeaf(0)[0]",
            ],
        ),
        (
            "alternatives: the second counts where the first surely fails",
            vec![
                load(1, META),
                to(Op::RequireMap, 1, 3),
                alternative(Op::ReturnAlternative, 0),
                alternative(Op::AlternativeFailed, 0),
                load(1, META),
                to(Op::RequireList, 1, 7),
                alternative(Op::ReturnAlternative, 1),
                alternative(Op::AlternativeFailed, 1),
                op(Op::ReturnAlternativesFailed),
            ],
            &[": Map[0, 1], needs /meta[0, 1]", "/meta: Map[0], List[1]"],
        ),
        (
            "the second alternative does not count where the first may pass all the same",
            vec![
                load(1, META),
                to(Op::RequireMap, 1, 4),
                to(Op::RequireMap, 1, 3),
                alternative(Op::ReturnAlternative, 0),
                alternative(Op::AlternativeFailed, 0),
                load(1, META),
                to(Op::RequireList, 1, 8),
                alternative(Op::ReturnAlternative, 1),
                alternative(Op::AlternativeFailed, 1),
                op(Op::ReturnAlternativesFailed),
            ],
            &[": Map[0], needs /meta[0]", "/meta: Map[0]"],
        ),
    ];
    for (what, code, expected) in rows {
        assert_eq!(demands(&code), expected, "{what}");
    }
}

#[test]
fn other_code_is_no_part_of_a_plan() {
    let pass = || op(Op::ReturnPass);
    let fail = || op(Op::ReturnError);
    let rows: Vec<(&str, Vec<Instruction>)> = vec![
        ("a body that passes nowhere", vec![fail()]),
        ("a body without an end", vec![load(1, SPEC)]),
        (
            "an operation that computes",
            vec![load(1, SPEC), to(Op::TestValue, 1, 3), pass(), fail()],
        ),
        (
            "a register that nothing was loaded into",
            vec![leaf(4, IS_TRUE, 2), pass(), fail()],
        ),
        (
            "a register that holds different values where ways meet",
            vec![
                load(1, SPEC),
                load(2, META),
                to(Op::JumpIfMissing, 1, 4),
                field(2, 1, "on"),
                leaf(2, IS_TRUE, 6),
                pass(),
                fail(),
            ],
        ),
        (
            "a check behind a condition that is about something else",
            vec![
                load(1, SPEC),
                load(2, META),
                to(Op::JumpIfMissing, 1, 4),
                leaf(2, IS_TRUE, 5),
                pass(),
                fail(),
            ],
        ),
        (
            "a jump past the place where ways meet",
            vec![
                load(1, SPEC),
                to(Op::JumpIfMissing, 1, 3),
                to(Op::Jump, 0, 4),
                leaf(1, IS_TRUE, 5),
                pass(),
                fail(),
            ],
        ),
        (
            "a loop that is left in the middle, as for an existence anchor",
            vec![
                load(1, SPEC),
                to(Op::RequireList, 1, 8),
                begin(1, 2, 6),
                leaf(2, IS_TRUE, 5),
                to(Op::Jump, 0, 7),
                next(2, 3),
                to(Op::FailExistence, 0, 8),
                pass(),
                fail(),
            ],
        ),
        (
            "a register that is written later in the loop than it is read",
            vec![
                load(1, SPEC),
                load(3, SPEC),
                to(Op::RequireList, 1, 8),
                begin(1, 2, 7),
                leaf(3, IS_NULL, 8),
                load(3, META),
                next(2, 4),
                pass(),
                fail(),
            ],
        ),
    ];
    for (what, code) in rows {
        assert_eq!(demands(&code), [""; 0], "{what}");
    }
}

#[test]
fn plans_stay_small() {
    let mut code = vec![load(1, SPEC)];
    code.extend((0..200).map(|_| field(1, 1, "deep")));
    code.push(leaf(1, IS_TRUE, 203));
    code.extend([op(Op::ReturnPass), op(Op::ReturnError)]);
    assert_eq!(demands(&code), [""; 0]);
}
