//! `--explain POLICY/RULE`: traces step by step how a rule reached its outcome.
//!
//! Produces one [`Trace`] per resource, as a tree for people or as JSON or YAML. If the
//! rule is written for Pods, the rules generated from it are explained for their kinds.

pub(crate) mod filter;
mod recorder;
pub mod step;
mod text;

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};

use kpvm::engine::{Bundle, Operation};
use kpvm::host::Host;
use kpvm_format::Tables;
use kpvm_format::table::{Place, Rule, RuleFlags};
use serde::Serialize;

use crate::evaluation::{EvaluationError, Evaluator};
use crate::nearest::did_you_mean;
use crate::resources::{Resource, Resources};
use crate::serialised::{write_json, write_yaml};
use crate::text::rule_name;

use recorder::Recorder;
pub use step::{Outcome, Trace};

/// What to explain.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ExplainArguments {
    /// Show how a rule reached its outcome instead of the report: every filter, condition
    /// and pattern leaf with the value found
    #[arg(long, value_name = "POLICY/RULE")]
    pub explain: Option<String>,
    /// Explain it only for this resource: NAME, KIND/NAME or KIND/NAMESPACE/NAME
    #[arg(long, value_name = "RESOURCE", requires = "explain")]
    pub explain_resource: Option<String>,
}

/// Explains one rule of a bundle.
pub struct Explainer<'b> {
    tables: Tables<'b>,
    /// Names of the policy files.
    files: &'b [String],
    rules: BTreeSet<u32>,
}

impl<'b> Explainer<'b> {
    /// Explains the rule with that name, including rules generated from it; `None` if there
    /// is none. The name of a namespaced policy may be prefixed with its namespace.
    pub fn new(bundle: &'b Bundle<'_>, name: &str) -> Option<Self> {
        let tables = bundle.tables();
        let numbered = || (0u32..).zip(tables.rules).zip(tables.rule_places);
        let is_generated = |rule: &Rule| rule.flags & RuleFlags::GENERATED != 0;
        let place = |rule: &Rule, place: &Place| {
            let place = [place.source, place.line, place.column];
            (rule.policy.get(), place.map(|number| number.get()))
        };
        // Locations of rules with that name; rules generated from them have the same ones.
        let written: HashSet<_> = numbered()
            .filter(|((_, rule), _)| !is_generated(rule) && is_named(&tables, rule, name))
            .map(|((_, rule), at)| place(rule, at))
            .collect();
        let rules: BTreeSet<u32> = numbered()
            .filter(|((_, rule), at)| {
                is_named(&tables, rule, name)
                    || is_generated(rule) && written.contains(&place(rule, at))
            })
            .map(|((number, _), _)| number)
            .collect();
        (!rules.is_empty()).then(|| Self {
            tables,
            files: &bundle.meta().sources,
            rules,
        })
    }

    /// Explains one rule by its index.
    pub fn of_rule(bundle: &'b Bundle<'_>, rule: u32) -> Self {
        Self {
            tables: bundle.tables(),
            files: &bundle.meta().sources,
            rules: BTreeSet::from([rule]),
        }
    }

    /// Traces of the rule for a resource: of all rules with a response, otherwise of the
    /// written rule.
    ///
    /// # Errors
    /// If the resource cannot be evaluated.
    pub fn trace(
        &self,
        resource: &Resource,
        resources: &Resources,
        operation: Option<Operation>,
        evaluator: &mut Evaluator<'_>,
        host: &mut dyn Host,
    ) -> Result<Vec<Trace>, EvaluationError> {
        let mut recorder = Recorder::new(self.tables, self.files, &self.rules, resources, resource);
        evaluator.evaluate_observed(resource, operation, host, Some(&mut recorder))?;
        Ok(recorder.finish())
    }
}

fn policy_of<'t>(tables: &Tables<'t>, rule: &Rule) -> (&'t str, &'t str) {
    let policy = tables.policies.get(rule.policy.get() as usize);
    policy.map_or(("", ""), |policy| {
        (tables.text(policy.namespace), tables.text(policy.name))
    })
}

fn is_named(tables: &Tables<'_>, rule: &Rule, name: &str) -> bool {
    let (namespace, policy) = policy_of(tables, rule);
    let behind = |name: &'_ str, first: &str| -> Option<String> {
        let rest = name.strip_prefix(first)?.strip_prefix('/')?;
        Some(rest.to_owned())
    };
    let is_rule = |name: &str| match tables.text(rule.name) {
        "" => name == policy,
        rule => behind(name, policy).as_deref() == Some(rule),
    };
    let is_namespaced = || behind(name, namespace).is_some_and(|name| is_rule(&name));
    is_rule(name) || !namespace.is_empty() && is_namespaced()
}

/// `POLICY/RULE` of every written rule of a bundle.
pub fn rule_names(tables: &Tables<'_>) -> Vec<String> {
    let written = tables.rules.iter();
    let written = written.filter(|rule| rule.flags & RuleFlags::GENERATED == 0);
    let name = |rule: &Rule| rule_name(policy_of(tables, rule).1, tables.text(rule.name));
    written.map(name).collect()
}

/// Error for an unknown rule, with a suggestion.
pub fn unknown_rule<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let mut message = format!("there is no rule {name} to explain: expected POLICY/RULE");
    if let Some(hint) = did_you_mean(name, known) {
        message.push_str("; ");
        message.push_str(&hint);
    }
    message
}

/// Whether the resource is selected.
pub fn is_wanted(resource: &Resource, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else {
        return true;
    };
    let (kind, namespace) = (resource.text("kind"), resource.metadata("namespace"));
    let name = resource.metadata("name");
    let names = [
        name.to_owned(),
        format!("{kind}/{name}"),
        format!("{kind}/{namespace}/{name}"),
    ];
    names.iter().any(|name| name == wanted)
}

/// All traces of a run.
#[derive(Debug, Serialize)]
pub struct Document<'t> {
    /// Version of this format: 1.
    pub version: u32,
    /// The traces, in the order of the resources.
    pub traces: &'t [Trace],
}

/// Output formats of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Writes traces.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(format: Format, traces: &[Trace], out: &mut dyn Write) -> io::Result<()> {
    let document = Document { version: 1, traces };
    match format {
        Format::Text => {
            for (index, trace) in traces.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                text::write(trace, out)?;
            }
            Ok(())
        }
        Format::Json => write_json(&document, out),
        Format::Yaml => write_yaml(&document, out),
    }
}
