//! The plan of a kind: what its rules demand of an object, put together place by place.
//!
//! The bodies of rules go in (see [`derive`]), one tree of spots leaves. One walk over an
//! object ([`nodes`], or [`text`] where the object is not even built) tests every
//! demand that two rules share once, goes over a list once for all rules, and notes which
//! alternatives are broken. A body of which an alternative is whole need not be run: how it
//! would end is known. Any other is run as ever, for its message above all, so a plan
//! never changes what is said of an object, only what it costs to pass.

mod derive;
mod nodes;
#[cfg(test)]
mod tests;
mod text;

use kpvm_format::Tables;
use kpvm_format::symbol::SymbolId;

use crate::document::Kind;
use crate::machine::{Ending, leaf_of_scalar_holds};
use kpvm_semantics::pattern_string::Scalar;

pub(crate) use text::TextWalk;

/// Spots below one another, at most.
const MAX_DEPTH: u8 = 64;
/// Keys that are looked at in one map, at most: one bit each.
const MAX_KEYS: usize = 64;
/// Spots of one plan, at most.
const MAX_SPOTS: usize = 1 << 14;

/// A spot: the values at one path of the object, list items all alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot(pub(crate) u32);

impl Spot {
    /// The object itself.
    pub(crate) const ROOT: Spot = Spot(0);
}

/// Alternatives of one plan, at most: one bit each.
const MAX_ALTERNATIVES: usize = 1 << 15;

/// Number of an alternative: what has to hold together for a body to end one way.
type Alternative = u16;

/// What is demanded of a value that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// It is a map.
    Map,
    /// It is a list.
    List,
    /// It is not null.
    Some,
    /// It is not there.
    Nothing,
    /// It satisfies a leaf predicate, or is a list: what is asked of items, [`Demand::ItemLeaf`] says.
    Leaf(u32),
    /// It satisfies a leaf predicate as the item of a list.
    ItemLeaf(u32),
    /// No label or annotation needs a closer look to see that the pattern holds.
    Tags(u32),
}

/// A demand with the alternatives that it breaks.
#[derive(Debug)]
struct Test {
    demand: Demand,
    breaks: Vec<Alternative>,
}

/// What is known of one spot.
#[derive(Debug)]
struct Step {
    parent: Spot,
    /// The key that it stands under; none for items and the object itself.
    key: Option<SymbolId>,
    /// Bit of the key among those of its map.
    bit: u64,
    depth: u8,
    tests: Vec<Test>,
    /// The keys that are looked at.
    keys: Vec<Spot>,
    items: Option<Spot>,
    /// The keys that have to be there, and what breaks where one is not.
    required: u64,
    requirements: Vec<(u64, Vec<Alternative>)>,
}

/// A body that is part of the plan.
#[derive(Debug)]
struct Body {
    block: u32,
    first: Alternative,
    /// How the body ends by each of its alternatives: the first that is whole decides.
    endings: Vec<Ending>,
}

/// Number of a body in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyId(usize);

/// The demands of all bodies of one kind.
#[derive(Debug)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// Where keys lead, by spot and symbol: open addressing, a power of two in length.
    slots: Vec<Slot>,
    /// Ascending by block.
    bodies: Vec<Body>,
    alternatives: usize,
    /// Instructions of the longest body, and of all.
    longest: u64,
    total: u64,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    spot: u32,
    symbol: u32,
    child: u32,
    bit: u8,
}

impl Slot {
    const EMPTY: Slot = Slot {
        spot: u32::MAX,
        symbol: u32::MAX,
        child: 0,
        bit: 0,
    };
}

impl Plan {
    /// The plan for some bodies, of those that can be part of one.
    pub(crate) fn of_blocks(tables: &Tables<'_>, blocks: impl Iterator<Item = u32>) -> Self {
        let mut plan = Self {
            steps: vec![Step::new(Spot::ROOT, None, 0, 0)],
            slots: Vec::new(),
            bodies: Vec::new(),
            alternatives: 0,
            longest: 0,
            total: 0,
        };
        for block in blocks {
            derive::add(&mut plan, tables, block);
        }
        plan.bodies.sort_by_key(|body| body.block);
        plan.bodies.dedup_by_key(|body| body.block);
        plan.index_keys();
        plan
    }

    /// Whether no body is part of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// The body of a block, if it is part of the plan.
    pub(crate) fn find(&self, block: u32) -> Option<BodyId> {
        let found = self.bodies.binary_search_by_key(&block, |body| body.block);
        found.ok().map(BodyId)
    }

    /// The keys below a spot, and the spot of list items.
    pub(crate) fn below(&self, spot: Spot) -> impl Iterator<Item = (Option<SymbolId>, Spot)> {
        let step = self.step(spot);
        let keys = step.into_iter().flat_map(|step| step.keys.iter());
        let keys = keys.map(|&child| (self.step(child).and_then(|child| child.key), child));
        let items = step.and_then(|step| step.items).map(|items| (None, items));
        keys.chain(items)
    }

