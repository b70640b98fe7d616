//! The worked cases of docs/spec/cel.md for ValidatingPolicies, and its section 6. Sections
//! and cases below are of that page.

use crate::common::{Response, compile_with, evaluate};
use kpvm::document::Numbers;
use kpvm::engine::{Engine, Input, Operation, Request, Session, UserInfo};
use kpvm_compiler::compile::Options;
use serde_json::{Value, json};

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "d"},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]}}"#;

/// A ValidatingPolicy `p` for every resource, with these fields of the spec.
fn policy(spec: Value) -> Value {
    let rule =
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
    let mut whole = json!({"matchConstraints": {"resourceRules": [rule]}});
    kpvm::engine::merge(&mut whole, &spec);
    json!({
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": whole,
    })
}

/// A policy with these validations.
fn validating(expressions: &[&str]) -> Value {
    let validations: Vec<Value> = expressions
        .iter()
        .map(|text| json!({"expression": text}))
        .collect();
    policy(json!({ "validations": validations }))
}

/// `STATUS: message`, with the name of the result if it has one.
fn shown(responses: &[Response]) -> String {
    let one = |response: &Response| {
        let Response {
            rule,
            status,
            message,
            ..
        } = response;
        match rule.as_str() {
            "" => format!("{status}: {message}"),
            rule => format!("{rule} {status}: {message}"),
        }
    };
    responses.iter().map(one).collect::<Vec<_>>().join(" | ")
}

fn created<'r>(object: &'r str) -> Request<'r> {
    Request::create(Input::Json(object.as_bytes()))
}

fn outcome(policy: &Value, request: &Request<'_>) -> String {
    shown(&evaluate(&policy.to_string(), request))
}

fn of_pod(policy: &Value) -> String {
    outcome(policy, &created(POD))
}

/// First error of a policy.
fn refusal(policy: &Value) -> String {
    let compilation = compile_with(&policy.to_string(), &Options::default());
    assert!(compilation.bundle.is_none(), "{policy}");
    compilation.diagnostics[0].message.clone()
}

/// Section 6.2, step 4, and cases 2, 27, 28, 38 and 39.
#[test]
fn the_first_validation_that_does_not_hold_decides() {
    for (expressions, expected) in [
        (&["true"][..], "pass: success"),
        (
            &["object.metadata.labels.app == 'x'"],
            "error: error: no such key: labels",
        ),
        (
            &["true", "true", "false"],
            "fail: CEL expression validation failed at index 2",
        ),
        (
            &["true", "false", "object.nope == 1"],
            "fail: CEL expression validation failed at index 1",
        ),
        (
            &["object.nope == 1", "false"],
            "error: error: no such key: nope",
        ),
        (&["cel.bind(x, 1, x == 1)"], "pass: success"),
        (&["request.object.spec == object.spec"], "pass: success"),
        (
            &["base64.encode(b'a') == 'YQ==' && math.greatest(1, 2) == 2"],
            "pass: success",
        ),
        (&["[1, 2].reverse() == [2, 1]"], "pass: success"),
    ] {
        assert_eq!(
            of_pod(&validating(expressions)),
            expected,
            "{expressions:?}"
        );
    }
}

/// Section 6.2, step 4: unlike in a ClusterPolicy, a message is used unchanged.
#[test]
fn messages_are_taken_as_they_are() {
    let message = |fields: Value| {
        let mut validation = json!({"expression": "false"});
        kpvm::engine::merge(&mut validation, &fields);
        of_pod(&policy(json!({"validations": [validation]})))
    };
    for (fields, expected) in [
        (json!({"message": "  no  "}), "fail:   no  "),
        (
            json!({"message": "m", "messageExpression": "'a\\n' + object.metadata.name"}),
            "fail: a\na",
        ),
        (
            json!({"message": "m", "messageExpression": "''"}),
            "fail: CEL expression validation failed at index 0",
        ),
        (
            json!({"message": "m", "messageExpression": "'x' + object.nope"}),
            "fail: failed to evaluate message expression: no such key: nope",
        ),
    ] {
        assert_eq!(message(fields.clone()), expected, "{fields}");
    }
}

