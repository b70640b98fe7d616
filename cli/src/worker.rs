//! Evaluates pieces of the input, one after another.
//!
//! A piece goes in, a part of every report leaves. An object in JSON that needs no
//! completion is read by the engine from where it stands; if it passes everything, that is
//! all that is done with it. Any other goes the way of all resources: into a tree with
//! places, so that a report can say where what is.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;

use kpvm::document::Numbers;
use kpvm::engine::{Bundle, Input, Operation, Request, Session, Status};
use kpvm_compiler::source::Before;
use kpvm_format::table::BodyKind;
use memchr::memmem;
use serde::Deserialize;

use crate::diagnostics;
use crate::evaluation::Circumstances;
use crate::input::{InputFile, Unreadable, read_file, utf8};
use crate::json_text::{skip_space, value_end};
use crate::list::ListKind;
use crate::part::{Part, View};
use crate::piece::{self, Holds, Piece, Text};
use crate::position::Position;
use crate::problem::Problem;
use crate::resource_host::{Outside, ResourceHost, is_global_entry};
use crate::resources::{Resources, is_cluster_scoped};
use crate::scan::{Facts, Object, Place, Scan, Scanner, Settings};

/// A line that is longer is shown nowhere, so that what stands before an object on its line
/// need not be there.
const SHOWN_COLUMNS: u32 = 2001;

/// What workers have in common.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'p> {
    /// The policies.
    pub bundle: &'p Bundle<'p>,
    /// What is known of them.
    pub facts: &'p Facts,
    /// How objects are evaluated.
    pub settings: &'p Settings,
    /// What rules may learn beside objects.
    pub outside: &'p Outside,
    /// What is to be reported.
    pub view: &'p View<'p>,
}

/// Evaluates pieces.
pub struct Worker<'p> {
    plan: Plan<'p>,
    scanner: Scanner<'p>,
    session: Session<'p>,
    host: ResourceHost,
    /// Whether objects may be evaluated as they are written.
    is_plain: bool,
    /// Kinds that a sample was given of.
    sampled: BTreeSet<String>,
}

/// A piece that is being evaluated.
struct Work<'p> {
    /// Texts and problems of the piece; of the objects only those that were read last.
    resources: Resources,
    scan: Scan<'p>,
    /// Objects that cannot be evaluated.
    not_evaluated: Vec<Problem>,
    samples: Vec<Resources>,
}

/// Where a text stands.
#[derive(Clone, Copy)]
struct Origin<'t> {
    name: &'t str,
    before: Before,
    /// The list that it is an item of.
    list: Option<&'t ListKind>,
    from_directory: bool,
}

/// What is asked of an object before it is known to be one that the engine can read from
/// its text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'h> {
    #[serde(borrow)]
    api_version: Option<Cow<'h, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'h, str>>,
    #[serde(borrow)]
    metadata: Metadata<'h>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Metadata<'h> {
    #[serde(borrow)]
    name: Cow<'h, str>,
    #[serde(borrow)]
    generate_name: Cow<'h, str>,
    #[serde(borrow)]
    namespace: Cow<'h, str>,
    #[serde(borrow)]
    uid: Cow<'h, str>,
    #[serde(borrow)]
    resource_version: Cow<'h, str>,
}

impl<'p> Worker<'p> {
    /// A worker with nothing to do yet.
    pub fn new(plan: Plan<'p>) -> Self {
        let tables = plan.bundle.tables();
        let mut rules = tables.rules.iter();
        // These are given a user of their own.
        let has_admission = rules.any(|rule| rule.body == BodyKind::AdmissionPolicy as u8);
        let mut none = Resources::default();
        Self {
            plan,
            scanner: Scanner::new(plan.bundle, plan.settings),
            session: Session::new(plan.bundle),
            host: plan.outside.host(&mut none, &tables),
            is_plain: !has_admission && is_plain(&plan.settings.circumstances),
            sampled: BTreeSet::new(),
        }
    }

