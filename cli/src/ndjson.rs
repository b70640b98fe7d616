//! Objects one a line (NDJSON), evaluated as they are read: the memory that this takes does
//! not grow with their number.
//!
//! Lines go in, in chunks; every core takes one chunk at a time; reports of chunks leave in
//! the order of the lines. An object that passes everything is read by the engine from its
//! line and leaves nothing but counts. Any other goes the way of all resources, chunk by
//! chunk, so that the text for people groups the findings of a chunk instead of all.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kpvm::document::Numbers;
use kpvm::engine::{Bundle, Input, Request, Session, Status};
use kpvm_format::Tables;
use kpvm_format::instruction::Op;
use kpvm_format::table::BodyKind;
use memchr::memmem;

use crate::diagnostics::show_error;
use crate::host::ProcessHost;
use crate::input::STDIN_NAME;
use crate::problem::Problem;
use crate::report::{Run, text};
use crate::resources::{Resources, is_cluster_scoped};
use crate::scan::{Object, PolicyFacts, Scan, Settings, Summary, scan_some};
use crate::text::clean;

/// Bytes that are looked at to see whether an input is NDJSON: its first line has to end
/// there.
pub const FRONT_BYTES: usize = 1 << 20;

/// Bytes of a chunk, up to the end of a line.
const CHUNK_BYTES: usize = 1 << 20;

/// The longest line.
const LINE_BYTES: u64 = 64 << 20;

/// Objects that are kept to say why policies matched nothing, one of a kind and namespace.
const EXAMPLES: usize = 1000;

/// Lines of objects.
pub struct Lines {
    /// The name of the input.
    pub name: String,
    /// Its bytes.
    pub input: Box<dyn BufRead>,
    /// Their number, where known.
    pub size: Option<u64>,
}

/// What the paths of resources lead to.
pub enum Found {
    /// One long input of lines.
    Lines(Lines),
    /// Standard input, of which something was read, with what was read in front again.
    Other(Box<dyn Read>),
    /// Something else; nothing of it was read.
    Nothing,
}

impl Lines {
    /// Looks whether there is one path and it leads to NDJSON that is longer than what is
    /// looked at; anything shorter is as well read whole.
    ///
    /// # Errors
    /// Those of standard input.
    pub fn find(paths: &[PathBuf]) -> io::Result<Found> {
        let [path] = paths else {
            return Ok(Found::Nothing);
        };
        let is_stdin = path.as_os_str() == "-";
        let (mut rest, name, size): (Box<dyn Read>, _, _) = if is_stdin {
            (Box::new(io::stdin()), STDIN_NAME.to_owned(), None)
        } else {
            let (Ok(file), Ok(metadata)) = (File::open(path), path.metadata()) else {
                return Ok(Found::Nothing);
            };
            if !metadata.is_file() || metadata.len() <= FRONT_BYTES as u64 {
                return Ok(Found::Nothing);
            }
            let name = path.display().to_string();
            (Box::new(file), name, Some(metadata.len()))
        };
        let mut front = Vec::new();
        (&mut *rest)
            .take(FRONT_BYTES as u64)
            .read_to_end(&mut front)?;
        let is_lines = front.len() == FRONT_BYTES && begins_ndjson(&front);
        let whole = io::Cursor::new(front).chain(rest);
        Ok(match is_lines {
            true => Found::Lines(Lines {
                name,
                input: Box::new(io::BufReader::with_capacity(1 << 16, whole)),
                size,
            }),
            false if is_stdin => Found::Other(Box::new(whole)),
            false => Found::Nothing,
        })
    }
}

/// Whether a text begins with a whole JSON object on a line of its own, with another behind
/// it.
pub fn begins_ndjson(front: &[u8]) -> bool {
    let mut lines = front.split_inclusive(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.trim_ascii().is_empty());
    let Some(first) = first.filter(|line| line.ends_with(b"\n")) else {
        return false;
    };
    let is_object = |line: &[u8]| {
        line.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
    };
    let next = lines.find(|line| !line.trim_ascii().is_empty());
    is_object(first) && next.is_some_and(|line| line.starts_with(b"{"))
}

