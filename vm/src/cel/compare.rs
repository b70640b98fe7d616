//! Equality and ordering (docs/spec/cel.md §3.5).

use std::cmp::Ordering;

use super::value::{Value, look};
use crate::document::{ChildRange, Kind, NodeId, View};

/// A number of one of the three types.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Uint(u64),
    Double(f64),
}

impl Number {
    pub(crate) fn of(value: &Value<'_>) -> Option<Number> {
        match value {
            Value::Int(number) => Some(Number::Int(*number)),
            Value::Uint(number) => Some(Number::Uint(*number)),
            Value::Double(number) => Some(Number::Double(*number)),
            _ => None,
        }
    }

    /// Compares by mathematical value; `None` if one is NaN.
    pub(crate) fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Double(left), Number::Double(right)) => left.partial_cmp(&right),
            (Number::Double(left), right) => compare_double(left, right.whole()),
            (left, Number::Double(right)) => {
                compare_double(right, left.whole()).map(Ordering::reverse)
            }
            (left, right) => Some(left.whole().cmp(&right.whole())),
        }
    }

    fn whole(self) -> i128 {
        match self {
            Number::Int(number) => i128::from(number),
            Number::Uint(number) => i128::from(number),
            Number::Double(number) => number as i128,
        }
    }
}

/// Compares a double with a whole number, rounded as in cel-go.
fn compare_double(left: f64, right: i128) -> Option<Ordering> {
    left.partial_cmp(&(right as f64))
}

/// Whether two values are equal; values of different types are not. `None` if the fuel does
/// not suffice.
pub(crate) fn equal(view: &View<'_>, left: NodeId, right: NodeId, fuel: &mut u64) -> Option<bool> {
    let (left, right) = (look(view, left), look(view, right));
    if let Some(equal) = equal_scalars(&left, &right) {
        return Some(equal);
    }
    let mut pairs = vec![(left, right)];
    while let Some((left, right)) = pairs.pop() {
        *fuel = fuel.checked_sub(1)?;
        if let Some(equal) = equal_scalars(&left, &right) {
            // cel-go takes members whose comparison is an error for equal.
            if !equal && !is_incomparable(&left, &right) {
                return Some(false);
            }
            continue;
        }
        match (left, right) {
            (Value::List(left), Value::List(right)) => {
                if left.len() != right.len() {
                    return Some(false);
                }
                let items = left.zip(right);
                pairs.extend(items.map(|(left, right)| (look(view, left), look(view, right))));
            }
            (Value::Optional(left), Value::Optional(right)) => match (left, right) {
                (Some(left), Some(right)) => pairs.push((look(view, left), look(view, right))),
                (None, None) => {}
                _ => return Some(false),
            },
            (Value::Map(left), Value::Map(right)) => {
                if left.len() != right.len() {
                    return Some(false);
                }
                let right_map = right.clone();
                for member in left {
                    let other = member_with_key_of(view, &right_map, member);
                    *fuel = fuel.checked_sub(1 + right_map.len() as u64 / 16)?;
                    if other.is_missing() {
                        return Some(false);
                    }
                    pairs.push((look(view, member), look(view, other)));
                }
            }
            (Value::Table(left), Value::Table(right)) => {
                if left.len() != right.len() {
                    return Some(false);
                }
                for place in (0..left.len()).step_by(2) {
                    *fuel = fuel.checked_sub(1 + right.len() as u64 / 4)?;
                    let found = find_key(view, &right, left.at(place));
                    if found.is_missing() {
                        return Some(false);
                    }
                    pairs.push((look(view, left.at(place + 1)), look(view, found)));
                }
            }
            _ => return Some(false),
        }
    }
    Some(true)
}

