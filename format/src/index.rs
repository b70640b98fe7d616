//! The match index: maps an object's kind, resource, namespace, name and operation to the
//! rules worth trying.
//!
//! It is derived from the kinds and keys that each rule lists, by the compiler when a
//! bundle is written and again by the verifier when one is loaded, so that a bundle cannot
//! hide a rule.
//!
//! A rule without keys is tried for every object of its kinds. A rule with keys is listed
//! in the nodes of these keys: a text that must be the object's namespace, name or
//! operation, or a prefix of it. All nodes for an object are found by one binary search in
//! each of the three lists, because each node refers to the longest other prefix of its
//! text: the cost for an object does not grow with the rules for other objects.

use std::collections::{BTreeMap, BTreeSet};

use zerocopy::little_endian::U32;

use crate::sections::{BundleBuilder, Tables};
use crate::symbol::SymbolId;
use crate::table::{IndexEntry, IndexKey, IndexNode, KeyKind, NONE, Range, Rule, Text};

/// The tables of the index.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    entries: Vec<IndexEntry>,
    nodes: Vec<IndexNode>,
    rules: Vec<U32>,
}

/// The rules of one kind.
#[derive(Default)]
struct Files<'t> {
    always: Vec<U32>,
    keyed: [BTreeMap<NodeKey<'t>, Vec<U32>>; KeyKind::ALL.len()],
}

/// Orders nodes: by text, the whole text after the same prefix.
type NodeKey<'t> = (&'t str, u8);

/// Whether a kind contains a wildcard, so that its rule is tried for every kind.
fn has_wildcard(kind: &str) -> bool {
    kind.contains(['*', '?'])
}

/// A table of rules with the texts that they refer to.
struct Source<'s, T, S> {
    rules: &'s [Rule],
    kinds: &'s [Text],
    keys: &'s [IndexKey],
    text: T,
    symbol: S,
}

impl<'t, T: Fn(Text) -> &'t str, S: Fn(&str) -> Option<SymbolId>> Source<'_, T, S> {
    /// The index; `None` if a kind has no symbol.
    fn index(&self) -> Option<Index> {
        let mut files: BTreeMap<u32, Files<'t>> = BTreeMap::new();
        for (number, rule) in self.rules.iter().enumerate() {
            let keys = Tables::range(self.keys, rule.keys);
            for kind in self.symbols_of(rule)? {
                file(
                    U32::new(number as u32),
                    keys,
                    &self.text,
                    files.entry(kind).or_default(),
                );
            }
        }
        let mut texts = BTreeMap::new();
        for key in self.keys {
            texts.entry((self.text)(key.text)).or_insert(key.text);
        }
        let mut index = Index::default();
        for (kind, files) in files {
            index.add(kind, files, &texts);
        }
        Some(index)
    }

    /// Every kind of a rule once; [`NONE`] alone for every kind.
    fn symbols_of(&self, rule: &Rule) -> Option<BTreeSet<u32>> {
        let kinds = Tables::range(self.kinds, rule.kinds);
        let mut kinds = kinds.iter().map(|&kind| (self.text)(kind));
        if kinds.clone().any(has_wildcard) {
            return Some(BTreeSet::from([NONE]));
        }
        kinds.try_fold(BTreeSet::new(), |mut symbols, kind| {
            symbols.insert((self.symbol)(kind)?.0);
            Some(symbols)
        })
    }
}

fn file<'t>(rule: U32, keys: &[IndexKey], text: &impl Fn(Text) -> &'t str, files: &mut Files<'t>) {
    if keys.is_empty() {
        files.always.push(rule);
    }
    for key in keys {
        if let Some(nodes) = files.keyed.get_mut(key.kind as usize) {
            let rules = nodes.entry((text(key.text), key.whole)).or_default();
            if rules.last() != Some(&rule) {
                rules.push(rule);
            }
        }
    }
}

