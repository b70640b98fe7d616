//! Unusable inputs: reported with their location, while the others are still processed.

use std::io;

use kpvm_compiler::diagnostic::{Diagnostic, Severity};
use kpvm_compiler::source::Sources;

use crate::diagnostics;
use crate::input::Unreadable;
use crate::stream::Streams;
use crate::text::clean;

/// A problem of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It could not be read.
    Unreadable(Unreadable),
    /// An error in its text.
    InText(Diagnostic),
}

impl Problem {
    /// Shows the problem.
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

/// A problem independent of its source text: located and rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Severity.
    pub severity: Severity,
    /// Stable name of the check; `unreadable` for unreadable inputs.
    pub code: &'static str,
    /// The file.
    pub file: String,
    /// Line and column, from 1, if known.
    pub place: Option<(u32, u32)>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The rendered problem for a terminal, with an excerpt.
    pub shown: String,
}

impl Problem {
    /// Makes the problem independent of its source text.
    pub fn report(&self, sources: &Sources) -> Report {
        match self {
            Problem::Unreadable(unreadable) => Report::of_unreadable(unreadable),
            Problem::InText(diagnostic) => Report::of_diagnostic(diagnostic, sources),
        }
    }
}

impl Report {
    /// Report about an unreadable input.
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

    /// Report of a diagnostic.
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

/// Renders to a text; writing to memory does not fail.
fn shown(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    let _ = write(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reports that an input cannot be read.
///
/// # Errors
/// Fails if the writer fails.
pub fn show_unreadable(unreadable: &Unreadable, streams: &mut Streams<'_>) -> io::Result<()> {
    let Unreadable { name, reason } = unreadable;
    let message = format!("cannot read {}: {}", clean(name), clean(reason));
    diagnostics::show_error(&message, streams.err)
}
