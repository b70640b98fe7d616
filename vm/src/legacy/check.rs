use std::collections::HashMap;
use kpvm_format::Tables;
use kpvm_format::instruction::Op;
use kpvm_format::table::{BodyKind, KindSelector, NONE, PolicyFlags, Rule};
use super::projection::derive;
use super::projection::Topic;
use crate::engine::Operation;
use super::places::Projection;
use super::{BodyId, Plan, compare as lines};

fn is_dropped(rule: &Rule, kind: &str, tables: &Tables<'_>) -> bool {
    Tables::range(tables.index_kinds, rule.dropped_kinds)
        .iter()
        .any(|&dropped| tables.text(dropped) == kind)
}

pub(crate) fn check(tables: &Tables<'_>, kind: &str, resource: &str, operation: Operation) {
    thread_local! { static SEEN: std::cell::RefCell<std::collections::BTreeSet<(usize, usize, String, String, u8)>> = Default::default(); }
    let key = (tables.code.as_ptr() as usize, tables.code.len(), kind.to_owned(), resource.to_owned(), operation.bit());
    if !SEEN.with(|seen| seen.borrow_mut().insert(key)) { return }
    let topic = Topic::new(tables, kind, resource);
    let may_plan = true;
        // Rules for some names or namespaces only would be tested for all objects, so they
        // are left to the index.
        let numbers = topic.rules_of_every(tables, operation.name());
        let kind = kind;
        let rules = numbers
            .iter()
            .filter_map(|&rule| tables.rules.get(rule as usize));
        let patterns = [BodyKind::Pattern as u8, BodyKind::AnyPattern as u8];
        let bodies = rules.filter(|rule| patterns.contains(&rule.body));
        let plan = Plan::of_blocks(tables, bodies.map(|rule| rule.body_block.get()));
        let plan = Some(plan).filter(|plan| may_plan && !plan.is_empty());
        let plain = plan.as_ref().map_or_else(Vec::new, |plan| {
            let plain = |&rule: &u32| PlainRule::of(tables, rule, kind, plan);
            share_kinds(tables, numbers.iter().filter_map(plain).collect())
        });
        let slim = plan
            .as_ref()
            .and_then(|plan| derive(tables, topic, Some(plan)));

    compare(tables, topic, operation, plan.as_ref(), &plain, slim.as_ref());
}
/// A rule whose match is about kinds alone and whose body is part of the plan, without
/// anything else around it that could make a difference to an object that passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainRule {
    pub(super) rule: u32,
    /// The list of kind selectors that it matches; equal lists have one number.
    pub(super) kinds: u32,
    pub(super) body: BodyId,
}

impl PlainRule {
    fn of(tables: &Tables<'_>, number: u32, kind: &str, plan: &Plan) -> Option<Self> {
        let rule = tables.rules.get(number as usize)?;
        let policy = tables.policies.get(rule.policy.get() as usize)?;
        let body = plan.find(rule.body_block.get())?;
        let is_plain = rule.precondition_block.get() == NONE
            && rule.properties_block.get() == NONE
            && Tables::range(tables.exceptions, rule.exceptions).is_empty()
            && !is_dropped(rule, kind, tables)
            && policy.flags & (PolicyFlags::NAMESPACED | PolicyFlags::APPLY_ONE) == 0;
        let block = tables.blocks.get(rule.match_block.get() as usize)?;
        let [kinds, matched, ..] = tables.block_code(block) else {
            return None;
        };
        let is_kinds = Op::decode(kinds.op) == Some(Op::MatchKinds)
            && Op::decode(matched.op) == Some(Op::ReturnMatched);
        (is_plain && is_kinds).then(|| Self {
            rule: number,
            kinds: kinds.c.get(),
            body,
        })
    }
}

/// Gives equal lists of kind selectors the number of the first of them.
fn share_kinds(tables: &Tables<'_>, mut rules: Vec<PlainRule>) -> Vec<PlainRule> {
    let mut numbers: HashMap<&[KindSelector], u32> = HashMap::new();
    for rule in &mut rules {
        if let Some(&range) = tables.kind_lists.get(rule.kinds as usize) {
            let selectors = Tables::range(tables.kind_selectors, range);
            rule.kinds = *numbers.entry(selectors).or_insert(rule.kinds);
        }
    }
    rules
}

fn compare(
    tables: &Tables<'_>,
    topic: Topic<'_>,
    operation: Operation,
    plan: Option<&Plan>,
    plain: &[PlainRule],
    slim: Option<&Projection>,
) {
    
    let [kind, resource] = topic.symbols;
    let stored = tables.topic(kind, resource).unwrap_or_else(|| panic!("no topic for {topic:?}"));
    let number = stored.operations[operation.bit().trailing_zeros() as usize].get();
    let stored = tables.kind_plans[number as usize];
    let (lines, spots) = lines::stored(stored.plan.get(), tables);
    let derived = plan.map_or(Vec::new(), |plan| lines::derived(plan, tables));
    same(&derived, &lines, "plan", topic);
    let derived_spots = plan.map_or(Vec::new(), |plan| lines::derived_spots(plan, tables));
    let project = |number| lines::stored_projection(tables.projection(number), &spots, tables);
    // spots at which nothing is demanded are not stored
    let kept: Vec<String> = derived_spots.iter().map(|s| if spots.contains(s) { s.clone() } else { "-".into() }).collect();
    let derived = slim.map(|slim| {
        let mut lines = slim.lines(&kept, &tables.symbols);
        lines.retain(|line| !line.ends_with("Some(\"-\")"));
        lines
    });
    same(&derived.unwrap_or_default(), &project(stored.slim.get()).unwrap_or_default(), "slim", topic);
    let full = derive(tables, topic, None).map(|full| full.lines(&[], &tables.symbols));
    same(&full.unwrap_or_default(), &project(stored.full.get()).unwrap_or_default(), "full", topic);
    let selectors = |list: u32| Tables::range(tables.kind_selectors, tables.kind_lists[list as usize]);
    let block = |body: u16| kpvm_format::plan::PlanView::new(tables, stored.plan.get()).unwrap().bodies()[body as usize].block.get();
    let stored: Vec<_> = Tables::range(tables.plain_rules, stored.plain).iter().map(|r| (r.rule.get(), selectors(r.kinds.get()), block(r.body.get()))).collect();
    let plain: Vec<_> = plain.iter().map(|r| (r.rule, selectors(r.kinds), plan.unwrap().block_of(r.body))).collect();
    assert!(stored == plain, "plain {topic:?}");
}

fn same(derived: &[String], stored: &[String], what: &str, topic: Topic<'_>) {
    if derived != stored {
        let only = |a: &[String], b: &[String]| a.iter().filter(|l| !b.contains(l)).take(20).cloned().collect::<Vec<_>>().join("\n");
        panic!("{what} {topic:?}: derived only:\n{}\nstored only:\n{}", only(derived, stored), only(stored, derived));
    }
}

