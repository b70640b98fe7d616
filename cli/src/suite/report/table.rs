//! Tables as `kyverno test` prints them (sheet 08, section 6): one for each suite, or one
//! of everything that failed.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{Detail, Totals, shown_rows, write_summary};
use crate::suite::row::{Row, Verdict};
use crate::suite::run::SuiteRun;
use crate::text::clean;

/// Characters of a cell that are shown.
const CELL: usize = 300;
/// With more rows than this the header counts them.
const COUNTED: usize = 10;

/// Writes the tables and the last line.
///
/// # Errors
/// Those of the writer.
pub fn write(runs: &[SuiteRun], detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    let totals = Totals::of(runs);
    if !detail.fail_only {
        for run in runs.iter().filter(|run| !run.rows.is_empty()) {
            writeln!(out, "{}:\n", clean(&run.file))?;
            let rows: Vec<&Row> = shown_rows(run, detail).collect();
            write_table(&rows, detail, out)?;
            writeln!(out)?;
        }
    }
    write_summary(&totals, detail, out)?;
    if detail.fail_only && totals.verdicts.disagree > 0 {
        writeln!(out, "\nAggregated Failed Test Cases :\n")?;
        let rows = runs.iter().flat_map(|run| shown_rows(run, detail));
        write_table(&rows.collect::<Vec<_>>(), detail, out)?;
    }
    Ok(())
}

/// The cells of a row; the number of the row comes first.
pub(super) fn cells(number: usize, row: &Row, detail: Detail) -> Vec<String> {
    let mut cells = vec![
        number.to_string(),
        row.policy.clone(),
        row.rule.clone(),
        row.resource.clone(),
        row.result().to_owned(),
        row.reason.text(),
    ];
    if detail.detailed {
        cells.push(row.message.clone());
    }
    cells
}

/// The header; with many rows it counts them.
pub(super) fn header(rows: usize, detail: Detail) -> Vec<String> {
    let first = match rows {
        0..=COUNTED => "ID".to_owned(),
        many => format!("ID ({many})"),
    };
    let mut header = vec![first];
    let names = ["POLICY", "RULE", "RESOURCE", "RESULT", "REASON"];
    header.extend(names.map(str::to_owned));
    if detail.detailed {
        header.push("MESSAGE".to_owned());
    }
    header
}

fn write_table(rows: &[&Row], detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    let header = header(rows.len(), detail);
    let numbered = rows.iter().enumerate();
    let lines: Vec<Vec<String>> = numbered
        .map(|(index, row)| {
            let cells = cells(index + 1, row, detail);
            cells.iter().map(|cell| shortened(cell)).collect()
        })
        .collect();
    let width = |column: usize| {
        let cells = lines.iter().chain(std::iter::once(&header));
        let widths = cells.filter_map(|cells| Some(cells.get(column)?.chars().count()));
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let border = |out: &mut dyn Write| {
        for width in &widths {
            write!(out, "│{}", "─".repeat(width + 2))?;
        }
        writeln!(out, "│")
    };
    border(out)?;
    write_line(&header, &widths, Style::new(), out)?;
    border(out)?;
    for (cells, row) in lines.iter().zip(rows) {
        write_line(cells, &widths, style(row.verdict()), out)?;
    }
    border(out)
}

/// The style of the cell that says how the row came out.
fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Agree => AnsiColor::Green.on_default(),
        Verdict::Disagree => AnsiColor::BrightRed.on_default(),
        Verdict::Unsupported => AnsiColor::Yellow.on_default(),
    }
}

fn write_line(
    cells: &[String],
    widths: &[usize],
    result: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    const RESULT: usize = 4;
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let style = if column == RESULT {
            result
        } else {
            Style::new()
        };
        let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
        write!(out, "│ {style}{cell}{style:#}{padding} ")?;
    }
    writeln!(out, "│")
}

/// On one line, safe for a terminal, and not longer than a cell may be.
fn shortened(text: &str) -> String {
    let text = clean(text);
    match text.char_indices().nth(CELL) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
        None => text.into_owned(),
    }
}
