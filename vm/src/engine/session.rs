//! A session: everything that evaluation needs and keeps between requests, so that in
//! the steady state a request that passes allocates nothing.

use std::fmt::Write;

use kpvm_format::Tables;
use kpvm_format::table::{
    BodyKind, MessageKind, NONE, Policy, PolicyFlags, Range, Rule, RuleFlags,
};

use super::request::{GroupVersionKind, Input, Operation, Request, UserInfo};
use super::response::{Decision, Evaluation, Message, Outcome, RuleResponse, Status, TextRange};
use crate::document::{
    BufferFull, DocumentBuffer, JsonError, Kind, NodeId, Numbers, ReadOptions, TextSource, Texts,
    View,
};
use crate::limits::Limits;
use crate::machine::{
    Ending, Machine, RequestFacts, Scene, SelectorLabels, Subject, render_go_value,
    selector_matches, wildcard_list_matches,
};
use kpvm_format::Bundle;

/// Bytes of a found value that a response carries.
const FOUND_BYTES: usize = 256;

/// Why a request cannot be evaluated at all.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// Neither a new nor an old object.
    #[error("expected an object or an old object, found neither")]
    NoObject,
    /// The object's text is no JSON, or crosses a limit.
    #[error("the {role} cannot be read: {error}")]
    Json {
        /// `object` or `old object`.
        role: &'static str,
        /// What is wrong and where.
        error: JsonError,
    },
    /// The object does not fit.
    #[error("the {role} is too large")]
    TooLarge {
        /// `object` or `old object`.
        role: &'static str,
    },
    /// The object is no map.
    #[error("expected the {role} to be a map, found {found}")]
    NotAMap {
        /// `object` or `old object`.
        role: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// The object says no kind, and the request does not either.
    #[error(
        "expected the object to say its kind as text, found {found}; every Kubernetes object has apiVersion and kind"
    )]
    NoKind {
        /// What stands under `kind`.
        found: &'static str,
    },
    /// `apiVersion` is not `version` or `group/version`.
    #[error("expected apiVersion to be `version` or `group/version`, found `{found}`")]
    ApiVersion {
        /// What stands there.
        found: String,
    },
}

/// Evaluates requests against one bundle, one after another.
///
/// Make one for each thread: sessions share nothing but the bundle.
pub struct Session<'b> {
    /// Cut from the bundle once: that looks at every byte of the texts.
    tables: Tables<'b>,
    limits: Limits,
    buffer: DocumentBuffer,
    machine: Machine,
    outcomes: Vec<Outcome>,
    text: String,
}

/// Which outcomes are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// All, with messages.
    Report,
    /// The first that refuses the request.
    Decide,
}

impl<'b> Session<'b> {
    /// A session with the default limits.
    pub fn new(bundle: &'b Bundle<'b>) -> Self {
        Self::with_limits(bundle, Limits::DEFAULT)
    }

    /// A session with limits of the host's choice.
    pub fn with_limits(bundle: &'b Bundle<'b>, limits: Limits) -> Self {
        let tables = bundle.tables();
        Self {
            tables,
            limits,
            buffer: DocumentBuffer::new(),
            machine: Machine::new(tables.paths.len()),
            outcomes: Vec::new(),
            text: String::new(),
        }
    }

