//! Errors of functions.

/// Reason why a function has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// The function rejects its arguments, in Kyverno's words. Some operators of the
    /// language turn this into null (docs/spec/jmespath.md §4).
    #[error("{0}")]
    Failed(String),
    /// A limit is exceeded or the host lacks the data; no operator may turn this into a
    /// value. The text is ours: Kyverno has no such limits.
    #[error("{0}")]
    Refused(String),
}

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
