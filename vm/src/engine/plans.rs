//! The plans of a session: for each kind what its rules demand, and what of an object is
//! read to find out. Each is made when its kind is first seen.

use kpvm_format::instruction::immediate::Operations;
use std::collections::{BTreeMap, HashMap};

use kpvm_format::Tables;
use kpvm_format::instruction::Op;
use kpvm_format::table::{BodyKind, KindSelector, NONE, PolicyFlags};

use super::config::Config;
use super::evaluator::is_dropped;
use super::projection::{Topic, derive};
use super::request::Operation;
use crate::document::projection::Projection;
use crate::plan::{BodyId, Plan, Proof, Survey};

/// The plans of a session.
#[derive(Debug)]
pub(super) struct Plans {
    /// Whether less than the whole object may be read.
    pub(super) may_project: bool,
    /// Whether plans may be used.
    pub(super) may_plan: bool,
    /// By the symbols of kind and resource, of which what no rule names shares one, and the
    /// operation.
    kinds: BTreeMap<([u32; 2], Operations), KindPlan>,
    /// What was found out about the object at hand.
    pub(super) survey: Survey,
    /// Evaluations that had to be done again.
    pub(super) missed: u64,
}

/// What is known of a kind.
#[derive(Debug)]
pub(super) struct KindPlan {
    /// `None` where no body can be part of one.
    pub(super) plan: Option<Plan>,
    /// Rules of which nothing but kind and plan decides whether they pass; ascending.
    plain: Vec<PlainRule>,
    kind: String,
    symbols: [u32; 2],
    /// What is read where the plan decides.
    slim: Option<Projection>,
    /// What is read where rules are run; made when it is first needed.
    full: Option<Projection>,
    has_full: bool,
    used: u32,
    missed: u32,
    /// Of the objects of late, how many the plan did not decide.
    undecided: u32,
    seen: u32,
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

/// So often a projection may leave out too much before it is looked at how often that
/// happens.
const MISSES: u32 = 8;

/// Objects of late that are counted, at most.
const ROUND: u32 = 32;

/// So many objects are read for the plan before it is looked at how many it decided.
const FIRST: u32 = 8;

/// How much of an object is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// What is needed where the plan decides every body that is part of it.
    Slim,
    /// What rules look at.
    Full,
    /// Everything.
    Whole,
}

impl Plans {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            may_project: config.projection(),
            may_plan: config.plans(),
            kinds: BTreeMap::new(),
            survey: Survey::default(),
            missed: 0,
        }
    }

    /// What is known of a kind, and what the object at hand is surveyed into.
    pub(super) fn of(
        &mut self,
        tables: &Tables<'_>,
        topic: Topic<'_>,
        operation: Operation,
    ) -> (&mut KindPlan, &mut Survey) {
        let known = self.kinds.entry((topic.symbols, operation.bit()));
        let may_plan = self.may_plan;
        let known = known.or_insert_with(|| KindPlan::new(tables, topic, operation, may_plan));
        known.used = known.used.saturating_add(1);
        (known, &mut self.survey)
    }
}

impl KindPlan {
    fn new(tables: &Tables<'_>, topic: Topic<'_>, operation: Operation, may_plan: bool) -> Self {
        // Rules for some names or namespaces only would be tested for all objects, so they
        // are left to the index.
        let numbers = topic.rules_of_every(tables, operation.name());
        let kind = topic.kind;
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
        Self {
            plan,
            plain,
            kind: kind.to_owned(),
            symbols: topic.symbols,
            slim,
            full: None,
            has_full: false,
            used: 0,
            missed: 0,
            undecided: 0,
            seen: 0,
        }
    }

    /// The plain rules for an object that is of the kind after all.
    pub(super) fn plain_rules(&self, kind: &str) -> &[PlainRule] {
        if self.kind == kind { &self.plain } else { &[] }
    }

    /// How much of the next object is read at first: where the plan does not decide most of
    /// them, less would be read in vain.
    pub(super) fn reading(&mut self, tables: &Tables<'_>) -> Reading {
        if self.slim.is_some() && self.undecided * 2 <= self.seen + FIRST {
            Reading::Slim
        } else {
            self.reading_for_rules(tables)
        }
    }

    /// How much is read where rules are run.
    pub(super) fn reading_for_rules(&mut self, tables: &Tables<'_>) -> Reading {
        if !self.has_full {
            let topic = Topic {
                kind: &self.kind,
                symbols: self.symbols,
            };
            self.full = derive(tables, topic, None);
            self.has_full = true;
        }
        match self.full {
            Some(_) => Reading::Full,
            None => Reading::Whole,
        }
    }

    /// What is read; `None`: everything.
    pub(super) fn projection(&self, reading: Reading) -> Option<&Projection> {
        match reading {
            Reading::Slim => self.slim.as_ref(),
            Reading::Full => self.full.as_ref(),
            Reading::Whole => None,
        }
    }

    /// Whether the plan decided the object at hand.
    pub(super) fn is_decided(&self, survey: &Survey) -> bool {
        let proof = self.plan.as_ref().map(|plan| Proof { plan, survey });
        proof.is_some_and(|proof| proof.is_complete())
    }

    /// Counts an object that the plan decided, or did not.
    pub(super) fn count(&mut self, is_decided: bool) {
        self.seen += 1;
        self.undecided += u32::from(!is_decided);
        if self.seen >= ROUND {
            // The rounds before count less and less.
            self.seen /= 2;
            self.undecided /= 2;
        }
    }

    /// The full projection left out something that was looked at. One that does so for more
    /// than every eighth object costs more than it saves, and is given up.
    pub(super) fn miss(&mut self) {
        self.missed = self.missed.saturating_add(1);
        if self.missed >= MISSES && self.missed > self.used / 8 {
            self.full = None;
            self.slim = None;
        }
    }
}
