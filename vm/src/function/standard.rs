//! Functions of the original JMESPath specification (docs/spec/jmespath.md §6).

use std::cmp::Ordering;

use super::values::{Values, sorting_steps};
use super::{Outcome, go_text};
use crate::document::{Kind, NodeId, View};
use kpvm_semantics::FunctionError;
use kpvm_semantics::number::parse_go_float;

const CRASH: &str = "Kyverno crashes on this call";

pub(super) fn rounded(values: &mut Values<'_>, a: NodeId, round: fn(f64) -> f64) -> Outcome {
    let number = values.number(a);
    values.new_float(round(number))
}

/// The mean; NaN for an empty list.
pub(super) fn avg(values: &mut Values<'_>, list: NodeId) -> Outcome {
    let view = values.view();
    let numbers = view.children(list).filter_map(|item| view.float(item));
    let mean = numbers.sum::<f64>() / view.len(list) as f64;
    values.new_float(mean)
}

pub(super) fn contains(values: &mut Values<'_>, subject: NodeId, needle: NodeId) -> Outcome {
    let view = values.view();
    if view.kind(subject) == Some(Kind::String) {
        let found = view.kind(needle) == Some(Kind::String)
            && memchr::memmem::find(view.text(subject), view.text(needle)).is_some();
        return values.new_bool(found);
    }
    if view.is_entries(subject) {
        return Err(FunctionError::failed(CRASH));
    }
    let kind = view.kind(needle);
    let mut found = false;
    for item in view.children(subject) {
        if view.kind(item) != kind {
            continue;
        }
        found = match kind {
            None | Some(Kind::Null | Kind::False | Kind::True) => true,
            Some(Kind::Int) => view.int(item) == view.int(needle),
            Some(Kind::Float) => view.float(item) == view.float(needle),
            Some(Kind::String) => view.text(item) == view.text(needle),
            // Go cannot compare these.
            Some(Kind::List | Kind::Map) => return Err(FunctionError::failed(CRASH)),
        };
        if found {
            break;
        }
    }
    values.new_bool(found)
}

pub(super) fn ends_with(values: &mut Values<'_>, text: NodeId, end: NodeId) -> Outcome {
    let view = values.view();
    let result = view.text(text).ends_with(view.text(end));
    values.new_bool(result)
}

pub(super) fn starts_with(values: &mut Values<'_>, text: NodeId, start: NodeId) -> Outcome {
    let view = values.view();
    let result = view.text(text).starts_with(view.text(start));
    values.new_bool(result)
}

pub(super) fn join(values: &mut Values<'_>, separator: NodeId, list: NodeId) -> Outcome {
    let view = values.view();
    let separator = view.str(separator);
    let texts = || view.children(list).map(|item| view.str(item));
    let length = texts().map(|text| text.len() + separator.len()).sum();
    values.check_text(length)?;
    let mut joined = String::with_capacity(length);
    for (index, text) in texts().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    values.new_text(&joined)
}

/// The keys, sorted; Kyverno's order is random.
pub(super) fn keys(values: &mut Values<'_>, map: NodeId) -> Outcome {
    let members = values.sorted_members(map)?;
    let mut keys = Vec::with_capacity(members.len());
    for member in members {
        let key = values.view().key_str(member).to_owned();
        keys.push(values.new_text(&key)?);
    }
    values.new_list(&keys)
}

/// The values in the order of [`keys`].
pub(super) fn values_of(values: &mut Values<'_>, map: NodeId) -> Outcome {
    let members = values.sorted_members(map)?;
    values.new_list(&members)
}

/// Code points, items or entries.
pub(super) fn length(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let view = values.view();
    let length = match view.kind(a) {
        Some(Kind::String) => view.str(a).chars().count(),
        _ => view.len(a),
    };
    values.new_float(length as f64)
}

/// One end of an order.
#[derive(Clone, Copy)]
pub(super) enum Extreme {
    Max,
    Min,
}

impl Extreme {
    /// Whether `candidate` is better than the best so far; among equals the first is kept.
    fn prefers(self, candidate: Option<Ordering>) -> bool {
        match self {
            Extreme::Max => candidate == Some(Ordering::Greater),
            Extreme::Min => candidate == Some(Ordering::Less),
        }
    }
}

/// Order of two numbers or two texts; NaN has none.
fn order(view: &View<'_>, left: NodeId, right: NodeId) -> Option<Ordering> {
    match view.kind(left) {
        Some(Kind::Float) => view.float(left).partial_cmp(&view.float(right)),
        _ => Some(view.text(left).cmp(view.text(right))),
    }
}

pub(super) fn extreme(values: &mut Values<'_>, list: NodeId, which: Extreme) -> Outcome {
    let view = values.view();
    let mut items = view.children(list);
    let Some(mut best) = items.next() else {
        return values.new_null();
    };
    for item in items {
        if which.prefers(order(&view, item, best)) {
            best = item;
        }
    }
    Ok(best)
}

/// `max_by` and `min_by` once the keys are known.
pub(super) fn extreme_by_keys(
    values: &mut Values<'_>,
    list: NodeId,
    keys: NodeId,
    which: Extreme,
) -> Outcome {
    let view = values.view();
    if view.is_entries(list) {
        return Err(FunctionError::failed(CRASH));
    }
    let items = view.children(list);
    match items.len() {
        0 => return values.new_null(),
        1 => return Ok(items.at(0)),
        _ => {}
    }
    let mut pairs = items.zip(view.children(keys));
    let Some((mut best, mut best_key)) = pairs.next() else {
        return values.new_null();
    };
    let kind = key_kind(&view, best_key)?;
    for (item, key) in pairs {
        if view.kind(key) != Some(kind) {
            return Err(FunctionError::failed(match kind {
                Kind::Float => "invalid type, must be number",
                _ => "invalid type, must be string",
            }));
        }
        if which.prefers(order(&view, key, best_key)) {
            (best, best_key) = (item, key);
        }
    }
    Ok(best)
}

