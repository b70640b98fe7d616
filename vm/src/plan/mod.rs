//! Executing the plan of a kind: what its rules demand of an object, put together place by
//! place by the compiler (see [`kpvm_format::plan`]).
//!
//! One walk over an object ([`nodes`], or [`text`] where the object is not even built) tests
//! every demand that two rules share once, goes over a list once for all rules, and notes which
//! alternatives are broken. A body with an alternative that is not broken need not be run: how
//! it ends is known. All others run normally, so a plan never changes what is said about an
//! object, only what it costs to pass.

mod nodes;
mod text;

use kpvm_format::Tables;
use kpvm_format::plan::{DemandKind, PlanBody, PlanSpot, PlanView};

use crate::document::Kind;
use crate::machine::{Ending, leaf_of_scalar_holds};
use kpvm_semantics::pattern_string::Scalar;

pub(crate) use nodes::test_nodes;
pub(crate) use text::TextWalk;

/// The spot of the object itself.
const ROOT: u32 = 0;

/// What a walk found out about one object.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// One bit for each alternative that does not hold.
    broken: Vec<u64>,
    /// List items that were looked at.
    items: u64,
}

impl Survey {
    /// Begins another object.
    pub(crate) fn begin(&mut self, plan: &PlanView<'_>) {
        let alternatives = plan.record().alternatives.get() as usize;
        self.broken.clear();
        self.broken.resize(alternatives.div_ceil(64), 0);
        self.items = 0;
    }

    /// A demand does not hold: breaks the alternatives of its list.
    #[cold]
    fn break_all(&mut self, plan: &PlanView<'_>, list: u32) {
        for alternative in plan.breaks(list) {
            if let Some(word) = self.broken.get_mut(usize::from(alternative) / 64) {
                *word |= 1 << (alternative % 64);
            }
        }
    }

    /// Nothing is known about the object.
    #[cold]
    fn give_up(&mut self) {
        self.broken.fill(u64::MAX);
    }

    fn is_broken(&self, alternative: u32) -> bool {
        let word = self.broken.get(alternative as usize / 64);
        word.is_none_or(|word| word >> (alternative % 64) & 1 == 1)
    }

    /// Tests a value that is neither a map nor a list.
    #[inline]
    fn test_scalar(
        &mut self,
        plan: &PlanView<'_>,
        spot: &PlanSpot,
        value: Scalar<'_>,
        tables: &Tables<'_>,
    ) {
        for test in plan.tests(spot) {
            let holds = match test.kind() {
                DemandKind::Map | DemandKind::List | DemandKind::Nothing | DemandKind::Tags => {
                    false
                }
                DemandKind::Some => value != Scalar::Null,
                DemandKind::Leaf | DemandKind::ItemLeaf => {
                    leaf_of_scalar_holds(test.operand.get(), value, tables)
                }
            };
            if !holds {
                self.break_all(plan, test.breaks.get());
            }
        }
    }

    /// Tests a map or a list.
    #[inline]
    fn test_container(&mut self, plan: &PlanView<'_>, spot: &PlanSpot, kind: Kind) {
        for test in plan.tests(spot) {
            let holds = match test.kind() {
                // What labels are is tested where they are nodes.
                DemandKind::Map | DemandKind::Tags => kind == Kind::Map,
                DemandKind::List | DemandKind::Leaf => kind == Kind::List,
                DemandKind::Some => true,
                DemandKind::Nothing | DemandKind::ItemLeaf => false,
            };
            if !holds {
                self.break_all(plan, test.breaks.get());
            }
        }
    }

    /// Ends a map of which these keys were there.
    #[inline]
    fn end_map(&mut self, plan: &PlanView<'_>, spot: &PlanSpot, seen: u64) {
        let missing = spot.required_bits() & !seen;
        if missing != 0 {
            self.break_missing(plan, spot, missing);
        }
    }

    #[cold]
    fn break_missing(&mut self, plan: &PlanView<'_>, spot: &PlanSpot, mut missing: u64) {
        while missing != 0 {
            let child = u32::from(spot.children.get()) + missing.trailing_zeros();
            if let Some(child) = plan.spot(child) {
                self.break_all(plan, child.missing.get());
            }
            missing &= missing - 1;
        }
    }
}

/// Whether anything inside a map or a list is looked at.
#[inline]
fn looks_inside(spot: &PlanSpot, kind: Kind) -> bool {
    match kind {
        Kind::Map => spot.keys != 0,
        _ => spot.items.get() != 0,
    }
}

/// What is known about an object: how bodies end without being run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proof<'p> {
    pub(crate) plan: &'p PlanView<'p>,
    pub(crate) survey: &'p Survey,
}

impl Proof<'_> {
    /// How a body ends; `None` where it has to be run.
    #[inline]
    pub(crate) fn ending(&self, body: u16) -> Option<Ending> {
        self.ending_of(self.plan.bodies().get(usize::from(body))?)
    }

    /// As [`Proof::ending`], for the body of a block.
    pub(crate) fn ending_of_block(&self, block: u32) -> Option<Ending> {
        self.ending(self.plan.find(block)?)
    }

    #[inline]
    fn ending_of(&self, body: &PlanBody) -> Option<Ending> {
        let first = u32::from(body.first.get());
        match body.alternatives.get() {
            0 => (!self.survey.is_broken(first)).then_some(Ending::Pass),
            count => {
                let mut alternatives = 0..u32::from(count);
                let whole = alternatives.find(|index| !self.survey.is_broken(first + index));
                whole.map(Ending::Alternative)
            }
        }
    }

    /// Whether no body has to be run.
    pub(crate) fn is_complete(&self) -> bool {
        let nothing_broken = self.survey.broken.iter().all(|&word| word == 0);
        let mut bodies = self.plan.bodies().iter();
        nothing_broken || bodies.all(|body| self.ending_of(body).is_some())
    }

    /// Whether the bodies would have ended within the limits: each goes over every item that
    /// was looked at once at most.
    pub(crate) fn is_within(&self, rule_fuel: u64, request_fuel: u64) -> bool {
        let rounds = self.survey.items.saturating_add(1);
        let record = self.plan.record();
        u64::from(record.longest.get()).saturating_mul(rounds) <= rule_fuel
            && u64::from(record.total.get()).saturating_mul(rounds) <= request_fuel
    }
}
