//! The gate: results of suites against the exceptions that `conformance.toml` lists.
//!
//! The list can only shrink: disagreeing suites and the reasons of unsupported rows must be
//! listed, and an entry that is no longer needed is a violation too.

use std::collections::BTreeMap;

use kpvm_cli::suite::{Reason, SuiteRun, Verdict};
use serde::Deserialize;

/// The checked-in list.
const LISTED: &str = include_str!("../conformance.toml");

/// The exceptions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Suites that do not agree.
    #[serde(default)]
    pub suite: Vec<ListedSuite>,
    /// Rows that are not supported.
    #[serde(default)]
    pub unsupported: ListedRows,
}

/// A suite that does not agree.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedSuite {
    /// The end of the suite file's path.
    pub path: String,
    /// Why it does not agree.
    pub reason: String,
}

/// Rows that cannot be judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedRows {
    /// How many there are.
    pub rows: usize,
    /// Reasons, as the rows give them.
    pub reasons: Vec<String>,
}

impl Listed {
    /// The checked-in list.
    ///
    /// # Errors
    /// When it cannot be parsed.
    pub fn checked_in() -> Result<Self, String> {
        toml::from_str(LISTED).map_err(|error| format!("conformance.toml: {error}"))
    }

    /// Every deviation of the results from the list.
    pub fn violations(&self, runs: &[SuiteRun]) -> Vec<String> {
        let mut violations = Vec::new();
        let mut used = vec![false; self.suite.len()];
        for run in runs.iter().filter(|run| is_short(run)) {
            let listed = self
                .suite
                .iter()
                .position(|listed| run.file.ends_with(&listed.path));
            match listed.and_then(|number| used.get_mut(number)) {
                Some(used) => *used = true,
                None => violations.extend(shortcomings(run)),
            }
        }
        for (listed, used) in self.suite.iter().zip(used) {
            if !used {
                let path = &listed.path;
                violations.push(format!("{path} agrees now: take it off conformance.toml"));
            }
        }
        let (found, listed) = (unsupported(runs), &self.unsupported);
        let rows: usize = found.values().sum();
        if rows != listed.rows {
            let listed = listed.rows;
            violations.push(format!(
                "{rows} rows are unsupported, and {listed} are in conformance.toml: write it down if it is less"
            ));
        }
        let unlisted = found
            .keys()
            .filter(|reason| !listed.reasons.iter().any(|one| one == *reason));
        violations.extend(unlisted.map(|reason| format!("unsupported, and not listed: {reason}")));
        let gone = listed
            .reasons
            .iter()
            .filter(|reason| !found.contains_key(reason.as_str()));
        violations.extend(gone.map(|reason| {
            format!("no row is unsupported any more, take it off conformance.toml: {reason}")
        }));
        violations
    }
}

/// Number of unsupported rows per reason.
pub fn unsupported(runs: &[SuiteRun]) -> BTreeMap<&str, usize> {
    let mut reasons = BTreeMap::new();
    for row in runs.iter().flat_map(|run| &run.rows) {
        if let Reason::Unsupported(reason) = &row.reason {
            *reasons.entry(reason.as_str()).or_default() += 1;
        }
    }
    reasons
}

/// Whether a suite is broken or one of its rows disagrees.
fn is_short(run: &SuiteRun) -> bool {
    run.is_broken() || run.count(Verdict::Disagree) > 0
}

/// Problems of a suite, one line each.
fn shortcomings(run: &SuiteRun) -> Vec<String> {
    let errors = run.reports.iter().filter(|report| report.is_error());
    let errors = errors.map(|report| format!("{}: {}", run.file, report.message));
    let rows = run.rows.iter();
    let disagreeing = rows.filter(|row| row.verdict() == Verdict::Disagree);
    let disagreeing = disagreeing.map(|row| {
        let (file, line) = (&row.place.file, row.place.line);
        let (policy, rule, reason) = (&row.policy, &row.rule, row.reason.text());
        format!(
            "{file}:{line}: {policy}/{rule} on {}: {reason}",
            row.resource
        )
    });
    errors.chain(disagreeing).collect()
}

/// Why a suite is incomplete: rows without an answer, and answers without a row.
pub fn gaps(run: &SuiteRun) -> Vec<String> {
    let mut gaps = shortcomings(run);
    let rows = run.rows.iter();
    let empty =
        rows.filter(|row| row.reason.is_empty_pass() || row.verdict() == Verdict::Unsupported);
    gaps.extend(empty.map(|row| {
        let (file, line) = (&row.place.file, row.place.line);
        format!("{file}:{line}: {}: {}", row.resource, row.reason.text())
    }));
    let without = run.without_row.iter();
    gaps.extend(without.map(|(rule, resource, status)| {
        format!("{}: no row: {rule} on {resource} is {status}", run.file)
    }));
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_well_formed_and_each_entry_has_its_reason() {
        let listed = Listed::checked_in().unwrap_or_default();
        assert!(!listed.suite.is_empty());
        assert!(listed.suite.iter().all(|suite| suite.reason.len() > 20));
    }

    /// A list fails for missing entries and for unneeded ones.
    #[test]
    fn the_list_can_only_shrink() {
        let suite = ListedSuite {
            path: "agrees/kyverno-test.yaml".to_owned(),
            reason: String::new(),
        };
        let unsupported = ListedRows {
            rows: 1,
            reasons: vec!["something".to_owned()],
        };
        let listed = Listed {
            suite: vec![suite],
            unsupported,
        };
        assert_eq!(listed.violations(&[]).len(), 3);
        assert_eq!(Listed::default().violations(&[]), [""; 0]);
    }
}
