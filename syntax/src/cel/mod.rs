//! The grammar of CEL (docs/spec/cel.md §3).
//!
//! The text of an expression goes in; its syntax tree comes out, with macros expanded, or
//! the first syntax error with its place in the text. Types and functions are unknown here.

pub mod ast;
mod lexer;
mod macros;
mod parser;

pub use parser::{parse, qualified_name};

/// Why a text is not a CEL expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// Offset in the text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl SyntaxError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

/// The macros that are available besides the standard ones, by the library that brings them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Macros {
    /// `optMap`, `optFlatMap`, and the syntax `a.?b`.
    pub optional: bool,
    /// The comprehensions with two variables.
    pub two_variables: bool,
    /// Kyverno's `orValue`.
    pub or_value: bool,
    /// `sortBy`.
    pub lists: bool,
    /// `cel.bind`.
    pub bindings: bool,
    /// `cel.block`, `cel.index` and the variables of its comprehensions.
    pub block: bool,
    /// `math.greatest` and `math.least`.
    pub math: bool,
}
