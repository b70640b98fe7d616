//! Functions on times (docs/spec/jmespath.md §11). All arguments are texts; the host
//! provides the clock.

use kpvm_semantics::layout::{RFC3339, parse};
use kpvm_semantics::quote::go_quote;
use kpvm_semantics::time::Time;
use kpvm_semantics::{FunctionError, duration};

use super::Outcome;
use super::values::Values;
use crate::document::NodeId;

const NANOSECONDS: i128 = 1_000_000_000;

/// Seconds from 1 January of the year 1 to 1970.
const SECONDS_TO_1970: i128 = 62_135_596_800;

fn read(values: &Values<'_>, id: NodeId) -> Result<Time, FunctionError> {
    parse(RFC3339, values.str(id)).map_err(FunctionError::Failed)
}

fn now(values: &mut Values<'_>) -> Result<Time, FunctionError> {
    let now = values
        .host
        .now()
        .ok_or_else(|| FunctionError::refused("the current time is not available here"))?;
    Ok(Time {
        nanoseconds: i128::from(now.seconds) * NANOSECONDS + i128::from(now.nanoseconds),
        offset: i64::from(now.offset_seconds),
    })
}

pub(super) fn time_now(values: &mut Values<'_>) -> Outcome {
    let now = now(values)?;
    values.new_text(&now.text())
}

pub(super) fn time_now_utc(values: &mut Values<'_>) -> Outcome {
    let now = now(values)?;
    values.new_text(&now.shown_at(0).text())
}

/// The duration from one time to another, or to now.
pub(super) fn time_since(
    values: &mut Values<'_>,
    layout: NodeId,
    start: NodeId,
    end: NodeId,
) -> Outcome {
    let layout = match values.str(layout) {
        "" => RFC3339,
        layout => layout,
    };
    let start = parse(layout, values.str(start)).map_err(FunctionError::Failed)?;
    let end = if values.str(end).is_empty() {
        now(values)?
    } else {
        parse(layout, values.str(end)).map_err(FunctionError::Failed)?
    };
    values.new_text(&duration::format(end.since(start)))
}

pub(super) fn time_diff(values: &mut Values<'_>, start: NodeId, end: NodeId) -> Outcome {
    let (start, end) = (read(values, start)?, read(values, end)?);
    values.new_text(&duration::format(end.since(start)))
}

pub(super) fn time_add(values: &mut Values<'_>, time: NodeId, amount: NodeId) -> Outcome {
    let time = read(values, time)?;
    let amount = duration::parse_or_problem(values.str(amount))?;
    values.new_text(&time.with_nanoseconds(amount).text())
}

pub(super) fn time_utc(values: &mut Values<'_>, time: NodeId) -> Outcome {
    let time = read(values, time)?;
    values.new_text(&time.shown_at(0).text())
}

/// Parses a time with a layout; a layout that is a whole number means Unix seconds.
pub(super) fn time_parse(values: &mut Values<'_>, layout: NodeId, text: NodeId) -> Outcome {
    let (layout, text) = (values.str(layout), values.str(text));
    let time = if layout.parse::<i64>().is_ok() {
        Time::from_seconds(unix_seconds(text)?)
    } else {
        parse(layout, text).map_err(FunctionError::Failed)?
    };
    values.new_text(&time.text())
}

fn unix_seconds(text: &str) -> Result<i64, FunctionError> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let problem = if is_number {
            "value out of range"
        } else {
            "invalid syntax"
        };
        FunctionError::failed(format!(
            "strconv.ParseInt: parsing {}: {problem}",
            go_quote(text)
        ))
    })
}

/// Minute, hour, day, month and weekday, in the time's own offset.
pub(super) fn time_to_cron(values: &mut Values<'_>, time: NodeId) -> Outcome {
    let civil = read(values, time)?.civil();
    let (hour, minute) = (civil.clock / 3600, civil.clock / 60 % 60);
    let (day, month, weekday) = (civil.day, civil.month, civil.weekday);
    values.new_text(&format!("{minute} {hour} {day} {month} {weekday}"))
}

pub(super) fn time_before(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let (a, b) = (read(values, a)?, read(values, b)?);
    values.new_bool(a.nanoseconds < b.nanoseconds)
}

pub(super) fn time_after(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let (a, b) = (read(values, a)?, read(values, b)?);
    values.new_bool(a.nanoseconds > b.nanoseconds)
}

/// Whether it is strictly between.
pub(super) fn time_between(
    values: &mut Values<'_>,
    time: NodeId,
    start: NodeId,
    end: NodeId,
) -> Outcome {
    let (time, start, end) = (
        read(values, time)?,
        read(values, start)?,
        read(values, end)?,
    );
    let inside = start.nanoseconds < time.nanoseconds && time.nanoseconds < end.nanoseconds;
    values.new_bool(inside)
}

/// Rounds down to a multiple of the duration, counted from the year 1 in UTC.
pub(super) fn time_truncate(values: &mut Values<'_>, time: NodeId, unit: NodeId) -> Outcome {
    let time = read(values, time)?;
    let unit = i128::from(duration::parse_or_problem(values.str(unit))?);
    let excess = if unit > 0 {
        (time.nanoseconds + SECONDS_TO_1970 * NANOSECONDS).rem_euclid(unit)
    } else {
        0
    };
    let truncated = Time {
        nanoseconds: time.nanoseconds - excess,
        ..time
    };
    values.new_text(&truncated.text())
}
