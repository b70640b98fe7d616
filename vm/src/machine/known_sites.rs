//! The sites that messages named lately. A rule that fails does so for many objects, and finding
//! a site means passing over the packed ones before it: without this, a tenth of the time that
//! a refused Pod takes.

use kpvm_format::Tables;
use kpvm_format::site::{InstructionId, Site};

/// Number of sites kept: more than the rules that commonly fail together have.
const SLOTS: usize = 64;

/// Sites of one bundle. Each instruction has one slot, which it shares with others.
#[derive(Debug, Default)]
pub(super) struct KnownSites {
    /// Empty until the first message.
    slots: Vec<Option<(InstructionId, Option<Site>)>>,
}

impl KnownSites {
    /// The site of an instruction, if it has one.
    pub(super) fn get(&mut self, instruction: InstructionId, tables: &Tables<'_>) -> Option<Site> {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, None);
        }
        let spread = instruction.block.wrapping_mul(31) ^ instruction.position;
        let find = || (instruction, tables.site(instruction));
        let Some(slot) = self.slots.get_mut(spread as usize % SLOTS) else {
            return find().1;
        };
        match slot {
            Some((known, site)) if *known == instruction => *site,
            slot => slot.insert(find()).1,
        }
    }
}
