//! Reasons why a request cannot be evaluated.

use std::fmt;

use crate::document::{JsonError, Kind};

/// Why a request cannot be evaluated at all.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EvaluateError {
    /// There is neither a new nor an old object.
    NoObject,
    /// The object's text is not JSON, or exceeds a limit.
    Json {
        /// `object` or `old object`.
        role: &'static str,
        /// What is wrong and where.
        error: JsonError,
    },
    /// The object is too large.
    TooLarge {
        /// `object` or `old object`.
        role: &'static str,
    },
    /// The object is not a map.
    NotAMap {
        /// `object` or `old object`.
        role: &'static str,
        /// What it is instead.
        found: &'static str,
    },
    /// Neither the object nor the request has a kind.
    NoKind {
        /// The value of `kind`.
        found: &'static str,
    },
    /// `apiVersion` is not `version` or `group/version`.
    ApiVersion {
        /// Its value.
        found: String,
    },
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObject => f.write_str("expected an object or an old object, found neither"),
            Self::Json { role, error, .. } => write!(f, "the {role} cannot be read: {error}"),
            Self::TooLarge { role, .. } => write!(f, "the {role} is too large"),
            Self::NotAMap { role, found, .. } => {
                write!(f, "expected the {role} to be a map, found {found}")
            }
            Self::NoKind { found, .. } => write!(
                f,
                "expected the object to say its kind as text, found {found}; every Kubernetes object has apiVersion and kind"
            ),
            Self::ApiVersion { found, .. } => write!(
                f,
                "expected apiVersion to be `version` or `group/version`, found `{found}`"
            ),
        }
    }
}

impl std::error::Error for EvaluateError {}

pub(super) fn describe(kind: Option<Kind>) -> &'static str {
    match kind {
        None => "nothing",
        Some(Kind::Null) => "null",
        Some(Kind::False | Kind::True) => "a boolean",
        Some(Kind::Int | Kind::Float) => "a number",
        Some(Kind::String) => "text",
        Some(Kind::List) => "a list",
        Some(Kind::Map) => "a map",
    }
}
