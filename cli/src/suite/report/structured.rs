//! The report for programs, as JSON or YAML, documented in `docs/suites.md`. Fields are in
//! the order of the types below; optional fields are omitted if there is nothing to report.
//!
//! New versions may add fields; existing ones keep their name and meaning while `version`
//! is 1.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Detail, Totals, Verdicts, by_policy_kind, shown_rows};
use crate::place::Place;
use crate::problem::Report;
use crate::suite::row::{Row, Verdict};
use crate::suite::run::SuiteRun;

/// The whole report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'r> {
    /// Version of this format: 1.
    pub version: u32,
    /// Number of suites.
    pub suites: usize,
    /// The counts.
    pub totals: Totals,
    /// Verdicts by the kind of the rows' policies.
    pub policy_kinds: BTreeMap<&'r str, Verdicts>,
    /// Every row, suite by suite.
    pub results: Vec<Entry<'r>>,
    /// Errors and warnings about suites.
    pub problems: Vec<ProblemEntry<'r>>,
}

/// One row: for one resource and one response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry<'r> {
    /// The suite file.
    pub suite: &'r str,
    /// The Test's `metadata.name`.
    pub test: &'r str,
    /// Line of the row in the suite file, from 1.
    pub line: u32,
    /// The policy as named by the row.
    pub policy: &'r str,
    /// Kind of the policy; null if the suite has no such policy.
    pub policy_kind: Option<&'r str>,
    /// The rule that responded, otherwise the one named by the row.
    pub rule: &'r str,
    /// `apiVersion/kind/namespace/name`.
    pub resource: &'r str,
    /// Expected result.
    pub expected: &'r str,
    /// Actual result; null if no rule responded.
    pub actual: Option<&'r str>,
    /// `agree`, `disagree` or `unsupported`.
    pub verdict: Verdict,
    /// Kyverno's reason, or the unsupported feature.
    pub reason: String,
    /// Kyverno's message.
    pub message: &'r str,
    /// Hint; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'r str>,
    /// Path of the failed check in the object; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'r str>,
    /// Value found there; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<&'r str>,
    /// Location of the check, otherwise of the object, in the object's file; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_place: Option<&'r Place>,
    /// Location of the demand in the policy; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_place: Option<&'r Place>,
}

/// An error or warning about a suite.
#[derive(Debug, Serialize)]
pub struct ProblemEntry<'r> {
    /// The suite file.
    pub suite: &'r str,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// Stable identifier of the problem.
    pub code: &'r str,
    /// The file concerned.
    pub file: &'r str,
    /// The line, from 1; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The character in the line, from 1; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// What is wrong.
    pub message: &'r str,
    /// How to fix it; optional.
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
