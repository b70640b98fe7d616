//! Runs the `kyverno-test.yaml` suites below directories: `suites DIR… [--complete]`.
//!
//! Prints suites and rows that agree, what is unsupported by reason, and every
//! difference. Exits with 1 when a difference is not listed in `conformance.toml`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use kpvm_bench::suites::{Outcome, Reading, discover, run_file};

/// The suites whose differences are known, each with its reason.
const EXPLAINED: &str = include_str!("../../../conformance.toml");

fn main() -> ExitCode {
    let (options, directories): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    if directories.is_empty() {
        eprintln!("usage: suites DIR… [--complete]");
        return ExitCode::from(2);
    }
    let reading = match options.iter().any(|option| option == "--complete") {
        true => Reading::Complete,
        false => Reading::Kyverno,
    };
    let mut totals = Totals::default();
    for directory in directories {
        let files = match discover(Path::new(&directory)) {
            Ok(files) => files,
            Err(error) => {
                eprintln!("{directory}: {error}");
                return ExitCode::from(2);
            }
        };
        for file in files {
            for outcome in run_file(&file, reading) {
                totals.add(&file.display().to_string(), outcome);
            }
        }
    }
    totals.print()
}

#[derive(Default)]
struct Totals {
    suites: usize,
    agreeing_suites: usize,
    rows: usize,
    agreeing_rows: usize,
    unexplained: usize,
    unsupported: BTreeMap<String, usize>,
}

impl Totals {
    fn add(&mut self, file: &str, outcome: Outcome) {
        let (rows, differences) = match outcome {
            Outcome::Unsupported(reason) => {
                *self.unsupported.entry(reason).or_default() += 1;
                return;
            }
            Outcome::Ran { rows, differences } => (rows, differences),
        };
        self.suites += 1;
        self.rows += rows;
        self.agreeing_rows += rows.saturating_sub(differences.len());
        if differences.is_empty() {
            self.agreeing_suites += 1;
            return;
        }
        let explained = is_explained(file);
        let mark = if explained { "explained" } else { "difference" };
        for difference in &differences {
            println!("{mark} {file}: {difference}");
        }
        self.unexplained += usize::from(!explained);
    }

    fn print(&self) -> ExitCode {
        println!("suites {}/{}", self.agreeing_suites, self.suites);
        println!("rows   {}/{}", self.agreeing_rows, self.rows);
        let unsupported: usize = self.unsupported.values().sum();
        println!("unsupported {unsupported}");
        for (reason, count) in &self.unsupported {
            println!("  {count:>4} {reason}");
        }
        if self.unexplained == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// Whether `conformance.toml` has a line `suite = "…"` that ends the file's path.
fn is_explained(file: &str) -> bool {
    EXPLAINED.lines().any(|line| {
        line.strip_prefix("suite = \"")
            .and_then(|rest| rest.strip_suffix('"'))
            .is_some_and(|suite| file.ends_with(suite))
    })
}
