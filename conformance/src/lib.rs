//! Checks that kpvm is exact: Kyverno's recorded answers and suites, differential testing.
//!
//! Not needed to use kpvm.

pub mod case;
pub mod cel_table;
pub mod differential;
pub mod gate;
pub mod golden;
pub mod naive;
