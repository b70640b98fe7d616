//! Functions on text (docs/spec/cel.md §3.8 and §3.9); positions are code points.

use kpvm_format::cel::Function;

use super::value::{Value, look, no_overload};
use crate::document::NodeId;
use crate::function::{FunctionError, Values};

type Outcome = Result<NodeId, FunctionError>;

fn out_of_range(index: i64) -> FunctionError {
    FunctionError::Failed(format!("index out of range: {index}"))
}

/// Byte offset of a code point; for the position after the last one, the length.
fn offset_of(text: &str, position: i64) -> Result<usize, FunctionError> {
    let wanted = usize::try_from(position).map_err(|_| out_of_range(position))?;
    if text.is_ascii() {
        return if wanted <= text.len() {
            Ok(wanted)
        } else {
            Err(out_of_range(position))
        };
    }
    let mut offsets = text.char_indices().map(|(offset, _)| offset);
    let ends = std::iter::once(text.len());
    offsets
        .by_ref()
        .chain(ends)
        .nth(wanted)
        .ok_or_else(|| out_of_range(position))
}

/// Whether a position is after the end of the text.
fn is_beyond(text: &str, position: i64) -> bool {
    usize::try_from(position).is_ok_and(|position| position > text.chars().count())
}

/// Where a text is found after the end: only an empty one, at the end.
fn beyond(text: &str, needle: &str) -> i64 {
    match needle {
        "" => text.chars().count() as i64,
        _ => -1,
    }
}

fn position_of(text: &str, offset: usize) -> i64 {
    text.get(..offset)
        .map_or(0, |before| before.chars().count() as i64)
}

/// Calls a function whose receiver is a string.
pub(crate) fn call(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let shown: Vec<Value<'_>> = arguments.iter().map(|id| look(&view, *id)).collect();
    let Some((first, rest)) = shown.split_first() else {
        return Err(no_overload());
    };
    let Some(text) = first.text() else {
        return Err(no_overload());
    };
    let bytes = text.len();
    let result = match (function, rest) {
        (Function::CharAt, [Value::Int(index)]) => {
            let offset = offset_of(text, *index)?;
            let rest = text.get(offset..).unwrap_or("");
            Text(rest.chars().next().map(String::from).unwrap_or_default())
        }
        (Function::IndexOf, [Value::String(_), ..]) if rest.len() < 3 => {
            let needle = rest[0].text().unwrap_or("");
            let start = match rest.get(1) {
                None => 0,
                Some(Value::Int(start)) if is_beyond(text, *start) => {
                    return values.new_int(beyond(text, needle));
                }
                Some(Value::Int(start)) => offset_of(text, *start)?,
                Some(_) => return Err(no_overload()),
            };
            let found = text.get(start..).and_then(|tail| tail.find(needle));
            Int(found.map_or(-1, |found| position_of(text, start + found)))
        }
        (Function::LastIndexOf, [Value::String(_), ..]) if rest.len() < 3 => {
            let needle = rest[0].text().unwrap_or("");
            let found = match rest.get(1) {
                None if needle.is_empty() => Some(text.len()),
                None => text.rfind(needle),
                Some(Value::Int(last)) if is_beyond(text, last.saturating_add(1)) => {
                    return values.new_int(beyond(text, needle));
                }
                Some(Value::Int(last)) => {
                    let last = offset_of(text, *last)?;
                    // Latest start of the match.
                    let end = (last + needle.len()).min(text.len());
                    let head = text.as_bytes().get(..end).unwrap_or_default();
                    memchr::memmem::rfind(head, needle.as_bytes())
                }
                Some(_) => return Err(no_overload()),
            };
            Int(found.map_or(-1, |found| position_of(text, found)))
        }
        (Function::LowerAscii, []) => Text(text.to_ascii_lowercase()),
        (Function::UpperAscii, []) => Text(text.to_ascii_uppercase()),
        (Function::Replace, [Value::String(_), Value::String(_), limit @ ..]) => {
            let limit = match limit {
                [] => -1,
                [Value::Int(limit)] => *limit,
                _ => return Err(no_overload()),
            };
            let (from, to) = (rest[0].text().unwrap_or(""), rest[1].text().unwrap_or(""));
            let most = usize::try_from(limit).unwrap_or(usize::MAX);
            let count = if from.is_empty() {
                bytes + 1
            } else {
                bytes / from.len()
            };
            let size = bytes.saturating_add(count.min(most).saturating_mul(to.len()));
            let (from, to, text) = (from.to_owned(), to.to_owned(), text.to_owned());
            values.check_text(size)?;
            values.charge_bytes(size)?;
            return values.new_text(&text.replacen(&from, &to, most));
        }
        (Function::Split, [Value::String(_), limit @ ..]) => {
            let limit = match limit {
                [] => -1,
                [Value::Int(limit)] => *limit,
                _ => return Err(no_overload()),
            };
            Texts(split(text, rest[0].text().unwrap_or(""), limit))
        }
        (Function::Substring, [Value::Int(start), end @ ..]) => {
            let (from, to) = match end {
                [] => (offset_of(text, *start)?, text.len()),
                [Value::Int(end)] => {
                    if start > end {
                        return Err(FunctionError::Failed(format!(
                            "invalid substring range. start: {start}, end: {end}"
                        )));
                    }
                    (offset_of(text, *start)?, offset_of(text, *end)?)
                }
                _ => return Err(no_overload()),
            };
            Text(text.get(from..to).unwrap_or("").to_owned())
        }
        (Function::Trim, []) => Text(text.trim().to_owned()),
        (Function::Quote, []) => Text(quote(text)),
        (Function::ReverseString | Function::Reverse, []) => Text(text.chars().rev().collect()),
        _ => return Err(no_overload()),
    };
    values.charge_bytes(bytes)?;
    match result {
        Text(text) => values.new_text(&text),
        Int(number) => values.new_int(number),
        Texts(texts) => values.new_texts(texts),
    }
}

/// Result of a function before it becomes a value.
enum Made {
    Text(String),
    Int(i64),
    Texts(Vec<String>),
}
use Made::{Int, Text, Texts};

fn split(text: &str, separator: &str, limit: i64) -> Vec<String> {
    let most = match usize::try_from(limit) {
        Ok(0) => return Vec::new(),
        Ok(1) => return vec![text.to_owned()],
        Ok(most) => most,
        Err(_) => usize::MAX,
    };
    if !separator.is_empty() {
        return text.splitn(most, separator).map(str::to_owned).collect();
    }
    let mut parts: Vec<String> = Vec::new();
    for (offset, character) in text.char_indices() {
        if parts.len() + 1 == most {
            parts.push(text.get(offset..).unwrap_or("").to_owned());
            break;
        }
        parts.push(character.to_string());
    }
    parts
}

/// `strings.quote`: printable text, with a few escapes.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// `list.join(separator)`
pub(crate) fn join(arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let separator = match arguments.get(1).map(|id| look(&view, *id)) {
        None => String::new(),
        Some(separator) => separator.text().ok_or_else(no_overload)?.to_owned(),
    };
    let Some(Value::List(items)) = arguments.first().map(|id| look(&view, *id)) else {
        return Err(no_overload());
    };
    let mut out = String::new();
    let most = values.limits.string_bytes;
    for (index, item) in items.enumerate() {
        let item = look(&view, item);
        let text = item.text().ok_or_else(no_overload)?;
        if index > 0 {
            out.push_str(&separator);
        }
        out.push_str(text);
        if out.len() > most {
            break;
        }
    }
    values.new_text(&out)
}
