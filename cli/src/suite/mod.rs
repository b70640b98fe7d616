//! `kpvm test`: suites of policies, resources and expected results, read and judged as
//! `kyverno test` does (docs/spec/cli.md §1 to §8).
//!
//! Input: paths. Output: one [`SuiteRun`] per Test, in the order in which they were found.
//! A suite that cannot be run is a [`SuiteRun`] with errors and does not stop the others.

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
