//! Functions and methods (docs/spec/cel.md §3.1, §3.8, §3.9).

use kpvm_semantics::number::{format_v_float, parse_go_float};

use super::Fault;
use super::value::Cel;
use crate::jmespath::regex_matches;

type Evaluated = Result<Cel, Fault>;

/// Global functions; other types than those of the standard are errors.
pub(super) fn global(name: &str, arguments: &[Cel]) -> Evaluated {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    let Some(first) = arguments.first() else {
        return Err(Fault::NotDone("a function of CEL"));
    };
    let found = match (name, first) {
        ("size", value) => return size(value),
        ("dyn", value) => Some(value.clone()),
        ("type", value) => Some(Cel::Type(value.type_name())),
        ("int", Cel::Int(whole)) => Some(Cel::Int(*whole)),
        ("int", Cel::Uint(whole)) => i64::try_from(*whole).ok().map(Cel::Int),
        ("int", Cel::Double(double)) => {
            let fits = *double > -TWO_TO_63 && *double < TWO_TO_63;
            fits.then_some(Cel::Int(*double as i64))
        }
        ("int", Cel::Text(text)) => text.parse().ok().map(Cel::Int),
        ("uint", Cel::Uint(whole)) => Some(Cel::Uint(*whole)),
        ("uint", Cel::Int(whole)) => u64::try_from(*whole).ok().map(Cel::Uint),
        ("uint", Cel::Double(double)) => {
            let fits = *double >= 0.0 && *double < TWO_TO_64;
            fits.then_some(Cel::Uint(*double as u64))
        }
        // Unlike Rust, Go allows no sign.
        ("uint", Cel::Text(text)) if text.starts_with('+') => None,
        ("uint", Cel::Text(text)) => text.parse().ok().map(Cel::Uint),
        ("double", Cel::Double(double)) => Some(Cel::Double(*double)),
        ("double", Cel::Int(whole)) => Some(Cel::Double(*whole as f64)),
        ("double", Cel::Uint(whole)) => Some(Cel::Double(*whole as f64)),
        ("double", Cel::Text(text)) => parse_go_float(text).map(Cel::Double),
        ("string", Cel::Text(text)) => Some(Cel::Text(text.clone())),
        ("string", Cel::Int(whole)) => Some(Cel::Text(whole.to_string())),
        ("string", Cel::Uint(whole)) => Some(Cel::Text(whole.to_string())),
        ("string", Cel::Bool(value)) => Some(Cel::Text(value.to_string())),
        ("string", Cel::Double(double)) => {
            let mut text = String::new();
            format_v_float(*double, &mut text);
            Some(Cel::Text(text))
        }
        _ => None,
    };
    found.ok_or(Fault::Error)
}

fn size(value: &Cel) -> Evaluated {
    let size = match value {
        Cel::Text(text) => text.chars().count(),
        Cel::List(items) => items.len(),
        Cel::Map(members) => members.len(),
        _ => return Err(Fault::Error),
    };
    Ok(Cel::Int(size as i64))
}

/// Methods.
pub(super) fn method(receiver: Cel, name: &str, arguments: &[Cel]) -> Evaluated {
    match (receiver, name, arguments) {
        // What is no optional is itself (§3.1).
        (Cel::Optional(inner), "orValue", [other]) => {
            Ok(inner.map_or_else(|| other.clone(), |inner| *inner))
        }
        (plain, "orValue", [_]) => Ok(plain),
        (Cel::Optional(inner), "hasValue", []) => Ok(Cel::Bool(inner.is_some())),
        (value, "size", []) => size(&value),
        (Cel::List(items), "join", separator) => {
            let separator = match separator {
                [] => "",
                [Cel::Text(separator)] => separator,
                _ => return Err(Fault::Error),
            };
            let mut texts = Vec::new();
            for item in items {
                match item {
                    Cel::Text(text) => texts.push(text),
                    _ => return Err(Fault::Error),
                }
            }
            Ok(Cel::Text(texts.join(separator)))
        }
        (Cel::Text(text), name, arguments) => of_text(&text, name, arguments),
        _ => Err(Fault::Error),
    }
}

/// Positions are code points (§3.9).
fn of_text(text: &str, name: &str, arguments: &[Cel]) -> Evaluated {
    let letters: Vec<char> = text.chars().collect();
    let position = |at: &i64| usize::try_from(*at).ok().filter(|at| *at <= letters.len());
    match (name, arguments) {
        ("startsWith", [Cel::Text(part)]) => Ok(Cel::Bool(text.starts_with(part.as_str()))),
        ("endsWith", [Cel::Text(part)]) => Ok(Cel::Bool(text.ends_with(part.as_str()))),
        ("contains", [Cel::Text(part)]) => Ok(Cel::Bool(text.contains(part.as_str()))),
        ("matches", [Cel::Text(pattern)]) => {
            let found = regex_matches(pattern, text);
            found.map(Cel::Bool).map_err(|_| Fault::Error)
        }
        ("lowerAscii", []) => Ok(Cel::Text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Cel::Text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Cel::Text(text.trim().to_owned())),
        ("replace", [Cel::Text(old), Cel::Text(new)]) => {
            Ok(Cel::Text(text.replace(old.as_str(), new)))
        }
        ("split", [Cel::Text(separator)]) => {
            let parts: Vec<Cel> = match separator.as_str() {
                "" => letters
                    .iter()
                    .map(|letter| Cel::Text(letter.to_string()))
                    .collect(),
                separator => {
                    let parts = text.split(separator);
                    parts.map(|part| Cel::Text(part.to_owned())).collect()
                }
            };
            Ok(Cel::List(parts))
        }
        ("substring", [Cel::Int(start), rest @ ..]) => {
            let end = match rest {
                [] => Some(letters.len()),
                [Cel::Int(end)] => position(end),
                _ => None,
            };
            let (start, end) = position(start).zip(end).ok_or(Fault::Error)?;
            let part = letters.get(start..end).ok_or(Fault::Error)?;
            Ok(Cel::Text(part.iter().collect()))
        }
        ("charAt", [Cel::Int(at)]) => {
            let at = position(at).ok_or(Fault::Error)?;
            let letter = letters.get(at).map(char::to_string);
            Ok(Cel::Text(letter.unwrap_or_default()))
        }
        _ => Err(Fault::Error),
    }
}
