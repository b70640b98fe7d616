//! Evaluates pieces of the input, one after another.
//!
//! A piece goes in, a part of every report comes out. An object in JSON that needs no completion
//! is evaluated from its text; only if a rule does not pass is it also read into a tree, for the
//! places of findings. Any other object is read into a tree first, and evaluated from that.

use std::collections::BTreeSet;
use std::io;

use kpvm::document::Numbers;
use kpvm::engine::{Engine, Input, Operation, Request, RuleResponse, Session, Status};
use kpvm_compiler::source::Before;
use kpvm_format::table::BodyKind;

use crate::command_host::CommandHost;
use crate::diagnostics;
use crate::evaluation::Circumstances;
use crate::head::Head;
use crate::input::{InputFile, Unreadable, read_file, utf8};
use crate::json_text::{skip_space, value_end};
use crate::list::ListKind;
use crate::nulls;
use crate::outside::{Outside, is_global_entry};
use crate::part::{Part, View};
use crate::piece::{self, Holds, Piece, Text};
use crate::place::Place;
use crate::position::Position;
use crate::problem::Problem;
use crate::resources::{Resources, is_cluster_scoped};
use crate::scan::{self, Facts, Object, Scan, Scanner, Settings, failed_check};

/// A line that is longer is shown nowhere, so that what stands before an object on its line
/// need not be there.
const SHOWN_COLUMNS: u32 = 2001;

/// What workers have in common.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'p> {
    /// The policies.
    pub engine: &'p Engine,
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
    host: CommandHost,
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

/// An object in JSON.
struct Json<'t> {
    /// Its text.
    bytes: &'t [u8],
    /// What precedes it.
    before: Before,
    /// The text that excerpts are taken from, and what precedes that.
    text: &'t dyn Fn() -> (Vec<u8>, Before),
}

