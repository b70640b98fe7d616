//! Observations of a run besides its rows: coverage, and the trace of one rule.

use crate::coverage::Coverage;
use crate::explain::Trace;

/// What to observe.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Whether to measure coverage.
    pub coverage: bool,
    /// Rule to explain: `POLICY/RULE`.
    pub explain: Option<String>,
    /// The only resource to explain it for.
    pub explain_resource: Option<String>,
}

/// Observations of one suite.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Coverage of the suite, if measured.
    pub coverage: Option<Coverage>,
    /// Traces of the rule to explain.
    pub traces: Vec<Trace>,
    /// `POLICY/RULE` of every rule of the suite, if one is to be explained.
    pub rules: Vec<String>,
    /// Whether the suite has the rule to explain.
    pub has_rule: bool,
}
