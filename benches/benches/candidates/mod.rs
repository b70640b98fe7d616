//! What takes turns in the benches of whole evaluations, each timed over a list of Pods.

use std::hint::black_box;
use std::time::Duration;

use kpvm::document::{DocumentBuffer, ReadOptions, TextSource};
use kpvm::engine::{Bundle, Input, Request, Session};
use kpvm_bench::interleave::time;

/// All outcomes of every Pod, passes included.
pub(crate) fn time_evaluate(session: &mut Session<'_>, pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            let request = Request::create(Input::Json(black_box(pod)));
            let evaluation = session.evaluate(&request).expect("a Pod is a request");
            black_box(evaluation.responses().len());
        }
    })
}

/// The decision on every Pod.
pub(crate) fn time_decide(session: &mut Session<'_>, pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            let request = Request::create(Input::Json(black_box(pod)));
            let decision = session.decide(&request).expect("a Pod is a request");
            black_box(decision.is_admitted());
        }
    })
}

/// What the evaluation spends on reading.
pub(crate) fn time_read(
    bundle: &Bundle<'_>,
    buffer: &mut DocumentBuffer,
    pods: &[Vec<u8>],
) -> Duration {
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
pub(crate) fn time_simd_json(pods: &[Vec<u8>]) -> Duration {
    let mut copies = pods.to_vec();
    time(|| {
        for copy in &mut copies {
            black_box(simd_json::to_tape(black_box(copy)).expect("the Pod is JSON"));
        }
    })
}
