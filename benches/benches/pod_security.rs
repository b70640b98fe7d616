//! From the JSON bytes of a 7 KB Pod to the verdict of `podSecurity` at the restricted
//! level, beside the time that simd-json takes to build its tape from the same bytes.
//!
//! `cargo bench -p kpvm-bench --bench pod_security` prints medians of candidates that
//! take turns (see [`kpvm_bench::interleave`]).

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use kpvm::document::{DocumentBuffer, ReadOptions, TextSource};
use kpvm::engine::{Bundle, Input, Request, Session, Status};
use kpvm_bench::interleave::{medians, time};
use kpvm_bench::workload::{POD, bundle, compliant_pod, different_pods, restricted_rule};

/// Evaluations timed together.
const PODS: usize = 250;

fn time_evaluate(session: &mut Session<'_>, pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            let request = Request::create(Input::Json(black_box(pod)));
            let evaluation = session.evaluate(&request).expect("a Pod is a request");
            black_box(evaluation.responses().len());
        }
    })
}

fn time_decide(session: &mut Session<'_>, pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            let request = Request::create(Input::Json(black_box(pod)));
            let decision = session.decide(&request).expect("a Pod is a request");
            black_box(decision.is_admitted());
        }
    })
}

/// What the evaluation spends on reading.
fn time_read(bundle: &Bundle<'_>, buffer: &mut DocumentBuffer, pods: &[Vec<u8>]) -> Duration {
    let (symbols, options) = (bundle.tables().symbols, ReadOptions::default());
    time(|| {
        for pod in pods {
            buffer.clear();
            let root = buffer.read_json(black_box(pod), TextSource::Object, &symbols, &options);
            black_box(root.expect("the Pod is JSON"));
        }
    })
}

/// simd-json changes its input, so the copies are made before the clock starts.
fn time_simd_json(pods: &[Vec<u8>]) -> Duration {
    let mut copies = pods.to_vec();
    time(|| {
        for copy in &mut copies {
            black_box(simd_json::to_tape(black_box(copy)).expect("the Pod is JSON"));
        }
    })
}

fn status(bundle: &Bundle<'_>, pod: &[u8]) -> Option<Status> {
    let mut session = Session::new(bundle);
    let evaluation = session.evaluate(&Request::create(Input::Json(pod)));
    let evaluation = evaluation.expect("a Pod is a request");
    let mut responses = evaluation.responses();
    responses.next().map(|response| response.status())
}

fn print_ratios(name: &str, expected: Status, bundle: &Bundle<'_>, pods: &[Vec<u8>]) {
    assert!(
        pods.iter().all(|pod| status(bundle, pod) == Some(expected)),
        "{name}: the Pods are alike to the rule"
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
        "restricted, {name}, {} bytes, {expected}: simd_json::to_tape {tape:.2} us, \
         evaluate {evaluate:.2} us (ratio {:.2}), decide {decide:.2} us (ratio {:.2}); \
         reading alone {read:.2} us, so the rule {:.2} us",
        pods.iter().map(Vec::len).sum::<usize>() / pods.len(),
        evaluate / tape,
        decide / tape,
        evaluate - read,
    );
}

fn main() {
    let bytes = bundle(&restricted_rule());
    let bundle = Bundle::load(bytes.as_slice()).expect("a fresh bundle loads");
    println!("the bundle has {} KiB", bytes.len() / 1024);
    let pod = compliant_pod();
    let repeated = vec![pod.clone(); PODS];
    print_ratios("one pod", Status::Pass, &bundle, &repeated);
    let different = different_pods(&pod, PODS as u64);
    print_ratios("different pods", Status::Pass, &bundle, &different);
    let refused = different_pods(POD, PODS as u64);
    print_ratios("different refused pods", Status::Fail, &bundle, &refused);
}
