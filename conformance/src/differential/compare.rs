//! Comparison of two answers to a case.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::oracle::OracleAnswer;
use crate::case::{Answer, RuleAnswer};

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// Same rules, statuses, messages and properties.
    Agree,
    /// Not a difference, for the reason named.
    Set(Aside),
    /// Something differs.
    Differ(Difference),
}

/// Why answers are not compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aside {
    /// Kyverno panics; kpvm must not.
    Panic,
    /// Kyverno cannot decode the case.
    Undecodable,
    /// Kyverno's answer varies with Go's random map order, and ours is one of its answers.
    Chance,
    /// kpvm reports that it does not support the policy.
    Unsupported(String),
    /// A kind of difference that `docs/differences.md` lists.
    Listed(&'static str),
}

impl fmt::Display for Aside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic => write!(formatter, "Kyverno panics"),
            Self::Undecodable => write!(formatter, "Kyverno cannot decode the case"),
            Self::Chance => write!(formatter, "Kyverno's answer varies, ours is one of them"),
            Self::Unsupported(what) => write!(formatter, "unsupported: {what}"),
            Self::Listed(what) => write!(formatter, "listed: {what}"),
        }
    }
}

/// The first rule response that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Whether status or presence of a response differs, not only its message.
    pub in_status: bool,
    /// Kyverno's status; `none` without a response.
    pub theirs: String,
    /// Status of kpvm; `refused` if it does not compile or evaluate the case.
    pub ours: String,
    /// Words that occur in only one of the messages and not in the case. They identify the
    /// difference while the case is shrunk.
    pub words: BTreeSet<String>,
}

/// Compares two answers. Only a repeated case shows whether Kyverno's answer depends on
/// chance. The case itself is needed to recognise listed kinds of differences.
pub fn compare(case: &Value, theirs: &OracleAnswer, ours: &Answer) -> Comparison {
    if let Answer::Unsupported(what) = ours {
        return Comparison::Set(Aside::Unsupported(what.clone()));
    }
    if !theirs.panic.is_empty() {
        return Comparison::Set(Aside::Panic);
    }
    if !theirs.error.is_empty() {
        return Comparison::Set(Aside::Undecodable);
    }
    let found = match ours {
        Answer::Rules(found) => found.as_slice(),
        _ => return Comparison::Differ(refused(theirs)),
    };
    match first_difference(case, theirs.rules(), found) {
        None => Comparison::Agree,
        Some(_) if in_any_order(theirs.rules()) == in_any_order(found) => {
            Comparison::Set(Aside::Chance)
        }
        Some(_) if theirs.answers().any(|answer| answer == found) => Comparison::Set(Aside::Chance),
        Some(difference) => match listed(case, theirs.rules(), found) {
            Some(reason) => Comparison::Set(Aside::Listed(reason)),
            None => Comparison::Differ(difference),
        },
    }
}

/// Sorts the checks that `podSecurity` lists in messages: after exclusions, Kyverno's order
/// is random (docs/spec/pod-security.md §7.6).
pub(crate) fn in_any_order(rules: &[RuleAnswer]) -> Vec<RuleAnswer> {
    let mut rules = rules.to_vec();
    for rule in &mut rules {
        let mut parts = rule.message.split("(Forbidden reason: ");
        let start = parts.next().unwrap_or_default().to_owned();
        let mut checks: Vec<&str> = parts.collect();
        checks.sort_unstable();
        rule.message = start + &checks.join("(");
    }
    rules
}

/// The kind of difference in `docs/differences.md` that explains this one.
pub(crate) fn listed(
    case: &Value,
    theirs: &[RuleAnswer],
    ours: &[RuleAnswer],
) -> Option<&'static str> {
    let has =
        |rules: &[RuleAnswer], text: &str| rules.iter().any(|rule| rule.message.contains(text));
    let text = || case["policy"].to_string();
    if has(theirs, "failed to resolve \u{fffd}") && !has(ours, "failed to resolve \u{fffd}") {
        Some("a variable behind a character that a value brought and that is not ASCII")
    } else if has(ours, "it is data, no part of an expression") {
        Some("a variable inside a variable")
    } else if has(theirs, "Syntax error: ") && has(ours, "Syntax error: ") {
        Some("CEL: what the parser expected, and its errors behind the first")
    } else if has(ours, "is not plain: expected no") {
        Some("paths of API calls with `..`, `//`, `;` or encoded separators")
    } else if has(theirs, "context entry") && has_nested_variable(&text())
        || has(theirs, " to variable <nil>") && has_nested_variable(&text())
    {
        Some("a context entry that only the value of an inner variable mentions")
    } else if has_value_for_entry(case) {
        Some("a value given for a context entry that the policy computes")
    } else if escapes_in_context(&case["policy"]) {
        Some("escaped braces in the value of a context entry")
    } else if case["operation"] == "UPDATE"
        && (text().contains(r"\\$(") || text().contains(r"\\{{"))
    {
        Some("escapes in a pattern that is matched with the old object too")
    } else if ["metadata", "labels", "annotations"]
        .iter()
        .any(|key| has_computed(&case["policy"], key))
    {
        Some("labels or annotations of a pattern that a variable gives as a whole")
    } else {
        None
    }
}

