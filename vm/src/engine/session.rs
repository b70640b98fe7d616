//! A session: everything that evaluation needs and keeps between requests, so that in
//! the steady state a request that passes allocates nothing.

mod admission_policy;
mod assertion;
mod exception;
mod validation;

use std::cell::OnceCell;
use std::fmt::Write;

use kpvm_format::Tables;
use kpvm_format::index::ObjectKeys;
use kpvm_format::site::InstructionId;
use kpvm_format::table::{
    BodyKind, MessageKind, NONE, Policy, PolicyFlags, Range, Rule, RuleFlags,
};

use super::observer::{Event, NotTried, Observer, Stage, Verdict};
use super::plans::{KindPlan, PlainRule, Plans, Reading};
use super::projection::Topic;
use super::request::{GroupVersionKind, Input, Operation, Request, UserInfo};
use super::response::{
    ControlTexts, Decision, Evaluation, ExceptionRange, Message, Outcome, RuleResponse, Status,
    TextRange, Title,
};
use crate::document::projection::{Bystander, Part, Projection};
use crate::document::{
    BufferFull, DocumentBuffer, JsonError, Kind, NodeId, Numbers, ReadOptions, TextSource, Texts,
    View, kind_in_front,
};
use crate::host::{Host, NoHost};
use crate::machine::{
    Ending, Findings, Machine, RequestFacts, SelectorLabels, Setting, Shown, Subject, World,
    is_secret_path, kinds_match, render_go_value, selector_matches, wildcard_list_matches,
};
use crate::plan::{Proof, Survey, TextWalk};
use crate::text::{append_substituted, truncate};
use kpvm_format::Bundle;
use kpvm_semantics::limits::Limits;
use kpvm_semantics::quote::quote_json;
use kpvm_semantics::resource_kind::make_plural;

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
    /// The rules to try for the object at hand.
    candidates: Vec<u32>,
    /// Values of computed report properties.
    properties: Vec<TextRange>,
    /// Exceptions that skipped rules.
    excepted: Vec<u32>,
    /// Names of the objects and their kinds.
    names: String,
    text: String,
    runtime_expressions: bool,
    plans: Plans,
    /// Whether rules match resources rather than kinds.
    matches_resources: bool,
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
            machine: Machine::new(&tables),
            outcomes: Vec::new(),
            candidates: Vec::new(),
            properties: Vec::new(),
            excepted: Vec::new(),
            names: String::new(),
            text: String::new(),
            runtime_expressions: true,
            plans: Plans::new(),
            matches_resources: tables
                .policies
                .iter()
                .any(|policy| policy.flags & PolicyFlags::RESOURCES != 0),
        }
    }

    /// Whether of JSON only what rules may look at is read, and of the rest the syntax
    /// checked, as it is unless this is called with `false`. Verdicts, messages and errors
    /// are the same.
    pub fn set_projection(&mut self, allowed: bool) {
        self.plans.may_project = allowed;
    }

    /// Whether what rules demand is tested together, in one walk over the object, as it is
    /// unless this is called with `false`; each rule is run by itself then. Verdicts, messages
    /// and errors are the same, but a rule that needs not be run takes no fuel.
    pub fn set_plan(&mut self, allowed: bool) {
        self.plans.may_plan = allowed;
        self.plans.forget();
    }

    /// How many evaluations were done again with everything read, because a rule looked
    /// at what had been left out: to build a message, mostly.
    pub fn evaluations_repeated(&self) -> u64 {
        self.plans.missed
    }

    /// Whether expressions whose text is known only at run time (`{{ a.{{ b }} }}`) are
    /// parsed and evaluated then; with `false` their rules are errors.
    pub fn set_runtime_expressions(&mut self, allowed: bool) {
        self.runtime_expressions = allowed;
    }

    /// Evaluates every rule that applies: all responses, with messages. Rules that ask
    /// for outside data, the time or randomness are errors.
    ///
    /// # Errors
    /// An [`EvaluateError`] when the request itself is no request about a Kubernetes
    /// object. What goes wrong inside a rule is that rule's status.
    pub fn evaluate(&mut self, request: &Request<'_>) -> Result<Evaluation<'_>, EvaluateError> {
        self.evaluate_with(request, &mut NoHost)
    }

    /// As [`Session::evaluate`], with a host that answers what rules ask for.
    ///
    /// # Errors
    /// As [`Session::evaluate`].
    pub fn evaluate_with(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
    ) -> Result<Evaluation<'_>, EvaluateError> {
        self.run(request, host, None, Mode::Report)?;
        Ok(self.evaluation())
    }

    /// As [`Session::evaluate_with`], with an observer that hears of everything that is
    /// done. The responses are the same.
    ///
    /// # Errors
    /// As [`Session::evaluate`].
    pub fn evaluate_observed(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
        observer: &mut dyn Observer,
    ) -> Result<Evaluation<'_>, EvaluateError> {
        self.run(request, host, Some(observer), Mode::Report)?;
        Ok(self.evaluation())
    }

    /// Finds out whether the request may go on, and stops at the first rule that
    /// refuses it: an enforced failure, or an error.
    ///
    /// # Errors
    /// As [`Session::evaluate`].
    pub fn decide(&mut self, request: &Request<'_>) -> Result<Decision<'_>, EvaluateError> {
        self.decide_with(request, &mut NoHost)
    }

    /// As [`Session::decide`], with a host that answers what rules ask for.
    ///
    /// # Errors
    /// As [`Session::evaluate`].
    pub fn decide_with(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
    ) -> Result<Decision<'_>, EvaluateError> {
        self.run(request, host, None, Mode::Decide)?;
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
            properties: &self.properties,
            excepted: &self.excepted,
            text: &self.text,
        }
    }

    fn run(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
        observer: Option<&mut dyn Observer>,
        mode: Mode,
    ) -> Result<(), EvaluateError> {
        if observer.is_none()
            && let Some(topic) = self.topic_for_plan(request)
        {
            // Lent out, so that the rest of the session can be used beside them.
            let mut plans = std::mem::replace(&mut self.plans, Plans::new());
            let result = self.run_planned(request, host, mode, topic, &mut plans);
            self.plans = plans;
            if let Some(result) = result {
                return result;
            }
        }
        self.run_once(request, host, observer, mode, None)
            .map(|_| ())
    }

    /// What the request is about, if it is evaluated with a plan.
    fn topic_for_plan<'r>(&mut self, request: &Request<'r>) -> Option<Topic<'r>> {
        // A payload has no kind.
        if request.is_payload || request.variables.is_some() {
            return None;
        }
        let kind = match (request.kind, request.object.or(request.old_object)?) {
            (Some(kind), _) => kind.kind,
            (None, Input::Json(text)) => kind_in_front(text)?,
            (None, Input::Value(value)) => value.get("kind")?.as_str()?,
            (None, Input::Tree(tree)) => tree.get("kind")?.as_str()?,
        };
        self.names.clear();
        let resource = match request.resource {
            _ if !self.matches_resources => "",
            "" => {
                self.names.push_str(kind);
                make_plural(&mut self.names, 0);
                &self.names
            }
            resource => resource,
        };
        Some(Topic::new(&self.tables, kind, resource))
    }

    /// Evaluates with the plan of a kind. `None` where a rule looked at what was not read:
    /// that does not count.
    fn run_planned(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
        mode: Mode,
        topic: Topic<'_>,
        plans: &mut Plans,
    ) -> Option<Result<(), EvaluateError>> {
        let main = request.object.or(request.old_object)?;
        let may_project = plans.may_project && matches!(main, Input::Json(_));
        let (known, survey) = plans.of(&self.tables, topic, request.operation);
        let mut reading = match may_project {
            true => known.reading(&self.tables),
            false => Reading::Whole,
        };
        let planned = Planned {
            known,
            survey,
            reading,
        };
        let mut result = self.run_once(request, host, None, mode, Some(planned));
        known.count(known.is_decided(survey));
        if result == Ok(false) {
            reading = known.reading_for_rules(&self.tables);
            let planned = Planned {
                known,
                survey,
                reading,
            };
            result = self.run_once(request, host, None, mode, Some(planned));
        }
        if self.buffer.has_looked_at_unread() {
            known.miss();
            plans.missed += 1;
            return None;
        }
        Some(result.map(|_| ()))
    }

    /// Evaluates; with part of the object read only for what that says if nothing unread was
    /// looked at. `false` where more has to be read, as the plan did not decide everything.
    fn run_once(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
        observer: Option<&mut dyn Observer>,
        mode: Mode,
        mut planned: Option<Planned<'_>>,
    ) -> Result<bool, EvaluateError> {
        self.buffer.clear();
        self.outcomes.clear();
        self.text.clear();
        self.names.clear();
        self.properties.clear();
        self.excepted.clear();
        self.machine.begin_evaluation();
        self.buffer
            .push_well_known()
            .map_err(|_| EvaluateError::TooLarge { role: "object" })?;
        let tables = self.tables;
        let projection = planned.as_ref().and_then(Planned::projection);
        let is_slim = planned.as_ref().is_some_and(Planned::is_slim);
        let known = planned.as_ref().map(|planned| planned.known);
        let mut walk = planned
            .as_mut()
            .and_then(|planned| planned.walk(&tables, request));
        let object = self.read(
            request.object.as_ref(),
            TextSource::Object,
            "object",
            &tables,
            request.numbers,
            part_of(projection, walk.as_mut()),
        )?;
        // The old object is what rules are about where there is no new one.
        let walk = walk.as_mut().filter(|_| object.is_none());
        let old_object = self.read(
            request.old_object.as_ref(),
            TextSource::OldObject,
            "old object",
            &tables,
            request.numbers,
            part_of(projection, walk),
        )?;
        let texts = Texts {
            object: json_text(request.object),
            old_object: json_text(request.old_object),
            bundle: &[],
        };
        let objects = Objects {
            new: object,
            old: old_object,
        };
        let main = objects.main().ok_or(EvaluateError::NoObject)?;
        let view = self.buffer.view(texts, tables.symbols);
        let proof = match &mut planned {
            Some(planned) => planned.prove(main, view, &tables, &self.limits),
            None => None,
        };
        if is_slim && proof.is_none_or(|proof| !proof.is_complete()) {
            return Ok(false);
        }
        let names = &mut self.names;
        let new_names = objects
            .new
            .map(|root| ObjectNames::collect(&view, root, names));
        let old_names = objects
            .old
            .map(|root| ObjectNames::collect(&view, root, names));
        let own_kind = match request.kind {
            Some(_) => None,
            None if request.is_payload => None,
            None => Some(KindNames::of(kind_of(&view, main)?, names)),
        };
        let old_kind = objects
            .old
            .and_then(|old| kind_of(&view, old).ok())
            .map(|kind| KindNames::of(kind, names));
        let resource = match (request.resource, &own_kind) {
            _ if !self.matches_resources => 0..0,
            ("", Some(own)) => {
                let start = names.len();
                names.extend_from_within(own.kind.clone());
                plural_behind(names, start)
            }
            ("", None) => {
                let kind = request.kind.map_or("", |kind| kind.kind);
                let start = push_name(names, kind).start;
                plural_behind(names, start)
            }
            (resource, _) => push_name(names, resource),
        };
        let names = &*self.names;
        let kind = request
            .kind
            .or(own_kind.map(|kind| kind.get(names)))
            .unwrap_or_default();
        let main_names = new_names.as_ref().or(old_names.as_ref());
        let facts = RequestFacts {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            resource: names.get(resource).unwrap_or_default(),
            subresource: request.subresource,
            operation: request.operation.bit(),
            operation_name: request.operation.name(),
            object,
            old_object,
            is_old: false,
            namespace: main_names.map_or("", |object| object.namespace(names)),
            context_user: request.user,
            variables: request.variables,
            user: request.user.filter(|user| !user.is_empty()),
            namespace_labels: request.namespace_labels,
            namespace_object: request.namespace_object,
            numbers: request.numbers,
        };
        let Some(main_names) = main_names else {
            return Err(EvaluateError::NoObject);
        };
        let plain = known.map_or(&[][..], |known| known.plain_rules(kind.kind));
        let mut evaluator = Evaluator {
            tables: &tables,
            texts,
            objects,
            names,
            new_names: new_names.as_ref(),
            old_names: old_names.as_ref(),
            old_kind: old_kind.map(|kind| kind.get(names)),
            operation: request.operation,
            facts: &facts,
            mode,
            limits: &self.limits,
            runtime_expressions: self.runtime_expressions,
            is_payload: request.is_payload,
            every_namespace: request.every_namespace,
            fuel: self.limits.request_fuel,
            proof,
            plain,
            machine: &mut self.machine,
            world: World {
                buffer: &mut self.buffer,
                host,
                observer: match observer {
                    Some(observer) => Some(observer),
                    None => None,
                },
            },
            outcomes: &mut self.outcomes,
            properties: &mut self.properties,
            excepted: &mut self.excepted,
            text: &mut self.text,
            further: Vec::new(),
        };
        evaluator.evaluate_rules(&main_names.subject(names), &mut self.candidates);
        Ok(true)
    }

    fn read(
        &mut self,
        input: Option<&Input<'_>>,
        source: TextSource,
        role: &'static str,
        tables: &Tables<'_>,
        numbers: Numbers,
        part: Option<Part<'_>>,
    ) -> Result<Option<NodeId>, EvaluateError> {
        let Some(input) = input else { return Ok(None) };
        let too_large = |_: BufferFull| EvaluateError::TooLarge { role };
        let root = match input {
            Input::Json(text) => {
                let options = ReadOptions {
                    numbers,
                    limits: self.limits,
                };
                let in_part = part.and_then(|part| {
                    self.buffer
                        .read_json_in_part(text, source, &tables.symbols, &options, part)
                });
                match in_part {
                    Some(root) => root,
                    None => self
                        .buffer
                        .read_json(text, source, &tables.symbols, &options)
                        .map_err(|error| EvaluateError::Json { role, error })?,
                }
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

/// An evaluation with the plan of a kind.
struct Planned<'p> {
    known: &'p KindPlan,
    survey: &'p mut Survey,
    reading: Reading,
}

impl<'p> Planned<'p> {
    fn is_slim(&self) -> bool {
        self.reading == Reading::Slim
    }

    fn projection(&self) -> Option<&'p Projection> {
        self.known.projection(self.reading)
    }

    /// Who walks over what is not read, where the plan is to decide.
    fn walk<'w>(
        &'w mut self,
        tables: &'w Tables<'w>,
        request: &Request<'_>,
    ) -> Option<TextWalk<'w>> {
        let plan = self.known.plan.as_ref()?;
        self.survey.begin(plan);
        self.is_slim().then_some(TextWalk {
            plan,
            tables,
            numbers: request.numbers,
            survey: self.survey,
        })
    }

    /// Walks over what is read; what is known then.
    fn prove(
        &mut self,
        main: NodeId,
        view: View<'_>,
        tables: &Tables<'_>,
        limits: &Limits,
    ) -> Option<Proof<'_>> {
        let plan = self.known.plan.as_ref()?;
        let has_text_walk = self.is_slim();
        plan.test_nodes(main, view, tables, has_text_walk, self.survey);
        let proof = Proof {
            plan,
            survey: self.survey,
        };
        proof
            .is_within(limits.rule_fuel, limits.request_fuel)
            .then_some(proof)
    }
}

