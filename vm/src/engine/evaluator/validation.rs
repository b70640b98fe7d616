//! ValidatingPolicies (docs/spec/cel.md §6.2 and 6.5): exceptions first, then match
//! conditions and validations, then audit annotations.

use kpvm_format::Tables;
use kpvm_format::site::InstructionId;
use kpvm_format::table::{Exception, NONE, Rule};

use super::{Evaluator, Judgement};
use crate::document::{Extended, Kind};
use crate::engine::observer::Stage;
use crate::engine::response::{ExceptionRange, Message, Status, TextRange, Title};
use crate::machine::{Ending, Setting};

/// The property that says which validation decided.
const INDEX_KEY: &str = "cel.validationIndex";

impl Evaluator<'_, '_> {
    /// What a ValidatingPolicy that matched comes to.
    pub(super) fn judge_validations(&mut self, rule: &Rule, setting: Setting<'_>) -> Judgement {
        let exceptions = match self.exceptions_to_validation(rule, setting) {
            Ok(exceptions) => exceptions,
            Err(judgement) => return judgement,
        };
        if let Some(judgement) = self.exempt(exceptions) {
            return judgement;
        }
        self.machine
            .set_exceptions(exceptions.numbers(self.excepted));
        let ending = self.run_block(rule.body_block.get(), Stage::Body, setting);
        self.judge_validation(rule, ending, setting)
    }

    /// The exceptions that hold. An error of a condition counts unless one that exempts
    /// from the whole policy came before.
    fn exceptions_to_validation(
        &mut self,
        rule: &Rule,
        setting: Setting<'_>,
    ) -> Result<ExceptionRange, Judgement> {
        let start = self.excepted.len() as u32;
        let records = Tables::range(self.tables.exceptions, rule.exceptions);
        let mut is_exempt = false;
        for (number, exception) in (rule.exceptions.start.get()..).zip(records) {
            let stage = Stage::Exception { exception: number };
            match self.run_block(exception.block.get(), stage, setting) {
                Ending::Matched => {
                    is_exempt |= is_whole(exception);
                    self.excepted.push(number);
                }
                Ending::Unmatched => {}
                Ending::OutOfFuel => return Err(self.out_of_fuel()),
                _ if is_exempt => {}
                ending => return Err(self.failed_evaluation(ending)),
            }
        }
        let end = self.excepted.len() as u32;
        Ok(ExceptionRange { start, end })
    }

    /// The judgement of exceptions of which one is about the whole policy.
    fn exempt(&mut self, exceptions: ExceptionRange) -> Option<Judgement> {
        let records = || exceptions.of(self.excepted, self.tables);
        if !records().any(is_whole) {
            return None;
        }
        // Of equal priorities the first.
        let mut selected: Option<&Exception> = None;
        for record in records() {
            let priority = |record: &Exception| record.priority.get();
            if selected.is_none_or(|best| priority(record) > priority(best)) {
                selected = Some(record);
            }
        }
        let passes = selected.is_some_and(|record| record.passes != 0);
        let (status, word) = match passes {
            true => (Status::Pass, "passed"),
            false => (Status::Skip, "skipped"),
        };
        let keys: Vec<String> = records()
            .map(|record| self.tables.exception_key(record))
            .collect();
        let text = format!(
            "rule is {word} due to policy exception: {}",
            keys.join(", ")
        );
        let mut judgement = self.fixed(status, &text);
        judgement.title = Title::Exception;
        judgement.exceptions = exceptions;
        Some(judgement)
    }

