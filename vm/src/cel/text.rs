//! `format` and base64 (docs/spec/cel.md §3.9).

use std::fmt::Write;

use kpvm_format::cel::Function;

use super::convert::double_text;
use super::time::duration_text;
use super::value::{Value, look, no_overload};
use crate::document::{NodeId, View};
use crate::function::{FunctionError, Values, decode_base64, encode_base64};
use kpvm_semantics::cel_format::{Clause, clause};
use kpvm_semantics::quote::go_quote;
use kpvm_semantics::timestamp::text as timestamp_text;

type Outcome = Result<NodeId, FunctionError>;

fn failed(text: String) -> FunctionError {
    FunctionError::Failed(text)
}

/// `template.format(list)`
pub(crate) fn format(template: NodeId, list: NodeId, values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let (Value::String(_), Value::List(items)) = (look(&view, template), look(&view, list)) else {
        return Err(no_overload());
    };
    let most = values.limits.string_bytes;
    let mut out = String::new();
    let mut rest = view.str(template);
    let mut next = 0usize;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let argument = items.at(next);
        if argument.is_missing() {
            return Err(failed(format!("index {next} out of range")));
        }
        let parsed = clause(rest).map_err(failed)?;
        rest = parsed.rest;
        next += 1;
        write_clause(parsed, &view, argument, &mut out)
            .map_err(|text| failed(format!("error during formatting: {text}")))?;
        if out.len() > most {
            break;
        }
    }
    out.push_str(rest);
    values.new_text(&out)
}

fn write_clause(
    Clause {
        verb, precision, ..
    }: Clause<'_>,
    view: &View<'_>,
    argument: NodeId,
    out: &mut String,
) -> Result<(), String> {
    let value = look(view, argument);
    let given = format!(", was given {}", value.full_type_name());
    let mut push = |text: String| {
        out.push_str(&text);
        Ok(())
    };
    match verb {
        's' => show(view, argument, out),
        'd' => match value {
            Value::Int(number) => push(number.to_string()),
            Value::Uint(number) => push(number.to_string()),
            _ => Err(format!(
                "decimal clause can only be used on integers{given}"
            )),
        },
        'f' | 'e' => {
            let number = match (value.text(), value) {
                (_, Value::Double(number)) => number,
                (Some("NaN"), _) => f64::NAN,
                (Some("Infinity"), _) => f64::INFINITY,
                (Some("-Infinity"), _) => f64::NEG_INFINITY,
                _ => {
                    let name = if verb == 'f' {
                        "fixed-point"
                    } else {
                        "scientific"
                    };
                    return Err(format!("{name} clause can only be used on doubles{given}"));
                }
            };
            let precision = precision.unwrap_or(6);
            push(match verb {
                'f' => fixed(number, precision),
                // cel-go takes the precision for the width.
                _ => format!("{:>precision$}", scientific(number)),
            })
        }
        'b' => match value {
            Value::Int(number) if number < 0 => push(format!("-{:b}", number.unsigned_abs())),
            Value::Int(number) => push(format!("{number:b}")),
            Value::Uint(number) => push(format!("{number:b}")),
            Value::Bool(value) => push(u8::from(value).to_string()),
            _ => Err(format!(
                "only integers and bools can be formatted as binary{given}"
            )),
        },
        'o' => match value {
            Value::Int(number) if number < 0 => push(format!("-{:o}", number.unsigned_abs())),
            Value::Int(number) => push(format!("{number:o}")),
            Value::Uint(number) => push(format!("{number:o}")),
            _ => Err(format!("octal clause can only be used on integers{given}")),
        },
        _ => {
            let text = match value {
                Value::Int(number) if number < 0 => format!("-{:x}", number.unsigned_abs()),
                Value::Int(number) => format!("{number:x}"),
                Value::Uint(number) => format!("{number:x}"),
                Value::String(bytes) | Value::Bytes(bytes) => {
                    let mut hex = String::with_capacity(bytes.len() * 2);
                    for byte in bytes {
                        let _writing_succeeds = write!(hex, "{byte:02x}");
                    }
                    hex
                }
                _ => {
                    return Err(format!(
                        "only integers, byte buffers, and strings can be formatted as hex{given}"
                    ));
                }
            };
            push(if verb == 'X' {
                text.to_ascii_uppercase()
            } else {
                text
            })
        }
    }
}

/// A number that is none, as written in English; `None` for any other.
fn special(number: f64) -> Option<String> {
    (!number.is_finite()).then(|| match (number.is_nan(), number > 0.0) {
        (true, _) => "NaN".to_owned(),
        (_, true) => "∞".to_owned(),
        (_, false) => "-∞".to_owned(),
    })
}

/// A number with decimals, its thousands grouped.
fn fixed(number: f64, precision: usize) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    let text = format!("{number:.precision$}");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = match digits.find('.') {
        Some(point) => digits.split_at(point),
        None => (digits, ""),
    };
    let mut out = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(fraction);
    out
}

