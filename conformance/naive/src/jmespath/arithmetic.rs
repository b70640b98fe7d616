//! Arithmetic (docs/spec/jmespath.md §8).

use kpvm_semantics::FunctionError;
use kpvm_semantics::duration;
use kpvm_semantics::exact_quantity::Quantity;
use kpvm_semantics::number::float_to_i64_amd64;
use serde_json::Value;

use super::evaluate::{Datum, Evaluated};
use super::functions::{float, from_float};
use crate::failure::Failure;
use crate::value::go_text;

enum Operand {
    Scalar(f64),
    Quantity(Quantity),
    /// In nanoseconds.
    Duration(i64),
}

fn failed<T>(name: &str, text: &str) -> Result<T, Failure> {
    Err(Failure::error(format!(
        "JMESPath function '{name}': {text}"
    )))
}

fn refused(error: FunctionError) -> Failure {
    match error {
        FunctionError::Failed(text) => Failure::Error(text),
        FunctionError::Refused(_) => Failure::NotDone("a quantity that is too large"),
    }
}

fn operand(name: &str, datum: Option<&Datum>) -> Result<Operand, Failure> {
    match datum {
        Some(Datum::NotFinite(float)) => Ok(Operand::Scalar(*float)),
        Some(Datum::Json(Value::Number(number))) if number.is_f64() => {
            Ok(Operand::Scalar(number.as_f64().unwrap_or_default()))
        }
        Some(Datum::Json(Value::String(text))) => {
            if let Some(quantity) = Quantity::parse(text).map_err(refused)? {
                return Ok(Operand::Quantity(quantity));
            }
            match duration::parse(text) {
                Some(duration) => Ok(Operand::Duration(duration)),
                None => failed(name, "invalid operand"),
            }
        }
        _ => failed(name, "invalid operand"),
    }
}

pub(super) fn call(name: &str, arguments: &[Datum]) -> Evaluated {
    match name {
        "sum" => sum(arguments.first()),
        "round" => round(float(arguments.first()), float(arguments.get(1))),
        _ => {
            let left = operand(name, arguments.first())?;
            let right = operand(name, arguments.get(1))?;
            combine(name, name, left, right)
        }
    }
}

/// The operation on two operands; errors name the function.
fn combine(function: &str, operation: &str, left: Operand, right: Operand) -> Evaluated {
    use Operand::{Duration as D, Quantity as Q, Scalar as S};
    let quantity = |result: Result<Quantity, FunctionError>| match result {
        Ok(quantity) => Ok(Datum::Json(quantity.canonical().into())),
        Err(error) => Err(refused(error)),
    };
    let nanoseconds = |value: i64| Ok(Datum::Json(duration::format(value).into()));
    let from_seconds = |seconds: f64| nanoseconds(float_to_i64_amd64(seconds * 1e9));
    let zero = || failed(function, "Zero divisor passed");
    let not_whole = || failed(function, "Non-integer argument(s) passed for modulo");
    let scalar_quantity = |scalar: f64| -> Result<Quantity, Failure> {
        let text = go_text(&Value::from(scalar));
        let parsed = Quantity::parse(&text).map_err(refused)?;
        parsed.ok_or(Failure::NotDone("NaN or infinity times a quantity"))
    };
    match (operation, left, right) {
        ("add", Q(left), Q(right)) => quantity(left.add(&right)),
        ("add", D(left), D(right)) => nanoseconds(left.wrapping_add(right)),
        ("add", S(left), S(right)) => from_float(left + right),
        ("subtract", Q(left), Q(right)) => quantity(left.add(&right.negated())),
        ("subtract", D(left), D(right)) => nanoseconds(left.wrapping_sub(right)),
        ("subtract", S(left), S(right)) => from_float(left - right),
        ("multiply", Q(left), S(right)) | ("multiply", S(right), Q(left)) => {
            quantity(left.multiply(&scalar_quantity(right)?))
        }
        ("multiply", D(left), S(right)) | ("multiply", S(right), D(left)) => {
            from_seconds(duration::seconds(left) * right)
        }
        ("multiply", S(left), S(right)) => from_float(left * right),
        ("divide", Q(left), Q(right)) => match right.approximate() {
            0.0 => zero(),
            divisor => from_float(left.approximate() / divisor),
        },
        ("divide", Q(_) | D(_) | S(_), S(0.0)) => zero(),
        ("divide", Q(left), S(right)) => quantity(left.divide(&scalar_quantity(right)?)),
        ("divide", D(_), D(0)) => zero(),
        ("divide", D(left), D(right)) => {
            from_float(duration::seconds(left) / duration::seconds(right))
        }
        ("divide", D(left), S(right)) => from_seconds(duration::seconds(left) / right),
        ("divide", S(left), S(right)) => from_float(left / right),
        ("modulo", Q(left), Q(right)) => {
            let (dividend, divisor) = (left.approximate(), right.approximate());
            match (whole(dividend), whole(divisor)) {
                (Some(_), Some(0)) => zero(),
                (Some(dividend), Some(divisor)) => {
                    quantity(Ok(left.like(dividend.wrapping_rem(divisor))))
                }
                _ => not_whole(),
            }
        }
        ("modulo", D(_), D(0)) => zero(),
        ("modulo", D(left), D(right)) => nanoseconds(left.wrapping_rem(right)),
        ("modulo", S(left), S(right)) => match (whole(left), whole(right)) {
            _ if right == 0.0 => zero(),
            (Some(left), Some(right)) => from_float(left.wrapping_rem(right) as f64),
            _ => not_whole(),
        },
        _ => failed(function, "Types mismatch"),
    }
}

/// A float that is a whole int64.
fn whole(float: f64) -> Option<i64> {
    let whole = float_to_i64_amd64(float);
    (whole as f64 == float).then_some(whole)
}

/// docs/spec/jmespath.md §8.1
fn sum(list: Option<&Datum>) -> Evaluated {
    let items = match list {
        Some(Datum::Json(Value::Array(items))) => items.as_slice(),
        _ => return failed("sum", "Types mismatch"),
    };
    let Some((first, rest)) = items.split_first() else {
        return failed("sum", "at least one element in the array is required");
    };
    let mut total = Datum::Json(first.clone());
    for item in rest {
        let left = operand("sum", Some(&total))?;
        let right = operand("sum", Some(&Datum::Json(item.clone())))?;
        total = combine("sum", "add", left, right)?;
    }
    Ok(total)
}

fn round(value: f64, digits: f64) -> Evaluated {
    if whole(digits).is_none() || digits.abs() >= 9_223_372_036_854_775_808.0 {
        return failed("round", "Non-integer argument(s) passed for round off");
    }
    if digits < 0.0 {
        return failed(
            "round",
            "%!d(MISSING) argument is out of bounds (%!d(MISSING))",
        );
    }
    let power = 10_f64.powf(digits);
    from_float((value * power).round() / power)
}
