//! Policy reports as Kubernetes objects (sheet 08, section 10).
//!
//! `policyreport` and `openreports` write what could be applied to a cluster: the
//! results of a namespace's objects in a report of that namespace, those of
//! cluster-scoped objects in a cluster report, all named `merged`. `kyverno` is the
//! document that `kyverno apply --policy-report` prints, which groups by policy instead.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::Run;
use crate::scan::{Finding, Outcome, Scan, Summary};

/// The two groups of the API; their reports have the same fields.
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

/// One report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report<'s> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'s>,
    /// Kyverno prints it empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    summary: Summary,
    results: Vec<Entry<'s>>,
}

#[derive(Debug, Serialize)]
struct Metadata<'s> {
    name: &'s str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'s str,
}

/// Sheet 08, section 10.2.
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

/// The reports of a run: of the cluster-scoped objects first, then by namespace; none
/// where nothing is to be reported.
pub fn reports<'r>(run: &Run<'r>, group: Group) -> Vec<Report<'r>> {
    let mut reports: BTreeMap<&str, Report<'_>> = BTreeMap::new();
    for finding in &run.scan.findings {
        let Some(object) = run.scan.object(finding) else {
            continue;
        };
        let namespace = object.namespace.as_str();
        let report = reports.entry(namespace).or_insert_with(|| Report {
            api_version: group.api_version(),
            kind: group.kind(namespace),
            metadata: Metadata {
                name: "merged",
                namespace,
            },
            source: None,
            summary: Summary::default(),
            results: Vec::new(),
        });
        report.add(run, finding);
    }
    reports.into_values().collect()
}

/// What `kyverno apply --policy-report` prints (sheet 08, section 10.1): all cluster
/// policies in one report, each namespaced policy in one of its own, in the order of
/// the policies. The kind of the latter is Kyverno's.
pub fn kyverno<'r>(run: &Run<'r>) -> Vec<Report<'r>> {
    let mut reports: BTreeMap<Option<usize>, Report<'_>> = BTreeMap::new();
    for finding in &run.scan.findings {
        let Some(policy) = run.scan.policy(finding) else {
            continue;
        };
        let is_namespaced = !policy.namespace.is_empty();
        let report = reports
            .entry(is_namespaced.then_some(finding.policy))
            .or_insert_with(|| Report {
                api_version: Group::OpenReports.api_version(),
                kind: if is_namespaced {
                    "PolicyReport"
                } else {
                    "ClusterReport"
                },
                metadata: Metadata {
                    name: if is_namespaced {
                        &policy.name
                    } else {
                        "merged"
                    },
                    namespace: &policy.namespace,
                },
                source: Some(""),
                summary: Summary::default(),
                results: Vec::new(),
            });
        report.add(run, finding);
    }
    reports.into_values().collect()
}

impl<'r> Report<'r> {
    fn add(&mut self, run: &Run<'r>, finding: &'r Finding) {
        self.summary.add(finding.outcome);
        self.results.extend(entry(run.scan, finding, run.now));
    }
}

fn entry<'s>(scan: &'s Scan, finding: &'s Finding, now: u64) -> Option<Entry<'s>> {
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

/// The message, or the property that takes its place: that of the status before a
/// failure became a warning, then `message` (sheet 08, section 10.2).
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
