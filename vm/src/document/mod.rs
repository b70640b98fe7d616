//! Documents: values read from JSON or YAML into one flat, reusable buffer of nodes.
//!
//! Enters: JSON bytes, a [`kpvm_syntax::tree::Tree`] (from YAML), a `serde_json::Value`,
//! or values computed by a rule, piece by piece. Leaves: a [`NodeId`], looked at
//! through a [`View`]. Map keys that the bundle's rules know are resolved to their
//! symbol numbers while reading, once; after that a lookup compares numbers.
//!
//! Never happens here: recursion over the input, a panic on any input, a copy of
//! plain text (a string node points into the text it came from), or, once the
//! buffer has grown to the size of its work, an allocation while reading JSON.

mod buffer;
mod cut;
mod extended;
mod json;
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
