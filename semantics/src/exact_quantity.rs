//! Quantities for arithmetic: exact decimals that remember how they were written
//! (docs/spec/jmespath.md §8.2 and §8.3).
//!
//! [`crate::Quantity`] compares; this type adds, multiplies and prints. Digits and
//! exponents are bounded, so that no text produces a number with a million digits.

use num_bigint::{BigInt, Sign};

use crate::FunctionError;
use crate::quantity::{Parts, Suffix, suffix};

/// Maximum number of digits of a quantity as written.
const MAX_DIGITS: usize = 256;

/// Maximum number of decimal places, or of trailing zeros, of a quantity.
const MAX_SCALE: i64 = 512;

/// Maximum size of the digits of a result, in bits.
const MAX_BITS: u64 = 4096;

/// Finest decimal place of a parsed quantity.
const NANO: i64 = 9;

/// Output format of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `1500m`, `1k`
    DecimalSuffix,
    /// `1Ki`
    BinarySuffix,
    /// `1e3`
    DecimalExponent,
}

/// The number `unscaled / 10^scale` and its output format.
#[derive(Debug, Clone)]
pub struct Quantity {
    unscaled: BigInt,
    scale: i64,
    format: Format,
}

fn too_large() -> FunctionError {
    FunctionError::refused(
        "a quantity has too many digits or too large an exponent to compute with",
    )
}

fn power(base: u32, exponent: i64) -> BigInt {
    BigInt::from(base).pow(u32::try_from(exponent).unwrap_or(0))
}

impl Quantity {
    /// Parses a quantity; `None` if the text is not one.
    pub fn parse(text: &str) -> Result<Option<Quantity>, FunctionError> {
        if crate::Quantity::parse(text).is_none() {
            return Ok(None);
        }
        let Some(parts) = Parts::split(text) else {
            return Ok(None);
        };
        let digits = parts.whole.len() + parts.fraction.len();
        if digits > MAX_DIGITS {
            return Err(too_large());
        }
        let quantity = match suffix(parts.suffix) {
            Some(Suffix::Decimal(exponent)) => decimal(&parts, exponent)?,
            Some(Suffix::Binary(exponent)) => binary(&parts, exponent),
            None => return Ok(None),
        };
        Ok(Some(quantity))
    }

    /// A whole number with the format of this quantity.
    pub fn like(&self, number: i64) -> Quantity {
        Quantity {
            unscaled: BigInt::from(number),
            scale: 0,
            format: self.format,
        }
    }

    fn is_zero(&self) -> bool {
        self.unscaled.sign() == Sign::NoSign
    }

    /// Rejects results that are too large.
    fn bounded(self) -> Result<Quantity, FunctionError> {
        let too_long = self.unscaled.bits() > MAX_BITS;
        if too_long || self.scale.saturating_abs() > MAX_SCALE {
            return Err(too_large());
        }
        Ok(self)
    }

    /// The digits at a scale at least as fine as its own.
    fn at_scale(&self, scale: i64) -> BigInt {
        &self.unscaled * power(10, scale - self.scale)
    }

    /// The sum, in the format of the receiver.
    ///
    /// # Errors
    /// If the result has too many digits.
    pub fn add(&self, other: &Quantity) -> Result<Quantity, FunctionError> {
        let scale = self.scale.max(other.scale);
        Quantity {
            unscaled: self.at_scale(scale) + other.at_scale(scale),
            scale,
            format: if self.is_zero() {
                other.format
            } else {
                self.format
            },
        }
        .bounded()
    }

    /// The same amount with the opposite sign.
    pub fn negated(&self) -> Quantity {
        Quantity {
            unscaled: -&self.unscaled,
            ..self.clone()
        }
    }

    /// The product, in the format of the receiver.
    ///
    /// # Errors
    /// If the result has too many digits.
    pub fn multiply(&self, other: &Quantity) -> Result<Quantity, FunctionError> {
        Quantity {
            unscaled: &self.unscaled * &other.unscaled,
            scale: self.scale + other.scale,
            format: self.format,
        }
        .bounded()
    }

