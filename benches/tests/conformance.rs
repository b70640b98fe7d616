//! kpvm against the corpus, and against Kyverno's own suites and answers where the
//! shared conformance data is present.

#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::print_stdout)] // says what was skipped

use std::path::{Path, PathBuf};

use kpvm_bench::gate::{Listed, gaps};
use kpvm_bench::golden::{self, Golden, Verdict};
use kpvm_cli::suite::discovery::{SUITE_FILE, discover};
use kpvm_cli::suite::{Options, SuiteRun, run_files};

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

fn run(directory: PathBuf, is_complete: bool) -> Vec<SuiteRun> {
    let discovery = discover(&[directory], SUITE_FILE);
    assert_eq!(discovery.unreadable, []);
    let options = Options {
        is_complete,
        ..Options::default()
    };
    run_files(&discovery.files, &options, &|| ())
}

#[test]
fn every_row_of_the_corpus_holds_and_every_response_has_its_row() {
    let runs = run(root().join("corpus"), true);
    assert!(runs.len() > 90, "only {} suites ran", runs.len());
    let gaps: Vec<String> = runs.iter().flat_map(gaps).collect();
    assert!(gaps.is_empty(), "{gaps:#?}");
}

#[test]
fn the_suites_of_kyverno_are_as_the_list_says() {
    let Some(directory) = shared("kyverno") else {
        return;
    };
    let runs = run(directory, false);
    assert!(runs.len() > 400, "only {} suites ran", runs.len());
    let violations = Listed::checked_in().unwrap().violations(&runs);
    assert!(violations.is_empty(), "{violations:#?}");
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
