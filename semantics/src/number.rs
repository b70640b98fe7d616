//! Numbers as Go prints and parses them.
//!
//! Converts between numbers and the texts of Go's `fmt`, `strconv` and `encoding/json`. The
//! digits themselves come from Rust: both languages print the shortest text that parses
//! back to the same number. They differ in layout, and in the choice between two equally
//! near texts: see [`Shortest`].

use std::fmt::{self, Write};

/// A short text on the stack, to format a number without allocating.
#[derive(Clone)]
pub struct TextBuffer<const CAPACITY: usize> {
    bytes: [u8; CAPACITY],
    length: usize,
}

/// Room for every int64 (20 bytes) and every shortest float (24 bytes).
pub type ShortText = TextBuffer<32>;

/// Room for `%f` of every float: sign, 309 digits, point, six digits.
pub type FixedText = TextBuffer<320>;

impl<const CAPACITY: usize> TextBuffer<CAPACITY> {
    /// An empty text.
    pub fn new() -> Self {
        TextBuffer {
            bytes: [0; CAPACITY],
            length: 0,
        }
    }

    /// The text written so far.
    pub fn as_str(&self) -> &str {
        let written = self.bytes.get(..self.length).unwrap_or_default();
        std::str::from_utf8(written).unwrap_or_default()
    }
}

impl<const CAPACITY: usize> Default for TextBuffer<CAPACITY> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const CAPACITY: usize> Write for TextBuffer<CAPACITY> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let target = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        target.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Go's `%v` of a float64: shortest digits, with an exponent if the decimal
/// exponent is below -4 or at least 6 (docs/spec/patterns.md §12.5).
pub fn format_v_float(value: f64, out: &mut String) {
    let _writing_to_a_string_succeeds = write_v(value, out);
}

/// Go's `%f`: six decimals, half to even on the exact decimal expansion
/// (docs/spec/patterns.md §6.2).
pub fn format_f6(value: f64, out: &mut String) {
    let _writing_to_a_string_succeeds = write_f6(value, out);
}

/// Go's `FormatFloat(value, 'E', -1, 64)`: `1E+00`, `2.5E-01`
/// (docs/spec/patterns.md §6.2).
pub fn format_e_shortest(value: f64, out: &mut String) {
    let _writing_to_a_string_succeeds = write_e_shortest(value, out);
}

/// A float64 as printed by `encoding/json`: with an exponent below 1e-6 and from 1e21 on,
/// `1e-7` instead of `1e-07` (docs/spec/conditions.md §4.4, `to_string`).
///
/// JSON has no spelling for infinities and NaN; passing them is an error of the caller, and
/// they are printed as by `%v`.
pub fn format_json_float(value: f64, out: &mut String) {
    let _writing_to_a_string_succeeds = write_json(value, out, 1);
}

/// A float64 as printed for a variable inside a longer string: like [`format_json_float`],
/// but with two exponent digits, `1e-07` (docs/spec/conditions.md §4.4).
pub fn format_substituted_float(value: f64, out: &mut String) {
    let _writing_to_a_string_succeeds = write_json(value, out, 2);
}

/// Writes a float as printed by Go's `%v`.
///
/// # Errors
/// Fails if the output fails.
pub fn write_v(value: f64, out: &mut impl Write) -> fmt::Result {
    if let Some(name) = non_finite(value) {
        return out.write_str(name);
    }
    let shortest = Shortest::new(value)?;
    if value == 0.0 || (-4..6).contains(&shortest.exponent) {
        shortest.write_plain(out)
    } else {
        shortest.write_exponent('e', 2, out)
    }
}

/// `%f` into any sink; see [`format_f6`].
pub fn write_f6(value: f64, out: &mut impl Write) -> fmt::Result {
    match non_finite(value) {
        Some(name) => out.write_str(name),
        None => write!(out, "{value:.6}"),
    }
}

