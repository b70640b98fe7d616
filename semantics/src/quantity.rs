//! Kubernetes quantities (`500m`, `1.5Gi`, `2e3`), for comparison (docs/spec/patterns.md
//! §7.2).
//!
//! A quantity is an exact number of units of 1e-9; one beyond 128 bits is kept as its
//! digits and a power of ten. Work is linear in the text: no number is expanded by its
//! exponent, so `1e999999999` costs no more than `1`.

use std::cmp::Ordering;

/// Units of 1e-9 in one.
const NANOS_PER_ONE: i128 = 1_000_000_000;

/// Decimal places of a quantity.
const DECIMALS: i64 = 9;

/// The cap of a quantity with a binary suffix.
const BINARY_CAP: u128 = i64::MAX as u128;

/// A parsed quantity; equality and order are those of the number, whatever the
/// suffix was (docs/spec/patterns.md §7.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Quantity(Amount);

/// A number is `Nano` if and only if it fits, so that equal numbers have equal
/// representations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Amount {
    Nano(i128),
    Large(Box<Large>),
}

/// A number beyond 128 bits: `digits` times ten to the `exponent`, in nanos.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Large {
    negative: bool,
    /// ASCII digits without leading or trailing zeros, never empty.
    digits: Vec<u8>,
    exponent: i64,
}

impl Quantity {
    /// Parses a text like `resource.ParseQuantity`; `None` if it is not a quantity.
    #[must_use]
    pub fn parse(text: &str) -> Option<Quantity> {
        let parts = Parts::split(text)?;
        match suffix(parts.suffix)? {
            Suffix::Decimal(exponent) => decimal(&parts, exponent),
            Suffix::Binary(exponent) => binary(&parts, exponent),
        }
    }

    /// The quantity of a whole number.
    #[must_use]
    pub fn from_i64(value: i64) -> Quantity {
        Quantity(Amount::Nano(i128::from(value) * NANOS_PER_ONE))
    }

    /// The number in units of 1e-9, if it fits.
    #[must_use]
    pub fn as_nano(&self) -> Option<i128> {
        match self.0 {
            Amount::Nano(nanos) => Some(nanos),
            Amount::Large(_) => None,
        }
    }

    /// The quantity of a number in units of 1e-9, as returned by [`Quantity::as_nano`].
    #[must_use]
    pub fn from_nano(nanos: i128) -> Quantity {
        Quantity(Amount::Nano(nanos))
    }

