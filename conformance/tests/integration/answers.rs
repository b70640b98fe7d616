//! Kyverno's recorded answers, the suites of the corpus, and Kyverno's own suites if they
//! are present.

use std::path::{Path, PathBuf};

use kpvm_cli::suite::discovery::{SUITE_FILE, discover};
use kpvm_cli::suite::{Options, SuiteRun, run_files};
use kpvm_conformance::cel_table;
use kpvm_conformance::gate::{Listed, gaps};
use kpvm_conformance::golden::{self, Golden, Verdict};
use kpvm_golden::{case_files, folder, read_file};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
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
    let directory = root().join("../shared/conformance/kyverno");
    if !directory.is_dir() {
        println!("skipped: {} is absent", directory.display());
        return;
    }
    let runs = run(directory, false);
    assert!(runs.len() > 400, "only {} suites ran", runs.len());
    let violations = Listed::checked_in().unwrap().violations(&runs);
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn the_answers_of_the_real_engine_agree() {
    let (mut agreeing, mut differing) = (0, Vec::new());
    for file in case_files(&folder().join("golden")).unwrap() {
        let text = read_file(&file).unwrap();
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
    assert!(agreeing > 18_000, "only {agreeing} cases agree");
    differing.truncate(20);
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The expressions of `conformance/data/cel`, in both kinds of policies.
#[test]
fn the_answers_of_the_table_of_cel_are_as_the_list_says() {
    let rows = cel_table::recorded().unwrap();
    assert!(rows.len() > 30_000, "only {} rows", rows.len());
    let mut violations = cel_table::violations(&cel_table::differences(&rows));
    violations.truncate(20);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Shrunk cases of differences found by differential testing, with Kyverno's answers
/// (recorded by `differential --record`).
#[test]
fn differences_that_were_found_stay_fixed() {
    let lines = include_str!("../../regressions.ndjson").lines();
    let mut count = 0;
    for line in lines {
        let golden = Golden::parse(line).unwrap();
        assert_eq!(golden::run(&golden), Verdict::Agree, "{}", golden.case.id);
        count += 1;
    }
    assert!(count > 50, "only {count} cases");
}
