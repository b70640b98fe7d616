//! Conversions between types (docs/spec/cel.md §3.8).

use kpvm_format::cel::Function;

use super::time;
use super::value::{Value, look, no_overload};
use crate::document::{Extended, NodeId, Opaque};
use crate::function::{FunctionError, Values};
use kpvm_semantics::quote::go_quote;

type Outcome = Result<NodeId, FunctionError>;

/// Doubles strictly between minus and plus this value round to an int64.
const INT_BOUND: f64 = 9_223_372_036_854_775_808.0;

fn failed(from: &Value<'_>, to: &str) -> FunctionError {
    let from = from.full_type_name();
    FunctionError::Failed(format!("type conversion error from '{from}' to '{to}'"))
}

/// Calls a conversion function. A second argument is the name of the only type that the
/// overload accepts which the expression was resolved to.
pub(crate) fn convert(
    function: Function,
    argument: NodeId,
    wanted: Option<NodeId>,
    values: &mut Values<'_>,
) -> Outcome {
    let view = values.view();
    let value = look(&view, argument);
    if let Some(wanted) = wanted
        && view.str(wanted) != value.type_name()
    {
        let (name, found) = (function.name(), value.full_type_name());
        return Err(FunctionError::Failed(format!(
            "no such overload: {name}({found})"
        )));
    }
    match function {
        Function::ToBool => match &value {
            Value::Bool(_) => Ok(argument),
            Value::String(_) => match value.text().unwrap_or("") {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => values.new_bool(true),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => values.new_bool(false),
                _ => Err(failed(&value, "bool")),
            },
            _ => Err(no_overload()),
        },
        Function::ToBytes => match value {
            Value::Bytes(_) => Ok(argument),
            Value::String(text) => {
                let bytes = text.to_vec();
                values.new_bytes(&bytes)
            }
            _ => Err(no_overload()),
        },
        Function::ToDouble => match &value {
            Value::Double(_) => Ok(argument),
            Value::Int(number) => values.new_float(*number as f64),
            Value::Uint(number) => values.new_float(*number as f64),
            Value::String(_) => {
                let number = kpvm_semantics::number::parse_go_float(value.text().unwrap_or(""));
                let number = number.ok_or_else(|| failed(&value, "double"))?;
                values.new_float(number)
            }
            _ => Err(no_overload()),
        },
        Function::ToInt => match &value {
            Value::Int(_) => Ok(argument),
            Value::Uint(number) => {
                let number = i64::try_from(*number);
                values.new_int(number.map_err(|_| overflow())?)
            }
            Value::Double(number) => {
                if number.is_nan() || number.abs() >= INT_BOUND {
                    return Err(overflow());
                }
                values.new_int(*number as i64)
            }
            Value::Timestamp(seconds, ..) => values.new_int(*seconds),
            Value::Duration(nanoseconds) => values.new_int(*nanoseconds),
            Value::String(_) => {
                let number = kpvm_semantics::number::parse_go_int(value.text().unwrap_or(""));
                let number = number.ok_or_else(|| failed(&value, "int"))?;
                values.new_int(number)
            }
            _ => Err(no_overload()),
        },
        Function::ToUint => match &value {
            Value::Uint(_) => Ok(argument),
            Value::Int(number) => {
                let number = u64::try_from(*number);
                values.new_uint(number.map_err(|_| unsigned_overflow())?)
            }
            Value::Double(number) => {
                if !(*number > -1.0 && *number < INT_BOUND * 2.0) {
                    return Err(unsigned_overflow());
                }
                values.new_uint(*number as u64)
            }
            Value::String(_) => {
                let text = value.text().unwrap_or("");
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let number = digits.then(|| text.parse::<u64>().ok()).flatten();
                let number = number.ok_or_else(|| failed(&value, "uint"))?;
                values.new_uint(number)
            }
            _ => Err(no_overload()),
        },
        Function::ToString => match &value {
            Value::String(_) => Ok(argument),
            Value::Bool(value) => values.new_text(if *value { "true" } else { "false" }),
            Value::Int(number) => values.new_text(&number.to_string()),
            Value::Uint(number) => values.new_text(&number.to_string()),
            Value::Double(number) => values.new_text(&double_text(*number)),
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    let text = text.to_owned();
                    values.new_text(&text)
                }
                Err(_) => Err(FunctionError::failed(
                    "invalid UTF-8 in bytes, cannot convert to string",
                )),
            },
            Value::Timestamp(seconds, nanos, offset) => {
                let text = kpvm_semantics::timestamp::text(*seconds, *nanos, *offset);
                values.new_text(&text)
            }
            Value::Duration(nanoseconds) => values.new_text(&time::duration_text(*nanoseconds)),
            Value::Opaque(Opaque::Ip | Opaque::Cidr, text) => {
                let text = (*text).to_owned();
                values.new_text(&text)
            }
            _ => Err(no_overload()),
        },
        Function::ToTimestamp => match &value {
            Value::Timestamp(..) => Ok(argument),
            Value::Int(seconds) => {
                let timestamp = time::from_seconds(*seconds, 0)?;
                values.new_extended(timestamp)
            }
            Value::String(_) => {
                let text = value.text().unwrap_or("");
                let timestamp = time::parse(text).ok_or_else(|| {
                    if !kpvm_semantics::timestamp::has_shape(text) {
                        let text = go_quote(text);
                        return FunctionError::Failed(format!("invalid RFC 3339 timestamp {text}"));
                    }
                    failed(&value, "google.protobuf.Timestamp")
                })??;
                values.new_extended(timestamp)
            }
            _ => Err(no_overload()),
        },
        Function::ToDuration => match &value {
            Value::Duration(_) => Ok(argument),
            Value::String(_) => {
                let nanoseconds = kpvm_semantics::duration::parse(value.text().unwrap_or(""))
                    .ok_or_else(|| failed(&value, "google.protobuf.Duration"))?;
                values.new_extended(Extended::Duration(nanoseconds))
            }
            _ => Err(no_overload()),
        },
        _ => Err(no_overload()),
    }
}

fn overflow() -> FunctionError {
    FunctionError::failed("integer overflow")
}

fn unsigned_overflow() -> FunctionError {
    FunctionError::failed("unsigned integer overflow")
}

/// A double as printed by Go's `%g`, with the fewest digits.
pub(crate) fn double_text(number: f64) -> String {
    let mut text = String::new();
    kpvm_semantics::number::format_v_float(number, &mut text);
    text
}
