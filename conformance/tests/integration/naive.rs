//! The naive interpreter beside Kyverno's recorded answers and beside the VM.

use std::path::Path;

use kpvm_conformance::differential::DIALECTS;
use kpvm_conformance::naive::{self, Tally};

/// No difference, and at least so many comparisons.
fn agree(what: &str, tally: &Tally, least: u64) {
    assert!(
        tally.differ == 0,
        "{what}: {} differ: {:#?}",
        tally.differ,
        tally.differences.iter().take(3).collect::<Vec<_>>()
    );
    assert!(
        tally.agree >= least,
        "{what}: only {} agree, not done: {:?}",
        tally.agree,
        tally.not_done
    );
}

#[test]
fn recorded_answers_are_those_of_the_naive_interpreter() {
    let mut total = Tally::default();
    for (area, tally) in naive::golden().unwrap() {
        agree(&area, &tally, 1);
        total.merge(tally);
    }
    agree("all recorded answers", &total, 16_000);
}

#[test]
fn recorded_operators_are_those_of_the_naive_interpreter() {
    agree("operators", &naive::operators().unwrap(), 600_000);
}

#[test]
fn recorded_expressions_are_those_of_the_naive_interpreter() {
    agree("JMESPath", &naive::jmespath().unwrap(), 2_600);
}

#[test]
fn policies_of_the_suites_agree_in_both_interpreters() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tally = naive::suites(&root.join("corpus")).unwrap();
    agree("corpus", &tally, 500);
}

#[test]
fn generated_cases_agree_in_both_interpreters() {
    for dialect in DIALECTS {
        let mut tally = Tally::default();
        for number in 0..60 {
            naive::compare_case(&dialect.make(7, number), &mut tally);
        }
        agree(dialect.name, &tally, 0);
    }
}
