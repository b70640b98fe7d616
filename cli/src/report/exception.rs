//! Exceptions that let the failures of a run pass (docs/spec/cli.md §10.4): a starting
//! point for introducing policies to manifests that do not comply yet.

use std::collections::BTreeMap;

use kpvm_semantics::duration;
use serde::{Deserialize, Serialize};

use crate::report::Run;
use crate::scan::{Finding, Object, Outcome};

/// One `PolicyException`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exception<'s> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec<'s>,
}

#[derive(Debug, Serialize)]
struct Metadata {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'static str, String>,
    name: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'s> {
    exceptions: [Excepted<'s>; 1],
    r#match: Match<'s>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pod_security: Vec<Control>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Excepted<'s> {
    policy_name: &'s str,
    rule_names: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Match<'s> {
    all: [Filter<'s>; 1],
}

#[derive(Debug, Serialize)]
struct Filter<'s> {
    resources: Resources<'s>,
}

#[derive(Debug, Serialize)]
struct Resources<'s> {
    kinds: Vec<&'s str>,
    names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<&'s str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Control {
    control_name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
}

/// A control in the property `controlsJSON` of a finding.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FailedControl {
    name: String,
    images: Option<Vec<String>>,
}

/// Builds an exception for each failure of a cluster policy, in the order of the findings.
/// As in Kyverno, failures of namespaced policies get none.
pub fn exceptions<'r>(run: &Run<'r>) -> Vec<Exception<'r>> {
    let failed = |finding: &&Finding| finding.outcome == Outcome::Fail;
    let findings = run.scan.findings.iter().filter(failed);
    findings
        .filter_map(|finding| {
            let (policy, object) = (run.scan.policy(finding)?, run.scan.object(finding)?);
            let is_of_cluster = policy.namespace.is_empty();
            is_of_cluster.then(|| exception(&policy.name, finding, object, run.exception_ttl))
        })
        .collect()
}

fn exception<'r>(
    policy: &'r str,
    finding: &'r Finding,
    object: &'r Object,
    ttl: i64,
) -> Exception<'r> {
    let rule = finding.rule.as_str();
    let parts = [policy, rule, &object.namespace, &object.name];
    let mut labels = BTreeMap::new();
    if ttl > 0 {
        labels.insert("cleanup.kyverno.io/ttl", duration::format(ttl));
    }
    let namespace = object.namespace.as_str();
    let mut resources = Resources {
        kinds: vec![&object.kind],
        names: vec![object.name.clone()],
        namespaces: match namespace {
            "" => Vec::new(),
            namespace => vec![namespace],
        },
    };
    let mut rule_names = vec![rule.to_owned()];
    // The Pods that the controller creates fail the rules this one was generated from.
    if let Some(base) = rule.strip_prefix("autogen-cronjob-") {
        resources.kinds.extend(["Job", "Pod"]);
        rule_names.extend([format!("autogen-{base}"), base.to_owned()]);
    } else if let Some(base) = rule.strip_prefix("autogen-") {
        resources.kinds.push("Pod");
        rule_names.push(base.to_owned());
    }
    if rule_names.len() > 1 {
        resources.names.push(format!("{}-*", object.name));
    }
    Exception {
        api_version: "kyverno.io/v2beta1",
        kind: "PolicyException",
        metadata: Metadata {
            name: parts.join("-"),
            labels,
        },
        spec: Spec {
            exceptions: [Excepted {
                policy_name: policy,
                rule_names,
            }],
            r#match: Match {
                all: [Filter { resources }],
            },
            pod_security: controls(finding),
        },
    }
}

/// Failed podSecurity controls, for images with any tag or digest.
fn controls(finding: &Finding) -> Vec<Control> {
    let mut properties = finding.properties.iter();
    let json = properties.find(|(key, _)| key == "controlsJSON");
    let json = json.map_or("[]", |(_, value)| value.as_str());
    let failed: Vec<FailedControl> = serde_json::from_str(json).unwrap_or_default();
    let any_tag = |image: &String| {
        let end = image.find([':', '@']);
        end.and_then(|end| image.get(..end))
            .map_or_else(|| image.clone(), |name| format!("{name}*"))
    };
    failed
        .into_iter()
        .map(|control| Control {
            control_name: control.name,
            images: control.images.iter().flatten().map(any_tag).collect(),
        })
        .collect()
}
