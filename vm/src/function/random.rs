//! `random`: a text that matches a regular expression (docs/spec/jmespath.md §7). The host
//! provides the random numbers.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::values::Values;
use super::{Outcome, go_regex};
use crate::document::NodeId;
use kpvm_semantics::FunctionError;

/// Maximum repetitions of `*` and `+`.
const MAX_REPEATS: u64 = 4096;

pub(super) fn random(values: &mut Values<'_>, pattern: NodeId) -> Outcome {
    let pattern = values.str(pattern).to_owned();
    if pattern.is_empty() {
        return Err(FunctionError::failed("no pattern provided"));
    }
    if pattern.len() > values.limits.regex_bytes {
        return Err(FunctionError::refused(
            "a regular expression is too long (limit regex-bytes)",
        ));
    }
    values.charge(100 + pattern.len() as u64)?;
    let translated = go_regex::translate(&pattern).map_err(FunctionError::Failed)?;
    let expression = regex_syntax::parse(&translated.pattern)
        .map_err(|_| FunctionError::refused("a regular expression is nested too deeply"))?;
    let text = generate(values, &expression)?;
    values.new_text(&text)
}

fn generate(values: &mut Values<'_>, expression: &Hir) -> Result<String, FunctionError> {
    let mut out = String::new();
    // Parts still to be written, last first, with their repetitions.
    let mut rest = vec![(expression, 1u64)];
    while let Some((next, times)) = rest.pop() {
        values.charge(1)?;
        values.check_text(out.len())?;
        if times > 1 {
            rest.push((next, times - 1));
        }
        match next.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => out.push_str(&String::from_utf8_lossy(&literal.0)),
            HirKind::Class(class) => out.extend(one_of(values, class)?),
            HirKind::Repetition(repetition) => {
                let min = u64::from(repetition.min);
                let max = repetition.max.map_or(MAX_REPEATS.max(min), u64::from);
                let times = min + below(values, max - min + 1)?;
                if times > 0 {
                    rest.push((&repetition.sub, times));
                }
            }
            HirKind::Capture(capture) => rest.push((&capture.sub, 1)),
            HirKind::Concat(parts) => rest.extend(parts.iter().rev().map(|part| (part, 1))),
            HirKind::Alternation(parts) => {
                let index = below(values, parts.len() as u64)? as usize;
                rest.extend(parts.get(index).map(|part| (part, 1)));
            }
        }
    }
    Ok(out)
}

/// A character of a class; none if it is empty.
fn one_of(values: &mut Values<'_>, class: &Class) -> Result<Option<char>, FunctionError> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => class
            .iter()
            .map(|range| (range.start().into(), range.end().into()))
            .collect(),
        Class::Bytes(class) => class
            .iter()
            .map(|range| (range.start().into(), range.end().into()))
            .collect(),
    };
    let size = |(low, high): (u32, u32)| u64::from(high - low) + 1;
    let total = ranges.iter().copied().map(size).sum();
    let mut place = below(values, total)?;
    for range in ranges {
        if place < size(range) {
            return Ok(char::from_u32(range.0 + place as u32));
        }
        place -= size(range);
    }
    Ok(None)
}

/// A random number below `bound`; 0 if the bound is 0.
fn below(values: &mut Values<'_>, bound: u64) -> Result<u64, FunctionError> {
    if bound <= 1 {
        return Ok(0);
    }
    let random = values
        .host
        .random()
        .ok_or_else(|| FunctionError::refused("random numbers are not available here"))?;
    Ok(random % bound)
}
