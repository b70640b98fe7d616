//! Compares an object with the one that a file expects (docs/spec/cli.md §5).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::input::{InputFile, read_regular_file};
use crate::problem::Problem;
use crate::resources::{Resource, Resources};
use crate::suite::objects::Key;

/// Label that is ignored.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Prefix of labels that Kyverno adds to generated objects.
const GENERATE_PREFIX: &str = "generate.kyverno.io/";
/// Maximum number of listed differences.
const LISTED: usize = 20;

/// Result of comparing an object with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// They are equal.
    Same,
    /// They differ; one line per difference.
    Different(Vec<String>),
    /// The file has no such object.
    Missing(String),
    /// The file cannot be read.
    Unreadable(String),
}

/// Files of expected objects, each read once.
#[derive(Debug, Default)]
pub struct ExpectedFiles {
    read: HashMap<PathBuf, Result<Vec<(Key, Value)>, String>>,
}

impl ExpectedFiles {
    /// Compares an object with the one of the same apiVersion, kind, namespace and name in
    /// a file.
    pub fn compare(&mut self, actual: &Value, key: &Key, file: PathBuf) -> Comparison {
        let name = file.display().to_string();
        let objects = self.read.entry(file).or_insert_with_key(|file| read(file));
        let objects = match objects {
            Ok(objects) => objects,
            Err(error) => return Comparison::Unreadable(error.clone()),
        };
        match objects.iter().find(|(expected, _)| expected == key) {
            Some((_, expected)) => compare(actual, expected),
            None => Comparison::Missing(format!("{} not found in manifest {name}", key.path())),
        }
    }
}

/// The objects of a file with their keys.
fn read(file: &Path) -> Result<Vec<(Key, Value)>, String> {
    let name = file.display().to_string();
    let text = read_regular_file(file).map_err(|reason| format!("cannot read {name}: {reason}"))?;
    let mut resources = Resources::keeping_lists();
    resources.add_file(InputFile {
        name,
        text,
        from_directory: false,
    });
    if let Some(problem) = resources.problems.first() {
        return Err(describe(problem, &resources));
    }
    let object = |resource: &Resource| (Key::of(resource), resource.tree.to_json());
    Ok(resources.list.iter().map(object).collect())
}

fn describe(problem: &Problem, resources: &Resources) -> String {
    let report = problem.report(&resources.sources);
    match report.place {
        Some((line, column)) => format!("{}:{line}:{column}: {}", report.file, report.message),
        None => format!("{}: {}", report.file, report.message),
    }
}

/// Compares two objects.
pub fn compare(actual: &Value, expected: &Value) -> Comparison {
    let (actual, expected) = (prepared(actual), prepared(expected));
    let mut differences = Vec::new();
    list_differences(&actual, &expected, String::new(), &mut differences);
    if differences.is_empty() {
        return Comparison::Same;
    }
    if differences.len() > LISTED {
        let more = differences.len() - LISTED;
        differences.truncate(LISTED);
        differences.push(format!("and {more} more"));
    }
    Comparison::Different(differences)
}

/// The object as compared: without some labels and without empty values.
fn prepared(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let labels = metadata
            .entry("labels")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(labels) = labels {
            labels.retain(|label, _| !label.starts_with(GENERATE_PREFIX));
            labels.insert(MANAGED_BY.to_owned(), Value::from("kyverno"));
        }
    }
    tidied(object).unwrap_or(Value::Null)
}

/// Removes nulls, empty maps and empty lists at every depth; `None` if nothing remains.
fn tidied(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(tidied).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(members) => {
            let members: Map<String, Value> = members
                .into_iter()
                .filter_map(|(key, value)| Some((key, tidied(value)?)))
                .collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_)) => Some(other),
    }
}

fn list_differences(actual: &Value, expected: &Value, path: String, found: &mut Vec<String>) {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            for (key, value) in expected {
                let path = format!("{path}/{key}");
                match actual.get(key) {
                    Some(actual) => list_differences(actual, value, path, found),
                    None => found.push(format!("{path}: expected {value}, found nothing")),
                }
            }
            for (key, value) in actual {
                if !expected.contains_key(key) {
                    found.push(format!("{path}/{key}: expected nothing, found {value}"));
                }
            }
        }
        (Value::Array(actual), Value::Array(expected)) if actual.len() == expected.len() => {
            for (index, (actual, expected)) in actual.iter().zip(expected).enumerate() {
                list_differences(actual, expected, format!("{path}/{index}"), found);
            }
        }
        // Numbers are compared by value, whatever their types.
        (Value::Number(left), Value::Number(right)) if left.as_f64() == right.as_f64() => {}
        (actual, expected) if actual == expected => {}
        (actual, expected) => found.push(format!("{path}: expected {expected}, found {actual}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// docs/spec/cli.md §5 and §14, cases 20 and 21.
    #[test]
    fn what_is_empty_is_absent_and_some_labels_do_not_matter() {
        let object = |spec: Value, labels: Value| json!({"kind": "A", "metadata": {"name": "a", "labels": labels}, "spec": spec});
        let same = |left: &Value, right: &Value| compare(left, right) == Comparison::Same;
        let plain = object(json!({"a": 1}), json!({"l": "x"}));
        for (spec, labels, expected) in [
            (json!({"a": 1.0}), json!({"l": "x"}), true),
            (json!({"a": 1, "e": {}}), json!({"l": "x"}), true),
            (json!({"a": 1, "e": [], "n": null}), json!({"l": "x"}), true),
            (json!({"a": 1, "e": [null, {}]}), json!({"l": "x"}), true),
            (json!({"a": 1, "e": ""}), json!({"l": "x"}), false),
            (json!({"a": 1, "e": false}), json!({"l": "x"}), false),
            (json!({"a": 2}), json!({"l": "x"}), false),
            (
                json!({"a": 1}),
                json!({"l": "x", "app.kubernetes.io/managed-by": "me"}),
                true,
            ),
            (
                json!({"a": 1}),
                json!({"l": "x", "generate.kyverno.io/policy-name": "p"}),
                true,
            ),
            (json!({"a": 1}), json!({}), false),
        ] {
            let other = object(spec, labels);
            assert_eq!(
                (same(&plain, &other), same(&other, &plain)),
                (expected, expected),
                "{other}"
            );
        }
    }

    #[test]
    fn lists_are_compared_in_order_and_differences_are_named() {
        let one = json!({"spec": {"l": ["a", "b"], "m": {"x": 1}}});
        let other = json!({"spec": {"l": ["b", "a"], "m": {"x": 2, "z": 3}}});
        let Comparison::Different(found) = compare(&one, &other) else {
            panic!("they differ");
        };
        assert_eq!(
            found,
            [
                "/spec/l/0: expected \"b\", found \"a\"",
                "/spec/l/1: expected \"a\", found \"b\"",
                "/spec/m/x: expected 2, found 1",
                "/spec/m/z: expected 3, found nothing",
            ]
        );
    }
}
