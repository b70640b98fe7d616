//! String patterns: alternatives, conjuncts, operators and ranges (docs/spec/patterns.md
//! §6).
//!
//! Compares the text of a pattern with a scalar. Everything about the pattern can be
//! computed beforehand ([`StringPattern::parse`]) or stored and reassembled
//! ([`Comparison::from_parts`]); everything about the value is computed once
//! ([`ScalarOperand`]). Maps and lists never match a string pattern and do not occur here.

use std::cell::OnceCell;
use std::fmt::Write;

use smallvec::SmallVec;

use super::duration;
use super::number::{self, FixedText, ShortText};
use super::quantity::Quantity;
use super::wildcard::{self, WildcardClass};

/// Comparison operators of string patterns (docs/spec/patterns.md §6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operator {
    /// none
    Equal,
    /// `!`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

impl Operator {
    /// All operators in the order of their numbers.
    pub const ALL: [Operator; 6] = [
        Operator::Equal,
        Operator::NotEqual,
        Operator::Greater,
        Operator::GreaterOrEqual,
        Operator::Less,
        Operator::LessOrEqual,
    ];

    /// Whether a value with this ordering relative to the operand is accepted.
    #[must_use]
    pub fn accepts(self, value_to_operand: std::cmp::Ordering) -> bool {
        match self {
            Operator::Equal => value_to_operand.is_eq(),
            Operator::NotEqual => value_to_operand.is_ne(),
            Operator::Greater => value_to_operand.is_gt(),
            Operator::GreaterOrEqual => value_to_operand.is_ge(),
            Operator::Less => value_to_operand.is_lt(),
            Operator::LessOrEqual => value_to_operand.is_le(),
        }
    }
}

/// A scalar of a resource, or the absence of one (docs/spec/patterns.md §1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'v> {
    /// JSON `null`, or a missing field.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number that Go holds as int64.
    Int(i64),
    /// A number that Go holds as float64.
    Float(f64),
    /// A text.
    String(&'v str),
}

/// Operator at the beginning of a conjunct, and the text after it.
pub fn split_operator(conjunct: &str) -> (Operator, &str) {
    const SIGNS: [(&str, Operator); 5] = [
        (">=", Operator::GreaterOrEqual),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        ("<", Operator::Less),
        ("!", Operator::NotEqual),
    ];
    // A single byte is always a text: `>` is not an operator without an operand.
    if conjunct.len() < 2 {
        return (Operator::Equal, conjunct);
    }
    SIGNS
        .iter()
        .find_map(|(sign, operator)| Some((*operator, conjunct.strip_prefix(sign)?)))
        .unwrap_or((Operator::Equal, conjunct))
}

/// One operand with its operator, and all properties of the operand that do not depend on
/// the value (docs/spec/patterns.md §6.2).
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'p> {
    operator: Operator,
    operand: &'p str,
    duration: Option<i64>,
    quantity: Option<Quantity>,
    class: WildcardClass,
}

impl<'p> Comparison<'p> {
    /// Parses an operand; surrounding spaces are not part of it.
    #[must_use]
    pub fn new(operator: Operator, operand: &'p str) -> Comparison<'p> {
        let operand = operand.trim();
        Comparison {
            operator,
            operand,
            duration: duration::parse(operand),
            quantity: Quantity::parse(operand),
            class: wildcard::classify(operand),
        }
    }

    /// A comparison from the results of an earlier [`Comparison::new`].
    ///
    /// Nothing is checked: inconsistent parts give wrong verdicts, but never a panic.
    #[must_use]
    pub fn from_parts(
        operator: Operator,
        operand: &'p str,
        duration: Option<i64>,
        quantity: Option<Quantity>,
        class: WildcardClass,
    ) -> Comparison<'p> {
        Comparison {
            operator,
            operand,
            duration,
            quantity,
            class,
        }
    }

