//! Operators of conditions (docs/spec/conditions.md §3).

use std::cmp::Ordering;

use kpvm_semantics::duration;
use kpvm_semantics::number::{float_to_i64_amd64, parse_go_float, parse_go_int};
use kpvm_semantics::quantity::Quantity;
use kpvm_semantics::semver::Version;
use kpvm_semantics::wildcard::matches as wildcard;
use serde_json::Value;

use crate::failure::Failure;
use crate::scalar::{self, text_matches};
use crate::value::{NotJson, Num, go_text, number, parse_json};

const SECOND: i64 = 1_000_000_000;

/// Applies an operator (docs/spec/conditions.md §3.1).
///
/// # Errors
/// When the operator is unknown, or Kyverno panics.
pub fn apply(operator: &str, key: &Value, value: &Value) -> Result<bool, Failure> {
    let lower = operator.to_lowercase();
    let known = match lower.as_str() {
        "equal" | "equals" => equals(key, value),
        "notequal" | "notequals" => is_comparable(key) && !equals(key, value),
        "in" => return set_member(key, value, false),
        "notin" => return set_member(key, value, true),
        "anyin" => any_all(Membership::Any, key, value),
        "allin" => any_all(Membership::All, key, value),
        "anynotin" => any_all(Membership::AnyNot, key, value),
        "allnotin" => any_all(Membership::AllNot, key, value),
        "greaterthanorequals" | "greaterthan" | "lessthanorequals" | "lessthan" => {
            order(key, value).is_some_and(|found| accepts(operator, found))
        }
        "durationgreaterthanorequals"
        | "durationgreaterthan"
        | "durationlessthanorequals"
        | "durationlessthan" => {
            let pair = legacy_duration(key).zip(legacy_duration(value));
            let comparison = operator.strip_prefix("Duration").unwrap_or_default();
            pair.is_some_and(|(key, value)| accepts(comparison, Some(key.cmp(&value))))
        }
        _ => {
            return Err(Failure::error(
                "failed to create handler for condition operator: %!w(<nil>)",
            ));
        }
    };
    Ok(known)
}

/// Whether an order is what the operator asks for; its spelling counts
/// (docs/spec/conditions.md §3.1). Without an order, as with NaN, nothing holds.
fn accepts(operator: &str, order: Option<Ordering>) -> bool {
    let Some(order) = order else {
        return false;
    };
    match operator {
        "GreaterThan" => order.is_gt(),
        "GreaterThanOrEquals" => order.is_ge(),
        "LessThan" => order.is_lt(),
        "LessThanOrEquals" => order.is_le(),
        _ => false,
    }
}

/// A key that `NotEquals` does not reject (docs/spec/conditions.md §3.4).
fn is_comparable(key: &Value) -> bool {
    !key.is_null()
}

/// Seconds of a number, truncated (docs/spec/conditions.md §3.3).
fn whole_seconds(given: Num) -> i64 {
    match given {
        Num::Int(seconds) => seconds,
        Num::Float(seconds) => float_to_i64_amd64(seconds),
    }
    .wrapping_mul(SECOND)
}

/// A duration text other than `0` (docs/spec/conditions.md §3.3).
fn duration_text(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|text| *text != "0")?;
    duration::parse(text)
}

/// D(key, value): nanoseconds of both, if one is a duration text and the other one or a
/// number (docs/spec/conditions.md §3.3).
fn durations(key: &Value, value: &Value) -> Option<(i64, i64)> {
    let either = |value: &Value| match value {
        Value::Number(given) => Some(whole_seconds(number(given))),
        other => duration_text(other),
    };
    duration_text(key).or(duration_text(value))?;
    either(key).zip(either(value))
}

/// docs/spec/conditions.md §3.5
fn equals(key: &Value, value: &Value) -> bool {
    match (key, value) {
        (Value::Null, _) => false,
        (Value::Number(key), Value::Number(value)) => match (number(key), number(value)) {
            (Num::Int(key), Num::Int(value)) => key == value,
            (Num::Float(key), Num::Float(value)) => key == value,
            (Num::Int(whole), Num::Float(float)) | (Num::Float(float), Num::Int(whole)) => {
                float.fract() == 0.0 && float_to_i64_amd64(float) == whole
            }
        },
        (Value::Number(key), Value::String(text)) => match number(key) {
            Num::Int(key) => parse_go_int(text) == Some(key),
            Num::Float(key) => parse_go_float(text) == Some(key),
        },
        (Value::String(text), other) => text_equals(text, key, other),
        (key, value) => key == value,
    }
}

