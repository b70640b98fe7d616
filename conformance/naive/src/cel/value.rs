//! Values of CEL (docs/spec/cel.md §3.3, §3.5).

use std::cmp::Ordering;

use serde_json::Value;

use crate::value::{Num, number};

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Cel {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    List(Vec<Cel>),
    /// Keys are not repeated.
    Map(Vec<(Cel, Cel)>),
    Optional(Option<Box<Cel>>),
    Type(&'static str),
}

/// A value of JSON: integers are int, other numbers double.
pub(super) fn from_json(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(given) => match number(given) {
            Num::Int(whole) => Cel::Int(whole),
            Num::Float(float) => Cel::Double(float),
        },
        Value::String(text) => Cel::Text(text.clone()),
        Value::Array(items) => Cel::List(items.iter().map(from_json).collect()),
        Value::Object(members) => Cel::Map(
            members
                .iter()
                .map(|(key, value)| (Cel::Text(key.clone()), from_json(value)))
                .collect(),
        ),
    }
}

impl Cel {
    /// The name that `type()` gives.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
        }
    }

    /// Heterogeneous equality (§3.5).
    pub(super) fn equals(&self, other: &Cel) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::Type(left), Self::Type(right)) => left == right,
            (Self::List(left), Self::List(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| left.equals(right))
            }
            (Self::Map(left), Self::Map(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(key, value)| {
                        find(right, key).is_some_and(|found| value.equals(found))
                    })
            }
            (Self::Optional(left), Self::Optional(right)) => match (left, right) {
                (None, None) => true,
                (Some(left), Some(right)) => left.equals(right),
                _ => false,
            },
            _ => numeric_order(self, other) == Some(Ordering::Equal),
        }
    }

    /// The order of two values; none if they have none (§3.5).
    pub(super) fn order(&self, other: &Cel) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => Some(left.cmp(right)),
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            _ => numeric_order(self, other),
        }
    }
}

/// Numbers by their mathematical value; none for NaN and for anything else.
fn numeric_order(left: &Cel, right: &Cel) -> Option<Ordering> {
    let whole = |value: &Cel| match value {
        Cel::Int(value) => Some(i128::from(*value)),
        Cel::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (left, right) {
        (Cel::Double(left), Cel::Double(right)) => left.partial_cmp(right),
        (Cel::Double(left), other) => float_order(*left, whole(other)?),
        (other, Cel::Double(right)) => float_order(*right, whole(other)?).map(Ordering::reverse),
        _ => Some(whole(left)?.cmp(&whole(right)?)),
    }
}

fn float_order(float: f64, whole: i128) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() >= 1e20 {
        return Some(if float > 0.0 {
            Ordering::Greater
        } else {
            Ordering::Less
        });
    }
    let order = (float.trunc() as i128).cmp(&whole);
    Some(match (order, float.fract()) {
        (Ordering::Equal, rest) if rest > 0.0 => Ordering::Greater,
        (Ordering::Equal, rest) if rest < 0.0 => Ordering::Less,
        (order, _) => order,
    })
}

/// The value under a key.
pub(super) fn find<'m>(members: &'m [(Cel, Cel)], key: &Cel) -> Option<&'m Cel> {
    let mut members = members.iter();
    members
        .find(|(known, _)| known.equals(key))
        .map(|(_, value)| value)
}
