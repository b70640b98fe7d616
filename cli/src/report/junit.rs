//! JUnit XML: one suite per policy (or test file), one case per entry.
//!
//! GitLab shows `classname` and `name` of a case and the text of its failure; Jenkins also
//! shows suites and `message`. Therefore the rule is the class, the object is the name, and
//! the text contains all details. There are no times.

use std::collections::HashMap;
use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::report::entry::{Entries, Entry, Level, Notice};
use crate::report::section::{Key, Section, Sections, between};
use crate::scan::{Outcome, Summary};
use crate::text::clean_text;

/// Writes the whole document.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(entries: &Entries<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut suites = Sections::default();
    for section in sections(&entries.entries)? {
        suites.add(section, "")?;
    }
    write_suites(&entries.notices, &mut suites, out)
}

/// Writes the document: the suites of all chunks, in the order in which they were first
/// named, and the unusable inputs.
pub fn write_suites(
    notices: &[Notice<'_>],
    suites: &mut Sections,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut report = Report::new("kpvm");
    for stored in suites.list() {
        let Key::Name(group) = &stored.key else {
            continue;
        };
        let mut suite = TestSuite::new(xml(group));
        suite.tests = stored.summary.total();
        suite.failures = stored.summary.fail;
        suite.errors = stored.summary.error;
        suite.skipped = stored.summary.warn + stored.summary.skip;
        report.add_test_suite(suite);
    }
    report.add_test_suites(inputs(notices));
    let text = report.to_string().map_err(io::Error::other)?;
    // Suites without cases are closed at once; `>` is escaped in texts.
    let mut rest = text.as_str();
    for number in 0..suites.list().len() {
        let Some((before, behind)) = rest.split_once("/>") else {
            break;
        };
        writeln!(out, "{before}>")?;
        suites.copy(number, out)?;
        write!(out, "    </testsuite>")?;
        rest = behind;
    }
    out.write_all(rest.as_bytes())
}

/// Suites of one chunk of the input.
pub fn sections(entries: &[Entry<'_>]) -> io::Result<Vec<Section>> {
    let mut suites: Vec<(&str, Summary, TestSuite)> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for entry in entries {
        let number = *numbers.entry(&entry.group).or_insert_with(|| {
            suites.push((&entry.group, Summary::default(), TestSuite::new("")));
            suites.len() - 1
        });
        if let Some((_, summary, suite)) = suites.get_mut(number) {
            summary.add(entry.outcome);
            suite.add_test_case(case(entry));
        }
    }
    let section = |(group, summary, suite): (&str, Summary, TestSuite)| {
        let mut report = Report::new("");
        report.add_test_suite(suite);
        let text = report.to_string().map_err(io::Error::other)?;
        let cases = between(&text, "        <testcase", "    </testsuite>")?;
        Ok(Section {
            key: Key::Name(group.to_owned()),
            text: format!("        <testcase{cases}").into_bytes(),
            items: summary.total(),
            summary,
        })
    };
    suites.into_iter().map(section).collect()
}

fn case(entry: &Entry<'_>) -> TestCase {
    let mut status = match entry.outcome {
        Outcome::Pass => TestCaseStatus::success(),
        Outcome::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Outcome::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        // JUnit has no warnings; a skipped case is visible and does not fail a job.
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

/// Unusable inputs become errors, omissions become skipped cases.
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

/// Replaces characters that XML cannot represent; markup is escaped when written.
fn xml(text: &str) -> String {
    let text = clean_text(text);
    text.replace('\u{FFFE}', "\\u{fffe}")
        .replace('\u{FFFF}', "\\u{ffff}")
}
