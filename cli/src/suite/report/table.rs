//! Tables as in `kyverno test` (docs/spec/cli.md §6): one per suite, or one of all
//! failures.

use std::io::{self, Write};

use super::{Detail, Totals, shown_rows, write_summary};
use crate::report::table;
use crate::suite::row::Row;
use crate::suite::run::SuiteRun;
use crate::text::clean;

/// Writes the tables and the summary line.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(runs: &[SuiteRun], detail: Detail, out: &mut dyn Write) -> io::Result<()> {
    let totals = Totals::of(runs);
    if !detail.fail_only {
        for run in runs.iter().filter(|run| !run.rows.is_empty()) {
            writeln!(out, "{}:\n", clean(&run.file))?;
            let rows: Vec<table::Row> = shown_rows(run, detail).map(table_row).collect();
            table::write(&rows, detail.detailed, out)?;
            writeln!(out)?;
        }
    }
    write_summary(&totals, detail, out)?;
    if detail.fail_only && totals.verdicts.disagree > 0 {
        writeln!(out, "\nAggregated Failed Test Cases :\n")?;
        let rows = runs.iter().flat_map(|run| shown_rows(run, detail));
        let rows: Vec<table::Row> = rows.map(table_row).collect();
        table::write(&rows, detail.detailed, out)?;
    }
    Ok(())
}

/// A row as shown in the table.
pub(super) fn table_row(row: &Row) -> table::Row {
    table::Row {
        policy: row.policy.clone(),
        rule: row.rule.clone(),
        resource: row.resource.clone(),
        result: row.result().into(),
        reason: row.reason.text(),
        message: row.message.clone(),
    }
}
