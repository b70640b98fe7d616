//! The kpvm runtime: documents, Kubernetes/Kyverno scalar semantics, the
//! register interpreter and the engine API that programs embed.
//!
//! Nothing in this crate reads files, starts threads, looks at a clock or draws
//! random numbers; what a rule needs from outside comes through the host.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "no instruction evaluates conditions yet")
)]
mod condition;
pub mod document;
pub mod engine;
pub mod image;
pub mod labels;
pub mod limits;
mod machine;
pub mod scalar;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "no instruction substitutes variables yet")
)]
mod text;
pub mod tree;
pub mod yaml;