impl Index {
    fn add(&mut self, kind: u32, files: Files<'_>, texts: &BTreeMap<&str, Text>) {
        let rules = self.add_rules(&files.always);
        let keyed = files.keyed.map(|nodes| self.add_nodes(&nodes, texts));
        self.entries.push(IndexEntry {
            kind: U32::new(kind),
            rules,
            keyed,
        });
    }

    fn add_rules(&mut self, rules: &[U32]) -> Range {
        let range = Range::new(self.rules.len(), rules.len());
        self.rules.extend(rules);
        range
    }

    fn add_nodes(
        &mut self,
        nodes: &BTreeMap<NodeKey<'_>, Vec<U32>>,
        texts: &BTreeMap<&str, Text>,
    ) -> Range {
        let first = self.nodes.len();
        // The prefixes of the current text, each with its node.
        let mut beginnings: Vec<(&str, u32)> = Vec::new();
        for (number, (&(text, whole), rules)) in nodes.iter().enumerate() {
            while beginnings
                .last()
                .is_some_and(|&(beginning, _)| !text.starts_with(beginning))
            {
                beginnings.pop();
            }
            let parent = beginnings.last().map_or(NONE, |&(_, node)| node);
            if whole == 0 {
                beginnings.push((text, number as u32));
            }
            let rules = self.add_rules(rules);
            // Every text of a node is the text of a key.
            let Some(&text) = texts.get(text) else {
                continue;
            };
            self.nodes.push(IndexNode {
                text,
                whole,
                parent: U32::new(parent),
                rules,
            });
        }
        Range::new(first, self.nodes.len() - first)
    }
}

/// The keys that are looked up in every object before any rule is tried. As symbols they
/// are found faster, and a projection can name them.
const KEYS_OF_OBJECTS: [&str; 8] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
];

/// Fills the index tables of a bundle that is about to be written.
pub(crate) fn build(builder: &mut BundleBuilder) {
    for key in KEYS_OF_OBJECTS {
        builder.symbols.intern(key);
    }
    let pool = &builder.pool;
    let text = |text: Text| pool.get(text);
    let mut symbols = BTreeMap::new();
    for &kind in &builder.index_kinds {
        symbols.insert(text(kind), builder.symbols.intern(text(kind)));
    }
    let source = Source {
        rules: &builder.rules,
        kinds: &builder.index_kinds,
        keys: &builder.index_keys,
        text,
        symbol: |kind: &str| symbols.get(kind).copied(),
    };
    if let Some(index) = source.index() {
        builder.index = index.entries;
        builder.index_nodes = index.nodes;
        builder.index_rules = index.rules;
    }
}

/// Whether the index of a bundle is the one derived from its rules.
pub(crate) fn is_derived_from_rules(tables: &Tables<'_>) -> bool {
    let source = Source {
        rules: tables.rules,
        kinds: tables.index_kinds,
        keys: tables.index_keys,
        text: |text| tables.text(text),
        symbol: |kind: &str| tables.symbols.lookup(kind.as_bytes()),
    };
    source.index().is_some_and(|index| {
        index.entries == tables.index
            && index.nodes == tables.index_nodes
            && index.rules == tables.index_rules
    })
}

/// What the index needs to know about an object, in the order of [`KeyKind`].
#[derive(Debug, Clone, Copy)]
pub struct ObjectKeys<'o> {
    /// Name of its kind's resource; empty if no rule uses resources.
    pub resource: &'o str,
    /// Its namespace; for a Namespace its name.
    pub namespace: &'o str,
    /// Its name, or `generateName` if it has none.
    pub name: &'o str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'o str,
}

