//! The workloads W1 to W5 and their peers, in one run, and the table of
//! `docs/performance.md`.
//!
//! `cargo bench -p kpvm-bench --bench table` prints the table; with `-- --write` it also
//! writes it to the page. Candidates take turns (see [`kpvm_bench::interleave`]); the
//! median of each counts, and targets are ratios of two candidates of the same turns.

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

mod by_hand;
#[path = "../candidates/mod.rs"]
mod candidates;
mod machine;
mod peers;
mod rows;
mod scale;
mod start;
mod threads;

use candidates::{time_decide, time_evaluate, time_read, time_simd_json, time_update};
use kpvm::document::DocumentBuffer;
use kpvm::engine::{Config, Engine, Input, Request, Session, Status};
use kpvm_bench::interleave::medians;
use kpvm_bench::workload::{
    About, POD, bundle, compliant_pod, different_pods, further_policies, pod_security_policies,
    review,
};
use peers::Rego;
use rows::{Rows, Target};

/// Evaluations timed together.
const PODS: usize = 250;

/// Policies of W3 that do not match.
const FURTHER: usize = 10_000;

/// Rules that a Pod violates, sorted.
fn broken_rules(session: &mut Session<'_>, pod: &[u8]) -> Vec<String> {
    let request = Request::create(Input::Json(pod));
    let evaluation = session.evaluate(&request).expect("a Pod is a request");
    let broken = evaluation
        .responses()
        .filter(|response| response.status() == Status::Fail);
    let mut rules: Vec<String> = broken.map(|response| response.rule().to_owned()).collect();
    rules.sort();
    rules
}

/// All candidates must agree before any time counts.
fn assert_agreement(session: &mut Session<'_>, rego: &mut Rego, pods: &[Vec<u8>]) {
    for pod in pods {
        let ours = broken_rules(session, pod);
        let mut by_hand = Vec::new();
        let value = serde_json::from_slice(pod).expect("a Pod is JSON");
        by_hand::check(&value, &mut by_hand);
        by_hand.sort_unstable();
        assert_eq!(ours, by_hand, "by hand");
        assert_eq!(ours, rego.broken_rules(pod), "Rego");
    }
}

/// W1: the Pod Security policies on the 7 KB Pod.
fn measure_w1(rows: &mut Rows, name: &str, admitted: bool, pods: &[Vec<u8>]) {
    let bytes = bundle(&pod_security_policies());
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    let (mut evaluator, mut decider) = (Session::new(&engine), Session::new(&engine));
    let whole = Config::new().with_projection(false);
    let whole = Engine::with_config(engine.bundle().clone(), whole);
    let mut whole = Session::new(&whole);
    let mut rego = Rego::new();
    assert_agreement(&mut evaluator, &mut rego, pods);
    assert_eq!(broken_rules(&mut evaluator, &pods[0]).is_empty(), admitted);
    let mut buffer = DocumentBuffer::new();
    let [evaluate, decide, unprojected, read, sonic, tape] = medians(
        pods.len(),
        [
            &mut |turn| time_evaluate(&mut evaluator, &pods[turn]),
            &mut |turn| time_decide(&mut decider, &pods[turn]),
            &mut |turn| time_evaluate(&mut whole, &pods[turn]),
            &mut |turn| time_read(&engine, &mut buffer, &pods[turn]),
            &mut |turn| peers::time_sonic(&pods[turn]),
            &mut |turn| time_simd_json(&pods[turn]),
        ],
    );
    // Separate from the others: slow candidates evict them from the caches.
    let [beside, rego, serde, hand] = medians(
        pods.len(),
        [
            &mut |turn| time_evaluate(&mut evaluator, &pods[turn]),
            &mut |turn| rego.time(&pods[turn]),
            &mut |turn| peers::time_serde(&pods[turn]),
            &mut |turn| peers::time_by_hand(&pods[turn]),
        ],
    );
    let alone = unprojected - read;
    rows.group(&format!("W1 {name}: 17 policies on a 7 KB Pod"));
    rows.time("all responses, from the bytes", evaluate);
    rows.time("the decision, from the bytes", decide);
    rows.time("all responses, everything read", unprojected);
    rows.time("reading everything, alone", read);
    rows.time("evaluating alone", alone);
    rows.time("*peer:* `sonic-rs`, bytes to value", sonic);
    rows.time("*peer:* `simd-json`, bytes to tape", tape);
    rows.time("*peer:* `serde_json`, bytes to value", serde);
    rows.time("*peer:* checks by hand on a parsed value", hand);
    rows.time("*peer:* `regorus` (its VM), bytes to verdict", rego);
    let what = |text: &str| format!("W1 {name}: {text}");
    if admitted {
        let text = "from bytes to verdict, to `sonic-rs` building a value";
        rows.target(&what(text), Target::AtMost(1.0), evaluate / sonic);
        let text = "evaluating alone, to checks by hand";
        rows.target(&what(text), Target::AtMost(4.0), alone / hand);
    }
    let text = "`regorus` to ours, from bytes to verdict";
    rows.target(&what(text), Target::AtLeast(25.0), rego / beside);
}

