//! Lowers a ValidatingPolicy to a rule for each of the policies that it is evaluated as.

use crate::ir::Operation;
use kpvm_format::table::{BodyKind, MessageKind, PolicyFlags, RuleFlags};

use super::add_loaders;
use crate::diagnostic::Diagnostic;
use crate::frontend::cel::place::place_in_scalar;
use crate::frontend::cel::validating_policy::{Failure, Programs};
use crate::frontend::resource_matching::{self, Constraints};
use crate::ir::{self, Block, Module, PolicyId, RuleBlocks};
use crate::policy::validating_autogen::{Variant, variants};
use crate::policy::validating_policy::{Mode, ValidatingPolicy};
use crate::source::{Location, SourceId};

/// The property that names the deciding validation.
const INDEX_KEY: &str = "cel.validationIndex";

/// Diagnostics of expressions that do not compile, each with its place in `source`, the
/// text of their file.
pub(crate) fn refused(failures: Vec<Failure<'_>>, id: SourceId, source: &str) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for failure in failures {
        let Failure { text, errors } = failure;
        for error in errors {
            let at = error.at as usize;
            let span = match text.text {
                "" => text.span,
                written => place_in_scalar(source, text.span, written, at),
            };
            let location = Location { source: id, span };
            let message = format!("CEL: {}", error.message);
            let mut diagnostic = Diagnostic::error("cel-expression", message, location);
            diagnostic.hint = error.hint;
            diagnostics.push(diagnostic);
        }
    }
    diagnostics
}

/// All errors in the expressions of a policy, including those of autogen.
pub(crate) fn check(policy: &ValidatingPolicy, source: &str) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for variant in variants(policy) {
        if let Err(failures) = Programs::compile(&variant.spec, policy.mode, policy.own_namespace())
        {
            for found in refused(failures, policy.source, source) {
                let found = found.subject(&policy.name.value);
                // An error in the policy is repeated in the policies generated from it.
                if !diagnostics.iter().any(|one| one.location == found.location) {
                    diagnostics.push(found);
                }
            }
        }
    }
    diagnostics
}

/// Lowers a policy whose expressions have been checked; returns any remaining errors.
pub(crate) fn lower_validating_policy(
    policy: &ValidatingPolicy,
    module: &mut Module,
) -> Vec<Diagnostic> {
    let id = module.policies.next();
    let first = module.rules.next();
    let mut diagnostics = Vec::new();
    for variant in variants(policy) {
        let lowered = lower_variant(policy, id, &variant, module);
        diagnostics.extend(lowered.err().unwrap_or_default());
    }
    let unscored = policy
        .annotations
        .iter()
        .any(|(key, value)| key == "policies.kyverno.io/scored" && value == "false");
    let flags = [
        (true, PolicyFlags::RESOURCES),
        (policy.is_namespaced, PolicyFlags::NAMESPACED),
        (policy.denies(), PolicyFlags::ENFORCE),
        (unscored, PolicyFlags::UNSCORED),
    ];
    let flags = flags.iter().filter(|(set, _)| *set);
    let entry = ir::Policy {
        name: policy.name.value.clone(),
        namespace: policy.own_namespace().unwrap_or_default().to_owned(),
        flags: flags.fold(0, |flags, (_, flag)| flags | flag),
        rules: module.rules.since(first),
        overrides: Vec::new(),
    };
    module.policies.push(entry);
    diagnostics
}

fn lower_variant(
    policy: &ValidatingPolicy,
    id: PolicyId,
    variant: &Variant,
    module: &mut Module,
) -> Result<(), Vec<Diagnostic>> {
    let spec = &variant.spec;
    let mut programs = Programs::compile(spec, policy.mode, policy.own_namespace())
        .map_err(|failures| refused(failures, policy.source, ""))?;
    let (first_slot, first_entry) = (module.slots.next(), module.entries.next());
    let matching = match (policy.mode, &spec.constraints) {
        (Mode::Json, _) => ends(Operation::ReturnMatched),
        (Mode::Kubernetes, None) => ends(Operation::ReturnUnmatched),
        (Mode::Kubernetes, Some(matching)) => Constraints {
            matching,
            part: "matchConstraints",
            absent_has_no_labels: true,
            source: policy.source,
        }
        .lower(module),
    };
    let matching = module.add(matching);
    let mut loaders = Vec::new();
    let body = programs.lower(policy.source, &mut loaders, module);
    let body = module.add(body);
    add_loaders(loaders, module);
    let annotations = programs.lower_annotations(policy.source, module);
    let blocks = RuleBlocks {
        matching,
        preconditions: None,
        body,
        message: None,
        properties: annotations.map(|block| module.add(block)),
    };
    let keys = programs.annotation_keys().chain([INDEX_KEY]);
    let (kinds, index_keys) = match (policy.mode, &spec.constraints) {
        (Mode::Json, _) => (vec!["*".to_owned()], Vec::new()),
        (Mode::Kubernetes, None) => (Vec::new(), Vec::new()),
        (Mode::Kubernetes, Some(matching)) => (
            resource_matching::index_names(matching),
            resource_matching::index_keys(matching),
        ),
    };
    let flags = [
        (policy.denies(), RuleFlags::ENFORCE),
        (variant.is_generated, RuleFlags::GENERATED),
        (policy.mode == Mode::Json, RuleFlags::PAYLOAD),
        (spec.ignores_failure, RuleFlags::IGNORE_FAILURE),
    ];
    let flags = flags.iter().filter(|(set, _)| *set);
    let entry = ir::Rule {
        policy: id,
        name: String::new(),
        blocks,
        slots: module.slots.since(first_slot),
        entries: module.entries.since(first_entry),
        body: BodyKind::Validations,
        flags: flags.fold(0, |flags, (_, flag)| flags | flag),
        message_kind: MessageKind::Absent,
        message: String::new(),
        kinds,
        keys: index_keys,
        dropped_kinds: Vec::new(),
        overrides: Vec::new(),
        properties: keys.map(|key| (key.to_owned(), String::new())).collect(),
        location: Location {
            source: policy.source,
            span: policy.name.span,
        },
    };
    module.rules.push(entry);
    Ok(())
}

fn ends(operation: Operation) -> Block {
    let mut block = Block::new();
    block.push(operation);
    block
}
