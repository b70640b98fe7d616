//! Evaluates one condition whose key and value are known (docs/spec/conditions.md §3.2 to
//! §3.10).
//!
//! A wrong type is never an error, only false or true as specified. Errors are inputs on
//! which Kyverno itself crashes, and exhausted fuel, which bounds the time for any values.
//! There is no recursion, and no allocation for scalars and for lists of scalars.

use std::fmt;

mod equality;
mod json_text;
mod membership;
mod order;

use std::fmt::Write;

use kpvm_format::condition::ConditionOperator;

use crate::document::{Kind, NodeId, View};
use crate::text::append_go_value;
use kpvm_semantics::number::{ShortText, write_v};
use kpvm_semantics::{duration, wildcard};

/// Reason why a condition has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionError {
    /// Kyverno crashes here: `In` and `NotIn` assume that every item of a list key is a
    /// string (docs/spec/conditions.md §3.10). The text is that of the crash.
    NotAString(&'static str),
    /// The comparison needs more steps than remain.
    OutOfFuel,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAString(value) => write!(
                f,
                "interface conversion: interface {{}} is {value}, not string"
            ),
            Self::OutOfFuel => f.write_str("the condition needs too many steps"),
        }
    }
}

impl std::error::Error for ConditionError {}

/// Bytes per step of fuel.
const BYTES_PER_STEP: u64 = 32;

/// Whether `key operator value` holds. [`NodeId::MISSING`] counts as null.
///
/// Deducts the work from `fuel`: one step per comparison of two scalars, more for long
/// texts.
pub(crate) fn holds(
    operator: ConditionOperator,
    key: NodeId,
    value: NodeId,
    view: &View<'_>,
    fuel: &mut u64,
) -> Result<bool, ConditionError> {
    let mut judge = Judge { view: *view, fuel };
    judge.spend(0)?;
    // A null key makes every operator false (docs/spec/conditions.md §3.4).
    if matches!(view.kind(key), None | Some(Kind::Null)) {
        return Ok(false);
    }
    match operator {
        ConditionOperator::Equals => judge.equal(key, value),
        ConditionOperator::NotEquals => judge.equal(key, value).map(|equal| !equal),
        ConditionOperator::In => judge.old_in(key, value, true),
        ConditionOperator::NotIn => judge.old_in(key, value, false),
        ConditionOperator::AnyIn => judge.is_in(key, value, membership::ANY_IN),
        ConditionOperator::AllIn => judge.is_in(key, value, membership::ALL_IN),
        ConditionOperator::AnyNotIn => judge.is_in(key, value, membership::ANY_NOT_IN),
        ConditionOperator::AllNotIn => judge.is_in(key, value, membership::ALL_NOT_IN),
        ConditionOperator::GreaterThan => judge.ordered(key, value, order::Wanted::Greater),
        ConditionOperator::GreaterThanOrEquals => {
            judge.ordered(key, value, order::Wanted::GreaterOrEqual)
        }
        ConditionOperator::LessThan => judge.ordered(key, value, order::Wanted::Less),
        ConditionOperator::LessThanOrEquals => {
            judge.ordered(key, value, order::Wanted::LessOrEqual)
        }
        ConditionOperator::DurationGreaterThan => {
            judge.durations_ordered(key, value, order::Wanted::Greater)
        }
        ConditionOperator::DurationGreaterThanOrEquals => {
            judge.durations_ordered(key, value, order::Wanted::GreaterOrEqual)
        }
        ConditionOperator::DurationLessThan => {
            judge.durations_ordered(key, value, order::Wanted::Less)
        }
        ConditionOperator::DurationLessThanOrEquals => {
            judge.durations_ordered(key, value, order::Wanted::LessOrEqual)
        }
        ConditionOperator::Never => Ok(false),
    }
}

/// Context of all operators.
struct Judge<'v, 'f> {
    view: View<'v>,
    fuel: &'f mut u64,
}

/// Text form of a value, as printed by Go's `fmt.Sprint` (docs/spec/conditions.md §3.2).
enum TextForm<'v> {
    /// A string, or a constant word.
    Given(&'v [u8]),
    /// A number.
    Number(ShortText),
    /// A list or map.
    Rendered(String),
}

impl TextForm<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            TextForm::Given(bytes) => bytes,
            TextForm::Number(text) => text.as_str().as_bytes(),
            TextForm::Rendered(text) => text.as_bytes(),
        }
    }

    fn str(&self) -> &str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

