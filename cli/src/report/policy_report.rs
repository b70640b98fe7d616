//! Policy reports as Kubernetes objects (docs/spec/cli.md §10).
//!
//! `policyreport` and `openreports` write objects that could be applied to a cluster:
//! results for the objects of a namespace in a report in that namespace, results for
//! cluster-scoped objects in a cluster report, all named `merged`. `kyverno` writes the
//! document of `kyverno apply --policy-report`, which is grouped by policy.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::report::section::{Key, Section, Sections, Stored, between};
use crate::report::{Run, Totals};
use crate::scan::{Finding, Outcome, Scan, Summary};
use crate::serialised::yaml;
use crate::text::clean_json;

/// The two API groups; their reports have the same fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// `wgpolicyk8s.io/v1alpha2`
    WgPolicy,
    /// `openreports.io/v1alpha1`
    OpenReports,
}

impl Group {
    fn api_version(self) -> &'static str {
        match self {
            Group::WgPolicy => "wgpolicyk8s.io/v1alpha2",
            Group::OpenReports => "openreports.io/v1alpha1",
        }
    }

    fn kind(self, namespace: &str) -> &'static str {
        match (self, namespace.is_empty()) {
            (Group::WgPolicy, false) => "PolicyReport",
            (Group::WgPolicy, true) => "ClusterPolicyReport",
            (Group::OpenReports, false) => "Report",
            (Group::OpenReports, true) => "ClusterReport",
        }
    }
}

/// Grouping of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The namespace of the object.
    ByNamespace(Group),
    /// As `kyverno apply --policy-report` (docs/spec/cli.md §10.1): all cluster policies in
    /// one report, each namespaced policy in its own, in the order of the policies.
    Kyverno,
}

/// One report without its results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'s> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'s>,
    /// Kyverno prints it empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    summary: Summary,
    results: [(); 0],
}

#[derive(Debug, Serialize)]
struct Metadata<'s> {
    name: &'s str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'s str,
}

/// docs/spec/cli.md §10.2.
#[derive(Debug, Serialize)]
struct Entry<'s> {
    source: &'static str,
    policy: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    rule: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    timestamp: Timestamp,
    result: Outcome,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    scored: bool,
    resources: [Reference<'s>; 1],
    message: &'s str,
    properties: BTreeMap<&'s str, &'s str>,
}

#[derive(Debug, Serialize)]
struct Timestamp {
    seconds: u64,
    nanos: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'s> {
    api_version: &'s str,
    kind: &'s str,
    name: &'s str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'s str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'s str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'s str,
}

/// Share of one chunk of the input in each report.
///
/// # Errors
/// Fails if a serialiser fails.
pub fn sections(run: &Run<'_>, form: Form, is_json: bool) -> io::Result<Vec<Section>> {
    let mut parts: BTreeMap<Key, (Summary, Vec<Entry<'_>>)> = BTreeMap::new();
    for finding in &run.scan.findings {
        let (Some(entry), Some(key)) = (
            entry(run.scan, finding, run.now),
            key(run.scan, finding, form),
        ) else {
            continue;
        };
        let (summary, entries) = parts.entry(key).or_default();
        summary.add(finding.outcome);
        entries.push(entry);
    }
    let section = |(key, (summary, results)): (Key, (Summary, Vec<Entry<'_>>))| {
        let items = results.len();
        let text = match is_json {
            true => {
                let text = serde_json::to_string(&Results { results })?;
                clean_json(between(&text, JSON[1], JSON[2])?).into_owned()
            }
            false => {
                let text = yaml(&Results { results })?;
                between(&text, &YAML[1][1..], YAML[2])?.to_owned()
            }
        };
        Ok(Section {
            key,
            text: text.into_bytes(),
            items,
            summary,
        })
    };
    parts.into_iter().map(section).collect()
}

/// JSON without results, and the text before and after some.
const JSON: [&str; 3] = ["\"results\":[]", "\"results\":[", "]"];

/// The same in YAML.
const YAML: [&str; 3] = ["\nresults: []\n", "\nresults:\n", ""];

/// Only the results of a report.
#[derive(Debug, Serialize)]
struct Results<'s> {
    results: Vec<Entry<'s>>,
}

/// Writes the reports: those of cluster-scoped objects (or cluster policies) first, then by
/// namespace (or policy); nothing if there are no results.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(
    totals: &Totals<'_>,
    form: Form,
    is_json: bool,
    results: &mut Sections,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (index, number) in results.sorted().into_iter().enumerate() {
        let Some(stored) = results.list().get(number) else {
            continue;
        };
        if index > 0 {
            writeln!(out, "---")?;
        }
        let report = report(totals.scan, form, stored);
        match is_json {
            true => {
                let text = serde_json::to_string(&report)?;
                results.splice_at(number, &clean_json(&text), JSON, out)?;
                writeln!(out)?;
            }
            false => results.splice_at(number, &yaml(&report)?, YAML, out)?,
        }
    }
    Ok(())
}

