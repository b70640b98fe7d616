//! The golden cases that concern reading, autogen and the load checks: whole
//! policies with the answers of Kyverno's own engine.

use std::path::Path;

use serde_json::Value;

use super::autogen::compute_rules;
use super::read::read_policy;
use super::test_tree::{json, tree};
use crate::source::SourceId;

/// The cases of a file; `None`, with a note, where the data is not there.
fn cases(file: &str) -> Option<Vec<Value>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance/golden");
    let Ok(text) = std::fs::read_to_string(root.join(file)) else {
        println!("skipped: no {file} in {}", root.display());
        return None;
    };
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

/// Without nulls, empty texts, lists and maps, as the golden README asks for.
fn compact(value: &Value) -> Option<Value> {
    let value = match value {
        Value::Null => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::Array(items) => items
            .iter()
            .map(|item| compact(item).unwrap_or_default())
            .collect(),
        Value::Object(members) => members
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), compact(value)?)))
            .collect(),
        other => other.clone(),
    };
    let empty = value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty);
    (!empty).then_some(value)
}

#[test]
fn autogen_computes_the_same_rules() {
    let Some(cases) = cases("autogen.ndjson") else {
        return;
    };
    let (mut total, mut differing) = (0, Vec::new());
    for case in cases.iter().filter(|case| case["mode"] == "rules") {
        total += 1;
        let mut diagnostics = Vec::new();
        let policy = read_policy(&tree(&case["policy"]), SourceId(0), &mut diagnostics);
        let policy = policy.unwrap_or_else(|| panic!("{}: {diagnostics:?}", case["id"]));
        let rules = compute_rules(&policy, case["kind"].as_str());
        let found: Value = rules.iter().map(|rule| json(&rule.tree)).collect();
        if compact(&found) != compact(&case["autogen"]) {
            differing.push(format!(
                "{}: {found}\n  expected {}",
                case["id"], case["autogen"]
            ));
        }
    }
    println!(
        "autogen rules: {} of {total} agree",
        total - differing.len()
    );
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
