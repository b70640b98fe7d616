//! Regular expressions in Go's syntax (docs/spec/cel.md §3.8 and §3.9).

use kpvm_format::cel::Function;
use regex_automata::Input;

use super::value::{Value, look, no_overload};
use crate::document::NodeId;
use crate::function::{CompiledRegex, FunctionError, Values, compile_regex, scan_steps};

type Outcome = Result<NodeId, FunctionError>;

/// Calls a function of a text and a regular expression.
pub(crate) fn call(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let (Some(text), Some(pattern)) = (arguments.first(), arguments.get(1)) else {
        return Err(no_overload());
    };
    let (Value::String(_), Value::String(_)) = (look(&view, *text), look(&view, *pattern)) else {
        return Err(no_overload());
    };
    let view = values.buffer.view(values.texts, values.symbols);
    let compiled = compile_regex(
        values.regexes,
        values.fuel,
        &values.limits,
        view.str(*pattern),
    )
    .map_err(|error| illegal(function, error))?;
    let text = view.str(*text);
    let steps = scan_steps(&compiled, text.len());
    crate::function::spend(values.fuel, 1 + steps)?;
    match function {
        Function::Matches => {
            let found = compiled.regex.is_match(text);
            values.new_bool(found)
        }
        Function::Find => {
            let found = compiled.regex.find(text);
            let found = found
                .and_then(|found| text.get(found.range()))
                .unwrap_or("");
            let found = found.to_owned();
            values.new_text(&found)
        }
        Function::FindAll => {
            let most = match arguments.get(2).map(|limit| look(&view, *limit)) {
                None => usize::MAX,
                Some(Value::Int(limit)) => usize::try_from(limit).unwrap_or(usize::MAX),
                Some(_) => return Err(no_overload()),
            };
            let found = all_matches(&compiled, text, most, steps, values.fuel)?;
            let found: Vec<String> = found
                .into_iter()
                .map(|range| text.get(range).unwrap_or("").to_owned())
                .collect();
            values.new_texts(found)
        }
        Function::RegexExtract | Function::RegexExtractAll => {
            let groups = compiled.regex.captures_len();
            if groups > 2 {
                let pattern = compiled_pattern(&view, arguments);
                return Err(FunctionError::Failed(format!(
                    "regular expression has more than one capturing group: {pattern:?}"
                )));
            }
            let mut parts = Vec::new();
            for captures in compiled.regex.captures_iter(Input::new(text)) {
                crate::function::spend(values.fuel, 1 + steps / 4)?;
                let group = if groups == 2 { 1 } else { 0 };
                if let Some(span) = captures.get_group(group) {
                    parts.push(text.get(span.range()).unwrap_or("").to_owned());
                } else if function == Function::RegexExtract {
                    return values.new_optional(None);
                }
                if function == Function::RegexExtract {
                    break;
                }
            }
            if function == Function::RegexExtractAll {
                return values.new_texts(parts);
            }
            match parts.first() {
                None => values.new_optional(None),
                Some(part) => {
                    let part = values.new_text(part)?;
                    values.new_optional(Some(part))
                }
            }
        }
        _ => {
            let most = match arguments.get(3).map(|limit| look(&view, *limit)) {
                None => usize::MAX,
                Some(Value::Int(limit)) => usize::try_from(limit).unwrap_or(usize::MAX),
                Some(_) => return Err(no_overload()),
            };
            let template = arguments.get(2).map(|template| look(&view, *template));
            let Some(template) = template.as_ref().and_then(Value::text) else {
                return Err(no_overload());
            };
            let (mut out, mut copied) = (String::new(), 0);
            for captures in compiled.regex.captures_iter(Input::new(text)).take(most) {
                let Some(whole) = captures.get_match() else {
                    continue;
                };
                crate::function::spend(values.fuel, 1 + steps / 4)?;
                out.push_str(text.get(copied..whole.start()).unwrap_or(""));
                copied = whole.end();
                expand(template, text, &captures, &mut out)?;
                if out.len() > values.limits.string_bytes {
                    break;
                }
            }
            out.push_str(text.get(copied..).unwrap_or(""));
            values.new_text(&out)
        }
    }
}

fn compiled_pattern(view: &crate::document::View<'_>, arguments: &[NodeId]) -> String {
    arguments
        .get(1)
        .map(|pattern| view.str(*pattern).to_owned())
        .unwrap_or_default()
}

/// Appends a template that contains `\0` to `\9` and `\\`.
fn expand(
    template: &str,
    text: &str,
    captures: &regex_automata::util::captures::Captures,
    out: &mut String,
) -> Result<(), FunctionError> {
    let mut characters = template.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('\\') => out.push('\\'),
            Some(digit @ '0'..='9') => {
                let group = digit as usize - '0' as usize;
                if group >= captures.group_len() {
                    return Err(FunctionError::Failed(format!(
                        "replacement string references group {group} but regex has only {} group(s)",
                        captures.group_len().saturating_sub(1)
                    )));
                }
                if let Some(span) = captures.get_group(group) {
                    out.push_str(text.get(span.range()).unwrap_or(""));
                }
            }
            other => {
                let problem = match other {
                    None => "\\ not allowed at end",
                    Some(_) => "\\ must be followed by a digit or \\",
                };
                return Err(FunctionError::Failed(format!(
                    "invalid replacement string: '{template}' {problem}"
                )));
            }
        }
    }
    Ok(())
}

fn all_matches(
    compiled: &CompiledRegex,
    text: &str,
    most: usize,
    steps: u64,
    fuel: &mut u64,
) -> Result<Vec<std::ops::Range<usize>>, FunctionError> {
    let mut found = Vec::new();
    for hit in compiled.regex.find_iter(text).take(most) {
        crate::function::spend(fuel, 1 + steps / 4)?;
        found.push(hit.range());
    }
    Ok(found)
}

/// Error for an invalid pattern.
fn illegal(function: Function, error: FunctionError) -> FunctionError {
    match (function, error) {
        (Function::Find | Function::FindAll, FunctionError::Failed(text)) => {
            FunctionError::Failed(format!("Illegal regex: {text}"))
        }
        (_, error) => error,
    }
}
