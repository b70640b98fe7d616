//! Harnesses and benches: the real engine's answers, the public suites, workloads.
//!
//! Nothing of this is needed to use kpvm.

pub mod golden;
pub mod interleave;
pub mod suites;
pub mod workload;
