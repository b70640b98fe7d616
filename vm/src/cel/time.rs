//! Timestamps and durations (docs/spec/cel.md §3.8).

use kpvm_format::cel::Function;

use super::value::{Value, look, no_overload};
use crate::document::{Extended, NodeId};
use crate::function::{FunctionError, Values};

const NANOS: i128 = 1_000_000_000;
const DAY: i64 = 86_400;

/// The first second of the year 1 and the last of the year 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(seconds: i64, nanos: u32) -> i128 {
    i128::from(seconds) * NANOS + i128::from(nanos)
}

fn overflow() -> FunctionError {
    FunctionError::failed("timestamp overflow")
}

/// The point in time so many nanoseconds later.
pub(crate) fn shift(seconds: i64, nanos: u32, by: i128) -> Result<Extended, FunctionError> {
    let moved = nanoseconds(seconds, nanos) + by;
    let seconds = i64::try_from(moved.div_euclid(NANOS)).map_err(|_| overflow())?;
    from_seconds(seconds, moved.rem_euclid(NANOS) as u32)
}

/// A point in time within the years 1 to 9999.
pub(crate) fn from_seconds(seconds: i64, nanos: u32) -> Result<Extended, FunctionError> {
    if SECONDS.contains(&seconds) {
        Ok(Extended::Timestamp(seconds, nanos))
    } else {
        Err(overflow())
    }
}

/// Reads RFC 3339; `None` if it is none, an error if it is out of range.
pub(crate) fn parse(text: &str) -> Option<Result<Extended, FunctionError>> {
    let bytes = text.as_bytes();
    let number = |from: usize, count: usize| -> Option<i64> {
        let digits = bytes.get(from..from + count)?;
        digits.iter().try_fold(0i64, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    let mark = |at: usize, mark: u8| (bytes.get(at) == Some(&mark)).then_some(());
    // A year of more digits is a timestamp all the same, only out of range.
    if bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
        > 4
    {
        return Some(Err(overflow()));
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    mark(4, b'-')?;
    mark(7, b'-')?;
    mark(10, b'T').or_else(|| mark(10, b't'))?;
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    mark(13, b':')?;
    mark(16, b':')?;
    let mut rest = text.get(19..)?;
    let mut nanos = 0u32;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let count = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return None;
        }
        for place in 0..9 {
            let digit = fraction.as_bytes().get(place).filter(|_| place < count);
            nanos = nanos * 10 + digit.map_or(0, |digit| u32::from(digit - b'0'));
        }
        rest = fraction.get(count..)?;
    }
    let offset = match rest.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), digits @ ..] => {
            let text = std::str::from_utf8(digits).ok()?;
            let (hours, minutes) = text.split_once(':')?;
            let two = |part: &str| {
                (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
                    .then(|| part.parse::<i64>().ok())?
            };
            let (hours, minutes) = (two(hours)?, two(minutes)?);
            if hours > 24 || minutes > 60 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let valid = (1..=12).contains(&month)
        && day >= 1
        && day <= crate::function::days_in_month(year, month)
        && hour < 24
        && minute < 60
        && second < 60;
    if !valid {
        return None;
    }
    let days = days_from_civil(year, month, day);
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
    Some(from_seconds(seconds, nanos))
}

/// Days since 1970 of a date.
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let years = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    years + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// A date and time of day.
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    /// Seconds since midnight.
    pub(crate) clock: i64,
    /// From Sunday, which is 0.
    pub(crate) weekday: i64,
    /// From the first of January, which is 0.
    pub(crate) day_of_year: i64,
}

/// The date and time of day of seconds since 1970.
pub(crate) fn civil(seconds: i64) -> Civil {
    let (days, clock) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let of = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of + of / 4 - of / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = of + era * 400 + i64::from(month <= 2);
    Civil {
        year,
        month,
        day: of_year - (153 * shifted_month + 2) / 5 + 1,
        clock,
        weekday: (days + 4).rem_euclid(7),
        day_of_year: days - days_from_civil(year, 1, 1),
    }
}

/// A timestamp as RFC 3339 with as few decimals as it takes.
pub(crate) fn timestamp_text(seconds: i64, nanos: u32) -> String {
    let date = civil(seconds);
    let fraction = format!("{nanos:09}");
    let fraction = fraction.trim_end_matches('0');
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{fraction}Z",
        date.year,
        date.month,
        date.day,
        date.clock / 3600,
        date.clock / 60 % 60,
        date.clock % 60,
        if fraction.is_empty() { "" } else { "." },
    )
}

/// A duration in seconds, such as `1.5s`.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    let seconds = (nanoseconds / 1_000_000_000) as f64 + (nanoseconds % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

/// The accessors, with a time zone or without.
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
            Function::GetMilliseconds => nanos / 1_000_000 % 1_000,
            _ => return Err(no_overload()),
        },
        (Some(Value::Timestamp(seconds, nanos)), zone) => {
            let offset = match zone {
                None => 0,
                Some(Value::String(name)) => {
                    let name = std::str::from_utf8(name).unwrap_or("");
                    super::zone::offset(name, seconds)
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
