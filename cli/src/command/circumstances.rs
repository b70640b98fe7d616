//! Inputs of an evaluation besides policies and resources: values, user, operation, labels
//! of namespaces.
//!
//! Turns options, and the files they name, into [`Circumstances`]. Problems are reported;
//! nothing is evaluated with incomplete inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use kpvm::engine::{Bundle, Operation};
use kpvm_compiler::source::Sources;
use kpvm_format::Tables;

use crate::diagnostics::{self, show_error, show_warning};
use crate::evaluation::Circumstances;
use crate::policies::Policies;
use crate::problem::Problem;
use crate::resources::Resources;
use crate::stream::Streams;
use crate::text::clean;
use crate::user_info::read_user;
use crate::values::{Labels, Values, namespace_object};

/// Inputs besides policies and resources.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct CircumstanceArguments {
    /// Variables by policy, resource and rule: a file of kind Values
    #[arg(short = 'f', long, value_name = "FILE")]
    pub values_file: Option<PathBuf>,
    /// Variables for all policies and resources
    #[arg(short, long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    pub set: Vec<String>,
    /// The user that makes the request: a file of kind UserInfo
    #[arg(short, long, value_name = "FILE")]
    pub userinfo: Option<PathBuf>,
    /// Operation on the resources, unless the values say otherwise; UPDATE uses them as
    /// both new and old objects, DELETE as old ones
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    pub operation: OperationName,
    /// Labels of a namespace; they take precedence over those of the values; repeat for
    /// each namespace
    #[arg(long, value_name = "NAMESPACE=KEY=VALUE,...", value_parser = parse_labels)]
    pub namespace_labels: Vec<NamespaceLabels>,
}

/// Operation on the resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum OperationName {
    /// The resources are created
    #[default]
    Create,
    /// The resources replace themselves
    Update,
    /// The resources are deleted
    Delete,
}

/// Labels of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceLabels {
    namespace: String,
    labels: Labels,
}

