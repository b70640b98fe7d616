//! Lowering: one checked policy in, its rules and their code in the bundle out.

mod admission_policy;
mod computed_rules;
mod rule;
pub(crate) mod validating_policy;

use std::collections::HashMap;

use kpvm_format::BundleBuilder;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, KeyKind, NONE, PolicyFlags, Range, RuleFlags};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::Span;
use zerocopy::little_endian::U32;

use self::computed_rules::{IndexedRule, computed_rules};
use self::rule::lower_blocks;
use crate::codegen::{self};
use crate::diagnostic::Diagnostic;
use crate::frontend::index_key::{self, Key};
use crate::frontend::leaf::Leaves;
use crate::frontend::pools::Pools;
use crate::policy::model::{ApplyRules, FailureActionOverride, Policy, PolicyKind, Rule, Validate};
use crate::source::{Location, Sources};

/// Why a rule has no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LowerError {
    /// The rule uses something that is not compiled yet.
    Unsupported(Unsupported),
    /// The rule can never be compiled.
    Invalid(Box<Diagnostic>),
}

/// Something that is not compiled yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// What it is, e.g. `preconditions`.
    pub what: String,
    /// Where it stands.
    pub span: Span,
}

impl From<Unsupported> for LowerError {
    fn from(unsupported: Unsupported) -> Self {
        LowerError::Unsupported(unsupported)
    }
}

fn unsupported<T>(what: &str, span: Span) -> Result<T, LowerError> {
    Err(Unsupported {
        what: what.to_owned(),
        span,
    }
    .into())
}

/// Lowers policies one after another into one bundle.
#[derive(Default)]
pub struct Lowerer {
    bundle: BundleBuilder,
    leaves: Leaves,
    paths: HashMap<(u32, SymbolId), u32>,
    texts: HashMap<String, u32>,
    constants: HashMap<String, u32>,
    checks: HashMap<Vec<(u32, u32)>, u32>,
    shapes: HashMap<String, u32>,
}

impl Lowerer {
    /// Nothing lowered yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What goes on from a bundle.
    pub fn continuing(bundle: BundleBuilder) -> Self {
        Self {
            bundle,
            ..Self::default()
        }
    }

    /// The bundle so far.
    pub(crate) fn bundle(&mut self) -> &mut BundleBuilder {
        &mut self.bundle
    }

    /// The bundle so far, to add facts to it and to write it.
    pub fn finish(self) -> BundleBuilder {
        self.bundle
    }

    /// Lowers all rules of a policy, the generated ones included.
    ///
    /// Rules that cannot be lowered are left out and handed to `refused`.
    pub fn lower_policy(
        &mut self,
        policy: &Policy,
        sources: &Sources,
        limits: &Limits,
        refused: &mut dyn FnMut(&Rule, LowerError),
    ) {
        let number = self.bundle.policies.len() as u32;
        let first = self.bundle.rules.len();
        for indexed in computed_rules(policy) {
            if let Err(error) = self.lower_rule(policy, number, &indexed, sources, limits) {
                refused(&indexed.rule, error);
            }
        }
        let rules = Range::new(first, self.bundle.rules.len() - first);
        let overrides = self.action_overrides(&policy.failure_action_overrides, sources, limits);
        let entry = table::Policy {
            name: self.bundle.text(&policy.name.value),
            namespace: self.bundle.text(namespace_of(policy).unwrap_or("")),
            flags: policy_flags(policy),
            rules,
            overrides,
        };
        self.bundle.policies.push(entry);
    }

