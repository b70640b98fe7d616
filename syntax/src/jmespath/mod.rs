//! The grammar of Kyverno's dialect of JMESPath.
//!
//! In: the text of one expression (what stands between `{{` and `}}`, or a
//! field such as `jmesPath`). Out: an [`Expression`], or a [`SyntaxError`] with
//! Kyverno's own words. An expression is never evaluated here, and no policy or
//! resource is looked at.
//!
//! The dialect is the fork `kyverno/go-jmespath` (docs/spec/jmespath.md): the original
//! specification, with quirks. There is no `let`, no `$`, no arithmetic syntax. Assertion
//! trees (`validate.assert`) have these: their expressions are of another
//! [`Dialect`], which is only ever compiled.
//!
//! The lexer is written by hand. Its quirks (where a raw string ends, what a
//! backslash swallows, a lone `=` that is a token and fails only in the parser)
//! and the exact texts of its errors are the point of it, and a lexer generator
//! would need a hand-written part for each of them.
//!
//! `lexer` makes tokens, `parser` makes the tree.

use crate::tree::{Span, Tree};

pub mod ast;
mod display;
mod lexer;
mod literal;
mod mention;
mod parser;

#[cfg(test)]
mod tests;

pub use ast::{
    Arithmetic, AssertionNode, Comparator, Expression, FunctionCall, HashEntry, Node, Projection,
    ProjectionKind, Slice,
};
pub use mention::mentions;
pub use parser::{parse, parse_in};

/// Greatest nesting of one expression: of parentheses, brackets and operands in
/// the text, of nodes in the tree, and of a literal's lists and maps on top of
/// the place where it stands. Kyverno has no such limit; code that walks an
/// [`Expression`] may rely on it.
pub const MAX_DEPTH: usize = 250;

/// Greatest length of one expression in code points. Kyverno has no such limit.
pub const MAX_CODE_POINTS: usize = 100_000;

/// Reads a JSON text as the function `parse_json` does: strictly, every number a
/// float. Nested at most [`MAX_DEPTH`] deep.
///
/// # Errors
/// What is wrong with it, in the words of Go.
pub fn parse_json_text(text: &str) -> Result<Tree, String> {
    let span = Span::default();
    let value = literal::parse_json(text, span, MAX_DEPTH)?;
    Ok(Tree::new(value, span))
}

/// Which JMESPath an expression is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Kyverno's own, in `{{ }}` (docs/spec/jmespath.md).
    #[default]
    Kyverno,
    /// The community's, in assertion trees (docs/spec/assert.md §8).
    Assertion,
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// The text that Kyverno prints after `incorrect query <expression>: `
    /// (docs/spec/jmespath.md §1 to 3). Most begin with `SyntaxError: `; errors of
    /// numbers and of JSON do not. Only the two limits of this module have words
    /// of their own.
    pub message: String,
    /// The byte of the expression at which the problem was seen; always at a
    /// character boundary, and the text's length where the end is the problem.
    pub offset: usize,
}

impl SyntaxError {
    /// An error of the grammar, to which Kyverno adds a prefix.
    fn grammar(message: impl std::fmt::Display, offset: usize) -> Self {
        Self::plain(format!("SyntaxError: {message}"), offset)
    }

    /// An error that Kyverno passes on from a library, without prefix.
    fn plain(message: impl Into<String>, offset: usize) -> Self {
        Self {
            message: message.into(),
            offset,
        }
    }
}
