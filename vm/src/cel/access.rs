//! Field selection, indexing, presence tests and ranges (docs/spec/cel.md §3.4 and §3.6).

use kpvm_format::symbol::SymbolId;

use super::compare::{Number, equal_scalars, is_one_key, lookup};
use super::value::{DuplicateKey, Value, look, no_overload};
use crate::document::{Kind, NodeId, Opaque, View};
use crate::function::{FunctionError, Values};

type Outcome = Result<NodeId, FunctionError>;

/// Result of a field selection.
pub(crate) enum Found {
    /// The field's value.
    Value(NodeId),
    /// No such field, which is an error.
    NoSuchKey,
    /// The field of an optional's value, if it has one.
    Optional(Option<NodeId>),
}

/// `value.field`
pub(crate) fn select(view: &View<'_>, value: NodeId, field: SymbolId) -> Found {
    let (inner, is_optional) = match look(view, value) {
        Value::Optional(None) => return Found::Optional(None),
        Value::Optional(Some(inner)) => (inner, true),
        _ => (value, false),
    };
    let (found, _) = field_of(view, inner, field);
    match (found.is_missing(), is_optional) {
        (false, false) => Found::Value(found),
        (false, true) => Found::Optional(Some(found)),
        (true, true) => Found::Optional(None),
        (true, false) => Found::NoSuchKey,
    }
}

/// Value of a field, and whether the value can have fields at all.
fn field_of(view: &View<'_>, value: NodeId, field: SymbolId) -> (NodeId, bool) {
    if view.kind(value) == Some(Kind::Map) {
        return (view.get(value, field), true);
    }
    match look(view, value) {
        Value::Table(table) => {
            let name = view.symbol_bytes(field);
            let found = (0..table.len())
                .step_by(2)
                .find(|place| {
                    let key = table.at(*place);
                    view.kind(key) == Some(Kind::String) && view.text(key) == name
                })
                .map_or(NodeId::MISSING, |place| table.at(place + 1));
            (found, true)
        }
        _ => (NodeId::MISSING, false),
    }
}

/// `has(value.field)`: false for values without fields.
pub(crate) fn has(view: &View<'_>, value: NodeId, field: SymbolId) -> bool {
    !find(view, value, field).is_missing()
}

/// `value.?field`, also on an optional's value; [`NodeId::MISSING`] for none.
pub(crate) fn find(view: &View<'_>, value: NodeId, field: SymbolId) -> NodeId {
    if view.kind(value) == Some(Kind::Map) {
        return view.get(value, field);
    }
    match look(view, value) {
        Value::Optional(None) => NodeId::MISSING,
        Value::Optional(Some(inner)) => field_of(view, inner, field).0,
        _ => field_of(view, value, field).0,
    }
}

/// List position for an index that is a whole number of any type.
fn place(index: &Value<'_>) -> Option<i128> {
    match Number::of(index)? {
        Number::Int(number) => Some(i128::from(number)),
        Number::Uint(number) => Some(i128::from(number)),
        Number::Double(number) if number.fract() == 0.0 => Some(number as i128),
        Number::Double(_) => None,
    }
}

/// `value[?index]`; [`NodeId::MISSING`] for none.
///
/// # Errors
/// When the index has a type that cannot be one.
pub(crate) fn find_index(view: &View<'_>, value: NodeId, index: NodeId) -> Outcome {
    let shown = look(view, index);
    check_qualifier(&shown)?;
    Ok(match look(view, value) {
        Value::Optional(Some(inner)) => return find_index(view, inner, index),
        Value::List(items) => {
            let place = place(&shown).ok_or_else(|| bad_list_index(&shown))?;
            usize::try_from(place).map_or(NodeId::MISSING, |place| items.at(place))
        }
        Value::Map(_) | Value::Table(_) => lookup(view, value, index),
        _ => NodeId::MISSING,
    })
}

/// `value[?index]`
pub(crate) fn optional_index(values: &mut Values<'_>, value: NodeId, index: NodeId) -> Outcome {
    match find_index(&values.view(), value, index)? {
        NodeId::MISSING => values.new_optional(None),
        found => values.new_optional(Some(found)),
    }
}

