//! ValidatingAdmissionPolicies (docs/spec/cel.md §5): errors stay errors, and a pass has no
//! message.

use kpvm_format::table::Rule;

use super::{Evaluator, Judgement};
use crate::engine::observer::Stage;
use crate::engine::response::Status;
use crate::machine::{Ending, Setting};

impl Evaluator<'_, '_> {
    /// Outcome of a ValidatingAdmissionPolicy that matched.
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
                // Exceeding the cost limit is also an error of the expression.
                if matches!(ending, Ending::Failed { .. } | Ending::OutOfFuel) {
                    judgement.status = Status::Error;
                }
                judgement
            }
        }
    }
}