fn part_of<'p>(
    projection: Option<&'p Projection>,
    walk: Option<&'p mut TextWalk<'_>>,
) -> Option<Part<'p>> {
    Some(Part {
        projection: projection?,
        bystander: walk.map(|walk| walk as &mut dyn Bystander),
    })
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
    /// one (docs/spec/policies.md §5.6).
    fn main(&self) -> Option<NodeId> {
        self.new.or(self.old)
    }
}

/// Whether the rules of a policy are still tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyState {
    Open,
    /// It looks at the objects of another namespace.
    OtherNamespace,
    /// One of its rules applied, and that is enough.
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

/// What a rule came to, before it becomes an [`Outcome`].
#[derive(Debug, Clone, Copy)]
struct Judgement {
    title: Title,
    status: Status,
    message: Message,
    path: TextRange,
    found: TextRange,
    instruction: InstructionId,
    /// First of the computed report properties.
    properties: Option<u32>,
    /// The exceptions that skip the rule.
    exceptions: ExceptionRange,
    /// What a failed podSecurity rule reports of its controls.
    controls: Option<ControlTexts>,
}

impl Judgement {
    fn outcome(self, rule: u32, enforced: bool) -> Outcome {
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

    fn plain(status: Status, message: Message) -> Self {
        Self {
            title: Title::Rule,
            status,
            message,
            path: TextRange::default(),
            found: TextRange::default(),
            instruction: InstructionId::NONE,
            properties: None,
            exceptions: ExceptionRange::default(),
            controls: None,
        }
    }
}

/// The plain rules, as an evaluation goes past them.
struct PlainRules<'e> {
    proof: Option<Proof<'e>>,
    rest: &'e [PlainRule],
    /// The kind selectors looked at last, and whether they match: rules share them.
    kinds: (u32, bool),
}

