//! Trace of one rule for one resource, as shown in text and JSON.

use serde::Serialize;

use crate::place::Place;

/// Evaluation of one rule for one resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// The suite file; only for `kpvm test`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Name of the policy.
    pub policy: String,
    /// Its namespace; absent for a `ClusterPolicy`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy_namespace: String,
    /// Name of the rule that ran, with the prefix `autogen-` if generated.
    pub rule: String,
    /// Location of the rule.
    pub rule_place: Place,
    /// The resource.
    pub resource: TracedResource,
    /// Operation on the resource: `CREATE`, `UPDATE`, `DELETE`; absent if the rule was not
    /// tried.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// Outcome of the rule.
    pub result: Outcome,
    /// Message of the response, or why there is none.
    pub message: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Number of omitted steps: the size of a trace is bounded.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde asks for it
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Outcome of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The resource satisfies the rule.
    Pass,
    /// The resource violates the rule.
    Fail,
    /// The rule could not be evaluated.
    Error,
    /// The rule itself says that it does not apply.
    Skip,
    /// The rule has no response for the resource.
    NoResponse,
}

impl Outcome {
    /// `pass`, `fail`, `error`, `skip` or `no response`.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Error => "error",
            Outcome::Skip => "skip",
            Outcome::NoResponse => "no response",
        }
    }
}

/// Resource of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TracedResource {
    /// `kind`.
    pub kind: String,
    /// Namespace; absent for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name, or `generateName` if it has none.
    pub name: String,
    /// Location of the resource.
    pub place: Place,
}

/// One step. Its fields depend on its kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Kind of the step.
    pub step: StepKind,
    /// The part of the rule, e.g. `preconditions.all[0]`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Whether the test holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// Text of the policy: the field of a filter, the key of a condition, an anchored key,
    /// a pattern with variables, the list of a foreach, the name of a context entry or of a
    /// control.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub written: String,
    /// Path in the resource, or in the element of a foreach.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Value found: a fact of the request, a value as JSON (truncated if long), or the text
    /// of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The operator of a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<&'static str>,
    /// Value that the policy asks for, in the same form or in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Location in the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_place: Option<Place>,
    /// Location of the value in the file of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_place: Option<Place>,
    /// Nested steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// Kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepKind {
    /// A part of the rule ran; `part` says which.
    Stage,
    /// A filter of `match` was tested.
    Filter,
    /// A filter of `exclude` was tested; if it holds, the rule does not apply.
    Exclusion,
    /// A condition was tested.
    Condition,
    /// A value was compared with a leaf of a pattern.
    Leaf,
    /// The resource does not have the form that a pattern needs.
    Structure,
    /// An anchored key was looked up; `held` says whether it is present.
    Anchor,
    /// An anchor does not apply: its parent is skipped.
    Skipped,
    /// An alternative of an `anyPattern`.
    Alternative,
    /// An element of a `foreach`; `held` is true if it passed.
    Element,
    /// A `foreach` found no element.
    NoElement,
    /// A control of `podSecurity` is violated.
    Finding,
    /// An exclusion of `podSecurity` was checked; `held` if it removed findings.
    Excluded,
    /// A context entry was loaded.
    Entry,
    /// An expression could not be evaluated.
    Failure,
}

impl Step {
    /// A step of a kind, without other fields.
    pub fn new(step: StepKind, part: &str) -> Self {
        Self {
            step,
            part: part.to_owned(),
            held: None,
            written: String::new(),
            path: String::new(),
            found: None,
            operator: None,
            expected: None,
            policy_place: None,
            resource_place: None,
            steps: Vec::new(),
        }
    }
}
