//! The kpvm runtime: documents, Kubernetes/Kyverno scalar semantics, the
//! register interpreter and the engine API that programs embed.
//!
//! Nothing in this crate reads files, starts threads, looks at a clock or draws
//! random numbers; what a rule needs from outside comes through the host.

pub mod anchor;
pub mod cel;
mod condition;
pub mod document;
pub mod engine;
pub mod function;
pub mod host;
pub mod image;
pub mod jmespath;
pub mod labels;
pub mod limits;
mod machine;
mod plan;
mod legacy;
pub mod resource_kind;
pub mod scalar;
mod text;
pub mod tree;
pub mod yaml;
