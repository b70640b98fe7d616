//! Timestamps of CEL: points in time within the years 1 to 9999
//! (docs/spec/cel.md §3.8).

use std::fmt;

use crate::calendar::{DAY, civil, days_from_civil, days_in_month};

/// The first second of the year 1 and the last of the year 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
    /// Offset of the zone in which it was written, in seconds; only its text shows it.
    pub offset: i32,
}

/// A point in time outside of the years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timestamp overflow")
    }
}

impl std::error::Error for Overflow {}

impl Timestamp {
    /// The point in time, if it is in range.
    ///
    /// # Errors
    /// If it is out of range.
    pub fn new(seconds: i64, nanos: u32, offset: i32) -> Result<Self, Overflow> {
        if SECONDS.contains(&seconds) {
            Ok(Timestamp {
                seconds,
                nanos,
                offset,
            })
        } else {
            Err(Overflow)
        }
    }
}

/// Parses RFC 3339; `None` if the text is not RFC 3339, an error if it is out of range.
pub fn parse(text: &str) -> Option<Result<Timestamp, Overflow>> {
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
    // A year with more digits is a timestamp out of range.
    if bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
        > 4
    {
        return Some(Err(Overflow));
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    mark(4, b'-')?;
    mark(7, b'-')?;
    mark(10, b'T')?;
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    mark(13, b':')?;
    mark(16, b':')?;
    let mut rest = text.get(19..)?;
    let mut nanos = 0u32;
    if let Some(fraction) = rest.strip_prefix('.') {
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
        b"Z" => 0,
        [sign @ (b'+' | b'-'), digits @ ..] => {
            let text = std::str::from_utf8(digits).ok()?;
            let (hours, minutes) = text.split_once(':')?;
            let two = |part: &str| {
                (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
                    .then(|| part.parse::<i64>().ok())?
            };
            let (hours, minutes) = (two(hours)?, two(minutes)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let valid = (1..=12).contains(&month)
        && day >= 1
        && day <= days_in_month(year, month)
        && hour < 24
        && minute < 60
        && second < 60;
    if !valid {
        return None;
    }
    let days = days_from_civil(year, month, day);
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
    Some(Timestamp::new(seconds, nanos, offset as i32))
}

/// Whether a text has the shape of RFC 3339, with letters of either case and fields in range
/// (`isStrictRFC3339` of cel-go): anything else gives another error.
pub fn has_shape(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    // A leap second and a day that its month has not are of that shape, but no timestamps.
    let (Some(second), Some(day)) = (upper.get(17..19), upper.get(8..10)) else {
        return false;
    };
    let mut shape = upper.clone();
    if second == "60" {
        shape.replace_range(17..19, "59");
    }
    if matches!(day, "29" | "30" | "31") {
        shape.replace_range(8..10, "28");
    }
    parse(&shape).is_some()
}

/// A timestamp as RFC 3339 with the fewest decimals, in the zone with an offset.
pub fn text(seconds: i64, nanos: u32, offset: i32) -> String {
    let date = civil(seconds + i64::from(offset));
    let minutes = offset.abs() / 60;
    let zone = match offset {
        0 => "Z".to_owned(),
        offset => {
            let sign = if offset < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    };
    let fraction = format!("{nanos:09}");
    let fraction = fraction.trim_end_matches('0');
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{fraction}{zone}",
        date.year,
        date.month,
        date.day,
        date.clock / 3600,
        date.clock / 60 % 60,
        date.clock % 60,
        if fraction.is_empty() { "" } else { "." },
    )
}
