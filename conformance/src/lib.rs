//! Tests of exactness: the real engine's answers, the public suites, and differential
//! testing.
//!
//! Nothing here is needed to use kpvm.

pub mod case;
pub mod differential;
pub mod gate;
pub mod golden;
