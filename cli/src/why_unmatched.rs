//! Why no rule of a policy applied to any object.
//!
//! The kinds of a rule are compared with those of the objects; how its other filters treat
//! an object comes from a trace of the engine.

use std::collections::BTreeSet;

use kpvm::engine::Engine;
use kpvm::host::Host;
use kpvm_format::Tables;
use kpvm_format::criterion::Filter;
use kpvm_format::table::{Policy, Rule, RuleFlags};
use kpvm_semantics::resource_kind;
use kpvm_semantics::wildcard;

use crate::evaluation::{Circumstances, Evaluator};
use crate::explain::step::StepKind;
use crate::explain::{Explainer, Trace};
use crate::nearest::misspelled;
use crate::resources::{Resource, Resources};
use crate::scan::{Object, Scan};
use crate::unmatched::{Example, Reason, Unmatched};

/// The policies of a scan that matched nothing, in the order of the bundle.
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
    let namespace = tables.only_namespace(policy).unwrap_or_default();
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

/// Whether a kind is one that the index lists: by itself, by a wildcard, or by the name of
/// its resource.
fn is_of(kind: &str, wanted: &str) -> bool {
    wildcard::matches(wanted.as_bytes(), kind.as_bytes()) || resource_kind::plural(kind) == wanted
}

/// The number of policies for which an example is searched; each needs an evaluation.
const EXAMPLES: usize = 50;

/// Finds an example object for each policy whose filters let none through. Each needs an
/// evaluation.
pub fn explain(
    scan: &mut Scan<'_>,
    engine: &Engine,
    samples: &[Resources],
    circumstances: &Circumstances,
    host: &mut dyn Host,
) {
    let bundle = engine.bundle();
    let tables = bundle.tables();
    let mut evaluator = Evaluator::new(engine, circumstances);
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
            let traces = explainer.trace(resource, resources, None, &mut evaluator, host);
            let filters = traces.ok()?.iter().flat_map(misfits).collect::<Vec<_>>();
            (!filters.is_empty()).then(|| Example {
                object: title(resource),
                filters,
            })
        });
    }
}

/// A written rule of the policy, by number, and an object of one of its kinds, with its
/// surroundings. The first object of each kind is among the samples.
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

/// The filters of a trace that exclude the object.
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

/// What the match blocks require besides kinds, and kinds if group, version or subresource
/// may be what does not match.
fn filters(tables: &Tables<'_>, rules: &[Rule]) -> Vec<&'static str> {
    let named: BTreeSet<(u8, &'static str)> = rules
        .iter()
        .flat_map(|rule| tables.filters(rule))
        .filter_map(|filter| match filter {
            Filter::Operations(_) => Some((0, "operations")),
            Filter::Names(_) => Some((1, "names")),
            Filter::Namespaces(_) => Some((2, "namespaces")),
            Filter::Annotations(_) => Some((3, "annotations")),
            Filter::Labels(_) => Some((4, "labels")),
            Filter::NamespaceLabels(_) => Some((5, "labels of the namespace")),
            Filter::Roles(_) | Filter::ClusterRoles(_) => Some((6, "roles of the user")),
            Filter::Subjects(_) => Some((7, "subjects")),
            Filter::Kinds(_)
            | Filter::ApiGroups(_)
            | Filter::ApiVersions(_)
            | Filter::Resources(_)
            | Filter::Scope(_) => None,
        })
        .collect();
    let mut named: Vec<&'static str> = named.into_iter().map(|(_, name)| name).collect();
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
