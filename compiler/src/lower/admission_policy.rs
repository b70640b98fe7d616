//! A ValidatingAdmissionPolicy in, a rule for each of its bindings out
//! (docs/spec/cel.md §5).
//!
//! Of several bindings that match the last one answers, so each is matched only where
//! no later one is. Without a cluster the constraints of the policy itself count only
//! where it has no binding.

use kpvm_format::instruction::Op;
use kpvm_format::table::{self, BodyKind, MessageKind, NONE, PolicyFlags, Range, RuleFlags};
use kpvm_semantics::limits::Limits;
use zerocopy::little_endian::U32;

use super::Lowerer;
use crate::codegen;
use crate::diagnostic::Diagnostic;
use crate::frontend::cel::rule;
use crate::frontend::pools::Pools;
use crate::frontend::resource_matching::{self, Constraints};
use crate::ir::{Block, Instruction, Label};
use crate::policy::admission_policy::{AdmissionBinding, AdmissionPolicy};
use crate::policy::match_resources::MatchResources;
use crate::source::{Location, SourceId, Sources};

/// The property that names the binding (docs/spec/cli.md §10.2).
const BINDING: &str = "binding";

/// A policy with more is refused: each is matched with all that come behind it.
const BINDINGS: usize = 200;

impl Lowerer {
    /// Lowers a policy; gives what is wrong with it.
    pub(crate) fn lower_admission_policy(
        &mut self,
        policy: &AdmissionPolicy,
        sources: &Sources,
        limits: &Limits,
    ) -> Vec<Diagnostic> {
        let number = self.bundle.policies.len() as u32;
        let first = self.bundle.rules.len();
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
        let mut diagnostics = Vec::new();
        let mut add = |binding, later: &[AdmissionBinding]| {
            let lowered = self.lower_binding(policy, number, binding, later, sources, limits);
            diagnostics.extend(lowered.err().map(|error| *error));
        };
        if policy.bindings.is_empty() {
            add(None, &[]);
        }
        for (index, binding) in policy.bindings.iter().enumerate() {
            let later = policy.bindings.get(index + 1..).unwrap_or_default();
            // Behind one that matches everything nothing else ever answers.
            if later.iter().all(|later| later.matching.is_some()) {
                add(Some(binding), later);
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
        let entry = table::Policy {
            name: self.bundle.text(&policy.name.value),
            namespace: self.bundle.text(""),
            flags,
            rules: Range::new(first, self.bundle.rules.len() - first),
            overrides: Range::EMPTY,
        };
        self.bundle.policies.push(entry);
        diagnostics
    }

    fn lower_binding(
        &mut self,
        policy: &AdmissionPolicy,
        number: u32,
        binding: Option<&AdmissionBinding>,
        later: &[AdmissionBinding],
        sources: &Sources,
        limits: &Limits,
    ) -> Result<(), Box<Diagnostic>> {
        let place = Location {
            source: policy.source,
            span: policy.name.span,
        };
        let too_big = |error: codegen::CodegenError| {
            let error = Diagnostic::error("rule-too-big", error.to_string(), place);
            Box::new(error.hint("split the policy into several"))
        };
        let (first_slot, first_entry) = (self.bundle.slots.len(), self.bundle.entries.len());
        let mut pools = self.pools(sources, limits);
        let matching = Matching::of(policy, binding);
        let block = lower_matching(&matching, later, &mut pools);
        let match_block = pools.generate(block).map_err(too_big)?;
        let mut loaders = Vec::new();
        let body = rule::lower_admission_policy(policy, binding, &mut loaders, &mut pools);
        let body_block = pools.generate(body).map_err(too_big)?;
        for (entry, loader) in loaders {
            let block = pools.generate(loader).map_err(too_big)?;
            if let Some(record) = pools.bundle.entries.get_mut(entry as usize) {
                record.block = U32::new(block);
            }
        }
        let (slots, entries) = (self.bundle.slots.len(), self.bundle.entries.len());
        let (kinds, keys) = match matching {
            Matching::Nothing => (Vec::new(), Vec::new()),
            Matching::Everything => (vec!["*".to_owned()], Vec::new()),
            Matching::Constraints { matching, .. } => (
                resource_matching::index_names(matching),
                resource_matching::index_keys(matching),
            ),
        };
        // A policy that nothing binds yet says no less than it will.
        let denies = binding.is_none_or(|binding| binding.actions.iter().any(|one| one == "Deny"));
        let start = self.bundle.pairs.len();
        if let Some(binding) = binding {
            let pair = table::Pair {
                key: self.bundle.text(BINDING),
                value: self.bundle.text(&binding.name.value),
            };
            self.bundle.pairs.push(pair);
        }
        let entry = table::Rule {
            policy: U32::new(number),
            name: self.bundle.text(&policy.name.value),
            match_block: U32::new(match_block),
            body_block: U32::new(body_block),
            precondition_block: U32::new(NONE),
            message_block: U32::new(NONE),
            properties_block: U32::new(NONE),
            slots: Range::new(first_slot, slots - first_slot),
            entries: Range::new(first_entry, entries - first_entry),
            body: BodyKind::AdmissionPolicy as u8,
            flags: match denies {
                true => RuleFlags::OWN_ACTION | RuleFlags::ENFORCE,
                false => RuleFlags::OWN_ACTION,
            },
            message_kind: MessageKind::Absent as u8,
            message: self.bundle.text(""),
            kinds: self.index_kinds(&kinds),
            keys: self.key_range(&keys),
            dropped_kinds: Range::EMPTY,
            overrides: Range::EMPTY,
            properties: Range::new(start, self.bundle.pairs.len() - start),
            exceptions: Range::EMPTY,
        };
        self.bundle.rules.push(entry);
        self.bundle.rule_places.push(codegen::place(place, sources));
        Ok(())
    }
}

/// What a rule is matched with.
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

    /// Falls through where it is matched, else jumps to `unmatched`.
    fn lower(&self, unmatched: Label, block: &mut Block, pools: &mut Pools<'_>) {
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
                constraints.lower_test(unmatched, block, pools);
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

/// Matched where the constraints hold and those of no later binding do.
fn lower_matching(
    matching: &Matching<'_>,
    later: &[AdmissionBinding],
    pools: &mut Pools<'_>,
) -> Block {
    let mut block = Block::new();
    for later in later {
        let next = block.label();
        Matching::of_binding(later).lower(next, &mut block, pools);
        block.push(Instruction::new(Op::ReturnUnmatched));
        block.place(next);
    }
    let unmatched = block.label();
    matching.lower(unmatched, &mut block, pools);
    block.push(Instruction::new(Op::ReturnMatched));
    block.place(unmatched);
    block.push(Instruction::new(Op::ReturnUnmatched));
    block
}