/// Section 6.2: a policy with an expression that does not compile is not loaded.
#[test]
fn what_does_not_compile_is_refused() {
    let variables =
        json!([{"name": "b", "expression": "variables.a"}, {"name": "a", "expression": "1"}]);
    for (spec, expected) in [
        (
            json!({"validations": [{"expression": "'abc'.reverse() == ''"}]}),
            "CEL: found no matching overload for 'reverse' applied to 'string.()'",
        ),
        (
            json!({"validations": [{"expression": "object.?spec.?hostNetwork.orValue(false)"}]}),
            "CEL: must evaluate to bool but got dyn",
        ),
        // Case 43: unlike in a ClusterPolicy.
        (
            json!({"variables": variables, "validations": [{"expression": "true"}]}),
            "CEL: undefined field 'a'",
        ),
        // Unused, and still an error.
        (
            json!({"variables": [{"name": "v", "expression": "nope"}], "validations": [{"expression": "true"}]}),
            "CEL: undeclared reference to 'nope' (in container '')",
        ),
        (
            json!({"variables": [{"name": "v", "expression": "1"}],
                   "matchConditions": [{"name": "c", "expression": "variables.v == 1"}],
                   "validations": [{"expression": "true"}]}),
            "CEL: undefined field 'v'",
        ),
        (
            json!({"validations": [{"expression": "false", "messageExpression": "1"}]}),
            "CEL: must evaluate to string but got int",
        ),
        (
            json!({"validations": [{"expression": "params.x == 1"}]}),
            "CEL: undeclared reference to 'params' (in container '')",
        ),
        (
            json!({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]}),
            "CEL: must evaluate to string or null but got int",
        ),
        (
            json!({"evaluation": {"mode": "HTTP"}}),
            "the evaluation mode HTTP is not supported yet",
        ),
        (
            json!({"validation": []}),
            "unknown field `validation` in `spec`",
        ),
    ] {
        assert_eq!(refusal(&policy(spec.clone())), expected, "{spec}");
    }
}

/// Section 6.2, step 3, and case 40.
#[test]
fn match_conditions() {
    let conditions = |expressions: &[&str], failure: &str| {
        let conditions: Vec<Value> = expressions
            .iter()
            .map(|text| json!({"name": "n", "expression": text}))
            .collect();
        of_pod(&policy(json!({
            "matchConditions": conditions,
            "failurePolicy": failure,
            "validations": [{"expression": "false", "message": "m"}],
        })))
    };
    for (expressions, failure, expected) in [
        (&["true"][..], "Fail", "fail: m"),
        (&["true", "false"], "Fail", "skip: skip"),
        (&["object.a == 1", "false"], "Fail", "skip: skip"),
        (
            &["object.a == 1", "true", "object.b == 1", "object.a == 1"],
            "Fail",
            "evaluation error: failed to load context: no such key: a; no such key: b; no such key: a",
        ),
        (&["object.a == 1"], "Ignore", "skip: skip"),
    ] {
        assert_eq!(
            conditions(expressions, failure),
            expected,
            "{expressions:?}"
        );
    }
    // An error of a validation remains an error.
    let ignoring = policy(json!({
        "failurePolicy": "Ignore",
        "validations": [{"expression": "object.nope == 1"}],
    }));
    assert_eq!(of_pod(&ignoring), "error: error: no such key: nope");
}

