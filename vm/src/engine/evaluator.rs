//! One evaluation: runs the candidate rules over a request whose objects have been read, and
//! records their outcomes.

mod admission_policy;
mod assertion;
mod exception;
mod failure_action;
mod judgement;
mod message;
mod old_object;
mod plain_rules;
mod pod_security;
mod validation;

use kpvm_format::Tables;
use kpvm_format::index::ObjectKeys;
use kpvm_format::instruction::immediate::ReturnStatus;
use kpvm_format::table::{BodyKind, NONE, Policy, PolicyFlags, Rule, RuleFlags};
use kpvm_semantics::limits::Limits;

pub(super) use self::judgement::Judgement;
use self::old_object::EXISTING_VIOLATIONS;
use self::plain_rules::PlainRules;
use super::names::ObjectNames;
use super::observer::{Event, NotTried, Stage, Verdict};
use super::request::{GroupVersionKind, Operation};
use super::response::{Evaluation, Message, Outcome, RuleResponse, Status, TextRange};
use crate::document::{Kind, NodeId, Texts};
use crate::machine::{Ending, Machine, RequestFacts, Setting, Subject, World};
use crate::plan::Proof;
use kpvm_format::plan::PlainRule;

/// Which outcomes are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// All, with messages.
    Report,
    /// The first that refuses the request.
    Decide,
}

/// The roots of the request's objects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Objects {
    pub(super) new: Option<NodeId>,
    pub(super) old: Option<NodeId>,
}

impl Objects {
    /// The object that is matched: the new one, or the old one if there is no new one
    /// (docs/spec/policies.md §5.6).
    pub(super) fn main(&self) -> Option<NodeId> {
        self.new.or(self.old)
    }
}

/// Whether the rules of a policy are still tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyState {
    Open,
    /// The policy applies to another namespace.
    OtherNamespace,
    /// One of its rules applied, and only one is to be applied.
    AppliedOne,
}

/// Why a rule that was tried gives no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    NotMatched,
    Deletion,
    NoElement,
}

impl Silence {
    fn verdict(self) -> Verdict<'static> {
        match self {
            Silence::NotMatched => Verdict::NotMatched,
            Silence::Deletion => Verdict::Deletion,
            Silence::NoElement => Verdict::NoElement,
        }
    }
}

/// One evaluation.
pub(super) struct Evaluator<'e, 'm> {
    pub(super) tables: &'e Tables<'e>,
    pub(super) texts: Texts<'e>,
    pub(super) objects: Objects,
    pub(super) names: &'e str,
    pub(super) new_names: Option<&'e ObjectNames>,
    pub(super) old_names: Option<&'e ObjectNames>,
    pub(super) old_kind: Option<GroupVersionKind<'e>>,
    pub(super) operation: Operation,
    pub(super) facts: &'e RequestFacts<'e>,
    pub(super) mode: Mode,
    pub(super) limits: &'e Limits,
    pub(super) runtime_expressions: bool,
    pub(super) is_payload: bool,
    pub(super) every_namespace: bool,
    pub(super) fuel: u64,
    /// The known endings of bodies that need not be run.
    pub(super) proof: Option<Proof<'e>>,
    /// The rules that are decided by the proof and their kinds.
    pub(super) plain: &'e [PlainRule],
    pub(super) machine: &'m mut Machine,
    pub(super) world: World<'m>,
    pub(super) outcomes: &'m mut Vec<Outcome>,
    pub(super) properties: &'m mut Vec<TextRange>,
    pub(super) excepted: &'m mut Vec<u32>,
    pub(super) text: &'m mut String,
    /// Further outcomes of the current rule after the first.
    pub(super) further: Vec<Judgement>,
}

