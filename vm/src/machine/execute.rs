//! The dispatch loop: every operation of the instruction set, each handled by a method of
//! the file that is named after what it handles.
//!
//! The match has no wildcard, so that an operation that is not handled does not compile. It is
//! one match and therefore one long file: each arm is a call or a few lines.

use kpvm_format::instruction::immediate::{CompareFlags, PayloadPart, RangeOver};
use kpvm_format::instruction::{Decoded, Instruction};
use kpvm_format::site::InstructionId;

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
        let number = block;
        let Some(block) = setting.tables.blocks.get(number as usize) else {
            return Ending::OutOfFuel;
        };
        let code = setting.tables.block_code(block);
        self.frame.begin(block, subject);
        self.execute::<M>(code, number, setting, world)
    }

    fn execute<M: Mode>(
        &mut self,
        code: &[Instruction],
        block: u32,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Ending {
        let mut scene = setting.scene(world);
        let mut position = 0usize;
        // INVARIANT: the verifier checked every operand; one that is out of range anyway
        // ends the run as if it had run out of fuel.
        while let Some(instruction) = code.get(position) {
            let Some(decoded) = Decoded::of(instruction) else {
                break;
            };
            if self.fuel == 0 {
                break;
            }
            self.fuel -= 1;
            let view = &scene.view;
            let target = instruction.target();
            let index = InstructionId {
                block,
                position: position as u32,
            };
            position += 1;
            // Tells the observer how the instruction ended, as its last action.
            macro_rules! report {
                ($held:expr) => {
                    if M::TRACE {
                        self.report(instruction, index, $held, setting, world);
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
            // Ends an instruction that is a test of a match block or pattern.
            macro_rules! test {
                ($holds:expr) => {{
                    let holds = $holds;
                    report!(holds);
                    jump_if!(!holds)
                }};
            }
            // Likewise, with the error to set on failure.
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
            // Likewise, if the error is known already.
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
            // Ends an instruction that only read values, so that the view stays valid.
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
            // Ends a CEL test that jumps if its result is `when`.
            macro_rules! branch {
                ($tested:expr, $when:expr) => {{
                    match $tested {
                        Ok(holds) if holds == $when => position = target,
                        // Skips the `CelOnError` that follows.
                        Ok(_) => position += 1,
                        Err(Flow::End(ending)) => return ending,
                        Err(Flow::Next | Flow::Jump) => {}
                    }
                    continue;
                }};
            }
            // Ends an instruction of an assertion, which holds if it records no failure.
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
            // The other arms return the flow of an operation that may have built values.
            let flow = match decoded {
                Decoded::LoadPath(o) => {
                    let found = self.load_path(o.path(), &scene);
                    self.put(o.dst(), found);
                    continue;
                }
                Decoded::LoadField(o) => {
                    self.put(o.dst(), view.get(self.get(o.src()), o.key()));
                    continue;
                }
                Decoded::LoadIndex(o) => {
                    self.put(
                        o.dst(),
                        view.children(self.get(o.src())).at(o.index().0 as usize),
                    );
                    continue;
                }
                Decoded::Jump(_) => {
                    position = target;
                    continue;
                }
                Decoded::JumpIfMissing(o) => test!(!self.get(o.src()).is_missing()),
                Decoded::RequireMap(o) => {
                    let value = self.get(o.src());
                    check!(is_map(view, value), value, Mismatch::NotAMap)
                }
                Decoded::RequireList(o) => {
                    let value = self.get(o.src());
                    check!(is_list(view, value), value, Mismatch::NotAList)
                }
                Decoded::RequirePresent(o) => {
                    let value = self.get(o.src());
                    check!(!is_null(view, value), value, Mismatch::Absent(o.key()))
                }
                Decoded::RequireLength(o) => {
                    let value = self.get(o.src());
                    let is_enough = view.len(value) >= o.length().0 as usize;
                    check!(is_enough, value, Mismatch::TooShort(o.length()))
                }
                Decoded::RequireExistenceList(o) => {
                    let value = self.get(o.src());
                    check!(is_list(view, value), value, Mismatch::ExistenceInNoList)
                }
                Decoded::TestLeaf(o) => {
                    let value = self.get(o.src());
                    check!(
                        leaf::holds(o.leaf().0, value, &scene),
                        value,
                        Mismatch::Leaf(o.leaf())
                    )
                }
                Decoded::FailEmptyPattern(_) => {
                    check!(false, self.subject(), Mismatch::EmptyPattern)
                }
                Decoded::FailExistence(_) => {
                    check!(false, self.subject(), Mismatch::NoneExists)
                }
                Decoded::FailExistencePattern(o) => {
                    let mismatch = Mismatch::ExistencePattern(o.defect(), o.kind());
                    check!(false, self.subject(), mismatch)
                }
                Decoded::FailNegation(_) => {
                    check!(false, self.subject(), Mismatch::Forbidden)
                }
                Decoded::FailConditional(_) => {
                    check!(false, self.subject(), Mismatch::NotApplicable)
                }
                Decoded::WrapConditional(_) => {
                    self.wrap_anchor::<M>(ErrorKind::Conditional);
                    test!(false)
                }
                Decoded::WrapGlobal(_) => {
                    self.wrap_anchor::<M>(ErrorKind::Global);
                    test!(false)
                }
                Decoded::RecordAnchor(o) => {
                    if M::EXPLAIN {
                        let present = !view.get(self.get(o.src()), o.key()).is_missing();
                        let text = super::text_of(scene.tables, o.text());
                        self.explanation.record_anchor(text, present);
                    }
                    continue;
                }
                Decoded::ExpandTags(o) => {
                    let value = self.get(o.src());
                    self.tags.expand(o.tags(), value, scene);
                    continue;
                }
                Decoded::TestTags(o) => {
                    let value = self.get(o.src());
                    checked!(self.test_tags::<M>(o.tags(), value, index, scene))
                }
                Decoded::FoldBegin(o) => {
                    *self.fold(o.fold()) = FoldState::default();
                    if M::EXPLAIN {
                        self.explanation.begin_fold(o.fold());
                    }
                    continue;
                }
                Decoded::FoldApplied(o) => {
                    self.fold(o.fold()).applied = true;
                    continue;
                }
                Decoded::FoldKeyError(o) => {
                    jump_if!(!self.fold_error::<M>(o.fold(), true))
                }
                Decoded::FoldItemError(o) => {
                    jump_if!(!self.fold_error::<M>(o.fold(), false))
                }
                Decoded::FoldKeysEnd(o) => jump_if!(self.end_fold::<M>(o.fold(), true)),
                Decoded::FoldItemsEnd(o) => jump_if!(self.end_fold::<M>(o.fold(), false)),
                Decoded::LoopBegin(o) => {
                    let items = view.children(self.get(o.list()));
                    test!(self.begin_loop(o.loop_slot(), o.item(), items))
                }
                Decoded::LoopNext(o) => {
                    let has_next = self.next_item(o.loop_slot(), o.item());
                    report!(!has_next);
                    jump_if!(has_next)
                }
                Decoded::AlternativeFailed(o) => {
                    self.alternative_failed::<M>(o.index().0, &scene);
                    report!(false);
                    continue;
                }
                Decoded::AlternativeFailedAt(o) => {
                    self.alternative_failed::<M>(self.loop_index(o.loop_slot()), &scene);
                    report!(false);
                    continue;
                }
                Decoded::ReturnAlternativeAt(o) => {
                    return Ending::Alternative(self.loop_index(o.loop_slot()));
                }
                Decoded::RequireAlternatives(o) => {
                    let value = self.get(o.src());
                    self.require_alternatives(value, &setting.view(world))
                }
                Decoded::ReturnPass(_) => return Ending::Pass,
                Decoded::ReturnAlternative(o) => return Ending::Alternative(o.index().0),
                Decoded::ReturnError(o) => {
                    return Ending::Error {
                        kind: self.error,
                        depth: o.depth(),
                    };
                }
                Decoded::ReturnAlternativesFailed(o) => {
                    return Ending::AlternativesFailed {
                        any_failed: self.any_alternative_failed,
                        depth: o.depth(),
                    };
                }
                Decoded::ReturnDeny(o) => return Ending::Deny { depth: o.depth() },
                Decoded::ReturnText(o) => {
                    return Ending::Text {
                        status: o.status(),
                        text: o.text(),
                    };
                }

                Decoded::LoadConstant(o) => {
                    if self.holds(o.dst(), self.known_constant(o.constant())) {
                        continue;
                    }
                    self.load_constant(o.dst(), o.constant(), setting, world)
                }
                Decoded::Move(o) => {
                    self.put(o.dst(), self.get(o.src()));
                    continue;
                }
                Decoded::LoadVariable(o) => self.load_variable(o.dst(), o.slot(), setting, world),
                Decoded::LoadBase(o) => self.load_base(o.dst(), o.name(), setting, world),
                Decoded::LoadRequestObject(o) => self.load_request_object(o.dst(), setting, world),
                Decoded::LoadImages(o) => self.load_images(o.dst(), setting, world),
                Decoded::LoadContext(o) => {
                    let outcome = self.whole_context(setting, world);
                    self.set_or_end(o.dst(), outcome)
                }
                Decoded::StoreVariable(o) => {
                    self.set_variable(o.slot(), self.get(o.src()));
                    Flow::Next
                }
                Decoded::SaveVariable(o) => {
                    let value = self.variable(o.slot()).unwrap_or(NodeId::MISSING);
                    self.set(o.dst(), value)
                }
                Decoded::EnsureEntry(o) => {
                    self.ensure_entry(o.entry(), o.loading(), setting, world)
                }
                Decoded::DropEntry(o) => self.drop_entry(o.entry()),
                Decoded::ResetEntry(o) => self.reset_entry(o.entry()),
                Decoded::RetryEntries(_) => self.retry_entries(setting),

                Decoded::GetKey(o) => {
                    look!(self.get_key(o.dst(), self.get(o.src()), o.key(), &scene))
                }
                Decoded::GetKeyOf(o) => {
                    look!(self.get_key_of(o.dst(), self.get(o.src()), self.get(o.key()), &scene))
                }
                Decoded::GetItem(o) => {
                    look!(self.get_item(o.dst(), self.get(o.src()), o.index(), view))
                }
                Decoded::GetSlice(o) => self.get_slice(
                    o.dst(),
                    self.get(o.src()),
                    o.texts(),
                    o.slice(),
                    setting,
                    world,
                ),
                Decoded::MapValues(o) => {
                    self.map_values(o.dst(), self.get(o.src()), o.nulls(), setting, world)
                }
                Decoded::Not(o) => look!(self.not(o.dst(), self.get(o.src()), view)),
                Decoded::Compare(o) => {
                    let operands = [self.get(o.left()), self.get(o.right())];
                    self.compare(o.dst(), o.comparison(), operands, setting, world)
                }
                Decoded::JumpIfTrue(o) => jump_if!(is_truthy(view, self.get(o.src()))),
                Decoded::JumpIfFalse(o) => jump_if!(!is_truthy(view, self.get(o.src()))),
                Decoded::JumpIfNull(o) => jump_if!(is_null(view, self.get(o.src()))),
                Decoded::JumpIfNotList(o) => jump_if!(!is_list(view, self.get(o.src()))),
                Decoded::JumpIfNotMap(o) => jump_if!(!is_object(view, self.get(o.src()))),
                Decoded::JumpIfShorter(o) => {
                    jump_if!(view.len(self.get(o.src())) < o.length().0 as usize)
                }
                Decoded::JumpUnlessDelete(_) => Flow::jump_if(!setting.is_delete),
                Decoded::CatchMissing(o) => look!(self.catch_missing(o.dst())),
                Decoded::CatchAny(o) => {
                    self.put(o.dst(), super::NULL);
                    continue;
                }
                Decoded::ListBegin(o) => {
                    self.list(o.list()).clear();
                    continue;
                }
                Decoded::ListPush(o) => {
                    let value = self.get(o.src());
                    self.list(o.list()).push(value);
                    continue;
                }
                Decoded::ListPushSome(o) => {
                    let value = self.get(o.src());
                    if !is_null(view, value) {
                        self.list(o.list()).push(value);
                    }
                    continue;
                }
                Decoded::ListExtend(o) => self.extend(o.list(), self.get(o.src()), setting, world),
                Decoded::ListEnd(o) => self.end_list(o.dst(), o.list(), setting, world),
                Decoded::MapEnd(o) => {
                    self.end_map(o.dst(), o.list(), Some(o.keys()), setting, world)
                }
                Decoded::MapEndPairs(o) => self.end_map(o.dst(), o.list(), None, setting, world),
                Decoded::Call(o) => self.call(o.dst(), o.list(), o.function(), setting, world),
                Decoded::LoopIndex(o) => {
                    self.load_loop_index(o.dst(), o.loop_slot(), setting, world)
                }
                Decoded::FailText(o) => {
                    self.fail_with(super::text_of(setting.tables, o.text()));
                    Flow::Jump
                }
                Decoded::WrapError(o) => self.wrap_error(o.query(), o.text(), setting),

                Decoded::TextBegin(o) => {
                    self.accumulator(o.accumulator()).clear();
                    Flow::Next
                }
                Decoded::TextLiteral(o) => {
                    let text = super::text_of(setting.tables, o.text());
                    self.accumulator(o.accumulator()).push_str(text);
                    Flow::Next
                }
                Decoded::TextValue(o) => {
                    self.text_value(o.accumulator(), self.get(o.src()), setting, world)
                }
                Decoded::TextEnd(o) => self.end_text(o.dst(), o.accumulator(), setting, world),
                Decoded::JumpIfTextEmpty(o) => {
                    Flow::jump_if(self.accumulator(o.accumulator()).is_empty())
                }
                Decoded::EvaluateText(o) => {
                    let path = super::text_of(setting.tables, o.path());
                    self.evaluate_text(o.dst(), self.get(o.src()), Some(path), setting, world)
                }
                Decoded::EvaluateQuery(o) => {
                    self.evaluate_text(o.dst(), self.get(o.src()), None, setting, world)
                }
                Decoded::EvaluateOver(o) => self.evaluate_over(
                    o.dst(),
                    self.get(o.src()),
                    self.get(o.over()),
                    setting,
                    world,
                ),
                Decoded::WrapPath(o) => self.wrap_path(self.get(o.path()), setting, world),
                Decoded::RequireKeyText(o) => self.require_key_text(
                    o.dst(),
                    self.get(o.src()),
                    o.text(),
                    o.typed(),
                    setting,
                    world,
                ),

                Decoded::TestCondition(o) => {
                    let operands = [self.get(o.key()), self.get(o.value())];
                    self.test_condition(o.operator(), operands, setting, world)
                }
                Decoded::NoteMessage(o) => {
                    self.note_message(o.separator(), o.text(), o.block());
                    Flow::Next
                }
                Decoded::ClearMessages(_) => {
                    self.messages.clear();
                    continue;
                }

                Decoded::TestValue(o) => {
                    let (value, pattern) = (self.get(o.src()), self.get(o.pattern()));
                    checked!(self.test_value::<M>(o.floats(), value, pattern, index, scene))
                }
                Decoded::BeginPattern(_) => {
                    self.begin_pattern::<M>();
                    continue;
                }
                Decoded::SelectSubject(o) => {
                    let element = self.get(o.element());
                    let is_map = is_map(&setting.view(world), element);
                    self.set(o.dst(), if is_map { element } else { self.get(o.outer()) })
                }
                Decoded::JumpIfNoSubject(o) => {
                    Flow::jump_if(setting.is_delete && self.get(o.src()) == setting.subject.root)
                }
                Decoded::RequireScope(o) => self.require_scope(self.get(o.src()), setting, world),
                Decoded::CountPass(_) => {
                    self.count_pass();
                    Flow::Next
                }
                Decoded::JumpIfUnknownKey(_) => Flow::jump_if(self.is_unknown_key()),
                Decoded::KeepListError(_) => self.keep_list_error(),
                Decoded::ReturnForeach(_) => Flow::End(self.end_foreach(Default::default())),
                Decoded::EnterNested(_) => self.enter_nested(),
                Decoded::LeaveNested(o) => self.leave_nested(o.depth()),
                Decoded::JumpIfAllSkipped(_) => jump_if!(!self.any_alternative_failed),
                Decoded::RefreshEntry(o) => self.refresh_entry(o.entry(), setting, world),
                Decoded::JumpIfSkip(_) => jump_if!(self.error.is_skip()),
                Decoded::ToElements(o) => {
                    self.to_elements(o.dst(), self.get(o.src()), setting, world)
                }
                Decoded::ToElement(o) => {
                    self.to_element(o.dst(), self.get(o.src()), setting, world)
                }
                Decoded::ToFloat(o) => self.to_float(o.dst(), self.get(o.src()), setting, world),
                Decoded::ToFloats(o) => self.to_floats(o.dst(), self.get(o.src()), setting, world),
                Decoded::MergeStored(o) => {
                    let values = [self.get(o.existing()), self.get(o.added())];
                    self.merge_stored(o.dst(), values, setting, world)
                }
                Decoded::JumpUnlessProvided(o) => {
                    Flow::jump_if(!world.host.provides(o.provision()))
                }
                Decoded::Fetch(o) => self.fetch(
                    o.dst(),
                    self.get(o.request()),
                    o.provision(),
                    setting,
                    world,
                ),
                Decoded::JumpUnlessPlain(o) => {
                    let text = setting.view(world).str(self.get(o.src()));
                    Flow::jump_if(!super::runtime_expression::is_plain(text, o.place()))
                }
                Decoded::JumpUnlessSet(o) => jump_if!(self.get(o.src()).is_missing()),

                Decoded::Conform(o) => {
                    self.conform(o.dst(), self.get(o.src()), o.shape(), setting, world)
                }
                Decoded::JumpIfText(o) => {
                    look!(self.test_text(self.get(o.src()), o.of(), o.texts(), &scene))
                }
                Decoded::RunChecks(o) => {
                    self.run_checks(self.get(o.src()), o.block(), o.places(), setting, world)
                }
                Decoded::Note(o) => {
                    let nodes = [self.get(o.value()), self.get(o.owner())];
                    look!(self.note(nodes, o.flags(), o.path(), o.control()))
                }
                Decoded::LoadChecked(o) => {
                    self.put(o.dst(), self.findings.subject());
                    continue;
                }
                Decoded::JumpUnlessFound(o) => {
                    let concerned = self.concerns_findings(o.exclusion(), scene.tables);
                    jump_if!(!concerned)
                }
                Decoded::Exempt(o) => self.exempt(self.get(o.src()), o.exclusion(), setting, world),
                Decoded::ReturnFindings(_) if self.findings.is_empty() => return Ending::Pass,
                Decoded::ReturnFindings(_) => return Ending::Findings { instruction: index },

                Decoded::LoadPayload(o) => {
                    if let (PayloadPart::Object, Some(object)) = (o.part(), scene.request.object) {
                        self.put(o.dst(), object);
                        continue;
                    }
                    let outcome = self.payload(o.part(), setting, world);
                    self.set_or_end(o.dst(), outcome)
                }
                Decoded::Arithmetic(o) => {
                    let operands = [self.get(o.left()), self.get(o.right())];
                    self.arithmetic(o.dst(), o.operator(), operands, setting, world)
                }
                Decoded::ToIterable(o) => {
                    self.to_iterable(o.dst(), self.get(o.src()), setting, world)
                }
                Decoded::AssertValue(o) => {
                    let values = [self.get(o.actual()), self.get(o.expected())];
                    assertion!(self.assert_value(values, index, setting, world))
                }
                Decoded::NoteFailure(o) => {
                    let value = self.get(o.src());
                    assertion!(self.assertion_fails(value, o.failure(), index, setting, world))
                }
                Decoded::ReturnUnassertable(o) => {
                    self.show_failure();
                    let value = self.get(o.src());
                    assertion!(self.unassertable(value, o.reason(), index, setting, world))
                }
                Decoded::ReturnAssertion(_) => assertion!(self.end_assertion()),

                Decoded::ReturnTrue(_) => Flow::End(Ending::True),
                Decoded::ReturnFalse(_) => Flow::End(Ending::False),
                Decoded::ReturnValue(o) => Flow::End(Ending::Value(self.get(o.src()))),
                Decoded::ReturnFailed(o) => {
                    self.show_failure();
                    Flow::End(Ending::Failed { depth: o.depth() })
                }
                Decoded::ReturnNothing(_) => Flow::End(Ending::Nothing),

                Decoded::CelSelect(o) => {
                    let source = self.get(o.src());
                    if self.holds(o.dst(), view.get(source, o.key())) {
                        continue;
                    }
                    look_or!(
                        self.cel_select(o.dst(), source, o.key(), &scene),
                        self.make_selected(o.dst(), source, o.key(), setting, world)
                    )
                }
                Decoded::CelPath(o) => {
                    if self.finds_path(o.dst(), o.path(), &scene) {
                        continue;
                    }
                    look!(self.no_such_path(o.path(), &scene))
                }
                Decoded::CelIfHas(o) => {
                    let source = self.get(o.src());
                    match self.cel_has(o.dst(), source, o.key(), &scene) {
                        Has::Known(tested) => branch!(tested, o.when()),
                        Has::Optional => {
                            let flow = self.make_selected(o.dst(), source, o.key(), setting, world);
                            scene = setting.scene(world);
                            branch!(flow.into_test(), o.when())
                        }
                    }
                }
                Decoded::CelIfFind(o) => branch!(
                    self.cel_find(o.dst(), self.get(o.src()), o.unwrap(), o.key(), &scene),
                    false
                ),
                Decoded::CelIfCompare(o) => {
                    let value = self.get(o.src());
                    let is_left = o.flags().has(CompareFlags::CONSTANT_IS_LEFT);
                    branch!(
                        self.cel_compare(value, o.function(), o.constant(), is_left, &scene),
                        o.flags().has(CompareFlags::JUMPS_IF_TRUE)
                    )
                }
                Decoded::CelIf(o) => {
                    branch!(self.cel_truth(self.get(o.src()), view), o.when())
                }
                Decoded::CelOnError(_) => {
                    position = target;
                    continue;
                }
                Decoded::CelRequireFields(o) => {
                    look!(self.require_fields(self.get(o.src()), view))
                }
                Decoded::CelHas(o) => {
                    let has = access::has(view, self.get(o.src()), o.key());
                    self.put(o.dst(), boolean(has));
                    continue;
                }
                Decoded::CelFind(o) => {
                    let found = access::find(view, self.get(o.src()), o.key());
                    jump_if!(!self.holds(o.dst(), found))
                }
                Decoded::CelFindIndex(o) => {
                    // The index is a whole number, which every value takes.
                    let found = access::find_index(view, self.get(o.src()), self.get(o.index()));
                    let found = found.unwrap_or(NodeId::MISSING);
                    jump_if!(!self.holds(o.dst(), found))
                }
                Decoded::CelUnwrap(o) => look_or!(
                    self.cel_unwrap(o.dst(), self.get(o.src()), o.strict(), view),
                    self.refuse_unwrapped(o.dst(), setting, world)
                ),
                Decoded::CelWrap(o) => {
                    self.make_optional(o.dst(), Some(self.get(o.src())), setting, world)
                }
                Decoded::CelNone(o) => self.make_optional(o.dst(), None, setting, world),
                Decoded::CelUnary(o) => {
                    let arguments = [self.get(o.src())];
                    self.cel_call(o.dst(), o.function(), &arguments, setting, world)
                }
                Decoded::CelBinary(o) => {
                    let arguments = [self.get(o.left()), self.get(o.right())];
                    look_or!(
                        self.cel_predicate(o.dst(), o.function(), arguments, view),
                        self.cel_call(o.dst(), o.function(), &arguments, setting, world)
                    )
                }
                Decoded::CelCall(o) => {
                    self.cel_call_with_list(o.dst(), o.list(), o.function(), setting, world)
                }
                Decoded::CelRange(o) => {
                    let source = self.get(o.src());
                    if o.over() == RangeOver::Items && is_list(view, source) {
                        self.put(o.dst(), source);
                        continue;
                    }
                    self.make_range(o.dst(), source, o.over(), setting, world)
                }
                Decoded::CelMapEnd(o) => {
                    self.end_cel_map(o.dst(), o.list(), o.joined(), setting, world)
                }
                Decoded::CelMapExtend(o) => {
                    self.extend_with_members(o.list(), self.get(o.src()), setting, world)
                }
                Decoded::CelPushOptional(o) => {
                    self.push_optional(o.list(), self.get(o.src()), setting, world)
                }
                Decoded::CelRequireBool(o) => {
                    look!(self.require_bool(self.get(o.src()), view))
                }
                Decoded::CelTest(o) => test!(view.bool(self.get(o.src())) == Some(true)),
                Decoded::CelCatch(o) => {
                    if is_error(view, self.get(o.dst())) {
                        continue;
                    }
                    self.catch_error(o.dst(), setting, world)
                }
                Decoded::CelRaise(o) => {
                    let value = self.get(o.src());
                    if view.extended(value).is_none() {
                        continue;
                    }
                    look!(self.raise(value, view))
                }
                Decoded::CelRaiseAll(o) => self.raise_all(o.list(), o.form(), setting, world),
                Decoded::CelBegin(o) => {
                    self.begin_expression(o.text(), setting.limits.cel_fuel);
                    continue;
                }
                Decoded::CelRoot(o) => look_or!(
                    self.known_root(o.dst(), o.root(), scene.request),
                    self.make_root(o.dst(), o.root(), setting, world)
                ),
                Decoded::CelVariable(o) => look_or!(
                    self.known_cel_variable(o.dst(), o.entry(), &scene),
                    self.cel_variable(o.dst(), o.entry(), setting, world)
                ),
                Decoded::CelParams(o) => {
                    self.collect_params(o.dst(), self.get(o.src()), o.whose(), setting, world)
                }
                Decoded::CelBindParams(o) => {
                    self.bind_params(self.get(o.src()));
                    Flow::Next
                }
                Decoded::ReturnErrorText(_) => {
                    self.show_failure();
                    Flow::End(Ending::CelError)
                }
                Decoded::ReturnFailText(o) => Flow::End(Ending::FailText(o.text())),
                Decoded::ReturnFailError(_) => {
                    self.show_failure();
                    Flow::End(Ending::FailError)
                }
                Decoded::ReturnFailValue(o) => {
                    let value = self.get(o.src());
                    match is_message(&setting.view(world), value, o.form()) {
                        true => Flow::End(Ending::FailValue(value)),
                        false => Flow::Next,
                    }
                }

                Decoded::MatchKinds(o) => {
                    test!(matching::kinds_match(
                        o.kinds(),
                        scene.tables,
                        scene.request
                    ))
                }
                Decoded::MatchOperations(o) => {
                    test!(o.operations().has(scene.request.operation))
                }
                Decoded::MatchNames(o) => test!(matching::wildcard_list_matches(
                    o.names(),
                    scene.subject.matched_name,
                    scene.tables
                )),
                Decoded::MatchNamespaces(o) => {
                    test!(matching::wildcard_list_matches(
                        o.namespaces(),
                        scene.subject.matched_namespace(),
                        scene.tables
                    ))
                }
                Decoded::MatchAnnotations(o) => {
                    test!(matching::annotations_match(o.annotations(), &scene))
                }
                Decoded::MatchSelector(o) => {
                    test!(matching::labels_match(o.selector(), &scene))
                }
                Decoded::MatchNamespaceSelector(o) => test!(matching::namespace_matches(
                    o.selection(),
                    o.selector(),
                    &scene
                )),
                Decoded::MatchRoles(o) => test!(matching::has_role(o.roles(), &scene)),
                Decoded::MatchClusterRoles(o) => {
                    test!(matching::has_cluster_role(o.roles(), &scene))
                }
                Decoded::MatchSubjects(o) => {
                    test!(matching::is_subject(o.subjects(), &scene))
                }
                Decoded::JumpIfNoUser(_) => test!(scene.request.user.is_some()),
                Decoded::MatchApiGroups(o) => {
                    let group = scene.request.group;
                    test!(resource_matching::lists(o.groups(), group, scene.tables))
                }
                Decoded::MatchApiVersions(o) => {
                    let version = scene.request.version;
                    test!(resource_matching::lists(
                        o.versions(),
                        version,
                        scene.tables
                    ))
                }
                Decoded::MatchResources(o) => {
                    test!(resource_matching::resource_matches(o.resources(), &scene))
                }
                Decoded::MatchResourceNames(o) => {
                    test!(resource_matching::name_matches(o.names(), &scene))
                }
                Decoded::MatchScope(o) => {
                    test!(resource_matching::scope_matches(o.scope(), &scene))
                }
                Decoded::MatchObjectLabels(o) => test!(resource_matching::labels_match(
                    o.absent(),
                    o.selector(),
                    &scene
                )),
                Decoded::MatchNamespaceLabels(o) => {
                    test!(resource_matching::namespace_matches(o.selector(), &scene))
                }
                Decoded::ReturnMatched(_) => return Ending::Matched,
                Decoded::ReturnUnmatched(_) => return Ending::Unmatched,
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
