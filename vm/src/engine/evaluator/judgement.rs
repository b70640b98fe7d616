//! Turns the ending of a rule's block into a status and a message.

use kpvm_format::instruction::immediate::{ForeachDepth, ReturnStatus};
use kpvm_format::table::{BodyKind, MessageKind, NONE, Rule};

use super::message::{element_prefix, message_kind};
use super::{Evaluator, body_kind};
use crate::engine::response::{
    ControlTexts, ExceptionRange, Message, Outcome, Status, TextRange, Title,
};
use crate::machine::{Ending, Setting};

/// The result of a rule, before it becomes an [`Outcome`].
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Judgement {
    pub(super) title: Title,
    pub(super) status: Status,
    pub(super) message: Message,
    pub(super) path: TextRange,
    pub(super) found: TextRange,
    pub(super) instruction: u32,
    /// First of the computed report properties.
    pub(super) properties: Option<u32>,
    /// The exceptions that skip the rule.
    pub(super) exceptions: ExceptionRange,
    /// What a failed podSecurity rule reports about its controls.
    pub(super) controls: Option<ControlTexts>,
}

impl Judgement {
    pub(super) fn outcome(self, rule: u32, enforced: bool) -> Outcome {
        Outcome {
            rule,
            title: self.title,
            status: self.status,
            message: self.message,
            enforced,
            path: self.path,
            found: self.found,
            instruction: self.instruction,
            properties: self.properties,
            exceptions: self.exceptions,
            controls: self.controls,
        }
    }

    pub(super) fn plain(status: Status, message: Message) -> Self {
        Self {
            title: Title::Rule,
            status,
            message,
            path: TextRange::default(),
            found: TextRange::default(),
            instruction: NONE,
            properties: None,
            exceptions: ExceptionRange::default(),
            controls: None,
        }
    }
}

impl Evaluator<'_, '_> {
    /// The status and message of an ending; the block is run again to explain it if the
    /// ending alone is not enough.
    pub(super) fn judge(
        &mut self,
        rule: &Rule,
        ending: Ending,
        setting: Setting<'_>,
    ) -> Option<Judgement> {
        Some(match ending {
            Ending::FailText(_)
            | Ending::FailError
            | Ending::FailValue(_)
            | Ending::CelError
            | Ending::Failed { .. }
            | Ending::OutOfFuel
                if body_kind(rule) == BodyKind::Cel =>
            {
                self.judge_cel(ending)
            }
            Ending::Pass
                if matches!(
                    body_kind(rule),
                    BodyKind::PodSecurity | BodyKind::Assert | BodyKind::Cel
                ) =>
            {
                Judgement::plain(Status::Pass, Message::CapitalPassed)
            }
            Ending::Pass => Judgement::plain(Status::Pass, Message::Passed),
            Ending::Alternative(index) => {
                Judgement::plain(Status::Pass, Message::AlternativePassed(index))
            }
            Ending::ForeachPassed => self.fixed(Status::Pass, "rule passed"),
            Ending::Nothing => return None,
            Ending::Text { status, text } => {
                let status = match status {
                    ReturnStatus::Pass => Status::Pass,
                    ReturnStatus::Skip => Status::Skip,
                    ReturnStatus::Error | ReturnStatus::ErrorWithoutResource => Status::Error,
                };
                self.fixed(status, self.text_entry(text))
            }
            Ending::Failed { depth } => self.failed(ending, &element_prefix(depth)),
            Ending::Deny { depth } => self.judge_deny(rule, depth, setting),
            Ending::Assertions => self.judge_assertions(setting),
            Ending::Findings { instruction } => self.judge_findings(rule, instruction, setting),
            Ending::Error { .. } | Ending::AlternativesFailed { .. } => {
                self.judge_failure(rule, setting)
            }
            Ending::Matched
            | Ending::Unmatched
            | Ending::True
            | Ending::False
            | Ending::Value(_)
            | Ending::FailText(_)
            | Ending::FailError
            | Ending::FailValue(_)
            | Ending::CelError
            | Ending::OutOfFuel => self.out_of_fuel(),
        })
    }

