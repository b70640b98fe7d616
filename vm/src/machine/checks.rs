//! The operations of `podSecurity`: decoding values into shapes, blocks of checks over
//! them, and exclusions (docs/spec/pod-security.md §2 and §7).

use kpvm_format::Tables;
use kpvm_format::instruction::immediate::{NoteFlags, TextOf};
use kpvm_format::instruction::{
    BlockId, ControlId, ExclusionId, RegisterId, ShapeId, TextId, TextListId,
};

use super::failure::Flow;
use super::finding::Finding;
use super::shape::{Decoder, Fit, Renaming};
use super::{Ending, Machine, Scene, Setting, Shown, World};
use crate::document::NodeId;
use kpvm_semantics::wildcard;

/// Steps that a finding costs, so that fuel bounds the memory of all of them.
const STEPS_PER_NOTE: u64 = 8;

impl Machine {
    /// Decodes a value; a new value is built only if keys differ in case.
    pub(super) fn conform(
        &mut self,
        register: RegisterId,
        value: NodeId,
        shape: ShapeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let shape = shape.0;
        let tables = setting.tables;
        let decoder = Decoder {
            tables,
            view: setting.view(world),
        };
        let mut steps = 0;
        let fit = decoder.fit(value, shape, &mut steps);
        // Composing an error and renaming look at the values again, in order.
        let cost = match fit {
            Fit::Exact => steps / 8,
            Fit::Renamed | Fit::Misfit => steps.saturating_mul(8),
        };
        if self.fuel < cost {
            return Flow::End(Ending::OutOfFuel);
        }
        self.fuel -= cost;
        match fit {
            Fit::Exact => self.set(register, value),
            Fit::Renamed => {
                let outcome = self.with_values(setting, world, |values| {
                    Renaming { tables, values }.rename(value, shape)
                });
                self.set_or_end(register, outcome)
            }
            Fit::Misfit => {
                let text = decoder.error(value, shape);
                self.fail(&text)
            }
        }
    }

    pub(super) fn run_checks(
        &mut self,
        subject: NodeId,
        block: BlockId,
        places: TextListId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        self.findings.begin(block, subject, places);
        if let Some(end) = self.check_over(subject, setting, world) {
            return end;
        }
        self.findings.keep(Shown {
            tables: setting.tables,
            view: setting.view(world),
        });
        Flow::Next
    }

    pub(super) fn exempt(
        &mut self,
        value: NodeId,
        exclusion: ExclusionId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(exclusion) = setting.tables.exclusions.get(exclusion.index()) else {
            return Flow::End(Ending::OutOfFuel);
        };
        self.findings.begin_probe();
        if let Some(end) = self.check_over(value, setting, world) {
            return end;
        }
        let cost = self.findings.steps();
        if self.fuel < cost {
            return Flow::End(Ending::OutOfFuel);
        }
        self.fuel -= cost;
        let shown = Shown {
            tables: setting.tables,
            view: setting.view(world),
        };
        self.findings.exempt(exclusion, shown);
        Flow::Next
    }

    /// Runs the block of checks over a value; returns what ends the caller if the block
    /// does not finish.
    fn check_over(
        &mut self,
        subject: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Option<Flow> {
        let block = self.findings.block();
        match self.run_inside(block.0, subject, None, setting, world) {
            Some(Ending::True) => None,
            _ => Some(Flow::End(Ending::OutOfFuel)),
        }
    }

    /// Records a finding of the running block: the value, and the container if there is
    /// one.
    pub(super) fn note(
        &mut self,
        [value, owner]: [NodeId; 2],
        flags: NoteFlags,
        path: TextId,
        control: ControlId,
    ) -> Flow {
        if self.fuel < STEPS_PER_NOTE {
            return Flow::End(Ending::OutOfFuel);
        }
        self.fuel -= STEPS_PER_NOTE;
        let indices = [0, 1].map(|slot| self.loop_index(kpvm_format::instruction::LoopSlot(slot)));
        self.findings.note(Finding {
            control,
            flags,
            path,
            indices,
            value,
            owner,
        });
        Flow::Next
    }

    /// Whether there are remaining findings that an exclusion concerns.
    pub(super) fn concerns_findings(&self, exclusion: ExclusionId, tables: &Tables<'_>) -> bool {
        let exclusion = tables.exclusions.get(exclusion.index());
        exclusion.is_some_and(|exclusion| self.findings.concern(exclusion.name, tables))
    }

    /// Jumps if a wildcard of a list matches a text of the value.
    pub(super) fn test_text(
        &mut self,
        value: NodeId,
        of: TextOf,
        texts: TextListId,
        scene: &Scene<'_>,
    ) -> Flow {
        let text = match of {
            TextOf::Value => scene.view.text(value),
            TextOf::Key => scene.view.key_bytes(value),
        };
        let matches = |pattern: &str| wildcard::matches(pattern, text);
        Flow::jump_if(scene.tables.text_list(texts.0).any(matches))
    }
}
