//! The code generator: blocks of the IR in, code, blocks and sites of the bundle out.
//!
//! Registers are given by linear scan: a virtual register holds a physical one from
//! its first write to its last read (to the end of the loop, if it was written in
//! front of one and is read inside).

use std::collections::HashMap;

use kpvm_format::BundleBuilder;
use kpvm_format::MAX_LOOP_DEPTH;
use kpvm_format::instruction::Op;
use kpvm_format::instruction::{self, OperandKind};
use kpvm_format::site::{self, Site};
use kpvm_format::table::{self, SiteLabel};
use zerocopy::little_endian::{U16, U32};

use crate::ir::{Block, Instruction, Item, Label, Register, Segment};
use crate::source::{Location, Sources};

/// A block that needs more than the machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodegenError {
    /// Too many values in use at a time.
    #[error("the rule needs more than 256 values at a time")]
    Registers,
    /// Loops nested too deep.
    #[error("the rule nests lists deeper than {MAX_LOOP_DEPTH}")]
    Loops,
    /// Anchors or expressions nested too deep.
    #[error("the rule nests anchors or expressions deeper than 255")]
    Folds,
}

/// Writes a block into the bundle and returns its number.
///
/// # Errors
/// When the block needs more registers or slots than a frame has.
pub fn generate(
    block: &Block,
    sources: &Sources,
    bundle: &mut BundleBuilder,
) -> Result<u32, CodegenError> {
    let instructions: Vec<&Instruction> = instructions(block).collect();
    if block.loop_slots() as usize > MAX_LOOP_DEPTH {
        return Err(CodegenError::Loops);
    }
    let folds = u8::try_from(block.fold_slots()).map_err(|_| CodegenError::Folds)?;
    let lists = u8::try_from(block.list_accumulators()).map_err(|_| CodegenError::Folds)?;
    let accumulators = u8::try_from(block.text_accumulators()).map_err(|_| CodegenError::Folds)?;
    let positions = label_positions(block);
    let registers = allocate_registers(&instructions)?;
    let start = bundle.code.len();
    let mut sites = Vec::new();
    for (position, ir) in (0u32..).zip(&instructions) {
        bundle.code.push(encode(ir, &positions, &registers));
        if let Some(site) = &ir.site {
            let label = SiteLabel {
                part: bundle.text(&site.part),
                written: bundle.text(&site.written),
            };
            sites.push(Site {
                position,
                kind: site.kind,
                path: bundle.site_path(site.path.iter().map(segment)),
                label,
                place: place(site.location, sources).into(),
            });
        }
    }
    let count = registers
        .values()
        .copied()
        .max()
        .map_or(1, |most| u16::from(most) + 1);
    bundle.blocks.push(table::Block {
        start: U32::new(start as u32),
        length: U32::new(instructions.len() as u32),
        registers: U16::new(count),
        loops: block.loop_slots() as u8,
        folds,
        lists,
        accumulators,
        sites: table::Range::EMPTY,
    });
    let number = bundle.blocks.len() as u32 - 1;
    bundle.set_sites(number, sites);
    Ok(number)
}

/// A place as bundles keep it.
pub fn place(location: Location, sources: &Sources) -> table::Place {
    let place = sources.line_column(location);
    table::Place {
        source: U32::new(location.source.0),
        line: U32::new(place.line),
        column: U32::new(place.column),
    }
}

fn instructions(block: &Block) -> impl Iterator<Item = &Instruction> {
    block.items.iter().filter_map(|item| match item {
        Item::Instruction(instruction) => Some(instruction),
        Item::Label(_) => None,
    })
}

fn label_positions(block: &Block) -> HashMap<Label, u32> {
    let mut position = 0;
    let mut positions = HashMap::new();
    for item in &block.items {
        match item {
            Item::Instruction(_) => position += 1,
            Item::Label(label) => {
                positions.insert(*label, position);
            }
        }
    }
    positions
}

fn encode(
    ir: &Instruction,
    positions: &HashMap<Label, u32>,
    registers: &HashMap<Register, u8>,
) -> instruction::Instruction {
    let value = |field, kind| match kind {
        OperandKind::Source | OperandKind::Destination => u32::from(
            registers
                .get(&Register(ir.field(field)))
                .copied()
                .unwrap_or(0),
        ),
        OperandKind::Forward | OperandKind::Backward => positions
            .get(&Label(ir.field(field)))
            .copied()
            .unwrap_or(u32::MAX),
        _ => ir.field(field),
    };
    let mut encoded = instruction::Instruction::new(ir.op);
    for operand in ir.op.operands() {
        let value = value(operand.field, operand.kind);
        match operand.field {
            instruction::Field::A => encoded.a = value as u8,
            instruction::Field::B => encoded.b = value as u8,
            instruction::Field::E => encoded.e = value as u8,
            instruction::Field::C => encoded.c = U32::new(value),
            instruction::Field::D => encoded.d = U32::new(value),
        }
    }
    encoded
}

/// Last position at which each register is needed, and first at which it is written.
fn lifetimes(instructions: &[&Instruction]) -> HashMap<Register, (usize, usize)> {
    let mut lifetimes: HashMap<Register, (usize, usize)> = HashMap::new();
    for (position, ir) in instructions.iter().enumerate() {
        for register in ir.reads().chain(ir.writes()) {
            let lifetime = lifetimes.entry(register).or_insert((position, position));
            lifetime.1 = position;
        }
    }
    for (begin, end) in loop_ranges(instructions) {
        for (first, last) in lifetimes.values_mut() {
            if *first < begin && *last >= begin && *last < end {
                *last = end;
            }
        }
    }
    lifetimes
}

/// First and last instruction of each loop, inner loops first.
fn loop_ranges(instructions: &[&Instruction]) -> Vec<(usize, usize)> {
    let mut open = Vec::new();
    let mut ranges = Vec::new();
    for (position, ir) in instructions.iter().enumerate() {
        match ir.op {
            Op::LoopBegin => open.push(position),
            Op::LoopNext => ranges.extend(open.pop().map(|begin| (begin, position))),
            _ => {}
        }
    }
    ranges
}

fn allocate_registers(
    instructions: &[&Instruction],
) -> Result<HashMap<Register, u8>, CodegenError> {
    let lifetimes = lifetimes(instructions);
    let mut order: Vec<(Register, (usize, usize))> = lifetimes.into_iter().collect();
    order.sort_by_key(|&(register, (first, _))| (first, register));
    let mut given: HashMap<Register, u8> = HashMap::from([(Register::SUBJECT, 0)]);
    // Position behind which each physical register is free again.
    let mut busy_until: Vec<usize> = vec![usize::MAX];
    for (register, (first, last)) in order {
        if register == Register::SUBJECT {
            continue;
        }
        let free = busy_until
            .iter()
            .position(|&until| until < first)
            .unwrap_or(busy_until.len());
        let number = u8::try_from(free).map_err(|_| CodegenError::Registers)?;
        if free == busy_until.len() {
            busy_until.push(last);
        } else {
            busy_until[free] = last;
        }
        given.insert(register, number);
    }
    Ok(given)
}

fn segment(segment: &Segment) -> site::Segment<'_> {
    match segment {
        Segment::Text(text) => site::Segment::Text(text),
        Segment::LoopIndex(slot) => site::Segment::Loop(*slot),
    }
}
