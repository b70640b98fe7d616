//! A session: the buffers of one thread, kept between requests, so that in the steady state
//! a request that passes allocates nothing.

mod planned;

use kpvm_format::Tables;
use kpvm_format::table::PolicyFlags;
use kpvm_semantics::limits::Limits;
use kpvm_semantics::resource_kind::make_plural;

use self::planned::{Planned, part_of};
use super::error::{EvaluateError, describe};
use super::evaluator::{Evaluator, Mode, Objects};
use super::names::{KindNames, ObjectNames, kind_of, plural_behind, push_name};
use super::observer::Observer;
use super::plans::{Plans, Reading};
use super::projection::Topic;
use super::request::{Input, Request};
use super::response::{Decision, Evaluation, Outcome, RuleResponse, TextRange};
use crate::document::projection::Part;
use crate::document::{
    BufferFull, DocumentBuffer, Kind, NodeId, Numbers, ReadOptions, TextSource, Texts,
    kind_in_front,
};
use crate::host::{Host, NoHost};
use crate::machine::{Machine, RequestFacts, World};
use kpvm_format::Bundle;

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

fn json_text<'i>(input: Option<Input<'i>>) -> &'i [u8] {
    match input {
        Some(Input::Json(text)) => text,
        Some(Input::Value(_) | Input::Tree(_)) | None => &[],
    }
}
