//! A table of CEL expressions with Kyverno's answers, in `validate.cel` and in a
//! ValidatingPolicy: every function with every type of argument and edge values
//! ([`generate`]), answered by `benches/peers/kyverno/cel`.

pub mod generate;
mod values;

use std::collections::BTreeSet;
use std::{io, thread};

use kpvm::engine::{Bundle, Engine, Input, Request, Session};
use kpvm_compiler::compile::{self, Options};
use kpvm_compiler::diagnostic::Severity;
use kpvm_compiler::source::{SourceId, Sources};
use kpvm_syntax::tree::Tree;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The resource of every expression.
pub const OBJECT: &str = include_str!("cel_table/object.json");

/// Answer of one kind of policy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Outcome {
    /// `pass`, `fail`, `error`, `refused` (the policy does not compile) or `panic`.
    pub status: String,
    /// Message; of a pass and of a refused policy not compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Answers of both kinds of policies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Outcomes {
    /// Of `validate.cel`.
    pub rule: Outcome,
    /// Of a ValidatingPolicy.
    pub policy: Outcome,
}

/// One expression with Kyverno's answers.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Row {
    /// The validation.
    pub expression: String,
    /// Kyverno's answers.
    #[serde(flatten)]
    pub outcomes: Outcomes,
}

/// A difference between two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The status differs.
    Status,
    /// Only the message differs.
    Message,
}

impl Outcome {
    /// How another answer differs from this one of Kyverno.
    pub fn difference(&self, ours: &Outcome) -> Option<Difference> {
        match self.status.as_str() {
            // Kyverno crashes here, so there is no answer: it is enough not to crash.
            "panic" => None,
            _ if self.status != ours.status => Some(Difference::Status),
            "pass" | "refused" => None,
            _ => (self.message != ours.message).then_some(Difference::Message),
        }
    }
}

/// Differences that are known, one `KIND EXPRESSION` per line.
const LISTED: &str = include_str!("cel_table/listed.txt");

/// A difference of the answers to an expression.
#[derive(Debug, Clone)]
pub struct Found<'r> {
    /// Whether the status differs or only the message.
    pub difference: Difference,
    /// `rule` or `policy`.
    pub kind: &'static str,
    /// The expression with Kyverno's answers.
    pub row: &'r Row,
    /// Kyverno's answer.
    pub theirs: &'r Outcome,
    /// Answer of kpvm.
    pub ours: Outcome,
}

impl Found<'_> {
    /// Its line in the list of known differences.
    pub fn line(&self) -> String {
        let difference = format!("{:?}", self.difference).to_lowercase();
        let expression = self.row.expression.escape_debug();
        format!("{difference} {} {expression}", self.kind)
    }
}

/// Recorded rows.
///
/// # Errors
/// When the file cannot be read.
pub fn recorded() -> io::Result<Vec<Row>> {
    read_rows(&kpvm_golden::read("cel/table.ndjson")?)
}

/// Rows of a text.
///
/// # Errors
/// When a line is no row.
pub fn read_rows(text: &str) -> io::Result<Vec<Row>> {
    let rows = text.lines().map(serde_json::from_str);
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Compares kpvm with recorded answers, on every core.
pub fn differences(rows: &[Row]) -> Vec<Found<'_>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let chunk = rows.len().div_ceil(cores).max(1);
    thread::scope(|scope| {
        let threads: Vec<_> = rows
            .chunks(chunk)
            .map(|rows| scope.spawn(|| rows.iter().flat_map(compare).collect::<Vec<_>>()))
            .collect();
        let found = threads.into_iter().map(|thread| thread.join());
        found.flat_map(Result::unwrap_or_default).collect()
    })
}

fn compare(row: &Row) -> Vec<Found<'_>> {
    let Outcomes { rule, policy } = answer(&row.expression);
    [
        ("rule", &row.outcomes.rule, rule),
        ("policy", &row.outcomes.policy, policy),
    ]
    .into_iter()
    .filter_map(|(kind, theirs, ours)| {
        Some(Found {
            difference: theirs.difference(&ours)?,
            kind,
            row,
            theirs,
            ours,
        })
    })
    .collect()
}

/// Lines of differences that are not listed, and listed ones that are none.
pub fn violations(found: &[Found<'_>]) -> Vec<String> {
    let found: BTreeSet<String> = found.iter().map(Found::line).collect();
    let lines = LISTED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let listed: BTreeSet<String> = lines.map(str::to_owned).collect();
    let new = found
        .difference(&listed)
        .map(|line| format!("not listed: {line}"));
    let gone = listed
        .difference(&found)
        .map(|line| format!("no difference: {line}"));
    new.chain(gone).collect()
}

/// Answers of kpvm.
pub fn answer(expression: &str) -> Outcomes {
    let validations = json!([{ "expression": expression }]);
    let rule = json!({
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"rules": [{
            "name": "r",
            "match": {"any": [{"resources": {"kinds": ["*"]}}]},
            "validate": {"cel": {"expressions": validations}},
        }]},
    });
    let policy = json!({
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "autogen": {"podControllers": {"controllers": []}},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }]},
            "validations": validations,
        },
    });
    Outcomes {
        rule: evaluate(&rule),
        policy: evaluate(&policy),
    }
}

fn evaluate(policy: &Value) -> Outcome {
    let answer = |status: &str, message: String| Outcome {
        status: status.to_owned(),
        message,
    };
    let mut sources = Sources::new();
    sources.add("policy.json", "");
    let options = Options {
        check: false,
        ..Options::default()
    };
    let documents = [(SourceId(0), Tree::from(policy))];
    let compilation =
        compile::compile_with_exceptions(&documents, &[], &sources, &options, Vec::new());
    let Some(bytes) = compilation.bundle else {
        let mut errors = compilation.diagnostics.iter();
        let first = errors.find(|diagnostic| diagnostic.severity == Severity::Error);
        let message = first.map(|first| first.message.clone()).unwrap_or_default();
        return answer("refused", message);
    };
    let bundle = match Bundle::load(bytes) {
        Ok(bundle) => bundle,
        Err(error) => return answer("not loaded", error.to_string()),
    };
    let engine = Engine::new(bundle);
    let mut session = Session::new(&engine);
    let request = Request {
        object: Some(Input::Json(OBJECT.as_bytes())),
        ..Request::default()
    };
    match session.evaluate(&request) {
        Err(error) => answer("not evaluated", error.to_string()),
        Ok(evaluation) => match evaluation.responses().next() {
            None => answer("no response", String::new()),
            Some(response) if response.status().to_string() == "pass" => {
                answer("pass", String::new())
            }
            Some(response) => answer(
                &response.status().to_string(),
                response.message().into_owned(),
            ),
        },
    }
}