/// Report that a finding belongs to.
fn key(scan: &Scan<'_>, finding: &Finding, form: Form) -> Option<Key> {
    match form {
        Form::ByNamespace(_) => Some(Key::Name(scan.object(finding)?.namespace.clone())),
        Form::Kyverno => Some(match scan.policy(finding)?.namespace.as_str() {
            "" => Key::All,
            _ => Key::Policy(finding.policy),
        }),
    }
}

/// A report without its results.
fn report<'s>(scan: &'s Scan<'_>, form: Form, stored: &'s Stored) -> Report<'s> {
    let policy = match stored.key {
        Key::Policy(number) => scan.facts.policies.get(number),
        _ => None,
    };
    let (group, kind, name, namespace) = match (form, &stored.key, policy) {
        (Form::ByNamespace(group), Key::Name(namespace), _) => {
            (group, group.kind(namespace), "merged", namespace.as_str())
        }
        (Form::ByNamespace(group), ..) => (group, group.kind(""), "merged", ""),
        // This kind is Kyverno's.
        (Form::Kyverno, _, Some(policy)) => (
            Group::OpenReports,
            "PolicyReport",
            policy.name.as_str(),
            policy.namespace.as_str(),
        ),
        (Form::Kyverno, _, None) => (Group::OpenReports, "ClusterReport", "merged", ""),
    };
    Report {
        api_version: group.api_version(),
        kind,
        metadata: Metadata { name, namespace },
        source: (form == Form::Kyverno).then_some(""),
        summary: stored.summary,
        results: [],
    }
}

fn entry<'s>(scan: &'s Scan<'_>, finding: &'s Finding, now: u64) -> Option<Entry<'s>> {
    let (policy, object) = (scan.policy(finding)?, scan.object(finding)?);
    let properties = finding
        .properties
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let mut properties: BTreeMap<&str, &str> = properties.collect();
    properties.insert("process", policy.process);
    Some(Entry {
        source: policy.source,
        policy: policy.full_name(),
        rule: &finding.rule,
        category: policy.category.as_deref(),
        severity: policy.severity,
        timestamp: Timestamp {
            seconds: now,
            nanos: 0,
        },
        result: finding.outcome,
        scored: policy.scored,
        resources: [Reference {
            api_version: &object.api_version,
            kind: &object.kind,
            name: &object.name,
            namespace: &object.namespace,
            uid: &object.uid,
            resource_version: &object.resource_version,
        }],
        message: message(finding, &properties),
        properties,
    })
}

/// The message, or the property that overrides it: that of the status before a failure
/// became a warning, then `message` (docs/spec/cli.md §10.2).
fn message<'s>(finding: &'s Finding, properties: &BTreeMap<&'s str, &'s str>) -> &'s str {
    let of_status = match finding.outcome {
        Outcome::Pass => "passMessage",
        // A rule never warns by itself: every warning was a failure.
        Outcome::Fail | Outcome::Warn => "failMessage",
        Outcome::Error => "errorMessage",
        Outcome::Skip => "skipMessage",
    };
    let text = |key| properties.get(key).filter(|text| !text.is_empty());
    let replacement = text("message").or_else(|| text(of_status));
    replacement.copied().unwrap_or(&finding.message)
}
