//! Exceptions (docs/spec/policies.md §9; docs/spec/pod-security.md §10): which of them
//! apply to the object, and their effect on the rule.

use crate::engine::observer::Stage;
use kpvm_format::Tables;
use kpvm_format::table::{BodyKind, NONE, Rule};

use super::{Evaluator, Judgement, body_kind};
use crate::engine::response::{ExceptionRange, Status};
use crate::machine::{Ending, Setting};

impl Evaluator<'_, '_> {
    /// Exceptions of the rule that apply, in order.
    ///
    /// # Errors
    /// If a limit is exceeded: in doubt the rule is neither skipped nor passed.
    pub(super) fn exceptions_that_hold(
        &mut self,
        rule: &Rule,
        setting: Setting<'_>,
    ) -> Result<ExceptionRange, Judgement> {
        let start = self.excepted.len() as u32;
        let records = Tables::range(self.tables.exceptions, rule.exceptions);
        for (number, exception) in (rule.exceptions.start.get()..).zip(records) {
            let stage = Stage::Exception { exception: number };
            match self.run_block(exception.block.get(), stage, setting) {
                Ending::Matched => self.excepted.push(number),
                Ending::Unmatched => {}
                ending => return Err(self.failed(ending, "")),
            }
        }
        let end = self.excepted.len() as u32;
        Ok(ExceptionRange { start, end })
    }

    /// Effect of exceptions before the body runs: all of them together skip the rule; for a
    /// podSecurity rule, the first one for the whole rule does.
    pub(super) fn skip_by_exceptions(
        &mut self,
        rule: &Rule,
        exceptions: ExceptionRange,
    ) -> Option<Judgement> {
        if exceptions.is_empty() {
            return None;
        }
        if body_kind(rule) != BodyKind::PodSecurity {
            // Kyverno's text has no space before the first key.
            return Some(self.skipped("rule is skipped due to policy exceptions", exceptions));
        }
        let is_whole = exceptions
            .of(self.excepted, self.tables)
            .position(|exception| exception.exclusion_block.get() == NONE)?;
        let start = exceptions.start + is_whole as u32;
        let alone = ExceptionRange {
            start,
            end: start + 1,
        };
        Some(self.skipped("rule is skipped due to policy exception ", alone))
    }

    /// Removes the findings exempted by the exceptions of a podSecurity rule, one exception
    /// after the other. If nothing remains, they skip the rule together.
    pub(super) fn exempt_findings(
        &mut self,
        exceptions: ExceptionRange,
        ending: Ending,
        setting: Setting<'_>,
    ) -> Option<Judgement> {
        if exceptions.is_empty() || !matches!(ending, Ending::Findings { .. }) {
            return None;
        }
        let tables = self.tables;
        let holding: Vec<u32> = exceptions.numbers(self.excepted).to_vec();
        for number in holding {
            let record = tables.exceptions.get(number as usize);
            let block = record.map_or(NONE, |exception| exception.exclusion_block.get());
            let stage = Stage::Exception { exception: number };
            match self.run_block(block, stage, setting) {
                Ending::True => {}
                ending => return Some(self.failed(ending, "")),
            }
        }
        let text = "rule is skipped due to policy exceptions ";
        let is_exempt = self.machine.findings.is_empty();
        is_exempt.then(|| self.skipped(text, exceptions))
    }

    fn skipped(&mut self, text: &str, exceptions: ExceptionRange) -> Judgement {
        let keys: Vec<String> = exceptions
            .of(self.excepted, self.tables)
            .map(|exception| self.tables.exception_key(exception))
            .collect();
        let mut judgement = self.fixed(Status::Skip, &format!("{text}{}", keys.join(", ")));
        judgement.exceptions = exceptions;
        judgement
    }
}
