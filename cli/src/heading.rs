//! The line with which Kyverno begins (docs/spec/cli.md §9.4), not on standard output.

use std::io;

use kpvm::engine::Bundle;
use kpvm_format::table::PolicyFlags;

use crate::stream::Streams;

/// What is about to be done.
#[derive(Debug, Clone, Copy)]
pub struct Heading {
    rules: u32,
    exceptions: usize,
    is_shown: bool,
}

impl Heading {
    /// A heading for a bundle with so many exceptions, if it is to be shown.
    pub fn new(bundle: &Bundle<'_>, exceptions: usize, is_shown: bool) -> Self {
        let policies = bundle.tables().policies.iter();
        // A policy of CEL counts once, whatever it is evaluated as.
        let rules = policies.map(|policy| match policy.flags & PolicyFlags::RESOURCES {
            0 => policy.rules.length.get(),
            _ => 1,
        });
        Self {
            rules: rules.sum(),
            exceptions,
            is_shown,
        }
    }

    /// Writes it. The number of resources is not known where they are read while rules are
    /// applied.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn write(self, resources: Option<usize>, streams: &mut Streams<'_>) -> io::Result<()> {
        if !self.is_shown {
            return Ok(());
        }
        write!(streams.err, "Applying {} policy rule(s)", self.rules)?;
        if let Some(resources) = resources {
            write!(streams.err, " to {resources} resource(s)")?;
        }
        match self.exceptions {
            0 => writeln!(streams.err, "..."),
            number => writeln!(streams.err, " with {number} exception(s)..."),
        }
    }
}
