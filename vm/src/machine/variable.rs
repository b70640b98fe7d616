//! The variables of a rule and the members of the request's context
//! (docs/spec/conditions.md §6 and §7).

use kpvm_format::Tables;
use kpvm_format::instruction::{RegisterId, SlotId};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::NONE;

use super::failure::{Flow, Outcome};
use super::{Machine, Setting, World};
use crate::document::NodeId;

impl Machine {
    /// The value of a variable, if it is set.
    pub(super) fn variable(&self, slot: SlotId) -> Option<NodeId> {
        let &(stamp, value) = self.variables.get(slot.index())?;
        (stamp == self.rule && !value.is_missing()).then_some(value)
    }

    /// Forgets the values of all variables.
    pub(super) fn forget_variables(&mut self) {
        self.rule += 1;
    }

    pub(super) fn set_variable(&mut self, slot: SlotId, value: NodeId) {
        if let Some(entry) = self.variables.get_mut(slot.index()) {
            *entry = (self.rule, value);
        }
    }

    pub(super) fn load_variable(
        &mut self,
        register: RegisterId,
        slot: SlotId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let slots = setting.tables.slots;
        let name = slots.get(slot.index()).map_or(NONE, |slot| slot.name.get());
        match self.variable(slot) {
            Some(value) => self.set(register, value),
            None => self.load_base(register, SymbolId(name), setting, world),
        }
    }

    pub(super) fn load_base(
        &mut self,
        register: RegisterId,
        name: SymbolId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let base = match self.base_context(setting, world) {
            Ok(base) => base,
            Err(error) => return self.refuse(error),
        };
        match setting.view(world).get(base, name) {
            NodeId::MISSING => self.missing_key(register, setting.tables.symbols.text(name)),
            found => self.set(register, found),
        }
    }

    pub(super) fn load_request_object(
        &mut self,
        register: RegisterId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        // The context has what the request has (see `build_base`), so it need not be built
        // for this, unless variables add to it.
        let objects = setting.request;
        let (key, object) = if setting.is_delete {
            ("oldObject", objects.old_object)
        } else {
            ("object", objects.object)
        };
        let additions = objects
            .variables
            .and_then(|variables| variables.get("request")?.get(key));
        if let (Some(object), None) = (object, additions) {
            return self.set(register, object);
        }
        let base = match self.base_context(setting, world) {
            Ok(base) => base,
            Err(error) => return self.refuse(error),
        };
        let view = setting.view(world);
        let request = view.get_text(base, b"request");
        match view.get_text(request, key.as_bytes()) {
            NodeId::MISSING => self.missing_key(register, key),
            found => self.set(register, found),
        }
    }

    pub(super) fn load_images(
        &mut self,
        register: RegisterId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let images = match &self.images {
            Some(images) => images.clone(),
            None => {
                let images = match setting.request.object.or(setting.request.old_object) {
                    None => Ok(None),
                    Some(object) => crate::images::extract_images(
                        object,
                        kpvm_semantics::image::ImageDefaults::KYVERNO,
                        world.buffer,
                        setting.texts,
                        &setting.tables.symbols,
                    )
                    .map_err(|error| error.to_string()),
                };
                self.images = Some(images.clone());
                images
            }
        };
        match images {
            Ok(Some(images)) => self.set(register, images),
            Ok(None) => self.missing_key(register, "images"),
            Err(error) => {
                self.fail_with(&error);
                Flow::Jump
            }
        }
    }

    pub(super) fn whole_context(&mut self, setting: Setting<'_>, world: &mut World<'_>) -> Outcome {
        let base = self.base_context(setting, world)?;
        let tables = setting.tables;
        let mut members: Vec<(String, NodeId)> = {
            let view = setting.view(world);
            view.children(base)
                .map(|member| (view.key_str(member).to_owned(), member))
                .collect()
        };
        let slots = setting.rule_slots;
        let start = slots.start.get();
        for (offset, slot) in Tables::range(tables.slots, slots).iter().enumerate() {
            let name = tables.symbols.text(SymbolId(slot.name.get()));
            if let Some(value) = self
                .variable(SlotId(start + offset as u32))
                .filter(|_| !name.is_empty())
            {
                members.push((name.to_owned(), value));
            }
        }
        self.with_values(setting, world, |values| {
            let mut labelled = Vec::with_capacity(members.len());
            for (name, value) in members {
                labelled.push((values.label(&name)?, value));
            }
            values.new_map(&labelled)
        })
    }
}
