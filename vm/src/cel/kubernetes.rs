//! Kubernetes' `quantity`, `semver` and `format` (docs/spec/cel.md §3.9).

use std::cmp::Ordering;

use kpvm_format::cel::Function;

use super::value::{Value, look, no_overload};
use crate::document::{NodeId, Opaque};
use crate::function::{FunctionError, Values};
use kpvm_semantics::quantity::Quantity;
use kpvm_semantics::semver::Version as Semver;
use kpvm_semantics::stored_quantity::{StoredQuantity, number_of};

type Outcome = Result<NodeId, FunctionError>;

/// Calls a function on quantities.
pub(crate) fn quantity(
    function: Function,
    arguments: &[NodeId],
    values: &mut Values<'_>,
) -> Outcome {
    let view = values.view();
    let shown: Vec<Value<'_>> = arguments.iter().map(|id| look(&view, *id)).collect();
    let stored = |text: &str| StoredQuantity::decode(text).ok_or_else(no_overload);
    let number = |text: &str| Quantity::parse(number_of(text)).ok_or_else(no_overload);
    match (function, shown.as_slice()) {
        (Function::ToQuantity, [Value::String(_)]) => {
            let text = shown[0].text().unwrap_or("");
            let quantity = StoredQuantity::parse(text).map_err(FunctionError::failed)?;
            values.new_opaque(Opaque::Quantity, &quantity.encode())
        }
        (Function::IsQuantity, [Value::String(_)]) => {
            let valid = StoredQuantity::parse(shown[0].text().unwrap_or("")).is_ok();
            values.new_bool(valid)
        }
        (_, [Value::Opaque(Opaque::Quantity, text)]) => match function {
            Function::Sign => {
                let sign = number(text)?.cmp(&Quantity::from_i64(0)) as i64;
                values.new_int(sign)
            }
            Function::AsApproximateFloat => {
                let number = stored(text)?.approximate();
                values.new_float(number)
            }
            Function::AsInteger => {
                let number = stored(text)?.as_i64();
                let failed = || FunctionError::failed("cannot convert value to integer");
                values.new_int(number.ok_or_else(failed)?)
            }
            Function::IsInteger => {
                let is_integer = stored(text)?.as_i64().is_some();
                values.new_bool(is_integer)
            }
            _ => Err(no_overload()),
        },
        (
            Function::QuantityAdd | Function::QuantitySub,
            [Value::Opaque(Opaque::Quantity, left), right],
        ) => {
            let right = match right {
                Value::Opaque(Opaque::Quantity, right) => stored(right)?,
                Value::Int(number) => StoredQuantity::from_i64(*number),
                _ => return Err(no_overload()),
            };
            let result = match function {
                Function::QuantityAdd => stored(left)?.add(&right),
                _ => stored(left)?.add(&right.negated()),
            };
            values.new_opaque(Opaque::Quantity, &result.encode())
        }
        (
            _,
            [
                Value::Opaque(Opaque::Quantity, left),
                Value::Opaque(Opaque::Quantity, right),
            ],
        ) => compared(function, number(left)?.cmp(&number(right)?), values),
        _ => Err(no_overload()),
    }
}

fn compared(function: Function, ordering: Ordering, values: &mut Values<'_>) -> Outcome {
    match function {
        Function::IsGreaterThan => values.new_bool(ordering.is_gt()),
        Function::IsLessThan => values.new_bool(ordering.is_lt()),
        _ => values.new_int(ordering as i64),
    }
}

/// Calls a function on semantic versions.
pub(crate) fn semver(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let shown: Vec<Value<'_>> = arguments.iter().map(|id| look(&view, *id)).collect();
    match (function, shown.as_slice()) {
        (Function::ToSemver | Function::IsSemver, [Value::String(_), normalize @ ..]) => {
            let text = shown[0].text().unwrap_or("");
            let text = match normalize {
                [] | [Value::Bool(false)] => Ok(text.to_owned()),
                [Value::Bool(true)] => normalized(text),
                _ => return Err(no_overload()),
            };
            let parsed = text.and_then(|text| match Semver::parse(&text) {
                Ok(_) => Ok(text),
                Err(error) => Err(error.to_string()),
            });
            match (function, parsed) {
                (Function::IsSemver, parsed) => values.new_bool(parsed.is_ok()),
                (_, Ok(text)) => values.new_opaque(Opaque::Semver, &text),
                (_, Err(problem)) => Err(FunctionError::Failed(problem)),
            }
        }
        (_, [Value::Opaque(Opaque::Semver, text)]) => {
            let version = Semver::parse(text).map_err(FunctionError::failed_with)?;
            let place = match function {
                Function::Major => 0,
                Function::Minor => 1,
                Function::Patch => 2,
                _ => return Err(no_overload()),
            };
            let number = version.numbers()[place];
            values.new_int(i64::try_from(number).unwrap_or(i64::MAX))
        }
        (
            _,
            [
                Value::Opaque(Opaque::Semver, left),
                Value::Opaque(Opaque::Semver, right),
            ],
        ) => {
            let left = Semver::parse(left).map_err(FunctionError::failed_with)?;
            let right = Semver::parse(right).map_err(FunctionError::failed_with)?;
            let ordering = left.order(&right);
            compared(function, ordering, values)
        }
        _ => Err(no_overload()),
    }
}

