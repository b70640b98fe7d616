//! Renders diagnostics for people: title, location, source excerpt, and hint.

use std::borrow::Cow;
use std::io::{self, Write};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anstyle::{AnsiColor, Style};
use kpvm_compiler::diagnostic::{Diagnostic, Severity};
use kpvm_compiler::source::Sources;
use kpvm_syntax::tree::Span;

use crate::text::{clean, count, visible};

/// Longer lines are not shown.
const EXCERPT_BYTES: usize = 2_000;

/// Style of `error:`.
const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
/// Style of `warning:`.
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Style of `note:`.
const NOTE: Style = AnsiColor::BrightCyan.on_default().bold();

/// Renders a diagnostic with its location, always with colours: the stream removes them if
/// unwanted.
///
/// # Errors
/// Fails if the writer fails.
pub fn show(diagnostic: &Diagnostic, sources: &Sources, out: &mut dyn Write) -> io::Result<()> {
    let file = sources.file(diagnostic.location.source);
    let place = sources.line_column(diagnostic.location);
    let excerpt = Excerpt::around(
        &file.text,
        diagnostic.location.span.start as usize,
        diagnostic.location.span.end as usize,
    );
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(clean(&diagnostic.message))
        .id(diagnostic.code);
    let path = clean(&file.name);
    let mut group = match &excerpt {
        Some(excerpt) => {
            let label = clean(&diagnostic.label);
            let annotation = AnnotationKind::Primary.span(excerpt.start..excerpt.end);
            let annotation = if label.is_empty() {
                annotation
            } else {
                annotation.label(label)
            };
            let snippet = Snippet::source(&*excerpt.text)
                .line_start(place.line as usize)
                .path(path)
                .annotation(annotation);
            title.element(snippet)
        }
        None => {
            let origin = annotate_snippets::Origin::path(path)
                .line(place.line as usize)
                .char_column(place.column as usize);
            title.element(origin)
        }
    };
    if let Some(subject) = &diagnostic.subject {
        group = group.element(Level::NOTE.message(format!("in {}", clean(subject))));
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(clean(hint)));
    }
    writeln!(out, "{}\n", Renderer::styled().render(&[group]))
}

/// The line of a location, and the location in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Excerpt<'t> {
    /// The line, without its line end.
    pub text: Cow<'t, str>,
    /// Start of the location in it, in bytes.
    pub start: usize,
    /// End of the location, or of the line.
    pub end: usize,
}

impl<'t> Excerpt<'t> {
    /// `None` if the line is too long to be shown.
    pub fn around(text: &'t str, start: usize, end: usize) -> Option<Self> {
        let start = floor_boundary(text, start);
        let end = floor_boundary(text, end).max(start);
        let line_start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
        let line = text.get(line_start..)?.lines().next().unwrap_or("");
        if line.len() > EXCERPT_BYTES {
            return None;
        }
        let start = (start - line_start).min(line.len());
        let end = (end - line_start).clamp(start, line.len());
        Some(Self {
            text: visible(line),
            start: visible(line.get(..start)?).len(),
            end: visible(line.get(..end)?).len(),
        })
    }

