//! The report for programs, as JSON or YAML. The order of fields is that of the types
//! below; fields marked as optional are left out where there is nothing to say.
//!
//! Fields are added in new versions, but what is there keeps its name and meaning as
//! long as `version` is 1.

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::policies::{InvalidPolicy, OmittedPolicy};
use crate::report::Run;
use crate::scan::{Finding, Outcome, Place, Scan, Summary};
use crate::unmatched::Unmatched;

/// The whole report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'s> {
    /// Version of this form: 1.
    pub version: u32,
    /// Counts of results.
    pub summary: Summary,
    /// What was evaluated.
    pub evaluated: Evaluated,
    /// Every result, object by object in the order of the inputs, rules in the order
    /// of the policies.
    pub results: Vec<Result<'s>>,
    /// Rules that were left out because they are not supported yet.
    pub omitted_rules: Vec<Omitted<'s>>,
    /// Policies that were left out because their kind is not supported yet; optional.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted_policies: Vec<OmittedPolicyEntry<'s>>,
    /// Policies that were skipped because they are invalid, each counted as an error;
    /// optional.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid_policies: Vec<InvalidPolicyEntry<'s>>,
    /// Policies that no object matched, and why; optional.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched_policies: Vec<UnmatchedPolicy<'s>>,
    /// Inputs that could not be used.
    pub problems: Vec<ProblemEntry<'s>>,
}

/// A policy that was left out.
#[derive(Debug, Serialize)]
pub struct OmittedPolicyEntry<'s> {
    /// `apiVersion kind`.
    pub kind: &'s str,
    /// Its name.
    pub policy: &'s str,
    /// Where: `file:line:column`.
    pub place: &'s str,
}

/// A policy that was skipped because it is invalid.
#[derive(Debug, Serialize)]
pub struct InvalidPolicyEntry<'s> {
    /// Its name.
    pub policy: &'s str,
    /// Where: `file:line:column`.
    pub place: &'s str,
    /// What is wrong with it.
    pub messages: Vec<&'s str>,
}

/// A policy that no object matched.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmatchedPolicy<'s> {
    /// Name of the policy.
    pub policy: &'s str,
    /// Its namespace; optional, absent for a `ClusterPolicy`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub policy_namespace: &'s str,
    /// What did not match.
    pub reason: String,
}

/// What was evaluated.
#[derive(Debug, Serialize)]
pub struct Evaluated {
    /// Policies.
    pub policies: usize,
    /// Rules, generated ones included.
    pub rules: usize,
    /// Objects.
    pub resources: usize,
}

/// What one rule says about one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Result<'s> {
    /// Name of the policy.
    pub policy: &'s str,
    /// Its namespace; optional, absent for a `ClusterPolicy`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub policy_namespace: &'s str,
    /// Name of the rule.
    pub rule: &'s str,
    /// `pass`, `fail`, `warn`, `error` or `skip`.
    pub result: Outcome,
    /// `critical`, `high`, `medium`, `low` or `info`; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<&'static str>,
    /// The policy's category; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<&'s str>,
    /// Whether a request with this object would be refused.
    pub enforced: bool,
    /// The object.
    pub resource: ObjectEntry<'s>,
    /// The message.
    pub message: &'s str,
    /// Path of the failed check in the object; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'s str>,
    /// What was found there; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<&'s str>,
    /// Where that stands in the object's file; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_place: Option<&'s Place>,
    /// Where the policy demands it; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_place: Option<&'s Place>,
    /// Where the rule is written; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_place: Option<&'s Place>,
    /// The rule's `reportProperties`; optional.
    #[serde(skip_serializing_if = "Pairs::is_empty")]
    pub properties: Pairs<'s>,
}

/// An object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectEntry<'s> {
    /// `apiVersion`.
    pub api_version: &'s str,
    /// `kind`.
    pub kind: &'s str,
    /// Namespace; optional, absent for cluster-scoped objects.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: &'s str,
    /// Name.
    pub name: &'s str,
    /// Where it begins.
    pub place: &'s Place,
}

