//! Go durations, as parsed by `time.ParseDuration`: `1h30m`, `-1.5s`, `0`
//! (docs/spec/patterns.md §7.1).
//!
//! Parses texts into nanoseconds. There is no unit for days and no white space. An invalid
//! text yields `None` without a reason, because callers then try another interpretation.

use crate::FunctionError;
use crate::layout::quote;

const SECOND: i64 = 1_000_000_000;

/// Largest magnitude, allowed only for negative durations.
const LIMIT: u64 = 1 << 63;

/// Nanoseconds of a text, as parsed by Go's `time.ParseDuration`.
///
/// The sum of the components is kept in 64 bits as in Go: two components of exactly 2^63 ns
/// each add up to zero.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if unsigned == b"0" {
        return Some(0);
    }
    if unsigned.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let (nanoseconds, after) = component(rest)?;
        total = total.wrapping_add(nanoseconds);
        if total > LIMIT {
            return None;
        }
        rest = after;
    }
    if negative {
        0i64.checked_sub_unsigned(total)
    } else {
        i64::try_from(total).ok()
    }
}

/// Prints nanoseconds as Go's `Duration.String`.
#[must_use]
pub fn format(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let magnitude = nanoseconds.unsigned_abs();
    let text = match magnitude {
        0 => return "0s".into(),
        1..1_000 => format!("{magnitude}ns"),
        1_000..1_000_000 => fractional(magnitude, 1_000) + "µs",
        1_000_000..1_000_000_000 => fractional(magnitude, 1_000_000) + "ms",
        _ => {
            let minutes = magnitude / (60 * SECOND as u64);
            let seconds = fractional(magnitude % (60 * SECOND as u64), SECOND as u64);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// `amount / unit` with the fewest decimals; `unit` is a power of ten.
fn fractional(amount: u64, unit: u64) -> String {
    let whole = amount / unit;
    let rest = (unit + amount % unit).to_string();
    let decimals = rest.get(1..).unwrap_or_default().trim_end_matches('0');
    if decimals.is_empty() {
        whole.to_string()
    } else {
        format!("{whole}.{decimals}")
    }
}

/// One `<number><unit>`: its nanoseconds and the text after it.
fn component(text: &[u8]) -> Option<(u64, &[u8])> {
    let (whole, after_whole) = leading_integer(text)?;
    let mut has_digits = after_whole.len() < text.len();
    let mut rest = after_whole;
    let mut fraction = Fraction {
        value: 0,
        scale: 1.0,
    };
    if let Some((b'.', after_point)) = rest.split_first() {
        let after_fraction;
        (fraction, after_fraction) = leading_fraction(after_point);
        has_digits |= after_fraction.len() < after_point.len();
        rest = after_fraction;
    }
    if !has_digits {
        return None;
    }
    let unit_length = rest
        .iter()
        .position(|&byte| byte == b'.' || byte.is_ascii_digit())
        .unwrap_or(rest.len());
    let (name, after) = rest.split_at_checked(unit_length)?;
    let unit = unit_nanoseconds(name)?;
    if whole > LIMIT / unit {
        return None;
    }
    let mut nanoseconds = whole * unit;
    if fraction.value > 0 {
        // Go computes the fraction in float64, so the last nanoseconds of a long fraction
        // depend on exactly this order of operations.
        let part = fraction.value as f64 * (unit as f64 / fraction.scale);
        nanoseconds = nanoseconds.wrapping_add(part as u64);
        if nanoseconds > LIMIT {
            return None;
        }
    }
    Some((nanoseconds, after))
}

/// Nanoseconds of a unit; micro has two spellings.
fn unit_nanoseconds(name: &[u8]) -> Option<u64> {
    Some(match name {
        b"ns" => 1,
        b"us" | b"\xC2\xB5s" | b"\xCE\xBCs" => 1_000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        b"m" => 60 * 1_000_000_000,
        b"h" => 3_600 * 1_000_000_000,
        _ => return None,
    })
}

/// The digits at the beginning of a text; `None` if they exceed 2^63.
fn leading_integer(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut rest = text;
    while let Some((digit, after)) = split_digit(rest) {
        if value > LIMIT / 10 {
            return None;
        }
        value = value * 10 + digit;
        if value > LIMIT {
            return None;
        }
        rest = after;
    }
    Some((value, rest))
}

/// Digits after a decimal point: `value / scale`.
struct Fraction {
    value: u64,
    scale: f64,
}

/// Fraction at the beginning of a text; digits beyond 2^63 are ignored.
fn leading_fraction(text: &[u8]) -> (Fraction, &[u8]) {
    let mut fraction = Fraction {
        value: 0,
        scale: 1.0,
    };
    let mut full = false;
    let mut rest = text;
    while let Some((digit, after)) = split_digit(rest) {
        rest = after;
        if full || fraction.value > (LIMIT - 1) / 10 || fraction.value * 10 + digit > LIMIT {
            full = true;
            continue;
        }
        fraction.value = fraction.value * 10 + digit;
        fraction.scale *= 10.0;
    }
    (fraction, rest)
}

/// The value of a leading ASCII digit and the text after it.
fn split_digit(text: &[u8]) -> Option<(u64, &[u8])> {
    match text.split_first() {
        Some((&byte, rest)) if byte.is_ascii_digit() => Some((u64::from(byte - b'0'), rest)),
        _ => None,
    }
}

/// Parses a duration into nanoseconds.
///
/// # Errors
/// The reason, in Go's words.
pub fn parse_or_problem(text: &str) -> Result<i64, FunctionError> {
    parse(text).ok_or_else(|| FunctionError::failed(format!("time: {}", problem(text))))
}

/// Reason why a text is not a duration.
fn problem(text: &str) -> String {
    let invalid = || format!("invalid duration {}", quote(text.as_bytes()));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest.is_empty() {
        return invalid();
    }
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(rest);
        let after = rest.get(whole..).unwrap_or_default();
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => {
                let fraction = digits(after);
                (fraction, after.get(fraction..).unwrap_or_default())
            }
            None => (0, after),
        };
        // A whole part beyond 64 bits.
        let too_large = rest.get(..whole).is_some_and(|digits| {
            whole > 0 && !matches!(digits.parse::<u64>(), Ok(n) if n <= 1 << 63)
        });
        if whole + fraction == 0 || too_large {
            return invalid();
        }
        let unit = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(unit).unwrap_or((after, ""));
        if unit.is_empty() {
            return format!("missing unit in duration {}", quote(text.as_bytes()));
        }
        if !matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return format!(
                "unknown unit {} in duration {}",
                quote(unit.as_bytes()),
                quote(text.as_bytes())
            );
        }
        rest = next;
    }
    invalid()
}