    /// The pools of the bundle, for one block after another.
    pub(crate) fn pools<'b>(&'b mut self, sources: &'b Sources, limits: &'b Limits) -> Pools<'b> {
        Pools {
            bundle: &mut self.bundle,
            limits,
            constants: &mut self.constants,
            sources,
            leaves: &mut self.leaves,
            paths: &mut self.paths,
            texts: &mut self.texts,
            checks: &mut self.checks,
            shapes: &mut self.shapes,
        }
    }

    fn lower_rule(
        &mut self,
        policy: &Policy,
        policy_number: u32,
        indexed: &IndexedRule,
        sources: &Sources,
        limits: &Limits,
    ) -> Result<(), LowerError> {
        let rule = &indexed.rule;
        let Some(validate) = &rule.validate else {
            return unsupported(rule_type(rule), rule.tree.span);
        };
        refuse_unsupported(rule, validate)?;
        let (first_slot, first_entry) = (self.bundle.slots.len(), self.bundle.entries.len());
        let mut pools = self.pools(sources, limits);
        let blocks = lower_blocks(policy, rule, validate, &mut pools)?;
        let (slots, entries) = (pools.bundle.slots.len(), pools.bundle.entries.len());
        let entry = table::Rule {
            policy: U32::new(policy_number),
            name: self.bundle.text(&rule.name.value),
            match_block: U32::new(blocks.matching),
            body_block: U32::new(blocks.body),
            precondition_block: U32::new(blocks.preconditions),
            message_block: U32::new(blocks.message),
            properties_block: U32::new(blocks.properties),
            slots: Range::new(first_slot, slots - first_slot),
            entries: Range::new(first_entry, entries - first_entry),
            body: blocks.kind as u8,
            flags: rule_flags(policy, validate, indexed.generated),
            message_kind: blocks.message_kind as u8,
            message: self.bundle.text(&blocks.message_text),
            kinds: self.index_kinds(&indexed.kinds),
            keys: self.index_keys(policy, rule),
            dropped_kinds: self.index_kinds(&indexed.dropped_kinds),
            overrides: self.action_overrides(&validate.failure_action_overrides, sources, limits),
            properties: self.properties(rule),
            exceptions: Range::EMPTY,
        };
        self.bundle.rules.push(entry);
        let location = Location {
            source: policy.source,
            span: rule.tree.span,
        };
        self.bundle
            .rule_places
            .push(codegen::place(location, sources));
        Ok(())
    }

    fn index_kinds(&mut self, kinds: &[String]) -> Range {
        let start = self.bundle.index_kinds.len();
        for kind in kinds {
            let text = self.bundle.text(kind);
            self.bundle.index_kinds.push(text);
        }
        Range::new(start, kinds.len())
    }

    /// A namespaced policy looks at its own namespace, whatever its rules match.
    fn index_keys(&mut self, policy: &Policy, rule: &Rule) -> Range {
        let keys = match namespace_of(policy) {
            Some(namespace) => vec![Key::whole(KeyKind::Namespace, namespace)],
            None => index_key::keys(&rule.match_block),
        };
        self.key_range(&keys)
    }

    fn key_range(&mut self, keys: &[Key]) -> Range {
        let start = self.bundle.index_keys.len();
        for key in keys {
            let entry = table::IndexKey {
                kind: key.kind as u8,
                whole: u8::from(key.whole),
                text: self.bundle.text(&key.text),
            };
            self.bundle.index_keys.push(entry);
        }
        Range::new(start, keys.len())
    }

    fn properties(&mut self, rule: &Rule) -> Range {
        let start = self.bundle.pairs.len();
        for (key, value) in &rule.report_properties {
            let pair = table::Pair {
                key: self.bundle.text(key),
                value: self.bundle.text(&value.value),
            };
            self.bundle.pairs.push(pair);
        }
        Range::new(start, rule.report_properties.len())
    }

    fn action_overrides(
        &mut self,
        overrides: &[FailureActionOverride],
        sources: &Sources,
        limits: &Limits,
    ) -> Range {
        // An action that is none of the four spellings is passed over at evaluation.
        let valid = |entry: &&FailureActionOverride| {
            matches!(
                entry.action.as_str(),
                "Enforce" | "enforce" | "Audit" | "audit"
            )
        };
        let entries: Vec<table::ActionOverride> = overrides
            .iter()
            .filter(valid)
            .map(|entry| {
                let mut pools = self.pools(sources, limits);
                table::ActionOverride {
                    enforce: u8::from(is_enforce(&entry.action)),
                    namespaces: U32::new(
                        entry
                            .namespaces
                            .as_ref()
                            .map_or(NONE, |list| pools.text_list(list)),
                    ),
                    selector: U32::new(pools.optional_selector(entry.namespace_selector.as_ref())),
                }
            })
            .collect();
        let start = self.bundle.action_overrides.len();
        self.bundle.action_overrides.extend(&entries);
        Range::new(start, entries.len())
    }
}

fn is_enforce(action: &str) -> bool {
    matches!(action, "Enforce" | "enforce")
}

fn policy_flags(policy: &Policy) -> u8 {
    let unscored = policy
        .annotations
        .iter()
        .any(|(key, value)| key == "policies.kyverno.io/scored" && value == "false");
    let flags = [
        (policy.kind == PolicyKind::Policy, PolicyFlags::NAMESPACED),
        (
            policy.apply_rules == ApplyRules::One,
            PolicyFlags::APPLY_ONE,
        ),
        (
            policy.failure_action.as_deref().is_some_and(is_enforce),
            PolicyFlags::ENFORCE,
        ),
        (unscored, PolicyFlags::UNSCORED),
    ];
    flags
        .iter()
        .filter(|(set, _)| *set)
        .fold(0, |flags, (_, flag)| flags | flag)
}

fn rule_flags(policy: &Policy, validate: &Validate, generated: bool) -> u8 {
    let action = validate
        .failure_action
        .as_deref()
        .filter(|action| !action.is_empty());
    let enforce = action
        .or(policy.failure_action.as_deref())
        .is_some_and(is_enforce);
    let flags = [
        (enforce, RuleFlags::ENFORCE),
        (action.is_some(), RuleFlags::OWN_ACTION),
        (
            validate.allow_existing_violations,
            RuleFlags::ALLOW_EXISTING,
        ),
        (generated, RuleFlags::GENERATED),
    ];
    flags
        .iter()
        .filter(|(set, _)| *set)
        .fold(0, |flags, (_, flag)| flags | flag)
}

/// The namespace of a namespaced policy.
fn namespace_of(policy: &Policy) -> Option<&str> {
    let namespace = policy.namespace.as_deref();
    (policy.kind == PolicyKind::Policy).then(|| {
        namespace
            .filter(|name| !name.is_empty())
            .unwrap_or("default")
    })
}

fn rule_type(rule: &Rule) -> &'static str {
    if rule.mutate.is_some() {
        "a mutate rule"
    } else if rule.generate.is_some() {
        "a generate rule"
    } else {
        "a verifyImages rule"
    }
}

/// Refuses what has no front end yet.
fn refuse_unsupported(rule: &Rule, validate: &Validate) -> Result<(), LowerError> {
    if rule.verify_images.is_some() {
        return unsupported("verifyImages", rule.tree.span);
    }
    let parts = [("validate.manifests", &validate.manifests)];
    for (what, part) in parts {
        if let Some(part) = part {
            return unsupported(what, part.span);
        }
    }
    Ok(())
}
