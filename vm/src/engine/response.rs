//! What an evaluation gives back.

use std::borrow::Cow;
use std::fmt;

use kpvm_format::Tables;
use kpvm_format::site::InstructionId;
use kpvm_format::table::{BodyKind, Exception, PolicyFlags, Rule, RuleFlags};

/// Outcome of one rule on one resource. A rule without a response did not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The resource is as the rule wants it.
    Pass,
    /// It is not.
    Fail,
    /// The rule could not be evaluated.
    Error,
    /// The rule says of itself that it does not apply.
    Skip,
}

impl Status {
    /// `pass`, `fail`, `error` or `skip`.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Error => "error",
            Status::Skip => "skip",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A range of the session's text buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TextRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A range of the session's list of exceptions that hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExceptionRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl ExceptionRange {
    /// Whether there are none.
    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Their numbers, from the list.
    pub(crate) fn numbers(self, list: &[u32]) -> &[u32] {
        list.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    /// Their records, from the list and the bundle.
    pub(crate) fn of<'s>(
        self,
        list: &'s [u32],
        tables: &Tables<'s>,
    ) -> impl Iterator<Item = &'s Exception> + use<'s> {
        let exceptions = tables.exceptions;
        self.numbers(list)
            .iter()
            .filter_map(move |&number| exceptions.get(number as usize))
    }
}

/// Where the message of a response comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// `validation rule '…' passed.`
    Passed,
    /// The same with a capital letter, as for podSecurity.
    CapitalPassed,
    /// `validation rule '…' anyPattern[…] passed.`
    AlternativePassed(u32),
    /// `success`, as for a ValidatingPolicy.
    Success,
    /// Rendered into the session's text buffer.
    Rendered(TextRange),
}

/// What stands for the rule in a response (docs/spec/cel.md §6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Title {
    /// The rule itself.
    #[default]
    Rule,
    /// The evaluation of a ValidatingPolicy, which ended before its validations.
    Evaluation,
    /// Exceptions to a ValidatingPolicy.
    Exception,
}

/// One response as the session keeps it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) rule: u32,
    pub(crate) title: Title,
    pub(crate) status: Status,
    pub(crate) message: Message,
    /// Whether a failure is to be enforced.
    pub(crate) enforced: bool,
    /// Path, value and instruction of a failed check.
    pub(crate) path: TextRange,
    pub(crate) found: TextRange,
    pub(crate) instruction: InstructionId,
    /// First of its computed properties, where it has some.
    pub(crate) properties: Option<u32>,
    /// The exceptions that skip the rule.
    pub(crate) exceptions: ExceptionRange,
    /// What a failed podSecurity rule reports of its controls.
    pub(crate) controls: Option<ControlTexts>,
}

/// The controls that a podSecurity rule fails by, rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ControlTexts {
    pub(crate) ids: TextRange,
    pub(crate) json: TextRange,
}

/// The responses of one evaluation, borrowed from the session.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'s> {
    pub(crate) tables: &'s Tables<'s>,
    pub(crate) outcomes: &'s [Outcome],
    pub(crate) properties: &'s [TextRange],
    pub(crate) excepted: &'s [u32],
    pub(crate) text: &'s str,
}

impl<'s> Evaluation<'s> {
    /// The responses, in the order of policies and rules.
    pub fn responses(&self) -> impl ExactSizeIterator<Item = RuleResponse<'s>> + use<'s> {
        let evaluation = *self;
        evaluation.outcomes.iter().map(move |outcome| RuleResponse {
            evaluation,
            outcome,
        })
    }
}

/// The outcome of one rule.
#[derive(Debug, Clone, Copy)]
pub struct RuleResponse<'s> {
    evaluation: Evaluation<'s>,
    outcome: &'s Outcome,
}

/// Where a check failed, in the resource and in the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureDetail<'s> {
    /// Path in the resource, e.g. `/spec/containers/0/image/`; may be empty.
    pub path: &'s str,
    /// The value found there, at most 256 bytes of it.
    pub found: &'s str,
    /// Number of the policy file in the bundle's facts.
    pub source: u32,
    /// Line in the policy file, from 1.
    pub line: u32,
    /// Column in the policy file, from 1.
    pub column: u32,
}

/// The controls of the Pod Security Standards that a rule fails by, as reports show
/// them (docs/spec/pod-security.md §11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodSecurityDetail<'s> {
    /// The rule's level.
    pub standard: &'s str,
    /// The rule's version as written; may be empty.
    pub version: &'s str,
    /// Ids of the failing checks, joined with commas.
    pub controls: &'s str,
    /// The same as a JSON list of objects with `ID`, `Name` and `Images`.
    pub controls_json: &'s str,
}

impl<'s> RuleResponse<'s> {
    pub(crate) fn new(evaluation: Evaluation<'s>, outcome: &'s Outcome) -> Self {
        Self {
            evaluation,
            outcome,
        }
    }

