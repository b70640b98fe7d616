//! Texts with places: YAML, and the grammars of JMESPath and CEL.
//!
//! Text goes in; a [`tree::Tree`] or a syntax tree with the span of every part comes out,
//! or an error with its place. Nothing is evaluated here.

pub mod cel;
pub mod jmespath;
pub mod tree;
pub mod yaml;
