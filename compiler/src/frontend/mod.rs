//! The front ends, one for each dialect that a rule can be written in; every one of
//! them ends in the IR.

pub mod anchor;
pub mod jmespath;
pub mod leaf;
pub mod matching;
pub mod pattern;
pub mod reference;
pub mod variable;