    /// Evaluates every rule that applies: all responses, with messages.
    ///
    /// # Errors
    /// An [`EvaluateError`] when the request itself is no request about a Kubernetes
    /// object. What goes wrong inside a rule is that rule's status.
    pub fn evaluate(&mut self, request: &Request<'_>) -> Result<Evaluation<'_>, EvaluateError> {
        self.run(request, Mode::Report)?;
        Ok(self.evaluation())
    }

    /// Finds out whether the request may go on, and stops at the first rule that
    /// refuses it: an enforced failure, or an error.
    ///
    /// # Errors
    /// As [`Session::evaluate`].
    pub fn decide(&mut self, request: &Request<'_>) -> Result<Decision<'_>, EvaluateError> {
        self.run(request, Mode::Decide)?;
        let evaluation = self.evaluation();
        Ok(match self.outcomes.first() {
            None => Decision::Admitted,
            Some(outcome) => Decision::Refused(RuleResponse::new(evaluation, outcome)),
        })
    }

    fn evaluation(&self) -> Evaluation<'_> {
        Evaluation {
            tables: &self.tables,
            outcomes: &self.outcomes,
            text: &self.text,
        }
    }

    fn run(&mut self, request: &Request<'_>, mode: Mode) -> Result<(), EvaluateError> {
        self.buffer.clear();
        self.outcomes.clear();
        self.text.clear();
        let tables = self.tables;
        let object = self.read(
            request.object.as_ref(),
            TextSource::Object,
            "object",
            &tables,
            request.numbers,
        )?;
        let old_object = self.read(
            request.old_object.as_ref(),
            TextSource::OldObject,
            "old object",
            &tables,
            request.numbers,
        )?;
        let texts = Texts {
            object: json_text(request.object),
            old_object: json_text(request.old_object),
            bundle: &[],
        };
        let view = self.buffer.view(texts, tables.symbols);
        let objects = Objects {
            new: object,
            old: old_object,
        };
        let main = objects.main().ok_or(EvaluateError::NoObject)?;
        let kind = match request.kind {
            Some(kind) => kind,
            None => kind_of(&view, main)?,
        };
        let facts = RequestFacts {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            subresource: request.subresource,
            operation: request.operation.bit(),
            user: request.user.filter(|user| !user.is_empty()),
            namespace_labels: request.namespace_labels,
        };
        let mut evaluator = Evaluator {
            tables: &tables,
            view,
            objects,
            operation: request.operation,
            facts: &facts,
            mode,
            limits: &self.limits,
            fuel: self.limits.request_fuel,
            machine: &mut self.machine,
            outcomes: &mut self.outcomes,
            text: &mut self.text,
        };
        evaluator.evaluate_rules(main);
        Ok(())
    }

    fn read(
        &mut self,
        input: Option<&Input<'_>>,
        source: TextSource,
        role: &'static str,
        tables: &Tables<'_>,
        numbers: Numbers,
    ) -> Result<Option<NodeId>, EvaluateError> {
        let Some(input) = input else { return Ok(None) };
        let too_large = |_: BufferFull| EvaluateError::TooLarge { role };
        let root = match input {
            Input::Json(text) => {
                let options = ReadOptions {
                    numbers,
                    limits: self.limits,
                };
                self.buffer
                    .read_json(text, source, &tables.symbols, &options)
                    .map_err(|error| EvaluateError::Json { role, error })?
            }
            Input::Value(value) => self
                .buffer
                .push_value(value, &tables.symbols, numbers)
                .map_err(too_large)?,
            Input::Tree(tree) => self
                .buffer
                .push_tree(tree, &tables.symbols, numbers)
                .map_err(too_large)?,
        };
        let view = self.buffer.view(Texts::NONE, tables.symbols);
        match view.kind(root) {
            Some(Kind::Map) => Ok(Some(root)),
            found => Err(EvaluateError::NotAMap {
                role,
                found: describe(found),
            }),
        }
    }
}

fn json_text<'i>(input: Option<Input<'i>>) -> &'i [u8] {
    match input {
        Some(Input::Json(text)) => text,
        Some(Input::Value(_) | Input::Tree(_)) | None => &[],
    }
}

fn describe(kind: Option<Kind>) -> &'static str {
    match kind {
        None => "nothing",
        Some(Kind::Null) => "null",
        Some(Kind::False | Kind::True) => "a boolean",
        Some(Kind::Int | Kind::Float) => "a number",
        Some(Kind::String) => "text",
        Some(Kind::List) => "a list",
        Some(Kind::Map) => "a map",
    }
}

