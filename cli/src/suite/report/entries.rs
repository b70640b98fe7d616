//! Rows as entries of the reports for CI systems: a row that disagrees is a failure, one
//! that cannot be judged is skipped.
//!
//! The location is that of the row in the suite file, where a wrong expectation is
//! corrected.

use std::collections::BTreeSet;

use super::{Detail, Totals, shown_rows};
use crate::problem::Report;
use crate::report::entry::{Entries, Entry, Level, Notice, Related, Role, RuleFacts, demand};
use crate::scan::{Outcome, Summary};
use crate::suite::row::{Row, Verdict};
use crate::suite::run::SuiteRun;

/// The entries of some suites.
pub fn entries(runs: &[SuiteRun], detail: Detail) -> Entries<'_> {
    let rows = runs
        .iter()
        .flat_map(|run| shown_rows(run, detail).map(|row| entry(run, row)));
    let entries: Vec<Entry<'_>> = rows.collect();
    let rules: BTreeSet<String> = entries.iter().map(|entry| entry.rule.clone()).collect();
    let verdicts = Totals::of(runs).verdicts;
    Entries {
        rules: rules.into_iter().map(rule).collect(),
        entries,
        notices: runs
            .iter()
            .flat_map(|run| run.reports.iter().map(notice))
            .collect(),
        summary: Summary {
            pass: verdicts.agree,
            fail: verdicts.disagree,
            skip: verdicts.unsupported,
            ..Summary::default()
        },
    }
}

fn rule(id: String) -> RuleFacts<'static> {
    RuleFacts {
        id,
        ..RuleFacts::default()
    }
}

fn entry<'r>(run: &'r SuiteRun, row: &'r Row) -> Entry<'r> {
    let verdict = row.verdict();
    // The value found matters only if the result was not the expected one.
    let check = row.check.as_ref().filter(|_| verdict == Verdict::Disagree);
    let object = check
        .map(|check| &check.resource)
        .or(row.resource_place.as_ref());
    let object = object.map(|place| Related {
        role: Role::Object,
        place,
    });
    let rule = match row.rule.as_str() {
        "" => row.policy.clone(),
        rule => format!("{}/{rule}", row.policy),
    };
    Entry {
        group: run.file.as_str().into(),
        rule,
        object: row.resource.as_str().into(),
        object_id: row.resource.as_str().into(),
        outcome: match verdict {
            Verdict::Agree => Outcome::Pass,
            Verdict::Disagree => Outcome::Fail,
            Verdict::Unsupported => Outcome::Skip,
        },
        severity: None,
        message: message(row).into(),
        path: check.map_or("", |check| &check.path),
        found: check.map_or("", |check| &check.found),
        place: Some(&row.place),
        related: object
            .into_iter()
            .chain(check.map(|check| demand(&check.policy)))
            .collect(),
    }
}

/// The reason, then the rule's message and the hint.
fn message(row: &Row) -> String {
    let parts = [
        row.reason.text(),
        row.message.clone(),
        row.hint.clone().unwrap_or_default(),
    ];
    let mut parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.dedup();
    parts.join("\n")
}

fn notice(report: &Report) -> Notice<'_> {
    let hint = report.hint.as_ref();
    Notice {
        level: if report.is_error() {
            Level::Error
        } else {
            Level::Warning
        },
        file: report.file.as_str().into(),
        position: report.place,
        message: match hint {
            Some(hint) => format!("{} ({hint})", report.message).into(),
            None => report.message.as_str().into(),
        },
    }
}
