//! The bundle format: everything that the compiler and the runtime agree on.
//!
//! Nothing in this crate reads files, starts threads, looks at a clock or draws
//! random numbers.

pub mod symbol;
