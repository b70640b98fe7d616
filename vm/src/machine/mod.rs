//! The interpreter: runs one block of a verified bundle over one subject.
//!
//! The same code runs in three ways. *Checking* finds out whether the block passes and
//! allocates nothing. *Explaining* runs it again after it did not pass and keeps the
//! text, path and place of the error along the way. *Tracing* checks, and tells an
//! observer of every test. Each is compiled separately ([`Mode`]), so that checking
//! pays nothing for the others.

mod assertion;
mod cel;
mod cel_params;
mod cel_request;
mod context;
mod dynamic;
mod explain;
mod finding;
mod leaf;
mod matching;
mod resource_matching;
mod shape;
mod tags;
mod trace;
mod value;

use kpvm_format::Tables;
use kpvm_format::instruction::{Instruction, Op};
use kpvm_format::site::InstructionId;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::NONE;

use std::collections::HashMap;

use crate::document::{DocumentBuffer, NodeId, Texts, View};
use crate::engine::observer::Observer;
use crate::function::RegexCache;
use crate::host::Host;
use kpvm_semantics::limits::Limits;

pub(crate) use assertion::FailedAssertion;
pub(crate) use explain::{Explanation, is_secret_path, render_go_value};
pub(crate) use finding::{Findings, Shown};
pub(crate) use leaf::{leaf_holds, leaf_of_scalar_holds, scalar_of};
pub(crate) use matching::{
    RequestFacts, SelectorLabels, Subject, kinds_match, selector_matches, wildcard_list_matches,
};
pub(crate) use value::NotedMessage;

/// The nodes that every evaluation's buffer begins with.
pub(crate) const NULL: NodeId = NodeId(0);
/// `false`
pub(crate) const FALSE: NodeId = NodeId(1);
/// `true`
pub(crate) const TRUE: NodeId = NodeId(2);

/// Kind of the error that a check ended with; typed here, found by searching texts in
/// Kyverno (docs/spec/patterns.md §3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// An ordinary mismatch.
    Plain,
    /// A key under a negation anchor is there.
    Negation,
    /// A conditional anchor does not apply.
    Conditional,
    /// A global anchor does not apply.
    Global,
    /// Collected skips of siblings or items.
    MultiSkip,
}

impl ErrorKind {
    /// Whether the error means "not applicable".
    pub(crate) fn is_skip(self) -> bool {
        match self {
            ErrorKind::Plain | ErrorKind::Negation => false,
            ErrorKind::Conditional | ErrorKind::Global | ErrorKind::MultiSkip => true,
        }
    }
}

/// Blocks that may wait for one another.
pub(crate) const MAX_NESTED_BLOCKS: usize = 64;

/// How a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The rule passes.
    Pass,
    /// The rule passes by the alternative of that number.
    Alternative(u32),
    /// The pattern's error of that kind decides.
    Error { kind: ErrorKind, depth: u8 },
    /// No alternative held; whether one failed rather than skipped.
    AlternativesFailed { any_failed: bool, depth: u8 },
    /// The rule denies.
    Deny { depth: u8 },
    /// The conditions hold.
    True,
    /// The conditions do not hold.
    False,
    /// The block's value.
    Value(NodeId),
    /// Evaluating failed; the machine has the text. `depth` counts the foreach loops
    /// around what failed.
    Failed { depth: u8 },
    /// Some element of a foreach passed and none failed.
    ForeachPassed,
    /// There is no answer.
    Nothing,
    /// The findings decide, at the instruction of that number.
    Findings { instruction: InstructionId },
    /// Assertions failed; the machine has them.
    Assertions,
    /// Status (0 pass, 1 error) and number of a text known at compile time.
    Text { status: u8, text: u32 },
    /// A CEL expression does not hold; the message is a text known at compile time.
    FailText(u32),
    /// A CEL expression failed; the machine has the message.
    FailError,
    /// A CEL rule that cannot be evaluated; the text is that of the error.
    CelError,
    /// A CEL expression does not hold; the message is a value.
    FailValue(NodeId),
    /// The rule applies to the resource.
    Matched,
    /// It does not.
    Unmatched,
    /// The block used up its fuel.
    OutOfFuel,
}

