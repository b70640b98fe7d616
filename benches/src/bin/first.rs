//! The first evaluation after loading a bundle of many policies, to be counted by callgrind:
//!
//! ```text
//! cargo build --release -p kpvm-bench --bin first
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     --toggle-collect='*first_evaluation*' target/release/first 1003
//! ```
//!
//! Only what happens inside of `first_evaluation` is counted, and `Collected` in the output is
//! the number of instructions. The policies are those of the Pod Security Standards over and
//! over, each time under other names. A second argument `later` counts the tenth evaluation
//! instead of the first.

#![allow(clippy::expect_used, clippy::print_stdout)] // a measurement may stop where the corpus is broken

use kpvm::engine::{Engine, Input, Request, Session};
use kpvm_bench::workload::{bundle, compliant_pod, repeated_policies};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().and_then(|count| count.parse().ok());
    let is_later = arguments.next().as_deref() == Some("later");
    let bytes = bundle(&repeated_policies(count.unwrap_or(1_003)));
    let pod = compliant_pod();
    let request = Request::create(Input::Json(&pod));
    let length = bytes.len();
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    let mut session = Session::new(&engine);
    if is_later {
        for _ in 0..9 {
            session.decide(&request).expect("a Pod is a request");
        }
    }
    let is_admitted = first_evaluation(&mut session, &request);
    println!("{length} bytes of bundle, admitted: {is_admitted}");
}

/// What is counted.
#[inline(never)]
fn first_evaluation(session: &mut Session<'_>, request: &Request<'_>) -> bool {
    let decision = session.decide(request).expect("a Pod is a request");
    decision.is_admitted()
}