/// Seconds as Go's `Duration.Seconds` computes them.
pub fn seconds(nanoseconds: i64) -> f64 {
    (nanoseconds / 1_000_000_000) as f64 + (nanoseconds % 1_000_000_000) as f64 / 1e9
}
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn table_of_section_7_1() {
        // (text, nanoseconds), docs/spec/patterns.md §7.1
        let rows: &[(&str, Option<i64>)] = &[
            ("0", Some(0)),
            ("+0", Some(0)),
            ("-0", Some(0)),
            ("0s", Some(0)),
            ("00", None),
            ("30", None),
            ("", None),
            ("-", None),
            ("15s", Some(15 * SECOND)),
            ("60s", Some(60 * SECOND)),
            ("1m", Some(60 * SECOND)),
            ("100m", Some(6_000 * SECOND)),
            ("1h", Some(3_600 * SECOND)),
            ("1h30m", Some(5_400 * SECOND)),
            ("-1h-1m", None),
            ("-1h1m", Some(-3_660 * SECOND)),
            ("+1.5s", Some(3 * SECOND / 2)),
            ("1.s", Some(SECOND)),
            (".5s", Some(SECOND / 2)),
            (".s", None),
            ("1d", None),
            ("1 s", None),
            (" 1s", None),
            ("1S", None),
            ("1us", Some(1_000)),
            ("1\u{b5}s", Some(1_000)),
            ("1\u{3bc}s", Some(1_000)),
            ("1ms", Some(1_000_000)),
            ("0.9ns", Some(0)),
            ("0.000000", None),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("9223372036854775808ns", None),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("-9223372036854775809ns", None),
            ("1e400h", None),
            ("2562048h", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text), *expected, "{text}");
        }
    }

    /// Hostile inputs, row 88.
    #[test]
    fn hostile_durations_are_fast() {
        let started = std::time::Instant::now();
        assert_eq!(parse(&"1ns".repeat(100_000)), Some(100_000));
        assert_eq!(parse(&"1h".repeat(3_000_000)), None);
        assert_eq!(parse(&"9".repeat(1_000_000)), None);
        assert_eq!(parse(&format!("0.{}s", "0".repeat(1_000_000))), Some(0));
        assert!(started.elapsed().as_secs() < 2);
    }

    proptest! {
        #[test]
        fn never_panics(text in "[-+]?([0-9.]{0,24}(ns|us|ms|s|m|h|x)?){0,4}") {
            let _ = parse(&text);
        }

        #[test]
        fn whole_seconds_are_exact(seconds in -9_000_000_000i64..9_000_000_000) {
            prop_assert_eq!(parse(&format!("{seconds}s")), Some(seconds * SECOND));
        }
    }
}
