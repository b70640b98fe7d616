//! The report for people: what did not pass, equal failures of a rule together, the
//! lines they are about, and one line of counts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::report::{Run, excerpt};
use crate::scan::{Finding, Outcome, Place, PolicyFacts, Scan, Summary};
use crate::text::{clean, clean_lines, rule_name, shortened};

/// The style of policy and rule names.
const BOLD: Style = Style::new().bold();
/// The style of places.
const DIM: Style = Style::new().dimmed();

/// Characters of a found value that are shown.
const FOUND_CHARACTERS: usize = 120;

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
pub fn write(run: &Run<'_>, out: &mut dyn Write) -> io::Result<()> {
    write_findings(run, out)?;
    write_summary(run.scan.summary, out)
}

/// Writes the report without the counts.
///
/// # Errors
/// Those of the writer.
pub fn write_findings(run: &Run<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut groups: HashMap<GroupKey<'_>, Vec<&Finding>> = HashMap::new();
    let shown = |finding: &&Finding| match finding.outcome {
        Outcome::Fail | Outcome::Warn | Outcome::Error => true,
        Outcome::Skip => run.verbose,
        Outcome::Pass => false,
    };
    for finding in run.scan.findings.iter().filter(shown) {
        groups.entry(key(finding)).or_default().push(finding);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|left, right| left.0.cmp(&right.0));
    for (key, findings) in &groups {
        write_group(run, key, findings, out)?;
    }
    Ok(())
}

/// `pass: 1, fail: 0, warn: 0, error: 0, skip: 0`
///
/// # Errors
/// Those of the writer.
pub fn write_summary(summary: Summary, out: &mut dyn Write) -> io::Result<()> {
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

/// Of the first object that can be shown the lines are, the others are listed.
fn write_group(
    run: &Run<'_>,
    key: &GroupKey<'_>,
    findings: &[&Finding],
    out: &mut dyn Write,
) -> io::Result<()> {
    write_heading(run.scan, key, out)?;
    let shown = findings
        .iter()
        .enumerate()
        .find_map(|(index, finding)| Some((index, lines(run, finding)?)));
    match &shown {
        Some((_, lines)) => writeln!(out, "{lines}")?,
        None => {
            let rule = findings.first().and_then(|one| run.scan.rule_place(one));
            let place = key.demanded.map(|place| ("demanded", place));
            if let Some((what, place)) = place.or(rule.map(|place| ("rule", place))) {
                writeln!(out, "  {DIM}{what} at {}{DIM:#}", show_place(place))?;
            }
        }
    }
    if shown.is_some() && findings.len() > 1 {
        writeln!(out, "  the same:")?;
    }
    let shown = shown.map(|(index, _)| index);
    for (index, finding) in findings.iter().enumerate() {
        if shown != Some(index) {
            write_finding(run.scan, finding, out)?;
        }
    }
    writeln!(out)
}

fn lines(run: &Run<'_>, finding: &Finding) -> Option<String> {
    let object = run.scan.object(finding)?;
    let label = match label(finding)?.as_str() {
        "" => object.title(),
        label => format!("{}: {label}", object.title()),
    };
    excerpt::render(run, finding, &label)
}

/// `fail: policy/rule [severity]`, and the message.
fn write_heading(scan: &Scan, key: &GroupKey<'_>, out: &mut dyn Write) -> io::Result<()> {
    let style = style(key.outcome);
    let outcome = key.outcome.as_str();
    write!(out, "{style}{outcome}{style:#}: {BOLD}")?;
    let policy = scan.policies.get(key.policy);
    let name = policy.map_or(String::new(), PolicyFacts::full_name);
    write!(out, "{}{BOLD:#}", clean(&rule_name(&name, key.rule)))?;
    if let Some(severity) = policy.and_then(|policy| policy.severity) {
        write!(out, " [{severity}]")?;
    }
    writeln!(out, "\n  {}", clean_lines(key.message, "  "))
}

fn write_finding(scan: &Scan, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let Some(object) = scan.object(finding) else {
        return Ok(());
    };
    write!(out, "  - {}", clean(&object.title()))?;
    if let Some(label) = label(finding) {
        write!(out, ": {label}")?;
    }
    let place = match &finding.check {
        Some(check) => &check.resource,
        None => &object.place,
    };
    writeln!(out, " {DIM}({}){DIM:#}", show_place(place))
}

/// The found value, or where nothing was found.
fn label(finding: &Finding) -> Option<String> {
    let check = finding.check.as_ref()?;
    Some(match (check.found.as_str(), check.path.as_str()) {
        ("nothing", path) if !path.is_empty() => {
            format!("found nothing at {}", clean(path.trim_end_matches('/')))
        }
        ("", _) => String::new(),
        (text, _) => format!("found {}", found(text)),
    })
}

/// A found value on one line: texts are quoted by the engine, so that what begins with
/// a bracket is a map or a list, and not shown whole.
pub(crate) fn found(text: &str) -> Cow<'_, str> {
    if text.starts_with("map[") {
        "a map".into()
    } else if text.starts_with('[') {
        "a list".into()
    } else {
        clean(&shortened(text, FOUND_CHARACTERS))
            .into_owned()
            .into()
    }
}

/// A place, safe for a terminal.
pub(crate) fn show_place(place: &Place) -> String {
    clean(&place.to_string()).into_owned()
}
