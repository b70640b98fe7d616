//! The report for programs, as JSON or YAML: `docs/suites.md` describes it. The order of
//! fields is that of the types below; fields marked as optional are left out where there
//! is nothing to say.
//!
//! Fields are added in new versions, but what is there keeps its name and meaning as
//! long as `version` is 1.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Detail, Totals, Verdicts, by_policy_kind, shown_rows};
use crate::problem::Report;
use crate::scan::Place;
use crate::suite::row::{Row, Verdict};
use crate::suite::run::SuiteRun;

/// The whole report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'r> {
    /// Version of this form: 1.
    pub version: u32,
    /// How many suites were found.
    pub suites: usize,
    /// The counts.
    pub totals: Totals,
    /// Verdicts by the kind of the rows' policies.
    pub policy_kinds: BTreeMap<&'r str, Verdicts>,
    /// Every row, suite by suite.
    pub results: Vec<Entry<'r>>,
    /// What could not be used, and what people should look at.
    pub problems: Vec<ProblemEntry<'r>>,
}

/// One row: for one resource and one response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry<'r> {
    /// The suite's file.
    pub suite: &'r str,
    /// The Test's `metadata.name`.
    pub test: &'r str,
    /// The line of the row in the suite's file, from 1.
    pub line: u32,
    /// The policy as the row names it.
    pub policy: &'r str,
    /// The policy's kind; null where the suite has no such policy.
    pub policy_kind: Option<&'r str>,
    /// The rule that answered, else the one that the row names.
    pub rule: &'r str,
    /// `apiVersion/kind/namespace/name`.
    pub resource: &'r str,
    /// The result that the row wants.
    pub expected: &'r str,
    /// The result that there is; null where no rule answered.
    pub actual: Option<&'r str>,
    /// `agree`, `disagree` or `unsupported`.
    pub verdict: Verdict,
    /// Kyverno's reason, or what is not supported.
    pub reason: String,
    /// Kyverno's message.
    pub message: &'r str,
    /// What to look at; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'r str>,
    /// Path of the failed check in the object; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'r str>,
    /// What was found there; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<&'r str>,
    /// Where the check, else the object, stands in the object's file; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_place: Option<&'r Place>,
    /// Where the policy demands it; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_place: Option<&'r Place>,
}

/// Something that could not be used, or should be looked at.
#[derive(Debug, Serialize)]
pub struct ProblemEntry<'r> {
    /// The suite's file.
    pub suite: &'r str,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// Stable name of what is wrong.
    pub code: &'r str,
    /// The file that it is about.
    pub file: &'r str,
    /// The line, from 1; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The character in the line, from 1; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// What is wrong.
    pub message: &'r str,
    /// What to do about it; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'r str>,
}

/// The report of some suites.
pub fn document(runs: &[SuiteRun], detail: Detail) -> Document<'_> {
    let rows = runs
        .iter()
        .flat_map(|run| shown_rows(run, detail).map(|row| entry(run, row)));
    let problems = runs
        .iter()
        .flat_map(|run| run.reports.iter().map(|report| problem(run, report)));
    Document {
        version: 1,
        suites: runs.len(),
        totals: Totals::of(runs),
        policy_kinds: by_policy_kind(runs),
        results: rows.collect(),
        problems: problems.collect(),
    }
}

fn entry<'r>(run: &'r SuiteRun, row: &'r Row) -> Entry<'r> {
    let check = row.check.as_ref();
    let place = check.map(|check| &check.resource);
    Entry {
        suite: &run.file,
        test: &run.name,
        line: row.place.line,
        policy: &row.policy,
        policy_kind: row.policy_kind.as_deref(),
        rule: &row.rule,
        resource: &row.resource,
        expected: &row.expected,
        actual: row.actual,
        verdict: row.verdict(),
        reason: row.reason.text(),
        message: &row.message,
        hint: row.hint.as_deref(),
        path: check.map(|check| check.path.as_str()),
        found: check.map(|check| check.found.as_str()),
        resource_place: place.or(row.resource_place.as_ref()),
        policy_place: check.map(|check| &check.policy),
    }
}

fn problem<'r>(run: &'r SuiteRun, report: &'r Report) -> ProblemEntry<'r> {
    ProblemEntry {
        suite: &run.file,
        severity: if report.is_error() {
            "error"
        } else {
            "warning"
        },
        code: report.code,
        file: &report.file,
        line: report.place.map(|(line, _)| line),
        column: report.place.map(|(_, column)| column),
        message: &report.message,
        hint: report.hint.as_deref(),
    }
}