fn text_equals(text: &str, key: &Value, value: &Value) -> bool {
    if let Some((left, right)) = durations(key, value) {
        // Seconds are compared as floats.
        return duration::seconds(left) == duration::seconds(right);
    }
    let Value::String(wanted) = value else {
        return false;
    };
    match Quantity::parse(text) {
        Some(found) => Quantity::parse(wanted).is_some_and(|wanted| wanted == found),
        None => wildcard(wanted, text),
    }
}

/// Order of key and value for the numeric operators (docs/spec/conditions.md §3.7): none if
/// they cannot be compared, some none for NaN.
fn order(key: &Value, value: &Value) -> Option<Option<Ordering>> {
    match key {
        Value::Number(given) => number_order(number(given), value),
        Value::String(text) => {
            if let Some((left, right)) = durations(key, value) {
                return Some(Some(left.cmp(&right)));
            }
            let wanted = value.as_str();
            let quantities = Quantity::parse(text).zip(wanted.and_then(Quantity::parse));
            if let Some((left, right)) = quantities {
                return Some(Some(left.cmp(&right)));
            }
            if let Some(float) = parse_go_float(text) {
                return number_order(Num::Float(float), value);
            }
            let version = Version::parse(text).ok()?;
            let wanted = Version::parse(wanted?).ok()?;
            Some(Some(version.order(&wanted)))
        }
        _ => None,
    }
}

fn number_order(key: Num, value: &Value) -> Option<Option<Ordering>> {
    let float = match key {
        Num::Int(whole) => whole as f64,
        Num::Float(float) => float,
    };
    match value {
        Value::Number(wanted) => Some(float.partial_cmp(&wanted.as_f64()?)),
        Value::String(text) => match duration_text(value) {
            Some(wanted) => Some(Some(whole_seconds(key).cmp(&wanted))),
            None => Some(float.partial_cmp(&parse_go_float(text)?)),
        },
        _ => None,
    }
}

/// docs/spec/conditions.md §3.8
fn legacy_duration(value: &Value) -> Option<i64> {
    match value {
        Value::Number(given) => Some(whole_seconds(number(given))),
        Value::String(text) => duration::parse(text),
        _ => None,
    }
}

/// The four newer operators of sets (docs/spec/conditions.md §3.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Membership {
    Any,
    All,
    AnyNot,
    AllNot,
}

/// Wildcards in either direction: W(a, b) of docs/spec/conditions.md §3.9.
fn either_way(left: &str, right: &str) -> bool {
    wildcard(left, right) || wildcard(right, left)
}

/// Whether a text is a range `a-b` (docs/spec/conditions.md §3.3).
fn is_range(text: &str) -> bool {
    scalar::operator(text) == scalar::Operator::Inside
}

/// What a text means as a JSON list of texts (docs/spec/conditions.md §3.3).
enum JsonList {
    NotJson,
    Invalid,
    Texts(Vec<String>),
}

fn json_list(text: &str) -> JsonList {
    let item = |item: &Value| match item {
        Value::Null => Some(String::new()),
        other => other.as_str().map(str::to_owned),
    };
    match parse_json(text) {
        Err(NotJson::Number(_)) => JsonList::Invalid,
        Err(_) => JsonList::NotJson,
        Ok(Value::Null) => JsonList::Texts(Vec::new()),
        Ok(Value::Array(items)) => match items.iter().map(item).collect() {
            Some(texts) => JsonList::Texts(texts),
            None => JsonList::Invalid,
        },
        Ok(_) => JsonList::Invalid,
    }
}

fn any_all(membership: Membership, key: &Value, value: &Value) -> bool {
    match key {
        Value::Array(items) => list_in(membership, items, value),
        Value::Null | Value::Object(_) => false,
        scalar => match scalar_in(&go_text(scalar), value) {
            None => false,
            Some(is_member) => match membership {
                Membership::Any | Membership::All => is_member,
                Membership::AnyNot | Membership::AllNot => !is_member,
            },
        },
    }
}

