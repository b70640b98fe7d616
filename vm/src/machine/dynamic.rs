//! Patterns that are known only at run time: the values of variables in a pattern.
//!
//! A scalar is the usual case and is compared like a leaf. A map or list is walked here by
//! the rules of docs/spec/patterns.md §3 to §5; this is the only pattern matcher that does
//! not run bytecode. Label keys are not expanded (§9).

use super::ErrorKind;
use crate::document::{Kind, NodeId, View};
use crate::text;
use kpvm_semantics::anchor::{self, Anchor};
use kpvm_semantics::leaf::LeafPattern;
use kpvm_semantics::pattern_string::{Scalar, StringPattern};

/// The deepest nesting of maps and lists in such a pattern.
const MAX_DEPTH: usize = 256;

/// The largest value that is shown, in bytes.
const SHOWN_BYTES: usize = 64 << 10;

/// Why a value does not satisfy a pattern.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) kind: ErrorKind,
    pub(super) text: String,
    pub(super) path: String,
}

impl Mismatch {
    fn plain(text: String, path: &str) -> Self {
        Self {
            kind: ErrorKind::Plain,
            text,
            path: path.to_owned(),
        }
    }

    fn skips(texts: &[String], path: &str) -> Self {
        Self {
            kind: ErrorKind::MultiSkip,
            text: texts.join("; "),
            path: path.to_owned(),
        }
    }
}

/// Matches a value against a pattern that is itself a value.
pub(super) struct Matcher<'v> {
    pub(super) view: View<'v>,
    /// Whether the pattern's numbers count as float64 (anyPattern).
    pub(super) floats: bool,
    /// Whether values under `data` and `stringData` are secret.
    pub(super) is_secret: bool,
}

type Outcome = Result<(), Mismatch>;

