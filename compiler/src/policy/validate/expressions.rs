//! Problems of expressions and their locations in the file.
//!
//! For the text of one expression, returns a [`Problem`] for a syntax error and for every
//! call that can only fail (docs/spec/jmespath.md §5). Kyverno accepts such calls and fails
//! when it evaluates them. Nothing is evaluated here.

use std::ops::Range;

use kpvm_syntax::jmespath;

use crate::calls::{self, ExpressionProblem, ProblemKind};
use kpvm_syntax::tree::{Span, Tree};

use super::Report;
use crate::diagnostic::Severity;
use crate::policy::read::{field, items};
use crate::policy::text;

/// A problem in a text of a policy.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: String,
    /// Location in the text; `None` for the whole text.
    pub(super) place: Option<Place>,
    /// Kyverno accepts it and fails when it evaluates the expression.
    pub(super) fails_later: bool,
}

/// Part of an expression within a text, in bytes.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) part: Range<usize>,
    pub(super) expression: Range<usize>,
}

impl Problem {
    /// A problem of a whole text.
    pub(super) fn plain(code: &'static str, message: String, hint: &str) -> Self {
        Self {
            code,
            message,
            hint: hint.to_owned(),
            place: None,
            fails_later: false,
        }
    }

    /// Reports the problem of the text at `whole`; `written` is that text if it occurs in
    /// the policy.
    pub(super) fn report(&self, whole: Span, written: Option<&str>, report: &mut Report<'_>) {
        let part = written
            .zip(self.place.as_ref())
            .and_then(|(written, place)| locate(report.text, whole, written, place));
        let part = part.unwrap_or(whole);
        let severity = match self.fails_later {
            true => report.unworkable,
            false => Severity::Error,
        };
        let message = self.message.clone();
        report.add(severity, self.code, (whole, part), message, &self.hint);
    }
}

/// Problems in the calls of an expression that begins at `offset` of its text.
///
/// # Errors
/// If the expression is invalid: a problem with the code `syntax_code`.
pub(super) fn check_expression(
    expression: &str,
    offset: Option<usize>,
    syntax_code: &'static str,
) -> Result<Vec<Problem>, Problem> {
    let behind = |part: Range<usize>| {
        offset.map(|at| Place {
            part: at + part.start..at + part.end,
            expression: at..at + expression.len(),
        })
    };
    match jmespath::parse(expression) {
        Ok(parsed) => Ok(calls::check(&parsed)
            .into_iter()
            .map(|found| Problem {
                code: code(found.kind),
                place: behind(found.span.start as usize..found.span.end as usize),
                hint: hint(&found),
                message: found.message,
                fails_later: true,
            })
            .collect()),
        Err(error) => {
            let rest = expression.get(error.offset..).unwrap_or_default();
            let length = rest.chars().next().map_or(0, char::len_utf8);
            Err(Problem {
                code: syntax_code,
                message: format!("{expression:?} is not valid JMESPath: {}", error.message),
                hint: "correct the expression at this place".into(),
                place: behind(error.offset..error.offset + length),
                fails_later: false,
            })
        }
    }
}

fn code(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::UnknownFunction => "unknown-function",
        ProblemKind::WrongArity => "wrong-arity",
        ProblemKind::WrongArgumentType => "wrong-argument-type",
        ProblemKind::NotCallable => "not-callable",
        ProblemKind::UnfinishedIndex => "unfinished-index",
        ProblemKind::ZeroStep => "zero-step",
    }
}

fn hint(found: &ExpressionProblem) -> String {
    let advice = found.hint.clone();
    advice.unwrap_or_else(|| match found.kind {
        ProblemKind::UnknownFunction => "`kpc jp function` lists all functions".into(),
        ProblemKind::WrongArity
        | ProblemKind::WrongArgumentType
        | ProblemKind::NotCallable
        | ProblemKind::UnfinishedIndex
        | ProblemKind::ZeroStep => "correct the expression at this place".into(),
    })
}

/// Checks the `jmesPath` of a context entry's source. One that contains variables cannot be
/// checked before they are known.
pub(super) fn check_path(source: &Tree, report: &mut Report<'_>) {
    let Some(tree) = field(source, "jmesPath") else {
        return;
    };
    let expression = tree.as_str().unwrap_or_default();
    if !expression.is_empty() && text::variables(expression).is_empty() {
        check_whole(expression, tree.span, report);
    }
}

/// Checks a text that is exactly one expression.
fn check_whole(written: &str, span: Span, report: &mut Report<'_>) {
    let expression = written.trim();
    let offset = written.len() - written.trim_start().len();
    let problems = match check_expression(expression, Some(offset), "bad-jmespath") {
        Ok(problems) => problems,
        Err(problem) => vec![problem],
    };
    for problem in problems {
        problem.report(span, Some(written), report);
    }
}

