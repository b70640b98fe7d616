//! Every suite of the corpus through `kpvm apply`: the results are exactly those of the
//! suite's rows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::{DuplicateKeys, Options, read_all};
use serde_json::Value;

/// Suites that are not run, and why.
const NOT_RUN: [(&str, &str); 3] = [
    (
        "policies/matching/scale-subresource",
        "needs the parents of subresources, which the command line does not take",
    ),
    (
        "policies/references/one-naming-scheme",
        "refers by an absolute path, which Kyverno's check at load refuses too (docs/spec/policies.md §2)",
    ),
    ("policies/references/surge-within-replicas", "the same"),
];

/// One expected or found result: policy, rule, kind, namespace and name, result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    policy: String,
    rule: String,
    kind: String,
    resource: String,
    result: String,
}

impl Row {
    /// A row for `r` covers the rules generated from `r` too, and a bare name matches that
    /// name in any namespace.
    fn stands_for(&self, found: &Row) -> bool {
        let written = found.rule.strip_prefix("autogen-").unwrap_or(&found.rule);
        let written = written.strip_prefix("cronjob-").unwrap_or(written);
        let bare = |name: &'_ str| name.rsplit('/').next().unwrap().to_owned();
        // Rules of a ValidatingPolicy have no names that a row could use.
        (self.rule.is_empty() || self.rule == found.rule || self.rule == written)
            && (self.resource == found.resource || self.resource == bare(&found.resource))
            && (self.policy == found.policy || self.policy == bare(&found.policy))
            && self.kind == found.kind
            && self.result == found.result
    }
}

fn suites(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            suites(&path, found);
        } else if path.ends_with("kyverno-test.yaml") {
            found.push(path);
        }
    }
}

fn texts(tree: &Tree, key: &str) -> Vec<String> {
    let items = tree.get(key).and_then(Tree::as_list).unwrap_or_default();
    items
        .iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

fn text<'t>(tree: &'t Tree, key: &str) -> Option<&'t str> {
    tree.get(key).and_then(Tree::as_str)
}

fn items<'t>(tree: &'t Tree, key: &str) -> &'t [Tree] {
    tree.get(key).and_then(Tree::as_list).unwrap_or_default()
}

fn expected(suite: &Tree, operation: Option<&str>) -> Vec<Row> {
    let rows = items(suite, "results")
        .iter()
        .filter(|row| text(row, "operation") == operation);
    let rows = rows.flat_map(|row| {
        let field = |key| text(row, key).unwrap_or_default().to_owned();
        texts(row, "resources")
            .into_iter()
            .map(move |resource| Row {
                policy: field("policy"),
                rule: field("rule"),
                kind: field("kind"),
                resource,
                result: field("result"),
            })
    });
    rows.collect()
}

fn found(directory: &Path, suite: &Tree, operation: Option<&str>) -> Result<Vec<Row>, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kpvm"));
    command
        .current_dir(directory)
        .arg("apply")
        .args(texts(suite, "policies"));
    for (option, key) in [
        ("-r", "resources"),
        ("--json", "jsonPayloads"),
        ("--parameter-resource", "paramResources"),
    ] {
        let files = texts(suite, key);
        if !files.is_empty() {
            command.arg(option).arg(files.join(","));
        }
    }
    command.args(["-o", "json"]);
    command.args(text(suite, "context").map(|file| format!("--context-file={file}")));
    command.args(operation.map(|operation| format!("--operation={operation}")));
    for file in texts(suite, "exceptions") {
        command.args(["--exception", &file]);
    }
    command.args(text(suite, "userinfo").map(|file| format!("--userinfo={file}")));
    let namespaces = suite
        .get("values")
        .map_or(&[][..], |values| items(values, "namespaceSelector"));
    for namespace in namespaces {
        let labels = namespace.get("labels").and_then(Tree::as_map).unwrap();
        let labels: Vec<String> = labels
            .iter()
            .map(|label| format!("{}={}", label.key, label.value.as_str().unwrap()))
            .collect();
        let name = text(namespace, "name").unwrap();
        command.arg(format!("--namespace-labels={name}={}", labels.join(",")));
    }
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    if output.status.code() > Some(1) {
        return Err(format!("{}: {error}", directory.display()));
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = report["results"].as_array().unwrap().iter();
    let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |result: &Value| {
        let (name, namespace) = (
            field(&result["resource"]["name"]),
            field(&result["resource"]["namespace"]),
        );
        let policy = match field(&result["policyNamespace"]) {
            namespace if namespace.is_empty() => field(&result["policy"]),
            namespace => format!("{namespace}/{}", field(&result["policy"])),
        };
        Row {
            policy,
            rule: field(&result["rule"]),
            kind: field(&result["resource"]["kind"]),
            resource: if namespace.is_empty() {
                name
            } else {
                format!("{namespace}/{name}")
            },
            result: field(&result["result"]),
        }
    };
    Ok(results.map(row).collect())
}

#[test]
fn every_suite_of_the_corpus_gives_exactly_its_rows() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let options = Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &Limits::DEFAULT,
    };
    let mut files = Vec::new();
    suites(&corpus, &mut files);
    assert!(files.len() > 90, "{} suites", files.len());
    let (mut not_run, mut differences, mut rows) = (0, Vec::new(), 0);
    for file in files {
        let directory = file.parent().unwrap();
        let text_of_file = std::fs::read_to_string(&file).unwrap();
        let suite = read_all(&text_of_file, options).remove(0).unwrap();
        if NOT_RUN.iter().any(|(suite, _)| directory.ends_with(suite)) {
            not_run += 1;
            continue;
        }
        let operations = items(&suite, "results")
            .iter()
            .map(|row| text(row, "operation"));
        for operation in operations.collect::<BTreeSet<_>>() {
            let expected = expected(&suite, operation);
            let found = match found(directory, &suite, operation) {
                Ok(found) => found,
                Err(error) => {
                    differences.push(error);
                    continue;
                }
            };
            rows += expected.len();
            for row in &found {
                if !expected.iter().any(|one| one.stands_for(row)) {
                    differences.push(format!(
                        "{} {operation:?}: not expected: {row:?}",
                        directory.display()
                    ));
                }
            }
            for row in &expected {
                if !found.iter().any(|one| row.stands_for(one)) {
                    differences.push(format!(
                        "{} {operation:?}: not found: {row:?}",
                        directory.display()
                    ));
                }
            }
        }
    }
    assert!(rows > 500, "{rows} rows");
    assert_eq!(not_run, NOT_RUN.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
