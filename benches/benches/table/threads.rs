//! W2: all policies at hand over the manifests at hand, by one thread and by two.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kpvm::engine::{Bundle, Input, Request, Session};
use kpvm_bench::workload::{all_policies, manifests};

use crate::rows::{Rows, Target};

/// Rounds of which the best counts: what else the machine does only adds time.
const ROUNDS: usize = 15;

/// So often all manifests are evaluated in a round.
const PASSES: usize = 20;

pub(crate) fn measure_w2(rows: &mut Rows) {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let directories: Vec<PathBuf> = vec![
        shared.join("conformance"),
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus"),
    ];
    let objects = manifests(&shared.join("manifests"));
    if objects.is_empty() {
        println!("W2 is left out: {} is not there", shared.display());
        return;
    }
    let (bytes, policies) = all_policies(&directories);
    let bundle = Bundle::load(bytes.as_slice()).expect("a fresh bundle loads");
    let (mut one, mut two) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        one = one.min(run(&bundle, &objects, 1));
        two = two.min(run(&bundle, &objects, 2));
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / (objects.len() * PASSES) as f64;
    rows.group(&format!(
        "W2: {policies} policies ({} rules) over {} manifests",
        bundle.tables().rules.len(),
        objects.len()
    ));
    rows.time("all responses to an object, one thread", each(one));
    rows.time("two threads", each(two));
    let ratio = one.as_secs_f64() / two.as_secs_f64();
    rows.target(
        "W2: throughput of two threads to one",
        Target::AtLeast(1.8),
        ratio,
    );
}

/// Evaluates everything with a session for each thread.
fn run(bundle: &Bundle<'_>, objects: &[Vec<u8>], threads: usize) -> Duration {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut session = Session::new(bundle);
        loop {
            // A few at a time, so that the counter is hardly ever contended.
            let first = next.fetch_add(8, Ordering::Relaxed);
            if first >= objects.len() * PASSES {
                return;
            }
            for number in first..first + 8 {
                let object = &objects[number % objects.len()];
                // What cannot be evaluated cannot on either side.
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
