//! Is kpvm exact? The real engine's answers, the public suites, and differential testing.
//!
//! Nothing of this is needed to use kpvm.

pub mod case;
pub mod differential;
pub mod gate;
pub mod golden;
