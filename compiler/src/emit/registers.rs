//! Register allocation by linear scan: a virtual register holds a physical one from its first
//! write to its last read, or to the end of the loop if it was written before one and is read
//! inside it.

use std::collections::HashMap;

use kpvm_format::instruction::Op;

use super::CodegenError;
use crate::ir::{Instruction, Register};

/// The physical register of each virtual one.
///
/// # Errors
/// If more than 256 values are in use at the same time.
pub(super) fn allocate(
    instructions: &[&Instruction],
) -> Result<HashMap<Register, u8>, CodegenError> {
    let lifetimes = lifetimes(instructions);
    let mut order: Vec<(Register, (usize, usize))> = lifetimes.into_iter().collect();
    order.sort_by_key(|&(register, (first, _))| (first, register));
    let mut given: HashMap<Register, u8> = HashMap::from([(Register::SUBJECT, 0)]);
    // Last position at which each physical register is in use.
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

/// The last position at which each register is needed, and the first at which it is
/// written.
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

/// The first and last instruction of each loop, inner loops first.
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