impl<'e> Evaluator<'e, '_> {
    /// docs/spec/policies.md §7.1, over the rules that the index returns for the object.
    pub(super) fn evaluate_rules(&mut self, main: &Subject<'e>, candidates: &mut Vec<u32>) {
        let mut subject = *main;
        let namespace = self.policy_namespace();
        self.machine.change_subject();
        let mut policy_number = NONE;
        let mut policy_state = PolicyState::Open;
        let tables = self.tables;
        let kind = self.facts.kind;
        let keys = ObjectKeys {
            resource: self.facts.resource,
            namespace: main.matched_namespace(),
            name: main.matched_name,
            operation: self.operation.name(),
        };
        tables.candidate_rules(kind, &keys, candidates);
        let is_observed = self.world.observer.is_some();
        let listed = is_observed.then(|| all_instead(candidates, tables.rules.len()));
        let mut plain = PlainRules::new(self);
        for &number in candidates.iter() {
            if let Some(ending) = plain.ending(number, self) {
                self.record_pass(number, ending);
                continue;
            }
            let Some(rule) = tables.rules.get(number as usize) else {
                continue;
            };
            let Some(policy) = tables.policies.get(rule.policy.get() as usize) else {
                continue;
            };
            if self.is_payload && rule.flags & RuleFlags::PAYLOAD == 0 {
                continue;
            }
            if policy_number != rule.policy.get() {
                policy_number = rule.policy.get();
                policy_state = PolicyState::Open;
                let only = tables.only_namespace(policy);
                let is_everywhere = only.is_none()
                    || self.every_namespace && policy.flags & PolicyFlags::RESOURCES != 0;
                if !is_everywhere && namespace != only {
                    policy_state = PolicyState::OtherNamespace;
                }
            }
            if policy_state != PolicyState::Open || is_dropped(rule, kind, tables) {
                if is_observed {
                    self.tell_not_tried(number, policy_state, policy);
                }
                continue;
            }
            subject.rule_name = tables.text(rule.name);
            if let Some(listed) = &listed {
                self.world.tell(&Event::Tried { rule: number, kind });
                if listed.binary_search(&number).is_err() {
                    self.show_why_not_listed(rule, &subject);
                    continue;
                }
            }
            let judgement = match self.evaluate_rule(rule, &subject) {
                Ok(judgement) => judgement,
                Err(silence) => {
                    if is_observed {
                        self.world.tell(&Event::Decided(silence.verdict()));
                    }
                    continue;
                }
            };
            if policy.flags & PolicyFlags::APPLY_ONE != 0
                && matches!(judgement.status, Status::Pass | Status::Fail)
            {
                policy_state = PolicyState::AppliedOne;
            }
            let further = std::mem::take(&mut self.further);
            let properties = judgement.properties;
            if self.record(number, rule, policy, &subject, judgement) {
                return;
            }
            if is_observed {
                self.tell_response();
            }
            for judgement in further {
                let judgement = Judgement {
                    properties,
                    ..judgement
                };
                if self.record(number, rule, policy, &subject, judgement) {
                    return;
                }
            }
        }
    }

    /// Records the outcome of a rule whose body ends like this, if requested.
    fn record_pass(&mut self, rule: u32, ending: Ending) {
        if self.mode == Mode::Report {
            let message = match ending {
                Ending::Alternative(index) => Message::AlternativePassed(index),
                _ => Message::Passed,
            };
            let judgement = Judgement::plain(Status::Pass, message);
            self.outcomes.push(judgement.outcome(rule, false));
        }
    }

    /// The index knows that a rule does not match; its match block can say why. The outcome
    /// and the fuel of this run do not count.
    #[cold]
    fn show_why_not_listed(&mut self, rule: &Rule, subject: &Subject<'e>) {
        let fuel = self.fuel;
        let setting = self.setting(rule, subject, self.facts);
        self.run_block(rule.match_block.get(), Stage::Match, setting);
        self.fuel = fuel;
        self.world.tell(&Event::Decided(Verdict::NotMatched));
    }

    #[cold]
    fn tell_not_tried(&mut self, rule: u32, state: PolicyState, policy: &Policy) {
        let reason = match state {
            PolicyState::Open => NotTried::Generated,
            PolicyState::AppliedOne => NotTried::AppliedOne,
            PolicyState::OtherNamespace => NotTried::Namespace {
                namespace: self.tables.only_namespace(policy).unwrap_or_default(),
            },
        };
        self.world.tell(&Event::NotTried { rule, reason });
    }

    /// Tells the observer about the last recorded outcome.
    #[cold]
    fn tell_response(&mut self) {
        if let (Some(observer), Some(outcome)) = (&mut self.world.observer, self.outcomes.last()) {
            let evaluation = Evaluation {
                tables: self.tables,
                outcomes: self.outcomes,
                properties: self.properties,
                excepted: self.excepted,
                text: self.text,
            };
            let response = RuleResponse::new(evaluation, outcome);
            observer.observe(&Event::Decided(Verdict::Response(response)));
        }
    }

    /// Records an outcome; returns whether the evaluation is over.
    fn record(
        &mut self,
        number: u32,
        rule: &Rule,
        policy: &Policy,
        subject: &Subject<'_>,
        judgement: Judgement,
    ) -> bool {
        let enforced = judgement.status == Status::Fail && self.is_enforced(rule, policy, subject);
        let refused = enforced || judgement.status == Status::Error;
        if self.mode == Mode::Report || refused {
            self.outcomes.push(judgement.outcome(number, enforced));
        }
        self.mode == Mode::Decide && refused
    }

    /// The namespace whose policies apply to the request: that of all its objects
    /// (docs/spec/policies.md §5.7).
    fn policy_namespace(&self) -> Option<&'e str> {
        let mut objects = [self.new_names, self.old_names]
            .into_iter()
            .flatten()
            .map(|object| object.subject(self.names));
        let first = objects.next()?;
        let is_namespaced =
            |subject: &Subject<'_>| subject.kind != "Namespace" && !subject.namespace.is_empty();
        let agree = is_namespaced(&first)
            && objects.all(|other| is_namespaced(&other) && other.namespace == first.namespace);
        agree.then_some(first.namespace)
    }

    fn setting<'s>(
        &self,
        rule: &Rule,
        subject: &'s Subject<'s>,
        request: &'s RequestFacts<'s>,
    ) -> Setting<'s>
    where
        'e: 's,
    {
        let policy = self.tables.policies.get(rule.policy.get() as usize);
        Setting {
            tables: self.tables,
            texts: self.texts,
            subject,
            request,
            limits: self.limits,
            is_delete: self.is_delete(),
            rule_slots: rule.slots,
            rule_entries: rule.entries,
            policy_namespace: policy.map_or("", |policy| self.tables.text(policy.namespace)),
            runtime_expressions: self.runtime_expressions,
        }
    }

    fn is_delete(&self) -> bool {
        self.operation == Operation::Delete || self.objects.new.is_none()
    }

    /// Runs a block under the limits of one rule.
    fn run_block(&mut self, block: u32, stage: Stage, setting: Setting<'_>) -> Ending {
        if self.world.observer.is_some() {
            return self.trace_block(block, stage, setting);
        }
        self.limited(|machine, world| machine.check(block, setting, world))
    }

    #[cold]
    fn trace_block(&mut self, block: u32, stage: Stage, setting: Setting<'_>) -> Ending {
        self.world.tell(&Event::Stage(stage));
        self.limited(|machine, world| machine.trace(block, setting, world))
    }

    fn limited(&mut self, run: impl FnOnce(&mut Machine, &mut World<'_>) -> Ending) -> Ending {
        let given = self.limits.rule_fuel.min(self.fuel);
        self.machine.fuel = given;
        let ending = run(self.machine, &mut self.world);
        self.fuel -= given - self.machine.fuel.min(given);
        ending
    }

    /// docs/spec/policies.md §7.2.
    fn evaluate_rule(&mut self, rule: &Rule, subject: &Subject<'_>) -> Result<Judgement, Silence> {
        let setting = self.setting(rule, subject, self.facts);
        self.machine.begin_rule();
        match self.run_block(rule.match_block.get(), Stage::Match, setting) {
            Ending::Matched => {}
            Ending::OutOfFuel => return Ok(self.out_of_fuel()),
            _ => return Err(Silence::NotMatched),
        }
        if body_kind(rule) == BodyKind::Validations {
            return Ok(self.judge_validations(rule, setting));
        }
        if body_kind(rule) == BodyKind::AdmissionPolicy {
            return Ok(self.judge_admission_policy(rule, setting));
        }
        if rule.precondition_block.get() != NONE {
            match self.run_block(rule.precondition_block.get(), Stage::Preconditions, setting) {
                Ending::True => {}
                Ending::False => return Ok(self.preconditions_not_met()),
                ending => return Ok(self.failed(ending, "")),
            }
        }
        let properties = self.computed_properties(rule, setting);
        let is_pod_security = body_kind(rule) == BodyKind::PodSecurity;
        if self.is_delete() && is_pod_security {
            return Err(Silence::Deletion);
        }
        let mut judgement = self.judge_body(rule, setting)?;
        judgement.properties = properties;
        Ok(judgement)
    }

    /// Runs the exceptions and the body, and takes the old object into account.
    fn judge_body(&mut self, rule: &Rule, setting: Setting<'_>) -> Result<Judgement, Silence> {
        let exceptions = match self.exceptions_that_hold(rule, setting) {
            Ok(exceptions) => exceptions,
            Err(judgement) => return Ok(judgement),
        };
        if let Some(judgement) = self.skip_by_exceptions(rule, exceptions) {
            return Ok(judgement);
        }
        let body = rule.body_block.get();
        let ending = match self.proof.and_then(|proof| proof.ending_of_block(body)) {
            Some(ending) => ending,
            None => self.run_block(body, Stage::Body, setting),
        };
        let is_pattern = matches!(body_kind(rule), BodyKind::Pattern | BodyKind::AnyPattern);
        let comes_first = matches!(
            ending,
            Ending::Text {
                status: ReturnStatus::ErrorWithoutResource,
                ..
            } | Ending::Failed { .. }
        );
        if self.is_delete() && is_pattern && !comes_first {
            return Err(Silence::Deletion);
        }
        let judgement = match self.exempt_findings(exceptions, ending, setting) {
            Some(judgement) => judgement,
            None => self
                .judge(rule, ending, setting)
                .ok_or(Silence::NoElement)?,
        };
        Ok(self.allow_existing(rule, judgement))
    }

    /// `reportProperties` with variables: all of them, or none if one is not a text
    /// (docs/spec/policies.md §7.2, step 5).
    fn computed_properties(&mut self, rule: &Rule, setting: Setting<'_>) -> Option<u32> {
        if rule.properties_block.get() == NONE {
            return None;
        }
        let Ending::Value(list) =
            self.run_block(rule.properties_block.get(), Stage::Properties, setting)
        else {
            return None;
        };
        let view = self.world.buffer.view(self.texts, self.tables.symbols);
        if !view
            .children(list)
            .all(|item| matches!(view.kind(item), Some(Kind::String | Kind::Null)))
        {
            return None;
        }
        let first = self.properties.len() as u32;
        for item in view.children(list) {
            let start = self.text.len();
            self.text.push_str(view.str(item));
            self.properties.push(TextRange {
                start: start as u32,
                end: self.text.len() as u32,
            });
        }
        Some(first)
    }
}

/// Makes every rule of the bundle a candidate; returns the previous candidates.
#[cold]
fn all_instead(candidates: &mut Vec<u32>, rules: usize) -> Vec<u32> {
    std::mem::replace(candidates, (0..rules as u32).collect())
}

/// Whether autogen replaces the rule for this kind.
fn is_dropped(rule: &Rule, kind: &str, tables: &Tables<'_>) -> bool {
    Tables::range(tables.index_kinds, rule.dropped_kinds)
        .iter()
        .any(|&dropped| tables.text(dropped) == kind)
}

fn body_kind(rule: &Rule) -> BodyKind {
    BodyKind::ALL
        .get(usize::from(rule.body))
        .copied()
        .unwrap_or(BodyKind::Deny)
}
