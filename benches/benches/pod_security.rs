//! From the JSON bytes of a 7 KB Pod to the verdict of `podSecurity` at the restricted
//! level, compared with simd-json building its tape from the same bytes.
//!
//! `cargo bench -p kpvm-bench --bench pod_security` prints medians of candidates that take
//! turns (see [`kpvm_bench::interleave`]).

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

mod candidates;

use candidates::{time_decide, time_evaluate, time_read, time_simd_json};
use kpvm::document::DocumentBuffer;
use kpvm::engine::{Engine, Input, Request, Session, Status};
use kpvm_bench::interleave::medians;
use kpvm_bench::workload::{POD, bundle, compliant_pod, different_pods, restricted_rule};

/// Evaluations timed together.
const PODS: usize = 250;

fn status(engine: &Engine, pod: &[u8]) -> Option<Status> {
    let mut session = Session::new(engine);
    let evaluation = session.evaluate(&Request::create(Input::Json(pod)));
    let evaluation = evaluation.expect("a Pod is a request");
    let mut responses = evaluation.responses();
    responses.next().map(|response| response.status())
}

fn print_ratios(name: &str, expected: Status, engine: &Engine, pods: &[Vec<u8>]) {
    assert!(
        pods.iter().all(|pod| status(engine, pod) == Some(expected)),
        "{name}: the Pods are alike to the rule"
    );
    let (mut evaluator, mut decider) = (Session::new(engine), Session::new(engine));
    let mut buffer = DocumentBuffer::new();
    let [evaluate, decide, read, tape] = medians(
        pods.len(),
        [
            &mut |turn| time_evaluate(&mut evaluator, &pods[turn]),
            &mut |turn| time_decide(&mut decider, &pods[turn]),
            &mut |turn| time_read(engine, &mut buffer, &pods[turn]),
            &mut |turn| time_simd_json(&pods[turn]),
        ],
    );
    println!(
        "restricted, {name}, {} bytes, {expected}: simd_json::to_tape {tape:.2} us, \
         evaluate {evaluate:.2} us (ratio {:.2}), decide {decide:.2} us (ratio {:.2}); \
         reading everything, alone {read:.2} us",
        pods.iter().map(Vec::len).sum::<usize>() / pods.len(),
        evaluate / tape,
        decide / tape,
    );
}

fn main() {
    let bytes = bundle(&restricted_rule());
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    println!(
        "the bundle has {} KiB",
        engine.bundle().as_bytes().len() / 1024
    );
    let pod = compliant_pod();
    let repeated = vec![pod.clone(); PODS];
    print_ratios("one pod", Status::Pass, &engine, &repeated);
    let different = different_pods(&pod, PODS as u64);
    print_ratios("different pods", Status::Pass, &engine, &different);
    let refused = different_pods(POD, PODS as u64);
    print_ratios("different refused pods", Status::Fail, &engine, &refused);
}