/// State of a loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoopState {
    next: u32,
    end: u32,
    index: u32,
}

impl LoopState {
    /// Number of the item that the loop is at.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The item that the loop is at.
    pub(crate) fn item(&self) -> NodeId {
        NodeId(self.next.wrapping_sub(1))
    }
}

/// State of a fold (docs/spec/patterns.md §3.2 and 3.4).
#[derive(Debug, Clone, Copy, Default)]
struct FoldState {
    applied: bool,
    skipped: bool,
    /// A skip that is no multiskip: a sibling decided that the map does not apply.
    direct: bool,
}

/// A value found at a static path, valid for one subject.
#[derive(Debug, Clone, Copy)]
struct CachedPath {
    stamp: u32,
    node: NodeId,
}

/// What one block's run works on.
#[derive(Debug)]
struct Frame {
    registers: [NodeId; 256],
    loops: [LoopState; kpvm_format::MAX_LOOP_DEPTH],
    folds: [FoldState; 256],
    lists: Vec<Vec<NodeId>>,
    texts: Vec<String>,
    /// The entry that is loaded.
    loading: Option<u32>,
    /// A loader ran inside, for the query at hand or one before.
    has_loaded: bool,
    /// One ran for a query before: entries behind the one that is loaded are seen now.
    lifted: bool,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            registers: [NodeId::MISSING; 256],
            loops: [LoopState::default(); kpvm_format::MAX_LOOP_DEPTH],
            folds: [FoldState::default(); 256],
            lists: Vec::new(),
            texts: Vec::new(),
            loading: None,
            has_loaded: false,
            lifted: false,
        }
    }
}

/// Everything that running needs and that is kept between runs, so that the steady
/// state allocates nothing.
pub(crate) struct Machine {
    frame: Box<Frame>,
    /// Frames of blocks that wait for a loader.
    #[expect(
        clippy::vec_box,
        reason = "frames are swapped: two kilobytes stay where they are"
    )]
    suspended: Vec<Box<Frame>>,
    #[expect(
        clippy::vec_box,
        reason = "frames are swapped: two kilobytes stay where they are"
    )]
    spare_frames: Vec<Box<Frame>>,
    paths: Vec<CachedPath>,
    stamp: u32,
    error: ErrorKind,
    any_alternative_failed: bool,
    tags: tags::ExpandedTags,
    /// What the last test of labels or annotations looked at, in a tracing run.
    seen_tags: Vec<trace::SeenTag>,
    /// Number of the evaluation; what carries another number is of an earlier one.
    evaluation: u64,
    /// Number of the rule's run, likewise.
    rule: u64,
    constants: Vec<(u64, NodeId)>,
    variables: Vec<(u64, NodeId)>,
    entries: Vec<(u64, value::EntryState)>,
    base: Option<NodeId>,
    images: Option<Result<Option<NodeId>, String>>,
    fetched: HashMap<String, Result<Option<NodeId>, String>>,
    cel: cel::CelState,
    regexes: RegexCache,
    foreach: value::ForeachState,
    outer_foreach: Vec<value::ForeachState>,
    failure: value::Failure,
    /// Text of the last failure.
    pub(crate) failure_text: String,
    /// Messages of conditions that came out as wanted.
    pub(crate) messages: Vec<NotedMessage>,
    /// What checks found.
    pub(crate) findings: Findings,
    /// The assertions that failed.
    pub(crate) failures: Vec<FailedAssertion>,
    /// Steps left for the rule that runs.
    pub(crate) fuel: u64,
    /// The instruction that a value's computation ended the block with.
    pub(crate) ended_at: InstructionId,
    /// What the last explaining run found.
    pub(crate) explanation: Explanation,
}