/// Section 6.2, the null-ness trap, and cases 31 and 46.
#[test]
fn what_expressions_are_given() {
    let resource = |request: &Request<'_>, text: &str| outcome(&validating(&[text]), request);
    let pod = created(POD);
    let delete = Request {
        operation: Operation::Delete,
        object: None,
        old_object: Some(Input::Json(POD.as_bytes())),
        ..Request::default()
    };
    let namespace = json!({"metadata": {"name": "d", "labels": {"e": "p"}}});
    let known = Request {
        namespace_object: Some(&namespace),
        ..pod
    };
    let user = Request {
        user: Some(UserInfo {
            username: "u",
            ..UserInfo::default()
        }),
        ..pod
    };
    let yes = "pass: success";
    let no = "fail: CEL expression validation failed at index 0";
    for (request, text, expected) in [
        (&pod, "oldObject == null", no),
        (&pod, "!has(oldObject.metadata) && oldObject == {}", yes),
        (
            &delete,
            "object == {} && oldObject.metadata.name == 'a'",
            yes,
        ),
        (&pod, "request.oldObject == null", yes),
        (
            &pod,
            "request.resource.resource == 'pods' && request.resource.version == 'v1' && request.kind.kind == 'Pod'",
            yes,
        ),
        (
            &pod,
            "request.operation == 'CREATE' && request.namespace == 'd'",
            yes,
        ),
        (
            &pod,
            "request.userInfo.username == ''",
            "error: error: no such key: username",
        ),
        (&user, "request.userInfo.username == 'u'", yes),
        (&pod, "namespaceObject == null", yes),
        (&known, "namespaceObject.metadata.labels.e == 'p'", yes),
        (
            &pod,
            "exceptions.allowedImages == [] && exceptions.allowedValues.size() == 0",
            yes,
        ),
    ] {
        assert_eq!(resource(request, text), expected, "{text}");
    }
}

/// Section 3.3: on the command line numbers are doubles, except those of `request.object`.
#[test]
fn numbers_of_the_request_are_whole_again() {
    let object = r#"{"apiVersion": "v1", "kind": "A", "spec": {"replicas": 2, "part": 1.5}}"#;
    let request = Request {
        numbers: Numbers::Float,
        ..created(object)
    };
    for (text, expected) in [
        ("object.spec.replicas == 2", "pass: success"),
        (
            "object.spec.replicas + 1 == 3",
            "error: error: no such overload",
        ),
        ("request.object.spec.replicas + 1 == 3", "pass: success"),
        ("request.object.spec.part + 0.5 == 2.0", "pass: success"),
    ] {
        assert_eq!(outcome(&validating(&[text]), &request), expected, "{text}");
    }
}

/// Section 6.2: lazy and memoized, and case 42.
#[test]
fn variables() {
    let with = |variables: Value, text: &str| {
        of_pod(&policy(
            json!({"variables": variables, "validations": [{"expression": text}]}),
        ))
    };
    let broken = json!([{"name": "v", "expression": "object.nope"}]);
    assert_eq!(with(broken.clone(), "true"), "pass: success");
    assert_eq!(
        with(broken.clone(), "variables.v == 1 || true"),
        "pass: success"
    );
    assert_eq!(
        with(broken, "variables.v == 1"),
        "error: error: no such key: nope"
    );
    let two = json!([
        {"name": "images", "expression": "object.spec.containers.map(c, c.image)"},
        {"name": "first", "expression": "variables.images[0]"},
    ]);
    assert_eq!(with(two, "variables.first == 'nginx'"), "pass: success");
}

