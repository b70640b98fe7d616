//! Assertions (docs/spec/assert.md §2): each failure of a tree is a separate outcome.

use kpvm_format::table::Rule;

use super::{EXISTING_VIOLATIONS, Evaluator, Judgement};
use crate::engine::Operation;
use crate::engine::response::Status;
use crate::machine::Setting;

impl Evaluator<'_, '_> {
    /// Outcome of the first failure; those of the others are queued.
    pub(super) fn judge_assertions(&mut self, setting: Setting<'_>) -> Judgement {
        let failures = std::mem::take(&mut self.machine.failures);
        let mut judgements = failures.iter().map(|failure| {
            let judgement = self.fixed(Status::Fail, &failure.text);
            let (path, value) = (&failure.path, failure.value);
            let mut judgement =
                self.with_detail(judgement, path, value, failure.instruction, setting);
            if failure.hides {
                judgement.found = self.append("***");
            }
            judgement
        });
        let first = judgements.next();
        let further = judgements.collect();
        self.further = further;
        // INVARIANT: without a failure the tree passes.
        first.unwrap_or_else(|| self.out_of_fuel())
    }

    /// Unlike for other bodies, the old object is evaluated only if the new one fails and
    /// the request is an update, whatever the preconditions say.
    pub(super) fn allow_existing_failures(
        &mut self,
        rule: &Rule,
        judgement: Judgement,
    ) -> Judgement {
        if judgement.status != Status::Fail || self.operation != Operation::Update {
            return judgement;
        }
        let text = match self.old_object_status(rule) {
            Some(Status::Fail) => EXISTING_VIOLATIONS,
            Some(Status::Error) => "failed to validate old object",
            Some(Status::Pass | Status::Skip) | None => return judgement,
        };
        self.further.clear();
        self.fixed(Status::Skip, text)
    }
}
