//! The report for people: each row that disagrees with its cause, unsupported features by
//! reason, and the counts.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{Detail, Totals, write_summary};
use crate::report::text::{found, show_place};
use crate::suite::row::{Reason, Row, Verdict};
use crate::suite::run::SuiteRun;
use crate::text::{clean, clean_lines, count};

/// Style of policy and rule names.
const BOLD: Style = Style::new().bold();
/// Style of locations.
const DIM: Style = Style::new().dimmed();
/// Style of hints.
const HINT: Style = AnsiColor::BrightCyan.on_default();

/// Writes the report.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(runs: &[SuiteRun], detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    for row in runs.iter().flat_map(|run| &run.rows) {
        match row.verdict() {
            Verdict::Disagree => write_disagreement(row, out)?,
            Verdict::Agree | Verdict::Unsupported if detail.detailed && !detail.fail_only => {
                write_line(row, out)?;
            }
            Verdict::Agree | Verdict::Unsupported => {}
        }
    }
    let totals = Totals::of(runs);
    if !detail.fail_only {
        write_unsupported(runs, out)?;
        write_counts(&totals, detail, out)?;
    }
    write_summary(&totals, detail, out)
}

fn write_head(word: &str, style: Style, row: &Row, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{style}{word}{style:#}: {BOLD}{}", clean(&row.policy))?;
    if !row.rule.is_empty() {
        write!(out, "/{}", clean(&row.rule))?;
    }
    write!(out, "{BOLD:#} on {}", clean(&row.resource))
}

fn write_disagreement(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let style = AnsiColor::BrightRed.on_default().bold();
    write_head("disagree", style, row, out)?;
    writeln!(out)?;
    let place = show_place(&row.place);
    match &row.reason {
        Reason::Wanted { expected, actual } => {
            let expected = if expected.is_empty() {
                "nothing"
            } else {
                expected
            };
            writeln!(
                out,
                "  expected {}, got {actual} {DIM}({place}){DIM:#}",
                clean(expected)
            )?;
        }
        reason => {
            let reason = reason.text().to_lowercase();
            writeln!(
                out,
                "  expected {}: {reason} {DIM}({place}){DIM:#}",
                clean(&row.expected)
            )?;
        }
    }
    if row.reason != Reason::NotFound && !row.message.is_empty() {
        writeln!(out, "  {}", clean_lines(&row.message, "  "))?;
    }
    if let Some(check) = &row.check {
        let (path, place) = (clean(&check.path), show_place(&check.resource));
        let found = found(&check.found);
        writeln!(out, "  found {found} at {path} {DIM}({place}){DIM:#}")?;
        writeln!(
            out,
            "  {DIM}demanded at {}{DIM:#}",
            show_place(&check.policy)
        )?;
    } else if let Some(place) = &row.resource_place {
        writeln!(
            out,
            "  {DIM}the resource is at {}{DIM:#}",
            show_place(place)
        )?;
    }
    if let Some(hint) = &row.hint {
        writeln!(out, "  {HINT}hint{HINT:#}: {}", clean(hint))?;
    }
    writeln!(out)
}

/// A row that does not disagree, on one line.
fn write_line(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let style = match row.verdict() {
        Verdict::Agree if row.reason.is_empty_pass() => AnsiColor::Cyan.on_default(),
        Verdict::Agree => AnsiColor::Green.on_default(),
        Verdict::Disagree | Verdict::Unsupported => AnsiColor::Yellow.on_default(),
    };
    write_head(row.verdict().as_str(), style, row, out)?;
    let text = match (&row.reason, row.actual) {
        (Reason::Ok, Some(actual)) => actual.to_owned(),
        (reason, _) => reason.text(),
    };
    let hint = row.hint.as_deref().unwrap_or_default();
    let separator = if hint.is_empty() { "" } else { ": " };
    writeln!(
        out,
        ": {}{separator}{} {DIM}({}){DIM:#}",
        clean(&text),
        clean(hint),
        show_place(&row.place)
    )
}

/// Unsupported features, each reason once.
fn write_unsupported(runs: &[SuiteRun], out: &mut dyn Write) -> io::Result<()> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for row in runs.iter().flat_map(|run| &run.rows) {
        if let Reason::Unsupported(reason) = &row.reason {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let style = AnsiColor::Yellow.on_default();
    for (reason, rows) in reasons {
        let (rows, reason) = (count(rows, "row"), clean(reason));
        writeln!(out, "{style}unsupported{style:#}: {rows}: {reason}")?;
    }
    Ok(())
}

fn write_counts(totals: &Totals, detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    let verdicts = totals.verdicts;
    let broken = match totals.broken_suites {
        0 => String::new(),
        number => format!(" ({number} could not be used)"),
    };
    writeln!(
        out,
        "{}{broken}, {}: {} agree, {} disagree, {} unsupported",
        count(totals.suites, "suite"),
        count(totals.rows, "row"),
        verdicts.agree,
        verdicts.disagree,
        verdicts.unsupported
    )?;
    let parts = [
        (totals.excluded, "no rule gave a result"),
        (totals.invalid_policy, "the policy is invalid"),
    ];
    for (number, why) in parts.into_iter().filter(|(number, _)| *number > 0) {
        let advice = match detail.detailed {
            true => "",
            false => "; --detailed-results lists them",
        };
        let rows = count(number, "row");
        writeln!(
            out,
            "{rows} agreed without anything being compared: {why}{advice}"
        )?;
    }
    if totals.empty_results > 0 {
        let results = count(totals.empty_results, "entry");
        writeln!(out, "{results} of results came to no row at all")?;
    }
    Ok(())
}
