//! The dispatch loop: every operation of the instruction set, each handled by a method of
//! the file that is named after what it handles.
//!
//! The match has no wildcard, so that an operation that is not handled does not compile.

use kpvm_format::instruction::immediate::{CompareFlags, PayloadPart, RangeOver};
use kpvm_format::instruction::{Instruction, Operation};

use super::cel::{Has, is_error, is_message};
use super::explain::Mismatch;
use super::expression::{is_object, is_truthy};
use super::failure::Flow;
use super::pattern::FoldState;
use super::{
    Ending, ErrorKind, Machine, Mode, Setting, World, boolean, is_list, is_map, is_null, leaf,
    matching, resource_matching,
};
use crate::cel::access;
use crate::document::NodeId;

impl Machine {
    /// Runs a block over a value.
    pub(super) fn run_block<M: Mode>(
        &mut self,
        block: u32,
        subject: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Ending {
        let Some(block) = setting.tables.blocks.get(block as usize) else {
            return Ending::OutOfFuel;
        };
        let code = setting.tables.block_code(block);
        let first = block.start.get();
        let registers = usize::from(block.registers.get()).min(self.frame.registers.len());
        self.frame.registers[..registers].fill(NodeId::MISSING);
        self.frame.registers[0] = subject;
        self.frame.has_loaded = false;
        self.frame.lifted = false;
        self.execute::<M>(code, first, setting, world)
    }

    fn execute<M: Mode>(
        &mut self,
        code: &[Instruction],
        first: u32,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Ending {
        let mut scene = setting.scene(world);
        let mut position = 0usize;
        // INVARIANT: the verifier checked every operand; what is out of range anyway
        // ends the run as if it had run out of fuel.
        while let Some(instruction) = code.get(position) {
            let Some(operation) = Operation::decode(instruction) else {
                break;
            };
            if self.fuel == 0 {
                break;
            }
            self.fuel -= 1;
            let view = &scene.view;
            let target = instruction.target();
            let index = first + position as u32;
            position += 1;
            // Tells the observer how the instruction ended; the last thing that it does.
            macro_rules! report {
                ($held:expr) => {
                    if M::TRACE {
                        self.report(operation, index, $held, setting, world);
                        scene = setting.scene(world);
                    }
                };
            }
            macro_rules! jump_if {
                ($jumps:expr) => {{
                    if $jumps {
                        position = target;
                    }
                    continue;
                }};
            }
            // Ends an instruction that is a test of the match or of a pattern.
            macro_rules! test {
                ($holds:expr) => {{
                    let holds = $holds;
                    report!(holds);
                    jump_if!(!holds)
                }};
            }
            // Likewise, with the error that its failure sets.
            macro_rules! check {
                ($holds:expr, $value:expr, $mismatch:expr) => {{
                    let holds = $holds;
                    if !holds {
                        let mismatch = $mismatch;
                        self.error = mismatch.kind();
                        if M::EXPLAIN {
                            self.explain_failure(mismatch, $value, index, scene);
                        }
                    }
                    test!(holds)
                }};
            }
            // Likewise, where the error is known already.
            macro_rules! checked {
                ($failure:expr) => {{
                    let failure: Option<ErrorKind> = $failure;
                    report!(failure.is_none());
                    if let Some(kind) = failure {
                        self.error = kind;
                        position = target;
                    }
                    continue;
                }};
            }
            // Ends an instruction that only looked at values, so that the view stays right.
            macro_rules! look {
                ($flow:expr) => {{
                    match $flow {
                        Flow::Next => {}
                        Flow::Jump => position = target,
                        Flow::End(ending) => return ending,
                    }
                    continue;
                }};
            }
            macro_rules! look_or {
                ($flow:expr, $computes:expr) => {
                    match $flow {
                        Some(flow) => look!(flow),
                        None => $computes,
                    }
                };
            }
            // Ends a test of CEL that jumps if it comes out as `when`.
            macro_rules! branch {
                ($tested:expr, $when:expr) => {{
                    match $tested {
                        Ok(holds) if holds == $when => position = target,
                        // Over the `CelOnError` that follows.
                        Ok(_) => position += 1,
                        Err(Flow::End(ending)) => return ending,
                        Err(Flow::Next | Flow::Jump) => {}
                    }
                    continue;
                }};
            }
            // Ends an instruction of an assertion, which holds if it notes no failure.
            macro_rules! assertion {
                ($flow:expr) => {{
                    let noted = self.failures.len();
                    let flow = $flow;
                    scene = setting.scene(world);
                    report!(matches!(flow, Flow::Next) && noted == self.failures.len());
                    match flow {
                        Flow::End(ending) => return ending,
                        Flow::Next | Flow::Jump => continue,
                    }
                }};
            }
            // The other arms yield what an operation did that may have made values.
            let flow = match operation {
                Operation::LoadPath { dst, path } => {
                    let found = self.load_path(path, &scene);
                    self.put(dst, found);
                    continue;
                }
                Operation::LoadField { dst, src, key } => {
                    self.put(dst, view.get(self.get(src), key));
                    continue;
                }
                Operation::LoadIndex { dst, src, index } => {
                    self.put(dst, view.children(self.get(src)).at(index.0 as usize));
                    continue;
                }
                Operation::Jump { .. } => {
                    position = target;
                    continue;
                }
                Operation::JumpIfMissing { src, .. } => test!(!self.get(src).is_missing()),
                Operation::RequireMap { src, .. } => {
                    let value = self.get(src);
                    check!(is_map(view, value), value, Mismatch::NotAMap)
                }
                Operation::RequireList { src, .. } => {
                    let value = self.get(src);
                    check!(is_list(view, value), value, Mismatch::NotAList)
                }
                Operation::RequirePresent { src, key, .. } => {
                    let value = self.get(src);
                    check!(!is_null(view, value), value, Mismatch::Absent(key))
                }
                Operation::RequireLength { src, length, .. } => {
                    let value = self.get(src);
                    let is_enough = view.len(value) >= length.0 as usize;
                    check!(is_enough, value, Mismatch::TooShort(length))
                }
                Operation::RequireExistenceList { src, .. } => {
                    let value = self.get(src);
                    check!(is_list(view, value), value, Mismatch::ExistenceInNoList)
                }
                Operation::TestLeaf { src, leaf, .. } => {
                    let value = self.get(src);
                    check!(
                        leaf::holds(leaf.0, value, &scene),
                        value,
                        Mismatch::Leaf(leaf)
                    )
                }
                Operation::FailEmptyPattern { .. } => {
                    check!(false, self.subject(), Mismatch::EmptyPattern)
                }
                Operation::FailExistence { .. } => {
                    check!(false, self.subject(), Mismatch::NoneExists)
                }
                Operation::FailExistencePattern { defect, kind, .. } => {
                    let mismatch = Mismatch::ExistencePattern(defect, kind);
                    check!(false, self.subject(), mismatch)
                }
                Operation::FailNegation { .. } => {
                    check!(false, self.subject(), Mismatch::Forbidden)
                }
                Operation::FailConditional { .. } => {
                    check!(false, self.subject(), Mismatch::NotApplicable)
                }
                Operation::WrapConditional { .. } => {
                    self.wrap_anchor::<M>(ErrorKind::Conditional);
                    test!(false)
                }
                Operation::WrapGlobal { .. } => {
                    self.wrap_anchor::<M>(ErrorKind::Global);
                    test!(false)
                }
                Operation::RecordAnchor { src, key, text } => {
                    if M::EXPLAIN {
                        let present = !view.get(self.get(src), key).is_missing();
                        let text = super::text_of(scene.tables, text);
                        self.explanation.record_anchor(text, present);
                    }
                    continue;
                }
                Operation::ExpandTags { src, tags } => {
                    let value = self.get(src);
                    self.tags.expand(tags, value, scene);
                    continue;
                }
                Operation::TestTags { src, tags, .. } => {
                    let value = self.get(src);
                    checked!(self.test_tags::<M>(tags, value, index, scene))
                }
                Operation::FoldBegin { fold } => {
                    *self.fold(fold) = FoldState::default();
                    if M::EXPLAIN {
                        self.explanation.begin_fold(fold);
                    }
                    continue;
                }
                Operation::FoldApplied { fold } => {
                    self.fold(fold).applied = true;
                    continue;
                }
                Operation::FoldKeyError { fold, .. } => {
                    jump_if!(!self.fold_error::<M>(fold, true))
                }
                Operation::FoldItemError { fold, .. } => {
                    jump_if!(!self.fold_error::<M>(fold, false))
                }
                Operation::FoldKeysEnd { fold, .. } => jump_if!(self.end_fold::<M>(fold, true)),
                Operation::FoldItemsEnd { fold, .. } => jump_if!(self.end_fold::<M>(fold, false)),
                Operation::LoopBegin {
                    loop_slot,
                    list,
                    item,
                    ..
                } => {
                    let items = view.children(self.get(list));
                    test!(self.begin_loop(loop_slot, item, items))
                }
                Operation::LoopNext {
                    loop_slot, item, ..
                } => {
                    let has_next = self.next_item(loop_slot, item);
                    report!(!has_next);
                    jump_if!(has_next)
                }
                Operation::AlternativeFailed { index } => {
                    self.alternative_failed::<M>(index.0, &scene);
                    report!(false);
                    continue;
                }
                Operation::AlternativeFailedAt { loop_slot } => {
                    self.alternative_failed::<M>(self.loop_index(loop_slot), &scene);
                    report!(false);
                    continue;
                }
                Operation::ReturnAlternativeAt { loop_slot } => {
                    return Ending::Alternative(self.loop_index(loop_slot));
                }
                Operation::RequireAlternatives { src, .. } => {
                    let value = self.get(src);
                    self.require_alternatives(value, &setting.view(world))
                }
                Operation::ReturnPass => return Ending::Pass,
                Operation::ReturnAlternative { index } => return Ending::Alternative(index.0),
                Operation::ReturnError { depth } => {
                    return Ending::Error {
                        kind: self.error,
                        depth,
                    };
                }
                Operation::ReturnAlternativesFailed { depth } => {
                    return Ending::AlternativesFailed {
                        any_failed: self.any_alternative_failed,
                        depth,
                    };
                }
                Operation::ReturnDeny { depth } => return Ending::Deny { depth },
                Operation::ReturnText { status, text } => return Ending::Text { status, text },

                Operation::LoadConstant { dst, constant } => {
                    if self.holds(dst, self.known_constant(constant)) {
                        continue;
                    }
                    self.load_constant(dst, constant, setting, world)
                }
                Operation::Move { dst, src } => {
                    self.put(dst, self.get(src));
                    continue;
                }
                Operation::LoadVariable { dst, slot, .. } => {
                    self.load_variable(dst, slot, setting, world)
                }
                Operation::LoadBase { dst, name, .. } => self.load_base(dst, name, setting, world),
                Operation::LoadRequestObject { dst, .. } => {
                    self.load_request_object(dst, setting, world)
                }
                Operation::LoadImages { dst, .. } => self.load_images(dst, setting, world),
                Operation::LoadContext { dst } => {
                    let outcome = self.whole_context(setting, world);
                    self.set_or_end(dst, outcome)
                }
                Operation::StoreVariable { slot, src } => {
                    self.set_variable(slot, self.get(src));
                    Flow::Next
                }
                Operation::SaveVariable { dst, slot } => {
                    let value = self.variable(slot).unwrap_or(NodeId::MISSING);
                    self.set(dst, value)
                }
                Operation::EnsureEntry { entry, loading, .. } => {
                    self.ensure_entry(entry, loading, setting, world)
                }
                Operation::DropEntry { entry } => self.drop_entry(entry),
                Operation::ResetEntry { entry } => self.reset_entry(entry),
                Operation::RetryEntries => self.retry_entries(setting),

                Operation::GetKey { dst, src, key, .. } => {
                    look!(self.get_key(dst, self.get(src), key, &scene))
                }
                Operation::GetKeyOf { dst, src, key, .. } => {
                    look!(self.get_key_of(dst, self.get(src), self.get(key), &scene))
                }
                Operation::GetItem { dst, src, index } => {
                    look!(self.get_item(dst, self.get(src), index, view))
                }
                Operation::GetSlice {
                    dst,
                    src,
                    texts,
                    slice,
                    ..
                } => self.get_slice(dst, self.get(src), texts, slice, setting, world),
                Operation::MapValues { dst, src, nulls } => {
                    self.map_values(dst, self.get(src), nulls, setting, world)
                }
                Operation::Not { dst, src } => look!(self.not(dst, self.get(src), view)),
                Operation::Compare {
                    dst,
                    left,
                    right,
                    comparison,
                } => {
                    let operands = [self.get(left), self.get(right)];
                    self.compare(dst, comparison, operands, setting, world)
                }
                Operation::JumpIfTrue { src, .. } => jump_if!(is_truthy(view, self.get(src))),
                Operation::JumpIfFalse { src, .. } => jump_if!(!is_truthy(view, self.get(src))),
                Operation::JumpIfNull { src, .. } => jump_if!(is_null(view, self.get(src))),
                Operation::JumpIfNotList { src, .. } => jump_if!(!is_list(view, self.get(src))),
                Operation::JumpIfNotMap { src, .. } => jump_if!(!is_object(view, self.get(src))),
                Operation::JumpIfShorter { src, length, .. } => {
                    jump_if!(view.len(self.get(src)) < length.0 as usize)
                }
                Operation::JumpUnlessDelete { .. } => Flow::jump_if(!setting.is_delete),
                Operation::CatchMissing { dst, .. } => look!(self.catch_missing(dst)),
                Operation::CatchAny { dst } => {
                    self.put(dst, super::NULL);
                    continue;
                }
                Operation::ListBegin { list } => {
                    self.list(list).clear();
                    continue;
                }
                Operation::ListPush { list, src } => {
                    let value = self.get(src);
                    self.list(list).push(value);
                    continue;
                }
                Operation::ListPushSome { list, src } => {
                    let value = self.get(src);
                    if !is_null(view, value) {
                        self.list(list).push(value);
                    }
                    continue;
                }
                Operation::ListExtend { list, src } => {
                    self.extend(list, self.get(src), setting, world)
                }
                Operation::ListEnd { dst, list } => self.end_list(dst, list, setting, world),
                Operation::MapEnd { dst, list, keys } => {
                    self.end_map(dst, list, Some(keys), setting, world)
                }
                Operation::MapEndPairs { dst, list } => {
                    self.end_map(dst, list, None, setting, world)
                }
                Operation::Call {
                    dst,
                    list,
                    function,
                    ..
                } => self.call(dst, list, function, setting, world),
                Operation::LoopIndex { dst, loop_slot } => {
                    self.load_loop_index(dst, loop_slot, setting, world)
                }
                Operation::FailText { text, .. } => {
                    self.fail_with(super::text_of(setting.tables, text));
                    Flow::Jump
                }
                Operation::WrapError { query, text, .. } => self.wrap_error(query, text, setting),

                Operation::TextBegin { accumulator } => {
                    self.accumulator(accumulator).clear();
                    Flow::Next
                }
                Operation::TextLiteral { accumulator, text } => {
                    let text = super::text_of(setting.tables, text);
                    self.accumulator(accumulator).push_str(text);
                    Flow::Next
                }
                Operation::TextValue {
                    accumulator, src, ..
                } => self.text_value(accumulator, self.get(src), setting, world),
                Operation::TextEnd { dst, accumulator } => {
                    self.end_text(dst, accumulator, setting, world)
                }
                Operation::JumpIfTextEmpty { accumulator, .. } => {
                    Flow::jump_if(self.accumulator(accumulator).is_empty())
                }
                Operation::EvaluateText { dst, src, path, .. } => {
                    let path = super::text_of(setting.tables, path);
                    self.evaluate_text(dst, self.get(src), Some(path), setting, world)
                }
                Operation::EvaluateQuery { dst, src, .. } => {
                    self.evaluate_text(dst, self.get(src), None, setting, world)
                }
                Operation::EvaluateOver { dst, src, over, .. } => {
                    self.evaluate_over(dst, self.get(src), self.get(over), setting, world)
                }
                Operation::WrapPath { path, .. } => {
                    self.wrap_path(self.get(path), setting, world)
                }
                Operation::RequireKeyText {
                    dst,
                    src,
                    text,
                    typed,
                    ..
                } => self.require_key_text(dst, self.get(src), text, typed, setting, world),

                Operation::TestCondition {
                    key,
                    value,
                    operator,
                    ..
                } => {
                    let operands = [self.get(key), self.get(value)];
                    self.test_condition(operator, operands, setting, world)
                }
                Operation::NoteMessage {
                    separator,
                    text,
                    block,
                } => {
                    self.note_message(separator, text, block);
                    Flow::Next
                }
                Operation::ClearMessages => {
                    self.messages.clear();
                    continue;
                }

                Operation::TestValue {
                    src,
                    pattern,
                    floats,
                    ..
                } => {
                    let (value, pattern) = (self.get(src), self.get(pattern));
                    checked!(self.test_value::<M>(floats, value, pattern, index, scene))
                }
                Operation::BeginPattern => {
                    self.begin_pattern::<M>();
                    continue;
                }
                Operation::SelectSubject {
                    dst,
                    element,
                    outer,
                } => {
                    let element = self.get(element);
                    let is_map = is_map(&setting.view(world), element);
                    self.set(dst, if is_map { element } else { self.get(outer) })
                }
                Operation::JumpIfNoSubject { src, .. } => {
                    Flow::jump_if(setting.is_delete && self.get(src) == setting.subject.root)
                }
                Operation::RequireScope { src, .. } => {
                    self.require_scope(self.get(src), setting, world)
                }
                Operation::CountPass => {
                    self.count_pass();
                    Flow::Next
                }
                Operation::JumpIfUnknownKey { .. } => Flow::jump_if(self.is_unknown_key()),
                Operation::KeepListError => self.keep_list_error(),
                Operation::ReturnForeach => Flow::End(self.end_foreach(Default::default())),
                Operation::EnterNested => self.enter_nested(),
                Operation::LeaveNested { depth, .. } => self.leave_nested(depth),
                Operation::JumpIfAllSkipped { .. } => jump_if!(!self.any_alternative_failed),
                Operation::RefreshEntry { entry } => self.refresh_entry(entry, setting, world),
                Operation::JumpIfSkip { .. } => jump_if!(self.error.is_skip()),
                Operation::ToElements { dst, src } => {
                    self.to_elements(dst, self.get(src), setting, world)
                }
                Operation::ToElement { dst, src, .. } => {
                    self.to_element(dst, self.get(src), setting, world)
                }
                Operation::ToFloat { dst, src } => {
                    self.to_float(dst, self.get(src), setting, world)
                }
                Operation::ToFloats { dst, src, .. } => {
                    self.to_floats(dst, self.get(src), setting, world)
                }
                Operation::MergeStored {
                    dst,
                    existing,
                    added,
                } => {
                    let values = [self.get(existing), self.get(added)];
                    self.merge_stored(dst, values, setting, world)
                }
                Operation::JumpUnlessProvided { provision, .. } => {
                    Flow::jump_if(!world.host.provides(provision))
                }
                Operation::Fetch {
                    dst,
                    request,
                    provision,
                    ..
                } => self.fetch(dst, self.get(request), provision, setting, world),
                Operation::JumpUnlessPlain { src, place, .. } => {
                    let text = setting.view(world).str(self.get(src));
                    Flow::jump_if(!super::runtime_expression::is_plain(text, place))
                }
                Operation::JumpUnlessSet { src, .. } => jump_if!(self.get(src).is_missing()),

                Operation::Conform {
                    dst, src, shape, ..
                } => self.conform(dst, self.get(src), shape, setting, world),
                Operation::JumpIfText {
                    src, of, texts, ..
                } => look!(self.test_text(self.get(src), of, texts, &scene)),
                Operation::RunChecks { src, block, places } => {
                    self.run_checks(self.get(src), block, places, setting, world)
                }
                Operation::Note {
                    value,
                    owner,
                    flags,
                    path,
                    control,
                } => {
                    let nodes = [self.get(value), self.get(owner)];
                    look!(self.note(nodes, flags, path, control))
                }
                Operation::LoadChecked { dst } => {
                    self.put(dst, self.findings.subject());
                    continue;
                }
                Operation::JumpUnlessFound { exclusion, .. } => {
                    let concerned = self.concerns_findings(exclusion, scene.tables);
                    jump_if!(!concerned)
                }
                Operation::Exempt { src, exclusion } => {
                    self.exempt(self.get(src), exclusion, setting, world)
                }
                Operation::ReturnFindings if self.findings.is_empty() => return Ending::Pass,
                Operation::ReturnFindings => return Ending::Findings { instruction: index },

                Operation::LoadPayload { dst, part } => {
                    if let (PayloadPart::Object, Some(object)) = (part, scene.request.object) {
                        self.put(dst, object);
                        continue;
                    }
                    let outcome = self.payload(part, setting, world);
                    self.set_or_end(dst, outcome)
                }
                Operation::Arithmetic {
                    dst,
                    left,
                    right,
                    operator,
                } => {
                    let operands = [self.get(left), self.get(right)];
                    self.arithmetic(dst, operator, operands, setting, world)
                }
                Operation::ToIterable { dst, src, .. } => {
                    self.to_iterable(dst, self.get(src), setting, world)
                }
                Operation::AssertValue { actual, expected } => {
                    let values = [self.get(actual), self.get(expected)];
                    assertion!(self.assert_value(values, index, setting, world))
                }
                Operation::NoteFailure { src, failure } => {
                    let value = self.get(src);
                    assertion!(self.assertion_fails(value, failure, index, setting, world))
                }
                Operation::ReturnUnassertable { src, reason } => {
                    self.show_failure();
                    let value = self.get(src);
                    assertion!(self.unassertable(value, reason, index, setting, world))
                }
                Operation::ReturnAssertion => assertion!(self.end_assertion()),

                Operation::ReturnTrue => Flow::End(Ending::True),
                Operation::ReturnFalse => Flow::End(Ending::False),
                Operation::ReturnValue { src } => Flow::End(Ending::Value(self.get(src))),
                Operation::ReturnFailed { depth } => {
                    self.show_failure();
                    Flow::End(Ending::Failed { depth })
                }
                Operation::ReturnNothing => Flow::End(Ending::Nothing),

                Operation::CelSelect { dst, src, key, .. } => {
                    let source = self.get(src);
                    if self.holds(dst, view.get(source, key)) {
                        continue;
                    }
                    look_or!(
                        self.cel_select(dst, source, key, &scene),
                        self.make_selected(dst, source, key, setting, world)
                    )
                }
                Operation::CelPath { dst, path, .. } => {
                    if self.finds_path(dst, path, &scene) {
                        continue;
                    }
                    look!(self.no_such_path(path, &scene))
                }
                Operation::CelIfHas {
                    dst,
                    src,
                    when,
                    key,
                    ..
                } => {
                    let source = self.get(src);
                    match self.cel_has(dst, source, key, &scene) {
                        Has::Known(tested) => branch!(tested, when),
                        Has::Optional => {
                            let flow = self.make_selected(dst, source, key, setting, world);
                            scene = setting.scene(world);
                            branch!(flow.as_test(), when)
                        }
                    }
                }
                Operation::CelIfFind {
                    dst,
                    src,
                    unwrap,
                    key,
                    ..
                } => branch!(
                    self.cel_find(dst, self.get(src), unwrap, key, &scene),
                    false
                ),
                Operation::CelIfCompare {
                    src,
                    flags,
                    function,
                    constant,
                    ..
                } => {
                    let value = self.get(src);
                    let is_left = flags.has(CompareFlags::CONSTANT_IS_LEFT);
                    branch!(
                        self.cel_compare(value, function, constant, is_left, &scene),
                        flags.has(CompareFlags::JUMPS_IF_TRUE)
                    )
                }
                Operation::CelIf { src, when, .. } => {
                    branch!(self.cel_truth(self.get(src), view), when)
                }
                Operation::CelOnError { .. } => {
                    position = target;
                    continue;
                }
                Operation::CelRequireFields { src, .. } => {
                    look!(self.require_fields(self.get(src), view))
                }
                Operation::CelHas { dst, src, key } => {
                    let has = access::has(view, self.get(src), key);
                    self.put(dst, boolean(has));
                    continue;
                }
                Operation::CelFind { dst, src, key, .. } => {
                    let found = access::find(view, self.get(src), key);
                    jump_if!(!self.holds(dst, found))
                }
                Operation::CelFindIndex {
                    dst, src, index, ..
                } => {
                    let found = access::find_index(view, self.get(src), self.get(index));
                    jump_if!(!self.holds(dst, found))
                }
                Operation::CelUnwrap {
                    dst, src, strict, ..
                } => look_or!(
                    self.cel_unwrap(dst, self.get(src), strict, view),
                    self.refuse_unwrapped(dst, setting, world)
                ),
                Operation::CelWrap { dst, src } => {
                    self.make_optional(dst, Some(self.get(src)), setting, world)
                }
                Operation::CelNone { dst } => self.make_optional(dst, None, setting, world),
                Operation::CelUnary {
                    dst, src, function, ..
                } => {
                    let arguments = [self.get(src)];
                    self.cel_call(dst, function, &arguments, setting, world)
                }
                Operation::CelBinary {
                    dst,
                    left,
                    right,
                    function,
                    ..
                } => {
                    let arguments = [self.get(left), self.get(right)];
                    look_or!(
                        self.cel_predicate(dst, function, arguments, view),
                        self.cel_call(dst, function, &arguments, setting, world)
                    )
                }
                Operation::CelCall {
                    dst,
                    list,
                    function,
                    ..
                } => self.cel_call_with_list(dst, list, function, setting, world),
                Operation::CelRange { dst, src, over, .. } => {
                    let source = self.get(src);
                    if over == RangeOver::Items && is_list(view, source) {
                        self.put(dst, source);
                        continue;
                    }
                    self.make_range(dst, source, over, setting, world)
                }
                Operation::CelMapEnd {
                    dst, list, joined, ..
                } => self.end_cel_map(dst, list, joined, setting, world),
                Operation::CelMapExtend { list, src, .. } => {
                    self.extend_with_members(list, self.get(src), setting, world)
                }
                Operation::CelPushOptional { list, src, .. } => {
                    self.push_optional(list, self.get(src), setting, world)
                }
                Operation::CelRequireBool { src, .. } => {
                    look!(self.require_bool(self.get(src), view))
                }
                Operation::CelTest { src, .. } => test!(view.bool(self.get(src)) == Some(true)),
                Operation::CelCatch { dst } => {
                    if is_error(view, self.get(dst)) {
                        continue;
                    }
                    self.catch_error(dst, setting, world)
                }
                Operation::CelRaise { src, .. } => {
                    let value = self.get(src);
                    if view.extended(value).is_none() {
                        continue;
                    }
                    look!(self.raise(value, view))
                }
                Operation::CelRaiseAll { list, form, .. } => {
                    self.raise_all(list, form, setting, world)
                }
                Operation::CelBegin { text } => {
                    self.begin_expression(text, setting.limits.cel_fuel);
                    continue;
                }
                Operation::CelRoot { dst, root } => look_or!(
                    self.known_root(dst, root, scene.request),
                    self.make_root(dst, root, setting, world)
                ),
                Operation::CelVariable { dst, entry, .. } => look_or!(
                    self.known_cel_variable(dst, entry, &scene),
                    self.cel_variable(dst, entry, setting, world)
                ),
                Operation::CelParams {
                    dst, src, whose, ..
                } => self.collect_params(dst, self.get(src), whose, setting, world),
                Operation::CelBindParams { src } => {
                    self.bind_params(self.get(src));
                    Flow::Next
                }
                Operation::ReturnErrorText => {
                    self.show_failure();
                    Flow::End(Ending::CelError)
                }
                Operation::ReturnFailText { text, .. } => Flow::End(Ending::FailText(text)),
                Operation::ReturnFailError { .. } => {
                    self.show_failure();
                    Flow::End(Ending::FailError)
                }
                Operation::ReturnFailValue { src, form, .. } => {
                    let value = self.get(src);
                    match is_message(&setting.view(world), value, form) {
                        true => Flow::End(Ending::FailValue(value)),
                        false => Flow::Next,
                    }
                }

                Operation::MatchKinds { kinds, .. } => {
                    test!(matching::kinds_match(kinds, scene.tables, scene.request))
                }
                Operation::MatchOperations { operations, .. } => {
                    test!(operations.has(scene.request.operation))
                }
                Operation::MatchNames { names, .. } => test!(matching::wildcard_list_matches(
                    names,
                    scene.subject.matched_name,
                    scene.tables
                )),
                Operation::MatchNamespaces { namespaces, .. } => {
                    test!(matching::wildcard_list_matches(
                        namespaces,
                        scene.subject.matched_namespace(),
                        scene.tables
                    ))
                }
                Operation::MatchAnnotations { annotations, .. } => {
                    test!(matching::annotations_match(annotations, &scene))
                }
                Operation::MatchSelector { selector, .. } => {
                    test!(matching::labels_match(selector, &scene))
                }
                Operation::MatchNamespaceSelector {
                    selection,
                    selector,
                    ..
                } => test!(matching::namespace_matches(selection, selector, &scene)),
                Operation::MatchRoles { roles, .. } => test!(matching::has_role(roles, &scene)),
                Operation::MatchClusterRoles { roles, .. } => {
                    test!(matching::has_cluster_role(roles, &scene))
                }
                Operation::MatchSubjects { subjects, .. } => {
                    test!(matching::is_subject(subjects, &scene))
                }
                Operation::JumpIfNoUser { .. } => test!(scene.request.user.is_some()),
                Operation::MatchApiGroups { groups, .. } => {
                    let group = scene.request.group;
                    test!(resource_matching::lists(groups, group, scene.tables))
                }
                Operation::MatchApiVersions { versions, .. } => {
                    let version = scene.request.version;
                    test!(resource_matching::lists(versions, version, scene.tables))
                }
                Operation::MatchResources { resources, .. } => {
                    test!(resource_matching::resource_matches(resources, &scene))
                }
                Operation::MatchResourceNames { names, .. } => {
                    test!(resource_matching::name_matches(names, &scene))
                }
                Operation::MatchScope { scope, .. } => {
                    test!(resource_matching::scope_matches(scope, &scene))
                }
                Operation::MatchObjectLabels {
                    absent, selector, ..
                } => test!(resource_matching::labels_match(absent, selector, &scene)),
                Operation::MatchNamespaceLabels { selector, .. } => {
                    test!(resource_matching::namespace_matches(selector, &scene))
                }
                Operation::ReturnMatched => return Ending::Matched,
                Operation::ReturnUnmatched => return Ending::Unmatched,
            };
            // Values may have been added.
            scene = setting.scene(world);
            match flow {
                Flow::Next => report!(true),
                Flow::Jump => {
                    report!(false);
                    position = target;
                }
                Flow::End(ending) => {
                    self.ended_at = index;
                    return ending;
                }
            }
        }
        Ending::OutOfFuel
    }
}
