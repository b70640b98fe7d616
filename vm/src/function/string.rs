//! Functions on texts (docs/spec/jmespath.md §7). All positions are code points.

use super::Outcome;
use super::values::Values;
use crate::document::{Kind, NodeId};
use kpvm_semantics::FunctionError;
use kpvm_semantics::number::float_to_i64_amd64;
use kpvm_semantics::wildcard;

/// A number or text argument as text. Numbers are printed as described in
/// docs/spec/jmespath.md §7.1: without exponent, with the shortest digits that give the
/// same float32.
pub(super) fn text_or_number(values: &Values<'_>, id: NodeId) -> String {
    let view = values.view();
    match view.kind(id) {
        Some(Kind::Float) => single_precision(view.float(id).unwrap_or(f64::NAN)),
        _ => view.str(id).to_owned(),
    }
}

/// See [`text_or_number`].
pub(super) fn single_precision(number: f64) -> String {
    let single = number as f32;
    if single.is_nan() {
        "NaN".into()
    } else if single.is_infinite() {
        if single > 0.0 { "+Inf" } else { "-Inf" }.into()
    } else {
        single.to_string()
    }
}

/// -1, 0 or 1 as an Int, which the language does not treat as a number.
pub(super) fn compare(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let view = values.view();
    let order = view.text(a).cmp(view.text(b)) as i64;
    values.new_int(order)
}

pub(super) fn equal_fold(values: &mut Values<'_>, a: NodeId, b: NodeId) -> Outcome {
    let view = values.view();
    let folded = |id| view.str(id).chars().map(fold);
    let equal = folded(a).eq(folded(b));
    values.new_bool(equal)
}

/// A representative of all characters that differ only in case.
fn fold(c: char) -> char {
    match c {
        // Their case mappings are not reversible.
        'İ' | 'ı' => c,
        c => lower(upper(c)),
    }
}

/// The simple upper-case mapping: always one character.
fn upper(c: char) -> char {
    match c {
        // Greek letters with iota subscript: their full mapping has two characters.
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
            char::from_u32(u32::from(c) + 8).unwrap_or(c)
        }
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => char::from_u32(u32::from(c) + 9).unwrap_or(c),
        c => only(c.to_uppercase()).unwrap_or(c),
    }
}

/// The simple lower-case mapping: always one character.
fn lower(c: char) -> char {
    match c {
        'İ' => 'i',
        c => only(c.to_lowercase()).unwrap_or(c),
    }
}

/// The character, if there is exactly one.
fn only(mut characters: impl ExactSizeIterator<Item = char>) -> Option<char> {
    if characters.len() == 1 {
        characters.next()
    } else {
        None
    }
}

pub(super) fn to_upper(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let result: String = values.str(a).chars().map(upper).collect();
    values.new_text(&result)
}

pub(super) fn to_lower(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let result: String = values.str(a).chars().map(lower).collect();
    values.new_text(&result)
}

pub(super) fn replace(
    values: &mut Values<'_>,
    text: NodeId,
    old: NodeId,
    new: NodeId,
    count: NodeId,
) -> Outcome {
    let count = float_to_i64_amd64(values.number(count));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    replace_some(values, text, old, new, count)
}

pub(super) fn replace_all(
    values: &mut Values<'_>,
    text: NodeId,
    old: NodeId,
    new: NodeId,
) -> Outcome {
    replace_some(values, text, old, new, usize::MAX)
}

/// Replaces the first `count` occurrences; an empty text occurs before every code point and
/// at the end.
fn replace_some(
    values: &mut Values<'_>,
    text: NodeId,
    old: NodeId,
    new: NodeId,
    count: usize,
) -> Outcome {
    let view = values.view();
    let (text, old, new) = (view.str(text), view.str(old), view.str(new));
    // Rust's `matches` of an empty text finds the same places as Go.
    let occurrences = text.matches(old).take(count).count();
    let grown = new.len().saturating_sub(old.len());
    values.check_text(text.len().saturating_add(grown.saturating_mul(occurrences)))?;
    let result = text.replacen(old, new, count);
    values.new_text(&result)
}

pub(super) fn trim(values: &mut Values<'_>, text: NodeId, characters: NodeId) -> Outcome {
    let view = values.view();
    let mut set: Vec<char> = view.str(characters).chars().collect();
    set.sort_unstable();
    let result = view
        .str(text)
        .trim_matches(|c| set.binary_search(&c).is_ok())
        .to_owned();
    values.new_text(&result)
}

pub(super) fn trim_prefix(values: &mut Values<'_>, text: NodeId, prefix: NodeId) -> Outcome {
    let view = values.view();
    let whole = view.str(text);
    let result = whole.strip_prefix(view.str(prefix)).unwrap_or(whole);
    let result = result.to_owned();
    values.new_text(&result)
}

/// Splits a text; into code points if the separator is empty.
pub(super) fn split(values: &mut Values<'_>, text: NodeId, separator: NodeId) -> Outcome {
    let (text, separator) = (
        values.str(text).to_owned(),
        values.str(separator).to_owned(),
    );
    let parts: Vec<String> = if separator.is_empty() {
        values.charge(text.len() as u64)?;
        text.chars().map(String::from).collect()
    } else {
        let count = text.matches(&separator).count();
        values.charge_members(count)?;
        text.split(&separator).map(String::from).collect()
    };
    values.charge_members(parts.len())?;
    let mut items = Vec::with_capacity(parts.len());
    for part in &parts {
        items.push(values.new_text(part)?);
    }
    values.new_list(&items)
}

/// The first code points, up to a number.
pub(super) fn truncate(values: &mut Values<'_>, text: NodeId, length: NodeId) -> Outcome {
    let length = float_to_i64_amd64(values.number(length));
    let length = usize::try_from(length).unwrap_or(0);
    let whole = values.str(text);
    let end = whole
        .char_indices()
        .nth(length)
        .map_or(whole.len(), |(offset, _)| offset);
    let result = whole.get(..end).unwrap_or(whole).to_owned();
    values.new_text(&result)
}

pub(super) fn to_boolean(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let text = values.str(a);
    let lowered: String = text.chars().map(lower).collect();
    let result = match lowered.as_str() {
        "true" => true,
        "false" => false,
        _ => {
            return Err(FunctionError::of(
                "to_boolean",
                format!("lowercase argument must be 'true' or 'false' (provided: '{text}')"),
            ));
        }
    };
    values.new_bool(result)
}

/// Cleans a path lexically.
pub(super) fn path_canonicalize(values: &mut Values<'_>, a: NodeId) -> Outcome {
    let path = values.str(a);
    if path.is_empty() {
        return Ok(a);
    }
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    let result = match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    };
    values.new_text(&result)
}

pub(super) fn pattern_match(values: &mut Values<'_>, pattern: NodeId, text: NodeId) -> Outcome {
    let (pattern, text) = (values.str(pattern).to_owned(), text_or_number(values, text));
    let steps = wildcard::worst_steps(pattern.as_bytes(), text.as_bytes());
    values.charge(steps / 16)?;
    let result = wildcard::matches(&pattern, &text);
    values.new_bool(result)
}
