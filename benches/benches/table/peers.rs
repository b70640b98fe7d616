//! Peers: other programs that do the same work, or less.

use std::hint::black_box;
use std::time::Duration;

use cel::{Context, Program};
use kpvm::document::DocumentBuffer;
use kpvm::engine::{Bundle, Config, Engine, Review, Session};
use kpvm_bench::interleave::{medians, time};
use kpvm_bench::workload::{CEL_EXPRESSIONS, bundle, cel_rule, limited_pod};
use kpvm_semantics::limits::Limits;
use regorus::Value as RegoValue;
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::vm::RegoVM;

use crate::by_hand;
use crate::candidates::{time_evaluate, time_read};
use crate::rows::Rows;

const POLICY: &str = include_str!("pod_security.rego");
const ENTRY: &str = "data.pods.deny";

/// regorus, with the policy compiled once for its VM.
pub(crate) struct Rego {
    vm: RegoVM,
}

impl Rego {
    pub(crate) fn new() -> Self {
        let mut engine = regorus::Engine::new();
        engine
            .add_policy("pods.rego".into(), POLICY.into())
            .expect("it is Rego");
        let policy = engine
            .compile_with_entrypoint(&ENTRY.into())
            .expect("the policy compiles");
        let program =
            Compiler::compile_from_policy(&policy, &[ENTRY]).expect("the policy compiles");
        let mut vm = RegoVM::new();
        vm.load_program(program);
        Self { vm }
    }

    fn denied(&mut self, pod: &[u8]) -> RegoValue {
        let text = std::str::from_utf8(pod).expect("a Pod is text");
        let input = RegoValue::from_json_str(text).expect("a Pod is JSON");
        self.vm.set_input(input);
        self.vm.execute().expect("the policy has a value")
    }

    pub(crate) fn broken_rules(&mut self, pod: &[u8]) -> Vec<String> {
        let denied = self.denied(pod);
        let rules = denied.as_set().expect("it is a set").iter();
        rules
            .map(|rule| rule.as_string().expect("of names").to_string())
            .collect()
    }

    pub(crate) fn time(&mut self, pods: &[Vec<u8>]) -> Duration {
        time(|| {
            for pod in pods {
                black_box(self.denied(black_box(pod)));
            }
        })
    }
}

pub(crate) fn time_sonic(texts: &[Vec<u8>]) -> Duration {
    time(|| {
        for text in texts {
            let value: sonic_rs::Value = sonic_rs::from_slice(black_box(text)).expect("it is JSON");
            black_box(value);
        }
    })
}

pub(crate) fn time_serde(texts: &[Vec<u8>]) -> Duration {
    time(|| {
        for text in texts {
            let value: serde_json::Value =
                serde_json::from_slice(black_box(text)).expect("it is JSON");
            black_box(value);
        }
    })
}

/// Only the checks, on values that were parsed just before, as kpvm's are when evaluated.
pub(crate) fn time_by_hand(pods: &[Vec<u8>]) -> Duration {
    let mut broken = Vec::new();
    let mut total = Duration::ZERO;
    for pod in pods {
        let pod: serde_json::Value = serde_json::from_slice(pod).expect("a Pod is JSON");
        total += time(|| {
            by_hand::check(black_box(&pod), &mut broken);
            black_box(broken.len());
        });
    }
    total
}

/// Reviews as received by a webhook, to decisions.
pub(crate) fn time_reviews(session: &mut Session<'_>, reviews: &[Vec<u8>]) -> Duration {
    let mut buffer = DocumentBuffer::new();
    time(|| {
        for review in reviews {
            let review = Review::read(black_box(review), &mut buffer, &Limits::DEFAULT);
            let review = review.expect("it is a review");
            let decision = session.decide(&review.request());
            let decision = decision.expect("a Pod is a request");
            black_box(decision.is_admitted());
        }
    })
}

/// Four CEL expressions; kpvm's with match block and response, the peer's bare.
pub(crate) fn measure_cel(rows: &mut Rows) {
    let bytes = bundle(&cel_rule());
    let bundle = Bundle::load(bytes).expect("a fresh bundle loads");
    // The time to read everything is subtracted.
    let engine = Engine::with_config(bundle, Config::new().with_projection(false));
    let pods = vec![limited_pod(); 250];
    let value: serde_json::Value = serde_json::from_slice(&pods[0]).expect("a Pod is JSON");
    let mut context = Context::default();
    context
        .add_variable("object", value)
        .expect("a Pod is a value");
    let programs = CEL_EXPRESSIONS.map(|text| Program::compile(text).expect("it is CEL"));
    let mut session = Session::new(&engine);
    let mut buffer = DocumentBuffer::new();
    let [evaluate, read, execute] = medians(
        pods.len(),
        [
            &mut |turn| time_evaluate(&mut session, &pods[turn]),
            &mut |turn| time_read(&engine, &mut buffer, &pods[turn]),
            &mut |turn| {
                time(|| {
                    for _ in turn {
                        for program in &programs {
                            let value = program.execute(black_box(&context));
                            black_box(value.expect("the expression has a value"));
                        }
                    }
                })
            },
        ],
    );
    rows.group("Four CEL expressions over all containers of the Pod");
    rows.time("a rule of them, less reading", evaluate - read);
    rows.time(
        "*peer:* the crate `cel`, its context built already",
        execute,
    );
}
