//! An input that could not be used: named with its place, while the others go on.

use std::io;

use kpvm_compiler::diagnostic::{Diagnostic, Severity};
use kpvm_compiler::source::Sources;

use crate::diagnostics;
use crate::input::Unreadable;
use crate::stream::Streams;
use crate::text::clean;

/// What is wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It could not be read at all.
    Unreadable(Unreadable),
    /// Something in its text is wrong.
    InText(Diagnostic),
}

impl Problem {
    /// Shows it to people.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn show(&self, sources: &Sources, streams: &mut Streams<'_>) -> io::Result<()> {
        match self {
            Problem::Unreadable(unreadable) => show_unreadable(unreadable, streams),
            Problem::InText(diagnostic) => diagnostics::show(diagnostic, sources, streams.err),
        }
    }
}

/// A problem apart from the texts that it is about: placed and shown already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How bad it is.
    pub severity: Severity,
    /// Stable name of the check, `unreadable` for what cannot be read.
    pub code: &'static str,
    /// The file.
    pub file: String,
    /// Line and column, from 1, where known.
    pub place: Option<(u32, u32)>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// All of this for a terminal, with an excerpt of the text.
    pub shown: String,
}

impl Problem {
    /// The problem apart from its texts.
    pub fn report(&self, sources: &Sources) -> Report {
        match self {
            Problem::Unreadable(unreadable) => Report::of_unreadable(unreadable),
            Problem::InText(diagnostic) => Report::of_diagnostic(diagnostic, sources),
        }
    }
}

impl Report {
    /// What is said of an input that cannot be read.
    pub fn of_unreadable(unreadable: &Unreadable) -> Self {
        let shown = shown(|out| {
            let mut none = io::sink();
            let mut streams = Streams {
                out: &mut none,
                err: out,
            };
            show_unreadable(unreadable, &mut streams)
        });
        Self {
            severity: Severity::Error,
            code: "unreadable",
            file: unreadable.name.clone(),
            place: None,
            message: unreadable.reason.clone(),
            hint: None,
            shown,
        }
    }

    /// What a diagnostic says.
    pub fn of_diagnostic(diagnostic: &Diagnostic, sources: &Sources) -> Self {
        let place = sources.line_column(diagnostic.location);
        Self {
            severity: diagnostic.severity,
            code: diagnostic.code,
            file: sources.file(diagnostic.location.source).name.clone(),
            place: Some((place.line, place.column)),
            message: diagnostic.message.clone(),
            hint: diagnostic.hint.clone(),
            shown: shown(|out| diagnostics::show(diagnostic, sources, out)),
        }
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// What is written, as a text; writing to memory does not fail.
fn shown(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    let _ = write(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Says that an input cannot be read.
///
/// # Errors
/// Fails if the writer fails.
pub fn show_unreadable(unreadable: &Unreadable, streams: &mut Streams<'_>) -> io::Result<()> {
    let Unreadable { name, reason } = unreadable;
    let message = format!("cannot read {}: {}", clean(name), clean(reason));
    diagnostics::show_error(&message, streams.err)
}
