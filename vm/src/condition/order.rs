//! Ordering comparisons of numbers, durations, quantities and versions
//! (docs/spec/conditions.md §3.7 and §3.8).

use std::cmp::Ordering;

use super::{ConditionError, Judge, NANOS_PER_SECOND};
use crate::document::{Kind, NodeId};
use kpvm_semantics::Quantity;
use kpvm_semantics::duration;
use kpvm_semantics::number::{float_to_i64_amd64, parse_go_float};
use kpvm_semantics::semver::Version;

/// Ordering of key and value required by an operator.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Wanted {
    /// Whether the ordering is accepted; values that cannot be compared (NaN) never are.
    fn accepts(self, order: Option<Ordering>) -> bool {
        let Some(order) = order else { return false };
        match self {
            Wanted::Greater => order.is_gt(),
            Wanted::GreaterOrEqual => order.is_ge(),
            Wanted::Less => order.is_lt(),
            Wanted::LessOrEqual => order.is_le(),
        }
    }
}

impl Judge<'_, '_> {
    /// The plain operators (docs/spec/conditions.md §3.7).
    pub(super) fn ordered(
        &mut self,
        key: NodeId,
        value: NodeId,
        wanted: Wanted,
    ) -> Result<bool, ConditionError> {
        self.spend(self.view.text(key).len() + self.view.text(value).len())?;
        Ok(wanted.accepts(match self.view.kind(key) {
            Some(Kind::Int | Kind::Float) => {
                let number = self.number(key).unwrap_or_default();
                let durations = self.duration_seconds(key, value);
                self.number_order(number, durations, value)
            }
            Some(Kind::String) => self.string_order(key, value),
            None | Some(Kind::Null | Kind::False | Kind::True | Kind::List | Kind::Map) => None,
        }))
    }

    /// A number as a float.
    fn number(&self, node: NodeId) -> Option<f64> {
        match self.view.int(node) {
            Some(value) => Some(value as f64),
            None => self.view.float(node),
        }
    }

    /// A number key: compared as seconds if the value is a duration, otherwise as a number.
    fn number_order(
        &self,
        key: f64,
        durations: Option<(f64, f64)>,
        value: NodeId,
    ) -> Option<Ordering> {
        if let Some((key, value)) = durations {
            return key.partial_cmp(&value);
        }
        let value = match self.view.kind(value)? {
            Kind::String => parse_go_float(self.view.str(value))?,
            _ => self.number(value)?,
        };
        key.partial_cmp(&value)
    }

    /// A string key: the first interpretation that both values have decides.
    fn string_order(&mut self, key: NodeId, value: NodeId) -> Option<Ordering> {
        if let Some((key, value)) = self.duration_seconds(key, value) {
            return key.partial_cmp(&value);
        }
        let text = self.view.str(key);
        let other = match self.view.kind(value)? {
            Kind::String => Some(self.view.str(value)),
            Kind::Int | Kind::Float => None,
            Kind::Null | Kind::False | Kind::True | Kind::List | Kind::Map => return None,
        };
        if let (Some(key), Some(value)) = (Quantity::parse(text), other.and_then(Quantity::parse)) {
            return Some(key.cmp(&value));
        }
        // ParseFloat accepts everything that ParseInt accepts, so this includes step 4.
        if let Some(number) = parse_go_float(text) {
            let durations = self.duration_text(value).map(|value| {
                let key = float_to_i64_amd64(number).wrapping_mul(NANOS_PER_SECOND);
                (super::seconds(key), super::seconds(value))
            });
            return self.number_order(number, durations, value);
        }
        let (key, value) = (Version::parse(text).ok()?, Version::parse(other?).ok()?);
        Some(key.order(&value))
    }

    /// The operators for durations (docs/spec/conditions.md §3.8).
    pub(super) fn durations_ordered(
        &mut self,
        key: NodeId,
        value: NodeId,
        wanted: Wanted,
    ) -> Result<bool, ConditionError> {
        self.spend(self.view.text(key).len() + self.view.text(value).len())?;
        let (Some(key), Some(value)) = (self.any_duration(key), self.any_duration(value)) else {
            return Ok(false);
        };
        Ok(wanted.accepts(Some(key.cmp(&value))))
    }

    /// Nanoseconds of a duration text, including `0`, or of a number of seconds.
    fn any_duration(&self, node: NodeId) -> Option<i64> {
        match self.view.kind(node)? {
            Kind::String => duration::parse(self.view.str(node)),
            _ => self.number_as_duration(node),
        }
    }
}
