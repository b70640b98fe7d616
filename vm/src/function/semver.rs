//! `semver_compare` (docs/spec/jmespath.md §10).

use kpvm_semantics::FunctionError;
use kpvm_semantics::semver::{Version, is_in_range};

use super::Outcome;
use super::values::Values;
use crate::document::NodeId;

/// An invalid version counts as 0.0.0.
pub(super) fn semver_compare(values: &mut Values<'_>, version: NodeId, range: NodeId) -> Outcome {
    values.charge(values.str(range).len() as u64 / 4)?;
    let version = Version::parse(values.str(version)).unwrap_or_default();
    let result = is_in_range(&version, values.str(range)).map_err(FunctionError::Failed)?;
    values.new_bool(result)
}
