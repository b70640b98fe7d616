//! The code generator: blocks of the IR in, code, blocks and sites of the bundle out.
//!
//! Registers are given by linear scan: a virtual register holds a physical one from
//! its first write to its last read (to the end of the loop, if it was written in
//! front of one and is read inside).

use std::collections::HashMap;

use kpvm_format::BundleBuilder;
use kpvm_format::MAX_LOOP_DEPTH;
use kpvm_format::instruction::{Encoded, Op, Position, RegisterId, Translate};
use kpvm_format::table;
use zerocopy::little_endian::{U16, U32};

use crate::ir::{Block, Instruction, Item, Label, Register, Segment, Virtual};
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
    let mut placement = Placement {
        positions: &positions,
        registers: &registers,
    };
    let start = bundle.code.len();
    for (position, ir) in instructions.iter().enumerate() {
        bundle
            .code
            .push(ir.operation.translate(&mut placement).encode());
        if let Some(site) = &ir.site {
            let site = table::Site {
                instruction: U32::new((start + position) as u32),
                kind: site.kind as u8,
                path: write_path(&site.path, bundle),
                part: bundle.text(&site.part),
                written: bundle.text(&site.written),
                place: place(site.location, sources),
            };
            bundle.sites.push(site);
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
    });
    Ok(bundle.blocks.len() as u32 - 1)
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

/// Gives instructions the registers and positions of the bundle.
struct Placement<'p> {
    positions: &'p HashMap<Label, u32>,
    registers: &'p HashMap<Register, u8>,
}

impl Placement<'_> {
    fn register(&self, register: Register) -> RegisterId {
        RegisterId(self.registers.get(&register).copied().unwrap_or(0))
    }
}

impl Translate<Virtual, Encoded> for Placement<'_> {
    fn source(&mut self, register: Register) -> RegisterId {
        self.register(register)
    }

    fn destination(&mut self, register: Register) -> RegisterId {
        self.register(register)
    }

    fn target(&mut self, label: Label) -> Position {
        Position(self.positions.get(&label).copied().unwrap_or(u32::MAX))
    }
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
        match ir.op() {
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

fn write_path(path: &[Segment], bundle: &mut BundleBuilder) -> table::Range {
    let segments: Vec<table::PathSegment> = path
        .iter()
        .map(|segment| match segment {
            Segment::Text(text) => table::PathSegment {
                text: bundle.text(text),
                loop_slot: U32::new(table::NONE),
            },
            Segment::LoopIndex(slot) => table::PathSegment {
                text: bundle.text(""),
                loop_slot: U32::new(slot.0),
            },
        })
        .collect();
    let start = bundle.path_segments.len();
    bundle.path_segments.extend(&segments);
    table::Range::new(start, segments.len())
}
