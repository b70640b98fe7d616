//! Cost in counts that are the same on every machine: steps of rules (executed instructions
//! plus work that depends on sizes) and bytes of bundles. A count may exceed the number
//! recorded here by at most 2 %.

use kpvm::engine::{Bundle, Config, Engine, Input, Request, Session, Status};
use kpvm_bench::workload::{
    About, POD, bundle, cel_rule, compliant_pod, expression_rule, further_policies, limited_pod,
    pod_security_policies, restricted_rule,
};
use kpvm_compiler::source::Sources;
use kpvm_semantics::limits::Limits;

/// A count and its recorded value.
struct Count {
    what: &'static str,
    found: u64,
    recorded: u64,
}

/// Fails with all grown counts, so that they can be recorded together.
fn assert_not_grown(counts: &[Count]) {
    let grown = counts
        .iter()
        .filter(|count| count.found > count.recorded + count.recorded / 50);
    let grown: Vec<String> = grown
        .map(|count| format!("{}: {} -> {}", count.what, count.recorded, count.found))
        .collect();
    assert!(grown.is_empty(), "more than recorded: {grown:#?}");
}

/// The least fuel that gives the same responses as the default.
fn steps(sources: &Sources, object: &[u8]) -> u64 {
    let bytes = bundle(sources);
    let bundle = Bundle::load(bytes).expect("a fresh bundle loads");
    let respond = |fuel: u64| {
        let limits = Limits {
            request_fuel: fuel,
            ..Limits::DEFAULT
        };
        let config = Config::new().with_limits(limits);
        let engine = Engine::with_config(bundle.clone(), config);
        let mut session = Session::new(&engine);
        let request = Request::create(Input::Json(object));
        let evaluation = session.evaluate(&request).expect("a Pod is a request");
        let responses = evaluation.responses();
        let of_each = responses.map(|it| (it.status(), it.message().into_owned()));
        of_each.collect::<Vec<_>>()
    };
    let (mut too_little, mut enough) = (0, Limits::DEFAULT.request_fuel);
    let responses = respond(enough);
    let is_expected = |status| matches!(status, Status::Pass | Status::Fail);
    assert!(!responses.is_empty() && responses.iter().all(|(status, _)| is_expected(*status)));
    assert_ne!(respond(too_little), responses, "steps are counted");
    while too_little + 1 < enough {
        let middle = too_little.midpoint(enough);
        match respond(middle) == responses {
            true => enough = middle,
            false => too_little = middle,
        }
    }
    enough
}

/// W1 plus 100 policies.
fn with_further(about: About) -> Sources {
    let mut sources = pod_security_policies();
    sources.add("further.yaml", further_policies(about, 100));
    sources
}

#[test]
fn evaluations_take_no_more_steps_than_recorded() {
    let (admitted, limited) = (compliant_pod(), limited_pod());
    let count = |what, sources: Sources, object: &[u8], recorded| Count {
        what,
        found: steps(&sources, object),
        recorded,
    };
    let w1 = pod_security_policies;
    let of_others = About::PodsOfOtherNamespaces;
    assert_not_grown(&[
        count("W1 admitted", w1(), &admitted, 583),
        count("W1 refused", w1(), POD, 634),
        count(
            "with policies for others",
            with_further(of_others),
            &admitted,
            583,
        ),
        count("podSecurity restricted", restricted_rule(), &admitted, 224),
        count("three expressions", expression_rule(), &limited, 117),
        count("four CEL expressions", cel_rule(), &limited, 48),
    ]);
}

#[test]
fn bundles_take_no_more_bytes_than_recorded() {
    let count = |what, sources: Sources, recorded| Count {
        what,
        found: bundle(&sources).len() as u64,
        recorded,
    };
    let of_others = About::PodsOfOtherNamespaces;
    assert_not_grown(&[
        count("W1", pod_security_policies(), 181_178),
        count("with policies for others", with_further(of_others), 302_724),
        count("podSecurity restricted", restricted_rule(), 65_850),
        count("three expressions", expression_rule(), 4_265),
        count("four CEL expressions", cel_rule(), 4_518),
    ]);
}
