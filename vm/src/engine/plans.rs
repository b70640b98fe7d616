//! The plans of a session: which of the bundle's plans and projections apply to an object, and
//! whether they have been worth using.

use kpvm_format::Tables;
use kpvm_format::plan::{PlainRule, PlanView};
use kpvm_format::table::NONE;

use super::config::Config;
use super::request::Operation;
use crate::document::projection::Projection;
use crate::plan::{Proof, Survey};

/// The plans of a session.
#[derive(Debug)]
pub(super) struct Plans {
    /// Whether less than the whole object may be read.
    pub(super) may_project: bool,
    /// Whether plans may be used.
    pub(super) may_plan: bool,
    /// By number of the kind plan.
    records: Vec<Record>,
    /// What was found out about the object at hand.
    pub(super) survey: Survey,
    /// Evaluations that were repeated.
    pub(super) missed: u64,
}

/// What the bundle knows about the objects of a kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownKind<'t> {
    pub(super) kind: &'t str,
    number: usize,
    /// `None` where no body is part of one.
    pub(super) plan: Option<PlanView<'t>>,
    plain: &'t [PlainRule],
    slim: Option<Projection<'t>>,
    full: Option<Projection<'t>>,
}

/// How plan and projections of a kind have fared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Record {
    used: u32,
    /// Objects of which rules looked at what was not read.
    missed: u32,
    /// Recent objects, and how many of them the plan did not decide.
    seen: u32,
    undecided: u32,
    /// Projections cost more than they save.
    gave_up: bool,
}

/// Misses before it is looked at how often they happen.
const MISSES: u32 = 8;

/// Window of the moving average of undecided objects.
const ROUND: u32 = 32;

/// Objects that are read for the plan before it is looked at how many it decides.
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
            records: Vec::new(),
            survey: Survey::default(),
            missed: 0,
        }
    }

    /// The record of a kind, and what the object at hand is surveyed into.
    pub(super) fn of(&mut self, known: &KnownKind<'_>) -> (&mut Record, &mut Survey) {
        if self.records.len() <= known.number {
            self.records.resize(known.number + 1, Record::default());
        }
        let record = &mut self.records[known.number];
        record.used = record.used.saturating_add(1);
        (record, &mut self.survey)
    }
}

impl<'t> KnownKind<'t> {
    /// What is known about objects of a kind under the name of a resource, which is empty
    /// where no rule asks for resources.
    pub(super) fn new(
        tables: &Tables<'t>,
        kind: &'t str,
        resource: &str,
        operation: Operation,
        may_plan: bool,
    ) -> Option<Self> {
        let symbol = |name: &str| {
            let symbol = tables.symbols.lookup(name.as_bytes());
            symbol.map_or(NONE, |symbol| symbol.0)
        };
        let resource = match resource {
            "" => NONE,
            resource => symbol(resource),
        };
        let topic = tables.topic(symbol(kind), resource)?;
        let operation = match operation {
            Operation::Create => 0,
            Operation::Update => 1,
            Operation::Delete => 2,
            Operation::Connect => 3,
        };
        let number = topic.operations.get(operation)?.get() as usize;
        let facts = tables.kind_plans.get(number)?;
        let projection = |number| {
            Some(Projection {
                places: tables.projection(number)?,
            })
        };
        let plan = match may_plan {
            true => tables.plan(facts.plan.get()),
            false => None,
        };
        let has_plan = plan.is_some();
        Some(Self {
            kind,
            number,
            plan,
            plain: match has_plan {
                true => Tables::range(tables.plain_rules, facts.plain),
                false => &[],
            },
            slim: projection(facts.slim.get()).filter(|_| has_plan),
            full: projection(facts.full.get()),
        })
    }

    /// The plain rules for an object that is of the kind after all.
    pub(super) fn plain_rules(&self, kind: &str) -> &'t [PlainRule] {
        if self.kind == kind { self.plain } else { &[] }
    }

    /// What is read; `None`: everything.
    pub(super) fn projection(&self, reading: Reading) -> Option<Projection<'t>> {
        match reading {
            Reading::Slim => self.slim,
            Reading::Full => self.full,
            Reading::Whole => None,
        }
    }

    /// Whether the plan decided the object at hand.
    pub(super) fn is_decided(&self, survey: &Survey) -> bool {
        let proof = self.plan.as_ref().map(|plan| Proof { plan, survey });
        proof.is_some_and(|proof| proof.is_complete())
    }
}

impl Record {
    /// How much of the next object is read at first. Where the plan does not decide most of
    /// them, reading less would be in vain.
    pub(super) fn reading(&self, known: &KnownKind<'_>) -> Reading {
        let is_worth_it = !self.gave_up && self.undecided * 2 <= self.seen + FIRST;
        if known.slim.is_some() && is_worth_it {
            Reading::Slim
        } else {
            self.reading_for_rules(known)
        }
    }

    /// How much is read where rules are run.
    pub(super) fn reading_for_rules(&self, known: &KnownKind<'_>) -> Reading {
        match known.full {
            Some(_) if !self.gave_up => Reading::Full,
            _ => Reading::Whole,
        }
    }

    /// Counts an object that the plan decided, or did not.
    pub(super) fn count(&mut self, is_decided: bool) {
        self.seen += 1;
        self.undecided += u32::from(!is_decided);
        if self.seen >= ROUND {
            // Earlier rounds count less and less.
            self.seen /= 2;
            self.undecided /= 2;
        }
    }

    /// A rule looked at something that was not read. A kind for which that happens with more
    /// than every eighth object is read as a whole from then on.
    pub(super) fn miss(&mut self) {
        self.missed = self.missed.saturating_add(1);
        self.gave_up |= self.missed >= MISSES && self.missed > self.used / 8;
    }
}
