//! What a body demands of the object for it to pass, read from its code.
//!
//! Code goes in, demands leave. The code is followed on the one way on which every check
//! holds. A value that may be missing splits that way; the parts meet again, and what is
//! checked between is demanded only where the value is there, which is what a demand means
//! anyway: it is about values that are there. A body whose code does anything else is no
//! part of the plan.
//!
//! What makes this sound: where every demand holds, a run goes the way that was followed
//! here, and ends as it does. Only for the second alternative of an `anyPattern` the
//! opposite matters too: a demand that does not hold has to end the alternative.

use kpvm_format::Tables;
use kpvm_format::instruction::{Instruction, Op, OperandKind};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::NONE;
use kpvm_semantics::anchor::Anchor;

use super::{Alternative, Body, Demand, MAX_ALTERNATIVES, Plan, Spot};
use crate::machine::{Ending, leaf_of_scalar_holds};
use kpvm_semantics::pattern_string::Scalar;

/// Instructions of a body, at most. The work on one grows with the square of them.
const MAX_CODE: usize = 1 << 12;

/// Ways that wait to be met, at most.
const MAX_ARRIVING: usize = 64;

/// Adds a body if it can be part of the plan.
pub(super) fn add(plan: &mut Plan, tables: &Tables<'_>, number: u32) {
    let Some(block) = tables.blocks.get(number as usize) else {
        return;
    };
    let code = tables.block_code(block);
    let first = plan.alternatives;
    if code.len() > MAX_CODE {
        return;
    }
    let mut following = Following {
        plan,
        tables,
        code,
        registers: vec![None; usize::from(block.registers.get()).max(1)],
        conditions: Vec::new(),
        arriving: Vec::new(),
        demands: Vec::new(),
        failed: None,
        is_exact: true,
    };
    let mut endings = Vec::new();
    let mut start = 0;
    // A body may be known up to an alternative that cannot be followed.
    while first + endings.len() < MAX_ALTERNATIVES
        && let Some((ending, next)) = following.follow(start)
    {
        following.settle((first + endings.len()) as Alternative);
        endings.push(ending);
        match next {
            Some(next) => start = next,
            None => break,
        }
    }
    if endings.is_empty() {
        return;
    }
    plan.alternatives += endings.len();
    plan.longest = plan.longest.max(code.len() as u64);
    plan.total += code.len() as u64;
    plan.bodies.push(Body {
        block: number,
        first: first as Alternative,
        endings,
    });
}

/// What holds up to an instruction: a value is there.
#[derive(Debug, Clone, Copy)]
struct Condition {
    spot: Spot,
    /// The instruction where the ways meet.
    end: usize,
}

/// The spots that registers hold.
type Registers = Vec<Option<Spot>>;

/// One thing that the alternative at hand demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Note {
    Demand(Spot, Demand),
    Require(Spot),
}

struct Following<'f> {
    plan: &'f mut Plan,
    tables: &'f Tables<'f>,
    code: &'f [Instruction],
    registers: Registers,
    conditions: Vec<Condition>,
    /// Where ways that left meet the one that is followed, and what registers held there.
    arriving: Vec<(usize, Registers)>,
    demands: Vec<Note>,
    /// Where checks of the alternative lead that do not hold.
    failed: Option<usize>,
    /// Whether a demand that does not hold surely ends the alternative.
    is_exact: bool,
}