    /// The quotient, truncated at the finer scale of the operands; `other` is not zero.
    pub fn divide(&self, other: &Quantity) -> Result<Quantity, FunctionError> {
        let scale = self.scale.max(other.scale);
        let shift = scale - self.scale + other.scale;
        let (mut dividend, mut divisor) = (self.unscaled.clone(), other.unscaled.clone());
        if shift >= 0 {
            dividend *= power(10, shift);
        } else {
            divisor *= power(10, -shift);
        }
        Quantity {
            unscaled: dividend.checked_div(&divisor).unwrap_or_default(),
            scale,
            format: self.format,
        }
        .bounded()
    }

    /// Kubernetes' approximation: the digits as a float, times a power of ten.
    pub fn approximate(&self) -> f64 {
        let digits = as_float(&self.unscaled.to_string());
        if self.scale == 0 {
            digits
        } else {
            digits * as_float(&format!("1e{}", -self.scale))
        }
    }

    /// The canonical text (docs/spec/jmespath.md §8.3).
    pub fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".into();
        }
        match (self.format, self.whole()) {
            (Format::BinarySuffix, Some(whole)) if *whole.magnitude() >= 1024u32.into() => {
                binary_text(whole)
            }
            (Format::BinarySuffix | Format::DecimalSuffix, _) => self.decimal_text(decimal_suffix),
            (Format::DecimalExponent, _) => self.decimal_text(|exponent| match exponent {
                0 => String::new(),
                exponent => format!("e{exponent}"),
            }),
        }
    }

    /// The number as an integer, if it is one.
    fn whole(&self) -> Option<BigInt> {
        if self.scale <= 0 {
            return Some(self.at_scale(0));
        }
        let unit = power(10, self.scale);
        let whole = &self.unscaled / &unit;
        (&whole * unit == self.unscaled).then_some(whole)
    }

    /// Digits without trailing zeros, except those needed for an exponent that is a
    /// multiple of three, and the suffix for that exponent.
    fn decimal_text(&self, suffix: impl Fn(i64) -> String) -> String {
        let mut digits = self.unscaled.to_string();
        let mut exponent = -self.scale;
        while digits.ends_with('0') {
            digits.pop();
            exponent += 1;
        }
        while exponent % 3 != 0 {
            digits.push('0');
            exponent -= 1;
        }
        digits + &suffix(exponent)
    }
}

