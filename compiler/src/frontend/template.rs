//! Values with variables (docs/spec/conditions.md §4): lowers a tree to code that computes
//! the substituted value. A part without variables is a constant.

use kpvm_format::instruction::immediate::ForeachDepth;
use kpvm_syntax::tree::{Member, Tree, TreeValue};

use super::emitter::Emitter;
use super::scope::Scope;
use super::variable::{self, VariableSpan};
use crate::ir::{BlockId, Label, Module, Operation, Register};
use crate::policy::model::Spanned;
use crate::source::SourceId;

/// Whether a text contains a variable.
pub fn has_variable(text: &str) -> bool {
    !variable::scan(text).is_empty()
}

/// Whether any text or key of a tree contains a variable.
pub fn tree_has_variable(tree: &Tree) -> bool {
    match &tree.value {
        TreeValue::String(text) => has_variable(text),
        TreeValue::List(items) => items.iter().any(tree_has_variable),
        TreeValue::Map(members) => members
            .iter()
            .any(|member| has_variable(&member.key) || tree_has_variable(&member.value)),
        TreeValue::Null | TreeValue::Bool(_) | TreeValue::Int(_) | TreeValue::Float(_) => false,
    }
}

/// Replaces every `\{{` by `{{`, as the substitution does in a text without variables.
pub fn unescape(tree: &Tree) -> Tree {
    let text = |text: &str| {
        variable::unescape_variables(text)
            .into_owned()
            .into_boxed_str()
    };
    let value = match &tree.value {
        TreeValue::String(value) => TreeValue::String(text(value)),
        TreeValue::List(items) => TreeValue::List(items.iter().map(unescape).collect()),
        TreeValue::Map(members) => TreeValue::Map(
            members
                .iter()
                .map(|member| Member {
                    key: text(&member.key),
                    key_span: member.key_span,
                    value: unescape(&member.value),
                })
                .collect(),
        ),
        other => other.clone(),
    };
    Tree::new(value, tree.span)
}

/// Replaces every `\{{` in a key by `{{`, except in maps that are computed as a whole.
/// Texts keep their escapes until they become leaves, so that nothing takes them for
/// variables.
pub fn unescape_keys(tree: &Tree) -> Tree {
    let value = match &tree.value {
        TreeValue::Map(members) if members.iter().any(|member| has_variable(&member.key)) => {
            return tree.clone();
        }
        TreeValue::Map(members) => TreeValue::Map(
            members
                .iter()
                .map(|member| Member {
                    key: variable::unescape_variables(&member.key).into(),
                    key_span: member.key_span,
                    value: unescape_keys(&member.value),
                })
                .collect(),
        ),
        TreeValue::List(items) => TreeValue::List(items.iter().map(unescape_keys).collect()),
        other => other.clone(),
    };
    Tree::new(value, tree.span)
}

