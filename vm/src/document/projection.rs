//! Projection: which maps and lists of a document are read, and which are only checked.
//!
//! The reader checks the syntax of the parts it leaves out, and keeps one node with the
//! range of their text. Accessing such a node through a [`View`](super::View) returns
//! nothing and is recorded; the caller then reads the document as a whole
//! ([`DocumentBuffer::has_looked_at_unread`](super::DocumentBuffer::has_looked_at_unread)).
//! So a projection that leaves out too much costs time but never changes a verdict.

use std::collections::BTreeMap;

use super::node::Label;
use super::skip::Skipped;
use kpvm_format::symbol::SymbolId;

/// A place in a projection: the values at one path, the same for all list items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(super) u32);

impl Place {
    /// Everything from here on is read.
    pub(super) const WHOLE: Place = Place(0);
    /// The document itself.
    pub(crate) const ROOT: Place = Place(1);
    /// Not a place of the document, but of the request that contains it.
    pub(crate) const REQUEST: Place = Place(u32::MAX);
}

/// The maps and lists that are read. Scalars in a map or list that is read are always read.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    steps: Vec<Step>,
}

/// One place.
#[derive(Debug, Clone, Default)]
struct Step {
    how: How,
    /// Places by key.
    keys: BTreeMap<SymbolId, Place>,
    /// Place of list items.
    items: Option<Place>,
    /// The bystander's number for unread content at this place.
    spot: Option<u32>,
}

/// Treatment of a map or list.
pub(super) enum Entry {
    /// Read, at its place.
    Read(Place),
    /// Not read, but visited by the bystander.
    Pass(u32),
    /// Not read.
    Skip,
}

/// Visitor of maps and lists that are not read but have a number.
pub(crate) trait Bystander {
    /// Visits the non-empty map or list whose bracket is before `at`, and checks its
    /// syntax. `None` if it must be read.
    fn pass(&mut self, input: &[u8], at: usize, is_map: bool, spot: u32) -> Option<Skipped>;
    /// Discards everything visited, because the document is read as a whole.
    fn forget(&mut self);
}

/// How much of a map or list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum How {
    /// Nothing: only its presence matters.
    #[default]
    Unread,
    /// Its members; maps and lists in it as their places say.
    Members,
    /// Everything in it.
    Whole,
}

/// Options for reading a document in part.
pub(crate) struct Part<'p> {
    /// What is read.
    pub(crate) projection: &'p Projection,
    /// Visitor of the rest.
    pub(crate) bystander: Option<&'p mut dyn Bystander>,
}

impl Projection {
    /// Reads only the document's own members.
    pub(crate) fn new() -> Self {
        let whole = Step {
            how: How::Whole,
            ..Step::default()
        };
        let root = Step {
            how: How::Members,
            ..Step::default()
        };
        Self {
            steps: vec![whole, root],
        }
    }

    /// Place of a key.
    pub(crate) fn under(&mut self, place: Place, key: SymbolId) -> Place {
        let new = Place(self.steps.len() as u32);
        match self.step_mut(place) {
            Some(step) if step.how != How::Whole => {
                if let Some(&known) = step.keys.get(&key) {
                    return known;
                }
                step.keys.insert(key, new);
            }
            _ => return Place::WHOLE,
        }
        self.steps.push(Step::default());
        new
    }

    /// Place of the items of a list.
    pub(crate) fn items(&mut self, place: Place) -> Place {
        let new = Place(self.steps.len() as u32);
        match self.step_mut(place) {
            Some(step) if step.how != How::Whole => {
                if let Some(known) = step.items {
                    return known;
                }
                step.items = Some(new);
            }
            _ => return Place::WHOLE,
        }
        self.steps.push(Step::default());
        new
    }

    /// Marks the members at a place as accessed.
    pub(crate) fn read_members(&mut self, place: Place) {
        if let Some(step) = self.step_mut(place)
            && step.how == How::Unread
        {
            step.how = How::Members;
        }
    }

    /// Marks everything at a place as accessed.
    pub(crate) fn read_whole(&mut self, place: Place) {
        if let Some(step) = self.step_mut(place) {
            step.how = How::Whole;
        }
    }

    /// Numbers the unread content at a place; returns whether anything is read there.
    pub(crate) fn number(&mut self, place: Place, spot: u32) -> bool {
        match self.step_mut(place) {
            Some(step) if step.how == How::Unread => {
                step.spot = Some(spot);
                false
            }
            _ => true,
        }
    }

    /// Whether everything is read.
    pub(crate) fn is_whole(&self) -> bool {
        self.step(Place::ROOT)
            .is_none_or(|root| root.how == How::Whole)
    }

    fn step(&self, place: Place) -> Option<&Step> {
        self.steps.get(place.0 as usize)
    }

    fn step_mut(&mut self, place: Place) -> Option<&mut Step> {
        self.steps.get_mut(place.0 as usize)
    }

    /// Treatment of the map or list with `label` at `place`.
    #[inline]
    pub(super) fn entry(&self, place: Place, label: Label) -> Entry {
        let Some(step) = self.step(place) else {
            return Entry::Skip;
        };
        if step.how == How::Whole {
            return Entry::Read(Place::WHOLE);
        }
        let inside = match label.key.symbol() {
            Some(symbol) => step.keys.get(&symbol).copied(),
            None => step.items.filter(|_| label.is_item()),
        };
        let Some(inside) = inside else {
            return Entry::Skip;
        };
        match self.step(inside) {
            Some(step) if step.how != How::Unread => Entry::Read(inside),
            Some(Step {
                spot: Some(spot), ..
            }) => Entry::Pass(*spot),
            _ => Entry::Skip,
        }
    }
}
