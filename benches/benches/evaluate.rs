//! From the JSON bytes of a 7 KB Pod to the verdict of twenty rules, beside the time
//! that simd-json takes to build its tape from the same bytes.
//!
//! `cargo bench -p kpvm-bench --bench evaluate` first prints medians of candidates
//! that take turns (see [`kpvm_bench::interleave`]): the twenty rules alone, with
//! refused Pods, and with 10,000 further policies that do not match; then how long
//! compiling and loading take. Criterion's own figures follow.

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

mod candidates;

use std::hint::black_box;
use std::time::Duration;

use candidates::{time_decide, time_evaluate, time_read, time_simd_json};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kpvm::document::DocumentBuffer;
use kpvm::engine::{Bundle, Input, Request, Session, Status};
use kpvm_bench::interleave::{medians, time};
use kpvm_bench::workload::{
    About, POD, bundle, compliant_pod, different_pods, further_policies, twenty_rules,
};

/// Evaluations timed together.
const PODS: usize = 250;

/// Policies that do not match.
const FURTHER: usize = 10_000;

/// How many rules answer, and how many of them pass.
fn count(bundle: &Bundle<'_>, pod: &[u8]) -> (usize, usize) {
    let mut session = Session::new(bundle);
    let evaluation = session
        .evaluate(&Request::create(Input::Json(pod)))
        .expect("a Pod is a request");
    let passed = evaluation
        .responses()
        .filter(|response| response.status() == Status::Pass);
    (evaluation.responses().len(), passed.count())
}

/// Evaluation and decision beside reading and simd-json's tape.
fn print_ratios(name: &str, bundle: &Bundle<'_>, pods: &[Vec<u8>]) {
    let (rules, passed) = count(bundle, &pods[0]);
    assert!(
        pods.iter().all(|pod| count(bundle, pod) == (rules, passed)),
        "{name}: the Pods are alike to the rules"
    );
    let (mut evaluator, mut decider) = (Session::new(bundle), Session::new(bundle));
    let mut buffer = DocumentBuffer::new();
    let [evaluate, decide, read, tape] = medians(
        pods.len(),
        [
            &mut |turn| time_evaluate(&mut evaluator, &pods[turn]),
            &mut |turn| time_decide(&mut decider, &pods[turn]),
            &mut |turn| time_read(bundle, &mut buffer, &pods[turn]),
            &mut |turn| time_simd_json(&pods[turn]),
        ],
    );
    println!(
        "{name}, {} bytes, {passed} of {rules} rules pass: simd_json::to_tape {tape:.2} us, \
         evaluate {evaluate:.2} us (ratio {:.2}), decide {decide:.2} us (ratio {:.2}); \
         reading everything, alone {read:.2} us",
        pods.iter().map(Vec::len).sum::<usize>() / pods.len(),
        evaluate / tape,
        decide / tape,
    );
}

/// The same bundle without and with many policies that do not match.
fn print_further(name: &str, about: About, pods: &[Vec<u8>]) {
    let few = bundle(&twenty_rules());
    let few = Bundle::load(few.as_slice()).expect("a fresh bundle loads");
    let mut sources = twenty_rules();
    sources.add("further.yaml", further_policies(about, FURTHER));
    let many = bundle(&sources);
    let many = Bundle::load(many.as_slice()).expect("a fresh bundle loads");
    let rules = count(&few, &pods[0]);
    assert_eq!(count(&many, &pods[0]), rules, "no further policy matches");
    let (mut alone, mut together) = (Session::new(&few), Session::new(&many));
    let [alone, together] = medians(
        pods.len(),
        [
            &mut |turn| time_evaluate(&mut alone, &pods[turn]),
            &mut |turn| time_evaluate(&mut together, &pods[turn]),
        ],
    );
    println!(
        "{FURTHER} further policies, {name}: {alone:.2} us without, {together:.2} us with, \
         {:+.1} %",
        (together / alone - 1.0) * 100.0,
    );
}

/// Compiling 1,000 policies, and loading bundles.
fn print_compiling() {
    let mut sources = kpvm_compiler::source::Sources::new();
    sources.add("policies.yaml", further_policies(About::OtherKinds, 1000));
    let mut times: Vec<Duration> = (0..5)
        .map(|_| time(|| drop(black_box(bundle(&sources)))))
        .collect();
    times.sort();
    println!("compiling 1,000 policies of one rule: {:.2?}", times[2]);
    for rules in [500, 10_000] {
        let mut sources = kpvm_compiler::source::Sources::new();
        sources.add("policies.yaml", further_policies(About::OtherKinds, rules));
        let bytes = bundle(&sources);
        let mut times: Vec<Duration> = (0..9)
            .map(|_| {
                time(|| {
                    black_box(Bundle::load(bytes.as_slice()).expect("a fresh bundle loads"));
                })
            })
            .collect();
        times.sort();
        println!(
            "loading and verifying {rules} rules, {} KiB: {:.2?}",
            bytes.len() / 1024,
            times[4]
        );
    }
}

fn evaluate(criterion: &mut Criterion) {
    let bytes = bundle(&twenty_rules());
    let twenty = Bundle::load(bytes.as_slice()).expect("a fresh bundle loads");
    let pod = compliant_pod();
    assert_eq!(count(&twenty, &pod), (20, 20), "twenty rules pass");
    let different = different_pods(&pod, PODS as u64);
    let repeated = vec![pod.clone(); PODS];
    print_ratios("one pod", &twenty, &repeated);
    print_ratios("different pods", &twenty, &different);
    print_ratios("one refused pod", &twenty, &vec![POD.to_vec(); PODS]);
    let refused = different_pods(POD, PODS as u64);
    print_ratios("different refused pods", &twenty, &refused);
    print_further("other kinds", About::OtherKinds, &different);
    print_further("namespaced policies", About::NamespacedPolicies, &different);
    print_further(
        "Pods of other namespaces",
        About::PodsOfOtherNamespaces,
        &different,
    );
    print_further("Pods by other names", About::PodsByOtherNames, &different);
    print_compiling();

    let mut group = criterion.benchmark_group("evaluate-pod");
    group.throughput(Throughput::Bytes(pod.len() as u64));
    let mut session = Session::new(&twenty);
    group.bench_function("evaluate", |bencher| {
        bencher.iter(|| {
            let request = Request::create(Input::Json(black_box(&pod)));
            let evaluation = session.evaluate(&request).expect("a Pod is a request");
            evaluation.responses().len()
        });
    });
    group.bench_function("decide", |bencher| {
        bencher.iter(|| {
            let request = Request::create(Input::Json(black_box(&pod)));
            let decision = session.decide(&request).expect("a Pod is a request");
            decision.is_admitted()
        });
    });
    let mut copy = pod.clone();
    group.bench_function("simd-json-to-tape", |bencher| {
        bencher.iter(|| {
            copy.copy_from_slice(black_box(&pod));
            simd_json::to_tape(&mut copy)
                .expect("the Pod is JSON")
                .0
                .len()
        });
    });
    group.finish();
}

criterion_group!(benches, evaluate);
criterion_main!(benches);
