//! What must hold for every row: the program returns without a panic or an overflow of a
//! 256 KiB stack, within bounds of time and memory, with the same answer on a second run,
//! and refused input never passes.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use kpvm::engine::{Engine, Input, Request, Session};
use kpvm_compiler::compile::{Compilation, Options, compile, compile_with_exceptions};
use kpvm_compiler::diagnostic::Severity;
use kpvm_compiler::source::Sources;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::yaml::{self, DuplicateKeys};

/// Stack of the thread that runs a row (row 106).
const STACK: usize = 256 << 10;

/// Stack for rows that nest deeply in the compiler. Its unoptimised frames are an order of
/// magnitude larger, so the bound of row 106 holds for optimised builds.
const DEEP_COMPILER_STACK: usize = if cfg!(debug_assertions) {
    8 * STACK
} else {
    STACK
};

/// Time limit of a row in unoptimised builds; rows should take far less.
const TIME: Duration = Duration::from_secs(20);

/// Memory beyond a multiple of the input.
const MEMORY: u64 = 64 << 20;

/// Memory for each byte of an object, and of a policy.
const MEMORY_PER_BYTE: [u64; 2] = [40, 160];

/// Measures the processor time of a thread, which other programs do not prolong. Where the
/// system does not report it, wall time.
pub(crate) struct Clock {
    wall: Instant,
    processor: Option<Duration>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            wall: Instant::now(),
            processor: processor_time(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        match (self.processor, processor_time()) {
            (Some(start), Some(now)) if now > start => now - start,
            _ => self.wall.elapsed(),
        }
    }
}

/// Time that this thread has run, according to Linux.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Observed outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The input was refused, with this message.
    Refused(String),
    /// It was evaluated: `rule status message` of each response.
    Evaluated(Vec<(String, String, String)>),
}

/// Required outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// Refused with a message that contains this text.
    Refused(&'static str),
    /// Evaluated to exactly these `rule status` lines.
    Results(&'static [&'static str]),
    /// Anything but a pass.
    NeverPass,
    /// Whatever the oracle allows.
    Either,
}

/// Runs a row twice under the oracle and returns the outcome.
fn observe(row: &str, stack: usize, memory_bound: u64, run: impl Fn() -> Seen + Sync) -> Seen {
    let once = || {
        let mut seen = Seen::Refused(String::new());
        let clock = Clock::start();
        let allocations = allocation_counter::measure(|| seen = run());
        (seen, clock.elapsed(), allocations.bytes_max)
    };
    let on_small_stack = || {
        thread::scope(|scope| {
            let builder = thread::Builder::new().stack_size(stack);
            let handle = builder.spawn_scoped(scope, once).unwrap();
            handle.join().unwrap_or_else(|_| panic!("{row}: panicked"))
        })
    };
    let (first, time, memory) = on_small_stack();
    let (second, _, _) = on_small_stack();
    assert_eq!(first, second, "{row}: another answer on the second run");
    assert!(time < TIME, "{row}: took {time:?}");
    assert!(memory < memory_bound, "{row}: {memory} bytes of memory");
    first
}

/// Runs a row and compares the outcome with the required one.
pub(crate) fn check(row: &str, input_bytes: usize, expect: Expect, run: impl Fn() -> Seen + Sync) {
    let memory = MEMORY + MEMORY_PER_BYTE[0] * input_bytes as u64;
    judge(row, &observe(row, STACK, memory, run), expect);
}

/// [`check`] for policies of any depth.
pub(crate) fn check_policy(
    row: &str,
    input_bytes: usize,
    expect: Expect,
    run: impl Fn() -> Seen + Sync,
) {
    let memory = MEMORY + MEMORY_PER_BYTE[1] * input_bytes as u64;
    judge(row, &observe(row, DEEP_COMPILER_STACK, memory, run), expect);
}

