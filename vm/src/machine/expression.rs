//! The operations of expressions: keys and items, comparisons, lists, maps and calls
//! (docs/spec/jmespath.md §4 and §5).

use kpvm_format::condition::ConditionOperator;
use kpvm_format::function::Function;
use kpvm_format::instruction::immediate::MessageSeparator;
use kpvm_format::instruction::immediate::{ArithmeticOperator, Comparison, SignedIndex};
use kpvm_format::instruction::{
    BlockId, ListSlot, LoopSlot, RegisterId, SliceId, TextId, TextListId,
};
use kpvm_format::symbol::SymbolId;

use super::failure::{Flow, Outcome};
use super::{Ending, Machine, NULL, Scene, Setting, World, boolean, is_list};
use crate::condition;
use crate::document::{Kind, Label, NodeId, View};
use crate::function::{self, FunctionError, Values};
use crate::jmespath as evaluator;
use crate::text;
use kpvm_syntax::jmespath;

/// A message of a condition, recorded if the condition had the requested result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotedMessage {
    /// Its text.
    pub(crate) text: TextId,
    /// The block that computes it, if any.
    pub(crate) block: Option<BlockId>,
    /// What separates it from others.
    pub(crate) separator: MessageSeparator,
}

impl Machine {
    pub(super) fn get_key(
        &mut self,
        register: RegisterId,
        source: NodeId,
        key: SymbolId,
        scene: &Scene<'_>,
    ) -> Flow {
        if !is_object(&scene.view, source) {
            return self.set(register, NULL);
        }
        match scene.view.get(source, key) {
            NodeId::MISSING => self.missing_key(register, scene.tables.symbols.text(key)),
            found => self.set(register, found),
        }
    }

    pub(super) fn get_key_of(
        &mut self,
        register: RegisterId,
        source: NodeId,
        key: NodeId,
        scene: &Scene<'_>,
    ) -> Flow {
        let view = &scene.view;
        if !is_object(view, source) {
            return self.set(register, NULL);
        }
        match view.get_text(source, view.text(key)) {
            NodeId::MISSING => self.missing_key(register, view.str(key)),
            found => self.set(register, found),
        }
    }

    pub(super) fn get_item(
        &mut self,
        register: RegisterId,
        list: NodeId,
        index: SignedIndex,
        view: &View<'_>,
    ) -> Flow {
        let item = item_at(view, list, index.0);
        self.set(register, item)
    }

    pub(super) fn not(&mut self, register: RegisterId, value: NodeId, view: &View<'_>) -> Flow {
        self.set(register, boolean(!is_truthy(view, value)))
    }

    pub(super) fn get_slice(
        &mut self,
        register: RegisterId,
        list: NodeId,
        texts: bool,
        slice: SliceId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(slice) = setting.tables.slices.get(slice.index()) else {
            return Flow::Jump;
        };
        let view = setting.view(world);
        let is_text = texts && view.kind(list) == Some(Kind::String);
        if view.kind(list) != Some(Kind::List) && !is_text {
            return self.set(register, NULL);
        }
        let part = |bit: u8, value: i64| (slice.parts & bit != 0).then_some(value);
        let slice = jmespath::Slice {
            start: part(1, slice.start.get()),
            stop: part(2, slice.stop.get()),
            step: part(4, slice.step.get()),
        };
        if is_text {
            let outcome =
                self.with_values(setting, world, |values| slice_text(slice, list, values));
            return self.set_or_end(register, outcome);
        }
        let items = view.children(list);
        let outcome = match evaluator::slice_places(slice, items.len()) {
            Err(error) => Err(FunctionError::Failed(error.to_string())),
            Ok(places) => {
                let items: Vec<NodeId> = places.map(|place| items.at(place)).collect();
                self.with_values(setting, world, |values| values.new_list(&items))
            }
        };
        self.set_or_jump(register, outcome)
    }

    pub(super) fn map_values(
        &mut self,
        register: RegisterId,
        map: NodeId,
        nulls: bool,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let outcome = self.with_values(setting, world, |values| {
            let members = values.sorted_members(map)?;
            let mut items = vec![NULL; if nulls { members.len() } else { 0 }];
            items.extend(members);
            values.new_list(&items)
        });
        self.set_or_end(register, outcome)
    }

