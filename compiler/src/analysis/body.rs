//! What a body demands of the object in order to pass.
//!
//! The analysis follows only the path on which every check holds, alternative by alternative.
//! Where a value may be missing the path splits and joins again; what is checked in between is
//! demanded only where the value is there, which is what a demand means anyway. A body whose
//! code does anything else is not part of a plan.
//!
//! Soundness: where every demand holds, a run takes the path that was followed here and ends as
//! it does. For the second alternative of an `anyPattern` the opposite matters too: a demand
//! that does not hold has to end the first.

use kpvm_format::Tables;
use kpvm_format::instruction::{Instruction, Op, OperandKind};
use kpvm_format::plan::{DemandKind, MAX_SPOT_DEPTH};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{LeafKind, NONE};
use kpvm_semantics::anchor::Anchor;
use kpvm_semantics::pattern_string::{Scalar, matches_text};

use super::flow::{Analysis, Lattice, Onward, forward};
use super::spots::{Alternative, Body, Demand, Spot, Spots};

/// Most instructions of a body. The work on one grows with the square of them.
const MAX_CODE: usize = 1 << 12;

/// Most values that may be missing around an instruction.
const MAX_CONDITIONS: usize = 64;

/// Adds the body of a block to a plan if it can be part of one.
pub(super) fn add_body(spots: &mut Spots, tables: &Tables<'_>, number: u32) {
    let Some(block) = tables.blocks.get(number as usize) else {
        return;
    };
    let code = tables.block_code(block);
    if code.len() > MAX_CODE || spots.holds(number) {
        return;
    }
    let registers = usize::from(block.registers.get()).max(1);
    let first = spots.alternatives;
    let mut found = Vec::new();
    let mut start = Some(0);
    // A body may be known up to an alternative that cannot be followed.
    while let Some(from) = start
        && !spots.is_full(found.len())
    {
        let mut pass = Following {
            spots,
            tables,
            code,
            notes: Vec::new(),
            failed: None,
            is_exact: true,
        };
        let entry = Path::new(registers);
        let Err(Some(end)) = forward(&mut pass, &[], from, entry) else {
            break;
        };
        let next = pass.next_alternative();
        let is_alternative = end == End::Alternative(found.len() as u32);
        let is_pass = end == End::Pass && found.is_empty();
        if !is_alternative && !is_pass {
            break;
        }
        pass.settle((first + found.len()) as Alternative);
        found.push(end);
        start = next.filter(|_| is_alternative);
    }
    let Some(end) = found.first() else {
        return;
    };
    spots.alternatives += found.len();
    spots.longest = spots.longest.max(code.len());
    spots.total += code.len();
    spots.add_body(Body {
        block: number,
        first: first as Alternative,
        alternatives: match end {
            End::Pass => 0,
            End::Alternative(_) => found.len() as u16,
        },
    });
}

/// How the path ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Pass,
    /// By the alternative of that number.
    Alternative(u32),
}

/// What holds up to an instruction: a value is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Condition {
    spot: Spot,
    /// The instruction where the paths join.
    end: usize,
}

/// What is known on the path to an instruction.
#[derive(Debug, Clone)]
struct Path {
    /// The spots that registers hold.
    registers: Vec<Option<Spot>>,
    conditions: Vec<Condition>,
}

impl Path {
    fn new(registers: usize) -> Self {
        let mut registers = vec![None; registers];
        if let Some(subject) = registers.first_mut() {
            *subject = Some(Spot::ROOT);
        }
        Self {
            registers,
            conditions: Vec::new(),
        }
    }

    fn get(&self, register: u8) -> Option<Spot> {
        *self.registers.get(usize::from(register))?
    }

    fn set(&mut self, register: u8, spot: Spot) -> Option<()> {
        *self.registers.get_mut(usize::from(register))? = Some(spot);
        Some(())
    }

    /// Forgets what instructions of a loop write: the round before may have written it.
    fn forget_written(&mut self, code: &[Instruction]) {
        for instruction in code {
            let operands = Op::decode(instruction.op).map_or(&[][..], Op::operands);
            for operand in operands {
                let register = instruction.operand(operand.field) as usize;
                if operand.kind == OperandKind::Destination
                    && let Some(register) = self.registers.get_mut(register)
                {
                    *register = None;
                }
            }
        }
    }

    /// Something is looked at: it has to be at or below what is known to be there, as a demand
    /// holds for values wherever they are there.
    fn reaches(&self, spot: Spot, spots: &Spots) -> Option<()> {
        let condition = self.conditions.last();
        condition
            .is_none_or(|condition| spots.is_at_or_below(spot, condition.spot))
            .then_some(())
    }

