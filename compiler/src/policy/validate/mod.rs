//! The load check: everything that Kyverno's offline check refuses or warns about
//! (sheet 01, section 2), with places and advice.
//!
//! A read policy and a judge of JMESPath syntax come in; diagnostics leave. A policy
//! is refused when one of them is an error. All problems are reported, where
//! Kyverno stops at the first; a problem of a generated rule that its written rule
//! has as well is reported once. Needs no cluster, and compiles no CEL.

mod actions;
mod conflicts;
mod context;
mod exception;
mod kinds;
mod labels;
mod overrides;
mod pod_security;
mod resources;
mod selectors;
mod structure;
mod variables;
mod walk;
mod warnings;

use std::collections::{HashMap, HashSet};

use kpvm::tree::{Span, Tree};

use super::autogen::{compute_rules, has_content};
use super::model::{Policy, Rule};
use super::schema::{self, without_omitted};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{Location, SourceId};

pub use exception::validate_exception;

/// Says whether a text is a well-formed JMESPath expression, and if not, why.
pub type CompileExpression<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// Checks a policy as Kyverno does before it accepts one.
pub fn validate_policy(
    policy: &Policy,
    compile_expression: CompileExpression<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let computed: Vec<CheckedRule> = compute_rules(policy, None)
        .into_iter()
        .map(CheckedRule::new)
        .collect();
    let mut report = Report::new(policy.source, &policy.name.value, diagnostics);
    structure::check(policy, &mut report);
    variables::check(policy, &computed, compile_expression, &mut report);
    overrides::check(policy, &mut report);
    for rule in &computed {
        report.enter_rule(&rule.rule);
        kinds::check(policy, &rule.rule, &mut report);
        resources::check(&rule.rule, &mut report);
        context::check(&rule.rule, compile_expression, &mut report);
        actions::check(&rule.rule, &mut report);
        labels::check(&rule.rule, &mut report);
        warnings::check_rule(policy, rule, &mut report);
    }
    report.leave_rule();
    warnings::check_policy(policy, &mut report);
}

/// A computed rule and its text as Kyverno would encode it again.
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

/// Which bodies a rule has; an empty one is none (sheet 01, section 2.2).
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

/// Whether `validate` differs from an all-empty one: any field that is neither null
/// nor an empty text. An explicit empty list or map counts.
fn validate_has_content(rule: &Rule) -> bool {
    let validate = rule.tree.get("validate").and_then(Tree::as_map);
    validate
        .unwrap_or_default()
        .iter()
        .any(|member| !member.value.is_null() && member.value.as_str() != Some(""))
}

/// Collects diagnostics, each place and text once, with their subject.
struct Report<'a> {
    source: SourceId,
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
            policy: policy.to_owned(),
            subject: policy.to_owned(),
            first: HashMap::new(),
            seen: HashSet::new(),
            diagnostics,
        }
    }

    /// What follows concerns this rule.
    fn enter_rule(&mut self, rule: &Rule) {
        self.subject = format!("{}/{}", self.policy, rule.name.value);
    }

    /// What follows concerns the policy as a whole.
    fn leave_rule(&mut self) {
        self.subject.clone_from(&self.policy);
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>, hint: &str) {
        self.add(Severity::Error, code, span, message.into(), hint);
    }

    fn warning(&mut self, code: &'static str, span: Span, message: impl Into<String>, hint: &str) {
        self.add(Severity::Warning, code, span, message.into(), hint);
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: Span,
        message: String,
        hint: &str,
    ) {
        // Generated rules keep the places of the written ones, so a problem of both
        // meets itself here, whatever autogen made of the text.
        let first = self.first.entry((code, span));
        let known_elsewhere = *first.or_insert_with(|| self.subject.clone()) != self.subject;
        if known_elsewhere || !self.seen.insert((code, span, message.clone())) {
            return;
        }
        let location = Location {
            source: self.source,
            span,
        };
        let diagnostic = match severity {
            Severity::Error => Diagnostic::error(code, message, location),
            Severity::Warning => Diagnostic::warning(code, message, location),
        };
        self.diagnostics.push(
            diagnostic
                .label("here")
                .hint(hint)
                .subject(self.subject.as_str()),
        );
    }
}
