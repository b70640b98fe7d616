//! The report for programs, as JSON or YAML. Fields are in the order of the types below;
//! optional fields are omitted if there is nothing to report.
//!
//! New versions may add fields; existing ones keep their name and meaning while `version`
//! is 1.

use std::io::{self, Write};

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::place::Place;
use crate::policies::{InvalidPolicy, OmittedPolicy};
use crate::report::section::{Key, Section, Sections, between};
use crate::report::{Run, Totals};
use crate::scan::{Finding, Outcome, Scan, Summary};
use crate::serialised::yaml;
use crate::text::clean_json;
use crate::unmatched::Unmatched;

/// The whole report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'s> {
    /// Version of this format: 1.
    pub version: u32,
    /// Counts of results.
    pub summary: Summary,
    /// What was evaluated.
    pub evaluated: Evaluated,
    /// Every result, object by object in input order, rules in the order of the policies.
    pub results: Vec<Result<'s>>,
    /// Rules omitted because they are not supported yet.
    pub omitted_rules: Vec<Omitted<'s>>,
    /// Policies omitted because their kind is not supported yet; optional.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted_policies: Vec<OmittedPolicyEntry<'s>>,
    /// Policies skipped because they are invalid, each counted as an error; optional.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid_policies: Vec<InvalidPolicyEntry<'s>>,
    /// Policies that no object matched, and why; optional.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched_policies: Vec<UnmatchedPolicy<'s>>,
    /// Inputs that could not be used.
    pub problems: Vec<ProblemEntry<'s>>,
}

/// An omitted policy.
#[derive(Debug, Serialize)]
pub struct OmittedPolicyEntry<'s> {
    /// `apiVersion kind`.
    pub kind: &'s str,
    /// Its name.
    pub policy: &'s str,
    /// Location, `file:line:column`.
    pub place: &'s str,
}

/// A policy skipped because it is invalid.
#[derive(Debug, Serialize)]
pub struct InvalidPolicyEntry<'s> {
    /// Its name.
    pub policy: &'s str,
    /// Location, `file:line:column`.
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
    /// Rules, including generated ones.
    pub rules: usize,
    /// Objects.
    pub resources: usize,
}

/// Outcome of one rule for one object.
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
    /// Whether a request with this object would be denied.
    pub enforced: bool,
    /// The object.
    pub resource: ObjectEntry<'s>,
    /// The message.
    pub message: &'s str,
    /// Path of the failed check in the object; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'s str>,
    /// Value found there; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<&'s str>,
    /// Its location in the object's file; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_place: Option<&'s Place>,
    /// Location of the demand in the policy; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_place: Option<&'s Place>,
    /// Location of the rule; optional.
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
    /// Location of the object.
    pub place: &'s Place,
}

/// An omitted rule.
#[derive(Debug, Serialize)]
pub struct Omitted<'s> {
    /// Name of the policy.
    pub policy: &'s str,
    /// Name of the rule.
    pub rule: &'s str,
    /// Reason.
    pub reason: &'s str,
    /// Location, `file:line:column`.
    pub place: &'s str,
}

/// An unusable input.
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

/// Key-value pairs, written as a map in the given order.
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

/// Only the results, at their position in the report.
#[derive(Debug, Serialize)]
struct Results<'s> {
    results: Vec<Result<'s>>,
}

/// Results of one chunk of the input.
///
/// # Errors
/// Fails if a serialiser fails.
pub fn section(run: &Run<'_>, is_json: bool) -> io::Result<Section> {
    let findings = run.scan.findings.iter();
    let results: Vec<_> = findings
        .filter_map(|finding| result(run.scan, finding))
        .collect();
    let items = results.len();
    let text = match is_json {
        _ if items == 0 => String::new(),
        true => {
            let text = serde_json::to_string_pretty(&Results { results })?;
            clean_json(between(&text, JSON[1], JSON[2])?).into_owned()
        }
        false => {
            let text = yaml(&Results { results })?;
            between(&text, &YAML[1][1..], YAML[2])?.to_owned()
        }
    };
    Ok(Section {
        key: Key::All,
        text: text.into_bytes(),
        items,
        summary: Summary::default(),
    })
}

/// JSON without results, and the text before and after some.
const JSON: [&str; 3] = ["\n  \"results\": []", "\n  \"results\": [\n", "\n  ]"];

/// The same in YAML.
const YAML: [&str; 3] = ["\nresults: []\n", "\nresults:\n", ""];

/// Writes the report with the results of all chunks.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(
    totals: &Totals<'_>,
    is_json: bool,
    results: &mut Sections,
    out: &mut dyn Write,
) -> io::Result<()> {
    let document = document(totals);
    match is_json {
        true => {
            let text = serde_json::to_string_pretty(&document)?;
            results.splice(&clean_json(&text), JSON, out)?;
            writeln!(out)
        }
        false => results.splice(&yaml(&document)?, YAML, out),
    }
}

/// The report without its results.
fn document<'r>(totals: &Totals<'r>) -> Document<'r> {
    let scan = totals.scan;
    let policies = totals.policies;
    let omitted_policies = policies.map_or(&[][..], |policies| &policies.omitted_policies);
    let invalid_policies = policies.map_or(&[][..], |policies| &policies.invalid);
    Document {
        version: 1,
        summary: scan.summary,
        evaluated: Evaluated {
            policies: scan.facts.policies.len(),
            rules: scan.facts.rules,
            resources: scan.evaluated,
        },
        results: Vec::new(),
        omitted_rules: omitted(&scan.facts.omitted),
        omitted_policies: omitted_policies.iter().map(omitted_policy).collect(),
        invalid_policies: invalid_policies.iter().map(invalid_policy).collect(),
        unmatched_policies: unmatched(scan),
        problems: totals
            .problems
            .iter()
            .map(|problem| ProblemEntry {
                file: &problem.file,
                line: problem.position.map(|(line, _)| line),
                column: problem.position.map(|(_, column)| column),
                message: &problem.message,
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

fn unmatched<'s>(scan: &'s Scan<'_>) -> Vec<UnmatchedPolicy<'s>> {
    let entry = |unmatched: &Unmatched| {
        let policy = scan.facts.policies.get(unmatched.policy)?;
        Some(UnmatchedPolicy {
            policy: &policy.name,
            policy_namespace: &policy.namespace,
            reason: unmatched.reason.to_string(),
        })
    };
    scan.unmatched.iter().filter_map(entry).collect()
}

fn result<'s>(scan: &'s Scan<'_>, finding: &'s Finding) -> Option<Result<'s>> {
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
