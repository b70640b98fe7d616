//! What an explaining run keeps: the error's text and path exactly as Kyverno words
//! them (docs/spec/patterns.md §3, 4 and 12), the value found, and the place in the policy.

use std::fmt::Write;

use kpvm_format::Tables;
use kpvm_format::instruction::immediate::{ExistencePatternDefect, ItemCount};
use kpvm_format::instruction::{FoldSlot, LeafId, TextId};
use kpvm_format::site::{InstructionId, Site};
use kpvm_format::symbol::SymbolId;
use kpvm_semantics::anchor::Anchor;

use super::{ErrorKind, Machine, Scene};
use crate::document::{Kind, NodeId, View};
use crate::engine::observer::Path;
use kpvm_semantics::number::format_v_float;

/// Bytes of one rendered value; more is cut.
const VALUE_BYTES: usize = 64 << 10;

/// The error of the last explaining run.
#[derive(Debug, Default)]
pub(crate) struct Explanation {
    /// The error's text.
    pub(crate) text: String,
    /// The error's path; empty for the one error without.
    pub(crate) path: String,
    /// The value found there.
    pub(crate) value: NodeIdOrMissing,
    /// The instruction that failed, counted in the code section.
    pub(crate) instruction: InstructionId,
    /// Texts of failed alternatives, joined as in docs/spec/patterns.md §11.
    pub(crate) failed_alternatives: String,
    /// Texts of skipped alternatives.
    pub(crate) skipped_alternatives: String,
    folds: Vec<String>,
    anchors: Vec<(String, bool)>,
}

/// A node that is missing by default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeIdOrMissing(pub(crate) NodeId);

impl Default for NodeIdOrMissing {
    fn default() -> Self {
        Self(NodeId::MISSING)
    }
}

impl Explanation {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.path.clear();
        self.value = NodeIdOrMissing::default();
        self.instruction = InstructionId::NONE;
        self.failed_alternatives.clear();
        self.skipped_alternatives.clear();
        self.anchors.clear();
        self.folds.iter_mut().for_each(String::clear);
    }

    /// A match of its own begins.
    pub(super) fn begin_pattern(&mut self) {
        self.anchors.clear();
        self.failed_alternatives.clear();
        self.skipped_alternatives.clear();
    }

    pub(super) fn wrap(&mut self, prefix: &str) {
        self.text.insert_str(0, prefix);
    }

    pub(super) fn begin_fold(&mut self, slot: FoldSlot) {
        let slot = slot.index();
        if self.folds.len() <= slot {
            self.folds.resize(slot + 1, String::new());
        }
        self.folds[slot].clear();
    }

    /// Adds the text of a skip to a fold.
    pub(super) fn collect(&mut self, slot: FoldSlot) {
        if let Some(collected) = self.folds.get_mut(slot.index()) {
            join_skip(collected, &self.text);
        }
    }

    /// Makes the collected texts the error's text.
    pub(super) fn end_fold(&mut self, slot: FoldSlot) {
        if let Some(collected) = self.folds.get(slot.index()) {
            self.text.clone_from(collected);
        }
    }

    /// Notes whether a map had an anchored key; never turns back to false
    /// (docs/spec/patterns.md §4.7).
    pub(super) fn record_anchor(&mut self, key: &str, present: bool) {
        match self.anchors.iter_mut().find(|(known, _)| known == key) {
            Some((_, seen)) => *seen |= present,
            None => self.anchors.push((key.to_owned(), present)),
        }
    }

    /// Whether some anchored key was never there, which turns a failure into an error.
    pub(crate) fn has_missing_anchor(&self) -> bool {
        self.anchors.iter().any(|(_, seen)| !seen)
    }

    /// Whether a plain or negation error has no path to show.
    pub(crate) fn is_pathless(&self, kind: ErrorKind) -> bool {
        kind != ErrorKind::Negation && (self.path.is_empty() || self.has_missing_anchor())
    }

    pub(super) fn alternative_failed(&mut self, index: u32, kind: ErrorKind, rule: &str) {
        let pathless = self.is_pathless(kind);
        let list = if kind.is_skip() {
            &mut self.skipped_alternatives
        } else {
            &mut self.failed_alternatives
        };
        if !list.is_empty() {
            list.push(' ');
        }
        // Writing to a String cannot fail.
        let _ = if kind.is_skip() {
            write!(list, "rule {rule}[{index}] skipped: {}", self.text)
        } else if pathless {
            write!(list, "rule {rule}[{index}] failed: {}", self.text)
        } else {
            write!(list, "rule {rule}[{index}] failed at path {}", self.path)
        };
        // Each alternative is a match of its own.
        self.anchors.clear();
    }
}

