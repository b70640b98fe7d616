//! YAML as read by kubectl and Kyverno: go-yaml v2 followed by Kubernetes' conversion
//! through JSON (docs/spec/cli.md §8).
//!
//! Text becomes [`Tree`]s with locations, or an error that says how to fix it. Documents
//! are built from parser events under limits, never by a loader that expands aliases first.
//! Nothing is silently dropped or guessed: where go-yaml ignores something, or where its
//! YAML 1.1 grammar and the parser's YAML 1.2 grammar disagree, the text is rejected.

mod build;
mod copy;
mod error;
mod scalar;
mod split;

use granit_parser::{ErrorKind, Event, Parser, ScanError};

pub use error::{YamlError, YamlErrorKind, line_column};
pub use split::{DocumentText, split_documents};

use self::build::{Builder, Failure};
pub use crate::tree::DuplicateKeys;
use crate::tree::{Span, Tree, TreeValue};
use kpvm_semantics::limits::Limits;

/// Reader options.
#[derive(Debug, Clone, Copy)]
pub struct Options<'l> {
    /// Treatment of duplicate keys.
    pub duplicate_keys: DuplicateKeys,
    /// Limits on bytes, nesting and values of a document.
    pub limits: &'l Limits,
}

/// Reads every document of a file, in order. An invalid document does not stop the others;
/// empty documents are omitted.
pub fn read_all(text: &str, options: Options<'_>) -> Vec<Result<Tree, YamlError>> {
    split_documents(text)
        .into_iter()
        .filter_map(|document| read(document, options).transpose())
        .collect()
}

/// Reads one document. `None` if it contains only blank lines and comments; a document
/// consisting of `---` is null (docs/spec/cli.md §8.2).
pub fn read(document: DocumentText<'_>, options: Options<'_>) -> Result<Option<Tree>, YamlError> {
    let document = without_mark(document);
    if document.is_blank() && document.text.len() <= options.limits.document_bytes {
        return Ok(None);
    }
    read_nonblank(document, options).map_err(|(kind, span)| {
        let offset = (span.start as usize).saturating_sub(document.offset);
        let (line, column) = line_column(document.text, offset);
        YamlError {
            kind,
            span,
            line: document.line + line - 1,
            column,
        }
    })
}

/// Whether a text has none of the characters for which a document is refused.
pub(crate) fn has_known_characters(text: &str) -> bool {
    check_characters(text, 0).is_ok()
}

/// Skips a UTF-8 byte order mark at the start of the file.
fn without_mark(document: DocumentText<'_>) -> DocumentText<'_> {
    match document.text.strip_prefix('\u{FEFF}') {
        Some(text) if document.offset == 0 => DocumentText {
            text,
            offset: 3,
            ..document
        },
        _ => document,
    }
}

fn read_nonblank(
    document: DocumentText<'_>,
    options: Options<'_>,
) -> Result<Option<Tree>, Failure> {
    let base = check_size(document, options.limits)?;
    check_text(document.text, base)?;
    let mut builder = Builder::new(options, document.text, base, document.line);
    let mut ended = false;
    for next in Parser::new_from_str_with_options(document.text, parser_options(options.limits)) {
        let (event, span) =
            next.map_err(|error| scan_failure(&error, document.text, base, options.limits))?;
        let span = Span {
            start: base + offset(span.start, document.text),
            end: base + offset(span.end, document.text),
        };
        match event {
            Event::StreamEnd => break,
            _ if ended => return Err((YamlErrorKind::TrailingContent, span)),
            Event::DocumentEnd => ended = true,
            event => builder.event(event, span)?,
        }
    }
    let null = || {
        Tree::new(
            TreeValue::Null,
            Span {
                start: base,
                end: base,
            },
        )
    };
    Ok(Some(builder.into_root().unwrap_or_else(null)))
}

/// Offset of the document, after checking that every location in it fits a span.
fn check_size(document: DocumentText<'_>, limits: &Limits) -> Result<u32, Failure> {
    let start = u32::try_from(document.offset).ok();
    let end = u32::try_from(document.offset.saturating_add(document.text.len())).ok();
    match (start, end) {
        (Some(start), Some(_)) if document.text.len() <= limits.document_bytes => Ok(start),
        _ => {
            let limit = limits.document_bytes.min(u32::MAX as usize);
            let start = start.unwrap_or(u32::MAX);
            let place = Span { start, end: start };
            Err((YamlErrorKind::TooLarge { limit }, place))
        }
    }
}

/// Rejects what the parser would accept but go-yaml would reject or read differently:
/// control characters, line ends that only YAML 1.1 knows, lines that begin with `---`
/// followed by text.
fn check_text(text: &str, base: u32) -> Result<(), Failure> {
    check_characters(text, base)?;
    match split::find_invalid_separator(text) {
        Some(line) => Err((
            YamlErrorKind::InvalidSeparator,
            place(base, line.start, line.end),
        )),
        None => Ok(()),
    }
}

fn check_characters(text: &str, base: u32) -> Result<(), Failure> {
    // Most text is printable ASCII; a fold without early exit is vectorised.
    let printable = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    if text.bytes().fold(true, |all, byte| all & printable(byte)) {
        return Ok(());
    }
    for (at, character) in text.char_indices() {
        let kind = match character {
            '\t' | '\n' | '\r' | ' '..='~' => continue,
            '\u{85}' | '\u{2028}' | '\u{2029}' => {
                YamlErrorKind::AmbiguousLineEnd(u32::from(character))
            }
            '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'.. => continue,
            _ => YamlErrorKind::ControlCharacter(u32::from(character)),
        };
        return Err((kind, place(base, at, at + character.len_utf8())));
    }
    Ok(())
}

/// A location in a document whose size has been checked.
fn place(base: u32, start: usize, end: usize) -> Span {
    let at = |offset: usize| base.saturating_add(u32::try_from(offset).unwrap_or(u32::MAX));
    Span {
        start: at(start),
        end: at(end),
    }
}

/// The builder bounds the nesting of maps and lists; the parser's own bounds are one level
/// higher, so that its state stays small too.
fn parser_options(limits: &Limits) -> granit_parser::Options {
    let depth = limits.document_depth.saturating_add(1);
    granit_parser::options! {
        flow_nesting_limit: depth,
        block_nesting_limit: depth,
        emit_anchor_events: true,
        disallow_directives: true,
    }
}

fn offset(marker: granit_parser::Marker, text: &str) -> u32 {
    let bytes = marker.byte_offset().unwrap_or(text.len()).min(text.len());
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn scan_failure(error: &ScanError, text: &str, base: u32, limits: &Limits) -> Failure {
    let kind = match error.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => YamlErrorKind::Tab,
        ErrorKind::UnknownAnchor => YamlErrorKind::UnknownAlias,
        ErrorKind::DirectiveDisallowed => YamlErrorKind::Directive,
        ErrorKind::RecursionLimitExceeded => YamlErrorKind::TooDeep {
            limit: limits.document_depth,
        },
        ErrorKind::MappingValueNotAllowed => YamlErrorKind::Syntax(format!(
            "{} (text that contains \": \" must be quoted)",
            error.info()
        )),
        _ => YamlErrorKind::Syntax(error.info().to_owned()),
    };
    let start = base + offset(*error.marker(), text);
    (kind, Span { start, end: start })
}

#[cfg(test)]
mod tests;
