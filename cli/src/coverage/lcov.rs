//! Coverage as an LCOV tracefile (geninfo(1), section FILES): rules are functions, the
//! two directions of a filter, condition or leaf are the branches of its line.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Coverage, Point, RuleCoverage};
use crate::text::{clean, rule_name};

/// Writes a tracefile.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(coverage: &Coverage, out: &mut dyn Write) -> io::Result<()> {
    for (file, rules) in coverage.files() {
        writeln!(out, "TN:\nSF:{}", clean(file))?;
        write_functions(&rules, out)?;
        write_branches(&rules, out)?;
        write_lines(&rules, out)?;
        writeln!(out, "end_of_record")?;
    }
    Ok(())
}

fn write_functions(rules: &[&RuleCoverage], out: &mut dyn Write) -> io::Result<()> {
    let name = |rule: &RuleCoverage| clean(&rule_name(&rule.policy, &rule.rule)).into_owned();
    for rule in rules {
        writeln!(out, "FN:{},{}", rule.line, name(rule))?;
    }
    for rule in rules {
        writeln!(out, "FNDA:{},{}", rule.outcomes.applied(), name(rule))?;
    }
    let hit = rules.iter().filter(|rule| rule.outcomes.applied() > 0);
    writeln!(out, "FNF:{}\nFNH:{}", rules.len(), hit.count())
}

/// Each point is a block of its line, with the branches 0 (held) and 1 (did not).
fn write_branches(rules: &[&RuleCoverage], out: &mut dyn Write) -> io::Result<()> {
    let mut lines: BTreeMap<u32, Vec<&Point>> = BTreeMap::new();
    for point in rules.iter().flat_map(|rule| rule.points()) {
        lines.entry(point.line).or_default().push(point);
    }
    let (mut found, mut hit) = (0, 0);
    for (line, points) in lines {
        for (block, point) in points.into_iter().enumerate() {
            let directions = [point.counts.held, point.counts.not_held];
            let is_executed = directions.iter().any(|&count| count > 0);
            for (branch, count) in directions.into_iter().enumerate() {
                found += 1;
                hit += u32::from(count > 0);
                // A dash stands for a branch whose point was never reached.
                let taken = if is_executed {
                    count.to_string()
                } else {
                    "-".to_owned()
                };
                writeln!(out, "BRDA:{line},{block},{branch},{taken}")?;
            }
        }
    }
    writeln!(out, "BRF:{found}\nBRH:{hit}")
}

fn write_lines(rules: &[&RuleCoverage], out: &mut dyn Write) -> io::Result<()> {
    let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
    for (line, count) in rules.iter().flat_map(|rule| rule.lines()) {
        let most = lines.entry(line).or_default();
        *most = count.max(*most);
    }
    for (line, count) in &lines {
        writeln!(out, "DA:{line},{count}")?;
    }
    let hit = lines.values().filter(|&&count| count > 0).count();
    writeln!(out, "LF:{}\nLH:{hit}", lines.len())
}