impl<'v> Judge<'v, '_> {
    /// Charges one step for this many bytes.
    fn spend(&mut self, bytes: usize) -> Result<(), ConditionError> {
        self.spend_steps(1 + bytes as u64 / BYTES_PER_STEP)
    }

    fn spend_steps(&mut self, steps: u64) -> Result<(), ConditionError> {
        match self.fuel.checked_sub(steps) {
            Some(left) => {
                *self.fuel = left;
                Ok(())
            }
            None => {
                *self.fuel = 0;
                Err(ConditionError::OutOfFuel)
            }
        }
    }

    fn text_form(&mut self, node: NodeId) -> Result<TextForm<'v>, ConditionError> {
        let mut short = ShortText::new();
        let _every_number_fits = match self.view.kind(node) {
            None | Some(Kind::Null) => return Ok(TextForm::Given(b"<nil>")),
            Some(Kind::False) => return Ok(TextForm::Given(b"false")),
            Some(Kind::True) => return Ok(TextForm::Given(b"true")),
            Some(Kind::String) => return Ok(TextForm::Given(self.view.text(node))),
            Some(Kind::List | Kind::Map) => return self.rendered(node),
            Some(Kind::Int) => write!(short, "{}", self.view.int(node).unwrap_or_default()),
            Some(Kind::Float) => write_v(self.view.float(node).unwrap_or_default(), &mut short),
        };
        self.spend(0)?;
        Ok(TextForm::Number(short))
    }

    /// Text form of a list or map, at most as long as the fuel allows.
    fn rendered(&mut self, node: NodeId) -> Result<TextForm<'v>, ConditionError> {
        let limit = usize::try_from(*self.fuel).unwrap_or(usize::MAX);
        let mut text = String::new();
        let steps = match append_go_value(&self.view, node, &mut text, limit) {
            Ok(()) => text.len() as u64,
            Err(_) => u64::MAX,
        };
        self.spend_steps(steps)?;
        Ok(TextForm::Rendered(text))
    }

    /// Whether `pattern` matches the whole `text` (docs/spec/conditions.md §3.3).
    fn wildcard(&mut self, pattern: &[u8], text: &[u8]) -> Result<bool, ConditionError> {
        if memchr::memchr2(b'*', b'?', pattern).is_none() {
            self.spend(pattern.len())?;
            return Ok(pattern == text);
        }
        self.spend_steps(1 + wildcard::worst_steps(pattern, text) / BYTES_PER_STEP)?;
        Ok(wildcard::matches(pattern, text))
    }

    /// Whether one of two texts matches the other as a pattern.
    fn wildcard_either(&mut self, left: &[u8], right: &[u8]) -> Result<bool, ConditionError> {
        Ok(self.wildcard(left, right)? || self.wildcard(right, left)?)
    }

    /// Seconds of both, if at least one is a duration text and the other is a duration text
    /// or a number (rule D of docs/spec/conditions.md §3.3).
    fn duration_seconds(&mut self, key: NodeId, value: NodeId) -> Option<(f64, f64)> {
        let (in_key, in_value) = (self.duration_text(key), self.duration_text(value));
        if in_key.is_none() && in_value.is_none() {
            return None;
        }
        let key = in_key.or_else(|| self.number_as_duration(key))?;
        let value = in_value.or_else(|| self.number_as_duration(value))?;
        Some((seconds(key), seconds(value)))
    }

    /// Nanoseconds of a text, except `0`, which is a number here.
    fn duration_text(&self, node: NodeId) -> Option<i64> {
        let text = self.view.str(node);
        if text.is_empty() || text == "0" {
            return None;
        }
        duration::parse(text)
    }

    /// A number of seconds in nanoseconds. As in Go the product wraps at 64 bits, so large
    /// numbers give other values.
    fn number_as_duration(&self, node: NodeId) -> Option<i64> {
        let whole = match self.view.int(node) {
            Some(value) => value,
            None => kpvm_semantics::number::float_to_i64_amd64(self.view.float(node)?),
        };
        Some(whole.wrapping_mul(NANOS_PER_SECOND))
    }
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Converts nanoseconds like Go's `Duration.Seconds`.
fn seconds(nanos: i64) -> f64 {
    let (whole, rest) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
    whole as f64 + rest as f64 / 1e9
}

#[cfg(test)]
mod tests;
