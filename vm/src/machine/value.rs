//! The operations that compute values: expressions, the context with its entries,
//! texts, conditions, foreach (docs/spec/conditions.md, docs/spec/jmespath.md).
//!
//! Results are new nodes of the evaluation's buffer; nothing here looks at a pattern.

use kpvm_format::Tables;
use kpvm_format::condition::ConditionOperator;
use kpvm_format::function::Function;
use kpvm_format::instruction::{Instruction, Op};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, ConstantKind, NONE};
use smallvec::SmallVec;

use super::shape::{Decoder, Fit, Renaming};
use super::{Ending, FALSE, Machine, NULL, Scene, Setting, Shown, TRUE, World};
use crate::condition;
use crate::document::{Extended, Kind, Label, NodeId, Numbers, View};
use crate::engine::observer::Event;
use crate::function::{self, FunctionError, Values};
use crate::host::ExternalKind;
use crate::jmespath as evaluator;
use crate::text;
use kpvm_semantics::wildcard;
use kpvm_syntax::jmespath;
use serde_json::Value;

/// Where to go on.
pub(super) enum Flow {
    /// Behind the instruction.
    Next,
    /// At its target.
    Jump,
    /// Nowhere: the block ends.
    End(Ending),
}

/// Why the last computation failed; the text is kept in [`Machine::failure_text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Failure {
    /// The text is a key so far: `Unknown key "…" in path` once it is shown.
    is_key: bool,
    /// It began as an unknown key.
    unknown_key: bool,
}

/// State of a context entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Of a foreach block that binds no element now.
    Inactive,
    /// To run when it is needed.
    Pending,
    /// Has run; its name means what came of it.
    Done,
    /// Has run and failed: to those behind it the name is unknown, until it may run again
    /// (with the next element of a foreach, or behind its last one).
    Failed,
}

type Outcome = Result<NodeId, FunctionError>;

impl Machine {
    /// Runs one of the operations that only look at values: none is added, so that the
    /// caller's view of them stays right. Nothing for any other operation.
    #[inline]
    pub(super) fn look(
        &mut self,
        op: Op,
        instruction: &Instruction,
        scene: &Scene<'_>,
    ) -> Option<Flow> {
        let (a, b, e) = (instruction.a, instruction.b, instruction.e);
        let (c, view) = (instruction.c.get(), &scene.view);
        Some(match op {
            Op::LoadPayload if b == 1 => self.set(a, scene.request.object?),
            Op::GetKey => {
                let source = self.get(b);
                if !is_object(view, source) {
                    return Some(self.set(a, NULL));
                }
                match view.get(source, SymbolId(c)) {
                    NodeId::MISSING => self.missing_key(a, scene.tables.symbols.text(SymbolId(c))),
                    found => self.set(a, found),
                }
            }
            Op::GetKeyOf => {
                let (source, key) = (self.get(b), self.get(e));
                if !is_object(view, source) {
                    return Some(self.set(a, NULL));
                }
                match view.get_text(source, view.text(key)) {
                    NodeId::MISSING => self.missing_key(a, view.str(key)),
                    found => self.set(a, found),
                }
            }
            Op::GetItem => {
                let item = item_at(view, self.get(b), c as i32);
                self.set(a, item)
            }
            Op::Not => {
                let truth = is_truthy(view, self.get(b));
                self.set(a, boolean(!truth))
            }
            Op::JumpIfTrue => self.jump_if(is_truthy(view, self.get(a))),
            Op::JumpIfFalse => self.jump_if(!is_truthy(view, self.get(a))),
            Op::JumpIfNull => {
                self.jump_if(matches!(view.kind(self.get(a)), None | Some(Kind::Null)))
            }
            Op::JumpIfNotList => self.jump_if(view.kind(self.get(a)) != Some(Kind::List)),
            Op::JumpIfNotMap => self.jump_if(!is_object(view, self.get(a))),
            Op::JumpIfShorter => self.jump_if(view.len(self.get(a)) < c as usize),
            Op::JumpUnlessSet => self.jump_if(self.get(a).is_missing()),
            Op::CatchMissing => {
                if self.failure.is_key {
                    return Some(self.set(a, NULL));
                }
                Flow::Jump
            }
            Op::CatchAny => self.set(a, NULL),
            Op::ListBegin => {
                self.list(a).clear();
                Flow::Next
            }
            Op::ListPush => {
                let value = self.get(b);
                self.list(a).push(value);
                Flow::Next
            }
            Op::ListPushSome => {
                let value = self.get(b);
                if !matches!(view.kind(value), None | Some(Kind::Null)) {
                    self.list(a).push(value);
                }
                Flow::Next
            }
            Op::ClearMessages => {
                self.messages.clear();
                Flow::Next
            }
            Op::JumpIfText => {
                let value = self.get(a);
                let text = if e == 0 {
                    view.text(value)
                } else {
                    view.key_bytes(value)
                };
                let matches = |pattern: &str| wildcard::matches(pattern, text);
                self.jump_if(scene.tables.text_list(c).any(matches))
            }
            Op::Note => {
                if self.fuel < STEPS_PER_NOTE {
                    return Some(Flow::End(Ending::OutOfFuel));
                }
                self.fuel -= STEPS_PER_NOTE;
                self.note(instruction);
                Flow::Next
            }
            Op::LoadChecked => self.set(a, self.findings.subject()),
            Op::JumpUnlessFound => {
                let exclusion = scene.tables.exclusions.get(c as usize)?;
                self.jump_if(!self.findings.concern(exclusion.name, scene.tables))
            }
            _ => return self.cel_look(op, instruction, scene),
        })
    }

