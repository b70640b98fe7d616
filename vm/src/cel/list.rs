//! Functions on lists and sets (docs/spec/cel.md §3.9).

use std::cmp::Ordering;

use kpvm_format::cel::Function;

use super::compare::{Order, equal, order};
use super::value::{Value, look, no_operator, no_overload};
use crate::document::{Extended, NodeId};
use crate::function::{FunctionError, Values, sorting_steps};

type Outcome = Result<NodeId, FunctionError>;

fn failed(text: impl Into<String>) -> FunctionError {
    FunctionError::Failed(text.into())
}

fn out_of_steps() -> FunctionError {
    FunctionError::Refused("operation cancelled: actual cost limit exceeded".into())
}

/// Whether two values are equal; charges fuel.
pub(crate) fn are_equal(
    values: &mut Values<'_>,
    left: NodeId,
    right: NodeId,
) -> Result<bool, FunctionError> {
    let view = values.buffer.view(values.texts, values.symbols);
    equal(&view, left, right, values.fuel).ok_or_else(out_of_steps)
}

fn items(values: &Values<'_>, list: NodeId) -> Result<Vec<NodeId>, FunctionError> {
    match look(&values.view(), list) {
        Value::List(items) => Ok(items.collect()),
        _ => Err(no_overload()),
    }
}

fn int(values: &Values<'_>, id: NodeId) -> Result<i64, FunctionError> {
    match look(&values.view(), id) {
        Value::Int(number) => Ok(number),
        _ => Err(no_overload()),
    }
}

/// Calls a function on a list.
pub(crate) fn call(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let list = match arguments.first() {
        Some(first) => *first,
        None => return Err(no_overload()),
    };
    match (function, look(&values.view(), list)) {
        (Function::ListsRange, _) => return range(list, values),
        (Function::HasValue, Value::Optional(inner)) => return values.new_bool(inner.is_some()),
        (Function::OptionalValue, Value::Optional(inner)) => {
            return inner.ok_or_else(|| failed("optional.none() dereference"));
        }
        _ => {}
    }
    let all = items(values, list)?;
    values.charge(all.len() as u64 / 4)?;
    let argument = |index: usize| arguments.get(index).copied().ok_or_else(no_overload);
    match function {
        Function::Slice => {
            let (start, end) = (int(values, argument(1)?)?, int(values, argument(2)?)?);
            let length = all.len() as i64;
            if start < 0 || end < 0 {
                return Err(failed(format!(
                    "cannot slice({start}, {end}), negative indexes not supported"
                )));
            }
            if start > end {
                return Err(failed(format!(
                    "cannot slice({start}, {end}), start index must be less than or equal to end index"
                )));
            }
            if end > length {
                return Err(failed(format!(
                    "cannot slice({start}, {end}), list is length {length}"
                )));
            }
            let part = all.get(start as usize..end as usize).unwrap_or_default();
            values.new_list(part)
        }
        Function::Flatten => {
            let depth = match arguments.get(1) {
                None => 1,
                Some(depth) => int(values, *depth)?,
            };
            if depth < 0 {
                return Err(failed("level must be non-negative"));
            }
            let mut flat = Vec::new();
            flatten(&all, depth, values, &mut flat)?;
            values.new_list(&flat)
        }
        Function::Reverse | Function::ReverseString => {
            let reversed: Vec<NodeId> = all.into_iter().rev().collect();
            values.new_list(&reversed)
        }
        Function::Distinct => {
            let mut kept: Vec<NodeId> = Vec::new();
            for item in all {
                let mut known = false;
                for &other in &kept {
                    values.charge(1)?;
                    known = known || are_equal(values, item, other)?;
                }
                if !known {
                    kept.push(item);
                }
            }
            values.new_list(&kept)
        }
        Function::Sort => {
            let sorted = sort(all.clone(), &all, values)?;
            values.new_list(&sorted)
        }
        Function::SortByKeys => {
            let keys = items(values, argument(1)?)?;
            let sorted = sort(all, &keys, values)?;
            values.new_list(&sorted)
        }
        Function::IsSorted => {
            for pair in all.windows(2) {
                if is_greater(values, pair[0], pair[1])? {
                    return values.new_bool(false);
                }
            }
            values.new_bool(true)
        }
        Function::Min | Function::Max => {
            let wanted = if function == Function::Min {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let mut rest = all.into_iter();
            let Some(mut best) = rest.next() else {
                let name = function.name();
                return Err(failed(format!("{name} called on empty list")));
            };
            for item in rest {
                match order(&values.view(), item, best) {
                    Order::Known(ordering) if ordering == wanted => best = item,
                    Order::Known(_) | Order::Nan => {}
                    Order::NoOverload => return Err(no_overload()),
                }
            }
            Ok(best)
        }
        Function::Sum => {
            let mut rest = all.into_iter();
            let Some(mut sum) = rest.next() else {
                return values.new_int(0);
            };
            if !matches!(
                look(&values.view(), sum),
                Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_)
            ) {
                return Err(no_overload());
            }
            for item in rest {
                sum = super::arithmetic::binary(Function::Add, sum, item, values)?;
            }
            Ok(sum)
        }
        Function::IndexOf | Function::LastIndexOf if arguments.len() == 2 => {
            let wanted = argument(1)?;
            let mut found = -1;
            for (index, item) in all.into_iter().enumerate() {
                values.charge(1)?;
                if are_equal(values, item, wanted)? {
                    found = index as i64;
                    if function == Function::IndexOf {
                        break;
                    }
                }
            }
            values.new_int(found)
        }
        Function::First | Function::Last => {
            let item = if function == Function::First {
                all.first()
            } else {
                all.last()
            };
            values.new_optional(item.copied())
        }
        Function::OptionalUnwrap | Function::UnwrapOptional => {
            let view = values.view();
            let mut held = Vec::new();
            for item in all {
                match look(&view, item) {
                    Value::Optional(inner) => held.extend(inner),
                    _ => return Err(no_overload()),
                }
            }
            values.new_list(&held)
        }
        Function::SetsContains | Function::SetsEquivalent | Function::SetsIntersects => {
            let other = items(values, argument(1)?)?;
            let result = match function {
                Function::SetsContains => contains_all(&all, &other, values)?,
                Function::SetsEquivalent => {
                    contains_all(&all, &other, values)? && contains_all(&other, &all, values)?
                }
                _ => {
                    let mut meets = false;
                    for &item in &other {
                        meets = meets || contains(&all, item, values)?;
                    }
                    meets
                }
            };
            values.new_bool(result)
        }
        _ => Err(no_overload()),
    }
}