/// M of docs/spec/conditions.md §3.9; `None` is *invalid*.
fn scalar_in(key: &str, value: &Value) -> Option<bool> {
    match value {
        Value::Array(items) => Some(items.iter().any(|item| either_way(&go_text(item), key))),
        Value::String(text) if wildcard(text, key) => Some(true),
        Value::String(text) if is_range(text) => Some(range_has(key, text)),
        Value::String(text) => match json_list(text) {
            JsonList::NotJson => Some(text == key),
            JsonList::Invalid => None,
            JsonList::Texts(texts) => Some(texts.iter().any(|text| text == key)),
        },
        _ => None,
    }
}

fn range_has(key: &str, wanted: &str) -> bool {
    text_matches(wanted, &Value::from(key))
}

/// A list as key (docs/spec/conditions.md §3.9).
fn list_in(membership: Membership, items: &[Value], value: &Value) -> bool {
    let keys: Vec<String> = items.iter().map(go_text).collect();
    let among = |values: &[String]| {
        let is_member = |key: &String| values.iter().any(|value| either_way(key, value));
        match membership {
            Membership::Any => keys.iter().any(is_member),
            Membership::All => keys.iter().all(is_member),
            Membership::AnyNot => !keys.iter().all(is_member),
            Membership::AllNot => !keys.iter().any(is_member),
        }
    };
    match value {
        Value::Array(values) => among(&values.iter().map(go_text).collect::<Vec<_>>()),
        Value::String(text) if keys.len() == 1 && keys.first() == Some(text) => {
            matches!(membership, Membership::Any | Membership::All)
        }
        Value::String(text) if is_range(text) => {
            let has = |key: &String| range_has(key, text);
            match membership {
                Membership::Any => keys.iter().any(has),
                Membership::All => keys.iter().all(has),
                Membership::AllNot => !keys.iter().any(has),
                Membership::AnyNot => {
                    let outside = text.replacen('-', "!-", 1);
                    keys.iter().any(|key| range_has(key, &outside))
                }
            }
        }
        Value::String(text) => match json_list(text) {
            JsonList::Texts(texts) => among(&texts),
            JsonList::Invalid => false,
            JsonList::NotJson => among(std::slice::from_ref(text)),
        },
        Value::Number(_) | Value::Bool(_) => match membership {
            Membership::Any | Membership::AnyNot => among(&[go_text(value)]),
            Membership::All | Membership::AllNot => false,
        },
        Value::Null | Value::Object(_) => false,
    }
}

/// `In` and `NotIn` (docs/spec/conditions.md §3.10).
fn set_member(key: &Value, value: &Value, negated: bool) -> Result<bool, Failure> {
    let is_member = match key {
        Value::Null | Value::Object(_) => None,
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            let Some(keys) = texts else {
                return Err(Failure::Panic("In with a list that holds more than texts"));
            };
            return Ok(old_list_in(&keys, value, negated));
        }
        scalar => {
            let key = go_text(scalar);
            match value {
                Value::Array(items) => {
                    Some(items.iter().any(|item| either_way(&go_text(item), &key)))
                }
                Value::String(text) if wildcard(text, &key) => Some(true),
                Value::String(text) => match json_list(text) {
                    JsonList::Texts(texts) => Some(texts.contains(&key)),
                    _ => None,
                },
                _ => None,
            }
        }
    };
    Ok(is_member.is_some_and(|is_member| is_member != negated))
}

fn old_list_in(keys: &[&str], value: &Value, negated: bool) -> bool {
    let among = |values: &[&str]| keys.iter().all(|key| values.contains(key)) != negated;
    match value {
        Value::Array(values) => {
            let texts: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
            texts.is_some_and(|texts| among(&texts))
        }
        // The same flag is returned for both operators.
        Value::String(text) if keys == [text.as_str()] => true,
        Value::String(text) => match json_list(text) {
            JsonList::Texts(texts) => among(&texts.iter().map(String::as_str).collect::<Vec<_>>()),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::range;

    /// docs/spec/conditions.md §3.3
    #[test]
    fn ranges() {
        for text in ["10-20", "2024-01", "|1-5", "1-|5", "1h-2h"] {
            assert!(is_range(text), "{text}");
        }
        for text in ["2024-01-05", "a-b", "!1-5", "1!-5", "1"] {
            assert!(!is_range(text), "{text}");
        }
        assert_eq!(range("-10--8", "-"), Some(("-10", "-8")));
    }
}
