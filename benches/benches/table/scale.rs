//! Cost of more policies and of larger objects, as JSON and as YAML.

use kpvm::document::DocumentBuffer;
use kpvm::engine::{Engine, Session};
use kpvm_bench::interleave::medians;
use kpvm_bench::size::Size;
use kpvm_bench::workload::{bundle, different_pods, pod_security_policies, repeated_policies};

use crate::broken_rules;
use crate::candidates::{time_decide, time_evaluate, time_evaluate_yaml, time_read, to_yaml};
use crate::rows::{Rows, in_words};

/// Numbers of policies; 0 is the cost of an evaluation without any rule.
const POLICIES: [usize; 6] = [0, 1, 17, 100, 1000, 10_000];

/// Maximum number of Pods times policies evaluated in a round.
const WORK: usize = 4000;

/// Pods of one size.
const PODS: u64 = 50;

/// Policies that all match, over admitted and refused Pods.
pub(crate) fn measure_policies(rows: &mut Rows, pods: [&[Vec<u8>]; 2]) {
    rows.group("W1's policies, again and again: all of them match");
    for count in POLICIES {
        let bytes = bundle(&repeated_policies(count));
        let engine = Engine::load(bytes).expect("a fresh bundle loads");
        let few = (WORK / count.max(1)).clamp(3, pods[0].len());
        let [admitted, refused] = pods.map(|pods| &pods[..few]);
        let (mut all, mut first) = (Session::new(&engine), Session::new(&engine));
        let (mut evaluator, mut decider) = (Session::new(&engine), Session::new(&engine));
        let [evaluate, decide, report, refuse] = medians(
            few,
            [
                &mut |turn| time_evaluate(&mut all, &admitted[turn]),
                &mut |turn| time_decide(&mut first, &admitted[turn]),
                &mut |turn| time_evaluate(&mut evaluator, &refused[turn]),
                &mut |turn| time_decide(&mut decider, &refused[turn]),
            ],
        );
        let [evaluate, decide, report, refuse] = [evaluate, decide, report, refuse].map(in_words);
        rows.figure(
            &match count {
                1 => "1 policy".to_owned(),
                _ => format!("{count} policies"),
            },
            &format!(
                "admitted: all responses {evaluate}, the decision {decide}; \
                 refused: {report}, {refuse}"
            ),
        );
    }
}

/// W1's policies over Pods of three sizes.
pub(crate) fn measure_sizes(rows: &mut Rows, pods: [&[u8]; 2]) {
    rows.group("W1's policies on Pods of three sizes");
    let bytes = bundle(&pod_security_policies());
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    for size in Size::ALL {
        for (outcome, pod) in [("admitted", pods[0]), ("refused", pods[1])] {
            let pod = size.of(pod);
            let is_refused = !broken_rules(&mut Session::new(&engine), &pod).is_empty();
            assert_eq!(is_refused, outcome == "refused", "the rules see no size");
            let json = different_pods(&pod, PODS);
            let yaml: Vec<Vec<u8>> = json.iter().map(|pod| to_yaml(pod)).collect();
            let (mut session, mut other) = (Session::new(&engine), Session::new(&engine));
            let mut buffer = DocumentBuffer::new();
            let [from_json, read] = medians(
                json.len(),
                [
                    &mut |turn| time_evaluate(&mut session, &json[turn]),
                    &mut |turn| time_read(&engine, &mut buffer, &json[turn]),
                ],
            );
            let [from_yaml] = medians(
                yaml.len(),
                [&mut |turn| time_evaluate_yaml(&mut other, &yaml[turn])],
            );
            let bytes = json.iter().map(Vec::len).sum::<usize>() / json.len();
            let [from_json, read, from_yaml] = [from_json, read, from_yaml].map(in_words);
            rows.figure(
                &format!("{:.1} KB, {outcome}", bytes as f64 / 1000.0),
                &format!("from JSON {from_json} (reading everything, alone: {read}), from YAML {from_yaml}"),
            );
        }
    }
}
