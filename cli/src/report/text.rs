//! The report for people: results that did not pass, with equal failures of a rule grouped,
//! source excerpts, and one line of counts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::place::Place;
use crate::report::{Run, excerpt};
use crate::scan::{Finding, Outcome, PolicyFacts, Scan, Summary};
use crate::text::{clean, clean_lines, rule_name, shortened};

/// Style of policy and rule names.
const BOLD: Style = Style::new().bold();
/// Style of locations.
const DIM: Style = Style::new().dimmed();

/// Shown length of a found value, in characters.
const FOUND_CHARACTERS: usize = 120;

fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Pass => AnsiColor::Green.on_default(),
        Outcome::Fail | Outcome::Error => AnsiColor::BrightRed.on_default().bold(),
        Outcome::Warn => AnsiColor::Yellow.on_default().bold(),
        Outcome::Skip => AnsiColor::Cyan.on_default(),
    }
}

/// Bytes of groups collected before they are written. Equal failures are grouped within
/// this window; memory does not grow with their number.
const GROUP_BYTES: usize = 16 << 20;

/// Grouping key of findings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    policy: usize,
    outcome: Outcome,
    rule: String,
    message: String,
    demanded: Option<Place>,
}

/// Findings of one group, rendered.
#[derive(Debug)]
struct Group {
    heading: String,
    /// Location in the policy, used if there is no excerpt.
    place: String,
    /// Index of the finding with the excerpt, and the excerpt.
    excerpt: Option<(usize, String)>,
    /// Each finding as a list item.
    findings: Vec<String>,
}

/// Findings waiting to be written.
#[derive(Debug, Default)]
pub struct Groups {
    groups: BTreeMap<GroupKey, Group>,
    /// Bytes of all their texts.
    bytes: usize,
}

impl Groups {
    /// Findings of one chunk of the input.
    pub fn of(run: &Run<'_>) -> Self {
        let mut all: BTreeMap<GroupKey, Group> = BTreeMap::new();
        let shown = |finding: &&Finding| match finding.outcome {
            Outcome::Fail | Outcome::Warn | Outcome::Error => true,
            Outcome::Skip => run.verbose,
            Outcome::Pass => false,
        };
        for finding in run.scan.findings.iter().filter(shown) {
            let key = key(finding);
            let group = match all.entry(key) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let group = Group {
                        heading: heading(run.scan, entry.key()),
                        place: place(run.scan, finding),
                        excerpt: None,
                        findings: Vec::new(),
                    };
                    entry.insert(group)
                }
            };
            if group.excerpt.is_none() {
                let number = group.findings.len();
                group.excerpt = lines(run, finding).map(|lines| (number, lines));
            }
            group.findings.push(item(run.scan, finding));
        }
        let bytes = all.iter().map(|(key, group)| key.bytes() + group.bytes());
        Self {
            bytes: bytes.sum(),
            groups: all,
        }
    }

    /// Adds the findings of a later chunk.
    pub fn add(&mut self, more: Self) {
        self.bytes += more.bytes;
        for (key, group) in more.groups {
            match self.groups.entry(key) {
                Entry::Occupied(entry) => entry.into_mut().add(group),
                Entry::Vacant(entry) => drop(entry.insert(group)),
            }
        }
    }

    /// Whether they should be written now.
    pub fn are_many(&self) -> bool {
        self.bytes > GROUP_BYTES
    }

    /// Writes all groups in sorted order and clears them.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for group in std::mem::take(self).groups.values() {
            group.write(out)?;
        }
        Ok(())
    }
}

impl GroupKey {
    fn bytes(&self) -> usize {
        size_of::<(Self, Group)>() + self.rule.len() + self.message.len()
    }
}

impl Group {
    fn bytes(&self) -> usize {
        let excerpt = self.excerpt.as_ref().map_or(0, |(_, lines)| lines.len());
        let findings = self.findings.iter();
        let findings = findings.map(|finding| size_of::<String>() + finding.len());
        self.heading.len() + self.place.len() + excerpt + findings.sum::<usize>()
    }

    fn add(&mut self, more: Self) {
        let before = self.findings.len();
        let excerpt = more.excerpt.map(|(number, lines)| (number + before, lines));
        self.excerpt = self.excerpt.take().or(excerpt);
        self.findings.extend(more.findings);
    }

    /// Shows the excerpt of the first object that has one, and lists the others.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.heading.as_bytes())?;
        match &self.excerpt {
            Some((_, lines)) => writeln!(out, "{lines}")?,
            None => out.write_all(self.place.as_bytes())?,
        }
        if self.excerpt.is_some() && self.findings.len() > 1 {
            writeln!(out, "  the same:")?;
        }
        let shown = self.excerpt.as_ref().map(|(number, _)| *number);
        for (number, finding) in self.findings.iter().enumerate() {
            if shown != Some(number) {
                out.write_all(finding.as_bytes())?;
            }
        }
        writeln!(out)
    }
}

/// `pass: 1, fail: 0, warn: 0, error: 0, skip: 0`
///
/// # Errors
/// Fails if the writer fails.
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

fn key(finding: &Finding) -> GroupKey {
    GroupKey {
        policy: finding.policy,
        outcome: finding.outcome,
        rule: finding.rule.clone(),
        message: finding.message.clone(),
        demanded: finding.check.as_ref().map(|check| check.policy.clone()),
    }
}

/// Location of the demand in the policy, otherwise of the rule.
fn place(scan: &Scan<'_>, finding: &Finding) -> String {
    let demanded = finding.check.as_ref().map(|check| &check.policy);
    let demanded = demanded.map(|place| ("demanded", place));
    let rule = || Some(("rule", scan.rule_place(finding)?));
    match demanded.or_else(rule) {
        Some((what, place)) => format!("  {DIM}{what} at {}{DIM:#}\n", show_place(place)),
        None => String::new(),
    }
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
fn heading(scan: &Scan<'_>, key: &GroupKey) -> String {
    let style = style(key.outcome);
    let outcome = key.outcome.as_str();
    let policy = scan.facts.policies.get(key.policy);
    let name = policy.map_or(String::new(), PolicyFacts::full_name);
    let name = rule_name(&name, &key.rule);
    let severity = match policy.and_then(|policy| policy.severity) {
        Some(severity) => format!(" [{severity}]"),
        None => String::new(),
    };
    let message = clean_lines(&key.message, "  ");
    format!(
        "{style}{outcome}{style:#}: {BOLD}{}{BOLD:#}{severity}\n  {message}\n",
        clean(&name)
    )
}

/// A finding as a list item.
fn item(scan: &Scan<'_>, finding: &Finding) -> String {
    let Some(object) = scan.object(finding) else {
        return String::new();
    };
    let place = match &finding.check {
        Some(check) => &check.resource,
        None => &object.place,
    };
    let place = show_place(place);
    let label = match label(finding) {
        Some(label) => format!(": {label}"),
        None => String::new(),
    };
    let title = object.title();
    format!("  - {}{label} {DIM}({place}){DIM:#}\n", clean(&title))
}

/// The found value, or a note that nothing was found.
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

/// A found value on one line. The engine quotes texts, so a value that begins with a
/// bracket is a map or a list and is not shown completely.
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

/// A location, safe for a terminal.
pub(crate) fn show_place(place: &Place) -> String {
    clean(&place.to_string()).into_owned()
}
