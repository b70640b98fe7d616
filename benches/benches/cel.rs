//! Four CEL expressions over all containers of a 7 KB Pod, compared with the crate `cel` on
//! the same four.
//!
//! `cargo bench -p kpvm-bench --bench cel` prints medians of candidates that take turns
//! (see [`kpvm_bench::interleave`]). kpvm's time is that of the whole rule from the Pod's
//! bytes, including match block and response, minus the time to read them. The peer
//! compiles its expressions once, and evaluates them in an existing context.

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

mod candidates;

use std::hint::black_box;
use std::time::Duration;

use candidates::{time_evaluate, time_read};
use cel::{Context, Program, Value};
use kpvm::document::DocumentBuffer;
use kpvm::engine::{Bundle, Config, Engine, Input, Request, Session, Status};
use kpvm_bench::interleave::{medians, time};
use kpvm_bench::workload::{CEL_EXPRESSIONS, bundle, cel_rule, limited_pod};

/// Evaluations timed together.
const PODS: usize = 250;

/// The peer, with an existing context.
fn time_execute(programs: &[Program], context: &Context<'_, '_>, times: usize) -> Duration {
    time(|| {
        for _ in 0..times {
            for program in programs {
                let value = program.execute(black_box(context));
                black_box(value.expect("the expression has a value"));
            }
        }
    })
}

fn main() {
    let bytes = bundle(&cel_rule());
    let bundle = Bundle::load(bytes).expect("a fresh bundle loads");
    // The time to read everything is subtracted.
    let engine = Engine::with_config(bundle, Config::new().with_projection(false));
    let pod = limited_pod();
    let value: serde_json::Value = serde_json::from_slice(&pod).expect("the Pod is JSON");
    let mut context = Context::default();
    context
        .add_variable("object", value)
        .expect("the Pod is a value");
    let programs = CEL_EXPRESSIONS.map(|text| Program::compile(text).expect("it is CEL"));
    for program in &programs {
        let found = program
            .execute(&context)
            .expect("the expression has a value");
        assert_eq!(found, Value::Bool(true));
    }
    let mut session = Session::new(&engine);
    let evaluation = session
        .evaluate(&Request::create(Input::Json(&pod)))
        .expect("a Pod is a request");
    let statuses: Vec<Status> = evaluation
        .responses()
        .map(|response| response.status())
        .collect();
    assert_eq!(statuses, [Status::Pass]);

    let pods = vec![pod; PODS];
    let mut buffer = DocumentBuffer::new();
    let [evaluate, read, execute] = medians(
        pods.len(),
        [
            &mut |turn| time_evaluate(&mut session, &pods[turn]),
            &mut |turn| time_read(&engine, &mut buffer, &pods[turn]),
            &mut |turn| time_execute(&programs, &context, turn.len()),
        ],
    );
    let rule = evaluate - read;
    println!(
        "the crate cel {:.1} times as long as the rule: rule {rule:.2} us, cel {execute:.2} us; \
         from the bytes {evaluate:.2} us, of which reading {read:.2} us",
        execute / rule,
    );
}
