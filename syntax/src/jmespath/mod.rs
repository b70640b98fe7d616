//! The grammar of Kyverno's dialect of JMESPath.
//!
//! Input: the text of one expression (between `{{` and `}}`, or of a field such as
//! `jmesPath`). Output: an [`Expression`], or a [`SyntaxError`] with Kyverno's own text.
//! Nothing is evaluated here.
//!
//! The dialect is that of the fork `kyverno/go-jmespath` (docs/spec/jmespath.md): the
//! original specification, with quirks and without `let`, `$` and arithmetic. Assertion
//! trees (`validate.assert`) have these: their expressions use another [`Dialect`], which
//! is only ever compiled.
//!
//! The lexer is hand-written. Its quirks (where a raw string ends, what a backslash
//! consumes, a single `=` that is a token and fails only in the parser) and the exact texts
//! of its errors matter most, and a lexer generator would need hand-written code for each
//! of them.
//!
//! `lexer` produces tokens, `parser` the tree.

use std::fmt;

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

/// Maximum nesting of an expression: of parentheses, brackets and operands in the text, of
/// nodes in the tree, and of a literal's lists and maps in addition to its own depth.
/// Kyverno has no such limit; code that traverses an [`Expression`] may rely on it.
pub const MAX_DEPTH: usize = 250;

/// Maximum length of an expression in code points. Kyverno has no such limit.
pub const MAX_CODE_POINTS: usize = 100_000;

/// Parses a JSON text like the function `parse_json`: strictly, with every number a float,
/// and nested at most [`MAX_DEPTH`] deep.
///
/// # Errors
/// Go's error text.
pub fn parse_json_text(text: &str) -> Result<Tree, String> {
    let span = Span::default();
    let value = literal::parse_json(text, span, MAX_DEPTH)?;
    Ok(Tree::new(value, span))
}

/// Dialect of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Kyverno's own, in `{{ }}` (docs/spec/jmespath.md).
    #[default]
    Kyverno,
    /// The community's, in assertion trees (docs/spec/assert.md §8).
    Assertion,
}

/// Reason why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The text that Kyverno prints after `incorrect query <expression>: `
    /// (docs/spec/jmespath.md §1 to §3). Most begin with `SyntaxError: `; errors of numbers
    /// and of JSON do not. Only the two limits of this module have their own texts.
    pub message: String,
    /// Byte offset of the problem in the expression; always at a character boundary, and
    /// the text's length if the end is the problem.
    pub offset: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

impl SyntaxError {
    /// An error of the grammar, which Kyverno prefixes.
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
