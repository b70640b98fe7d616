//! What the compiler has to say about a policy: one plain type that every
//! renderer (terminal, JSON, SARIF) shares.

use crate::source::Location;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The policy (or rule) was not compiled.
    Error,
    /// It was compiled, and a person should look at it.
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Stable kebab-case name of the check, e.g. `unknown-field`.
    pub code: &'static str,
    /// One sentence: what was expected and what was found.
    pub message: String,
    /// Where it is.
    pub location: Location,
    /// Short text to put at the place, may be empty.
    pub label: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// `policy` or `policy/rule` that it concerns, where known.
    pub subject: Option<String>,
}

impl Diagnostic {
    /// An error with neither label, hint nor subject.
    pub fn error(code: &'static str, message: impl Into<String>, location: Location) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            location,
            label: String::new(),
            hint: None,
            subject: None,
        }
    }

    /// A warning with neither label, hint nor subject.
    pub fn warning(code: &'static str, message: impl Into<String>, location: Location) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message, location)
        }
    }

    /// With a text at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Concerning a policy or a rule (`policy/rule`).
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}