impl<'e> PlainRules<'e> {
    fn new(evaluator: &Evaluator<'e, '_>) -> Self {
        // An object that is deleted passes no pattern, and where an old one comes with anything
        // but an update it is looked at too (`Evaluator::allow_existing`).
        let is_update = evaluator.operation == Operation::Update;
        let has_old = evaluator.objects.old.is_some();
        let is_usual = !evaluator.is_delete() && (is_update || !has_old);
        let proof = evaluator.proof.filter(|_| is_usual);
        Self {
            proof,
            rest: evaluator.plain,
            kinds: (NONE, false),
        }
    }

    /// How a rule's body ends, if the rule is plain and matches and that is known. Rules
    /// are asked for in their order.
    #[inline]
    fn ending(&mut self, number: u32, evaluator: &Evaluator<'e, '_>) -> Option<Ending> {
        let proof = self.proof?;
        while let [first, rest @ ..] = self.rest
            && first.rule < number
        {
            self.rest = rest;
        }
        let plain = self.rest.first().filter(|plain| plain.rule == number)?;
        if self.kinds.0 != plain.kinds {
            let matches = kinds_match(plain.kinds, evaluator.tables, evaluator.facts);
            self.kinds = (plain.kinds, matches);
        }
        if self.kinds.1 {
            proof.ending(plain.body)
        } else {
            None
        }
    }
}

