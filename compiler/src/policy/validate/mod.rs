//! The load check: all errors and warnings of Kyverno's offline check
//! (docs/spec/policies.md §2), with locations and hints.
//!
//! A policy with an error is rejected. All problems are reported, whereas Kyverno stops at
//! the first; a problem of a generated rule that its written rule also has is reported
//! once. Needs no cluster and compiles no CEL.

mod actions;
mod conflicts;
mod context;
mod exception;
mod expressions;
mod kinds;
mod labels;
mod overrides;
mod pod_security;
mod resources;
pub(super) mod selectors;
mod structure;
mod variables;
mod walk;
mod warnings;

use std::collections::{HashMap, HashSet};

use kpvm_syntax::tree::{Span, Tree};

use super::autogen::{compute_rules, has_content};
use super::model::{Policy, Rule};
use super::schema::{self, without_omitted};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Location, SourceId};

pub use exception::validate_exception;

/// Checks a policy as Kyverno does when it loads one. `text` is the whole text of its file,
/// used to locate parts of texts; empty if unavailable.
///
/// Kyverno's offline check accepts calls that can only fail, and unknown names in
/// `podSecurity`; `unworkable` is the severity of these.
pub fn validate_policy(
    policy: &Policy,
    text: &str,
    unworkable: Severity,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let computed: Vec<CheckedRule> = compute_rules(policy, None)
        .into_iter()
        .map(CheckedRule::new)
        .collect();
    let mut report = Report::new(policy.source, &policy.name.value, diagnostics);
    report.text = text;
    report.unworkable = unworkable;
    structure::check(policy, &mut report);
    variables::check(policy, &computed, &mut report);
    overrides::check(policy, &mut report);
    for rule in &computed {
        report.enter_rule(&rule.rule);
        kinds::check(policy, &rule.rule, &mut report);
        resources::check(&rule.rule, &mut report);
        context::check(&rule.rule, &mut report);
        expressions::check_foreach(&rule.encoded, &mut report);
        actions::check(&rule.rule, &mut report);
        labels::check(&rule.rule, &mut report);
        warnings::check_rule(policy, rule, &mut report);
    }
    report.leave_rule();
    warnings::check_policy(policy, &mut report);
}

/// A computed rule and its text as re-encoded by Kyverno.
struct CheckedRule {
    rule: Rule,
    encoded: Tree,
}

impl CheckedRule {
    fn new(rule: Rule) -> Self {
        let encoded = without_omitted(&rule.tree, &schema::RULE);
        Self { rule, encoded }
    }
}

/// Bodies of a rule; an empty one does not count (docs/spec/policies.md §2.2).
#[derive(Debug, Clone, Copy)]
struct Bodies {
    mutate: bool,
    validate: bool,
    generate: bool,
    verify_images: bool,
}

impl Bodies {
    fn of(rule: &Rule) -> Self {
        let says = |body: &Option<Tree>| body.as_ref().is_some_and(has_content);
        let images = rule.verify_images.as_ref().and_then(Tree::as_list);
        Self {
            mutate: says(&rule.mutate),
            validate: validate_has_content(rule),
            generate: says(&rule.generate),
            verify_images: images.unwrap_or_default().iter().any(has_content),
        }
    }

    fn count(self) -> usize {
        [
            self.mutate,
            self.validate,
            self.generate,
            self.verify_images,
        ]
        .into_iter()
        .filter(|there| *there)
        .count()
    }
}

/// Whether `validate` has content: any field that is neither null nor an empty text. An
/// explicit empty list or map counts.
fn validate_has_content(rule: &Rule) -> bool {
    let validate = rule.tree.get("validate").and_then(Tree::as_map);
    validate
        .unwrap_or_default()
        .iter()
        .any(|member| !member.value.is_null() && member.value.as_str() != Some(""))
}

