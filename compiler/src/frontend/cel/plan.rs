//! Errors that cel-go finds when it plans a program that type-checks: constants that no
//! map or list has for a key, conversions of constants that fail, patterns that are none.

use kpvm_format::cel::Function;
use kpvm_semantics::{duration, go_regex, number, timestamp};

use super::ast::{Expr, Literal, Node};
use super::check::{Checked, Reference};
use super::literals::children;

/// A value that cel-go computes when it plans.
#[derive(Debug, Clone, PartialEq)]
enum Constant {
    Null,
    Bool,
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    Timestamp,
    Duration,
    Type,
    List,
    Map,
}

/// The first error of planning, if there is one.
pub(super) fn plan_error(expression: &Expr, checked: &Checked) -> Option<String> {
    constant(expression, checked).err()
}

/// The value of an expression if it is constant to cel-go.
fn constant(expression: &Expr, checked: &Checked) -> Result<Option<Constant>, String> {
    let mut parts = Vec::new();
    for child in children(expression) {
        parts.push(constant(child, checked)?);
    }
    let all_constant = parts.iter().all(Option::is_some);
    Ok(match &expression.node {
        Node::Literal(literal) => Some(of_literal(literal)),
        Node::Ident(_) | Node::Select { .. } => {
            matches!(checked.reference(expression), Some(Reference::Type(_)))
                .then_some(Constant::Type)
        }
        Node::List(items) if all_constant && items.iter().all(|item| !item.optional) => {
            Some(Constant::List)
        }
        Node::Map(entries) if all_constant && entries.iter().all(|entry| !entry.optional) => {
            Some(Constant::Map)
        }
        Node::Call { .. } => {
            let Some(Reference::Function { function, method }) = checked.reference(expression)
            else {
                return Ok(None);
            };
            // The name in front of a function of a namespace is no argument.
            let has_target = matches!(
                &expression.node,
                Node::Call {
                    target: Some(_),
                    ..
                }
            );
            let arguments = match has_target && !method {
                true => parts.get(1..).unwrap_or_default(),
                false => &parts,
            };
            call(*function, arguments)?
        }
        _ => None,
    })
}

fn of_literal(literal: &Literal) -> Constant {
    match literal {
        Literal::Null => Constant::Null,
        Literal::Bool(_) => Constant::Bool,
        Literal::Int(number) => Constant::Int(*number),
        Literal::Uint(number) => Constant::Uint(*number),
        Literal::Double(number) => Constant::Double(*number),
        Literal::String(text) => Constant::String(text.clone()),
        Literal::Bytes(bytes) => Constant::Bytes(bytes.clone()),
    }
}

fn call(function: Function, arguments: &[Option<Constant>]) -> Result<Option<Constant>, String> {
    match (function, arguments) {
        (Function::Index | Function::OptionalIndex, [_, Some(index)]) => {
            check_index(index)?;
            Ok(None)
        }
        (Function::Matches | Function::Find | Function::FindAll, [_, Some(pattern), ..]) => {
            if let Constant::String(pattern) = pattern {
                go_regex::translate(pattern).map_err(|problem| problem.to_string())?;
            }
            Ok(None)
        }
        (Function::ToDyn, [value]) => Ok(value.clone()),
        (Function::TypeOf, [Some(_)]) => Ok(Some(Constant::Type)),
        (_, [Some(value)]) => convert(function, value),
        _ => Ok(None),
    }
}

fn check_index(index: &Constant) -> Result<(), String> {
    let ty = match index {
        Constant::String(_)
        | Constant::Int(_)
        | Constant::Uint(_)
        | Constant::Double(_)
        | Constant::Bool => return Ok(()),
        Constant::Null => "types.Null",
        Constant::Bytes(_) => "types.Bytes",
        Constant::Timestamp => "types.Timestamp",
        Constant::Duration => "types.Duration",
        Constant::Type => "*types.Type",
        Constant::List => "*types.baseList",
        Constant::Map => "*types.baseMap",
    };
    Err(format!("invalid qualifier type: {ty}"))
}

fn type_name(constant: &Constant) -> &'static str {
    match constant {
        Constant::Null => "null_type",
        Constant::Bool => "bool",
        Constant::Int(_) => "int",
        Constant::Uint(_) => "uint",
        Constant::Double(_) => "double",
        Constant::String(_) => "string",
        Constant::Bytes(_) => "bytes",
        Constant::Timestamp => "google.protobuf.Timestamp",
        Constant::Duration => "google.protobuf.Duration",
        Constant::Type => "type",
        Constant::List => "list",
        Constant::Map => "map",
    }
}

