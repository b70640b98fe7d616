//! Numbers of the things in a module, with a type for each kind of thing, and the tables
//! that assign them.

use std::marker::PhantomData;
use std::ops::Range;

pub use kpvm_format::instruction::{
    BlockId, ConstantId, ControlId, EntryId, ExclusionId, KindListId, LeafId, PairListId, PathId,
    SelectorId, ShapeId, SliceId, SlotId, SubjectListId, TagPatternId, TextId, TextListId,
};

/// The number of an entry of a [`Table`].
pub trait Id: Copy {
    /// The id with a number.
    fn of(number: u32) -> Self;

    /// Its number.
    fn number(self) -> u32;
}

macro_rules! ids {
    ($( $name:ident ),+ $(,)?) => {
        $(
            impl Id for $name {
                fn of(number: u32) -> Self {
                    Self(number)
                }

                fn number(self) -> u32 {
                    self.0
                }
            }
        )+
    };
}

/// A policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(pub u32);

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

impl From<PolicyId> for u32 {
    fn from(id: PolicyId) -> u32 {
        id.0
    }
}

impl From<RuleId> for u32 {
    fn from(id: RuleId) -> u32 {
        id.0
    }
}

ids!(
    BlockId,
    PathId,
    LeafId,
    KindListId,
    TextId,
    TextListId,
    PairListId,
    SelectorId,
    SubjectListId,
    TagPatternId,
    ConstantId,
    SliceId,
    SlotId,
    EntryId,
    ShapeId,
    ControlId,
    ExclusionId,
    PolicyId,
    RuleId,
);

/// Entries in the order of their numbers. The first number is 0, or follows the entries of
/// the bundle that the module extends.
#[derive(Debug, Clone)]
pub struct Table<I, T> {
    first: u32,
    entries: Vec<T>,
    id: PhantomData<I>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self {
            first: 0,
            entries: Vec::new(),
            id: PhantomData,
        }
    }
}

impl<I: Id, T> Table<I, T> {
    /// An empty table whose first number follows `count` others.
    pub fn following(count: usize) -> Self {
        Self {
            first: count as u32,
            ..Self::default()
        }
    }

    /// The id of the next entry.
    pub fn next(&self) -> I {
        I::of(self.first + self.entries.len() as u32)
    }

    /// Whether no number has been assigned, here or in the extended bundle.
    pub fn is_unused(&self) -> bool {
        self.next().number() == 0
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: T) -> I {
        let id = self.next();
        self.entries.push(entry);
        id
    }

    /// The entry with an id; `None` if it belongs to the extended bundle.
    pub fn get(&self, id: I) -> Option<&T> {
        let index = id.number().checked_sub(self.first)?;
        self.entries.get(index as usize)
    }

    /// Like [`Table::get`], for modification.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let index = id.number().checked_sub(self.first)?;
        self.entries.get_mut(index as usize)
    }

    /// The entries with ids of a range.
    pub fn range(&self, range: &Range<I>) -> &[T] {
        let index = |id: I| id.number().saturating_sub(self.first) as usize;
        self.entries
            .get(index(range.start)..index(range.end))
            .unwrap_or(&[])
    }

    /// The ids of all entries since `start`.
    pub fn since(&self, start: I) -> Range<I> {
        start..self.next()
    }

    /// The entries in order.
    pub fn entries(&self) -> &[T] {
        &self.entries
    }

    /// The entries in order, for modification.
    pub fn entries_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }

    /// Every entry with its id.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let entries = self.entries.iter().enumerate();
        entries.map(|(index, entry)| (I::of(self.first + index as u32), entry))
    }
}
