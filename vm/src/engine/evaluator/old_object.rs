//! Violations that the old object of an update already has (docs/spec/policies.md §10).

use kpvm_format::table::{BodyKind, NONE, Rule, RuleFlags};

use super::{Evaluator, Judgement, body_kind};
use crate::engine::observer::Stage;
use crate::engine::request::{Operation, UserInfo};
use crate::engine::response::Status;
use crate::machine::{Ending, RequestFacts, Setting};

impl Evaluator<'_, '_> {
    /// docs/spec/policies.md §10: an enforced rule is skipped if the old object violates it
    /// too.
    pub(super) fn allow_existing(&mut self, rule: &Rule, judgement: Judgement) -> Judgement {
        let applies = RuleFlags::ENFORCE | RuleFlags::ALLOW_EXISTING;
        let both = self.objects.new.is_some() && self.objects.old.is_some();
        let is_cel = body_kind(rule) == BodyKind::Cel;
        if is_cel
            || rule.flags & applies != applies
            || !(both || self.operation == Operation::Update)
        {
            return judgement;
        }
        if body_kind(rule) == BodyKind::Assert {
            return self.allow_existing_failures(rule, judgement);
        }
        let is_pod_security = body_kind(rule) == BodyKind::PodSecurity;
        if self.operation != Operation::Update && is_pod_security {
            return judgement;
        }
        if self.operation != Operation::Update {
            return self.fixed(Status::Skip, "failed to validate old object");
        }
        // With preconditions the old object never counts as failing
        // (docs/spec/policies.md §10, step 4).
        let has_preconditions = rule.precondition_block.get() != NONE;
        let fails = judgement.status == Status::Fail;
        if fails && !has_preconditions && self.old_object_status(rule) == Some(Status::Fail) {
            return self.fixed(Status::Skip, EXISTING_VIOLATIONS);
        }
        judgement
    }

    /// The body's status for the old object; `None` if the rule does not match it.
    pub(super) fn old_object_status(&mut self, rule: &Rule) -> Option<Status> {
        let (Some(old), Some(kind)) = (self.old_names, self.old_kind) else {
            return None;
        };
        let mut subject = old.subject(self.names);
        subject.rule_name = self.tables.text(rule.name);
        let facts = RequestFacts {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            subresource: "",
            operation: Operation::Create.bit(),
            operation_name: Operation::Create.name(),
            object: self.objects.old,
            old_object: None,
            is_old: true,
            user: Some(NOBODY),
            ..*self.facts
        };
        let setting = self.setting(rule, &subject, &facts);
        self.machine.change_subject();
        self.machine.change_context();
        let mark = self.text.len();
        let status = match self.run_block(rule.match_block.get(), Stage::OldMatch, setting) {
            Ending::Matched => self.old_body_status(rule, setting),
            _ => None,
        };
        self.text.truncate(mark);
        self.machine.change_subject();
        self.machine.change_context();
        status
    }

    fn old_body_status(&mut self, rule: &Rule, setting: Setting<'_>) -> Option<Status> {
        // A pattern keeps the values that its variables had for the new object.
        let kept = matches!(body_kind(rule), BodyKind::Pattern | BodyKind::AnyPattern);
        let setting = if kept {
            self.machine.change_context();
            Setting {
                request: self.facts,
                ..setting
            }
        } else {
            setting
        };
        if body_kind(rule) == BodyKind::PodSecurity {
            let fails = self.old_pod_fails(rule, setting);
            return fails.then_some(Status::Fail);
        }
        match self.run_block(rule.body_block.get(), Stage::OldBody, setting) {
            Ending::Assertions => Some(Status::Fail),
            ending => {
                let judgement = self.judge(rule, ending, setting);
                judgement.map(|judgement| judgement.status)
            }
        }
    }

    /// Exceptions are checked again, for the old object (docs/spec/policies.md §10).
    fn old_pod_fails(&mut self, rule: &Rule, setting: Setting<'_>) -> bool {
        let Ok(exceptions) = self.exceptions_that_hold(rule, setting) else {
            return false;
        };
        if self.skip_by_exceptions(rule, exceptions).is_some() {
            return false;
        }
        let ending = self.run_block(rule.body_block.get(), Stage::OldBody, setting);
        let exempted = self.exempt_findings(exceptions, ending, setting);
        exempted.is_none() && matches!(ending, Ending::Findings { .. })
    }
}

/// The dummy user with which Kyverno matches the old object (docs/spec/policies.md §10).
const NOBODY: UserInfo<'static> = UserInfo {
    username: "kyverno:kyverno-invalid-controller",
    uid: "",
    groups: &["kyverno:invalidgroup"],
    roles: &["kyverno:invalidrole"],
    cluster_roles: &["kyverno:invalidrole"],
};

/// The message of a rule that the old object violates too.
pub(super) const EXISTING_VIOLATIONS: &str =
    "skipping the rule evaluation as pre-existing violations are allowed";
