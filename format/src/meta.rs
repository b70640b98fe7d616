//! Facts for people about the policies of a bundle, as owned values. The compiler fills
//! them in; of a bundle they are read when they are asked for, never while rules are
//! evaluated.

use crate::sections::Tables;
use crate::table::Text;

/// Facts about the policies of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// Version of the compiler that wrote the bundle.
    pub compiler: String,
    /// Names of the policy files; [`crate::table::Place::source`] counts them.
    pub sources: Vec<String>,
    /// One entry for each policy, in the order of the policy table.
    pub policies: Vec<PolicyMeta>,
    /// Rules that were left out on request, each with the reason.
    pub omitted: Vec<OmittedRule>,
}

/// Facts about one policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyMeta {
    /// `ClusterPolicy` or `Policy`.
    pub kind: String,
    /// `apiVersion` as written.
    pub api_version: String,
    /// Annotations as written.
    pub annotations: Vec<(String, String)>,
    /// Whether the policy takes part in background scans; if not, in admission only.
    pub background: bool,
}

/// A rule that the compiler left out (`--skip-unsupported`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedRule {
    /// The policy's name.
    pub policy: String,
    /// The rule's name.
    pub rule: String,
    /// What is not supported.
    pub reason: String,
    /// Where: `file:line:column`.
    pub place: String,
}

impl Meta {
    /// The facts in the tables of a bundle.
    pub(crate) fn of(tables: &Tables<'_>) -> Self {
        let text = |text: Text| tables.text(text).to_owned();
        let policies = tables.policy_facts.iter().map(|facts| PolicyMeta {
            kind: text(facts.kind),
            api_version: text(facts.api_version),
            annotations: Tables::range(tables.pairs, facts.annotations)
                .iter()
                .map(|pair| (text(pair.key), text(pair.value)))
                .collect(),
            background: facts.background != 0,
        });
        let omitted = tables.omitted.iter().map(|rule| OmittedRule {
            policy: text(rule.policy),
            rule: text(rule.rule),
            reason: text(rule.reason),
            place: text(rule.place),
        });
        Self {
            compiler: tables
                .bundle_facts
                .first()
                .map_or_else(String::new, |facts| text(facts.compiler)),
            sources: tables.sources.iter().map(|&name| text(name)).collect(),
            policies: policies.collect(),
            omitted: omitted.collect(),
        }
    }
}
