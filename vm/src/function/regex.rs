//! Functions on regular expressions (docs/spec/jmespath.md §7 and §9).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;

use super::string::text_or_number;
use super::values::{Values, spend};
use super::{Outcome, go_regex};
use crate::document::NodeId;
use kpvm_semantics::FunctionError;
use kpvm_semantics::limits::Limits;

/// Maximum number of cached patterns.
const CACHED: usize = 64;

/// A compiled pattern.
pub(crate) struct Compiled {
    pub(crate) regex: Regex,
    /// Names of the groups, from 1 on.
    names: Vec<Option<Box<str>>>,
}

/// Cache of compiled regular expressions, for patterns known only at run time. Belongs to a
/// session.
#[derive(Default)]
pub struct RegexCache {
    compiled: HashMap<String, Arc<Compiled>>,
}

impl fmt::Debug for RegexCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.compiled.keys()).finish()
    }
}

/// The compiled pattern; [`FunctionError::Failed`] contains Go's text without a prefix.
pub(super) fn compile(
    values: &mut Values<'_>,
    pattern: &str,
) -> Result<Arc<Compiled>, FunctionError> {
    compile_cached(values.regexes, values.fuel, &values.limits, pattern)
}

/// Like [`compile`], for callers that hold a view of the values.
pub(crate) fn compile_cached(
    regexes: &mut RegexCache,
    fuel: &mut u64,
    limits: &Limits,
    pattern: &str,
) -> Result<Arc<Compiled>, FunctionError> {
    if let Some(known) = regexes.compiled.get(pattern) {
        return Ok(Arc::clone(known));
    }
    if pattern.len() > limits.regex_bytes {
        return Err(FunctionError::refused(format!(
            "a regular expression of more than {} bytes (limit regex-bytes)",
            limits.regex_bytes
        )));
    }
    spend(fuel, 100 + pattern.len() as u64)?;
    let translated = go_regex::translate(pattern).map_err(FunctionError::Failed)?;
    let regex = build(&translated.pattern, limits)?;
    spend(fuel, regex.memory_usage() as u64 / 64)?;
    let compiled = Arc::new(Compiled {
        regex,
        names: translated.names,
    });
    let cache = &mut regexes.compiled;
    if cache.len() >= CACHED {
        cache.clear();
    }
    cache.insert(pattern.to_owned(), Arc::clone(&compiled));
    Ok(compiled)
}

fn build(pattern: &str, limits: &Limits) -> Result<Regex, FunctionError> {
    let config = Regex::config()
        .nfa_size_limit(Some(limits.regex_program_bytes))
        .hybrid_cache_capacity(limits.regex_program_bytes);
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().nest_limit(250))
        .build(pattern)
        .map_err(|_| {
            FunctionError::refused(
                "a regular expression is nested too deeply or takes too much memory \
                 (limit regex-program-bytes)",
            )
        })
}

/// Prefixes Go's text with the function's name, as two of the functions do.
fn named(function: &'static str) -> impl Fn(FunctionError) -> FunctionError {
    move |error| match error {
        FunctionError::Failed(text) => FunctionError::of(function, text),
        FunctionError::Refused(_) => error,
    }
}

/// Cost of one scan of a text: it may visit every state for every byte.
pub(crate) fn scan_steps(compiled: &Compiled, bytes: usize) -> u64 {
    let weight = 1 + compiled.regex.memory_usage() as u64 / 128;
    (bytes as u64 / Values::BYTES_PER_STEP).saturating_mul(weight)
}

pub(super) fn regex_match(values: &mut Values<'_>, pattern: NodeId, text: NodeId) -> Outcome {
    let pattern = values.str(pattern).to_owned();
    let text = text_or_number(values, text);
    let compiled = compile(values, &pattern)?;
    values.charge(scan_steps(&compiled, text.len()))?;
    values.new_bool(compiled.regex.is_match(&text))
}

pub(super) fn replace_all(
    values: &mut Values<'_>,
    pattern: NodeId,
    text: NodeId,
    template: NodeId,
) -> Outcome {
    replace(values, [pattern, text, template], "regex_replace_all", true)
}

pub(super) fn replace_all_literal(
    values: &mut Values<'_>,
    pattern: NodeId,
    text: NodeId,
    replacement: NodeId,
) -> Outcome {
    let arguments = [pattern, text, replacement];
    replace(values, arguments, "regex_replace_all_literal", false)
}

fn replace(
    values: &mut Values<'_>,
    [pattern, text, replacement]: [NodeId; 3],
    function: &'static str,
    is_template: bool,
) -> Outcome {
    let pattern = values.str(pattern).to_owned();
    let text = text_or_number(values, text);
    let replacement = text_or_number(values, replacement);
    let compiled = compile(values, &pattern).map_err(named(function))?;
    let first_scan = scan_steps(&compiled, text.len());
    values.charge(first_scan)?;
    // Later searches begin after the previous match, but may scan to the end again.
    let weight = 1 + first_scan / (1 + text.len() as u64) / 4;
    let (mut out, mut copied) = (String::new(), 0);
    for captures in compiled.regex.captures_iter(Input::new(&text)) {
        let Some(whole) = captures.get_match() else {
            continue;
        };
        let rest = (text.len() - whole.start()) as u64;
        values.charge(1 + rest / Values::BYTES_PER_STEP * weight)?;
        out.push_str(text.get(copied..whole.start()).unwrap_or_default());
        copied = whole.end();
        if is_template {
            expand(&replacement, &text, &compiled, &captures, &mut out);
        } else {
            out.push_str(&replacement);
        }
        values.check_text(out.len())?;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    values.new_text(&out)
}

/// Appends a template with its references replaced (docs/spec/jmespath.md §9.2).
fn expand(template: &str, text: &str, compiled: &Compiled, captures: &Captures, out: &mut String) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        match reference(rest) {
            Some((name, after)) => {
                rest = after;
                if let Some(span) = group(name, compiled, captures) {
                    out.push_str(text.get(span.range()).unwrap_or_default());
                }
            }
            None => out.push('$'),
        }
    }
    out.push_str(rest);
}

/// The name after a `$`, with or without braces, and the text after it.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (in_braces, inside) = match text.strip_prefix('{') {
        Some(inside) => (true, inside),
        None => (false, text),
    };
    let is_part = |c: char| c == '_' || c.is_alphabetic() || c.is_numeric();
    let end = inside.find(|c| !is_part(c)).unwrap_or(inside.len());
    let (name, rest) = inside.split_at_checked(end)?;
    if name.is_empty() {
        return None;
    }
    let rest = if in_braces {
        rest.strip_prefix('}')?
    } else {
        rest
    };
    Some((name, rest))
}

/// Text matched by a group.
fn group(name: &str, compiled: &Compiled, captures: &Captures) -> Option<regex_automata::Span> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && (name == "0" || !name.starts_with('0')) {
        return captures.get_group(name.parse().ok()?);
    }
    // Of several groups with the same name, the first that took part in the match counts.
    let groups = compiled.names.iter().enumerate();
    groups
        .filter(|(_, group)| group.as_deref() == Some(name))
        .find_map(|(index, _)| captures.get_group(index + 1))
}
