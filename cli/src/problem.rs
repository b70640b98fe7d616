//! An input that could not be used: named with its place, while the others go on.

use std::io;

use kpvm_compiler::diagnostic::Diagnostic;
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
    /// Those of the writer.
    pub fn show(&self, sources: &Sources, streams: &mut Streams<'_>) -> io::Result<()> {
        match self {
            Problem::Unreadable(unreadable) => show_unreadable(unreadable, streams),
            Problem::InText(diagnostic) => diagnostics::show(diagnostic, sources, streams.err),
        }
    }
}

/// Says that an input cannot be read.
///
/// # Errors
/// Those of the writer.
pub fn show_unreadable(unreadable: &Unreadable, streams: &mut Streams<'_>) -> io::Result<()> {
    let Unreadable { name, reason } = unreadable;
    let message = format!("cannot read {}: {}", clean(name), clean(reason));
    diagnostics::show_error(&message, streams.err)
}
