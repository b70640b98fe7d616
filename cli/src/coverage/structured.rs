//! Coverage as JSON, for programs. New versions may add fields; existing ones keep their
//! name and meaning while `version` is 1.

use serde::Serialize;

use super::{Coverage, Point, PointKind, RuleCoverage, Summary};

/// The whole document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'c> {
    /// Version of this format: 1.
    pub version: u32,
    /// Percentage of covered rules and directions, with one decimal, rounded down; null if
    /// there is nothing to cover.
    pub percent: Option<f64>,
    /// The shares of everything.
    pub summary: Summary,
    /// The policy files.
    pub files: Vec<File<'c>>,
    /// Rules that could not be measured because they are not supported yet.
    pub not_measured: Vec<NotMeasured<'c>>,
}

/// One file.
#[derive(Debug, Serialize)]
pub struct File<'c> {
    /// Its name.
    pub file: &'c str,
    /// Its rules.
    pub rules: Vec<Rule<'c>>,
}

/// One rule as written, including the rules generated from it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule<'c> {
    /// Name of the policy.
    pub policy: &'c str,
    /// Name of the rule.
    pub rule: &'c str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Evaluations with a response.
    pub applied: u64,
    /// Evaluations without a response.
    pub not_applied: u64,
    /// Responses: pass.
    pub passed: u64,
    /// Responses: fail.
    pub failed: u64,
    /// Responses: skip.
    pub skipped: u64,
    /// Responses: error.
    pub errored: u64,
    /// What it tests, in the order of the text.
    pub points: Vec<PointEntry<'c>>,
}

/// A filter, a condition or a leaf.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PointEntry<'c> {
    /// `filter`, `condition` or `leaf`.
    pub kind: PointKind,
    /// The part of the rule, e.g. `preconditions.all[0]`.
    pub part: &'c str,
    /// What is tested.
    pub text: &'c str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// How often it held.
    pub held: u64,
    /// How often it did not.
    pub not_held: u64,
}

/// A rule that could not be measured.
#[derive(Debug, Serialize)]
pub struct NotMeasured<'c> {
    /// Name of the policy.
    pub policy: &'c str,
    /// Name of the rule.
    pub rule: &'c str,
    /// Reason.
    pub reason: &'c str,
    /// Location, `file:line:column`.
    pub place: &'c str,
}

/// Coverage as a document.
pub fn document(coverage: &Coverage) -> Document<'_> {
    let summary = coverage.summary();
    let omitted = coverage.omitted.iter();
    Document {
        version: 1,
        percent: summary.percent(),
        summary,
        files: coverage
            .files()
            .map(|(file, rules)| File {
                file,
                rules: rules.into_iter().map(rule).collect(),
            })
            .collect(),
        not_measured: omitted
            .map(|((policy, rule, place), reason)| NotMeasured {
                policy,
                rule,
                reason,
                place,
            })
            .collect(),
    }
}

fn rule(rule: &RuleCoverage) -> Rule<'_> {
    let outcomes = rule.outcomes;
    Rule {
        policy: &rule.policy,
        rule: &rule.rule,
        line: rule.line,
        column: rule.column,
        applied: outcomes.applied(),
        not_applied: outcomes.not_applied,
        passed: outcomes.passed,
        failed: outcomes.failed,
        skipped: outcomes.skipped,
        errored: outcomes.errored,
        points: rule.points().map(point).collect(),
    }
}

fn point(point: &Point) -> PointEntry<'_> {
    PointEntry {
        kind: point.kind,
        part: &point.part,
        text: &point.text,
        line: point.line,
        column: point.column,
        held: point.counts.held,
        not_held: point.counts.not_held,
    }
}
