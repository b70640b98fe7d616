//! Functions: signatures, and the standard ones (docs/spec/jmespath.md §5, §6, §7).

use kpvm_semantics::image::{self, ImageDefaults};
use kpvm_semantics::number::{float_to_i64_amd64, parse_go_float};
use kpvm_semantics::quote::go_quote;
use kpvm_semantics::semver::{Version, is_in_range};
use kpvm_semantics::wildcard::matches as wildcard;
use serde_json::{Map, Value};
use sha2::Digest as _;

use super::evaluate::{Datum, Evaluated, NULL, evaluate, or_null};
use super::{arithmetic, base64, regex, times};
use crate::failure::Failure;
use crate::value::{go_text, json_text, parse_json, through_json};

/// Type of an argument, in the words of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Number,
    Text,
    Array,
    Object,
    Numbers,
    Texts,
    Any,
    Reference,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Text => "string",
            Self::Array => "array",
            Self::Object => "object",
            Self::Numbers => "array[number]",
            Self::Texts => "array[string]",
            Self::Any => "any",
            Self::Reference => "expref",
        }
    }

    fn accepts(self, datum: &Datum) -> bool {
        let is_float = |value: &Value| value.is_f64();
        match (self, datum) {
            (Self::Any, _) => true,
            (Self::Number, Datum::Json(value)) => is_float(value),
            (Self::Number, Datum::NotFinite(_)) => true,
            (Self::Text, Datum::Json(value)) => value.is_string(),
            (Self::Object, Datum::Json(value)) => value.is_object(),
            (Self::Array, _) => datum.items().is_some(),
            (Self::Numbers, Datum::Json(Value::Array(items))) => items.iter().all(is_float),
            (Self::Texts, Datum::Json(Value::Array(items))) => items.iter().all(Value::is_string),
            (Self::Reference, Datum::Reference(_)) => true,
            _ => false,
        }
    }
}

const N: &[Type] = &[Type::Number];
const S: &[Type] = &[Type::Text];
const A: &[Type] = &[Type::Array];
const O: &[Type] = &[Type::Object];
const ANY: &[Type] = &[Type::Any];
const E: &[Type] = &[Type::Reference];
const SN: &[Type] = &[Type::Text, Type::Number];

/// Types of the arguments (docs/spec/jmespath.md §6, §7, §8, §11, §12); none if the name is
/// unknown.
fn signature(name: &str) -> Option<&'static [&'static [Type]]> {
    Some(match name {
        "abs" | "ceil" | "floor" => &[N],
        "avg" => &[&[Type::Numbers]],
        "contains" => &[&[Type::Array, Type::Text], ANY],
        "ends_with" | "starts_with" => &[S, S],
        "join" => &[S, &[Type::Texts]],
        "keys" | "values" => &[O],
        "length" => &[&[Type::Text, Type::Array, Type::Object]],
        "map" => &[E, A],
        "max" | "min" => &[&[Type::Numbers, Type::Texts]],
        "max_by" | "min_by" | "sort_by" => &[A, E],
        "merge" => &[O],
        "not_null" | "to_array" | "to_number" | "to_string" | "type" => &[ANY],
        "reverse" => &[&[Type::Array, Type::Text]],
        "sort" => &[&[Type::Texts, Type::Numbers]],
        "sum" => &[A],
        "compare" | "equal_fold" | "trim" | "trim_prefix" | "split" | "semver_compare" => &[S, S],
        "replace" => &[S, S, S, N],
        "replace_all" => &[S, S, S],
        "to_upper" | "to_lower" | "to_boolean" | "base64_decode" | "base64_encode"
        | "path_canonicalize" | "parse_json" | "parse_yaml" | "random" | "x509_decode"
        | "time_to_cron" | "time_utc" | "image_normalize" | "is_external_url" | "sha256"
        | "sha1" | "md5" => &[S],
        "regex_match" | "pattern_match" => &[S, SN],
        "regex_replace_all" | "regex_replace_all_literal" => &[S, SN, SN],
        "label_match" => &[O, O],
        "add" | "subtract" | "multiply" | "divide" | "modulo" => &[ANY, ANY],
        "round" => &[N, N],
        "truncate" => &[S, N],
        "lookup" => &[&[Type::Object, Type::Array], SN],
        "items" => &[&[Type::Object, Type::Array], S, S],
        "object_from_lists" => &[A, A],
        "time_since" | "time_between" => &[S, S, S],
        "time_now" | "time_now_utc" => &[],
        "time_add" | "time_parse" | "time_diff" | "time_before" | "time_after"
        | "time_truncate" => &[S, S],
        _ => return None,
    })
}