/// A numeric text as a float.
fn as_float(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

fn unscaled(parts: &Parts<'_>) -> BigInt {
    let digits: Vec<u8> = parts.whole.iter().chain(parts.fraction).copied().collect();
    let number = BigInt::parse_bytes(&digits, 10).unwrap_or_default();
    if parts.negative { -number } else { number }
}

fn decimal(parts: &Parts<'_>, exponent: i32) -> Result<Quantity, FunctionError> {
    let digits = parts.whole.len() + parts.fraction.len();
    let is_exponent = matches!(parts.suffix, [b'e' | b'E', _, ..]);
    let mut quantity = Quantity {
        unscaled: unscaled(parts),
        // Kubernetes also computes this in 32 bits.
        scale: i64::from((parts.fraction.len() as i32).wrapping_sub(exponent)),
        format: if is_exponent {
            Format::DecimalExponent
        } else {
            Format::DecimalSuffix
        },
    };
    if quantity.is_zero() {
        quantity.scale = quantity.scale.clamp(0, NANO);
    }
    // Kubernetes computes small numbers in 64 bits and scales the others to nanos.
    if quantity.scale > NANO || digits > 18 && quantity.scale >= -MAX_SCALE {
        quantity = in_nanos(quantity);
    }
    quantity.bounded()
}

/// The quantity scaled to nanos, rounded away from zero.
fn in_nanos(quantity: Quantity) -> Quantity {
    let dropped = quantity.scale - NANO;
    let nanos = if dropped <= 0 {
        quantity.at_scale(NANO)
    } else if dropped > MAX_DIGITS as i64 {
        BigInt::from(match quantity.unscaled.sign() {
            Sign::Minus => -1,
            Sign::NoSign => 0,
            Sign::Plus => 1,
        })
    } else {
        let unit = power(10, dropped);
        let cut = &quantity.unscaled / &unit;
        if &cut * unit == quantity.unscaled {
            cut
        } else if quantity.unscaled.sign() == Sign::Minus {
            cut - 1
        } else {
            cut + 1
        }
    };
    Quantity {
        unscaled: nanos,
        scale: NANO,
        ..quantity
    }
}

fn binary(parts: &Parts<'_>, exponent: u32) -> Quantity {
    let factor = power(2, i64::from(exponent));
    let quantity = Quantity {
        unscaled: unscaled(parts) * factor,
        scale: parts.fraction.len() as i64,
        format: Format::BinarySuffix,
    };
    // Kubernetes' test for a number that fits in 64 bits.
    let spare = 14 - parts.whole.len().max(1) as i64 - i64::from(exponent * 3 / 10);
    if parts.fraction.is_empty() && spare >= 0 {
        return quantity;
    }
    let mut quantity = in_nanos(quantity);
    let one = power(10, NANO);
    let cap = BigInt::from(i64::MAX) * &one;
    if *quantity.unscaled.magnitude() > *cap.magnitude() {
        quantity.unscaled = match quantity.unscaled.sign() {
            Sign::Minus => -cap,
            Sign::NoSign | Sign::Plus => cap,
        };
    }
    if *quantity.unscaled.magnitude() < *one.magnitude() {
        quantity.format = Format::DecimalSuffix;
    }
    quantity
}

/// Suffix for a power of ten; empty beyond the known ones, as in Kubernetes.
fn decimal_suffix(exponent: i64) -> String {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
    .into()
}

/// A whole number with the largest binary suffix that divides it.
fn binary_text(mut whole: BigInt) -> String {
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut times = 0;
    while &whole % 1024u32 == BigInt::ZERO {
        whole /= 1024u32;
        times += 1;
    }
    format!("{whole}{}", SUFFIXES.get(times).unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        Quantity::parse(text).unwrap().unwrap().canonical()
    }

    #[test]
    fn canonical_texts() {
        // docs/spec/jmespath.md §8.2 and 8.3.
        for (text, expected) in [
            ("1000", "1k"),
            ("0.5Ki", "512"),
            ("1.1Ki", "1126400m"),
            ("1536Mi", "1536Mi"),
            ("1024Ki", "1Mi"),
            ("1500m", "1500m"),
            ("2E3", "2e3"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("9Ei", "9223372036854775807"),
            ("0Gi", "0"),
            (".Ki", "0"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
        assert!(Quantity::parse("1Kii").unwrap().is_none());
        // Suffixes end at E; larger numbers have none.
        let sum = |left: &str, right: &str| {
            let left = Quantity::parse(left).unwrap().unwrap();
            let right = Quantity::parse(right).unwrap().unwrap();
            left.add(&right).unwrap().canonical()
        };
        assert_eq!(sum("1E", "999E"), "1");
        assert_eq!(sum("1Ki", "1n"), "1024000000001n");
        assert_eq!(sum("12Ki", "13"), "12301");
    }

    #[test]
    fn what_would_grow_without_bound_is_refused() {
        // Hostile inputs, rows 86 and 87.
        for text in ["1e999999999", "1e2147483647", "1e-2147483647"] {
            let outcome = Quantity::parse(text);
            assert!(
                !matches!(outcome, Ok(Some(ref q)) if q.scale.abs() > MAX_SCALE),
                "{text}"
            );
        }
        let digits = "9".repeat(1_000_000);
        assert!(Quantity::parse(&digits).is_err());
        let large = Quantity::parse("1e500").unwrap().unwrap();
        assert!(large.multiply(&large).is_err());
    }
}