    pub(super) fn compare(
        &mut self,
        register: RegisterId,
        comparison: Comparison,
        operands: [NodeId; 2],
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let outcome = self.with_values(setting, world, |values| {
            compare(comparison, operands, values)
        });
        self.set_or_end(register, outcome)
    }

    pub(super) fn arithmetic(
        &mut self,
        register: RegisterId,
        operator: ArithmeticOperator,
        operands: [NodeId; 2],
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let outcome = self.with_values(setting, world, |values| {
            arithmetic(operator, operands, values)
        });
        self.set_or_end(register, outcome)
    }

    /// The list accumulator of a slot.
    pub(super) fn list(&mut self, slot: ListSlot) -> &mut Vec<NodeId> {
        let slot = slot.index();
        if self.frame.lists.len() <= slot {
            self.frame.lists.resize_with(slot + 1, Vec::new);
        }
        &mut self.frame.lists[slot]
    }

    pub(super) fn extend(
        &mut self,
        list: ListSlot,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let view = setting.view(world);
        if view.kind(value) != Some(Kind::List) {
            self.list(list).push(value);
            return Flow::Next;
        }
        let items = view.children(value);
        let cost = items.len() as u64 / 8;
        if self.fuel < cost || self.list(list).len() + items.len() > setting.limits.list_items {
            return Flow::End(Ending::OutOfFuel);
        }
        self.fuel -= cost;
        self.list(list).extend(items);
        Flow::Next
    }

    pub(super) fn end_list(
        &mut self,
        register: RegisterId,
        list: ListSlot,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let items = std::mem::take(self.list(list));
        let outcome = self.with_values(setting, world, |values| values.new_list(&items));
        *self.list(list) = items;
        self.set_or_end(register, outcome)
    }

    /// A map from a list accumulator: values for given keys, or alternating keys and
    /// values.
    pub(super) fn end_map(
        &mut self,
        register: RegisterId,
        list: ListSlot,
        keys: Option<TextListId>,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let items = std::mem::take(self.list(list));
        let tables = setting.tables;
        let outcome = self.with_values(setting, world, |values| {
            let mut members = Vec::with_capacity(items.len());
            match keys {
                Some(keys) => {
                    for (key, &value) in tables.text_list(keys.0).zip(&items) {
                        members.push((values.label(key)?, value));
                    }
                }
                None => {
                    for pair in items.chunks_exact(2) {
                        let key = values.view().str(pair[0]).to_owned();
                        members.push((values.label(&key)?, pair[1]));
                    }
                }
            }
            values.new_map(&members)
        });
        *self.list(list) = items;
        self.set_or_end(register, outcome)
    }

    pub(super) fn call(
        &mut self,
        register: RegisterId,
        list: ListSlot,
        function: Function,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let arguments = std::mem::take(self.list(list));
        let outcome = self.with_values(setting, world, |values| {
            // The list argument of a helper is checked here, since helpers have no type
            // signature.
            match arguments.first() {
                Some(&list) if function.is_helper() => require_list(list, values)?,
                _ => {}
            }
            function::call(function, &arguments, values)
        });
        *self.list(list) = arguments;
        self.set_or_jump(register, outcome)
    }

    pub(super) fn load_loop_index(
        &mut self,
        register: RegisterId,
        slot: LoopSlot,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let (index, item) = (self.loop_index(slot), self.loop_item(slot));
        let outcome = self.with_values(setting, world, |values| {
            match values.view().key_of(item).map(str::to_owned) {
                Some(key) => values.new_text(&key),
                None => values.new_int(i64::from(index)),
            }
        });
        self.set_or_end(register, outcome)
    }

    /// The list itself, or a map's entries in the order of its keys.
    pub(super) fn to_iterable(
        &mut self,
        register: RegisterId,
        value: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let view = setting.view(world);
        if is_object(&view, value) {
            let outcome = self.with_values(setting, world, |values| {
                let members = values.sorted_members(value)?;
                let labelled: Vec<(Label, NodeId)> = members
                    .into_iter()
                    .map(|member| (values.buffer.label_of(member), member))
                    .collect();
                values.new_map(&labelled)
            });
            return self.set_or_end(register, outcome);
        }
        if !is_list(&view, value) {
            return Flow::Jump;
        }
        self.set(register, value)
    }