/// `'E', -1` into any sink; see [`format_e_shortest`].
pub fn write_e_shortest(value: f64, out: &mut impl Write) -> fmt::Result {
    match non_finite(value) {
        Some(name) => out.write_str(name),
        None => Shortest::new(value)?.write_exponent('E', 2, out),
    }
}

fn write_json(value: f64, out: &mut impl Write, exponent_width: usize) -> fmt::Result {
    if let Some(name) = non_finite(value) {
        return out.write_str(name);
    }
    let magnitude = value.abs();
    let shortest = Shortest::new(value)?;
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        shortest.write_plain(out)
    } else {
        shortest.write_exponent('e', exponent_width, out)
    }
}

/// Go's names for infinities and NaN.
fn non_finite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

/// The shortest digits of a finite float, as chosen by Go.
///
/// If two texts of that length are equally near, Rust takes the larger and Go the even one:
/// `1581280964889030.25` has 17 digits, of which Go prints `1581280964889030.2`. Such a
/// float has at least 16 shortest digits, because it is a whole number of units of its last
/// place, and some of them are decimals.
struct Shortest {
    value: f64,
    /// `d.ddde5`, with an optional sign.
    text: ShortText,
    exponent: i32,
    /// Number of decimals in plain form, if Go's and Rust's choices differ.
    tie_decimals: Option<usize>,
}

impl Shortest {
    fn new(value: f64) -> Result<Shortest, fmt::Error> {
        let mut text = ShortText::new();
        write!(text, "{value:e}")?;
        let (mantissa, exponent) = text.as_str().split_once('e').ok_or(fmt::Error)?;
        let exponent: i32 = exponent.parse().map_err(|_| fmt::Error)?;
        let decimals = mantissa
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        let mut shortest = Shortest {
            value,
            text,
            exponent,
            tie_decimals: None,
        };
        if decimals >= 15 {
            shortest.take_even(decimals)?;
        }
        Ok(shortest)
    }

    /// Prefers the text rounded half to even, if it parses back.
    fn take_even(&mut self, decimals: usize) -> fmt::Result {
        let mut rounded = ShortText::new();
        write!(rounded, "{:.decimals$e}", self.value)?;
        let reads_back = rounded.as_str().parse() == Ok(self.value);
        if reads_back && rounded.as_str() != self.text.as_str() {
            self.text = rounded;
            self.tie_decimals = (decimals as i64 - i64::from(self.exponent)).try_into().ok();
        }
        Ok(())
    }

    fn write_plain(&self, out: &mut impl Write) -> fmt::Result {
        let value = self.value;
        match self.tie_decimals {
            Some(decimals) => write!(out, "{value:.decimals$}"),
            None => write!(out, "{value}"),
        }
    }

    /// Writes the exponent form, with at least `width` exponent digits for a negative
    /// exponent; a positive one always has two.
    fn write_exponent(&self, letter: char, width: usize, out: &mut impl Write) -> fmt::Result {
        let (mantissa, _) = self.text.as_str().split_once('e').ok_or(fmt::Error)?;
        let sign = if self.exponent < 0 { '-' } else { '+' };
        write!(
            out,
            "{mantissa}{letter}{sign}{:0width$}",
            self.exponent.unsigned_abs()
        )
    }
}

/// Go's `ParseInt(text, 10, 64)`: an optional sign and digits, nothing else
/// (docs/spec/patterns.md §5).
#[must_use]
pub fn parse_go_int(text: &str) -> Option<i64> {
    // Rust uses the same grammar: one sign, leading zeros, no underscore.
    text.parse().ok()
}