    /// Whether the path would leave a condition by going on at a target.
    fn leaves_condition(&self, target: usize) -> bool {
        let mut ends = self.conditions.iter().map(|condition| condition.end);
        ends.any(|end| end < target)
    }
}

/// One thing that the alternative at hand demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Note {
    Demand(Spot, Demand),
    Require(Spot),
}

/// The pass over one alternative. It stops with its end, or with `None` where it cannot be
/// followed.
struct Following<'f> {
    spots: &'f mut Spots,
    tables: &'f Tables<'f>,
    code: &'f [Instruction],
    notes: Vec<Note>,
    /// Where checks of the alternative lead that do not hold.
    failed: Option<usize>,
    /// Whether a demand that does not hold surely ends the alternative.
    is_exact: bool,
}

impl Lattice for Following<'_> {
    type Fact = Path;

    /// Registers hold what they hold on both paths.
    fn join(&mut self, path: &mut Path, other: &Path) -> bool {
        let mut changed = false;
        for (register, other) in path.registers.iter_mut().zip(&other.registers) {
            if *register != *other && register.is_some() {
                *register = None;
                changed = true;
            }
        }
        let shared = path.conditions.iter().zip(&other.conditions);
        let shared = shared.take_while(|(left, right)| left == right).count();
        changed |= shared < path.conditions.len();
        path.conditions.truncate(shared);
        changed
    }
}

impl Analysis for Following<'_> {
    type Stop = Option<End>;

    fn visit(
        &mut self,
        position: usize,
        mut path: Path,
        onward: &mut Onward<Path>,
    ) -> Result<(), Option<End>> {
        path.conditions
            .retain(|condition| condition.end != position);
        let instruction = self.code.get(position).ok_or(None)?;
        let op = Op::decode(instruction.op).ok_or(None)?;
        match op {
            Op::ReturnPass => Err(Some(End::Pass)),
            Op::ReturnAlternative => Err(Some(End::Alternative(instruction.c.get()))),
            _ => {
                let next = self.step(op, instruction, position, &mut path, onward);
                onward.send(next.ok_or(None)?, path);
                Ok(())
            }
        }
    }
}

