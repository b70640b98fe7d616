//! What scalars and texts mean to Kubernetes, Go and Kyverno.
//!
//! The compiler and the VM both read quantities, durations, wildcards and the rest with
//! this crate, so they agree by construction. Texts and scalars go in; values, verdicts
//! and error texts in Go's and Kyverno's words come out. Documents, instructions and
//! I/O are unknown here.

pub mod anchor;
pub mod calendar;
pub mod cel_format;
pub mod duration;
mod error;
pub mod exact_quantity;
pub mod go_netip;
pub mod go_regex;
pub mod go_url;
pub mod go_yaml;
pub mod image;
pub mod image_name;
pub mod labels;
pub mod layout;
pub mod leaf;
pub mod limits;
pub mod number;
pub mod pattern_string;
pub mod quantity;
pub mod quote;
pub mod resource_kind;
pub mod semver;
pub mod stored_quantity;
pub mod time;
pub mod timestamp;
pub mod wildcard;
pub mod zone;

pub use error::FunctionError;
pub use leaf::LeafPattern;
pub use pattern_string::{Comparison, Conjunct, Operator, Scalar, ScalarOperand, StringPattern};
pub use quantity::Quantity;
pub use wildcard::WildcardClass;