/// Removes a leading `v`, pads to three numbers and removes leading zeros.
///
/// # Errors
/// Kubernetes' text for a short version with more than numbers.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            let trimmed = part.trim_start_matches('0');
            match trimmed.starts_with(|first: char| first.is_ascii_digit()) {
                _ if part.len() < 2 => part.to_owned(),
                true => trimmed.to_owned(),
                false => format!("0{trimmed}"),
            }
        })
        .collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            let problem = "short version cannot contain PreRelease/Build meta data";
            return Err(problem.to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

/// Calls a function on named formats.
pub(crate) fn format(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let shown: Vec<Value<'_>> = arguments.iter().map(|id| look(&view, *id)).collect();
    match (function, shown.as_slice()) {
        (Function::FormatNamed, [Value::String(_)]) => {
            let name = shown[0].text().unwrap_or("").to_owned();
            if !FORMATS.contains(&&*name) {
                return values.new_optional(None);
            }
            let format = values.new_opaque(Opaque::Format, &name)?;
            values.new_optional(Some(format))
        }
        (Function::Validate, [Value::Opaque(Opaque::Format, name), Value::String(_)]) => {
            let problems = problems(name, shown[1].text().unwrap_or(""));
            if problems.is_empty() {
                return values.new_optional(None);
            }
            let list = values.new_texts(problems)?;
            values.new_optional(Some(list))
        }
        (function, []) => {
            let name = function.name().strip_prefix("format.").unwrap_or("");
            values.new_opaque(Opaque::Format, name)
        }
        _ => Err(no_overload()),
    }
}

const FORMATS: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

/// Errors of a text in a format, in Kubernetes' words.
fn problems(format: &str, text: &str) -> Vec<String> {
    // A prefix to which something is appended may end in a dash.
    let masked = text
        .strip_suffix('-')
        .filter(|before| !before.is_empty())
        .map(|before| format!("{before}a"));
    let prefix = masked.as_deref().unwrap_or(text);
    let one = |problem: Option<&str>| problem.map(str::to_owned).into_iter().collect();
    match format {
        "dns1123Label" => label(text),
        "dns1123LabelPrefix" => label(prefix),
        "dns1123Subdomain" => subdomain(text),
        "dns1123SubdomainPrefix" => subdomain(prefix),
        "dns1035Label" => label_1035(text),
        "dns1035LabelPrefix" => label_1035(prefix),
        "qualifiedName" => qualified_name(text),
        "labelValue" => label_value(text),
        "uri" => super::net::url_problem(text).into_iter().collect(),
        "uuid" => one((!is_uuid(text)).then_some("does not match the UUID format")),
        "byte" => {
            let valid = !text.is_empty() && crate::function::decode_base64(text.as_bytes()).is_ok();
            one((!valid).then_some("invalid base64"))
        }
        "date" => {
            let valid = text.len() == 10
                && matches!(
                    super::time::parse(&format!("{text}T00:00:00Z")),
                    Some(Ok(_))
                );
            one((!valid).then_some("invalid date"))
        }
        _ => {
            let valid = matches!(super::time::parse(text), Some(Ok(_)));
            one((!valid).then_some("invalid datetime"))
        }
    }
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let end = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    end(bytes.first()) && end(bytes.last()) && bytes.iter().all(inner)
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} characters"))
}

fn label(text: &str) -> Vec<String> {
    let mut found: Vec<String> = too_long(text, 63).into_iter().collect();
    if !is_label(text) {
        found.push("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')".into());
    }
    found
}

fn subdomain(text: &str) -> Vec<String> {
    let mut found: Vec<String> = too_long(text, 253).into_iter().collect();
    if !text.split('.').all(is_label) {
        found.push("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".into());
    }
    found
}

fn label_1035(text: &str) -> Vec<String> {
    let mut found: Vec<String> = too_long(text, 63).into_iter().collect();
    if !is_label(text) || text.starts_with(|first: char| first.is_ascii_digit()) {
        found.push("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')".into());
    }
    found
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    end(bytes.first()) && end(bytes.last()) && bytes.iter().all(inner)
}

fn qualified_name(text: &str) -> Vec<String> {
    const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut found = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) if !name.contains('/') => {
            if prefix.is_empty() {
                found.push("prefix part must be non-empty".to_owned());
            } else {
                let problems = subdomain(prefix).into_iter();
                found.extend(problems.map(|problem| format!("prefix part {problem}")));
            }
            name
        }
        Some(_) => {
            return vec![format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else if let Some(problem) = too_long(name, 63) {
        found.push(format!("name part {problem}"));
    }
    if !is_name(name) {
        found.push(format!("name part {NAME}"));
    }
    found
}

fn label_value(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.len() > 63 {
        found.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_name(text) {
        found.push("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".into());
    }
    found
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (index, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(digits) else {
            return false;
        };
        if !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}
