//! The operations of `foreach`: its elements, counters, and the values that its context
//! keeps (docs/spec/conditions.md §8.3).

use kpvm_format::instruction::RegisterId;
use kpvm_format::instruction::immediate::ForeachDepth;
use serde_json::Value;
use smallvec::SmallVec;

use super::failure::Flow;
use super::{Ending, Machine, Setting, World, is_map};
use crate::document::{Kind, NodeId, Numbers, View};
use crate::function::FunctionError;
use crate::text;

/// The results of a `foreach`'s elements so far.
#[derive(Debug, Default)]
pub(super) struct ForeachState {
    passed: u32,
    list_error: Option<String>,
}

/// Steps that copying one value costs.
const STEPS_PER_COPY: u64 = 8;

impl Machine {
    pub(super) fn count_pass(&mut self) {
        self.foreach.passed += 1;
    }

    pub(super) fn keep_list_error(&mut self) -> Flow {
        self.show_failure();
        self.foreach.list_error = Some(self.failure_text.clone());
        Flow::Next
    }

    pub(super) fn end_foreach(&mut self, depth: ForeachDepth) -> Ending {
        if self.foreach.passed > 0 {
            return Ending::ForeachPassed;
        }
        match self.foreach.list_error.take() {
            None => Ending::Nothing,
            Some(error) => {
                self.fail_with(&format!("failed to evaluate list: {error}"));
                Ending::Failed { depth }
            }
        }
    }

    pub(super) fn enter_nested(&mut self) -> Flow {
        let outer = std::mem::take(&mut self.foreach);
        self.outer_foreach.push(outer);
        Flow::Next
    }

    pub(super) fn leave_nested(&mut self, depth: ForeachDepth) -> Flow {
        let ending = self.end_foreach(depth);
        self.foreach = self.outer_foreach.pop().unwrap_or_default();
        match ending {
            Ending::ForeachPassed => Flow::Next,
            Ending::Nothing => Flow::Jump,
            other => Flow::End(other),
        }
    }

    pub(super) fn require_scope(
        &mut self,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let view = setting.view(world);
        if is_map(&view, value) {
            return Flow::Next;
        }
        let found = text::go_type(&view, value);
        self.fail(&format!(
            "failed to process foreach: cannot use elementScope=true foreach rules for elements that are not maps, expected type=map got type={found}"
        ))
    }

    pub(super) fn to_elements(
        &mut self,
        register: RegisterId,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        match setting.view(world).kind(value) {
            Some(Kind::List) => self.set(register, value),
            None | Some(Kind::Null) => {
                let outcome = self.with_values(setting, world, |values| values.new_list(&[]));
                self.set_or_end(register, outcome)
            }
            Some(_) => {
                let outcome = self.with_values(setting, world, |values| values.new_list(&[value]));
                self.set_or_end(register, outcome)
            }
        }
    }

    pub(super) fn to_element(
        &mut self,
        register: RegisterId,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let view = setting.view(world);
        if let Some(number) = view.float(value).filter(|number| !number.is_finite()) {
            let mut text = String::from("failed to process foreach: unsupported value: ");
            kpvm_semantics::number::format_v_float(number, &mut text);
            return self.fail(&text);
        }
        self.to_float(register, value, setting, world)
    }

    pub(super) fn merge_stored(
        &mut self,
        register: RegisterId,
        [existing, added]: [NodeId; 2],
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let view = setting.view(world);
        if [existing, added].map(|value| view.kind(value)) != [Some(Kind::Map); 2] {
            return self.set(register, added);
        }
        for value in [existing, added] {
            if stored_form(&view, value, &mut self.fuel).is_none() {
                return Flow::End(Ending::OutOfFuel);
            }
        }
        let mut merged = view.to_value(existing);
        merge(&mut merged, view.to_value(added));
        let symbols = setting.tables.symbols;
        let outcome = world
            .buffer
            .push_value(&merged, &symbols, Numbers::Float)
            .map_err(FunctionError::from);
        self.set_or_end(register, outcome)
    }

    /// Sets a register to the value, as a float64 if it is a number.
    pub(super) fn to_float(
        &mut self,
        register: RegisterId,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        match setting.view(world).int(value) {
            None => self.set(register, value),
            Some(number) => {
                let outcome =
                    self.with_values(setting, world, |values| values.new_float(number as f64));
                self.set_or_end(register, outcome)
            }
        }
    }

    pub(super) fn to_floats(
        &mut self,
        register: RegisterId,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let view = setting.view(world);
        match stored_form(&view, value, &mut self.fuel) {
            None => return Flow::End(Ending::OutOfFuel),
            Some(Stored::AsItIs) => return self.set(register, value),
            Some(Stored::NotFinite(number)) => {
                let mut text = String::from("json: unsupported value: ");
                kpvm_semantics::number::format_v_float(number, &mut text);
                return self.fail(&text);
            }
            Some(Stored::Copied) => {}
        }
        let copy = view.to_value(value);
        let symbols = setting.tables.symbols;
        let outcome = world
            .buffer
            .push_value(&copy, &symbols, Numbers::Float)
            .map_err(FunctionError::from);
        self.set_or_end(register, outcome)
    }
}

/// How a value must be changed before the context keeps it.
enum Stored {
    AsItIs,
    /// It contains integers, or views of members.
    Copied,
    /// JSON has no such number.
    NotFinite(f64),
}

/// `None` if there is not enough fuel to copy the value; values may share members, so that
/// a small one can be large when written out.
fn stored_form(view: &View<'_>, value: NodeId, fuel: &mut u64) -> Option<Stored> {
    let mut stored = Stored::AsItIs;
    let mut open: SmallVec<[NodeId; 32]> = SmallVec::new();
    open.push(value);
    while let Some(value) = open.pop() {
        *fuel = fuel.checked_sub(STEPS_PER_COPY)?;
        match view.kind(value) {
            Some(Kind::Int) => stored = Stored::Copied,
            Some(Kind::Float) => {
                let number = view.float(value).filter(|number| !number.is_finite());
                if let Some(number) = number {
                    return Some(Stored::NotFinite(number));
                }
            }
            Some(Kind::List | Kind::Map) => {
                if view.is_entries(value) {
                    stored = Stored::Copied;
                }
                open.extend(view.children(value));
            }
            _ => {}
        }
    }
    Some(stored)
}

/// Maps are merged, anything else is replaced. The recursion is as deep as values of the
/// buffer, whose depth is bounded.
fn merge(into: &mut Value, added: Value) {
    match (into, added) {
        (Value::Object(into), Value::Object(added)) => {
            for (key, value) in added {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, added) => *into = added,
    }
}