/// A range of the session's buffer of names.
type NameRange = std::ops::Range<usize>;

/// Appends a name.
fn push_name(names: &mut String, name: &str) -> NameRange {
    let start = names.len();
    names.push_str(name);
    start..names.len()
}

/// Makes the name of its resource of the kind that stands behind `start`.
fn plural_behind(names: &mut String, start: usize) -> NameRange {
    make_plural(names, start);
    start..names.len()
}

/// The facts about an object that matching asks for, its names copied so that values
/// can be added to the buffer while they are looked at.
struct ObjectNames {
    root: NodeId,
    name: NameRange,
    matched_name: NameRange,
    namespace: NameRange,
    kind: NameRange,
    labels: NodeId,
    annotations: NodeId,
}

impl ObjectNames {
    fn collect(view: &View<'_>, root: NodeId, names: &mut String) -> Self {
        let metadata = view.get_text(root, b"metadata");
        let text = |key: &[u8]| view.str(view.get_text(metadata, key));
        let name = push_name(names, text(b"name"));
        let matched_name = if name.is_empty() {
            push_name(names, text(b"generateName"))
        } else {
            name.clone()
        };
        Self {
            root,
            name,
            matched_name,
            namespace: push_name(names, text(b"namespace")),
            kind: push_name(names, view.str(view.get_text(root, b"kind"))),
            labels: view.get_text(metadata, b"labels"),
            annotations: view.get_text(metadata, b"annotations"),
        }
    }

