//! Comparison of values of libraries.

use crate::document::Opaque;
use kpvm_semantics::quantity::Quantity;
use kpvm_semantics::semver::Version;
use kpvm_semantics::stored_quantity::number_of;

/// Whether two values of a type are equal, given their texts.
pub(crate) fn equal(opaque: Opaque, left: &str, right: &str) -> bool {
    match opaque {
        Opaque::Quantity => {
            let [left, right] = [left, right].map(|text| Quantity::parse(number_of(text)));
            left.is_some() && left == right
        }
        Opaque::Semver => match (Version::parse(left), Version::parse(right)) {
            (Ok(left), Ok(right)) => left.order(&right).is_eq(),
            _ => false,
        },
        _ => left == right,
    }
}