impl<'p> Worker<'p> {
    /// A worker with nothing to do yet.
    pub fn new(plan: Plan<'p>) -> Self {
        let tables = plan.engine.bundle().tables();
        let mut rules = tables.rules.iter();
        // These are given a user of their own.
        let has_admission = rules.any(|rule| rule.body == BodyKind::AdmissionPolicy as u8);
        let mut none = Resources::default();
        Self {
            plan,
            scanner: Scanner::new(plan.engine, plan.settings),
            session: Session::new(plan.engine),
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
                for (number, line) in lines(&bytes).enumerate() {
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
            let object = Json {
                bytes: bytes.get(start..).unwrap_or_default().trim_ascii_end(),
                before: position.before,
                text: &|| (bytes.clone(), origin.before),
            };
            if self.json(&object, origin, work) {
                return;
            }
        }
        self.tree(bytes, origin, work);
    }

    /// Evaluates one object in JSON, or whatever is in its place.
    fn object(&mut self, bytes: &[u8], origin: Origin<'_>, work: &mut Work<'p>) {
        let text = || {
            // What precedes it on its line takes up room in an excerpt.
            let indent = origin.before.columns.min(SHOWN_COLUMNS);
            let mut text = vec![b' '; indent as usize];
            text.extend_from_slice(bytes);
            let before = Before {
                columns: origin.before.columns - indent,
                ..origin.before
            };
            (text, before)
        };
        let object = Json {
            bytes,
            before: origin.before,
            text: &text,
        };
        if !self.json(&object, origin, work) {
            let (text, before) = text();
            self.tree(text, Origin { before, ..origin }, work);
        }
    }

    /// Evaluates what a text holds, from trees.
    fn tree(&mut self, bytes: Vec<u8>, origin: Origin<'_>, work: &mut Work<'p>) {
        let resources = &mut work.resources;
        add_text(bytes, origin, resources);
        // These are no objects to evaluate.
        for entry in resources.list.extract_if(.., |one| is_global_entry(one)) {
            self.host.add_entry(&entry);
        }
        for resource in &resources.list {
            if self.sampled.insert(resource.text("kind").to_owned()) {
                work.samples.push(resources.sample(resource));
            }
        }
        let problems = self.scanner.scan(resources, &mut work.scan, &mut self.host);
        work.not_evaluated.extend(problems);
        resources.list.clear();
    }

    /// Evaluates an object from its JSON text, if that is all that it takes.
    fn json(&mut self, object: &Json<'_>, origin: Origin<'_>, work: &mut Work<'p>) -> bool {
        if !self.is_plain {
            return false;
        }
        let Some(bytes) = nulls::replace_in_json(object.bytes) else {
            return false;
        };
        let Some(head) = Head::read(&bytes) else {
            return false;
        };
        let Some(bytes) = origin.list.and_then(|list| completed(&bytes, &head, list)) else {
            return self.evaluate_json(&bytes, &head, object, origin, work);
        };
        match Head::read(&bytes) {
            Some(head) => self.evaluate_json(&bytes, &head, object, origin, work),
            None => false,
        }
    }

    /// Evaluates an object in JSON as it is meant, unless something else than its text decides.
    fn evaluate_json(
        &mut self,
        bytes: &[u8],
        head: &Head<'_>,
        object: &Json<'_>,
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
        let Work {
            resources,
            scan,
            samples,
            ..
        } = work;
        let (settings, tables) = (self.plan.settings, self.plan.engine.bundle().tables());
        let passes = |response: RuleResponse<'_>| response.status() == Status::Pass;
        let is_new = !self.sampled.contains(kind);
        if is_new {
            self.sampled.insert(kind.to_owned());
        }
        if evaluation.responses().all(passes) {
            match settings.keep_passes {
                true => scan.add_object(reported(object, head, origin)),
                // Kind and namespace tell which policies matched none.
                false => scan.count_object(kind, &head.metadata.namespace),
            }
            for response in evaluation.responses() {
                scan.add(&response, &tables, settings, || None);
            }
            if is_new {
                let text = String::from_utf8_lossy(bytes);
                let resources = Resources::from_text(origin.name, &text);
                let sample = resources.list.first();
                samples.extend(sample.map(|resource| resources.sample(resource)));
            }
            return true;
        }
        // Findings have places, which are looked up in a tree.
        let (text, before) = (object.text)();
        add_text(text, Origin { before, ..origin }, resources);
        let Some(resource) = resources.list.pop() else {
            // The problem is known.
            return true;
        };
        scan.add_object(scan::object(&resource, resources));
        for response in evaluation.responses() {
            let files = &self.plan.engine.bundle().meta().sources;
            let failed = || failed_check(&response, &resource, resources, files);
            scan.add(&response, &tables, settings, failed);
        }
        if is_new {
            samples.push(resources.sample(&resource));
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

/// Reads the objects of a text into trees.
fn add_text(bytes: Vec<u8>, origin: Origin<'_>, resources: &mut Resources) {
    let Origin {
        name,
        before,
        list,
        from_directory,
    } = origin;
    let name = name.to_owned();
    match utf8(bytes, before.lines) {
        Ok(text) => {
            let file = InputFile {
                name,
                text,
                from_directory,
            };
            match list {
                Some(list) => resources.add_item(file, before, list),
                None => resources.add_part(file, before),
            }
        }
        Err(reason) => resources
            .problems
            .push(Problem::Unreadable(Unreadable { name, reason })),
    }
}

/// What reports say of an object in JSON.
fn reported(object: &Json<'_>, head: &Head<'_>, origin: Origin<'_>) -> Object {
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
        place: place(object, origin.name),
        ..Object::default()
    }
}

/// The place of an object in JSON.
fn place(object: &Json<'_>, file: &str) -> Place {
    let Before { lines, columns } = object.before;
    let mut end = Position {
        offset: 0,
        before: object.before,
    };
    end.go(object.bytes);
    let is_short = end.before.lines == lines;
    Place {
        file: file.to_owned(),
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

/// The lines of a text. Looking at every byte by itself took an eighth of the time that a Pod
/// takes.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', bytes).chain(std::iter::once(bytes.len()));
    let mut start = 0;
    ends.map(move |end| {
        let line = bytes.get(start..end).unwrap_or_default();
        start = end + 1;
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piece::Piece;
    use crate::report::Format;
    use kpvm_compiler::compile::{Options, compile};
    use kpvm_compiler::source::Sources;

    const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: labels
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: x, pattern: {metadata: {labels: {app: '?*'}}}}
";

    /// An object in JSON is read into a tree only if a rule does not pass, whatever nulls it has.
    #[test]
    fn objects_that_pass_are_not_read_into_trees() {
        let mut sources = Sources::new();
        sources.add("p.yaml", POLICY);
        let bundle = compile(&sources, &Options::default()).bundle.unwrap();
        let engine = Engine::load(bundle).unwrap();
        let pod = |labels: &str, more: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a","namespace":"b","creationTimestamp":null,"labels":{labels}}},"status":{{"conditions":[{{"lastProbeTime":null{more}}}]}}}}"#
            )
        };
        let good = pod(r#"{"app":"a"}"#, "");
        let bad = pod("null", "");
        for (lines, texts, findings) in [
            ([&good, &good, &good], 0, [3, 0]),
            ([&good, &bad, &good], 1, [2, 1]),
            ([&bad, &bad, &bad], 3, [0, 3]),
            // Only a reader of JSON takes surrogate pairs.
            (
                [&pod("null", r#","icon":"\ud83c\udf88""#), &good, &good],
                1,
                [2, 1],
            ),
        ] {
            let facts = Facts::new(engine.bundle());
            let plan = Plan {
                engine: &engine,
                facts: &facts,
                settings: &Settings::default(),
                outside: &Outside::default(),
                view: &View {
                    formats: vec![Format::Text],
                    policies: None,
                    now: 0,
                    verbose: false,
                    exception_ttl: 0,
                },
            };
            let text = lines.map(String::as_str).join("\n");
            let part = piece::Part {
                name: "pods.ndjson".into(),
                before: Before::default(),
                bytes: text.clone().into_bytes(),
                holds: Holds::Lines,
            };
            let piece = Piece {
                bytes: 0,
                texts: vec![Text::Part(part)],
            };
            let outcome = Worker::new(plan).evaluate(piece).unwrap().outcome;
            assert_eq!(outcome.texts, texts, "{text}");
            assert_eq!(outcome.problems, 0, "{text}");
            let summary = outcome.scan.summary;
            assert_eq!([summary.pass, summary.fail], findings, "{text}");
        }
    }
}
