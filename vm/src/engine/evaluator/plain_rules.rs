//! Rules that the plan decides together with their kinds, so that nothing needs to run.

use kpvm_format::instruction::KindListId;
use kpvm_format::table::NONE;

use super::Evaluator;
use crate::engine::request::Operation;
use crate::machine::{Ending, kinds_match};
use crate::plan::Proof;
use kpvm_format::plan::PlainRule;

/// The plain rules, as an evaluation goes past them.
pub(super) struct PlainRules<'e> {
    proof: Option<Proof<'e>>,
    rest: &'e [PlainRule],
    /// The kind selectors looked at last, and whether they match: rules share them.
    kinds: (u32, bool),
}

impl<'e> PlainRules<'e> {
    pub(super) fn new(evaluator: &Evaluator<'e, '_>) -> Self {
        // An object that is deleted passes no pattern, and where an old one comes with anything
        // but an update it is looked at too (`Evaluator::allow_existing`).
        let is_update = evaluator.operation == Operation::Update;
        let has_old = evaluator.objects.old.is_some();
        let is_usual = !evaluator.is_delete() && (is_update || !has_old);
        let proof = evaluator.proof.filter(|_| is_usual);
        Self {
            proof,
            rest: evaluator.plain,
            kinds: (NONE, false),
        }
    }

    /// How a rule's body ends, if the rule is plain and matches and that is known. Rules
    /// are asked for in their order.
    #[inline]
    pub(super) fn ending(&mut self, number: u32, evaluator: &Evaluator<'e, '_>) -> Option<Ending> {
        let proof = self.proof?;
        while let [first, rest @ ..] = self.rest
            && first.rule.get() < number
        {
            self.rest = rest;
        }
        let plain = self
            .rest
            .first()
            .filter(|plain| plain.rule.get() == number)?;
        let kinds = plain.kinds.get();
        if self.kinds.0 != kinds {
            let matches = kinds_match(KindListId(kinds), evaluator.tables, evaluator.facts);
            self.kinds = (kinds, matches);
        }
        if self.kinds.1 {
            proof.ending(plain.body.get())
        } else {
            None
        }
    }
}
