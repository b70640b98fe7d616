//! Parses times by a Go layout (docs/spec/jmespath.md §11.2).
//!
//! Returns a time or Go's error text. Layouts are read piece by piece while the text is
//! consumed, in Go's order, because the first problem determines the error. Both are
//! processed as bytes, as in Go.

use crate::calendar::{days_in_month, is_leap_year};
use crate::time::Time;

/// RFC 3339 as a layout.
pub const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

/// Meaning of a piece of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    LongMonth,
    Month,
    NumberMonth {
        fixed: bool,
    },
    LongWeekday,
    Weekday,
    Day {
        blank: bool,
        fixed: bool,
    },
    YearDay {
        blank: bool,
    },
    Hour,
    Hour12 {
        fixed: bool,
    },
    Minute {
        fixed: bool,
    },
    Second {
        fixed: bool,
    },
    LongYear,
    Year,
    UpperHalf,
    LowerHalf,
    ZoneName,
    /// `or_z`: `Z` means UTC. `colons`: `:` between the parts. `parts`: hours, minutes,
    /// seconds.
    Offset {
        or_z: bool,
        colons: bool,
        parts: usize,
    },
    /// Exactly this many digits.
    Fraction(usize),
    /// Any number of digits, or nothing.
    OptionalFraction,
}

/// Pieces with a single spelling; of those with a common prefix, the longest first.
const SPELLINGS: &[(&str, Piece)] = &[
    ("January", Piece::LongMonth),
    ("Monday", Piece::LongWeekday),
    ("MST", Piece::ZoneName),
    ("002", Piece::YearDay { blank: false }),
    ("01", Piece::NumberMonth { fixed: true }),
    (
        "02",
        Piece::Day {
            blank: false,
            fixed: true,
        },
    ),
    ("03", Piece::Hour12 { fixed: true }),
    ("04", Piece::Minute { fixed: true }),
    ("05", Piece::Second { fixed: true }),
    ("06", Piece::Year),
    ("15", Piece::Hour),
    ("1", Piece::NumberMonth { fixed: false }),
    ("2006", Piece::LongYear),
    (
        "2",
        Piece::Day {
            blank: false,
            fixed: false,
        },
    ),
    ("__2", Piece::YearDay { blank: true }),
    (
        "_2",
        Piece::Day {
            blank: true,
            fixed: false,
        },
    ),
    ("3", Piece::Hour12 { fixed: false }),
    ("4", Piece::Minute { fixed: false }),
    ("5", Piece::Second { fixed: false }),
    ("PM", Piece::UpperHalf),
    ("pm", Piece::LowerHalf),
    (
        "070000",
        Piece::Offset {
            or_z: false,
            colons: false,
            parts: 3,
        },
    ),
    (
        "07:00:00",
        Piece::Offset {
            or_z: false,
            colons: true,
            parts: 3,
        },
    ),
    (
        "0700",
        Piece::Offset {
            or_z: false,
            colons: false,
            parts: 2,
        },
    ),
    (
        "07:00",
        Piece::Offset {
            or_z: false,
            colons: true,
            parts: 2,
        },
    ),
    (
        "07",
        Piece::Offset {
            or_z: false,
            colons: false,
            parts: 1,
        },
    ),
];

/// The piece at the beginning of a layout and its length.
fn piece_at(layout: &[u8]) -> Option<(Piece, usize)> {
    let starts = |text: &str| layout.starts_with(text.as_bytes());
    match layout.first()? {
        b'-' | b'Z' => {
            let or_z = layout.first() == Some(&b'Z');
            let rest = layout.get(1..)?;
            let offsets = SPELLINGS.iter().filter(|(text, _)| text.starts_with("07"));
            return offsets
                .filter(|(text, _)| rest.starts_with(text.as_bytes()))
                .find_map(|(text, piece)| match *piece {
                    Piece::Offset { colons, parts, .. } => Some((
                        Piece::Offset {
                            or_z,
                            colons,
                            parts,
                        },
                        text.len() + 1,
                    )),
                    _ => None,
                });
        }
        b'.' | b',' => return fraction_at(layout),
        // A literal `_` followed by a year.
        b'_' if starts("_2006") => return None,
        _ => {}
    }
    let found = SPELLINGS
        .iter()
        .find(|(text, _)| starts(text) && !text.starts_with("07"));
    if let Some((text, piece)) = found {
        return Some((*piece, text.len()));
    }
    // Short names must not be followed by a lower-case letter.
    let ends = !layout.get(3).is_some_and(u8::is_ascii_lowercase);
    match () {
        () if starts("Jan") && ends => Some((Piece::Month, 3)),
        () if starts("Mon") && ends => Some((Piece::Weekday, 3)),
        () => None,
    }
}

