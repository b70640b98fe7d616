//! Kyverno's functions on lists and maps (docs/spec/jmespath.md §7).

use super::Outcome;
use super::string::single_precision;
use super::values::Values;
use crate::document::{Kind, Label, NodeId};
use kpvm_semantics::FunctionError;
use kpvm_semantics::number::format_v_float;

/// Whether `have` contains every entry of `want` with an equal value.
pub(super) fn label_match(values: &mut Values<'_>, want: NodeId, have: NodeId) -> Outcome {
    for member in values.view().children(want) {
        let view = values.view();
        let other = view.get_text(have, view.key_bytes(member));
        if other.is_missing() || !values.equal(member, other)? {
            return values.new_bool(false);
        }
    }
    values.new_bool(true)
}

/// Value under a key or at an index, null if there is none.
pub(super) fn lookup(values: &mut Values<'_>, subject: NodeId, key: NodeId) -> Outcome {
    let view = values.view();
    let wrong = |argument, wanted: &str| {
        FunctionError::of(
            "lookup",
            format!("argument #{argument} is not of type {wanted}"),
        )
    };
    let found = match view.kind(subject) {
        Some(Kind::Map) => {
            if view.kind(key) != Some(Kind::String) {
                return Err(wrong(2, "String"));
            }
            view.get_text(subject, view.text(key))
        }
        Some(Kind::List) if !view.is_entries(subject) => {
            let number = view.float(key).ok_or_else(|| wrong(2, "Number"))?;
            match usize::try_from(index(number)?) {
                Ok(index) => view.children(subject).at(index),
                Err(_) => NodeId::MISSING,
            }
        }
        _ => return Err(wrong(1, "Object or Array")),
    };
    if found.is_missing() {
        return values.new_null();
    }
    Ok(found)
}

/// A whole number in the range of an index.
fn index(number: f64) -> Result<i64, FunctionError> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    let problem = if number.fract() != 0.0 || number.is_nan() {
        "expected an integer number but got"
    } else if !(-TWO_TO_63..TWO_TO_63).contains(&number) {
        "number is outside the range of integer numbers"
    } else {
        return Ok(number as i64);
    };
    let mut text = String::new();
    format_v_float(number, &mut text);
    Err(FunctionError::of(
        "lookup",
        format!("argument #2: {problem}: {text}"),
    ))
}

/// One map per entry, with the entry's key and value under the given names.
pub(super) fn items(
    values: &mut Values<'_>,
    subject: NodeId,
    key_name: NodeId,
    value_name: NodeId,
) -> Outcome {
    let view = values.view();
    if view.is_entries(subject) {
        return Err(FunctionError::of(
            "items",
            "argument #1 is not of type Object or Array",
        ));
    }
    let of_map = view.kind(subject) == Some(Kind::Map);
    let (key_name, value_name) = (
        view.str(key_name).to_owned(),
        view.str(value_name).to_owned(),
    );
    let (key_label, value_label) = (values.label(&key_name)?, values.label(&value_name)?);
    let members = if of_map {
        values.sorted_members(subject)?
    } else {
        values.view().children(subject).collect()
    };
    values.charge_members(members.len())?;
    let mut entries = Vec::with_capacity(members.len());
    for (index, member) in members.into_iter().enumerate() {
        let key = if of_map {
            let key = values.view().key_str(member).to_owned();
            values.new_text(&key)?
        } else {
            values.new_float(index as f64)?
        };
        entries.push(values.new_map(&[(key_label, key), (value_label, member)])?);
    }
    values.buffer.begin(Label::ITEM);
    for entry in entries {
        values.buffer.push_node(Label::ITEM, entry);
    }
    values.buffer.finish_entries();
    Ok(values.buffer.take()?)
}

/// A map from a list of keys and a list of values.
pub(super) fn object_from_lists(values: &mut Values<'_>, keys: NodeId, list: NodeId) -> Outcome {
    let wrong = |argument, wanted: &str| {
        FunctionError::of(
            "object_from_lists",
            format!("argument #{argument} is not of type {wanted}"),
        )
    };
    for (argument, id) in [(1, keys), (2, list)] {
        if values.view().is_entries(id) {
            return Err(wrong(argument, "Array"));
        }
    }
    let mut members = Vec::new();
    let items = values.view().children(list);
    for (index, key) in values.view().children(keys).enumerate() {
        let view = values.view();
        let text = match view.kind(key) {
            Some(Kind::String) => view.str(key).to_owned(),
            Some(Kind::Float) => single_precision(view.float(key).unwrap_or(f64::NAN)),
            Some(Kind::True) => "true".to_owned(),
            Some(Kind::False) => "false".to_owned(),
            None | Some(Kind::Null | Kind::Int | Kind::List | Kind::Map) => {
                return Err(wrong(1, "StringArray"));
            }
        };
        values.charge(1 + text.len() as u64 / Values::BYTES_PER_STEP)?;
        members.push((values.label(&text)?, items.at(index)));
    }
    values.new_map(&members)
}