/// Section 6.3.
#[test]
fn match_constraints() {
    let rule = |fields: Value| {
        let mut rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
        kpvm::engine::merge(&mut rule, &fields);
        json!({ "resourceRules": [rule] })
    };
    let selector = |kind: &str, selector: Value| {
        let mut constraints = rule(json!({}));
        constraints[kind] = selector;
        constraints
    };
    let labelled = POD.replace(
        "\"name\": \"a\",",
        "\"name\": \"a\", \"labels\": {\"x\": \"y\"},",
    );
    let generated = POD.replace("\"name\": \"a\"", "\"generateName\": \"web-\"");
    let namespace = r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"x": "y"}}}"#;
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}"#;
    let excluded = |fields: Value| {
        let mut constraints = rule(json!({"resources": ["*"]}));
        constraints["excludeResourceRules"] = rule(fields)["resourceRules"].clone();
        constraints
    };
    let in_list = |values: &[&str]| json!({"matchExpressions": [{"key": "x", "operator": "In", "values": values}]});
    let rows = [
        ("all fits", rule(json!({})), POD, true),
        (
            "another group",
            rule(json!({"apiGroups": ["apps"]})),
            POD,
            false,
        ),
        (
            "another version",
            rule(json!({"apiVersions": ["v1beta1"]})),
            POD,
            false,
        ),
        (
            "another resource",
            rule(json!({"resources": ["services"]})),
            POD,
            false,
        ),
        (
            "a subresource",
            rule(json!({"resources": ["pods/log"]})),
            POD,
            false,
        ),
        (
            "another operation",
            rule(json!({"operations": ["DELETE"]})),
            POD,
            false,
        ),
        ("names", rule(json!({"resourceNames": ["a"]})), POD, true),
        (
            "other names",
            rule(json!({"resourceNames": ["b", "aa"]})),
            POD,
            false,
        ),
        (
            "a name is no wildcard",
            rule(json!({"resourceNames": ["*"]})),
            POD,
            false,
        ),
        (
            "a generated name",
            rule(json!({"resourceNames": ["web"]})),
            &generated,
            true,
        ),
        ("the scope", rule(json!({"scope": "Namespaced"})), POD, true),
        (
            "another scope",
            rule(json!({"scope": "Cluster"})),
            POD,
            false,
        ),
        ("any scope", rule(json!({"scope": "*"})), POD, true),
        (
            "no namespace",
            rule(json!({"scope": "Cluster", "resources": ["nodes"]})),
            node,
            true,
        ),
        ("excluded", excluded(json!({})), POD, false),
        (
            "not excluded",
            excluded(json!({"resourceNames": ["b"]})),
            POD,
            true,
        ),
        (
            "labels",
            selector("objectSelector", json!({"matchLabels": {"x": "y"}})),
            &labelled,
            true,
        ),
        (
            "no labels",
            selector("objectSelector", in_list(&["y"])),
            POD,
            false,
        ),
        // The old object is absent and has no labels.
        (
            "labels of what is not there",
            selector(
                "objectSelector",
                json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}),
            ),
            &labelled,
            true,
        ),
        (
            "an empty selector",
            selector("objectSelector", json!({})),
            POD,
            true,
        ),
        (
            "the namespace by its name",
            selector(
                "namespaceSelector",
                json!({"matchLabels": {"kubernetes.io/metadata.name": "d"}}),
            ),
            POD,
            true,
        ),
        (
            "another namespace",
            selector(
                "namespaceSelector",
                json!({"matchLabels": {"kubernetes.io/metadata.name": "e"}}),
            ),
            POD,
            false,
        ),
    ];
    for (row, constraints, object, expected) in rows {
        let mut policy = validating(&["true"]);
        policy["spec"]["matchConstraints"] = constraints;
        let matched = !outcome(&policy, &created(object)).is_empty();
        assert_eq!(matched, expected, "{row}");
    }
    let mut policy = validating(&["true"]);
    policy["spec"]["matchConstraints"] = selector("namespaceSelector", in_list(&["y"]));
    policy["spec"]["matchConstraints"]["resourceRules"][0]["resources"] = json!(["*"]);
    // A Namespace is matched by its own labels, cluster-scoped objects by none.
    assert_eq!(outcome(&policy, &created(namespace)), "pass: success");
    assert_eq!(outcome(&policy, &created(node)), "pass: success");
    assert_eq!(of_pod(&policy), "");
    let labels = [("x", "y")];
    let labelled_namespace = Request {
        namespace_labels: &labels,
        ..created(POD)
    };
    assert_eq!(outcome(&policy, &labelled_namespace), "pass: success");
    // Without constraints nothing matches.
    policy["spec"]
        .as_object_mut()
        .unwrap()
        .remove("matchConstraints");
    assert_eq!(of_pod(&policy), "");
}