/// `.000` or `,999`, if no other digit follows it.
fn fraction_at(layout: &[u8]) -> Option<(Piece, usize)> {
    let digit = *layout.get(1).filter(|digit| matches!(digit, b'0' | b'9'))?;
    let digits = leading(layout.get(1..)?, |byte| byte == digit);
    if layout.get(1 + digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let piece = if digit == b'0' {
        Piece::Fraction(digits)
    } else {
        Piece::OptionalFraction
    };
    Some((piece, digits + 1))
}

fn leading(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|byte| is(**byte)).count()
}

/// Literal text before the next piece, the piece with its spelling, and the rest.
type Split<'l> = (&'l [u8], Option<(Piece, &'l [u8])>, &'l [u8]);

/// Splits a layout at its next piece.
fn next_piece(layout: &[u8]) -> Split<'_> {
    for at in 0..layout.len() {
        let (before, rest) = layout.split_at_checked(at).unwrap_or((layout, &[]));
        if let Some((piece, length)) = piece_at(rest) {
            let (spelling, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            return (before, Some((piece, spelling)), rest);
        }
    }
    (layout, None, &[])
}

/// Reason why a piece could not be read.
enum Fault {
    /// The text does not match the piece.
    Mismatch,
    /// The value of this name is out of range.
    Range(&'static str),
}

type Read<T> = Result<T, Fault>;

/// What has been read so far.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanoseconds: i64,
    /// Whether it is afternoon, if stated.
    afternoon: Option<bool>,
    is_utc: bool,
    offset: Option<i64>,
    zone_name: Option<Vec<u8>>,
}

/// Go's `time.quote`.
pub fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b' '..=b'~' | 0x7f => out.push(char::from(*byte)),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

/// Parses a time.
///
/// # Errors
/// Go's text.
pub fn parse(layout: &str, text: &str) -> Result<Time, String> {
    let mut value = text.as_bytes();
    let mut rest = layout.as_bytes();
    let mut fields = Fields::default();
    let problem = |message: &str| {
        Err(format!(
            "parsing time {}: {message}",
            quote(text.as_bytes())
        ))
    };
    let mismatch = |found: &[u8], wanted: &[u8]| {
        Err(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(text.as_bytes()),
            quote(layout.as_bytes()),
            quote(found),
            quote(wanted)
        ))
    };
    loop {
        let (before, piece, after) = next_piece(rest);
        if !skip(&mut value, before) {
            return mismatch(value, before);
        }
        let Some((piece, spelling)) = piece else {
            break;
        };
        rest = after;
        let held = value;
        match fields.read(piece, &mut value, rest) {
            Ok(()) => {}
            Err(Fault::Mismatch) => return mismatch(held, spelling),
            Err(Fault::Range(name)) => return problem(&format!("{name} out of range")),
        }
    }
    if !value.is_empty() {
        return problem(&format!("extra text: {}", quote(value)));
    }
    fields.finish().or_else(problem)
}

/// Consumes literal text; a space matches any number of spaces.
fn skip(value: &mut &[u8], mut literal: &[u8]) -> bool {
    while let Some((wanted, after)) = literal.split_first() {
        if *wanted == b' ' {
            if value.first().is_some_and(|byte| *byte != b' ') {
                return false;
            }
            literal = literal.trim_ascii_start_of_blanks();
            *value = value.trim_ascii_start_of_blanks();
            continue;
        }
        match value.split_first() {
            Some((found, rest)) if found == wanted => *value = rest,
            _ => return false,
        }
        literal = after;
    }
    true
}

/// Trims spaces, but no other white space.
trait TrimBlanks {
    fn trim_ascii_start_of_blanks(&self) -> &Self;
}

impl TrimBlanks for [u8] {
    fn trim_ascii_start_of_blanks(&self) -> &Self {
        let blanks = leading(self, |byte| byte == b' ');
        self.get(blanks..).unwrap_or_default()
    }
}

