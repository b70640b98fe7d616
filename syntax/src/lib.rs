//! Readers with source locations: YAML, JSON, and the grammars of JMESPath and CEL.
//!
//! Text becomes a [`tree::Tree`] or a syntax tree with the span of every part, or an error
//! with its location. Nothing is evaluated here.

pub mod cel;
pub mod jmespath;
pub mod json;
#[cfg(feature = "yaml")]
pub mod manifest;
pub mod tree;
#[cfg(feature = "yaml")]
pub mod yaml;
