//! Problems of expressions, and where in the file they stand.
//!
//! The text of one expression comes in; a [`Problem`] for a syntax error and for every
//! call that can only fail (sheet 04, section 5) leaves. Kyverno accepts such calls
//! and fails when it evaluates them. Nothing is evaluated here.

use std::ops::Range;

use kpvm::jmespath::{self, ExpressionProblem, ProblemKind};
use kpvm::tree::{Span, Tree};

use super::Report;
use crate::diagnostic::Severity;
use crate::policy::read::{field, items};
use crate::policy::text;

/// Something wrong with a text of a policy.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: String,
    /// Which bytes of the text; `None` for the whole.
    pub(super) place: Option<Range<usize>>,
    /// Kyverno accepts it and fails when it evaluates the expression.
    pub(super) fails_later: bool,
}

impl Problem {
    /// A problem of a text as a whole.
    pub(super) fn plain(code: &'static str, message: String, hint: &str) -> Self {
        Self {
            code,
            message,
            hint: hint.to_owned(),
            place: None,
            fails_later: false,
        }
    }

    /// Reports the problem of the text at `whole`; `written` is that text if it is
    /// the one of the policy.
    pub(super) fn report(&self, whole: Span, written: Option<&str>, report: &mut Report<'_>) {
        let part = written
            .zip(self.place.clone())
            .and_then(|(written, place)| locate(report.text, whole, written, place));
        let part = part.unwrap_or(whole);
        let severity = match self.fails_later {
            true => report.failing_calls,
            false => Severity::Error,
        };
        let message = self.message.clone();
        report.add(severity, self.code, (whole, part), message, &self.hint);
    }
}

/// What is wrong with the calls of an expression that begins at `offset` of its text.
///
/// # Errors
/// When it is none: a problem with the code `syntax_code`.
pub(super) fn check_expression(
    expression: &str,
    offset: Option<usize>,
    syntax_code: &'static str,
) -> Result<Vec<Problem>, Problem> {
    let behind = |place: Range<usize>| offset.map(|at| at + place.start..at + place.end);
    match jmespath::parse(expression) {
        Ok(parsed) => Ok(jmespath::check(&parsed)
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

/// Checks the `jmesPath` of a context entry's source. One with variables in it cannot
/// be judged before they are known.
pub(super) fn check_path(source: &Tree, report: &mut Report<'_>) {
    let Some(tree) = field(source, "jmesPath") else {
        return;
    };
    let expression = tree.as_str().unwrap_or_default();
    if !expression.is_empty() && text::variables(expression).is_empty() {
        check_whole(expression, tree.span, report);
    }
}

/// Checks a text that is an expression and nothing else.
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

/// Checks the lists of all foreach blocks of a rule, and the context entries in them.
pub(super) fn check_foreach(rule: &Tree, report: &mut Report<'_>) {
    let bodies = ["validate", "mutate", "generate"];
    let mut blocks: Vec<&Tree> = Vec::new();
    for body in bodies.iter().filter_map(|body| field(rule, body)) {
        blocks.extend(items(body, "foreach"));
    }
    // Nested blocks go behind the last one.
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

/// Where a part of a text stands in the file that the text was read from.
///
/// `whole` is the place of the text in `file`, quotes and block header included. In a
/// plain text and in a quoted one without escapes every byte stands where it is
/// expected; in others the line of the part is looked for. `None` when the place
/// cannot be known.
fn locate(file: &str, whole: Span, text: &str, part: Range<usize>) -> Option<Span> {
    let start = whole.start as usize;
    let written = file.get(start..whole.end as usize)?;
    let span = |from: usize| Span {
        start: (start + from) as u32,
        end: (start + from + part.len()) as u32,
    };
    if written == text {
        return Some(span(part.start));
    }
    let unquoted = written.get(1..written.len().checked_sub(1)?);
    if unquoted == Some(text) {
        return Some(span(part.start + 1));
    }
    let line_start = text.get(..part.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(line_start..)?.lines().next()?;
    if line.is_empty() || part.end > line_start + line.len() {
        return None;
    }
    let mut found = written.match_indices(line);
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Some(span(at + part.start - line_start)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located<'f>(file: &'f str, written: &str, text: &str, part: &str) -> Option<&'f str> {
        let start = file.find(written).unwrap();
        let whole = Span {
            start: start as u32,
            end: (start + written.len()) as u32,
        };
        let at = text.find(part).unwrap();
        let span = locate(file, whole, text, at..at + part.len())?;
        Some(&file[span.start as usize - 1..span.end as usize])
    }

    /// The character before the part is shown as well, so that another place with the
    /// same text would be seen.
    #[test]
    fn parts_of_texts_are_found_in_files() {
        let cases = [
            ("k: a bb c", "a bb c", "a bb c", "bb", Some(" bb")),
            ("k: 'a bb c'", "'a bb c'", "a bb c", "a", Some("'a")),
            ("k: \"é bb c\"", "\"é bb c\"", "é bb c", "bb", Some(" bb")),
            ("k: 'it''s bb'", "'it''s bb'", "it's bb", "bb", None),
            (
                "k: |\n  one\n  two bb\n",
                "|\n  one\n  two bb\n",
                "one\ntwo bb\n",
                "bb",
                Some(" bb"),
            ),
            (
                "k: >-\n  one bb\n  two",
                ">-\n  one bb\n  two",
                "one bb two",
                "bb",
                None,
            ),
            (
                "k: |\n  bb\n  bb\n",
                "|\n  bb\n  bb\n",
                "bb\nbb\n",
                "bb",
                None,
            ),
        ];
        for (file, written, text, part, expected) in cases {
            assert_eq!(located(file, written, text, part), expected, "{file}");
        }
        assert_eq!(locate("", Span { start: 3, end: 9 }, "abc", 0..1), None);
    }
}
