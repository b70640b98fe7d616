//! Tables of Markdown, one for each suite, and the last line of Kyverno.

use std::io::{self, Write};

use super::table::{cells, header};
use super::{Detail, Totals, shown_rows, write_summary};
use crate::suite::row::Row;
use crate::suite::run::SuiteRun;

/// Writes the tables.
///
/// # Errors
/// Those of the writer.
pub fn write(runs: &[SuiteRun], detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    for run in runs {
        let rows: Vec<&Row> = shown_rows(run, detail).collect();
        if rows.is_empty() {
            continue;
        }
        writeln!(out, "### {}\n", escaped(&run.file))?;
        let header = header(rows.len(), detail);
        write_line(&header, out)?;
        writeln!(out, "|{}", "----|".repeat(header.len()))?;
        for (index, row) in rows.into_iter().enumerate() {
            write_line(&cells(index + 1, row, detail), out)?;
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

/// Text that is shown as it is: nothing of it is markup or ends the cell.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("<br>"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(character);
            }
            character if character.is_control() => escaped.extend(character.escape_default()),
            character => escaped.push(character),
        }
    }
    escaped
}
