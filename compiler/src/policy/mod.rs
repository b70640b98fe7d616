//! Policies: typed model, reader, load checks and autogen.

pub mod admission_policy;
pub(crate) mod any_policy;
pub mod assertion;
pub mod autogen;
pub mod condition;
pub mod constraints;
pub mod discovery;
pub mod kind_selector;
pub mod match_resources;
pub mod model;
pub(crate) mod print;
pub mod read;
pub mod read_validating;
mod schema;
mod spanned;
pub(crate) mod spelling;
mod text;
pub mod validate;
pub mod validating_autogen;
pub mod validating_policy;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod test_tree;
