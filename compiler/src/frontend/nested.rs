//! Variables inside variables: `{{ a.{{ b }} }}`.
//!
//! Kyverno inserts the inner value's text into the outer expression and parses the result.
//! If the inner variable is a whole key (`a.{{b}}`, `a."{{b}}"`) or inside a raw string
//! (`'…{{b}}…'`), the expression is the same whatever the text is, and it is compiled with
//! dynamic access. Anything else goes through the run-time fallback (`EvaluateText`), and
//! so does an error, whose text comes from the fallback.

use super::emitter::Emitter;
use super::expression::Current;
use super::template::{Piece, pieces};
use crate::ir::{Label, Operation, Register};
use kpvm_format::instruction::immediate::ExpressionPlace;
use kpvm_syntax::jmespath::{self, Expression};

/// The role of an inner variable in the outer expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// After a dot: a name, if its text is one.
    Bare,
    /// A quoted key: data, if its text contains nothing that ends the quotes.
    Key,
    /// In a raw string: data, likewise.
    RawString,
}

impl Emitter<'_> {
    /// Lowers a variable whose text contains variables.
    pub(super) fn nested_variable(&mut self, text: &str, path: &str, on_error: Label) -> Register {
        let mut outer = String::new();
        let mut inner: Vec<(String, Register)> = Vec::new();
        let mut parts = Vec::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => {
                    outer.push_str(&text);
                    parts.push(Err(text));
                }
                Piece::Variable { name } => {
                    let value = self.variable(&name, path, on_error);
                    let register = self.text_of(&[Ok(value)], on_error);
                    let placeholder = format!("kpvm_inner_{}", inner.len());
                    outer.push_str(&placeholder);
                    inner.push((placeholder, register));
                    parts.push(Ok(register));
                }
            }
        }
        let query = self.text_of(&parts, on_error);
        let result = self.block.register();
        let (fallback, end) = (self.block.label(), self.block.label());
        if let Some((expression, places)) = static_shape(&outer, &inner) {
            if self.scope.rewrites_delete && outer.contains("request.object") {
                let keeps = self.block.label();
                self.block
                    .push(Operation::JumpUnlessDelete { target: keeps });
                self.block.jump(fallback);
                self.block.place(keeps);
            }
            let refused = self.block.label();
            for ((_, register), place) in inner.iter().zip(&places) {
                let (place, target) = match place {
                    Place::Bare => (ExpressionPlace::Name, fallback),
                    Place::Key => (ExpressionPlace::QuotedKey, refused),
                    Place::RawString => (ExpressionPlace::RawString, refused),
                };
                let guard = Operation::JumpUnlessPlain {
                    src: *register,
                    place,
                    target,
                };
                self.block.push(guard);
            }
            self.ensure_entries(&outer, fallback);
            if kpvm_syntax::jmespath::mentions(&outer, "images") {
                self.ensure_images(fallback);
            }
            let saved = std::mem::replace(&mut self.inner, inner.into_iter().collect());
            let value = self.expression(&expression, Current::Context, fallback, false);
            self.inner = saved;
            self.assign(result, value);
            self.block.jump(end);
            self.block.place(refused);
            self.fail(
                "the value of a variable inside a variable ends the quotes around it: it is data, no part of an expression",
                on_error,
            );
        }
        self.block.place(fallback);
        let path = self.module.text(path);
        let evaluate = Operation::EvaluateText {
            dst: result,
            src: query,
            path,
            target: on_error,
        };
        self.block.push(evaluate);
        self.block.place(end);
        result
    }

    /// The concatenation of values and texts as a text.
    pub(super) fn text_of(
        &mut self,
        parts: &[Result<Register, String>],
        on_error: Label,
    ) -> Register {
        let accumulator = self.block.enter_accumulator();
        self.block.push(Operation::TextBegin { accumulator });
        for part in parts {
            match part {
                Ok(value) => {
                    let append = Operation::TextValue {
                        accumulator,
                        src: *value,
                        target: on_error,
                    };
                    self.block.push(append);
                }
                Err(text) => {
                    let text = self.module.text(text);
                    self.block
                        .push(Operation::TextLiteral { accumulator, text });
                }
            }
        }
        let text = self.load(|dst| Operation::TextEnd { dst, accumulator });
        self.block.leave_accumulator();
        text
    }

    /// A raw string with inner variables; `None` for one without.
    pub(super) fn inner_text(&mut self, text: &str, on_error: Label) -> Option<Register> {
        let mut parts: Vec<Result<Register, String>> = Vec::new();
        let mut rest = text;
        while let Some((at, name, register)) = self
            .inner
            .iter()
            .filter_map(|(name, &register)| {
                Some((rest.find(name.as_str())?, name.clone(), register))
            })
            .min_by_key(|&(at, ref name, _)| (at, std::cmp::Reverse(name.len())))
        {
            parts.push(Err(rest[..at].to_owned()));
            parts.push(Ok(register));
            rest = &rest[at + name.len()..];
        }
        if parts.is_empty() {
            return None;
        }
        parts.push(Err(rest.to_owned()));
        Some(self.text_of(&parts, on_error))
    }
}

/// The outer expression with names in place of the inner variables, and the role of each;
/// `None` if one of them is more than a key or a part of a raw string.
fn static_shape(outer: &str, inner: &[(String, Register)]) -> Option<(Expression, Vec<Place>)> {
    let places = inner.iter().map(|(name, _)| {
        let at = outer.find(name.as_str())?;
        let (before, after) = (&outer[..at], &outer[at + name.len()..]);
        let is_key = !after
            .starts_with(|next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | '('));
        if before.ends_with(".\"") && after.starts_with('"') {
            Some(Place::Key)
        } else if before.ends_with('.') && is_key && !in_raw_string(before) {
            Some(Place::Bare)
        } else {
            in_raw_string(before).then_some(Place::RawString)
        }
    });
    let places = places.collect::<Option<Vec<Place>>>()?;
    Some((jmespath::parse(outer.trim()).ok()?, places))
}

/// Whether a text ends inside a raw string. Texts that mix several kinds of quotes are left
/// to the fallback.
fn in_raw_string(before: &str) -> bool {
    !before.contains(['`', '\\'])
        && before.matches('"').count().is_multiple_of(2)
        && before
            .split('"')
            .step_by(2)
            .map(|part| part.matches('\'').count())
            .sum::<usize>()
            % 2
            == 1
}