/// Consumes bytes.
fn take<'t>(value: &mut &'t [u8], length: usize) -> Read<&'t [u8]> {
    let (taken, rest) = value.split_at_checked(length).ok_or(Fault::Mismatch)?;
    *value = rest;
    Ok(taken)
}

/// A number of one or two digits; exactly two if `fixed`.
fn number(value: &mut &[u8], fixed: bool) -> Read<i64> {
    let digits = leading(value, |byte| byte.is_ascii_digit()).min(2);
    if digits == 0 || fixed && digits < 2 {
        return Err(Fault::Mismatch);
    }
    digits_value(take(value, digits)?)
}

fn digits_value(digits: &[u8]) -> Read<i64> {
    let text = std::str::from_utf8(digits).map_err(|_| Fault::Mismatch)?;
    text.parse().map_err(|_| Fault::Mismatch)
}

fn in_range(number: i64, range: std::ops::RangeInclusive<i64>, name: &'static str) -> Read<i64> {
    if range.contains(&number) {
        Ok(number)
    } else {
        Err(Fault::Range(name))
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Index of a name, case-insensitive; short names have three letters.
fn name(value: &mut &[u8], names: &[&str], short: bool) -> Read<i64> {
    for (number, name) in (1..).zip(names) {
        let length = if short { 3 } else { name.len() };
        let name = name.as_bytes().get(..length).unwrap_or_default();
        if value
            .get(..length)
            .is_some_and(|found| found.eq_ignore_ascii_case(name))
        {
            take(value, length)?;
            return Ok(number);
        }
    }
    Err(Fault::Mismatch)
}

/// `.` or `,` and digits, of which nine are significant.
fn fraction(value: &mut &[u8], digits: usize) -> Read<i64> {
    let text = take(value, digits + 1)?;
    if !matches!(text.first(), Some(b'.' | b',')) {
        return Err(Fault::Mismatch);
    }
    let digits = text.get(1..text.len().min(10)).unwrap_or_default();
    if digits.first() == Some(&b'-') {
        return Err(Fault::Range("fractional second"));
    }
    let scale = 10_i64.pow(9 - digits.len() as u32);
    Ok(digits_value(digits)? * scale)
}

/// Number of digits after a leading `.` or `,`; 0 if there is none.
fn fraction_digits(value: &[u8]) -> usize {
    match value.split_first() {
        Some((b'.' | b',', rest)) => leading(rest, |byte| byte.is_ascii_digit()),
        _ => 0,
    }
}

impl Fields {
    /// Reads one piece from the value; `layout` is the text after the piece.
    fn read(&mut self, piece: Piece, value: &mut &[u8], layout: &[u8]) -> Read<()> {
        match piece {
            Piece::LongMonth => self.month = Some(name(value, &MONTHS, false)?),
            Piece::Month => self.month = Some(name(value, &MONTHS, true)?),
            Piece::NumberMonth { fixed } => {
                let month = number(value, fixed)?;
                self.month = Some(in_range(month, 1..=12, "month")?);
            }
            Piece::LongWeekday => drop(name(value, &WEEKDAYS, false)?),
            Piece::Weekday => drop(name(value, &WEEKDAYS, true)?),
            Piece::Day { blank, fixed } => {
                if blank && value.first() == Some(&b' ') {
                    take(value, 1)?;
                }
                self.day = Some(number(value, fixed)?);
            }
            Piece::YearDay { blank } => self.year_day = Some(year_day(value, blank)?),
            Piece::Hour => self.hour = in_range(number(value, false)?, 0..=23, "hour")?,
            Piece::Hour12 { fixed } => {
                self.hour = in_range(number(value, fixed)?, 0..=12, "hour")?;
            }
            Piece::Minute { fixed } => {
                self.minute = in_range(number(value, fixed)?, 0..=59, "minute")?;
            }
            Piece::Second { fixed } => self.read_second(value, fixed, layout)?,
            Piece::LongYear => {
                if !value.first().is_some_and(u8::is_ascii_digit) {
                    return Err(Fault::Mismatch);
                }
                self.year = digits_value(take(value, 4)?)?;
            }
            Piece::Year => {
                let year = digits_value(take(value, 2)?)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
            }
            Piece::UpperHalf => self.afternoon = Some(half(value, [b"AM", b"PM"])?),
            Piece::LowerHalf => self.afternoon = Some(half(value, [b"am", b"pm"])?),
            Piece::ZoneName => self.read_zone_name(value)?,
            Piece::Offset {
                or_z,
                colons,
                parts,
            } => {
                if or_z && value.first() == Some(&b'Z') {
                    take(value, 1)?;
                    self.is_utc = true;
                } else {
                    self.offset = Some(offset(value, colons, parts)?);
                }
            }
            Piece::Fraction(digits) => self.nanoseconds = fraction(value, digits)?,
            Piece::OptionalFraction => {
                let digits = fraction_digits(value);
                if digits > 0 {
                    self.nanoseconds = fraction(value, digits)?;
                }
            }
        }
        Ok(())
    }

    /// Seconds, and a fraction after them that the layout does not mention.
    fn read_second(&mut self, value: &mut &[u8], fixed: bool, layout: &[u8]) -> Read<()> {
        self.second = in_range(number(value, fixed)?, 0..=59, "second")?;
        let digits = fraction_digits(value);
        let (_, next, _) = next_piece(layout);
        let in_layout = matches!(
            next,
            Some((Piece::Fraction(_) | Piece::OptionalFraction, _))
        );
        if digits > 0 && !in_layout {
            self.nanoseconds = fraction(value, digits)?;
        }
        Ok(())
    }

    fn read_zone_name(&mut self, value: &mut &[u8]) -> Read<()> {
        if value.starts_with(b"UTC") {
            take(value, 3)?;
            self.is_utc = true;
            return Ok(());
        }
        let length = zone_name_length(value).ok_or(Fault::Mismatch)?;
        self.zone_name = Some(take(value, length)?.to_owned());
        Ok(())
    }

    /// Combines the fields; the error is Go's message.
    fn finish(mut self) -> Result<Time, &'static str> {
        match self.afternoon {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            _ => {}
        }
        if let Some(year_day) = self.year_day {
            self.apply_year_day(year_day)?;
        }
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        if !(1..=days_in_month(self.year, month)).contains(&day) {
            return Err("day out of range");
        }
        let clock = (self.hour * 60 + self.minute) * 60 + self.second;
        let at_offset = |offset| Time::from_civil(self.year, month, day, clock, offset);
        let time = match (self.is_utc, self.offset, self.zone_name) {
            (false, Some(offset), _) => at_offset(offset),
            // For a zone that is only a name, Go treats the clock as UTC.
            (false, None, Some(name)) => at_offset(0).shown_at(named_offset(&name)),
            (true, _, _) | (false, None, None) => at_offset(0),
        };
        Ok(time.with_nanoseconds(self.nanoseconds))
    }

    /// The day of the year determines month and day, or must agree with them.
    fn apply_year_day(&mut self, year_day: i64) -> Result<(), &'static str> {
        let days = if is_leap_year(self.year) { 366 } else { 365 };
        if !(1..=days).contains(&year_day) {
            return Err("day-of-year out of range");
        }
        let (mut month, mut day) = (1, year_day);
        while day > days_in_month(self.year, month) {
            day -= days_in_month(self.year, month);
            month += 1;
        }
        if self.month.is_some_and(|given| given != month) {
            return Err("day-of-year does not match month");
        }
        if self.day.is_some_and(|given| given != day) {
            return Err("day-of-year does not match day");
        }
        (self.month, self.day) = (Some(month), Some(day));
        Ok(())
    }
}