/// Why a check of a pattern fails.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mismatch {
    /// The value is no map.
    NotAMap,
    /// The value is no list.
    NotAList,
    /// There is no value under a plain key.
    Absent(SymbolId),
    /// The list has fewer items.
    TooShort(ItemCount),
    /// The value under an existence anchor is no list.
    ExistenceInNoList,
    /// The value does not satisfy a leaf.
    Leaf(LeafId),
    /// The pattern is an empty list.
    EmptyPattern,
    /// No item satisfies an existence anchor.
    NoneExists,
    /// The pattern under an existence anchor cannot be used; the text is its type.
    ExistencePattern(ExistencePatternDefect, TextId),
    /// A key under a negation anchor is there.
    Forbidden,
    /// The key of a conditional anchor is not there.
    NotApplicable,
}

impl Mismatch {
    #[inline]
    pub(super) fn kind(self) -> ErrorKind {
        match self {
            Mismatch::Forbidden => ErrorKind::Negation,
            Mismatch::NotApplicable => ErrorKind::Conditional,
            Mismatch::NotAMap
            | Mismatch::NotAList
            | Mismatch::Absent(_)
            | Mismatch::TooShort(_)
            | Mismatch::ExistenceInNoList
            | Mismatch::Leaf(_)
            | Mismatch::EmptyPattern
            | Mismatch::NoneExists
            | Mismatch::ExistencePattern(..) => ErrorKind::Plain,
        }
    }

    fn text(self, path: &str, value: NodeId, scene: Scene<'_>) -> String {
        let (view, tables) = (&scene.view, scene.tables);
        match self {
            Mismatch::NotAMap => format!(
                "pattern and resource have different structures. Path: {path}. Expected map[string]interface {{}}, found {}",
                go_type(view, value)
            ),
            Mismatch::NotAList => format!(
                "validation rule failed at path {path}, resource does not satisfy the expected overlay pattern"
            ),
            Mismatch::Absent(key) => format!("{path}/{} not found", tables.symbols.text(key)),
            Mismatch::TooShort(length) => format!(
                "validate Array failed, array length mismatch, resource Array len is {} and pattern Array len is {}",
                view.len(value),
                length.0
            ),
            Mismatch::ExistenceInNoList => format!(
                "invalid resource type {}: Existence ^ () anchor can be used only on list/array type resource",
                go_type(view, value)
            ),
            Mismatch::Leaf(leaf) => mismatch(leaf.0, value, path, scene),
            Mismatch::EmptyPattern => "pattern Array empty".into(),
            Mismatch::NoneExists => format!("existence anchor validation failed at path {path}"),
            Mismatch::ExistencePattern(defect, kind) => {
                let kind = super::text_of(tables, kind);
                let wanted = match defect {
                    ExistencePatternDefect::NotAList => "list to compare against resource",
                    ExistencePatternDefect::ItemNotAMap => {
                        "type map to compare against items in resource"
                    }
                };
                format!("invalid pattern type {kind}: Pattern has to be of {wanted}")
            }
            Mismatch::Forbidden => {
                format!("negation anchor matched in resource: {path} is not allowed")
            }
            Mismatch::NotApplicable => MISSING_CONDITIONAL.into(),
        }
    }
}

/// Joins texts of skips with `; `.
pub(super) fn join_skip(collected: &mut String, text: &str) {
    if !collected.is_empty() {
        collected.push_str("; ");
    }
    collected.push_str(text);
}

