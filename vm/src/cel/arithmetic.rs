//! `+ - * / %` and unary minus: types never mix, nothing wraps (docs/spec/cel.md §3.5).

use kpvm_format::cel::Function;
use smallvec::SmallVec;

use super::time;
use super::value::{Value, look, no_operator};
use crate::document::{Extended, NodeId};
use crate::function::{FunctionError, Values};

type Outcome = Result<NodeId, FunctionError>;

fn overflow(kind: &str) -> FunctionError {
    FunctionError::Failed(format!("{kind}overflow"))
}

/// Evaluates a binary operator.
pub(crate) fn binary(
    function: Function,
    left: NodeId,
    right: NodeId,
    values: &mut Values<'_>,
) -> Outcome {
    let view = values.view();
    match (look(&view, left), look(&view, right)) {
        (Value::Int(left), Value::Int(right)) => {
            let result = match function {
                Function::Add => left.checked_add(right),
                Function::Subtract => left.checked_sub(right),
                Function::Multiply => left.checked_mul(right),
                Function::Divide if right == 0 => return Err(by_zero("division")),
                Function::Divide => left.checked_div(right),
                _ if right == 0 => return Err(by_zero("modulus")),
                _ => left.checked_rem(right),
            };
            values.new_int(result.ok_or_else(|| overflow("integer "))?)
        }
        (Value::Uint(left), Value::Uint(right)) => {
            let result = match function {
                Function::Add => left.checked_add(right),
                Function::Subtract => left.checked_sub(right),
                Function::Multiply => left.checked_mul(right),
                Function::Divide if right == 0 => return Err(by_zero("division")),
                Function::Divide => left.checked_div(right),
                _ if right == 0 => return Err(by_zero("modulus")),
                _ => left.checked_rem(right),
            };
            values.new_uint(result.ok_or_else(|| overflow("unsigned integer "))?)
        }
        (Value::Double(left), Value::Double(right)) => {
            let result = match function {
                Function::Add => left + right,
                Function::Subtract => left - right,
                Function::Multiply => left * right,
                Function::Divide => left / right,
                _ => return Err(no_operator(function, &Value::Double(left))),
            };
            values.new_float(result)
        }
        (left_value, right_value) => match function {
            Function::Add => add(left, right, values),
            Function::Subtract => match (&left_value, &right_value) {
                (Value::Duration(left), Value::Duration(right)) => {
                    let result = left.checked_sub(*right);
                    new_duration(values, result)
                }
                (Value::Timestamp(seconds, nanos, offset), Value::Duration(duration)) => {
                    let moved = time::shift((*seconds, *nanos, *offset), -i128::from(*duration))?;
                    values.new_extended(moved)
                }
                (
                    Value::Timestamp(left, left_nanos, _),
                    Value::Timestamp(right, right_nanos, _),
                ) => {
                    let difference = time::nanoseconds(*left, *left_nanos)
                        - time::nanoseconds(*right, *right_nanos);
                    new_duration(values, i64::try_from(difference).ok())
                }
                _ => Err(no_operator(function, &left_value)),
            },
            _ => Err(no_operator(function, &left_value)),
        },
    }
}

fn by_zero(what: &str) -> FunctionError {
    FunctionError::Failed(format!("{what} by zero"))
}

fn new_duration(values: &mut Values<'_>, nanoseconds: Option<i64>) -> Outcome {
    let nanoseconds = nanoseconds.ok_or_else(|| overflow("integer "))?;
    values.new_extended(Extended::Duration(nanoseconds))
}

fn add(left: NodeId, right: NodeId, values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    match (look(&view, left), look(&view, right)) {
        (Value::String(left), Value::String(right)) => {
            let mut text = Vec::with_capacity(left.len() + right.len());
            text.extend_from_slice(left);
            text.extend_from_slice(right);
            let text = String::from_utf8(text).unwrap_or_default();
            values.new_text(&text)
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            let bytes = [left, right].concat();
            values.new_bytes(&bytes)
        }
        (Value::List(left), Value::List(right)) => {
            let items: SmallVec<[NodeId; 32]> = left.chain(right).collect();
            values.new_list(&items)
        }
        (Value::Duration(left), Value::Duration(right)) => {
            new_duration(values, left.checked_add(right))
        }
        (Value::Timestamp(seconds, nanos, offset), Value::Duration(duration))
        | (Value::Duration(duration), Value::Timestamp(seconds, nanos, offset)) => {
            let moved = time::shift((seconds, nanos, offset), i128::from(duration))?;
            values.new_extended(moved)
        }
        (left, _) => Err(no_operator(Function::Add, &left)),
    }
}

/// `-x`
pub(crate) fn negate(operand: NodeId, values: &mut Values<'_>) -> Outcome {
    match look(&values.view(), operand) {
        Value::Int(number) => {
            let result = number.checked_neg().ok_or_else(|| overflow("integer "))?;
            values.new_int(result)
        }
        Value::Double(number) => values.new_float(-number),
        Value::Duration(number) => new_duration(values, number.checked_neg()),
        other => Err(no_operator(Function::Negate, &other)),
    }
}
