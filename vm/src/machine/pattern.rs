//! The operations of patterns: static paths, folds, loops and alternatives
//! (docs/spec/patterns.md §3).

use kpvm_format::instruction::{FoldSlot, LoopSlot, PathId, RegisterId};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::NONE;

use super::failure::Flow;
use super::{ErrorKind, Machine, Mode, Scene};
use crate::document::{ChildRange, Kind, NodeId, View};

/// The state of a loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoopState {
    next: u32,
    end: u32,
    index: u32,
}

impl LoopState {
    /// The index of the loop's current item.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The loop's current item.
    pub(crate) fn item(&self) -> NodeId {
        NodeId(self.next.wrapping_sub(1))
    }
}

/// The state of a fold (docs/spec/patterns.md §3.2 and §3.4).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FoldState {
    pub(super) applied: bool,
    pub(super) skipped: bool,
    /// A skip that is not a multiskip: a sibling decided that the map does not apply.
    pub(super) direct: bool,
}

/// A value found at a static path, valid for one subject.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedPath {
    pub(super) stamp: u32,
    pub(super) node: NodeId,
}

impl Machine {
    /// The value at a static path, looked up once for each subject.
    #[inline]
    pub(super) fn load_path(&mut self, path: PathId, scene: &Scene<'_>) -> NodeId {
        match self.paths.get(path.index()) {
            Some(cached) if cached.stamp == self.stamp => cached.node,
            _ => self.find_path(path, scene),
        }
    }

    fn find_path(&mut self, path: PathId, scene: &Scene<'_>) -> NodeId {
        let Some(entry) = scene.tables.paths.get(path.index()) else {
            return NodeId::MISSING;
        };
        // INVARIANT: parents have smaller numbers and the verifier bounds the depth.
        let parent = match entry.parent.get() {
            NONE => scene.subject.root,
            parent => self.load_path(PathId(parent), scene),
        };
        let node = scene.view.get(parent, SymbolId(entry.symbol.get()));
        if let Some(slot) = self.paths.get_mut(path.index()) {
            *slot = CachedPath {
                stamp: self.stamp,
                node,
            };
        }
        node
    }

    /// Turns the error into that of an anchor.
    pub(super) fn wrap_anchor<M: Mode>(&mut self, kind: ErrorKind) {
        self.error = kind;
        if M::EXPLAIN {
            self.explanation.wrap(match kind {
                ErrorKind::Global => "global anchor mismatch: ",
                _ => "conditional anchor mismatch: ",
            });
        }
    }

    #[inline]
    pub(super) fn fold(&mut self, slot: FoldSlot) -> &mut FoldState {
        &mut self.frame.folds[slot.0 as u8 as usize]
    }

    /// Adds an error to a fold; returns whether the fold continues.
    pub(super) fn fold_error<M: Mode>(&mut self, slot: FoldSlot, of_keys: bool) -> bool {
        let error = self.error;
        let fold = self.fold(slot);
        if error.is_skip() {
            fold.skipped = true;
            fold.direct |= error != ErrorKind::MultiSkip;
            if M::EXPLAIN {
                self.explanation.collect(slot);
            }
            return true;
        }
        // A sibling has already decided that the map does not apply.
        of_keys && fold.direct
    }

    /// Ends a fold; returns whether the result is a skip.
    pub(super) fn end_fold<M: Mode>(&mut self, slot: FoldSlot, of_keys: bool) -> bool {
        let fold = *self.fold(slot);
        let direct = of_keys && fold.direct;
        let is_skip = fold.skipped && (!fold.applied || direct);
        if is_skip {
            self.error = ErrorKind::MultiSkip;
            if M::EXPLAIN {
                self.explanation.end_fold(slot);
            }
        }
        is_skip
    }

    /// Begins a loop; returns whether there is an item.
    #[inline]
    pub(super) fn begin_loop(
        &mut self,
        slot: LoopSlot,
        register: RegisterId,
        items: ChildRange,
    ) -> bool {
        let item = items.at(0);
        let Some(state) = self.frame.loops.get_mut(slot.index()) else {
            return false;
        };
        *state = LoopState {
            next: item.0.wrapping_add(1),
            end: item.0.wrapping_add(items.len() as u32),
            index: 0,
        };
        self.holds(register, item)
    }

    /// Advances a loop; returns whether there is a next item.
    #[inline]
    pub(super) fn next_item(&mut self, slot: LoopSlot, register: RegisterId) -> bool {
        let Some(state) = self.frame.loops.get_mut(slot.index()) else {
            return false;
        };
        let has_next = state.next < state.end;
        if has_next {
            let item = NodeId(state.next);
            state.next += 1;
            state.index += 1;
            self.put(register, item);
        }
        has_next
    }

    pub(super) fn loop_index(&self, slot: LoopSlot) -> u32 {
        let state = self.frame.loops.get(slot.index());
        state.map_or(0, LoopState::index)
    }

    /// The loop's current item.
    pub(super) fn loop_item(&self, slot: LoopSlot) -> NodeId {
        let state = self.frame.loops.get(slot.index());
        state.map_or(NodeId::MISSING, LoopState::item)
    }

    /// Records that an alternative failed or was skipped.
    pub(super) fn alternative_failed<M: Mode>(&mut self, index: u32, scene: &Scene<'_>) {
        self.any_alternative_failed |= !self.error.is_skip();
        if M::EXPLAIN {
            let rule = scene.subject.rule_name;
            self.explanation.alternative_failed(index, self.error, rule);
        }
    }

    pub(super) fn require_alternatives(&mut self, value: NodeId, view: &View<'_>) -> Flow {
        let kind = match view.kind(value) {
            Some(Kind::List) => return Flow::Next,
            Some(Kind::Map) => "object",
            Some(Kind::String) => "string",
            Some(Kind::False | Kind::True) => "bool",
            None | Some(Kind::Null | Kind::Int | Kind::Float) => "number",
        };
        self.fail(&format!(
            "failed to deserialize anyPattern, expected type array: json: cannot unmarshal {kind} into Go value of type []interface {{}}"
        ))
    }

    /// Begins an independent match.
    pub(super) fn begin_pattern<M: Mode>(&mut self) {
        self.tags.clear();
        self.any_alternative_failed = false;
        if M::EXPLAIN {
            self.explanation.begin_pattern();
        }
    }
}