/// Collects diagnostics with their subject, without duplicates of location and text.
struct Report<'a> {
    source: SourceId,
    text: &'a str,
    unworkable: Severity,
    policy: String,
    subject: String,
    first: HashMap<(&'static str, Span), String>,
    seen: HashSet<(&'static str, Span, String)>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Report<'a> {
    fn new(source: SourceId, policy: &str, diagnostics: &'a mut Vec<Diagnostic>) -> Self {
        Self {
            source,
            text: "",
            unworkable: Severity::Warning,
            policy: policy.to_owned(),
            subject: policy.to_owned(),
            first: HashMap::new(),
            seen: HashSet::new(),
            diagnostics,
        }
    }

    /// Sets the rule as the subject of further diagnostics.
    fn enter_rule(&mut self, rule: &Rule) {
        self.subject = format!("{}/{}", self.policy, rule.name.value);
    }

    /// Sets the policy as the subject of further diagnostics.
    fn leave_rule(&mut self) {
        self.subject.clone_from(&self.policy);
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>, hint: &str) {
        self.add(Severity::Error, code, (span, span), message.into(), hint);
    }

    fn warning(&mut self, code: &'static str, span: Span, message: impl Into<String>, hint: &str) {
        self.add(Severity::Warning, code, (span, span), message.into(), hint);
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        (whole, part): (Span, Span),
        message: String,
        hint: &str,
    ) {
        // Generated rules keep the locations of the written ones, so a problem of both is a
        // duplicate, whatever autogen changed in the text.
        let first = self.first.entry((code, whole));
        let known_elsewhere = *first.or_insert_with(|| self.subject.clone()) != self.subject;
        if known_elsewhere || !self.seen.insert((code, part, message.clone())) {
            return;
        }
        let location = Location {
            source: self.source,
            span: part,
        };
        let diagnostic = match severity {
            Severity::Error => Diagnostic::error(code, message, location),
            Severity::Warning => Diagnostic::warning(code, message, location),
        };
        self.diagnostics
            .push(diagnostic.hint(hint).subject(self.subject.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::read::read_policy;
    use crate::policy::test_tree::tree;

    const NAME: &str = "r";

    /// A policy with one rule for Pods and a pattern; `change` replaces parts of it.
    fn policy(change: impl FnOnce(&mut Value)) -> Policy {
        let mut document = json!({
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": "p"},
            "spec": {"rules": [{
                "name": NAME,
                "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
                "validate": {"pattern": {"spec": {"x": "y"}}},
            }]},
        });
        change(&mut document);
        let mut diagnostics = Vec::new();
        let policy = read_policy(&tree(&document), SourceId(0), &mut diagnostics);
        policy.unwrap_or_else(|| panic!("{diagnostics:?}"))
    }

    fn findings(policy: &Policy) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        validate_policy(policy, "", Severity::Error, &mut diagnostics);
        diagnostics
    }

    /// Codes reported if the given part of the rule is replaced.
    fn codes(part: &str, value: Value) -> Vec<&'static str> {
        let policy = policy(|document| document["spec"]["rules"][0][part] = value);
        findings(&policy).iter().map(|one| one.code).collect()
    }

    #[test]
    fn a_plain_policy_has_no_findings() {
        assert_eq!(findings(&policy(|_| {})), []);
    }

    #[test]
    fn parts_of_a_rule() {
        let filter = |resources: Value| json!({"any": [{"resources": resources}]});
        let condition = |key: Value, operator: &str, value: Value| json!({"any": [{"key": key, "operator": operator, "value": value}]});
        let context = |entry: Value| json!([entry]);
        let cases: Vec<(&str, &str, Value, &[&str])> = vec![
            ("2.2", "validate", json!({}), &["no-operation"]),
            ("2.8", "validate", json!({"foreach": []}), &[]),
            (
                "2.2",
                "mutate",
                json!({"patchStrategicMerge": {"a": false}}),
                &["several-operations"],
            ),
            ("2.2", "imageExtractors", json!({}), &["image-extractors"]),
            (
                "2.2.1",
                "exclude",
                filter(json!({"kinds": ["Pod"]})),
                &["empty-match"],
            ),
            (
                "2.2.1",
                "exclude",
                json!({"resources": {"operations": ["CREATE"]}}),
                &["empty-match"],
            ),
            (
                "2.2.1",
                "exclude",
                json!({"resources": {"namespaces": ["a"]}}),
                &[],
            ),
            (
                "2.3",
                "match",
                filter(json!({"kinds": ["Pod"], "namespaces": ["{{ a }}"]})),
                &["variable-in-match", "bad-variable"],
            ),
            (
                "2.3",
                "preconditions",
                condition(json!("{{ request.roles }}"), "Equals", json!("x")),
                &["user-variable-in-background"],
            ),
            (
                "2.3",
                "validate",
                json!({"message": "{{ a..b }}", "deny": {}}),
                &["bad-variable"],
            ),
            (
                "2.3",
                "validate",
                json!({"message": "$(HOME)", "deny": {}}),
                &["bad-reference"],
            ),
            (
                "2.3",
                "validate",
                json!({"message": "{{ element.x }}", "deny": {}}),
                &["element-outside-foreach"],
            ),
            (
                "2.5",
                "match",
                filter(json!({"kinds": ["*", "Pod"]})),
                &[
                    "wildcard-kind-in-background",
                    "wildcard-kind-not-alone",
                    "wildcard-kind-beyond-metadata",
                ],
            ),
            (
                "2.6",
                "match",
                json!({"any": [{"resources": {"kinds": ["Pod"]}}], "resources": {"kinds": ["Job"]}}),
                &["mixed-forms"],
            ),
            (
                "2.6",
                "match",
                json!({"any": [{"resources": {"namespaces": ["a"]}}]}),
                &["no-kinds"],
            ),
            (
                "2.6",
                "preconditions",
                condition(json!(null), "Equals", json!(1)),
                &["incomplete-condition"],
            ),
            (
                "2.6",
                "preconditions",
                condition(json!("a"), "Is", json!(1)),
                &["unknown-operator"],
            ),
            (
                "2.6",
                "preconditions",
                condition(json!("{{request.operation}}"), "Equals", json!("PATCH")),
                &["unknown-operation"],
            ),
            (
                "2.6",
                "preconditions",
                condition(
                    json!("{{ request.operation }}"),
                    "AnyIn",
                    json!(["CREATE", 1]),
                ),
                &["unknown-operation"],
            ),
            (
                "2.7",
                "context",
                context(json!({"name": "request.x", "variable": {"value": 1}})),
                &["context-name"],
            ),
            (
                "2.7",
                "context",
                context(json!({"name": "a"})),
                &["context-source"],
            ),
            (
                "2.7",
                "context",
                context(json!({"name": "a", "variable": {"jmesPath": "a..b"}})),
                &["bad-jmespath"],
            ),
            (
                "2.7",
                "context",
                context(json!({"name": "a", "variable": {"value": 1, "default": 2}})),
                &["context-source"],
            ),
            (
                "2.8",
                "validate",
                json!({"pattern": {"+(a)": 1}}),
                &["unsupported-anchor"],
            ),
            (
                "2.8",
                "validate",
                json!({"pattern": {"^(a)": []}}),
                &["existence-anchor"],
            ),
            (
                "2.8",
                "validate",
                json!({"pattern": {}, "deny": {}}),
                &["several-checks"],
            ),
            (
                "2.8",
                "validate",
                json!({"assert": {"a": 1}}),
                &["assert-is-deprecated"],
            ),
            (
                "2.8",
                "validate",
                json!({"assert": {"a": 1}, "pattern": {"a": 1}}),
                &["assert-has-no-effect"],
            ),
            (
                "2.8",
                "validate",
                json!({"foreach": [{"list": "a"}]}),
                &["foreach-check"],
            ),
            (
                "2.9",
                "validate",
                json!({"pattern": {"metadata": {"labels": {"a": 1}}}}),
                &["label-not-text"],
            ),
            (
                "2.9",
                "validate",
                json!({"pattern": {"metadata": {"=(labels)": {"a": 1}}}}),
                &[],
            ),
            (
                "2.10",
                "validate",
                json!({"deny": {"conditions": [{"key": "a", "operator": "In", "value": []}]}}),
                &["deprecated-operator"],
            ),
            (
                "2.10",
                "validate",
                json!({"pattern": {"spec": {"replicas": 1}}}),
                &["replicas-without-scale"],
            ),
            (
                "2.10",
                "validate",
                json!({"failureAction": "Audit", "pattern": {"status": {}}}),
                &["status-without-subresource"],
            ),
        ];
        for (section, part, value, expected) in cases {
            assert_eq!(
                codes(part, value.clone()),
                expected,
                "section {section}: {part} {value}"
            );
        }
    }

    #[test]
    fn the_policy_as_a_whole() {
        let spec = |key: &str, value: Value| {
            let key = key.to_owned();
            move |document: &mut Value| document["spec"][key] = value
        };
        let overriding = |first: Value, second: Value| {
            spec("validationFailureActionOverrides", json!([first, second]))
        };
        type Change = Box<dyn FnOnce(&mut Value)>;
        let cases: Vec<(&str, Change, &[&str])> = vec![
            (
                "2.1 row 1",
                Box::new(|document| document["metadata"]["namespace"] = json!("n")),
                &["cluster-policy-namespace"],
            ),
            (
                "2.1 row 8",
                Box::new(|document| {
                    document["spec"]["admission"] = json!(false);
                    document["spec"]["background"] = json!(false);
                }),
                &["never-processed"],
            ),
            (
                "2.2",
                Box::new(spec("webhookTimeoutSeconds", json!(31))),
                &["webhook-timeout"],
            ),
            (
                "2.2",
                Box::new(spec("generateExistingOnPolicyUpdate", json!(false))),
                &["deprecated-field"],
            ),
            (
                "2.4",
                Box::new(overriding(
                    json!({"action": "Audit", "namespaces": ["a"]}),
                    json!({"action": "Enforce", "namespaces": ["a"]}),
                )),
                &["conflicting-overrides"],
            ),
            (
                "2.4",
                Box::new(overriding(
                    json!({"action": "Audit", "namespaces": ["a*"]}),
                    json!({"action": "enforce", "namespaces": ["ab"]}),
                )),
                &["conflicting-overrides", "lower-case-action"],
            ),
            (
                "2.4",
                Box::new(overriding(
                    json!({"action": "Audit", "namespaces": ["a"]}),
                    json!({"action": "Audit", "namespaces": ["a*"]}),
                )),
                &[],
            ),
        ];
        for (section, change, expected) in cases {
            let found = findings(&policy(change));
            let codes: Vec<_> = found.iter().map(|one| one.code).collect();
            assert_eq!(codes, expected, "section {section}");
        }
    }

    #[test]
    fn case_28_a_direct_match_with_exclude_any_is_an_empty_set() {
        let policy = policy(|document| {
            let rule = &mut document["spec"]["rules"][0];
            rule["match"] = json!({"resources": {"kinds": ["Pod"]}});
            rule["exclude"] = json!({"any": [{"resources": {"names": ["x"]}}]});
        });
        let codes: Vec<_> = findings(&policy).iter().map(|one| one.code).collect();
        assert_eq!(codes, ["empty-match"]);
    }

    #[test]
    fn a_finding_has_a_place_a_hint_and_a_subject() {
        let policy = policy(|document| {
            document["spec"]["rules"][0]["validate"] = json!({"pattern": {"spec": {"+(x)": "y"}}});
        });
        let found = findings(&policy);
        let pattern = policy.rules[0].validate.clone().unwrap().pattern.unwrap();
        let spec = pattern.get("spec").unwrap();
        let [finding] = &found[..] else {
            panic!("generated rules repeat nothing: {found:?}");
        };
        assert_eq!(finding.location.span, spec.member("+(x)").unwrap().key_span);
        assert_eq!(finding.subject.as_deref(), Some("p/r"));
        assert!(finding.hint.is_some());
    }

    #[test]
    fn the_deepest_document_that_is_read_is_checked() {
        let depth = kpvm_semantics::limits::Limits::DEFAULT.document_depth;
        let mut pattern = json!("{{ request.object.a }}");
        for _ in 0..depth {
            pattern = json!({ "a": pattern });
        }
        let policy = policy(|document| {
            document["spec"]["rules"][0]["validate"] = json!({"pattern": pattern});
        });
        assert_eq!(findings(&policy), []);
    }
}