/// The kind that an object says it is.
fn kind_of<'v>(view: &View<'v>, object: NodeId) -> Result<GroupVersionKind<'v>, EvaluateError> {
    let kind = view.get_text(object, b"kind");
    if view.text(kind).is_empty() {
        let found = match view.kind(kind) {
            Some(Kind::String) => "an empty text",
            other => describe(other),
        };
        return Err(EvaluateError::NoKind { found });
    }
    let api_version = view.str(view.get_text(object, b"apiVersion"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if version.contains('/') {
        return Err(EvaluateError::ApiVersion {
            found: api_version.chars().take(64).collect(),
        });
    }
    Ok(GroupVersionKind {
        group,
        version,
        kind: view.str(kind),
    })
}

/// The roots of the request's objects.
#[derive(Debug, Clone, Copy)]
struct Objects {
    new: Option<NodeId>,
    old: Option<NodeId>,
}

impl Objects {
    /// The object that is matched: the new one, or the old one where there is no new
    /// one (sheet 01, section 5.6).
    fn main(&self) -> Option<NodeId> {
        self.new.or(self.old)
    }
}

/// What a rule came to, before it becomes an [`Outcome`].
#[derive(Debug, Clone, Copy)]
struct Judgement {
    status: Status,
    message: Message,
    path: TextRange,
    found: TextRange,
    instruction: u32,
}

impl Judgement {
    fn plain(status: Status, message: Message) -> Self {
        Self {
            status,
            message,
            path: TextRange::default(),
            found: TextRange::default(),
            instruction: NONE,
        }
    }
}

/// One evaluation.
struct Evaluator<'e, 'm> {
    tables: &'e Tables<'e>,
    view: View<'e>,
    objects: Objects,
    operation: Operation,
    facts: &'e RequestFacts<'e>,
    mode: Mode,
    limits: &'e Limits,
    fuel: u64,
    machine: &'m mut Machine,
    outcomes: &'m mut Vec<Outcome>,
    text: &'m mut String,
}

impl<'e> Evaluator<'e, '_> {
    /// Sheet 01, section 7.1, over the rules that the index gives for the kind.
    fn evaluate_rules(&mut self, main: NodeId) {
        let mut subject = subject_facts(&self.view, main);
        let namespace = self.policy_namespace(&subject);
        self.machine.change_subject();
        let mut policy_number = NONE;
        let mut policy_done = false;
        let tables = self.tables;
        let kind = self.facts.kind;
        let exact = tables
            .symbols
            .lookup(kind.as_bytes())
            .map_or(&[][..], |symbol| tables.rules_of_kind(symbol));
        let (mut exact, mut wildcard) = (
            exact.iter().peekable(),
            tables.wildcard_rules.iter().peekable(),
        );
        // Both lists ascend and share no rule; merged they are the order of evaluation.
        loop {
            let next = match (exact.peek(), wildcard.peek()) {
                (Some(left), Some(right)) if left.get() < right.get() => exact.next(),
                (_, Some(_)) => wildcard.next(),
                (_, None) => exact.next(),
            };
            let Some(number) = next.map(|number| number.get()) else {
                return;
            };
            let Some(rule) = tables.rules.get(number as usize) else {
                continue;
            };
            let Some(policy) = tables.policies.get(rule.policy.get() as usize) else {
                continue;
            };
            if policy_number != rule.policy.get() {
                policy_number = rule.policy.get();
                policy_done = policy.flags & PolicyFlags::NAMESPACED != 0
                    && namespace != Some(tables.text(policy.namespace));
            }
            if policy_done || is_dropped(rule, kind, tables) {
                continue;
            }
            subject.rule_name = tables.text(rule.name);
            let Some(judgement) = self.evaluate_rule(rule, &subject) else {
                continue;
            };
            policy_done = policy.flags & PolicyFlags::APPLY_ONE != 0
                && matches!(judgement.status, Status::Pass | Status::Fail);
            if self.record(number, rule, policy, &subject, judgement) {
                return;
            }
        }
    }

    /// Keeps an outcome; whether the evaluation is over.
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
            self.outcomes.push(Outcome {
                rule: number,
                status: judgement.status,
                message: judgement.message,
                enforced,
                path: judgement.path,
                found: judgement.found,
                instruction: judgement.instruction,
            });
        }
        self.mode == Mode::Decide && refused
    }

    /// The namespace whose policies look at the request: that of all its objects
    /// (sheet 01, section 5.7).
    fn policy_namespace<'s>(&self, main: &Subject<'s>) -> Option<&'s str> {
        let is_namespaced =
            |subject: &Subject<'_>| subject.kind != "Namespace" && !subject.namespace.is_empty();
        let agrees =
            |other: &Subject<'_>| is_namespaced(other) && other.namespace == main.namespace;
        // Where there is a new object, it is the main one.
        let other = self.objects.new.and(self.objects.old);
        let others_agree = other.is_none_or(|old| agrees(&subject_facts(&self.view, old)));
        (is_namespaced(main) && others_agree).then_some(main.namespace)
    }

    fn scene<'s>(&self, subject: &'s Subject<'s>, request: &'s RequestFacts<'s>) -> Scene<'s>
    where
        'e: 's,
    {
        Scene {
            tables: self.tables,
            view: self.view,
            subject,
            request,
        }
    }

    /// Runs a block under the limits of one rule.
    fn run_block(&mut self, run: impl FnOnce(&mut Machine) -> Ending) -> Ending {
        let given = self.limits.rule_fuel.min(self.fuel);
        self.machine.fuel = given;
        let ending = run(self.machine);
        self.fuel -= given - self.machine.fuel.min(given);
        ending
    }

    /// Sheet 01, section 7.2; `None` when the rule gives no response.
    fn evaluate_rule(&mut self, rule: &Rule, subject: &Subject<'_>) -> Option<Judgement> {
        let scene = self.scene(subject, self.facts);
        match self.run_block(|machine| machine.check(rule.match_block.get(), scene)) {
            Ending::Matched => {}
            Ending::OutOfFuel => return Some(self.out_of_fuel()),
            _ => return None,
        }
        let is_deny = rule.body == BodyKind::Deny as u8;
        let is_delete = self.operation == Operation::Delete || self.objects.new.is_none();
        self.machine.begin_rule();
        let ending = self.run_block(|machine| machine.check(rule.body_block.get(), scene));
        if is_delete && !is_deny && !matches!(ending, Ending::Text { status: 2, .. }) {
            return None;
        }
        let judgement = self.judge(rule, ending, scene);
        Some(self.allow_existing(rule, judgement))
    }

    /// Sheet 01, section 10: an enforced rule that the old object violates too is skipped.
    fn allow_existing(&mut self, rule: &Rule, judgement: Judgement) -> Judgement {
        let applies = RuleFlags::ENFORCE | RuleFlags::ALLOW_EXISTING;
        let both = self.objects.new.is_some() && self.objects.old.is_some();
        if rule.flags & applies != applies || !(both || self.operation == Operation::Update) {
            return judgement;
        }
        if self.operation != Operation::Update {
            return self.fixed(Status::Skip, "failed to validate old object");
        }
        if judgement.status != Status::Fail || !self.old_object_fails(rule) {
            return judgement;
        }
        self.fixed(
            Status::Skip,
            "skipping the rule evaluation as pre-existing violations are allowed",
        )
    }

    fn old_object_fails(&mut self, rule: &Rule) -> bool {
        let Some(old) = self.objects.old else {
            return false;
        };
        let Ok(kind) = kind_of(&self.view, old) else {
            return false;
        };
        let mut subject = subject_facts(&self.view, old);
        subject.rule_name = self.tables.text(rule.name);
        let facts = RequestFacts {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            subresource: "",
            operation: Operation::Create.bit(),
            user: Some(NOBODY),
            namespace_labels: self.facts.namespace_labels,
        };
        let scene = self.scene(&subject, &facts);
        self.machine.change_subject();
        let matched = self.run_block(|machine| machine.check(rule.match_block.get(), scene))
            == Ending::Matched;
        let fails = matched && {
            let ending = self.run_block(|machine| machine.check(rule.body_block.get(), scene));
            let mark = self.text.len();
            let judgement = self.judge(rule, ending, scene);
            self.text.truncate(mark);
            judgement.status == Status::Fail
        };
        self.machine.change_subject();
        fails
    }

    /// The status and message of an ending; the block is run again to explain it where
    /// that takes more than the ending itself.
    fn judge(&mut self, rule: &Rule, ending: Ending, scene: Scene<'_>) -> Judgement {
        match ending {
            Ending::Pass => Judgement::plain(Status::Pass, Message::Passed),
            Ending::Alternative(index) => {
                Judgement::plain(Status::Pass, Message::AlternativePassed(index))
            }
            Ending::Text { status, text } => {
                let status = if status == 0 {
                    Status::Pass
                } else {
                    Status::Error
                };
                let text = self
                    .tables
                    .texts
                    .get(text as usize)
                    .map_or("", |&text| self.tables.text(text));
                self.fixed(status, text)
            }
            Ending::Deny => self.judge_deny(rule, scene),
            Ending::Error(_) | Ending::AlternativesFailed { .. } => self.judge_failure(rule, scene),
            Ending::Matched | Ending::Unmatched | Ending::OutOfFuel => self.out_of_fuel(),
        }
    }

    fn fixed(&mut self, status: Status, text: &str) -> Judgement {
        let message = Message::Rendered(self.render(|out| out.push_str(text)));
        Judgement::plain(status, message)
    }

    fn out_of_fuel(&mut self) -> Judgement {
        let limits = self.limits;
        let text = format!(
            "evaluation limit exceeded: rule-fuel is {} steps a rule, request-fuel {} steps a request",
            limits.rule_fuel, limits.request_fuel
        );
        self.fixed(Status::Error, &text)
    }

    /// Appends to the text buffer, within the limit of a message.
    fn render(&mut self, write: impl FnOnce(&mut String)) -> TextRange {
        let start = self.text.len();
        write(self.text);
        truncate(self.text, start + self.limits.message_bytes);
        TextRange {
            start: start as u32,
            end: self.text.len() as u32,
        }
    }

    /// Sheet 01, section 8.1.
    fn judge_deny(&mut self, rule: &Rule, scene: Scene<'_>) -> Judgement {
        let message = self.tables.text(rule.message);
        match message_kind(rule) {
            MessageKind::Absent => {
                let text = format!("validation error: rule {} failed", scene.subject.rule_name);
                self.fixed(Status::Fail, &text)
            }
            MessageKind::Text => self.fixed(Status::Fail, message),
            MessageKind::Unresolvable => self.fixed(Status::Fail, ""),
        }
    }

    /// Sheet 02, sections 2.1, 11 and 12.
    fn judge_failure(&mut self, rule: &Rule, scene: Scene<'_>) -> Judgement {
        let ending = self.run_block(|machine| machine.explain(rule.body_block.get(), scene));
        let explanation = std::mem::take(&mut self.machine.explanation);
        let judgement = match ending {
            Ending::Error(kind) if kind.is_skip() => self.fixed(Status::Skip, &explanation.text),
            Ending::Error(kind) => {
                let pathless = explanation.is_pathless(kind);
                let status = if pathless {
                    Status::Error
                } else {
                    Status::Fail
                };
                let name = scene.subject.rule_name;
                let detail = match message_kind(rule) {
                    MessageKind::Unresolvable => {
                        format!(
                            "variables substitution error in rule {name} execution error: {}",
                            explanation.text
                        )
                    }
                    _ if pathless => format!("rule {name} execution error: {}", explanation.text),
                    _ => format!("rule {name} failed at path {}", explanation.path),
                };
                self.failure(rule, status, &detail)
            }
            Ending::AlternativesFailed { any_failed: false } => {
                self.fixed(Status::Skip, &explanation.skipped_alternatives)
            }
            Ending::AlternativesFailed { any_failed: true } => {
                let detail = match message_kind(rule) {
                    MessageKind::Unresolvable => format!(
                        "variables substitution error in rule {} execution error: {}",
                        scene.subject.rule_name, explanation.failed_alternatives
                    ),
                    MessageKind::Absent | MessageKind::Text => {
                        explanation.failed_alternatives.clone()
                    }
                };
                self.failure(rule, Status::Fail, &detail)
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
                scene,
            )
        };
        // The buffers of the explanation are used again.
        self.machine.explanation = explanation;
        judgement
    }

    /// `validation error: `, the rule's message if it has one, and what happened.
    fn failure(&mut self, rule: &Rule, status: Status, detail: &str) -> Judgement {
        let message = self.tables.text(rule.message);
        let with_message = message_kind(rule) == MessageKind::Text;
        let range = self.render(|out| {
            out.push_str("validation error: ");
            if with_message {
                out.push_str(message);
                out.push(' ');
            }
            out.push_str(detail);
        });
        Judgement::plain(status, Message::Rendered(range))
    }

    /// Adds path, value and place of the failed check.
    fn with_detail(
        &mut self,
        mut judgement: Judgement,
        path: &str,
        value: NodeId,
        instruction: u32,
        scene: Scene<'_>,
    ) -> Judgement {
        judgement.instruction = instruction;
        judgement.path = self.render(|out| out.push_str(path));
        let secret = scene.subject.is_secret
            && (path.starts_with("/data/") || path.starts_with("/stringData/"));
        judgement.found = self.render(|out| {
            let start = out.len();
            match scene.view.kind(value) {
                _ if secret => out.push_str("***"),
                None => out.push_str("nothing"),
                Some(Kind::String) => {
                    let _ = write!(out, "{:?}", scene.view.str(value));
                }
                Some(Kind::Null) => out.push_str("null"),
                Some(_) => render_go_value(&scene.view, value, out),
            }
            truncate(out, start + FOUND_BYTES);
        });
        judgement
    }

    /// Sheet 01, section 11.1.
    fn is_enforced(&self, rule: &Rule, policy: &Policy, subject: &Subject<'_>) -> bool {
        self.override_action(rule.overrides, subject)
            .unwrap_or_else(|| {
                if rule.flags & RuleFlags::OWN_ACTION != 0 {
                    rule.flags & RuleFlags::ENFORCE != 0
                } else {
                    self.override_action(policy.overrides, subject)
                        .unwrap_or(policy.flags & PolicyFlags::ENFORCE != 0)
                }
            })
    }

    /// The first override that holds for the object's namespace (section 11.2).
    fn override_action(&self, overrides: Range, subject: &Subject<'_>) -> Option<bool> {
        let labels = SelectorLabels::Pairs(self.facts.namespace_labels);
        Tables::range(self.tables.action_overrides, overrides)
            .iter()
            .find(|entry| {
                let in_namespaces = entry.namespaces.get() == NONE
                    || wildcard_list_matches(
                        entry.namespaces.get(),
                        subject.namespace,
                        self.tables,
                    );
                let selected = entry.selector.get() == NONE
                    || selector_matches(entry.selector.get(), self.tables, &labels);
                in_namespaces && selected
            })
            .map(|entry| entry.enforce != 0)
    }
}

