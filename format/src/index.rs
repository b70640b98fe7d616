//! The match index: from a resource's kind to the rules worth trying.
//!
//! It is derived from the kinds that each rule lists, by the compiler when a bundle
//! is written and again by the verifier when one is loaded, so that a bundle cannot
//! hide a rule.

use std::collections::BTreeMap;

use zerocopy::little_endian::U32;

use crate::bundle::{BundleBuilder, Tables};
use crate::symbol::SymbolId;
use crate::table::{IndexEntry, Range};

/// The three tables of the index.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    entries: Vec<IndexEntry>,
    rules: Vec<U32>,
    wildcard_rules: Vec<U32>,
}

/// Whether a kind holds a wildcard, so that its rule is tried for every kind.
fn has_wildcard(kind: &str) -> bool {
    kind.contains(['*', '?'])
}

fn derive<'k>(
    rules: impl Iterator<Item = Vec<&'k str>>,
    symbol: impl Fn(&str) -> Option<SymbolId>,
) -> Option<Index> {
    let mut by_kind: BTreeMap<u32, Vec<U32>> = BTreeMap::new();
    let mut index = Index::default();
    for (rule, kinds) in rules.enumerate() {
        let rule = U32::new(rule as u32);
        if kinds.iter().any(|kind| has_wildcard(kind)) {
            index.wildcard_rules.push(rule);
            continue;
        }
        for kind in kinds {
            let listed = by_kind.entry(symbol(kind)?.0).or_default();
            if listed.last() != Some(&rule) {
                listed.push(rule);
            }
        }
    }
    for (kind, rules) in by_kind {
        let range = Range::new(index.rules.len(), rules.len());
        index.entries.push(IndexEntry {
            kind: U32::new(kind),
            rules: range,
        });
        index.rules.extend(rules);
    }
    Some(index)
}

/// Fills the index tables of a bundle that is about to be written.
pub(crate) fn build(builder: &mut BundleBuilder) {
    let pool = builder.pool().to_owned();
    let text = |text: &crate::table::Text| {
        let start = text.offset.get() as usize;
        pool.get(start..start + text.length.get() as usize)
            .unwrap_or("")
    };
    for kind in &builder.index_kinds {
        builder.symbols.intern(text(kind));
    }
    let symbols: BTreeMap<&str, SymbolId> = builder
        .index_kinds
        .iter()
        .map(text)
        .map(|kind| (kind, builder.symbols.intern(kind)))
        .collect();
    let kinds = builder.rules.iter().map(|rule| {
        Tables::range(&builder.index_kinds, rule.kinds)
            .iter()
            .map(text)
            .collect()
    });
    if let Some(index) = derive(kinds, |kind| symbols.get(kind).copied()) {
        builder.index = index.entries;
        builder.index_rules = index.rules;
        builder.wildcard_rules = index.wildcard_rules;
    }
}

/// Whether the index of a bundle is the one that its rules give.
pub(crate) fn is_derived_from_rules(tables: &Tables<'_>) -> bool {
    let kinds = tables.rules.iter().map(|rule| {
        Tables::range(tables.index_kinds, rule.kinds)
            .iter()
            .map(|&kind| tables.text(kind))
            .collect()
    });
    derive(kinds, |kind| tables.symbols.lookup(kind.as_bytes())).is_some_and(|index| {
        index.entries == tables.index
            && index.rules == tables.index_rules
            && index.wildcard_rules == tables.wildcard_rules
    })
}
