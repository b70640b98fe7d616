//! Reports of wgpolicyk8s.io/v1alpha2 (sheet 08, section 10): all cluster policies in
//! one `ClusterPolicyReport` named `merged`, each namespaced policy in a
//! `PolicyReport` of its own.
//!
//! The property `process` is not written: bundles do not say whether a policy takes
//! part in background scans.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::scan::{Finding, Outcome, PolicyFacts, Scan, Summary};

/// One report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report<'s> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'s>,
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
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

/// The reports of a scan, that of the cluster policies first, the others in the order
/// of the policies; none where nothing is to be reported.
pub fn reports(scan: &Scan, now: u64) -> Vec<Report<'_>> {
    let mut reports: BTreeMap<Option<usize>, Report<'_>> = BTreeMap::new();
    for finding in &scan.findings {
        let Some(policy) = scan.policy(finding) else {
            continue;
        };
        let namespaced = !policy.namespace.is_empty();
        let report = reports
            .entry(namespaced.then_some(finding.policy))
            .or_insert_with(|| {
                if namespaced {
                    policy_report(policy)
                } else {
                    merged()
                }
            });
        report.summary.add(finding.outcome);
        report.results.extend(entry(scan, finding, now));
    }
    reports.into_values().collect()
}

fn merged<'s>() -> Report<'s> {
    Report {
        api_version: "wgpolicyk8s.io/v1alpha2",
        kind: "ClusterPolicyReport",
        metadata: Metadata {
            name: "merged",
            namespace: "",
        },
        summary: Summary::default(),
        results: Vec::new(),
    }
}

fn policy_report(policy: &PolicyFacts) -> Report<'_> {
    Report {
        kind: "PolicyReport",
        metadata: Metadata {
            name: &policy.name,
            namespace: &policy.namespace,
        },
        ..merged()
    }
}

fn entry<'s>(scan: &'s Scan, finding: &'s Finding, now: u64) -> Option<Entry<'s>> {
    let (policy, object) = (scan.policy(finding)?, scan.object(finding)?);
    let name = match policy.namespace.as_str() {
        "" => policy.name.clone(),
        namespace => format!("{namespace}/{}", policy.name),
    };
    let properties = finding
        .properties
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let properties: BTreeMap<&str, &str> = properties.collect();
    Some(Entry {
        source: "kyverno",
        policy: name,
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
    let replacement = properties
        .get("message")
        .or_else(|| properties.get(of_status));
    replacement.copied().unwrap_or(&finding.message)
}