/// Kind of the first key, which all keys must have.
fn key_kind(view: &View<'_>, key: NodeId) -> Result<Kind, FunctionError> {
    match view.kind(key) {
        Some(kind @ (Kind::Float | Kind::String)) => Ok(kind),
        _ => Err(FunctionError::failed(
            "invalid type, must be number of string",
        )),
    }
}

/// Merges maps; any other argument crashes Kyverno.
pub(super) fn merge(values: &mut Values<'_>, maps: &[NodeId]) -> Outcome {
    let mut members = Vec::new();
    for map in maps {
        let view = values.view();
        if view.kind(*map) != Some(Kind::Map) || view.is_reference(*map) {
            return Err(FunctionError::failed(CRASH));
        }
        let children = view.children(*map);
        values.charge_members(members.len() + children.len())?;
        members.extend(children.map(|member| (values.buffer.label_of(member), member)));
    }
    values.new_map(&members)
}

pub(super) fn not_null(values: &mut Values<'_>, arguments: &[NodeId]) -> Outcome {
    let view = values.view();
    let found = arguments
        .iter()
        .find(|argument| !matches!(view.kind(**argument), None | Some(Kind::Null)));
    match found {
        Some(argument) => Ok(*argument),
        None => values.new_null(),
    }
}

pub(super) fn reverse(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let view = values.view();
    if view.kind(a) == Some(Kind::String) {
        let reversed: String = view.str(a).chars().rev().collect();
        return values.new_text(&reversed);
    }
    if view.is_entries(a) {
        return Err(FunctionError::failed(CRASH));
    }
    let items: Vec<_> = view.children(a).rev().collect();
    values.new_list(&items)
}

/// Sorts a list of numbers or of texts; the position of NaN is unspecified.
pub(super) fn sort(values: &mut Values<'_>, list: NodeId) -> Outcome {
    let items: Vec<_> = values.view().children(list).collect();
    sort_pairs(values, items.iter().map(|item| (*item, *item)).collect())
}

/// `map` once the results are known.
pub(super) fn map_results(values: &mut Values<'_>, list: NodeId, results: NodeId) -> Outcome {
    if values.view().is_entries(list) {
        return Err(FunctionError::failed(CRASH));
    }
    Ok(results)
}

/// `sort_by` once the keys are known.
pub(super) fn sort_by_keys(values: &mut Values<'_>, list: NodeId, keys: NodeId) -> Outcome {
    let view = values.view();
    if view.is_entries(list) {
        return Err(FunctionError::failed(CRASH));
    }
    if view.len(list) <= 1 {
        return Ok(list);
    }
    let kind = key_kind(&view, view.children(keys).at(0))?;
    let pairs: Vec<_> = view.children(keys).zip(view.children(list)).collect();
    if pairs.iter().any(|(key, _)| view.kind(*key) != Some(kind)) {
        return Err(FunctionError::failed("error in sort_by comparison"));
    }
    sort_pairs(values, pairs)
}

/// The second values, sorted by the first.
fn sort_pairs(values: &mut Values<'_>, mut pairs: Vec<(NodeId, NodeId)>) -> Outcome {
    values.charge(sorting_steps(pairs.len()))?;
    let view = values.view();
    pairs.sort_by(|left, right| match view.kind(left.0) {
        // A total order, so that NaN cannot break the sort; the two zeros are equal.
        Some(Kind::Float) => number_order(view.float(left.0), view.float(right.0)),
        _ => view.text(left.0).cmp(view.text(right.0)),
    });
    let sorted: Vec<_> = pairs.into_iter().map(|(_, item)| item).collect();
    values.new_list(&sorted)
}

fn number_order(left: Option<f64>, right: Option<f64>) -> Ordering {
    let number = |number: Option<f64>| number.unwrap_or(f64::NAN) + 0.0;
    number(left).total_cmp(&number(right))
}

pub(super) fn to_array(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let view = values.view();
    if view.kind(a) == Some(Kind::List) && !view.is_entries(a) {
        return Ok(a);
    }
    values.new_list(&[a])
}

fn unknown_type() -> FunctionError {
    FunctionError::failed("unknown type")
}

pub(super) fn to_number(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let view = values.view();
    match view.kind(a) {
        Some(Kind::Float) => Ok(a),
        Some(Kind::String) => match parse_go_float(view.str(a)) {
            Some(number) => values.new_float(number),
            None => values.new_null(),
        },
        Some(Kind::Int) => Err(unknown_type()),
        Some(Kind::List | Kind::Map) if view.is_entries(a) || view.is_reference(a) => {
            Err(unknown_type())
        }
        None | Some(Kind::Null | Kind::False | Kind::True | Kind::List | Kind::Map) => {
            values.new_null()
        }
    }
}

pub(super) fn to_string(values: &mut Values<'_>, a: NodeId) -> Outcome {
    if values.view().kind(a) == Some(Kind::String) {
        return Ok(a);
    }
    let text = go_text::json_text(values, a)?;
    values.new_text(&text)
}

pub(super) fn type_name(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let view = values.view();
    let name = match view.kind(a) {
        None | Some(Kind::Null) => "null",
        Some(Kind::False | Kind::True) => "boolean",
        Some(Kind::Float) => "number",
        Some(Kind::String) => "string",
        Some(Kind::List) if !view.is_entries(a) => "array",
        Some(Kind::Map) if !view.is_reference(a) => "object",
        Some(Kind::Int | Kind::List | Kind::Map) => return Err(unknown_type()),
    };
    values.new_text(name)
}