impl Following<'_> {
    /// Follows an alternative to its end; gives the end, and where the next alternative
    /// begins if there is one.
    fn follow(&mut self, start: usize) -> Option<(Ending, Option<usize>)> {
        self.registers.fill(None);
        *self.registers.first_mut()? = Some(Spot::ROOT);
        self.conditions.clear();
        self.arriving.clear();
        self.demands.clear();
        self.failed = None;
        self.is_exact = true;
        let mut position = start;
        loop {
            self.meet(position);
            let instruction = self.code.get(position)?;
            let op = Op::decode(instruction.op)?;
            match op {
                Op::ReturnPass => return Some((Ending::Pass, None)),
                Op::ReturnAlternative => {
                    let ending = Ending::Alternative(instruction.c.get());
                    return Some((ending, self.next_alternative()));
                }
                _ => position = self.step(op, instruction, position)?,
            }
        }
    }

    /// Ways meet at an instruction: conditions end, and registers hold what they hold on
    /// all of them.
    fn meet(&mut self, position: usize) {
        self.conditions
            .retain(|condition| condition.end != position);
        while let Some(index) = self.arriving.iter().position(|(at, _)| *at == position) {
            let (_, others) = self.arriving.swap_remove(index);
            for (register, other) in self.registers.iter_mut().zip(others) {
                if *register != other {
                    *register = None;
                }
            }
        }
    }

    /// Where the alternative behind the one at hand begins.
    fn next_alternative(&self) -> Option<usize> {
        let failed = self.failed.filter(|_| self.is_exact)?;
        let op = Op::decode(self.code.get(failed)?.op)?;
        (op == Op::AlternativeFailed).then_some(failed + 1)
    }

    /// Follows an instruction; gives the one that comes behind it.
    fn step(&mut self, op: Op, instruction: &Instruction, position: usize) -> Option<usize> {
        let (a, b, c) = (instruction.a, instruction.b, instruction.c.get());
        let target = instruction.d.get() as usize;
        match op {
            Op::LoadPath => {
                let spot = self.path(c)?;
                self.set(a, Some(spot))?;
            }
            Op::LoadField => {
                let spot = self.plan.under(self.get(b)?, SymbolId(c))?;
                self.set(a, Some(spot))?;
            }
            Op::Move => {
                let spot = self.get(b)?;
                self.set(a, Some(spot))?;
            }
            Op::Jump => {
                let passes_arrival = self.arriving.iter().any(|(at, _)| *at < target);
                let leaves = self
                    .conditions
                    .iter()
                    .any(|condition| condition.end < target);
                return (!passes_arrival && !leaves).then_some(target);
            }
            Op::JumpIfMissing => return self.branch(self.get(a)?, target, position),
            Op::RequireMap => {
                self.check(a, Some(Demand::Map), target)?;
            }
            Op::RequireList | Op::RequireExistenceList => {
                self.check(a, Some(Demand::List), target)?;
            }
            Op::RequirePresent => {
                self.check(a, Some(Demand::Some), target)?;
            }
            Op::TestLeaf => {
                let spot = self.get(a)?;
                self.note(spot, Demand::Leaf(c))?;
                let items = self.plan.items(spot)?;
                self.demands.push(Note::Demand(items, Demand::ItemLeaf(c)));
                if !leaf_of_scalar_holds(c, Scalar::Null, self.tables) {
                    self.require(spot)?;
                }
                self.fails_to(target);
            }
            Op::TestTags => {
                let spot = self.get(a)?;
                self.note(spot, self.tags(c)?)?;
                self.require(spot)?;
                // That a label is described does not mean that it does not fit.
                self.is_exact = false;
                self.fails_to(target);
            }
            // Tags are demanded only where nothing is expanded.
            Op::ExpandTags => {}
            Op::LoopBegin => {
                let end = self.end_of_loop(a, position)?;
                if target != end + 1 {
                    return None;
                }
                let list = self.get(b)?;
                let is_list = Note::Demand(list, Demand::List);
                if !self.demands.contains(&is_list) {
                    // Over a map the loop would go as well.
                    self.note(list, Demand::List)?;
                    self.is_exact = false;
                }
                let items = self.plan.items(list)?;
                self.forget_written(position + 1, end);
                self.set(instruction.e, Some(items))?;
                self.conditions.push(Condition { spot: items, end });
            }
            Op::LoopNext => {
                // The loop's first instruction: what its body writes is not known behind it.
                self.forget_written(target, position);
            }
            // On the way where everything holds, folds collect nothing.
            Op::FoldBegin
            | Op::FoldApplied
            | Op::FoldKeysEnd
            | Op::FoldItemsEnd
            | Op::RecordAnchor => {}
            _ => return None,
        }
        Some(position + 1)
    }

    /// A value may be missing: either that fails, or the way behind it is left, or both ways
    /// go on.
    fn branch(&mut self, spot: Spot, target: usize, position: usize) -> Option<usize> {
        self.reach(spot)?;
        if self.is_failure(target) {
            self.is_exact = false;
            self.require(spot)?;
            return Some(position + 1);
        }
        if self.is_failure(position + 1) {
            self.is_exact = false;
            self.demands.push(Note::Demand(spot, Demand::Nothing));
            let leaves = self
                .conditions
                .iter()
                .any(|condition| condition.end < target);
            return (!leaves && self.arriving.iter().all(|(at, _)| *at >= target))
                .then_some(target);
        }
        let mut ends = self.conditions.iter().map(|condition| condition.end);
        if ends.any(|end| end < target) || self.arriving.len() == MAX_ARRIVING {
            return None;
        }
        self.arriving.push((target, self.registers.clone()));
        self.conditions.push(Condition { spot, end: target });
        Some(position + 1)
    }

    /// Whether what stands there ends an alternative, or makes it fail some way.
    fn is_failure(&self, position: usize) -> bool {
        let op = self.code.get(position).and_then(|code| Op::decode(code.op));
        matches!(
            op,
            Some(
                Op::FailConditional
                    | Op::FailNegation
                    | Op::FailExistence
                    | Op::FailExistencePattern
                    | Op::FailEmptyPattern
                    | Op::WrapConditional
                    | Op::WrapGlobal
                    | Op::FoldKeyError
                    | Op::FoldItemError
                    | Op::AlternativeFailed
                    | Op::ReturnError
                    | Op::ReturnAlternativesFailed
            )
        )
    }

    /// A check that fails for what is missing.
    fn check(&mut self, register: u8, demand: Option<Demand>, target: usize) -> Option<()> {
        let spot = self.get(register)?;
        if let Some(demand) = demand {
            self.note(spot, demand)?;
        }
        self.fails_to(target);
        self.require(spot)
    }

    fn fails_to(&mut self, target: usize) {
        match self.failed {
            None => self.failed = Some(target),
            Some(failed) => self.is_exact &= failed == target,
        }
    }

    fn note(&mut self, spot: Spot, demand: Demand) -> Option<()> {
        self.reach(spot)?;
        self.demands.push(Note::Demand(spot, demand));
        Some(())
    }

    /// What is looked at has to be below what is known to be there: a demand holds for
    /// values wherever they are there.
    fn reach(&self, spot: Spot) -> Option<()> {
        let condition = self.conditions.last();
        condition
            .is_none_or(|condition| self.is_at_or_below(spot, condition.spot))
            .then_some(())
    }

    fn is_at_or_below(&self, spot: Spot, other: Spot) -> bool {
        let mut next = spot;
        loop {
            if next == other {
                return true;
            }
            match self.plan.step(next) {
                Some(step) if next != Spot::ROOT => next = step.parent,
                _ => return false,
            }
        }
    }

    /// Demands that there is a value, and therefore maps around it.
    fn require(&mut self, spot: Spot) -> Option<()> {
        let mut next = spot;
        loop {
            let is_there = self
                .conditions
                .iter()
                .any(|condition| condition.spot == next);
            if next == Spot::ROOT || is_there {
                return Some(());
            }
            let step = self.plan.step(next)?;
            // An item that is not known to be there.
            step.key?;
            let parent = step.parent;
            self.demands.push(Note::Require(next));
            self.demands.push(Note::Demand(parent, Demand::Map));
            next = parent;
        }
    }

    /// The demand of a pattern for labels or annotations, if it is simple enough.
    fn tags(&self, pattern: u32) -> Option<Demand> {
        let record = self.tables.tag_patterns.get(pattern as usize)?;
        let entries = Tables::range(self.tables.tag_entries, record.entries);
        let is_optional = entries
            .iter()
            .all(|entry| entry.anchor == Anchor::Equality as u8 && entry.slot.get() == NONE);
        is_optional.then_some(Demand::Tags(pattern))
    }

    /// The place of a static path; parents have smaller numbers.
    fn path(&mut self, path: u32) -> Option<Spot> {
        let mut keys = Vec::new();
        let mut next = path;
        while let Some(step) = self.tables.paths.get(next as usize)
            && keys.len() <= usize::from(super::MAX_DEPTH)
        {
            keys.push(SymbolId(step.symbol.get()));
            next = step.parent.get();
        }
        let mut spot = Spot::ROOT;
        for key in keys.into_iter().rev() {
            spot = self.plan.under(spot, key)?;
        }
        Some(spot)
    }

    /// The instruction that ends a loop.
    fn end_of_loop(&self, slot: u8, begin: usize) -> Option<usize> {
        let ends = |code: &Instruction| {
            Op::decode(code.op) == Some(Op::LoopNext)
                && code.a == slot
                && code.d.get() as usize == begin + 1
        };
        let behind = self.code.get(begin..)?.iter().position(ends)?;
        Some(begin + behind)
    }

    /// What is written between two instructions may have been written before, in the
    /// round of the loop before this one.
    fn forget_written(&mut self, from: usize, to: usize) {
        for code in self.code.get(from..=to).unwrap_or(&[]) {
            let operands = Op::decode(code.op).map_or(&[][..], Op::operands);
            for operand in operands {
                if operand.kind == OperandKind::Destination
                    && let Some(register) =
                        self.registers.get_mut(code.operand(operand.field) as usize)
                {
                    *register = None;
                }
            }
        }
    }

    fn get(&self, register: u8) -> Option<Spot> {
        *self.registers.get(usize::from(register))?
    }

    fn set(&mut self, register: u8, spot: Option<Spot>) -> Option<()> {
        *self.registers.get_mut(usize::from(register))? = spot;
        Some(())
    }

    /// Takes over what the alternative demands.
    fn settle(&mut self, alternative: Alternative) {
        for note in self.demands.drain(..) {
            match note {
                Note::Demand(spot, demand) => self.plan.demand(spot, demand, alternative),
                Note::Require(spot) => self.plan.require(spot, alternative),
            }
        }
    }
}
