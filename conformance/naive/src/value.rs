//! Values as Go holds them: `serde_json::Value`, whose integers are Go's int64 and whose
//! other numbers are float64 (docs/spec/patterns.md §1, docs/spec/conditions.md §3.2).

use kpvm_semantics::limits::Limits;
use kpvm_semantics::number::{format_json_float, format_substituted_float, format_v_float};
use kpvm_semantics::quote::append_json;
use kpvm_syntax::json::{Error, Numbers, Options, read};
use kpvm_syntax::tree::DuplicateKeys;
use serde_json::{Map, Number, Value};

use crate::failure::UNFIXED;

/// A number by its Go type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Num {
    /// int64
    Int(i64),
    /// float64
    Float(f64),
}

/// Go's number.
pub(crate) fn number(number: &Number) -> Num {
    match number.as_i64() {
        Some(whole) => Num::Int(whole),
        None => Num::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// A decoded resource: integers beyond int64 are float64 (docs/spec/patterns.md §1).
pub fn decoded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            Value::from(number.as_f64().unwrap_or_default())
        }
        Value::Array(items) => items.iter().map(decoded).collect(),
        Value::Object(members) => each(members, decoded),
        other => other.clone(),
    }
}

/// Why a text is not a JSON value.
pub(crate) enum NotJson {
    /// It is empty.
    Empty,
    /// A number, as written, does not fit.
    Number(String),
    /// Anything else, in words that are not fixed here.
    Syntax,
}

/// Reads JSON with exact floats; integers are int64 where they fit (docs/spec/patterns.md
/// §1).
pub(crate) fn parse_json(text: &str) -> Result<Value, NotJson> {
    if text.trim_matches([' ', '\t', '\n', '\r']).is_empty() {
        return Err(NotJson::Empty);
    }
    let options = Options {
        duplicate_keys: DuplicateKeys::LastWins,
        numbers: Numbers::Float,
        limits: &Limits::default(),
    };
    match read(text, options) {
        Ok((tree, _)) => {
            let spelled = serde_json::from_str(text).unwrap_or_default();
            Ok(with_integers(&tree.to_json(), &spelled))
        }
        Err(Error::NumberRange(span)) => {
            let number = text.get(span.start as usize..span.end as usize);
            Err(NotJson::Number(number.unwrap_or_default().to_owned()))
        }
        Err(_) => Err(NotJson::Syntax),
    }
}

/// The floats, exactly as read, with an integer wherever one was spelled.
fn with_integers(floats: &Value, spelled: &Value) -> Value {
    match (floats, spelled) {
        (Value::Number(_), Value::Number(number)) if number.is_i64() => spelled.clone(),
        (Value::Array(floats), Value::Array(spelled)) => {
            let pairs = floats.iter().zip(spelled);
            pairs
                .map(|(float, spelled)| with_integers(float, spelled))
                .collect()
        }
        (Value::Object(floats), Value::Object(spelled)) => {
            let member = |(key, float): (&String, &Value)| {
                let spelled = spelled.get(key).unwrap_or(&Value::Null);
                (key.clone(), with_integers(float, spelled))
            };
            floats.iter().map(member).collect()
        }
        _ => floats.clone(),
    }
}

/// A decoded resource, or nothing if the text is not JSON.
pub fn read_object(text: &str) -> Option<Value> {
    parse_json(text).ok()
}

impl NotJson {
    /// Go's text as far as it is fixed (docs/spec/jmespath.md §2).
    pub(crate) fn text(self) -> String {
        match self {
            Self::Empty => "unexpected end of JSON input".into(),
            Self::Number(number) => {
                format!("json: cannot unmarshal number {number} into Go value of type float64")
            }
            Self::Syntax => UNFIXED.into(),
        }
    }
}

/// What a value is after it went through JSON: every number is a float64
/// (docs/spec/conditions.md §3.2).
pub(crate) fn through_json(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64().unwrap_or_default()),
        Value::Array(items) => items.iter().map(through_json).collect(),
        Value::Object(members) => each(members, through_json),
        other => other.clone(),
    }
}

fn each(members: &Map<String, Value>, change: impl Fn(&Value) -> Value) -> Value {
    let members = members.iter();
    members
        .map(|(key, value)| (key.clone(), change(value)))
        .collect()
}

/// Go's name of a value's type, `%T` (docs/spec/patterns.md §1).
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(given) => match number(given) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's `%v` (docs/spec/patterns.md §12.5).
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(given) => match number(given) {
            Num::Int(whole) => whole.to_string(),
            Num::Float(float) => {
                let mut text = String::new();
                format_v_float(float, &mut text);
                text
            }
        },
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| format!("{key}:{}", go_text(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

/// JSON as `to_string` prints it: `encoding/json` (docs/spec/jmespath.md §6).
pub(crate) fn json_text(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out, format_json_float, append_json);
    out
}

/// JSON as a variable inside a longer text prints it: json-iterator
/// (docs/spec/conditions.md §4.4).
pub(crate) fn substituted_text(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out, format_substituted_float, |text, out| {
        let mut quoted = String::new();
        append_json(text, &mut quoted);
        // A doubled backslash never starts one of these escapes.
        let mut characters = quoted.chars();
        while let Some(character) = characters.next() {
            match (character, character == '\\') {
                (_, true) => match characters.next() {
                    Some('b') => out.push_str("\\u0008"),
                    Some('f') => out.push_str("\\u000c"),
                    Some(other) => out.extend(['\\', other]),
                    None => out.push('\\'),
                },
                (other, false) => out.push(other),
            }
        }
    });
    out
}

fn write_json(
    value: &Value,
    out: &mut String,
    float: fn(f64, &mut String),
    text: fn(&str, &mut String),
) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(&value.to_string()),
        Value::Number(given) => match number(given) {
            Num::Int(whole) => out.push_str(&whole.to_string()),
            Num::Float(value) => float(value, out),
        },
        Value::String(value) => text(value, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(item, out, float, text);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (key, item)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                text(key, out);
                out.push(':');
                write_json(item, out, float, text);
            }
            out.push('}');
        }
    }
}
