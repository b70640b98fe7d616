use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn limits() -> Limits {
    Limits::DEFAULT
}

/// A review as an API server writes it, with all members that are read.
fn whole() -> Value {
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "8d0a7c1e",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "subResource": "scale",
            "requestKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "name": "web",
            "namespace": "shop",
            "operation": "UPDATE",
            "userInfo": {
                "username": "deployer",
                "uid": "u-1",
                "groups": ["system:authenticated", "a \"quoted\" group"],
                "extra": {"scopes": ["x"]}
            },
            "object": {"kind": "Deployment", "spec": {"text": "}\"]\\", "list": [1, {"a": []}]}},
            "oldObject": {"kind": "Deployment", "spec": {}},
            "dryRun": true,
            "options": {"kind": "UpdateOptions"}
        }
    })
}

/// What was read, independent of the buffer.
fn read(text: &[u8]) -> Result<Value, ReviewError> {
    let mut buffer = DocumentBuffer::new();
    let review = Review::read(text, &mut buffer, &limits())?;
    let object = |text: Option<&[u8]>| match text {
        None => Value::Null,
        Some(text) => json!(std::str::from_utf8(text).unwrap_or("no UTF-8")),
    };
    Ok(json!({
        "uid": review.uid,
        "kind": [review.kind.group, review.kind.version, review.kind.kind],
        "resource": [review.resource, review.subresource],
        "name": [review.name, review.namespace],
        "operation": review.operation.name(),
        "user": [review.username, review.user_uid],
        "groups": review.groups,
        "object": object(review.object),
        "oldObject": object(review.old_object),
        "dryRun": review.dry_run,
    }))
}