/// Equality of values of which at most one is a container; `None` for two containers.
#[inline]
pub(super) fn equal_scalars(left: &Value<'_>, right: &Value<'_>) -> Option<bool> {
    Some(match (left, right) {
        (Value::String(left), Value::String(right)) => left == right,
        (Value::List(_), Value::List(_))
        | (Value::Map(_), Value::Map(_))
        | (Value::Table(_), Value::Table(_))
        | (Value::Optional(_), Value::Optional(_)) => return None,
        (Value::Opaque(left, left_text), Value::Opaque(right, right_text)) => {
            left == right && super::opaque::equal(*left, left_text, right_text)
        }
        (Value::Timestamp(left, left_nanos, _), Value::Timestamp(right, right_nanos, _)) => {
            (left, left_nanos) == (right, right_nanos)
        }
        (left, right) => match (Number::of(left), Number::of(right)) {
            (Some(left), Some(right)) => left.compare(right) == Some(Ordering::Equal),
            (None, None) => left == right,
            _ => false,
        },
    })
}

/// Whether comparing these two is an error: a value of a library is compared only with
/// values of its own type (docs/spec/cel.md §3.5).
pub(crate) fn is_incomparable(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Opaque(left, _), Value::Opaque(right, _)) => left != right,
        (Value::Opaque(..), right) => *right != Value::Null,
        _ => false,
    }
}

/// Member of a map with the key of a member of another map.
fn member_with_key_of(view: &View<'_>, map: &ChildRange, member: NodeId) -> NodeId {
    let key = view.key_bytes(member);
    let symbol = view.key_symbol(member);
    map.clone()
        .find(|other| match symbol {
            Some(symbol) => view.key_symbol(*other) == Some(symbol),
            None => view.key_symbol(*other).is_none() && view.key_bytes(*other) == key,
        })
        .unwrap_or(NodeId::MISSING)
}

/// Whether a key finds an entry. Numbers are compared by value, except that whole numbers do
/// not find doubles (`refValMapAccessor` of cel-go).
fn finds(key: &Value<'_>, entry: &Value<'_>) -> bool {
    let is_double = |value: &Value<'_>| matches!(value, Value::Double(_));
    (is_double(key) || !is_double(entry)) && equal_scalars(key, entry).unwrap_or(false)
}

/// Whether two keys of a map literal are the same: numbers of different types are not, nor
/// are containers.
pub(crate) fn is_one_key(view: &View<'_>, left: NodeId, right: NodeId) -> bool {
    let (left, right) = (look(view, left), look(view, right));
    left.type_name() == right.type_name() && equal_scalars(&left, &right) == Some(true)
}

/// Value under a key in a list of alternating keys and values.
fn find_key(view: &View<'_>, table: &ChildRange, key: NodeId) -> NodeId {
    (0..table.len())
        .step_by(2)
        .find(|place| finds(&look(view, key), &look(view, table.at(*place))))
        .map_or(NodeId::MISSING, |place| table.at(place + 1))
}

/// Value under a key in a map; [`NodeId::MISSING`] if there is none.
pub(crate) fn lookup(view: &View<'_>, map: NodeId, key: NodeId) -> NodeId {
    match look(view, map) {
        Value::Map(_) if view.kind(key) == Some(Kind::String) => view.get_text(map, view.text(key)),
        Value::Table(table) => find_key(view, &table, key),
        _ => NodeId::MISSING,
    }
}

/// Result of ordering two values.
pub(crate) enum Order {
    Known(Ordering),
    /// One of them is NaN.
    Nan,
    /// These types have no order.
    NoOverload,
}

/// Orders two values.
pub(crate) fn order(view: &View<'_>, left: NodeId, right: NodeId) -> Order {
    order_values(&look(view, left), &look(view, right))
}

#[inline]
pub(crate) fn order_values(left: &Value<'_>, right: &Value<'_>) -> Order {
    Order::Known(match (left, right) {
        (Value::String(left), Value::String(right)) | (Value::Bytes(left), Value::Bytes(right)) => {
            left.cmp(right)
        }
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Timestamp(left, left_nanos, _), Value::Timestamp(right, right_nanos, _)) => {
            (left, left_nanos).cmp(&(right, right_nanos))
        }
        (Value::Duration(left), Value::Duration(right)) => left.cmp(right),
        (left, right) => match (Number::of(left), Number::of(right)) {
            (Some(left), Some(right)) => match left.compare(right) {
                Some(order) => order,
                None => return Order::Nan,
            },
            _ => return Order::NoOverload,
        },
    })
}
