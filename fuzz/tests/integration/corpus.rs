//! Every harness over `fuzz/corpus/TARGET`, on a thread for each target.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kpvm_fuzz::TARGETS;
use kpvm_fuzz::target::Target;

/// Unoptimised harnesses are up to twenty times slower than those of the fuzzer, whose limit is a
/// second.
const TIME: Duration = Duration::from_secs(20);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Runs a harness over all its inputs; returns the names of those on which it fails.
fn failures(target: &Target) -> Vec<String> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder().join(target.name)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        inputs.push((name, fs::read(&path).unwrap()));
    }
    assert!(!inputs.is_empty(), "{} has a corpus", target.name);
    println!("{}: {} inputs", target.name, inputs.len());
    let fails =
        |input: &[u8]| catch_unwind(AssertUnwindSafe(|| target.check(input, TIME))).is_err();
    let failed = inputs.into_iter().filter(|(_, input)| fails(input));
    failed
        .map(|(name, _)| format!("{}/{name}", target.name))
        .collect()
}

#[test]
fn every_property_holds_over_the_corpus() {
    let failed: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = TARGETS
            .iter()
            .map(|target| scope.spawn(|| failures(target)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_corpus_has_a_target() {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        found.push(entry.unwrap().file_name().to_string_lossy().into_owned());
    }
    found.sort();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(found, names);
}