    fn record(&self) -> Option<&'s Rule> {
        self.evaluation.tables.rules.get(self.outcome.rule as usize)
    }

    fn text(&self, range: TextRange) -> &'s str {
        self.evaluation
            .text
            .get(range.start as usize..range.end as usize)
            .unwrap_or("")
    }

    /// Kind of the rule's body.
    pub(crate) fn body(&self) -> Option<BodyKind> {
        let number = usize::from(self.record()?.body);
        BodyKind::ALL.get(number).copied()
    }

    /// Number of the rule in the bundle.
    pub fn rule_index(&self) -> usize {
        self.outcome.rule as usize
    }

    /// Number of the policy in the bundle.
    pub fn policy_index(&self) -> usize {
        self.record().map_or(0, |rule| rule.policy.get() as usize)
    }

    /// Name of the policy.
    pub fn policy(&self) -> &'s str {
        let tables = self.evaluation.tables;
        tables
            .policies
            .get(self.policy_index())
            .map_or("", |policy| tables.text(policy.name))
    }

    /// Namespace of the policy; empty for a `ClusterPolicy`.
    pub fn policy_namespace(&self) -> &'s str {
        let tables = self.evaluation.tables;
        tables
            .policies
            .get(self.policy_index())
            .map_or("", |policy| tables.text(policy.namespace))
    }

    /// Name of the rule, with `autogen-` in front of a generated one. A ValidatingPolicy
    /// has none, but for `evaluation` where its conditions failed and `exception` where
    /// it was exempted from.
    pub fn rule(&self) -> &'s str {
        match self.outcome.title {
            Title::Rule => self
                .record()
                .map_or("", |rule| self.evaluation.tables.text(rule.name)),
            Title::Evaluation => "evaluation",
            Title::Exception => "exception",
        }
    }

    /// Whether autogen made the rule.
    pub fn is_generated(&self) -> bool {
        self.record()
            .is_some_and(|rule| rule.flags & RuleFlags::GENERATED != 0)
    }

    /// The outcome.
    pub fn status(&self) -> Status {
        self.outcome.status
    }

    /// Kyverno's message for the outcome.
    pub fn message(&self) -> Cow<'s, str> {
        match self.outcome.message {
            Message::Passed => format!("validation rule '{}' passed.", self.rule()).into(),
            Message::CapitalPassed => format!("Validation rule '{}' passed.", self.rule()).into(),
            Message::AlternativePassed(index) => format!(
                "validation rule '{}' anyPattern[{index}] passed.",
                self.rule()
            )
            .into(),
            Message::Success => "success".into(),
            Message::Rendered(range) => self.text(range).into(),
        }
    }

    /// The exceptions that exempt from the rule, each with its namespace (empty without
    /// one) and its name; none unless the status is skip (or, of a ValidatingPolicy, pass)
    /// for that reason.
    pub fn exceptions(&self) -> impl Iterator<Item = (&'s str, &'s str)> + use<'s> {
        let tables = self.evaluation.tables;
        self.outcome
            .exceptions
            .of(self.evaluation.excepted, tables)
            .map(move |exception| {
                (
                    tables.text(exception.namespace),
                    tables.text(exception.name),
                )
            })
    }

    /// Whether a failure refuses the request: the action that holds for the rule and
    /// the object's namespace is Enforce (docs/spec/policies.md §11.1).
    pub fn is_enforced(&self) -> bool {
        self.outcome.enforced
    }

    /// Whether the policy's failures count: false where it is annotated
    /// `policies.kyverno.io/scored: "false"`.
    pub fn is_scored(&self) -> bool {
        let policy = self.evaluation.tables.policies.get(self.policy_index());
        policy.is_none_or(|policy| policy.flags & PolicyFlags::UNSCORED == 0)
    }

    /// Where the check failed, if the status comes from a check.
    pub fn failure(&self) -> Option<FailureDetail<'s>> {
        let tables = self.evaluation.tables;
        let site = tables.site(self.outcome.instruction)?;
        let place = tables.place_of(self.outcome.rule, &site.place);
        Some(FailureDetail {
            path: self.text(self.outcome.path),
            found: self.text(self.outcome.found),
            source: place.source.get(),
            line: place.line.get(),
            column: place.column.get(),
        })
    }

    /// The controls that a podSecurity rule fails by; a [`Decision`] does not gather them.
    pub fn pod_security(&self) -> Option<PodSecurityDetail<'s>> {
        let controls = self.outcome.controls?;
        let level_version = self.evaluation.tables.text(self.record()?.message);
        let (standard, version) = level_version.split_once(':').unwrap_or((level_version, ""));
        Some(PodSecurityDetail {
            standard,
            version,
            controls: self.text(controls.ids),
            controls_json: self.text(controls.json),
        })
    }

    /// The rule's `reportProperties`, variables substituted; of a ValidatingPolicy the
    /// audit annotations, and which validation failed. What is empty there is left out.
    pub fn properties(&self) -> impl Iterator<Item = (&'s str, &'s str)> + use<'s> {
        let response = *self;
        let tables = self.evaluation.tables;
        let pairs = self
            .record()
            .map_or(&[][..], |rule| Tables::range(tables.pairs, rule.properties));
        let body = self.record().map(|rule| rule.body);
        let keeps_empty = body != Some(BodyKind::Validations as u8);
        let all = pairs.iter().enumerate().map(move |(index, pair)| {
            let computed = response
                .outcome
                .properties
                .map(|first| first as usize + index);
            let value = computed.and_then(|at| response.evaluation.properties.get(at));
            (
                tables.text(pair.key),
                value.map_or(tables.text(pair.value), |&range| response.text(range)),
            )
        });
        all.filter(move |(_, value)| keeps_empty || !value.is_empty())
    }
}

/// Whether a request may go on.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant)] // a borrowed view: short-lived and never stored
pub enum Decision<'s> {
    /// Nothing refuses it.
    Admitted,
    /// This rule refuses it: it failed and is enforced, or could not be evaluated.
    Refused(RuleResponse<'s>),
}

impl<'s> Decision<'s> {
    /// Whether the request may go on.
    pub fn is_admitted(&self) -> bool {
        matches!(self, Decision::Admitted)
    }

    /// The response that refuses the request.
    pub fn refusal(&self) -> Option<RuleResponse<'s>> {
        match *self {
            Decision::Admitted => None,
            Decision::Refused(response) => Some(response),
        }
    }
}
