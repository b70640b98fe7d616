//! Policies of which no rule applied to any object, and what did not fit.
//!
//! Silence must not look like success: a policy for the kind `Deploymnt` passes
//! everything. The kinds that a rule asks for are compared with those of the objects; what its
//! other filters do with an object is what a trace of the engine says.

use std::collections::BTreeSet;
use std::fmt;

use kpvm::engine::Bundle;
use kpvm::host::Host;
use kpvm_format::Tables;
use kpvm_format::instruction::Op;
use kpvm_format::table::{Policy, Rule, RuleFlags};
use kpvm_semantics::resource_kind;
use kpvm_semantics::wildcard;

use crate::evaluation::Evaluator;
use crate::explain::step::StepKind;
use crate::explain::{Explainer, Trace};
use crate::nearest::misspelled;
use crate::resources::{Resource, Resources};
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
        /// Such an object with what does not fit, where that was looked at.
        example: Option<Example>,
    },
}

/// An object that a policy could be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The object: `Pod default/web`.
    pub object: String,
    /// What does not fit, filter by filter.
    pub filters: Vec<String>,
}

/// The policies of a scan that nothing matched, in the order of the bundle.
pub fn find(tables: &Tables<'_>, scan: &Scan<'_>) -> Vec<Unmatched> {
    if scan.objects.is_empty() {
        return Vec::new();
    }
    let policies = tables.policies.iter().enumerate();
    policies
        .filter(|(number, _)| scan.applied.get(*number) == Some(&false))
        .map(|(number, policy)| Unmatched {
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
    let fits = |object: &&Object| wanted.iter().any(|wanted| is_of(&object.kind, wanted));
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
            example: None,
        }
    }
}

/// Whether a kind is one that the index lists: by itself, by a wildcard, or by the name
/// of its resource.
fn is_of(kind: &str, wanted: &str) -> bool {
    wildcard::matches(wanted.as_bytes(), kind.as_bytes()) || resource_kind::plural(kind) == wanted
}

/// Policies for which an example is looked for; each takes an evaluation.
const EXAMPLES: usize = 50;

/// Looks at one object for each policy whose filters let none through.
pub fn explain(
    scan: &mut Scan<'_>,
    bundle: &Bundle<'_>,
    samples: &[Resources],
    evaluator: &mut Evaluator<'_>,
    host: &mut dyn Host,
) {
    let tables = bundle.tables();
    let mut left = EXAMPLES;
    for unmatched in &mut scan.unmatched {
        let Reason::Filters { example, .. } = &mut unmatched.reason else {
            continue;
        };
        let Some(remaining) = left.checked_sub(1) else {
            break;
        };
        left = remaining;
        let policy = tables.policies.get(unmatched.policy);
        *example = policy.and_then(|policy| {
            let (rule, resource, resources) = candidate(&tables, policy, samples)?;
            let explainer = Explainer::of_rule(bundle, rule);
            let traces = explainer.trace(resource, resources, None, evaluator, host);
            let filters = traces.ok()?.iter().flat_map(misfits).collect::<Vec<_>>();
            (!filters.is_empty()).then(|| Example {
                object: title(resource),
                filters,
            })
        });
    }
}

/// A written rule of the policy, by number, and an object of a kind that it asks for, with
/// what it stands in. The first object of each kind is among the samples.
fn candidate<'r>(
    tables: &Tables<'_>,
    policy: &Policy,
    samples: &'r [Resources],
) -> Option<(u32, &'r Resource, &'r Resources)> {
    let rules = Tables::range(tables.rules, policy.rules);
    let mut written = (policy.rules.start.get()..)
        .zip(rules)
        .filter(|(_, rule)| rule.flags & RuleFlags::GENERATED == 0);
    written.find_map(|(number, rule)| {
        let kinds = Tables::range(tables.index_kinds, rule.kinds);
        let fits = |resource: &Resource| {
            let kind = resource.text("kind");
            let mut wanted = kinds.iter().map(|&wanted| tables.text(wanted));
            wanted.any(|wanted| is_of(kind, wanted))
        };
        let all = samples
            .iter()
            .flat_map(|resources| resources.list.iter().map(move |one| (one, resources)));
        let (resource, resources) = all.into_iter().find(|(resource, _)| fits(resource))?;
        Some((number, resource, resources))
    })
}

fn title(resource: &Resource) -> String {
    let (kind, name) = (resource.text("kind"), resource.metadata("name"));
    match resource.metadata("namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// The filters of a trace that keep the rule from the object.
fn misfits(trace: &Trace) -> Vec<String> {
    let mut misfits = Vec::new();
    let stages = trace.steps.iter().flat_map(|stage| &stage.steps);
    for step in stages {
        let keeps_away = match step.step {
            StepKind::Filter => step.held == Some(false),
            StepKind::Exclusion => step.held == Some(true),
            _ => false,
        };
        if keeps_away {
            let [found, expected] = [&step.found, &step.expected].map(|text| text.as_deref());
            let place = step.policy_place.as_ref();
            let place = place.map_or(String::new(), |place| format!(" ({place})"));
            let part = format!("{}.{}", step.part, step.written);
            let (found, expected) = (found.unwrap_or(""), expected.unwrap_or(""));
            misfits.push(format!("{part} asks for {expected}, found {found}{place}"));
        }
    }
    misfits
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
        Op::MatchNames | Op::MatchResourceNames => Some("names"),
        Op::MatchNamespaces => Some("namespaces"),
        Op::MatchAnnotations => Some("annotations"),
        Op::MatchSelector | Op::MatchObjectLabels => Some("labels"),
        Op::MatchNamespaceSelector | Op::MatchNamespaceLabels => Some("labels of the namespace"),
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
            Reason::Filters {
                example: Some(Example { object, filters }),
                ..
            } => write!(f, "e.g. {object} is not selected: {}", filters.join("; ")),
            Reason::Filters { kinds, filters, .. } => write!(
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
