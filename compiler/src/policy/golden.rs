//! The golden cases that concern reading, autogen and the load checks: whole
//! policies with the answers of Kyverno's own engine.

use std::collections::BTreeSet;

use serde_json::Value;

use super::autogen::compute_rules;
use super::read::{DocumentKind, document_kind, read_exception, read_policy};
use super::test_tree::{json, tree};
use super::validate::{validate_exception, validate_policy};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::SourceId;

fn cases(file: &str) -> Vec<Value> {
    let text = kpvm_golden::read(&format!("golden/{file}")).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Removes nulls and empty texts, lists and maps, as the golden README requires.
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
    let cases = cases("autogen.ndjson");
    let (mut total, mut differing) = (0, Vec::new());
    for case in cases.iter().filter(|case| case["mode"] == "rules") {
        total += 1;
        let mut diagnostics = Vec::new();
        let policy = read_policy(&tree(&case["policy"]), SourceId(0), &mut diagnostics);
        let mut policy = policy.unwrap_or_else(|| panic!("{}: {diagnostics:?}", case["id"]));
        policy.ignore_assert();
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

/// Cases whose answer depends on the syntax of a JMESPath expression, which another part of
/// the compiler checks; here every expression counts as well-formed.
fn hangs_on_jmespath(case: &Value) -> bool {
    let error = case["load"]["error"].as_str().unwrap_or_default();
    error.contains("invalid JMESPath query") || error.contains("failed to parse JMESPath")
}

/// Our code for a golden warning.
fn warning_code(text: &str) -> &'static str {
    let codes = [
        ("Operator ", "deprecated-operator"),
        ("Validation failure actions", "lower-case-action"),
        ("You are matching on replicas", "replicas-without-scale"),
        ("You are matching on status", "status-without-subresource"),
        ("Policies that match Pods", "autogen-leaves-pods"),
    ];
    let found = codes.iter().find(|(start, _)| text.starts_with(start));
    found.unwrap_or_else(|| panic!("unknown warning {text}")).1
}

/// Our check for each kind of golden error.
const ERROR_CODES: &[(&str, &str)] = &[
    ("DECODE", "wrong-type"),
    ("No operation defined", "no-operation"),
    ("Multiple operations defined", "several-operations"),
    ("invalid variable used at path", "user-info-in-background"),
    ("Usage of user info", "user-info-in-background"),
    ("is not allowed", "user-variable-in-background"),
    ("wildcard policy not allowed", "wildcard-kind-in-background"),
    ("wildcard policy can not deal", "wildcard-kind-not-alone"),
    (
        "wildcard policy does not support",
        "wildcard-kind-rule-type",
    ),
    (
        ".kinds: policy can only deal",
        "wildcard-kind-beyond-metadata",
    ),
    ("policy can only deal with the metadata", "no-kinds"),
    (
        "at least one element must be specified in a kind",
        "no-kinds",
    ),
    ("Rule is matching an empty set", "empty-match"),
    ("disabling both admission", "never-processed"),
    ("disabling admission processing", "admission-disabled"),
    ("should not have the namespace", "cluster-policy-namespace"),
    ("should not have variables", "variable-in-match"),
    ("must match regex", "bad-variable"),
    ("invalid query (nil)", "bad-variable"),
    ("got nil resolved variable", "bad-reference"),
    ("present outside of foreach", "element-outside-foreach"),
    ("requires a policy name", "exception-policy"),
    ("match resources not specified", "no-resources"),
    ("remove the deprecated field", "deprecated-field"),
    ("timeout value", "webhook-timeout"),
    ("any/all together with", "mixed-forms"),
    ("any and all together", "any-and-all"),
    ("Both name and names", "name-and-names"),
    ("selector:", "bad-selector"),
    ("selector operator", "bad-selector"),
    ("roles[", "bad-role"),
    ("subjects[", "bad-subject"),
    ("imageExtractors", "image-extractors"),
    ("may not be more than 63", "policy-name-too-long"),
    ("celPrecondition", "cel-preconditions"),
    ("labels and annotations", "label-not-text"),
    ("Duplicate rule name", "duplicate-rule-name"),
    ("foreach.list is required", "foreach-list"),
    ("or a nested foreach", "foreach-check"),
    (
        "one of pattern, anyPattern, deny, foreach, cel must",
        "no-check",
    ),
    (
        "only one of pattern, anyPattern, deny, foreach, cel",
        "several-checks",
    ),
    (
        "one of pattern, anyPattern, deny, foreach, cel must",
        "assert-has-no-effect",
    ),
    ("Autogen annotation", "autogen-all"),
    ("is missing or misspelled", "incomplete-condition"),
    ("`operator` is invalid", "unknown-operator"),
    ("found under the 'value'", "unknown-operation"),
    ("found to be of the type", "unknown-operation"),
    ("controlName: Invalid value: \"", "pod-security"),
    ("values is required", "pod-security-values"),
    ("restrictedField is required", "pod-security-values"),
    ("Filtering namespaces", "namespaces-in-namespaced-policy"),
    (
        "supported only with ClusterPolicy",
        "overrides-in-namespaced-policy",
    ),
    ("conflicting namespaces", "conflicting-overrides"),
    ("wildcard pattern", "conflicting-overrides"),
    ("invalid action", "bad-action"),
    ("a name is required for context", "context-name"),
    ("conflicts with a pre-defined", "context-name"),
    ("context entr", "context-source"),
    ("a variable must define", "context-source"),
    ("a URLPath cannot be used", "context-source"),
    ("bad image", "context-source"),
    ("not supported for CEL", "context-with-cel"),
    ("unsupported anchor", "unsupported-anchor"),
    ("xistence anchor", "existence-anchor"),
    ("failed to deserialize anyPattern", "any-pattern-no-list"),
];

/// Whether one of our diagnostics reports the golden error.
fn same_finding(error: &str, diagnostics: &[Diagnostic]) -> bool {
    let mut wanted = ERROR_CODES.iter().filter(|(text, _)| error.contains(text));
    wanted.any(|(_, code)| diagnostics.iter().any(|one| one.code.starts_with(code)))
}

#[test]
fn the_load_check_accepts_and_rejects_the_same_documents() {
    let cases = cases("load.ndjson");
    let (mut total, mut on_jmespath, mut differing) = (0, 0, Vec::new());
    for case in &cases {
        total += 1;
        let mut diagnostics = Vec::new();
        let document = tree(&case["policy"]);
        if document_kind(&document) == DocumentKind::PolicyException {
            if let Some(exception) = read_exception(&document, SourceId(0), &mut diagnostics) {
                validate_exception(&exception, &mut diagnostics);
            }
        } else if let Some(mut policy) = read_policy(&document, SourceId(0), &mut diagnostics) {
            policy.ignore_assert();
            validate_policy(&policy, "", Severity::Warning, &mut diagnostics);
        }
        let accepted = diagnostics
            .iter()
            .all(|one| one.severity == Severity::Warning);
        if accepted != case["load"]["ok"] {
            if hangs_on_jmespath(case) {
                on_jmespath += 1;
            } else {
                differing.push(format!("{}: {} {diagnostics:?}", case["id"], case["load"]));
            }
            continue;
        }
        let error = case["load"]["error"].as_str().unwrap_or_default();
        if !accepted && !hangs_on_jmespath(case) && !same_finding(error, &diagnostics) {
            differing.push(format!("{}: {error}: {diagnostics:?}", case["id"]));
        }
        if accepted {
            let expected = case["load"]["warnings"].as_array().into_iter().flatten();
            let expected: BTreeSet<_> = expected
                .map(|text| warning_code(text.as_str().unwrap()))
                .collect();
            // Kyverno's offline check knows neither schemas nor functions, so it lacks
            // these warnings.
            let ours_alone = [
                "not-in-schema-enum",
                "unknown-field",
                "rule-name-too-long",
                "unknown-function",
                "exception-without-rules",
                "exception-without-match",
                "pod-security-field",
                "pod-security-version",
            ];
            let found: BTreeSet<_> = diagnostics
                .iter()
                .map(|one| one.code)
                .filter(|code| !ours_alone.contains(code))
                .collect();
            if found != expected {
                differing.push(format!("{}: {found:?}, expected {expected:?}", case["id"]));
            }
        }
    }
    println!(
        "load: {} of {total} agree, {on_jmespath} hang on JMESPath syntax",
        total - on_jmespath - differing.len()
    );
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
