//! Scalar patterns and string patterns (docs/spec/patterns.md §5, §6).

use std::cmp::Ordering;

use kpvm_semantics::duration;
use kpvm_semantics::number::{
    float_to_i64_amd64, format_e_shortest, format_f6, parse_go_float, parse_go_int,
};
use kpvm_semantics::quantity::Quantity;
use kpvm_semantics::wildcard::matches as wildcard;
use serde_json::Value;

use crate::value::{Num, number};

/// Whether a value matches a scalar pattern (docs/spec/patterns.md §5).
pub(crate) fn matches(pattern: &Value, value: &Value) -> bool {
    match (pattern, value) {
        (Value::String(pattern), value) => text_matches(pattern, value),
        (Value::Bool(wanted), Value::Bool(found)) => wanted == found,
        (Value::Null, value) => match value {
            Value::Null | Value::Bool(false) => true,
            Value::Number(found) => found.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            _ => false,
        },
        (Value::Number(wanted), Value::Number(found)) => match (number(wanted), number(found)) {
            (Num::Int(wanted), Num::Int(found)) => wanted == found,
            (Num::Float(wanted), Num::Float(found)) => wanted == found,
            (Num::Int(whole), Num::Float(float)) | (Num::Float(float), Num::Int(whole)) => {
                float.fract() == 0.0 && float_to_i64_amd64(float) == whole
            }
        },
        (Value::Number(wanted), Value::String(text)) => match number(wanted) {
            Num::Int(wanted) => parse_go_int(text) == Some(wanted),
            Num::Float(wanted) => parse_go_float(text) == Some(wanted),
        },
        (Value::Object(_), value) => value.is_object(),
        _ => false,
    }
}

/// Whether a value matches a string pattern: alternatives of conjuncts
/// (docs/spec/patterns.md §6).
pub(crate) fn text_matches(pattern: &str, value: &Value) -> bool {
    if value.as_str() == Some(pattern) {
        return true;
    }
    pattern.split('|').any(|alternative| {
        let mut conjuncts = alternative.trim_matches(' ').split('&');
        conjuncts.all(|conjunct| conjunct_matches(conjunct.trim_matches(' '), value))
    })
}

/// An operator of a string pattern (docs/spec/patterns.md §6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    GreaterOrEqual,
    LessOrEqual,
    Greater,
    Less,
    NotEqual,
    Inside,
    Outside,
}

impl Operator {
    /// The text that is stripped off the front.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Equal => "",
            Self::GreaterOrEqual => ">=",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::NotEqual => "!",
            Self::Inside => "-",
            Self::Outside => "!-",
        }
    }
}

/// The operator of a conjunct (docs/spec/patterns.md §6.1).
pub(crate) fn operator(conjunct: &str) -> Operator {
    use Operator::{Equal, Greater, GreaterOrEqual, Inside, Less, LessOrEqual, NotEqual, Outside};
    if conjunct.len() < 2 {
        return Equal;
    }
    let signs = [GreaterOrEqual, LessOrEqual, Greater, Less, NotEqual];
    let found = signs
        .into_iter()
        .find(|one| conjunct.starts_with(one.sign()));
    match found {
        Some(found) => found,
        None if range(conjunct, "!-").is_some() => Outside,
        None if range(conjunct, "-").is_some() => Inside,
        None => Equal,
    }
}

/// The ends of a range: both are `[-|+]?\d+(\.\d+)?[A-Za-z]*` (docs/spec/patterns.md §6.1).
pub(crate) fn range<'t>(text: &'t str, separator: &str) -> Option<(&'t str, &'t str)> {
    // An endpoint holds a hyphen only at its start, so exactly one split can work.
    let mut splits = text.match_indices(separator).map(|(at, found)| {
        let (left, rest) = text.split_at(at);
        (left, rest.strip_prefix(found).unwrap_or_default())
    });
    splits.find(|(left, right)| is_endpoint(left) && is_endpoint(right))
}

fn is_endpoint(text: &str) -> bool {
    let text = text.strip_prefix(['-', '|', '+']).unwrap_or(text);
    let letters = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match letters.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(letters),
    }
}

fn conjunct_matches(conjunct: &str, value: &Value) -> bool {
    let operator = operator(conjunct);
    let ends = |separator| range(conjunct, separator).unwrap_or_default();
    match operator {
        Operator::Inside => {
            let (low, high) = ends("-");
            conjunct_matches(&format!(">= {low}"), value)
                && conjunct_matches(&format!("<= {high}"), value)
        }
        Operator::Outside => {
            let (low, high) = ends("!-");
            conjunct_matches(&format!("< {low}"), value)
                || conjunct_matches(&format!("> {high}"), value)
        }
        _ => {
            let operand = conjunct.strip_prefix(operator.sign()).unwrap_or(conjunct);
            compares(operator, operand.trim(), value)
        }
    }
}

/// Duration, else quantity, else wildcard text (docs/spec/patterns.md §6.2).
fn compares(operator: Operator, operand: &str, value: &Value) -> bool {
    if let Some(text) = numeric_text(value) {
        if let (Some(left), Some(right)) = (duration::parse(&text), duration::parse(operand)) {
            return accepts(operator, left.cmp(&right));
        }
        if let (Some(left), Some(right)) = (Quantity::parse(&text), Quantity::parse(operand)) {
            return accepts(operator, left.cmp(&right));
        }
    }
    let Some(text) = plain_text(value) else {
        return false;
    };
    match operator {
        Operator::Equal => wildcard(operand, text),
        Operator::NotEqual => !wildcard(operand, text),
        _ => false,
    }
}

fn accepts(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Inside | Operator::Outside => false,
    }
}

/// text(v) of docs/spec/patterns.md §6.2.
fn numeric_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("0".into()),
        Value::String(text) => Some(text.clone()),
        Value::Number(given) => Some(match number(given) {
            Num::Int(whole) => whole.to_string(),
            Num::Float(float) => {
                let mut text = String::new();
                format_f6(float, &mut text);
                text
            }
        }),
        _ => None,
    }
}

/// stext(v) of docs/spec/patterns.md §6.2.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(given) => Some(match number(given) {
            Num::Int(whole) => whole.to_string(),
            Num::Float(float) => {
                let mut text = String::new();
                format_e_shortest(float, &mut text);
                text
            }
        }),
        _ => None,
    }
}