fn json(value: impl Into<Value>) -> Evaluated {
    Ok(Datum::Json(value.into()))
}

fn failed<T>(name: &str, text: impl std::fmt::Display) -> Result<T, Failure> {
    Err(Failure::error(format!(
        "JMESPath function '{name}': {text}"
    )))
}

/// Go's `%v` of an argument.
fn shown(datum: &Datum) -> Result<String, Failure> {
    match datum {
        Datum::Json(value) => Ok(go_text(value)),
        Datum::Items(items) => Ok(go_text(&Value::Array(items.clone()))),
        Datum::NotFinite(float) if float.is_nan() => Ok("NaN".into()),
        Datum::NotFinite(float) => Ok(if *float > 0.0 { "+Inf" } else { "-Inf" }.into()),
        Datum::Reference(_) => Err(Failure::NotDone("the text of an &expression")),
    }
}

/// Checks the arguments and calls the function (docs/spec/jmespath.md §5).
pub(super) fn call(name: &str, arguments: Vec<Datum>) -> Evaluated {
    let Some(types) = signature(name) else {
        return Err(Failure::error(format!("unknown function: {name}")));
    };
    let is_variadic = ["merge", "not_null"].contains(&name);
    if is_variadic {
        if arguments.is_empty() {
            return Err(Failure::error("Invalid arity."));
        }
    } else if !types.is_empty() {
        if arguments.len() != types.len() {
            return Err(Failure::error("incorrect number of args"));
        }
        for (types, argument) in types.iter().zip(&arguments) {
            if !types.iter().any(|one| one.accepts(argument)) {
                let names: Vec<String> = types.iter().map(|one| go_quote(one.name())).collect();
                let expected = names.join(", ");
                let found = shown(argument)?;
                return Err(Failure::error(format!(
                    "Invalid type for: {found}, expected: []jmespath.JpType{{{expected}}}"
                )));
            }
        }
    }
    if matches!(
        name,
        "add" | "subtract" | "multiply" | "divide" | "modulo" | "round" | "sum"
    ) {
        return arithmetic::call(name, &arguments);
    }
    if name.starts_with("time_") {
        return times::call(name, &texts(&arguments));
    }
    if name.starts_with("regex_") {
        return regex::call(name, &arguments);
    }
    if let Some(result) = of_collections(name, &arguments) {
        return result;
    }
    of_texts(name, &arguments)
}

/// The arguments that are texts, each at its place.
pub(super) fn texts(arguments: &[Datum]) -> Vec<&str> {
    let text = |datum| match datum {
        &Datum::Json(Value::String(ref text)) => text.as_str(),
        _ => "",
    };
    arguments.iter().map(text).collect()
}

/// A number as a float.
pub(super) fn float(datum: Option<&Datum>) -> f64 {
    match datum {
        Some(Datum::Json(Value::Number(number))) => number.as_f64().unwrap_or_default(),
        Some(Datum::NotFinite(float)) => *float,
        _ => 0.0,
    }
}

/// A float as a value.
pub(super) fn from_float(float: f64) -> Evaluated {
    match float.is_finite() {
        true => json(float),
        false => Ok(Datum::NotFinite(float)),
    }
}

