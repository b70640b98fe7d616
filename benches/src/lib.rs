//! Workloads, other programs to compare with, and the benches over both.
//!
//! Nothing of this is needed to use kpvm.

pub mod interleave;
pub mod peer;
pub mod size;
pub mod workload;