/// Whether the rules ask for nothing that other objects would answer; of those with CEL
/// that is not known.
pub fn needs_no_other_objects(tables: &Tables<'_>) -> bool {
    let may_ask =
        |op: Op| matches!(op, Op::Fetch | Op::JumpUnlessProvided) || op.name().starts_with("Cel");
    let mut code = tables.code.iter();
    code.all(|instruction| Op::decode(instruction.op).is_some_and(|op| !may_ask(op)))
}

/// How to go through the lines.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'p> {
    /// The policies.
    pub bundle: &'p Bundle<'p>,
    /// How objects are evaluated; only without circumstances.
    pub settings: &'p Settings,
    /// The name of the input.
    pub name: &'p str,
    /// Its size, where known.
    pub size: Option<u64>,
    /// Whether skipped rules are shown.
    pub verbose: bool,
}

/// What all lines came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The counts; objects and findings are left out but for examples of objects.
    pub scan: Scan,
    /// Lines that could not be used, as told already.
    pub problems: usize,
    /// Lists that held nothing.
    pub empty_lists: usize,
}

/// Some lines.
struct Chunk {
    number: usize,
    /// Lines in front of it.
    line: usize,
    bytes: Vec<u8>,
}

/// What a chunk came to.
struct Part {
    report: Vec<u8>,
    problems: Vec<u8>,
    bad: usize,
    empty_lists: usize,
    scan: Scan,
}

/// Evaluates all lines; writes what was found in their order.
///
/// # Errors
/// Those of the writers.
pub fn run(
    plan: Plan<'_>,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Outcome> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (to_workers, chunks) = sync_channel::<Chunk>(workers);
    let (to_writer, parts) = channel::<(usize, Part)>();
    let chunks = Mutex::new(chunks);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (chunks, to_writer) = (&chunks, to_writer.clone());
            scope.spawn(move || work(plan, chunks, &to_writer));
        }
        drop(to_writer);
        // Chunks that were read but not written, at most.
        let limit = 3 * workers;
        pump(plan, input, limit, to_workers, &parts, out, err)
    })
}

