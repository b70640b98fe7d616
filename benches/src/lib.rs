//! Workloads and peers for the benches.
//!
//! Not needed to use kpvm.

pub mod interleave;
pub mod peer;
pub mod size;
pub mod workload;
