//! Traces for people: one line per step, nested steps indented.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::filter::NO_USER;
use super::step::{Outcome, Step, StepKind, Trace};
use crate::place::Place;
use crate::text::{clean, clean_lines, rule_name};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::BrightRed.on_default();

/// Writes a trace.
///
/// # Errors
/// Fails if the writer fails.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{BOLD}")?;
    if !trace.policy_namespace.is_empty() {
        write!(out, "{}/", clean(&trace.policy_namespace))?;
    }
    let resource = &trace.resource;
    write!(
        out,
        "{}{BOLD:#} on {} ",
        clean(&rule_name(&trace.policy, &trace.rule)),
        clean(&resource.kind)
    )?;
    if !resource.namespace.is_empty() {
        write!(out, "{}/", clean(&resource.namespace))?;
    }
    write!(out, "{}", clean(&resource.name))?;
    if !trace.operation.is_empty() {
        write!(out, " ({})", trace.operation)?;
    }
    writeln!(out)?;
    if let Some(suite) = &trace.suite {
        writeln!(out, "  {DIM}suite {}{DIM:#}", clean(suite))?;
    }
    writeln!(
        out,
        "  {DIM}rule at {}{DIM:#}",
        clean(&trace.rule_place.to_string())
    )?;
    writeln!(
        out,
        "  {DIM}resource at {}{DIM:#}",
        clean(&resource.place.to_string())
    )?;
    for step in &trace.steps {
        write_step(step, 1, out)?;
    }
    if trace.left_out > 0 {
        writeln!(out, "  {DIM}… and {}{DIM:#}", count_steps(trace.left_out))?;
    }
    let style = match trace.result {
        Outcome::Pass => GREEN.bold(),
        Outcome::Fail | Outcome::Error => RED.bold(),
        Outcome::Skip | Outcome::NoResponse => AnsiColor::Cyan.on_default().bold(),
    };
    writeln!(
        out,
        "  {style}{}{style:#}: {}",
        trace.result.as_str(),
        clean_lines(&trace.message, "    ")
    )
}

fn count_steps(steps: u64) -> String {
    let noun = if steps == 1 { "step" } else { "steps" };
    format!("{steps} further {noun}")
}

/// Recursion depth: that of the rule, which the compiler bounds.
fn write_step(step: &Step, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    for _ in 0..depth {
        out.write_all(b"  ")?;
    }
    write!(out, "{}{}", mark(step), line(step))?;
    let places: Vec<&Place> = [&step.policy_place, &step.resource_place]
        .into_iter()
        .flatten()
        .collect();
    if !places.is_empty() {
        let shown = |place: &Place| clean(&place.to_string()).into_owned();
        let places: Vec<String> = places.into_iter().map(shown).collect();
        write!(out, "  {DIM}{}{DIM:#}", places.join("  "))?;
    }
    writeln!(out)?;
    step.steps
        .iter()
        .try_for_each(|step| write_step(step, depth + 1, out))
}

/// Whether it held; a dot if that does not apply.
fn mark(step: &Step) -> String {
    let (style, mark) = match (step.step, step.held) {
        (StepKind::Stage, _) => return String::new(),
        (StepKind::Failure, _) => (RED, "!"),
        // A missing key decides nothing by itself.
        (StepKind::Anchor, Some(false)) => (DIM, "·"),
        (_, Some(true)) => (GREEN, "✓"),
        (_, Some(false)) => (RED, "✗"),
        (_, None) => (DIM, "·"),
    };
    format!("{style}{mark}{style:#} ")
}

fn line(step: &Step) -> String {
    let part = clean(&step.part);
    let written = clean(&step.written);
    let found = clean(step.found.as_deref().unwrap_or_default());
    let expected = clean(step.expected.as_deref().unwrap_or_default());
    let path = clean(step.path.trim_end_matches('/'));
    let path = if path.is_empty() { "/".into() } else { path };
    match step.step {
        StepKind::Stage if written.is_empty() => format!("{BOLD}{part}{BOLD:#}"),
        StepKind::Stage => format!("{BOLD}{part} {written}{BOLD:#}"),
        StepKind::Filter | StepKind::Exclusion => {
            format!("{part}.{written}: found {found}, expected {expected}")
        }
        StepKind::Condition => {
            let operator = step.operator.unwrap_or_default();
            // A key without variables equals its text.
            if step.operator.is_none() {
                format!("{part}: {written}: {found}")
            } else if step.written.contains("{{") {
                format!("{part}: {written} is {found}; {operator} {expected}")
            } else {
                format!("{part}: {found} {operator} {expected}")
            }
        }
        StepKind::Leaf => {
            let written = match &*written {
                "" => String::new(),
                written => format!(" ({written})"),
            };
            format!("{path}: found {found}, expected {expected}{written}")
        }
        StepKind::Structure if step.found.as_deref() == Some(NO_USER) => {
            format!("{part}: {found}, so roles, clusterRoles and subjects are not asked for")
        }
        StepKind::Structure if step.found.is_none() => format!("{path}: expected {expected}"),
        StepKind::Structure => format!("{path}: found {found}, expected {expected}"),
        StepKind::Anchor if step.held == Some(true) => format!("{path}: {written} is there"),
        StepKind::Anchor => format!("{path}: {written} is not there"),
        StepKind::Skipped => format!("{path}: {written} does not apply, so this is skipped"),
        StepKind::Alternative => match step.held {
            Some(true) => format!("{part} holds"),
            _ => format!("{part} {found}"),
        },
        StepKind::Element => match step.held {
            Some(true) => format!("{part} of {written} passed: {found}"),
            _ => format!("{part} of {written}: {found}"),
        },
        StepKind::NoElement => format!("{part}: {written} has no element"),
        StepKind::Finding => format!("{path}: found {found}, which breaks {written}"),
        StepKind::Excluded => match step.held {
            Some(true) => format!("{part} of {written} takes away {found}"),
            _ => format!("{part} of {written} takes nothing away"),
        },
        // CEL variables have no names in a bundle.
        StepKind::Entry if written.is_empty() => format!("a variable is {found}"),
        StepKind::Entry => format!("{part}.{written} is {found}"),
        StepKind::Failure => found.into_owned(),
    }
}
