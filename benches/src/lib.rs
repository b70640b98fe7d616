//! Harnesses and benches: the real engine's answers, the public suites, workloads.
//!
//! Nothing of this is needed to use kpvm.

pub mod gate;
pub mod golden;
pub mod interleave;
pub mod workload;
