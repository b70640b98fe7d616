//! What is watched while suites run, beside their rows: coverage, and how one rule comes
//! to its outcomes.

use crate::coverage::Coverage;
use crate::explain::Trace;

/// What to watch.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Whether coverage is measured.
    pub coverage: bool,
    /// The rule to explain: `POLICY/RULE`.
    pub explain: Option<String>,
    /// The only resource to explain it for.
    pub explain_resource: Option<String>,
}

/// What was seen in one suite.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// What the suite covered, where that was measured.
    pub coverage: Option<Coverage>,
    /// The traces of the rule to explain.
    pub traces: Vec<Trace>,
    /// `POLICY/RULE` of every rule of the suite, where one was to be explained.
    pub rules: Vec<String>,
    /// Whether the suite has the rule to explain.
    pub has_rule: bool,
}
