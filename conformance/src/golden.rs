//! Runs cases in the format of the golden answers (`conformance/data/README.md`): whole
//! policies with the real engine's answer for every rule.

use kpvm_compiler::compile::{self, Options};
use kpvm_compiler::diagnostic::Severity;
use kpvm_compiler::policy::{autogen, read, validate};
use kpvm_compiler::source::SourceId;
use kpvm_syntax::tree::Tree;
use serde::Deserialize;
use serde_json::Value;

use crate::case::{Answer, Case, RuleAnswer, answer};

/// One line of a golden file: a case and the real engine's answer.
#[derive(Debug)]
pub struct Golden<'c> {
    /// The input.
    pub case: Case<'c>,
    expected: Expected,
}

#[derive(Debug, Deserialize)]
struct Expected {
    mode: Option<String>,
    #[serde(default)]
    rules: Vec<RuleAnswer>,
    #[serde(default)]
    panic: bool,
    kind: Option<String>,
    autogen: Option<Vec<Value>>,
    load: Option<Load>,
}

#[derive(Debug, Deserialize)]
struct Load {
    ok: bool,
    error: Option<String>,
}

impl<'c> Golden<'c> {
    /// Parses a line.
    ///
    /// # Errors
    /// When the line does not have this form.
    pub fn parse(line: &'c str) -> serde_json::Result<Self> {
        Ok(Self {
            case: serde_json::from_str(line)?,
            expected: serde_json::from_str(line)?,
        })
    }
}

impl Golden<'_> {
    /// The expected rule responses; none if the line is about reading or autogen.
    pub(crate) fn expected_rules(&self) -> Option<&[RuleAnswer]> {
        match self.expected.mode {
            None => Some(&self.expected.rules),
            Some(_) => None,
        }
    }

    /// Whether Kyverno crashes.
    pub(crate) fn panics(&self) -> bool {
        self.expected.panic
    }
}

/// Outcome of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Status and message agree.
    Agree,
    /// Status agrees, message or properties do not.
    MessageDiffers(String),
    /// Status differs.
    StatusDiffers(String),
    /// The case needs something that is not supported yet.
    Unsupported(String),
}

/// Accepted differences, one `ID: reason` per line.
const EXPLAINED: &str = include_str!("../explained.txt");

/// Whether a difference is intended (`docs/differences.md`): the case is listed, or its
/// resource contains `{{ }}`, which kpvm treats as data and Kyverno substitutes again.
pub fn is_explained(golden: &Golden<'_>) -> bool {
    let listed = |line: &str| {
        line.split_once(':')
            .is_some_and(|(listed, _)| listed == golden.case.id)
    };
    let objects = [golden.case.resource, golden.case.old];
    let brings_variables = objects
        .into_iter()
        .flatten()
        .any(|object| object.get().contains("{{"));
    brings_variables || EXPLAINED.lines().any(listed)
}

/// Runs one case.
pub fn run(golden: &Golden<'_>) -> Verdict {
    match golden.expected.mode.as_deref() {
        None => run_evaluation(golden),
        Some("rules") => run_autogen(golden),
        Some("load") => run_load(golden),
        Some(other) => Verdict::Unsupported(format!("mode {other}")),
    }
}

fn run_evaluation(golden: &Golden<'_>) -> Verdict {
    match answer(&golden.case) {
        Answer::Unsupported(reason) => Verdict::Unsupported(reason),
        // Kyverno crashes here, so there is no answer: it is enough not to crash.
        _ if golden.expected.panic => Verdict::Agree,
        Answer::Refused(reason) => Verdict::StatusDiffers(format!("refused: {reason}")),
        Answer::Rules(found) => compare(&golden.expected.rules, &found),
    }
}

fn compare(expected: &[RuleAnswer], found: &[RuleAnswer]) -> Verdict {
    let statuses = |rules: &[RuleAnswer]| -> Vec<(String, String)> {
        rules
            .iter()
            .map(|rule| (rule.rule.clone(), rule.status.clone()))
            .collect()
    };
    let difference = || format!("expected {expected:#?}\nfound {found:#?}");
    if statuses(expected) != statuses(found) {
        Verdict::StatusDiffers(difference())
    } else if expected != found {
        Verdict::MessageDiffers(difference())
    } else {
        Verdict::Agree
    }
}

fn run_autogen(golden: &Golden<'_>) -> Verdict {
    let mut diagnostics = Vec::new();
    let tree = Tree::from(&golden.case.policy);
    let Some(mut policy) = read::read_policy(&tree, SourceId(0), &mut diagnostics) else {
        return Verdict::StatusDiffers(format!("not read: {diagnostics:?}"));
    };
    policy.ignore_assert();
    let rules = autogen::compute_rules(&policy, golden.expected.kind.as_deref());
    let found: Vec<Value> = rules
        .iter()
        .map(|rule| without_empty(&rule.tree.to_json()))
        .collect();
    let expected: Vec<Value> = golden
        .expected
        .autogen
        .iter()
        .flatten()
        .map(without_empty)
        .collect();
    if expected == found {
        Verdict::Agree
    } else {
        Verdict::StatusDiffers(format!("expected {expected:#?}\nfound {found:#?}"))
    }
}

/// Removes empty lists, maps and texts, which Go omits when it serialises rules.
fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    match value {
        Value::Array(items) => items.iter().map(without_empty).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), without_empty(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        // Whole numbers in Go's rules are int64.
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

fn run_load(golden: &Golden<'_>) -> Verdict {
    let Some(expected) = &golden.expected.load else {
        return Verdict::Unsupported("no load answer".into());
    };
    let kind = golden
        .case
        .policy
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or("");
    let tree = Tree::from(&golden.case.policy);
    let diagnostics = if kind == "PolicyException" {
        let mut diagnostics = Vec::new();
        if let Some(exception) = read::read_exception(&tree, SourceId(0), &mut diagnostics) {
            validate::validate_exception(&exception, &mut diagnostics);
        }
        diagnostics
    } else {
        // The recorded answers are those of Kyverno's check alone.
        let options = Options {
            check_schema: false,
            ignore_assert: true,
            ..Options::default()
        };
        compile::check_documents(&[(SourceId(0), tree)], &options)
    };
    let error = diagnostics
        .iter()
        .find(|diagnostic| diagnostic.severity == Severity::Error);
    match (expected.ok, error) {
        (true, None) | (false, Some(_)) => Verdict::Agree,
        (true, Some(error)) => Verdict::StatusDiffers(format!(
            "expected to be accepted, refused: {} ({})",
            error.message, error.code
        )),
        (false, None) => Verdict::StatusDiffers(format!(
            "expected to be refused: {}",
            expected.error.as_deref().unwrap_or("no reason given")
        )),
    }
}