impl Machine {
    /// Words the error of a check that just failed.
    pub(super) fn explain_failure(
        &mut self,
        mismatch: Mismatch,
        value: NodeId,
        index: InstructionId,
        scene: Scene<'_>,
    ) {
        let path = self.render_path(index, scene);
        let explanation = &mut self.explanation;
        explanation.instruction = index;
        explanation.value = NodeIdOrMissing(value);
        explanation.text = mismatch.text(&path, value, scene);
        explanation.path = match mismatch {
            Mismatch::TooShort(_) => String::new(),
            _ => path,
        };
    }

    /// Matches a value with a pattern known only now.
    pub(super) fn test_value<M: super::Mode>(
        &mut self,
        floats: bool,
        value: NodeId,
        pattern: NodeId,
        instruction: InstructionId,
        scene: Scene<'_>,
    ) -> Option<ErrorKind> {
        let path = if M::EXPLAIN {
            self.render_path(instruction, scene)
        } else {
            String::new()
        };
        let matcher = super::dynamic::Matcher {
            view: scene.view,
            floats,
            is_secret: scene.subject.is_secret,
        };
        let mismatch = matcher.matches(value, pattern, &path, 0).err()?;
        if M::EXPLAIN {
            self.explanation.instruction = instruction;
            self.explanation.value = NodeIdOrMissing(value);
            self.explanation.text = mismatch.text;
            self.explanation.path = mismatch.path;
        }
        Some(mismatch.kind)
    }

    /// Words the error of one entry of a label or annotation pattern.
    #[allow(clippy::too_many_arguments)] // one fact each, used nowhere else
    pub(super) fn explain_tag(
        &mut self,
        anchor: Anchor,
        key: &str,
        pattern: TagText,
        value: NodeId,
        kind: ErrorKind,
        index: InstructionId,
        scene: Scene<'_>,
    ) {
        let parent = self.render_path(index, scene);
        let path = format!("{parent}{key}/");
        let explanation = &mut self.explanation;
        explanation.instruction = index;
        explanation.value = NodeIdOrMissing(value);
        let leaf = pattern.leaf;
        let leaf_text = || match pattern.computed {
            None => mismatch(leaf, value, &path, scene),
            Some(computed) => {
                let mut text = String::new();
                render_go_value(&scene.view, computed, &mut text);
                mismatch_with(&text, value, &path, scene)
            }
        };
        explanation.text = match anchor {
            Anchor::None if leaf_is_star(leaf, scene) => format!("{parent}/{key} not found"),
            Anchor::None | Anchor::Equality | Anchor::AddIfNotPresent => leaf_text(),
            Anchor::Conditional if value.is_missing() => MISSING_CONDITIONAL.into(),
            Anchor::Conditional => format!("conditional anchor mismatch: {}", leaf_text()),
            Anchor::Global => format!("global anchor mismatch: {}", leaf_text()),
            Anchor::Negation => {
                format!("negation anchor matched in resource: {path} is not allowed")
            }
            Anchor::Existence if scene.view.kind(value) == Some(Kind::List) => {
                "invalid pattern type string: Pattern has to be of list to compare against resource"
                    .into()
            }
            Anchor::Existence => format!(
                "invalid resource type {}: Existence ^ () anchor can be used only on list/array type resource",
                go_type(&scene.view, value)
            ),
        };
        let at_parent =
            kind == ErrorKind::Plain && anchor == Anchor::None && leaf_is_star(leaf, scene);
        explanation.path = if at_parent { parent } else { path };
    }

    /// The path of an instruction's error, with the indices that its loops have now, or
    /// the keys where they go over maps.
    pub(super) fn render_path(&mut self, instruction: InstructionId, scene: Scene<'_>) -> String {
        let site = self.known_sites.get(instruction, scene.tables);
        site.map_or_else(String::new, |site| {
            self.path_of(&site, scene.view, scene.tables).to_string()
        })
    }

    /// The path of a site, likewise.
    pub(super) fn path_of<'p>(
        &'p self,
        site: &Site,
        view: View<'p>,
        tables: &'p Tables<'p>,
    ) -> Path<'p> {
        Path {
            tables,
            view,
            path: site.path,
            loops: &self.frame.loops,
        }
    }
}