    /// Whether labels or annotations are tested at a spot or below: that takes nodes.
    pub(crate) fn needs_nodes(&self, spot: Spot) -> bool {
        self.tests_tags(spot) || self.below(spot).any(|(_, below)| self.needs_nodes(below))
    }

    /// Whether labels or annotations are what is there, and tested.
    pub(crate) fn tests_tags(&self, spot: Spot) -> bool {
        self.step(spot).is_some_and(|step| {
            let mut demands = step.tests.iter().map(|test| test.demand);
            demands.any(|demand| matches!(demand, Demand::Tags(_)))
        })
    }

    fn step(&self, spot: Spot) -> Option<&Step> {
        self.steps.get(spot.0 as usize)
    }

    fn step_mut(&mut self, spot: Spot) -> Option<&mut Step> {
        self.steps.get_mut(spot.0 as usize)
    }

    /// The spot under a key; `None` where there are too many.
    fn under(&mut self, parent: Spot, key: SymbolId) -> Option<Spot> {
        let step = self.step(parent)?;
        let known = step.keys.iter().copied();
        let mut known =
            known.filter(|&child| self.step(child).and_then(|child| child.key) == Some(key));
        if let Some(known) = known.next() {
            return Some(known);
        }
        let number = step.keys.len();
        if number == MAX_KEYS {
            return None;
        }
        let child = self.add_step(parent, Some(key), 1 << number)?;
        self.step_mut(parent)?.keys.push(child);
        Some(child)
    }

    /// The spot of list items; `None` where there are too many.
    fn items(&mut self, list: Spot) -> Option<Spot> {
        if let Some(known) = self.step(list)?.items {
            return Some(known);
        }
        let items = self.add_step(list, None, 0)?;
        self.step_mut(list)?.items = Some(items);
        Some(items)
    }

    fn add_step(&mut self, parent: Spot, key: Option<SymbolId>, bit: u64) -> Option<Spot> {
        let depth = self.step(parent)?.depth + 1;
        if depth > MAX_DEPTH || self.steps.len() >= MAX_SPOTS {
            return None;
        }
        let spot = Spot(self.steps.len() as u32);
        self.steps.push(Step::new(parent, key, bit, depth));
        Some(spot)
    }

    /// An alternative demands something of the values at a spot.
    fn demand(&mut self, spot: Spot, demand: Demand, alternative: Alternative) {
        if let Some(step) = self.step_mut(spot) {
            let known = step.tests.iter_mut().find(|test| test.demand == demand);
            match known {
                Some(test) => add_once(&mut test.breaks, alternative),
                None => step.tests.push(Test {
                    demand,
                    breaks: vec![alternative],
                }),
            }
        }
    }

    /// An alternative demands that there is something at a spot wherever its parent is a map.
    fn require(&mut self, spot: Spot, alternative: Alternative) {
        let Some((parent, bit)) = self.step(spot).map(|step| (step.parent, step.bit)) else {
            return;
        };
        if let Some(step) = self.step_mut(parent) {
            step.required |= bit;
            match step
                .requirements
                .iter_mut()
                .find(|(known, _)| *known == bit)
            {
                Some((_, breaks)) => add_once(breaks, alternative),
                None => step.requirements.push((bit, vec![alternative])),
            }
        }
    }

    /// Makes the table that [`Plan::child`] looks into.
    fn index_keys(&mut self) {
        let length = (self.steps.len() * 2).next_power_of_two();
        let mut slots = vec![Slot::EMPTY; length];
        for (number, step) in (0..).zip(&self.steps) {
            let Some(key) = step.key else { continue };
            let mut place = place_of(step.parent, key);
            while let Some(slot) = slots.get_mut(place & (length - 1)) {
                if slot.spot == Slot::EMPTY.spot {
                    *slot = Slot {
                        spot: step.parent.0,
                        symbol: key.0,
                        child: number,
                        bit: step.bit.trailing_zeros() as u8,
                    };
                    break;
                }
                place += 1;
            }
        }
        self.slots = slots;
    }

    /// The spot under a key, and the key's bit.
    #[inline(always)]
    fn child(&self, spot: Spot, key: SymbolId) -> Option<(Spot, u64)> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = place_of(spot, key);
        // Half of the slots are empty, so this ends.
        loop {
            let slot = self.slots.get(place & mask)?;
            if slot.spot == spot.0 && slot.symbol == key.0 {
                return Some((Spot(slot.child), 1 << (slot.bit & 63)));
            }
            if slot.spot == Slot::EMPTY.spot {
                return None;
            }
            place += 1;
        }
    }
}

#[inline(always)]
fn place_of(spot: Spot, key: SymbolId) -> usize {
    let mixed = spot.0.wrapping_mul(0x9E37_79B1) ^ key.0.wrapping_mul(0x85EB_CA77);
    (mixed ^ mixed >> 15) as usize
}