impl Emitter<'_> {
    /// Lowers a document: references first, then variables.
    pub fn document(&mut self, tree: &Tree, on_error: Label) -> Register {
        match super::reference::resolve(tree) {
            Err(error) => self.fail(&error, on_error),
            Ok(resolved) => self.template(&resolved, "", on_error),
        }
    }

    /// Lowers a value whose references are resolved.
    pub fn template(&mut self, tree: &Tree, path: &str, on_error: Label) -> Register {
        if !tree_has_variable(tree) {
            return self.constant(&unescape(tree).value);
        }
        match &tree.value {
            TreeValue::String(text) => self.text_template(text, path, on_error),
            TreeValue::List(items) => {
                let list = self.block.enter_list();
                self.block.push(Operation::ListBegin { list });
                for (index, item) in items.iter().enumerate() {
                    let item = self.template(item, &format!("{path}/{index}"), on_error);
                    self.block.push(Operation::ListPush { list, src: item });
                }
                let result = self.load(|dst| Operation::ListEnd { dst, list });
                self.block.leave_list();
                result
            }
            TreeValue::Map(members) => self.map_template(members, path, on_error),
            scalar => self.constant(scalar),
        }
    }

    fn map_template(&mut self, members: &[Member], path: &str, on_error: Label) -> Register {
        let computed_keys = members.iter().any(|member| has_variable(&member.key));
        let mut members: Vec<&Member> = members.iter().collect();
        members.sort_by(|left, right| left.key.cmp(&right.key));
        let list = self.block.enter_list();
        self.block.push(Operation::ListBegin { list });
        for member in &members {
            if computed_keys {
                let key = self.key_template(&member.key, path, on_error);
                self.block.push(Operation::ListPush { list, src: key });
            }
            let path = format!("{path}/{}", member.key.replace('/', "\\/"));
            let value = self.template(&member.value, &path, on_error);
            self.block.push(Operation::ListPush { list, src: value });
        }
        let keys = if computed_keys {
            None
        } else {
            let keys: Vec<String> = members
                .iter()
                .map(|member| variable::unescape_variables(&member.key).into_owned())
                .collect();
            Some(self.module.text_list(&keys))
        };
        let result = self.load(|dst| match keys {
            None => Operation::MapEndPairs { dst, list },
            Some(keys) => Operation::MapEnd { dst, list, keys },
        });
        self.block.leave_list();
        result
    }

    /// A key with variables must be a text; null leaves it as written.
    pub fn key_template(&mut self, key: &str, path: &str, on_error: Label) -> Register {
        let value = self.text_template(key, path, on_error);
        if !has_variable(key) {
            return value;
        }
        let error = format!("expected string after substituting variables in key \"{key}\"");
        let text = self.module.text(&error);
        let checked = self.block.register();
        let (unchanged, end) = (self.block.label(), self.block.label());
        self.block.push(Operation::JumpIfNull {
            src: value,
            target: unchanged,
        });
        self.block.push(Operation::RequireKeyText {
            dst: checked,
            src: value,
            text,
            typed: false,
            target: on_error,
        });
        self.block.jump(end);
        self.block.place(unchanged);
        let written = self.constant(&TreeValue::String(key.into()));
        self.assign(checked, written);
        self.block.place(end);
        checked
    }

    /// Lowers a text: a single variable keeps its value's type, others are inserted into
    /// the text. A variable's value is data: it is never searched for variables.
    pub fn text_template(&mut self, text: &str, path: &str, on_error: Label) -> Register {
        let pieces = pieces(text);
        if let [Piece::Variable { name, .. }] = pieces.as_slice() {
            return self.variable(name, path, on_error);
        }
        if !pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Variable { .. }))
        {
            let text = variable::unescape_variables(text);
            return self.constant(&TreeValue::String((&*text).into()));
        }
        let result = self.block.register();
        let end = self.block.label();
        let accumulator = self.block.enter_accumulator();
        self.block.push(Operation::TextBegin { accumulator });
        let last = pieces.len() - 1;
        for (index, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => {
                    let text = self.module.text(&variable::unescape_variables(text));
                    self.block
                        .push(Operation::TextLiteral { accumulator, text });
                }
                Piece::Variable { name } => {
                    let value = self.variable(name, path, on_error);
                    let only_variables =
                        !pieces.iter().any(|piece| matches!(piece, Piece::Text(_)));
                    if index == last && only_variables {
                        // The text before it is empty: the last variable is now alone and
                        // keeps its type.
                        let text_follows = self.block.label();
                        let alone = self.block.label();
                        self.block.push(Operation::JumpIfTextEmpty {
                            accumulator,
                            target: alone,
                        });
                        self.block.jump(text_follows);
                        self.block.place(alone);
                        self.assign(result, value);
                        self.block.jump(end);
                        self.block.place(text_follows);
                    }
                    let failed = self.unresolved(name.shown(), path, on_error);
                    self.block.push(Operation::TextValue {
                        accumulator,
                        src: value,
                        target: failed,
                    });
                }
            }
        }
        self.block.push(Operation::TextEnd {
            dst: result,
            accumulator,
        });
        self.block.leave_accumulator();
        self.block.place(end);
        result
    }

    /// Where a variable's errors arrive. DELETE rewrites the name, not the path.
    fn unresolved(&mut self, name: &str, path: &str, on_error: Label) -> Label {
        if !path.contains("request.object") {
            return self.wrapping(
                &format!("failed to resolve {name} at path {path}: "),
                true,
                on_error,
            );
        }
        let name = self.wrapping(&format!("failed to resolve {name}"), true, on_error);
        self.wrapping(&format!(" at path {path}: "), false, name)
    }

    pub(super) fn variable(
        &mut self,
        name: &VariableText,
        path: &str,
        on_error: Label,
    ) -> Register {
        match name {
            VariableText::Plain(expression) => {
                let own_path = (expression == "@").then(|| own_path(path));
                let expression = own_path.as_ref().unwrap_or(expression);
                let failed = self.unresolved(expression, path, on_error);
                self.query(expression, failed)
            }
            VariableText::Nested(text) => self.nested_variable(text, path, on_error),
        }
    }
}

/// A piece of a text with variables.
pub(super) enum Piece {
    Text(String),
    Variable { name: VariableText },
}

/// The text of a variable.
pub(super) enum VariableText {
    /// The text of an expression.
    Plain(String),
    /// A text with variables that becomes an expression.
    Nested(String),
}

impl VariableText {
    fn shown(&self) -> &str {
        match self {
            VariableText::Plain(text) | VariableText::Nested(text) => text,
        }
    }
}

