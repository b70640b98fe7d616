//! The table of `kyverno apply --table` and `kyverno test` (docs/spec/cli.md §6 and §9.8):
//! same columns, borders and words.
//!
//! Characters that a terminal would interpret are escaped.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};

use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthStr;

use crate::report::Run;
use crate::report::section::{Key, Section, Sections};
use crate::scan::{Outcome, Summary};
use crate::text::clean_text;

/// Longer cells are wrapped between words.
const CELL_BYTES: usize = 300;
/// With more rows, the first header contains their number.
const ROWS_NOT_COUNTED: usize = 10;

/// One row; its number is its position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// `name` or `namespace/name`.
    pub policy: String,
    /// Name of the rule.
    pub rule: String,
    /// `namespace/Kind/name`, or in tests `v1/Kind/namespace/name`.
    pub resource: String,
    /// `Pass`, `Fail`, `Warn`, `Error` or `Skip`; in tests also `Unsupported`.
    pub result: Cow<'static, str>,
    /// Reason; only set by tests.
    pub reason: String,
    /// Message, for the table with details.
    pub message: String,
}

impl Row {
    /// Texts of the cells, starting with the row number.
    pub fn texts(&self, number: usize, detailed: bool) -> Vec<String> {
        let texts: [&str; 7] = [
            &number.to_string(),
            &self.policy,
            &self.rule,
            &self.resource,
            &self.result,
            &self.reason,
            &self.message,
        ];
        let columns = if detailed { 7 } else { 6 };
        texts.into_iter().take(columns).map(str::to_owned).collect()
    }
}

/// Texts of the header; contains the number of rows if there are many.
pub fn header(rows: usize, detailed: bool) -> Vec<String> {
    let id = match rows {
        0..=ROWS_NOT_COUNTED => "ID".to_owned(),
        many => format!("ID ({many})"),
    };
    let names = ["POLICY", "RULE", "RESOURCE", "RESULT", "REASON"];
    let details = detailed.then_some("MESSAGE");
    let names = names.into_iter().chain(details).map(str::to_owned);
    std::iter::once(id).chain(names).collect()
}

/// Kyverno's word for an outcome.
pub fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "Pass",
        Outcome::Fail => "Fail",
        Outcome::Warn => "Warn",
        Outcome::Error => "Error",
        Outcome::Skip => "Skip",
    }
}

/// Rows of one chunk of the input: each as JSON on a line, because column widths are known
/// only at the end.
///
/// # Errors
/// Fails if the serialiser fails.
pub fn section(run: &Run<'_>) -> io::Result<Section> {
    let rows = rows(run);
    let mut text = Vec::new();
    for row in &rows {
        serde_json::to_writer(&mut text, row)?;
        text.push(b'\n');
    }
    Ok(Section {
        key: Key::All,
        text,
        items: rows.len(),
        summary: Summary::default(),
    })
}

/// Writes the rows of all chunks.
///
/// # Errors
/// Fails if the writer fails.
pub fn write_sections(rows: &mut Sections, detailed: bool, out: &mut dyn Write) -> io::Result<()> {
    if rows.items() == 0 {
        return Ok(());
    }
    let mut table = Table::new(rows.items(), detailed);
    for (index, line) in rows.read()?.lines().enumerate() {
        let row: Row = serde_json::from_str(&line?)?;
        table.widen(&row.texts(index + 1, detailed));
    }
    table.write_head(out)?;
    for (index, line) in rows.read()?.lines().enumerate() {
        let row: Row = serde_json::from_str(&line?)?;
        table.write_row(&row.texts(index + 1, detailed), out)?;
    }
    table.write_end(out)
}

/// One row for each result of a run.
fn rows(run: &Run<'_>) -> Vec<Row> {
    let scan = run.scan;
    let row = |finding| -> Option<Row> {
        let (policy, object) = (scan.policy(finding)?, scan.object(finding)?);
        let parts = [object.namespace.as_str(), &object.kind, &object.name];
        let parts = parts.into_iter().skip_while(|part| part.is_empty());
        Some(Row {
            policy: policy.full_name(),
            // As in Kyverno, for which the other policies have no rules.
            rule: match policy.source {
                "kyverno" => finding.rule.clone(),
                _ => String::new(),
            },
            resource: parts.collect::<Vec<_>>().join("/"),
            result: word(finding.outcome).into(),
            reason: String::new(),
            message: finding.message.clone(),
        })
    };
    scan.findings.iter().filter_map(row).collect()
}

/// Writes the table; nothing without rows. `detailed` adds the column of messages.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(rows: &[Row], detailed: bool, out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(rows.len(), detailed);
    for (index, row) in rows.iter().enumerate() {
        table.widen(&row.texts(index + 1, detailed));
    }
    table.write_head(out)?;
    for (index, row) in rows.iter().enumerate() {
        table.write_row(&row.texts(index + 1, detailed), out)?;
    }
    table.write_end(out)
}

/// Header and column widths.
struct Table {
    header: Vec<Cell>,
    widths: Vec<usize>,
}

impl Table {
    fn new(rows: usize, detailed: bool) -> Self {
        let header = cells(&header(rows, detailed));
        Self {
            widths: header.iter().map(Cell::width).collect(),
            header,
        }
    }

    /// Widens the columns for a row.
    fn widen(&mut self, texts: &[String]) {
        for (width, cell) in self.widths.iter_mut().zip(cells(texts)) {
            *width = (*width).max(cell.width());
        }
    }

