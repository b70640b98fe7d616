//! `kpvm test`: suites of policies, resources and expected results, read and judged as
//! `kyverno test` does (docs/spec/cli.md §1 to 8).
//!
//! Paths enter; one [`SuiteRun`] for each Test leaves, in the order in which they were
//! found. A suite that cannot be used is a [`SuiteRun`] with errors, and stops no other.

pub mod compare;
pub mod discovery;
pub mod document;
pub mod judge;
pub mod objects;
pub mod policies;
pub mod report;
pub mod row;
pub mod run;
pub mod selector;
pub mod watch;

pub use row::{Reason, Row, Verdict};
pub use run::{Options, SuiteRun, run_file, run_files};
