//! Kyverno's libraries that need no outside data (docs/spec/cel.md §6.7).

use kpvm_format::cel::Function;
use kpvm_format::function::Function as Jmespath;

use super::time;
use super::value::{Value, look, no_overload};
use crate::document::{Kind, NodeId, Opaque};
use crate::function::{self, FunctionError, Values};
use kpvm_semantics::image_name::ImageName;
use kpvm_semantics::quote::quote_json;

type Outcome = Result<NodeId, FunctionError>;

/// Calls a function of Kyverno's libraries.
pub(crate) fn call(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let shown: Vec<Value<'_>> = arguments.iter().map(|id| look(&view, *id)).collect();
    let same = match function {
        Function::Md5 | Function::HashMd5 => Some(Jmespath::Md5),
        Function::Sha1 | Function::HashSha1 => Some(Jmespath::Sha1),
        Function::Sha256 | Function::HashSha256 => Some(Jmespath::Sha256),
        Function::JsonUnmarshal => Some(Jmespath::ParseJson),
        Function::YamlParse => Some(Jmespath::ParseYaml),
        Function::X509Decode => Some(Jmespath::X509Decode),
        _ => None,
    };
    match (function, shown.as_slice()) {
        (_, [Value::String(_)]) if same.is_some() => {
            let function = same.ok_or_else(no_overload)?;
            function::call(function, arguments, values)
        }
        (Function::JsonUnmarshal, [Value::Optional(Some(inner))]) => {
            call(function, &[*inner], values)
        }
        (Function::JsonUnmarshal, [value]) => Err(FunctionError::Failed(match value {
            Value::Int(_) | Value::Uint(_) => {
                let from = value.type_name();
                format!("unsupported type conversion from '{from}' to string")
            }
            Value::Type(_) => "type conversion not supported for 'type'".to_owned(),
            other => {
                let from = match other {
                    Value::Double(_) => "Double",
                    Value::Bytes(_) => "Bytes",
                    Value::Null => "'null_type'",
                    Value::Timestamp(..) => "'Timestamp'",
                    Value::Duration(_) => "'Duration'",
                    other => other.type_name(),
                };
                format!("type conversion error from {from} to 'string'")
            }
        })),
        (Function::JsonMarshal, [Value::Optional(Some(inner))]) => {
            call(function, &[*inner], values)
        }
        (Function::JsonMarshal, [Value::Uint(number)]) => values.new_text(&number.to_string()),
        (Function::JsonMarshal, [Value::Duration(nanoseconds)]) => {
            values.new_text(&nanoseconds.to_string())
        }
        (Function::JsonMarshal, [Value::Bytes(bytes)]) => {
            let text = quote_json(&function::encode_base64(bytes));
            values.new_text(&text)
        }
        (Function::JsonMarshal, [Value::Timestamp(seconds, nanos, offset)]) => {
            let text = kpvm_semantics::timestamp::text(*seconds, *nanos, *offset);
            values.new_text(&quote_json(&text))
        }
        (
            Function::JsonMarshal,
            [Value::Type(text) | Value::Opaque(Opaque::Ip | Opaque::Cidr | Opaque::Semver, text)],
        ) => {
            let text = quote_json(text);
            values.new_text(&text)
        }
        (Function::JsonMarshal, [_]) => {
            let text = function::json_text(values, arguments[0])?;
            values.new_text(&text)
        }
        (Function::TimeNow, []) => {
            let now = values.host.now();
            let now = now.ok_or_else(|| FunctionError::refused("the time is not known here"))?;
            let now = time::from_seconds(now.seconds, now.nanoseconds)?;
            values.new_extended(now)
        }
        (
            Function::TimeTruncate,
            [
                Value::Timestamp(seconds, nanos, offset),
                Value::Duration(unit),
            ],
        ) => {
            let (seconds, nanos, unit) = (*seconds, *nanos, i128::from(*unit));
            // Counted from the year 1, as in Go.
            let since = time::nanoseconds(seconds, nanos) - time::nanoseconds(-62_135_596_800, 0);
            let excess = if unit > 0 { since.rem_euclid(unit) } else { 0 };
            let truncated = time::shift((seconds, nanos, *offset), -excess)?;
            values.new_extended(truncated)
        }
        (Function::TimeToCron, [Value::Timestamp(seconds, _, offset)]) => {
            let date = kpvm_semantics::calendar::civil(*seconds + i64::from(*offset));
            let text = format!(
                "{} {} {} {} {}",
                date.clock / 60 % 60,
                date.clock / 3600,
                date.day,
                date.month,
                date.weekday
            );
            values.new_text(&text)
        }
        (Function::ParseServiceAccount | Function::UserParseServiceAccount, [Value::String(_)]) => {
            let text = shown[0].text().unwrap_or("");
            let parts = text.strip_prefix("system:serviceaccount:");
            let (namespace, name) = parts
                .and_then(|parts| parts.split_once(':'))
                .unwrap_or(("", ""));
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let namespace = values.new_text(&namespace)?;
            let name = values.new_text(&name)?;
            let members = [
                (values.label("Name")?, name),
                (values.label("Namespace")?, namespace),
            ];
            values.new_map(&members)
        }
        (
            Function::ListObjToMap | Function::TransformListObjToMap,
            [
                Value::List(left),
                Value::List(right),
                Value::String(_),
                Value::String(_),
            ],
        ) => {
            if left.len() != right.len() {
                return Err(FunctionError::Failed(format!(
                    "listObjToMap must take lists of equal length. list1: {}, list2: {}",
                    left.len(),
                    right.len()
                )));
            }
            let (key, value) = (view.text(arguments[2]), view.text(arguments[3]));
            let mut pairs = Vec::new();
            for (left, right) in left.clone().zip(right.clone()) {
                let name = view.get_text(left, key);
                let found = view.get_text(right, value);
                if view.kind(name) != Some(Kind::String) {
                    let problem =
                        "the passed key name cannot be handled as a string in the key object list";
                    return Err(FunctionError::failed(problem));
                }
                pairs.push((view.str(name).to_owned(), found));
            }
            let mut members = Vec::new();
            for (name, found) in pairs {
                let found = match found {
                    NodeId::MISSING => values.new_null()?,
                    found => found,
                };
                members.push((values.label(&name)?, found));
            }
            values.new_map(&members)
        }
        (Function::IsImage, [Value::String(_)]) => {
            let valid = parse(shown[0].text().unwrap_or("")).is_ok();
            values.new_bool(valid)
        }
        (Function::ToImage | Function::ParseImageReference, [Value::String(_)]) => {
            let text = shown[0].text().unwrap_or("").to_owned();
            parse(&text)?;
            values.new_opaque(Opaque::Image, &text)
        }
        (_, [Value::Opaque(Opaque::Image, text)]) => {
            let image = parse(text)?;
            let part = match function {
                Function::ImageRegistry => image.registry,
                Function::ImageRepository => image.repository,
                Function::ImageDigest => image.digest,
                Function::ContainsDigest => return values.new_bool(!image.digest.is_empty()),
                Function::ImageTag => image.tag,
                Function::ImageIdentifier => image.identifier(),
                Function::ImageIdentifierWithSeparator => image.identifier_with_separator(),
                _ => return Err(no_overload()),
            };
            values.new_text(&part)
        }
        _ => Err(no_overload()),
    }
}

fn parse(text: &str) -> Result<ImageName, FunctionError> {
    ImageName::parse(text)
        .ok_or_else(|| FunctionError::Failed(format!("could not parse reference: {text}")))
}
