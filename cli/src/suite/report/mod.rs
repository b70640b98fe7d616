//! Results of the suites in the requested format.

pub mod entries;
pub mod markdown;
pub mod structured;
pub mod table;
pub mod text;

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::explain;
use crate::report::{github, junit, sarif};
use crate::serialised::{write_json, write_yaml};
use crate::suite::row::{Reason, Row, Verdict};
use crate::suite::run::SuiteRun;

/// Report formats of `kpvm test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people: rows that disagree, and their causes
    #[default]
    Text,
    /// Kyverno's tables, one per suite
    Table,
    /// One JSON object with every row
    Json,
    /// The same as YAML
    Yaml,
    /// Markdown tables, one per suite
    Markdown,
    /// JUnit XML, for CI systems
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands: GitHub shows them next to the rows
    Github,
}

impl Format {
    /// Whether it is for people, so that other text may accompany it.
    pub fn is_for_people(self) -> bool {
        matches!(self, Format::Text | Format::Table | Format::Markdown)
    }

    /// Format of traces (`--explain`); `None` if there is none.
    pub fn of_traces(self) -> Option<explain::Format> {
        match self {
            Format::Text => Some(explain::Format::Text),
            Format::Json => Some(explain::Format::Json),
            Format::Yaml => Some(explain::Format::Yaml),
            Format::Table | Format::Markdown | Format::Junit | Format::Sarif | Format::Github => {
                None
            }
        }
    }
}

/// Which rows are shown, and how much of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detail {
    /// Only rows that disagree.
    pub fail_only: bool,
    /// Messages in tables; in the text also rows that agree.
    pub detailed: bool,
}

/// Number of rows by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// Rows that pass.
    pub agree: usize,
    /// Rows that fail.
    pub disagree: usize,
    /// Rows that need an unsupported feature.
    pub unsupported: usize,
}

impl Verdicts {
    fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Agree => &mut self.agree,
            Verdict::Disagree => &mut self.disagree,
            Verdict::Unsupported => &mut self.unsupported,
        } += 1;
    }
}

/// Counts of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Suites that were found.
    pub suites: usize,
    /// Suites that could not be run.
    pub broken_suites: usize,
    /// Rows.
    pub rows: usize,
    /// Rows by verdict.
    #[serde(flatten)]
    pub verdicts: Verdicts,
    /// Rows that agree although no rule responded for the resource.
    pub excluded: usize,
    /// Rows that agree although their policy failed Kyverno's checks.
    pub invalid_policy: usize,
    /// Entries of `results` that produced no row.
    pub empty_results: usize,
    /// Number of warnings.
    pub warnings: usize,
}

impl Totals {
    /// The counts of some suites.
    pub fn of(runs: &[SuiteRun]) -> Self {
        let mut totals = Self {
            suites: runs.len(),
            broken_suites: runs.iter().filter(|run| run.is_broken()).count(),
            empty_results: runs.iter().map(|run| run.empty_results).sum(),
            ..Self::default()
        };
        for row in runs.iter().flat_map(|run| &run.rows) {
            totals.rows += 1;
            totals.verdicts.add(row.verdict());
            totals.excluded += usize::from(row.reason == Reason::Excluded);
            totals.invalid_policy += usize::from(row.reason == Reason::InvalidPolicy);
        }
        let reports = runs.iter().flat_map(|run| &run.reports);
        totals.warnings = reports.filter(|report| !report.is_error()).count();
        totals
    }

    /// Whether there is no row, or an expectation was compared with nothing.
    pub fn has_empty_passes(&self) -> bool {
        self.rows == 0 || self.excluded + self.invalid_policy + self.empty_results > 0
    }
}

/// Verdicts by kind of the rows' policies; `none` if a suite has no such policy.
pub fn by_policy_kind(runs: &[SuiteRun]) -> BTreeMap<&str, Verdicts> {
    let mut kinds: BTreeMap<&str, Verdicts> = BTreeMap::new();
    for row in runs.iter().flat_map(|run| &run.rows) {
        let kind = row.policy_kind.as_deref().unwrap_or("none");
        kinds.entry(kind).or_default().add(row.verdict());
    }
    kinds
}

/// Writes the report.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(
    format: Format,
    runs: &[SuiteRun],
    detail: Detail,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => text::write(runs, detail, out),
        Format::Table => table::write(runs, detail, out),
        Format::Json => write_json(&structured::document(runs, detail), out),
        Format::Yaml => write_yaml(&structured::document(runs, detail), out),
        Format::Markdown => markdown::write(runs, detail, out),
        Format::Junit => junit::write(&entries::entries(runs, detail), out),
        Format::Sarif => sarif::write(&entries::entries(runs, detail), out),
        Format::Github => github::write(&entries::entries(runs, detail), out),
    }
}

/// The rows of a suite that are shown.
fn shown_rows(run: &SuiteRun, detail: Detail) -> impl Iterator<Item = &Row> {
    let is_shown = move |row: &&Row| !detail.fail_only || row.verdict() == Verdict::Disagree;
    run.rows.iter().filter(is_shown)
}

/// Kyverno's summary line.
fn write_summary(totals: &Totals, detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    let Verdicts {
        agree, disagree, ..
    } = totals.verdicts;
    if detail.fail_only {
        let all = agree + disagree;
        writeln!(out, "Test Summary: {disagree} out of {all} tests failed")
    } else {
        writeln!(
            out,
            "Test Summary: {agree} tests passed and {disagree} tests failed"
        )
    }
}
