//! Functions of time (docs/spec/jmespath.md §11). All arguments are texts; the clock is the
//! host's.

use super::error::FunctionError;
use super::go_text::go_quote;
use super::layout::{RFC3339, parse};
use super::values::Values;
use super::{Outcome, duration};
use crate::document::NodeId;

const DAY: i64 = 86_400;
const NANOSECONDS: i128 = 1_000_000_000;

/// Days from 0000-03-01 to 1970-01-01, in the calendar that has no gap.
const DAYS_TO_1970: i64 = 719_468;

/// Seconds from the first of January of the year 1 to 1970.
const SECONDS_TO_1970: i128 = 62_135_596_800;

/// A point in time and the offset in which it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    /// Nanoseconds since 1970 in UTC.
    nanoseconds: i128,
    /// Seconds east of UTC.
    offset: i64,
}

/// A time as people write it.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    /// Seconds since midnight.
    clock: i64,
    /// From Sunday, which is 0.
    weekday: i64,
}

pub(super) fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Whether a text is a time of the usual form, `2006-01-02T15:04:05Z`; other forms are
/// RFC 3339 too.
pub(super) fn is_plain_rfc3339(text: &[u8]) -> bool {
    let &[
        y0,
        y1,
        y2,
        y3,
        b'-',
        m0,
        m1,
        b'-',
        d0,
        d1,
        b'T',
        h0,
        h1,
        b':',
        i0,
        i1,
        b':',
        s0,
        s1,
        b'Z',
    ] = text
    else {
        return false;
    };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0, |number, digit| {
            let digit = i64::from(digit.wrapping_sub(b'0'));
            (digit < 10).then_some(number * 10 + digit)
        })
    };
    let parts = [
        number(&[y0, y1, y2, y3]),
        number(&[m0, m1]),
        number(&[d0, d1]),
        number(&[h0, h1]),
        number(&[i0, i1]),
        number(&[s0, s1]),
    ];
    let [
        Some(year),
        Some(month),
        Some(day),
        Some(hour),
        Some(minute),
        Some(second),
    ] = parts
    else {
        return false;
    };
    (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
}

impl Time {
    /// From a date and the seconds since midnight, both at `offset`.
    pub(super) fn from_civil(year: i64, month: i64, day: i64, clock: i64, offset: i64) -> Time {
        // Years that begin in March end with the leap day.
        let (year, month) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let days_of_years =
            365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let days = days_of_years + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970;
        Time {
            nanoseconds: i128::from(days * DAY + clock - offset) * NANOSECONDS,
            offset,
        }
    }

    /// The same point in time, shown at another offset.
    pub(super) fn shown_at(self, offset: i64) -> Time {
        Time { offset, ..self }
    }

    pub(super) fn with_nanoseconds(self, nanoseconds: i64) -> Time {
        Time {
            nanoseconds: self.nanoseconds + i128::from(nanoseconds),
            ..self
        }
    }

    fn from_seconds(seconds: i64) -> Time {
        Time {
            nanoseconds: i128::from(seconds) * NANOSECONDS,
            offset: 0,
        }
    }

    fn civil(self) -> Civil {
        let seconds = self.nanoseconds.div_euclid(NANOSECONDS) + i128::from(self.offset);
        let (days, clock) = (
            seconds.div_euclid(i128::from(DAY)) as i64,
            seconds.rem_euclid(i128::from(DAY)) as i64,
        );
        let shifted = days + DAYS_TO_1970;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Civil {
            year: year + era * 400 + i64::from(month <= 2),
            month,
            day,
            clock,
            weekday: (days + 4).rem_euclid(7),
        }
    }

    /// RFC 3339 without fraction.
    pub(super) fn text(self) -> String {
        let civil = self.civil();
        let sign = if civil.year < 0 { "-" } else { "" };
        let (year, month, day) = (civil.year.abs(), civil.month, civil.day);
        let (hour, minute, second) = (civil.clock / 3600, civil.clock / 60 % 60, civil.clock % 60);
        let zone = if self.offset == 0 {
            "Z".to_owned()
        } else {
            let sign = if self.offset < 0 { '-' } else { '+' };
            let minutes = self.offset.abs() / 60;
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        };
        format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
    }

    /// From `earlier` to this one, within the range of durations.
    fn since(self, earlier: Time) -> i64 {
        let difference = self.nanoseconds - earlier.nanoseconds;
        difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

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
    let amount = duration::parse(values.str(amount))?;
    values.new_text(&time.with_nanoseconds(amount).text())
}

pub(super) fn time_utc(values: &mut Values<'_>, time: NodeId) -> Outcome {
    let time = read(values, time)?;
    values.new_text(&time.shown_at(0).text())
}

/// A time in a layout; a layout that is a whole number means Unix seconds.
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

/// Strictly between.
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

/// Rounded down to a multiple of the duration, counted from the year 1 in UTC.
pub(super) fn time_truncate(values: &mut Values<'_>, time: NodeId, unit: NodeId) -> Outcome {
    let time = read(values, time)?;
    let unit = i128::from(duration::parse(values.str(unit))?);
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
