//! `podSecurity`: Pods that try to get past the standards, mainly with fields of wrong types.
//! Kyverno decodes a Pod into its Go type first, so a wrong type anywhere is an error
//! (docs/spec/pod-security.md §2).

use kpvm::engine::{Bundle, Engine, Input, Request, Session};
use kpvm_compiler::frontend::pod_security::controls::{CONTROLS, Demand, Of};
use serde_json::{Value, json};

use super::bundle::{SECTION_ENTRY, SECTION_TABLE, flip_bits_of, refused, seal};
use super::oracle::{Expect, Seen, check, compile_policies, policy_with, run};

const FAIL: Expect = Expect::Results(&["r fail"]);
const ERROR: Expect = Expect::Results(&["r error"]);

fn policy(block: &str) -> String {
    policy_with(&format!("{{podSecurity: {block}}}")).replace("[Pod, Thing]", "[Pod]")
}

fn restricted() -> String {
    policy("{level: restricted, version: latest}")
}

fn pod(spec: &Value) -> Vec<u8> {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
        .to_string()
        .into_bytes()
}

/// A Pod that the restricted level admits.
fn good_spec() -> Value {
    let context = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
    });
    json!({"containers": [{"name": "a", "image": "nginx", "securityContext": context}]})
}

/// Sets the value at a path of keys; `[*]` is the first item of a list.
fn set(mut place: &mut Value, path: &str, value: &Value) {
    for key in path.split('.') {
        let (key, is_list) = match key.strip_suffix("[*]") {
            Some(key) => (key, true),
            None => (key, false),
        };
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[key];
        if is_list {
            if !place.is_array() {
                *place = json!([null]);
            }
            place = &mut place[0];
        }
    }
    *place = value.clone();
}

/// Type of a field that controls read.
fn fits(demand: &Demand, value: &Value) -> bool {
    match demand {
        Demand::NotTrue | Demand::NotFalse | Demand::False => value.is_boolean(),
        Demand::NotZero | Demand::Zero => value.is_i64(),
        Demand::OneOf(_) | Demand::OneOfIfSet(_) | Demand::EmptyUnlisted => value.is_string(),
        Demand::EachOneOf(_) | Demand::Holds(_) => {
            let items = value.as_array();
            items.is_some_and(|items| items.iter().all(Value::is_string))
        }
        Demand::Set { .. } | Demand::Absent(_) | Demand::Sourced { .. } => value.is_object(),
    }
}

/// Every path that a control reads, with the type there.
fn paths() -> Vec<(String, &'static Demand)> {
    let tests = CONTROLS
        .iter()
        .flat_map(|control| control.revisions)
        .flat_map(|revision| revision.tests)
        // Other tests cover these fields.
        .filter(|test| !matches!(test.demand, Demand::Set { .. }));
    let mut paths = Vec::new();
    for test in tests {
        match test.of {
            Of::Pod(path) => paths.push((path.to_owned(), &test.demand)),
            Of::Containers(path) => {
                for list in ["containers", "initContainers", "ephemeralContainers"] {
                    paths.push((format!("{list}[*].{path}"), &test.demand));
                }
            }
            Of::Annotations(_) | Of::ContainerAnnotations(_) => {}
        }
    }
    paths
}

/// Answers of one rule to many Pods that differ from `expected`.
fn answers_but(expected: &str, bundle: &[u8], pods: &[Vec<u8>]) -> Seen {
    let engine = Engine::load(bundle.to_vec()).unwrap();
    let mut session = Session::new(&engine);
    let mut others = Vec::new();
    for pod in pods {
        let evaluation = session
            .evaluate(&Request::create(Input::Json(pod)))
            .unwrap();
        let response = evaluation.responses().next().unwrap();
        if response.status().as_str() != expected {
            let shown = String::from_utf8_lossy(pod).into_owned();
            let status = response.status().to_string();
            others.push(("r".to_owned(), format!("{status} {shown}"), String::new()));
        }
    }
    Seen::Evaluated(others)
}

const NOTHING: Expect = Expect::Results(&[]);

