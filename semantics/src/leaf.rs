//! Leaf patterns: comparison of a pattern scalar of any type with a scalar of a resource
//! (docs/spec/patterns.md §5).
//!
//! Maps never match a leaf and the caller iterates over lists, so neither occurs here.

use super::number::{float_to_i64_amd64, parse_go_float, parse_go_int};
use super::pattern_string::{Scalar, StringPattern};

/// A pattern scalar, by its Go type.
#[derive(Debug, Clone, PartialEq)]
pub enum LeafPattern<'p> {
    /// `true` or `false`.
    Bool(bool),
    /// A number that Go holds as int64.
    Int(i64),
    /// A number that Go holds as float64.
    Float(f64),
    /// `null`.
    Null,
    /// A text in the pattern language.
    String(StringPattern<'p>),
}

impl LeafPattern<'_> {
    /// Whether a value matches, according to the table of docs/spec/patterns.md §5.
    #[must_use]
    pub fn matches(&self, value: &Scalar<'_>) -> bool {
        match self {
            LeafPattern::Bool(expected) => *value == Scalar::Bool(*expected),
            LeafPattern::Int(expected) => int_matches(*expected, value),
            LeafPattern::Float(expected) => float_matches(*expected, value),
            LeafPattern::Null => null_matches(value),
            LeafPattern::String(pattern) => pattern.matches(value),
        }
    }
}

/// An int64 pattern: text must be a plain integer, a float must be whole.
fn int_matches(expected: i64, value: &Scalar<'_>) -> bool {
    match *value {
        Scalar::Int(value) => value == expected,
        Scalar::Float(value) => whole_equals(value, expected),
        Scalar::String(text) => parse_go_int(text) == Some(expected),
        Scalar::Null | Scalar::Bool(_) => false,
    }
}

/// A float64 pattern: text may be anything that Go parses as that float.
fn float_matches(expected: f64, value: &Scalar<'_>) -> bool {
    match *value {
        Scalar::Int(value) => whole_equals(expected, value),
        Scalar::Float(value) => value == expected,
        Scalar::String(text) => parse_go_float(text) == Some(expected),
        Scalar::Null | Scalar::Bool(_) => false,
    }
}

/// The null pattern: matches absence, or the zero value of a scalar type.
fn null_matches(value: &Scalar<'_>) -> bool {
    match *value {
        Scalar::Null => true,
        Scalar::Bool(value) => !value,
        Scalar::Int(value) => value == 0,
        Scalar::Float(value) => value == 0.0,
        Scalar::String(text) => text.is_empty(),
    }
}

/// Whether a float without a fraction converts to this integer in Go.
fn whole_equals(float: f64, integer: i64) -> bool {
    float == float.trunc() && float_to_i64_amd64(float) == integer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(leaf: &LeafPattern<'_>, rows: &[(Scalar<'_>, bool, &str)]) {
        for (value, expected, source) in rows {
            assert_eq!(
                leaf.matches(value),
                *expected,
                "{source}: {leaf:?} x {value:?}"
            );
        }
    }

    #[test]
    fn bool_row_of_section_5() {
        check(
            &LeafPattern::Bool(true),
            &[
                (Scalar::Bool(true), true, "5"),
                (Scalar::Bool(false), false, "5"),
                (Scalar::String("true"), false, "case 3"),
                (Scalar::Null, false, "5"),
                (Scalar::Int(1), false, "5"),
                (Scalar::Float(1.0), false, "5"),
            ],
        );
    }

    #[test]
    fn int_row_of_section_5() {
        check(
            &LeafPattern::Int(5),
            &[
                (Scalar::String("5"), true, "case 1"),
                (Scalar::String("5.0"), false, "case 1"),
                (Scalar::Float(5.0), true, "case 2"),
                (Scalar::Float(5.1), false, "case 2"),
                (Scalar::Int(5), true, "5"),
                (Scalar::String("+5"), true, "5"),
                (Scalar::String("007"), false, "5"),
                (Scalar::String(" 5"), false, "5"),
                (Scalar::String("5e0"), false, "5"),
                (Scalar::Null, false, "5"),
                (Scalar::Bool(true), false, "5"),
            ],
        );
        check(&LeafPattern::Int(7), &[(Scalar::String("007"), true, "5")]);
        check(
            &LeafPattern::Int(i64::MAX),
            &[(Scalar::Float(9.3e18), false, "5")],
        );
        check(
            &LeafPattern::Int(i64::MIN),
            &[
                (Scalar::Float(9.3e18), true, "5: amd64 conversion"),
                (Scalar::Float(f64::INFINITY), true, "5: amd64 conversion"),
                (Scalar::Float(f64::NAN), false, "5: NaN has a fraction"),
            ],
        );
    }

    #[test]
    fn float_row_of_section_5() {
        check(
            &LeafPattern::Float(8.0),
            &[
                (Scalar::Int(8), true, "5"),
                (Scalar::Float(8.0), true, "5"),
                (Scalar::String("8"), true, "5"),
                (Scalar::String("8.0"), true, "5"),
                (Scalar::String("8e0"), true, "5"),
                (Scalar::String("0x8p0"), true, "5"),
                (Scalar::String("8 "), false, "5"),
                (Scalar::Null, false, "5"),
                (Scalar::Bool(true), false, "5"),
            ],
        );
        check(
            &LeafPattern::Float(5.0),
            &[(Scalar::String("5.0"), true, "case 1: anyPattern")],
        );
        check(&LeafPattern::Float(5.1), &[(Scalar::Int(5), false, "5")]);
        check(
            &LeafPattern::Float(f64::INFINITY),
            &[(Scalar::String("inf"), true, "5")],
        );
    }

    #[test]
    fn null_row_of_section_5() {
        check(
            &LeafPattern::Null,
            &[
                (Scalar::Int(0), true, "case 4"),
                (Scalar::Float(0.0), true, "5"),
                (Scalar::String(""), true, "case 4"),
                (Scalar::Bool(false), true, "case 4"),
                (Scalar::Null, true, "case 4"),
                (Scalar::String("a"), false, "case 4"),
                (Scalar::Bool(true), false, "case 4"),
                (Scalar::Int(1), false, "5"),
                (Scalar::Float(0.5), false, "5"),
            ],
        );
    }

    #[test]
    fn string_row_of_section_5() {
        let leaf = LeafPattern::String(StringPattern::parse("true"));
        check(
            &leaf,
            &[
                (Scalar::Bool(true), true, "case 3"),
                (Scalar::String("true"), true, "case 3"),
                (Scalar::Null, false, "5"),
            ],
        );
    }
}