    /// The operator.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// Text of the operand, without operator and spaces.
    #[must_use]
    pub fn operand(&self) -> &'p str {
        self.operand
    }

    /// The operand as nanoseconds, if it is a duration.
    #[must_use]
    pub fn duration(&self) -> Option<i64> {
        self.duration
    }

    /// The operand as a quantity, if it is one.
    #[must_use]
    pub fn quantity(&self) -> Option<&Quantity> {
        self.quantity.as_ref()
    }

    /// The operand's class as a wildcard pattern.
    #[must_use]
    pub fn class(&self) -> WildcardClass {
        self.class
    }

    /// Whether a value is accepted: compared as durations if both are, otherwise as
    /// quantities if both are, otherwise as texts (docs/spec/patterns.md §6.2).
    #[must_use]
    pub fn matches(&self, value: &ScalarOperand<'_>) -> bool {
        if let Some(operand) = self.duration
            && let Some(value) = value.duration()
        {
            return self.operator.accepts(value.cmp(&operand));
        }
        if let Some(operand) = &self.quantity
            && let Some(value) = value.quantity()
        {
            return self.operator.accepts(value.cmp(operand));
        }
        match self.operator {
            Operator::Equal => self.matches_text(value) == Some(true),
            // A value without a text matches neither the text nor its negation.
            Operator::NotEqual => self.matches_text(value) == Some(false),
            Operator::Greater
            | Operator::GreaterOrEqual
            | Operator::Less
            | Operator::LessOrEqual => false,
        }
    }

    /// Wildcard match; `None` for a value without text.
    fn matches_text(&self, value: &ScalarOperand<'_>) -> Option<bool> {
        let text = value.text()?;
        Some(wildcard::matches_class(self.class, self.operand, text))
    }
}

/// One part of an alternative (docs/spec/patterns.md §6.1).
#[derive(Debug, Clone, PartialEq)]
pub enum Conjunct<'p> {
    /// One comparison.
    Compare(Comparison<'p>),
    /// `a-b`: at least the first and at most the second.
    Inside(Comparison<'p>, Comparison<'p>),
    /// `a!-b`: below the first or above the second.
    Outside(Comparison<'p>, Comparison<'p>),
}

impl<'p> Conjunct<'p> {
    /// Parses a conjunct that contains neither `|` nor `&`; surrounding ASCII spaces are
    /// not part of it.
    #[must_use]
    pub fn parse(text: &'p str) -> Conjunct<'p> {
        let text = text.trim_matches(' ');
        let (operator, operand) = split_operator(text);
        if operator == Operator::Equal
            && let Some(range) = Range::parse(text)
        {
            return if range.is_outside {
                Conjunct::Outside(
                    Comparison::new(Operator::Less, range.low),
                    Comparison::new(Operator::Greater, range.high),
                )
            } else {
                Conjunct::Inside(
                    Comparison::new(Operator::GreaterOrEqual, range.low),
                    Comparison::new(Operator::LessOrEqual, range.high),
                )
            };
        }
        Conjunct::Compare(Comparison::new(operator, operand))
    }

    /// Whether a value is accepted.
    #[must_use]
    pub fn matches(&self, value: &ScalarOperand<'_>) -> bool {
        match self {
            Conjunct::Compare(comparison) => comparison.matches(value),
            Conjunct::Inside(low, high) => low.matches(value) && high.matches(value),
            Conjunct::Outside(low, high) => low.matches(value) || high.matches(value),
        }
    }
}

/// The two ends of a range text.
struct Range<'p> {
    low: &'p str,
    high: &'p str,
    is_outside: bool,
}

