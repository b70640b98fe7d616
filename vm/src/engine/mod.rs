//! The engine: what programs embed.
//!
//! - [`Engine`]: a verified bundle of policies and a [`Config`]. Load it once and share it
//!   between threads. To change policies while requests run, swap an `Arc<Engine>`.
//! - [`Session`]: the memory of one thread, which evaluates one request after another.
//! - [`Request`]: an object, or two, and what is known about the request.
//! - [`Evaluation`] and [`Decision`]: the results, borrowed from the session.
//! - [`Review`] and [`ReviewResponse`]: AdmissionReviews in and out.
//! - [`observer`]: how a rule came to its outcome, event by event.
//! - [`ExpressionSession`]: expressions without policies.
//!
//! ```
//! use kpvm::engine::{Engine, Input, Request, Session};
//! # use kpvm_format::BundleBuilder;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let bytes = BundleBuilder::new().finish();
//! let engine = Engine::load(bytes)?;
//! let mut session = Session::new(&engine);
//! let pod = br#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}"#;
//! let evaluation = session.evaluate(&Request::create(Input::Json(pod)))?;
//! for response in evaluation.responses() {
//!     println!("{} {}: {}", response.rule(), response.status(), response.message());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A webhook or proxy that only needs to know whether to admit calls [`Session::decide`], which
//! stops at the first refusal:
//!
//! ```
//! use kpvm::document::DocumentBuffer;
//! use kpvm::engine::{Engine, FailurePolicy, Review, ReviewResponse, Session};
//! # use kpvm_format::BundleBuilder;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = Engine::load(BundleBuilder::new().finish())?;
//! # let mut session = Session::new(&engine);
//! let body = br#"{"request": {"uid": "1", "operation": "CREATE",
//!     "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}}}"#;
//! let mut buffer = DocumentBuffer::new(); // reused for further reviews
//! let review = Review::read(body, &mut buffer, engine.config().limits())?;
//! let decision = session.decide(&review.request())?;
//! let refusal = decision.refusal();
//! let response = ReviewResponse::from_responses(&review, refusal, FailurePolicy::Fail);
//! assert!(response.is_allowed());
//! # Ok(())
//! # }
//! ```

mod config;
mod error;
mod evaluator;
mod expression;
mod names;
pub mod observer;
mod plans;
mod request;
mod response;
mod review;
mod review_response;
mod session;

use std::borrow::Cow;

use kpvm_format::LoadError;
use kpvm_format::table::PolicyFlags;

pub use config::Config;
pub use error::EvaluateError;
pub use expression::{Answer, ExpressionError, ExpressionSession};
pub use kpvm_format::Bundle;
pub use request::{GroupVersionKind, Input, Operation, Request, UserInfo, merge};
pub use response::{Decision, Evaluation, FailureDetail, PodSecurityDetail, RuleResponse, Status};
pub use review::{Review, ReviewError};
pub use review_response::{FailurePolicy, ReviewResponse};
pub use session::{Buffers, Session};

/// Policies, ready to evaluate: a verified bundle and how to evaluate it.
///
/// Does not change, so threads can share it. Everything that changes during an evaluation is in
/// a [`Session`].
#[derive(Debug, Clone)]
pub struct Engine {
    bundle: Bundle<'static>,
    config: Config,
    /// Whether rules match resources (`pods`) rather than kinds.
    matches_resources: bool,
}

impl Engine {
    /// Loads and verifies a bundle, and evaluates with the default configuration.
    ///
    /// # Errors
    /// Like [`Bundle::load`].
    pub fn load(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, LoadError> {
        Bundle::load(bytes).map(Self::new)
    }

    /// An engine with the default configuration.
    pub fn new(bundle: Bundle<'static>) -> Self {
        Self::with_config(bundle, Config::default())
    }

    /// An engine with the given configuration.
    pub fn with_config(bundle: Bundle<'static>, config: Config) -> Self {
        let tables = bundle.tables();
        let mut policies = tables.policies.iter();
        let matches_resources = policies.any(|policy| policy.flags & PolicyFlags::RESOURCES != 0);
        Self {
            bundle,
            config,
            matches_resources,
        }
    }

    /// The bundle.
    pub fn bundle(&self) -> &Bundle<'static> {
        &self.bundle
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_shared_and_sessions_move_between_threads() {
        fn is_shared<T: Send + Sync + 'static>() {}
        fn moves<T: Send>() {}
        is_shared::<Engine>();
        is_shared::<Config>();
        moves::<Session<'_>>();
        moves::<Buffers>();
    }
}