    fn write_head(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_rule(out)?;
        write_cells(&self.header, &self.widths, true, out)?;
        self.write_rule(out)
    }

    fn write_row(&self, texts: &[String], out: &mut dyn Write) -> io::Result<()> {
        write_cells(&cells(texts), &self.widths, false, out)
    }

    fn write_end(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_rule(out)
    }

    fn write_rule(&self, out: &mut dyn Write) -> io::Result<()> {
        let bars = self.widths.iter().map(|width| "─".repeat(width + 2));
        let bars: Vec<String> = bars.collect();
        writeln!(out, "│{}│", bars.join("│"))
    }
}

fn cells(texts: &[String]) -> Vec<Cell> {
    texts.iter().map(|text| Cell::new(text)).collect()
}

/// The lines of a cell.
struct Cell(Vec<String>);

impl Cell {
    fn new(text: &str) -> Self {
        let text = clean_text(text);
        if text.len() > CELL_BYTES && !text.contains('\n') {
            Self(broken(&text))
        } else {
            Self(text.split('\n').map(str::to_owned).collect())
        }
    }

    fn width(&self) -> usize {
        let widths = self.0.iter().map(|line| line.width());
        widths.max().unwrap_or(0)
    }
}

/// Wraps a text into lines of bounded length; a longer word stays whole.
fn broken(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= CELL_BYTES => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Colours of the columns (docs/spec/cli.md §6).
fn style(column: usize, text: &str, is_header: bool) -> Style {
    let bold = |color: AnsiColor| color.on_default().bold();
    match (column, text) {
        _ if is_header => AnsiColor::Green.on_default(),
        (1..=3, _) => bold(AnsiColor::Cyan),
        (4, "Pass") => bold(AnsiColor::Green),
        (4, "Warn" | "Unsupported") => bold(AnsiColor::Yellow),
        (4, "Skip") => bold(AnsiColor::Cyan),
        (4, _) => bold(AnsiColor::Red),
        _ => Style::new(),
    }
}

fn write_cells(
    cells: &[Cell],
    widths: &[usize],
    is_header: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let cells = || cells.iter().zip(widths).enumerate();
    let height = cells()
        .map(|(_, (cell, _))| cell.0.len())
        .max()
        .unwrap_or(0);
    for line in 0..height {
        write!(out, "│")?;
        for (column, (cell, width)) in cells() {
            let text = cell.0.get(line).map_or("", String::as_str);
            let style = style(column, text, is_header);
            let padding = " ".repeat(width.saturating_sub(text.width()));
            write!(out, " {style}{text}{style:#}{padding} │")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &[Row], detailed: bool) -> String {
        let mut out = anstream::StripStream::new(Vec::new());
        write(rows, detailed, &mut out).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    fn row(policy: &str, result: &'static str, message: &str) -> Row {
        Row {
            policy: policy.into(),
            rule: "r".into(),
            resource: "default/Pod/web".into(),
            result: result.into(),
            message: message.into(),
            ..Row::default()
        }
    }

    /// docs/spec/cli.md §6.
    #[test]
    fn borders_and_columns() {
        let rows = [
            row("need-team", "Fail", "say the team"),
            row("日本", "Pass", ""),
        ];
        insta::assert_snapshot!(shown(&rows, false), @r"
        │────│───────────│──────│─────────────────│────────│────────│
        │ ID │ POLICY    │ RULE │ RESOURCE        │ RESULT │ REASON │
        │────│───────────│──────│─────────────────│────────│────────│
        │ 1  │ need-team │ r    │ default/Pod/web │ Fail   │        │
        │ 2  │ 日本      │ r    │ default/Pod/web │ Pass   │        │
        │────│───────────│──────│─────────────────│────────│────────│
        ");
        insta::assert_snapshot!(shown(&rows, true), @r"
        │────│───────────│──────│─────────────────│────────│────────│──────────────│
        │ ID │ POLICY    │ RULE │ RESOURCE        │ RESULT │ REASON │ MESSAGE      │
        │────│───────────│──────│─────────────────│────────│────────│──────────────│
        │ 1  │ need-team │ r    │ default/Pod/web │ Fail   │        │ say the team │
        │ 2  │ 日本      │ r    │ default/Pod/web │ Pass   │        │              │
        │────│───────────│──────│─────────────────│────────│────────│──────────────│
        ");
    }

    /// docs/spec/cli.md §6: from eleven rows on the header counts them.
    #[test]
    fn many_rows_are_counted() {
        let rows = vec![row("p", "Pass", ""); 11];
        let text = shown(&rows, false);
        assert!(text.contains("│ ID (11) │ POLICY │"), "{text}");
        assert!(text.contains("│ 11      │ p      │"), "{text}");
        assert!(shown(&rows[..10], false).contains("│ ID │"));
    }

    #[test]
    fn nothing_without_rows() {
        assert_eq!(shown(&[], true), "");
    }

    #[test]
    fn long_and_hostile_cells_keep_the_columns() {
        let long = "word ".repeat(100);
        let rows = [
            row("p", "Fail", &long),
            row("p\u{1b}[2J", "Fail", "a\nb│c\td"),
        ];
        let text = shown(&rows, true);
        let widths: Vec<usize> = text.lines().map(UnicodeWidthStr::width).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        assert_eq!(text.lines().count(), 3 + 2 + 2 + 1, "{text}");
        assert!(!text.contains('\u{1b}'));
        let huge = row("p", "Fail", &"x".repeat(1 << 20));
        assert!(shown(&[huge], true).len() > 1 << 20);
    }
}