impl Matcher<'_> {
    pub(super) fn matches(
        &self,
        value: NodeId,
        pattern: NodeId,
        path: &str,
        depth: usize,
    ) -> Outcome {
        if depth > MAX_DEPTH {
            return Err(Mismatch::plain(
                format!("the pattern is nested deeper than {MAX_DEPTH}"),
                path,
            ));
        }
        match self.view.kind(pattern) {
            Some(Kind::Map) => self.map(value, pattern, path, depth),
            Some(Kind::List) => self.list(value, pattern, path, depth),
            _ => self.scalar(value, pattern, path),
        }
    }

    fn scalar(&self, value: NodeId, pattern: NodeId, path: &str) -> Outcome {
        let text = self.view.str(pattern);
        let leaf = match self.view.kind(pattern) {
            Some(Kind::False) => LeafPattern::Bool(false),
            Some(Kind::True) => LeafPattern::Bool(true),
            Some(Kind::Int) if self.floats => {
                LeafPattern::Float(self.view.int(pattern).unwrap_or_default() as f64)
            }
            Some(Kind::Int) => LeafPattern::Int(self.view.int(pattern).unwrap_or_default()),
            Some(Kind::Float) => LeafPattern::Float(self.view.float(pattern).unwrap_or_default()),
            Some(Kind::String) => LeafPattern::String(StringPattern::parse(text)),
            _ => LeafPattern::Null,
        };
        let holds = |value| {
            self.as_scalar(value)
                .is_some_and(|value| leaf.matches(&value))
        };
        let holds = match self.view.kind(value) {
            Some(Kind::List) => self.view.children(value).all(holds),
            _ => holds(value),
        };
        if holds {
            return Ok(());
        }
        let hidden = self.is_secret && super::explain::is_secret_path(path);
        let value = if hidden {
            "***".to_owned()
        } else {
            self.shown(value)
        };
        let pattern = self.shown(pattern);
        Err(Mismatch::plain(
            format!("resource value '{value}' does not match '{pattern}' at path {path}"),
            path,
        ))
    }

    fn as_scalar(&self, value: NodeId) -> Option<Scalar<'_>> {
        Some(match self.view.kind(value) {
            None | Some(Kind::Null) => Scalar::Null,
            Some(Kind::False) => Scalar::Bool(false),
            Some(Kind::True) => Scalar::Bool(true),
            Some(Kind::Int) => Scalar::Int(self.view.int(value)?),
            Some(Kind::Float) => Scalar::Float(self.view.float(value)?),
            Some(Kind::String) => Scalar::String(self.view.str(value)),
            Some(Kind::List | Kind::Map) => return None,
        })
    }

    fn shown(&self, value: NodeId) -> String {
        let mut shown = String::new();
        let _cut = text::append_go_value(&self.view, value, &mut shown, SHOWN_BYTES);
        shown
    }

    fn map(&self, value: NodeId, pattern: NodeId, path: &str, depth: usize) -> Outcome {
        if self.view.kind(value) != Some(Kind::Map) {
            let found = text::go_type(&self.view, value);
            return Err(Mismatch::plain(
                format!(
                    "pattern and resource have different structures. Path: {path}. Expected map[string]interface {{}}, found {found}"
                ),
                path,
            ));
        }
        let mut members: Vec<NodeId> = self.view.children(pattern).collect();
        members.sort_by_key(|&member| self.view.key_bytes(member));
        let (anchored, plain): (Vec<NodeId>, Vec<NodeId>) =
            members.into_iter().partition(|&member| {
                let anchor = anchor::parse(self.view.key_str(member)).anchor;
                !matches!(
                    anchor,
                    Anchor::None | Anchor::Global | Anchor::AddIfNotPresent
                )
            });
        self.anchored(value, &anchored, path, depth)?;
        let (mut front, back): (Vec<NodeId>, Vec<NodeId>) =
            plain.into_iter().partition(|&member| {
                anchor::parse(self.view.key_str(member)).anchor == Anchor::Global
                    || self.has_anchor(member)
            });
        front.reverse();
        front.extend(back);
        front
            .into_iter()
            .try_for_each(|member| self.plain(value, member, path, depth))
    }

    /// Whether a key at any depth is an anchor; the depth of values is bounded.
    fn has_anchor(&self, value: NodeId) -> bool {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            let is_map = self.view.kind(value) == Some(Kind::Map);
            for child in self.view.children(value) {
                let anchor = anchor::parse(self.view.key_str(child)).anchor;
                if is_map && !matches!(anchor, Anchor::None | Anchor::AddIfNotPresent) {
                    return true;
                }
                open.push(child);
            }
        }
        false
    }

    fn anchored(&self, value: NodeId, members: &[NodeId], path: &str, depth: usize) -> Outcome {
        let (mut applied, mut direct) = (false, false);
        let mut skips = Vec::new();
        for &member in members {
            match self.anchor(value, member, path, depth) {
                Ok(()) => applied = true,
                Err(mismatch) if mismatch.kind.is_skip() => {
                    direct |= mismatch.kind != ErrorKind::MultiSkip;
                    skips.push(mismatch.text);
                }
                Err(mismatch) if !direct => return Err(mismatch),
                Err(_) => {}
            }
        }
        if !skips.is_empty() && (!applied || direct) {
            return Err(Mismatch::skips(&skips, path));
        }
        Ok(())
    }

    fn anchor(&self, value: NodeId, member: NodeId, path: &str, depth: usize) -> Outcome {
        let key = anchor::parse(self.view.key_str(member));
        let found = self.view.get_text(value, key.inner.as_bytes());
        let path = format!("{path}{}/", key.inner);
        match key.anchor {
            Anchor::Conditional if found.is_missing() => Err(Mismatch {
                kind: ErrorKind::Conditional,
                text: super::explain::MISSING_CONDITIONAL.into(),
                path,
            }),
            _ if found.is_missing() => Ok(()),
            Anchor::Conditional => self
                .matches(found, member, &path, depth + 1)
                .map_err(|inner| Mismatch {
                    kind: ErrorKind::Conditional,
                    text: format!("conditional anchor mismatch: {}", inner.text),
                    path: inner.path,
                }),
            Anchor::Equality => self.matches(found, member, &path, depth + 1),
            Anchor::Negation => Err(Mismatch {
                kind: ErrorKind::Negation,
                text: format!("negation anchor matched in resource: {path} is not allowed"),
                path,
            }),
            Anchor::Existence => self.existence(found, member, &path, depth),
            Anchor::None | Anchor::Global | Anchor::AddIfNotPresent => Ok(()),
        }
    }

    fn existence(&self, value: NodeId, pattern: NodeId, path: &str, depth: usize) -> Outcome {
        if self.view.kind(value) != Some(Kind::List) {
            let found = text::go_type(&self.view, value);
            return Err(Mismatch::plain(
                format!(
                    "invalid resource type {found}: Existence ^ () anchor can be used only on list/array type resource"
                ),
                path,
            ));
        }
        for item in self.view.children(pattern) {
            let mut found = self.view.children(value).enumerate();
            if !found.any(|(index, value)| {
                self.matches(value, item, &format!("{path}{index}/"), depth + 1)
                    .is_ok()
            }) {
                return Err(Mismatch::plain(
                    format!("existence anchor validation failed at path {path}"),
                    path,
                ));
            }
        }
        Ok(())
    }

    fn plain(&self, value: NodeId, member: NodeId, path: &str, depth: usize) -> Outcome {
        let name = self.view.key_str(member);
        let key = anchor::parse(name);
        if key.anchor == Anchor::Global {
            let found = self.view.get_text(value, key.inner.as_bytes());
            if found.is_missing() {
                return Ok(());
            }
            return self
                .matches(found, member, &format!("{path}{}/", key.inner), depth + 1)
                .map_err(|inner| Mismatch {
                    kind: ErrorKind::Global,
                    text: format!("global anchor mismatch: {}", inner.text),
                    path: inner.path,
                });
        }
        let found = self.view.get_text(value, name.as_bytes());
        if self.view.str(member) == "*" {
            return match self.view.kind(found) {
                None | Some(Kind::Null) => {
                    Err(Mismatch::plain(format!("{path}/{name} not found"), path))
                }
                Some(_) => Ok(()),
            };
        }
        self.matches(found, member, &format!("{path}{name}/"), depth + 1)
    }

    fn list(&self, value: NodeId, pattern: NodeId, path: &str, depth: usize) -> Outcome {
        if self.view.kind(value) != Some(Kind::List) {
            return Err(Mismatch::plain(
                format!(
                    "validation rule failed at path {path}, resource does not satisfy the expected overlay pattern"
                ),
                path,
            ));
        }
        let first = self.view.children(pattern).at(0);
        let items: Vec<(NodeId, NodeId)> = match self.view.kind(first) {
            None => return Err(Mismatch::plain("pattern Array empty".into(), path)),
            Some(Kind::Map) => self
                .view
                .children(value)
                .map(|item| (item, first))
                .collect(),
            Some(Kind::List) if self.view.len(value) < self.view.len(pattern) => {
                let text = format!(
                    "validate Array failed, array length mismatch, resource Array len is {} and pattern Array len is {}",
                    self.view.len(value),
                    self.view.len(pattern)
                );
                return Err(Mismatch::plain(text, ""));
            }
            Some(Kind::List) => self
                .view
                .children(value)
                .zip(self.view.children(pattern))
                .collect(),
            Some(_) => return self.scalar(value, first, path),
        };
        let mut applied = false;
        let mut skips = Vec::new();
        for (index, (item, pattern)) in items.into_iter().enumerate() {
            match self.matches(item, pattern, &format!("{path}{index}/"), depth + 1) {
                Ok(()) => applied = true,
                Err(mismatch) if mismatch.kind.is_skip() => skips.push(mismatch.text),
                Err(mismatch) => return Err(mismatch),
            }
        }
        if !applied && !skips.is_empty() {
            return Err(Mismatch::skips(&skips, path));
        }
        Ok(())
    }
}