    /// A CEL expression that is false, failed, or took too many steps: in Kyverno each of
    /// these is a failure of the rule (docs/spec/cel.md §2.2).
    pub(super) fn judge_cel(&mut self, ending: Ending) -> Judgement {
        let text = match ending {
            Ending::FailText(text) => self.text_entry(text).to_owned(),
            Ending::FailValue(value) => {
                let view = self.world.buffer.view(self.texts, self.tables.symbols);
                view.str(value).trim().to_owned()
            }
            Ending::OutOfFuel => COST_BUDGET.to_owned(),
            _ => match self.machine.refused_expression() {
                Some(expression) => format!(
                    "expression '{}' resulted in error: {}",
                    self.text_entry(expression),
                    self.machine.failure_text
                ),
                None => self.machine.failure_text.clone(),
            },
        };
        let status = match ending {
            Ending::CelError => Status::Error,
            _ => Status::Fail,
        };
        let mut judgement = self.fixed(status, &text);
        judgement.instruction = self.machine.ended_at;
        judgement
    }

    /// docs/spec/policies.md §8.1.
    fn judge_deny(&mut self, rule: &Rule, depth: ForeachDepth, setting: Setting<'_>) -> Judgement {
        let noted = self.noted_messages();
        let text = match (message_kind(rule), noted.is_empty()) {
            (MessageKind::Absent, true) => {
                format!(
                    "validation error: rule {} failed",
                    setting.subject.rule_name
                )
            }
            _ => self.deny_message(rule, setting).unwrap_or(noted),
        };
        self.fixed(Status::Fail, &(element_prefix(depth) + &text))
    }

    /// docs/spec/patterns.md §2.1, §11 and §12.
    fn judge_failure(&mut self, rule: &Rule, setting: Setting<'_>) -> Judgement {
        let body = rule.body_block.get();
        // The observer has been told what happened already.
        let observer = self.world.observer.take();
        let ending = self.limited(|machine, world| machine.explain(body, setting, world));
        self.world.observer = observer;
        let explanation = std::mem::take(&mut self.machine.explanation);
        let name = setting.subject.rule_name;
        let judgement = match ending {
            Ending::Error { kind, .. } if kind.is_skip() => {
                self.fixed(Status::Skip, &explanation.text)
            }
            Ending::Error { kind, depth } => {
                let pathless = explanation.is_pathless(kind);
                let status = if pathless {
                    Status::Error
                } else {
                    Status::Fail
                };
                let detail = if pathless {
                    format!("rule {name} execution error: {}", explanation.text)
                } else {
                    format!("rule {name} failed at path {}", explanation.path)
                };
                self.failure(rule, status, depth, &detail, &explanation.text, setting)
            }
            Ending::AlternativesFailed {
                any_failed: false, ..
            } => self.fixed(Status::Skip, &explanation.skipped_alternatives),
            Ending::AlternativesFailed {
                any_failed: true,
                depth,
            } => {
                let failed = &explanation.failed_alternatives;
                self.failure(rule, Status::Fail, depth, failed, failed, setting)
            }
            _ => self.out_of_fuel(),
        };
        let judgement = if judgement.status == Status::Skip {
            judgement
        } else {
            self.with_detail(
                judgement,
                &explanation.path,
                explanation.value.0,
                explanation.instruction,
                setting,
            )
        };
        // The buffers of the explanation are reused.
        self.machine.explanation = explanation;
        judgement
    }

    pub(super) fn fixed(&mut self, status: Status, text: &str) -> Judgement {
        let message = Message::Rendered(self.render(|out| out.push_str(text)));
        Judgement::plain(status, message)
    }

    /// An ending that is an error, with the prefix of an element's message.
    pub(super) fn failed(&mut self, ending: Ending, prefix: &str) -> Judgement {
        match ending {
            Ending::Failed { .. } => {
                let text = std::mem::take(&mut self.machine.failure_text);
                let message = self.render(|out| {
                    out.push_str(prefix);
                    out.push_str(&text);
                });
                self.machine.failure_text = text;
                Judgement::plain(Status::Error, Message::Rendered(message))
            }
            _ => self.out_of_fuel(),
        }
    }

    pub(super) fn out_of_fuel(&mut self) -> Judgement {
        let limits = self.limits;
        let text = format!(
            "evaluation limit exceeded: rule-fuel is {} steps a rule, request-fuel {} steps a request",
            limits.rule_fuel, limits.request_fuel
        );
        self.fixed(Status::Error, &text)
    }

    pub(super) fn preconditions_not_met(&mut self) -> Judgement {
        let noted = self.noted_messages();
        let message = self.render(|out| {
            out.push_str("preconditions not met");
            if !noted.is_empty() {
                out.push_str("; ");
                out.push_str(&noted);
            }
        });
        Judgement::plain(Status::Skip, Message::Rendered(message))
    }
}

/// The error of a rule whose CEL expressions used all its steps (docs/spec/cel.md §2.7).
const COST_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
