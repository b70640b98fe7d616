//! The plan of some rules while it is made: one tree of spots for the demands of all bodies.

use std::collections::{BTreeMap, HashMap, HashSet};

use kpvm_format::plan::{DemandKind, MAX_ALTERNATIVES, MAX_SPOT_DEPTH, MAX_SPOT_KEYS, MAX_SPOTS};
use kpvm_format::symbol::SymbolId;

/// The values at one path of the object; all items of a list have one spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot(pub(super) u16);

impl Spot {
    /// The object itself.
    pub(super) const ROOT: Spot = Spot(0);
}

/// Number of an alternative: what has to hold together for a body to end one way.
pub(super) type Alternative = u16;

/// What is demanded of a value that is there, with the number of the leaf or tag pattern.
pub(super) type Demand = (DemandKind, u32);

/// What one spot is about.
#[derive(Debug)]
pub(super) struct SpotNode {
    pub(super) parent: Spot,
    /// The key that it stands under; none for items and the object itself.
    pub(super) key: Option<SymbolId>,
    depth: u8,
    /// Each demand with the alternatives that it breaks.
    pub(super) tests: BTreeMap<Demand, Vec<Alternative>>,
    /// The alternatives that need a value here, wherever there is a map around it.
    pub(super) required_by: Vec<Alternative>,
    /// The spots under keys.
    pub(super) keys: Vec<Spot>,
    pub(super) items: Option<Spot>,
}

/// A body that is part of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) block: u32,
    pub(super) first: Alternative,
    /// Number of alternatives of an `anyPattern`, or 0 for a body that passes as a whole.
    pub(super) alternatives: u16,
}

/// The demands of some bodies.
#[derive(Debug)]
pub(super) struct Spots {
    nodes: Vec<SpotNode>,
    /// The spots under keys, by map and key.
    children: HashMap<(Spot, SymbolId), Spot>,
    /// In the order in which they were added.
    pub(super) bodies: Vec<Body>,
    blocks: HashSet<u32>,
    /// Number of alternatives so far.
    pub(super) alternatives: usize,
    /// Instructions of the longest body, and of all.
    pub(super) longest: usize,
    pub(super) total: usize,
}

impl Spots {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![SpotNode::new(Spot::ROOT, None, 0)],
            children: HashMap::new(),
            bodies: Vec::new(),
            blocks: HashSet::new(),
            alternatives: 0,
            longest: 0,
            total: 0,
        }
    }

    /// Whether no further alternative fits.
    pub(super) fn is_full(&self, more: usize) -> bool {
        self.alternatives + more >= MAX_ALTERNATIVES
    }

    pub(super) fn node(&self, spot: Spot) -> Option<&SpotNode> {
        self.nodes.get(usize::from(spot.0))
    }

    fn node_mut(&mut self, spot: Spot) -> Option<&mut SpotNode> {
        self.nodes.get_mut(usize::from(spot.0))
    }

    /// The spot under a key; `None` where there are too many.
    pub(super) fn under(&mut self, map: Spot, key: SymbolId) -> Option<Spot> {
        if let Some(&known) = self.children.get(&(map, key)) {
            return Some(known);
        }
        if self.node(map)?.keys.len() == MAX_SPOT_KEYS {
            return None;
        }
        let child = self.add(map, Some(key))?;
        self.node_mut(map)?.keys.push(child);
        self.children.insert((map, key), child);
        Some(child)
    }

    /// The spot of list items; `None` where there are too many.
    pub(super) fn items(&mut self, list: Spot) -> Option<Spot> {
        if let Some(known) = self.node(list)?.items {
            return Some(known);
        }
        let items = self.add(list, None)?;
        self.node_mut(list)?.items = Some(items);
        Some(items)
    }

    fn add(&mut self, parent: Spot, key: Option<SymbolId>) -> Option<Spot> {
        let depth = self.node(parent)?.depth + 1;
        if depth > MAX_SPOT_DEPTH || self.nodes.len() >= MAX_SPOTS {
            return None;
        }
        let spot = Spot(self.nodes.len() as u16);
        self.nodes.push(SpotNode::new(parent, key, depth));
        Some(spot)
    }

    /// An alternative demands something of the values at a spot.
    pub(super) fn demand(&mut self, spot: Spot, demand: Demand, alternative: Alternative) {
        if let Some(node) = self.node_mut(spot) {
            add_once(node.tests.entry(demand).or_default(), alternative);
        }
    }

    /// An alternative demands that there is something at a spot wherever there is a map around it.
    pub(super) fn require(&mut self, spot: Spot, alternative: Alternative) {
        if let Some(node) = self.node_mut(spot) {
            add_once(&mut node.required_by, alternative);
        }
    }

    /// Whether a spot is another one or below it.
    pub(super) fn is_at_or_below(&self, spot: Spot, other: Spot) -> bool {
        let mut next = spot;
        loop {
            if next == other {
                return true;
            }
            match self.node(next) {
                Some(node) if next != Spot::ROOT => next = node.parent,
                _ => return false,
            }
        }
    }

    /// Whether labels or annotations are what is there, and tested.
    pub(super) fn tests_tags(&self, spot: Spot) -> bool {
        self.node(spot).is_some_and(|node| {
            let mut demands = node.tests.keys();
            demands.any(|(kind, _)| *kind == DemandKind::Tags)
        })
    }

    /// The spots directly below a spot.
    pub(super) fn below(&self, spot: Spot) -> impl Iterator<Item = Spot> {
        let node = self.node(spot).into_iter();
        node.flat_map(|node| node.keys.iter().copied().chain(node.items))
    }

    /// Whether labels or annotations are tested at a spot or below: that takes nodes. Spots nest
    /// at most [`MAX_SPOT_DEPTH`] deep, so this recurses.
    pub(super) fn needs_nodes(&self, spot: Spot) -> bool {
        self.tests_tags(spot) || self.below(spot).any(|below| self.needs_nodes(below))
    }

    /// Adds a body whose demands are in the tree.
    pub(super) fn add_body(&mut self, body: Body) {
        self.blocks.insert(body.block);
        self.bodies.push(body);
    }

    /// Whether the body of a block is part of it.
    pub(super) fn holds(&self, block: u32) -> bool {
        self.blocks.contains(&block)
    }
}

/// Alternatives come in ascending order, so one that is there already is the last.
fn add_once(alternatives: &mut Vec<Alternative>, alternative: Alternative) {
    if alternatives.last() != Some(&alternative) {
        alternatives.push(alternative);
    }
}

impl SpotNode {
    fn new(parent: Spot, key: Option<SymbolId>, depth: u8) -> Self {
        Self {
            parent,
            key,
            depth,
            tests: BTreeMap::new(),
            required_by: Vec::new(),
            keys: Vec::new(),
            items: None,
        }
    }
}
