//! Nothing of one evaluation is carried into the next, whatever the code of a bundle does: an
//! answer depends on the bundle and the request, not on what the session did before.

use fastrand::Rng;
use kpvm::engine::{Bundle, Config, Engine, Input, Request, Session};
use kpvm_compiler::analysis;

use super::bundle::{SECTION_ENTRY, SECTION_TABLE, objects, real_bundle, seal};
use super::oracle::{compile_policies, policy_with, thing};

/// How often a session evaluates all objects.
const ROUNDS: usize = 3;

/// A ValidatingPolicy with whatever leaves a text behind: messages and annotations that are
/// computed and fail, variables, and a condition.
const VALIDATING: &str = r#"
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: v}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: [pods, things, deployments]}
  matchConditions:
    - {name: named, expression: "object.metadata.name != 'x'"}
  variables:
    - {name: count, expression: "size(object.spec.containers)"}
    - {name: none, expression: object.spec.nothing}
  validations:
    - {expression: "variables.count < 1", messageExpression: "string(object.spec.none.x)"}
    - {expression: "variables.none == 1", message: m}
  auditAnnotations:
    - {key: a, valueExpression: "object.metadata.name + string(variables.count)"}
---
"#;

/// Rules of the other dialects that fail in several ways.
fn other_policies() -> String {
    let bodies = [
        "{message: 'm {{ request.object.metadata.name }}', foreach: [{list: 'request.object.spec.containers', pattern: {image: '*:1 | {{ request.object.metadata.name }}'}}]}",
        "{message: 'm {{ request.object.spec.none }}', deny: {conditions: {any: [{key: '{{ length(request.object.spec.containers) }}', operator: GreaterThan, value: 1, message: 'n {{ request.object.metadata.name }}'}]}}}",
        "{message: m, anyPattern: [{metadata: {labels: {'a*': b}}}, {spec: {=(volumes): [{X(hostPath): null}]}}, {spec: {^(containers): [{name: a}]}}]}",
        "{cel: {variables: [{name: v, expression: 'object.spec.containers.map(c, c.image)'}], expressions: [{expression: \"variables.v.exists(i, i == object.spec.none)\", messageExpression: \"'m' + variables.v[0]\"}]}}",
        "{podSecurity: {level: restricted, version: latest, exclude: [{controlName: Capabilities, images: ['*']}]}}",
    ];
    let policies = bodies.iter().enumerate().map(|(number, body)| {
        let text = policy_with(body);
        text.replace("name: p}", &format!("name: p{number}}}"))
            .replace("Thing]", "Thing, Deployment]")
    });
    policies.collect::<Vec<_>>().join("---\n")
}

/// The place of the section with the code.
fn code_of(bytes: &[u8]) -> std::ops::Range<usize> {
    let names = Bundle::load(bytes).unwrap().section_sizes();
    let number = names.iter().position(|&(name, _)| name == "code").unwrap();
    let entry = SECTION_TABLE + number * SECTION_ENTRY;
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    word(entry + 4)..word(entry + 4) + word(entry + 8)
}

/// Everything that a session answers about an object.
fn answer(session: &mut Session<'_>, object: &[u8]) -> Vec<String> {
    let request = Request::create(Input::Json(object));
    let mut answers: Vec<String> = match session.evaluate(&request) {
        Err(error) => vec![error.to_string()],
        Ok(evaluation) => evaluation
            .responses()
            .map(|response| {
                format!(
                    "{}/{} {} {} {:?} {:?}",
                    response.policy(),
                    response.rule(),
                    response.status(),
                    response.message(),
                    response.failure(),
                    response.properties().collect::<Vec<_>>()
                )
            })
            .collect(),
    };
    let decision = session.decide(&request);
    answers.push(format!("{:?}", decision.map(|found| found.is_admitted())));
    answers
}

/// Compares a session that has evaluated other objects with a new one for each object; and,
/// where the plan is that of the code, with the plan and without.
fn compare(bytes: Vec<u8>, objects: &[Vec<u8>], what: &str) -> bool {
    let Ok(bundle) = Bundle::load(bytes) else {
        return false;
    };
    let mut configs = vec![(
        "without a plan",
        Config::new().with_plans(false).with_projection(false),
    )];
    if analysis::verify(&bundle).is_ok() {
        configs.push(("with a plan", Config::new()));
    }
    let mut first: Option<Vec<Vec<String>>> = None;
    for (name, config) in configs {
        let engine = Engine::with_config(bundle.clone(), config);
        let alone: Vec<_> = objects
            .iter()
            .map(|object| answer(&mut Session::new(&engine), object))
            .collect();
        let mut session = Session::new(&engine);
        for round in 0..ROUNDS {
            for (object, expected) in objects.iter().zip(&alone) {
                let found = answer(&mut session, object);
                assert_eq!(&found, expected, "{what}, {name}, round {round}");
            }
        }
        assert_eq!(
            first.get_or_insert_with(|| alone.clone()),
            &alone,
            "{what}, {name}"
        );
    }
    true
}

/// Row 3 for sessions: code that is changed at random.
#[test]
fn a_session_carries_nothing_into_the_next_evaluation() {
    let mut things = objects();
    things.push(thing(r#"{"containers": [{"name": "a", "image": "b:1"}]}"#).into_bytes());
    let bundles = [
        (
            "ValidatingPolicy",
            compile_policies(VALIDATING).unwrap(),
            3000,
        ),
        (
            "ClusterPolicies",
            compile_policies(&other_policies()).unwrap(),
            2000,
        ),
        ("the corpus", real_bundle(20_000), 500),
    ];
    for (name, bytes, mutations) in bundles {
        assert!(compare(bytes.clone(), &things, name));
        let mut random = Rng::with_seed(7);
        let code = code_of(&bytes);
        let mut loaded = 0;
        for number in 0..mutations {
            let mut changed = bytes.clone();
            for _ in 0..random.usize(1..3) {
                // Most numbers of registers and tables are small.
                changed[random.usize(code.clone())] = match random.bool() {
                    true => random.u8(..128),
                    false => random.u8(..8),
                };
            }
            loaded += usize::from(compare(
                seal(changed),
                &things,
                &format!("{name}, {number}"),
            ));
        }
        assert!(
            loaded > mutations / 20,
            "{name}: only {loaded} of {mutations} load"
        );
        println!("{name}: {loaded} of {mutations} load");
    }
}
