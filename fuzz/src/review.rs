//! AdmissionReviews: decoding against a naive decoder, and the answer read back.

use kpvm::document::DocumentBuffer;
use kpvm::engine::{
    Bundle, Config, Engine, FailurePolicy, Operation, Review, ReviewError, ReviewResponse, Session,
};
use kpvm_bench::workload::{POD, bundle, review, twenty_rules};
use kpvm_semantics::limits::Limits;
use serde_json::Value;
use std::sync::OnceLock;

use crate::answers::{LIMITS, OBJECTS};
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "review",
    run,
    seeds,
    words: &[
        "\"request\":{",
        "\"uid\":\"1\"",
        "\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"}",
        "\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"}",
        "\"subResource\":\"status\"",
        "\"name\":",
        "\"namespace\":",
        "\"operation\":\"CREATE\"",
        "\"UPDATE\"",
        "\"DELETE\"",
        "\"CONNECT\"",
        "\"userInfo\":{",
        "\"username\":",
        "\"groups\":[\"a\"]",
        "\"object\":",
        "\"oldObject\":",
        "\"dryRun\":true",
        "null",
        "\\u0041",
        "\"Request\":",
        "{}",
        "}}",
    ],
    max_bytes: 4 << 10,
};

/// Runs the harness.
pub fn run(input: &[u8]) {
    let mut buffer = DocumentBuffer::new();
    let review = match Review::read(input, &mut buffer, &Limits::DEFAULT) {
        Ok(review) => review,
        Err(ReviewError::Json(_)) => return,
        Err(error) => {
            assert!(std::str::from_utf8(input).is_ok(), "not UTF-8, but {error}");
            let skipped = serde_json::from_slice::<serde::de::IgnoredAny>(input);
            assert!(skipped.is_ok(), "not JSON, but {error}");
            return;
        }
    };
    compare(&review, input);
    answer(&review);
}

/// Members as a naive decoder finds them, if the text is plain: no name is there twice or in
/// other letters.
fn compare(review: &Review<'_>, input: &[u8]) {
    // serde_json keeps no duplicates, so texts that have some are printed shorter.
    let Ok(value) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    let text = String::from_utf8_lossy(input);
    let lower_case = text.to_lowercase();
    let plain = |name: &str| {
        let quoted = format!("\"{name}\"");
        let found = lower_case.matches(&quoted.to_lowercase()).count();
        found <= 1 && found == text.matches(&quoted).count()
    };
    let request = &value["request"];
    if !plain("request") || !request.is_object() || input.contains(&b'\\') {
        return;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (name, found) in [
        ("uid", review.uid),
        ("subResource", review.subresource),
        ("namespace", review.namespace),
    ] {
        if plain(name) {
            // `uid` of the user has the same name.
            assert_eq!(text(&request[name]), found, "{name}");
        }
    }
    if plain("operation") {
        assert_eq!(
            Operation::parse(&text(&request["operation"])),
            Some(review.operation)
        );
    }
    if plain("dryRun") {
        assert_eq!(request["dryRun"].as_bool().unwrap_or(false), review.dry_run);
    }
    for (name, found) in [("object", review.object), ("oldObject", review.old_object)] {
        if plain(name) {
            let found = found.and_then(|text| serde_json::from_slice::<Value>(text).ok());
            assert_eq!(request[name], found.unwrap_or(Value::Null), "{name}");
        }
    }
}

/// The answer is JSON that says what was decided, whether all rules are evaluated or only until
/// the first refusal.
fn answer(review: &Review<'_>) {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| {
        let bundle = Bundle::load(bundle(&twenty_rules())).expect("a fresh bundle loads");
        Engine::with_config(bundle, Config::new().with_limits(LIMITS))
    });
    let mut session = Session::new(engine);
    let request = review.request();
    let all = match session.evaluate(&request) {
        Ok(evaluation) => {
            ReviewResponse::from_responses(review, evaluation.responses(), FailurePolicy::Fail)
        }
        Err(error) => ReviewResponse::denied(review.uid, error.to_string()),
    };
    let first = match session.decide(&request) {
        Ok(decision) => {
            ReviewResponse::from_responses(review, decision.refusal(), FailurePolicy::Fail)
        }
        Err(error) => ReviewResponse::denied(review.uid, error.to_string()),
    };
    assert_eq!(all.is_allowed(), first.is_allowed());
    let full = all
        .with_code(403)
        .with_warning(review.name)
        .with_audit_annotation(review.username, review.namespace);
    for response in [full, first] {
        let text = response.to_json();
        let read: Value = serde_json::from_str(&text).expect("a response is JSON");
        let read = &read["response"];
        assert_eq!(read["uid"], review.uid);
        assert_eq!(read["allowed"], response.is_allowed());
        assert_eq!(
            read["status"]["message"].as_str().unwrap_or_default(),
            response.message()
        );
        let warnings: Vec<&str> = response.warnings().iter().map(String::as_str).collect();
        let read: Vec<&str> = read["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(read, warnings);
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![
        review(OBJECTS[0], OBJECTS[1]),
        review(OBJECTS[1], b"null"),
        review(b"{}", POD),
    ];
    seeds.retain(|seed| seed.len() <= 4 << 10);
    for text in [
        r#"{"request":{"uid":"1","operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}}}"#,
        r#"{"Request":{"UID":"1","operation":"DELETE","oldObject":{"kind":"Pod"},"object":null}}"#,
        r#"{"request":null,"request":{"uid":"\u0041","operation":"CONNECT"}}"#,
        r#"{"request":{"operation":"x"}}"#,
        "[]",
    ] {
        seeds.push(text.as_bytes().to_vec());
    }
    seeds
}
