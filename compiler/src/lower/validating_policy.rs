//! A ValidatingPolicy in, a rule for each of the policies that it is evaluated as out.

use kpvm_format::table::{self, BodyKind, MessageKind, NONE, PolicyFlags, Range, RuleFlags};
use zerocopy::little_endian::U32;

use super::Lowerer;
use crate::codegen;
use crate::diagnostic::Diagnostic;
use crate::frontend::cel::rule::place_in_scalar;
use crate::frontend::cel::validating_policy::{Failure, Programs};
use crate::frontend::resource_matching::{self, Constraints};
use crate::ir::{Block, Instruction};
use crate::policy::match_resources::MatchResources;
use crate::policy::validating_autogen::{Variant, variants};
use crate::policy::validating_policy::{Mode, ValidatingPolicy};
use crate::source::{Location, SourceId, Sources};
use kpvm_format::instruction::Op;
use kpvm_semantics::limits::Limits;

/// The property that says which validation decided.
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

/// Everything that is wrong with the expressions of a policy, those of autogen included.
pub(crate) fn check(policy: &ValidatingPolicy, source: &str) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for variant in variants(policy) {
        if let Err(failures) = Programs::compile(&variant.spec, policy.mode, policy.own_namespace())
        {
            for found in refused(failures, policy.source, source) {
                let found = found.subject(&policy.name.value);
                // What is wrong with the policy is wrong with those made of it.
                if !diagnostics.iter().any(|one| one.location == found.location) {
                    diagnostics.push(found);
                }
            }
        }
    }
    diagnostics
}

impl Lowerer {
    /// Lowers a policy whose expressions were checked; gives what is wrong all the same.
    pub(crate) fn lower_validating_policy(
        &mut self,
        policy: &ValidatingPolicy,
        sources: &Sources,
        limits: &Limits,
    ) -> Vec<Diagnostic> {
        let number = self.bundle.policies.len() as u32;
        let first = self.bundle.rules.len();
        let mut diagnostics = Vec::new();
        for variant in variants(policy) {
            let lowered = self.lower_variant(policy, number, &variant, sources, limits);
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
        let namespace = policy.own_namespace().unwrap_or_default();
        let flags = flags.iter().filter(|(set, _)| *set);
        let entry = table::Policy {
            name: self.bundle.text(&policy.name.value),
            namespace: self.bundle.text(namespace),
            flags: flags.fold(0, |flags, (_, flag)| flags | flag),
            rules: Range::new(first, self.bundle.rules.len() - first),
            overrides: Range::EMPTY,
        };
        self.bundle.policies.push(entry);
        diagnostics
    }

    fn lower_variant(
        &mut self,
        policy: &ValidatingPolicy,
        number: u32,
        variant: &Variant,
        sources: &Sources,
        limits: &Limits,
    ) -> Result<(), Vec<Diagnostic>> {
        let spec = &variant.spec;
        let place = Location {
            source: policy.source,
            span: policy.name.span,
        };
        let mut programs = Programs::compile(spec, policy.mode, policy.own_namespace())
            .map_err(|failures| refused(failures, policy.source, ""))?;
        let too_big = |error: codegen::CodegenError| {
            let error = Diagnostic::error("rule-too-big", error.to_string(), place);
            vec![error.hint("split the policy into several")]
        };
        let (first_slot, first_entry) = (self.bundle.slots.len(), self.bundle.entries.len());
        let mut pools = self.pools(sources, limits);
        let matching = match (policy.mode, &spec.constraints) {
            (Mode::Json, _) => ends(Op::ReturnMatched),
            (Mode::Kubernetes, None) => ends(Op::ReturnUnmatched),
            (Mode::Kubernetes, Some(matching)) => Constraints {
                matching,
                part: "matchConstraints",
                absent_has_no_labels: true,
                source: policy.source,
            }
            .lower(&mut pools),
        };
        let match_block = pools.generate(matching).map_err(too_big)?;
        let mut loaders = Vec::new();
        let body = programs.lower(policy.source, &mut loaders, &mut pools);
        let body_block = pools.generate(body).map_err(too_big)?;
        for (entry, loader) in loaders {
            let block = pools.generate(loader).map_err(too_big)?;
            if let Some(record) = pools.bundle.entries.get_mut(entry as usize) {
                record.block = U32::new(block);
            }
        }
        let annotations = programs.lower_annotations(policy.source, &mut pools);
        let annotations = annotations.map(|block| pools.generate(block));
        let properties_block = annotations.transpose().map_err(too_big)?;
        let keys: Vec<&str> = programs.annotation_keys().chain([INDEX_KEY]).collect();
        let properties = self.property_keys(&keys);
        let (slots, entries) = (self.bundle.slots.len(), self.bundle.entries.len());
        let (kinds, index_keys) = match (policy.mode, &spec.constraints) {
            (Mode::Json, _) => (vec!["*".to_owned()], Vec::new()),
            (Mode::Kubernetes, None) => (Vec::new(), Vec::new()),
            (Mode::Kubernetes, Some(matching)) => listed(matching),
        };
        let flags = [
            (policy.denies(), RuleFlags::ENFORCE),
            (variant.is_generated, RuleFlags::GENERATED),
            (policy.mode == Mode::Json, RuleFlags::PAYLOAD),
            (spec.ignores_failure, RuleFlags::IGNORE_FAILURE),
        ];
        let flags = flags.iter().filter(|(set, _)| *set);
        let entry = table::Rule {
            policy: U32::new(number),
            name: self.bundle.text(""),
            match_block: U32::new(match_block),
            body_block: U32::new(body_block),
            precondition_block: U32::new(NONE),
            message_block: U32::new(NONE),
            properties_block: U32::new(properties_block.unwrap_or(NONE)),
            slots: Range::new(first_slot, slots - first_slot),
            entries: Range::new(first_entry, entries - first_entry),
            body: BodyKind::Validations as u8,
            flags: flags.fold(0, |flags, (_, flag)| flags | flag),
            message_kind: MessageKind::Absent as u8,
            message: self.bundle.text(""),
            kinds: self.index_kinds(&kinds),
            keys: self.key_range(&index_keys),
            dropped_kinds: Range::EMPTY,
            overrides: Range::EMPTY,
            properties,
            exceptions: Range::EMPTY,
        };
        self.bundle.rules.push(entry);
        self.bundle.rule_places.push(codegen::place(place, sources));
        Ok(())
    }

    fn property_keys(&mut self, keys: &[&str]) -> Range {
        let start = self.bundle.pairs.len();
        for key in keys {
            let pair = table::Pair {
                key: self.bundle.text(key),
                value: self.bundle.text(""),
            };
            self.bundle.pairs.push(pair);
        }
        Range::new(start, keys.len())
    }
}

fn listed(matching: &MatchResources) -> (Vec<String>, Vec<crate::frontend::index_key::Key>) {
    let names = resource_matching::index_names(matching);
    (names, resource_matching::index_keys(matching))
}

fn ends(op: Op) -> Block {
    let mut block = Block::new();
    block.push(Instruction::new(op));
    block
}