    /// Evaluates a piece.
    ///
    /// # Errors
    /// Fails if a serialiser fails.
    pub fn evaluate(&mut self, piece: Piece) -> io::Result<Part<'p>> {
        let mut work = Work {
            resources: Resources::default(),
            scan: Scan::new(self.plan.facts),
            not_evaluated: Vec::new(),
            samples: Vec::new(),
        };
        for text in piece.texts {
            match text {
                Text::Unreadable(unreadable) => work.refuse(unreadable),
                Text::Part(part) => self.part(part, &mut work),
                Text::File {
                    path,
                    from_directory,
                } => {
                    let name = path.display().to_string();
                    match read_file(&path) {
                        Ok(text) => {
                            let origin = Origin {
                                name: &name,
                                before: Before::default(),
                                list: None,
                                from_directory,
                            };
                            self.text(text.into_bytes(), origin, &mut work);
                        }
                        Err(reason) => work.refuse(Unreadable { name, reason }),
                    }
                }
            }
        }
        let mut told = Vec::new();
        for warning in self.host.warnings.drain(..) {
            diagnostics::show(&warning, &work.resources.sources, &mut told)?;
        }
        let unreadable = work.resources.problems.len();
        work.resources.problems.append(&mut work.not_evaluated);
        let mut part = Part::new(work.scan, &work.resources, unreadable, self.plan.view)?;
        told.append(&mut part.told);
        part.told = told;
        part.outcome.services = std::mem::take(&mut self.host.services);
        for sample in work.samples {
            part.outcome.add_sample(sample);
        }
        Ok(part)
    }

    fn part(&mut self, part: piece::Part, work: &mut Work<'p>) {
        let piece::Part {
            name,
            before,
            bytes,
            holds,
        } = part;
        let mut origin = Origin {
            name: &name,
            before,
            list: None,
            from_directory: false,
        };
        match holds {
            Holds::Documents => self.text(bytes, origin, work),
            Holds::Lines => {
                for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
                    let line = line.trim_ascii();
                    if !line.is_empty() {
                        origin.before.lines = before.lines.saturating_add(number as u32);
                        self.object(line, origin, work);
                    }
                }
            }
            Holds::Items(list) => {
                origin.list = Some(&list);
                let mut position = Position { offset: 0, before };
                let mut at = 0;
                loop {
                    let start = skip_space(&bytes, at);
                    // A word that ends the part has nothing behind it.
                    let end = value_end(&bytes, start).unwrap_or(bytes.len());
                    if end <= start {
                        break;
                    }
                    position.go(bytes.get(at..start).unwrap_or_default());
                    origin.before = position.before;
                    let item = bytes.get(start..end).unwrap_or_default();
                    self.object(item, origin, work);
                    // Behind an item is a comma.
                    at = skip_space(&bytes, end) + 1;
                    position.go(bytes.get(start..at.min(bytes.len())).unwrap_or_default());
                }
            }
        }
    }

    /// Evaluates a text of one or several documents.
    fn text(&mut self, bytes: Vec<u8>, origin: Origin<'_>, work: &mut Work<'p>) {
        let start = skip_space(&bytes, 0);
        if bytes.get(start) == Some(&b'{') {
            let mut position = Position {
                offset: 0,
                before: origin.before,
            };
            position.go(bytes.get(..start).unwrap_or_default());
            let before = position.before;
            let object = bytes.get(start..).unwrap_or_default().trim_ascii_end();
            if self.passes(object, Origin { before, ..origin }, work) {
                return;
            }
        }
        self.tree(bytes, origin, work);
    }

    /// Evaluates one object in JSON, or what else stands in its place.
    fn object(&mut self, bytes: &[u8], origin: Origin<'_>, work: &mut Work<'p>) {
        if self.passes(bytes, origin, work) {
            return;
        }
        // What stands before it on its line takes up room in an excerpt.
        let indent = origin.before.columns.min(SHOWN_COLUMNS);
        let mut text = vec![b' '; indent as usize];
        text.extend_from_slice(bytes);
        let before = Before {
            columns: origin.before.columns - indent,
            ..origin.before
        };
        self.tree(text, Origin { before, ..origin }, work);
    }

    /// Evaluates a text the long way.
    fn tree(&mut self, bytes: Vec<u8>, origin: Origin<'_>, work: &mut Work<'p>) {
        let Origin {
            name,
            before,
            list,
            from_directory,
        } = origin;
        let name = name.to_owned();
        let text = match utf8(bytes, before.lines) {
            Ok(text) => text,
            Err(reason) => return work.refuse(Unreadable { name, reason }),
        };
        let file = InputFile {
            name,
            text,
            from_directory,
        };
        match list {
            Some(list) => work.resources.add_item(file, before, list),
            None => work.resources.add_part(file, before),
        }
        let resources = &mut work.resources;
        // These are no objects to evaluate.
        for entry in resources.list.extract_if(.., |one| is_global_entry(one)) {
            self.host.add_entry(&entry);
        }
        for resource in &resources.list {
            let kind = resource.text("kind");
            if !self.sampled.contains(kind) {
                self.sampled.insert(kind.to_owned());
                work.samples.push(resources.sample(resource));
            }
        }
        let problems = self.scanner.scan(resources, &mut work.scan, &mut self.host);
        work.not_evaluated.extend(problems);
        resources.list.clear();
    }

    /// Whether an object that can be taken as it is written passes every rule; if so, it is
    /// evaluated.
    fn passes(&mut self, bytes: &[u8], origin: Origin<'_>, work: &mut Work<'p>) -> bool {
        // Some nulls count as empty maps.
        if !self.is_plain || memmem::find(bytes, b"null").is_some() {
            return false;
        }
        let Ok(head) = serde_json::from_slice::<Head<'_>>(bytes) else {
            return false;
        };
        let completed = origin.list.and_then(|list| completed(bytes, &head, list));
        if let Some(bytes) = completed {
            return self.passes_as_it_is(&bytes, origin, work);
        }
        self.passes_with(bytes, &head, origin, work)
    }

    fn passes_as_it_is(&mut self, bytes: &[u8], origin: Origin<'_>, work: &mut Work<'p>) -> bool {
        match serde_json::from_slice::<Head<'_>>(bytes) {
            Ok(head) => self.passes_with(bytes, &head, origin, work),
            Err(_) => false,
        }
    }

    fn passes_with(
        &mut self,
        bytes: &[u8],
        head: &Head<'_>,
        origin: Origin<'_>,
        work: &mut Work<'p>,
    ) -> bool {
        let api_version = head.api_version.as_deref().unwrap_or_default();
        let Some(kind) = head.kind.as_deref() else {
            return false;
        };
        // Lists and objects without a namespace are completed first.
        let has_namespace = !head.metadata.namespace.is_empty();
        let is_complete = has_namespace || is_cluster_scoped(api_version, kind);
        let is_special = kind.is_empty() || kind.ends_with("List") || kind == "GlobalContextEntry";
        if !is_complete || is_special {
            return false;
        }
        let request = Request {
            object: Some(Input::Json(bytes)),
            every_namespace: true,
            numbers: Numbers::Float,
            ..Request::default()
        };
        let Ok(evaluation) = self.session.evaluate_with(&request, &mut self.host) else {
            return false;
        };
        let mut responses = evaluation.responses();
        if responses.any(|response| response.status() != Status::Pass) {
            return false;
        }
        match self.plan.settings.keep_passes {
            true => work.scan.add_object(object(bytes, head, origin)),
            // Kind and namespace tell which policies matched none.
            false => work.scan.count_object(kind, &head.metadata.namespace),
        }
        let tables = self.plan.bundle.tables();
        for response in evaluation.responses() {
            let scan = &mut work.scan;
            scan.add(&response, &tables, self.plan.settings, || None);
        }
        if !self.sampled.contains(kind) {
            self.sampled.insert(kind.to_owned());
            let text = String::from_utf8_lossy(bytes);
            let resources = Resources::from_text(origin.name, &text);
            let sample = resources.list.first();
            let sample = sample.map(|resource| resources.sample(resource));
            work.samples.extend(sample);
        }
        true
    }
}

