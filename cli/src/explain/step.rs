//! The trace of one rule on one resource, as text and JSON show it.

use serde::Serialize;

use crate::place::Place;

/// What happened when one rule met one resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// The suite's file; absent but for `kpvm test`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Name of the policy.
    pub policy: String,
    /// Its namespace; absent for a `ClusterPolicy`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy_namespace: String,
    /// Name of the rule as it ran, `autogen-` in front of a generated one.
    pub rule: String,
    /// Where the rule is written.
    pub rule_place: Place,
    /// The resource.
    pub resource: TracedResource,
    /// What was done to the resource: `CREATE`, `UPDATE`, `DELETE`; absent where the rule
    /// was not tried.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// What came of it.
    pub result: Outcome,
    /// The message of the response, or why there is none.
    pub message: String,
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// How many further steps were left out: a trace has an end, whatever the resource.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde asks for it
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What came of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The resource is as the rule wants it.
    Pass,
    /// It is not.
    Fail,
    /// The rule could not be evaluated.
    Error,
    /// The rule says of itself that it does not apply.
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

/// The resource that a trace is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TracedResource {
    /// `kind`.
    pub kind: String,
    /// Namespace; absent for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name, or `generateName` where there is none.
    pub name: String,
    /// Where it begins.
    pub place: Place,
}

/// One thing that was done. Which fields there are depends on the kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What it is.
    pub step: StepKind,
    /// The part of the rule, e.g. `preconditions.all[0]`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Whether it is as the policy asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// What is written in the policy: the field of a filter, the key of a condition, an
    /// anchored key, a pattern with variables, the list of a foreach, the name of a
    /// context entry or of a control.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub written: String,
    /// The path in the resource, or in the element of a foreach.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What was found: a fact of the request, a value as JSON cut where it is long, or
    /// for a failure its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The operator of a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<&'static str>,
    /// What the policy asks for: likewise, or in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Where the policy says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_place: Option<Place>,
    /// Where the value stands in the file of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_place: Option<Place>,
    /// What was done inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepKind {
    /// A part of the rule ran; `part` says which.
    Stage,
    /// A filter of `match` was tested.
    Filter,
    /// A filter of `exclude` was tested; where it holds the rule does not apply.
    Exclusion,
    /// A condition was tested.
    Condition,
    /// A value was compared with a leaf of a pattern.
    Leaf,
    /// The resource does not have the form that a pattern needs.
    Structure,
    /// An anchored key was looked for; `held` says whether it is there.
    Anchor,
    /// An anchor does not apply: what it stands in is skipped.
    Skipped,
    /// An alternative of an `anyPattern`.
    Alternative,
    /// An element of a `foreach`; `held` is true where it passed.
    Element,
    /// A `foreach` found no element.
    NoElement,
    /// A control of `podSecurity` is broken.
    Finding,
    /// An exclusion of `podSecurity` was looked at; `held` where it took findings away.
    Excluded,
    /// A context entry was loaded.
    Entry,
    /// An expression could not be evaluated.
    Failure,
}

impl Step {
    /// A step of that kind with nothing else.
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
