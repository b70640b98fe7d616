//! What is known about the objects of each kind: plan, projections and plain rules.

use std::collections::{BTreeSet, HashMap};

use kpvm_format::Tables;
use kpvm_format::instruction::Op;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{BodyKind, KindSelector, NONE, PolicyFlags};
use kpvm_semantics::resource_kind::make_plural;

use super::body::add_body;
use super::demands;
use super::places::{Place, Places};
use super::projection;
use super::spots::{Spot, Spots};
use super::write::{KindFacts, PlainRule, Sections, TopicFacts};

/// The operations, in the order of `Topic::operations`.
const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// Most bodies of all plans for each rule. Rules for every kind are part of the plan of each
/// kind that is named, so plans of many kinds could be much larger than the rules.
const BODIES_PER_RULE: usize = 16;

/// Analyses the rules for every kind that is named, and for those that are not.
pub(super) fn analyse(tables: &Tables<'_>) -> Sections {
    let mut kinds = Kinds {
        tables,
        known: HashMap::new(),
        selectors: first_of_equal_selectors(tables),
        bodies_left: tables
            .rules
            .len()
            .saturating_mul(BODIES_PER_RULE)
            .max(1 << 12),
        sections: Sections::default(),
    };
    for [kind, resource] in topics(tables) {
        let names = [kind, resource, NONE];
        let listed = tables.rules_listed_under(&names);
        let operations = OPERATIONS.map(|operation| {
            let rules = tables.rules_of_every(&names, operation);
            kinds.plan_of(kind, &listed, rules)
        });
        kinds.sections.topics.push(TopicFacts {
            kind,
            resource,
            operations,
        });
    }
    for (number, rule) in (0..).zip(tables.rules) {
        let demands = demands::of_rule(tables, rule).into_iter();
        let demands = demands.map(|demand| (number, demand));
        kinds.sections.demands.extend(demands);
    }
    kinds.sections
}

/// The pairs of kind and resource that are told apart, ascending.
fn topics(tables: &Tables<'_>) -> BTreeSet<[u32; 2]> {
    let matches_resources = tables
        .policies
        .iter()
        .any(|policy| policy.flags & PolicyFlags::RESOURCES != 0);
    let symbol = |name: &str| tables.symbols.lookup(name.as_bytes());
    let names = tables.index_kinds.iter();
    let names: BTreeSet<u32> = names
        .filter_map(|&name| symbol(tables.text(name)))
        .map(|symbol| symbol.0)
        .collect();
    let mut topics = BTreeSet::from([[NONE, NONE]]);
    for &name in &names {
        topics.insert([name, NONE]);
        if !matches_resources {
            continue;
        }
        topics.insert([NONE, name]);
        let mut plural = tables.symbols.text(SymbolId(name)).to_owned();
        make_plural(&mut plural, 0);
        let plural = symbol(&plural).filter(|plural| names.contains(&plural.0));
        topics.extend(plural.map(|plural| [name, plural.0]));
    }
    topics
}

/// Rules that decide what is known of a kind: the listed ones, those of every object, the plain
/// ones.
type PlanKey = (Vec<u32>, Vec<u32>, Vec<u32>);

struct Kinds<'t> {
    tables: &'t Tables<'t>,
    /// Numbers of what is known, by the rules that decide it.
    known: HashMap<PlanKey, u32>,
    /// For each list of kind selectors the first equal one.
    selectors: Vec<u32>,
    bodies_left: usize,
    sections: Sections,
}

