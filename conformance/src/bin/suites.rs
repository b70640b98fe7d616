//! Runs the `kyverno-test.yaml` suites below directories and compares the results with
//! `conformance/conformance.toml`: `suites DIR…`.
//!
//! Prints agreeing rows by policy kind and unsupported rows by reason. Exits with 1 if a
//! result deviates from the list.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::path::PathBuf;
use std::process::ExitCode;

use kpvm_cli::suite::discovery::{SUITE_FILE, discover};
use kpvm_cli::suite::report::{Totals, Verdicts, by_policy_kind};
use kpvm_cli::suite::{Options, SuiteRun, run_files};
use kpvm_conformance::gate::{Listed, unsupported};

fn main() -> ExitCode {
    let directories: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let listed = match Listed::checked_in() {
        Ok(listed) if !directories.is_empty() => listed,
        Ok(_) => {
            eprintln!("usage: suites DIR…");
            return ExitCode::from(2);
        }
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let discovery = discover(&directories, SUITE_FILE);
    for unreadable in &discovery.unreadable {
        eprintln!("{}: {}", unreadable.name, unreadable.reason);
    }
    let runs = run_files(&discovery.files, &Options::default(), &|| ());
    print(&runs);
    let violations = listed.violations(&runs);
    for violation in &violations {
        println!("not as conformance.toml says: {violation}");
    }
    match violations.is_empty() && discovery.unreadable.is_empty() && !runs.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn print(runs: &[SuiteRun]) {
    let totals = Totals::of(runs);
    println!(
        "{} suites ({} broken), {} rows",
        totals.suites, totals.broken_suites, totals.rows
    );
    println!(
        "{:>7} {:>8} {:>11}  policy kind",
        "agree", "disagree", "unsupported"
    );
    let line = |kind: &str, verdicts: Verdicts| {
        let Verdicts {
            agree,
            disagree,
            unsupported,
        } = verdicts;
        println!("{agree:>7} {disagree:>8} {unsupported:>11}  {kind}");
    };
    for (kind, verdicts) in by_policy_kind(runs) {
        line(kind, verdicts);
    }
    line("all", totals.verdicts);
    println!(
        "{} of the rows that agree compared nothing",
        totals.excluded + totals.invalid_policy
    );
    for (reason, rows) in unsupported(runs) {
        println!("{rows:>7} unsupported: {reason}");
    }
}