impl<'p> Range<'p> {
    /// Parses `endpoint-endpoint` or `endpoint!-endpoint` as a whole text.
    ///
    /// Kyverno uses regular expressions here. They are unambiguous, so parsing from left to
    /// right gives the same result: a sign belongs to the endpoint after it, because an
    /// endpoint needs a digit after its sign; digits, decimals and letters are consumed
    /// greedily, because no other part begins with them. So `-10--8` is -10 to -8, and
    /// `-10-8` is -10 to 8.
    fn parse(text: &'p str) -> Option<Range<'p>> {
        let (low, rest) = split_endpoint(text)?;
        let (is_outside, rest) = match rest.strip_prefix("!-") {
            Some(rest) => (true, rest),
            None => (false, rest.strip_prefix('-')?),
        };
        let (high, rest) = split_endpoint(rest)?;
        rest.is_empty().then_some(Range {
            low,
            high,
            is_outside,
        })
    }
}

/// Splits `[-|+]?\d+(\.\d+)?[A-Za-z]*` off the beginning of a text.
fn split_endpoint(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let run = |from: usize, accept: fn(&u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| accept(byte)).count()
    };
    let start = usize::from(matches!(bytes.first(), Some(b'-' | b'|' | b'+')));
    let mut end = run(start, u8::is_ascii_digit);
    if end == start {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        let after_decimals = run(end + 1, u8::is_ascii_digit);
        if after_decimals > end + 1 {
            end = after_decimals;
        }
    }
    text.split_at_checked(run(end, u8::is_ascii_alphabetic))
}

/// Whether the whole text is an inside range `a-b`; conditions check this before they use
/// the pattern matcher (docs/spec/conditions.md §3.3).
///
/// The text is neither split nor trimmed. A `|` counts as a sign here (`1-|5` is a range),
/// although matching it as a pattern then splits it there.
#[must_use]
pub fn is_range(text: &str) -> bool {
    split_operator(text).0 == Operator::Equal
        && Range::parse(text).is_some_and(|range| !range.is_outside)
}

/// The conjuncts of one alternative, all of which must match.
pub type Alternative<'p> = SmallVec<[Conjunct<'p>; 1]>;

/// A parsed string pattern (docs/spec/patterns.md §6).
#[derive(Debug, Clone, PartialEq)]
pub struct StringPattern<'p> {
    text: &'p str,
    alternatives: Vec<Alternative<'p>>,
}

impl<'p> StringPattern<'p> {
    /// Parses a pattern. Every text is a pattern.
    #[must_use]
    pub fn parse(text: &'p str) -> StringPattern<'p> {
        let alternatives = text
            .split('|')
            .map(|alternative| alternative.split('&').map(Conjunct::parse).collect())
            .collect();
        StringPattern { text, alternatives }
    }

    /// The pattern as written.
    #[must_use]
    pub fn text(&self) -> &'p str {
        self.text
    }

    /// The alternatives, from left to right, one of which must match.
    #[must_use]
    pub fn alternatives(&self) -> &[Alternative<'p>] {
        &self.alternatives
    }

    /// Whether a value matches: it equals the pattern's own text, or all conjuncts of some
    /// alternative accept it.
    #[must_use]
    pub fn matches(&self, value: &Scalar<'_>) -> bool {
        if *value == Scalar::String(self.text) {
            return true;
        }
        let operand = ScalarOperand::new(*value);
        self.alternatives.iter().any(|alternative| {
            alternative
                .iter()
                .all(|conjunct| conjunct.matches(&operand))
        })
    }
}

/// Same verdict as [`StringPattern::matches`], for a pattern used only once, such as one
/// with variables: nothing is stored, however many parts the text has.
#[must_use]
pub fn matches_text(pattern: &str, value: &Scalar<'_>) -> bool {
    if *value == Scalar::String(pattern) {
        return true;
    }
    let operand = ScalarOperand::new(*value);
    let accepts = |conjunct| Conjunct::parse(conjunct).matches(&operand);
    pattern
        .split('|')
        .any(|alternative| alternative.split('&').all(accepts))
}

