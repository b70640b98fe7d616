//! Go durations as functions read and print them (docs/spec/jmespath.md §11.1).

use super::error::FunctionError;
use super::layout::quote;
pub(super) use crate::scalar::duration::format;

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

/// Seconds as Go's `Duration.Seconds` computes them.
pub(super) fn seconds(nanoseconds: i64) -> f64 {
    (nanoseconds / SECOND) as f64 + (nanoseconds % SECOND) as f64 / 1e9
}
