//! `$(…)` references inside a pattern (sheet 02, section 10.1), resolved at compile
//! time: they only ever look at the pattern itself, never at a resource.

use kpvm::scalar::pattern_string::{Operator, detect_operator};
use kpvm::tree::{Member, Tree, TreeValue};

/// Resolves every reference of a document.
///
/// # Errors
/// Kyverno's text; the rule's status is then `error` on every resource.
pub fn resolve(document: &Tree) -> Result<Tree, String> {
    resolve_value(document, document, "")
}

/// Resolves the references of a text that is a document of its own (a message).
///
/// # Errors
/// As [`resolve`]: a reference in a message has nothing to refer to.
pub fn resolve_text(text: &str, document: &Tree) -> Result<String, String> {
    resolve_leaf(text, document, "")
}

fn resolve_value(value: &Tree, document: &Tree, path: &str) -> Result<Tree, String> {
    let resolved = match &value.value {
        TreeValue::String(text) => TreeValue::String(resolve_leaf(text, document, path)?.into()),
        TreeValue::List(items) => TreeValue::List(
            items
                .iter()
                .enumerate()
                .map(|(index, item)| resolve_value(item, document, &format!("{path}/{index}")))
                .collect::<Result<_, _>>()?,
        ),
        TreeValue::Map(members) => TreeValue::Map(
            members
                .iter()
                .map(|member| {
                    Ok(Member {
                        key: resolve_leaf(&member.key, document, path)?.into(),
                        key_span: member.key_span,
                        value: resolve_value(&member.value, document, &child_path(path, &member.key))?,
                    })
                })
                .collect::<Result<_, String>>()?,
        ),
        scalar => scalar.clone(),
    };
    Ok(Tree::new(resolved, value.span))
}

fn child_path(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('/', "\\/"))
}

/// The references of a text: ranges that cover `$(…)`, as the regular expression
/// `^\$\(.[^\ ]*\)|[^\\]\$\(.[^\ ]*\)` finds them from left to right, without the
/// character in front.
fn find_references(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("$(").map(|at| from + at) {
        let before = text[..start].chars().next_back();
        // A match behind the start takes one character in front, which must not
        // belong to the match before.
        let free = match before {
            None => true,
            Some(character) => character != '\\' && start - character.len_utf8() >= from_limit(&found),
        };
        match free.then(|| reference_end(text, start)).flatten() {
            Some(end) => {
                found.push(start..end);
                from = end;
            }
            None => from = start + 2,
        }
    }
    found
}

fn from_limit(found: &[std::ops::Range<usize>]) -> usize {
    found.last().map_or(0, |range| range.end)
}

/// End of the reference that begins at `start`: any character, then up to the last
/// `)` before a blank.
fn reference_end(text: &str, start: usize) -> Option<usize> {
    let inside = &text[start + 2..];
    let first = inside.chars().next().filter(|&character| character != '\n')?;
    let rest = &inside[first.len_utf8()..];
    let reach = rest.find(' ').unwrap_or(rest.len());
    let close = rest[..reach].rfind(')')?;
    Some(start + 2 + first.len_utf8() + close + 1)
}

/// Drops the backslash of `\$(…)`: `\\\$\(.[^\ \)]*\)`.
fn unescape(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("\\$(") {
        let inside = &rest[start + 3..];
        let mut characters = inside.chars();
        let first = characters.next().filter(|&character| character != '\n');
        let stop = characters.as_str().find([' ', ')']);
        let closed = stop.is_some_and(|stop| characters.as_str()[stop..].starts_with(')'));
        result.push_str(&rest[..start]);
        if first.is_none() || !closed {
            result.push('\\');
        }
        result.push_str("$(");
        rest = inside;
    }
    result + rest
}

fn resolve_leaf(text: &str, document: &Tree, path: &str) -> Result<String, String> {
    let mut result = text.to_owned();
    for range in find_references(text) {
        let reference = &text[range];
        let value = resolve_reference(reference, document, path)?;
        result = result.replacen(reference, &value, 1);
    }
    Ok(unescape(&result))
}

fn resolve_reference(reference: &str, document: &Tree, path: &str) -> Result<String, String> {
    let stripped = reference.trim_matches(|character| matches!(character, '$' | '(' | ')'));
    let (operator, rest) = detect_operator(stripped);
    let operator_text = operator_text(operator, stripped, rest);
    if rest.is_empty() {
        return Err("expected path, found empty reference".into());
    }
    let target = if rest.starts_with('/') { rest.to_owned() } else { join_path(path, rest) };
    let value = look_up(document, &target);
    if operator_text.is_empty() {
        match &value {
            None => Err(format!("got nil resolved variable {reference} at path {path}: <nil>")),
            Some(TreeValue::String(text)) => Ok(text.to_string()),
            Some(_) => Err(format!("NotResolvedReferenceErr,reference {reference} not resolved at path {path}")),
        }
    } else {
        let text = match &value {
            Some(TreeValue::String(text)) => text.to_string(),
            Some(TreeValue::Int(number)) => number.to_string(),
            Some(TreeValue::Float(number)) => format!("{number:.6}"),
            other => {
                let shown = match other {
                    Some(TreeValue::Bool(value)) => value.to_string(),
                    _ => "<nil>".into(),
                };
                return Err(format!(
                    "failed to resolve {reference} at path {path}: incorrect expression: operator {operator_text} does not match with value {shown}"
                ));
            }
        };
        Ok(operator_text + &text)
    }
}

/// The operator as it stands in the text; for text that looks like a range Kyverno
/// takes `-` or `!-`.
fn operator_text(operator: Option<Operator>, stripped: &str, rest: &str) -> String {
    match operator {
        Some(_) => stripped[..stripped.len() - rest.len()].to_owned(),
        None => String::new(),
    }
}

/// `path.Join` of Go: joined, `.` and `..` resolved.
fn join_path(base: &str, relative: &str) -> String {
    let joined = format!("{base}/{relative}");
    let rooted = joined.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let text = parts.join("/");
    if rooted { format!("/{text}") } else { text }
}

/// The leaf (or key name) at a path; anchors of the document's keys do not count.
fn look_up(document: &Tree, target: &str) -> Option<TreeValue> {
    let mut found = None;
    visit(document, "", target, &mut found);
    found
}

fn visit(value: &Tree, path: &str, target: &str, found: &mut Option<TreeValue>) {
    match &value.value {
        TreeValue::Map(members) => {
            for member in members {
                if path == target {
                    // Keys are leaves under their map's path: the map resolves to a key's name.
                    *found = Some(TreeValue::String(member.key.clone()));
                }
                let anchored = super::anchor::parse(&member.key);
                let key = if member.key.contains('/') { &*member.key } else { anchored.inner };
                visit(&member.value, &child_path(path, key), target, found);
            }
        }
        TreeValue::List(items) => {
            for (index, item) in items.iter().enumerate() {
                visit(item, &format!("{path}/{index}"), target, found);
            }
        }
        TreeValue::Null => {}
        scalar => {
            if path == target {
                *found = Some(scalar.clone());
            }
        }
    }
}
