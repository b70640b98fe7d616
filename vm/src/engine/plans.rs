//! The plans of a session: for each kind what its rules demand, and what of an object is
//! read to find out. Each is made when its kind is first seen.

use std::collections::BTreeMap;

use kpvm_format::Tables;
use kpvm_format::table::{BodyKind, NONE};

use super::projection::derive;
use crate::document::projection::Projection;
use crate::plan::{Plan, Proof, Survey};

/// The plans of a session.
#[derive(Debug)]
pub(super) struct Plans {
    /// Whether less than the whole object may be read.
    pub(super) may_project: bool,
    /// Whether plans may be used.
    pub(super) may_plan: bool,
    /// By the kind's symbol; kinds that no rule names share one.
    kinds: BTreeMap<u32, KindPlan>,
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
    /// What is read where the plan decides.
    slim: Option<Projection>,
    /// What is read where rules are run.
    full: Option<Projection>,
    used: u32,
    missed: u32,
    /// Of the objects of late, how many the plan did not decide.
    undecided: u32,
    seen: u32,
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
    pub(super) fn new() -> Self {
        Self {
            may_project: true,
            may_plan: true,
            kinds: BTreeMap::new(),
            survey: Survey::default(),
            missed: 0,
        }
    }

    /// What is known of a kind, and what the object at hand is surveyed into.
    pub(super) fn of(&mut self, tables: &Tables<'_>, kind: &str) -> (&mut KindPlan, &mut Survey) {
        let symbol = tables.symbols.lookup(kind.as_bytes());
        let known = self.kinds.entry(symbol.map_or(NONE, |kind| kind.0));
        let may_plan = self.may_plan;
        let known = known.or_insert_with(|| KindPlan::new(tables, kind, may_plan));
        known.used = known.used.saturating_add(1);
        (known, &mut self.survey)
    }

    /// Makes every plan anew when its kind is seen next.
    pub(super) fn forget(&mut self) {
        self.kinds.clear();
    }
}

impl KindPlan {
    fn new(tables: &Tables<'_>, kind: &str, may_plan: bool) -> Self {
        let rules = tables.rules_of_kind(kind);
        let rules = rules
            .iter()
            .filter_map(|&rule| tables.rules.get(rule as usize));
        let patterns = [BodyKind::Pattern as u8, BodyKind::AnyPattern as u8];
        let bodies = rules.filter(|rule| patterns.contains(&rule.body));
        let plan = Plan::of_blocks(tables, bodies.map(|rule| rule.body_block.get()));
        let plan = Some(plan).filter(|plan| may_plan && !plan.is_empty());
        let slim = plan
            .as_ref()
            .and_then(|plan| derive(tables, kind, Some(plan)));
        Self {
            plan,
            slim,
            full: derive(tables, kind, None),
            used: 0,
            missed: 0,
            undecided: 0,
            seen: 0,
        }
    }

    /// How much of the next object is read at first: where the plan does not decide most of
    /// them, less would be read in vain.
    pub(super) fn reading(&self) -> Reading {
        if self.slim.is_some() && self.undecided * 2 <= self.seen + FIRST {
            Reading::Slim
        } else {
            self.reading_for_rules()
        }
    }

    /// How much is read where rules are run.
    pub(super) fn reading_for_rules(&self) -> Reading {
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
