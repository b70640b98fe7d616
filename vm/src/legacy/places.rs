//! Projection: which maps and lists of a document are read, and which are only checked.
//!
//! The reader still checks the syntax of what it leaves out, and keeps one node for it
//! that says where its text is. Looking inside such a node through a
//! [`View`](super::View) yields nothing and is noted; who asked then has the document
//! read as a whole ([`DocumentBuffer::has_looked_at_unread`](super::DocumentBuffer::has_looked_at_unread)).
//! So a projection that leaves out too much costs time, never a verdict.

use std::collections::BTreeMap;

use kpvm_format::symbol::SymbolId;

/// A place in a projection: the values at one path, list items all alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(super) u32);

impl Place {
    /// Everything from here on is read.
    pub(super) const WHOLE: Place = Place(0);
    /// The document itself.
    pub(crate) const ROOT: Place = Place(1);
    /// No place of the document, but of a request that holds it.
    pub(crate) const REQUEST: Place = Place(u32::MAX);
}

/// The maps and lists that are read. Plain values in a map or list that is read are
/// always read.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    steps: Vec<Step>,
}

/// One place.
#[derive(Debug, Clone, Default)]
struct Step {
    how: How,
    /// The places under keys.
    keys: BTreeMap<SymbolId, Place>,
    /// The place of list items.
    items: Option<Place>,
    /// The bystander's number for what is here and not read.
    spot: Option<u32>,
}

/// What is read of a map or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum How {
    /// Nothing: that it is there is enough.
    #[default]
    Unread,
    /// Its members; of maps and lists in it what their places say.
    Members,
    /// It with everything inside.
    Whole,
}

impl Projection {
    /// Nothing is read but the document's own members.
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

    /// The place under a key.
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

    /// The place of the items of a list.
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

    /// The members of what is there are looked at.
    pub(crate) fn read_members(&mut self, place: Place) {
        if let Some(step) = self.step_mut(place)
            && step.how == How::Unread
        {
            step.how = How::Members;
        }
    }

    /// What is there is looked at with everything inside.
    pub(crate) fn read_whole(&mut self, place: Place) {
        if let Some(step) = self.step_mut(place) {
            step.how = How::Whole;
        }
    }

    /// Gives what is not read at a place a number; whether anything is read there.
    pub(crate) fn number(&mut self, place: Place, spot: u32) -> bool {
        match self.step_mut(place) {
            Some(step) if step.how == How::Unread => {
                step.spot = Some(spot);
                false
            }
            _ => true,
        }
    }

    /// Whether nothing is left out.
    pub(crate) fn is_whole(&self) -> bool {
        self.step(Place::ROOT)
            .is_none_or(|root| root.how == How::Whole)
    }

    /// For the comparison.
    pub(crate) fn lines(&self, spots: &[String], symbols: &kpvm_format::symbol::SymbolTable<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        fn go(p: &Projection, place: Place, path: &str, spots: &[String], symbols: &kpvm_format::symbol::SymbolTable<'_>, lines: &mut Vec<String>) {
            let Some(step) = p.step(place) else { return };
            let how = match step.how { How::Unread => "Unread", How::Members => "Members", How::Whole => "Whole" };
            let spot = step.spot.filter(|_| step.how == How::Unread).and_then(|s| spots.get(s as usize));
            if step.how == How::Unread && spot.is_none() { return; }
            lines.push(format!("{path}: {how} {spot:?}"));
            if step.how != How::Members { return; }
            for (key, &below) in &step.keys {
                go(p, below, &format!("{path}/{}", symbols.text(*key)), spots, symbols, lines);
            }
            if let Some(below) = step.items { go(p, below, &format!("{path}/*"), spots, symbols, lines); }
        }
        go(self, Place::ROOT, "", spots, symbols, &mut lines);
        lines.sort();
        lines
    }

    fn step(&self, place: Place) -> Option<&Step> {
        self.steps.get(place.0 as usize)
    }

    fn step_mut(&mut self, place: Place) -> Option<&mut Step> {
        self.steps.get_mut(place.0 as usize)
    }

}
