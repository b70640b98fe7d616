//! Cost of each part separately, and of all of them together: reading, matching,
//! evaluating, rendering, loading, compiling, end to end.
//!
//! `cargo bench -p kpvm-bench --bench parts` prints criterion's estimates, and their change
//! since the previous run; part of a name after `--` selects parts. Other benches, in which
//! candidates take turns, compare with peers.

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

mod candidates;

use std::hint::black_box;
use std::time::Duration;

use candidates::{
    time_decide, time_evaluate, time_evaluate_alone, time_read, time_read_yaml, time_update,
    to_yaml,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kpvm::document::DocumentBuffer;
use kpvm::engine::{Bundle, Config, Engine, Input, Request, Session};
use kpvm::host::NoHost;
use kpvm_bench::workload::{
    About, Everything, POD, bundle, cel_rule, compliant_pod, different_pods, expression_rule,
    further_policies, limited_pod, pod_security_policies, restricted_rule, write_pods,
};
use kpvm_cli::report::{Format, Part, Report, Run, Totals};
use kpvm_cli::resources::Resources;
use kpvm_cli::scan::{Facts, Scan, Scanner, Settings};
use kpvm_compiler::source::Sources;
use kpvm_format::index::ObjectKeys;

/// Pods that take turns.
const PODS: u64 = 250;

/// Policies of W3 that do not match.
const FURTHER: usize = 10_000;

/// Pods of W4 here; the bench `table` gives more to the program.
const LINES: usize = 1000;

/// Work timed over a list of Pods, reported per Pod.
fn bench_pods(
    criterion: &mut Criterion,
    name: &str,
    pods: &[Vec<u8>],
    mut work: impl FnMut(&[Vec<u8>]) -> Duration,
) {
    let bytes = pods.iter().map(Vec::len).sum::<usize>() / pods.len();
    let (group, name) = name.split_once('/').expect("a name has two parts");
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|times| {
            let mut left = usize::try_from(times).expect("so often");
            let mut total = Duration::ZERO;
            while left > 0 {
                let turn = left.min(pods.len());
                total += work(&pods[..turn]);
                left -= turn;
            }
            total
        });
    });
    group.finish();
}

fn verified(bytes: &[u8]) -> Bundle<'_> {
    Bundle::load(bytes).expect("a fresh bundle loads")
}

fn load(bytes: Vec<u8>) -> Engine {
    Engine::load(bytes).expect("a fresh bundle loads")
}

/// An engine that reads everything.
fn load_whole(bytes: Vec<u8>) -> Engine {
    let bundle = Bundle::load(bytes).expect("a fresh bundle loads");
    Engine::with_config(bundle, Config::new().with_projection(false))
}

