//! Arithmetic on numbers, quantities and durations (docs/spec/jmespath.md §8).

use super::Outcome;
use super::values::Values;
use crate::document::{Kind, NodeId};
use kpvm_semantics::FunctionError;
use kpvm_semantics::duration;
use kpvm_semantics::exact_quantity::Quantity;
use kpvm_semantics::number::{float_to_i64_amd64, format_v_float};

/// Interpretation of an argument.
enum Operand {
    Scalar(f64),
    Quantity(Quantity),
    Duration(i64),
}

use Operand as O;

type Computed = Result<Operand, FunctionError>;

/// Text is parsed as a quantity first, then as a duration.
fn operand(values: &mut Values<'_>, id: NodeId, function: &str) -> Computed {
    let view = values.view();
    match view.kind(id) {
        Some(Kind::Float) => return Ok(O::Scalar(view.float(id).unwrap_or(f64::NAN))),
        Some(Kind::String) => {
            let text = view.str(id);
            if let Some(quantity) = Quantity::parse(text)? {
                return Ok(O::Quantity(quantity));
            }
            if let Some(nanoseconds) = kpvm_semantics::duration::parse(text) {
                return Ok(O::Duration(nanoseconds));
            }
        }
        _ => {}
    }
    Err(FunctionError::of(function, "invalid operand"))
}

fn operands(
    values: &mut Values<'_>,
    a: NodeId,
    b: NodeId,
    function: &str,
) -> Result<(Operand, Operand), FunctionError> {
    // Quantities have at most a few hundred digits.
    values.charge(8)?;
    let left = operand(values, a, function)?;
    Ok((left, operand(values, b, function)?))
}

fn result(values: &mut Values<'_>, operand: Operand) -> Outcome {
    match operand {
        O::Scalar(number) => values.new_float(number),
        O::Quantity(quantity) => values.new_text(&quantity.canonical()),
        O::Duration(nanoseconds) => values.new_text(&duration::format(nanoseconds)),
    }
}

fn mismatch(function: &str) -> FunctionError {
    FunctionError::of(function, "Types mismatch")
}

fn zero_divisor(function: &str) -> FunctionError {
    FunctionError::of(function, "Zero divisor passed")
}

/// A number of seconds as a duration, truncated to nanoseconds.
fn from_seconds(seconds: f64) -> Operand {
    O::Duration(float_to_i64_amd64(seconds * 1e9))
}

