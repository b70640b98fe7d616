//! Projection and plan change no answer: the same responses, with the same messages, paths
//! and values, and the same errors for invalid JSON.
//!
//! Golden cases are also run both ways (`src/golden.rs`).

use std::path::{Path, PathBuf};

use kpvm::document::Numbers;
use kpvm::engine::{Bundle, Config, Engine, Input, Operation, Request, Session};
use kpvm_bench::workload::{POD, all_policies, compliant_pod, manifests, restricted_rule};
use kpvm_bench::workload::{bundle, cel_rule, expression_rule, twenty_rules, validating_policies};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Everything observable of an evaluation.
fn seen(session: &mut Session<'_>, request: &Request<'_>) -> String {
    let mut text = match session.evaluate(request) {
        Err(error) => format!("{error}"),
        Ok(evaluation) => evaluation
            .responses()
            .map(|response| {
                format!(
                    "{}/{} {} {} {:?} {:?}\n",
                    response.policy(),
                    response.rule(),
                    response.status(),
                    response.message(),
                    response.failure(),
                    response.properties().collect::<Vec<_>>(),
                )
            })
            .collect(),
    };
    let decision = session
        .decide(request)
        .map(|decision| decision.is_admitted());
    text.push_str(&format!("{decision:?}"));
    text
}

/// Engines with all combinations of projection and plans.
struct Engines {
    /// Everything is read, and every rule is run.
    plain: Engine,
    others: [(&'static str, Engine); 3],
}

impl Engines {
    fn new(bytes: &[u8]) -> Self {
        let bundle = Bundle::load(bytes.to_vec()).expect("a fresh bundle loads");
        let engine = |projection, plans| {
            let config = Config::new().with_projection(projection);
            Engine::with_config(bundle.clone(), config.with_plans(plans))
        };
        Self {
            plain: engine(false, false),
            others: [
                ("projection and plan", engine(true, true)),
                ("projection", engine(true, false)),
                ("plan", engine(false, true)),
            ],
        }
    }

    fn sessions(&self) -> Sessions<'_> {
        let session = |(name, engine)| (name, Session::new(engine));
        Sessions {
            plain: Session::new(&self.plain),
            others: self
                .others
                .each_ref()
                .map(|(name, engine)| session((*name, engine))),
        }
    }
}

/// Sessions with all combinations of projection and plans.
struct Sessions<'e> {
    plain: Session<'e>,
    others: [(&'static str, Session<'e>); 3],
}

impl Sessions<'_> {
    fn assert_same(&mut self, request: &Request<'_>, what: &str) -> String {
        let expected = seen(&mut self.plain, request);
        for (name, session) in &mut self.others {
            assert_eq!(expected, seen(session, request), "{name}: {what}");
        }
        expected
    }
}

fn request_of<'r>(object: &'r [u8], old: Option<&'r [u8]>) -> Request<'r> {
    Request {
        object: Some(Input::Json(object)),
        old_object: old.map(Input::Json),
        operation: match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        },
        ..Request::default()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn every_policy_of_the_corpus_says_the_same_of_every_object() {
    let shared = root().join("../shared");
    let mut directories = vec![root().join("corpus")];
    if shared.is_dir() {
        directories.push(shared.join("conformance/kyverno"));
    } else {
        println!("left out: {} is not there", shared.display());
    }
    let (bytes, policies) = all_policies(&directories);
    assert!(policies > 60, "only {policies} policies");
    let engines = Engines::new(&bytes);
    let mut sessions = engines.sessions();
    let mut objects = manifests(&root().join("corpus"));
    let applications = shared.join("manifests");
    if applications.is_dir() {
        objects.extend(manifests(&applications));
    }
    for (object, next) in objects.iter().zip(objects.iter().cycle().skip(1)) {
        let name = String::from_utf8_lossy(object);
        sessions.assert_same(&request_of(object, None), &name);
        sessions.assert_same(&request_of(object, Some(next)), &name);
    }
}

/// Whole numbers that are read as floats are floats for the plan, too: what differs from
/// 2^53 as an integer only is 2^53.
#[test]
fn whole_numbers_mean_the_same_with_and_without_the_plan() {
    let two_to_53 = 1_i64 << 53;
    // Pattern, and whether 2^53 + 1 fits it as an integer and as a float.
    let rows = [
        (format!("'>{two_to_53}'"), true, false),
        (format!("'!{two_to_53}'"), true, false),
        (format!("'<={two_to_53}'"), false, true),
        (format!("{two_to_53}"), false, true),
        (format!("'{two_to_53}'"), false, true),
        ("'>1'".to_owned(), true, true),
    ];
    let number = two_to_53 + 1;
    let object = format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "a"}}, "spec": {{"x": {number}, "deep": {{"list": [{{"x": {number}}}]}}}}}}"#
    );
    for (pattern, as_integer, as_float) in rows {
        for place in ["{x: PATTERN}", "{deep: {list: [{x: PATTERN}]}}"] {
            let place = place.replace("PATTERN", &pattern);
            let policy = format!(
                "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec: {{rules: [{{name: r, match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, validate: {{pattern: {{spec: {place}}}}}}}]}}"
            );
            let mut sources = Sources::new();
            sources.add("policy.yaml", policy);
            let bytes = compile(&sources, &Options::default()).bundle.unwrap();
            let engines = Engines::new(&bytes);
            for (numbers, holds) in [(Numbers::Exact, as_integer), (Numbers::Float, as_float)] {
                let request = Request {
                    numbers,
                    ..request_of(object.as_bytes(), None)
                };
                let what = format!("{place}, {numbers:?}");
                let said = engines.sessions().assert_same(&request, &what);
                assert_eq!(said.contains(" pass "), holds, "{what}: {said}");
            }
        }
    }
}