/// The user that Kyverno makes up to match the old object again (sheet 01, section 10).
const NOBODY: UserInfo<'static> = UserInfo {
    username: "kyverno:kyverno-invalid-controller",
    groups: &["kyverno:invalidgroup"],
    roles: &["kyverno:invalidrole"],
    cluster_roles: &["kyverno:invalidrole"],
};

fn message_kind(rule: &Rule) -> MessageKind {
    MessageKind::ALL
        .get(usize::from(rule.message_kind))
        .copied()
        .unwrap_or(MessageKind::Absent)
}

/// Whether autogen replaces the rule for this kind.
fn is_dropped(rule: &Rule, kind: &str, tables: &Tables<'_>) -> bool {
    Tables::range(tables.index_kinds, rule.dropped_kinds)
        .iter()
        .any(|&dropped| tables.text(dropped) == kind)
}

/// Cuts a text at a character border.
fn truncate(text: &mut String, mut length: usize) {
    if text.len() > length {
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        text.truncate(length);
    }
}

fn subject_facts<'v>(view: &View<'v>, root: NodeId) -> Subject<'v> {
    let metadata = view.get_text(root, b"metadata");
    let text = |key: &[u8]| view.str(view.get_text(metadata, key));
    let name = text(b"name");
    let matched_name = if name.is_empty() {
        text(b"generateName")
    } else {
        name
    };
    let kind = view.str(view.get_text(root, b"kind"));
    Subject {
        root,
        name,
        matched_name,
        namespace: text(b"namespace"),
        kind,
        labels: view.get_text(metadata, b"labels"),
        annotations: view.get_text(metadata, b"annotations"),
        is_secret: kind == "Secret",
        rule_name: "",
    }
}
