//! Lowering: turns a checked policy into rules of the module.

mod admission_policy;
pub(crate) mod computed_rules;
mod rule;
pub(crate) mod validating_policy;

use kpvm_format::table::{DEFAULT_NAMESPACE, KeyKind, PolicyFlags, RuleFlags};
use kpvm_syntax::tree::Span;

use self::computed_rules::{IndexedRule, computed_rules};
use self::rule::lower_blocks;
use crate::diagnostic::Diagnostic;
use crate::frontend::foreach::Loaders;
use crate::frontend::index_key;
use crate::ir::{self, ActionOverride, IndexKey, Module, PolicyId};
use crate::policy::model::{
    ApplyRules, FailureActionOverride, Policy, PolicyKind, Rule, Spanned, Validate,
};
use crate::source::Location;

pub(crate) use self::admission_policy::lower_admission_policy;
pub(crate) use self::validating_policy::lower_validating_policy;

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
    /// Its place.
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

/// Lowers all rules of a policy, including the generated ones.
///
/// Rules that cannot be lowered are left out and passed to `refused`.
pub fn lower_policy(
    policy: &Policy,
    module: &mut Module,
    refused: &mut dyn FnMut(&Rule, LowerError),
) {
    let id = module.policies.next();
    let first = module.rules.next();
    for indexed in computed_rules(policy) {
        if let Err(error) = lower_rule(policy, id, &indexed, module) {
            refused(&indexed.rule, error);
        }
    }
    let entry = ir::Policy {
        name: policy.name.value.clone(),
        namespace: namespace_of(policy).unwrap_or_default().to_owned(),
        flags: policy_flags(policy),
        rules: module.rules.since(first),
        overrides: action_overrides(&policy.failure_action_overrides, module),
    };
    module.policies.push(entry);
}

fn lower_rule(
    policy: &Policy,
    id: PolicyId,
    indexed: &IndexedRule,
    module: &mut Module,
) -> Result<(), LowerError> {
    let rule = &indexed.rule;
    let Some(validate) = &rule.validate else {
        return unsupported(rule_type(rule), rule.tree.span);
    };
    refuse_unsupported(rule, validate)?;
    let (first_slot, first_entry) = (module.slots.next(), module.entries.next());
    let lowered = lower_blocks(policy, rule, validate, module)?;
    let property = |(key, value): &(String, Spanned<String>)| (key.clone(), value.value.clone());
    let entry = ir::Rule {
        policy: id,
        name: rule.name.value.clone(),
        blocks: lowered.blocks,
        slots: module.slots.since(first_slot),
        entries: module.entries.since(first_entry),
        body: lowered.body,
        flags: rule_flags(policy, validate, indexed.generated),
        message_kind: lowered.message_kind,
        message: lowered.message,
        kinds: indexed.kinds.clone(),
        keys: index_keys(policy, rule),
        dropped_kinds: indexed.dropped_kinds.clone(),
        overrides: action_overrides(&validate.failure_action_overrides, module),
        properties: rule.report_properties.iter().map(property).collect(),
        location: Location {
            source: policy.source,
            span: rule.tree.span,
        },
    };
    module.rules.push(entry);
    Ok(())
}

/// A namespaced policy applies to its own namespace, whatever its rules match.
fn index_keys(policy: &Policy, rule: &Rule) -> Vec<IndexKey> {
    match namespace_of(policy) {
        Some("") => vec![IndexKey::whole(KeyKind::Namespace, DEFAULT_NAMESPACE)],
        Some(namespace) => vec![IndexKey::whole(KeyKind::Namespace, namespace)],
        None => index_key::keys(&rule.match_block),
    }
}

fn action_overrides(
    overrides: &[FailureActionOverride],
    module: &mut Module,
) -> Vec<ActionOverride> {
    // An action that is none of the four spellings is ignored at evaluation.
    let valid = |entry: &&FailureActionOverride| {
        matches!(
            entry.action.as_str(),
            "Enforce" | "enforce" | "Audit" | "audit"
        )
    };
    let valid = overrides.iter().filter(valid);
    valid
        .map(|entry| ActionOverride {
            enforces: is_enforce(&entry.action),
            namespaces: entry.namespaces.as_ref().map(|list| module.text_list(list)),
            selector: entry
                .namespace_selector
                .as_ref()
                .map(|selector| module.selector(selector)),
        })
        .collect()
}

/// Lowers the loaders of context entries, which come after the body that needs them.
pub(crate) fn add_loaders(loaders: Loaders, module: &mut Module) {
    for (entry, loader) in loaders {
        let block = module.add(loader);
        if let Some(entry) = module.entries.get_mut(entry) {
            entry.loader = Some(block);
        }
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

/// The namespace of a namespaced policy, empty if it is not written: the policy is then in no
/// namespace, and only applies to objects of `default` (docs/spec/policies.md §5.7).
fn namespace_of(policy: &Policy) -> Option<&str> {
    let namespace = policy.namespace.as_deref();
    (policy.kind == PolicyKind::Policy).then(|| namespace.unwrap_or_default())
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

/// Refuses what no front end supports yet.
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