/// Objects that pass are read once: the projection covers everything that rules read.
#[test]
fn objects_that_pass_are_never_read_again() {
    let pod = compliant_pod();
    let limited = kpvm_bench::workload::limited_pod();
    for (name, sources, pod) in [
        ("patterns", twenty_rules(), &pod),
        ("podSecurity", restricted_rule(), &pod),
        ("JMESPath", expression_rule(), &limited),
        ("CEL", cel_rule(), &limited),
    ] {
        let bytes = bundle(&sources);
        let engine = Engine::load(bytes.clone()).expect("a fresh bundle loads");
        let mut session = Session::new(&engine);
        for _ in 0..3 {
            let decision = session.decide(&request_of(pod, None));
            assert!(decision.expect("a Pod is a request").is_admitted());
        }
        assert_eq!(session.evaluations_repeated(), 0, "{name}");
    }
}

/// What a rule matches by is read as well, although no body looks at it.
#[test]
fn what_rules_match_by_is_never_read_again() {
    for (filter, metadata) in [
        (
            "annotations: {team: 'shop*'}",
            json!({"annotations": {"team": "shop-1", "a": "b"}}),
        ),
        (
            "selector: {matchLabels: {team: 'shop*'}}",
            json!({"labels": {"team": "shop-1", "a": "b"}}),
        ),
    ] {
        let mut sources = kpvm_compiler::source::Sources::new();
        sources.add(
            "policy.yaml",
            format!(
                "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {{name: p}}\nspec:\n  \
                 rules:\n  - name: r\n    match: {{any: [{{resources: {{kinds: [Thing], {filter}}}}}]}}\n    \
                 validate: {{message: m, deny: {{conditions: {{any: [{{key: \
                 '{{{{ request.object.spec.x }}}}', operator: Equals, value: 2}}]}}}}}}\n"
            ),
        );
        let engine = Engine::load(bundle(&sources)).expect("a fresh bundle loads");
        let mut session = Session::new(&engine);
        let mut thing = json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": metadata, "spec": {"x": 1, "y": {"z": [1, 2]}}});
        thing["metadata"]["name"] = json!("t");
        let thing = thing.to_string();
        for _ in 0..3 {
            let found = seen(&mut session, &request_of(thing.as_bytes(), None));
            assert!(found.contains("p/r pass"), "{filter}: {found}");
        }
        assert_eq!(session.evaluations_repeated(), 0, "{filter}");
    }
}

