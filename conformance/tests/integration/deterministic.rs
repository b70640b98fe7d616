//! The same policies compile to the same bytes. Each hash table has its own random seed, so
//! an order that depends on one shows within a process.

use std::path::{Path, PathBuf};

use kpvm_bench::workload::{About, bundle, further_policies, twenty_rules};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;

/// Every policy of the corpus that compiles today.
fn corpus() -> Sources {
    let mut sources = Sources::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")];
    let mut policies: Vec<PathBuf> = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("the corpus can be listed") {
            let path = entry.expect("the corpus can be listed").path();
            if path.is_dir() {
                open.push(path);
            } else if path.ends_with("policy.yaml") {
                policies.push(path);
            }
        }
    }
    policies.sort();
    for policy in policies {
        let text = std::fs::read_to_string(&policy).expect("a policy can be read");
        let name = policy.to_string_lossy();
        let mut alone = Sources::new();
        alone.add(name.clone(), text.clone());
        if compile(&alone, &Options::default()).bundle.is_some() {
            sources.add(name, text);
        }
    }
    sources
}

#[test]
fn compiling_twice_gives_the_same_bytes() {
    let options = Options::default();
    let sources = corpus();
    let first = compile(&sources, &options);
    assert!(first.rules > 100, "the corpus has {} rules", first.rules);
    for _ in 0..3 {
        assert_eq!(compile(&sources, &options).bundle, first.bundle);
    }
    assert!(first.bundle.is_some(), "{:?}", first.diagnostics);
}

#[test]
fn compiling_a_workload_twice_gives_the_same_bytes() {
    let mut sources = twenty_rules();
    sources.add(
        "further.yaml",
        further_policies(About::PodsByOtherNames, 200),
    );
    assert!(bundle(&sources) == bundle(&sources), "equal bytes");
}
