//! Context entries: each has a loader, a block that runs when an expression first mentions
//! the entry's name (docs/spec/conditions.md §8).

use kpvm_format::instruction::EntryId;
use kpvm_format::instruction::SlotId;
use kpvm_format::instruction::immediate::{EntryLoading, ForeachDepth};
use kpvm_format::table;

use super::failure::Flow;
use super::{Ending, Machine, Setting, World};
use crate::document::NodeId;
use crate::engine::observer::Event;

/// The state of a context entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Belongs to a foreach block that currently binds no element.
    Inactive,
    /// Runs when it is needed.
    Pending,
    /// Has run; its variable has the result.
    Done,
    /// Has run and failed: later entries do not see the name, until it may run again (with
    /// the next element of a foreach, or after its last one).
    Failed,
}

fn variable_of(record: &table::Entry) -> SlotId {
    SlotId(record.slot.get())
}

impl Machine {
    fn entry_state(&self, entry: EntryId, record: &table::Entry) -> EntryState {
        match self.entries.get(entry.index()) {
            Some(&(stamp, state)) if stamp == self.rule => state,
            _ if record.nested != 0 => EntryState::Inactive,
            _ => EntryState::Pending,
        }
    }

    fn set_entry(&mut self, entry: EntryId, state: EntryState) -> Flow {
        if let Some(slot) = self.entries.get_mut(entry.index()) {
            *slot = (self.rule, state);
        }
        Flow::Next
    }

    /// Makes an entry inactive.
    pub(super) fn drop_entry(&mut self, entry: EntryId) -> Flow {
        self.set_entry(entry, EntryState::Inactive)
    }

    /// Makes an entry active: it runs when it is needed.
    pub(super) fn reset_entry(&mut self, entry: EntryId) -> Flow {
        self.set_entry(entry, EntryState::Pending)
    }

    pub(super) fn retry_entries(&mut self, setting: Setting<'_>) -> Flow {
        let start = setting.rule_entries.start.get() as usize;
        let count = setting.rule_entries.length.get() as usize;
        for slot in self.entries.iter_mut().skip(start).take(count) {
            if *slot == (self.rule, EntryState::Failed) {
                slot.1 = EntryState::Pending;
            }
        }
        Flow::Next
    }

    pub(super) fn ensure_entry(
        &mut self,
        entry: EntryId,
        loading: EntryLoading,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(record) = setting.tables.entries.get(entry.index()) else {
            return Flow::Next;
        };
        if loading.has(EntryLoading::FIRST) {
            self.frame.lifted |= self.frame.has_loaded;
        }
        let waits = loading.has(EntryLoading::RESTRICTED) && !self.frame.lifted;
        if waits || self.entry_state(entry, record) != EntryState::Pending {
            return Flow::Next;
        }
        let ending = self.run_loader(entry, record, setting, world);
        self.frame.has_loaded = true;
        match ending {
            Ending::Value(value) => {
                self.set_variable(variable_of(record), value);
                Flow::Next
            }
            Ending::Nothing => Flow::Next,
            Ending::Failed { .. } => {
                self.set_entry(entry, EntryState::Failed);
                Flow::Jump
            }
            _ => Flow::End(Ending::OutOfFuel),
        }
    }

    /// Runs an entry again that depended on the previous element; if it fails now, its
    /// variable is unset (docs/spec/conditions.md §8.3).
    pub(super) fn refresh_entry(
        &mut self,
        entry: EntryId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(record) = setting.tables.entries.get(entry.index()) else {
            return Flow::Next;
        };
        if self.entry_state(entry, record) != EntryState::Done {
            return Flow::Next;
        }
        self.set_variable(variable_of(record), NodeId::MISSING);
        if let Ending::Value(value) = self.run_loader(entry, record, setting, world) {
            self.set_variable(variable_of(record), value);
        }
        Flow::Next
    }

    pub(super) fn run_loader(
        &mut self,
        entry: EntryId,
        record: &table::Entry,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Ending {
        self.set_entry(entry, EntryState::Done);
        let is_observed = world.observer.is_some();
        if is_observed {
            world.tell(&Event::EntryBegins { entry: entry.0 });
        }
        let root = setting.subject.root;
        let ending = self
            .run_inside(record.block.get(), root, Some(entry), setting, world)
            .unwrap_or_else(|| {
                self.fail_with("context entries depend on one another more than 64 deep");
                Ending::Failed {
                    depth: ForeachDepth::default(),
                }
            });
        if is_observed {
            self.report_entry(entry, ending, setting, world);
        }
        ending
    }
}
