//! Plans and projections: what the compiler knows about the objects of each kind.
//!
//! A *plan* is one tree of spots for all rules of a kind. A spot stands for the values at one
//! path of the object, all items of a list alike; it lists what rules demand of them and which
//! alternatives of which bodies a violated demand breaks. A *projection* is the tree of the
//! maps and lists that rules can read. Both are derived from the code by the compiler, used in
//! place here, and never derived at run time.
//!
//! Children of a node are contiguous and follow it, so both trees are arrays in breadth-first
//! order, and small integers suffice as references. Equal plans and projections are stored
//! once, however many kinds and operations refer to them.

use zerocopy::little_endian::{U16, U32};

use crate::symbol::SymbolId;
use crate::table::{Range, record};

/// Most spots of one plan.
pub const MAX_SPOTS: usize = 1 << 14;
/// Most spots below one another.
pub const MAX_SPOT_DEPTH: u8 = 64;
/// Most keys that a plan looks up in one map: one bit each.
pub const MAX_SPOT_KEYS: usize = 64;
/// Most alternatives of one plan.
pub const MAX_ALTERNATIVES: usize = 1 << 15;
/// Most places of one projection.
pub const MAX_PLACES: usize = 1 << 15;

/// Ends a list of alternatives.
pub const END: u16 = u16::MAX;

record! {
    /// What is known about the objects of a kind under one name of its resource.
    Topic {
        /// Symbol of the kind, or [`NONE`](crate::table::NONE) for every kind that no rule names.
        kind: U32,
        /// Symbol of the resource, or [`NONE`](crate::table::NONE) where no rule names it.
        resource: U32,
        /// Number of the `kind_plans` entry for CREATE, UPDATE, DELETE and CONNECT.
        operations: [U32; 4],
    }
}

record! {
    /// What is known about the objects of a topic that come with one operation.
    KindPlan {
        /// The plan, or [`NONE`](crate::table::NONE) if it has no body.
        plan: U32,
        /// Range of `plain_rules`.
        plain: Range,
        /// Projection for objects that the plan decides, or [`NONE`](crate::table::NONE) for everything.
        slim: U32,
        /// Projection for objects whose rules are run, or [`NONE`](crate::table::NONE) for everything.
        full: U32,
    }
}

record! {
    /// A rule whose outcome for a passing object depends only on its kinds and its body.
    PlainRule {
        /// The rule.
        rule: U32,
        /// The list of kind selectors that it matches; equal lists have one number.
        kinds: U32,
        /// Number of the body in the plan.
        body: U16,
    }
}

record! {
    /// A plan: the demands of all bodies of some rules.
    Plan {
        /// Range of `plan_spots`; the first is the object itself.
        spots: Range,
        /// Range of `plan_slots`, a power of two: open addressing from spot and key to spot.
        slots: Range,
        /// Range of `plan_bodies`, ascending by block.
        bodies: Range,
        /// Number of alternatives of all bodies.
        alternatives: U32,
        /// Instructions of the longest body.
        longest: U32,
        /// Instructions of all bodies.
        total: U32,
    }
}

record! {
    /// A spot of a plan. References to spots count from the plan's first.
    PlanSpot {
        /// Symbol of its key; [`NONE`](crate::table::NONE) for list items and the object itself.
        key: U32,
        /// The spot above.
        parent: U16,
        /// First of the spots under keys, those that some rule requires first.
        children: U16,
        /// Spot of the items if it is a list, or 0.
        items: U16,
        /// Number of spots under keys.
        keys: u8,
        /// How many of them are required.
        required: u8,
        /// Its place among the keys of its map.
        bit: u8,
        /// First of its tests in `plan_tests`.
        tests: U32,
        /// Number of its tests.
        test_count: U16,
        /// If it is required: the list in `plan_breaks` of what breaks where it is missing.
        missing: U32,
    }
}

record! {
    /// A demand on the values at a spot.
    PlanTest {
        /// A [`DemandKind`].
        demand: u8,
        /// Number of the leaf or tag pattern, else 0.
        operand: U32,
        /// The list in `plan_breaks` of alternatives that it breaks, up to [`END`].
        breaks: U32,
    }
}

record! {
    /// A body that is part of a plan.
    PlanBody {
        /// Its block.
        block: U32,
        /// Number of its first alternative.
        first: U16,
        /// Number of its alternatives, of which the first that holds decides; 0 if it has one
        /// way to pass and that is no alternative of an `anyPattern`.
        alternatives: U16,
    }
}

record! {
    /// A place of a projection. References to places count from the projection's first.
    ProjectionPlace {
        /// Symbol of its key; [`NONE`](crate::table::NONE) for list items and the document itself.
        key: U32,
        /// First of the places under keys, ascending by symbol.
        children: U16,
        /// Number of places under keys.
        keys: U16,
        /// Place of the items if it is a list, or 0.
        items: U16,
        /// The plan's spot for what is not read, or [`END`].
        spot: U16,
        /// A [`Reading`].
        reading: u8,
    }
}