/// Splits a text into its outermost variables and the texts between them.
///
/// The variables that the first pass of the substitution finds are those of `scan`; the
/// text between two of them is searched again, as the next pass does.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut behind = 0;
    for span in variable::scan(text) {
        if span.start < behind {
            // It is inside the previous variable.
            continue;
        }
        let (start, end, name) = grow(text, &span, behind);
        push_text(&text[behind..start], behind > 0, &mut pieces);
        pieces.push(Piece::Variable { name });
        behind = end;
    }
    push_text(&text[behind..], behind > 0, &mut pieces);
    pieces
}

fn push_text(text: &str, follows: bool, out: &mut Vec<Piece>) {
    if follows && has_variable(text) {
        out.extend(pieces(text));
    } else if !text.is_empty() {
        out.push(Piece::Text(text.to_owned()));
    }
}

/// A variable with its surroundings: an innermost variable grows outwards as long as
/// replacing it by something else completes a larger one around it.
fn grow(text: &str, span: &VariableSpan, behind: usize) -> (usize, usize, VariableText) {
    let (mut start, mut end) = (span.start, span.end);
    let mut nested = false;
    while let Some(opens) = text[behind..start].rfind("{{").map(|at| behind + at) {
        if text[..opens].ends_with('\\') {
            break;
        }
        match closing(text, opens) {
            Some(closes) if closes > end => (start, end, nested) = (opens, closes, true),
            _ => break,
        }
    }
    let name = if nested {
        VariableText::Nested(text.get(start + 2..end - 2).unwrap_or_default().to_owned())
    } else {
        VariableText::Plain(span.name(text).expression)
    };
    (start, end, name)
}

/// The end of a variable that begins at `open` and contains whole variables.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut masked = text.to_owned();
    loop {
        let inner = variable::scan(&masked)
            .into_iter()
            .find(|span| span.start >= open)?;
        if inner.start == open {
            return Some(inner.end);
        }
        // Replace the inner variable by something of the same length.
        masked.replace_range(inner.start..inner.end, &"x".repeat(inner.end - inner.start));
    }
}

/// The value of `{{@}}` (docs/spec/conditions.md §4.6): the leaf's path without its first
/// two parts, in the resource; only what follows a `foreach` counts.
fn own_path(path: &str) -> String {
    let mut result = String::from("request.object");
    let path = path.replace("\\/", "\u{0}");
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let foreach = parts.iter().position(|part| *part == "foreach");
    for part in parts.iter().skip(foreach.map_or(0, |at| at + 1) + 2) {
        let part = part.replace('\u{0}', "/");
        let plain = part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part
                .chars()
                .all(|rest| rest.is_ascii_alphanumeric() || matches!(rest, '_' | ')'));
        if part.parse::<u32>().is_ok() {
            result.push_str(&format!("[{part}]"));
        } else if plain {
            result.push_str(&format!(".{part}"));
        } else {
            let escaped = part.replace('\\', "\\\\").replace('"', "\\\"");
            result.push_str(&format!(".\"{escaped}\""));
        }
    }
    result
}

/// Whether a text contains variables, references or escapes of them.
pub(crate) fn is_changed_by_substitution(text: &str) -> bool {
    has_variable(text) || text.contains("\\{{") || text.contains("$(")
}

/// anyPattern is serialised as JSON once more, which makes every number a float64
/// (docs/spec/patterns.md §1).
pub(crate) fn floats_only(tree: &Tree) -> Tree {
    let value = match &tree.value {
        TreeValue::Int(number) => TreeValue::Float(*number as f64),
        TreeValue::List(items) => TreeValue::List(items.iter().map(floats_only).collect()),
        TreeValue::Map(members) => {
            let mut members = members.clone();
            members
                .iter_mut()
                .for_each(|member| member.value = floats_only(&member.value));
            TreeValue::Map(members)
        }
        other => other.clone(),
    };
    Tree::new(value, tree.span)
}

impl Module {
    /// The block that computes a message with variables; `None` for one without.
    pub fn message_block(
        &mut self,
        message: &Spanned<String>,
        scope: &Scope,
        source: SourceId,
    ) -> Option<BlockId> {
        if !is_changed_by_substitution(&message.value) {
            return None;
        }
        let mut emitter = Emitter::new(source, scope.clone(), self);
        let failed = emitter.block.label();
        let document = Tree::new(
            TreeValue::String(message.value.as_str().into()),
            message.span,
        );
        let value = emitter.document(&document, failed);
        emitter.block.push(Operation::ReturnValue { src: value });
        emitter.flush_cold();
        emitter.block.place(failed);
        emitter.block.push(Operation::ReturnFailed {
            depth: ForeachDepth(0),
        });
        let block = emitter.block;
        Some(self.add(block))
    }
}
