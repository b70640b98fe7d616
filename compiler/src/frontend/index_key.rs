//! The keys of the match index: what an object must have for a `match` block to apply.
//!
//! Only necessary conditions matter here; the match block itself decides. A block with a
//! filter that requires no namespace, name or operation has no keys, and its rule is tried
//! for every object of its kinds.

use kpvm_format::table::KeyKind;

use crate::ir::IndexKey;
use crate::policy::model::{Filter, MatchBlock};

impl IndexKey {
    /// What every text that matches a pattern has; `None` if there is no such thing.
    fn of_pattern(kind: KeyKind, pattern: &str) -> Option<Self> {
        let Some(wildcard) = pattern.find(['*', '?']) else {
            return Some(Self::whole(kind, pattern));
        };
        let text = pattern.get(..wildcard).filter(|text| !text.is_empty())?;
        Some(Self {
            kind,
            whole: false,
            text: text.to_owned(),
        })
    }
}

/// The keys of which an object has at least one if the block applies to it; empty if
/// nothing is known (docs/spec/policies.md §4 and §5).
pub fn keys(block: &MatchBlock) -> Vec<IndexKey> {
    let listed = |filters: &'_ Option<Vec<Filter>>| filters.clone().filter(|list| !list.is_empty());
    if let Some(any) = listed(&block.any) {
        // A single filter without keys could apply to anything.
        let all: Option<Vec<Vec<IndexKey>>> = any.iter().map(filter_keys).collect();
        all.unwrap_or_default().concat()
    } else if let Some(all) = listed(&block.all) {
        all.iter()
            .filter_map(filter_keys)
            .min_by_key(|keys| rank(keys))
            .unwrap_or_default()
    } else {
        filter_keys(&block.direct).unwrap_or_default()
    }
}

/// Names distinguish objects better than namespaces, and these better than operations.
fn rank(keys: &[IndexKey]) -> (usize, usize) {
    let kind = match keys.first().map(|key| key.kind) {
        Some(KeyKind::Name) => 0,
        Some(KeyKind::Namespace) => 1,
        Some(KeyKind::Operation) | None => 2,
    };
    (kind, keys.len())
}

/// `None` if the filter requires nothing that is a key.
fn filter_keys(filter: &Filter) -> Option<Vec<IndexKey>> {
    let resources = &filter.resources;
    let patterns = |kind, patterns: &[String]| -> Option<Vec<IndexKey>> {
        let keys = patterns.iter().map(|text| IndexKey::of_pattern(kind, text));
        keys.collect::<Option<Vec<IndexKey>>>()
            .filter(|keys| !keys.is_empty())
    };
    let name = Some(&resources.name).filter(|name| !name.is_empty());
    let asked = [
        name.and_then(|name| patterns(KeyKind::Name, std::slice::from_ref(name))),
        patterns(KeyKind::Name, &resources.names),
        patterns(KeyKind::Namespace, &resources.namespaces),
        operation_keys(&resources.operations),
    ];
    asked.into_iter().flatten().min_by_key(|keys| rank(keys))
}

/// All four operations together select nothing.
fn operation_keys(operations: &[String]) -> Option<Vec<IndexKey>> {
    const ALL: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
    let is_listed = |name: &&str| operations.iter().any(|listed| listed == name);
    let keys: Vec<IndexKey> = ALL
        .iter()
        .copied()
        .filter(is_listed)
        .map(|name| IndexKey::whole(KeyKind::Operation, name))
        .collect();
    Some(keys).filter(|keys| !keys.is_empty() && keys.len() < ALL.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::IndexKey;
    use crate::policy::model::ResourceDescription;

    fn filter(names: &[&str], namespaces: &[&str], operations: &[&str]) -> Filter {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Filter {
            resources: ResourceDescription {
                names: texts(names),
                namespaces: texts(namespaces),
                operations: texts(operations),
                ..ResourceDescription::default()
            },
            ..Filter::default()
        }
    }

    fn any(filters: Vec<Filter>) -> MatchBlock {
        MatchBlock {
            any: Some(filters),
            ..MatchBlock::default()
        }
    }

    fn all(filters: Vec<Filter>) -> MatchBlock {
        MatchBlock {
            all: Some(filters),
            ..MatchBlock::default()
        }
    }

    /// The keys as texts: the kind of key, then `=` for a whole text or `^` for a prefix.
    fn shown(block: &MatchBlock) -> Vec<String> {
        let show = |key: &IndexKey| {
            let mark = if key.whole { '=' } else { '^' };
            format!("{:?}{mark}{}", key.kind, key.text)
        };
        keys(block).iter().map(show).collect()
    }

    #[test]
    fn a_block_has_the_keys_that_each_object_it_holds_for_has() {
        let one = || filter(&[], &["a", "team-*"], &[]);
        let named = || filter(&["web-?"], &["a"], &["DELETE"]);
        let nothing = || filter(&[], &[], &[]);
        let rows: [(&str, MatchBlock, &[&str]); 9] = [
            (
                "namespaces",
                any(vec![one()]),
                &["Namespace=a", "Namespace^team-"],
            ),
            ("a name is better", any(vec![named()]), &["Name^web-"]),
            (
                "one of two filters",
                any(vec![one(), named()]),
                &["Namespace=a", "Namespace^team-", "Name^web-"],
            ),
            ("a filter for everything", any(vec![one(), nothing()]), &[]),
            (
                "a wildcard in front",
                any(vec![filter(&[], &["a", "*-b"], &[])]),
                &[],
            ),
            (
                "both filters",
                all(vec![nothing(), one(), named()]),
                &["Name^web-"],
            ),
            (
                "operations",
                any(vec![filter(&[], &[], &["DELETE", "CONNECT"])]),
                &["Operation=DELETE", "Operation=CONNECT"],
            ),
            (
                "every operation",
                any(vec![filter(
                    &[],
                    &[],
                    &["CREATE", "UPDATE", "DELETE", "CONNECT"],
                )]),
                &[],
            ),
            (
                "the direct form",
                MatchBlock {
                    direct: one(),
                    ..MatchBlock::default()
                },
                &["Namespace=a", "Namespace^team-"],
            ),
        ];
        for (row, block, keys) in rows {
            assert_eq!(shown(&block), keys, "{row}");
        }
    }
}
