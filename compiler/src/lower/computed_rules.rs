//! Rules of a policy as listed in the index: written and generated ones.

use kpvm_syntax::tree::{Tree, TreeValue};

use crate::policy::autogen;
use crate::policy::kind_selector::KindSelector;
use crate::policy::model::{Filter, Policy, Rule};

/// A rule with the kinds under which the index lists it.
pub(crate) struct IndexedRule {
    pub(crate) rule: Rule,
    pub(crate) kinds: Vec<String>,
    pub(crate) dropped_kinds: Vec<String>,
    pub(crate) generated: bool,
}

/// Rules of a policy with the kinds they are tried for. Kyverno computes the rules for each
/// resource's kind (docs/spec/policies.md §12.2); here every rule that is visible to some
/// kind is compiled once, and the index says to which.
pub(crate) fn computed_rules(policy: &Policy) -> Vec<IndexedRule> {
    let mut generated: Vec<IndexedRule> = Vec::new();
    let mut replaced: Vec<String> = Vec::new();
    for kind in autogen::autogen_controllers(policy) {
        let rules = autogen::compute_rules(policy, Some(&kind));
        let names = |rules: &[Rule]| {
            rules
                .iter()
                .map(|rule| rule.name.value.clone())
                .collect::<Vec<_>>()
        };
        // If nothing is generated, the written rules unchanged; otherwise those not named
        // `autogen-…` come first.
        let kept = if names(&rules) == names(&policy.rules) {
            rules.len()
        } else {
            policy
                .rules
                .iter()
                .filter(|rule| !rule.name.value.starts_with("autogen-"))
                .count()
        };
        let new: Vec<Rule> = rules.into_iter().skip(kept).collect();
        if new.is_empty() || replaced.contains(&kind) {
            continue;
        }
        replaced.push(kind.clone());
        for rule in new {
            match generated
                .iter_mut()
                .find(|known| same_but_for_kinds(&known.rule, &rule))
            {
                Some(known) => {
                    add_kinds(&mut known.rule, &rule);
                    known.kinds.push(kind.clone());
                }
                None => generated.push(IndexedRule {
                    rule,
                    kinds: vec![kind.clone()],
                    dropped_kinds: Vec::new(),
                    generated: true,
                }),
            }
        }
    }
    let written = policy.rules.iter().map(|rule| {
        let dropped = if rule.name.value.starts_with("autogen-") {
            replaced.clone()
        } else {
            Vec::new()
        };
        let kinds = match_kinds(rule);
        IndexedRule {
            rule: rule.clone(),
            kinds: kinds
                .into_iter()
                .filter(|kind| !dropped.contains(kind))
                .collect(),
            dropped_kinds: dropped,
            generated: false,
        }
    });
    let mut rules: Vec<IndexedRule> = written.collect();
    // For one kind, generated rules are in the order of their source rules.
    let order = |rule: &Rule| {
        policy
            .rules
            .iter()
            .position(|written| written.tree.span == rule.tree.span)
    };
    generated.sort_by_key(|indexed| order(&indexed.rule));
    rules.extend(generated);
    rules
}

/// Kinds in the match block of a rule, without duplicates; `*` for a filter that names
/// none.
fn match_kinds(rule: &Rule) -> Vec<String> {
    let block = &rule.match_block;
    let used = |list: &'_ Option<Vec<Filter>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let filters: Vec<&Filter> = if used(&block.any) {
        block.any.iter().flatten().collect()
    } else if used(&block.all) {
        block.all.iter().flatten().collect()
    } else {
        vec![&block.direct]
    };
    let mut kinds = Vec::new();
    let mut add = |kind: String| {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    };
    for filter in filters {
        if filter.resources.kinds.is_empty() {
            add("*".into());
        }
        filter
            .resources
            .kinds
            .iter()
            .for_each(|kind| add(KindSelector::parse(&kind.value).kind));
    }
    kinds
}

fn filters_mut(rule: &mut Rule) -> impl Iterator<Item = &mut Filter> {
    let blocks = std::iter::once(&mut rule.match_block).chain(rule.exclude_block.as_mut());
    blocks.flat_map(|block| {
        let any = block.any.iter_mut().flatten();
        let all = block.all.iter_mut().flatten();
        any.chain(all).chain(std::iter::once(&mut block.direct))
    })
}

/// Whether two generated rules differ only in the kinds they match.
fn same_but_for_kinds(left: &Rule, right: &Rule) -> bool {
    let without_kinds = |rule: &Rule| {
        let mut rule = rule.clone();
        filters_mut(&mut rule).for_each(|filter| filter.resources.kinds.clear());
        rule.tree = Tree::new(TreeValue::Null, rule.tree.span);
        rule
    };
    left.name == right.name && without_kinds(left) == without_kinds(right)
}

fn add_kinds(into: &mut Rule, from: &Rule) {
    let mut from = from.clone();
    for (into, from) in filters_mut(into).zip(filters_mut(&mut from)) {
        for kind in from.resources.kinds.drain(..) {
            if !into
                .resources
                .kinds
                .iter()
                .any(|known| known.value == kind.value)
            {
                into.resources.kinds.push(kind);
            }
        }
    }
}