/// A number as a power of ten: `1.234567×10⁰⁴`.
fn scientific(number: f64) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    let text = format!("{number:.6e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut out = format!("{mantissa}×10");
    if exponent < 0 {
        out.push('⁻');
    }
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    for digit in format!("{:02}", exponent.abs()).chars() {
        let digit = digit
            .to_digit(10)
            .and_then(|digit| digits.get(digit as usize));
        out.extend(digit);
    }
    out
}

/// Parts of a list or map still to be written.
enum Step {
    Value(NodeId),
    Text(&'static str),
    Key(String),
}

/// `%s`: the value itself, and members of lists and maps as literals.
fn show(view: &View<'_>, value: NodeId, out: &mut String) -> Result<(), String> {
    match look(view, value) {
        Value::List(_) | Value::Map(_) | Value::Table(_) => show_literal(view, value, out),
        value => {
            out.push_str(&shown(&value)?);
            Ok(())
        }
    }
}

/// A value that is no container, as `string` converts it.
fn shown(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => double_text(*number),
        Value::String(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                let problem = "invalid UTF-8 in bytes, cannot convert to string";
                return Err(format!(
                    "could not convert argument \"{problem}\" to string"
                ));
            }
        },
        Value::Timestamp(seconds, nanos, offset) => timestamp_text(*seconds, *nanos, *offset),
        Value::Duration(nanos) => duration_text(*nanos),
        Value::Type(name) => (*name).to_owned(),
        other => {
            return Err(format!(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
                other.full_type_name()
            ));
        }
    })
}

/// A list or map as a literal of CEL.
fn show_literal(view: &View<'_>, value: NodeId, out: &mut String) -> Result<(), String> {
    let mut steps = vec![Step::Value(value)];
    while let Some(step) = steps.pop() {
        let id = match step {
            Step::Text(text) => {
                out.push_str(text);
                continue;
            }
            Step::Key(key) => {
                out.push_str(&key);
                continue;
            }
            Step::Value(id) => id,
        };
        match look(view, id) {
            Value::List(items) => {
                steps.push(Step::Text("]"));
                for (index, item) in items.enumerate().collect::<Vec<_>>().into_iter().rev() {
                    steps.push(Step::Value(item));
                    if index > 0 {
                        steps.push(Step::Text(", "));
                    }
                }
                steps.push(Step::Text("["));
            }
            Value::Map(_) | Value::Table(_) => {
                let mut entries = entries(view, id)?;
                entries.sort_by(|left, right| left.0.cmp(&right.0));
                steps.push(Step::Text("}"));
                for (index, (key, value)) in entries.into_iter().enumerate().rev() {
                    steps.push(Step::Value(value));
                    steps.push(Step::Text(":"));
                    steps.push(Step::Key(key));
                    if index > 0 {
                        steps.push(Step::Text(", "));
                    }
                }
                steps.push(Step::Text("{"));
            }
            value => out.push_str(&literal(&value)?),
        }
    }
    Ok(())
}

/// A member of a list or map that is no container.
fn literal(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::String(_) => go_quote(&shown(value)?),
        Value::Bytes(_) => format!("b{}", go_quote(&shown(value)?)),
        Value::Timestamp(..) => format!("timestamp({})", go_quote(&shown(value)?)),
        Value::Duration(_) => format!("duration({})", go_quote(&shown(value)?)),
        Value::Double(number) if number.is_finite() => format!("{number:.6}"),
        Value::Double(_) => go_quote(&shown(value)?),
        Value::Optional(_) | Value::Opaque(..) | Value::Error(_) => {
            return Err(format!(
                "no formatting function for {}",
                value.full_type_name()
            ));
        }
        value => shown(value)?,
    })
}

/// Keys, as written, and values of a map.
fn entries(view: &View<'_>, map: NodeId) -> Result<Vec<(String, NodeId)>, String> {
    let mut entries = Vec::new();
    match look(view, map) {
        Value::Table(table) => {
            for place in (0..table.len()).step_by(2) {
                let key = look(view, table.at(place));
                let key = match &key {
                    Value::String(_) => go_quote(&shown(&key)?),
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) => shown(&key)?,
                    other => {
                        return Err(format!(
                            "no formatting function for map key of type {}",
                            other.full_type_name()
                        ));
                    }
                };
                entries.push((key, table.at(place + 1)));
            }
        }
        Value::Map(members) => {
            for member in members {
                entries.push((go_quote(view.key_str(member)), member));
            }
        }
        _ => {}
    }
    Ok(entries)
}

/// `base64.encode` and `base64.decode`
pub(crate) fn base64(function: Function, operand: NodeId, values: &mut Values<'_>) -> Outcome {
    match (function, look(&values.view(), operand)) {
        (Function::Base64Encode, Value::Bytes(bytes)) => {
            let text = encode_base64(bytes);
            values.new_text(&text)
        }
        (Function::Base64Decode, Value::String(text)) => {
            let mut padded = text.to_vec();
            // Missing padding is accepted.
            while padded.len() % 4 != 0 && !text.ends_with(b"=") {
                padded.push(b'=');
            }
            let bytes = decode_base64(&padded)
                .map_err(|at| failed(format!("illegal base64 data at input byte {at}")))?;
            values.new_bytes(&bytes)
        }
        _ => Err(no_overload()),
    }
}