/// Up to three digits; exactly three, or padded with spaces.
fn year_day(value: &mut &[u8], blank: bool) -> Read<i64> {
    for _ in 0..2 {
        if blank && value.first() == Some(&b' ') {
            take(value, 1)?;
        }
    }
    let digits = leading(value, |byte| byte.is_ascii_digit()).min(3);
    if digits == 0 || !blank && digits < 3 {
        return Err(Fault::Mismatch);
    }
    digits_value(take(value, digits)?)
}

/// Whether it is the second half of the day.
fn half(value: &mut &[u8], [morning, afternoon]: [&[u8]; 2]) -> Read<bool> {
    match take(value, 2)? {
        found if found == morning => Ok(false),
        found if found == afternoon => Ok(true),
        _ => Err(Fault::Mismatch),
    }
}

/// `+07:00` and similar, in seconds.
fn offset(value: &mut &[u8], colons: bool, parts: usize) -> Read<i64> {
    let length = 1 + 2 * parts + if colons { parts - 1 } else { 0 };
    let text = take(value, length)?;
    let (sign, mut rest) = text.split_first().ok_or(Fault::Mismatch)?;
    let mut numbers = [0; 3];
    for (index, number_out) in numbers.iter_mut().enumerate().take(parts) {
        if colons && index > 0 && take(&mut rest, 1)? != b":" {
            return Err(Fault::Mismatch);
        }
        *number_out = number(&mut rest, true)?;
    }
    let [hours, minutes, seconds] = numbers;
    in_range(seconds, 0..=60, "time zone offset second")?;
    in_range(minutes, 0..=60, "time zone offset minute")?;
    in_range(hours, 0..=24, "time zone offset hour")?;
    let offset = (hours * 60 + minutes) * 60 + seconds;
    match sign {
        b'+' => Ok(offset),
        b'-' => Ok(-offset),
        _ => Err(Fault::Mismatch),
    }
}

