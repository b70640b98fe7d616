//! Candidates in the benches of whole evaluations, each timed over a list of Pods. No bench
//! uses all of them.

#![allow(dead_code)]

use std::hint::black_box;
use std::time::Duration;

use kpvm::document::{DocumentBuffer, ReadOptions, TextSource};
use kpvm::engine::{Engine, Input, Operation, Request, Session};
use kpvm_bench::interleave::time;
use kpvm_cli::serialised::write_yaml;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::Tree;
use kpvm_syntax::yaml::{DuplicateKeys, Options, read_all};

/// All outcomes of every Pod, including passes.
pub(crate) fn time_evaluate(session: &mut Session<'_>, pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            let request = Request::create(Input::Json(black_box(pod)));
            let evaluation = session.evaluate(&request).expect("a Pod is a request");
            black_box(evaluation.responses().len());
        }
    })
}

/// An object as people write it: one member or item per line.
pub(crate) fn to_yaml(object: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(object).expect("a Pod is JSON");
    let mut text = Vec::new();
    write_yaml(&value, &mut text).expect("a list takes everything");
    text
}

/// The one object of a text in YAML.
fn read_tree(text: &[u8]) -> Tree {
    let options = Options {
        duplicate_keys: DuplicateKeys::LastWins,
        limits: &Limits::DEFAULT,
    };
    let text = std::str::from_utf8(text).expect("YAML is text");
    let tree = read_all(text, options).pop().expect("an object is there");
    tree.expect("a Pod is YAML")
}

/// Reading YAML, for every Pod.
pub(crate) fn time_read_yaml(pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            black_box(read_tree(black_box(pod)));
        }
    })
}

/// All outcomes of every Pod, from YAML.
pub(crate) fn time_evaluate_yaml(session: &mut Session<'_>, pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            let tree = read_tree(black_box(pod));
            let request = Request::create(Input::Tree(&tree));
            let evaluation = session.evaluate(&request).expect("a Pod is a request");
            black_box(evaluation.responses().len());
        }
    })
}

/// The decision for every Pod.
pub(crate) fn time_decide(session: &mut Session<'_>, pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            let request = Request::create(Input::Json(black_box(pod)));
            let decision = session.decide(&request).expect("a Pod is a request");
            black_box(decision.is_admitted());
        }
    })
}

/// W5: the decision for an update of every Pod that changes nothing.
pub(crate) fn time_update(session: &mut Session<'_>, pods: &[Vec<u8>]) -> Duration {
    time(|| {
        for pod in pods {
            let pod = Input::Json(black_box(pod));
            let request = Request {
                object: Some(pod),
                old_object: Some(pod),
                operation: Operation::Update,
                ..Request::default()
            };
            let decision = session.decide(&request).expect("a Pod is a request");
            black_box(decision.is_admitted());
        }
    })
}

/// The part of the evaluation spent on reading.
pub(crate) fn time_read(
    engine: &Engine,
    buffer: &mut DocumentBuffer,
    pods: &[Vec<u8>],
) -> Duration {
    let (symbols, options) = (engine.bundle().tables().symbols, ReadOptions::default());
    time(|| {
        for pod in pods {
            buffer.clear();
            let root = buffer.read_json(black_box(pod), TextSource::Object, &symbols, &options);
            black_box(root.expect("the Pod is JSON"));
        }
    })
}

/// The evaluation without reading: evaluating with everything read, minus reading
/// everything. The engine must not project.
pub(crate) fn time_evaluate_alone(
    session: &mut Session<'_>,
    buffer: &mut DocumentBuffer,
    pods: &[Vec<u8>],
) -> Duration {
    let both = time_evaluate(session, pods);
    both.saturating_sub(time_read(session.engine(), buffer, pods))
}

/// simd-json modifies its input, so copies are made before the measurement.
pub(crate) fn time_simd_json(pods: &[Vec<u8>]) -> Duration {
    let mut copies = pods.to_vec();
    time(|| {
        for copy in &mut copies {
            black_box(simd_json::to_tape(black_box(copy)).expect("the Pod is JSON"));
        }
    })
}