#[test]
fn wrong_types_in_every_field_that_controls_read() {
    let wrong = [
        json!(0),
        json!(1.5),
        json!(""),
        json!("false"),
        json!(false),
        json!([]),
        json!([1]),
        json!([[]]),
        json!({}),
        json!({"a": 1}),
    ];
    let bundle = compile_policies(&restricted()).unwrap();
    for (path, demand) in paths() {
        let mut pods = Vec::new();
        for value in wrong.iter().filter(|value| !fits(demand, value)) {
            // `[]` is an empty list of texts.
            let is_list = matches!(demand, Demand::EachOneOf(_) | Demand::Holds(_));
            if is_list && *value == json!([]) {
                continue;
            }
            let mut spec = good_spec();
            set(&mut spec, &path, value);
            pods.push(pod(&spec));
        }
        // And every value on the way there.
        for (dot, _) in path.match_indices('.') {
            let parent = &path[..dot];
            let (parent, list) = match parent.strip_suffix("[*]") {
                Some(list) => (list, true),
                None => (parent, false),
            };
            for value in &wrong {
                let fits = if list {
                    value.as_array().is_some_and(Vec::is_empty)
                } else {
                    value.is_object()
                };
                if !fits {
                    let mut spec = good_spec();
                    set(&mut spec, parent, value);
                    pods.push(pod(&spec));
                }
            }
        }
        let bytes = pods.iter().map(Vec::len).sum();
        check(&format!("wrong types, {path}"), bytes, NOTHING, || {
            answers_but("error", &bundle, &pods)
        });
    }
}

#[test]
fn wrong_types_around_the_spec() {
    let object = |text: &str| text.as_bytes().to_vec();
    for pod in [
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": []}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": "x"}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"a": 1}}, "spec": {}}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": []}, "spec": {}}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "creationTimestamp": "today"}, "spec": {}}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}, "status": 1}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"limits": {"cpu": "1x"}}}]}}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"ports": [{"hostPort": 99999999999}]}]}}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 1e99}}}]}}"#,
    ] {
        let pod = object(pod);
        let shown = String::from_utf8_lossy(&pod).into_owned();
        check(&format!("wrong types, {shown}"), pod.len(), ERROR, || {
            run(&restricted(), &pod)
        });
    }
}