    pub(super) fn test_condition(
        &mut self,
        operator: ConditionOperator,
        [key, value]: [NodeId; 2],
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        match condition::holds(operator, key, value, &setting.view(world), &mut self.fuel) {
            Ok(holds) => Flow::jump_if(!holds),
            Err(error) => self.refuse(FunctionError::Refused(error.to_string())),
        }
    }

    pub(super) fn note_message(
        &mut self,
        separator: MessageSeparator,
        text: TextId,
        block: Option<BlockId>,
    ) {
        self.messages.push(NotedMessage {
            text,
            block,
            separator,
        });
    }
}

/// docs/spec/jmespath.md §4: numbers are always truthy.
pub(super) fn is_truthy(view: &View<'_>, value: NodeId) -> bool {
    match view.kind(value) {
        None | Some(Kind::Null | Kind::False) => false,
        Some(Kind::True | Kind::Int | Kind::Float) => true,
        Some(Kind::String) => !view.text(value).is_empty(),
        Some(Kind::List | Kind::Map) => !view.is_empty(value) || view.is_reference(value),
    }
}

/// Whether the value has keys to look up: a reference is a map only internally.
pub(super) fn is_object(view: &View<'_>, value: NodeId) -> bool {
    view.kind(value) == Some(Kind::Map) && !view.is_reference(value)
}

fn item_at(view: &View<'_>, list: NodeId, index: i32) -> NodeId {
    if view.kind(list) != Some(Kind::List) {
        return NULL;
    }
    let items = view.children(list);
    let place = if index < 0 {
        items.len() as i64 + i64::from(index)
    } else {
        i64::from(index)
    };
    match usize::try_from(place).map(|place| items.at(place)) {
        Ok(item) if !item.is_missing() => item,
        _ => NULL,
    }
}

fn compare(comparison: Comparison, [left, right]: [NodeId; 2], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let holds = match (comparison, view.float(left), view.float(right)) {
        (Comparison::Equal, _, _) => values.equal(left, right)?,
        (Comparison::NotEqual, _, _) => !values.equal(left, right)?,
        (_, None, _) | (_, _, None) => return Ok(NULL),
        (Comparison::Less, Some(left), Some(right)) => left < right,
        (Comparison::LessOrEqual, Some(left), Some(right)) => left <= right,
        (Comparison::Greater, Some(left), Some(right)) => left > right,
        (Comparison::GreaterOrEqual, Some(left), Some(right)) => left >= right,
    };
    Ok(boolean(holds))
}

/// The characters of a text selected by a slice; null if its step is zero.
fn slice_text(slice: jmespath::Slice, text: NodeId, values: &mut Values<'_>) -> Outcome {
    let characters: Vec<char> = values.view().str(text).chars().collect();
    values.charge(characters.len() as u64 / 8)?;
    let Ok(places) = evaluator::slice_places(slice, characters.len()) else {
        return Ok(NULL);
    };
    let part: String = places.filter_map(|place| characters.get(place)).collect();
    values.new_text(&part)
}

/// docs/spec/assert.md §8: on floats only.
fn arithmetic(
    operator: ArithmeticOperator,
    [left, right]: [NodeId; 2],
    values: &mut Values<'_>,
) -> Outcome {
    let view = values.view();
    let (Some(left), Some(right)) = (view.float(left), view.float(right)) else {
        return Ok(NULL);
    };
    values.new_float(match operator {
        ArithmeticOperator::Add => left + right,
        ArithmeticOperator::Subtract => left - right,
        ArithmeticOperator::Multiply => left * right,
        ArithmeticOperator::Divide => left / right,
        ArithmeticOperator::DivideWhole => (left / right).floor(),
        ArithmeticOperator::Remainder => left % right,
    })
}

/// Refuses anything but a list, with the text of Kyverno's type check.
fn require_list(value: NodeId, values: &mut Values<'_>) -> Result<(), FunctionError> {
    let view = values.view();
    if view.kind(value) == Some(Kind::List) {
        return Ok(());
    }
    let mut shown = String::new();
    let _cut = text::append_go_value(&view, value, &mut shown, values.limits.message_bytes);
    Err(FunctionError::Failed(format!(
        "Invalid type for: {shown}, expected: []jmespath.JpType{{\"array\"}}"
    )))
}
