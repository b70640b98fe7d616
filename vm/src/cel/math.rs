//! `math.*` (docs/spec/cel.md §3.9).

use std::cmp::Ordering;

use kpvm_format::cel::Function;

use super::compare::Number;
use super::value::{Value, look, no_overload};
use crate::document::NodeId;
use crate::function::{FunctionError, Values};

type Outcome = Result<NodeId, FunctionError>;

/// Calls a function on numbers.
pub(crate) fn call(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    match function {
        Function::MathMin | Function::MathMax => return extreme(function, arguments, values),
        _ => {}
    }
    let shown: Vec<Value<'_>> = arguments.iter().map(|id| look(&view, *id)).collect();
    match (function, shown.as_slice()) {
        (_, [Value::Double(number)]) => {
            let number = *number;
            let result = match function {
                Function::MathCeil => number.ceil(),
                Function::MathFloor => number.floor(),
                Function::MathRound => number.round(),
                Function::MathTrunc => number.trunc(),
                Function::MathAbs => number.abs(),
                Function::MathSqrt => number.sqrt(),
                Function::MathSign if number > 0.0 => 1.0,
                Function::MathSign if number < 0.0 => -1.0,
                Function::MathSign => number,
                Function::MathIsInf => return values.new_bool(number.is_infinite()),
                Function::MathIsNaN => return values.new_bool(number.is_nan()),
                Function::MathIsFinite => return values.new_bool(number.is_finite()),
                _ => return Err(no_overload()),
            };
            values.new_float(result)
        }
        (Function::MathAbs, [Value::Int(number)]) => {
            let result = number
                .checked_abs()
                .ok_or_else(|| FunctionError::failed("integer overflow"))?;
            values.new_int(result)
        }
        (Function::MathSign, [Value::Int(number)]) => values.new_int(number.signum()),
        (Function::MathSqrt, [Value::Int(number)]) => values.new_float((*number as f64).sqrt()),
        (Function::BitNot, [Value::Int(number)]) => values.new_int(!number),
        (Function::MathAbs, [Value::Uint(_)]) => Ok(arguments[0]),
        (Function::MathSign, [Value::Uint(number)]) => values.new_uint(u64::from(*number > 0)),
        (Function::MathSqrt, [Value::Uint(number)]) => values.new_float((*number as f64).sqrt()),
        (Function::BitNot, [Value::Uint(number)]) => values.new_uint(!number),
        // Kyverno's two-argument form.
        (Function::MathRound, [Value::Double(number), Value::Int(places)]) => {
            let scale = 10f64.powi((*places).clamp(-400, 400) as i32);
            values.new_float((number * scale).round() / scale)
        }
        (Function::BitShiftLeft | Function::BitShiftRight, [operand, Value::Int(by)]) => {
            let by = *by;
            if by < 0 {
                let name = function.name();
                return Err(FunctionError::Failed(format!(
                    "{name}() negative offset: {by}"
                )));
            }
            let by = u32::try_from(by).unwrap_or(u32::MAX);
            let left = function == Function::BitShiftLeft;
            match operand {
                Value::Int(number) if left => values.new_int(number.checked_shl(by).unwrap_or(0)),
                Value::Int(number) => {
                    // Unsigned, as in cel-go.
                    values.new_int((*number as u64).checked_shr(by).unwrap_or(0) as i64)
                }
                Value::Uint(number) if left => values.new_uint(number.checked_shl(by).unwrap_or(0)),
                Value::Uint(number) => values.new_uint(number.checked_shr(by).unwrap_or(0)),
                _ => Err(no_overload()),
            }
        }
        (_, [Value::Int(left), Value::Int(right)]) => values.new_int(match function {
            Function::BitAnd => left & right,
            Function::BitOr => left | right,
            Function::BitXor => left ^ right,
            _ => return Err(no_overload()),
        }),
        (_, [Value::Uint(left), Value::Uint(right)]) => values.new_uint(match function {
            Function::BitAnd => left & right,
            Function::BitOr => left | right,
            Function::BitXor => left ^ right,
            _ => return Err(no_overload()),
        }),
        _ => Err(no_overload()),
    }
}

/// Minimum or maximum of the arguments, or of a list.
fn extreme(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let candidates: Vec<NodeId> = match arguments {
        [only] => match look(&view, *only) {
            Value::List(items) => items.collect(),
            _ => vec![*only],
        },
        several => several.to_vec(),
    };
    let wanted = if function == Function::MathMin {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    let name = function.name();
    let mut best: Option<(NodeId, Number)> = None;
    for candidate in candidates {
        let number = Number::of(&look(&view, candidate)).ok_or_else(no_overload)?;
        let is_better = match best.map(|(_, known)| number.compare(known)) {
            None => true,
            Some(Some(ordering)) => ordering == wanted,
            Some(None) => {
                let problem = match arguments {
                    [_] => "no such overload",
                    _ => "NaN values cannot be ordered",
                };
                return Err(FunctionError::Failed(format!("{problem}: {name}")));
            }
        };
        if is_better {
            best = Some((candidate, number));
        }
    }
    values.charge(1)?;
    best.map(|(id, _)| id)
        .ok_or_else(|| FunctionError::Failed(format!("{name}(list) argument must not be empty")))
}
