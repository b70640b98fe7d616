//! Documents: values read from JSON or YAML into one flat, reusable buffer of nodes.
//!
//! Input: JSON bytes, a [`kpvm_syntax::tree::Tree`] (from YAML), a `serde_json::Value`, or
//! values computed by a rule, piece by piece. Output: a [`NodeId`], accessed through a
//! [`View`]. Map keys known to the bundle's rules are resolved to symbol numbers once,
//! while reading; after that a lookup compares numbers.
//!
//! Never happens here: recursion over the input, a panic on any input, a copy of plain text
//! (a string node points into its source text), or, once the buffer has reached its working
//! size, an allocation while reading JSON.

mod buffer;
mod cut;
mod extended;
mod json;
mod lanes;
mod node;
pub(crate) mod projection;
mod push;
mod scan;
mod skip;
mod view;
mod walk;

#[cfg(test)]
mod tests;

pub use buffer::{BufferFull, DocumentBuffer};
pub(crate) use cut::cut;
pub use extended::{Extended, Opaque};
pub use json::{Found, JsonError, JsonProblem, Numbers, ReadOptions};
pub use node::{Key, Kind, Label, Node, NodeId, TextRef, TextSource, Texts};
pub(crate) use scan::{plain_end, space};
pub(crate) use skip::{Skipped, kind_in_front, skip_value};
pub use view::{ChildRange, View};
pub(crate) use walk::{Visitor, walk};
