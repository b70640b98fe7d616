//! Texts of policies: compile, load, evaluate.

use std::str::from_utf8;

use kpvm::engine::Bundle;
use kpvm_compiler::analysis;
use kpvm_compiler::compile::{Compilation, Options, compile};
use kpvm_compiler::phase::Phase;
use kpvm_compiler::source::Sources;

use crate::answers::{LIMITS, assert_same_answers};
use crate::seeds;
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "policy",
    run,
    seeds,
    words: &[
        "apiVersion: kyverno.io/v1",
        "kind: ClusterPolicy",
        "kind: Policy",
        "metadata:",
        "name:",
        "spec:",
        "rules:",
        "match:",
        "exclude:",
        "any:",
        "all:",
        "resources:",
        "kinds:",
        "namespaces:",
        "selector:",
        "matchLabels:",
        "matchExpressions:",
        "operations:",
        "subjects:",
        "preconditions:",
        "context:",
        "variable:",
        "jmesPath:",
        "default:",
        "validate:",
        "pattern:",
        "anyPattern:",
        "deny:",
        "conditions:",
        "foreach:",
        "list:",
        "elementScope:",
        "message:",
        "podSecurity:",
        "level: restricted",
        "version: latest",
        "controlName:",
        "cel:",
        "expressions:",
        "expression:",
        "assert:",
        "{{ request.object",
        "{{ element",
        "operator: AnyIn",
        "operator: Equals",
        "operator: GreaterThan",
        "operator: DurationLessThan",
        "key:",
        "value:",
        "=(",
        "^(",
        "X(",
        "+(",
        "<(",
        "$(",
        "(",
        ")",
        "*",
        "?*",
        "!",
        "|",
        "&",
        ">=",
        "Pod",
        "Deployment",
        "CronJob",
        "validationFailureAction: Enforce",
        "apiCall:",
        "configMap:",
        "celPreconditions:",
        "policies.kyverno.io/v1",
        "kind: ValidatingPolicy",
        "matchConstraints:",
        "resourceRules:",
        "apiGroups:",
        "validations:",
        "variables:",
        "auditAnnotations:",
        "matchConditions:",
        "pod-policies.kyverno.io/autogen-controllers",
        "admissionregistration.k8s.io/v1",
        "kind: ValidatingAdmissionPolicy",
        "kind: ValidatingAdmissionPolicyBinding",
        "paramKind:",
    ],
    max_bytes: 4 << 10,
};

/// What is compiled loads, stores right analyses and is always the same; every way to evaluate it
/// says the same. Diagnostics point into the text.
pub fn run(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let mut sources = Sources::new();
    sources.add("policy.yaml", text);
    let options = Options {
        limits: LIMITS,
        ..Options::default()
    };
    let compilation = compile(&sources, &options);
    check_places(&compilation, &sources, text);
    print_phase(&sources, options, text.len());
    let again = compile(&sources, &options);
    assert_eq!(compilation.diagnostics, again.diagnostics);
    assert_eq!(compilation.bundle, again.bundle, "two compilations");
    let Some(bytes) = compilation.bundle else {
        assert!(compilation.has_errors(), "no bundle and no error");
        return;
    };
    let bundle = Bundle::load(bytes).expect("a compiled bundle loads");
    analysis::verify(&bundle).expect("a compiled bundle has right analyses");
    assert_same_answers(&bundle, true);
}

fn check_places(compilation: &Compilation, sources: &Sources, text: &str) {
    for diagnostic in &compilation.diagnostics {
        let span = diagnostic.location.span;
        let (start, end) = (span.start as usize, span.end as usize);
        assert!(text.get(start..end).is_some(), "{diagnostic:?}");
        let place = sources.line_column(diagnostic.location);
        assert!(place.line as usize <= text.len() + 1, "{place:?}");
    }
}

/// Prints the result of one phase, chosen by the length of the text.
fn print_phase(sources: &Sources, options: Options, length: usize) {
    let phases = [
        Phase::Policy,
        Phase::Rules,
        Phase::Ir,
        Phase::Optimised,
        Phase::Bytecode,
    ];
    let emit = Some(phases[length % phases.len()]);
    let compilation = compile(sources, &Options { emit, ..options });
    assert_eq!(compilation.printed.is_some(), !compilation.has_errors());
}

fn seeds() -> Vec<Vec<u8>> {
    let all = seeds::all_policies().into_iter();
    all.filter(|text| text.len() <= 4 << 10)
        .map(String::into_bytes)
        .collect()
}