/// A scalar as a quantity, through its text.
fn as_quantity(number: f64) -> Result<Quantity, FunctionError> {
    let mut text = String::new();
    format_v_float(number, &mut text);
    Quantity::parse(&text)?.ok_or_else(|| {
        FunctionError::failed(
            "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )
    })
}

fn add_operands(left: &Operand, right: &Operand, function: &str) -> Computed {
    match (left, right) {
        (O::Scalar(left), O::Scalar(right)) => Ok(O::Scalar(left + right)),
        (O::Quantity(left), O::Quantity(right)) => left.add(right).map(O::Quantity),
        (O::Duration(left), O::Duration(right)) => Ok(O::Duration(left.wrapping_add(*right))),
        (O::Scalar(_) | O::Quantity(_) | O::Duration(_), _) => Err(mismatch(function)),
    }
}

pub(super) fn add(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let (left, right) = operands(values, a, b, "add")?;
    let sum = add_operands(&left, &right, "add")?;
    result(values, sum)
}

pub(super) fn subtract(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let difference = match operands(values, a, b, "subtract")? {
        (O::Scalar(left), O::Scalar(right)) => O::Scalar(left - right),
        (O::Quantity(left), O::Quantity(right)) => O::Quantity(left.add(&right.negated())?),
        (O::Duration(left), O::Duration(right)) => O::Duration(left.wrapping_sub(right)),
        (O::Scalar(_) | O::Quantity(_) | O::Duration(_), _) => return Err(mismatch("subtract")),
    };
    result(values, difference)
}

pub(super) fn multiply(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let product = match operands(values, a, b, "multiply")? {
        (O::Scalar(left), O::Scalar(right)) => O::Scalar(left * right),
        (O::Quantity(quantity), O::Scalar(number)) | (O::Scalar(number), O::Quantity(quantity)) => {
            O::Quantity(quantity.multiply(&as_quantity(number)?)?)
        }
        (O::Duration(duration), O::Scalar(number)) | (O::Scalar(number), O::Duration(duration)) => {
            from_seconds(duration::seconds(duration) * number)
        }
        (O::Quantity(_) | O::Duration(_), O::Quantity(_) | O::Duration(_)) => {
            return Err(mismatch("multiply"));
        }
    };
    result(values, product)
}

pub(super) fn divide(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let (left, right) = operands(values, a, b, "divide")?;
    let divisor = match (&left, &right) {
        (_, O::Scalar(number)) => *number,
        (O::Quantity(_), O::Quantity(quantity)) => quantity.approximate(),
        (O::Duration(_), O::Duration(duration)) => duration::seconds(*duration),
        (O::Scalar(_) | O::Quantity(_) | O::Duration(_), _) => return Err(mismatch("divide")),
    };
    if divisor == 0.0 {
        return Err(zero_divisor("divide"));
    }
    let quotient = match (left, right) {
        (O::Scalar(left), _) => O::Scalar(left / divisor),
        (O::Quantity(left), O::Scalar(right)) => O::Quantity(left.divide(&as_quantity(right)?)?),
        (O::Quantity(left), _) => O::Scalar(left.approximate() / divisor),
        (O::Duration(left), O::Scalar(_)) => from_seconds(duration::seconds(left) / divisor),
        (O::Duration(left), _) => O::Scalar(duration::seconds(left) / divisor),
    };
    result(values, quotient)
}

/// Two floats as whole numbers.
fn whole(left: f64, right: f64) -> Result<(i64, i64), FunctionError> {
    let (whole_left, whole_right) = (float_to_i64_amd64(left), float_to_i64_amd64(right));
    if whole_left as f64 != left || whole_right as f64 != right {
        return Err(FunctionError::of(
            "modulo",
            "Non-integer argument(s) passed for modulo",
        ));
    }
    if whole_right == 0 {
        return Err(zero_divisor("modulo"));
    }
    Ok((whole_left, whole_right))
}

pub(super) fn modulo(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let remainder = match operands(values, a, b, "modulo")? {
        (O::Scalar(_), O::Scalar(0.0)) => return Err(zero_divisor("modulo")),
        (O::Scalar(left), O::Scalar(right)) => {
            let (left, right) = whole(left, right)?;
            O::Scalar(left.wrapping_rem(right) as f64)
        }
        (O::Quantity(left), O::Quantity(right)) => {
            let (number, divisor) = whole(left.approximate(), right.approximate())?;
            O::Quantity(left.like(number.wrapping_rem(divisor)))
        }
        (O::Duration(_), O::Duration(0)) => return Err(zero_divisor("modulo")),
        (O::Duration(left), O::Duration(right)) => O::Duration(left.wrapping_rem(right)),
        (O::Scalar(_) | O::Quantity(_) | O::Duration(_), _) => return Err(mismatch("modulo")),
    };
    result(values, remainder)
}

/// A single item is returned unchanged, whatever it is.
pub(super) fn sum(values: &mut Values<'_>, list: NodeId) -> Outcome {
    let view = values.view();
    if view.is_entries(list) {
        return Err(mismatch("sum"));
    }
    let mut items = view.children(list);
    let Some(first) = items.next() else {
        return Err(FunctionError::of(
            "sum",
            "at least one element in the array is required",
        ));
    };
    if items.len() == 0 {
        return Ok(first);
    }
    let mut total = operand(values, first, "sum")?;
    for item in items {
        values.charge(8)?;
        let item = operand(values, item, "sum")?;
        total = add_operands(&total, &item, "sum")?;
    }
    result(values, total)
}

pub(super) fn round(values: &mut Values<'_>, number: NodeId, digits: NodeId) -> Outcome {
    let (number, digits) = (values.number(number), values.number(digits));
    // Beyond 64 bits, Go's conversion to an integer changes the number.
    let is_integer = digits.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&digits);
    if !is_integer {
        return Err(FunctionError::of(
            "round",
            "Non-integer argument(s) passed for round off",
        ));
    }
    if digits < 0.0 {
        // Kyverno's text lacks the numbers.
        return Err(FunctionError::of(
            "round",
            "%!d(MISSING) argument is out of bounds (%!d(MISSING))",
        ));
    }
    let power: f64 = if digits > 308.0 {
        f64::INFINITY
    } else {
        format!("1e{digits}").parse().unwrap_or(f64::INFINITY)
    };
    values.new_float((number * power).round() / power)
}