/// Go's conversion of a float64 to int64 on amd64: NaN and values out of range give -2^63
/// (docs/spec/patterns.md §5; docs/spec/conditions.md §3.3).
#[must_use]
pub fn float_to_i64_amd64(value: f64) -> i64 {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if (-TWO_TO_63..TWO_TO_63).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// Go's `ParseFloat(text, 64)`: decimal and hexadecimal floats, `inf`, `infinity` and `nan`
/// in any case, underscores between digits; values beyond the largest float are an error,
/// hence `None` (docs/spec/patterns.md §5).
#[must_use]
pub fn parse_go_float(text: &str) -> Option<f64> {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..)?),
        [b'+', ..] => (false, text.get(1..)?),
        _ => (false, text),
    };
    if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
        return Some(if negative {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        });
    }
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    let scan = FloatScan::read(unsigned.as_bytes())?;
    if scan.has_underscores && !underscores_separate_digits(unsigned.as_bytes()) {
        return None;
    }
    let magnitude = if scan.is_hexadecimal {
        hexadecimal_value(&scan)?
    } else if scan.has_underscores {
        unsigned.replace('_', "").parse().ok()?
    } else {
        unsigned.parse().ok()?
    };
    if f64::is_infinite(magnitude) {
        return None;
    }
    Some(if negative { -magnitude } else { magnitude })
}

/// Result of one pass over an unsigned float text.
struct FloatScan {
    is_hexadecimal: bool,
    has_underscores: bool,
    /// The first 16 significant hexadecimal digits.
    mantissa: u64,
    /// Whether a later digit was nonzero.
    is_inexact: bool,
    /// Power of two that the mantissa is multiplied by.
    exponent: i64,
}

impl FloatScan {
    /// Checks the grammar of a whole text, and collects a hexadecimal value.
    fn read(text: &[u8]) -> Option<FloatScan> {
        let (is_hexadecimal, mut rest) = match text {
            [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, text),
        };
        let mut scan = FloatScan {
            is_hexadecimal,
            has_underscores: false,
            mantissa: 0,
            is_inexact: false,
            exponent: 0,
        };
        rest = scan.read_mantissa(rest)?;
        match rest.split_first() {
            None if is_hexadecimal => None,
            None => Some(scan),
            Some((&letter, rest)) => {
                let expected = if is_hexadecimal { b'p' } else { b'e' };
                if letter.to_ascii_lowercase() != expected {
                    return None;
                }
                scan.read_exponent(rest)?;
                Some(scan)
            }
        }
    }

    /// Reads digits with at most one point; `None` if there is no digit.
    fn read_mantissa<'t>(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        const FULL: u64 = 1 << 60;
        let mut rest = text;
        let mut saw_digit = false;
        let mut saw_point = false;
        while let Some((&byte, after)) = rest.split_first() {
            let digit = match byte {
                b'_' => {
                    self.has_underscores = true;
                    rest = after;
                    continue;
                }
                b'.' if !saw_point => {
                    saw_point = true;
                    rest = after;
                    continue;
                }
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' if self.is_hexadecimal => byte - b'a' + 10,
                b'A'..=b'F' if self.is_hexadecimal => byte - b'A' + 10,
                _ => break,
            };
            saw_digit = true;
            rest = after;
            if self.mantissa < FULL {
                self.mantissa = (self.mantissa << 4) | u64::from(digit);
                self.exponent -= if saw_point { 4 } else { 0 };
            } else {
                self.is_inexact |= digit != 0;
                self.exponent += if saw_point { 0 } else { 4 };
            }
        }
        saw_digit.then_some(rest)
    }

    /// Reads `[+-]digits` up to the end of the text.
    fn read_exponent(&mut self, text: &[u8]) -> Option<()> {
        let (negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        if !digits.first()?.is_ascii_digit() {
            return None;
        }
        let mut exponent: i64 = 0;
        for &byte in digits {
            match byte {
                b'0'..=b'9' if exponent < 10_000 => {
                    exponent = exponent * 10 + i64::from(byte - b'0');
                }
                b'0'..=b'9' => {}
                b'_' => self.has_underscores = true,
                _ => return None,
            }
        }
        self.exponent += if negative { -exponent } else { exponent };
        Some(())
    }
}

