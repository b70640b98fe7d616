//! The plainest interpreter of the policy model: a tree walk over `serde_json::Value`,
//! written from the pages of `docs/spec` alone, as a second opinion on the compiler and the
//! VM. Each function cites its section, so that it can be read as the specification.
//!
//! It shares the policy reader (with generated rules) of `kpvm-compiler` and the meaning of
//! scalars in `kpvm-semantics`, and nothing else. What it does not do is
//! [`Failure::NotDone`], never a guess.

mod anchor;
mod cel;
mod condition;
mod context;
mod engine;
mod exception;
mod failure;
mod images;
mod jmespath;
mod matching;
mod operator;
mod pattern;
mod pod_security;
mod request;
mod scalar;
mod substitution;
mod validator;
mod value;

pub use engine::{Response, RuleResponse, Status, Stop, evaluate};
pub use failure::{Failure, UNFIXED};
pub use operator::apply as apply_operator;
pub use request::{Outside, Request, User};
pub use value::{decoded, read_object};

/// Evaluates an expression over a value (docs/spec/jmespath.md).
///
/// # Errors
/// Kyverno's error, or that something is not done.
pub fn search(expression: &str, data: &serde_json::Value) -> Result<serde_json::Value, Failure> {
    jmespath::search(expression, data).and_then(jmespath::Datum::into_value)
}
