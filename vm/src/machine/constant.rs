//! Constants: built once per evaluation.

use kpvm_format::Tables;
use kpvm_format::instruction::{ConstantId, RegisterId};
use kpvm_format::table::ConstantKind;

use super::failure::{Flow, Outcome};
use super::{Machine, NULL, Setting, World, boolean};
use crate::document::{Extended, Label, NodeId};
use crate::function::{FunctionError, Values};

impl Machine {
    /// A constant that has been built in this evaluation, or [`NodeId::MISSING`].
    #[inline]
    pub(super) fn known_constant(&self, number: ConstantId) -> NodeId {
        match self.constants.get(number.index()) {
            Some(&(stamp, node)) if stamp == self.evaluation => node,
            _ => NodeId::MISSING,
        }
    }

    pub(super) fn load_constant(
        &mut self,
        register: RegisterId,
        number: ConstantId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let outcome = self.constant(number, setting, world);
        self.set_or_end(register, outcome)
    }

    /// Builds a constant.
    fn constant(
        &mut self,
        number: ConstantId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Outcome {
        let tables = setting.tables;
        if let Some(constant) = tables.constants.get(number.index()) {
            match ConstantKind::ALL.get(usize::from(constant.kind)) {
                Some(ConstantKind::Null) => return Ok(self.keep_constant(number, NULL)),
                Some(ConstantKind::Bool) => {
                    let value = boolean(constant.value.get() != 0);
                    return Ok(self.keep_constant(number, value));
                }
                _ => {}
            }
        }
        let node = self.with_values(setting, world, |values| {
            push_constant(number.0, Label::ITEM, tables, values)?;
            Ok::<_, FunctionError>(values.buffer.take()?)
        })?;
        Ok(self.keep_constant(number, node))
    }

    fn keep_constant(&mut self, number: ConstantId, node: NodeId) -> NodeId {
        if let Some(slot) = self.constants.get_mut(number.index()) {
            *slot = (self.evaluation, node);
        }
        node
    }
}

/// Pushes a constant and everything in it; the verifier bounds the depth.
fn push_constant(
    number: u32,
    label: Label,
    tables: &Tables<'_>,
    values: &mut Values<'_>,
) -> Result<(), FunctionError> {
    let Some(constant) = tables.constants.get(number as usize) else {
        return Ok(());
    };
    let bits = constant.value.get();
    let children = constant.children;
    match ConstantKind::ALL.get(usize::from(constant.kind)) {
        None | Some(ConstantKind::Null) => values.buffer.push_null(label),
        Some(ConstantKind::Bool) => values.buffer.push_bool(label, bits != 0),
        Some(ConstantKind::Int) => values.buffer.push_int(label, bits as i64),
        Some(ConstantKind::Float) => values.buffer.push_float(label, f64::from_bits(bits)),
        Some(ConstantKind::String) => {
            let text = values
                .buffer
                .copy_text(tables.text(constant.text).as_bytes())?;
            values.buffer.push_text(label, text);
        }
        Some(ConstantKind::Reference) => values.buffer.push_reference(label),
        Some(ConstantKind::Uint) => values.buffer.push_extended(label, Extended::Uint(bits))?,
        Some(ConstantKind::Bytes) => {
            let bytes: Vec<u8> = tables
                .text(constant.text)
                .chars()
                .map(|character| u32::from(character) as u8)
                .collect();
            let piece = values.buffer.copy_text(&bytes)?;
            values.buffer.push_extended(label, Extended::Bytes(piece))?;
        }
        Some(ConstantKind::Type) => {
            let name = values
                .buffer
                .copy_text(tables.text(constant.text).as_bytes())?;
            values.buffer.push_extended(label, Extended::Type(name))?;
        }
        Some(kind @ (ConstantKind::List | ConstantKind::Map)) => {
            values.buffer.begin(label);
            for child in children.start.get()..children.start.get() + children.length.get() {
                let key = tables
                    .constants
                    .get(child as usize)
                    .map_or("", |child| tables.text(child.key));
                let label = match kind {
                    ConstantKind::Map => values.label(key)?,
                    _ => Label::ITEM,
                };
                push_constant(child, label, tables, values)?;
            }
            match kind {
                ConstantKind::Map => values.buffer.finish_map(values.texts),
                _ => values.buffer.finish_list(),
            }
        }
    }
    Ok(())
}
