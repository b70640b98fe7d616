//! Compares kpvm with the real engine's answers: `golden DIR [--all] [--id ID]`.
//!
//! Prints agreeing/total for each area, for status and for status with message, then
//! the first differences. Exits with 1 when a difference is not explained: by
//! `benches/explained.txt`, or by a resource that brings `{{ }}` (`docs/differences.md`).

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use kpvm_bench::golden::{Golden, Verdict, is_explained, run};

/// Differences shown for each area.
const SHOWN: usize = 3;

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = arguments.first().map(PathBuf::from) else {
        eprintln!("usage: golden DIR [--all] [--id ID]");
        return ExitCode::from(2);
    };
    let wanted = arguments
        .iter()
        .position(|argument| argument == "--id")
        .and_then(|at| arguments.get(at + 1));
    let shown = if arguments.iter().any(|argument| argument == "--all") {
        usize::MAX
    } else {
        SHOWN
    };
    let mut files: Vec<PathBuf> = match std::fs::read_dir(&directory) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) => {
            eprintln!("{}: {error}", directory.display());
            return ExitCode::from(2);
        }
    };
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "ndjson")
    });
    files.sort();
    let mut unexplained = 0;
    println!(
        "{:<14} {:>7} {:>12} {:>12} {:>11} {:>10}",
        "area", "cases", "unsupported", "status", "message", "explained"
    );
    for file in files {
        let area = match run_file(&file, wanted.map(String::as_str)) {
            Ok(area) => area,
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                return ExitCode::from(2);
            }
        };
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let supported = area.total - area.unsupported;
        println!(
            "{name:<14} {:>7} {:>12} {:>12} {:>11} {:>10}",
            area.total,
            area.unsupported,
            format!("{}/{supported}", area.status),
            format!("{}/{supported}", area.message),
            area.explained
        );
        for (reason, count) in &area.reasons {
            println!("    {count:>5} unsupported: {reason}");
        }
        for (id, difference) in area.differences.iter().take(shown) {
            println!("  {id}: {difference}");
        }
        unexplained += area.differences.len();
    }
    println!("{unexplained} unexplained");
    if unexplained == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_file(file: &std::path::Path, wanted: Option<&str>) -> Result<Area, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut area = Area::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let golden = Golden::parse(line).map_err(|error| error.to_string())?;
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