/// What a run may change: the values of the evaluation, and the world outside.
pub(crate) struct World<'w> {
    /// The documents and everything computed.
    pub(crate) buffer: &'w mut DocumentBuffer,
    /// Who answers what cannot be computed.
    pub(crate) host: &'w mut dyn Host,
    /// Who hears of what is done.
    pub(crate) observer: Option<&'w mut dyn Observer>,
}

/// What a run is about.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'s> {
    /// The bundle.
    pub(crate) tables: &'s Tables<'s>,
    /// The texts that values point into.
    pub(crate) texts: Texts<'s>,
    /// The object in question.
    pub(crate) subject: &'s Subject<'s>,
    /// The request around it.
    pub(crate) request: &'s RequestFacts<'s>,
    /// The limits.
    pub(crate) limits: &'s Limits,
    /// Whether the request deletes the object.
    pub(crate) is_delete: bool,
    /// The variables of the rule.
    pub(crate) rule_slots: kpvm_format::table::Range,
    /// The context entries of the rule.
    pub(crate) rule_entries: kpvm_format::table::Range,
    /// Namespace of the policy; empty for a cluster policy.
    pub(crate) policy_namespace: &'s str,
    /// Whether expressions known only at run time are evaluated.
    pub(crate) runtime_expressions: bool,
}

impl<'s> Setting<'s> {
    fn view<'v>(&self, world: &'v World<'_>) -> View<'v>
    where
        's: 'v,
    {
        world.buffer.view(self.texts, self.tables.symbols)
    }

    fn scene<'v>(&self, world: &'v World<'_>) -> Scene<'v>
    where
        's: 'v,
    {
        Scene {
            tables: self.tables,
            view: self.view(world),
            subject: self.subject,
            request: self.request,
        }
    }
}

/// What a check looks at.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'s> {
    /// The bundle.
    pub(crate) tables: &'s Tables<'s>,
    /// The documents.
    pub(crate) view: View<'s>,
    /// The object in question.
    pub(crate) subject: &'s Subject<'s>,
    /// The request around it.
    pub(crate) request: &'s RequestFacts<'s>,
}

/// What a run does beside finding out how the block ends.
trait Mode {
    /// It keeps texts and paths.
    const EXPLAIN: bool;
    /// It tells the observer.
    const TRACE: bool;
}

struct Checking;
struct Explaining;
struct Tracing;

impl Mode for Checking {
    const EXPLAIN: bool = false;
    const TRACE: bool = false;
}

impl Mode for Explaining {
    const EXPLAIN: bool = true;
    const TRACE: bool = false;
}

impl Mode for Tracing {
    const EXPLAIN: bool = false;
    const TRACE: bool = true;
}

impl Machine {
    /// A machine for a bundle.
    pub(crate) fn new(tables: &Tables<'_>) -> Self {
        Self {
            frame: Box::default(),
            suspended: Vec::new(),
            spare_frames: Vec::new(),
            paths: vec![
                CachedPath {
                    stamp: 0,
                    node: NodeId::MISSING
                };
                tables.paths.len()
            ],
            stamp: 0,
            error: ErrorKind::Plain,
            any_alternative_failed: false,
            tags: tags::ExpandedTags::default(),
            seen_tags: Vec::new(),
            evaluation: 0,
            rule: 0,
            constants: vec![(0, NodeId::MISSING); tables.constants.len()],
            variables: vec![(0, NodeId::MISSING); tables.slots.len()],
            entries: vec![(0, value::EntryState::Inactive); tables.entries.len()],
            base: None,
            images: None,
            fetched: HashMap::new(),
            cel: cel::CelState::default(),
            regexes: RegexCache::default(),
            foreach: value::ForeachState::default(),
            outer_foreach: Vec::new(),
            failure: value::Failure::default(),
            failure_text: String::new(),
            messages: Vec::new(),
            findings: Findings::default(),
            failures: Vec::new(),
            fuel: 0,
            ended_at: InstructionId::NONE,
            explanation: Explanation::default(),
        }
    }

