//! Durations: what is printed reads back, and parsing is that of Go on exact numbers.

use std::str::from_utf8;

use kpvm_semantics::duration::{format, parse, parse_or_problem};

use crate::target::Target;
use crate::text::texts;

/// The target.
pub const TARGET: Target = Target {
    name: "duration",
    run,
    seeds,
    words: &[
        "ns", "us", "µs", "μs", "ms", "s", "m", "h", "1h30m", ".", "-", "+", "0",
    ],
    max_bytes: 128,
};

/// Runs the harness.
pub fn run(input: &[u8]) {
    if let Ok(bytes) = input.try_into() {
        let nanoseconds = i64::from_le_bytes(bytes);
        assert_eq!(parse(&format(nanoseconds)), Some(nanoseconds));
    }
    let Ok(text) = from_utf8(input) else { return };
    let parsed = parse(text);
    assert_eq!(parse_or_problem(text).ok(), parsed);
    if let Some(nanoseconds) = parsed {
        assert_eq!(parse(&format(nanoseconds)), Some(nanoseconds), "{text}");
    }
    if let Some(expected) = exact(text) {
        assert_eq!(parsed, expected, "{text}");
    }
}

/// Nanoseconds of a sum of components with at most nine decimals in integers that cannot overflow;
/// the outer `None` for other texts.
fn exact(text: &str) -> Option<Option<i64>> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut total = 0i128;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, after) = rest.split_at(digits(rest));
        let fraction = after.strip_prefix('.').unwrap_or_default();
        let (fraction, after) = match after.starts_with('.') {
            true => fraction.split_at(digits(fraction)),
            false => ("", after),
        };
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        if whole.len() > 12 || fraction.len() > 9 || whole.is_empty() {
            return None;
        }
        let scaled: i128 = format!("{whole}{fraction:0<9}").parse().ok()?;
        // Whole nanoseconds of each component; Go truncates.
        total += scaled * unit / 1_000_000_000;
        // Go wraps around twice this; leave that to its own cases.
        if total > 1 << 63 {
            return None;
        }
        rest = after;
    }
    if text.trim_start_matches(['-', '+']).is_empty() {
        return None;
    }
    Some(i64::try_from(if negative { -total } else { total }).ok())
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "1h30m",
        "-1.5s",
        "0",
        "100ms",
        "1h2m3s4ms5us6ns",
        "+5m",
        "9223372036854775807ns",
        "-9223372036854775808ns",
        "2562047h47m16.854775807s",
        "0.5us",
        ".5s",
        "1.s",
        "1d",
        "3µs",
        "abcdefgh",
    ])
}