/// What a plan demands of a value that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DemandKind {
    /// It is a map.
    Map,
    /// It is a list.
    List,
    /// It is not null.
    Some,
    /// It is not there.
    Nothing,
    /// It satisfies a leaf predicate, or is a list: [`DemandKind::ItemLeaf`] covers its items.
    Leaf,
    /// It satisfies a leaf predicate as the item of a list.
    ItemLeaf,
    /// No label or annotation needs a closer look to see that the pattern holds.
    Tags,
}

impl DemandKind {
    /// Every demand in the order of its number.
    pub const ALL: [DemandKind; 7] = [
        DemandKind::Map,
        DemandKind::List,
        DemandKind::Some,
        DemandKind::Nothing,
        DemandKind::Leaf,
        DemandKind::ItemLeaf,
        DemandKind::Tags,
    ];
}

/// What is read of a map or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Reading {
    /// Nothing: that it is there is enough.
    #[default]
    Unread,
    /// Its members; maps and lists among them have their own places.
    Members,
    /// It with everything inside.
    Whole,
}

impl Reading {
    /// Every reading in the order of its number.
    pub const ALL: [Reading; 3] = [Reading::Unread, Reading::Members, Reading::Whole];
}

/// A plan, cut out of the tables.
#[derive(Debug, Clone, Copy)]
pub struct PlanView<'t> {
    pub(crate) record: &'t Plan,
    pub(crate) spots: &'t [PlanSpot],
    pub(crate) slots: &'t [U16],
    pub(crate) bodies: &'t [PlanBody],
    pub(crate) tests: &'t [PlanTest],
    pub(crate) breaks: &'t [U16],
}

impl<'t> PlanView<'t> {
    /// Its numbers.
    pub fn record(&self) -> &'t Plan {
        self.record
    }

    /// A spot.
    #[inline(always)]
    pub fn spot(&self, spot: u32) -> Option<&'t PlanSpot> {
        self.spots.get(spot as usize)
    }

    /// The tests of a spot.
    #[inline(always)]
    pub fn tests(&self, spot: &PlanSpot) -> &'t [PlanTest] {
        let start = spot.tests.get() as usize;
        let end = start.wrapping_add(usize::from(spot.test_count.get()));
        self.tests.get(start..end).unwrap_or(&[])
    }

    /// The alternatives of a list of `plan_breaks`.
    pub fn breaks(&self, list: u32) -> impl Iterator<Item = u16> + use<'t> {
        let list = self.breaks.get(list as usize..).unwrap_or(&[]).iter();
        list.map(|number| number.get())
            .take_while(|&number| number != END)
    }

    /// The bodies, ascending by block.
    pub fn bodies(&self) -> &'t [PlanBody] {
        self.bodies
    }

    /// Number of the body of a block, if it is part of the plan.
    pub fn find(&self, block: u32) -> Option<u16> {
        let found = self
            .bodies
            .binary_search_by_key(&block, |body| body.block.get());
        found.ok().map(|number| number as u16)
    }

    /// The spot under a key of a map, and the key's bit.
    #[inline(always)]
    pub fn child(&self, map: u32, key: SymbolId) -> Option<(u32, u64)> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = slot_of(map, key);
        // One slot at least is empty, so this ends.
        loop {
            let child = u32::from(self.slots.get(place & mask)?.get());
            if child == 0 {
                return None;
            }
            let record = self.spots.get(child as usize)?;
            if record.key.get() == key.0 && u32::from(record.parent.get()) == map {
                return Some((child, 1 << (record.bit & 63)));
            }
            place = place.wrapping_add(1);
        }
    }
}

impl PlanTest {
    /// What it demands.
    #[inline(always)]
    pub fn kind(&self) -> DemandKind {
        match self.demand {
            0 => DemandKind::Map,
            1 => DemandKind::List,
            2 => DemandKind::Some,
            3 => DemandKind::Nothing,
            4 => DemandKind::Leaf,
            5 => DemandKind::ItemLeaf,
            _ => DemandKind::Tags,
        }
    }
}

impl ProjectionPlace {
    /// What is read here.
    #[inline(always)]
    pub fn reading(&self) -> Reading {
        match self.reading {
            0 => Reading::Unread,
            1 => Reading::Members,
            _ => Reading::Whole,
        }
    }
}

impl PlanSpot {
    /// The bits of the keys that are required.
    #[inline(always)]
    pub fn required_bits(&self) -> u64 {
        match self.required {
            0 => 0,
            count => u64::MAX >> (64 - u32::from(count.min(64))),
        }
    }
}

/// Where the search for the spot under a key begins.
#[inline(always)]
pub fn slot_of(map: u32, key: SymbolId) -> usize {
    let mixed = map.wrapping_mul(0x9E37_79B1) ^ key.0.wrapping_mul(0x85EB_CA77);
    (mixed ^ mixed >> 15) as usize
}
