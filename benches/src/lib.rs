//! Workloads, peers, and the benches over both.
//!
//! Nothing here is needed to use kpvm.

pub mod interleave;
pub mod peer;
pub mod size;
pub mod workload;
