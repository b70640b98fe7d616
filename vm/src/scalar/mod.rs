//! Scalar semantics shared by compile time and run time: how Kyverno compares
//! one scalar of a resource with one scalar of a policy.
//!
//! Texts and scalars come in, verdicts and numbers go out. Nothing here walks a
//! map or a list, recurses, or reads anything but its arguments.

pub mod duration;
pub mod leaf;
pub mod number;
pub mod pattern_string;
pub mod quantity;
pub mod wildcard;

pub use kpvm_format::table::{Operator, WildcardClass};
pub use leaf::LeafPattern;
pub use pattern_string::{Comparison, Conjunct, Scalar, ScalarOperand, StringPattern};
pub use quantity::Quantity;
