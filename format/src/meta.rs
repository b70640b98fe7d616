//! The cold part of a bundle: what people want to know about the policies. It is
//! decoded when the bundle is loaded and never read while rules are evaluated.

use serde::{Deserialize, Serialize};

/// Facts about the policies of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Version of the compiler that wrote the bundle.
    pub compiler: String,
    /// Names of the policy files; [`crate::table::Site::source`] counts them.
    pub sources: Vec<String>,
    /// One entry for each policy, in the order of the policy table.
    pub policies: Vec<PolicyMeta>,
    /// Rules that were left out on request, each with the reason.
    pub omitted: Vec<OmittedRule>,
}

/// Facts about one policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
