//! A warm session evaluates a request that passes without allocating.

use kpvm::engine::{Engine, Input, Request, Session, Status};
use kpvm_bench::workload::{
    bundle, cel_rule, compliant_pod, different_pods, expression_rule, limited_pod, twenty_rules,
};
use kpvm_compiler::source::Sources;

#[test]
fn the_second_evaluation_of_a_request_that_passes_allocates_nothing() {
    let bytes = bundle(&twenty_rules());
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    let pod = compliant_pod();
    let mut pods = different_pods(&pod, 20);
    pods.push(pod);
    let mut session = Session::new(&engine);
    let mut evaluate_all = || {
        for pod in &pods {
            let request = Request::create(Input::Json(pod));
            let evaluation = session.evaluate(&request).expect("a Pod is a request");
            assert_eq!(evaluation.responses().len(), 20);
            let decision = session.decide(&request).expect("a Pod is a request");
            assert!(decision.is_admitted());
        }
    };
    let first = allocation_counter::measure(&mut evaluate_all);
    assert!(first.count_total > 0, "the counter counts");
    let second = allocation_counter::measure(&mut evaluate_all);
    assert_eq!(second.count_total, 0);
}

const ASSERTION: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        assert:
          object:
            kind: Pod
            spec:
              (hostNetwork == `true`): false
              ~.containers:
                (contains(image, ':')): true
                (length(name) < `64`): true
";

#[test]
fn the_second_evaluation_of_an_assertion_allocates_nothing() {
    let mut sources = Sources::new();
    sources.add("assertion.yaml", ASSERTION);
    let bytes = bundle(&sources);
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    let pod = compliant_pod();
    let mut session = Session::new(&engine);
    let mut evaluate = || {
        let request = Request::create(Input::Json(&pod));
        let evaluation = session.evaluate(&request).expect("a Pod is a request");
        let statuses = evaluation.responses().map(|response| response.status());
        assert!(statuses.eq([Status::Pass]));
    };
    let first = allocation_counter::measure(&mut evaluate);
    assert!(first.count_total > 0, "the counter counts");
    let second = allocation_counter::measure(&mut evaluate);
    assert_eq!(second.count_total, 0);
}

#[test]
fn the_second_evaluation_of_three_expressions_allocates_nothing() {
    allocates_nothing(&expression_rule());
}

#[test]
fn the_second_evaluation_of_four_cel_expressions_allocates_nothing() {
    allocates_nothing(&cel_rule());
}

fn allocates_nothing(sources: &Sources) {
    let bytes = bundle(sources);
    let engine = Engine::load(bytes).expect("a fresh bundle loads");
    let pod = limited_pod();
    let mut session = Session::new(&engine);
    let mut evaluate = || {
        let request = Request::create(Input::Json(&pod));
        let evaluation = session.evaluate(&request).expect("a Pod is a request");
        assert_eq!(evaluation.responses().len(), 1);
        let mut responses = evaluation.responses();
        assert!(responses.all(|response| response.status() == Status::Pass));
        drop(responses);
        let decision = session.decide(&request).expect("a Pod is a request");
        assert!(decision.is_admitted());
    };
    let first = allocation_counter::measure(&mut evaluate);
    assert!(first.count_total > 0, "the counter counts");
    let second = allocation_counter::measure(&mut evaluate);
    assert_eq!(second.count_total, 0);
}
