//! Values with variables in them (sheet 03, section 4): a tree in, code that computes
//! the substituted value out. What has no variable is a constant.

use kpvm::tree::{Member, Tree, TreeValue};
use kpvm_format::instruction::Op;

use super::emitter::Emitter;
use super::variable::{self, VariableSpan};
use crate::ir::{Instruction, Label, Register};

/// Whether a text has a variable in it.
pub fn has_variable(text: &str) -> bool {
    !variable::scan(text).is_empty()
}

/// Whether any text or key of a tree has a variable in it.
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

/// Every `\{{` made `{{`, as the substitution leaves a text without variables.
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

impl Emitter<'_, '_> {
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
                self.block.push(Instruction::new(Op::ListBegin).a(list));
                for (index, item) in items.iter().enumerate() {
                    let item = self.template(item, &format!("{path}/{index}"), on_error);
                    self.block
                        .push(Instruction::new(Op::ListPush).a(list).b(item.0));
                }
                let result = self.load(Instruction::new(Op::ListEnd).b(list));
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
        self.block.push(Instruction::new(Op::ListBegin).a(list));
        for member in &members {
            if computed_keys {
                let key = self.key_template(&member.key, path, on_error);
                self.block
                    .push(Instruction::new(Op::ListPush).a(list).b(key.0));
            }
            let path = format!("{path}/{}", member.key.replace('/', "\\/"));
            let value = self.template(&member.value, &path, on_error);
            self.block
                .push(Instruction::new(Op::ListPush).a(list).b(value.0));
        }
        let end = if computed_keys {
            Instruction::new(Op::MapEndPairs)
        } else {
            let keys: Vec<String> = members
                .iter()
                .map(|member| variable::unescape_variables(&member.key).into_owned())
                .collect();
            Instruction::new(Op::MapEnd).c(self.pools.text_list(&keys))
        };
        let result = self.load(end.b(list));
        self.block.leave_list();
        result
    }

    /// A key with variables has to come out as text.
    pub fn key_template(&mut self, key: &str, path: &str, on_error: Label) -> Register {
        let value = self.text_template(key, path, on_error);
        if !has_variable(key) {
            return value;
        }
        let error = format!("expected string after substituting variables in key \"{key}\"");
        let text = self.pools.text(&error);
        let checked = self.block.register();
        self.block.push(
            Instruction::new(Op::RequireKeyText)
                .a(checked.0)
                .b(value.0)
                .c(text)
                .target(on_error),
        );
        checked
    }

    /// Lowers a text: one variable alone keeps its value's type, others are put into
    /// the text. What a variable brings is data: it is never searched for variables.
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
        self.block
            .push(Instruction::new(Op::TextBegin).a(accumulator));
        let last = pieces.len() - 1;
        for (index, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => {
                    let text = self.pools.text(&variable::unescape_variables(text));
                    self.block
                        .push(Instruction::new(Op::TextLiteral).a(accumulator).c(text));
                }
                Piece::Variable { name } => {
                    let value = self.variable(name, path, on_error);
                    let only_variables =
                        !pieces.iter().any(|piece| matches!(piece, Piece::Text(_)));
                    if index == last && only_variables {
                        // What stood in front came out empty: the last one is alone
                        // now and keeps its type.
                        let text_follows = self.block.label();
                        let alone = self.block.label();
                        self.block.push(
                            Instruction::new(Op::JumpIfTextEmpty)
                                .a(accumulator)
                                .target(alone),
                        );
                        self.block.jump(text_follows);
                        self.block.place(alone);
                        self.assign(result, value);
                        self.block.jump(end);
                        self.block.place(text_follows);
                    }
                    let failed = self.unresolved(name.shown(), path, on_error);
                    self.block.push(
                        Instruction::new(Op::TextValue)
                            .a(accumulator)
                            .b(value.0)
                            .target(failed),
                    );
                }
            }
        }
        self.block
            .push(Instruction::new(Op::TextEnd).a(result.0).b(accumulator));
        self.block.leave_accumulator();
        self.block.place(end);
        result
    }

    /// Where errors of a variable arrive. DELETE rewrites the name, not the path.
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

    fn variable(&mut self, name: &VariableText, path: &str, on_error: Label) -> Register {
        match name {
            VariableText::Plain(expression) => {
                let expression = if expression == "@" {
                    "request.object"
                } else {
                    expression
                };
                let failed = self.unresolved(expression, path, on_error);
                self.query(expression, failed)
            }
            VariableText::Nested(text) => {
                // FALLBACK: what the inner variables give becomes part of an expression,
                // so the expression is known only at run time.
                let inner = self.text_template(text, path, on_error);
                let path_text = self.pools.text(path);
                let result = self.block.register();
                self.block.push(
                    Instruction::new(Op::EvaluateText)
                        .a(result.0)
                        .b(inner.0)
                        .c(path_text)
                        .target(on_error),
                );
                result
            }
        }
    }
}

/// A piece of a text with variables.
enum Piece {
    Text(String),
    Variable { name: VariableText },
}

/// What a variable asks for.
enum VariableText {
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

/// Cuts a text into its outermost variables and what stands between them.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((start, end, name)) = next_variable(rest) {
        if start > 0 {
            pieces.push(Piece::Text(rest[..start].to_owned()));
        }
        pieces.push(Piece::Variable { name });
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    pieces
}

/// The first outermost variable of a text: the innermost ones are found by the
/// grammar; one grows outwards while putting something else in its place makes a
/// larger one around it.
fn next_variable(text: &str) -> Option<(usize, usize, VariableText)> {
    let span: VariableSpan = variable::scan(text).into_iter().next()?;
    let (mut start, mut end) = (span.start, span.end);
    let mut nested = false;
    loop {
        let opens = text[..start]
            .rfind("{{")
            .filter(|&at| !text[..at].ends_with('\\'));
        let Some(opens) = opens else { break };
        // Everything between here and the brace must be able to stand in a variable
        // once the inner ones are gone.
        let Some(closes) = closing(text, opens) else {
            break;
        };
        if closes <= end {
            break;
        }
        (start, end, nested) = (opens, closes, true);
    }
    let name = if nested {
        let body = text.get(start + 2..end - 2).unwrap_or_default();
        VariableText::Nested(body.to_owned())
    } else {
        VariableText::Plain(span.name(text).expression)
    };
    Some((start, end, name))
}

/// The end of a variable that begins at `open` and has whole variables inside.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut masked = text.to_owned();
    loop {
        let inner = variable::scan(&masked)
            .into_iter()
            .find(|span| span.start >= open)?;
        if inner.start == open {
            return Some(inner.end);
        }
        // Put something of the same length in the inner variable's place.
        masked.replace_range(inner.start..inner.end, &"x".repeat(inner.end - inner.start));
    }
}
