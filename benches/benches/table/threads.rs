//! The same work by one thread and by all threads of the machine, each with its own
//! session.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kpvm::engine::{Engine, Input, Request, Session};
use kpvm_bench::workload::{Everything, bundle, pod_security_policies};

use crate::rows::{Rows, Target};

/// Number of rounds; the best one counts, because other load only adds time.
const ROUNDS: usize = 15;

/// Objects evaluated per round.
const OBJECTS: usize = 5000;

/// W2: all available policies over all available manifests.
pub(crate) fn measure_w2(rows: &mut Rows) {
    let Some(everything) = Everything::read() else {
        println!("W2 is left out: ../shared is not there");
        return;
    };
    let engine = Engine::load(everything.bundle.clone()).expect("a fresh bundle loads");
    rows.group(&format!(
        "W2: {} policies ({} rules) over {} manifests",
        everything.policies,
        engine.bundle().tables().rules.len(),
        everything.objects.len()
    ));
    let ratio = measure(rows, &engine, &everything.objects);
    let what = "W2: throughput of two threads to one";
    rows.target(what, Target::AtLeast(1.8), ratio);
}

/// W1, over different Pods.
pub(crate) fn measure_w1(rows: &mut Rows, pods: &[Vec<u8>]) {
    let bytes = bundle(&pod_security_policies());
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    rows.group("W1 admitted, by threads");
    measure(rows, &engine, pods);
}

/// A row for each number of threads, and the speed-up of two over one.
fn measure(rows: &mut Rows, engine: &Engine, objects: &[Vec<u8>]) -> f64 {
    let most = std::thread::available_parallelism().map_or(2, usize::from);
    let mut best = vec![Duration::MAX; most.max(2)];
    for _ in 0..ROUNDS {
        for (number, best) in best.iter_mut().enumerate() {
            *best = run(engine, objects, number + 1).min(*best);
        }
    }
    let bytes: usize = (0..OBJECTS)
        .map(|number| objects[number % objects.len()].len())
        .sum();
    for (number, time) in best.iter().enumerate() {
        let threads = if number == 0 { "thread" } else { "threads" };
        let seconds = time.as_secs_f64();
        let figure = format!(
            "{:.2} µs an object, {:.0} objects/s, {:.0} MB/s",
            seconds * 1e6 / OBJECTS as f64,
            OBJECTS as f64 / seconds,
            bytes as f64 / 1e6 / seconds,
        );
        rows.figure(&format!("all responses, {} {threads}", number + 1), &figure);
    }
    best[0].as_secs_f64() / best[1].as_secs_f64()
}

/// Evaluates everything with a session for each thread.
fn run(engine: &Engine, objects: &[Vec<u8>], threads: usize) -> Duration {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut session = Session::new(engine);
        loop {
            // A few at a time, so that the counter is rarely contended.
            let first = next.fetch_add(8, Ordering::Relaxed);
            if first >= OBJECTS {
                return;
            }
            for number in first..first + 8 {
                let object = &objects[number % objects.len()];
                // Objects that cannot be evaluated fail for all candidates.
                if let Ok(evaluation) = session.evaluate(&Request::create(Input::Json(object))) {
                    std::hint::black_box(evaluation.responses().len());
                }
            }
        }
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    start.elapsed()
}