/// Rules that match by resource instead of kind, and values that pass through variables,
/// macros and optionals.
#[test]
fn validating_policies_read_what_they_look_at() {
    let Some(sources) = validating_policies() else {
        return println!("left out: the policies are not there");
    };
    let bytes = bundle(&sources);
    let engine = Engine::load(bytes.clone()).expect("a fresh bundle loads");
    let mut session = Session::new(&engine);
    let pod = compliant_pod();
    assert!(seen(&mut session, &request_of(&pod, None)).contains("pass"));
    assert_eq!(session.evaluations_repeated(), 0);
    // A syntax error in a skipped subtree is still reported.
    let engines = Engines::new(&bytes);
    let mut sessions = engines.sessions();
    let broken = String::from_utf8_lossy(&pod).replacen("\"f:status\":", "\"f:status\"", 1);
    assert_ne!(broken.as_bytes(), pod);
    for object in [POD, &pod, broken.as_bytes()] {
        let name = String::from_utf8_lossy(object);
        sessions.assert_same(&request_of(object, None), &name);
        sessions.assert_same(&request_of(object, Some(POD)), &name);
    }
}

/// Loaders may be nested as deeply as the bundle says; following them terminates.
#[test]
fn variables_inside_variables() {
    const VARIABLES: usize = 2_000;
    let mut policy =
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: v}, spec: {rules: [{\
        name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {cel: {variables: [\
        {name: v0, expression: object.spec}"
            .to_owned();
    for number in 1..VARIABLES {
        let before = number - 1;
        policy.push_str(&format!(
            ", {{name: v{number}, expression: variables.v{before}}}"
        ));
    }
    let last = VARIABLES - 1;
    policy.push_str(&format!(
        "], expressions: [{{expression: variables.v{last} != null}}]}}}}}}]}}}}"
    ));
    let mut sources = kpvm_compiler::source::Sources::new();
    sources.add("variables.yaml", policy);
    let bytes = bundle(&sources);
    let engines = Engines::new(&bytes);
    engines
        .sessions()
        .assert_same(&request_of(POD, None), "variables");
}

/// The first `kind` in the text is only a guess.
#[test]
fn the_last_of_several_kinds_is_the_objects_own() {
    let bytes = bundle(&twenty_rules());
    let engines = Engines::new(&bytes);
    let mut sessions = engines.sessions();
    let pod = String::from_utf8_lossy(POD);
    for front in ["ConfigMap", "Deployment", "Nothing", ""] {
        let text = pod.replacen('{', &format!("{{\"kind\":\"{front}\","), 1);
        let seen = sessions.assert_same(&request_of(text.as_bytes(), None), front);
        assert!(seen.contains("fail"));
    }
}

/// Documents shaped like Pods with random values.
fn value() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(
        "spec containers securityContext capabilities drop add image metadata labels \
         annotations volumes hostPath ports hostPort type seccompProfile status other items"
            .split(' ')
            .collect::<Vec<_>>(),
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(vec!["ALL", "a\\b\"c", "é\n", "", "registry/x:1"])
            .prop_map(Value::from),
        (-1e300..1e300).prop_map(|number: f64| json!(number)),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_is_judged_alike(spec in value(), metadata in value(), status in value(), indented: bool) {
        let bytes = bundle_once();
        let engines = Engines::new(bytes);
        let mut sessions = engines.sessions();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status});
        let text = if indented { format!("{pod:#}") } else { pod.to_string() };
        sessions.assert_same(&request_of(text.as_bytes(), None), &text);
    }

    #[test]
    fn any_damage_is_found_alike(place in 0..POD.len(), byte: u8, cut: bool) {
        let bytes = bundle_once();
        let engines = Engines::new(bytes);
        let mut sessions = engines.sessions();
        let mut text = POD.to_vec();
        if cut {
            text.truncate(place);
        } else if let Some(at) = text.get_mut(place) {
            *at = byte;
        }
        sessions.assert_same(&request_of(&text, None), &String::from_utf8_lossy(&text));
    }
}

fn bundle_once() -> &'static [u8] {
    static BUNDLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BUNDLE.get_or_init(|| bundle(&twenty_rules()))
}

/// Among duplicate keys the last one counts, at any depth.
#[test]
fn members_that_stand_there_twice_are_judged_alike() {
    let bytes = bundle_once();
    let engines = Engines::new(bytes);
    let mut sessions = engines.sessions();
    let pod = String::from_utf8_lossy(&compliant_pod()).into_owned();
    let replacements = [
        r#"null"#,
        r#"[]"#,
        r#"{}"#,
        r#"{"privileged":true}"#,
        r#"[{"name":"a"}]"#,
    ];
    for key in [
        "spec",
        "containers",
        "securityContext",
        "capabilities",
        "volumes",
        "metadata",
    ] {
        let member = format!("\"{key}\":");
        assert!(pod.contains(&member), "{key}");
        for value in replacements {
            let in_front = pod.replacen(&member, &format!("{member}{value},{member}"), 1);
            sessions.assert_same(&request_of(in_front.as_bytes(), None), &in_front);
            let end = pod.rfind('}').expect("an object ends");
            let behind = format!("{},{member}{value}}}", &pod[..end]);
            sessions.assert_same(&request_of(behind.as_bytes(), None), &behind);
        }
    }
}

/// With a duplicate `spec`, alternatives are decided by the last one: a first `spec` that
/// satisfies only the second alternative must not hide that the first alternative holds.
#[test]
fn alternatives_are_those_of_what_counts() {
    let bytes = bundle_once();
    let engines = Engines::new(bytes);
    let mut sessions = engines.sessions();
    let pod: Value = serde_json::from_slice(&compliant_pod()).expect("the Pod is JSON");
    let mut first = pod["spec"].clone();
    first["securityContext"]["runAsNonRoot"] = json!(true);
    for container in first["containers"].as_array_mut().expect("a list") {
        container["securityContext"]["runAsNonRoot"] = json!(true);
    }
    let mut second = first.clone();
    let context = second["securityContext"].as_object_mut();
    context.expect("a map").remove("runAsNonRoot");
    let old_context = second["securityContext"].to_string();
    let in_front =
        first
            .to_string()
            .replacen('{', &format!("{{\"securityContext\":{old_context},"), 1);
    let rows = [
        (format!("\"spec\":{first}"), 0),
        (format!("\"spec\":{second}"), 1),
        (format!("\"spec\":{second},\"spec\":{first}"), 0),
        (format!("\"spec\":{in_front}"), 0),
    ];
    for (spec, alternative) in rows {
        let text =
            format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"}},{spec}}}"#);
        let seen = sessions.assert_same(&request_of(text.as_bytes(), None), &text);
        let message = format!("non-root-everywhere' anyPattern[{alternative}] passed");
        assert!(seen.contains(&message), "{message}: {seen}");
    }
}

/// Skipped subtrees are checked as strictly as others.
#[test]
fn errors_in_what_no_rule_reads_are_errors() {
    let bytes = bundle(&twenty_rules());
    let engines = Engines::new(&bytes);
    let mut sessions = engines.sessions();
    for (member, is_good) in [
        (r#"{"a":1}"#, true),
        (r#"{"a":[1,2,{"b":[]}]}"#, true),
        (r#"{"a":-0.5e+3,"b":"\u00e9\\\"/"}"#, true),
        (" {\n\t\"a\" : [ 1 , 2 ] }\r\n", true),
        (r#"{"a":1e308,"b":true,"c":null,"d":false}"#, true),
        (r#"{"a":1e309}"#, false),
        (r#"{"a":01}"#, false),
        (r#"{"a":-}"#, false),
        (r#"{"a":1.}"#, false),
        (r#"{"a":1e}"#, false),
        (r#"{"a":+1}"#, false),
        (r#"{"a":tru}"#, false),
        (r#"{"a":"\x"}"#, false),
        (r#"{"a":"\u00g0"}"#, false),
        ("{\"a\":\"\n\"}", false),
        ("{\"a\":\"\u{1}\"}", false),
        (r#"{"a":1,}"#, false),
        (r#"{"a" 1}"#, false),
        (r#"{"a":1 "b":2}"#, false),
        (r#"{a:1}"#, false),
        (r#"{1:1}"#, false),
        (r#"{"a":[1,]}"#, false),
        (r#"{"a":[1}"#, false),
        (r#"{"a":{]}"#, false),
        (r#"{"a":[}]}"#, false),
        (r#"{"a":["b":1]}"#, false),
        (r#"[1,2}"#, false),
        (r#"{"a":1]"#, false),
        (r#"{"a":"b"#, false),
    ] {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"}},"status":{member}}}"#
        );
        let request = request_of(text.as_bytes(), None);
        sessions.assert_same(&request, member);
        let found = sessions.plain.evaluate(&request).map(|_| ());
        assert_eq!(found.is_ok(), is_good, "{member}: {found:?}");
    }
    // Nesting counts in skipped subtrees too.
    for depth in [60, 64, 70, 200, 2_000, 100_000] {
        let member = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"{{"kind":"Pod","apiVersion":"v1","status":{member}}}"#);
        let what = format!("nesting {depth}");
        sessions.assert_same(&request_of(text.as_bytes(), None), &what);
    }
}
