//! Runs cases in the format of the golden answers (`golden/README.md` of the
//! conformance data): whole policies with the real engine's answer for every rule.

use kpvm::engine::{Bundle, GroupVersionKind, Input, Operation, Request, Session, UserInfo};
use kpvm::tree::Tree;
use kpvm_compiler::compile::{self, Options};
use kpvm_compiler::diagnostic::Severity;
use kpvm_compiler::policy::{autogen, read, validate};
use kpvm_compiler::source::{SourceId, Sources};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One line of a golden file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case<'c> {
    /// Unique name.
    pub id: String,
    mode: Option<String>,
    policy: Value,
    #[serde(borrow)]
    resource: Option<&'c RawValue>,
    #[serde(borrow)]
    old: Option<&'c RawValue>,
    operation: Option<String>,
    user: Option<User>,
    #[serde(default)]
    namespace_labels: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    subresource: String,
    gvk: Option<[String; 3]>,
    exceptions: Option<Vec<Value>>,
    #[serde(default)]
    rules: Vec<ExpectedRule>,
    #[serde(default)]
    panic: bool,
    kind: Option<String>,
    autogen: Option<Vec<Value>>,
    load: Option<Load>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    cluster_roles: Vec<String>,
    #[serde(default)]
    user_info: UserNames,
}

#[derive(Debug, Default, Deserialize)]
struct UserNames {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, Clone)]
struct ExpectedRule {
    rule: String,
    status: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    properties: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Load {
    ok: bool,
    error: Option<String>,
}

/// How a case came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Status and message agree.
    Agree,
    /// Status agrees, something of the message does not.
    MessageDiffers(String),
    /// Status differs.
    StatusDiffers(String),
    /// The case needs something that is not compiled yet.
    Unsupported(String),
}

/// Cases that differ with a reason: `ID: reason`, one a line.
const EXPLAINED: &str = include_str!("../explained.txt");

/// Whether a difference in a case is one that we mean to have (`docs/differences.md`):
/// it is listed, or text of a resource with `{{ }}` in it is data to us where the real
/// engine substitutes it again.
pub fn is_explained(case: &Case<'_>) -> bool {
    let listed = |line: &str| {
        line.split_once(':')
            .is_some_and(|(listed, _)| listed == case.id)
    };
    let objects = [case.resource, case.old];
    let brings_variables = objects
        .into_iter()
        .flatten()
        .any(|object| object.get().contains("{{"));
    brings_variables || EXPLAINED.lines().any(listed)
}

/// Runs one case.
pub fn run(case: &Case<'_>) -> Verdict {
    match case.mode.as_deref() {
        None => run_evaluation(case),
        Some("rules") => run_autogen(case),
        Some("load") => run_load(case),
        Some(other) => Verdict::Unsupported(format!("mode {other}")),
    }
}

fn sources() -> Sources {
    let mut sources = Sources::new();
    sources.add("policy.json", "");
    sources
}

fn run_evaluation(case: &Case<'_>) -> Verdict {
    let options = Options {
        check: false,
        ignore_assert: true,
        ..Options::default()
    };
    let documents = [(SourceId(0), Tree::from(&case.policy))];
    let exceptions: Vec<(SourceId, Tree)> = case
        .exceptions
        .iter()
        .flatten()
        .map(|exception| (SourceId(0), Tree::from(exception)))
        .collect();
    let compilation =
        compile::compile_with_exceptions(&documents, &exceptions, &sources(), &options, Vec::new());
    let Some(bytes) = compilation.bundle else {
        let first = compilation
            .diagnostics
            .iter()
            .find(|diagnostic| diagnostic.severity == Severity::Error);
        return match first {
            Some(first) if first.code == "unsupported" => {
                Verdict::Unsupported(first.message.clone())
            }
            _ if case.panic => Verdict::Agree,
            Some(first) => Verdict::StatusDiffers(format!("refused: {}", first.message)),
            None => Verdict::StatusDiffers("refused without a reason".into()),
        };
    };
    match evaluate(case, bytes) {
        Err(error) => Verdict::StatusDiffers(error),
        // Where the real engine crashes there is no answer; not crashing is enough.
        Ok(_) if case.panic => Verdict::Agree,
        Ok(found) => compare(&case.rules, &found),
    }
}

