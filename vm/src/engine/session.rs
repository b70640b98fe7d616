//! A session: the buffers of one thread, kept between requests, so that in the steady state
//! a request that passes allocates nothing.

mod planned;

use kpvm_format::Tables;
use kpvm_semantics::resource_kind::make_plural;

use self::planned::{Planned, part_of};
use super::Engine;
use super::error::{EvaluateError, describe};
use super::evaluator::{Evaluator, Mode, Objects};
use super::names::{KindNames, ObjectNames, kind_of, plural_behind, push_name};
use super::observer::Observer;
use super::plans::{KnownKind, Plans, Reading};
use super::request::{Input, Request};
use super::response::{Decision, Evaluation, Outcome, RuleResponse, TextRange};
use crate::document::projection::Part;
use crate::document::{
    BufferFull, DocumentBuffer, Kind, NodeId, Numbers, ReadOptions, TextSource, Texts,
    kind_in_front,
};
use crate::host::{Host, NoHost};
use crate::machine::{Machine, RequestFacts, World};

/// Evaluates requests with one engine, one after another.
///
/// A session is the memory of one thread. In the steady state a request that passes allocates
/// nothing. Make a session for each thread, and keep it for as many requests as possible. A
/// thread that changes to another engine takes the buffers along:
///
/// ```
/// use kpvm::engine::{Buffers, Engine, Session};
/// # use kpvm_format::BundleBuilder;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (old, new) = (BundleBuilder::new().finish(), BundleBuilder::new().finish());
/// let (old, new) = (Engine::load(old)?, Engine::load(new)?);
/// let session = Session::new(&old);
/// // requests
/// let buffers: Buffers = session.into_buffers();
/// let session = Session::with_buffers(&new, buffers);
/// # Ok(())
/// # }
/// ```
pub struct Session<'e> {
    engine: &'e Engine,
    tables: Tables<'e>,
    buffers: Buffers,
    machine: Machine,
    plans: Plans,
}

/// Memory of a session that does not depend on the engine.
#[derive(Debug, Default)]
pub struct Buffers {
    document: DocumentBuffer,
    outcomes: Vec<Outcome>,
    /// Rules to try for the current object.
    candidates: Vec<u32>,
    /// Values of computed report properties.
    properties: Vec<TextRange>,
    /// Exceptions that skipped rules.
    excepted: Vec<u32>,
    /// Names of the objects and their kinds.
    names: String,
    /// Messages, paths and values of outcomes.
    text: String,
}

impl Buffers {
    /// Empties everything and keeps the memory.
    fn clear(&mut self) {
        self.document.clear();
        self.outcomes.clear();
        self.properties.clear();
        self.excepted.clear();
        self.names.clear();
        self.text.clear();
    }
}

impl<'e> Session<'e> {
    /// A session with new buffers.
    pub fn new(engine: &'e Engine) -> Self {
        Self::with_buffers(engine, Buffers::default())
    }

    /// A session with the buffers of an earlier one, of this or another engine.
    pub fn with_buffers(engine: &'e Engine, buffers: Buffers) -> Self {
        let tables = engine.bundle().tables();
        Self {
            engine,
            tables,
            buffers,
            machine: Machine::new(&tables),
            plans: Plans::new(engine.config()),
        }
    }

    /// Ends the session and returns its buffers.
    pub fn into_buffers(self) -> Buffers {
        self.buffers
    }

