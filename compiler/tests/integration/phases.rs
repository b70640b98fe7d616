//! What each phase prints of the demo policies (`kpc compile --emit`).

use std::path::Path;

use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::phase::Phase;
use kpvm_compiler::source::Sources;

use crate::common::{compile_with, policy, rule};

/// What a phase prints of a policy of the demo.
fn printed(phase: Phase, policy: &str) -> String {
    let name = format!("{policy}.yaml");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/demo/policies");
    let text = std::fs::read_to_string(demo.join(&name)).unwrap();
    let mut sources = Sources::new();
    sources.add(name, text);
    let options = Options {
        emit: Some(phase),
        ..Options::default()
    };
    let compilation = compile(&sources, &options);
    compilation
        .printed
        .unwrap_or_else(|| panic!("{policy}: {:?}", compilation.diagnostics))
}

#[test]
fn policies() {
    insta::assert_snapshot!(printed(Phase::Policy, "pin-image-tags"));
}

#[test]
fn rules() {
    insta::assert_snapshot!(printed(Phase::Rules, "pin-image-tags"));
}

#[test]
fn ir() {
    insta::assert_snapshot!(printed(Phase::Ir, "limit-memory"));
}

#[test]
fn optimised() {
    insta::assert_snapshot!(printed(Phase::Optimised, "limit-memory"));
}

#[test]
fn bytecode() {
    insta::assert_snapshot!(printed(Phase::Bytecode, "limit-memory"));
}

#[test]
fn every_phase_prints_every_policy_of_the_demo() {
    let phases = [
        Phase::Policy,
        Phase::Rules,
        Phase::Ir,
        Phase::Optimised,
        Phase::Bytecode,
    ];
    let policies = [
        "limit-memory",
        "no-node-ports",
        "no-privileged-containers",
        "pin-image-tags",
        "require-team-label",
    ];
    for policy in policies {
        for phase in phases {
            let text = printed(phase, policy);
            assert!(text.contains(policy), "{phase:?} of {policy}: {text}");
        }
    }
}

#[test]
fn every_rule_that_is_too_big_is_an_error() {
    let tree = format!("{}1{}", "{'~.a': ".repeat(100), "}".repeat(100));
    let big = |name: &str| {
        let matched = "match: {any: [{resources: {kinds: [Service]}}]}";
        rule(name, matched, &format!("{{assert: {tree}}}"))
    };
    let options = Options {
        check: false,
        ..Options::default()
    };
    let compilation = compile_with(&policy(&[big("first"), big("second")], ""), &options);
    let found: Vec<(&str, Option<&str>)> = compilation
        .diagnostics
        .iter()
        .map(|one| (one.code, one.subject.as_deref()))
        .collect();
    let expected = ["p/first", "p/second"].map(|rule| ("rule-too-big", Some(rule)));
    assert_eq!(found, expected, "{:?}", compilation.diagnostics);
    assert!(compilation.bundle.is_none());
}