/// `value[index]`
pub(crate) fn index(values: &mut Values<'_>, value: NodeId, index: NodeId) -> Outcome {
    let view = values.view();
    let shown = look(&view, index);
    check_qualifier(&shown)?;
    match look(&view, value) {
        Value::Optional(None) => Ok(value),
        Value::Optional(Some(inner)) => match find_index(&view, inner, index)? {
            NodeId::MISSING => values.new_optional(None),
            found => values.new_optional(Some(found)),
        },
        Value::List(items) => {
            let Some(place) = place(&shown) else {
                return Err(bad_list_index(&shown));
            };
            let found = usize::try_from(place).map_or(NodeId::MISSING, |place| items.at(place));
            if found.is_missing() {
                return Err(FunctionError::Failed(format!(
                    "index out of bounds: {place}"
                )));
            }
            Ok(found)
        }
        Value::Map(_) | Value::Table(_) => match lookup(&view, value, index) {
            NodeId::MISSING => Err(no_such_key(&key_text(&shown))),
            found => Ok(found),
        },
        _ => Err(no_such_key(&key_text(&shown))),
    }
}

/// Error for an index that cannot be one, such as a list or a quantity.
fn check_qualifier(index: &Value<'_>) -> Result<(), FunctionError> {
    let ty = match index {
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_) => {
            return Ok(());
        }
        // Values of a resource have the types of the language.
        Value::Null => "<nil>",
        Value::List(_) => "[]interface {}",
        Value::Map(_) | Value::Table(_) => "map[string]interface {}",
        Value::Opaque(Opaque::Quantity, _) => "cel.Quantity",
        Value::Opaque(Opaque::Ip, _) => "cel.IP",
        Value::Opaque(Opaque::Cidr, _) => "cel.CIDR",
        Value::Opaque(Opaque::Url, _) => "cel.URL",
        Value::Opaque(Opaque::Semver, _) => "cel.Semver",
        Value::Opaque(Opaque::Format, _) => "cel.Format",
        other => other.go_type(),
    };
    Err(FunctionError::Failed(format!(
        "invalid qualifier type: {ty}"
    )))
}

/// Error for an index of a list that is no whole number.
fn bad_list_index(index: &Value<'_>) -> FunctionError {
    FunctionError::Failed(match index {
        Value::Double(number) => {
            let number = super::convert::double_text(*number);
            format!("unsupported index value {number} in list")
        }
        other => format!("unsupported index type '{}' in list", other.type_name()),
    })
}

/// Error for a missing key.
pub(crate) fn no_such_key(key: &str) -> FunctionError {
    FunctionError::Failed(format!("no such key: {key}"))
}

