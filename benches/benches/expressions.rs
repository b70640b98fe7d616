//! A deny rule of three conditions over the containers of a 7 KB Pod, compared with the
//! crate `jmespath` on the same three expressions.
//!
//! `cargo bench -p kpvm-bench --bench expressions` prints medians of candidates that take
//! turns (see [`kpvm_bench::interleave`]). kpvm's time is that of the whole rule, including
//! match block, substitution and operators, from the Pod's bytes, minus the time to read
//! them. The peer compiles its expressions once, and evaluates them over its own value,
//! which is already parsed. It is measured both ways it can be called:
//!
//! - `Expression::search`, as documented. On stable Rust that copies the value first.
//! - `interpret`, the underlying evaluator, over a shared value without a copy.

#![allow(clippy::print_stdout, clippy::expect_used, missing_docs)]

mod candidates;

use std::hint::black_box;
use std::time::Duration;

use candidates::{time_evaluate, time_read};
use jmespath::{Context, Expression, Rcvar, Variable, interpret};
use kpvm::document::DocumentBuffer;
use kpvm::engine::{Bundle, Config, Engine, Input, Request, Session, Status};
use kpvm_bench::interleave::{medians, time};
use kpvm_bench::workload::{EXPRESSIONS, bundle, expression_rule, limited_pod};

/// Evaluations timed together.
const PODS: usize = 250;

/// The peer as documented.
fn time_search(expressions: &[Expression<'_>], context: &Variable, times: usize) -> Duration {
    time(|| {
        for _ in 0..times {
            for expression in expressions {
                let found = expression.search(black_box(context));
                black_box(found.expect("the expression has a value"));
            }
        }
    })
}

/// The peer without copying the value.
fn time_interpret(expressions: &[Expression<'_>], context: &Rcvar, times: usize) -> Duration {
    time(|| {
        for _ in 0..times {
            for expression in expressions {
                black_box(interpreted(expression, black_box(context)));
            }
        }
    })
}

fn interpreted(expression: &Expression<'_>, context: &Rcvar) -> Rcvar {
    let runtime = &jmespath::DEFAULT_RUNTIME;
    let mut around = Context::new(expression.as_str(), runtime);
    interpret(context, expression.as_ast(), &mut around).expect("the expression has a value")
}

/// Checks that the rule exists and passes, and that the peer finds the corresponding
/// values.
fn check(engine: &Engine, pod: &[u8], expressions: &[Expression<'_>], context: &Rcvar) {
    let mut session = Session::new(engine);
    let evaluation = session
        .evaluate(&Request::create(Input::Json(pod)))
        .expect("a Pod is a request");
    let statuses: Vec<Status> = evaluation
        .responses()
        .map(|response| response.status())
        .collect();
    assert_eq!(statuses, [Status::Pass]);
    let found: Vec<String> = expressions
        .iter()
        .map(|expression| interpreted(expression, context).to_string())
        .collect();
    let images = "[\"registry.example.com/shop/orders-api:2.41.0\",\
                  \"registry.example.com/platform/exporter:0.9.3\"]";
    assert_eq!(found, ["false", "0", images]);
}

fn main() {
    let bytes = bundle(&expression_rule());
    let bundle = Bundle::load(bytes).expect("a fresh bundle loads");
    // The time to read everything is subtracted.
    let engine = Engine::with_config(bundle, Config::new().with_projection(false));
    let pod = limited_pod();
    let text = String::from_utf8_lossy(&pod);
    let context = Variable::from_json(&format!("{{\"request\":{{\"object\":{text}}}}}"))
        .expect("the Pod is JSON");
    let context = Rcvar::new(context);
    let expressions = EXPRESSIONS.map(|text| jmespath::compile(text).expect("it is JMESPath"));
    check(&engine, &pod, &expressions, &context);

    let pods = vec![pod; PODS];
    let mut session = Session::new(&engine);
    let mut buffer = DocumentBuffer::new();
    let [evaluate, read, search, interpret] = medians(
        pods.len(),
        [
            &mut |turn| time_evaluate(&mut session, &pods[turn]),
            &mut |turn| time_read(&engine, &mut buffer, &pods[turn]),
            &mut |turn| time_search(&expressions, &context, turn.len()),
            &mut |turn| time_interpret(&expressions, &context, turn.len()),
        ],
    );
    let rule = evaluate - read;
    println!(
        "jmespath search {:.1} times and jmespath interpret {:.1} times as long as the rule: \
         rule {rule:.2} us, search {search:.2} us, interpret {interpret:.2} us; from the \
         bytes {evaluate:.2} us, of which reading {read:.2} us",
        search / rule,
        interpret / rule,
    );
}