    /// Forgets what belongs to the evaluation before.
    pub(crate) fn begin_evaluation(&mut self) {
        self.evaluation += 1;
        self.base = None;
        self.images = None;
        self.fetched.clear();
        self.begin_cel();
    }

    /// Forgets what was found at static paths: another subject is looked at.
    pub(crate) fn change_subject(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.paths.fill(CachedPath {
                stamp: 0,
                node: NodeId::MISSING,
            });
            self.stamp = 1;
        }
    }

    /// Forgets the request's context: it is another one from now on.
    pub(crate) fn change_context(&mut self) {
        self.base = None;
        self.images = None;
        self.begin_cel();
    }

    /// Makes a value the context of an evaluation that is about no request.
    pub(crate) fn set_base(&mut self, base: NodeId) {
        self.base = Some(base);
    }

    /// Forgets expanded keys and variables: another rule (but not the same rule's run
    /// over the old object) begins.
    pub(crate) fn begin_rule(&mut self) {
        self.tags.clear();
        self.rule += 1;
        self.messages.clear();
    }

    /// Runs a block for its outcome alone.
    pub(crate) fn check(
        &mut self,
        block: u32,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Ending {
        self.run::<Checking>(block, setting, world)
    }

    /// Runs a block for its outcome and tells the observer of everything on the way.
    pub(crate) fn trace(
        &mut self,
        block: u32,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Ending {
        self.run::<Tracing>(block, setting, world)
    }

    /// Runs a block that did not pass again, for [`Machine::explanation`].
    pub(crate) fn explain(
        &mut self,
        block: u32,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Ending {
        self.explanation.clear();
        self.run::<Explaining>(block, setting, world)
    }

    fn run<M: Mode>(&mut self, block: u32, setting: Setting<'_>, world: &mut World<'_>) -> Ending {
        self.any_alternative_failed = false;
        self.foreach = value::ForeachState::default();
        self.outer_foreach.clear();
        self.failures.clear();
        let ending = self.run_block::<M>(block, setting.subject.root, setting, world);
        self.end_expressions(ending)
    }

    /// Runs a block over a value while the one that asks for it waits; `None` where too
    /// many wait already.
    fn run_inside(
        &mut self,
        block: u32,
        subject: NodeId,
        loading: Option<u32>,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Option<Ending> {
        if self.suspended.len() >= MAX_NESTED_BLOCKS {
            return None;
        }
        let inner = self.spare_frames.pop().unwrap_or_default();
        self.suspended
            .push(std::mem::replace(&mut self.frame, inner));
        self.frame.loading = loading;
        let ending = self.run_block::<Checking>(block, subject, setting, world);
        self.frame.loading = None;
        if let Some(outer) = self.suspended.pop() {
            self.spare_frames
                .push(std::mem::replace(&mut self.frame, outer));
        }
        Some(ending)
    }

    fn run_block<M: Mode>(
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
        let registers = usize::from(block.registers.get()).min(self.frame.registers.len());
        self.frame.registers[..registers].fill(NodeId::MISSING);
        self.frame.registers[0] = subject;
        self.frame.has_loaded = false;
        self.frame.lifted = false;
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
        // Tells what came of the instruction at hand; the last that it does.
        macro_rules! report {
            ($op:ident, $instruction:ident, $held:expr) => {
                if M::TRACE {
                    let number = instruction_before(block, position);
                    self.report($op, $instruction, number, $held, setting, world);
                    scene = setting.scene(world);
                }
            };
        }
        // INVARIANT: the verifier checked every operand; what is out of range anyway
        // ends the run as if it had run out of fuel.
        while let Some(instruction) = code.get(position) {
            let Some(op) = Op::decode(instruction.op) else {
                break;
            };
            if self.fuel == 0 {
                break;
            }
            self.fuel -= 1;
            let view = &scene.view;
            let (a, b, c) = (instruction.a, instruction.b, instruction.c.get());
            let target = instruction.d.get() as usize;
            let value = self.frame.registers[usize::from(a)];
            position += 1;
            // What a check fails with; `None` when it holds.
            let failure = match op {
                Op::LoadPath => {
                    self.frame.registers[usize::from(a)] = self.load_path(c, &scene);
                    continue;
                }
                Op::LoadField => {
                    let source = self.frame.registers[usize::from(b)];
                    self.frame.registers[usize::from(a)] = view.get(source, SymbolId(c));
                    continue;
                }
                Op::LoadIndex => {
                    let source = self.frame.registers[usize::from(b)];
                    self.frame.registers[usize::from(a)] = view.children(source).at(c as usize);
                    continue;
                }
                Op::Jump => {
                    position = target;
                    continue;
                }
                Op::JumpIfMissing => {
                    report!(op, instruction, !value.is_missing());
                    if value.is_missing() {
                        position = target;
                    }
                    continue;
                }
                Op::RequireMap => (!is_map(view, value)).then_some(ErrorKind::Plain),
                Op::RequireList | Op::RequireExistenceList => {
                    (!is_list(view, value)).then_some(ErrorKind::Plain)
                }
                Op::RequirePresent => is_null(view, value).then_some(ErrorKind::Plain),
                Op::RequireLength => (view.len(value) < c as usize).then_some(ErrorKind::Plain),
                Op::TestLeaf => (!leaf::holds(c, value, &scene)).then_some(ErrorKind::Plain),
                Op::FailEmptyPattern | Op::FailExistence | Op::FailExistencePattern => {
                    Some(ErrorKind::Plain)
                }
                Op::FailNegation => Some(ErrorKind::Negation),
                Op::FailConditional => Some(ErrorKind::Conditional),
                Op::WrapConditional => {
                    self.error = ErrorKind::Conditional;
                    if M::EXPLAIN {
                        self.explanation.wrap("conditional anchor mismatch: ");
                    }
                    report!(op, instruction, false);
                    position = target;
                    continue;
                }
                Op::WrapGlobal => {
                    self.error = ErrorKind::Global;
                    if M::EXPLAIN {
                        self.explanation.wrap("global anchor mismatch: ");
                    }
                    report!(op, instruction, false);
                    position = target;
                    continue;
                }
                Op::RecordAnchor => {
                    if M::EXPLAIN {
                        let present = !view.get(value, SymbolId(c)).is_missing();
                        let text = scene
                            .tables
                            .texts
                            .get(target)
                            .map_or("", |&text| scene.tables.text(text));
                        self.explanation.record_anchor(text, present);
                    }
                    continue;
                }
                Op::ExpandTags => {
                    self.tags.expand(c, value, scene);
                    continue;
                }
                Op::TestTags => {
                    let number = instruction_before(block, position);
                    let failure = self.test_tags::<M>(c, value, number, scene);
                    report!(op, instruction, failure.is_none());
                    if let Some(kind) = failure {
                        self.error = kind;
                        position = target;
                    }
                    continue;
                }
                Op::FoldBegin => {
                    self.frame.folds[usize::from(a)] = FoldState::default();
                    if M::EXPLAIN {
                        self.explanation.begin_fold(a);
                    }
                    continue;
                }
                Op::FoldApplied => {
                    self.frame.folds[usize::from(a)].applied = true;
                    continue;
                }
                Op::FoldKeyError | Op::FoldItemError => {
                    if !self.fold_error::<M>(a, op == Op::FoldKeyError) {
                        position = target;
                    }
                    continue;
                }
                Op::FoldKeysEnd | Op::FoldItemsEnd => {
                    let fold = self.frame.folds[usize::from(a)];
                    let direct = op == Op::FoldKeysEnd && fold.direct;
                    if fold.skipped && (!fold.applied || direct) {
                        self.error = ErrorKind::MultiSkip;
                        if M::EXPLAIN {
                            self.explanation.end_fold(a);
                        }
                        position = target;
                    }
                    continue;
                }
                Op::LoopBegin => {
                    let list = view.children(self.frame.registers[usize::from(b)]);
                    let Some(state) = self.frame.loops.get_mut(usize::from(a)) else {
                        break;
                    };
                    let item = list.at(0);
                    *state = LoopState {
                        next: item.0.wrapping_add(1),
                        end: item.0.wrapping_add(list.len() as u32),
                        index: 0,
                    };
                    if !item.is_missing() {
                        self.frame.registers[usize::from(instruction.e)] = item;
                    }
                    report!(op, instruction, !item.is_missing());
                    if item.is_missing() {
                        position = target;
                    }
                    continue;
                }
                Op::LoopNext => {
                    let Some(state) = self.frame.loops.get_mut(usize::from(a)) else {
                        break;
                    };
                    let has_next = state.next < state.end;
                    if has_next {
                        self.frame.registers[usize::from(instruction.e)] = NodeId(state.next);
                        state.next += 1;
                        state.index += 1;
                    }
                    report!(op, instruction, !has_next);
                    if has_next {
                        position = target;
                    }
                    continue;
                }
                Op::AlternativeFailed | Op::AlternativeFailedAt => {
                    self.any_alternative_failed |= !self.error.is_skip();
                    if M::EXPLAIN {
                        let index = if op == Op::AlternativeFailed {
                            c
                        } else {
                            self.loop_index(a)
                        };
                        self.explanation.alternative_failed(
                            index,
                            self.error,
                            scene.subject.rule_name,
                        );
                    }
                    report!(op, instruction, false);
                    continue;
                }
                Op::ReturnAlternativeAt => return Ending::Alternative(self.loop_index(a)),
                Op::ReturnPass => return Ending::Pass,
                Op::ReturnAlternative => return Ending::Alternative(c),
                Op::ReturnError => {
                    return Ending::Error {
                        kind: self.error,
                        depth: b,
                    };
                }
                Op::ReturnAlternativesFailed => {
                    return Ending::AlternativesFailed {
                        any_failed: self.any_alternative_failed,
                        depth: b,
                    };
                }
                Op::ReturnDeny => return Ending::Deny { depth: b },
                Op::ReturnFindings if self.findings.is_empty() => return Ending::Pass,
                Op::ReturnFindings => {
                    return Ending::Findings {
                        instruction: instruction_before(block, position),
                    };
                }
                Op::AssertValue
                | Op::NoteFailure
                | Op::ReturnUnassertable
                | Op::ReturnAssertion => {
                    let noted = self.failures.len();
                    let index = instruction_before(block, position);
                    let flow = self.assert(op, instruction, index, setting, world);
                    scene = setting.scene(world);
                    let goes_on = matches!(flow, value::Flow::Next);
                    report!(op, instruction, goes_on && noted == self.failures.len());
                    if let value::Flow::End(ending) = flow {
                        return ending;
                    }
                    continue;
                }
                Op::ReturnText => return Ending::Text { status: b, text: c },
                Op::ReturnMatched => return Ending::Matched,
                Op::ReturnUnmatched => return Ending::Unmatched,
                Op::MatchKinds
                | Op::MatchOperations
                | Op::MatchNames
                | Op::MatchNamespaces
                | Op::MatchAnnotations
                | Op::MatchSelector
                | Op::MatchNamespaceSelector
                | Op::MatchRoles
                | Op::MatchClusterRoles
                | Op::MatchSubjects
                | Op::JumpIfNoUser => {
                    let holds = matching::holds(op, b, c, &scene);
                    report!(op, instruction, holds);
                    if !holds {
                        position = target;
                    }
                    continue;
                }
                Op::MatchApiGroups
                | Op::MatchApiVersions
                | Op::MatchResources
                | Op::MatchResourceNames
                | Op::MatchScope
                | Op::MatchObjectLabels
                | Op::MatchNamespaceLabels => {
                    let holds = resource_matching::holds(op, b, c, &scene);
                    report!(op, instruction, holds);
                    if !holds {
                        position = target;
                    }
                    continue;
                }
                Op::CelTest => {
                    let holds = view.bool(value) == Some(true);
                    report!(op, instruction, holds);
                    if !holds {
                        position = target;
                    }
                    continue;
                }
                Op::CelIfHas | Op::CelIfFind | Op::CelIfCompare | Op::CelIf => {
                    let (tested, when) = match op {
                        Op::CelIfHas => (self.cel_has(instruction, &scene), instruction.e != 0),
                        Op::CelIfFind => (self.cel_find(instruction, &scene), false),
                        Op::CelIfCompare => (self.cel_compare(instruction, &scene), b & 1 != 0),
                        _ => (self.cel_truth(instruction, &scene), b != 0),
                    };
                    match tested {
                        Ok(holds) if holds == when => position = target,
                        // Over the `CelOnError` behind it.
                        Ok(_) => position += 1,
                        Err(cel::Tested::Failed) => {}
                        Err(cel::Tested::Ends(ending)) => return ending,
                        Err(cel::Tested::Makes) => {
                            let flow = self.cel_compute(op, instruction, setting, world);
                            scene = setting.scene(world);
                            match flow {
                                value::Flow::Next if when => position = target,
                                value::Flow::Next => position += 1,
                                value::Flow::Jump => {}
                                value::Flow::End(ending) => return ending,
                            }
                        }
                    }
                    continue;
                }
                Op::CelOnError => {
                    position = target;
                    continue;
                }
                Op::CelBegin => {
                    self.begin_expression(c, setting.limits.cel_fuel);
                    continue;
                }
                // What most expressions consist of, as long as nothing has to be made and
                // nothing is missing; `look` and `compute` do the rest.
                Op::CelSelect
                    if self.holds(
                        a,
                        view.get(self.frame.registers[usize::from(b)], SymbolId(c)),
                    ) =>
                {
                    continue;
                }
                Op::CelPath if self.finds_path(a, c, &scene) => continue,
                Op::LoadConstant if self.holds(a, self.known_constant(c)) => continue,
                Op::CelRange
                    if instruction.e == 0
                        && is_list(view, self.frame.registers[usize::from(b)]) =>
                {
                    self.frame.registers[usize::from(a)] = self.frame.registers[usize::from(b)];
                    continue;
                }
                Op::CelRaise if view.extended(value).is_none() => continue,
                Op::Move => {
                    self.frame.registers[usize::from(a)] = self.frame.registers[usize::from(b)];
                    continue;
                }
                Op::TestValue => {
                    let pattern = self.frame.registers[usize::from(b)];
                    let number = instruction_before(block, position);
                    let failure = self.test_value::<M>(c != 0, value, pattern, number, scene);
                    report!(op, instruction, failure.is_none());
                    if let Some(kind) = failure {
                        self.error = kind;
                        position = target;
                    }
                    continue;
                }
                Op::BeginPattern => {
                    self.tags.clear();
                    self.any_alternative_failed = false;
                    if M::EXPLAIN {
                        self.explanation.begin_pattern();
                    }
                    continue;
                }
                Op::JumpIfSkip => {
                    if self.error.is_skip() {
                        position = target;
                    }
                    continue;
                }
                Op::JumpIfAllSkipped => {
                    if !self.any_alternative_failed {
                        position = target;
                    }
                    continue;
                }
                _ => {
                    if let Some(flow) = self.look(op, instruction, &scene) {
                        match flow {
                            value::Flow::Next => {}
                            value::Flow::Jump => position = target,
                            value::Flow::End(ending) => return ending,
                        }
                        continue;
                    }
                    let flow = self.compute(op, instruction, setting, world);
                    // Values may have been added.
                    scene = setting.scene(world);
                    match flow {
                        value::Flow::Next => report!(op, instruction, true),
                        value::Flow::Jump => {
                            report!(op, instruction, false);
                            position = target;
                        }
                        value::Flow::End(ending) => {
                            self.ended_at = instruction_before(block, position);
                            return ending;
                        }
                    }
                    continue;
                }
            };
            if let Some(kind) = failure {
                self.error = kind;
                if M::EXPLAIN {
                    let index = instruction_before(block, position);
                    self.explain_failure(op, instruction, value, index, scene);
                }
            }
            report!(op, instruction, failure.is_none());
            if failure.is_some() {
                position = target;
            }
        }
        Ending::OutOfFuel
    }

    /// Puts what was found into a register; whether anything was.
    #[inline]
    fn holds(&mut self, register: u8, found: NodeId) -> bool {
        if found.is_missing() {
            return false;
        }
        self.frame.registers[usize::from(register)] = found;
        true
    }

    fn loop_index(&self, slot: u8) -> u32 {
        self.frame
            .loops
            .get(usize::from(slot))
            .map_or(0, |state| state.index)
    }

    /// The item that a loop is at.
    fn loop_item(&self, slot: u8) -> NodeId {
        let state = self.frame.loops.get(usize::from(slot));
        state.map_or(NodeId::MISSING, LoopState::item)
    }

    /// The value at a static path, found once for each subject.
    #[inline]
    fn load_path(&mut self, path: u32, scene: &Scene<'_>) -> NodeId {
        match self.paths.get(path as usize) {
            Some(cached) if cached.stamp == self.stamp => cached.node,
            _ => self.find_path(path, scene),
        }
    }

    fn find_path(&mut self, path: u32, scene: &Scene<'_>) -> NodeId {
        let Some(entry) = scene.tables.paths.get(path as usize) else {
            return NodeId::MISSING;
        };
        // INVARIANT: parents have smaller numbers and the verifier bounds the depth.
        let parent = match entry.parent.get() {
            NONE => scene.subject.root,
            parent => self.load_path(parent, scene),
        };
        let node = scene.view.get(parent, SymbolId(entry.symbol.get()));
        if let Some(slot) = self.paths.get_mut(path as usize) {
            *slot = CachedPath {
                stamp: self.stamp,
                node,
            };
        }
        node
    }

    /// Takes an error into a fold; whether the fold goes on.
    fn fold_error<M: Mode>(&mut self, slot: u8, of_keys: bool) -> bool {
        let fold = &mut self.frame.folds[usize::from(slot)];
        if self.error.is_skip() {
            fold.skipped = true;
            fold.direct |= self.error != ErrorKind::MultiSkip;
            if M::EXPLAIN {
                self.explanation.collect(slot);
            }
            return true;
        }
        // A sibling has decided already that the map does not apply.
        of_keys && fold.direct
    }
}

fn is_map(view: &View<'_>, node: NodeId) -> bool {
    view.kind(node) == Some(crate::document::Kind::Map)
}

fn is_list(view: &View<'_>, node: NodeId) -> bool {
    view.kind(node) == Some(crate::document::Kind::List)
}

/// Whether the value is missing or null.
fn is_null(view: &View<'_>, node: NodeId) -> bool {
    matches!(view.kind(node), None | Some(crate::document::Kind::Null))
}

/// The instruction of a block that was fetched when `next` became the position.
fn instruction_before(block: u32, next: usize) -> InstructionId {
    InstructionId {
        block,
        position: next as u32 - 1,
    }
}
