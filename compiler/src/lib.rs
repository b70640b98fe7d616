//! The ahead-of-time compiler: turns policies in YAML into a bundle and diagnostics.
//!
//! It never sees a resource.

pub mod analysis;
pub mod calls;
pub mod compile;
pub mod diagnostic;
pub mod emit;
pub mod expression;
pub mod frontend;
pub mod generated_admission_policy;
pub mod ir;
mod link;
pub mod lint;
pub mod lower;
pub mod passes;
pub mod phase;
pub mod policy;
pub mod source;
pub mod webhooks;
