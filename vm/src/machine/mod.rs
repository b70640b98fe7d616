//! The interpreter: runs one block of a verified bundle over one subject.
//!
//! The same code runs in three ways. *Checking* finds out whether the block passes and
//! allocates nothing. *Explaining* runs it again after it did not pass and keeps the
//! text, path and place of the error along the way. *Tracing* checks, and tells an
//! observer of every test. Each is compiled separately ([`Mode`]), so that checking
//! pays nothing for the others.

// Methods are named after the operations that they handle.
#![allow(clippy::wrong_self_convention)]

mod assertion;
mod cel;
mod cel_params;
mod cel_request;
mod checks;
mod constant;
mod context;
mod dynamic;
mod entry;
mod execute;
mod explain;
mod expression;
mod failure;
mod finding;
mod foreach;
mod known_sites;
mod leaf;
mod matching;
mod pattern;
mod resource_matching;
mod runtime_expression;
mod shape;
mod tags;
mod text;
mod trace;
mod variable;

use kpvm_format::Tables;
use kpvm_format::instruction::immediate::{ForeachDepth, ReturnStatus};
use kpvm_format::instruction::{EntryId, RegisterId, TextId};
use kpvm_format::site::InstructionId;
use kpvm_format::table::Block;

use std::collections::HashMap;

use crate::document::{DocumentBuffer, NodeId, Texts, View};
use crate::engine::observer::Observer;
use crate::function::{RegexCache, Values};
use crate::host::Host;
use failure::Flow;
use kpvm_semantics::limits::Limits;
use pattern::{CachedPath, FoldState};

pub(crate) use assertion::FailedAssertion;
pub(crate) use explain::{Explanation, is_secret_path, render_go_value};
pub(crate) use expression::NotedMessage;
pub(crate) use finding::{Findings, Shown};
pub(crate) use leaf::{leaf_holds, leaf_of_scalar_holds, scalar_of};
pub(crate) use matching::{
    RequestFacts, SelectorLabels, Subject, kinds_match, selector_matches, wildcard_list_matches,
};
pub(crate) use pattern::LoopState;

/// The nodes that every evaluation's buffer begins with.
pub(crate) const NULL: NodeId = NodeId(0);
/// `false`
pub(crate) const FALSE: NodeId = NodeId(1);
/// `true`
pub(crate) const TRUE: NodeId = NodeId(2);

/// The register of the value that a block runs over.
const SUBJECT: RegisterId = RegisterId(0);

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
    Error {
        kind: ErrorKind,
        depth: ForeachDepth,
    },
    /// No alternative held; whether one failed rather than skipped.
    AlternativesFailed {
        any_failed: bool,
        depth: ForeachDepth,
    },
    /// The rule denies.
    Deny { depth: ForeachDepth },
    /// The conditions hold.
    True,
    /// The conditions do not hold.
    False,
    /// The block's value.
    Value(NodeId),
    /// Evaluating failed; the machine has the text. `depth` counts the foreach loops
    /// around what failed.
    Failed { depth: ForeachDepth },
    /// Some element of a foreach passed and none failed.
    ForeachPassed,
    /// There is no answer.
    Nothing,
    /// The findings decide, at the instruction of that number.
    Findings { instruction: InstructionId },
    /// Assertions failed; the machine has them.
    Assertions,
    /// A status, with a text known at compile time.
    Text { status: ReturnStatus, text: TextId },
    /// A CEL expression does not hold; the message is a text known at compile time.
    FailText(TextId),
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

/// What one block's run works on.
#[derive(Debug)]
struct Frame {
    registers: [NodeId; 256],
    loops: [LoopState; kpvm_format::MAX_LOOP_DEPTH],
    folds: [FoldState; 256],
    lists: Vec<Vec<NodeId>>,
    texts: Vec<String>,
    /// The entry that is loaded.
    loading: Option<EntryId>,
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

impl Frame {
    /// Begins a block: whatever it can read of its frame is empty, even if its code does not
    /// write first, as a bundle made by a stranger may not.
    fn begin(&mut self, block: &Block, subject: NodeId) {
        let registers = usize::from(block.registers.get()).min(self.registers.len());
        self.registers[..registers].fill(NodeId::MISSING);
        self.registers[usize::from(SUBJECT.0)] = subject;
        let loops = usize::from(block.loops).min(self.loops.len());
        self.loops[..loops].fill(LoopState::default());
        self.folds[..usize::from(block.folds)].fill(FoldState::default());
        let lists = self.lists.iter_mut().take(usize::from(block.lists));
        lists.for_each(Vec::clear);
        let texts = self.texts.iter_mut().take(usize::from(block.accumulators));
        texts.for_each(String::clear);
        self.has_loaded = false;
        self.lifted = false;
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
    entries: Vec<(u64, entry::EntryState)>,
    base: Option<NodeId>,
    images: Option<Result<Option<NodeId>, String>>,
    fetched: HashMap<String, Result<Option<NodeId>, String>>,
    cel: cel::CelState,
    regexes: RegexCache,
    foreach: foreach::ForeachState,
    outer_foreach: Vec<foreach::ForeachState>,
    failure: failure::Failure,
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
    known_sites: known_sites::KnownSites,
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
            entries: vec![(0, entry::EntryState::Inactive); tables.entries.len()],
            base: None,
            images: None,
            fetched: HashMap::new(),
            cel: cel::CelState::default(),
            regexes: RegexCache::default(),
            foreach: foreach::ForeachState::default(),
            outer_foreach: Vec::new(),
            failure: failure::Failure::default(),
            failure_text: String::new(),
            messages: Vec::new(),
            findings: Findings::default(),
            failures: Vec::new(),
            fuel: 0,
            ended_at: InstructionId::NONE,
            explanation: Explanation::default(),
            known_sites: known_sites::KnownSites::default(),
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

    /// Forgets what belongs to the rule before: another one (but not the same rule's run
    /// over the old object) begins.
    pub(crate) fn begin_rule(&mut self) {
        self.tags.clear();
        self.seen_tags.clear();
        self.rule += 1;
        self.messages.clear();
        self.findings.clear();
        self.begin_cel_rule();
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
        self.error = ErrorKind::Plain;
        self.any_alternative_failed = false;
        self.fail_with("");
        self.ended_at = InstructionId::NONE;
        self.begin_cel_run();
        self.foreach = foreach::ForeachState::default();
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
        loading: Option<EntryId>,
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

    #[inline]
    fn get(&self, register: RegisterId) -> NodeId {
        self.frame.registers[usize::from(register.0)]
    }

    #[inline]
    fn put(&mut self, register: RegisterId, value: NodeId) {
        self.frame.registers[usize::from(register.0)] = value;
    }

    #[inline]
    fn set(&mut self, register: RegisterId, value: NodeId) -> Flow {
        self.put(register, value);
        Flow::Next
    }

    /// The value that the block runs over.
    fn subject(&self) -> NodeId {
        self.get(SUBJECT)
    }

    /// Puts what was found into a register; whether anything was.
    #[inline]
    fn holds(&mut self, register: RegisterId, found: NodeId) -> bool {
        if found.is_missing() {
            return false;
        }
        self.put(register, found);
        true
    }

    /// Runs something that needs the values and their surroundings.
    fn with_values<T>(
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

fn text_of<'t>(tables: &Tables<'t>, text: TextId) -> &'t str {
    tables
        .texts
        .get(text.index())
        .map_or("", |&text| tables.text(text))
}

fn boolean(value: bool) -> NodeId {
    if value { TRUE } else { FALSE }
}
