//! All reports of a run: the one on standard output or in its file, and any number of
//! others in theirs.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::report::{FileReport, Format, Part, Report, Totals};

/// Reports that grow together.
#[derive(Debug)]
pub struct Reports {
    formats: Vec<Format>,
    /// Each with its file; without one it goes to standard output.
    list: Vec<(Report, Option<PathBuf>)>,
}

impl Reports {
    /// Empty reports: one in this form on standard output or in the file, and others.
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

    /// The forms that a part of the input is to be brought into.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Adds to each report what one part of the input adds.
    ///
    /// # Errors
    /// Those of the writer and of temporary files.
    pub fn add(&mut self, parts: Vec<Part>, out: &mut dyn Write) -> io::Result<()> {
        for (part, (report, file)) in parts.into_iter().zip(&mut self.list) {
            match file {
                Some(_) => report.add(part, None)?,
                None => report.add(part, Some(out))?,
            }
        }
        Ok(())
    }

    /// Writes what is still to be written; files are replaced.
    ///
    /// # Errors
    /// Those of the writer, and those of files with their names.
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
