//! Diagnostics of the compiler: one plain type shared by all renderers (terminal, JSON,
//! SARIF).

use crate::source::Location;

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The policy (or rule) was not compiled.
    Error,
    /// It was compiled, but deserves attention.
    Warning,
}

/// A diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// Stable kebab-case name of the check, e.g. `unknown-field`.
    pub code: &'static str,
    /// One sentence: what was expected and what was found.
    pub message: String,
    /// Location.
    pub location: Location,
    /// Short text shown at the location, may be empty.
    pub label: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The `policy` or `policy/rule` concerned, if known.
    pub subject: Option<String>,
}

impl Diagnostic {
    /// An error without label, hint and subject.
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

    /// A warning without label, hint and subject.
    pub fn warning(code: &'static str, message: impl Into<String>, location: Location) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message, location)
        }
    }

    /// Sets the text at the location.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the policy or rule (`policy/rule`) concerned.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}