/// Go accepts keys in any case; of two keys for one field, the later one in byte order is
/// decoded into the result of the first.
#[test]
fn keys_in_another_case() {
    let bundle = compile_policies(&restricted()).unwrap();
    let with = |parts: &str| {
        let mut spec = good_spec().to_string();
        spec.truncate(spec.len() - 1);
        format!(r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p"}}, "spec": {spec}, {parts}}}}}"#).into_bytes()
    };
    let bad = r#"[{"name": "b", "SECURITYCONTEXT": {"Privileged": true}}]"#;
    let pods: Vec<Vec<u8>> = [
        r#""HostNetwork": true"#.to_owned(),
        r#""hoſtnetworK": true"#.to_owned(),
        r#""HOSTPID": true, "hostPID": null"#.to_owned(),
        r#""hostIPC": false, "hostipc": true"#.to_owned(),
        format!(r#""InitContainers": {bad}"#),
        format!(r#""ephemeralcontainers": {bad}"#),
        r#""Volumes": [{"name": "v", "HostPath": {}}]"#.to_owned(),
        r#""volumes": [{"name": "v", "hostPath": {}}], "Volumes": [{"emptyDir": {}}]"#.to_owned(),
        r#""SecurityContext": {"runAsUser": 0}"#.to_owned(),
        r#""securityContext": {"sysctls": [{"name": "x"}]}, "SecurityContext": {}"#.to_owned(),
    ]
    .iter()
    .map(|parts| with(parts))
    .collect();
    let bytes = pods.iter().map(Vec::len).sum();
    check("keys in another case", bytes, NOTHING, || {
        answers_but("fail", &bundle, &pods)
    });
}

/// Exclusions apply only to what they name.
#[test]
fn exclusions_reach_no_further() {
    let privileged = |name: &str, image: &str| json!({"name": name, "image": image, "securityContext": {"privileged": true}});
    let excluded = |images: &str| {
        policy(&format!(
            "{{level: baseline, version: latest, exclude: [{{controlName: Privileged Containers, images: ['{images}']}}]}}"
        ))
    };
    let rows = [
        (
            "an image that is a wildcard",
            excluded("nginx"),
            json!([privileged("a", "*")]),
        ),
        (
            "an image that is a wildcard",
            excluded("nginx"),
            json!([privileged("a", "n*")]),
        ),
        (
            "a longer image",
            excluded("nginx"),
            json!([privileged("a", "nginx/evil")]),
        ),
        ("no image", excluded("?*"), json!([privileged("a", "")])),
        (
            "a name that is a wildcard",
            excluded("nginx"),
            json!([privileged("*", "nginx"), privileged("b", "evil")]),
        ),
        (
            // Each exempted container removes one finding of its own name.
            "the same name, more often than it is exempted",
            excluded("nginx"),
            json!([privileged("a", "nginx"), privileged("a", "evil")]),
        ),
    ];
    for (row, policy, containers) in rows {
        let pod = pod(&json!({"containers": containers}));
        check(row, pod.len(), FAIL, || run(&policy, &pod));
    }
}

/// Work and memory are bounded; exceeding a bound is an error.
#[test]
fn many_violations() {
    let excludes = "{controlName: Privilege Escalation, images: ['*'], restrictedField: 'spec.containers[*].securityContext.allowPrivilegeEscalation', values: [x]},".repeat(50);
    let policies = [
        restricted(),
        policy(&format!(
            "{{level: restricted, version: latest, exclude: [{excludes}]}}"
        )),
    ];
    for count in [1_000, 100_000] {
        let containers = format!("[{}null]", "null,".repeat(count));
        let pod = format!(
            r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p"}}, "spec": {{"containers": {containers}}}}}"#
        );
        for policy in &policies {
            check(
                &format!("{count} containers"),
                pod.len(),
                Expect::NeverPass,
                || run(policy, pod.as_bytes()),
            );
        }
    }
}

/// Unknown names in a policy are reported with their places.
#[test]
fn names_that_mean_nothing() {
    for (block, message) in [
        ("{level: base, version: latest}", "unknown level \"base\""),
        (
            "{level: baseline, version: '1.25'}",
            "unknown version \"1.25\"",
        ),
        (
            "{level: baseline, exclude: [{controlName: Host ports, images: ['*']}]}",
            "unknown control \"Host ports\"",
        ),
        (
            "{level: baseline, exclude: [{images: ['*']}]}",
            "needs the name of a control",
        ),
        (
            "{level: baseline, exclude: [{controlName: Sysctls, restrictedField: 'spec.securityContext.sysctls[0].name', values: [x]}]}",
            "is no field of \"Sysctls\"",
        ),
        (
            "{level: baseline, exclude: [{controlName: Sysctls, restrictedField: 'spec.securityContext.sysctls[*].name'}]}",
            "go together",
        ),
        (
            "{level: baseline, exclude: [{controlName: Host Ports}]}",
            "images must be given",
        ),
        (
            "{level: baseline, exclude: [{controlName: Sysctls, images: ['*']}]}",
            "images cannot be given",
        ),
        (
            "{level: baseline, exclude: [{controlName: Volume Types}]}",
            "not a control of the level baseline",
        ),
    ] {
        let policy = policy(block);
        check(block, policy.len(), Expect::Refused(message), || {
            run(&policy, b"{}")
        });
    }
}

/// Rows 3 and 6 for the tables of podSecurity.
#[test]
fn bundles() {
    let bytes = compile_policies(&policy("{level: restricted, version: latest, exclude: [{controlName: Capabilities, images: [x]}, {controlName: Sysctls}]}")).unwrap();
    let objects = [
        pod(&good_spec()),
        pod(&json!({"containers": [null], "HostPID": true})),
    ];
    flip_bits_of(&bytes, &objects, 977);
    // A field missing from its slots would not be checked.
    let bundle = Bundle::load(bytes.as_slice()).unwrap();
    let slots = bundle
        .section_sizes()
        .iter()
        .position(|(name, _)| *name == "shape_slots")
        .unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let entry = SECTION_TABLE + slots * SECTION_ENTRY;
    let (start, length) = (word(entry + 4), word(entry + 8));
    let taken = (start..start + length)
        .find(|&at| bytes[at] != u8::MAX)
        .unwrap();
    let mut hidden = bytes.clone();
    hidden[taken] = u8::MAX;
    refused("row 6, hidden field", "hides a field", &seal(hidden));
}
