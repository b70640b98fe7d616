//! Workloads to be counted by callgrind, which no noise of the machine reaches:
//!
//! ```text
//! cargo build --release -p kpvm-bench --bin instructions
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     --toggle-collect='*counted*' target/release/instructions first
//! ```
//!
//! Only what happens inside of `counted` is counted, and `Collected` in the output is the number
//! of instructions. The workloads:
//!
//! | workload | what is counted |
//! |---|---|
//! | `first` | the first decision after loading 1,003 policies: those of the Pod Security Standards over and over, each time under other names |
//! | `later` | the tenth decision of the same |
//! | `admitted`, `refused` | W1: all responses to 100 Pods, after another 100 |
//! | `w2` | W2: all responses to every manifest, once more |

#![allow(clippy::expect_used, clippy::print_stdout)] // a measurement may stop where the corpus is broken

use kpvm::engine::{Engine, Input, Request, Session, Status};
use kpvm_bench::workload::{
    Everything, POD, bundle, compliant_pod, different_pods, pod_security_policies,
    repeated_policies,
};

fn main() {
    let workload = std::env::args().nth(1).unwrap_or_default();
    let (bundle, warm, counted_objects) = match workload.as_str() {
        "first" => (repeated(), Vec::new(), vec![compliant_pod()]),
        "later" => (repeated(), vec![compliant_pod(); 9], vec![compliant_pod()]),
        "admitted" => of_w1(&compliant_pod()),
        "refused" => of_w1(POD),
        "w2" => {
            let Some(everything) = Everything::read() else {
                println!("skipped: ../shared is absent");
                return;
            };
            println!("{} policies", everything.policies);
            let objects = everything.objects;
            (everything.bundle, objects.clone(), objects)
        }
        _ => {
            println!("expected one of first, later, admitted, refused, w2; found `{workload}`");
            return;
        }
    };
    let length = bundle.len();
    let engine = Engine::load(bundle).expect("a fresh bundle loads");
    let mut session = Session::new(&engine);
    let decides = ["first", "later"].contains(&workload.as_str());
    run(&mut session, &warm, decides);
    let broken = counted(&mut session, &counted_objects, decides);
    let objects = counted_objects.len();
    println!("{length} bytes of bundle, {objects} objects, {broken} broken rules");
}

fn repeated() -> Vec<u8> {
    bundle(&repeated_policies(1_003))
}

fn of_w1(pod: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut pods = different_pods(pod, 200);
    let counted_pods = pods.split_off(100);
    (bundle(&pod_security_policies()), pods, counted_pods)
}

/// What is counted.
#[inline(never)]
fn counted(session: &mut Session<'_>, objects: &[Vec<u8>], decides: bool) -> usize {
    run(session, objects, decides)
}

/// Number of rules that the objects break; of decisions at most one an object.
fn run(session: &mut Session<'_>, objects: &[Vec<u8>], decides: bool) -> usize {
    let mut broken = 0;
    for object in objects {
        let request = Request::create(Input::Json(object));
        if decides {
            let decision = session.decide(&request).expect("an object is a request");
            broken += usize::from(!decision.is_admitted());
        } else {
            let evaluation = session.evaluate(&request).expect("an object is a request");
            let responses = evaluation.responses();
            broken += responses
                .filter(|response| response.status() == Status::Fail)
                .count();
        }
    }
    broken
}
