//! Markdown tables, one per suite, followed by Kyverno's summary line.

use std::io::{self, Write};

use super::table::table_row;
use super::{Detail, Totals, shown_rows, write_summary};
use crate::report::markdown::escaped;
use crate::report::table::header;
use crate::suite::row::Row;
use crate::suite::run::SuiteRun;

/// Writes the tables.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(runs: &[SuiteRun], detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    for run in runs {
        let rows: Vec<&Row> = shown_rows(run, detail).collect();
        if rows.is_empty() {
            continue;
        }
        writeln!(out, "### {}\n", escaped(&run.file))?;
        let header = header(rows.len(), detail.detailed);
        write_line(&header, out)?;
        writeln!(out, "|{}", "----|".repeat(header.len()))?;
        for (index, row) in rows.into_iter().enumerate() {
            write_line(&table_row(row).texts(index + 1, detail.detailed), out)?;
        }
        writeln!(out)?;
    }
    write_summary(&Totals::of(runs), detail, out)
}

fn write_line(cells: &[String], out: &mut dyn Write) -> io::Result<()> {
    for cell in cells {
        write!(out, "| {} ", escaped(cell))?;
    }
    writeln!(out, "|")
}
