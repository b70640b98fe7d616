//! The interpreter: runs one block of a verified bundle over one subject.
//!
//! The same code runs in two ways. *Checking* finds out whether the block passes and
//! allocates nothing. *Explaining* runs it again after it did not pass and keeps the
//! text, path and place of the error along the way; it is compiled separately
//! ([`Explain`]), so that checking pays nothing for it.

mod explain;
mod leaf;
mod matching;
mod tags;

use kpvm_format::Tables;
use kpvm_format::instruction::{Instruction, Op};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::NONE;

use crate::document::{NodeId, View};

pub(crate) use explain::{Explanation, render_go_value};
pub(crate) use matching::{
    RequestFacts, SelectorLabels, Subject, selector_matches, wildcard_list_matches,
};

/// Kind of the error that a check ended with; typed here, found by searching texts in
/// Kyverno (sheet 02, section 3.5).
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

/// How a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The rule passes.
    Pass,
    /// The rule passes by the alternative of that number.
    Alternative(u32),
    /// The pattern's error of that kind decides.
    Error(ErrorKind),
    /// No alternative held; whether one failed rather than skipped.
    AlternativesFailed { any_failed: bool },
    /// The rule denies.
    Deny,
    /// Status (0 pass, 1 error) and number of a text known at compile time.
    Text { status: u8, text: u32 },
    /// The rule applies to the resource.
    Matched,
    /// It does not.
    Unmatched,
    /// The block used up its fuel.
    OutOfFuel,
}

/// State of a loop.
#[derive(Debug, Clone, Copy, Default)]
struct LoopState {
    next: u32,
    end: u32,
    index: u32,
}

/// State of a fold (sheet 02, sections 3.2 and 3.4).
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

/// Everything that running needs and that is kept between runs, so that the steady
/// state allocates nothing.
pub(crate) struct Machine {
    registers: Box<[NodeId; 256]>,
    loops: [LoopState; kpvm_format::MAX_LOOP_DEPTH],
    folds: Box<[FoldState; 256]>,
    paths: Vec<CachedPath>,
    stamp: u32,
    error: ErrorKind,
    any_alternative_failed: bool,
    tags: tags::ExpandedTags,
    /// Steps left for the rule that runs.
    pub(crate) fuel: u64,
    /// What the last explaining run found.
    pub(crate) explanation: Explanation,
}

/// What a run looks at.
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

/// Whether a run keeps texts and paths.
trait Explain {
    const ON: bool;
}

struct Checking;
struct Explaining;

impl Explain for Checking {
    const ON: bool = false;
}

impl Explain for Explaining {
    const ON: bool = true;
}

