//! The engine: what programs embed.
//!
//! Load a [`Bundle`] once, make one [`Session`] for each thread, and evaluate requests
//! with it, one after another:
//!
//! ```
//! use kpvm::engine::{Input, Request, Session};
//! use kpvm_format::{Bundle, BundleBuilder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let bytes = BundleBuilder::new().finish();
//! let bundle = Bundle::load(bytes)?;
//! let mut session = Session::new(&bundle);
//! let pod = br#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}"#;
//! let evaluation = session.evaluate(&Request::create(Input::Json(pod)))?;
//! for response in evaluation.responses() {
//!     println!("{} {}: {}", response.rule(), response.status(), response.message());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A webhook or proxy that only wants to know whether to admit calls
//! [`Session::decide`], which stops at the first refusal. A webhook gets its requests as
//! AdmissionReviews:
//!
//! ```
//! use kpvm::document::DocumentBuffer;
//! use kpvm::engine::{Review, Session};
//! use kpvm_semantics::limits::Limits;
//! # use kpvm_format::{Bundle, BundleBuilder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let bundle = Bundle::load(BundleBuilder::new().finish())?;
//! # let mut session = Session::new(&bundle);
//! let body = br#"{"request": {"uid": "1", "operation": "CREATE",
//!     "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}}}"#;
//! let mut buffer = DocumentBuffer::new(); // kept, for one review after another
//! let review = Review::read(body, &mut buffer, &Limits::DEFAULT)?;
//! let decision = session.decide(&review.request())?;
//! println!("{}: {}", review.uid, decision.is_admitted());
//! # Ok(())
//! # }
//! ```
//!
//! One that wants to know how
//! a rule came to its outcome calls [`Session::evaluate_observed`] with an
//! [`observer::Observer`].

mod error;
mod evaluator;
mod expression;
mod names;
pub mod observer;
mod plans;
mod projection;
mod request;
mod response;
mod review;
mod review_response;
mod session;

pub use error::EvaluateError;
pub use expression::{Answer, ExpressionError, ExpressionSession};
pub use kpvm_format::Bundle;
pub use request::{GroupVersionKind, Input, Operation, Request, UserInfo, merge};
pub use response::{Decision, Evaluation, FailureDetail, PodSecurityDetail, RuleResponse, Status};
pub use review::{Review, ReviewError};
pub use review_response::{FailurePolicy, ReviewResponse};
pub use session::Session;
