//! The languages inside a policy: each sub-module reads one of them from text
//! and returns a tree or an error with a place. Nothing is evaluated here.

pub mod jmespath;
pub mod variable;
