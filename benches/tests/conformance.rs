//! kpvm against the corpus, and against Kyverno's own suites and answers where the
//! shared conformance data is present.

#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::print_stdout)] // says what was skipped

use std::path::{Path, PathBuf};

use kpvm_bench::golden::{self, Golden, Verdict};
use kpvm_bench::suites::{Outcome, Reading, discover, run_file};

const EXPLAINED_SUITES: &str = include_str!("../../conformance.toml");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The shared conformance data, or `None` with a note.
fn shared(part: &str) -> Option<PathBuf> {
    let path = root().join("../shared/conformance").join(part);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

/// Runs all suites; gives the number that ran and every difference.
fn run_suites(directory: &Path, reading: Reading) -> (usize, Vec<String>) {
    let (mut ran, mut differing) = (0, Vec::new());
    for file in discover(directory).unwrap() {
        let shown = file.display().to_string();
        let is_explained = EXPLAINED_SUITES.lines().any(|line| {
            line.strip_prefix("suite = \"")
                .and_then(|rest| rest.strip_suffix('"'))
                .is_some_and(|suite| shown.ends_with(suite))
        });
        for outcome in run_file(&file, reading) {
            match outcome {
                Outcome::Unsupported(reason) if reading == Reading::Complete => {
                    differing.push(format!("{shown}: unsupported: {reason}"));
                }
                Outcome::Unsupported(_) => {}
                Outcome::Ran { differences, .. } => {
                    ran += 1;
                    let shown = |text| format!("{shown}: {text}");
                    differing.extend(differences.into_iter().filter(|_| !is_explained).map(shown));
                }
            }
        }
    }
    (ran, differing)
}

#[test]
fn every_row_of_the_corpus_holds_and_every_response_has_its_row() {
    let (ran, differing) = run_suites(&root().join("corpus"), Reading::Complete);
    assert!(ran > 90, "only {ran} suites ran");
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn the_suites_of_kyverno_agree() {
    let Some(directory) = shared("kyverno") else {
        return;
    };
    let (ran, differing) = run_suites(&directory, Reading::Kyverno);
    assert!(ran > 0, "no suite ran");
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn the_answers_of_the_real_engine_agree() {
    let Some(directory) = shared("golden") else {
        return;
    };
    let (mut agreeing, mut differing) = (0, Vec::new());
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_none_or(|extension| extension != "ndjson")
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let golden = Golden::parse(line).unwrap();
            match golden::run(&golden) {
                Verdict::Agree => agreeing += 1,
                Verdict::Unsupported(_) => {}
                Verdict::MessageDiffers(text) | Verdict::StatusDiffers(text) => {
                    if !golden::is_explained(&golden) {
                        differing.push(format!("{}: {text}", golden.case.id));
                    }
                }
            }
        }
    }
    assert!(agreeing > 0, "no case ran");
    differing.truncate(20);
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
