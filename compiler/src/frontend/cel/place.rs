//! Positions inside YAML scalars that hold expressions.

use kpvm_syntax::tree::Span;

/// The position in the file of byte `at` of a text that is written as the YAML scalar at
/// `span`: accounts for quotes, escapes, indentation and folds.
pub fn place_in_scalar(source: &str, span: Span, text: &str, at: usize) -> Span {
    let Some(raw) = source.get(span.start as usize..span.end as usize) else {
        return span;
    };
    let mut rest = raw;
    if rest.starts_with(['|', '>']) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    } else if rest.starts_with(['"', '\'']) {
        rest = rest.get(1..).unwrap_or("");
    }
    let is_double = raw.starts_with('"');
    let is_single = raw.starts_with('\'');
    let before = text.get(..at).unwrap_or(text);
    let next_is_blank = text
        .get(at..)
        .and_then(|rest| rest.chars().next())
        .is_none_or(char::is_whitespace);
    for character in before.chars() {
        if character.is_whitespace() {
            rest = match rest.strip_prefix("\\n").filter(|_| is_double) {
                Some(after) => after,
                None => rest.trim_start(),
            };
            continue;
        }
        rest = rest.trim_start();
        if is_double && rest.starts_with('\\') || is_single && rest.starts_with("''") {
            rest = rest.get(1..).unwrap_or("");
        }
        match rest.strip_prefix(character) {
            Some(after) => rest = after,
            // Written with another kind of escape.
            None => return span,
        }
    }
    if !next_is_blank {
        rest = rest.trim_start();
    }
    let start = span.start + (raw.len() - rest.len()) as u32;
    let length = rest.chars().next().map_or(0, char::len_utf8) as u32;
    Span {
        start,
        end: start + length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The column inside YAML strings of every style.
    #[test]
    fn places_inside_scalars() {
        let cases = [
            ("plain", "a: size(x) == nope", 3, "size(x) == nope", "nope"),
            (
                "double quoted",
                "a: \"'x' == \\\"y\\\" + nope\"",
                3,
                "'x' == \"y\" + nope",
                "nope",
            ),
            (
                "single quoted",
                "a: '''x'' == nope'",
                3,
                "'x' == nope",
                "nope",
            ),
            (
                "literal",
                "a: |\n  one &&\n  nope\n",
                3,
                "one &&\nnope\n",
                "nope",
            ),
            (
                "folded",
                "a: >-\n    one &&\n    nope",
                3,
                "one && nope",
                "nope",
            ),
            (
                "plain over lines",
                "a: one &&\n   nope",
                3,
                "one && nope",
                "nope",
            ),
        ];
        for (style, source, start, text, part) in cases {
            let span = Span {
                start,
                end: source.len() as u32,
            };
            let at = text.find(part).unwrap();
            let found = place_in_scalar(source, span, text, at);
            let shown = &source[found.start as usize..];
            assert!(shown.starts_with(part), "{style}: {shown:?}");
        }
    }
}
