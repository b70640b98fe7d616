//! Policies of which no rule applied to any object, and what did not fit.
//!
//! Silence must not look like success: a policy for the kind `Deploymnt` passes
//! everything. The kinds that a rule asks for are compared with those of the objects;
//! what its other filters mean is not decided here, only that they select nothing.

use std::collections::BTreeSet;
use std::fmt;

use kpvm::scalar::wildcard;
use kpvm_format::Tables;
use kpvm_format::instruction::Op;
use kpvm_format::table::{Policy, Rule, RuleFlags};

use crate::nearest::misspelled;
use crate::scan::{Object, Scan};

/// Names in a list before the rest is counted.
const NAMES: usize = 5;

/// A policy that no object matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// Number of the policy in the bundle.
    pub policy: usize,
    /// What did not fit.
    pub reason: Reason,
}

/// Why no rule of a policy applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It has no rules in the bundle.
    NoRules,
    /// No object is of a kind that its rules ask for.
    Kinds {
        /// The kinds that the written rules ask for.
        wanted: Vec<String>,
        /// A wanted kind and the kind of an object that is spelled nearly alike.
        nearest: Option<(String, String)>,
    },
    /// It is a namespaced policy, and no object of its kinds stands in its namespace.
    Namespace(String),
    /// There are objects of these kinds, but these filters let none through.
    Filters {
        /// Kinds of such objects.
        kinds: Vec<String>,
        /// What the rules ask for besides kinds, e.g. `namespaces`.
        filters: Vec<&'static str>,
    },
}

/// The policies of a scan that nothing matched, in the order of the bundle.
pub fn find(tables: &Tables<'_>, scan: &Scan) -> Vec<Unmatched> {
    if scan.objects.is_empty() {
        return Vec::new();
    }
    let policies = tables.policies.iter().zip(&scan.policies).enumerate();
    policies
        .filter(|(_, (_, facts))| !facts.applied)
        .map(|(number, (policy, _))| Unmatched {
            policy: number,
            reason: reason(tables, policy, &scan.objects),
        })
        .collect()
}

fn reason(tables: &Tables<'_>, policy: &Policy, objects: &[Object]) -> Reason {
    let rules = Tables::range(tables.rules, policy.rules);
    if rules.is_empty() {
        return Reason::NoRules;
    }
    let kinds = |rule: &Rule| Tables::range(tables.index_kinds, rule.kinds);
    let wanted: BTreeSet<&str> = rules
        .iter()
        .flat_map(|rule| kinds(rule).iter().map(|&kind| tables.text(kind)))
        .collect();
    let fits = |object: &&Object| {
        let kind = object.kind.as_bytes();
        wanted
            .iter()
            .any(|wanted| wildcard::matches(wanted.as_bytes(), kind))
    };
    let of_kind: Vec<&Object> = objects.iter().filter(fits).collect();
    let namespace = tables.text(policy.namespace);
    if of_kind.is_empty() {
        let written = rules
            .iter()
            .filter(|rule| rule.flags & RuleFlags::GENERATED == 0)
            .flat_map(|rule| kinds(rule).iter().map(|&kind| tables.text(kind).to_owned()));
        let wanted: BTreeSet<String> = written.collect();
        let nearest = nearest(&wanted, objects);
        Reason::Kinds {
            wanted: wanted.into_iter().collect(),
            nearest,
        }
    } else if !namespace.is_empty() && of_kind.iter().all(|one| one.namespace != namespace) {
        Reason::Namespace(namespace.to_owned())
    } else {
        let kinds: BTreeSet<String> = of_kind.iter().map(|one| one.kind.clone()).collect();
        Reason::Filters {
            kinds: kinds.into_iter().collect(),
            filters: filters(tables, rules),
        }
    }
}

/// What the match blocks ask for besides kinds, and kinds where group, version or
/// subresource may be what does not fit.
fn filters(tables: &Tables<'_>, rules: &[Rule]) -> Vec<&'static str> {
    let code = rules.iter().filter_map(|rule| {
        let block = tables.blocks.get(rule.match_block.get() as usize)?;
        Some(tables.block_code(block))
    });
    let ops: BTreeSet<u8> = code.flatten().map(|instruction| instruction.op).collect();
    let named = ops.into_iter().filter_map(|op| match Op::decode(op)? {
        Op::MatchOperations => Some("operations"),
        Op::MatchNames => Some("names"),
        Op::MatchNamespaces => Some("namespaces"),
        Op::MatchAnnotations => Some("annotations"),
        Op::MatchSelector => Some("labels"),
        Op::MatchNamespaceSelector => Some("labels of the namespace"),
        Op::MatchRoles | Op::MatchClusterRoles => Some("roles of the user"),
        Op::MatchSubjects => Some("subjects"),
        _ => None,
    });
    let mut named: Vec<&'static str> = named.collect();
    named.dedup();
    if named.is_empty() {
        named.push("API groups, versions or subresources");
    }
    named
}

fn nearest(wanted: &BTreeSet<String>, objects: &[Object]) -> Option<(String, String)> {
    let present: BTreeSet<&str> = objects.iter().map(|object| object.kind.as_str()).collect();
    let near = |wanted: &String| {
        let present = misspelled(wanted, present.iter().copied())?;
        Some((wanted.clone(), present.to_owned()))
    };
    wanted.iter().find_map(near)
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoRules => f.write_str("none of its rules is in the bundle"),
            Reason::Kinds { wanted, nearest } => {
                write!(f, "no resource is of the kind {}", list(wanted, "or"))?;
                match nearest {
                    Some((wanted, present)) => {
                        write!(f, "; is {present} meant instead of {wanted}?")
                    }
                    None => Ok(()),
                }
            }
            Reason::Namespace(namespace) => write!(
                f,
                "it is a policy of the namespace {namespace}, where no resource of its kinds is"
            ),
            Reason::Filters { kinds, filters } => write!(
                f,
                "there are resources of the kind {}, but its {} select none of them",
                list(kinds, "and"),
                list(filters, "and")
            ),
        }
    }
}

fn list<T: AsRef<str>>(names: &[T], last: &str) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(NAMES);
    match (shown.as_slice(), more) {
        (_, 1..) => format!("{} {last} {more} more", shown.join(", ")),
        ([before @ .., end], 0) if !before.is_empty() => {
            format!("{} {last} {end}", before.join(", "))
        }
        (_, 0) => shown.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sentences() {
        let names: Vec<String> = (1..=7).map(|number| number.to_string()).collect();
        for (length, expected) in [
            (0, ""),
            (1, "1"),
            (2, "1 or 2"),
            (3, "1, 2 or 3"),
            (5, "1, 2, 3, 4 or 5"),
            (7, "1, 2, 3, 4, 5 or 2 more"),
        ] {
            assert_eq!(list(&names[..length], "or"), expected);
        }
    }
}