/// Alternatives come in their order, so one that is there already is the last.
fn add_once(alternatives: &mut Vec<Alternative>, alternative: Alternative) {
    if alternatives.last() != Some(&alternative) {
        alternatives.push(alternative);
    }
}

impl Step {
    fn new(parent: Spot, key: Option<SymbolId>, bit: u64, depth: u8) -> Self {
        Self {
            parent,
            key,
            bit,
            depth,
            tests: Vec::new(),
            keys: Vec::new(),
            items: None,
            required: 0,
            requirements: Vec::new(),
        }
    }
}

/// What a walk found out about one object.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// One bit for each alternative that does not hold.
    broken: Vec<u64>,
    /// List items that were looked at.
    items: u64,
}

impl Survey {
    /// Begins another object.
    pub(crate) fn begin(&mut self, plan: &Plan) {
        self.broken.clear();
        self.broken.resize(plan.alternatives.div_ceil(64), 0);
        self.items = 0;
    }

    #[cold]
    fn break_all(&mut self, alternatives: &[Alternative]) {
        for &alternative in alternatives {
            if let Some(word) = self.broken.get_mut(usize::from(alternative) / 64) {
                *word |= 1 << (alternative % 64);
            }
        }
    }

    /// Nothing is known of the object.
    #[cold]
    fn give_up(&mut self) {
        self.broken.fill(u64::MAX);
    }

    fn is_broken(&self, alternative: Alternative) -> bool {
        let word = self.broken.get(usize::from(alternative) / 64);
        word.is_none_or(|word| word >> (alternative % 64) & 1 == 1)
    }
}

/// What is known of an object: how bodies end without being run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proof<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) survey: &'p Survey,
}

impl Proof<'_> {
    /// How a body ends; `None` where it has to be run.
    #[inline]
    pub(crate) fn ending(&self, body: BodyId) -> Option<Ending> {
        self.ending_of(self.plan.bodies.get(body.0)?)
    }

    /// As [`Proof::ending`], for the body of a block.
    pub(crate) fn ending_of_block(&self, block: u32) -> Option<Ending> {
        self.ending(self.plan.find(block)?)
    }

    #[inline]
    fn ending_of(&self, body: &Body) -> Option<Ending> {
        let alternatives = (body.first..).zip(&body.endings);
        let mut whole = alternatives.filter(|&(number, _)| !self.survey.is_broken(number));
        whole.next().map(|(_, &ending)| ending)
    }

    /// Whether no body has to be run.
    pub(crate) fn is_complete(&self) -> bool {
        let nothing_broken = self.survey.broken.iter().all(|&word| word == 0);
        nothing_broken
            || self
                .plan
                .bodies
                .iter()
                .all(|body| self.ending_of(body).is_some())
    }

    /// Whether the bodies would have ended within the limits: each goes over every item
    /// that was looked at once at most.
    pub(crate) fn is_within(&self, rule_fuel: u64, request_fuel: u64) -> bool {
        let rounds = self.survey.items.saturating_add(1);
        self.plan.longest.saturating_mul(rounds) <= rule_fuel
            && self.plan.total.saturating_mul(rounds) <= request_fuel
    }
}

impl Step {
    /// Tests a value that is no map and no list.
    #[inline]
    fn test_scalar(&self, value: Scalar<'_>, tables: &Tables<'_>, survey: &mut Survey) {
        for test in &self.tests {
            let holds = match test.demand {
                Demand::Map | Demand::List | Demand::Nothing | Demand::Tags(_) => false,
                Demand::Some => value != Scalar::Null,
                Demand::Leaf(leaf) | Demand::ItemLeaf(leaf) => {
                    leaf_of_scalar_holds(leaf, value, tables)
                }
            };
            if !holds {
                survey.break_all(&test.breaks);
            }
        }
    }

    /// Tests that a value is a map or a list.
    #[inline]
    fn test_container(&self, kind: Kind, survey: &mut Survey) {
        for test in &self.tests {
            let holds = match test.demand {
                // What labels are is tested where they are nodes.
                Demand::Map | Demand::Tags(_) => kind == Kind::Map,
                Demand::List | Demand::Leaf(_) => kind == Kind::List,
                Demand::Some => true,
                Demand::Nothing | Demand::ItemLeaf(_) => false,
            };
            if !holds {
                survey.break_all(&test.breaks);
            }
        }
    }

    /// Whether anything inside a map or a list is looked at.
    #[inline]
    fn looks_inside(&self, kind: Kind) -> bool {
        match kind {
            Kind::Map => !self.keys.is_empty(),
            _ => self.items.is_some(),
        }
    }

    /// Ends a map of which these keys were there.
    #[inline]
    fn end_map(&self, seen: u64, survey: &mut Survey) {
        let missing = self.required & !seen;
        if missing != 0 {
            for (bit, breaks) in &self.requirements {
                if missing & bit != 0 {
                    survey.break_all(breaks);
                }
            }
        }
    }
}
