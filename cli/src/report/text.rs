//! The report for people: what did not pass, equal failures of a rule together, and
//! one line of counts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::scan::{Finding, Outcome, Place, Scan};
use crate::text::{clean, clean_lines};

/// The style of policy and rule names.
const BOLD: Style = Style::new().bold();
/// The style of places.
const DIM: Style = Style::new().dimmed();

fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Pass => AnsiColor::Green.on_default(),
        Outcome::Fail | Outcome::Error => AnsiColor::BrightRed.on_default().bold(),
        Outcome::Warn => AnsiColor::Yellow.on_default().bold(),
        Outcome::Skip => AnsiColor::Cyan.on_default(),
    }
}

/// What findings have in common that are shown together.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct GroupKey<'s> {
    policy: usize,
    outcome: Outcome,
    rule: &'s str,
    message: &'s str,
    demanded: Option<&'s Place>,
}

/// Writes the report.
///
/// # Errors
/// Those of the writer.
pub fn write(scan: &Scan, out: &mut dyn Write) -> io::Result<()> {
    let mut groups: HashMap<GroupKey<'_>, Vec<&Finding>> = HashMap::new();
    let shown = |finding: &&Finding| {
        matches!(
            finding.outcome,
            Outcome::Fail | Outcome::Warn | Outcome::Error
        )
    };
    for finding in scan.findings.iter().filter(shown) {
        groups.entry(key(finding)).or_default().push(finding);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|left, right| left.0.cmp(&right.0));
    for (key, findings) in &groups {
        write_group(scan, key, findings, out)?;
    }
    let summary = scan.summary;
    let counts = [
        (Outcome::Pass, summary.pass),
        (Outcome::Fail, summary.fail),
        (Outcome::Warn, summary.warn),
        (Outcome::Error, summary.error),
        (Outcome::Skip, summary.skip),
    ];
    for (index, (outcome, number)) in counts.into_iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let style = if number == 0 {
            Style::new()
        } else {
            style(outcome)
        };
        write!(
            out,
            "{separator}{style}{}: {number}{style:#}",
            outcome.as_str()
        )?;
    }
    writeln!(out)
}

fn key(finding: &Finding) -> GroupKey<'_> {
    GroupKey {
        policy: finding.policy,
        outcome: finding.outcome,
        rule: &finding.rule,
        message: &finding.message,
        demanded: finding.check.as_ref().map(|check| &check.policy),
    }
}

fn write_group(
    scan: &Scan,
    key: &GroupKey<'_>,
    findings: &[&Finding],
    out: &mut dyn Write,
) -> io::Result<()> {
    let style = style(key.outcome);
    let outcome = key.outcome.as_str();
    write!(out, "{style}{outcome}{style:#}: {BOLD}")?;
    let policy = scan.policies.get(key.policy);
    if let Some(policy) = policy {
        if !policy.namespace.is_empty() {
            write!(out, "{}/", clean(&policy.namespace))?;
        }
        write!(out, "{}/", clean(&policy.name))?;
    }
    write!(out, "{}{BOLD:#}", clean(key.rule))?;
    if let Some(severity) = policy.and_then(|policy| policy.severity) {
        write!(out, " [{severity}]")?;
    }
    writeln!(out, "\n  {}", clean_lines(key.message, "  "))?;
    if let Some(place) = key.demanded {
        writeln!(out, "  {DIM}demanded at {}{DIM:#}", show_place(place))?;
    }
    for finding in findings {
        write_finding(scan, finding, out)?;
    }
    writeln!(out)
}

fn write_finding(scan: &Scan, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let Some(object) = scan.object(finding) else {
        return Ok(());
    };
    write!(out, "  - {} ", clean(&object.kind))?;
    if !object.namespace.is_empty() {
        write!(out, "{}/", clean(&object.namespace))?;
    }
    write!(out, "{}", clean(&object.name))?;
    let place = match &finding.check {
        Some(check) => {
            write!(out, ": found {}", found(&check.found))?;
            &check.resource
        }
        None => &object.place,
    };
    writeln!(out, " {DIM}({}){DIM:#}", show_place(place))
}

/// A found value on one line: texts are quoted by the engine, so that what begins with
/// a bracket is a map or a list, and not shown whole.
pub(crate) fn found(text: &str) -> Cow<'_, str> {
    const CHARACTERS: usize = 120;
    if text.starts_with("map[") {
        "a map".into()
    } else if text.starts_with('[') {
        "a list".into()
    } else if let Some((end, _)) = text.char_indices().nth(CHARACTERS) {
        format!("{}…", clean(text.get(..end).unwrap_or(""))).into()
    } else {
        clean(text)
    }
}

/// `file:line:column`
pub(crate) fn show_place(place: &Place) -> String {
    format!("{}:{}:{}", clean(&place.file), place.line, place.column)
}
