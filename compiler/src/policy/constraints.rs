//! What Kyverno's loader demands of a document beyond the types of its fields: the constraints
//! of its published schema, and valid metadata, as an API server demands them of a new object
//! (docs/spec/cli.md §9.3).

mod metadata;
mod table;

use kpvm_semantics::{labels, timestamp};
use kpvm_syntax::tree::{Span, Tree, TreeValue};

use self::table::{Constraint, Schema};
use super::read::{DocumentKind, document_kind, field, text_of};
use super::spelling::nearest;
use crate::diagnostic::Diagnostic;
use crate::source::{Location, SourceId};

/// Reports every violation in a document; nothing for one that is no policy or exception.
pub fn check(tree: &Tree, source: SourceId, diagnostics: &mut Vec<Diagnostic>) {
    let schema = match document_kind(tree) {
        DocumentKind::Policy(_) => &table::POLICY,
        DocumentKind::ValidatingPolicy => &table::VALIDATING_POLICY,
        DocumentKind::AdmissionPolicy => &table::ADMISSION_POLICY,
        DocumentKind::AdmissionBinding => &table::ADMISSION_BINDING,
        DocumentKind::PolicyException => &table::EXCEPTION,
        DocumentKind::CelException => &table::CEL_EXCEPTION,
        DocumentKind::Other { .. } | DocumentKind::NotAnObject => return,
    };
    let subject = field(tree, "metadata").map(|metadata| text_of(metadata, "name"));
    let mut checker = Checker {
        source,
        subject: subject.unwrap_or_default(),
        diagnostics,
    };
    metadata::check(tree, &mut checker);
    checker.check(tree, "", schema);
    if text_of(tree, "apiVersion") == "kyverno.io/v2beta1" {
        let is_policy = matches!(document_kind(tree), DocumentKind::Policy(_));
        if is_policy {
            checker.check(tree, "", &table::POLICY_V2BETA1);
        }
    }
}