/// Functions over numbers, lists and maps; `None` for the others.
fn of_collections(name: &str, arguments: &[Datum]) -> Option<Evaluated> {
    let first = arguments.first().unwrap_or(&NULL);
    let second = arguments.get(1).unwrap_or(&NULL);
    let items = || first.items().unwrap_or_default();
    let members = |datum: &Datum| match datum {
        Datum::Json(Value::Object(members)) => members.clone(),
        _ => Map::new(),
    };
    let is_raw_items = |datum: &Datum| matches!(datum, Datum::Items(_));
    let panics = Some(Err(Failure::Panic("an array function on items()")));
    Some(match name {
        "abs" => from_float(float(Some(first)).abs()),
        "ceil" => from_float(float(Some(first)).ceil()),
        "floor" => from_float(float(Some(first)).floor()),
        "avg" => {
            let sum: f64 = items()
                .iter()
                .filter_map(Value::as_f64)
                .fold(0.0, |a, b| a + b);
            from_float(sum / items().len() as f64)
        }
        "keys" => json(members(first).keys().cloned().collect::<Vec<_>>()),
        "values" => json(members(first).values().cloned().collect::<Vec<_>>()),
        "length" => {
            let length = match first {
                Datum::Json(Value::String(text)) => text.chars().count(),
                Datum::Json(Value::Object(members)) => members.len(),
                _ => items().len(),
            };
            json(length as f64)
        }
        "join" => {
            let parts = second.items().unwrap_or_default();
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            json(parts.join(texts(arguments).first().unwrap_or(&"")))
        }
        "map" if is_raw_items(second) => return panics,
        "map" => {
            let Datum::Reference(node) = first else {
                return None;
            };
            let results = second.items().unwrap_or_default().iter();
            let results: Result<Vec<Value>, Failure> = results
                .map(|item| or_null(evaluate(node, &Datum::Json(item.clone())))?.into_part())
                .collect();
            results.map(|results| Datum::Json(Value::Array(results)))
        }
        "max" | "min" => Ok(extreme(items(), name == "max")),
        "max_by" | "min_by" | "sort_by" | "reverse" | "contains" if is_raw_items(first) => {
            return panics;
        }
        "max_by" | "min_by" => extreme_by(items(), second, name == "max_by"),
        "sort_by" => sort_by(items(), second),
        "contains" => contains(first, second),
        "reverse" => match first {
            Datum::Json(Value::String(text)) => json(text.chars().rev().collect::<String>()),
            _ => json(items().iter().rev().cloned().collect::<Vec<_>>()),
        },
        "sort" => {
            let mut sorted = items().to_vec();
            sorted.sort_by(|left, right| match (left, right) {
                (Value::String(left), Value::String(right)) => left.cmp(right),
                _ => left
                    .as_f64()
                    .partial_cmp(&right.as_f64())
                    .unwrap_or(std::cmp::Ordering::Equal),
            });
            json(sorted)
        }
        "merge" => {
            let mut merged = Map::new();
            for argument in arguments {
                let Datum::Json(Value::Object(members)) = argument else {
                    return Some(Err(Failure::Panic("merge of something else than maps")));
                };
                merged.extend(members.clone());
            }
            json(merged)
        }
        "not_null" => {
            let found = arguments.iter().find(|argument| !argument.is_null());
            Ok(found.cloned().unwrap_or(NULL))
        }
        "to_array" => match first {
            Datum::Json(Value::Array(_)) => Ok(first.clone()),
            other => match other.clone().into_part() {
                Ok(value) => json(vec![value]),
                Err(failure) => Err(failure),
            },
        },
        "to_number" => to_number(first),
        "to_string" => match first {
            Datum::Json(Value::String(_)) => Ok(first.clone()),
            Datum::Json(value) => json(json_text(value)),
            Datum::Items(items) => json(json_text(&Value::Array(items.clone()))),
            Datum::Reference(_) => json("{}"),
            Datum::NotFinite(_) => match shown(first) {
                Ok(text) => Err(Failure::error(format!("json: unsupported value: {text}"))),
                Err(failure) => Err(failure),
            },
        },
        "type" => type_of(first),
        "label_match" => {
            let have = members(second);
            let wanted = members(first);
            let mut wanted = wanted.iter();
            json(wanted.all(|(key, value)| have.get(key) == Some(value)))
        }
        "lookup" => lookup(first, second),
        "items" => items_of(arguments),
        "object_from_lists" => object_from_lists(first, second),
        _ => return None,
    })
}

fn to_number(datum: &Datum) -> Evaluated {
    match datum {
        Datum::NotFinite(_) => Ok(datum.clone()),
        Datum::Json(Value::Number(number)) if number.is_f64() => Ok(datum.clone()),
        Datum::Json(Value::Number(_)) | Datum::Items(_) | Datum::Reference(_) => {
            Err(Failure::error("unknown type"))
        }
        Datum::Json(Value::String(text)) => match parse_go_float(text) {
            Some(float) => from_float(float),
            None => Ok(NULL),
        },
        Datum::Json(_) => Ok(NULL),
    }
}

fn type_of(datum: &Datum) -> Evaluated {
    let name = match datum {
        Datum::NotFinite(_) => "number",
        Datum::Json(value) => match value {
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => return Err(Failure::error("unknown type")),
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Null => "null",
            Value::Bool(_) => "boolean",
        },
        Datum::Items(_) | Datum::Reference(_) => return Err(Failure::error("unknown type")),
    };
    json(name)
}

