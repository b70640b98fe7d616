//! What became of the rows of a suite.

use crate::scan::{Check, Place};

/// Whether a row is as Kyverno would want it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It passes.
    Agree,
    /// It fails.
    Disagree,
    /// It needs something that is not supported yet.
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

/// Why a row came out as it did (docs/spec/cli.md §4.4 and 4.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Everything is as expected.
    Ok,
    /// The policy answered for the resource, and no rule of the row did. That passes
    /// whatever the row expects.
    Excluded,
    /// The policy failed Kyverno's checks. That passes as well.
    InvalidPolicy,
    /// The result is another.
    Wanted {
        /// The result that the row wants.
        expected: String,
        /// The one that it got.
        actual: String,
    },
    /// The object is not the expected one.
    ResourceDiff,
    /// The expected object cannot be had.
    ResourceError,
    /// No response of such a policy.
    NotFound,
    /// Something is not supported yet; what.
    Unsupported(String),
}

impl Reason {
    /// The verdict that goes with it.
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

    /// Whether the row passed without anything being compared.
    pub fn is_empty_pass(&self) -> bool {
        matches!(self, Reason::Excluded | Reason::InvalidPolicy)
    }

    /// Kyverno's word for it, `Unsupported` apart.
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
    /// The policy as the row names it.
    pub policy: String,
    /// Its kind, where the suite has such a policy.
    pub policy_kind: Option<String>,
    /// The rule that answered, else the one that the row names.
    pub rule: String,
    /// `v1/Pod/default/web`.
    pub resource: String,
    /// The result that the row wants.
    pub expected: String,
    /// The result that there is; `None` without a response.
    pub actual: Option<&'static str>,
    /// Why the row came out as it did.
    pub reason: Reason,
    /// Kyverno's message.
    pub message: String,
    /// What to look at, where something was not found.
    pub hint: Option<String>,
    /// The check that decided the response, where one did.
    pub check: Option<Check>,
    /// Where the resource stands.
    pub resource_place: Option<Place>,
    /// Where the row stands.
    pub place: Place,
}

impl Row {
    /// Whether the row passes, fails or cannot be judged.
    pub fn verdict(&self) -> Verdict {
        self.reason.verdict()
    }

    /// The cell of Kyverno's table: `Pass`, `Fail` or `Skip`.
    pub fn result(&self) -> &'static str {
        match (&self.reason, self.verdict()) {
            (Reason::InvalidPolicy, _) => "Skip",
            (_, Verdict::Agree) => "Pass",
            (_, Verdict::Disagree) => "Fail",
            (_, Verdict::Unsupported) => "Unsupported",
        }
    }
}