/// Section 6.4, and case 50.
#[test]
fn controllers_of_pods() {
    let about_pods = |fields: Value| {
        let mut policy = validating(&[
            "object.metadata.namespace == 'd' && object.spec.containers.all(c, c.image != 'nginx')",
        ]);
        policy["spec"]["matchConstraints"] = json!({"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]});
        kpvm::engine::merge(&mut policy["spec"], &fields);
        policy
    };
    let pod = json!({"containers": [{"image": "nginx"}]});
    let object = |api: &str, kind: &str, spec: Value| {
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": "a", "namespace": "d"}, "spec": spec}).to_string()
    };
    let deployment = object("apps/v1", "Deployment", json!({"template": {"spec": pod}}));
    let job = object("batch/v1", "Job", json!({"template": {"spec": pod}}));
    let cron = object(
        "batch/v1",
        "CronJob",
        json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}}),
    );
    let service = object("v1", "Service", json!({}));
    let none = json!({"autogen": {"podControllers": {"controllers": []}}});
    let some = json!({"autogen": {"podControllers": {"controllers": ["jobs", "Deployment"]}}});
    let names = json!({"matchConstraints": {"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "resourceNames": ["a"]}]}});
    let failed = "fail: CEL expression validation failed at index 0";
    for (fields, object, expected) in [
        (json!({}), deployment.as_str(), failed),
        (json!({}), &job, failed),
        (json!({}), &cron, failed),
        (json!({}), POD, failed),
        (json!({}), &service, ""),
        (none, &deployment, ""),
        (some.clone(), &deployment, ""),
        (some, &job, failed),
        (names, &deployment, ""),
    ] {
        let found = outcome(&about_pods(fields.clone()), &created(object));
        assert_eq!(found, expected, "{fields} {object}");
    }
    // `ResolveConfig` in Kyverno's pkg/cel/autogen: three parts name a resource.
    let of = |name: &str| {
        about_pods(json!({"autogen": {"podControllers": {"controllers": ["jobs", name]}}}))
    };
    assert_eq!(
        refusal(&of("jobsets.v1alpha2.jobset.x-k8s.io")),
        "controllers of pods like `jobsets.v1alpha2.jobset.x-k8s.io` are not supported yet"
    );
    for ignored in [
        "jobsets",
        "jobsets.v1",
        "jobsets.v1.",
        ".v1.group",
        "jobsets..group",
    ] {
        assert_eq!(outcome(&of(ignored), &created(&job)), failed, "{ignored}");
    }
    let mut services = of("a.b.c");
    services["spec"]["matchConstraints"]["resourceRules"][0]["resources"] = json!(["services"]);
    assert_eq!(
        outcome(&services, &created(&service)),
        "error: error: no such key: containers"
    );
}

/// Section 6.5, and case 49.
#[test]
fn exceptions() {
    let exception = |name: &str, fields: Value| {
        let mut exception = json!({
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "PolicyException",
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}]},
        });
        kpvm::engine::merge(&mut exception, &fields);
        exception
    };
    let of_spec = |name: &str, fields: Value| exception(name, json!({ "spec": fields }));
    let condition = |text: &str| json!({"matchConditions": [{"name": "c", "expression": text}]});
    let failing = validating(&["false"]);
    let images =
        validating(&["object.spec.containers.all(c, c.image in exceptions.allowedImages)"]);
    let failed = "fail: CEL expression validation failed at index 0";
    let rows = [
        (
            &failing,
            vec![of_spec("a", json!({}))],
            "exception skip: rule is skipped due to policy exception: ns/a",
        ),
        (
            &failing,
            vec![
                of_spec("a", json!({})),
                of_spec("b", condition("object.metadata.name == 'a'")),
            ],
            "exception skip: rule is skipped due to policy exception: ns/a, ns/b",
        ),
        (
            &failing,
            vec![of_spec("a", condition("object.metadata.name == 'b'"))],
            failed,
        ),
        (
            &failing,
            vec![of_spec(
                "a",
                json!({"policyRefs": [{"name": "p", "kind": "MutatingPolicy"}]}),
            )],
            failed,
        ),
        (
            &failing,
            vec![
                of_spec("a", json!({})),
                exception(
                    "b",
                    json!({"metadata": {"labels": {"polex.kyverno.io/priority": "2"}}, "spec": {"reportResult": "pass"}}),
                ),
            ],
            "exception pass: rule is passed due to policy exception: ns/a, ns/b",
        ),
        (
            &failing,
            vec![of_spec("a", condition("object.nope == 1"))],
            "evaluation error: failed to load context: no such key: nope",
        ),
        (
            &failing,
            vec![
                of_spec("a", json!({})),
                of_spec("b", condition("object.nope == 1")),
            ],
            "exception skip: rule is skipped due to policy exception: ns/a",
        ),
        (
            &images,
            vec![of_spec("a", json!({"images": ["nginx"]}))],
            "pass: success",
        ),
        (
            &images,
            vec![of_spec("a", json!({"allowedValues": ["nginx"]}))],
            failed,
        ),
        // Neither is available yet when exceptions are checked.
        (
            &failing,
            vec![of_spec(
                "a",
                condition("exceptions.allowedImages.size() == 0"),
            )],
            "evaluation error: failed to load context: no such attribute(s): exceptions",
        ),
    ];
    for (policy, exceptions, expected) in rows {
        let documents: Vec<String> = std::iter::once(policy)
            .chain(&exceptions)
            .map(Value::to_string)
            .collect();
        let found = shown(&evaluate(&documents.join("\n---\n"), &created(POD)));
        assert_eq!(found, expected);
    }
}