impl Following<'_> {
    /// Where the alternative behind the one at hand begins.
    fn next_alternative(&self) -> Option<usize> {
        let failed = self.failed.filter(|_| self.is_exact)?;
        let op = Op::decode(self.code.get(failed)?.op)?;
        (op == Op::AlternativeFailed).then_some(failed + 1)
    }

    /// Follows an instruction; the one that comes next.
    fn step(
        &mut self,
        op: Op,
        instruction: &Instruction,
        position: usize,
        path: &mut Path,
        onward: &mut Onward<Path>,
    ) -> Option<usize> {
        let (a, b, c) = (instruction.a, instruction.b, instruction.c.get());
        let target = instruction.d.get() as usize;
        match op {
            Op::LoadPath => {
                let spot = self.spot_of(c)?;
                path.set(a, spot)?;
            }
            Op::LoadField => {
                let spot = self.spots.under(path.get(b)?, SymbolId(c))?;
                path.set(a, spot)?;
            }
            Op::Move => {
                let spot = path.get(b)?;
                path.set(a, spot)?;
            }
            Op::Jump => {
                return self.may_skip_to(target, path, onward).then_some(target);
            }
            Op::JumpIfMissing => return self.branch(path.get(a)?, target, position, path, onward),
            Op::RequireMap => {
                self.check(a, DemandKind::Map, target, path)?;
            }
            Op::RequireList | Op::RequireExistenceList => {
                self.check(a, DemandKind::List, target, path)?;
            }
            Op::RequirePresent => {
                self.check(a, DemandKind::Some, target, path)?;
            }
            Op::TestLeaf => {
                let spot = path.get(a)?;
                self.note(spot, (DemandKind::Leaf, c), path)?;
                let items = self.spots.items(spot)?;
                self.notes
                    .push(Note::Demand(items, (DemandKind::ItemLeaf, c)));
                if !null_satisfies(c, self.tables) {
                    self.require(spot, path)?;
                }
                self.fails_to(target);
            }
            Op::TestTags => {
                let spot = path.get(a)?;
                self.note(spot, self.tags(c)?, path)?;
                self.require(spot, path)?;
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
                let list = path.get(b)?;
                let is_list = Note::Demand(list, (DemandKind::List, 0));
                if !self.notes.contains(&is_list) {
                    // Over a map the loop would go as well.
                    self.note(list, (DemandKind::List, 0), path)?;
                    self.is_exact = false;
                }
                let items = self.spots.items(list)?;
                path.forget_written(self.code.get(position + 1..=end)?);
                path.set(instruction.e, items)?;
                path.conditions.push(Condition { spot: items, end });
            }
            Op::LoopNext => {
                // The loop's first instruction: what its body writes is not known behind it.
                path.forget_written(self.code.get(target..=position)?);
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

    /// A value may be missing: either that fails, or the path after it is left, or both paths
    /// go on.
    fn branch(
        &mut self,
        spot: Spot,
        target: usize,
        position: usize,
        path: &mut Path,
        onward: &mut Onward<Path>,
    ) -> Option<usize> {
        path.reaches(spot, self.spots)?;
        if self.is_failure(target) {
            self.is_exact = false;
            self.require(spot, path)?;
            return Some(position + 1);
        }
        if self.is_failure(position + 1) {
            self.is_exact = false;
            self.notes
                .push(Note::Demand(spot, (DemandKind::Nothing, 0)));
            return self.may_skip_to(target, path, onward).then_some(target);
        }
        if path.leaves_condition(target) || path.conditions.len() >= MAX_CONDITIONS {
            return None;
        }
        onward.send(target, path.clone());
        path.conditions.push(Condition { spot, end: target });
        Some(position + 1)
    }

    /// Whether the path may go on at a target without passing by a point where it joins
    /// another one.
    fn may_skip_to(&self, target: usize, path: &Path, onward: &Onward<Path>) -> bool {
        !onward.waits_before(target) && !path.leaves_condition(target)
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
    fn check(
        &mut self,
        register: u8,
        demand: DemandKind,
        target: usize,
        path: &Path,
    ) -> Option<()> {
        let spot = path.get(register)?;
        self.note(spot, (demand, 0), path)?;
        self.fails_to(target);
        self.require(spot, path)
    }

    fn fails_to(&mut self, target: usize) {
        match self.failed {
            None => self.failed = Some(target),
            Some(failed) => self.is_exact &= failed == target,
        }
    }

    fn note(&mut self, spot: Spot, demand: Demand, path: &Path) -> Option<()> {
        path.reaches(spot, self.spots)?;
        self.notes.push(Note::Demand(spot, demand));
        Some(())
    }

    /// Demands that there is a value, and therefore maps around it.
    fn require(&mut self, spot: Spot, path: &Path) -> Option<()> {
        let mut next = spot;
        loop {
            let mut known = path.conditions.iter();
            if next == Spot::ROOT || known.any(|condition| condition.spot == next) {
                return Some(());
            }
            let step = self.spots.node(next)?;
            // An item that is not known to be there.
            step.key?;
            let parent = step.parent;
            self.notes.push(Note::Require(next));
            self.notes.push(Note::Demand(parent, (DemandKind::Map, 0)));
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
        is_optional.then_some((DemandKind::Tags, pattern))
    }

    /// The spot of a static path; parents have smaller numbers.
    fn spot_of(&mut self, path: u32) -> Option<Spot> {
        let mut keys = Vec::new();
        let mut next = path;
        while let Some(step) = self.tables.paths.get(next as usize)
            && keys.len() <= usize::from(MAX_SPOT_DEPTH)
        {
            keys.push(SymbolId(step.symbol.get()));
            next = step.parent.get();
        }
        let mut spot = Spot::ROOT;
        for key in keys.into_iter().rev() {
            spot = self.spots.under(spot, key)?;
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

    /// Takes over what the alternative demands.
    fn settle(&mut self, alternative: Alternative) {
        for note in self.notes.drain(..) {
            match note {
                Note::Demand(spot, demand) => self.spots.demand(spot, demand, alternative),
                Note::Require(spot) => self.spots.require(spot, alternative),
            }
        }
    }
}

/// Whether what is missing satisfies a leaf predicate, as null does.
fn null_satisfies(leaf: u32, tables: &Tables<'_>) -> bool {
    let Some(leaf) = tables.leaves.get(leaf as usize) else {
        return false;
    };
    match LeafKind::ALL.get(usize::from(leaf.kind)) {
        Some(LeafKind::Null) => true,
        Some(LeafKind::String) => matches_text(tables.text(leaf.text), &Scalar::Null),
        Some(LeafKind::Bool | LeafKind::Int | LeafKind::Float) | None => false,
    }
}
