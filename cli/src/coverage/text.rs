//! Coverage for people: a table of the rules, and the checks that were not exercised in
//! both directions.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{Coverage, Point, RuleCoverage, Share};
use crate::text::{clean, count, rule_name};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();

const HEADER: [&str; 9] = [
    "rule",
    "applied",
    "pass",
    "fail",
    "skip",
    "error",
    "filters",
    "conditions",
    "leaves",
];

/// Writes the table.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(coverage: &Coverage, out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<(&str, &RuleCoverage)> = coverage
        .files()
        .flat_map(|(file, rules)| rules.into_iter().map(move |rule| (file, rule)))
        .collect();
    let rows: Vec<[String; 9]> = rules.iter().map(|(_, rule)| cells(rule)).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(HEADER.get(column).map_or(0, |title| title.len()))
    };
    let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}",
        line(&HEADER.map(str::to_owned), &widths)
    )?;
    for (row, (_, rule)) in rows.iter().zip(&rules) {
        let all = rule.summary().all();
        let style = if all.covered == all.total {
            GREEN
        } else {
            YELLOW
        };
        writeln!(out, "{style}{}{style:#}", line(row, &widths))?;
    }
    write_gaps(&rules, out)?;
    write_total(coverage, out)
}

fn cells(rule: &RuleCoverage) -> [String; 9] {
    let (outcomes, summary) = (rule.outcomes, rule.summary());
    let evaluations = outcomes.applied() + outcomes.not_applied;
    [
        clean(&rule_name(&rule.policy, &rule.rule)).into_owned(),
        format!("{} of {evaluations}", outcomes.applied()),
        outcomes.passed.to_string(),
        outcomes.failed.to_string(),
        outcomes.skipped.to_string(),
        outcomes.errored.to_string(),
        share(summary.filters),
        share(summary.conditions),
        share(summary.leaves),
    ]
}

fn share(share: Share) -> String {
    if share.total == 0 {
        "-".to_owned()
    } else {
        format!("{}/{}", share.covered, share.total)
    }
}

/// First cell left-aligned, numbers right-aligned.
fn line(cells: &[String; 9], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let padding = " ".repeat(width - cell.chars().count().min(*width));
        if index == 0 {
            line.push_str(cell);
            line.push_str(&padding);
        } else {
            line.push_str("  ");
            line.push_str(&padding);
            line.push_str(cell);
        }
    }
    line
}

/// Lists checks that never ran or went in only one direction.
fn write_gaps(rules: &[(&str, &RuleCoverage)], out: &mut dyn Write) -> io::Result<()> {
    let mut is_first = true;
    let mut write = |file: &str, line: u32, column: u32, text: String, out: &mut dyn Write| {
        if is_first {
            writeln!(out, "\n{BOLD}not exercised in both directions{BOLD:#}")?;
            is_first = false;
        }
        let place = format!("{}:{line}:{column}", clean(file));
        writeln!(out, "  {DIM}{place}{DIM:#} {text}")
    };
    for (file, rule) in rules {
        if rule.outcomes.applied() == 0 {
            let name = clean(&rule_name(&rule.policy, &rule.rule)).into_owned();
            let text = format!("rule {name}: never applied");
            write(file, rule.line, rule.column, text, out)?;
        }
        for point in rule.points() {
            if let Some(gap) = gap(point) {
                let text = format!("{} {}: {gap}", point.kind.as_str(), clean(&point.text));
                write(file, point.line, point.column, text, out)?;
            }
        }
    }
    Ok(())
}

fn gap(point: &Point) -> Option<&'static str> {
    match (point.counts.held, point.counts.not_held) {
        (0, 0) => Some("never tested"),
        (0, _) => Some("never held"),
        (_, 0) => Some("always held"),
        _ => None,
    }
}

fn write_total(coverage: &Coverage, out: &mut dyn Write) -> io::Result<()> {
    let summary = coverage.summary();
    let Share { covered, total } = summary.all();
    writeln!(out)?;
    match summary.percent() {
        None => write!(out, "coverage: there is no rule to cover")?,
        Some(percent) => {
            let style = if covered == total { GREEN } else { YELLOW };
            write!(out, "coverage: {style}{percent:.1} %{style:#}")?;
            let shares = [
                ("rules", summary.rules),
                ("filters", summary.filters),
                ("conditions", summary.conditions),
                ("leaves", summary.leaves),
            ];
            let shares = shares.into_iter().filter(|(_, share)| share.total > 0);
            let shares: Vec<String> = shares
                .map(|(name, part)| format!("{name} {}", share(part)))
                .collect();
            write!(out, " ({})", shares.join(", "))?;
        }
    }
    if !coverage.omitted.is_empty() {
        let rules = count(coverage.omitted.len(), "rule");
        write!(out, "; {rules} not measured, because not supported yet")?;
    }
    writeln!(out)
}