/// Section 6.2, step 5.
#[test]
fn audit_annotations_are_properties() {
    let properties = |expression: &str, value: &str| {
        let policy = policy(json!({
            "validations": [{"expression": "true"}, {"expression": expression}],
            "auditAnnotations": [{"key": "k", "valueExpression": value}, {"key": "empty", "valueExpression": "''"}],
        }));
        let bytes = crate::common::compile(&policy.to_string()).unwrap();
        let engine = Engine::load(bytes).unwrap();
        let mut session = Session::new(&engine);
        let evaluation = session.evaluate(&created(POD)).unwrap();
        let response = evaluation.responses().next().unwrap();
        let pairs: Vec<String> = response
            .properties()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        format!(
            "{} {} {}: {}",
            response.rule(),
            response.status(),
            response.message(),
            pairs.join(" ")
        )
    };
    let name = "object.metadata.name";
    let name = format!("string({name})");
    assert_eq!(properties("true", &name), " pass success: k=a");
    assert_eq!(
        properties("false", &name),
        " fail CEL expression validation failed at index 1: k=a cel.validationIndex=1"
    );
    assert_eq!(
        properties("object.nope == 1", &name),
        " error error: no such key: nope: cel.validationIndex=1"
    );
    let broken = "'x' + string(object.nope)";
    assert_eq!(
        properties("true", broken),
        "evaluation error failed to load context: failed to evaluate auditAnnotation 'k': no such key: nope: "
    );
    assert_eq!(
        properties("false", broken),
        " error error: failed to evaluate auditAnnotation 'k': no such key: nope: "
    );
}

/// Section 6.6, and case 51.
#[test]
fn any_json_is_looked_at_in_the_mode_of_that_name() {
    let mut policy = validating(&[
        "object.n == 4",
        "request == null && namespaceObject == null && oldObject == null",
    ]);
    policy["spec"]["evaluation"] = json!({"mode": "JSON"});
    policy["spec"]
        .as_object_mut()
        .unwrap()
        .remove("matchConstraints");
    let payload = |numbers| Request {
        is_payload: true,
        numbers,
        ..created(r#"{"n": 4}"#)
    };
    assert_eq!(outcome(&policy, &payload(Numbers::Float)), "pass: success");
    assert_eq!(of_pod(&policy), "error: error: no such key: n");
    policy["spec"]["validations"] = json!([{"expression": "object.n % 2 == 0"}]);
    assert_eq!(
        outcome(&policy, &payload(Numbers::Float)),
        "error: error: no such overload: _%_"
    );
    assert_eq!(outcome(&policy, &payload(Numbers::Exact)), "pass: success");
    // A policy for Kubernetes objects has no response for a payload.
    assert_eq!(
        outcome(&validating(&["false"]), &payload(Numbers::Float)),
        ""
    );
}

/// Section 6.6: in a cluster a namespaced policy applies to its own namespace.
#[test]
fn namespaced_policies() {
    let mut policy = validating(&["false"]);
    policy["kind"] = json!("NamespacedValidatingPolicy");
    policy["metadata"]["namespace"] = json!("other");
    assert_eq!(of_pod(&policy), "");
    let everywhere = Request {
        every_namespace: true,
        ..created(POD)
    };
    let failed = "fail: CEL expression validation failed at index 0";
    assert_eq!(outcome(&policy, &everywhere), failed);
    policy["metadata"]["namespace"] = json!("d");
    assert_eq!(of_pod(&policy), failed);
}