/// A rule that was left out.
#[derive(Debug, Serialize)]
pub struct Omitted<'s> {
    /// Name of the policy.
    pub policy: &'s str,
    /// Name of the rule.
    pub rule: &'s str,
    /// Why.
    pub reason: &'s str,
    /// Where: `file:line:column`.
    pub place: &'s str,
}

/// An input that could not be used.
#[derive(Debug, Serialize)]
pub struct ProblemEntry<'s> {
    /// The file.
    pub file: &'s str,
    /// The line, from 1; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The character in the line, from 1; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// What is wrong.
    pub message: &'s str,
}

/// Texts under texts, written as a map in the order given.
#[derive(Debug)]
pub struct Pairs<'s>(pub &'s [(String, String)]);

impl Pairs<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The report of a run.
pub fn document<'r>(run: &Run<'r>) -> Document<'r> {
    let scan = run.scan;
    let omitted_policies = run
        .policies
        .map_or(&[][..], |policies| &policies.omitted_policies);
    let invalid_policies = run.policies.map_or(&[][..], |policies| &policies.invalid);
    Document {
        version: 1,
        summary: scan.summary,
        evaluated: Evaluated {
            policies: scan.policies.len(),
            rules: scan.rules,
            resources: scan.objects.len(),
        },
        results: scan
            .findings
            .iter()
            .filter_map(|finding| result(scan, finding))
            .collect(),
        omitted_rules: omitted(&scan.omitted),
        omitted_policies: omitted_policies.iter().map(omitted_policy).collect(),
        invalid_policies: invalid_policies.iter().map(invalid_policy).collect(),
        unmatched_policies: unmatched(scan),
        problems: super::problems(run.resources)
            .map(|(file, place, message)| ProblemEntry {
                file,
                line: place.map(|(line, _)| line),
                column: place.map(|(_, column)| column),
                message,
            })
            .collect(),
    }
}

fn omitted_policy(policy: &OmittedPolicy) -> OmittedPolicyEntry<'_> {
    OmittedPolicyEntry {
        kind: &policy.kind,
        policy: &policy.name,
        place: &policy.place,
    }
}

fn invalid_policy(policy: &InvalidPolicy) -> InvalidPolicyEntry<'_> {
    let messages = policy.errors.iter().map(|error| error.message.as_str());
    InvalidPolicyEntry {
        policy: &policy.name,
        place: &policy.place,
        messages: messages.collect(),
    }
}

fn unmatched(scan: &Scan) -> Vec<UnmatchedPolicy<'_>> {
    let entry = |unmatched: &Unmatched| {
        let policy = scan.policies.get(unmatched.policy)?;
        Some(UnmatchedPolicy {
            policy: &policy.name,
            policy_namespace: &policy.namespace,
            reason: unmatched.reason.to_string(),
        })
    };
    scan.unmatched.iter().filter_map(entry).collect()
}

fn result<'s>(scan: &'s Scan, finding: &'s Finding) -> Option<Result<'s>> {
    let (policy, object) = (scan.policy(finding)?, scan.object(finding)?);
    let check = finding.check.as_ref();
    Some(Result {
        policy: &policy.name,
        policy_namespace: &policy.namespace,
        rule: &finding.rule,
        result: finding.outcome,
        severity: policy.severity,
        category: policy.category.as_deref(),
        enforced: finding.enforced,
        resource: ObjectEntry {
            api_version: &object.api_version,
            kind: &object.kind,
            namespace: &object.namespace,
            name: &object.name,
            place: &object.place,
        },
        message: &finding.message,
        path: check.map(|check| check.path.as_str()),
        found: check.map(|check| check.found.as_str()),
        resource_place: check.map(|check| &check.resource),
        policy_place: check.map(|check| &check.policy),
        rule_place: scan.rule_place(finding),
        properties: Pairs(&finding.properties),
    })
}

/// The omitted rules of a bundle.
pub fn omitted(rules: &[kpvm_format::meta::OmittedRule]) -> Vec<Omitted<'_>> {
    rules
        .iter()
        .map(|rule| Omitted {
            policy: &rule.policy,
            rule: &rule.rule,
            reason: &rule.reason,
            place: &rule.place,
        })
        .collect()
}