/// The same through serde_json, for a review whose members have their exact names, no
/// duplicates, and their types.
fn expected(review: &Value) -> Value {
    let request = &review["request"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = |value: &Value| match value {
        Value::Null => Value::Null,
        object => json!(object.to_string()),
    };
    let user = &request["userInfo"];
    let groups = user["groups"].as_array().cloned().unwrap_or_default();
    let groups: Vec<String> = groups.iter().map(text).collect();
    let kind = ["group", "version", "kind"].map(|key| text(&request["kind"][key]));
    json!({
        "uid": text(&request["uid"]),
        "kind": kind,
        "resource": [text(&request["resource"]["resource"]), text(&request["subResource"])],
        "name": [text(&request["name"]), text(&request["namespace"])],
        "operation": text(&request["operation"]),
        "user": [text(&user["username"]), text(&user["uid"])],
        "groups": groups,
        "object": object(&request["object"]),
        "oldObject": object(&request["oldObject"]),
        "dryRun": request["dryRun"].as_bool().unwrap_or(false),
    })
}

#[test]
fn what_a_review_says_is_read() {
    let review = whole();
    assert_eq!(read(review.to_string().as_bytes()), Ok(expected(&review)));
    let indented = format!(" {review:#}\n");
    let found = read(indented.as_bytes()).unwrap();
    let object: Value = serde_json::from_str(found["object"].as_str().unwrap()).unwrap();
    assert_eq!(object, review["request"]["object"]);
    assert_eq!(
        found["groups"],
        json!(["system:authenticated", "a \"quoted\" group"])
    );
}

#[test]
fn a_request_carries_what_the_review_says() {
    let text = whole().to_string();
    let mut buffer = DocumentBuffer::new();
    let review = Review::read(text.as_bytes(), &mut buffer, &limits()).unwrap();
    let request = review.request();
    assert!(matches!(request.object, Some(Input::Json(text)) if text.starts_with(b"{")));
    assert!(matches!(request.old_object, Some(Input::Json(text)) if text.ends_with(b"{}}")));
    assert_eq!(request.operation, Operation::Update);
    assert_eq!(request.kind, Some(review.kind));
    assert_eq!(
        (request.resource, request.subresource),
        ("deployments", "scale")
    );
    let user = request.user.unwrap();
    assert_eq!(
        (user.username, user.uid, user.groups.len()),
        ("deployer", "u-1", 2)
    );
}

/// Hostile row 101: names are case-insensitive, the last duplicate wins, and `null` counts
/// as absent, except where Go has a pointer.
#[test]
fn members_are_found_as_go_finds_them() {
    let rows = [
        (
            r#"{"REQUEST":{"UID":"a","Operation":"CREATE"}}"#,
            json!("a"),
        ),
        (
            r#"{"reque\u017Ft":{"uid":"a","operation":"CREATE"}}"#,
            json!("a"),
        ),
        (
            "{\"reque\u{17F}t\":{\"uid\":\"a\",\"operation\":\"CREATE\"}}",
            json!("a"),
        ),
        (
            r#"{"request":{"uid":"a","uid":"b","operation":"CREATE"}}"#,
            json!("b"),
        ),
        (
            r#"{"request":{"uid":"a","uid":null,"operation":"CREATE"}}"#,
            json!("a"),
        ),
        (
            r#"{"request":{"uid":"a"},"request":{"operation":"CREATE"}}"#,
            json!("a"),
        ),
        (
            r#"{"request":{"u\u0069d":"a\n","operation":"CREATE"}}"#,
            json!("a\n"),
        ),
        (r#"{"request":{"operation":"CREATE"}}"#, json!("")),
        (
            r#"{"request":{"operation":"CREATE","userInfo":null,"kind":null}}"#,
            json!(""),
        ),
    ];
    for (text, uid) in rows {
        assert_eq!(
            read(text.as_bytes()).map(|found| found["uid"].clone()),
            Ok(uid),
            "{text}"
        );
    }
    let rows = [
        (r#""object":{"a":1}"#, json!("{\"a\":1}")),
        (r#""object":null"#, json!(null)),
        (r#""object":{"a":1},"object":null"#, json!("{\"a\":1}")),
        (r#""object":{"a":1},"object":{"b":1}"#, json!("{\"b\":1}")),
        (r#""object":"text""#, json!("\"text\"")),
        (r#""object":[ ]"#, json!("[ ]")),
        (r#""object": 1 "#, json!("1")),
    ];
    for (members, object) in rows {
        let text = format!(r#"{{"request":{{"operation":"CREATE",{members}}}}}"#);
        let found = read(text.as_bytes()).map(|found| found["object"].clone());
        assert_eq!(found, Ok(object), "{text}");
    }
}

#[test]
fn what_is_no_review_is_refused() {
    let rows = [
        ("null", "expected the review to have a request, found none"),
        ("{}", "expected the review to have a request, found none"),
        (
            r#"{"request":null}"#,
            "expected the review to have a request, found none",
        ),
        (
            r#"{"request":{"operation":"CREATE"},"request":null}"#,
            "expected the review to have a request, found none",
        ),
        ("[]", "expected `the review` of the review to be a map"),
        (
            r#"{"request":[]}"#,
            "expected `request` of the review to be a map",
        ),
        (
            r#"{"request":{"uid":1}}"#,
            "expected `request.uid` of the review to be text",
        ),
        (
            r#"{"request":{"dryRun":"yes"}}"#,
            "expected `request.dryRun` of the review to be true or false",
        ),
        (
            r#"{"request":{"userInfo":{"groups":["a",1]}}}"#,
            "expected `request.userInfo.groups` of the review to be a list of texts",
        ),
        (
            r#"{"request":{"operation":"PATCH"}}"#,
            "expected the operation to be CREATE, UPDATE, DELETE or CONNECT, found `PATCH`",
        ),
        (
            r#"{"request":{"uid":1,}}"#,
            "the review cannot be read: expected a key in double quotes, found `}` at line 1, column 21",
        ),
        (
            "",
            "the review cannot be read: expected a value, found the end of the text",
        ),
        (
            "{} x",
            "the review cannot be read: expected the end of the text, found `x`",
        ),
        (
            r#"{"request":{"operation":"CREATE","object":{"a":}}"#,
            "the review cannot be read: expected a value, found `}`",
        ),
        (
            r#"{"request":{"operation":"CREATE","object":{"a":},"object":{}}}"#,
            "the review cannot be read: expected a value, found `}`",
        ),
        // Found by fuzzing: the operation was named, not the invalid JSON.
        (
            r#"{"request":{"operation":"PATCH","object":{"a":}}}"#,
            "the review cannot be read: expected a value, found `}`",
        ),
    ];
    for (text, message) in rows {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
    let bytes = b"{\"request\":{\"operation\":\"CREATE\",\"options\":\"\xFF\"}}";
    assert!(matches!(read(bytes), Err(ReviewError::Json(_))));
    let mut small = limits();
    small.document_bytes = 10;
    let text = whole().to_string();
    let read = Review::read(text.as_bytes(), &mut DocumentBuffer::new(), &small).map(|_| ());
    assert!(matches!(read, Err(ReviewError::Json(_))), "{read:?}");
}

/// Deeper nesting and longer numbers than the fast path supports.
#[test]
fn what_is_unusual_is_read_all_the_same() {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let long = "1".repeat(305);
    let text = format!(
        r#"{{"long":{long},"request":{{"operation":"CREATE","options":{deep},"uid":"a","object":{{}}}}}}"#
    );
    let found = read(text.as_bytes()).unwrap();
    assert_eq!(
        (&found["uid"], &found["object"]),
        (&json!("a"), &json!("{}"))
    );
    let deep = format!("{}1{}", "[".repeat(1001), "]".repeat(1001));
    let text = text.replace(&long, &deep);
    assert!(matches!(read(text.as_bytes()), Err(ReviewError::Json(_))));
}

/// Whether the located objects are JSON.
fn objects_are_sound(found: &Value) -> bool {
    ["object", "oldObject"]
        .iter()
        .all(|role| match found[role].as_str() {
            Some(text) => serde_json::from_str::<Value>(text).is_ok(),
            None => true,
        })
}

proptest! {
    #[test]
    fn damage_is_found_here_or_in_the_objects(
        place in any::<prop::sample::Index>(),
        piece in prop::sample::select(vec![
            "", "\"", "\\", "{", "}", "[", "]", ",", ":", "x", " ", "\n", "null", "\\\"", "\"a\":1,", "\u{1}", "é",
        ]),
        removed in 0usize..3,
    ) {
        let mut text = whole().to_string();
        let place = place.index(text.len());
        text.replace_range(place..(place + removed).min(text.len()), piece);
        match (read(text.as_bytes()), serde_json::from_str::<Value>(&text)) {
            (Ok(found), Ok(review)) => {
                prop_assert!(objects_are_sound(&found), "{text}");
                // Only serde_json detects members that were renamed.
                prop_assert_eq!(&found["operation"], &expected(&review)["operation"]);
            }
            (Ok(found), Err(error)) => prop_assert!(!objects_are_sound(&found), "{text}: {error}"),
            (Err(ReviewError::Json(error)), Ok(_)) => prop_assert!(false, "{text}: {error}"),
            (Err(_), _) => {}
        }
    }

    #[test]
    fn no_beginning_of_a_review_is_one(length in any::<prop::sample::Index>()) {
        let text = whole().to_string();
        let text = &text[..length.index(text.len())];
        prop_assert!(matches!(read(text.as_bytes()), Err(ReviewError::Json(_))));
    }
}
