//! Quantities in the form in which Kubernetes stores them, which CEL shows: a machine integer
//! with a power of ten, or an arbitrary decimal (`resource.Quantity` of apimachinery;
//! docs/spec/cel.md §3.9).
//!
//! `1.5Gi` is a decimal, and Kubernetes does not ask whether a decimal is whole.

use num_bigint::BigInt;

use crate::quantity::{Parts, Suffix, suffix};

/// Most digits of a number that Kubernetes tries to store as a machine integer.
const MAX_INT_DIGITS: i64 = 18;

/// Finest decimal place of a parsed quantity.
const NANO: i64 = 9;

/// Maximum number of decimal places, or of trailing zeros, of a decimal.
const MAX_SCALE: i64 = 512;

/// Maximum number of digits of a decimal.
const MAX_DIGITS: usize = 256;

/// A stored quantity: `digits * 10^exponent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredQuantity {
    digits: BigInt,
    exponent: i64,
    is_decimal: bool,
}

impl StoredQuantity {
    /// The quantity of a whole number.
    pub fn from_i64(number: i64) -> Self {
        Self {
            digits: number.into(),
            exponent: 0,
            is_decimal: false,
        }
    }

    /// Parses a text.
    ///
    /// # Errors
    /// The text of `resource.ParseQuantity`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORMAT: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        let parts = Parts::split(text).ok_or(FORMAT)?;
        let rest = parts.suffix;
        let units = rest
            .iter()
            .take_while(|byte| b"eEinumkKMGTP".contains(byte));
        let rest = rest.get(units.count()..).unwrap_or_default();
        let rest = match rest {
            [b'+' | b'-', digits @ ..] => digits,
            digits => digits,
        };
        if !rest.iter().all(u8::is_ascii_digit) {
            return Err(FORMAT);
        }
        let unit = suffix(parts.suffix).ok_or("unable to parse quantity's suffix")?;
        crate::quantity::Quantity::parse(text).ok_or("unable to parse numeric part of quantity")?;
        let (whole, fraction) = (parts.whole, parts.fraction);
        let mut digits = BigInt::from(0);
        if whole.len() + fraction.len() <= MAX_DIGITS {
            let all: Vec<u8> = whole.iter().chain(fraction).copied().collect();
            digits = BigInt::parse_bytes(&all, 10).unwrap_or_default();
        }
        if parts.negative {
            digits = -digits;
        }
        let length = whole.len().max(1) as i64 + fraction.len() as i64;
        let places = fraction.len() as i64;
        Ok(match unit {
            Suffix::Decimal(exponent) => {
                let exponent = i64::from(exponent) - places;
                if length <= MAX_INT_DIGITS && exponent >= -NANO {
                    Self {
                        digits,
                        exponent,
                        is_decimal: false,
                    }
                } else {
                    Self::decimal(digits, exponent)
                }
            }
            Suffix::Binary(power) => {
                let digits = digits << power;
                let room = 15 - length - i64::from(power) * 3 / 10 - 1;
                if places == 0 && room >= 0 && i64::try_from(&digits).is_ok() {
                    Self {
                        digits,
                        exponent: 0,
                        is_decimal: false,
                    }
                } else {
                    Self::decimal(digits, -places).capped()
                }
            }
        })
    }

    /// A decimal in nanos, rounded away from zero.
    fn decimal(digits: BigInt, exponent: i64) -> Self {
        let zero = BigInt::from(0);
        if digits == zero {
            return Self {
                digits,
                exponent,
                is_decimal: true,
            };
        }
        let exponent = exponent.clamp(-MAX_SCALE, MAX_SCALE);
        let shift = exponent + NANO;
        let digits = if shift >= 0 {
            digits * ten_to(shift)
        } else {
            let factor = ten_to(-shift);
            let quotient = &digits / &factor;
            match &quotient * &factor == digits {
                true => quotient,
                false if digits < zero => quotient - 1,
                false => quotient + 1,
            }
        };
        Self {
            digits,
            exponent: -NANO,
            is_decimal: true,
        }
    }

    /// The cap of quantities with a binary unit.
    fn capped(self) -> Self {
        let cap = BigInt::from(i64::MAX);
        let limit = &cap * ten_to(-self.exponent);
        let is_negative = self.digits < BigInt::from(0);
        let size = if is_negative {
            -&self.digits
        } else {
            self.digits.clone()
        };
        if size <= limit {
            return self;
        }
        Self {
            digits: if is_negative { -cap } else { cap },
            exponent: 0,
            is_decimal: true,
        }
    }

    /// The number, if it is stored as a whole one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        if self.is_decimal || self.exponent < 0 {
            return None;
        }
        self.scaled_to(0)
    }

    /// The digits at a finer exponent, if they fit in a machine integer.
    fn scaled_to(&self, exponent: i64) -> Option<i64> {
        let shift = self.exponent - exponent;
        if !(0..=18).contains(&shift) && self.digits != BigInt::from(0) {
            return None;
        }
        i64::try_from(&self.digits * ten_to(shift.clamp(0, 18))).ok()
    }

    /// The number as a double, with Kubernetes' rounding errors.
    pub fn approximate(&self) -> f64 {
        // INVARIANT: decimal digits always parse.
        let base: f64 = self.digits.to_string().parse().unwrap_or(f64::INFINITY);
        match self.exponent {
            0 => base,
            exponent => base * pow10(exponent),
        }
    }

    /// The sum of two quantities.
    pub fn add(&self, other: &Self) -> Self {
        if !self.is_decimal
            && !other.is_decimal
            && let Some(sum) = self.add_integers(other)
        {
            return sum;
        }
        let exponent = self.exponent.min(other.exponent).max(-MAX_SCALE);
        let at = |one: &Self| {
            let shift = (one.exponent - exponent).clamp(0, 2 * MAX_SCALE);
            &one.digits * ten_to(shift)
        };
        Self {
            digits: at(self) + at(other),
            exponent,
            is_decimal: true,
        }
    }

    fn add_integers(&self, other: &Self) -> Option<Self> {
        let zero = BigInt::from(0);
        if other.digits == zero {
            return Some(self.clone());
        }
        if self.digits == zero {
            return Some(other.clone());
        }
        let exponent = self.exponent.min(other.exponent);
        let sum = self
            .scaled_to(exponent)?
            .checked_add(other.scaled_to(exponent)?)?;
        Some(Self {
            digits: sum.into(),
            exponent,
            is_decimal: false,
        })
    }

    /// The number with the opposite sign.
    pub fn negated(&self) -> Self {
        Self {
            digits: -&self.digits,
            ..self.clone()
        }
    }

    /// A text that [`StoredQuantity::decode`] reads and whose [`number_of`] is a quantity.
    pub fn encode(&self) -> String {
        let form = if self.is_decimal { " decimal" } else { "" };
        format!("{}e{}{form}", self.digits, self.exponent)
    }

    /// Reads the text of [`StoredQuantity::encode`].
    pub fn decode(text: &str) -> Option<Self> {
        let number = number_of(text);
        let (digits, exponent) = number.split_once('e')?;
        Some(Self {
            digits: digits.parse().ok()?,
            exponent: exponent.parse().ok()?,
            is_decimal: number.len() < text.len(),
        })
    }
}

/// The quantity in an encoded text, for comparisons.
pub fn number_of(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

fn ten_to(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(0))
}

/// Go's `math.Pow10`: the double nearest to the power.
fn pow10(exponent: i64) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kyverno 1.19.1; docs/spec/cel.md §8, case 66.
    #[test]
    fn whole_numbers_and_approximations_are_those_of_kubernetes() {
        for (text, whole, approximate) in [
            ("1", Some(1), 1.0),
            ("1k", Some(1000), 1000.0),
            ("1Gi", Some(1 << 30), 1_073_741_824.0),
            ("1.5Gi", None, 1_610_612_736.0),
            ("1.2", None, 1.200_000_000_000_000_2),
            ("1000m", None, 1.0),
        ] {
            let quantity = StoredQuantity::parse(text).expect(text);
            assert_eq!(quantity.as_i64(), whole, "{text}");
            assert_eq!(quantity.approximate(), approximate, "{text}");
            assert_eq!(
                StoredQuantity::decode(&quantity.encode()),
                Some(quantity),
                "{text}"
            );
        }
    }
}
