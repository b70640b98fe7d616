//! Outcomes of the rows of a suite.

use crate::place::Place;
use crate::scan::Check;

/// Verdict on a row, as in Kyverno.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It passes.
    Agree,
    /// It fails.
    Disagree,
    /// It needs an unsupported feature.
    Unsupported,
}

impl Verdict {
    /// `agree`, `disagree` or `unsupported`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Agree => "agree",
            Verdict::Disagree => "disagree",
            Verdict::Unsupported => "unsupported",
        }
    }
}

/// Reason of a verdict (docs/spec/cli.md §4.4 and §4.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Everything is as expected.
    Ok,
    /// The policy responded for the resource, but no rule of the row did. Passes whatever
    /// the row expects.
    Excluded,
    /// The policy failed Kyverno's checks. Passes too.
    InvalidPolicy,
    /// The result differs.
    Wanted {
        /// Expected result.
        expected: String,
        /// Actual result.
        actual: String,
    },
    /// The object differs from the expected one.
    ResourceDiff,
    /// The expected object cannot be read.
    ResourceError,
    /// No such policy responded.
    NotFound,
    /// A feature is not supported yet; which one.
    Unsupported(String),
}

impl Reason {
    /// Verdict that follows from the reason.
    pub fn verdict(&self) -> Verdict {
        match self {
            Reason::Ok | Reason::Excluded | Reason::InvalidPolicy => Verdict::Agree,
            Reason::Wanted { .. }
            | Reason::ResourceDiff
            | Reason::ResourceError
            | Reason::NotFound => Verdict::Disagree,
            Reason::Unsupported(_) => Verdict::Unsupported,
        }
    }

    /// Whether the row passed without comparing anything.
    pub fn is_empty_pass(&self) -> bool {
        matches!(self, Reason::Excluded | Reason::InvalidPolicy)
    }

    /// Kyverno's word for the reason, except for `Unsupported`.
    pub fn text(&self) -> String {
        match self {
            Reason::Ok => "Ok".to_owned(),
            Reason::Excluded => "Excluded".to_owned(),
            Reason::InvalidPolicy => "Invalid Policy".to_owned(),
            Reason::Wanted { expected, actual } => format!("Want {expected}, got {actual}"),
            Reason::ResourceDiff => "Resource diff".to_owned(),
            Reason::ResourceError => "Resource error".to_owned(),
            Reason::NotFound => "Not found".to_owned(),
            Reason::Unsupported(what) => what.clone(),
        }
    }
}

/// One row of a suite, for one resource and one response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The policy as named by the row.
    pub policy: String,
    /// Its kind, if the suite has such a policy.
    pub policy_kind: Option<String>,
    /// The rule that responded, otherwise the one named by the row.
    pub rule: String,
    /// `v1/Pod/default/web`.
    pub resource: String,
    /// Expected result.
    pub expected: String,
    /// Actual result; `None` without a response.
    pub actual: Option<&'static str>,
    /// Reason of the verdict.
    pub reason: Reason,
    /// Kyverno's message.
    pub message: String,
    /// Hint, if something was not found.
    pub hint: Option<String>,
    /// Check that decided the response, if any.
    pub check: Option<Check>,
    /// Location of the resource.
    pub resource_place: Option<Place>,
    /// Location of the row.
    pub place: Place,
}

impl Row {
    /// Verdict of the row.
    pub fn verdict(&self) -> Verdict {
        self.reason.verdict()
    }

    /// Cell of Kyverno's table: `Pass`, `Fail` or `Skip`.
    pub fn result(&self) -> &'static str {
        match (&self.reason, self.verdict()) {
            (Reason::InvalidPolicy, _) => "Skip",
            (_, Verdict::Agree) => "Pass",
            (_, Verdict::Disagree) => "Fail",
            (_, Verdict::Unsupported) => "Unsupported",
        }
    }
}
