//! Whole policies on whole objects: are the answers exact, the same in every mode, bounded,
//! and without a panic?

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test stops at what is broken
#![allow(clippy::print_stdout)] // says what was skipped

mod allocations;
mod answers;
mod deterministic;
mod hostile;
mod projection;
mod steps;
