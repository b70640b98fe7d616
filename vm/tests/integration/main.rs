//! Tests of the runtime through its public interface.

#![allow(clippy::unwrap_used)] // helpers of tests count as no tests

mod allocations;
mod jmespath;
