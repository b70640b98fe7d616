//! The operations on texts that are built at run time.

use kpvm_format::instruction::{RegisterId, TextId, TextSlot};

use super::failure::Flow;
use super::{Ending, Machine, Setting, World};
use crate::document::{Kind, NodeId};
use crate::function::FunctionError;
use crate::text;

impl Machine {
    /// The text accumulator of a slot.
    pub(super) fn accumulator(&mut self, slot: TextSlot) -> &mut String {
        let slot = slot.index();
        if self.frame.texts.len() <= slot {
            self.frame.texts.resize_with(slot + 1, String::new);
        }
        &mut self.frame.texts[slot]
    }

    pub(super) fn text_value(
        &mut self,
        accumulator: TextSlot,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let mut out = std::mem::take(self.accumulator(accumulator));
        let view = setting.view(world);
        let result = text::append_substituted(&view, value, &mut out, setting.limits.string_bytes);
        let cost = out.len() as u64 / 64;
        *self.accumulator(accumulator) = out;
        if self.fuel < cost {
            return Flow::End(Ending::OutOfFuel);
        }
        self.fuel -= cost;
        match result {
            Ok(()) => Flow::Next,
            Err(error @ text::TextError::TooLong(_)) => {
                self.refuse(FunctionError::Refused(error.to_string()))
            }
            Err(error) => {
                self.fail_with(&error.to_string());
                Flow::Jump
            }
        }
    }

    pub(super) fn end_text(
        &mut self,
        register: RegisterId,
        accumulator: TextSlot,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let text = std::mem::take(self.accumulator(accumulator));
        let outcome = self.with_values(setting, world, |values| values.new_text(&text));
        *self.accumulator(accumulator) = text;
        self.set_or_end(register, outcome)
    }

    /// The value of a key's variables, if it is a text.
    pub(super) fn require_key_text(
        &mut self,
        register: RegisterId,
        value: NodeId,
        text: TextId,
        typed: bool,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        if setting.view(world).kind(value) == Some(Kind::String) {
            return self.set(register, value);
        }
        self.fail_with(super::text_of(setting.tables, text));
        if typed {
            let found = text::go_type(&setting.view(world), value);
            self.failure_text.push_str(found);
        }
        Flow::Jump
    }
}
