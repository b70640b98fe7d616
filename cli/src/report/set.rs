//! All reports of a run: the primary one on standard output or in a file, and any number of
//! others in files.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::report::{FileReport, Format, Part, Report, Totals};

/// Reports that grow together.
#[derive(Debug)]
pub struct Reports {
    formats: Vec<Format>,
    /// Each report with its file; without one it goes to standard output.
    list: Vec<(Report, Option<PathBuf>)>,
}

impl Reports {
    /// Empty reports: one in this format on standard output or in the file, and the others.
    pub fn new(format: Format, file: Option<PathBuf>, others: &[FileReport]) -> Self {
        let others = others
            .iter()
            .map(|other| (other.format, Some(other.file.clone())));
        let all: Vec<_> = others.chain([(format, file)]).collect();
        Self {
            formats: all.iter().map(|(format, _)| *format).collect(),
            list: all
                .into_iter()
                .map(|(format, file)| (Report::new(format), file))
                .collect(),
        }
    }

    /// Formats that each chunk of the input is rendered in.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Adds the parts of one chunk of the input.
    ///
    /// # Errors
    /// Fails if the writer or a temporary file fails.
    pub fn add(&mut self, parts: Vec<Part>, out: &mut dyn Write) -> io::Result<()> {
        for (part, (report, file)) in parts.into_iter().zip(&mut self.list) {
            match file {
                Some(_) => report.add(part, None)?,
                None => report.add(part, Some(out))?,
            }
        }
        Ok(())
    }

    /// Writes the rest; files are replaced.
    ///
    /// # Errors
    /// Fails if the writer fails, or with the system's error and the name of a file.
    pub fn finish(self, totals: &Totals<'_>, out: &mut dyn Write) -> io::Result<()> {
        for (report, file) in self.list {
            match file {
                Some(file) => report.finish_file(totals, &file)?,
                None => report.finish(totals, out)?,
            }
        }
        Ok(())
    }
}
