//! Tests of whole policies on whole objects: exact answers, the same in every mode,
//! bounded, without panics.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test stops at what is broken
#![allow(clippy::print_stdout)] // says what was skipped

mod allocations;
mod answers;
mod deterministic;
mod hostile;
mod house;
mod projection;
mod steps;
