//! Lowers a ValidatingAdmissionPolicy to a rule for each of its bindings (docs/spec/cel.md
//! §5).
//!
//! If several bindings match, the last one answers, so each is matched only where no later
//! one is. Without a cluster, the policy's own constraints count only if it has no binding.

use kpvm_format::table::{BodyKind, MessageKind, PolicyFlags, RuleFlags};

use super::add_loaders;
use crate::diagnostic::Diagnostic;
use crate::frontend::cel::rule;
use crate::frontend::resource_matching::{self, Constraints};
use crate::ir::{self, Block, Label, Module, Operation, PolicyId, RuleBlocks};
use crate::policy::admission_policy::{AdmissionBinding, AdmissionPolicy};
use crate::policy::match_resources::MatchResources;
use crate::source::{Location, SourceId};

/// The property that names the binding (docs/spec/cli.md §10.2).
const BINDING: &str = "binding";

/// A policy with more bindings is refused: each is matched together with all later ones.
const BINDINGS: usize = 200;

/// Lowers a policy; returns its errors.
pub(crate) fn lower_admission_policy(
    policy: &AdmissionPolicy,
    module: &mut Module,
) -> Vec<Diagnostic> {
    let id = module.policies.next();
    let first = module.rules.next();
    if let Some(binding) = policy.bindings.get(BINDINGS) {
        let location = Location {
            source: binding.source,
            span: binding.name.span,
        };
        let message = format!(
            "the policy {} has more than {BINDINGS} bindings",
            policy.name.value
        );
        let error = Diagnostic::error("too-many-bindings", message, location);
        return vec![error.hint("let one binding match what several do")];
    }
    if policy.bindings.is_empty() {
        lower_binding(policy, id, None, &[], module);
    }
    for (index, binding) in policy.bindings.iter().enumerate() {
        let later = policy.bindings.get(index + 1..).unwrap_or_default();
        // After one that matches everything, no other ever answers.
        if later.iter().all(|later| later.matching.is_some()) {
            lower_binding(policy, id, Some(binding), later, module);
        }
    }
    let unscored = policy
        .annotations
        .iter()
        .any(|(key, value)| key == "policies.kyverno.io/scored" && value == "false");
    let flags = match unscored {
        true => PolicyFlags::RESOURCES | PolicyFlags::UNSCORED,
        false => PolicyFlags::RESOURCES,
    };
    let entry = ir::Policy {
        name: policy.name.value.clone(),
        namespace: String::new(),
        flags,
        rules: module.rules.since(first),
        overrides: Vec::new(),
    };
    module.policies.push(entry);
    Vec::new()
}

fn lower_binding(
    policy: &AdmissionPolicy,
    id: PolicyId,
    binding: Option<&AdmissionBinding>,
    later: &[AdmissionBinding],
    module: &mut Module,
) {
    let (first_slot, first_entry) = (module.slots.next(), module.entries.next());
    let constraints = Matching::of(policy, binding);
    let matching = lower_matching(&constraints, later, module);
    let matching = module.add(matching);
    let mut loaders = Vec::new();
    let body = rule::lower_admission_policy(policy, binding, &mut loaders, module);
    let body = module.add(body);
    add_loaders(loaders, module);
    let (kinds, keys) = match constraints {
        Matching::Nothing => (Vec::new(), Vec::new()),
        Matching::Everything => (vec!["*".to_owned()], Vec::new()),
        Matching::Constraints { matching, .. } => (
            resource_matching::index_names(matching),
            resource_matching::index_keys(matching),
        ),
    };
    // A policy that has no binding yet is not more lenient than with one.
    let denies = binding.is_none_or(|binding| binding.actions.iter().any(|one| one == "Deny"));
    let property = |binding: &AdmissionBinding| (BINDING.to_owned(), binding.name.value.clone());
    let entry = ir::Rule {
        policy: id,
        name: policy.name.value.clone(),
        blocks: RuleBlocks {
            matching,
            preconditions: None,
            body,
            message: None,
            properties: None,
        },
        slots: module.slots.since(first_slot),
        entries: module.entries.since(first_entry),
        body: BodyKind::AdmissionPolicy,
        flags: match denies {
            true => RuleFlags::OWN_ACTION | RuleFlags::ENFORCE,
            false => RuleFlags::OWN_ACTION,
        },
        message_kind: MessageKind::Absent,
        message: String::new(),
        kinds,
        keys,
        dropped_kinds: Vec::new(),
        overrides: Vec::new(),
        properties: binding.map(property).into_iter().collect(),
        location: Location {
            source: policy.source,
            span: policy.name.span,
        },
    };
    module.rules.push(entry);
}

/// What a rule is matched by.
enum Matching<'m> {
    Nothing,
    Everything,
    Constraints {
        matching: &'m MatchResources,
        part: &'static str,
        source: SourceId,
    },
}

impl<'m> Matching<'m> {
    fn of(policy: &'m AdmissionPolicy, binding: Option<&'m AdmissionBinding>) -> Self {
        match binding {
            None => match &policy.constraints {
                None => Matching::Nothing,
                Some(matching) => Matching::Constraints {
                    matching,
                    part: "matchConstraints",
                    source: policy.source,
                },
            },
            Some(binding) => Matching::of_binding(binding),
        }
    }

    fn of_binding(binding: &'m AdmissionBinding) -> Self {
        match &binding.matching {
            None => Matching::Everything,
            Some(matching) => Matching::Constraints {
                matching,
                part: "matchResources",
                source: binding.source,
            },
        }
    }

    /// Falls through if it matches, else jumps to `unmatched`.
    fn lower(&self, unmatched: Label, block: &mut Block, module: &mut Module) {
        match *self {
            Matching::Constraints {
                matching,
                part,
                source,
            } => {
                let constraints = Constraints {
                    matching,
                    part,
                    absent_has_no_labels: false,
                    source,
                };
                constraints.lower_test(unmatched, block, module);
            }
            Matching::Nothing => {
                block.jump(unmatched);
                let behind = block.label();
                block.place(behind);
            }
            Matching::Everything => {}
        }
    }
}

/// Matches if the constraints do and those of no later binding do.
fn lower_matching(
    matching: &Matching<'_>,
    later: &[AdmissionBinding],
    module: &mut Module,
) -> Block {
    let mut block = Block::new();
    for later in later {
        let next = block.label();
        Matching::of_binding(later).lower(next, &mut block, module);
        block.push(Operation::ReturnUnmatched);
        block.place(next);
    }
    let unmatched = block.label();
    matching.lower(unmatched, &mut block, module);
    block.push(Operation::ReturnMatched);
    block.place(unmatched);
    block.push(Operation::ReturnUnmatched);
    block
}
