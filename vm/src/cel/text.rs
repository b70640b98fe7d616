//! `format` and base64 (docs/spec/cel.md §3.9).

use std::fmt::Write;

use kpvm_format::cel::Function;

use super::convert::double_text;
use super::time::duration_text;
use super::value::{Value, look, no_overload};
use crate::document::{NodeId, View};
use crate::function::{FunctionError, Values, decode_base64, encode_base64};
use kpvm_semantics::timestamp::text as timestamp_text;

type Outcome = Result<NodeId, FunctionError>;

fn failed(text: String) -> FunctionError {
    FunctionError::Failed(text)
}

/// Name of a type in errors of `format`.
fn type_text(value: &Value<'_>) -> &'static str {
    match value.type_name() {
        "timestamp" => "google.protobuf.Timestamp",
        "duration" => "google.protobuf.Duration",
        name => name,
    }
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
        let parse_error =
            |what: String| failed(format!("could not parse formatting clause: {what}"));
        let mut precision = None;
        if let Some(after) = rest.strip_prefix('.') {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = after.split_at_checked(digits).unwrap_or(("", after));
            let number: usize = number
                .parse()
                .map_err(|_| parse_error("error while parsing precision".to_owned()))?;
            if number > 1000 {
                return Err(parse_error("precision too large".to_owned()));
            }
            precision = Some(number);
            rest = after;
        }
        let Some(verb) = rest.chars().next() else {
            return Err(parse_error("unexpected end of string".to_owned()));
        };
        rest = rest.get(verb.len_utf8()..).unwrap_or("");
        if !matches!(verb, 's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o') {
            return Err(parse_error(format!(
                "unrecognized formatting clause \"{verb}\""
            )));
        }
        let argument = items.at(next);
        if argument.is_missing() {
            return Err(failed(format!("index {next} out of range")));
        }
        next += 1;
        clause(verb, precision, &view, argument, &mut out)
            .map_err(|text| failed(format!("error during formatting: {text}")))?;
        if out.len() > most {
            break;
        }
    }
    out.push_str(rest);
    values.new_text(&out)
}

fn clause(
    verb: char,
    precision: Option<usize>,
    view: &View<'_>,
    argument: NodeId,
    out: &mut String,
) -> Result<(), String> {
    let value = look(view, argument);
    let given = format!(", was given {}", type_text(&value));
    let mut push = |text: String| {
        out.push_str(&text);
        Ok(())
    };
    match verb {
        's' => show(view, argument, out),
        'd' => match value {
            Value::Int(number) => push(number.to_string()),
            Value::Uint(number) => push(number.to_string()),
            Value::Double(number) if !number.is_finite() => push(special(number).to_owned()),
            _ => Err(format!(
                "decimal clause can only be used on integers{given}"
            )),
        },
        'f' | 'e' => {
            let number = match value {
                Value::Int(number) => number as f64,
                Value::Uint(number) => number as f64,
                Value::Double(number) => number,
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
            if !number.is_finite() {
                push(special(number).to_owned())
            } else if verb == 'f' {
                push(format!("{number:.precision$}"))
            } else {
                let text = format!("{number:.precision$e}");
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                let sign = if exponent < 0 { '-' } else { '+' };
                push(format!("{mantissa}e{sign}{:02}", exponent.abs()))
            }
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

fn special(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Parts of a list or map still to be written.
enum Step {
    Value(NodeId),
    Text(&'static str),
    Key(String),
}

/// `%s`
fn show(view: &View<'_>, value: NodeId, out: &mut String) -> Result<(), String> {
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
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if value { "true" } else { "false" }),
            Value::Int(number) => out.push_str(&number.to_string()),
            Value::Uint(number) => out.push_str(&number.to_string()),
            Value::Double(number) if !number.is_finite() => out.push_str(special(number)),
            Value::Double(number) => out.push_str(&double_text(number)),
            Value::String(bytes) | Value::Bytes(bytes) => {
                out.push_str(&String::from_utf8_lossy(bytes));
            }
            Value::Timestamp(seconds, nanos) => out.push_str(&timestamp_text(seconds, nanos)),
            Value::Duration(nanos) => out.push_str(&duration_text(nanos)),
            Value::Type(name) => out.push_str(name),
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
                let mut entries: Vec<(String, NodeId)> = Vec::new();
                match look(view, id) {
                    Value::Table(table) => {
                        for place in (0..table.len()).step_by(2) {
                            let mut key = String::new();
                            show_key(view, table.at(place), &mut key);
                            entries.push((key, table.at(place + 1)));
                        }
                    }
                    Value::Map(members) => {
                        for member in members {
                            entries.push((view.key_str(member).to_owned(), member));
                        }
                    }
                    _ => {}
                }
                entries.sort_by(|left, right| left.0.cmp(&right.0));
                steps.push(Step::Text("}"));
                for (index, (key, value)) in entries.into_iter().enumerate().rev() {
                    steps.push(Step::Value(value));
                    steps.push(Step::Text(": "));
                    steps.push(Step::Key(key));
                    if index > 0 {
                        steps.push(Step::Text(", "));
                    }
                }
                steps.push(Step::Text("{"));
            }
            other @ (Value::Optional(_) | Value::Opaque(..) | Value::Error(_)) => {
                return Err(format!(
                    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
                    type_text(&other)
                ));
            }
        }
    }
    Ok(())
}

fn show_key(view: &View<'_>, key: NodeId, out: &mut String) {
    out.push_str(&super::access::key_text(&look(view, key)));
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
