//! Errors of functions.

use std::fmt;

/// Reason why a function has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionError {
    /// The function rejects its arguments, in Kyverno's words. Some operators of the
    /// language turn this into null (docs/spec/jmespath.md §4).
    Failed(String),
    /// A limit is exceeded or the host lacks the data; no operator may turn this into a
    /// value. The text is ours: Kyverno has no such limits.
    Refused(String),
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(value) => write!(f, "{value}"),
            Self::Refused(value) => write!(f, "{value}"),
        }
    }
}

impl std::error::Error for FunctionError {}

impl FunctionError {
    /// An error in Kyverno's words.
    pub fn failed(text: impl Into<String>) -> Self {
        FunctionError::Failed(text.into())
    }

    /// An error of a library that Kyverno uses, in its words.
    pub fn failed_with(error: impl std::fmt::Display) -> Self {
        FunctionError::Failed(error.to_string())
    }

    /// An error prefixed with its function, like most of Kyverno's own.
    pub fn of(function: &str, text: impl std::fmt::Display) -> Self {
        FunctionError::Failed(format!("JMESPath function '{function}': {text}"))
    }

    /// An error in our own words.
    pub fn refused(text: impl Into<String>) -> Self {
        FunctionError::Refused(text.into())
    }
}