/// Texts and numbers by their order; the first of equals.
fn is_beyond(candidate: &Value, best: &Value, wants_max: bool) -> bool {
    match (candidate, best) {
        (Value::String(candidate), Value::String(best)) => match wants_max {
            true => candidate > best,
            false => candidate < best,
        },
        _ => match wants_max {
            true => candidate.as_f64() > best.as_f64(),
            false => candidate.as_f64() < best.as_f64(),
        },
    }
}

fn extreme(items: &[Value], wants_max: bool) -> Datum {
    let mut best: Option<&Value> = None;
    for item in items {
        if best.is_none_or(|best| is_beyond(item, best, wants_max)) {
            best = Some(item);
        }
    }
    best.cloned().map_or(NULL, Datum::Json)
}

/// The key of an item: a text or a float64.
fn key_of(item: &Value, reference: &Datum) -> Evaluated {
    let Datum::Reference(node) = reference else {
        return Ok(NULL);
    };
    or_null(evaluate(node, &Datum::Json(item.clone())))
}

/// docs/spec/jmespath.md §6
fn extreme_by(items: &[Value], reference: &Datum, wants_max: bool) -> Evaluated {
    let (first, rest) = match items {
        [] => return Ok(NULL),
        [one] => return json(one.clone()),
        [first, rest @ ..] => (first, rest),
    };
    let mut best = (first, key_of(first, reference)?);
    let wants_text = match &best.1 {
        Datum::Json(Value::String(_)) => true,
        key if Type::Number.accepts(key) => false,
        _ => return Err(Failure::error("invalid type, must be number of string")),
    };
    for item in rest {
        let key = key_of(item, reference)?;
        let (kind, name) = match wants_text {
            true => (Type::Text, "string"),
            false => (Type::Number, "number"),
        };
        if !kind.accepts(&key) {
            return Err(Failure::error(format!("invalid type, must be {name}")));
        }
        let (Datum::Json(found), Datum::Json(known)) = (&key, &best.1) else {
            return Err(Failure::NotDone("NaN or infinity as a key"));
        };
        if is_beyond(found, known, wants_max) {
            best = (item, key);
        }
    }
    json(best.0.clone())
}

/// docs/spec/jmespath.md §6; that the input is sorted in place (§6.2) is not modelled.
fn sort_by(items: &[Value], reference: &Datum) -> Evaluated {
    let Some((first, rest)) = items.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return json(items.to_vec());
    };
    let Datum::Reference(node) = reference else {
        return Ok(NULL);
    };
    let first_key = match evaluate(node, &Datum::Json(first.clone())) {
        Err(Failure::NotFound(_)) => NULL,
        other => other?,
    };
    let kind = match &first_key {
        Datum::Json(Value::String(_)) => Type::Text,
        key if Type::Number.accepts(key) => Type::Number,
        _ => return Err(Failure::error("invalid type, must be number of string")),
    };
    let mut keyed = vec![(first_key.into_part()?, first.clone())];
    for item in rest {
        let key = match evaluate(node, &Datum::Json(item.clone())) {
            Ok(key) if kind.accepts(&key) => key.into_part()?,
            Err(failure) if !failure.is_error() => return Err(failure),
            _ => return Err(Failure::error("error in sort_by comparison")),
        };
        keyed.push((key, item.clone()));
    }
    keyed.sort_by(|(left, _), (right, _)| match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        _ => left
            .as_f64()
            .partial_cmp(&right.as_f64())
            .unwrap_or(std::cmp::Ordering::Equal),
    });
    json(keyed.into_iter().map(|(_, item)| item).collect::<Vec<_>>())
}

fn contains(subject: &Datum, wanted: &Datum) -> Evaluated {
    let is_composite = |value: &Value| value.is_array() || value.is_object();
    let Datum::Json(wanted) = wanted else {
        return Err(Failure::NotDone("contains() of a special kind"));
    };
    match subject {
        Datum::Json(Value::String(text)) => {
            json(wanted.as_str().is_some_and(|wanted| text.contains(wanted)))
        }
        _ => {
            for item in subject.items().unwrap_or_default() {
                if is_composite(wanted) {
                    if item.is_array() == wanted.is_array() && is_composite(item) {
                        return Err(Failure::Panic("contains() compares composites"));
                    }
                } else if item == wanted {
                    return json(true);
                }
            }
            json(false)
        }
    }
}

