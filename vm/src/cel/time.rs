//! Timestamps and durations (docs/spec/cel.md §3.8).

use kpvm_format::cel::Function;
use kpvm_semantics::calendar::civil;
use kpvm_semantics::timestamp::{self, Overflow, Timestamp};
use kpvm_semantics::zone;

use super::value::{Value, look, no_overload};
use crate::document::{Extended, NodeId};
use crate::function::{FunctionError, Values};

const NANOS: i128 = 1_000_000_000;

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(seconds: i64, nanos: u32) -> i128 {
    i128::from(seconds) * NANOS + i128::from(nanos)
}

fn overflow() -> FunctionError {
    FunctionError::failed("timestamp overflow")
}

/// The point in time shifted by nanoseconds, in the same zone.
pub(crate) fn shift(
    (seconds, nanos, offset): (i64, u32, i32),
    by: i128,
) -> Result<Extended, FunctionError> {
    let moved = nanoseconds(seconds, nanos) + by;
    let seconds = i64::try_from(moved.div_euclid(NANOS)).map_err(|_| overflow())?;
    extended(Timestamp::new(
        seconds,
        moved.rem_euclid(NANOS) as u32,
        offset,
    ))
}

/// A point in time within the years 1 to 9999.
pub(crate) fn from_seconds(seconds: i64, nanos: u32) -> Result<Extended, FunctionError> {
    extended(Timestamp::new(seconds, nanos, 0))
}

fn extended(timestamp: Result<Timestamp, Overflow>) -> Result<Extended, FunctionError> {
    match timestamp {
        Ok(Timestamp {
            seconds,
            nanos,
            offset,
        }) => Ok(Extended::Timestamp(seconds, nanos, offset)),
        Err(Overflow) => Err(overflow()),
    }
}

/// Parses RFC 3339; `None` if the text is not RFC 3339, an error if it is out of range.
pub(crate) fn parse(text: &str) -> Option<Result<Extended, FunctionError>> {
    timestamp::parse(text).map(extended)
}

/// A duration in seconds, such as `1.5s`.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    let seconds = (nanoseconds / 1_000_000_000) as f64 + (nanoseconds % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

/// Evaluates an accessor, with or without a time zone.
pub(crate) fn get(
    function: Function,
    arguments: &[NodeId],
    values: &mut Values<'_>,
) -> Result<NodeId, FunctionError> {
    let view = values.view();
    let first = arguments.first().map(|first| look(&view, *first));
    let zone = arguments.get(1).map(|zone| look(&view, *zone));
    let result = match (first, zone) {
        (Some(Value::Duration(nanos)), None) => match function {
            Function::GetHours => nanos / 3_600_000_000_000,
            Function::GetMinutes => nanos / 60_000_000_000,
            Function::GetSeconds => nanos / 1_000_000_000,
            Function::GetMilliseconds => nanos / 1_000_000,
            _ => return Err(no_overload()),
        },
        (Some(Value::Timestamp(seconds, nanos, _)), zone) => {
            let offset = match zone {
                None => 0,
                Some(Value::String(name)) => {
                    let name = std::str::from_utf8(name).unwrap_or("");
                    zone::offset(name, seconds)
                        .ok_or_else(|| FunctionError::Failed(format!("unknown time zone {name}")))?
                }
                Some(_) => return Err(no_overload()),
            };
            let date = civil(seconds.saturating_add(offset));
            match function {
                Function::GetFullYear => date.year,
                Function::GetMonth => date.month - 1,
                Function::GetDayOfYear => date.day_of_year,
                Function::GetDayOfMonth => date.day - 1,
                Function::GetDate => date.day,
                Function::GetDayOfWeek => date.weekday,
                Function::GetHours => date.clock / 3600,
                Function::GetMinutes => date.clock / 60 % 60,
                Function::GetSeconds => date.clock % 60,
                _ => i64::from(nanos / 1_000_000),
            }
        }
        _ => return Err(no_overload()),
    };
    values.new_int(result)
}
