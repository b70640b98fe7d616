//! Go durations as functions read and print them (sheet 04, section 11.1).

use super::error::FunctionError;
use super::layout::quote;
use crate::scalar::duration;

const SECOND: i64 = 1_000_000_000;

/// Reads a duration in nanoseconds, or says with Go's words why there is none.
pub(super) fn parse(text: &str) -> Result<i64, FunctionError> {
    duration::parse(text).ok_or_else(|| FunctionError::failed(format!("time: {}", problem(text))))
}

/// Why a text is no duration.
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
        // A whole part that 64 bits do not hold.
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

/// Prints nanoseconds as Go's `Duration.String`.
pub(super) fn format(nanoseconds: i64) -> String {
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

/// `amount / unit` with as few decimals as it takes; `unit` is a power of ten.
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

/// Seconds as Go's `Duration.Seconds` computes them.
pub(super) fn seconds(nanoseconds: i64) -> f64 {
    (nanoseconds / SECOND) as f64 + (nanoseconds % SECOND) as f64 / 1e9
}
