//! Functions of regular expressions (docs/spec/jmespath.md §9).

use kpvm_semantics::go_regex::{Translated, translate};
use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use serde_json::Value;

use super::evaluate::{Datum, Evaluated};
use super::functions::text_or_number;
use crate::failure::Failure;

fn compile(pattern: &str) -> Result<(Regex, Translated), Failure> {
    let translated = translate(pattern).map_err(Failure::Error)?;
    let regex = Regex::new(&translated.pattern)
        .map_err(|_| Failure::NotDone("a regular expression that is too large"))?;
    Ok((regex, translated))
}

/// Whether a Go regular expression matches somewhere.
pub(crate) fn is_match(pattern: &str, text: &str) -> Result<bool, Failure> {
    Ok(compile(pattern)?.0.is_match(text))
}

/// A text as a regular expression.
pub(super) fn literal(text: &str) -> String {
    let escape = |letter: char| match letter {
        letter if letter.is_ascii_punctuation() => format!("\\{letter}"),
        letter => letter.to_string(),
    };
    text.chars().map(escape).collect()
}

pub(super) fn call(name: &str, arguments: &[Datum]) -> Evaluated {
    let pattern = text_or_number(arguments.first());
    let source = text_or_number(arguments.get(1));
    let json = |value: Value| Ok(Datum::Json(value));
    if name == "regex_match" {
        return json(is_match(&pattern, &source)?.into());
    }
    let (regex, translated) = compile(&pattern)
        .map_err(|failure| failure.wrap(|text| format!("JMESPath function '{name}': {text}")))?;
    let template = text_or_number(arguments.get(2));
    let mut out = String::new();
    let mut copied = 0;
    // The iterator skips an empty match right behind another match, as Go does.
    for captures in regex.captures_iter(source.as_str()) {
        let Some(whole) = captures.get_match() else {
            continue;
        };
        out.push_str(source.get(copied..whole.start()).unwrap_or_default());
        copied = whole.end();
        match name {
            "regex_replace_all" => {
                expand(&template, &captures, &translated, &source, &mut out);
            }
            _ => out.push_str(&template),
        }
    }
    out.push_str(source.get(copied..).unwrap_or_default());
    json(out.into())
}

/// Go's replacement template (docs/spec/jmespath.md §9.2).
fn expand(
    template: &str,
    captures: &Captures,
    translated: &Translated,
    source: &str,
    out: &mut String,
) {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let braced = after.strip_prefix('{');
        let body = braced.unwrap_or(after);
        let length = body.find(|letter| !is_name(letter)).unwrap_or(body.len());
        let (name, behind) = body.split_at(length);
        let behind = match braced {
            Some(_) => behind.strip_prefix('}'),
            None => Some(behind),
        };
        match behind {
            Some(behind) if !name.is_empty() => {
                let group = group_number(name, translated);
                let found = group.and_then(|group| captures.get_group(group));
                out.push_str(
                    found
                        .and_then(|span| source.get(span.range()))
                        .unwrap_or_default(),
                );
                rest = behind;
            }
            _ => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
}

/// A group by number without leading zeros, or by name; of equal names the last that
/// exists.
fn group_number(name: &str, translated: &Translated) -> Option<usize> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && (name == "0" || !name.starts_with('0')) {
        return name.parse().ok();
    }
    let mut names = translated.names.iter();
    let at = names.position(|known| known.as_deref() == Some(name))?;
    Some(at + 1)
}
