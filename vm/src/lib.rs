//! The kpvm runtime: documents, built-in functions, the register interpreter and the engine
//! API that programs embed.
//!
//! Nothing in this crate reads files, starts threads, reads a clock or draws random
//! numbers; whatever a rule needs from outside comes from the host.

pub mod cel;
mod condition;
pub mod document;
pub mod engine;
pub mod function;
pub mod host;
mod images;
pub mod jmespath;
mod machine;
mod plan;
mod text;

pub use kpvm_semantics::limits::Limits;