/// A value and its interpretations, each computed on first use (docs/spec/patterns.md
/// §6.2).
pub struct ScalarOperand<'v> {
    value: Scalar<'v>,
    duration: OnceCell<Option<i64>>,
    quantity: OnceCell<Option<Quantity>>,
    text: OnceCell<ShortText>,
}

impl<'v> ScalarOperand<'v> {
    /// A value without computed interpretations.
    #[must_use]
    pub fn new(value: Scalar<'v>) -> ScalarOperand<'v> {
        ScalarOperand {
            value,
            duration: OnceCell::new(),
            quantity: OnceCell::new(),
            text: OnceCell::new(),
        }
    }

    /// The value itself.
    #[must_use]
    pub fn value(&self) -> Scalar<'v> {
        self.value
    }

    /// Nanoseconds, if the value's numeric text is a duration. Among numbers, only a whole
    /// zero is one, because it needs no unit; a missing value counts as zero.
    #[must_use]
    pub fn duration(&self) -> Option<i64> {
        match self.value {
            Scalar::Null | Scalar::Int(0) => Some(0),
            Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_) => None,
            Scalar::String(text) => *self.duration.get_or_init(|| duration::parse(text)),
        }
    }

    /// Quantity of the value's numeric text.
    #[must_use]
    pub fn quantity(&self) -> Option<&Quantity> {
        let reading = self.quantity.get_or_init(|| match self.value {
            Scalar::Null => Some(Quantity::from_i64(0)),
            Scalar::Bool(_) => None,
            Scalar::Int(value) => Some(Quantity::from_i64(value)),
            Scalar::Float(value) => float_quantity(value),
            Scalar::String(text) => Quantity::parse(text),
        });
        reading.as_ref()
    }

    /// Text for wildcards; a missing value has none.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self.value {
            Scalar::Null => None,
            Scalar::Bool(true) => Some("true"),
            Scalar::Bool(false) => Some("false"),
            Scalar::String(text) => Some(text),
            Scalar::Int(_) | Scalar::Float(_) => {
                Some(self.text.get_or_init(|| number_text(self.value)).as_str())
            }
        }
    }
}

/// Quantity of a float's six decimals; none for infinities and NaN.
fn float_quantity(value: f64) -> Option<Quantity> {
    let whole = number::float_to_i64_amd64(value);
    // -2^63 also stands for values out of range, so it takes the slow path.
    if whole as f64 == value && whole != i64::MIN {
        return Some(Quantity::from_i64(whole));
    }
    let mut text = FixedText::new();
    number::write_f6(value, &mut text).ok()?;
    Quantity::parse(text.as_str())
}

