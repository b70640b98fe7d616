//! Kyverno's first line of output (docs/spec/cli.md §9.4), written to standard error.

use std::io;

use kpvm::engine::Bundle;
use kpvm_format::table::PolicyFlags;

use crate::stream::Streams;

/// What is about to be evaluated.
#[derive(Debug, Clone, Copy)]
pub struct Heading {
    rules: u32,
    exceptions: usize,
    is_shown: bool,
}

impl Heading {
    /// A heading for a bundle and a number of exceptions, if it is to be shown.
    pub fn new(bundle: &Bundle<'_>, exceptions: usize, is_shown: bool) -> Self {
        let policies = bundle.tables().policies.iter();
        // A CEL policy counts once, whatever it is evaluated as.
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

    /// Writes the heading. The number of resources is unknown if they are read while being
    /// evaluated.
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