/// Go's rule for underscores: each is between two digits; the `0x` prefix counts as a
/// digit.
fn underscores_separate_digits(text: &[u8]) -> bool {
    let (is_hexadecimal, digits) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut after_digit = is_hexadecimal;
    let mut after_underscore = false;
    for byte in digits {
        let is_digit = byte.is_ascii_digit() || (is_hexadecimal && byte.is_ascii_hexdigit());
        let is_underscore = *byte == b'_';
        if (is_underscore && !after_digit) || (after_underscore && !is_digit) {
            return false;
        }
        after_digit = is_digit;
        after_underscore = is_underscore;
    }
    !after_underscore
}

/// The float nearest to a hexadecimal text, half to even; `None` on overflow.
fn hexadecimal_value(scan: &FloatScan) -> Option<f64> {
    const INFINITY_BITS: u64 = 0x7FF << 52;
    if scan.mantissa == 0 {
        return Some(0.0);
    }
    let shift = scan.mantissa.leading_zeros();
    let mantissa = scan.mantissa << shift;
    let top = scan.exponent - i64::from(shift) + 63;
    if top > 1023 {
        return None;
    }
    // A normal number has 53 bits, a smaller one fewer.
    let missing = (-1022 - top).max(0);
    let kept_bits = 53 - missing;
    if kept_bits < 0 {
        return Some(0.0);
    }
    let dropped_bits = 64 - kept_bits;
    let wide = u128::from(mantissa);
    let mut kept = (wide >> dropped_bits) as u64;
    let remainder = wide & ((1 << dropped_bits) - 1);
    let half = 1u128 << (dropped_bits - 1);
    if remainder > half || (remainder == half && (scan.is_inexact || kept & 1 == 1)) {
        kept += 1;
    }
    // The leading bit of a normal number adds one to the stored exponent.
    let exponent_bits = if missing == 0 {
        ((top + 1022) as u64) << 52
    } else {
        0
    };
    let bits = exponent_bits + kept;
    (bits < INFINITY_BITS).then(|| f64::from_bits(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(format: fn(f64, &mut String), value: f64) -> String {
        let mut out = String::new();
        format(value, &mut out);
        out
    }

    #[test]
    fn v_verb() {
        let rows: &[(f64, &str)] = &[
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1_234_567.5, "1.2345675e+06"),
            (1_234_567.0, "1.234567e+06"), // docs/spec/conditions.md §3.2
            (0.00001, "1e-05"),            // docs/spec/conditions.md §3.2
            (0.0001, "0.0001"),
            (1.5, "1.5"),
            (0.0, "0"),
            (-1e300, "-1e+300"),
            (f64::INFINITY, "+Inf"),
        ];
        for (value, expected) in rows {
            assert_eq!(text(format_v_float, *value), *expected);
        }
    }

    #[test]
    fn f6_verb() {
        let rows: &[(f64, &str)] = &[
            (0.0, "0.000000"),
            (1.0, "1.000000"),
            (6.000000001, "6.000000"),
            (7.00001, "7.000010"),
            (0.0078125, "0.007812"), // exactly half way: to the even digit
            (0.0234375, "0.023438"), // exactly half way: to the even digit
            (-2.5, "-2.500000"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ];
        for (value, expected) in rows {
            assert_eq!(text(format_f6, *value), *expected);
        }
        let mut buffer = FixedText::new();
        assert!(write_f6(f64::MIN, &mut buffer).is_ok());
        assert_eq!(buffer.as_str().len(), 317);
    }

    #[test]
    fn shortest_e_verb() {
        let rows: &[(f64, &str)] = &[
            (1.0, "1E+00"),
            (1.5, "1.5E+00"),
            (0.25, "2.5E-01"),
            (0.0, "0E+00"),
            (1e100, "1E+100"),
        ];
        for (value, expected) in rows {
            assert_eq!(text(format_e_shortest, *value), *expected);
        }
    }

    #[test]
    fn json() {
        // (value, to_string, inside a string)
        let rows: &[(f64, &str, &str)] = &[
            (5.0, "5", "5"),
            (-0.0, "-0", "-0"),
            (0.000001, "0.000001", "0.000001"),
            (1e-7, "1e-7", "1e-07"),
            (1e20, "100000000000000000000", "100000000000000000000"),
            (1e21, "1e+21", "1e+21"),
            (1.5e-10, "1.5e-10", "1.5e-10"),
        ];
        for (value, to_string, substituted) in rows {
            assert_eq!(text(format_json_float, *value), *to_string);
            assert_eq!(text(format_substituted_float, *value), *substituted);
        }
    }

    /// Of two equally near shortest texts Go takes the even one.
    #[test]
    fn ties_go_to_the_even_digit() {
        let value = 1_581_280_964_889_030.0 + 0.25;
        assert_eq!(text(format_v_float, value), "1.5812809648890302e+15");
        assert_eq!(text(format_e_shortest, value), "1.5812809648890302E+15");
        assert_eq!(text(format_json_float, value), "1581280964889030.2");
        assert_eq!(
            text(format_json_float, -13_728_133_182_780.0 - 0.8125),
            "-13728133182780.812"
        );
        assert_eq!(
            text(format_json_float, 1_581_280_964_889_030.0 + 0.75),
            "1581280964889030.8"
        );
    }

    #[test]
    fn integers() {
        let rows: &[(&str, Option<i64>)] = &[
            ("+5", Some(5)),
            ("007", Some(7)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("8.0", None),
            (" 8", None),
            ("1e1", None),
            ("1_0", None),
            ("", None),
            ("-", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_go_int(text), *expected, "{text}");
        }
    }

    #[test]
    fn floats() {
        let rows: &[(&str, Option<f64>)] = &[
            ("8", Some(8.0)),
            ("8.0", Some(8.0)),
            ("8e0", Some(8.0)),
            ("0x8p0", Some(8.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("1.", Some(1.0)),
            (".5", Some(0.5)),
            (".", None),
            ("", None),
            ("e5", None),
            ("1e", None),
            ("+nan", None),
            ("infinit", None),
            ("1e400", None),
            ("-1e400", None),
            ("1e-400", Some(0.0)),
            ("0x1", None),
            ("0x", None),
            ("0x.8p1", Some(1.0)),
            ("-0X1.8P-1", Some(-0.75)),
            ("0x1p1024", None),
            ("0x1p-1074", Some(f64::from_bits(1))),
            ("0x1p-1075", Some(0.0)),
            ("0x1.8p-1075", Some(f64::from_bits(1))),
            ("0x1.fffffffffffff8p1023", None),
            // Go allows underscores only where its own literals do.
            ("1_000", Some(1000.0)),
            ("1__0", None),
            ("_1", None),
            ("0x_1p0", Some(1.0)),
            ("1_", None),
            ("1 ", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_go_float(text), *expected, "{text}");
        }
        assert!(parse_go_float("NaN").is_some_and(f64::is_nan));
    }

    #[test]
    fn conversion() {
        let rows: &[(f64, i64)] = &[
            (1.9, 1),
            (-1.9, -1),
            (9.3e18, i64::MIN),
            (-9.3e18, i64::MIN),
            (f64::NAN, i64::MIN),
            (9_223_372_036_854_774_784.0, 9_223_372_036_854_774_784),
        ];
        for (value, expected) in rows {
            assert_eq!(float_to_i64_amd64(*value), *expected);
        }
    }

    proptest! {
        #[test]
        fn float_parser_never_panics(text in "[-+]?(0[xX])?[0-9a-f_.]{0,30}([ep][-+]?[0-9_]{0,9})?") {
            let _ = parse_go_float(&text);
        }

        #[test]
        fn shortest_texts_read_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            for format in [format_v_float, format_e_shortest, format_json_float, format_substituted_float] {
                prop_assert_eq!(parse_go_float(&text(format, value)), Some(value));
            }
        }
    }
}