fn judge(row: &str, seen: &Seen, expect: Expect) {
    match (seen, expect) {
        (Seen::Refused(message), Expect::Refused(part)) => {
            assert!(
                message.contains(part),
                "{row}: `{part}` is not in: {message}"
            );
        }
        (Seen::Evaluated(results), Expect::Results(expected)) => {
            let found: Vec<String> = results
                .iter()
                .map(|(rule, status, _)| format!("{rule} {status}"))
                .collect();
            assert_eq!(found, expected, "{row}: {results:?}");
        }
        (Seen::Evaluated(results), Expect::NeverPass) => {
            let passed = results.iter().any(|(_, status, _)| status == "pass");
            assert!(!passed, "{row}: {results:?}");
        }
        (_, Expect::Either) | (Seen::Refused(_), Expect::NeverPass) => {}
        (_, Expect::Refused(_) | Expect::Results(_)) => {
            let shown: String = format!("{seen:?}").chars().take(600).collect();
            panic!("{row}: expected {expect:?}, found {shown}");
        }
    }
}

/// Compiles policies; a refusal names the place of each error.
pub(crate) fn compile_policies(policies: &str) -> Result<Vec<u8>, String> {
    let mut sources = Sources::new();
    sources.add("policy.yaml", policies);
    bundle_of(compile(&sources, &Options::default()), &sources)
}

/// [`compile_policies`] with exceptions.
pub(crate) fn compile_excepted(policies: &str, exceptions: &str) -> Result<Vec<u8>, String> {
    let mut sources = Sources::new();
    let read = |source, text: &str| -> Result<Vec<_>, String> {
        let reading = yaml::Options {
            duplicate_keys: DuplicateKeys::Refuse,
            limits: &Limits::DEFAULT,
        };
        let documents = yaml::read_all(text, reading).into_iter();
        let read = documents.map(|tree| tree.map(|tree| (source, tree)));
        read.collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    };
    let policies = read(sources.add("policy.yaml", policies), policies)?;
    let exceptions = read(sources.add("exception.yaml", exceptions), exceptions)?;
    let options = Options::default();
    let compilation =
        compile_with_exceptions(&policies, &exceptions, &sources, &options, Vec::new());
    bundle_of(compilation, &sources)
}

fn bundle_of(compilation: Compilation, sources: &Sources) -> Result<Vec<u8>, String> {
    if let Some(bytes) = compilation.bundle {
        return Ok(bytes);
    }
    let mut text = String::new();
    for diagnostic in &compilation.diagnostics {
        if diagnostic.severity == Severity::Error {
            let place = sources.line_column(diagnostic.location);
            let _ = writeln!(
                text,
                "{}:{}:{}: {} ({})",
                sources.file(diagnostic.location.source).name,
                place.line,
                place.column,
                diagnostic.message,
                diagnostic.code
            );
        }
    }
    assert!(!text.is_empty(), "refused without a message");
    Err(text)
}

/// Evaluates one request against a bundle.
pub(crate) fn evaluate(bytes: Vec<u8>, request: &Request<'_>) -> Seen {
    let engine = match Engine::load(bytes) {
        Ok(bundle) => bundle,
        Err(error) => return Seen::Refused(error.to_string()),
    };
    let mut session = Session::new(&engine);
    match session.evaluate(request) {
        Err(error) => Seen::Refused(error.to_string()),
        Ok(evaluation) => Seen::Evaluated(
            evaluation
                .responses()
                .map(|response| {
                    (
                        response.rule().to_owned(),
                        response.status().to_string(),
                        response.message().into_owned(),
                    )
                })
                .collect(),
        ),
    }
}

/// Compiles policies and evaluates the creation of an object given as JSON.
pub(crate) fn run(policies: &str, object: &[u8]) -> Seen {
    match compile_policies(policies) {
        Err(message) => Seen::Refused(message),
        Ok(bytes) => evaluate(bytes, &Request::create(Input::Json(object))),
    }
}

/// A policy with one rule `r` for Pods and custom objects and this validate block (YAML in
/// flow style).
pub(crate) fn policy_with(validate: &str) -> String {
    format!(
        "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec:\n  rules:\n  \
         - name: r\n    match: {{any: [{{resources: {{kinds: [Pod, Thing]}}}}]}}\n    \
         validate: {validate}\n"
    )
}

/// [`policy_with`] a pattern.
pub(crate) fn policy_with_pattern(pattern: &str) -> String {
    policy_with(&format!("{{pattern: {pattern}}}"))
}

/// A custom object with this spec (JSON).
pub(crate) fn thing(spec: &str) -> String {
    format!(
        r#"{{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {{"name": "t"}}, "spec": {spec}}}"#
    )
}