    /// Like [`Excerpt::around`], but shows only the part of the line within a span that
    /// contains the location; the text before it is blanked.
    pub fn within(text: &'t str, place: Span, span: Span) -> Option<Self> {
        let [start, end, first, last] = [place.start, place.end, span.start, span.end]
            .map(|offset| floor_boundary(text, offset as usize));
        let first = first.min(start);
        let line_start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
        let excerpt = Self::around(text.get(..last.max(start))?, start, end)?;
        if first <= line_start {
            return Some(excerpt);
        }
        // Each character becomes one space, so that columns are unchanged.
        let hidden = visible(text.get(line_start..first)?);
        let blanks = hidden.chars().count();
        let shift = |at: usize| at.saturating_sub(hidden.len()) + blanks;
        let shown = excerpt.text.get(hidden.len()..)?;
        Some(Self {
            start: shift(excerpt.start),
            end: shift(excerpt.end),
            text: format!("{}{shown}", " ".repeat(blanks)).into(),
        })
    }
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// `error: …`
///
/// # Errors
/// Fails if the writer fails.
pub fn show_error(message: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{ERROR}error{ERROR:#}: {message}")
}

/// `warning: …`
///
/// # Errors
/// Fails if the writer fails.
pub fn show_warning(message: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{WARNING}warning{WARNING:#}: {message}")
}

/// `note: …`
///
/// # Errors
/// Fails if the writer fails.
pub fn show_note(message: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{NOTE}note{NOTE:#}: {message}")
}

/// Number of errors and warnings, in words; `None` if there are none.
pub fn summary(diagnostics: &[Diagnostic]) -> Option<String> {
    let of = |severity| {
        diagnostics
            .iter()
            .filter(|one| one.severity == severity)
            .count()
    };
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    let parts: Vec<String> = [(errors, "error"), (warnings, "warning")]
        .into_iter()
        .filter(|&(number, _)| number > 0)
        .map(|(number, noun)| count(number, noun))
        .collect();
    let files: std::collections::BTreeSet<_> =
        diagnostics.iter().map(|one| one.location.source).collect();
    (!parts.is_empty())
        .then(|| format!("{} in {}", parts.join(" and "), count(files.len(), "file")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kpvm_compiler::source::Location;

    fn shown(text: &str, span: Span) -> String {
        let mut sources = Sources::new();
        let source = sources.add("a\x1b[1m.yaml", text);
        let diagnostic =
            Diagnostic::error("some-code", "bad \x1b[2J title", Location { source, span })
                .label("la\x07bel")
                .hint("do it\nwell")
                .subject("p/r");
        let mut out = anstream::StripStream::new(Vec::new());
        show(&diagnostic, &sources, &mut out).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    #[test]
    fn the_place_is_shown_and_nothing_steers_the_terminal() {
        insta::assert_snapshot!(shown("one: 1\ntwo: ä\x1b[31m x\n", Span { start: 12, end: 14 }), @r"
        error[some-code]: bad \u{1b}[2J title
         --> a\u{1b}[1m.yaml:2:6
          |
        2 | two: ä␛[31m x
          |      ^ la\u{7}bel
          |
          = note: in p/r
          = help: do it\nwell
        ");
    }

    #[test]
    fn an_excerpt_shows_nothing_beside_the_object() {
        let text = "[{kind: Secret, data: x}, {kind: Pod, name: ä}, {kind: A}]\nnext";
        let at = |part: &str| text.find(part).unwrap() as u32;
        let pod = Span {
            start: at("{kind: Pod"),
            end: at(", {kind: A"),
        };
        let place = Span {
            start: at("name"),
            end: at("}, {kind: A"),
        };
        let excerpt = Excerpt::within(text, place, pod).unwrap();
        let blanks = " ".repeat(26);
        assert_eq!(excerpt.text, format!("{blanks}{{kind: Pod, name: ä}}"));
        assert_eq!(
            excerpt.text.get(excerpt.start..excerpt.end),
            Some("name: ä")
        );
        let whole = Span {
            start: 0,
            end: text.len() as u32,
        };
        let excerpt = Excerpt::within(text, place, whole).unwrap();
        assert_eq!(
            excerpt,
            Excerpt::around(text, place.start as usize, place.end as usize).unwrap()
        );
    }

    #[test]
    fn an_excerpt_has_nothing_invisible() {
        let text = "a\u{202e}b: c\u{200b}d\n";
        let (start, end) = (text.find("b:").unwrap(), text.len() - 1);
        let excerpt = Excerpt::around(text, start, end).unwrap();
        assert_eq!(excerpt.text, "a\u{fffd}b: c\u{fffd}d");
        assert_eq!(
            excerpt.text.get(excerpt.start..excerpt.end),
            Some("b: c\u{fffd}d")
        );
    }

    #[test]
    fn places_outside_of_the_text_and_long_lines_do_no_harm() {
        for (text, start, end) in [
            ("", 5, 9),
            ("ä", 1, 1),
            ("a\nb", 3, 1),
            ("x\r\ny\r\n", 2, 5),
        ] {
            shown(text, Span { start, end });
        }
        let long = "x".repeat(3_000);
        assert!(!shown(&long, Span { start: 9, end: 10 }).contains("xxx"));
    }
}
