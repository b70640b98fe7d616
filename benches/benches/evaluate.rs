//! From the JSON bytes of a 7 KB Pod to the verdict of twenty rules, compared with
//! simd-json building its tape from the same bytes.
//!
//! `cargo bench -p kpvm-bench --bench evaluate` prints medians of candidates that take
//! turns (see [`kpvm_bench::interleave`]), over one Pod and over many different ones.

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

mod candidates;

use candidates::{time_decide, time_evaluate, time_read, time_simd_json};
use kpvm::document::DocumentBuffer;
use kpvm::engine::{Engine, Input, Request, Session, Status};
use kpvm_bench::interleave::medians;
use kpvm_bench::workload::{POD, bundle, compliant_pod, different_pods, twenty_rules};

/// Evaluations timed together.
const PODS: usize = 250;

/// Number of rules that respond, and number of passes.
fn count(engine: &Engine, pod: &[u8]) -> (usize, usize) {
    let mut session = Session::new(engine);
    let evaluation = session
        .evaluate(&Request::create(Input::Json(pod)))
        .expect("a Pod is a request");
    let passed = evaluation
        .responses()
        .filter(|response| response.status() == Status::Pass);
    (evaluation.responses().len(), passed.count())
}

/// Evaluation and decision compared with reading and simd-json's tape.
fn print_ratios(name: &str, engine: &Engine, pods: &[Vec<u8>]) {
    let (rules, passed) = count(engine, &pods[0]);
    assert!(
        pods.iter().all(|pod| count(engine, pod) == (rules, passed)),
        "{name}: the Pods are alike to the rules"
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
        "{name}, {} bytes, {passed} of {rules} rules pass: simd_json::to_tape {tape:.2} us, \
         evaluate {evaluate:.2} us (ratio {:.2}), decide {decide:.2} us (ratio {:.2}); \
         reading everything, alone {read:.2} us",
        pods.iter().map(Vec::len).sum::<usize>() / pods.len(),
        evaluate / tape,
        decide / tape,
    );
}

fn main() {
    let bytes = bundle(&twenty_rules());
    let twenty = Engine::load(bytes).expect("a fresh bundle loads");
    let pod = compliant_pod();
    assert_eq!(count(&twenty, &pod), (20, 20), "twenty rules pass");
    let different = different_pods(&pod, PODS as u64);
    let repeated = vec![pod.clone(); PODS];
    print_ratios("one pod", &twenty, &repeated);
    print_ratios("different pods", &twenty, &different);
    print_ratios("one refused pod", &twenty, &vec![POD.to_vec(); PODS]);
    let refused = different_pods(POD, PODS as u64);
    print_ratios("different refused pods", &twenty, &refused);
}
