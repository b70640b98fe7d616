//! Harnesses and benches: the real engine's answers, the public suites, workloads.
//!
//! Nothing of this is needed to use kpvm.

pub mod case;
pub mod differential;
pub mod gate;
pub mod golden;
pub mod interleave;
pub mod peer;
pub mod size;
pub mod workload;
