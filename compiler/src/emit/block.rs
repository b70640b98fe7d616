//! Blocks: instructions with registers and jump targets, and the sites of instructions.

use std::collections::HashMap;

use kpvm_format::BundleBuilder;
use kpvm_format::MAX_LOOP_DEPTH;
use kpvm_format::instruction::{Encoded, Position, RegisterId, Translate};
use kpvm_format::table;
use zerocopy::little_endian::{U16, U32};

use super::{CodegenError, registers};
use crate::ir::{Block, Instruction, Item, Label, Register, Segment, Virtual};
use crate::source::{Location, Sources};

/// Writes a block into the bundle.
///
/// # Errors
/// If the block needs more registers or slots than a frame has.
pub(super) fn emit(
    block: &Block,
    sources: &Sources,
    bundle: &mut BundleBuilder,
) -> Result<(), CodegenError> {
    let instructions: Vec<&Instruction> = instructions(block).collect();
    if block.loop_slots() as usize > MAX_LOOP_DEPTH {
        return Err(CodegenError::Loops);
    }
    let folds = u8::try_from(block.fold_slots()).map_err(|_| CodegenError::Folds)?;
    let lists = u8::try_from(block.list_accumulators()).map_err(|_| CodegenError::Folds)?;
    let accumulators = u8::try_from(block.text_accumulators()).map_err(|_| CodegenError::Folds)?;
    let positions = label_positions(block);
    let registers = registers::allocate(&instructions)?;
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
    Ok(())
}

/// A source location as stored in bundles.
pub(super) fn place(location: Location, sources: &Sources) -> table::Place {
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