    fn namespace<'n>(&self, names: &'n str) -> &'n str {
        names.get(self.namespace.clone()).unwrap_or("")
    }

    fn subject<'n>(&self, names: &'n str) -> Subject<'n> {
        let get = |range: &NameRange| names.get(range.clone()).unwrap_or("");
        let kind = get(&self.kind);
        Subject {
            root: self.root,
            name: get(&self.name),
            matched_name: get(&self.matched_name),
            namespace: get(&self.namespace),
            kind,
            labels: self.labels,
            annotations: self.annotations,
            is_secret: kind == "Secret",
            rule_name: "",
        }
    }
}

/// A kind, copied likewise.
struct KindNames {
    group: NameRange,
    version: NameRange,
    kind: NameRange,
}

impl KindNames {
    fn of(kind: GroupVersionKind<'_>, names: &mut String) -> Self {
        Self {
            group: push_name(names, kind.group),
            version: push_name(names, kind.version),
            kind: push_name(names, kind.kind),
        }
    }

    fn get(self, names: &str) -> GroupVersionKind<'_> {
        let get = |range: NameRange| names.get(range).unwrap_or("");
        GroupVersionKind {
            group: get(self.group),
            version: get(self.version),
            kind: get(self.kind),
        }
    }
}

/// One evaluation.
struct Evaluator<'e, 'm> {
    tables: &'e Tables<'e>,
    texts: Texts<'e>,
    objects: Objects,
    names: &'e str,
    new_names: Option<&'e ObjectNames>,
    old_names: Option<&'e ObjectNames>,
    old_kind: Option<GroupVersionKind<'e>>,
    operation: Operation,
    facts: &'e RequestFacts<'e>,
    mode: Mode,
    limits: &'e Limits,
    runtime_expressions: bool,
    is_payload: bool,
    every_namespace: bool,
    fuel: u64,
    /// How bodies end that need not be run.
    proof: Option<Proof<'e>>,
    /// The rules that need nothing but that and their kinds.
    plain: &'e [PlainRule],
    machine: &'m mut Machine,
    world: World<'m>,
    outcomes: &'m mut Vec<Outcome>,
    properties: &'m mut Vec<TextRange>,
    excepted: &'m mut Vec<u32>,
    text: &'m mut String,
    /// What the rule at hand comes to besides its first outcome.
    further: Vec<Judgement>,
}