pub(super) const MISSING_CONDITIONAL: &str =
    "conditional anchor mismatch: conditional anchor key doesn't exist in the resource";

fn leaf_is_star(leaf: u32, scene: Scene<'_>) -> bool {
    scene
        .tables
        .leaves
        .get(leaf as usize)
        .is_some_and(|leaf| scene.tables.text(leaf.text) == "*")
}

/// The pattern of a label: a leaf, or what its variables gave.
#[derive(Clone, Copy)]
pub(super) struct TagText {
    pub(super) leaf: u32,
    pub(super) computed: Option<NodeId>,
}

/// Whether a path leads into the data of a Secret.
pub(crate) fn is_secret_path(path: &str) -> bool {
    path.starts_with("/data/") || path.starts_with("/stringData/")
}

fn mismatch(leaf: u32, value: NodeId, path: &str, scene: Scene<'_>) -> String {
    let pattern = scene
        .tables
        .leaves
        .get(leaf as usize)
        .map_or("", |leaf| scene.tables.text(leaf.text));
    mismatch_with(pattern, value, path, scene)
}

fn mismatch_with(pattern: &str, value: NodeId, path: &str, scene: Scene<'_>) -> String {
    let mut text = String::from("resource value '");
    if scene.subject.is_secret && is_secret_path(path) {
        text.push_str("***");
    } else {
        render_go_value(&scene.view, value, &mut text);
    }
    let _ = write!(text, "' does not match '{pattern}' at path {path}");
    text
}

/// Go's name of a value's type, as `%T` prints it.
fn go_type(view: &View<'_>, value: NodeId) -> &'static str {
    match view.kind(value) {
        None | Some(Kind::Null) => "<nil>",
        Some(Kind::False | Kind::True) => "bool",
        Some(Kind::Int) => "int64",
        Some(Kind::Float) => "float64",
        Some(Kind::String) => "string",
        Some(Kind::List) => "[]interface {}",
        Some(Kind::Map) => "map[string]interface {}",
    }
}

/// A step of rendering that is still to be done.
enum Step<'v> {
    Value(NodeId),
    Text(&'static str),
    Key(&'v str),
}

/// Writes a value as Go's `%v` does (docs/spec/patterns.md §12.5): maps by key, nothing
/// quoted. Stops when the text is very long.
pub(crate) fn render_go_value(view: &View<'_>, value: NodeId, out: &mut String) {
    let mut steps = vec![Step::Value(value)];
    while let Some(step) = steps.pop() {
        if out.len() > VALUE_BYTES {
            return;
        }
        let value = match step {
            Step::Text(text) => {
                out.push_str(text);
                continue;
            }
            Step::Key(key) => {
                out.push_str(key);
                out.push(':');
                continue;
            }
            Step::Value(value) => value,
        };
        match view.kind(value) {
            None | Some(Kind::Null) => out.push_str("<nil>"),
            Some(Kind::False) => out.push_str("false"),
            Some(Kind::True) => out.push_str("true"),
            Some(Kind::Int) => {
                let _ = write!(out, "{}", view.int(value).unwrap_or_default());
            }
            Some(Kind::Float) => format_v_float(view.float(value).unwrap_or_default(), out),
            Some(Kind::String) => out.push_str(view.str(value)),
            Some(Kind::List) => {
                out.push('[');
                steps.push(Step::Text("]"));
                for (index, item) in view
                    .children(value)
                    .enumerate()
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                {
                    steps.push(Step::Value(item));
                    if index > 0 {
                        steps.push(Step::Text(" "));
                    }
                }
            }
            Some(Kind::Map) => {
                out.push_str("map[");
                steps.push(Step::Text("]"));
                let mut members: Vec<NodeId> = view.children(value).collect();
                members.sort_by_key(|&member| view.key_bytes(member));
                for (index, &member) in members.iter().enumerate().rev() {
                    steps.push(Step::Value(member));
                    steps.push(Step::Key(view.key_str(member)));
                    if index > 0 {
                        steps.push(Step::Text(" "));
                    }
                }
            }
        }
    }
}