impl Work<'_> {
    fn refuse(&mut self, unreadable: Unreadable) {
        self.resources
            .problems
            .push(Problem::Unreadable(unreadable));
    }
}

/// What reports say of an object.
fn object(bytes: &[u8], head: &Head<'_>, origin: Origin<'_>) -> Object {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let metadata = &head.metadata;
    Object {
        api_version: text(head.api_version.as_deref()),
        kind: text(head.kind.as_deref()),
        namespace: metadata.namespace.to_string(),
        name: match &*metadata.name {
            "" => metadata.generate_name.to_string(),
            name => name.to_owned(),
        },
        uid: metadata.uid.to_string(),
        resource_version: metadata.resource_version.to_string(),
        place: place(bytes, origin),
        ..Object::default()
    }
}

/// Where an object stands.
fn place(bytes: &[u8], origin: Origin<'_>) -> Place {
    let Before { lines, columns } = origin.before;
    let mut end = Position {
        offset: 0,
        before: origin.before,
    };
    end.go(bytes);
    let is_short = end.before.lines == lines;
    Place {
        file: origin.name.to_owned(),
        line: lines.saturating_add(1),
        column: columns.saturating_add(1),
        end_column: is_short.then_some(end.before.columns.saturating_add(1)),
    }
}

/// An item with the kind and `apiVersion` that it lacks and its list has.
fn completed(item: &[u8], head: &Head<'_>, list: &ListKind) -> Option<Vec<u8>> {
    let kind = list.item_kind.as_ref()?;
    let version = match &list.api_version {
        Some(kpvm_syntax::tree::TreeValue::String(version)) => Some(version),
        Some(_) => return None,
        None => None,
    };
    let lacks = [
        ("kind", Some(kind.as_str()).filter(|_| head.kind.is_none())),
        (
            "apiVersion",
            version
                .map(|version| &**version)
                .filter(|_| head.api_version.is_none()),
        ),
    ];
    let mut text = vec![b'{'];
    for (key, value) in lacks {
        if let Some(value) = value {
            let value = serde_json::Value::from(value);
            text.extend_from_slice(format!("\"{key}\":{value},").as_bytes());
        }
    }
    if text.len() == 1 {
        return None;
    }
    // There are members: the metadata was read.
    text.extend_from_slice(item.get(1..)?);
    Some(text)
}

fn is_plain(circumstances: &Circumstances) -> bool {
    let Circumstances {
        operation,
        values,
        namespaces,
        namespace_objects,
        plurals,
        subresources,
        user,
    } = circumstances;
    *operation == Operation::Create
        && values.are_empty()
        && namespaces.is_empty()
        && namespace_objects.is_empty()
        && plurals.is_empty()
        && subresources.is_empty()
        && user.is_none()
}
