//! The front ends, one for each dialect in which a rule can be written; each produces IR.

pub mod assertion;
pub mod cel;
pub mod condition;
pub mod context;
pub mod emitter;
pub mod exception;
pub mod expression;
pub mod foreach;
pub mod index_key;
mod leaf;
pub mod matching;
mod nested;
pub mod pattern;
pub mod pod_security;
mod query;
pub mod reference;
pub mod resource_matching;
pub mod scope;
pub mod template;
pub mod variable;
