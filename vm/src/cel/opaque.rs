//! Comparison of values of libraries.

use crate::document::Opaque;
use kpvm_semantics::quantity::Quantity;

/// Whether two values of a type are equal, given their texts.
pub(crate) fn equal(opaque: Opaque, left: &str, right: &str) -> bool {
    match opaque {
        Opaque::Quantity => match (Quantity::parse(left), Quantity::parse(right)) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        },
        _ => left == right,
    }
}
