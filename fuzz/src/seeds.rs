//! Seeds from this repository's own data: `corpus/` and Kyverno's recorded answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;
use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")
}

/// Texts of the corpus files whose name satisfies a condition, shortest first.
pub fn corpus_files(is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let (mut texts, mut open) = (BTreeSet::new(), vec![corpus()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("the corpus is there") {
            let path = entry.expect("the corpus can be listed").path();
            if path.is_dir() {
                open.push(path);
            } else if path
                .file_name()
                .is_some_and(|name| is_wanted(&name.to_string_lossy()))
                && let Ok(text) = fs::read_to_string(&path)
            {
                texts.insert((text.len(), text));
            }
        }
    }
    texts.into_iter().map(|(_, text)| text).collect()
}

/// Whether a text is a policy.
pub fn is_policy(text: &str) -> bool {
    ["Policy\n", "PolicyBinding\n"]
        .iter()
        .any(|kind| text.contains(kind))
        && text.contains("kind:")
}

/// The policies of the corpus.
pub fn policies() -> Vec<String> {
    let files = corpus_files(|name| name.ends_with(".yaml"));
    files.into_iter().filter(|text| is_policy(text)).collect()
}

/// Recorded cases of an area of the golden data, every `step`th.
pub fn recorded(area: &str, step: usize) -> Vec<Value> {
    let text = kpvm_golden::read(&format!("golden/{area}.ndjson")).expect("the data is there");
    let lines = text.lines().step_by(step);
    lines
        .map(|line| serde_json::from_str(line).expect("a case is JSON"))
        .collect()
}

/// Areas of the golden data whose policies load.
pub const AREAS: [&str; 8] = [
    "anypattern",
    "conditions",
    "context",
    "foreach",
    "match",
    "patterns",
    "podsecurity",
    "variables",
];

/// Policies of the corpus and of recorded cases.
pub fn all_policies() -> Vec<String> {
    let mut all = policies();
    for area in AREAS {
        let cases = recorded(area, 60).into_iter();
        all.extend(cases.map(|case| case["policy"].to_string()));
    }
    all
}

/// The bundle of a policy, if it compiles.
pub fn bundle(policy: &str) -> Option<Vec<u8>> {
    let mut sources = Sources::new();
    sources.add("p.yaml", policy);
    compile(&sources, &Options::default()).bundle
}

/// Bundles of at most so many bytes.
pub fn bundles(bytes: usize) -> Vec<Vec<u8>> {
    let all = all_policies();
    let bundles = all.iter().filter_map(|policy| bundle(policy));
    bundles.filter(|bundle| bundle.len() <= bytes).collect()
}

/// Expressions of a recorded file of JMESPath.
pub fn expressions(file: &str) -> Vec<(String, Value)> {
    let text = kpvm_golden::read(&format!("jmespath-kyverno/{file}")).expect("the data is there");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("cases are JSON");
    let cases = cases.into_iter();
    cases
        .filter_map(|case| {
            Some((
                case["expression"].as_str()?.to_owned(),
                case["input"].clone(),
            ))
        })
        .collect()
}
