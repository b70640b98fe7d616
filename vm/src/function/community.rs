//! Functions available only in assertion trees: those of the community's JMESPath, and `at`
//! and `concat` of Kyverno-JSON (docs/spec/assert.md §8).

use std::collections::BTreeMap;

use memchr::memmem;

use super::Outcome;
use super::values::Values;
use crate::document::{Kind, NodeId};
use kpvm_semantics::FunctionError;

/// One end of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

impl End {
    /// Name of one of two functions.
    fn name(self, first: &'static str, last: &'static str) -> &'static str {
        match self {
            End::First => first,
            End::Last => last,
        }
    }
}

/// A whole number.
fn integer(values: &Values<'_>, number: NodeId) -> Option<i64> {
    let number = values.number(number);
    (number.fract() == 0.0).then_some(number as i64)
}

fn not_an_integer(function: &str, argument: &str) -> FunctionError {
    FunctionError::failed(format!(
        "invalid value, the function '{function}' expects its '{argument}' argument to be an integer."
    ))
}

/// Start of the part, in bytes from the start of the whole text; null if absent.
pub(super) fn find(values: &mut Values<'_>, arguments: &[NodeId], end: End) -> Outcome {
    let name = end.name("find_first", "find_last");
    let bound = |argument: usize, called: &str| match arguments.get(argument) {
        None => Ok(None),
        Some(&number) => match integer(values, number) {
            Some(number) => Ok(Some(number)),
            None => Err(not_an_integer(name, called)),
        },
    };
    let &[text, part, ..] = arguments else {
        return values.new_null();
    };
    let view = values.view();
    let (text, part) = (view.text(text), view.text(part));
    if text.is_empty() || part.is_empty() {
        return values.new_null();
    }
    let from = bound(2, "start")?.map_or(0, |start| usize::try_from(start).unwrap_or(0));
    let to = bound(3, "end")?.map_or(text.len(), |end| usize::try_from(end).unwrap_or(0));
    // Kyverno crashes if the end is before the start.
    let searched = text.get(from..to.min(text.len())).unwrap_or_default();
    let found = match end {
        End::First => memmem::find(searched, part),
        End::Last => memmem::rfind(searched, part),
    };
    match found {
        Some(offset) => values.new_float((from + offset) as f64),
        None => values.new_null(),
    }
}

/// Pads a text to a minimum number of bytes.
pub(super) fn pad(values: &mut Values<'_>, arguments: &[NodeId], end: End) -> Outcome {
    let name = end.name("pad_left", "pad_right");
    let &[text, width, ref rest @ ..] = arguments else {
        return values.new_null();
    };
    let Some(width) = integer(values, width).and_then(|width| usize::try_from(width).ok()) else {
        return Err(FunctionError::failed(format!(
            "invalid value, the function '{name}' expects its 'width' argument to be a an integer value greater than or equal to zero."
        )));
    };
    let filler = rest.first().map_or(" ", |&filler| values.str(filler));
    if filler.len() > 1 {
        return Err(FunctionError::failed(format!(
            "invalid value, the function '{name}' expects its 'pad' argument to be a string of length 1"
        )));
    }
    let text = values.str(text);
    let missing = width.saturating_sub(text.len());
    values.check_text(text.len().saturating_add(missing))?;
    let filling = filler.repeat(missing);
    let padded = match end {
        End::First => filling + text,
        End::Last => text.to_owned() + &filling,
    };
    values.new_text(&padded)
}

/// Removes the characters of a set, or white space.
pub(super) fn trim(values: &mut Values<'_>, arguments: &[NodeId], end: End) -> Outcome {
    let &[text, ref rest @ ..] = arguments else {
        return values.new_null();
    };
    let mut set: Vec<char> = rest
        .first()
        .map_or("", |&set| values.str(set))
        .chars()
        .collect();
    set.sort_unstable();
    let goes = |c: char| match set.is_empty() {
        true => c.is_whitespace(),
        false => set.binary_search(&c).is_ok(),
    };
    let text = values.str(text);
    let trimmed = match end {
        End::First => text.trim_start_matches(goes),
        End::Last => text.trim_end_matches(goes),
    };
    let trimmed = trimmed.to_owned();
    values.new_text(&trimmed)
}

/// The item at an index, counted from the start.
pub(super) fn at(values: &mut Values<'_>, list: NodeId, index: NodeId) -> Outcome {
    let place = values.number(index);
    let items = values.view().children(list);
    let item = match integer(values, index).and_then(|index| usize::try_from(index).ok()) {
        Some(index) => items.at(index),
        None => NodeId::MISSING,
    };
    if item.is_missing() {
        return Err(FunctionError::failed(format!(
            "index out of range [{place}] with length {}",
            items.len()
        )));
    }
    Ok(item)
}

pub(super) fn concat(values: &mut Values<'_>, left: NodeId, right: NodeId) -> Outcome {
    let view = values.view();
    let (left, right) = (view.str(left), view.str(right));
    values.check_text(left.len() + right.len())?;
    let joined = left.to_owned() + right;
    values.new_text(&joined)
}

/// A map from a list of lists, each of a key and a value.
pub(super) fn from_items(values: &mut Values<'_>, pairs: NodeId) -> Outcome {
    let mut members = Vec::new();
    for pair in values.view().children(pairs) {
        let view = values.view();
        if view.kind(pair) != Some(Kind::List) {
            return Err(FunctionError::failed(
                "invalid type, first argument must be an array of arrays",
            ));
        }
        let parts = view.children(pair);
        let (key, value) = (parts.at(0), parts.at(1));
        if parts.len() != 2 || view.kind(key) != Some(Kind::String) {
            return Err(FunctionError::failed(
                "invalid value, each array must contain two elements, a pair of string and value",
            ));
        }
        let key = view.str(key).to_owned();
        values.charge(1 + key.len() as u64 / Values::BYTES_PER_STEP)?;
        members.push((values.label(&key)?, value));
    }
    values.new_map(&members)
}

/// `group_by` once the keys are known; null for an empty list.
pub(super) fn group_by_keys(values: &mut Values<'_>, list: NodeId, keys: NodeId) -> Outcome {
    let view = values.view();
    if view.is_empty(list) {
        return values.new_null();
    }
    let mut groups: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
    for (item, key) in view.children(list).zip(view.children(keys)) {
        if view.kind(key) != Some(Kind::String) {
            return Err(FunctionError::failed(
                "invalid type, the expression must evaluate to a string",
            ));
        }
        groups
            .entry(view.str(key).to_owned())
            .or_default()
            .push(item);
    }
    let mut members = Vec::with_capacity(groups.len());
    for (key, items) in groups {
        let items = values.new_list(&items)?;
        members.push((values.label(&key)?, items));
    }
    values.new_map(&members)
}

/// Groups items by position; as many lists as the shortest argument has items.
pub(super) fn zip(values: &mut Values<'_>, lists: &[NodeId]) -> Outcome {
    let view = values.view();
    if lists
        .iter()
        .any(|&list| view.kind(list) != Some(Kind::List))
    {
        return Err(FunctionError::failed(
            "invalid type, the function 'zip' expects lists",
        ));
    }
    let count = lists.iter().map(|&list| view.len(list)).min().unwrap_or(0);
    values.charge_members(count)?;
    let mut rows = Vec::with_capacity(count);
    for index in 0..count {
        let row: Vec<NodeId> = lists
            .iter()
            .map(|&list| values.view().children(list).at(index))
            .collect();
        rows.push(values.new_list(&row)?);
    }
    values.new_list(&rows)
}
