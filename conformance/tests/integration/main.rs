//! Whole policies on whole objects: exact answers, the same in every mode, within bounds,
//! without panics. Also rules about the files of the repository.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test stops at what is broken
#![allow(clippy::print_stdout)] // says what was skipped

mod allocations;
mod answers;
mod deterministic;
mod hostile;
mod house;
mod import_cycles;
mod naive;
mod projection;
mod steps;
mod vulnerability;
