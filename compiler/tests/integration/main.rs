//! Policies, compiled and evaluated: worked cases, recorded outcomes, public suites.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests count as no tests
#![allow(clippy::print_stdout)] // says what was counted, and what was skipped

mod admission_policies;
mod assert;
mod cel;
mod cel_conformance;
mod cel_details;
mod cel_outside;
mod common;
mod conditions;
mod differences;
mod exceptions;
mod jmespath;
mod jmespath_worked;
mod kubernetes;
mod operators;
mod passes;
mod patterns;
mod phases;
mod pod_security;
mod pod_security_standards;
mod policies;
mod recorded;
mod review_responses;
mod sharing;
mod stored_analyses;
mod trace;
mod validating_policies;
