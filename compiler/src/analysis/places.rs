//! The places of an object that rules can read, as a tree that grows while code is followed.

use std::collections::BTreeMap;

use kpvm_format::plan::Reading;
use kpvm_format::symbol::SymbolId;

/// The values at one path of the object; all items of a list have one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(pub(super) u32);

impl Place {
    /// Everything from here on is read.
    const WHOLE: Place = Place(0);
    /// The object itself.
    pub(super) const ROOT: Place = Place(1);
    /// Not a place of the object, but the request that holds it.
    pub(super) const REQUEST: Place = Place(u32::MAX);
}

/// The places that rules can read. Scalars in a map or list that is read are always read.
#[derive(Debug, Clone)]
pub(super) struct Places {
    nodes: Vec<PlaceNode>,
}

/// One place.
#[derive(Debug, Clone, Default)]
pub(super) struct PlaceNode {
    pub(super) reading: Reading,
    /// The places under keys.
    pub(super) keys: BTreeMap<SymbolId, Place>,
    /// The place of list items.
    pub(super) items: Option<Place>,
    /// The spot of the plan for what is here and not read.
    pub(super) spot: Option<u16>,
}

impl Places {
    /// Only the members of the object itself are read.
    pub(super) fn new() -> Self {
        let read = |reading| PlaceNode {
            reading,
            ..PlaceNode::default()
        };
        Self {
            nodes: vec![read(Reading::Whole), read(Reading::Members)],
        }
    }

    /// The place under a key.
    pub(super) fn under(&mut self, place: Place, key: SymbolId) -> Place {
        let new = Place(self.nodes.len() as u32);
        match self.node_mut(place) {
            Some(node) if node.reading != Reading::Whole => {
                if let Some(&known) = node.keys.get(&key) {
                    return known;
                }
                node.keys.insert(key, new);
            }
            _ => return Place::WHOLE,
        }
        self.nodes.push(PlaceNode::default());
        new
    }

    /// The place of the items of a list.
    pub(super) fn items(&mut self, place: Place) -> Place {
        let new = Place(self.nodes.len() as u32);
        match self.node_mut(place) {
            Some(node) if node.reading != Reading::Whole => {
                if let Some(known) = node.items {
                    return known;
                }
                node.items = Some(new);
            }
            _ => return Place::WHOLE,
        }
        self.nodes.push(PlaceNode::default());
        new
    }

    /// The members of what is there can be read.
    pub(super) fn read_members(&mut self, place: Place) {
        if let Some(node) = self.node_mut(place)
            && node.reading == Reading::Unread
        {
            node.reading = Reading::Members;
        }
    }

    /// What is there can be read with everything inside.
    pub(super) fn read_whole(&mut self, place: Place) {
        if let Some(node) = self.node_mut(place) {
            node.reading = Reading::Whole;
        }
    }

    /// Gives what is not read at a place the spot of a plan; whether anything is read there.
    pub(super) fn set_spot(&mut self, place: Place, spot: u16) -> bool {
        match self.node_mut(place) {
            Some(node) if node.reading == Reading::Unread => {
                node.spot = Some(spot);
                false
            }
            _ => true,
        }
    }

    /// Whether nothing is left out.
    pub(super) fn is_whole(&self) -> bool {
        self.node(Place::ROOT)
            .is_none_or(|root| root.reading == Reading::Whole)
    }

    pub(super) fn node(&self, place: Place) -> Option<&PlaceNode> {
        self.nodes.get(place.0 as usize)
    }

    fn node_mut(&mut self, place: Place) -> Option<&mut PlaceNode> {
        self.nodes.get_mut(place.0 as usize)
    }
}
