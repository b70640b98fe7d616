//! Compares `kpvm test` with Kyverno's own command line, suite by suite: `suites_peer DIR…`.
//!
//! Both run every `kyverno-test.yaml` below the directories; the numbers of rows that hold
//! and that do not are compared. `benches/peers/build` builds Kyverno. Suites that kpvm does
//! not support, or that Kyverno cannot use without a cluster or network, are only counted.
//!
//! Exits with 1 if a suite differs.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use kpvm_bench::peer::program;
use kpvm_cli::suite::discovery::{SUITE_FILE, discover};
use kpvm_cli::suite::{Options, Verdict, run_files};

/// Numbers of rows that hold and that do not.
type Counts = (usize, usize);

fn main() -> ExitCode {
    let directories: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    if directories.is_empty() {
        eprintln!("usage: suites_peer DIR...");
        return ExitCode::from(2);
    }
    let mut is_clean = true;
    for directory in directories {
        match compare(&directory) {
            Ok(same) => is_clean &= same,
            Err(error) => {
                eprintln!("suites_peer: {error}");
                return ExitCode::from(2);
            }
        }
    }
    match is_clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn compare(directory: &Path) -> Result<bool, String> {
    let files = discover(&[directory.to_owned()], SUITE_FILE).files;
    let (mut same, mut rows, mut differing) = (0, 0, 0);
    let mut aside: BTreeMap<&str, usize> = BTreeMap::new();
    for file in &files {
        let theirs = theirs(file)?;
        let ours = ours(file);
        match (ours, theirs) {
            (Err(reason), _) => *aside.entry(reason).or_default() += 1,
            (Ok(_), Err(reason)) => {
                println!("  {}: Kyverno cannot use it: {reason}", file.display());
                *aside.entry("Kyverno cannot use it").or_default() += 1;
            }
            (Ok(ours), Ok(theirs)) if ours == theirs => {
                same += 1;
                rows += ours.0 + ours.1;
            }
            (Ok(ours), Ok(theirs)) => {
                differing += 1;
                println!(
                    "  {}: rows that hold and do not: Kyverno {theirs:?}, kpvm {ours:?}",
                    file.display()
                );
            }
        }
    }
    let files = files.len();
    println!(
        "{}: {files} files, {same} the same ({rows} rows), {differing} differ",
        directory.display()
    );
    for (reason, count) in aside {
        println!("    {count:>6} not compared: {reason}");
    }
    Ok(differing == 0)
}

/// The counts of all suites of a file, if every row is supported.
fn ours(file: &Path) -> Result<Counts, &'static str> {
    let runs = run_files(&[file.to_owned()], &Options::default(), &|| ());
    if runs.iter().any(|run| run.is_broken()) {
        return Err("kpvm cannot use it");
    }
    let count = |verdict| runs.iter().map(|run| run.count(verdict)).sum();
    if count(Verdict::Unsupported) > 0 {
        return Err("kpvm does not support something of it");
    }
    Ok((count(Verdict::Agree), count(Verdict::Disagree)))
}

/// The counts in Kyverno's summary, or its last error.
fn theirs(file: &Path) -> Result<Result<Counts, String>, String> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let cli = program("kyverno");
    let output = Command::new(&cli)
        .args(["test", "."])
        .current_dir(directory)
        .output()
        .map_err(|error| {
            format!(
                "{}: {error}; `benches/peers/build` builds it where Go is present",
                cli.display()
            )
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let summary = text.lines().find_map(|line| {
        let counts = line.strip_prefix("Test Summary: ")?;
        let (passed, rest) = counts.split_once(" tests passed and ")?;
        let (failed, _) = rest.split_once(' ')?;
        Some((passed.parse().ok()?, failed.parse().ok()?))
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or("no summary").to_owned();
    Ok(summary.ok_or(last))
}
