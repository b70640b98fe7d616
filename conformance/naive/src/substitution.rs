//! References `$( )` and variables `{{ }}` in documents (docs/spec/conditions.md §4, §5,
//! docs/spec/patterns.md §10).

use serde_json::{Map, Value};

use crate::anchor;
use crate::context::Context;
use crate::failure::Failure;
use crate::jmespath::clean_path;
use crate::scalar::{Operator, operator};
use crate::value::{Num, go_text, number, substituted_text};

/// References of the whole document, then variables (docs/spec/conditions.md §4.5).
pub(crate) fn substitute_all(
    context: &mut Context<'_>,
    document: &Value,
) -> Result<Value, Failure> {
    let mut resolve = |leaf: &str, path: &str| with_references(document, leaf, path);
    let referenced = traverse(document, "", &mut resolve)?;
    substitute_variables(context, &referenced)
}

/// Only the variables.
fn substitute_variables(context: &mut Context<'_>, document: &Value) -> Result<Value, Failure> {
    traverse(document, "", &mut |leaf, path| {
        with_variables(context, leaf, path)
    })
}

/// Applies an action to every text and key; what it puts in place of a leaf is traversed too
/// (docs/spec/conditions.md §4.3, §4.5).
fn traverse(
    document: &Value,
    path: &str,
    action: &mut dyn FnMut(&str, &str) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let element = match document {
        Value::String(text) => action(text, path)?,
        other => other.clone(),
    };
    match element {
        Value::Object(members) => {
            let mut renamed = Map::new();
            for (key, value) in &members {
                let new_key = match action(key, path)? {
                    Value::Null => key.clone(),
                    Value::String(text) => text,
                    _ => {
                        return Err(Failure::error(format!(
                            "expected string after substituting variables in key \"{key}\""
                        )));
                    }
                };
                let child = format!("{path}/{}", key.replace('/', "\\/"));
                renamed.insert(new_key, traverse(value, &child, action)?);
            }
            Ok(Value::Object(renamed))
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(at, item)| traverse(item, &format!("{path}/{at}"), action))
                .collect()
        }
        other => Ok(other),
    }
}

/// A match of `(^|[^\\])X`: the character before, and X.
struct Found<'t> {
    before: &'t str,
    inner: &'t str,
}

/// All matches, leftmost first; `length` is that of X at the start of a text.
fn find_all<'t>(text: &'t str, length: fn(&str) -> Option<usize>) -> Vec<Found<'t>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = text.get(at..).unwrap_or_default();
        let width = rest.chars().next().map_or(1, char::len_utf8);
        let (before, inner) = match rest.split_at_checked(width) {
            _ if at == 0 && length(rest).is_some() => ("", rest),
            Some((before, inner)) if before != "\\" => (before, inner),
            _ => {
                at += width;
                continue;
            }
        };
        match length(inner) {
            Some(length) => {
                let inner = inner.get(..length).unwrap_or_default();
                at += before.len() + length;
                found.push(Found { before, inner });
            }
            None => at += width,
        }
    }
    found
}

/// `\{\{(?:\{[^{}]*\}|[^{}])*\}\}` (docs/spec/conditions.md §4.2).
fn variable_length(text: &str) -> Option<usize> {
    let mut at = text.strip_prefix("{{").map(|_| 2)?;
    loop {
        let rest = text.get(at..)?;
        at += rest.find(['{', '}'])?;
        let rest = text.get(at..)?;
        if rest.starts_with('}') {
            return rest.starts_with("}}").then_some(at + 2);
        }
        let inside = rest.get(1..)?;
        let end = inside.find(['{', '}'])?;
        if !inside.get(end..)?.starts_with('}') {
            return None;
        }
        at += end + 2;
    }
}

/// `\$\(.[^ ]*\)` (docs/spec/conditions.md §5).
fn reference_length(text: &str) -> Option<usize> {
    let body = text.strip_prefix("$(")?;
    let first = body
        .chars()
        .next()
        .filter(|letter| *letter != '\n')?
        .len_utf8();
    let run = body.get(first..)?.split(' ').next()?;
    Some(2 + first + run.rfind(')')? + 1)
}

/// The variables of one text or key (docs/spec/conditions.md §4.3).
fn with_variables(context: &mut Context<'_>, text: &str, path: &str) -> Result<Value, Failure> {
    let mut value = text.to_owned();
    loop {
        let snapshot = value.clone();
        let found = find_all(&snapshot, variable_length);
        let Some(last) = found.last() else {
            break;
        };
        let is_last_shallow = normalised(last.inner).1;
        for Found { before, inner } in &found {
            let (mut name, is_shallow) = normalised(inner);
            if name == "@" {
                name = own_path(context, path);
            }
            if context.is_delete() {
                name = name.replace("request.object", "request.oldObject");
            }
            let unresolved =
                |text: &str| format!("failed to resolve {name} at path {path}: {text}");
            let result = context
                .query(&name)
                .map_err(|error| error.wrap(unresolved))?;
            if snapshot == *inner {
                return Ok(result);
            }
            let mut inserted = match &result {
                Value::String(text) => text.clone(),
                other => substituted_text(other),
            };
            if is_shallow && !result.is_null() {
                if !result.is_string() {
                    return Err(Failure::Panic("a shallow variable that is no text"));
                }
                inserted = inserted.replace("{{", "\\{{");
            }
            value = value.replacen(
                &format!("{before}{inner}"),
                &format!("{before}{inserted}"),
                1,
            );
        }
        if is_last_shallow {
            break;
        }
    }
    Ok(Value::String(value.replace("\\{{", "{{")))
}