fn evaluate(case: &Case<'_>, bytes: Vec<u8>) -> Result<Vec<ExpectedRule>, String> {
    let bundle = Bundle::load(bytes).map_err(|error| error.to_string())?;
    let mut session = Session::new(&bundle);
    let json = |raw: Option<&'_ RawValue>| raw.map(|raw| raw.get().to_owned());
    let (object, old_object) = (json(case.resource), json(case.old));
    let strs = |list: &[String]| {
        list.iter()
            .map(|text| text.to_owned())
            .collect::<Vec<String>>()
    };
    let lists = case.user.as_ref().map(|user| {
        (
            strs(&user.user_info.groups),
            strs(&user.roles),
            strs(&user.cluster_roles),
        )
    });
    let (groups, roles, cluster_roles) = lists.unwrap_or_default();
    let as_strs = |list: &'_ [String]| -> Vec<&'static str> {
        // The harness runs each case once; a few leaked names do not matter.
        list.iter()
            .map(|text| &*Box::leak(text.clone().into_boxed_str()))
            .collect()
    };
    let (groups, roles, cluster_roles) =
        (as_strs(&groups), as_strs(&roles), as_strs(&cluster_roles));
    let user = case.user.as_ref().map(|user| UserInfo {
        username: &user.user_info.username,
        groups: &groups,
        roles: &roles,
        cluster_roles: &cluster_roles,
    });
    let labels: Vec<(&str, &str)> = case
        .namespace_labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let request = Request {
        object: object.as_ref().map(|text| Input::Json(text.as_bytes())),
        old_object: old_object.as_ref().map(|text| Input::Json(text.as_bytes())),
        operation: case
            .operation
            .as_deref()
            .and_then(Operation::parse)
            .unwrap_or_default(),
        kind: case
            .gvk
            .as_ref()
            .map(|[group, version, kind]| GroupVersionKind {
                group,
                version,
                kind,
            }),
        subresource: &case.subresource,
        user,
        namespace_labels: &labels,
        ..Request::default()
    };
    let mut answer = |projection: bool| -> Result<Vec<ExpectedRule>, String> {
        session.set_projection(projection);
        let evaluation = session
            .evaluate(&request)
            .map_err(|error| error.to_string())?;
        let responses = evaluation.responses().map(|response| ExpectedRule {
            rule: response.rule().to_owned(),
            status: response.status().to_string(),
            message: response.message().into_owned(),
            properties: response
                .properties()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        });
        Ok(responses.collect())
    };
    let (whole, in_part) = (answer(false)?, answer(true)?);
    if whole != in_part && !answers_differ_by_themselves(case) {
        return Err(format!(
            "with everything read {whole:#?}\nwith a projection {in_part:#?}"
        ));
    }
    Ok(in_part)
}

/// Whether two evaluations need not agree: the policy draws at random or asks the time.
fn answers_differ_by_themselves(case: &Case<'_>) -> bool {
    let policy = case.policy.to_string();
    policy.contains("random(") || policy.contains("time_now")
}

fn compare(expected: &[ExpectedRule], found: &[ExpectedRule]) -> Verdict {
    let statuses = |rules: &[ExpectedRule]| -> Vec<(String, String)> {
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

fn run_autogen(case: &Case<'_>) -> Verdict {
    let mut diagnostics = Vec::new();
    let policy = read::read_policy(&Tree::from(&case.policy), SourceId(0), &mut diagnostics);
    let Some(mut policy) = policy else {
        return Verdict::StatusDiffers(format!("not read: {diagnostics:?}"));
    };
    policy.ignore_assert();
    let rules = autogen::compute_rules(&policy, case.kind.as_deref());
    let found: Vec<Value> = rules
        .iter()
        .map(|rule| without_empty(&rule.tree.to_json()))
        .collect();
    let expected: Vec<Value> = case.autogen.iter().flatten().map(without_empty).collect();
    if expected == found {
        Verdict::Agree
    } else {
        Verdict::StatusDiffers(format!("expected {expected:#?}\nfound {found:#?}"))
    }
}

/// Without empty lists, maps and texts, which Go leaves out when it writes rules.
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
        // Go's numbers in rules are int64 where they are whole.
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

fn run_load(case: &Case<'_>) -> Verdict {
    let Some(expected) = &case.load else {
        return Verdict::Unsupported("no load answer".into());
    };
    let kind = case
        .policy
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or("");
    let tree = Tree::from(&case.policy);
    let diagnostics = if kind == "PolicyException" {
        let mut diagnostics = Vec::new();
        if let Some(exception) = read::read_exception(&tree, SourceId(0), &mut diagnostics) {
            validate::validate_exception(&exception, &mut diagnostics);
        }
        diagnostics
    } else {
        let options = Options {
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