    /// A signed number of nanos, if it fits.
    fn from_magnitude(negative: bool, nanos: u128) -> Option<Quantity> {
        let signed = if negative {
            0i128.checked_sub_unsigned(nanos)?
        } else {
            i128::try_from(nanos).ok()?
        };
        Some(Quantity(Amount::Nano(signed)))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        match (&self.0, &other.0) {
            (Amount::Nano(left), Amount::Nano(right)) => left.cmp(right),
            // A large number is farther from zero than any number that fits.
            (Amount::Large(left), Amount::Nano(_)) => left.beside_small(),
            (Amount::Nano(_), Amount::Large(right)) => right.beside_small().reverse(),
            (Amount::Large(left), Amount::Large(right)) => left.compare(right),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Large {
    /// Ordering of this number relative to any number that fits in 128 bits.
    fn beside_small(&self) -> Ordering {
        if self.negative {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    }

    fn compare(&self, other: &Large) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }

    fn compare_magnitude(&self, other: &Large) -> Ordering {
        // Without trailing zeros, a prefix of equal digits is smaller, which is how slices
        // compare.
        self.length()
            .cmp(&other.length())
            .then_with(|| self.digits.cmp(&other.digits))
    }

    /// Number of decimal digits of the whole number.
    fn length(&self) -> i64 {
        self.exponent + self.digits.len() as i64
    }
}

/// Parts of a quantity text.
pub struct Parts<'t> {
    /// Whether the sign is `-`.
    pub negative: bool,
    /// Digits before the point, without leading zeros.
    pub whole: &'t [u8],
    /// Digits after the point.
    pub fraction: &'t [u8],
    /// Whether there are any digits, including zeros.
    has_digits: bool,
    /// The unit or exponent.
    pub suffix: &'t [u8],
}

impl Parts<'_> {
    /// Splits a quantity; `None` if the text is not one.
    pub fn split(text: &str) -> Option<Parts<'_>> {
        let (negative, unsigned) = match text.as_bytes() {
            [] => return None,
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = match rest.split_first() {
            Some((b'.', after)) => split_digits(after),
            _ => (&[][..], rest),
        };
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        Some(Parts {
            negative,
            whole: without_leading_zeros(whole),
            fraction,
            has_digits,
            suffix,
        })
    }
}

/// Factor of a suffix.
pub enum Suffix {
    /// Ten to this power.
    Decimal(i32),
    /// Two to this power.
    Binary(u32),
}

/// Meaning of a suffix; `None` if it is unknown.
pub fn suffix(text: &[u8]) -> Option<Suffix> {
    Some(match text {
        b"" => Suffix::Decimal(0),
        b"n" => Suffix::Decimal(-9),
        b"u" => Suffix::Decimal(-6),
        b"m" => Suffix::Decimal(-3),
        b"k" => Suffix::Decimal(3),
        b"M" => Suffix::Decimal(6),
        b"G" => Suffix::Decimal(9),
        b"T" => Suffix::Decimal(12),
        b"P" => Suffix::Decimal(15),
        b"E" => Suffix::Decimal(18),
        b"Ki" => Suffix::Binary(10),
        b"Mi" => Suffix::Binary(20),
        b"Gi" => Suffix::Binary(30),
        b"Ti" => Suffix::Binary(40),
        b"Pi" => Suffix::Binary(50),
        b"Ei" => Suffix::Binary(60),
        [b'e' | b'E', exponent @ ..] => {
            let exponent: i64 = std::str::from_utf8(exponent).ok()?.parse().ok()?;
            // Kubernetes keeps the low 32 bits of an exponent that fits in 64.
            Suffix::Decimal(exponent as i32)
        }
        _ => return None,
    })
}

/// A number with a power of ten: `whole.fraction * 10^exponent`.
fn decimal(parts: &Parts<'_>, exponent: i32) -> Option<Quantity> {
    // Kubernetes parses a text without digits as zero, unless it is finer than a nano and
    // takes the path that requires a digit.
    if !parts.has_digits && i64::from(exponent) < -DECIMALS {
        return None;
    }
    let (whole, fraction) = (parts.whole, parts.fraction);
    // Kubernetes computes the scale in 32 bits, where it wraps.
    let scale = (fraction.len() as i32).wrapping_sub(exponent);
    // Decimal places to shift the digits left, to get nanos.
    let shift = DECIMALS - i64::from(scale);
    if let Some(quantity) = small_decimal(parts, shift) {
        return Some(quantity);
    }
    let digits: Vec<u8> = whole.iter().chain(fraction).copied().collect();
    Some(decimal_of_digits(parts.negative, digits, shift))
}

/// The common case: at most 19 digits, no rounding, fits in 128 bits.
fn small_decimal(parts: &Parts<'_>, shift: i64) -> Option<Quantity> {
    if parts.whole.len() + parts.fraction.len() > 19 {
        return None;
    }
    let digits = parts.whole.iter().chain(parts.fraction);
    let value = digits.fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'));
    if value == 0 {
        return Some(Quantity::from_nano(0));
    }
    let power = 10u128.checked_pow(u32::try_from(shift).ok()?)?;
    Quantity::from_magnitude(parts.negative, u128::from(value).checked_mul(power)?)
}

/// The general case: rounds away from zero, and keeps digits beyond 128 bits.
fn decimal_of_digits(negative: bool, mut digits: Vec<u8>, shift: i64) -> Quantity {
    digits.drain(..digits.len() - without_leading_zeros(&digits).len());
    let mut exponent = shift;
    if exponent < 0 && !digits.is_empty() {
        let dropped = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
        let kept = digits.len().saturating_sub(dropped);
        let round_up = digits.drain(kept..).any(|digit| digit != b'0');
        exponent = 0;
        // Digits entirely beyond the last place also round up.
        if round_up {
            exponent += add_one(&mut digits);
        }
    }
    while digits.last() == Some(&b'0') {
        digits.pop();
        exponent += 1;
    }
    if digits.is_empty() {
        return Quantity::from_nano(0);
    }
    magnitude(&digits, exponent)
        .and_then(|nanos| Quantity::from_magnitude(negative, nanos))
        .unwrap_or_else(|| {
            Quantity(Amount::Large(Box::new(Large {
                negative,
                digits,
                exponent,
            })))
        })
}

/// Adds one to a decimal number; returns the number of trailing zeros it gained, which are
/// removed.
fn add_one(digits: &mut Vec<u8>) -> i64 {
    let mut zeros = 0;
    while digits.last() == Some(&b'9') {
        digits.pop();
        zeros += 1;
    }
    match digits.last_mut() {
        Some(last) => *last += 1,
        None => digits.push(b'1'),
    }
    zeros
}

/// `digits * 10^exponent`, if it fits in 128 bits.
fn magnitude(digits: &[u8], exponent: i64) -> Option<u128> {
    let value = number(digits)?;
    value.checked_mul(10u128.checked_pow(u32::try_from(exponent).ok()?)?)
}

/// A number with a binary suffix: `whole.fraction * 2^exponent`, capped.
fn binary(parts: &Parts<'_>, exponent: u32) -> Option<Quantity> {
    // Peta and exa take a path in Kubernetes that requires a digit.
    if !parts.has_digits && exponent >= 50 {
        return None;
    }
    let (carry, mut nanos) = scaled_fraction(parts.fraction, exponent);
    // More than 19 digits exceed the cap with any suffix.
    let whole = if parts.whole.len() > 19 {
        None
    } else {
        number(parts.whole)
    };
    let ones = whole.map_or(u128::MAX, |whole| (whole << exponent) + u128::from(carry));
    if ones >= BINARY_CAP {
        nanos = 0;
    }
    let total = ones.min(BINARY_CAP) * NANOS_PER_ONE.unsigned_abs() + u128::from(nanos);
    Quantity::from_magnitude(parts.negative, total)
}

/// `0.fraction * 2^exponent` as whole part and nanos, rounded up.
///
/// Long multiplication from the last digit on: the carry out of the first digit is the
/// whole part. Only the first nine digits are kept, with a flag for nonzero digits after
/// them. `exponent` is at most 60, so nine times the factor plus a carry fits in 64 bits.
fn scaled_fraction(fraction: &[u8], exponent: u32) -> (u64, u64) {
    let mut carry: u64 = 0;
    let mut nanos: u64 = 0;
    let mut place_value: u64 = NANOS_PER_ONE as u64;
    for _ in 0..fraction.len().min(DECIMALS as usize) {
        place_value /= 10;
    }
    let mut inexact = false;
    for (place, digit) in fraction.iter().enumerate().rev() {
        let product = (u64::from(digit - b'0') << exponent) + carry;
        carry = product / 10;
        let digit = product % 10;
        if place < DECIMALS as usize {
            nanos += digit * place_value;
            place_value *= 10;
        } else {
            inexact |= digit != 0;
        }
    }
    (carry, nanos + u64::from(inexact))
}

/// Value of ASCII digits, if it fits in 128 bits.
fn number(digits: &[u8]) -> Option<u128> {
    let mut value: u128 = 0;
    for digit in digits {
        value = value
            .checked_mul(10)?
            .checked_add(u128::from(digit - b'0'))?;
    }
    Some(value)
}

/// Leading digits of a text, and the rest.
fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, &[]))
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nano(text: &str) -> Option<i128> {
        Quantity::parse(text).and_then(|quantity| quantity.as_nano())
    }

    #[test]
    fn values_of_section_7_2() {
        const ONE: i128 = 1_000_000_000;
        let rows: &[(&str, i128)] = &[
            ("0", 0),
            ("1", ONE),
            ("1n", 1),
            ("1u", 1_000),
            ("200m", ONE / 5),
            ("1k", 1_000 * ONE),
            ("1M", 1_000_000 * ONE),
            ("1G", 1_000_000_000 * ONE),
            ("2T", 2_000_000_000_000 * ONE),
            ("1P", 1_000_000_000_000_000 * ONE),
            ("1E", 1_000_000_000_000_000_000 * ONE),
            ("1Ki", 1024 * ONE),
            ("1Mi", 1_048_576 * ONE),
            ("1.5Gi", 1_610_612_736 * ONE),
            ("1Ti", 1_099_511_627_776 * ONE),
            ("1Pi", (1 << 50) * ONE),
            ("1Ei", (1 << 60) * ONE),
            ("1E3", 1_000 * ONE),
            ("12e4", 120_000 * ONE),
            ("1e+2", 100 * ONE),
            ("1e-2", ONE / 100),
            ("1e4294967297", 10 * ONE),
            ("007", 7 * ONE),
            ("1.", ONE),
            (".5", ONE / 2),
            ("-1.5", -3 * ONE / 2),
            ("+5", 5 * ONE),
            ("0.1n", 1),
            ("0.9n", 1),
            ("-0.1n", -1),
            ("1.1n", 2),
            ("1e-400", 1),
            ("0e-400", 0),
            ("1e-10", 1),
            ("8Ei", i128::from(i64::MAX) * ONE),
            ("16Ei", i128::from(i64::MAX) * ONE),
            ("-16Ei", -i128::from(i64::MAX) * ONE),
            ("7.99999999999999999999Ei", i128::from(i64::MAX) * ONE),
            ("0.00000000000000000001Ki", 1),
            ("0.0009765625Ki", ONE),
            ("0.00097656250000000000000001Ki", ONE + 1),
        ];
        for (text, expected) in rows {
            assert_eq!(nano(text), Some(*expected), "{text}");
        }
    }

    #[test]
    fn absent_digits_of_section_7_2() {
        let zero = ". - + m k M G T P E n u Ki Mi Gi Ti e5 E12 e-9 -. +m .Ki";
        for text in zero.split(' ') {
            assert_eq!(nano(text), Some(0), "{text}");
        }
        for text in ["Pi", "Ei", "-Pi", ".Ei", "e-10", ".e-10", "e2147483648"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
        assert_eq!(nano("0Pi"), Some(0));
    }

    #[test]
    fn no_quantities_of_section_7_2() {
        let texts = [
            "",
            " 1",
            "1 ",
            "1.1.1",
            "e",
            "1e",
            "1e+",
            "K",
            "ki",
            "mi",
            "i",
            "1i",
            "1Kii",
            "1_0",
            "--1",
            "1mm",
            "1e5m",
            "1e9223372036854775808",
            "Inf",
            "+Inf",
            "NaN",
            "\u{661}",
            "1\u{b5}",
        ];
        for text in texts {
            assert_eq!(Quantity::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn order_of_section_7_2() {
        let ascending = [
            "-1e2147483647",
            "-1e31",
            "-1e30",
            "-1G",
            "-1n",
            "0",
            "1n",
            "1m",
            "1",
            "1k",
            "1Ki",
            "1G",
            "1Gi",
            "1e28",
            "1e29",
            "1e30",
            "1.5e30",
            "1e31",
            "1e999999999",
            "1e2147483647",
        ];
        for (left, text) in ascending.iter().enumerate() {
            for (right, other) in ascending.iter().enumerate() {
                let order = Quantity::parse(text).cmp(&Quantity::parse(other));
                assert_eq!(order, left.cmp(&right), "{text} x {other}");
            }
        }
        let equal = [
            ("1000m", "1"),
            ("1Gi", "1024Mi"),
            ("1.10", "1.1"),
            ("01", "1"),
            ("8Ei", "9Ei"),
            ("1e30", "1000e27"),
            ("1e30", "1000000000000000000000000000000.0"),
            ("0.1n", "1n"),
            ("99999999999999999999999999999999999999.9999999999", "1e38"),
        ];
        for (left, right) in equal {
            assert!(Quantity::parse(left).is_some());
            assert_eq!(
                Quantity::parse(left),
                Quantity::parse(right),
                "{left} x {right}"
            );
        }
    }

    /// Hostile inputs, row 86.
    #[test]
    fn hostile_quantities_are_fast() {
        let started = std::time::Instant::now();
        let many = "7".repeat(1_000_000);
        let texts = [
            "1e999999999",
            "1e-999999999",
            "2E6024865272343",
            "1e9223372036854775807",
            "1e2147483648",
            &many,
            &format!("0.{many}"),
            &format!("{many}.{many}"),
            &format!("{many}Ki"),
            &format!("0.{many}Ei"),
            &"9".repeat(1_000_000),
            &format!("{many}e-1000000"),
        ];
        let quantities: Vec<Quantity> = texts
            .iter()
            .map(|text| Quantity::parse(text).unwrap())
            .collect();
        for left in &quantities {
            for right in &quantities {
                assert_eq!(left.cmp(right), right.cmp(left).reverse());
            }
        }
        assert!(started.elapsed().as_secs() < 2);
    }

    /// Texts that are mostly quantities, including large and small numbers.
    fn quantity_text() -> impl Strategy<Value = String> {
        let suffix = "|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,2}|e[0-9]{9,12}";
        (
            "[-+]?[0-9]{0,3}(0{20}[0-9]{0,22})?(\\.[0-9]{0,14})?",
            suffix,
        )
            .prop_map(|(digits, suffix)| digits + &suffix)
    }

    proptest! {
        #[test]
        fn never_panics(text in ".*") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn order_is_total(texts in prop::collection::vec(quantity_text(), 3)) {
            let list: Vec<Quantity> = texts.iter().filter_map(|text| Quantity::parse(text)).collect();
            prop_assume!(list.len() == 3);
            let (a, b, c) = (&list[0], &list[1], &list[2]);
            prop_assert_eq!(a.cmp(b), b.cmp(a).reverse());
            prop_assert_eq!(a == b, a.cmp(b) == Ordering::Equal);
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
        }

        #[test]
        fn nanos_round_trip(text in quantity_text()) {
            if let Some(quantity) = Quantity::parse(&text) && let Some(nanos) = quantity.as_nano() {
                prop_assert_eq!(Quantity::from_nano(nanos), quantity);
            }
        }

        #[test]
        fn whole_numbers_are_themselves(value in any::<i64>()) {
            prop_assert_eq!(Quantity::parse(&value.to_string()), Some(Quantity::from_i64(value)));
        }
    }
}