struct Checker<'d> {
    source: SourceId,
    subject: String,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn check(&mut self, tree: &Tree, shown: &str, schema: &Schema) {
        for (path, constraint) in schema.rows {
            visit(tree, path, shown, &mut |tree, shown| {
                self.hold(tree, shown, constraint);
            });
        }
        for (paths, part) in schema.parts {
            for path in *paths {
                visit(tree, path, shown, &mut |tree, shown| {
                    self.check(tree, shown, part);
                });
            }
        }
    }

    /// Reports a value that violates a constraint; one of another type is reported elsewhere.
    fn hold(&mut self, tree: &Tree, shown: &str, constraint: &Constraint) {
        match (constraint, &tree.value) {
            (Constraint::Required(keys), TreeValue::Map(_)) => {
                for key in *keys {
                    if field(tree, key).is_none() {
                        self.missing(tree.span, shown, key);
                    }
                }
            }
            (Constraint::ExactlyOne(keys), TreeValue::Map(_)) => {
                let found: Vec<&str> = present(tree, keys).collect();
                if found.len() != 1 {
                    let listed = keys.join(", ");
                    let found = match found.as_slice() {
                        [] => "none".to_owned(),
                        several => several.join(" and "),
                    };
                    let message = format!(
                        "expected exactly one of {listed} in {}, found {found}",
                        at(shown)
                    );
                    self.refuse("not-exactly-one", tree.span, message, "write one of them");
                }
            }
            (Constraint::NotBoth(one, other), TreeValue::Map(_))
                if present(tree, &[one, other]).count() == 2 =>
            {
                let message = format!("expected `{one}` or `{other}` in {}, found both", at(shown));
                self.refuse("not-both", tree.span, message, "remove one of them");
            }
            (Constraint::Distinct, TreeValue::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    if items.iter().take(index).any(|other| other == item) {
                        self.repeated(item.span, shown, item.as_str().unwrap_or_default());
                    }
                }
            }
            (Constraint::DistinctNames, TreeValue::List(items)) => {
                let name = |item: &Tree| text_of(item, "name");
                for (index, item) in items.iter().enumerate() {
                    let name_of_item = name(item);
                    if items
                        .iter()
                        .take(index)
                        .any(|other| name(other) == name_of_item)
                    {
                        self.repeated(item.span, shown, &name_of_item);
                    }
                }
            }
            (Constraint::AtLeast(least), TreeValue::Int(number)) if number < least => {
                let message = format!(
                    "expected a number from {least} at {}, found {number}",
                    at(shown)
                );
                self.refuse("too-small", tree.span, message, "write a greater number");
            }
            (constraint, TreeValue::String(text)) => {
                self.hold_text(tree.span, text, shown, constraint)
            }
            _ => {}
        }
    }

    fn hold_text(&mut self, span: Span, text: &str, shown: &str, constraint: &Constraint) {
        let expected = match constraint {
            Constraint::OneOf(texts) if !texts.contains(&text) => {
                let message = format!(
                    "expected one of {} at {}, found {text:?}",
                    texts.join(", "),
                    at(shown)
                );
                let hint = match nearest(text, texts) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("use one of: {}", texts.join(", ")),
                };
                return self.refuse("not-in-schema-enum", span, message, &hint);
            }
            Constraint::AtMost(most) if text.chars().count() > *most => {
                format!("at most {most} characters")
            }
            Constraint::NotEmpty if text.is_empty() => "a text that is not empty".to_owned(),
            Constraint::Timestamp if !matches!(timestamp::parse(text), Some(Ok(_))) => {
                "a time like 2006-01-02T15:04:05Z".to_owned()
            }
            Constraint::QualifiedName if !labels::is_valid_key(text) => {
                "a name like `Ready` or `example.com/Ready`".to_owned()
            }
            Constraint::Reason if !text.is_empty() && !is_reason(text) => {
                "a word of letters, digits and `_,:`".to_owned()
            }
            _ => return,
        };
        let message = format!(
            "expected {expected} at {}, found {}",
            at(shown),
            quoted(text)
        );
        self.refuse(
            "not-in-schema",
            span,
            message,
            "an API server refuses the document",
        );
    }

    fn missing(&mut self, span: Span, shown: &str, key: &str) {
        let message = format!("expected a field `{key}` in {}, found none", at(shown));
        self.refuse("missing-field", span, message, &format!("add `{key}`"));
    }

    fn repeated(&mut self, span: Span, shown: &str, what: &str) {
        let message = format!("{what:?} is listed twice at {}", at(shown));
        self.refuse(
            "listed-twice",
            span,
            message,
            "remove or rename one of them",
        );
    }

    fn refuse(&mut self, code: &'static str, span: Span, message: String, hint: &str) {
        let location = Location {
            source: self.source,
            span,
        };
        let diagnostic = Diagnostic::error(code, message, location).hint(hint);
        self.diagnostics
            .push(diagnostic.subject(self.subject.as_str()));
    }
}

/// Calls `act` with every value at a path below a value, and with its path in words.
fn visit<'t>(tree: &'t Tree, path: &str, shown: &str, act: &mut dyn FnMut(&'t Tree, &str)) {
    if tree.is_null() {
        return;
    }
    if let Some(rest) = path.strip_prefix("{}") {
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        for member in tree.as_map().unwrap_or_default() {
            let shown = format!("{shown}.{}", member.key);
            visit(&member.value, rest, &shown, act);
        }
        return;
    }
    if let Some(rest) = path.strip_prefix("[]") {
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        for (index, item) in tree.as_list().unwrap_or_default().iter().enumerate() {
            visit(item, rest, &format!("{shown}[{index}]"), act);
        }
        return;
    }
    if path.is_empty() {
        return act(tree, shown);
    }
    let end = path.find(['.', '[', '{']).unwrap_or(path.len());
    let (key, rest) = path.split_at(end);
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    if let Some(value) = field(tree, key) {
        let dot = if shown.is_empty() { "" } else { "." };
        visit(value, rest, &format!("{shown}{dot}{key}"), act);
    }
}

