//! JUnit XML: one suite for each policy (or file of tests), one case for each entry.
//!
//! GitLab shows `classname` and `name` of a case and the text of its failure, Jenkins
//! also suites, and `message`; so the rule is the class, the object is the name, and
//! everything there is to say stands in the text. Nothing carries a time.

use std::collections::HashMap;
use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::report::entry::{Entries, Entry, Level, Notice};
use crate::scan::Outcome;
use crate::text::clean_text;

/// Writes the whole document.
///
/// # Errors
/// Those of the writer.
pub fn write(entries: &Entries<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut report = Report::new("kpvm");
    report.add_test_suites(suites(entries));
    report.add_test_suites(inputs(&entries.notices));
    report.serialize(out).map_err(io::Error::other)
}

/// The suites in the order in which they are first named.
fn suites(entries: &Entries<'_>) -> Vec<TestSuite> {
    let mut suites: Vec<TestSuite> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for entry in &entries.entries {
        let number = *numbers.entry(&entry.group).or_insert_with(|| {
            suites.push(TestSuite::new(xml(&entry.group)));
            suites.len() - 1
        });
        if let Some(suite) = suites.get_mut(number) {
            suite.add_test_case(case(entry));
        }
    }
    suites
}

fn case(entry: &Entry<'_>) -> TestCase {
    let mut status = match entry.outcome {
        Outcome::Pass => TestCaseStatus::success(),
        Outcome::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Outcome::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        // JUnit knows no warnings; a skipped case is seen and does not fail a job.
        Outcome::Warn | Outcome::Skip => TestCaseStatus::skipped(),
    };
    let mut text = entry.full_message();
    if let Some(place) = entry.place {
        text = format!("{place}\n{text}");
    }
    status
        .set_message(xml(entry.message.lines().next().unwrap_or("")))
        .set_type(match entry.severity {
            Some(severity) => format!("{}: {severity}", entry.outcome.as_str()),
            None => entry.outcome.as_str().to_owned(),
        });
    if entry.outcome != Outcome::Skip {
        status.set_description(xml(&text));
    }
    let mut case = TestCase::new(xml(&entry.object), status);
    case.set_classname(xml(&entry.rule));
    if let Some(place) = entry.place {
        case.extra.insert("file".into(), xml(&place.file).into());
        let line = place.line.to_string();
        case.extra.insert("line".into(), line.into());
    }
    case
}

/// What could not be used is an error, what was left out is skipped.
fn inputs(notices: &[Notice<'_>]) -> Option<TestSuite> {
    let mut suite = TestSuite::new("inputs");
    for notice in notices {
        let mut status = match notice.level {
            Level::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
            Level::Warning => TestCaseStatus::skipped(),
        };
        status.set_message(xml(&notice.message));
        let mut case = TestCase::new(xml(&notice.file), status);
        case.set_classname("inputs");
        case.extra.insert("file".into(), xml(&notice.file).into());
        if let Some((line, _)) = notice.position {
            case.extra.insert("line".into(), line.to_string().into());
        }
        suite.add_test_case(case);
    }
    (suite.tests > 0).then_some(suite)
}

/// Text of which XML can hold every character; markup is escaped when it is written.
fn xml(text: &str) -> String {
    let text = clean_text(text);
    text.replace('\u{FFFE}', "\\u{fffe}")
        .replace('\u{FFFF}', "\\u{ffff}")
}
