//! Reasons why a request cannot be evaluated.

use crate::document::{JsonError, Kind};

/// Why a request cannot be evaluated at all.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// Neither a new nor an old object.
    #[error("expected an object or an old object, found neither")]
    NoObject,
    /// The object's text is no JSON, or crosses a limit.
    #[error("the {role} cannot be read: {error}")]
    Json {
        /// `object` or `old object`.
        role: &'static str,
        /// What is wrong and where.
        error: JsonError,
    },
    /// The object does not fit.
    #[error("the {role} is too large")]
    TooLarge {
        /// `object` or `old object`.
        role: &'static str,
    },
    /// The object is no map.
    #[error("expected the {role} to be a map, found {found}")]
    NotAMap {
        /// `object` or `old object`.
        role: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// The object says no kind, and the request does not either.
    #[error(
        "expected the object to say its kind as text, found {found}; every Kubernetes object has apiVersion and kind"
    )]
    NoKind {
        /// What stands under `kind`.
        found: &'static str,
    },
    /// `apiVersion` is not `version` or `group/version`.
    #[error("expected apiVersion to be `version` or `group/version`, found `{found}`")]
    ApiVersion {
        /// What stands there.
        found: String,
    },
}

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