impl Kinds<'_> {
    /// The number of what is known of a kind whose rules are `listed`, under an operation for
    /// which `rules` are tried whatever the object's name and namespace. Rules for some names
    /// or namespaces only would be tested for all objects, so they are left to the index.
    fn plan_of(&mut self, kind: u32, listed: &[u32], rules: Vec<u32>) -> u32 {
        let tables = self.tables;
        let candidates = rules.iter().copied();
        let candidates = candidates.filter(|&rule| self.may_be_plain(rule, kind));
        let candidates: Vec<u32> = candidates.collect();
        let key = (listed.to_vec(), rules, candidates);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let (_, rules, candidates) = &key;
        let spots = self.spots_of(rules);
        let is_planned = |block: u32| {
            let spots = spots.as_ref();
            spots.is_some_and(|spots| spots.holds(block))
        };
        let full = projection::of_rules(tables, listed, &|_| false);
        let slim = spots.as_ref().and_then(|spots| {
            let mut places = projection::of_rules(tables, listed, &is_planned)?;
            number_spots(&mut places, Place::ROOT, spots, Spot::ROOT);
            Some(places)
        });
        let plain = candidates.iter().filter_map(|&rule| {
            let record = tables.rules.get(rule as usize)?;
            let block = record.body_block.get();
            is_planned(block).then(|| PlainRule {
                rule,
                kinds: self.kinds_of(rule).unwrap_or(NONE),
                block,
            })
        });
        let facts = KindFacts {
            plain: plain.collect(),
            plan: spots,
            slim,
            full,
        };
        let number = self.sections.add(facts);
        self.known.insert(key, number);
        number
    }

    /// The plan of some rules, if any of their bodies can be part of one.
    fn spots_of(&mut self, rules: &[u32]) -> Option<Spots> {
        let patterns = [BodyKind::Pattern as u8, BodyKind::AnyPattern as u8];
        let rules = rules.iter();
        let rules = rules.filter_map(|&rule| self.tables.rules.get(rule as usize));
        let mut spots = Spots::new();
        for rule in rules.filter(|rule| patterns.contains(&rule.body)) {
            if spots.bodies.len() < self.bodies_left {
                add_body(&mut spots, self.tables, rule.body_block.get());
            }
        }
        self.bodies_left = self.bodies_left.saturating_sub(spots.bodies.len());
        (!spots.bodies.is_empty()).then_some(spots)
    }

    /// Whether nothing but kind and body decides if a rule passes an object of a kind.
    fn may_be_plain(&self, rule: u32, kind: u32) -> bool {
        let tables = self.tables;
        let Some(rule) = tables.rules.get(rule as usize) else {
            return false;
        };
        let Some(policy) = tables.policies.get(rule.policy.get() as usize) else {
            return false;
        };
        let Some(block) = tables.blocks.get(rule.match_block.get() as usize) else {
            return false;
        };
        let ops = tables.block_code(block).iter().take(2);
        let ops: Vec<Option<Op>> = ops.map(|code| Op::decode(code.op)).collect();
        let kind = tables.symbols.text(SymbolId(kind));
        let mut dropped = Tables::range(tables.index_kinds, rule.dropped_kinds).iter();
        ops == [Some(Op::MatchKinds), Some(Op::ReturnMatched)]
            && rule.precondition_block.get() == NONE
            && rule.properties_block.get() == NONE
            && Tables::range(tables.exceptions, rule.exceptions).is_empty()
            && !dropped.any(|&dropped| tables.text(dropped) == kind)
            && policy.flags & (PolicyFlags::NAMESPACED | PolicyFlags::APPLY_ONE) == 0
    }

    /// The first list equal to that of the kind selectors that a rule matches.
    fn kinds_of(&self, rule: u32) -> Option<u32> {
        let rule = self.tables.rules.get(rule as usize)?;
        let block = self.tables.blocks.get(rule.match_block.get() as usize)?;
        let list = self.tables.block_code(block).first()?.c.get();
        self.selectors.get(list as usize).copied()
    }
}

/// For each list of kind selectors the number of the first equal one.
fn first_of_equal_selectors(tables: &Tables<'_>) -> Vec<u32> {
    let mut numbers: HashMap<&[KindSelector], u32> = HashMap::new();
    let lists = (0..).zip(tables.kind_lists);
    lists
        .map(|(number, &list)| {
            let selectors = Tables::range(tables.kind_selectors, list);
            *numbers.entry(selectors).or_insert(number)
        })
        .collect()
}

/// Gives what is not read the plan's spots. Places nest as deep as plans do, so this recurses.
fn number_spots(places: &mut Places, place: Place, spots: &Spots, spot: Spot) {
    for below in spots.below(spot) {
        let key = spots.node(below).and_then(|node| node.key);
        let inside = match key {
            Some(key) => places.under(place, key),
            None => places.items(place),
        };
        if spots.tests_tags(below) {
            places.read_whole(inside);
        } else if spots.needs_nodes(below) {
            places.read_members(inside);
        }
        if places.set_spot(inside, below.0) {
            number_spots(places, inside, spots, below);
        }
    }
}
