//! Why a function has no result.

/// Why a function has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// The function refuses its arguments, in Kyverno's words. Some operators of the
    /// language turn this into null (docs/spec/jmespath.md §4).
    #[error("{0}")]
    Failed(String),
    /// A limit is crossed or the host has not what is needed; no operator may turn
    /// this into a value. The words are our own: Kyverno has no such limits.
    #[error("{0}")]
    Refused(String),
}

impl FunctionError {
    /// An error in Kyverno's words.
    pub fn failed(text: impl Into<String>) -> Self {
        FunctionError::Failed(text.into())
    }

    /// An error that names its function, as most of Kyverno's own do.
    pub fn of(function: &str, text: impl std::fmt::Display) -> Self {
        FunctionError::Failed(format!("JMESPath function '{function}': {text}"))
    }

    /// An error in our own words.
    pub fn refused(text: impl Into<String>) -> Self {
        FunctionError::Refused(text.into())
    }
}