/// docs/spec/jmespath.md §7
fn lookup(subject: &Datum, key: &Datum) -> Evaluated {
    match (subject, key) {
        (Datum::Items(_), _) => failed("lookup", "argument #1 is not of type Object or Array"),
        (Datum::Json(Value::Object(members)), Datum::Json(Value::String(key))) => {
            Ok(members.get(key).cloned().map_or(NULL, Datum::Json))
        }
        (Datum::Json(Value::Object(_)), _) => failed("lookup", "argument #2 is not of type String"),
        (Datum::Json(Value::Array(_)), Datum::Json(Value::String(_))) => {
            failed("lookup", "argument #2 is not of type Number")
        }
        (Datum::Json(Value::Array(items)), Datum::Json(Value::Number(number))) => {
            let index = number.as_f64().unwrap_or_default();
            if index.fract() != 0.0 {
                let text = go_text(&Value::from(index));
                return failed(
                    "lookup",
                    format!("argument #2: expected an integer number but got: {text}"),
                );
            }
            if index.abs() >= 9_223_372_036_854_775_808.0 {
                let text = go_text(&Value::from(index));
                return failed(
                    "lookup",
                    format!("argument #2: number is outside the range of integer numbers: {text}"),
                );
            }
            let found = (index >= 0.0).then(|| items.get(index as usize)).flatten();
            Ok(found.cloned().map_or(NULL, Datum::Json))
        }
        _ => Err(Failure::NotDone("lookup() of NaN")),
    }
}

fn items_of(arguments: &[Datum]) -> Evaluated {
    let names = texts(arguments);
    let (key_name, value_name) = match *names.as_slice() {
        [_, key, value] => (key, value),
        _ => ("", ""),
    };
    let pair = |key: Value, value: &Value| {
        let mut pair = Map::new();
        pair.insert(key_name.to_owned(), key);
        pair.insert(value_name.to_owned(), value.clone());
        Value::Object(pair)
    };
    match arguments.first() {
        Some(Datum::Json(Value::Object(members))) => Ok(Datum::Items(
            members
                .iter()
                .map(|(key, value)| pair(Value::from(key.as_str()), value))
                .collect(),
        )),
        Some(Datum::Json(Value::Array(items))) => Ok(Datum::Items(
            items
                .iter()
                .enumerate()
                .map(|(at, value)| pair(Value::from(at as f64), value))
                .collect(),
        )),
        _ => failed("items", "argument #1 is not of type Object or Array"),
    }
}

fn object_from_lists(keys: &Datum, values: &Datum) -> Evaluated {
    let (Datum::Json(Value::Array(keys)), Datum::Json(Value::Array(values))) = (keys, values)
    else {
        let at = if matches!(keys, Datum::Items(_)) {
            1
        } else {
            2
        };
        return failed(
            "object_from_lists",
            format!("argument #{at} is not of type Array"),
        );
    };
    let mut object = Map::new();
    for (at, key) in keys.iter().enumerate() {
        let key = match key {
            Value::String(text) => text.clone(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) if number.is_f64() => {
                float32_text(number.as_f64().unwrap_or_default())
            }
            _ => {
                return failed(
                    "object_from_lists",
                    "argument #1 is not of type StringArray",
                );
            }
        };
        object.insert(key, values.get(at).cloned().unwrap_or(Value::Null));
    }
    json(object)
}

/// Fixed-point text with the shortest digits of a float32 (docs/spec/jmespath.md §7.1).
pub(super) fn float32_text(float: f64) -> String {
    match float as f32 {
        float if float.is_nan() => "NaN".into(),
        float if float == f32::INFINITY => "+Inf".into(),
        float if float == f32::NEG_INFINITY => "-Inf".into(),
        float => float.to_string(),
    }
}

/// A text, or the text of a number (docs/spec/jmespath.md §7.1).
pub(super) fn text_or_number(datum: Option<&Datum>) -> String {
    match datum {
        Some(Datum::Json(Value::String(text))) => text.clone(),
        other => float32_text(float(other)),
    }
}