/// Reads chunks and writes parts, until there are no more of either.
fn pump(
    plan: Plan<'_>,
    input: &mut dyn BufRead,
    limit: usize,
    to_workers: SyncSender<Chunk>,
    parts: &Receiver<(usize, Part)>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Outcome> {
    let bar = progress_bar(plan.size);
    let mut outcome = Outcome::default();
    let mut waiting: BTreeMap<usize, Part> = BTreeMap::new();
    let (mut sent, mut written, mut line) = (0, 0, 0);
    let mut to_workers = Some(to_workers);
    while to_workers.is_some() || written < sent {
        while let Some(sender) = to_workers.as_ref().filter(|_| sent - written < limit) {
            let bytes = match read_chunk(input) {
                Ok(bytes) => bytes,
                Err(error) => {
                    writeln!(err, "error: cannot read {}: {error}", plan.name)?;
                    outcome.problems += 1;
                    Vec::new()
                }
            };
            if bytes.is_empty() {
                to_workers = None;
                break;
            }
            bar.inc(bytes.len() as u64);
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            let chunk = Chunk {
                number: sent,
                line,
                bytes,
            };
            line += lines;
            sent += 1;
            if sender.send(chunk).is_err() {
                to_workers = None;
            }
        }
        if written == sent {
            continue;
        }
        // Workers end only when there is nothing left to do.
        let Ok((number, part)) = parts.recv() else {
            break;
        };
        waiting.insert(number, part);
        while let Some(part) = waiting.remove(&written) {
            written += 1;
            bar.suspend(|| {
                err.write_all(&part.problems)?;
                out.write_all(&part.report)
            })?;
            outcome.add(part);
        }
    }
    bar.finish_and_clear();
    Ok(outcome)
}

/// Whole lines of about a chunk; nothing at the end.
fn read_chunk(input: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
    (&mut *input)
        .take(CHUNK_BYTES as u64)
        .read_to_end(&mut bytes)?;
    if bytes.len() == CHUNK_BYTES && !bytes.ends_with(b"\n") {
        (&mut *input)
            .take(LINE_BYTES)
            .read_until(b'\n', &mut bytes)?;
        if !bytes.ends_with(b"\n") && bytes.len() as u64 >= LINE_BYTES {
            let message = format!("a line is longer than {LINE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    }
    Ok(bytes)
}

fn progress_bar(size: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::stderr());
    let template = match size {
        Some(_) => "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec}",
        None => "{spinner} {bytes} {bytes_per_sec}",
    };
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl Outcome {
    fn add(&mut self, part: Part) {
        self.problems += part.bad;
        self.empty_lists += part.empty_lists;
        self.scan.add_counts(part.scan, EXAMPLES);
    }
}

/// Takes chunks until there are no more.
fn work(plan: Plan<'_>, chunks: &Mutex<Receiver<Chunk>>, to_writer: &Sender<(usize, Part)>) {
    let mut rules = plan.bundle.tables().rules.iter();
    let mut worker = Worker {
        plan,
        has_admission: rules.any(|rule| rule.body == BodyKind::AdmissionPolicy as u8),
        session: Session::new(plan.bundle),
        passed: Vec::new(),
    };
    loop {
        let next = match chunks.lock() {
            Ok(chunks) => chunks.recv(),
            Err(_) => return,
        };
        let Ok(chunk) = next else { return };
        let number = chunk.number;
        if to_writer.send((number, worker.evaluate(chunk))).is_err() {
            return;
        }
    }
}

struct Worker<'p> {
    plan: Plan<'p>,
    session: Session<'p>,
    /// Whether there are ValidatingAdmissionPolicies, which are given a user of their own.
    has_admission: bool,
    /// The policies of the object at hand that it passes.
    passed: Vec<usize>,
}

/// What is asked of an object before it is known to be one that the engine can read from
/// its line.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'h> {
    #[serde(borrow, default)]
    api_version: Cow<'h, str>,
    #[serde(borrow)]
    kind: Cow<'h, str>,
    #[serde(borrow)]
    metadata: Metadata<'h>,
}

#[derive(serde::Deserialize)]
struct Metadata<'h> {
    #[serde(borrow, default)]
    name: Cow<'h, str>,
    #[serde(borrow, default)]
    namespace: Cow<'h, str>,
}

impl Worker<'_> {
    fn evaluate(&mut self, chunk: Chunk) -> Part {
        let plan = self.plan;
        let mut resources = Resources::default();
        let mut summary = Summary::default();
        let mut applied = BTreeSet::new();
        let mut examples: BTreeMap<[String; 2], Object> = BTreeMap::new();
        let mut last = [String::new(), String::new()];
        let lines = chunk.bytes.split(|byte| *byte == b'\n').enumerate();
        for (number, line) in lines {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let number = chunk.line + number;
            match self.passes(line) {
                Some(head) => {
                    summary.pass += self.passed.len();
                    applied.extend(self.passed.drain(..));
                    if last[0] != head.kind || last[1] != head.metadata.namespace {
                        last = [head.kind.to_string(), head.metadata.namespace.to_string()];
                        if examples.len() < EXAMPLES && !examples.contains_key(&last) {
                            examples.insert(last.clone(), example(&head));
                        }
                    }
                }
                None => resources.add_line(plan.name, line, number as u32),
            }
        }
        // As among all resources, these are no objects to evaluate.
        resources
            .list
            .retain(|resource| resource.text("kind") != "GlobalContextEntry");
        let mut scan = scan_some(plan.bundle, &mut resources, plan.settings, &mut ProcessHost);
        let (mut report, mut problems) = (Vec::new(), Vec::new());
        let run = Run {
            scan: &scan,
            resources: &resources,
            policies: None,
            now: 0,
            verbose: plan.verbose,
            detailed: false,
            exception_ttl: 0,
        };
        // Writing to memory does not fail.
        let _ = text::write_findings(&run, &mut report);
        for problem in &resources.problems {
            let _ = show_problem(problem, &resources, &mut problems);
        }
        scan.summary.pass += summary.pass;
        scan.findings = Vec::new();
        for policy in applied {
            if let Some(policy) = scan.policies.get_mut(policy) {
                policy.applied = true;
            }
        }
        scan.objects.extend(examples.into_values());
        Part {
            report,
            problems,
            bad: resources.problems.len(),
            empty_lists: resources.empty_lists,
            scan,
        }
    }

    /// Whether an object that can be taken as it is written passes every rule.
    fn passes<'l>(&mut self, line: &'l [u8]) -> Option<Head<'l>> {
        // Some nulls count as empty maps; lists and objects without a namespace are
        // completed first.
        if self.has_admission || memmem::find(line, b"null").is_some() {
            return None;
        }
        let head: Head<'l> = serde_json::from_slice(line).ok()?;
        let has_namespace = !head.metadata.namespace.is_empty();
        let is_plain = has_namespace || is_cluster_scoped(&head.api_version, &head.kind);
        let is_special = head.kind.ends_with("List") || head.kind == "GlobalContextEntry";
        if !is_plain || is_special || self.plan.settings.keep_passes {
            return None;
        }
        let request = Request {
            object: Some(Input::Json(line)),
            numbers: Numbers::Float,
            ..Request::default()
        };
        let evaluation = self
            .session
            .evaluate_with(&request, &mut ProcessHost)
            .ok()?;
        self.passed.clear();
        for response in evaluation.responses() {
            if response.status() != Status::Pass {
                return None;
            }
            self.passed.push(response.policy_index());
        }
        Some(head)
    }
}

