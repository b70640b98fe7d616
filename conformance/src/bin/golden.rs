//! Compares kpvm with Kyverno's recorded answers: `golden [DIR] [--all] [--id ID]`. The
//! default for DIR is `conformance/data/golden`.
//!
//! Prints agreeing/total for each area, for status and for status with message, then the
//! first differences. Exits with 1 if a difference is not explained, either by
//! `conformance/explained.txt` or by `{{ }}` in the resource (`docs/differences.md`), and
//! with 2 if there is no case to compare.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kpvm_conformance::cel_table;
use kpvm_conformance::golden::{Golden, Verdict, is_explained, run};
use kpvm_golden::{case_files, folder, read_file};

/// Differences shown for each area.
const SHOWN: usize = 3;

struct Options {
    folder: PathBuf,
    /// The only case to run.
    id: Option<String>,
    /// Differences shown for each area.
    shown: usize,
}

#[derive(Default)]
struct Area {
    total: usize,
    unsupported: usize,
    status: usize,
    message: usize,
    explained: usize,
    reasons: BTreeMap<String, usize>,
    differences: Vec<(String, String)>,
}

fn main() -> ExitCode {
    let Some(options) = read_options() else {
        eprintln!("usage: golden [DIR] [--all] [--id ID]");
        return ExitCode::from(2);
    };
    match compare(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn read_options() -> Option<Options> {
    let mut options = Options {
        folder: folder().join("golden"),
        id: None,
        shown: SHOWN,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--all" => options.shown = usize::MAX,
            "--id" => options.id = Some(arguments.next()?),
            option if option.starts_with('-') => return None,
            folder => options.folder = folder.into(),
        }
    }
    Some(options)
}

/// Prints the comparison; returns the number of unexplained differences.
fn compare(options: &Options) -> io::Result<usize> {
    let (mut cases, mut unexplained) = (0, 0);
    println!(
        "{:<14} {:>7} {:>12} {:>12} {:>11} {:>10}",
        "area", "cases", "unsupported", "status", "message", "explained"
    );
    for file in case_files(&options.folder)? {
        let area = run_file(&file, options.id.as_deref())?;
        if area.total > 0 {
            area.print(&file, options.shown);
        }
        cases += area.total;
        unexplained += area.differences.len();
    }
    // The answers about CEL are not cases: one expression each, see `cel_table`.
    if options.id.is_none() && options.folder == folder().join("golden") {
        let rows = cel_table::recorded()?;
        let violations = cel_table::violations(&cel_table::differences(&rows));
        println!("{:<14} {:>7} rows", "cel", rows.len());
        for violation in violations.iter().take(options.shown) {
            println!("  {violation}");
        }
        unexplained += violations.len();
    }
    if cases == 0 {
        let folder = options.folder.display();
        return Err(io::Error::other(format!("{folder}: no such case")));
    }
    println!("{unexplained} unexplained");
    Ok(unexplained)
}

impl Area {
    fn print(&self, file: &Path, shown: usize) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default();
        let supported = self.total - self.unsupported;
        println!(
            "{name:<14} {:>7} {:>12} {:>12} {:>11} {:>10}",
            self.total,
            self.unsupported,
            format!("{}/{supported}", self.status),
            format!("{}/{supported}", self.message),
            self.explained
        );
        for (reason, count) in &self.reasons {
            println!("    {count:>5} unsupported: {reason}");
        }
        for (id, difference) in self.differences.iter().take(shown) {
            println!("  {id}: {difference}");
        }
    }
}

fn run_file(file: &Path, wanted: Option<&str>) -> io::Result<Area> {
    let text = read_file(file)?;
    let mut area = Area::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let golden = Golden::parse(line)?;
        if wanted.is_some_and(|wanted| wanted != golden.case.id) {
            continue;
        }
        area.total += 1;
        let (status, message, difference) = match run(&golden) {
            Verdict::Agree => (true, true, None),
            Verdict::MessageDiffers(difference) => (true, false, Some(difference)),
            Verdict::StatusDiffers(difference) => (false, false, Some(difference)),
            Verdict::Unsupported(reason) => {
                area.unsupported += 1;
                *area.reasons.entry(reason).or_default() += 1;
                continue;
            }
        };
        area.status += usize::from(status);
        area.message += usize::from(message);
        if let Some(difference) = difference {
            if is_explained(&golden) {
                area.explained += 1;
            } else {
                area.differences.push((golden.case.id, difference));
            }
        }
    }
    Ok(area)
}