/// The digits of an integer, or a float as `1.5E+00`.
fn number_text(value: Scalar<'_>) -> ShortText {
    let mut text = ShortText::new();
    let _every_number_fits = match value {
        Scalar::Int(value) => write!(text, "{value}"),
        Scalar::Float(value) => number::write_e_shortest(value, &mut text),
        Scalar::Null | Scalar::Bool(_) | Scalar::String(_) => Ok(()),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::Scalar::{Bool, Float, Int, Null, String as Text};
    use super::*;
    use proptest::prelude::*;

    /// Pattern, value, whether they match, and the source in docs/spec/patterns.md.
    type Row = (&'static str, Scalar<'static>, bool, &'static str);

    fn check(rows: &[Row]) {
        for (pattern, value, expected, source) in rows {
            let context = format!("{source}: {pattern:?} x {value:?}");
            assert_eq!(
                StringPattern::parse(pattern).matches(value),
                *expected,
                "{context}"
            );
            assert_eq!(matches_text(pattern, value), *expected, "{context}");
        }
    }

    #[test]
    fn worked_cases_3_to_9_null_bool_and_empty() {
        check(&[
            ("true", Bool(true), true, "case 3"),
            ("!true", Bool(false), true, "case 3"),
            ("!true", Null, false, "case 3"),
            ("", Null, false, "case 5"),
            ("", Text(""), true, "case 5"),
            ("?*", Text(""), false, "case 6"),
            ("?*", Int(5), true, "case 6"),
            ("?*", Bool(true), true, "case 6"),
            ("<=2Gi", Null, true, "case 9"),
            (">0", Null, false, "case 9"),
            ("0-2", Null, true, "case 9"),
            ("!foo", Null, false, "case 9"),
            ("!5", Null, true, "case 9"),
        ]);
    }

    #[test]
    fn worked_cases_10_to_13_alternatives() {
        check(&[
            ("<4|8", Text("8"), true, "case 10"),
            ("<4|8", Int(3), true, "case 10"),
            ("<4|8", Int(5), false, "case 10"),
            (">1 & <20 | >31 & <33", Text("10"), true, "case 11"),
            (">1 & <20 | >31 & <33", Text("32"), true, "case 11"),
            (">1 & <20 | >31 & <33", Text("21"), false, "case 11"),
            (
                "192.168.88.1 | 10.100.11.*",
                Text("10.100.11.54"),
                true,
                "case 12",
            ),
            (
                "!5.10.84-1 & !5.15.2-1",
                Text("5.16.5-arch1-1"),
                true,
                "case 13",
            ),
            ("!5.10.84-1 & !5.15.2-1", Text("5.15.2-1"), false, "case 13"),
            ("!5.10.84-1", Text("!5.10.84-1"), true, "case 13"),
        ]);
    }

    #[test]
    fn worked_cases_14_to_19_ranges() {
        check(&[
            ("10!-20", Int(0), true, "case 14"),
            ("10!-20", Int(15), false, "case 14"),
            ("10!-20", Int(25), true, "case 14"),
            ("2-2", Int(2), true, "case 14"),
            ("2!-2", Int(2), false, "case 14"),
            ("-10--8", Int(9), false, "case 15"),
            ("-10!--8", Int(9), true, "case 15"),
            ("-10Mi-8Mi", Text("-9Mi"), true, "case 15"),
            ("128Mi-512Mi", Text("256Mi"), true, "case 16"),
            ("128Mi-512Mi", Text("1024Mi"), false, "case 16"),
            ("0.00001-2.00001", Int(2), true, "case 17"),
            ("0.00001-2.00001", Float(2.0001), false, "case 17"),
            ("0.00001-2.00001", Int(0), false, "case 17"),
            ("!1-5", Int(3), true, "case 18"),
            ("1 - 5", Int(3), false, "case 19"),
            ("2023-01", Text("2023-01"), true, "case 19b"),
            ("2023-01 | 2023-02", Text("2023-01"), false, "case 19b"),
            ("!2023-01", Text("2023-01"), false, "case 19b"),
            ("!2023-01", Text("2023-02"), true, "case 19b"),
            ("1e-10", Text("1n"), false, "case 66"),
            ("1n", Text("1e-10"), true, "case 66"),
        ]);
    }

    #[test]
    fn worked_cases_20_to_29_numbers_and_texts() {
        check(&[
            ("200m", Text("0.2"), true, "case 20"),
            ("1Gi", Text("1024Mi"), true, "case 20"),
            (">=0.6", Text("500m"), false, "case 20"),
            ("<15s", Text("12s"), true, "case 21"),
            ("60s", Text("1m"), true, "case 21"),
            ("30s", Int(30), false, "case 21"),
            ("<30s", Int(0), true, "case 21"),
            ("<=1h", Text("100m"), false, "case 22"),
            ("<1", Text("100m"), true, "case 22"),
            ("1.10", Text("1.1"), true, "case 23"),
            ("1.2?", Text("1.20"), true, "case 23"),
            ("1.2?", Text("1.2"), false, "case 23"),
            ("M", Text("G"), true, "case 24"),
            ("small|M", Text("k"), true, "case 24"),
            ("Pi", Text("Ei"), false, "case 24"),
            ("e5", Text("e9"), true, "case 24"),
            ("1E+*", Float(1.0), true, "case 25"),
            ("1*", Float(1.0), true, "case 25"),
            ("1.0", Float(1.0), true, "case 25"),
            ("6", Float(6.000000001), true, "case 26"),
            ("<6", Float(6.000000001), false, "case 26"),
            (">7.000001", Float(7.00001), true, "case 26"),
            (">=1.4.1", Text("1.5.0"), false, "case 27"),
            ("a.c", Text("abc"), false, "case 28"),
            ("a?c", Text("a\u{e9}c"), true, "case 28"),
            ("ab?ba", Text("abba"), false, "case 28"),
            (">0", Text("2"), true, "case 29"),
            (">0", Text("0"), false, "case 29"),
        ]);
    }

    #[test]
    fn identity_and_splitting_of_section_6() {
        check(&[
            (">5", Text(">5"), true, "6 step 1"),
            ("a|b", Text("a|b"), true, "6 step 1"),
            ("!x", Text("!x"), true, "6 step 1"),
            ("a||b", Text(""), true, "6 step 3: an empty alternative"),
            ("a | b", Text("b"), true, "6 step 2: ASCII spaces"),
            (
                "a |\tb",
                Text("b"),
                true,
                "6 step 4: operands lose every blank",
            ),
            ("> \t5", Int(6), true, "6 step 4"),
            ("a&b", Text("a"), false, "6 step 3"),
            ("!a & !b", Text("c"), true, "6.3"),
            ("!a & !b", Text("b"), false, "6.3"),
            ("!a | !b", Text("a"), true, "6.3"),
            ("*:latest | !*:*", Text("nginx"), true, "6.3"),
            ("*:latest | !*:*", Text("nginx:1"), false, "6.3"),
        ]);
    }

    #[test]
    fn operators_of_section_6_1() {
        check(&[
            (">", Text(">"), true, "6.1: one byte is a literal"),
            ("*", Int(1), true, "6.1: one byte is a literal"),
            ("=5", Int(5), false, "6.1: = has no meaning"),
            ("==5", Text("5"), false, "6.1: = has no meaning"),
            ("!=5", Int(5), true, "6.1: not equal to =5"),
            ("!=5", Text("=5"), false, "6.1: not equal to =5"),
            ("!>5", Int(9), true, "6.1: not equal to the text >5"),
            ("!>5", Text(">5"), false, "6.1: not equal to the text >5"),
            ("-10-+8", Int(8), true, "6.1: sign"),
            ("-10-+8", Int(9), false, "6.1: sign"),
            ("-10-8", Int(0), true, "6.1: sign"),
            ("-10-8", Int(-11), false, "6.1: sign"),
            ("-10--8", Int(-9), true, "6.1: sign"),
            ("1h-2h", Text("90m"), true, "6.1: durations"),
            ("1.5-2", Float(1.75), true, "6.1: decimals"),
            (
                ".5-1",
                Float(0.75),
                false,
                "6.1: an endpoint begins with a digit",
            ),
            ("a-b", Text("a-b"), true, "6.1: a literal"),
            (
                "x | a-b",
                Text("a-b"),
                true,
                "6.1: a literal, not through identity",
            ),
            ("x | v2023-01", Text("v2023-01"), true, "6.1: no range"),
            ("x | 5.10.84-1", Text("5.10.84-1"), true, "6.1: no range"),
            ("x | 12ab-34cd", Text("12ab-34cd"), false, "6.1: a range"),
        ]);
    }

    #[test]
    fn consequences_of_section_6_2() {
        check(&[
            ("<5", Null, true, "6.2"),
            (">=0", Null, true, "6.2"),
            ("0", Null, true, "6.2"),
            ("<30s", Null, true, "6.2"),
            (">=1", Null, false, "6.2"),
            ("5", Null, false, "6.2"),
            ("*", Null, false, "6.2"),
            ("?*", Null, false, "6.2"),
            ("t*", Bool(true), true, "6.2"),
            ("!false", Bool(true), true, "6.2"),
            (">=0", Bool(true), false, "6.2"),
            ("1", Text("1000m"), true, "6.2"),
            ("1", Text("01"), true, "6.2"),
            ("100m", Text("0.1"), true, "6.2"),
            ("!1.10", Text("1.1"), false, "6.2"),
            ("1*", Int(15), true, "6.2"),
            (">1*", Int(15), false, "6.2"),
            ("<30s", Float(0.0), false, "7.1: 0.000000 is no duration"),
            (">6", Float(6.000000001), false, "6.2"),
            ("1.5E+00", Float(1.5), true, "6.2"),
            ("2.5E-0?", Float(0.25), true, "6.2: float text"),
            ("*", Float(f64::MAX), true, "6.2: any float has a text"),
            (">1e300", Float(f64::MAX), true, "6.2: %f of 309 digits"),
            (
                "+Inf",
                Float(f64::INFINITY),
                true,
                "6.2: FormatFloat of infinity",
            ),
            (
                ">0",
                Float(f64::INFINITY),
                false,
                "7.2: +Inf is no quantity",
            ),
        ]);
    }

    #[test]
    fn ranges_of_conditions() {
        // docs/spec/conditions.md §3.3.
        for text in ["10-20", "2024-01", "|1-5", "1-|5", "-10--8", "1Mi-1Gi"] {
            assert!(is_range(text), "{text}");
        }
        for text in [
            "",
            "1",
            "2024-01-05",
            "1!-5",
            ">1-5",
            "!1-5",
            "1 - 5",
            " 1-5",
            "a-b",
            "1.-5",
        ] {
            assert!(!is_range(text), "{text}");
        }
    }

    #[test]
    fn parts_make_the_same_comparison() {
        for text in [">=2Gi", "!a*", "1h", "x", "<1e40"] {
            let Conjunct::Compare(comparison) = Conjunct::parse(text) else {
                panic!("{text} is a range");
            };
            let again = Comparison::from_parts(
                comparison.operator(),
                comparison.operand(),
                comparison.duration(),
                comparison.quantity().cloned(),
                comparison.class(),
            );
            assert_eq!(comparison, again);
        }
    }

    #[test]
    fn many_alternatives_are_fast() {
        let started = std::time::Instant::now();
        assert!(!matches_text(&"a|".repeat(100_000), &Text("x")));
        assert!(!matches_text(&"!x&".repeat(100_000), &Text("x")));
        assert!(started.elapsed().as_secs() < 5);
    }

    fn scalar() -> impl Strategy<Value = (u8, bool, i64, f64, String)> {
        (
            0..5u8,
            any::<bool>(),
            any::<i64>(),
            any::<f64>(),
            "[-+!<>|&0-9.a-zKM*?]{0,8}",
        )
    }

    proptest! {
        #[test]
        fn never_panics_and_both_ways_agree(pattern in ".*|[-+!<>=|& 0-9.hmKiMe*?]{0,12}", value in scalar()) {
            let (kind, boolean, integer, float, text) = value;
            let value = match kind {
                0 => Null,
                1 => Bool(boolean),
                2 => Int(integer),
                3 => Float(float),
                _ => Text(&text),
            };
            let parsed = StringPattern::parse(&pattern).matches(&value);
            prop_assert_eq!(parsed, matches_text(&pattern, &value));
        }

        #[test]
        fn float_readings_follow_the_fixed_text(value in any::<f64>()) {
            let mut text = std::string::String::new();
            number::format_f6(value, &mut text);
            let operand = ScalarOperand::new(Float(value));
            prop_assert_eq!(operand.quantity().cloned(), Quantity::parse(&text));
            prop_assert_eq!(operand.duration(), duration::parse(&text));
        }
    }
}