fn range(count: NodeId, values: &mut Values<'_>) -> Outcome {
    let count = usize::try_from(int(values, count)?.max(0)).unwrap_or(usize::MAX);
    values.charge_members(count)?;
    let mut numbers = Vec::with_capacity(count);
    for number in 0..count {
        numbers.push(values.new_int(number as i64)?);
    }
    values.new_list(&numbers)
}

fn contains(list: &[NodeId], item: NodeId, values: &mut Values<'_>) -> Result<bool, FunctionError> {
    for &other in list {
        values.charge(1)?;
        if are_equal(values, item, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_all(
    list: &[NodeId],
    part: &[NodeId],
    values: &mut Values<'_>,
) -> Result<bool, FunctionError> {
    for &item in part {
        if !contains(list, item, values)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn flatten(
    list: &[NodeId],
    depth: i64,
    values: &mut Values<'_>,
    out: &mut Vec<NodeId>,
) -> Result<(), FunctionError> {
    // Remaining items of the lists being flattened.
    let mut open: Vec<std::vec::IntoIter<NodeId>> = vec![Vec::from(list).into_iter()];
    while let Some(rest) = open.last_mut() {
        values.charge(1)?;
        let Some(item) = rest.next() else {
            open.pop();
            continue;
        };
        match look(&values.view(), item) {
            Value::List(items) if (open.len() as i64) <= depth => {
                open.push(items.collect::<Vec<_>>().into_iter());
            }
            _ => out.push(item),
        }
    }
    Ok(())
}

/// Whether an item is greater than the next; NaN is not.
fn is_greater(values: &mut Values<'_>, left: NodeId, right: NodeId) -> Result<bool, FunctionError> {
    match order(&values.view(), left, right) {
        Order::Known(ordering) => Ok(ordering.is_gt()),
        Order::Nan => Ok(false),
        Order::NoOverload => Err(no_overload()),
    }
}

/// Sorts items by their keys, which must have one type.
fn sort(
    list: Vec<NodeId>,
    keys: &[NodeId],
    values: &mut Values<'_>,
) -> Result<Vec<NodeId>, FunctionError> {
    if list.len() != keys.len() {
        return Err(failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    values.charge(sorting_steps(list.len()))?;
    let view = values.view();
    let Some(first) = keys.first() else {
        return Ok(list);
    };
    let kind = look(&view, *first).type_name();
    for &key in keys {
        let value = look(&view, key);
        if value.type_name() != kind {
            return Err(failed("list elements must have the same type"));
        }
        if let Order::NoOverload = order(&view, key, key) {
            return Err(failed("list elements must be comparable"));
        }
    }
    let mut pairs: Vec<(NodeId, NodeId)> = keys.iter().copied().zip(list).collect();
    pairs.sort_by(|(left, _), (right, _)| match order(&view, *left, *right) {
        Order::Known(ordering) => ordering,
        Order::Nan | Order::NoOverload => Ordering::Equal,
    });
    Ok(pairs.into_iter().map(|(_, item)| item).collect())
}

/// `optional.ofNonZeroValue`
pub(crate) fn of_non_zero(value: NodeId, values: &mut Values<'_>) -> Outcome {
    let is_zero = match look(&values.view(), value) {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(number) => number == 0,
        Value::Uint(number) => number == 0,
        Value::Double(number) => number == 0.0,
        Value::String(text) | Value::Bytes(text) => text.is_empty(),
        Value::Timestamp(seconds, nanos, _) => seconds == -62_135_596_800 && nanos == 0,
        Value::Duration(nanos) => nanos == 0,
        Value::List(items) | Value::Map(items) | Value::Table(items) => items.len() == 0,
        Value::Optional(_) | Value::Type(_) | Value::Opaque(..) | Value::Error(_) => false,
    };
    values.new_extended(Extended::Optional((!is_zero).then_some(value)))
}

/// `size`
pub(crate) fn size(value: NodeId, values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let size = match look(&view, value) {
        Value::String(text) => {
            let steps = text.len() as u64 / Values::BYTES_PER_STEP;
            let count = view.str(value).chars().count();
            values.charge(steps)?;
            count
        }
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) | Value::Map(items) => items.len(),
        Value::Table(items) => items.len() / 2,
        other => return Err(no_operator(Function::Size, &other)),
    };
    values.new_int(size as i64)
}
