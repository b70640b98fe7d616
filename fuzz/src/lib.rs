//! Fuzz targets: for each, a harness that checks a property over arbitrary bytes, with seeds,
//! words for the fuzzer's dictionary and limits.
//!
//! The harnesses run on stable Rust: the tests of this crate run each over `fuzz/corpus/TARGET`.
//! `fuzz/libfuzzer` has a program for each that libFuzzer drives; README.md describes both.

// A harness reports what it finds by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
pub mod bundle;
pub mod cel;
pub mod cron;
pub mod duration;
pub mod image;
pub mod jmespath;
pub mod json;
pub mod layout;
pub mod pattern;
pub mod policy;
pub mod quantity;
pub mod regex;
pub mod report;
pub mod review;
pub mod seeds;
pub mod semver;
pub mod suite;
pub mod target;
mod text;
pub mod values;
pub mod verify;
pub mod wildcard;
pub mod yaml;
pub mod yaml_writer;

use target::Target;

/// Every target, by name.
pub const TARGETS: &[Target] = &[
    bundle::TARGET,
    cel::TARGET,
    cron::TARGET,
    duration::TARGET,
    image::TARGET,
    jmespath::TARGET,
    json::TARGET,
    layout::TARGET,
    pattern::TARGET,
    policy::TARGET,
    quantity::TARGET,
    regex::TARGET,
    report::TARGET,
    review::TARGET,
    semver::TARGET,
    suite::TARGET,
    values::TARGET,
    verify::TARGET,
    wildcard::TARGET,
    yaml::TARGET,
    yaml_writer::TARGET,
];

/// The target with this name.
///
/// # Panics
/// If there is none.
pub fn target(name: &str) -> &'static Target {
    let mut targets = TARGETS.iter();
    let target = targets.find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("no target is called {name}"))
}
