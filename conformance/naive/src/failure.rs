//! Why an evaluation has no value.

/// Why an evaluation has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// `Unknown key "…" in path`: some operators of JMESPath turn it into null
    /// (docs/spec/jmespath.md §4).
    NotFound(String),
    /// An error with Kyverno's text.
    Error(String),
    /// Kyverno panics, so there is no answer (docs/spec/jmespath.md §6.4).
    Panic(&'static str),
    /// This interpreter cannot tell; the whole case is set aside.
    NotDone(&'static str),
}

impl Failure {
    /// An error with this text.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    /// The same failure with another text around the error's own.
    pub(crate) fn wrap(self, around: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::NotFound(key) => Self::Error(around(&not_found(&key))),
            Self::Error(text) => Self::Error(around(&text)),
            other => other,
        }
    }

    /// Whether this is an error that the policy language knows.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::Error(_))
    }

    /// The text of an error; the failure itself if there is none.
    pub(crate) fn text(self) -> Result<String, Failure> {
        match self {
            Self::NotFound(key) => Ok(not_found(&key)),
            Self::Error(text) => Ok(text),
            other => Err(other),
        }
    }
}

fn not_found(key: &str) -> String {
    format!("Unknown key \"{key}\" in path")
}

/// Stands in a text for words that the specification does not fix: such messages are not
/// compared.
pub const UNFIXED: &str = "\u{0}";
