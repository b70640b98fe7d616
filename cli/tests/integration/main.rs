//! The programs as a shell sees them, and the library underneath.

#![allow(clippy::unwrap_used)] // helpers of tests count as no tests

mod apply;
mod common;
mod corpus;
mod coverage;
mod exceptions;
mod explain;
mod expressions;
mod jp;
mod kubernetes;
mod lines;
mod outputs;
mod pieces;
mod programs;
mod reports;
mod shell;
mod suites;
mod test_reports;
