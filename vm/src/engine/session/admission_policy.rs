//! ValidatingAdmissionPolicies (docs/spec/cel.md §5): errors are errors, and what passes
//! says nothing.

use kpvm_format::table::Rule;

use super::{Evaluator, Judgement};
use crate::engine::observer::Stage;
use crate::engine::response::Status;
use crate::machine::{Ending, Setting};

impl Evaluator<'_, '_> {
    /// What a ValidatingAdmissionPolicy that matched comes to.
    pub(super) fn judge_admission_policy(
        &mut self,
        rule: &Rule,
        setting: Setting<'_>,
    ) -> Judgement {
        match self.run_block(rule.body_block.get(), Stage::Body, setting) {
            Ending::Pass => self.fixed(Status::Pass, ""),
            Ending::Text { text, .. } => self.fixed(Status::Skip, self.text_entry(text)),
            ending => {
                let mut judgement = self.judge_cel(ending);
                // The cost limit is the error of an expression as well.
                if matches!(ending, Ending::Failed { .. } | Ending::OutOfFuel) {
                    judgement.status = Status::Error;
                }
                judgement
            }
        }
    }
}