/// Whether a variable contains another variable.
fn has_nested_variable(text: &str) -> bool {
    text.split("{{")
        .skip(1)
        .take(text.matches("{{").count().saturating_sub(1))
        .any(|inside| !inside.contains("}}"))
}

/// Whether the host provides a value with the name of a context entry.
fn has_value_for_entry(case: &Value) -> bool {
    fn has_entry(value: &Value, values: &Value) -> bool {
        match value {
            Value::Object(members) => members.iter().any(|(key, value)| {
                let entries = value.as_array().filter(|_| key == "context");
                let mut names = entries.into_iter().flatten().map(|entry| &entry["name"]);
                names.any(|name| name.as_str().is_some_and(|name| values.get(name).is_some()))
                    || has_entry(value, values)
            }),
            Value::Array(items) => items.iter().any(|item| has_entry(item, values)),
            _ => false,
        }
    }
    has_entry(&case["policy"], &case["mocks"]["values"])
}

/// Whether an entry of any `context` contains `\{{`.
fn escapes_in_context(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| {
            (key == "context" && value.to_string().contains(r"\\{{")) || escapes_in_context(value)
        }),
        Value::Array(items) => items.iter().any(escapes_in_context),
        _ => false,
    }
}

/// Whether a value under the key, anchored or not, is a variable or a reference.
fn has_computed(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| {
            let is_key = key.trim_matches(|letter: char| !letter.is_ascii_alphabetic()) == wanted;
            let text = value.as_str().unwrap_or_default();
            (is_key && (text.contains("{{") || text.contains("$("))) || has_computed(value, wanted)
        }),
        Value::Array(items) => items.iter().any(|item| has_computed(item, wanted)),
        _ => false,
    }
}

fn refused(theirs: &OracleAnswer) -> Difference {
    Difference {
        in_status: true,
        theirs: status(theirs.rules().first()),
        ours: "refused".into(),
        words: BTreeSet::new(),
    }
}

fn status(rule: Option<&RuleAnswer>) -> String {
    rule.map_or_else(|| "none".into(), |rule| rule.status.clone())
}

/// The first difference in status or, if there is none, in a message.
fn first_difference(
    case: &Value,
    theirs: &[RuleAnswer],
    ours: &[RuleAnswer],
) -> Option<Difference> {
    let length = theirs.len().max(ours.len());
    let pairs = || (0..length).map(|index| (theirs.get(index), ours.get(index)));
    let is_same_status = |(theirs, ours): &(Option<&RuleAnswer>, Option<&RuleAnswer>)| {
        theirs.map(|rule| (&rule.rule, &rule.status)) == ours.map(|rule| (&rule.rule, &rule.status))
    };
    let difference = |in_status| {
        move |(theirs, ours)| Difference {
            in_status,
            theirs: status(theirs),
            ours: status(ours),
            words: words_of_one(case, theirs, ours),
        }
    };
    pairs()
        .find(|pair| !is_same_status(pair))
        .map(difference(true))
        .or_else(|| {
            pairs()
                .find(|(theirs, ours)| theirs != ours)
                .map(difference(false))
        })
}

fn words_of_one(
    case: &Value,
    theirs: Option<&RuleAnswer>,
    ours: Option<&RuleAnswer>,
) -> BTreeSet<String> {
    let words = |rule: Option<&RuleAnswer>| -> BTreeSet<String> {
        let message = rule.map_or("", |rule| &rule.message);
        let words = message.split(|character: char| !character.is_ascii_alphabetic());
        words
            .filter(|word| word.len() > 2)
            .map(str::to_owned)
            .collect()
    };
    let of_case = case.to_string();
    let (theirs, ours) = (words(theirs), words(ours));
    let one = theirs.symmetric_difference(&ours);
    one.filter(|word| !of_case.contains(*word))
        .cloned()
        .collect()
}