/// Those of the keys that a map has with a value other than null.
fn present<'k>(tree: &Tree, keys: &[&'k str]) -> impl Iterator<Item = &'k str> {
    keys.iter()
        .copied()
        .filter(|key| field(tree, key).is_some())
}

fn at(shown: &str) -> String {
    match shown {
        "" => "the document".to_owned(),
        shown => format!("`{shown}`"),
    }
}

/// A text in quotes, cut if it is long.
fn quoted(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!(
            "{:?}… ({} bytes)",
            text.get(..end).unwrap_or_default(),
            text.len()
        ),
    }
}

/// `[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?`
fn is_reason(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(is_word)
        && bytes
            .iter()
            .all(|byte| is_word(byte) || b",:".contains(byte))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::test_tree::tree;

    fn messages(document: &Value) -> Vec<String> {
        let mut diagnostics = Vec::new();
        check(&tree(document), SourceId(0), &mut diagnostics);
        diagnostics.into_iter().map(|one| one.message).collect()
    }

    fn cluster_policy(changes: Value) -> Value {
        let mut document = json!({
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "p"},
            "spec": {"rules": [{"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}}]},
        });
        merge(&mut document, changes);
        document
    }

    fn validating_policy(changes: Value) -> Value {
        let mut document = json!({
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "ValidatingPolicy",
            "metadata": {"name": "p"},
            "spec": {"validations": [{"expression": "true"}]},
        });
        merge(&mut document, changes);
        document
    }

    fn merge(into: &mut Value, changes: Value) {
        match (into, changes) {
            (Value::Object(into), Value::Object(changes)) => {
                for (key, value) in changes {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, changes) => *into = changes,
        }
    }

    /// Each row was loaded by Kyverno 1.19.1 (`ext/resource/loader` with the schemas of its
    /// command line), which names the same field.
    #[test]
    fn what_the_loader_of_kyverno_refuses() {
        let owner = |fields: Value| json!({"metadata": {"ownerReferences": [fields]}});
        let condition = json!({"lastTransitionTime": "2025-01-01T00:00:00Z", "message": "",
            "reason": "Succeeded", "status": "True", "type": "Ready"});
        let with_condition = |change: Value| {
            let mut condition = condition.clone();
            merge(&mut condition, change);
            json!({"status": {"conditions": [condition]}})
        };
        let rule = |change: Value| {
            let mut rule =
                json!({"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}});
            merge(&mut rule, change);
            json!({"spec": {"rules": [rule]}})
        };
        let rows: Vec<(Value, &[&str])> = vec![
            (json!({}), &[]),
            (with_condition(json!({})), &[]),
            (
                json!({"spec": null}),
                &["expected a field `spec` in the document, found none"],
            ),
            (
                json!({"metadata": {"name": "Bad_Name!"}}),
                &[
                    "expected a name of lower-case letters, digits, `-` and `.` at `metadata.name`, found \"Bad_Name!\"",
                ],
            ),
            (
                json!({"metadata": {"name": ""}}),
                &["expected a field `name` in `metadata`, found none"],
            ),
            (
                owner(json!({"apiVersion": "v1", "kind": "Pod", "name": "a"})),
                &["expected a field `uid` in `metadata.ownerReferences[0]`, found none"],
            ),
            (
                owner(json!({"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"})),
                &["an Event at `metadata.ownerReferences[0]` owns nothing"],
            ),
            (
                json!({"metadata": {"labels": {"a b": "c", "d": "e f"}}}),
                &[
                    "expected a label key in `metadata.labels`, found \"a b\"",
                    "expected a label value at `metadata.labels.d`, found \"e f\"",
                ],
            ),
            (
                json!({"metadata": {"annotations": {"a b": "c", "D/e": "f g"}}}),
                &["expected an annotation key in `metadata.annotations`, found \"a b\""],
            ),
            (
                json!({"metadata": {"finalizers": ["a b"]}}),
                &[
                    "expected a name like `example.com/name` at `metadata.finalizers[0]`, found \"a b\"",
                ],
            ),
            (
                json!({"status": {"rulecount": {"generate": 0, "mutate": 0, "validate": 1}}}),
                &["expected a field `verifyimages` in `status.rulecount`, found none"],
            ),
            (
                json!({"status": {"validatingadmissionpolicy": {"generated": false}}}),
                &["expected a field `message` in `status.validatingadmissionpolicy`, found none"],
            ),
            (
                with_condition(json!({"status": "Maybe"})),
                &[
                    "expected one of True, False, Unknown at `status.conditions[0].status`, found \"Maybe\"",
                ],
            ),
            (
                with_condition(json!({"lastTransitionTime": "yesterday"})),
                &[
                    "expected a time like 2006-01-02T15:04:05Z at `status.conditions[0].lastTransitionTime`, found \"yesterday\"",
                ],
            ),
            (
                with_condition(json!({"reason": ""})),
                &["expected a text that is not empty at `status.conditions[0].reason`, found \"\""],
            ),
            (
                json!({"spec": {"validationFailureAction": "enforced"}}),
                &[
                    "expected one of audit, enforce, Audit, Enforce at `spec.validationFailureAction`, found \"enforced\"",
                ],
            ),
            (
                rule(json!({"name": null})),
                &["expected a field `name` in `spec.rules[0]`, found none"],
            ),
            (
                rule(json!({"match": null})),
                &["expected a field `match` in `spec.rules[0]`, found none"],
            ),
            (
                rule(json!({"match": {"all": []}})),
                &["expected `any` or `all` in `spec.rules[0].match`, found both"],
            ),
            (
                rule(json!({"context": [{"name": "a"}]})),
                &[
                    "expected exactly one of configMap, apiCall, imageRegistry, variable, globalReference in `spec.rules[0].context[0]`, found none",
                ],
            ),
            (
                rule(json!({"exclude": {"any": [{"subjects": [{"kind": "User"}]}]}})),
                &[
                    "expected a field `name` in `spec.rules[0].exclude.any[0].subjects[0]`, found none",
                ],
            ),
            (
                rule(json!({"validate": {"podSecurity": {"level": "high"}}})),
                &[
                    "expected one of privileged, baseline, restricted at `spec.rules[0].validate.podSecurity.level`, found \"high\"",
                ],
            ),
        ];
        for (changes, expected) in rows {
            assert_eq!(
                messages(&cluster_policy(changes.clone())),
                expected,
                "{changes}"
            );
        }
        let rows: Vec<(Value, &[&str])> = vec![
            (json!({}), &[]),
            (
                json!({"spec": null}),
                &["expected a field `spec` in the document, found none"],
            ),
            (
                json!({"spec": {"validationActions": ["Enforce"]}}),
                &[
                    "expected one of Deny, Audit, Warn at `spec.validationActions[0]`, found \"Enforce\"",
                ],
            ),
            (
                json!({"spec": {"validationActions": ["Deny", "Deny"]}}),
                &["\"Deny\" is listed twice at `spec.validationActions`"],
            ),
            (
                json!({"spec": {"variables": [{"name": "a", "expression": "1"}, {"name": "a", "expression": "2"}]}}),
                &["\"a\" is listed twice at `spec.variables`"],
            ),
            (
                json!({"spec": {"validations": [{"message": "m"}]}}),
                &["expected a field `expression` in `spec.validations[0]`, found none"],
            ),
        ];
        for (changes, expected) in rows {
            assert_eq!(
                messages(&validating_policy(changes.clone())),
                expected,
                "{changes}"
            );
        }
    }
}