    /// The engine.
    pub fn engine(&self) -> &'e Engine {
        self.engine
    }

    /// Number of evaluations that were repeated with the whole object read, because a rule
    /// looked at a part that had been left out, mostly to build a message.
    pub fn evaluations_repeated(&self) -> u64 {
        self.plans.missed
    }

    /// Evaluates every rule that applies and returns all responses, with messages. Rules that
    /// need outside data, the time or randomness are errors.
    ///
    /// # Errors
    /// An [`EvaluateError`] if the request is not about a Kubernetes object. Errors inside a
    /// rule are that rule's status.
    pub fn evaluate(&mut self, request: &Request<'_>) -> Result<Evaluation<'_>, EvaluateError> {
        self.evaluate_with(request, &mut NoHost)
    }

    /// Like [`Session::evaluate`], with a host for outside data.
    ///
    /// # Errors
    /// Like [`Session::evaluate`].
    pub fn evaluate_with(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
    ) -> Result<Evaluation<'_>, EvaluateError> {
        self.run(request, host, None, Mode::Report)?;
        Ok(self.evaluation())
    }

    /// Like [`Session::evaluate_with`], with an observer that receives an event for everything
    /// that is done. The responses are the same.
    ///
    /// # Errors
    /// Like [`Session::evaluate`].
    pub fn evaluate_observed(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
        observer: &mut dyn Observer,
    ) -> Result<Evaluation<'_>, EvaluateError> {
        self.run(request, host, Some(observer), Mode::Report)?;
        Ok(self.evaluation())
    }

    /// Decides whether to admit the request. Stops at the first rule that refuses it: an
    /// enforced failure, or an error.
    ///
    /// # Errors
    /// Like [`Session::evaluate`].
    pub fn decide(&mut self, request: &Request<'_>) -> Result<Decision<'_>, EvaluateError> {
        self.decide_with(request, &mut NoHost)
    }

    /// Like [`Session::decide`], with a host for outside data.
    ///
    /// # Errors
    /// Like [`Session::evaluate`].
    pub fn decide_with(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
    ) -> Result<Decision<'_>, EvaluateError> {
        self.run(request, host, None, Mode::Decide)?;
        let evaluation = self.evaluation();
        Ok(match self.buffers.outcomes.first() {
            None => Decision::Admitted,
            Some(outcome) => Decision::Refused(RuleResponse::new(evaluation, outcome)),
        })
    }

    fn evaluation(&self) -> Evaluation<'_> {
        Evaluation {
            tables: &self.tables,
            outcomes: &self.buffers.outcomes,
            properties: &self.buffers.properties,
            excepted: &self.buffers.excepted,
            text: &self.buffers.text,
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
            && let Some(known) = self.known_kind(request)
        {
            // Lent out, so that the rest of the session can be used beside them.
            let mut plans = std::mem::replace(&mut self.plans, Plans::new(self.engine.config()));
            let result = self.run_planned(request, host, mode, &known, &mut plans);
            self.plans = plans;
            if let Some(result) = result {
                return result;
            }
        }
        self.run_once(request, host, observer, mode, None)
            .map(|_| ())
    }

    /// What the bundle knows about objects of the request's kind.
    fn known_kind<'r>(&mut self, request: &Request<'r>) -> Option<KnownKind<'r>>
    where
        'e: 'r,
    {
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
        self.buffers.names.clear();
        let resource = match request.resource {
            _ if !self.engine.matches_resources => "",
            "" => {
                self.buffers.names.push_str(kind);
                make_plural(&mut self.buffers.names, 0);
                &self.buffers.names
            }
            resource => resource,
        };
        let may_plan = self.plans.may_plan;
        KnownKind::new(&self.tables, kind, resource, request.operation, may_plan)
    }

    /// Evaluates with the plan of a kind. `None` where a rule looked at what was not read:
    /// that does not count.
    fn run_planned(
        &mut self,
        request: &Request<'_>,
        host: &mut dyn Host,
        mode: Mode,
        known: &KnownKind<'_>,
        plans: &mut Plans,
    ) -> Option<Result<(), EvaluateError>> {
        let main = request.object.or(request.old_object)?;
        let may_project = plans.may_project && matches!(main, Input::Json(_));
        let (record, survey) = plans.of(known);
        let mut reading = match may_project {
            true => record.reading(known),
            false => Reading::Whole,
        };
        let planned = Planned {
            known,
            survey,
            reading,
        };
        let mut result = self.run_once(request, host, None, mode, Some(planned));
        record.count(known.is_decided(survey));
        if result == Ok(false) {
            reading = record.reading_for_rules(known);
            let planned = Planned {
                known,
                survey,
                reading,
            };
            result = self.run_once(request, host, None, mode, Some(planned));
        }
        if self.buffers.document.has_looked_at_unread() {
            record.miss();
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
        self.buffers.clear();
        self.machine.begin_evaluation();
        self.buffers
            .document
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
        let view = self.buffers.document.view(texts, tables.symbols);
        let proof = match &mut planned {
            Some(planned) => planned.prove(main, view, &tables, self.engine.config().limits()),
            None => None,
        };
        if is_slim && proof.is_none_or(|proof| !proof.is_complete()) {
            return Ok(false);
        }
        let names = &mut self.buffers.names;
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
            _ if !self.engine.matches_resources => 0..0,
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
        let names = &*self.buffers.names;
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
            limits: self.engine.config().limits(),
            runtime_expressions: self.engine.config().runtime_expressions(),
            is_payload: request.is_payload,
            every_namespace: request.every_namespace,
            fuel: self.engine.config().limits().request_fuel,
            proof,
            plain,
            machine: &mut self.machine,
            world: World {
                buffer: &mut self.buffers.document,
                host,
                observer: match observer {
                    Some(observer) => Some(observer),
                    None => None,
                },
            },
            outcomes: &mut self.buffers.outcomes,
            properties: &mut self.buffers.properties,
            excepted: &mut self.buffers.excepted,
            text: &mut self.buffers.text,
            further: Vec::new(),
        };
        evaluator.evaluate_rules(&main_names.subject(names), &mut self.buffers.candidates);
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
                    limits: *self.engine.config().limits(),
                };
                let in_part = part.and_then(|part| {
                    self.buffers.document.read_json_in_part(
                        text,
                        source,
                        &tables.symbols,
                        &options,
                        part,
                    )
                });
                match in_part {
                    Some(root) => root,
                    None => self
                        .buffers
                        .document
                        .read_json(text, source, &tables.symbols, &options)
                        .map_err(|error| EvaluateError::Json { role, error })?,
                }
            }
            Input::Value(value) => self
                .buffers
                .document
                .push_value(value, &tables.symbols, numbers)
                .map_err(too_large)?,
            Input::Tree(tree) => self
                .buffers
                .document
                .push_tree(tree, &tables.symbols, numbers)
                .map_err(too_large)?,
        };
        let view = self.buffers.document.view(Texts::NONE, tables.symbols);
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