    /// Runs one operation; those of [`Machine::look`] have been looked for already.
    pub(super) fn compute(
        &mut self,
        op: Op,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let (a, b, e) = (instruction.a, instruction.b, instruction.e);
        let (c, d) = (instruction.c.get(), instruction.d.get());
        let tables = setting.tables;
        match op {
            Op::LoadConstant => {
                let outcome = self.constant(c, setting, world);
                self.set_or_end(a, outcome)
            }
            Op::LoadVariable => {
                let slot = tables
                    .slots
                    .get(c as usize)
                    .map_or(NONE, |slot| slot.name.get());
                match self.variable(c) {
                    Some(value) => self.set(a, value),
                    None => self.load_base(a, SymbolId(slot), setting, world),
                }
            }
            Op::LoadBase => self.load_base(a, SymbolId(c), setting, world),
            Op::LoadRequestObject => self.load_request_object(a, setting, world),
            Op::LoadImages => self.load_images(a, setting, world),
            Op::LoadContext => {
                let outcome = self.whole_context(setting, world);
                self.set_or_end(a, outcome)
            }
            Op::StoreVariable => {
                let value = self.get(a);
                self.set_variable(c, value);
                Flow::Next
            }
            Op::SaveVariable => {
                let value = self.variable(c).unwrap_or(NodeId::MISSING);
                self.set(a, value)
            }
            Op::EnsureEntry => self.ensure_entry(c, b, setting, world),
            Op::RefreshEntry => self.refresh_entry(c, setting, world),
            Op::RetryEntries => self.retry_entries(setting),
            Op::ResetEntry => self.set_entry(c, EntryState::Pending),
            Op::DropEntry => self.set_entry(c, EntryState::Inactive),
            Op::GetSlice => self.slice(instruction, setting, world),
            Op::MapValues => {
                let (map, nulls) = (self.get(b), c != 0);
                let outcome = self.with_values(setting, world, |values| {
                    let members = values.sorted_members(map)?;
                    let mut items = vec![NULL; if nulls { members.len() } else { 0 }];
                    items.extend(members);
                    values.new_list(&items)
                });
                self.set_or_end(a, outcome)
            }
            Op::Compare => {
                let (left, right) = (self.get(b), self.get(e));
                let outcome =
                    self.with_values(setting, world, |values| compare(c, left, right, values));
                self.set_or_end(a, outcome)
            }
            Op::JumpUnlessDelete => self.jump_if(!setting.is_delete),
            Op::JumpUnlessProvided => {
                let kind = ExternalKind::ALL.get(usize::from(e));
                self.jump_if(!kind.is_some_and(|&kind| world.host.provides(kind)))
            }
            Op::JumpUnlessPlain => {
                let plain = is_plain(setting.view(world).str(self.get(a)), b);
                self.jump_if(!plain)
            }
            Op::ListExtend => self.extend(instruction, setting, world),
            Op::ListEnd => {
                let items = std::mem::take(self.list(b));
                let outcome = self.with_values(setting, world, |values| values.new_list(&items));
                *self.list(b) = items;
                self.set_or_end(a, outcome)
            }
            Op::MapEnd => self.map_end(a, b, Some(c), setting, world),
            Op::MapEndPairs => self.map_end(a, b, None, setting, world),
            Op::Call => self.call(instruction, setting, world),
            Op::LoopIndex => {
                let (index, item) = (self.loop_index(b), self.loop_item(b));
                let outcome = self.with_values(setting, world, |values| {
                    match values.view().key_of(item).map(str::to_owned) {
                        Some(key) => values.new_text(&key),
                        None => values.new_int(i64::from(index)),
                    }
                });
                self.set_or_end(a, outcome)
            }
            Op::LoadPayload => {
                let outcome = self.payload(b, setting, world);
                self.set_or_end(a, outcome)
            }
            Op::Arithmetic => {
                let (left, right) = (self.get(b), self.get(e));
                let outcome =
                    self.with_values(setting, world, |values| arithmetic(c, left, right, values));
                self.set_or_end(a, outcome)
            }
            Op::ToIterable => {
                let value = self.get(b);
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
                    return self.set_or_end(a, outcome);
                }
                if view.kind(value) != Some(Kind::List) {
                    return Flow::Jump;
                }
                self.set(a, value)
            }
            Op::FailText => {
                self.fail_with(text_of(tables, c));
                Flow::Jump
            }
            Op::WrapError => {
                self.show_failure();
                let prefix = text_of(tables, c);
                if b != 0 && setting.is_delete {
                    let prefix = prefix.replace("request.object", "request.oldObject");
                    self.failure_text.insert_str(0, &prefix);
                } else {
                    self.failure_text.insert_str(0, prefix);
                }
                Flow::Jump
            }
            Op::TextBegin => {
                self.accumulator(a).clear();
                Flow::Next
            }
            Op::TextLiteral => {
                self.accumulator(a).push_str(text_of(tables, c));
                Flow::Next
            }
            Op::TextValue => self.text_value(a, b, setting, world),
            Op::TextEnd => {
                let text = std::mem::take(self.accumulator(b));
                let outcome = self.with_values(setting, world, |values| values.new_text(&text));
                *self.accumulator(b) = text;
                self.set_or_end(a, outcome)
            }
            Op::JumpIfTextEmpty => {
                let empty = self.accumulator(a).is_empty();
                self.jump_if(empty)
            }
            Op::EvaluateText => {
                let source = self.get(b);
                let path = text_of(tables, c).to_owned();
                self.evaluate_text(a, source, Some(&path), setting, world)
            }
            Op::EvaluateQuery => {
                let source = self.get(b);
                self.evaluate_text(a, source, None, setting, world)
            }
            Op::EvaluateOver => self.evaluate_over(instruction, setting, world),
            Op::WrapPath => {
                self.show_failure();
                let path = setting.view(world).str(self.get(a));
                let prefix = format!("failed to apply jmespath {path} to variable <nil>: ");
                self.failure_text.insert_str(0, &prefix);
                Flow::Jump
            }
            Op::RequireAlternatives => {
                let kind = match setting.view(world).kind(self.get(a)) {
                    Some(Kind::List) => return Flow::Next,
                    Some(Kind::Map) => "object",
                    Some(Kind::String) => "string",
                    Some(Kind::False | Kind::True) => "bool",
                    None | Some(Kind::Null | Kind::Int | Kind::Float) => "number",
                };
                self.fail_with(&format!(
                    "failed to deserialize anyPattern, expected type array: json: cannot unmarshal {kind} into Go value of type []interface {{}}"
                ));
                Flow::Jump
            }
            Op::RequireKeyText => {
                let value = self.get(b);
                if setting.view(world).kind(value) == Some(Kind::String) {
                    return self.set(a, value);
                }
                self.fail_with(text_of(tables, c));
                if e != 0 {
                    let found = text::go_type(&setting.view(world), value);
                    self.failure_text.push_str(found);
                }
                Flow::Jump
            }
            Op::TestCondition => self.test_condition(instruction, setting, world),
            Op::NoteMessage => {
                self.messages.push(NotedMessage {
                    text: c,
                    block: d,
                    separator: b,
                });
                Flow::Next
            }
            Op::SelectSubject => {
                let (element, outer) = (self.get(b), self.get(e));
                let is_map = setting.view(world).kind(element) == Some(Kind::Map);
                self.set(a, if is_map { element } else { outer })
            }
            Op::JumpIfNoSubject => {
                self.jump_if(setting.is_delete && self.get(a) == setting.subject.root)
            }
            Op::RequireScope => {
                let view = setting.view(world);
                let value = self.get(a);
                if view.kind(value) == Some(Kind::Map) {
                    return Flow::Next;
                }
                let found = text::go_type(&view, value);
                self.fail_with(&format!(
                    "failed to process foreach: cannot use elementScope=true foreach rules for elements that are not maps, expected type=map got type={found}"
                ));
                Flow::Jump
            }
            Op::CountPass => {
                self.foreach.passed += 1;
                Flow::Next
            }
            Op::JumpIfUnknownKey => self.jump_if(self.failure.unknown_key),
            Op::KeepListError => {
                self.show_failure();
                self.foreach.list_error = Some(self.failure_text.clone());
                Flow::Next
            }
            Op::ReturnForeach => Flow::End(self.end_foreach(0)),
            Op::EnterNested => {
                let outer = std::mem::take(&mut self.foreach);
                self.outer_foreach.push(outer);
                Flow::Next
            }
            Op::LeaveNested => {
                let ending = self.end_foreach(b);
                self.foreach = self.outer_foreach.pop().unwrap_or_default();
                match ending {
                    Ending::ForeachPassed => Flow::Next,
                    Ending::Nothing => Flow::Jump,
                    other => Flow::End(other),
                }
            }
            Op::ToElements => self.make_elements(a, b, setting, world),
            Op::ToElement => {
                let value = self.get(b);
                let view = setting.view(world);
                if let Some(number) = view.float(value).filter(|number| !number.is_finite()) {
                    let mut text = String::from("failed to process foreach: unsupported value: ");
                    kpvm_semantics::number::format_v_float(number, &mut text);
                    self.fail_with(&text);
                    return Flow::Jump;
                }
                self.set_float(a, value, setting, world)
            }
            Op::ToFloat => self.set_float(a, self.get(b), setting, world),
            Op::ToFloats => self.make_stored(a, b, setting, world),
            Op::MergeStored => self.merge_stored(instruction, setting, world),
            Op::Fetch => self.fetch(instruction, setting, world),
            Op::Conform => self.conform(instruction, setting, world),
            Op::RunChecks => self.run_checks(instruction, setting, world),
            Op::Exempt => self.exempt(instruction, setting, world),
            Op::ReturnTrue => Flow::End(Ending::True),
            Op::ReturnFalse => Flow::End(Ending::False),
            Op::ReturnValue => Flow::End(Ending::Value(self.get(a))),
            Op::ReturnFailed => {
                self.show_failure();
                Flow::End(Ending::Failed { depth: b })
            }
            Op::ReturnNothing => Flow::End(Ending::Nothing),
            // The operations of patterns and of matching are not handed over.
            _ => self.cel_compute(op, instruction, setting, world),
        }
    }

    pub(super) fn get(&self, register: u8) -> NodeId {
        self.frame.registers[usize::from(register)]
    }

    pub(super) fn set(&mut self, register: u8, value: NodeId) -> Flow {
        self.frame.registers[usize::from(register)] = value;
        Flow::Next
    }

    fn jump_if(&self, jump: bool) -> Flow {
        if jump { Flow::Jump } else { Flow::Next }
    }

    /// Sets the result; a failure, which is a crossed limit here, ends the block.
    fn set_or_end(&mut self, register: u8, outcome: Outcome) -> Flow {
        match outcome {
            Ok(value) => self.set(register, value),
            Err(error) => self.refuse(error),
        }
    }

    /// Sets the result, or goes to the target with the failure.
    fn set_or_jump(&mut self, register: u8, outcome: Outcome) -> Flow {
        match outcome {
            Ok(value) => self.set(register, value),
            Err(FunctionError::Failed(text)) => {
                self.fail_with(&text);
                Flow::Jump
            }
            Err(error @ FunctionError::Refused(_)) => self.refuse(error),
        }
    }

    /// A crossed limit: no place turns it into a value, the rule is an error.
    pub(super) fn refuse(&mut self, error: FunctionError) -> Flow {
        self.fail_with(&error.to_string());
        Flow::End(Ending::Failed { depth: 0 })
    }

    pub(super) fn fail_with(&mut self, text: &str) {
        self.failure = Failure::default();
        self.failure_text.clear();
        self.failure_text.push_str(text);
    }

    fn missing_key(&mut self, register: u8, key: &str) -> Flow {
        self.set(register, NULL);
        self.fail_with(key);
        self.failure = Failure {
            is_key: true,
            unknown_key: true,
        };
        Flow::Jump
    }

    /// Turns a key into the text of the error.
    pub(super) fn show_failure(&mut self) {
        if self.failure.is_key {
            self.failure.is_key = false;
            self.failure_text.insert_str(0, "Unknown key \"");
            self.failure_text.push_str("\" in path");
        }
    }

    pub(super) fn list(&mut self, slot: u8) -> &mut Vec<NodeId> {
        let slot = usize::from(slot);
        if self.frame.lists.len() <= slot {
            self.frame.lists.resize_with(slot + 1, Vec::new);
        }
        &mut self.frame.lists[slot]
    }

    fn accumulator(&mut self, slot: u8) -> &mut String {
        let slot = usize::from(slot);
        if self.frame.texts.len() <= slot {
            self.frame.texts.resize_with(slot + 1, String::new);
        }
        &mut self.frame.texts[slot]
    }

    /// Runs something that needs the values and their surroundings.
    pub(super) fn with_values<T>(
        &mut self,
        setting: Setting<'_>,
        world: &mut World<'_>,
        run: impl FnOnce(&mut Values<'_>) -> T,
    ) -> T {
        let mut values = Values {
            buffer: world.buffer,
            texts: setting.texts,
            symbols: setting.tables.symbols,
            host: world.host,
            limits: *setting.limits,
            fuel: &mut self.fuel,
            regexes: &mut self.regexes,
        };
        run(&mut values)
    }

    /// A constant that has been made in this evaluation, else [`NodeId::MISSING`].
    #[inline]
    pub(super) fn known_constant(&self, number: u32) -> NodeId {
        match self.constants.get(number as usize) {
            Some(&(stamp, node)) if stamp == self.evaluation => node,
            _ => NodeId::MISSING,
        }
    }

    /// Makes a constant, once for each evaluation.
    fn constant(&mut self, number: u32, setting: Setting<'_>, world: &mut World<'_>) -> Outcome {
        let tables = setting.tables;
        if let Some(constant) = tables.constants.get(number as usize) {
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
            push_constant(number, Label::ITEM, tables, values)?;
            Ok::<_, FunctionError>(values.buffer.take()?)
        })?;
        Ok(self.keep_constant(number, node))
    }

    fn keep_constant(&mut self, number: u32, node: NodeId) -> NodeId {
        if let Some(slot) = self.constants.get_mut(number as usize) {
            *slot = (self.evaluation, node);
        }
        node
    }

    pub(super) fn variable(&self, slot: u32) -> Option<NodeId> {
        let &(stamp, value) = self.variables.get(slot as usize)?;
        (stamp == self.rule && !value.is_missing()).then_some(value)
    }

    /// Forgets the values of all variables.
    pub(super) fn forget_variables(&mut self) {
        self.rule += 1;
    }

    pub(super) fn set_variable(&mut self, slot: u32, value: NodeId) {
        if let Some(entry) = self.variables.get_mut(slot as usize) {
            *entry = (self.rule, value);
        }
    }

    fn load_base(
        &mut self,
        register: u8,
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

    fn load_request_object(
        &mut self,
        register: u8,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        // What the request has is what its context has (see `build_base`), which need not
        // be made for it, unless variables add to it.
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

    fn load_images(&mut self, register: u8, setting: Setting<'_>, world: &mut World<'_>) -> Flow {
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

    fn whole_context(&mut self, setting: Setting<'_>, world: &mut World<'_>) -> Outcome {
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
                .variable(start + offset as u32)
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

    fn entry_state(&self, entry: u32, record: &table::Entry) -> EntryState {
        match self.entries.get(entry as usize) {
            Some(&(stamp, state)) if stamp == self.rule => state,
            _ if record.nested != 0 => EntryState::Inactive,
            _ => EntryState::Pending,
        }
    }

    fn set_entry(&mut self, entry: u32, state: EntryState) -> Flow {
        if let Some(slot) = self.entries.get_mut(entry as usize) {
            *slot = (self.rule, state);
        }
        Flow::Next
    }

    fn retry_entries(&mut self, setting: Setting<'_>) -> Flow {
        let start = setting.rule_entries.start.get() as usize;
        let count = setting.rule_entries.length.get() as usize;
        for slot in self.entries.iter_mut().skip(start).take(count) {
            if *slot == (self.rule, EntryState::Failed) {
                slot.1 = EntryState::Pending;
            }
        }
        Flow::Next
    }

    fn ensure_entry(
        &mut self,
        entry: u32,
        how: u8,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(record) = setting.tables.entries.get(entry as usize) else {
            return Flow::Next;
        };
        if how & 2 != 0 {
            self.frame.lifted |= self.frame.has_loaded;
        }
        let waits = how & 1 != 0 && !self.frame.lifted;
        if waits || self.entry_state(entry, record) != EntryState::Pending {
            return Flow::Next;
        }
        let ending = self.run_loader(entry, record, setting, world);
        self.frame.has_loaded = true;
        match ending {
            Ending::Value(value) => {
                self.set_variable(record.slot.get(), value);
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

    /// Runs an entry again that saw the element before; where it fails now, its
    /// variable is gone (docs/spec/conditions.md §8.3).
    fn refresh_entry(&mut self, entry: u32, setting: Setting<'_>, world: &mut World<'_>) -> Flow {
        let Some(record) = setting.tables.entries.get(entry as usize) else {
            return Flow::Next;
        };
        if self.entry_state(entry, record) != EntryState::Done {
            return Flow::Next;
        }
        self.set_variable(record.slot.get(), NodeId::MISSING);
        if let Ending::Value(value) = self.run_loader(entry, record, setting, world) {
            self.set_variable(record.slot.get(), value);
        }
        Flow::Next
    }

    pub(super) fn run_loader(
        &mut self,
        entry: u32,
        record: &table::Entry,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Ending {
        self.set_entry(entry, EntryState::Done);
        let is_observed = world.observer.is_some();
        if is_observed {
            world.tell(&Event::EntryBegins { entry });
        }
        let root = setting.subject.root;
        let ending = self
            .run_inside(record.block.get(), root, Some(entry), setting, world)
            .unwrap_or_else(|| {
                self.fail_with("context entries depend on one another more than 64 deep");
                Ending::Failed { depth: 0 }
            });
        if is_observed {
            self.report_entry(entry, ending, setting, world);
        }
        ending
    }

    fn slice(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(slice) = setting.tables.slices.get(instruction.c.get() as usize) else {
            return Flow::Jump;
        };
        let list = self.get(instruction.b);
        let view = setting.view(world);
        let is_text = instruction.e != 0 && view.kind(list) == Some(Kind::String);
        if view.kind(list) != Some(Kind::List) && !is_text {
            return self.set(instruction.a, NULL);
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
            return self.set_or_end(instruction.a, outcome);
        }
        let items = view.children(list);
        let outcome = match evaluator::slice_places(slice, items.len()) {
            Err(error) => Err(FunctionError::Failed(error.to_string())),
            Ok(places) => {
                let items: Vec<NodeId> = places.map(|place| items.at(place)).collect();
                self.with_values(setting, world, |values| values.new_list(&items))
            }
        };
        self.set_or_jump(instruction.a, outcome)
    }

    fn extend(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let value = self.get(instruction.b);
        let view = setting.view(world);
        if view.kind(value) != Some(Kind::List) {
            self.list(instruction.a).push(value);
            return Flow::Next;
        }
        let items = view.children(value);
        let cost = items.len() as u64 / 8;
        if self.fuel < cost
            || self.list(instruction.a).len() + items.len() > setting.limits.list_items
        {
            return Flow::End(Ending::OutOfFuel);
        }
        self.fuel -= cost;
        self.list(instruction.a).extend(items);
        Flow::Next
    }

    /// A map of what a list accumulator holds: values under given keys, or keys and
    /// values in turn.
    fn map_end(
        &mut self,
        register: u8,
        list: u8,
        keys: Option<u32>,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let items = std::mem::take(self.list(list));
        let tables = setting.tables;
        let outcome = self.with_values(setting, world, |values| {
            let mut members = Vec::with_capacity(items.len());
            match keys {
                Some(keys) => {
                    for (key, &value) in tables.text_list(keys).zip(&items) {
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

    /// Decodes a value; only one whose keys are written otherwise is made anew.
    fn conform(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let (value, shape) = (self.get(instruction.b), instruction.c.get());
        let tables = setting.tables;
        let decoder = Decoder {
            tables,
            view: setting.view(world),
        };
        let mut steps = 0;
        let fit = decoder.fit(value, shape, &mut steps);
        // Wording an error and renaming look at the values again, in order.
        let cost = match fit {
            Fit::Exact => steps / 8,
            Fit::Renamed | Fit::Misfit => steps.saturating_mul(8),
        };
        if self.fuel < cost {
            return Flow::End(Ending::OutOfFuel);
        }
        self.fuel -= cost;
        match fit {
            Fit::Exact => self.set(instruction.a, value),
            Fit::Renamed => {
                let outcome = self.with_values(setting, world, |values| {
                    Renaming { tables, values }.rename(value, shape)
                });
                self.set_or_end(instruction.a, outcome)
            }
            Fit::Misfit => {
                let text = decoder.error(value, shape);
                self.fail_with(&text);
                Flow::Jump
            }
        }
    }

    fn run_checks(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let subject = self.get(instruction.a);
        let (block, places) = (instruction.c.get(), instruction.d.get());
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

    fn exempt(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let number = instruction.c.get() as usize;
        let Some(exclusion) = setting.tables.exclusions.get(number) else {
            return Flow::End(Ending::OutOfFuel);
        };
        self.findings.begin_probe();
        if let Some(end) = self.check_over(self.get(instruction.a), setting, world) {
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

    /// Runs the block of checks over a value; what ends the caller if it does not come
    /// to its end.
    fn check_over(
        &mut self,
        subject: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Option<Flow> {
        let block = self.findings.block();
        match self.run_inside(block, subject, None, setting, world) {
            Some(Ending::True) => None,
            _ => Some(Flow::End(Ending::OutOfFuel)),
        }
    }

    fn call(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(function) = u8::try_from(instruction.c.get())
            .ok()
            .and_then(Function::decode)
        else {
            return Flow::Jump;
        };
        let arguments = std::mem::take(self.list(instruction.b));
        let outcome = self.with_values(setting, world, |values| {
            // What a helper's list has to be is checked here: it has no row of types.
            match arguments.first() {
                Some(&list) if function.is_helper() => require_list(list, values)?,
                _ => {}
            }
            function::call(function, &arguments, values)
        });
        *self.list(instruction.b) = arguments;
        self.set_or_jump(instruction.a, outcome)
    }

    fn text_value(
        &mut self,
        accumulator: u8,
        register: u8,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let value = self.get(register);
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

    /// FALLBACK: an expression whose text is known only now, over the whole context.
    /// With a path, errors are worded as those of a variable at that path.
    fn evaluate_text(
        &mut self,
        register: u8,
        source: NodeId,
        path: Option<&str>,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        if !setting.runtime_expressions {
            let refused = "an expression whose text is known only at run time is not evaluated: the host has switched this off";
            return self.refuse(FunctionError::Refused(refused.into()));
        }
        let text = setting.view(world).str(source);
        if path.is_some() && !is_inside_of_one_variable(text) {
            self.fail_with(
                "the value of a variable inside a variable has braces that end neither: it is data, no part of an expression",
            );
            return Flow::Jump;
        }
        let mut query = match path {
            // Braces are cut off a variable wherever they stand, but not off a path.
            Some(_) => text.replace("{{", "").replace("}}", ""),
            None => text.to_owned(),
        };
        query = query.trim().to_owned();
        if setting.is_delete && path.is_some() {
            query = query.replace("request.object", "request.oldObject");
        }
        let mut failed = matches!(self.ensure_mentioned(&query, setting, world), Flow::Jump);
        if !failed && jmespath::mentions(&query, "images") {
            // Images that cannot be read fail whatever the query does with them.
            let flow = self.load_images(register, setting, world);
            failed = matches!(flow, Flow::Jump) && !self.failure.is_key;
        }
        if failed {
            self.show_failure();
            if let Some(path) = path {
                let prefix = format!("failed to resolve {query} at path {path}: ");
                self.failure_text.insert_str(0, &prefix);
            }
            return Flow::Jump;
        }
        let outcome = match jmespath::parse(&query) {
            Err(_) if query.is_empty() => Err(FunctionError::Failed("invalid query (nil)".into())),
            Err(error) => Err(FunctionError::Failed(format!(
                "incorrect query {query}: {}",
                error.message
            ))),
            Ok(expression) => self.evaluate_expression(&expression, setting, world),
        };
        match outcome {
            Err(FunctionError::Failed(error)) => {
                let unknown_key = error.starts_with("JMESPath query failed: Unknown key");
                match path {
                    Some(path) => self.fail_with(&format!(
                        "failed to resolve {query} at path {path}: {error}"
                    )),
                    None => self.fail_with(&error),
                }
                self.failure.unknown_key = unknown_key;
                Flow::Jump
            }
            outcome => self.set_or_jump(register, outcome),
        }
    }

    /// Runs the loaders of the context entries that a text known only now mentions.
    fn ensure_mentioned(
        &mut self,
        query: &str,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let tables = setting.tables;
        let start = setting.rule_entries.start.get();
        let mut first = 2;
        for (offset, entry) in Tables::range(tables.entries, setting.rule_entries)
            .iter()
            .enumerate()
        {
            let number = start + offset as u32;
            let slot = tables
                .slots
                .get(entry.slot.get() as usize)
                .map_or(NONE, |slot| slot.name.get());
            if jmespath::mentions(query, tables.symbols.text(SymbolId(slot))) {
                let restricted = self.frame.loading.is_some_and(|loading| number >= loading);
                let how = u8::from(restricted) | first;
                first = 0;
                if let Flow::Jump = self.ensure_entry(number, how, setting, world) {
                    return Flow::Jump;
                }
            }
        }
        Flow::Next
    }

    fn evaluate_expression(
        &mut self,
        expression: &jmespath::Expression,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Outcome {
        let images = self.frame.registers[0];
        let flow = self.load_images(0, setting, world);
        let images = std::mem::replace(&mut self.frame.registers[0], images);
        let context = self.whole_context(setting, world)?;
        let has_images = matches!(flow, Flow::Next);
        self.with_values(setting, world, |values| {
            let mut root = context;
            if has_images {
                let mut members = Vec::new();
                let view = values.view();
                let known: Vec<(String, NodeId)> = view
                    .children(context)
                    .map(|member| (view.key_str(member).to_owned(), member))
                    .collect();
                for (key, member) in known {
                    members.push((values.label(&key)?, member));
                }
                members.push((values.label("images")?, images));
                root = values.new_map(&members)?;
            }
            evaluator::evaluate(expression, root, values).map_err(|error| match error {
                evaluator::EvaluateError::Refused(text) => FunctionError::Refused(text),
                error => FunctionError::Failed(format!("JMESPath query failed: {error}")),
            })
        })
    }

    /// FALLBACK: as `evaluate_text`, over a value.
    fn evaluate_over(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        if !setting.runtime_expressions {
            let refused = "an expression whose text is known only at run time is not evaluated: the host has switched this off";
            return self.refuse(FunctionError::Refused(refused.into()));
        }
        let query = setting.view(world).str(self.get(instruction.b)).to_owned();
        let over = self.get(instruction.e);
        let outcome = match jmespath::parse(&query) {
            Err(error) => Err(FunctionError::Failed(format!(
                "failed to compile JMESPath: {query}, error: {}",
                error.message
            ))),
            Ok(expression) => self.with_values(setting, world, |values| {
                evaluator::evaluate(&expression, over, values).map_err(|error| match error {
                    evaluator::EvaluateError::Refused(text) => FunctionError::Refused(text),
                    error => FunctionError::Failed(error.to_string()),
                })
            }),
        };
        self.set_or_jump(instruction.a, outcome)
    }

    fn test_condition(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let Some(operator) = ConditionOperator::decode(instruction.e) else {
            return Flow::Jump;
        };
        let (key, value) = (self.get(instruction.a), self.get(instruction.b));
        match condition::holds(operator, key, value, &setting.view(world), &mut self.fuel) {
            Ok(holds) => self.jump_if(!holds),
            Err(error) => self.refuse(FunctionError::Refused(error.to_string())),
        }
    }

    fn end_foreach(&mut self, depth: u8) -> Ending {
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

    fn make_elements(
        &mut self,
        register: u8,
        source: u8,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let value = self.get(source);
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

    fn merge_stored(
        &mut self,
        instruction: &Instruction,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let (existing, added) = (self.get(instruction.b), self.get(instruction.e));
        let view = setting.view(world);
        if [existing, added].map(|value| view.kind(value)) != [Some(Kind::Map); 2] {
            return self.set(instruction.a, added);
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
        self.set_or_end(instruction.a, outcome)
    }

    /// Sets a register to the value, as a float64 if it is a number.
    fn set_float(
        &mut self,
        register: u8,
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

    fn make_stored(
        &mut self,
        register: u8,
        source: u8,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let value = self.get(source);
        let view = setting.view(world);
        match stored_form(&view, value, &mut self.fuel) {
            None => return Flow::End(Ending::OutOfFuel),
            Some(Stored::AsItIs) => return self.set(register, value),
            Some(Stored::NotFinite(number)) => {
                let mut text = String::from("json: unsupported value: ");
                kpvm_semantics::number::format_v_float(number, &mut text);
                self.fail_with(&text);
                return Flow::Jump;
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

/// A message of a condition, noted when the condition came out as wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotedMessage {
    /// Its text.
    pub(crate) text: u32,
    /// The block that computes it, or [`NONE`].
    pub(crate) block: u32,
    /// 0 `; `, 1 `;`.
    pub(crate) separator: u8,
}

/// What a foreach has come to so far.
#[derive(Debug, Default)]
pub(super) struct ForeachState {
    passed: u32,
    list_error: Option<String>,
}

fn text_of<'t>(tables: &Tables<'t>, number: u32) -> &'t str {
    tables
        .texts
        .get(number as usize)
        .map_or("", |&text| tables.text(text))
}

/// Whether a text means itself in an expression: as a name (0), between the quotes of a
/// key (1) or in a raw string (2).
fn is_plain(text: &str, place: u8) -> bool {
    match place {
        0 => {
            text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        }
        1 => !text.contains(|found: char| found.is_control() || matches!(found, '"' | '\\')),
        // In a raw string a backslash is an escape in front of the closing quote only.
        _ => !text.contains('\'') && !text.ends_with('\\'),
    }
}

/// Whether a text with `{{` and `}}` around it is one variable to Kyverno: braces inside
/// are in pairs, and in no other braces.
fn is_inside_of_one_variable(text: &str) -> bool {
    let mut open = false;
    for byte in text.bytes() {
        match (byte, open) {
            (b'{', false) => open = true,
            (b'}', true) => open = false,
            (b'{' | b'}', _) => return false,
            _ => {}
        }
    }
    !open
}

pub(super) fn boolean(value: bool) -> NodeId {
    if value { TRUE } else { FALSE }
}

/// docs/spec/jmespath.md §4: numbers are always truthy.
fn is_truthy(view: &View<'_>, value: NodeId) -> bool {
    match view.kind(value) {
        None | Some(Kind::Null | Kind::False) => false,
        Some(Kind::True | Kind::Int | Kind::Float) => true,
        Some(Kind::String) => !view.text(value).is_empty(),
        Some(Kind::List | Kind::Map) => !view.is_empty(value) || view.is_reference(value),
    }
}

/// Whether there are keys to look up: a reference is a map inside only.
fn is_object(view: &View<'_>, value: NodeId) -> bool {
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

fn compare(comparator: u32, left: NodeId, right: NodeId, values: &mut Values<'_>) -> Outcome {
    if comparator < 2 {
        let equal = values.equal(left, right)?;
        return Ok(boolean(equal == (comparator == 0)));
    }
    let view = values.view();
    let (Some(left), Some(right)) = (view.float(left), view.float(right)) else {
        return Ok(NULL);
    };
    Ok(boolean(match comparator {
        2 => left < right,
        3 => left <= right,
        4 => left > right,
        _ => left >= right,
    }))
}

/// The characters of a text at the places of a slice; null where it has step zero.
fn slice_text(slice: jmespath::Slice, text: NodeId, values: &mut Values<'_>) -> Outcome {
    let characters: Vec<char> = values.view().str(text).chars().collect();
    values.charge(characters.len() as u64 / 8)?;
    let Ok(places) = evaluator::slice_places(slice, characters.len()) else {
        return Ok(NULL);
    };
    let part: String = places.filter_map(|place| characters.get(place)).collect();
    values.new_text(&part)
}

/// docs/spec/assert.md §8: on floats alone.
fn arithmetic(operator: u32, left: NodeId, right: NodeId, values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let (Some(left), Some(right)) = (view.float(left), view.float(right)) else {
        return Ok(NULL);
    };
    values.new_float(match operator {
        0 => left + right,
        1 => left - right,
        2 => left * right,
        3 => left / right,
        4 => (left / right).floor(),
        _ => left % right,
    })
}

/// Refuses anything but a list in the words of Kyverno's type check.
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

/// Steps that a finding takes, so that fuel bounds the memory of all of them.
const STEPS_PER_NOTE: u64 = 8;

/// Steps that copying one value takes.
const STEPS_PER_COPY: u64 = 8;

/// How a value has to change for the context to keep it.
enum Stored {
    AsItIs,
    /// There are integers in it, or views of members.
    Copied,
    /// JSON has no such number.
    NotFinite(f64),
}

/// `None` when there is not enough fuel to copy the value; values may share members, so
/// that a small one can be large when written out.
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

/// Maps merge, anything else is replaced. The depth is that of values of the buffer,
/// which is bounded.
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