/// Converts a constant; `None` for functions that are no conversions.
fn convert(function: Function, value: &Constant) -> Result<Option<Constant>, String> {
    use Constant as C;
    let failed = |to: &str| {
        let from = type_name(value);
        format!("type conversion error from '{from}' to '{to}'")
    };
    let integer_overflow = || "integer overflow".to_owned();
    let unsigned_overflow = || "unsigned integer overflow".to_owned();
    let converted = match (function, value) {
        (Function::ToBool, C::Bool) => C::Bool,
        (Function::ToBool, C::String(text)) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => C::Bool,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => C::Bool,
            _ => return Err(failed("bool")),
        },
        (Function::ToInt, C::Int(number)) => C::Int(*number),
        (Function::ToInt, C::Uint(number)) => {
            C::Int(i64::try_from(*number).map_err(|_| integer_overflow())?)
        }
        (Function::ToInt, C::Double(number)) => {
            const BOUND: f64 = 9_223_372_036_854_775_808.0;
            if number.is_nan() || number.abs() >= BOUND {
                return Err(integer_overflow());
            }
            C::Int(*number as i64)
        }
        (Function::ToInt, C::String(text)) => {
            C::Int(number::parse_go_int(text).ok_or_else(|| failed("int"))?)
        }
        // Which number does not matter: no conversion of it fails that matters here.
        (Function::ToInt, C::Timestamp | C::Duration) => C::Int(0),
        (Function::ToUint, C::Uint(number)) => C::Uint(*number),
        (Function::ToUint, C::Int(number)) => {
            C::Uint(u64::try_from(*number).map_err(|_| unsigned_overflow())?)
        }
        (Function::ToUint, C::Double(number)) => {
            const BOUND: f64 = 18_446_744_073_709_551_616.0;
            if !(*number >= 0.0 && *number < BOUND) {
                return Err(unsigned_overflow());
            }
            C::Uint(*number as u64)
        }
        (Function::ToUint, C::String(text)) => {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.then(|| text.parse().ok()).flatten();
            C::Uint(number.ok_or_else(|| failed("uint"))?)
        }
        (Function::ToDouble, C::Double(number)) => C::Double(*number),
        (Function::ToDouble, C::Int(number)) => C::Double(*number as f64),
        (Function::ToDouble, C::Uint(number)) => C::Double(*number as f64),
        (Function::ToDouble, C::String(text)) => {
            C::Double(number::parse_go_float(text).ok_or_else(|| failed("double"))?)
        }
        (Function::ToBytes, C::Bytes(bytes)) => C::Bytes(bytes.clone()),
        (Function::ToBytes, C::String(text)) => C::Bytes(text.clone().into_bytes()),
        (Function::ToString, C::Bytes(bytes)) => match String::from_utf8(bytes.clone()) {
            Ok(text) => C::String(text),
            Err(_) => return Err("invalid UTF-8 in bytes, cannot convert to string".to_owned()),
        },
        (Function::ToString, C::String(text)) => C::String(text.clone()),
        // Texts of other constants are patterns or numbers in no sane policy.
        (
            Function::ToString,
            C::Bool | C::Int(_) | C::Uint(_) | C::Double(_) | C::Timestamp | C::Duration,
        ) => return Ok(None),
        (Function::ToTimestamp, C::Timestamp) => C::Timestamp,
        (Function::ToTimestamp, C::Int(seconds)) => {
            let point = timestamp::Timestamp::new(*seconds, 0, 0);
            point.map_err(|problem| problem.to_string())?;
            C::Timestamp
        }
        (Function::ToTimestamp, C::String(text)) => {
            let point = timestamp::parse(text).ok_or_else(|| failed("google.protobuf.Timestamp"));
            point?.map_err(|problem| problem.to_string())?;
            C::Timestamp
        }
        (Function::ToDuration, C::Duration) => C::Duration,
        (Function::ToDuration, C::String(text)) => {
            let parsed = duration::parse(text);
            parsed.ok_or_else(|| failed("google.protobuf.Duration"))?;
            C::Duration
        }
        (
            Function::ToBool
            | Function::ToInt
            | Function::ToUint
            | Function::ToDouble
            | Function::ToBytes
            | Function::ToString
            | Function::ToTimestamp
            | Function::ToDuration,
            other,
        ) => {
            let (name, ty) = (function.name(), type_name(other));
            return Err(format!("no such overload: {name}({ty})"));
        }
        _ => return Ok(None),
    };
    Ok(Some(converted))
}