/// Name of a variable, and whether it is shallow (docs/spec/conditions.md §4.2).
fn normalised(variable: &str) -> (String, bool) {
    let name = variable.replace("{{", "").replace("}}", "");
    let name = name.trim();
    match name.strip_prefix('-') {
        Some(name) => (name.trim().to_owned(), true),
        None => (name.to_owned(), false),
    }
}

/// What `{{@}}` stands for (docs/spec/conditions.md §4.6).
fn own_path(context: &mut Context<'_>, path: &str) -> String {
    let start = match context.query("target") {
        Ok(_) => "target",
        Err(_) => "request.object",
    };
    let unescaped = path.replace("\\/", "\u{0}");
    let mut components: Vec<String> = unescaped
        .split('/')
        .skip(1)
        .map(|component| component.replace('\u{0}', "/"))
        .collect();
    if let Some(at) = components.iter().position(|one| one == "foreach") {
        components.drain(..=at);
    }
    let mut text = start.to_owned();
    for component in components.iter().skip(2) {
        let is_identifier = component.chars().enumerate().all(|(at, letter)| {
            letter.is_ascii_alphabetic()
                || letter == '_'
                || (at > 0 && (letter.is_ascii_digit() || letter == ')'))
        });
        if component.parse::<u64>().is_ok() {
            text.push_str(&format!("[{component}]"));
        } else if is_identifier && !component.is_empty() {
            text.push_str(&format!(".{component}"));
        } else {
            let escaped = component.replace('\\', "\\\\").replace('"', "\\\"");
            text.push_str(&format!(".\"{escaped}\""));
        }
    }
    text
}

/// The references of one text or key (docs/spec/patterns.md §10.1).
fn with_references(document: &Value, text: &str, path: &str) -> Result<Value, Failure> {
    let mut value = text.to_owned();
    for Found { before, inner } in find_all(text, reference_length) {
        let resolved = resolve_reference(document, inner, path).map_err(|error| {
            error.wrap(|text| format!("failed to resolve {inner} at path {path}: {text}"))
        })?;
        let inserted = match resolved {
            Value::Null => {
                return Err(Failure::error(format!(
                    "got nil resolved variable {inner} at path {path}: <nil>"
                )));
            }
            Value::String(text) => text,
            _ => {
                return Err(Failure::error(format!(
                    "NotResolvedReferenceErr,reference {inner} not resolved at path {path}"
                )));
            }
        };
        value = value.replacen(
            &format!("{before}{inner}"),
            &format!("{before}{inserted}"),
            1,
        );
    }
    Ok(Value::String(without_escapes(&value)))
}

/// `\$(...)` loses its backslash: `\\\$\(.[^\ \)]*\)` (docs/spec/patterns.md §10.1).
fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\$(") {
        out.push_str(before);
        let escaped = || {
            let first = after.chars().next().filter(|letter| *letter != '\n')?;
            let body = after.get(first.len_utf8()..)?;
            let end = body.find([' ', ')'])?;
            body.get(end..)?.starts_with(')').then_some(())
        };
        out.push_str(if escaped().is_some() { "$(" } else { "\\$(" });
        rest = after;
    }
    out + rest
}

fn resolve_reference(document: &Value, reference: &str, path: &str) -> Result<Value, Failure> {
    let inside = reference.trim_matches(['$', '(', ')']);
    let operator = operator(inside);
    let rest = inside.get(operator.sign().len()..).unwrap_or_default();
    if rest.is_empty() {
        return Err(Failure::error("expected path, found empty reference"));
    }
    let target = match rest.starts_with('/') {
        true => rest.to_owned(),
        false if path.is_empty() => clean_path(rest),
        false => clean_path(&format!("{path}/{rest}")),
    };
    let mut found = Value::Null;
    look_up(document, "", &target, &mut found);
    if operator == Operator::Equal {
        return Ok(found);
    }
    let text = match &found {
        Value::String(text) => text.clone(),
        Value::Number(given) => match number(given) {
            Num::Int(whole) => whole.to_string(),
            Num::Float(float) => format!("{float:.6}"),
        },
        other => {
            return Err(Failure::error(format!(
                "incorrect expression: operator {} does not match with value {}",
                operator.sign(),
                go_text(other)
            )));
        }
    };
    Ok(Value::String(format!("{}{text}", operator.sign())))
}

/// The last leaf or key at a path, whose own anchors do not count.
fn look_up(document: &Value, path: &str, target: &str, found: &mut Value) {
    let is_here = || without_anchors(path) == target;
    match document {
        Value::Object(members) => {
            for (key, value) in members {
                if is_here() {
                    *found = Value::String(key.clone());
                }
                let child = format!("{path}/{}", key.replace('/', "\\/"));
                look_up(value, &child, target, found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                look_up(item, &format!("{path}/{at}"), target, found);
            }
        }
        leaf if is_here() => *found = leaf.clone(),
        _ => {}
    }
}

fn without_anchors(path: &str) -> String {
    let components: Vec<&str> = path.split('/').map(anchor::inner).collect();
    components.join("/")
}