impl Machine {
    /// A machine for a bundle with that many paths.
    pub(crate) fn new(paths: usize) -> Self {
        Self {
            registers: Box::new([NodeId::MISSING; 256]),
            loops: [LoopState::default(); kpvm_format::MAX_LOOP_DEPTH],
            folds: Box::new([FoldState::default(); 256]),
            paths: vec![
                CachedPath {
                    stamp: 0,
                    node: NodeId::MISSING
                };
                paths
            ],
            stamp: 0,
            error: ErrorKind::Plain,
            any_alternative_failed: false,
            tags: tags::ExpandedTags::default(),
            fuel: 0,
            explanation: Explanation::default(),
        }
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

    /// Forgets expanded keys: another rule (but not the same rule's run over the old
    /// object) begins.
    pub(crate) fn begin_rule(&mut self) {
        self.tags.clear();
    }

    /// Runs a block for its outcome alone.
    pub(crate) fn check(&mut self, block: u32, scene: Scene<'_>) -> Ending {
        self.run::<Checking>(block, scene)
    }

    /// Runs a block that did not pass again, for [`Machine::explanation`].
    pub(crate) fn explain(&mut self, block: u32, scene: Scene<'_>) -> Ending {
        self.explanation.clear();
        self.run::<Explaining>(block, scene)
    }

    fn run<E: Explain>(&mut self, block: u32, scene: Scene<'_>) -> Ending {
        let Some(block) = scene.tables.blocks.get(block as usize) else {
            return Ending::OutOfFuel;
        };
        let code = scene.tables.block_code(block);
        let first = block.start.get();
        let registers = usize::from(block.registers.get()).min(self.registers.len());
        self.registers[..registers].fill(NodeId::MISSING);
        self.registers[0] = scene.subject.root;
        self.any_alternative_failed = false;
        self.execute::<E>(code, first, scene)
    }

    fn execute<E: Explain>(
        &mut self,
        code: &[Instruction],
        first: u32,
        scene: Scene<'_>,
    ) -> Ending {
        let view = &scene.view;
        let mut position = 0usize;
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
            let (a, b, c) = (instruction.a, instruction.b, instruction.c.get());
            let target = instruction.d.get() as usize;
            let value = self.registers[usize::from(a)];
            position += 1;
            // What a check fails with; `None` when it holds.
            let failure = match op {
                Op::LoadPath => {
                    self.registers[usize::from(a)] = self.load_path(c, &scene);
                    continue;
                }
                Op::LoadField => {
                    let source = self.registers[usize::from(b)];
                    self.registers[usize::from(a)] = view.get(source, SymbolId(c));
                    continue;
                }
                Op::LoadIndex => {
                    let source = self.registers[usize::from(b)];
                    self.registers[usize::from(a)] = view.children(source).at(c as usize);
                    continue;
                }
                Op::Jump => {
                    position = target;
                    continue;
                }
                Op::JumpIfMissing => {
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
                    if E::ON {
                        self.explanation.wrap("conditional anchor mismatch: ");
                    }
                    position = target;
                    continue;
                }
                Op::WrapGlobal => {
                    self.error = ErrorKind::Global;
                    if E::ON {
                        self.explanation.wrap("global anchor mismatch: ");
                    }
                    position = target;
                    continue;
                }
                Op::RecordAnchor => {
                    if E::ON {
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
                    if let Some(kind) =
                        self.test_tags::<E>(c, value, first + position as u32 - 1, scene)
                    {
                        self.error = kind;
                        position = target;
                    }
                    continue;
                }
                Op::FoldBegin => {
                    self.folds[usize::from(a)] = FoldState::default();
                    if E::ON {
                        self.explanation.begin_fold(a);
                    }
                    continue;
                }
                Op::FoldApplied => {
                    self.folds[usize::from(a)].applied = true;
                    continue;
                }
                Op::FoldKeyError | Op::FoldItemError => {
                    if !self.fold_error::<E>(a, op == Op::FoldKeyError) {
                        position = target;
                    }
                    continue;
                }
                Op::FoldKeysEnd | Op::FoldItemsEnd => {
                    let fold = self.folds[usize::from(a)];
                    let direct = op == Op::FoldKeysEnd && fold.direct;
                    if fold.skipped && (!fold.applied || direct) {
                        self.error = ErrorKind::MultiSkip;
                        if E::ON {
                            self.explanation.end_fold(a);
                        }
                        position = target;
                    }
                    continue;
                }
                Op::LoopBegin => {
                    let list = view.children(self.registers[usize::from(b)]);
                    let Some(state) = self.loops.get_mut(usize::from(a)) else {
                        break;
                    };
                    let item = list.at(0);
                    *state = LoopState {
                        next: item.0.wrapping_add(1),
                        end: item.0.wrapping_add(list.len() as u32),
                        index: 0,
                    };
                    if item.is_missing() {
                        position = target;
                    } else {
                        self.registers[usize::from(instruction.e)] = item;
                    }
                    continue;
                }
                Op::LoopNext => {
                    let Some(state) = self.loops.get_mut(usize::from(a)) else {
                        break;
                    };
                    if state.next < state.end {
                        self.registers[usize::from(instruction.e)] = NodeId(state.next);
                        state.next += 1;
                        state.index += 1;
                        position = target;
                    }
                    continue;
                }
                Op::AlternativeFailed => {
                    self.any_alternative_failed |= !self.error.is_skip();
                    if E::ON {
                        self.explanation
                            .alternative_failed(c, self.error, scene.subject.rule_name);
                    }
                    continue;
                }
                Op::ReturnPass => return Ending::Pass,
                Op::ReturnAlternative => return Ending::Alternative(c),
                Op::ReturnError => return Ending::Error(self.error),
                Op::ReturnAlternativesFailed => {
                    return Ending::AlternativesFailed {
                        any_failed: self.any_alternative_failed,
                    };
                }
                Op::ReturnDeny => return Ending::Deny,
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
                    if !matching::holds(op, b, c, &scene) {
                        position = target;
                    }
                    continue;
                }
            };
            if let Some(kind) = failure {
                self.error = kind;
                if E::ON {
                    let index = first + position as u32 - 1;
                    self.explain_failure(op, instruction, value, index, scene);
                }
                position = target;
            }
        }
        Ending::OutOfFuel
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
    fn fold_error<E: Explain>(&mut self, slot: u8, of_keys: bool) -> bool {
        let fold = &mut self.folds[usize::from(slot)];
        if self.error.is_skip() {
            fold.skipped = true;
            fold.direct |= self.error != ErrorKind::MultiSkip;
            if E::ON {
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