impl<'e> Evaluator<'e, '_> {
    /// docs/spec/policies.md §7.1, over the rules that the index gives for the object.
    fn evaluate_rules(&mut self, main: &Subject<'e>, candidates: &mut Vec<u32>) {
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
                let is_everywhere = policy.flags & PolicyFlags::NAMESPACED == 0
                    || self.every_namespace && policy.flags & PolicyFlags::RESOURCES != 0;
                if !is_everywhere && namespace != Some(tables.text(policy.namespace)) {
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

    /// Keeps the outcome of a rule whose body ends so, if that is wanted.
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

    /// The index knows that a rule does not match; its match block can say why. What it
    /// comes to does not count, nor does the fuel it takes.
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
                namespace: self.tables.text(policy.namespace),
            },
        };
        self.world.tell(&Event::NotTried { rule, reason });
    }

    /// Tells of the outcome that was kept last.
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
            self.outcomes.push(judgement.outcome(number, enforced));
        }
        self.mode == Mode::Decide && refused
    }

    /// The namespace whose policies look at the request: that of all its objects
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
        match self.run_block(rule.match_block.get(), Stage::Match, setting) {
            Ending::Matched => {}
            Ending::OutOfFuel => return Ok(self.out_of_fuel()),
            _ => return Err(Silence::NotMatched),
        }
        self.machine.begin_rule();
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

    /// Exceptions, the body, and what the old object makes of it.
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
            Ending::Text { status: 2, .. } | Ending::Failed { .. }
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

    fn preconditions_not_met(&mut self) -> Judgement {
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

    /// The messages of conditions as they are written, joined.
    fn noted_messages(&self) -> String {
        let mut joined = String::new();
        for noted in &self.machine.messages {
            if !joined.is_empty() {
                joined.push_str(separator(noted.separator));
            }
            joined.push_str(self.text_entry(noted.text));
        }
        joined
    }

    fn text_entry(&self, number: u32) -> &'e str {
        self.tables
            .texts
            .get(number as usize)
            .map_or("", |&text| self.tables.text(text))
    }

    /// An ending that is an error, with what stands in front of an element's.
    fn failed(&mut self, ending: Ending, prefix: &str) -> Judgement {
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

    /// `reportProperties` with variables: all of them, or none if one is no text
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

    /// docs/spec/policies.md §10: an enforced rule that the old object violates too is skipped.
    fn allow_existing(&mut self, rule: &Rule, judgement: Judgement) -> Judgement {
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
        // With preconditions the old object never counts as failing (seen in the answers
        // of the real engine; docs/spec/policies.md §10, step 3 says less).
        let has_preconditions = rule.precondition_block.get() != NONE;
        let fails = judgement.status == Status::Fail;
        if fails && !has_preconditions && self.old_object_status(rule) == Some(Status::Fail) {
            return self.fixed(Status::Skip, EXISTING_VIOLATIONS);
        }
        judgement
    }

    /// What the body makes of the old object; `None` if the rule does not match it.
    fn old_object_status(&mut self, rule: &Rule) -> Option<Status> {
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

    /// Exceptions are looked at again, for the old object (docs/spec/policies.md §10).
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

    /// The status and message of an ending; the block is run again to explain it where
    /// that takes more than the ending itself.
    fn judge(&mut self, rule: &Rule, ending: Ending, setting: Setting<'_>) -> Option<Judgement> {
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
                    0 => Status::Pass,
                    3 => Status::Skip,
                    _ => Status::Error,
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

    /// A CEL expression that does not hold, failed, or took too many steps: in Kyverno
    /// each of them is a failure of the rule (docs/spec/cel.md §2.2).
    fn judge_cel(&mut self, ending: Ending) -> Judgement {
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

    /// Appends to the text buffer.
    fn append(&mut self, text: &str) -> TextRange {
        let start = self.text.len();
        self.text.push_str(text);
        TextRange {
            start: start as u32,
            end: self.text.len() as u32,
        }
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

    /// docs/spec/policies.md §8.1.
    fn judge_deny(&mut self, rule: &Rule, depth: u8, setting: Setting<'_>) -> Judgement {
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

    /// The rule's message and those of its conditions, variables substituted; `None`
    /// when that fails.
    fn deny_message(&mut self, rule: &Rule, setting: Setting<'_>) -> Option<String> {
        let noted = std::mem::take(&mut self.machine.messages);
        let mut message = match message_kind(rule) {
            MessageKind::Absent => String::new(),
            MessageKind::Text => self.tables.text(rule.message).to_owned(),
            MessageKind::Unresolvable => return None,
            MessageKind::Computed => {
                self.computed_text(rule.message_block.get(), noted.is_empty(), setting)?
            }
        };
        // Texts are joined before variables are put in, which may come out empty.
        let has_own = message_kind(rule) != MessageKind::Absent;
        let alone = noted.len() == 1 && !has_own;
        for (index, noted) in noted.iter().enumerate() {
            if index > 0 {
                message.push_str(separator(noted.separator));
            } else if has_own {
                message.push_str("; ");
            }
            if noted.block == NONE {
                message.push_str(self.text_entry(noted.text));
            } else {
                message.push_str(&self.computed_text(noted.block, alone, setting)?);
            }
        }
        Some(message)
    }

    /// The text that a message block gives. Where the message is one variable alone and
    /// its value no text, Kyverno says so.
    fn computed_text(&mut self, block: u32, alone: bool, setting: Setting<'_>) -> Option<String> {
        let Ending::Value(value) = self.run_block(block, Stage::Message, setting) else {
            return None;
        };
        let view = self.world.buffer.view(self.texts, self.tables.symbols);
        if alone && view.kind(value) != Some(Kind::String) {
            return Some(
                "the produced message didn't resolve to a string, check your policy definition."
                    .into(),
            );
        }
        let mut text = String::new();
        append_substituted(&view, value, &mut text, self.limits.string_bytes).ok()?;
        Some(text)
    }

    /// docs/spec/patterns.md §2.1, 11 and 12.
    fn judge_failure(&mut self, rule: &Rule, setting: Setting<'_>) -> Judgement {
        let body = rule.body_block.get();
        // What happened has been told already.
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
        // The buffers of the explanation are used again.
        self.machine.explanation = explanation;
        judgement
    }

    /// docs/spec/pod-security.md §8.
    fn judge_findings(
        &mut self,
        rule: &Rule,
        instruction: InstructionId,
        setting: Setting<'_>,
    ) -> Judgement {
        let findings = std::mem::take(&mut self.machine.findings);
        let shown = Shown {
            tables: self.tables,
            view: self.world.buffer.view(self.texts, self.tables.symbols),
        };
        let (name, level) = (setting.subject.rule_name, self.tables.text(rule.message));
        let mut message =
            format!("Validation rule '{name}' failed. It violates PodSecurity \"{level}\": ");
        findings.message(shown, self.limits.message_bytes, &mut message);
        let (path, value) = findings
            .first(shown)
            .unwrap_or((String::new(), NodeId::MISSING));
        let mut judgement = self.fixed(Status::Fail, &message);
        if self.mode == Mode::Report {
            judgement.controls = Some(self.control_texts(&findings));
        }
        self.machine.findings = findings;
        self.with_detail(judgement, &path, value, instruction, setting)
    }

    /// What reports show of failing controls (docs/spec/pod-security.md §11).
    fn control_texts(&mut self, findings: &Findings) -> ControlTexts {
        let tables = self.tables;
        let shown = Shown {
            tables,
            view: self.world.buffer.view(self.texts, tables.symbols),
        };
        let object = self.objects.main().unwrap_or(NodeId::MISSING);
        let images = OnceCell::new();
        let image_of = |name: &String| {
            let images =
                images.get_or_init(|| crate::images::images_by_container(&shown.view, object));
            quote_json(images.get(name).unwrap_or(name))
        };
        let mut ids: Vec<&str> = Vec::new();
        let mut json: Vec<String> = Vec::new();
        for number in findings.controls() {
            let Some(record) = tables.controls.get(number as usize) else {
                continue;
            };
            let (id, name) = (tables.text(record.id), tables.text(record.name));
            let names = findings.container_names(number, shown);
            let quoted =
                names.map(|names| names.iter().map(image_of).collect::<Vec<_>>().join(","));
            let quoted = quoted.map_or("null".into(), |list| format!("[{list}]"));
            json.push(format!(
                "{{\"ID\":{},\"Name\":{},\"Images\":{quoted}}}",
                quote_json(id),
                quote_json(name),
            ));
            ids.push(id);
        }
        let json = format!("[{}]", json.join(","));
        let fits = json.len() <= self.limits.string_bytes;
        ControlTexts {
            ids: self.append(&ids.join(",")),
            json: self.append(if fits { &json } else { "[]" }),
        }
    }

    /// `validation error: `, the rule's message if it has one, and what happened; where
    /// the message cannot be made, `error` alone.
    fn failure(
        &mut self,
        rule: &Rule,
        status: Status,
        depth: u8,
        detail: &str,
        error: &str,
        setting: Setting<'_>,
    ) -> Judgement {
        let message = match message_kind(rule) {
            MessageKind::Absent => Some(String::new()),
            MessageKind::Text => Some(self.tables.text(rule.message).to_owned()),
            MessageKind::Unresolvable => None,
            MessageKind::Computed => self.computed_text(rule.message_block.get(), false, setting),
        };
        let range = self.render(|out| {
            out.push_str(&element_prefix(depth));
            out.push_str("validation error: ");
            match message.as_deref() {
                None => {
                    let name = setting.subject.rule_name;
                    let _ = write!(
                        out,
                        "variables substitution error in rule {name} execution error: {error}"
                    );
                }
                Some("") if message_kind(rule) == MessageKind::Absent => out.push_str(detail),
                Some(message) => {
                    let stop = if message.ends_with('.') { "" } else { "." };
                    let _ = write!(out, "{message}{stop} {detail}");
                }
            }
        });
        Judgement::plain(status, Message::Rendered(range))
    }

    /// Adds path, value and place of the failed check.
    fn with_detail(
        &mut self,
        mut judgement: Judgement,
        path: &str,
        value: NodeId,
        instruction: InstructionId,
        setting: Setting<'_>,
    ) -> Judgement {
        judgement.instruction = instruction;
        judgement.path = self.render(|out| out.push_str(path));
        let secret = setting.subject.is_secret && is_secret_path(path);
        let view = self.world.buffer.view(self.texts, self.tables.symbols);
        let mut found = String::new();
        match view.kind(value) {
            _ if secret => found.push_str("***"),
            None => found.push_str("nothing"),
            Some(Kind::String) => {
                let _ = write!(found, "{:?}", view.str(value));
            }
            Some(Kind::Null) => found.push_str("null"),
            Some(_) => render_go_value(&view, value, &mut found),
        }
        truncate(&mut found, FOUND_BYTES);
        judgement.found = self.render(|out| out.push_str(&found));
        judgement
    }

    /// docs/spec/policies.md §11.1.
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

/// What a rule comes to whose CEL expressions took all the steps of the rule
/// (docs/spec/cel.md §2.7).
const COST_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The user that Kyverno makes up to match the old object again (docs/spec/policies.md §10).
const NOBODY: UserInfo<'static> = UserInfo {
    username: "kyverno:kyverno-invalid-controller",
    uid: "",
    groups: &["kyverno:invalidgroup"],
    roles: &["kyverno:invalidrole"],
    cluster_roles: &["kyverno:invalidrole"],
};

/// The text of a rule that the old object violates too.
const EXISTING_VIOLATIONS: &str =
    "skipping the rule evaluation as pre-existing violations are allowed";

fn message_kind(rule: &Rule) -> MessageKind {
    MessageKind::ALL
        .get(usize::from(rule.message_kind))
        .copied()
        .unwrap_or(MessageKind::Absent)
}

/// Makes every rule of the bundle a candidate; those that were.
#[cold]
fn all_instead(candidates: &mut Vec<u32>, rules: usize) -> Vec<u32> {
    std::mem::replace(candidates, (0..rules as u32).collect())
}

/// Whether autogen replaces the rule for this kind.
pub(super) fn is_dropped(rule: &Rule, kind: &str, tables: &Tables<'_>) -> bool {
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

/// What stands between two messages of conditions.
fn separator(number: u8) -> &'static str {
    if number == 0 { "; " } else { ";" }
}

/// What stands in front of an element's message, once for each foreach around it.
fn element_prefix(depth: u8) -> String {
    "validation failure: ".repeat(usize::from(depth))
}
