//! What differs between two answers to a case.

use std::fmt;

use super::oracle::OracleAnswer;
use crate::case::{Answer, RuleAnswer};

/// How the answers to a case compare.
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
    /// Kyverno panics; we only must not.
    Panic,
    /// Kyverno cannot decode the case.
    Undecodable,
    /// Kyverno's answer varies with Go's random map order, and ours is one of its answers.
    Chance,
    /// kpvm does not support what the policy needs, and says so.
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
    /// Status that Kyverno gives; `none` without a response.
    pub theirs: String,
    /// Status that kpvm gives; `refused` where it compiles or evaluates nothing.
    pub ours: String,
}

/// Compares; whether an answer of Kyverno's is chance shows only in a repeated case.
pub fn compare(theirs: &OracleAnswer, ours: &Answer) -> Comparison {
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
    match first_difference(theirs.rules(), found) {
        None => Comparison::Agree,
        Some(_) if theirs.answers().any(|answer| answer == found) => Comparison::Set(Aside::Chance),
        Some(difference) => Comparison::Differ(difference),
    }
}

fn refused(theirs: &OracleAnswer) -> Difference {
    Difference {
        in_status: true,
        theirs: status(theirs.rules().first()),
        ours: "refused".into(),
    }
}

fn status(rule: Option<&RuleAnswer>) -> String {
    rule.map_or_else(|| "none".into(), |rule| rule.status.clone())
}

/// A difference in status goes before one in a message.
fn first_difference(theirs: &[RuleAnswer], ours: &[RuleAnswer]) -> Option<Difference> {
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
