//! Deliberate differences from Kyverno (`docs/differences.md`): each row with the expected
//! behaviour.

use crate::common::{create, letters, policy, rule};
use kpvm::engine::{Bundle, Config, Engine, Input, Request, Session, Status};

const PODS: &str = "match: {any: [{resources: {kinds: [Pod]}}]}";

fn pod(spec: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "web"}}, "spec": {spec}}}"#
    )
}

/// Hostile inputs, row 67: texts of a resource never determine the kind of an outcome.
#[test]
fn phrases_of_error_texts_in_a_resource_change_nothing() {
    let denied = policy(&[rule("r", PODS, "{pattern: {spec: {host: good}}}")], "");
    for phrase in [
        "conditional anchor mismatch",
        "global anchor mismatch",
        "negation anchor matched in resource",
        "Unknown key",
        "failed to evaluate preconditions",
    ] {
        let responses = create(&denied, &pod(&format!(r#"{{"host": "{phrase}"}}"#)));
        assert_eq!(letters(&responses), ["r F"], "{phrase}");
    }
}

/// Hostile inputs, row 68: the result of a variable is not searched for variables.
#[test]
fn text_of_a_resource_is_not_substituted_again() {
    let validate = "{message: 'is {{ request.object.spec.text }}!', deny: {}}";
    let responses = create(
        &policy(&[rule("r", PODS, validate)], ""),
        &pod(r#"{"text": "{{ request.operation }}"}"#),
    );
    assert_eq!(responses[0].message, "is {{ request.operation }}!");
}

/// A value between the quotes of an outer variable is data: it cannot end the quotes.
#[test]
fn an_inner_variable_cannot_leave_its_quotes() {
    let key = r#"'{{ request.object.spec.map.\"{{ request.object.spec.key }}\" || `"none"` }}'"#;
    let key = key.replace("\\\"", "\"");
    let validate = format!(
        "{{deny: {{conditions: {{any: [{{key: {key}, operator: Equals, value: secret}}]}}}}}}"
    );
    let policy = policy(&[rule("r", PODS, &validate)], "");
    let with_key = |key: &str| {
        pod(&format!(
            r#"{{"map": {{"a": "secret", "a b": "open"}}, "key": {key}}}"#
        ))
    };
    assert_eq!(letters(&create(&policy, &with_key(r#""a""#))), ["r F"]);
    assert_eq!(letters(&create(&policy, &with_key(r#""a b""#))), ["r P"]);
    // As an expression this would be map."x" || map."a".
    let injected = with_key(r#""x\" || request.object.spec.map.\"a""#);
    assert_eq!(letters(&create(&policy, &injected)), ["r E"]);
}

/// Neither messages nor the values found show the data of a Secret.
#[test]
fn data_of_a_secret_is_never_shown() {
    let secrets = "match: {any: [{resources: {kinds: [Secret]}}]}";
    let validations = [
        "{pattern: {FIELD: {(key): other}}}",
        "{pattern: {FIELD: {(key): '{{ request.operation }}'}}}",
        "{pattern: {FIELD: {key: other}}}",
        "{pattern: {FIELD: {key: '{{ request.operation }}'}}}",
        "{pattern: {FIELD: {key: {a: b}}}}",
        "{pattern: {FIELD: {X(key): null}}}",
        "{anyPattern: [{FIELD: {key: other}}, {FIELD: {=(key): other}}]}",
        "{foreach: [{list: 'request.object.[@]', pattern: {FIELD: {key: other}}}]}",
    ];
    for field in ["data", "stringData"] {
        let object = format!(
            r#"{{"apiVersion": "v1", "kind": "Secret", "metadata": {{"name": "s"}}, "{field}": {{"key": "aHVzaA=="}}}}"#
        );
        for validate in validations {
            let validate = validate.replace("FIELD", field);
            let bytes = crate::common::compile(&policy(&[rule("r", secrets, &validate)], ""));
            let engine = Engine::load(bytes.unwrap()).unwrap();
            let mut session = Session::new(&engine);
            let request = Request::create(Input::Json(object.as_bytes()));
            let evaluation = session.evaluate(&request).unwrap();
            let response = evaluation.responses().next().unwrap();
            let shown = format!("{} {:?}", response.message(), response.failure());
            assert_ne!(response.status(), Status::Pass, "{validate}: {shown}");
            assert!(!shown.contains("aHVzaA"), "{validate}: {shown}");
        }
    }
}

/// Of several labels that match a wildcard key, the first in byte order is used.
#[test]
fn a_wildcard_key_takes_the_first_label_in_byte_order() {
    let validate = "{pattern: {metadata: {labels: {'team/*': good}}}}";
    let labelled = |labels: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "web", "labels": {labels}}}}}"#
        )
    };
    let policy = policy(&[rule("r", PODS, validate)], "");
    let first_good = labelled(r#"{"team/b": "bad", "team/a": "good"}"#);
    let first_bad = labelled(r#"{"team/b": "good", "team/a": "bad"}"#);
    assert_eq!(letters(&create(&policy, &first_good)), ["r P"]);
    assert_eq!(letters(&create(&policy, &first_bad)), ["r F"]);
}

/// An embedder can disable expressions that are parsed at run time.
#[test]
fn expressions_read_at_run_time_can_be_switched_off() {
    let validate = "{deny: {conditions: {any: [{key: '{{ {{ request.object.spec.text }} }}', operator: Equals, value: x}]}}}";
    let bytes = crate::common::compile(&policy(&[rule("r", PODS, validate)], "")).unwrap();
    let object = pod(r#"{"text": "request.operation"}"#);
    let request = Request::create(Input::Json(object.as_bytes()));
    let status = |config| {
        let bundle = Bundle::load(bytes.clone()).unwrap();
        let engine = Engine::with_config(bundle, config);
        let mut session = Session::new(&engine);
        let evaluation = session.evaluate(&request).unwrap();
        evaluation
            .responses()
            .next()
            .map(|response| response.status())
    };
    assert_eq!(status(Config::new()), Some(Status::Pass));
    let config = Config::new().with_runtime_expressions(false);
    assert_eq!(status(config), Some(Status::Error));
}
