//! What exceptions can name: policies and rules, with the variables in scope of their
//! preconditions, from a module or from a bundle that was compiled before.

use kpvm_format::Tables;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, BodyKind, PolicyFlags, Range};

use crate::frontend::scope::Scope;
use crate::ir::{self, EntryId, Module, RuleId, SlotId};

/// The policies and rules that exceptions can name.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// The policies, in order.
    pub(super) policies: Vec<TargetPolicy>,
    /// The rules, in order.
    pub(super) rules: Vec<TargetRule>,
}

/// A policy.
#[derive(Debug)]
pub(super) struct TargetPolicy {
    pub(super) name: String,
    /// The namespace of a namespaced policy.
    pub(super) namespace: Option<String>,
}

/// A rule.
#[derive(Debug)]
pub(super) struct TargetRule {
    pub(super) id: RuleId,
    /// Index of its policy.
    pub(super) policy: usize,
    pub(super) name: String,
    pub(super) body: BodyKind,
    /// Bits of [`kpvm_format::table::RuleFlags`].
    pub(super) flags: u8,
    /// Variables by name.
    slots: Vec<(String, SlotId)>,
    /// Entries by the name of their variable, except those of foreach blocks, which are not
    /// bound when exceptions are checked.
    entries: Vec<(String, EntryId)>,
}

impl TargetPolicy {
    /// The name that exceptions use: `name`, or `namespace/name` for a `Policy`.
    pub(super) fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) if !namespace.is_empty() => format!("{namespace}/{}", self.name),
            _ => self.name.clone(),
        }
    }
}

impl TargetRule {
    /// The scope of the rule's preconditions.
    pub(super) fn scope(&self) -> Scope {
        let mut scope = Scope::default();
        scope.rewrites_delete = true;
        for (name, slot) in &self.slots {
            if scope.slot(name).is_none() {
                scope.add_slot(name, *slot);
            }
        }
        for (name, entry) in &self.entries {
            scope.add_entry(name, *entry, false);
        }
        scope
    }
}

impl Targets {
    /// The targets in a module.
    pub(crate) fn of_module(module: &Module) -> Self {
        let name_of = |slot: SlotId| {
            let slot = module.slots.get(slot)?;
            Some(module.symbol_text(slot.name).to_owned())
        };
        let policy = |policy: &ir::Policy| TargetPolicy {
            name: policy.name.clone(),
            namespace: (policy.flags & PolicyFlags::NAMESPACED != 0)
                .then(|| policy.namespace.clone()),
        };
        let rule = |(id, rule): (RuleId, &ir::Rule)| TargetRule {
            id,
            policy: rule.policy.0 as usize,
            name: rule.name.clone(),
            body: rule.body,
            flags: rule.flags,
            slots: (rule.slots.start.0..rule.slots.end.0)
                .filter_map(|slot| Some((name_of(SlotId(slot))?, SlotId(slot))))
                .collect(),
            entries: (rule.entries.start.0..rule.entries.end.0)
                .filter_map(|entry| {
                    let record = module.entries.get(EntryId(entry))?;
                    let name = name_of(record.slot).filter(|_| !record.is_nested)?;
                    Some((name, EntryId(entry)))
                })
                .collect(),
        };
        Self {
            policies: module.policies.entries().iter().map(policy).collect(),
            rules: module.rules.iter().map(rule).collect(),
        }
    }

    /// The targets in a bundle.
    pub(crate) fn of_bundle(tables: &Tables<'_>) -> Self {
        let name_of = |slot: u32| {
            let slot = tables.slots.get(slot as usize)?;
            let name = tables.symbols.text(SymbolId(slot.name.get()));
            Some(name.to_owned())
        };
        let numbers = |range: Range| {
            let start = range.start.get();
            start..start.saturating_add(range.length.get())
        };
        let policy = |policy: &table::Policy| TargetPolicy {
            name: tables.text(policy.name).to_owned(),
            namespace: (policy.flags & PolicyFlags::NAMESPACED != 0)
                .then(|| tables.text(policy.namespace).to_owned()),
        };
        let rule = |(id, rule): (RuleId, &table::Rule)| TargetRule {
            id,
            policy: rule.policy.get() as usize,
            name: tables.text(rule.name).to_owned(),
            body: BodyKind::ALL
                .get(usize::from(rule.body))
                .copied()
                .unwrap_or(BodyKind::Pattern),
            flags: rule.flags,
            slots: numbers(rule.slots)
                .filter_map(|slot| Some((name_of(slot)?, SlotId(slot))))
                .collect(),
            entries: numbers(rule.entries)
                .filter_map(|entry| {
                    let record = tables.entries.get(entry as usize)?;
                    let name = name_of(record.slot.get()).filter(|_| record.nested == 0)?;
                    Some((name, EntryId(entry)))
                })
                .collect(),
        };
        let rules = (0..).map(RuleId).zip(tables.rules);
        Self {
            policies: tables.policies.iter().map(policy).collect(),
            rules: rules.map(rule).collect(),
        }
    }
}