    fn judge_validation(&mut self, rule: &Rule, ending: Ending, setting: Setting<'_>) -> Judgement {
        let decided_at = self.machine.ended_at;
        let mut judgement = match ending {
            Ending::Pass => Judgement::plain(Status::Pass, Message::Success),
            Ending::Text { text, .. } => return self.fixed(Status::Skip, self.text_entry(text)),
            Ending::FailText(text) => self.fixed(Status::Fail, self.text_entry(text)),
            Ending::FailValue(value) => {
                let view = self.world.buffer.view(self.texts, self.tables.symbols);
                let text = match view.extended(value) {
                    Some(Extended::Error(text)) => view.piece_str(text).to_owned(),
                    _ => view.str(value).to_owned(),
                };
                self.fixed(Status::Fail, &text)
            }
            Ending::FailError => self.fixed_failure(""),
            Ending::Failed { .. } if self.machine.refused_expression().is_some() => {
                self.fixed_failure("error: ")
            }
            Ending::Failed { .. } => return self.failed_evaluation(ending),
            _ => return self.out_of_fuel(),
        };
        if judgement.status != Status::Pass {
            judgement.instruction = decided_at;
        }
        let annotations = match judgement.status {
            Status::Error => Ok(Vec::new()),
            _ => self.audit_annotations(rule, setting),
        };
        match annotations {
            Ok(annotations) => {
                let index = (judgement.status != Status::Pass).then(|| self.number_at(decided_at));
                judgement.properties = self.add_properties(rule, &annotations, index);
                judgement
            }
            Err(text) if judgement.status == Status::Pass => {
                let mut failed =
                    self.fixed(Status::Error, &format!("failed to load context: {text}"));
                failed.title = Title::Evaluation;
                failed
            }
            Err(text) => self.fixed(Status::Error, &format!("error: {text}")),
        }
    }

    fn fixed_failure(&mut self, prefix: &str) -> Judgement {
        let text = format!("{prefix}{}", self.machine.failure_text);
        self.fixed(Status::Error, &text)
    }

    /// A condition that could not be evaluated; its error says so itself.
    fn failed_evaluation(&mut self, ending: Ending) -> Judgement {
        let mut judgement = self.failed(ending, "");
        judgement.title = Title::Evaluation;
        judgement
    }

    /// The number that the instruction which ended the body has of its validation.
    fn number_at(&self, instruction: InstructionId) -> u32 {
        let instruction = self.tables.instruction(instruction);
        instruction.map_or(0, |instruction| instruction.d.get())
    }

    /// The values of the audit annotations, one for each; those left out are empty.
    ///
    /// # Errors
    /// Why one has none.
    fn audit_annotations(
        &mut self,
        rule: &Rule,
        setting: Setting<'_>,
    ) -> Result<Vec<String>, String> {
        let block = rule.properties_block.get();
        if block == NONE {
            return Ok(Vec::new());
        }
        match self.run_block(block, Stage::Properties, setting) {
            Ending::Value(list) => {
                let view = self.world.buffer.view(self.texts, self.tables.symbols);
                let pairs = Tables::range(self.tables.pairs, rule.properties);
                let values = view.children(list).zip(pairs);
                let value = |(value, pair): (_, &kpvm_format::table::Pair)| {
                    if view.kind(value) == Some(Kind::String) {
                        return Ok(view.str(value).to_owned());
                    }
                    let key = self.tables.text(pair.key);
                    Err(format!(
                        "failed to convert auditAnnotation '{key}' expression: it is no text"
                    ))
                };
                values.map(value).collect()
            }
            _ => Err(self.machine.failure_text.clone()),
        }
    }

    /// Keeps the values of the rule's properties; the last of them says which validation
    /// decided, unless an annotation does.
    fn add_properties(
        &mut self,
        rule: &Rule,
        annotations: &[String],
        index: Option<u32>,
    ) -> Option<u32> {
        if annotations.is_empty() && index.is_none() {
            return None;
        }
        let first = self.properties.len() as u32;
        let tables = self.tables;
        let pairs = Tables::range(tables.pairs, rule.properties);
        let given = pairs.iter().zip(annotations);
        let is_given = given
            .clone()
            .any(|(pair, value)| tables.text(pair.key) == INDEX_KEY && !value.is_empty());
        let own = pairs.len().saturating_sub(1);
        for place in 0..own {
            let value = annotations.get(place).map_or("", String::as_str);
            let range: TextRange = self.append(value);
            self.properties.push(range);
        }
        let index = index.filter(|_| !is_given).map(|index| index.to_string());
        let range = self.append(index.as_deref().unwrap_or(""));
        self.properties.push(range);
        Some(first)
    }
}

/// Whether an exception exempts from the whole policy.
fn is_whole(exception: &Exception) -> bool {
    exception.allowed.iter().all(|list| list.get() == NONE)
}