/// Checks the lists of all foreach blocks of a rule, and their context entries.
pub(super) fn check_foreach(rule: &Tree, report: &mut Report<'_>) {
    let bodies = ["validate", "mutate", "generate"];
    let mut blocks: Vec<&Tree> = Vec::new();
    for body in bodies.iter().filter_map(|body| field(rule, body)) {
        blocks.extend(items(body, "foreach"));
    }
    // Nested blocks are appended.
    let mut next = 0;
    while let Some(block) = blocks.get(next).copied() {
        next += 1;
        blocks.extend(items(block, "foreach"));
        if let Some(list) = field(block, "list") {
            let expression = list.as_str().unwrap_or_default();
            if !expression.is_empty() {
                check_whole(expression, list.span, report);
            }
        }
        for entry in items(block, "context") {
            let sources = entry.as_map().unwrap_or_default().iter();
            for source in sources.filter(|source| &*source.key != "name") {
                check_path(&source.value, report);
            }
        }
    }
}

/// Locates a part of a text in the file the text was read from.
///
/// `whole` is the location of the text in `file`, including quotes and block header. For
/// texts other than plain and quoted ones on a single line, searches for the part's
/// expression or its line. `None` if the location is unknown.
fn locate(file: &str, whole: Span, text: &str, place: &Place) -> Option<Span> {
    let start = whole.start as usize;
    let written = file.get(start..whole.end as usize)?;
    let part = place.part.clone();
    let span = |from: usize, to: usize| Span {
        start: (start + from) as u32,
        end: (start + to) as u32,
    };
    if written == text {
        return Some(span(part.start, part.end));
    }
    if let Some(places) = unquote(written, text) {
        return Some(span(*places.get(part.start)?, *places.get(part.end)?));
    }
    let line_start = text.get(..part.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(line_start..)?.lines().next()?;
    for around in [
        place.expression.clone(),
        line_start..line_start + line.len(),
    ] {
        let wanted = text.get(around.clone())?;
        let mut found = written.match_indices(wanted);
        if let (Some((at, _)), None) = (found.next(), found.next())
            && !wanted.is_empty()
            && part.end <= around.end
        {
            let from = at + part.start - around.start;
            return Some(span(from, from + part.len()));
        }
    }
    None
}

/// Offset in the quoted source of each byte of a text, and of its end; `None` if the source
/// is not quoted, spans several lines, or has escapes that are not a single character.
fn unquote(written: &str, text: &str) -> Option<Vec<usize>> {
    let quote = written.chars().next().filter(|c| ['"', '\''].contains(c))?;
    let end = written.strip_suffix(quote)?.len();
    let mut places = Vec::with_capacity(text.len() + 1);
    let mut at = 1;
    for wanted in text.chars() {
        let rest = written.get(at..end)?;
        let mut characters = rest.chars();
        let first = characters.next()?;
        let escaped = match first {
            '\\' if quote == '"' => match characters.next()? {
                'n' => Some('\n'),
                't' => Some('\t'),
                other => Some(other).filter(|c| ['"', '\\', '/', ' '].contains(c)),
            },
            '\'' if quote == '\'' => characters.next(),
            other => Some(other),
        };
        if escaped != Some(wanted) {
            return None;
        }
        places.extend(std::iter::repeat_n(at, wanted.len_utf8()));
        at = end - characters.as_str().len();
    }
    places.push(at);
    (at == end).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located<'f>(file: &'f str, text: &str, expression: &str, part: &str) -> Option<&'f str> {
        let whole = Span {
            start: 3,
            end: file.trim_end().len() as u32,
        };
        let start = text.find(expression).unwrap();
        let at = start + expression.find(part).unwrap();
        let place = Place {
            part: at..at + part.len(),
            expression: start..start + expression.len(),
        };
        let span = locate(file, whole, text, &place)?;
        Some(&file[span.start as usize - 1..span.end as usize])
    }

    /// The preceding character is shown too, to detect a different location with the same
    /// text.
    #[test]
    fn parts_of_texts_are_found_in_files() {
        let cases = [
            ("k: x bb c", "x bb c", "bb c", "bb", Some(" bb")),
            ("k: 'x bb c'", "x bb c", "x", "x", Some("'x")),
            ("k: \"é bb c\"", "é bb c", "bb c", "bb", Some(" bb")),
            ("k: 'it''s bb'", "it's bb", "it's bb", "bb", Some(" bb")),
            (r#"k: "\t\"a\" bb""#, "\t\"a\" bb", "bb", "bb", Some(" bb")),
            (r#"k: "\x41 bb c""#, "A bb c", "bb c", "bb", Some(" bb")),
            (r#"k: "\x41 bb c""#, "A bb c", "A bb c", "bb", None),
            ("k: |\n  a\n  b bb\n", "a\nb bb\n", "bb", "bb", Some(" bb")),
            (
                "k: |\n  b\n  xb b\n",
                "b\nxb b\n",
                "b\nxb b",
                "xb",
                Some(" xb"),
            ),
            ("k: >-\n  a bb\n  c", "a bb c", "bb", "bb", Some(" bb")),
            ("k: >-\n  a bb\n  c", "a bb c", "bb c", "bb", None),
            ("k: |\n  bb\n  bb\n", "bb\nbb\n", "bb", "bb", None),
        ];
        for (file, text, expression, part, expected) in cases {
            assert_eq!(located(file, text, expression, part), expected, "{file}");
        }
        let place = Place {
            part: 0..1,
            expression: 0..3,
        };
        assert_eq!(locate("", Span { start: 3, end: 9 }, "abc", &place), None);
    }
}