/// docs/spec/jmespath.md §7, §12
fn of_texts(name: &str, arguments: &[Datum]) -> Evaluated {
    let all = texts(arguments);
    let text = |at: usize| all.get(at).copied().unwrap_or_default();
    let (first, second) = (text(0), text(1));
    match name {
        "ends_with" => json(first.ends_with(second)),
        "starts_with" => json(first.starts_with(second)),
        "compare" => json(first.cmp(second) as i64),
        "equal_fold" => equal_fold(first, second),
        "replace" => {
            let count = float_to_i64_amd64(float(arguments.get(3)));
            json(match usize::try_from(count) {
                Ok(count) => first.replacen(second, text(2), count),
                Err(_) => first.replace(second, text(2)),
            })
        }
        "replace_all" => json(first.replace(second, text(2))),
        "to_upper" => json(first.chars().map(upper).collect::<String>()),
        "to_lower" => json(first.chars().map(lower).collect::<String>()),
        "trim" => json(first.trim_matches(|letter| second.contains(letter))),
        "trim_prefix" => json(first.strip_prefix(second).unwrap_or(first)),
        "split" if second.is_empty() => json(first.chars().map(String::from).collect::<Vec<_>>()),
        "split" => json(first.split(second).map(Value::from).collect::<Vec<_>>()),
        "truncate" => {
            let count = float_to_i64_amd64(float(arguments.get(1)));
            let count = usize::try_from(count).unwrap_or(0);
            json(first.chars().take(count).collect::<String>())
        }
        "to_boolean" => match first.to_lowercase().as_str() {
            "true" => json(true),
            "false" => json(false),
            _ => failed(
                name,
                format!("lowercase argument must be 'true' or 'false' (provided: '{first}')"),
            ),
        },
        "pattern_match" => json(wildcard(first, text_or_number(arguments.get(1)))),
        "base64_encode" => json(base64::encoded(first.as_bytes())),
        "path_canonicalize" => json(match first {
            "" => String::new(),
            path => clean_path(path),
        }),
        "semver_compare" => {
            let version = Version::parse(first).unwrap_or_default();
            match is_in_range(&version, second) {
                Ok(is_in) => json(is_in),
                Err(text) if text.starts_with("Kyverno crashes") => {
                    Err(Failure::Panic("semver_compare with nothing between two ||"))
                }
                Err(text) => Err(Failure::Error(text)),
            }
        }
        "parse_json" => match parse_json(first) {
            Ok(value) => json(through_json(&value)),
            Err(error) => Err(Failure::Error(error.text())),
        },
        "image_normalize" => match image::parse(first, ImageDefaults::KYVERNO) {
            Ok(image) => json(image.reference),
            Err(error) => failed(name, error),
        },
        "sha256" => json(hexadecimal(&sha2::Sha256::digest(first))),
        "sha1" => json(hexadecimal(&sha1::Sha1::digest(first))),
        "md5" => json(hexadecimal(&md5::Md5::digest(first))),
        "base64_decode" => match base64::decoded(first) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => json(text),
                Err(_) => Err(Failure::NotDone("bytes that are not UTF-8")),
            },
            Err(at) => Err(Failure::error(format!(
                "illegal base64 data at input byte {at}"
            ))),
        },
        "parse_yaml" => Err(Failure::NotDone("parse_yaml()")),
        "is_external_url" => Err(Failure::NotDone("is_external_url()")),
        "x509_decode" => Err(Failure::NotDone("x509_decode()")),
        "random" => Err(Failure::NotDone("random()")),
        _ => Err(Failure::NotDone("a function")),
    }
}

/// One-to-one mapping (docs/spec/jmespath.md §7).
fn upper(letter: char) -> char {
    let mut all = letter.to_uppercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

fn lower(letter: char) -> char {
    match letter {
        'İ' => 'i',
        _ => letter.to_lowercase().next().unwrap_or(letter),
    }
}

/// Simple folding; beyond ASCII the regular expressions know it.
fn equal_fold(left: &str, right: &str) -> Evaluated {
    if left.is_ascii() && right.is_ascii() {
        return json(left.eq_ignore_ascii_case(right));
    }
    let pattern = format!("(?i)^(?:{})$", regex::literal(left));
    json(regex::is_match(&pattern, right)?)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Go's `path.Clean` (docs/spec/jmespath.md §7).
pub(crate) fn clean_path(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                _ if is_rooted => {}
                _ => parts.push(".."),
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (is_rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".into(),
        (false, false) => joined,
    }
}
