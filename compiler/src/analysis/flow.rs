//! The dataflow framework: control flow of a block, lattices, and a forward pass.
//!
//! Code jumps forward except for `LoopNext`, which goes back to the first instruction of its
//! loop. The pass always visits the waiting instruction with the smallest number, so every
//! state that reaches an instruction from before it is joined by then, and only loops make it
//! visit an instruction again.

use std::collections::BTreeMap;

use kpvm_format::instruction::{Instruction, Op, OperandKind};

/// What an analysis can know at a point of a block, and how two such facts become one.
pub trait Lattice {
    /// What is known.
    type Fact: Clone;

    /// Takes over what another way to the same point knows; whether anything changed.
    fn join(&mut self, fact: &mut Self::Fact, other: &Self::Fact) -> bool;
}

/// An analysis: what an instruction does to what is known.
pub trait Analysis: Lattice {
    /// Why the analysis gives up.
    type Stop;

    /// Visits the instruction at a position: sends what is known after it to its successors.
    ///
    /// # Errors
    /// To end the pass.
    fn visit(
        &mut self,
        position: usize,
        fact: Self::Fact,
        onward: &mut Onward<Self::Fact>,
    ) -> Result<(), Self::Stop>;
}

/// The facts that wait to be visited, by position.
#[derive(Debug)]
pub struct Onward<F> {
    waiting: BTreeMap<usize, F>,
    sent: Vec<(usize, F)>,
}

impl<F> Onward<F> {
    /// Sends a fact to an instruction.
    pub fn send(&mut self, to: usize, fact: F) {
        self.sent.push((to, fact));
    }

    /// Whether an instruction before a position is still to be visited.
    pub fn waits_before(&self, position: usize) -> bool {
        self.waiting.range(..position).next().is_some()
    }
}

/// Runs an analysis from one instruction on until nothing waits.
///
/// `heads` are the first instructions of loops. A fact that is sent back to one makes it be
/// visited again if it says anything new.
///
/// # Errors
/// What the analysis stops with.
pub fn forward<A: Analysis>(
    analysis: &mut A,
    heads: &[usize],
    start: usize,
    entry: A::Fact,
) -> Result<(), A::Stop> {
    let mut onward = Onward {
        waiting: BTreeMap::from([(start, entry)]),
        sent: Vec::new(),
    };
    let mut visited: BTreeMap<usize, A::Fact> = BTreeMap::new();
    while let Some((position, fact)) = onward.waiting.pop_first() {
        if heads.contains(&position) {
            visited.insert(position, fact.clone());
        }
        analysis.visit(position, fact, &mut onward)?;
        let mut sent = std::mem::take(&mut onward.sent);
        for (to, fact) in sent.drain(..) {
            if to > position {
                match onward.waiting.get_mut(&to) {
                    Some(known) => {
                        analysis.join(known, &fact);
                    }
                    None => {
                        onward.waiting.insert(to, fact);
                    }
                }
            } else if let Some(mut known) = visited.get(&to).cloned()
                && analysis.join(&mut known, &fact)
            {
                onward.waiting.insert(to, known);
            }
        }
        // Its capacity is used again.
        onward.sent = sent;
    }
    Ok(())
}

/// Where an instruction can go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Successors {
    /// The instruction after it, unless it ends the block or always jumps.
    pub next: Option<usize>,
    /// Where it may jump to.
    pub jump: Option<usize>,
    /// The first instruction of the loop that it ends.
    pub back: Option<usize>,
}

impl Successors {
    /// The successors of the instruction at a position of a block.
    pub fn of(instruction: &Instruction, position: usize) -> Self {
        let Some(op) = Op::decode(instruction.op) else {
            return Self::default();
        };
        let target = |wanted: OperandKind| {
            let operand = op
                .operands()
                .iter()
                .find(|operand| operand.kind == wanted)?;
            Some(instruction.operand(operand.field) as usize)
        };
        Self {
            next: (!op.ends_block()).then_some(position + 1),
            jump: target(OperandKind::Forward),
            back: target(OperandKind::Backward),
        }
    }
}

/// The first instructions of the loops of a block.
pub fn loop_heads(code: &[Instruction]) -> Vec<usize> {
    let successors = code.iter().map(|code| Successors::of(code, 0));
    successors
        .filter_map(|successors| successors.back)
        .collect()
}