/// W3: W1 and 10,000 policies that do not match.
fn measure_w3(rows: &mut Rows, pods: &[Vec<u8>]) {
    rows.group("W3: W1 beside 10,000 policies that do not match");
    let few = bundle(&pod_security_policies());
    let few = Engine::load(few).expect("a fresh bundle loads");
    for (name, about) in [
        ("about other kinds", About::OtherKinds),
        (
            "about Pods of other namespaces",
            About::PodsOfOtherNamespaces,
        ),
        ("about Pods by other names", About::PodsByOtherNames),
        ("namespaced, elsewhere", About::NamespacedPolicies),
    ] {
        let mut sources = pod_security_policies();
        sources.add("further.yaml", further_policies(about, FURTHER));
        let many = bundle(&sources);
        let many = Engine::load(many).expect("a fresh bundle loads");
        let (mut alone, mut together) = (Session::new(&few), Session::new(&many));
        let [alone, together] = medians(
            pods.len(),
            [
                &mut |turn| time_evaluate(&mut alone, &pods[turn]),
                &mut |turn| time_evaluate(&mut together, &pods[turn]),
            ],
        );
        rows.time(name, together);
        let what = format!("W3 to W1, {name}");
        rows.target(&what, Target::AtMost(1.05), together / alone);
    }
}

/// W5: an AdmissionReview with both objects.
fn measure_w5(rows: &mut Rows, pods: &[Vec<u8>]) {
    let bytes = bundle(&pod_security_policies());
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    let reviews: Vec<Vec<u8>> = pods.iter().map(|pod| review(pod, pod)).collect();
    let mut session = Session::new(&engine);
    let mut apart = Session::new(&engine);
    let [from_review, from_objects, sonic] = medians(
        reviews.len(),
        [
            &mut |turn| peers::time_reviews(&mut session, &reviews[turn]),
            &mut |turn| time_update(&mut apart, &pods[turn]),
            &mut |turn| peers::time_sonic(&reviews[turn]),
        ],
    );
    rows.group("W5: an AdmissionReview UPDATE with the old object, 14 KB");
    rows.time("the decision, from the review's bytes", from_review);
    rows.time("the decision, from the bytes of both objects", from_objects);
    rows.time("*peer:* `sonic-rs`, the review's bytes to value", sonic);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let mut rows = Rows::default();
    let pod = compliant_pod();
    let different = different_pods(&pod, PODS as u64);
    let refused = different_pods(POD, PODS as u64);
    measure_w1(&mut rows, "admitted", true, &different);
    measure_w1(&mut rows, "refused", false, &refused);
    threads::measure_w2(&mut rows);
    threads::measure_w1(&mut rows, &different);
    measure_w3(&mut rows, &different);
    scale::measure_policies(&mut rows, [&different, &refused]);
    scale::measure_sizes(&mut rows, [&pod, POD]);
    start::measure_w4(&mut rows);
    measure_w5(&mut rows, &different);
    peers::measure_cel(&mut rows);
    start::measure_start(&mut rows);
    let text = rows.to_markdown(&machine::describe());
    println!("{text}");
    if has("--write") {
        rows::write_into_page(&text);
    }
}