/// Says what is wrong with a line, with its place in the whole input.
fn show_problem(problem: &Problem, resources: &Resources, out: &mut dyn Write) -> io::Result<()> {
    match problem {
        Problem::InText(diagnostic) => {
            let place = resources.place(diagnostic.location);
            let message = format!("{}: {}", place, diagnostic.message);
            show_error(&clean(&message), out)
        }
        Problem::Unreadable(unreadable) => {
            let message = format!("cannot read {}: {}", unreadable.name, unreadable.reason);
            show_error(&clean(&message), out)
        }
    }
}

fn example(head: &Head<'_>) -> Object {
    Object {
        api_version: head.api_version.to_string(),
        kind: head.kind.to_string(),
        namespace: head.metadata.namespace.to_string(),
        name: head.metadata.name.to_string(),
        ..Object::default()
    }
}

impl Scan {
    /// Adds the counts of another scan with the same policies, and some of its objects.
    fn add_counts(&mut self, other: Scan, examples: usize) {
        let (own, more) = (&mut self.summary, other.summary);
        own.pass += more.pass;
        own.fail += more.fail;
        own.warn += more.warn;
        own.error += more.error;
        own.skip += more.skip;
        if self.policies.is_empty() {
            self.policies = other.policies;
            self.rules = other.rules;
            self.omitted = other.omitted;
        } else {
            let pairs = self.policies.iter_mut().zip(&other.policies);
            pairs.for_each(|(own, more): (&mut PolicyFacts, _)| own.applied |= more.applied);
        }
        for object in other.objects {
            let is_known =
                |known: &Object| known.kind == object.kind && known.namespace == object.namespace;
            if self.objects.len() < examples && !self.objects.iter().any(is_known) {
                self.objects.push(object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ndjson_begins_with_an_object_on_a_line() {
        for (text, expected) in [
            ("{\"a\":1}\n{\"b\":2}\n", true),
            ("\n{\"a\":1}\r\n\n{\"b\"", true),
            ("{\"a\":1}\n", false),
            ("{\n\"a\":1}\n{}\n", false),
            ("{a: 1}\n{b: 1}\n", false),
            ("[1]\n[2]\n", false),
            ("a: 1\nb: 2\n", false),
            ("", false),
        ] {
            assert_eq!(begins_ndjson(text.as_bytes()), expected, "{text}");
        }
    }
}
