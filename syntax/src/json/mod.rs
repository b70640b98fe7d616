//! JSON with places.
//!
//! Texts are parsed into [`Tree`]s with the span of every value, or a [`Fault`] with its
//! offset. The grammar is that of Go's `encoding/json`: nothing lenient, the last of equal
//! keys wins, half a surrogate pair is U+FFFD.
//!
//! [`read`] and [`read_stream`] build trees. [`Reader`] returns tokens, for callers that
//! need no tree.

mod reader;
mod tree;

pub use reader::{Expected, Fault, Reader, Token};
pub use tree::{Error, Numbers, Options, read, read_stream};

#[cfg(doc)]
use crate::tree::Tree;

#[cfg(test)]
mod tests;