/// A key as shown in errors.
pub(crate) fn key_text(key: &Value<'_>) -> String {
    match key {
        Value::String(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => super::convert::double_text(*number),
        Value::Bool(value) => value.to_string(),
        other => other.type_name().to_owned(),
    }
}

/// Range of a comprehension: the items (or indices) of a list, or the keys of a map.
pub(crate) fn range(values: &mut Values<'_>, value: NodeId, indices: bool) -> Outcome {
    let view = values.view();
    match look(&view, value) {
        Value::List(_) if !indices => Ok(value),
        Value::List(items) => {
            let count = items.len();
            values.charge_members(count)?;
            let mut numbers = Vec::with_capacity(count);
            for index in 0..count {
                numbers.push(values.new_int(index as i64)?);
            }
            values.new_list(&numbers)
        }
        Value::Map(_) => {
            let members = values.sorted_members(value)?;
            let mut keys = Vec::with_capacity(members.len());
            for member in members {
                let key = values.view().key_str(member).to_owned();
                keys.push(values.new_text(&key)?);
            }
            values.new_list(&keys)
        }
        Value::Table(table) => {
            let keys: Vec<NodeId> = (0..table.len()).step_by(2).map(|at| table.at(at)).collect();
            values.new_list(&keys)
        }
        other if indices => Err(FunctionError::Failed(format!(
            "unsupported comprehension range type: {}",
            other.go_type()
        ))),
        other => Err(FunctionError::Failed(format!(
            "got '{}', expected iterable type",
            other.go_type()
        ))),
    }
}

/// Alternating keys and values of a map.
pub(crate) fn pairs(values: &mut Values<'_>, map: NodeId) -> Result<Vec<NodeId>, FunctionError> {
    match look(&values.view(), map) {
        Value::Map(_) => {
            let members = values.sorted_members(map)?;
            let mut pairs = Vec::with_capacity(members.len() * 2);
            for member in members {
                let key = values.view().key_str(member).to_owned();
                pairs.push(values.new_text(&key)?);
                pairs.push(member);
            }
            Ok(pairs)
        }
        Value::Table(table) => Ok(table.collect()),
        _ => Err(no_overload()),
    }
}

/// Creates a map from alternating keys and values.
pub(crate) fn make_map(values: &mut Values<'_>, pairs: &[NodeId], joined: bool) -> Outcome {
    match values.new_cel_map(pairs) {
        Ok(map) => Ok(map),
        Err(DuplicateKey::Other(error)) => Err(error),
        Err(DuplicateKey::Key(key)) if joined => {
            let key = key_text(&look(&values.view(), key));
            let text = format!("insert failed: key {key} already exists");
            Err(FunctionError::Failed(text))
        }
        // Of equal keys in a literal the last value counts.
        Err(DuplicateKey::Key(_)) => {
            let kept = last_of_equal_keys(values, pairs)?;
            match values.new_cel_map(&kept) {
                Ok(map) => Ok(map),
                Err(DuplicateKey::Other(error)) => Err(error),
                Err(DuplicateKey::Key(_)) => Err(no_overload()),
            }
        }
    }
}

fn last_of_equal_keys(
    values: &mut Values<'_>,
    pairs: &[NodeId],
) -> Result<Vec<NodeId>, FunctionError> {
    let mut kept: Vec<NodeId> = Vec::with_capacity(pairs.len());
    for pair in pairs.chunks_exact(2) {
        values.charge(1 + kept.len() as u64 / 4)?;
        let view = values.view();
        let known = kept
            .chunks_exact_mut(2)
            .find(|known| is_one_key(&view, known[0], pair[0]));
        match known {
            Some(known) => known[1] = pair[1],
            None => kept.extend(pair),
        }
    }
    Ok(kept)
}

/// `value in container`, for a value that is not a container; `None` if the fuel does not
/// suffice.
pub(crate) fn is_scalar_in(
    view: &View<'_>,
    value: &Value<'_>,
    container: NodeId,
    fuel: &mut u64,
) -> Option<Result<bool, FunctionError>> {
    let is_it = |item: NodeId| equal_scalars(value, &look(view, item)) == Some(true);
    Some(Ok(match (look(view, container), value) {
        (Value::List(items), _) => {
            let place = items.clone().position(is_it);
            let looked_at = place.map_or(items.len(), |place| place + 1);
            *fuel = fuel.checked_sub(looked_at as u64)?;
            place.is_some()
        }
        (Value::Map(_), Value::String(key)) => !view.get_text(container, key).is_missing(),
        (Value::Map(_), _) => false,
        (Value::Table(table), _) => (0..table.len()).step_by(2).any(|at| is_it(table.at(at))),
        _ => return Some(Err(no_overload())),
    }))
}

/// `value in container`; `None` if the fuel does not suffice.
pub(crate) fn is_in(
    view: &View<'_>,
    value: NodeId,
    container: NodeId,
    fuel: &mut u64,
) -> Option<Result<bool, FunctionError>> {
    Some(Ok(match look(view, container) {
        Value::List(items) => {
            let mut found = false;
            for item in items {
                *fuel = fuel.checked_sub(1)?;
                if super::compare::equal(view, value, item, fuel)? {
                    found = true;
                    break;
                }
            }
            found
        }
        Value::Map(_) | Value::Table(_) => !lookup(view, container, value).is_missing(),
        _ => return Some(Err(no_overload())),
    }))
}
