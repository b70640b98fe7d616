//! The names that an expression sees.

use std::collections::BTreeMap;

use crate::ir::{EntryId, SlotId};

/// The variables and context entries that an expression sees.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    slots: BTreeMap<String, SlotId>,
    entries: Vec<ScopeEntry>,
    /// Every entry of the rule so far, including those of foreach blocks that have ended.
    seen: Vec<ScopeEntry>,
    /// Whether `request.object` means the old object on DELETE (docs/spec/conditions.md §4.8).
    pub rewrites_delete: bool,
    /// Whether the policy is namespaced and may not reach outside its namespace.
    pub is_confined: bool,
}

/// A context entry in scope.
#[derive(Debug, Clone)]
pub(super) struct ScopeEntry {
    pub(super) name: String,
    pub(super) number: EntryId,
    /// It comes after the entry whose loader is being written: seen only once another
    /// loader ran (docs/spec/conditions.md §8.2).
    pub(super) restricted: bool,
    /// It mentions `element`.
    volatile: bool,
}

impl Scope {
    /// The entries in scope that mention `element`: they run again for each element.
    pub fn volatile_entries(&self) -> Vec<EntryId> {
        self.entries
            .iter()
            .filter(|entry| entry.volatile)
            .map(|entry| entry.number)
            .collect()
    }

    /// Whether any context entry is in scope.
    pub fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// The slot of a variable.
    pub fn slot(&self, name: &str) -> Option<SlotId> {
        self.slots.get(name).copied()
    }

    /// The entries in scope with one of these names.
    pub fn entries_named(&self, names: &[&str]) -> Vec<EntryId> {
        let named = |entry: &&ScopeEntry| names.contains(&entry.name.as_str());
        self.entries
            .iter()
            .filter(named)
            .map(|entry| entry.number)
            .collect()
    }

    /// Adds a variable.
    pub fn add_slot(&mut self, name: &str, slot: SlotId) {
        self.slots.insert(name.to_owned(), slot);
    }

    /// Adds a context entry after those already known.
    pub fn add_entry(&mut self, name: &str, number: EntryId, volatile: bool) {
        let entry = ScopeEntry {
            name: name.to_owned(),
            number,
            restricted: false,
            volatile,
        };
        self.entries.push(entry.clone());
        self.seen.push(entry);
    }

    /// The number of entries in scope, for [`Scope::leave`].
    pub fn enter(&self) -> usize {
        self.entries.len()
    }

    /// Removes the entries added since. Variables stay known by name: an unset one is
    /// looked up further out.
    pub fn leave(&mut self, entered: usize) {
        self.entries.truncate(entered);
    }

    /// The scope of a message: the entries of whichever element is bound are the active
    /// ones.
    #[must_use]
    pub fn for_message(&self) -> Scope {
        Scope {
            entries: self.seen.clone(),
            ..self.clone()
        }
    }

    /// The scope of the loader of entry `number`: itself and later entries are restricted.
    #[must_use]
    pub fn for_loader(&self, number: EntryId) -> Scope {
        let mut scope = self.clone();
        scope
            .entries
            .iter_mut()
            .for_each(|entry| entry.restricted = entry.number >= number);
        scope
    }

    /// The entries in scope, in order.
    pub(super) fn entries(&self) -> &[ScopeEntry] {
        &self.entries
    }
}
