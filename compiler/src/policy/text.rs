//! Finds `{{ variables }}` and `$(references)` in texts, exactly as Kyverno's regular
//! expressions do (docs/spec/conditions.md §4.2 and §5).
//!
//! Returns byte ranges; evaluates nothing.

use std::ops::Range;

/// Variables of one pass, in order: the range of `{{...}}` and of the preceding character
/// that the match consumes (empty at the start of the text).
pub(super) fn variables(text: &str) -> Vec<Match> {
    matches_with(text, variable_end)
}

/// References: the range of `$(...)`, and of the consumed character.
pub(super) fn references(text: &str) -> Vec<Match> {
    matches_with(text, reference_end)
}

/// One match, with and without the consumed character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    /// With the consumed character.
    pub(super) whole: Range<usize>,
    /// Without it.
    pub(super) inner: Range<usize>,
}

/// Matches of `^X|[^\\]X`, leftmost first, not overlapping.
fn matches_with(text: &str, end_of: impl Fn(&str) -> Option<usize>) -> Vec<Match> {
    let mut found = Vec::new();
    if let Some(end) = end_of(text) {
        found.push(Match {
            whole: 0..end,
            inner: 0..end,
        });
    }
    let mut from = found.last().map_or(0, |first| first.whole.end);
    while let Some((start, inner)) = next_match_start(text, from, &end_of) {
        found.push(Match {
            whole: start..inner.end,
            inner: inner.clone(),
        });
        from = inner.end;
    }
    found
}

fn next_match_start(
    text: &str,
    from: usize,
    end_of: impl Fn(&str) -> Option<usize>,
) -> Option<(usize, Range<usize>)> {
    let rest = text.get(from..)?;
    rest.char_indices().find_map(|(offset, before)| {
        if before == '\\' {
            return None;
        }
        let start = from + offset + before.len_utf8();
        let length = end_of(text.get(start..)?)?;
        Some((from + offset, start..start + length))
    })
}

/// Length of a variable at the start of the text: `{{`, anything but braces or one level of
/// `{...}`, `}}`.
fn variable_end(text: &str) -> Option<usize> {
    let mut at = text.strip_prefix("{{").map(|_| 2)?;
    loop {
        let rest = text.get(at..)?;
        at += rest.find(['{', '}'])?;
        let rest = text.get(at..)?;
        if rest.starts_with("}}") {
            return Some(at + 2);
        }
        let group = rest.strip_prefix('{')?;
        let close = group.find(['{', '}'])?;
        if !group.get(close..)?.starts_with('}') {
            return None;
        }
        at += 1 + close + 1;
    }
}

/// Length of a reference at the start of the text: `$(`, one character, then up to the last
/// `)` before a space.
fn reference_end(text: &str) -> Option<usize> {
    let body = text.strip_prefix("$(")?;
    let first = body.chars().next().filter(|first| *first != '\n')?;
    let rest = body.get(first.len_utf8()..)?;
    let run = rest.split(' ').next().unwrap_or_default();
    Some(2 + first.len_utf8() + run.rfind(')')? + 1)
}

/// Whether the text contains `{{...}}` without braces inside, escaped or not: the test for
/// fields that allow no variables (docs/spec/policies.md §2.3, item 3).
pub(super) fn has_plain_variable(text: &str) -> bool {
    text.match_indices("{{").any(|(start, _)| {
        text.get(start + 2..)
            .and_then(|body| Some((body, body.find(['{', '}'])?)))
            .and_then(|(body, brace)| body.get(brace..))
            .is_some_and(|rest| rest.starts_with("}}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(text: &str, found: Vec<Match>) -> Vec<&str> {
        found.into_iter().map(|one| &text[one.inner]).collect()
    }

    #[test]
    fn variables_are_found() {
        let cases: [(&str, &[&str]); 9] = [
            ("{{ a }}", &["{{ a }}"]),
            ("x {{ a.{{ b }} }}", &["{{ b }}"]),
            (r"\{{ a }}", &[]),
            ("{{a}}{{b}}", &["{{a}}"]),
            ("{{a}} {{b}}", &["{{a}}", "{{b}}"]),
            ("{{ a.{b: c} }}", &["{{ a.{b: c} }}"]),
            ("{{ {a: {b: c}} }}", &[]),
            ("{{{a}}", &["{{a}}"]),
            ("é{{a\n}}", &["{{a\n}}"]),
        ];
        for (text, expected) in cases {
            assert_eq!(inner(text, variables(text)), expected, "{text}");
        }
    }

    #[test]
    fn references_are_found() {
        let cases: [(&str, &[&str]); 6] = [
            ("$(HOME)", &["$(HOME)"]),
            ("$()", &[]),
            (r"a \$(b)", &[]),
            ("$(cat x)", &[]),
            ("at $(/a/b) and $(c))d", &["$(/a/b)", "$(c))"]),
            ("$(a)b)", &["$(a)b)"]),
        ];
        for (text, expected) in cases {
            assert_eq!(inner(text, references(text)), expected, "{text}");
        }
    }
}