/// W1's Pods, admitted and refused.
fn w1_pods() -> [(&'static str, Vec<Vec<u8>>); 2] {
    [
        ("admitted", different_pods(&compliant_pod(), PODS)),
        ("refused", different_pods(POD, PODS)),
    ]
}

/// Policies that do not match.
fn further(about: About, count: usize) -> Sources {
    let mut sources = Sources::new();
    sources.add("further.yaml", further_policies(about, count));
    sources
}

/// W3: W1 and 10,000 policies that do not match.
fn w3() -> Sources {
    let mut sources = pod_security_policies();
    let further = further_policies(About::PodsOfOtherNamespaces, FURTHER);
    sources.add("further.yaml", further);
    sources
}

/// Text to document, everything.
fn read(criterion: &mut Criterion) {
    let bytes = bundle(&pod_security_policies());
    let engine = load(bytes);
    let mut buffer = DocumentBuffer::new();
    let [(_, pods), _] = w1_pods();
    bench_pods(criterion, "read/W1 as JSON", &pods, |pods| {
        time_read(&engine, &mut buffer, pods)
    });
    let pods: Vec<Vec<u8>> = pods.iter().map(|pod| to_yaml(pod)).collect();
    bench_pods(criterion, "read/W1 as YAML", &pods, time_read_yaml);
}

/// Object to the rules that apply to it.
fn find(criterion: &mut Criterion) {
    let bytes = bundle(&w3());
    let many = load(bytes);
    let tables = many.bundle().tables();
    let keys = ObjectKeys {
        resource: "",
        namespace: "shop-production",
        name: "orders-api",
        operation: "CREATE",
    };
    let mut rules = Vec::new();
    tables.candidate_rules("Pod", &keys, &mut rules);
    assert_eq!(rules.len(), 18, "the rules of W1 for Pods");
    criterion.bench_function("match/index of W3", |bencher| {
        bencher.iter(|| {
            tables.candidate_rules(black_box("Pod"), &keys, &mut rules);
            rules.len()
        });
    });

    let bytes = bundle(&further(About::PodsByOtherLabels, 17));
    let labelled = load_whole(bytes);
    let mut session = Session::new(&labelled);
    let mut buffer = DocumentBuffer::new();
    let [(_, pods), _] = w1_pods();
    let name = "match/17 rules by labels that W1 has not";
    bench_pods(criterion, name, &pods, |pods| {
        time_evaluate_alone(&mut session, &mut buffer, pods)
    });
}

/// Document to responses.
fn evaluate(criterion: &mut Criterion) {
    let [(_, admitted), (_, refused)] = w1_pods();
    let limited = vec![limited_pod(); PODS as usize];
    let w1 = pod_security_policies();
    for (name, sources, pods) in [
        ("evaluate/W1 admitted", &w1, &admitted),
        ("evaluate/W1 refused", &w1, &refused),
        (
            "evaluate/podSecurity restricted",
            &restricted_rule(),
            &admitted,
        ),
        (
            "evaluate/three JMESPath expressions",
            &expression_rule(),
            &limited,
        ),
        ("evaluate/four CEL expressions", &cel_rule(), &limited),
    ] {
        let bytes = bundle(sources);
        let engine = load_whole(bytes);
        let mut session = Session::new(&engine);
        let mut buffer = DocumentBuffer::new();
        bench_pods(criterion, name, pods, |pods| {
            time_evaluate_alone(&mut session, &mut buffer, pods)
        });
    }
}

/// Responses to messages, findings to reports.
fn render(criterion: &mut Criterion) {
    let bytes = bundle(&pod_security_policies());
    let engine = load(bytes);
    let mut session = Session::new(&engine);
    let request = Request::create(Input::Json(POD));
    let evaluation = session.evaluate(&request).expect("a Pod is a request");
    criterion.bench_function("render/messages of W1 refused", |bencher| {
        bencher.iter(|| {
            let messages = evaluation
                .responses()
                .map(|response| response.message().len());
            messages.sum::<usize>()
        });
    });

    let mut lines = Vec::new();
    write_pods(LINES / 10, 1, &mut lines).expect("a list takes everything");
    let lines = String::from_utf8(lines).expect("Pods are text");
    let text = lines.replace('\n', "\n---\n");
    let resources = Resources::from_text("pods.yaml", &text);
    assert_eq!(resources.list.len(), LINES / 10, "each is read");
    let settings = Settings {
        keep_passes: true,
        ..Settings::default()
    };
    let facts = Facts::new(engine.bundle());
    let mut scan = Scan::new(&facts);
    let problems = Scanner::new(&engine, &settings).scan(&resources, &mut scan, &mut NoHost);
    assert!(problems.is_empty(), "each is evaluated");
    let run = Run {
        scan: &scan,
        resources: &resources,
        policies: None,
        now: 0,
        verbose: false,
        exception_ttl: 0,
    };
    let totals = Totals {
        scan: &scan,
        problems: &[],
        policies: None,
        detailed: false,
    };
    let mut group = criterion.benchmark_group("render");
    group.throughput(Throughput::Elements(scan.findings.len() as u64));
    for (name, format) in [
        ("text", Format::Text),
        ("json", Format::Json),
        ("yaml", Format::Yaml),
        ("policyreport", Format::PolicyReport),
        ("sarif", Format::Sarif),
        ("junit", Format::Junit),
    ] {
        let mut out = Vec::new();
        group.bench_function(format!("{name} of W1 over 100 Pods"), |bencher| {
            bencher.iter(|| {
                out.clear();
                let part = Part::new(format, &run).expect("findings can be written");
                let mut report = Report::new(format);
                report.add(part, None).expect("it fits into memory");
                let done = report.finish(&totals, &mut out);
                done.expect("a list takes everything");
                out.len()
            });
        });
    }
    group.finish();
}

/// Bytes to a verified bundle.
fn load_and_verify(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    for (name, sources) in [
        ("W1", pod_security_policies()),
        ("500 rules", further(About::OtherKinds, 500)),
        ("W3", w3()),
    ] {
        let bytes = bundle(&sources);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| verified(black_box(&bytes)).tables().rules.len());
        });
    }
    group.finish();
}

/// Policies to a bundle.
fn compile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    for (name, sources) in [
        ("W1", pod_security_policies()),
        ("1,000 policies", further(About::OtherKinds, 1000)),
    ] {
        let policies = load(bundle(&sources)).bundle().tables().policies.len();
        group.throughput(Throughput::Elements(policies as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| bundle(black_box(&sources)).len());
        });
    }
    group.finish();
}

/// Bytes to verdict.
fn end_to_end(criterion: &mut Criterion) {
    let bytes = bundle(&pod_security_policies());
    let w1 = load(bytes);
    let mut session = Session::new(&w1);
    for (name, pods) in &w1_pods() {
        let evaluate = format!("end to end/W1 {name}, all responses");
        bench_pods(criterion, &evaluate, pods, |pods| {
            time_evaluate(&mut session, pods)
        });
        let decide = format!("end to end/W1 {name}, the decision");
        bench_pods(criterion, &decide, pods, |pods| {
            time_decide(&mut session, pods)
        });
    }
    if let Some(everything) = Everything::read() {
        let w2 = load(everything.bundle.clone());
        let mut session = Session::new(&w2);
        let objects = &everything.objects;
        bench_pods(
            criterion,
            "end to end/W2, all responses",
            objects,
            |objects| time_evaluate(&mut session, objects),
        );
    }
    let bytes = bundle(&w3());
    let w3 = load(bytes);
    let mut all = Session::new(&w3);
    let [(_, pods), _] = w1_pods();
    bench_pods(criterion, "end to end/W3, all responses", &pods, |pods| {
        time_evaluate(&mut all, pods)
    });
    let mut lines = Vec::new();
    write_pods(LINES, 1, &mut lines).expect("a list takes everything");
    let lines = lines
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    let lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
    bench_pods(criterion, "end to end/W4, all responses", &lines, |lines| {
        time_evaluate(&mut session, lines)
    });
    bench_pods(criterion, "end to end/W5, the decision", &pods, |pods| {
        time_update(&mut session, pods)
    });
}

criterion_group! {
    name = parts;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = read, find, evaluate, render, load_and_verify, compile, end_to_end
}
criterion_main!(parts);
