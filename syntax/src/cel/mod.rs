//! The grammar of CEL (docs/spec/cel.md §3).
//!
//! Parses the text of an expression into a syntax tree with macros expanded, or returns the
//! first syntax error with its location. Types and functions are unknown here.

use std::fmt;

pub mod ast;
mod lexer;
mod macros;
mod parser;

pub use parser::{parse, qualified_name};

/// Reason why a text is not a CEL expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Offset in the text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

impl SyntaxError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

/// Macros available in addition to the standard ones, by library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Macros {
    /// `optMap`, `optFlatMap`, and the syntax `a.?b`.
    pub optional: bool,
    /// Comprehensions with two variables.
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