/// `NAMESPACE=KEY=VALUE,KEY=VALUE`
fn parse_labels(text: &str) -> Result<NamespaceLabels, String> {
    let expected = || "expected NAMESPACE=KEY=VALUE,KEY=VALUE".to_owned();
    let (namespace, labels) = text.split_once('=').ok_or_else(expected)?;
    let labels: Option<Vec<_>> = labels
        .split(',')
        .map(|label| {
            label
                .split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .collect();
    let labels = labels.ok_or_else(expected)?;
    if namespace.is_empty() || labels.iter().any(|(key, _)| key.is_empty()) {
        return Err(expected());
    }
    Ok(NamespaceLabels {
        namespace: namespace.to_owned(),
        labels,
    })
}

/// Inputs read from the options, with the texts of their files.
#[derive(Debug, Default)]
pub struct ReadCircumstances {
    /// The inputs.
    pub circumstances: Circumstances,
    sources: Sources,
}

impl CircumstanceArguments {
    /// Reads all files. Reports problems and returns `None` if an input cannot be used.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn read(&self, streams: &mut Streams<'_>) -> io::Result<Option<ReadCircumstances>> {
        let mut read = ReadCircumstances::default();
        let is_good = self.read_user(&mut read, streams)?
            & self.read_values(&mut read, streams)?
            & self.read_set(&mut read, streams)?;
        if !is_good {
            return Ok(None);
        }
        let circumstances = &mut read.circumstances;
        circumstances.operation = match self.operation {
            OperationName::Create => Operation::Create,
            OperationName::Update => Operation::Update,
            OperationName::Delete => Operation::Delete,
        };
        circumstances.subresources = circumstances.values.subresources().to_vec();
        circumstances.namespaces = circumstances.values.namespaces().clone();
        circumstances.namespaces.extend(self.namespaces());
        circumstances.namespace_objects = circumstances.values.namespace_objects().clone();
        for (name, labels) in self.namespaces() {
            let object = namespace_object(&name, &labels);
            circumstances.namespace_objects.insert(name, object);
        }
        Ok(Some(read))
    }

    fn namespaces(&self) -> BTreeMap<String, Labels> {
        let mut namespaces: BTreeMap<String, Labels> = BTreeMap::new();
        for entry in &self.namespace_labels {
            let labels = namespaces.entry(entry.namespace.clone()).or_default();
            labels.extend(entry.labels.iter().cloned());
        }
        namespaces
    }

    fn read_user(
        &self,
        read: &mut ReadCircumstances,
        streams: &mut Streams<'_>,
    ) -> io::Result<bool> {
        let Some(path) = &self.userinfo else {
            return Ok(true);
        };
        match read_user(path, &mut read.sources) {
            Ok(user) => {
                if !user.is_typed {
                    let name = path.display().to_string();
                    let message = format!("{} lacks apiVersion or kind", clean(&name));
                    show_warning(&message, streams.err)?;
                }
                read.circumstances.user = Some(user);
                Ok(true)
            }
            Err(problems) => show_problems(&problems, &read.sources, streams),
        }
    }

    fn read_values(
        &self,
        read: &mut ReadCircumstances,
        streams: &mut Streams<'_>,
    ) -> io::Result<bool> {
        let Some(path) = &self.values_file else {
            return Ok(true);
        };
        match Values::read_file(path, &mut read.sources) {
            Ok(values) => {
                read.circumstances.values = values;
                Ok(true)
            }
            Err(problems) => show_problems(&problems, &read.sources, streams),
        }
    }

    /// docs/spec/cli.md §7.9. Ignores what Kyverno ignores, but with a warning.
    fn read_set(
        &self,
        read: &mut ReadCircumstances,
        streams: &mut Streams<'_>,
    ) -> io::Result<bool> {
        if self.set.is_empty() {
            return Ok(true);
        }
        if self.values_file.is_some() {
            let message = "pass the values either using set flag or values_file flag";
            show_error(message, streams.err)?;
            return Ok(false);
        }
        let mut known = BTreeSet::new();
        for item in &self.set {
            let (key, value) = match parse_assignment(item) {
                Ok((key, _)) if !known.insert(key) => {
                    ignore_assignment(item, "the first value of a key holds", streams)?;
                    continue;
                }
                Ok(assignment) => assignment,
                Err(reason) => {
                    ignore_assignment(item, reason, streams)?;
                    continue;
                }
            };
            if let Err(error) = read.circumstances.values.set(key, value) {
                show_error(&clean(&error), streams.err)?;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Key and value, or the reason why Kyverno ignores the assignment.
fn parse_assignment(item: &str) -> Result<(&str, &str), &'static str> {
    match item.trim().split_once('=') {
        None => Err("expected KEY=VALUE"),
        Some((_, value)) if value.contains('=') => {
            Err("expected KEY=VALUE, found more than one `=`; use a values file")
        }
        Some((key, value)) if key.is_empty() || value.is_empty() => {
            Err("expected KEY=VALUE, found an empty key or value")
        }
        Some((key, _)) if key.contains("request.object.") => {
            Err("keys below request.object cannot be set; use a values file")
        }
        Some(assignment) => Ok(assignment),
    }
}

fn ignore_assignment(item: &str, reason: &str, streams: &mut Streams<'_>) -> io::Result<()> {
    let message = format!("--set {} is ignored: {reason}", clean(item));
    show_warning(&message, streams.err)
}

fn show_problems(
    problems: &[Problem],
    sources: &Sources,
    streams: &mut Streams<'_>,
) -> io::Result<bool> {
    for problem in problems {
        problem.show(sources, streams)?;
    }
    Ok(false)
}

impl ReadCircumstances {
    /// Warns of values for unknown policies, rules or resources.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn show_unused(
        &self,
        bundle: &Bundle<'_>,
        policies: Option<&Policies>,
        resources: &Resources,
        streams: &mut Streams<'_>,
    ) -> io::Result<()> {
        let tables = bundle.tables();
        let mut rules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for policy in tables.policies {
            let own = Tables::range(tables.rules, policy.rules).iter();
            let names = own.map(|rule| tables.text(rule.name).to_owned());
            let entry = rules.entry(tables.text(policy.name)).or_default();
            entry.extend(names);
        }
        let omitted = &bundle.meta().omitted;
        for rule in omitted {
            let entry = rules.entry(&rule.policy).or_default();
            entry.push(rule.rule.clone());
        }
        let known = rules
            .iter()
            .map(|(policy, rules)| (*policy, Some(&rules[..])));
        let mut known: BTreeMap<&str, Option<&[String]>> = known.collect();
        // The names of their rules are unknown.
        let not_evaluated = policies.into_iter().flat_map(Policies::not_evaluated);
        known.extend(not_evaluated.map(|policy| (policy, None)));
        let all = resources.list.iter();
        let names: BTreeSet<&str> = all.map(|resource| resource.metadata("name")).collect();
        let unused = self.circumstances.values.unused(&known, &names);
        for warning in &unused {
            diagnostics::show(warning, &self.sources, streams.err)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_labels() {
        let labels = parse_labels("prod=env=live,team=a=b,x=").unwrap();
        assert_eq!(labels.namespace, "prod");
        let pairs: Vec<_> = labels
            .labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("env", "live"), ("team", "a=b"), ("x", "")]);
        for bad in ["", "prod", "prod=", "prod=env", "=env=live", "prod==live"] {
            assert!(parse_labels(bad).is_err(), "{bad}");
        }
    }

    /// docs/spec/cli.md §7.9, and case 42.
    #[test]
    fn assignments() {
        for (item, expected) in [
            ("a=1", Some(("a", "1"))),
            (" a.b=x y ", Some(("a.b", "x y"))),
            ("request.object=x", Some(("request.object", "x"))),
            (
                "request.operation=UPDATE",
                Some(("request.operation", "UPDATE")),
            ),
            ("foo=bar=baz", None),
            ("request.object.x=1", None),
            ("a=", None),
            ("=1", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(parse_assignment(item).ok(), expected, "{item}");
        }
    }
}
