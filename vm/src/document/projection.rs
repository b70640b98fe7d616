//! Projection: which maps and lists of a document are read, and which are only checked.
//!
//! The reader still checks the syntax of what it leaves out, and keeps one node for it that
//! says where its text is. Looking inside such a node through a [`View`](super::View) yields
//! nothing and is noted; the caller then has the document read as a whole
//! ([`DocumentBuffer::has_looked_at_unread`](super::DocumentBuffer::has_looked_at_unread)).
//! So a projection that leaves out too much costs time, never a verdict.

use kpvm_format::plan::{END, ProjectionPlace, Reading};

use super::node::Label;
use super::skip::Skipped;

/// Number of a place in a projection: the values at one path, list items all alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(pub(super) u32);

impl Place {
    /// No place: everything from here on is read.
    pub(super) const WHOLE: Place = Place(u32::MAX);
    /// The document itself.
    pub(super) const ROOT: Place = Place(0);
}

/// The maps and lists that are read. Scalars in a map or list that is read are always read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Projection<'p> {
    /// The places, as the compiler derived them.
    pub(crate) places: &'p [ProjectionPlace],
}

/// What becomes of a map or list.
pub(super) enum Entry {
    /// It is read, at its place.
    Read(Place),
    /// It is left out, but the bystander walks over it.
    Pass(u32),
    /// It is left out.
    Skip,
}

/// Visitor of maps and lists that are not read but that a plan has a spot for.
pub(crate) trait Bystander {
    /// Walks over the map or list whose bracket is before `at` and that is not empty, and
    /// checks its syntax. `None` where it has to be read.
    fn pass(&mut self, input: &[u8], at: usize, is_map: bool, spot: u32) -> Option<Skipped>;
    /// What was passed does not count: the document is read as a whole.
    fn forget(&mut self);
}

/// How a document is read in part.
pub(crate) struct Part<'p> {
    /// What is read.
    pub(crate) projection: Projection<'p>,
    /// Who walks over the rest.
    pub(crate) bystander: Option<&'p mut dyn Bystander>,
}

impl Projection<'_> {
    /// What becomes of a map or list that stands under `label` at `place`.
    #[inline]
    pub(super) fn entry(&self, place: Place, label: Label) -> Entry {
        let Some(here) = self.places.get(place.0 as usize) else {
            return Entry::Read(Place::WHOLE);
        };
        if here.reading() == Reading::Whole {
            return Entry::Read(Place::WHOLE);
        }
        let inside = match label.key.symbol() {
            Some(symbol) => {
                let first = usize::from(here.children.get());
                let keys = self.places.get(first..first + usize::from(here.keys.get()));
                let keys = keys.unwrap_or(&[]);
                let found = keys.binary_search_by_key(&symbol.0, |inside| inside.key.get());
                found.ok().map(|found| first + found)
            }
            None => {
                Some(usize::from(here.items.get())).filter(|&items| items != 0 && label.is_item())
            }
        };
        let Some((number, inside)) =
            inside.and_then(|number| Some((number, self.places.get(number)?)))
        else {
            return Entry::Skip;
        };
        match (inside.reading(), inside.spot.get()) {
            (Reading::Members | Reading::Whole, _) => Entry::Read(Place(number as u32)),
            (Reading::Unread, END) => Entry::Skip,
            (Reading::Unread, spot) => Entry::Pass(spot.into()),
        }
    }
}