impl Tables<'_> {
    /// Fills `candidates` with the rules that may match an object, in the order of
    /// evaluation, each once. Previous content is discarded.
    pub fn candidate_rules(&self, kind: &str, object: &ObjectKeys<'_>, candidates: &mut Vec<u32>) {
        candidates.clear();
        let entry_of = |kind: u32| {
            let found = self
                .index
                .binary_search_by_key(&kind, |entry| entry.kind.get());
            found.ok().and_then(|entry| self.index.get(entry))
        };
        let listed = |name: &str| {
            let symbol = self.symbols.lookup(name.as_bytes());
            symbol.and_then(|symbol| entry_of(symbol.0))
        };
        // Names of kinds begin with a capital, those of resources do not.
        let resource = match object.resource {
            "" => None,
            name if name == kind => None,
            name => listed(name),
        };
        let entries = [listed(kind), resource, entry_of(NONE)];
        let mut lists = 0;
        let mut add = |rules: Range| {
            let rules = Self::range(self.index_rules, rules);
            lists += usize::from(!rules.is_empty());
            candidates.extend(rules.iter().map(|rule| rule.get()));
        };
        for entry in entries.into_iter().flatten() {
            add(entry.rules);
            let texts = [object.namespace, object.name, object.operation];
            for (nodes, text) in entry.keyed.into_iter().zip(texts) {
                self.for_nodes(Self::range(self.index_nodes, nodes), text, &mut add);
            }
        }
        // Each list is ascending; a rule with several keys may be in several lists.
        if lists > 1 {
            candidates.sort_unstable();
            candidates.dedup();
        }
    }

    /// Every rule that is listed under one of the kinds or resources, whatever else objects
    /// have; in order, each once. The kinds are symbol numbers, and [`NONE`] for the rules
    /// of every kind.
    pub fn rules_listed_under(&self, kinds: &[u32]) -> Vec<u32> {
        let is_wanted = |entry: &&IndexEntry| kinds.contains(&entry.kind.get());
        let mut rules = Vec::new();
        for entry in self.index.iter().filter(is_wanted) {
            let keyed = entry.keyed.into_iter();
            let nodes = keyed.flat_map(|nodes| Self::range(self.index_nodes, nodes));
            let keyed = nodes.map(|node| node.rules);
            for range in std::iter::once(entry.rules).chain(keyed) {
                let listed = Self::range(self.index_rules, range);
                rules.extend(listed.iter().map(|rule| rule.get()));
            }
        }
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// Of the rules under [`Tables::rules_listed_under`] those that are tried for every
    /// object with this operation, whatever its name and namespace.
    pub fn rules_of_every(&self, kinds: &[u32], operation: &str) -> Vec<u32> {
        let is_wanted = |entry: &&IndexEntry| kinds.contains(&entry.kind.get());
        let mut rules = Vec::new();
        let mut add = |range: Range| {
            let listed = Self::range(self.index_rules, range);
            rules.extend(listed.iter().map(|rule| rule.get()));
        };
        for entry in self.index.iter().filter(is_wanted) {
            add(entry.rules);
            let [_, _, by_operation] = entry.keyed;
            let nodes = Self::range(self.index_nodes, by_operation);
            self.for_nodes(nodes, operation, &mut add);
        }
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// Passes on the rules of every node that matches a text.
    fn for_nodes(&self, nodes: &[IndexNode], text: &str, add: &mut impl FnMut(Range)) {
        let behind = nodes.partition_point(|node| self.text(node.text) <= text);
        let mut next = behind.checked_sub(1);
        while let Some(node) = next.and_then(|node| nodes.get(node)) {
            let key = self.text(node.text);
            let holds = match node.whole {
                0 => text.starts_with(key),
                _ => text == key,
            };
            if holds {
                add(node.rules);
            }
            // Parents come before their children, so this terminates.
            next = Some(node.parent.get() as usize).filter(|_| node.parent.get() != NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(text: &str) -> (KeyKind, u8, &str) {
        (KeyKind::Namespace, 0, text)
    }

    fn whole(text: &str) -> (KeyKind, u8, &str) {
        (KeyKind::Namespace, 1, text)
    }

    /// A bundle with one rule for each list of keys; rules with odd numbers are for every
    /// kind.
    fn index_of(rules: &[&[(KeyKind, u8, &str)]]) -> BundleBuilder {
        let mut builder = BundleBuilder::new();
        for (number, keys) in rules.iter().enumerate() {
            let kind = builder.text(if number % 2 == 0 { "Pod" } else { "*" });
            builder.index_kinds.push(kind);
            let first = builder.index_keys.len();
            for &(kind, whole, text) in *keys {
                let text = builder.text(text);
                let kind = kind as u8;
                builder.index_keys.push(IndexKey { kind, whole, text });
            }
            let mut rule = <Rule as zerocopy::FromZeros>::new_zeroed();
            rule.kinds = Range::new(number, 1);
            rule.keys = Range::new(first, keys.len());
            builder.rules.push(rule);
        }
        build(&mut builder);
        builder
    }

    #[test]
    fn rules_are_found_by_what_the_object_has() {
        let mut builder = index_of(&[
            &[],
            &[whole("team-a")],
            &[beginning("team-")],
            &[beginning("te"), whole("team-a")],
            &[beginning("team-a"), (KeyKind::Operation, 1, "DELETE")],
            &[(KeyKind::Name, 0, "web-")],
            &[whole("")],
        ]);
        let symbols = std::mem::take(&mut builder.symbols).finish();
        let tables = Tables {
            symbols: crate::symbol::SymbolTable::from_verified(&symbols).unwrap(),
            pool: builder.pool.as_str(),
            rules: &builder.rules,
            index: &builder.index,
            index_nodes: &builder.index_nodes,
            index_rules: &builder.index_rules,
            index_kinds: &builder.index_kinds,
            index_keys: &builder.index_keys,
            ..Tables::EMPTY
        };
        assert!(is_derived_from_rules(&tables));
        for node in 0..builder.index_nodes.len() {
            let mut wrong = builder.index_nodes.clone();
            wrong[node].rules = Range::EMPTY;
            let index_nodes = wrong.as_slice();
            assert!(!is_derived_from_rules(&Tables {
                index_nodes,
                ..tables
            }));
        }
        // Kind, namespace, name, operation; the rules.
        let rows: [(&str, [&str; 3], &[u32]); 9] = [
            ("Pod", ["team-a", "x", "CREATE"], &[0, 1, 2, 3, 4]),
            ("Pod", ["team-b", "x", "CREATE"], &[0, 2, 3]),
            ("Pod", ["team", "x", "CREATE"], &[0, 3]),
            ("Pod", ["team-a-1", "x", "CREATE"], &[0, 2, 3, 4]),
            ("Pod", ["zoo", "web-1", "CREATE"], &[0, 5]),
            ("Pod", ["zoo", "web", "DELETE"], &[0, 4]),
            ("Pod", ["", "web", "CREATE"], &[0, 6]),
            ("Node", ["team-a", "web-", "DELETE"], &[1, 3, 5]),
            ("Pod", ["aaa", "x", "CREATE"], &[0]),
        ];
        let mut candidates = vec![99];
        for (kind, [namespace, name, operation], rules) in rows {
            let object = ObjectKeys {
                resource: "",
                namespace,
                name,
                operation,
            };
            tables.candidate_rules(kind, &object, &mut candidates);
            assert_eq!(candidates, rules, "{kind} {namespace} {name} {operation}");
        }
        let of_every = |kind: &str, operation| {
            let symbol = tables.symbols.lookup(kind.as_bytes());
            let symbol = symbol.map_or(NONE, |symbol| symbol.0);
            tables.rules_of_every(&[symbol, NONE], operation)
        };
        assert_eq!(of_every("Pod", "DELETE"), [0, 4]);
        assert_eq!(of_every("Pod", "CREATE"), [0]);
        assert_eq!(of_every("Node", "DELETE"), [0u32; 0]);
    }
}