/// Number of leading bytes that look like an abbreviation of a time zone.
fn zone_name_length(value: &[u8]) -> Option<usize> {
    if value.len() < 3 {
        return None;
    }
    if value.starts_with(b"ChST") || value.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = value.strip_prefix(b"GMT") {
        return Some(3 + signed_offset_length(rest));
    }
    if matches!(value.first(), Some(b'+' | b'-')) {
        return Some(signed_offset_length(value)).filter(|length| *length > 0);
    }
    match leading(value, |byte| byte.is_ascii_uppercase()) {
        3 => Some(3),
        4 if value.get(3) == Some(&b'T') || value.starts_with(b"WITA") => Some(4),
        5 if value.get(4) == Some(&b'T') => Some(5),
        _ => None,
    }
}

/// Length of a leading `+3` or `-11`; 0 if there is none.
fn signed_offset_length(value: &[u8]) -> usize {
    let Some((b'+' | b'-', rest)) = value.split_first() else {
        return 0;
    };
    let digits = leading(rest, |byte| byte.is_ascii_digit());
    let number = rest.get(..digits).map(digits_value);
    match number {
        Some(Ok(0..=23)) if digits > 0 => digits + 1,
        _ => 0,
    }
}

/// Only `GMT+3` states its offset from UTC; other names are unknown to a process in UTC.
fn named_offset(name: &[u8]) -> i64 {
    let hours = name.strip_prefix(b"GMT").filter(|hours| !hours.is_empty());
    hours.map_or(0, |hours| digits_value(hours).unwrap_or(0) * 3600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_as_go_does() {
        // docs/spec/jmespath.md §11 and 11.2.
        let rows: &[(&str, &str, Result<&str, &str>)] = &[
            (
                RFC3339,
                "2021-01-02T5:04:05.123456Z",
                Ok("2021-01-02T05:04:05Z"),
            ),
            (
                RFC3339,
                "2021-01-02T15:04:05,5+05:30",
                Ok("2021-01-02T15:04:05+05:30"),
            ),
            ("3:04PM", "3:04PM", Ok("0000-01-01T15:04:00Z")),
            ("2006-002", "2024-060", Ok("2024-02-29T00:00:00Z")),
            ("Jan _2 06", "feb  9 69", Ok("1969-02-09T00:00:00Z")),
            (
                "2006-01-02 MST",
                "2021-01-02 CEST",
                Ok("2021-01-02T00:00:00Z"),
            ),
            (
                "2006-01-02 MST",
                "2021-01-02 GMT+3",
                Ok("2021-01-02T03:00:00+03:00"),
            ),
            (
                RFC3339,
                "x",
                Err(
                    r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
                ),
            ),
            (
                RFC3339,
                "2021-13-02T15:04:05Z",
                Err(r#"parsing time "2021-13-02T15:04:05Z": month out of range"#),
            ),
            (
                RFC3339,
                "2021-01-02T15:04:05+25:00",
                Err(
                    r#"parsing time "2021-01-02T15:04:05+25:00": time zone offset hour out of range"#,
                ),
            ),
            (
                "2006-01-02",
                "2021-02-29",
                Err(r#"parsing time "2021-02-29": day out of range"#),
            ),
            ("", "a", Err(r#"parsing time "a": extra text: "a""#)),
        ];
        for (layout, text, expected) in rows {
            let outcome = parse(layout, text).map(Time::text);
            assert_eq!(
                outcome.as_ref().map(String::as_str).map_err(String::as_str),
                *expected,
                "{text}"
            );
        }
    }
}
