//! Vocabulary of all dialects: scalars with a meaning in Kyverno, resources, and the frame
//! of a policy.

use serde_json::{Value, json};

use super::random::Random;

/// Texts that are quantities, durations, versions, numbers, wildcards or none of these.
pub(super) const TEXTS: [&str; 78] = [
    "",
    " ",
    "a",
    "b",
    "abc",
    "A",
    "é",
    "日本",
    "x y",
    " a ",
    "*",
    "?",
    "?*",
    "a*",
    "*b",
    "a?c",
    "**",
    "nginx",
    "nginx:latest",
    "ghcr.io/acme/app:v1.2.3",
    "prod",
    "dev",
    "prod-eu",
    "true",
    "false",
    "null",
    "nil",
    "~",
    "0",
    "1",
    "2",
    "-1",
    "5",
    "10",
    "05",
    "+5",
    "5.0",
    "1.5",
    "0.5",
    "1e3",
    "1E3",
    ".5",
    "5.",
    "0x10",
    "1_000",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "1Gi",
    "1024Mi",
    "1G",
    "100Mi",
    "500m",
    "0.5Gi",
    "-1Ki",
    "1Kib",
    "100M",
    "1u",
    "0s",
    "1h",
    "60m",
    "3600s",
    "1h30m",
    "1.5h",
    "-1h",
    "1d",
    "1ns",
    "1.2.3",
    "v1.2.3",
    "1.2",
    "1.10.0",
    "1.2.3-rc.1",
    "2024-01-02",
    "2024-01-02T03:04:05Z",
    "10.0.0.1",
    "a,b",
    "a|b",
    "a-b",
];

/// Texts with an operator, a range or alternatives.
pub(super) const OPERATIONS: [&str; 60] = [
    ">0",
    ">=1",
    "<5",
    "<=5",
    "!5",
    "!a",
    "!a*",
    "!",
    ">",
    ">=",
    "> 5",
    " > 5",
    ">5 ",
    ">-1",
    ">1Gi",
    "<=1024Mi",
    ">100M",
    "<1h",
    ">=60m",
    "!1h",
    "<=3600s",
    ">1.5",
    "<0.5",
    "1-5",
    "1-10",
    "-5--1",
    "-1-+8",
    "1 - 5",
    "1Gi-2Gi",
    "100Mi-1Gi",
    "500m-1.5",
    "5!-10",
    "1!-5",
    "1Gi!-2Gi",
    "1h-2h",
    "1m-90m",
    "a-b",
    "a|b",
    "a | b",
    "a || b",
    "a & b",
    "!a & !b",
    ">0 & <10",
    ">0&<10 | 100",
    "prod | dev",
    "prod* | !dev",
    "?* | ",
    " | ",
    "&",
    "a|",
    "|a",
    "> a",
    ">a",
    "<b",
    "!true",
    "!null",
    "!*",
    "!?*",
    "1.2.3 | v1.2.3",
    ">=1.2.3",
];

/// Keys of maps.
pub(super) const KEYS: [&str; 16] = [
    "a", "b", "c", "name", "image", "list", "items", "size", "replicas", "on", "x.y", "a/b", "a b",
    "é", "0", "A",
];

/// Keys of labels and annotations.
pub(super) const LABELS: [&str; 9] = [
    "app",
    "team",
    "env",
    "tier",
    "acme.io/tier",
    "acme.io/owner",
    "a",
    "b",
    "app.kubernetes.io/name",
];

/// Names of objects.
pub(super) const NAMES: [&str; 8] = [
    "web",
    "web-1",
    "api",
    "cache",
    "db-0",
    "kube-system",
    "job-runner",
    "x",
];

/// Namespaces.
pub(super) const NAMESPACES: [&str; 6] =
    ["default", "prod", "prod-eu", "dev", "kube-system", "shop"];

/// Image references, valid and invalid.
pub(super) const IMAGES: [&str; 14] = [
    "nginx",
    "nginx:latest",
    "nginx:1.25",
    "redis:7-alpine",
    "ghcr.io/acme/app:v1.2.3",
    "docker.io/library/busybox:1.36",
    "localhost:5000/app",
    "localhost/app:x",
    "acme/web:dev",
    "registry.k8s.io/pause@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "REG/app:1",
    "",
    "a:b:c",
    "quay.io/org/img:2@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
];

/// A number of any kind.
pub(super) fn number(random: &mut Random) -> Value {
    let integers = [
        0,
        1,
        2,
        3,
        5,
        8,
        10,
        80,
        100,
        443,
        1000,
        1024,
        8080,
        65535,
        -1,
        -5,
        3600,
        1_000_000,
        1_000_000_000,
        i64::MAX,
        i64::MIN,
        9_007_199_254_740_993,
    ];
    let floats = [
        0.0,
        1.0,
        2.0,
        5.0,
        10.0,
        0.5,
        1.5,
        -1.0,
        -0.5,
        0.1,
        1e3,
        1e6,
        1e20,
        1e21,
        1e-7,
        3600.0,
        1073741824.0,
        100.25,
    ];
    match random.percent(60) {
        true => json!(random.pick(&integers)),
        false => json!(random.pick(&floats)),
    }
}

/// A text, rarely with an operator.
pub(super) fn text(random: &mut Random) -> Value {
    match random.percent(88) {
        true => json!(random.pick(&TEXTS)),
        false => json!(random.pick(&OPERATIONS)),
    }
}

/// Any scalar.
pub(super) fn scalar(random: &mut Random) -> Value {
    match random.weighted(&[50, 28, 12, 10]) {
        0 => text(random),
        1 => number(random),
        2 => json!(random.percent(50)),
        _ => Value::Null,
    }
}

/// Any value of at most this depth.
pub(super) fn value(random: &mut Random, depth: usize) -> Value {
    if depth == 0 || random.percent(45) {
        return scalar(random);
    }
    match random.percent(50) {
        true => list(random, depth),
        false => map(random, depth),
    }
}

/// A list, often with items of one type.
pub(super) fn list(random: &mut Random, depth: usize) -> Value {
    let inner = depth.saturating_sub(1);
    match random.weighted(&[40, 25, 20, 15]) {
        0 => Value::Array(random.list(0, 3, |random| map(random, inner))),
        1 => Value::Array(random.list(0, 3, scalar)),
        2 => Value::Array(random.list(1, 4, text)),
        _ => Value::Array(random.list(0, 3, |random| value(random, inner))),
    }
}

/// A map of at most four members.
pub(super) fn map(random: &mut Random, depth: usize) -> Value {
    let inner = depth.saturating_sub(1);
    let members = random.list(0, 4, |random| (random.text(&KEYS), value(random, inner)));
    Value::Object(members.into_iter().collect())
}

/// Labels or annotations.
pub(super) fn labels(random: &mut Random) -> Value {
    let members = random.list(0, 3, |random| {
        let value = match random.percent(70) {
            true => random.text(&["a", "b", "prod", "dev", "x", "", "web", "true", "1"]),
            false => random.text(&TEXTS),
        };
        (random.text(&LABELS), json!(value))
    });
    Value::Object(members.into_iter().collect())
}

fn metadata(random: &mut Random, namespaced: bool) -> Value {
    let mut metadata = json!({ "name": random.pick(&NAMES) });
    if random.percent(4) {
        metadata = json!({ "generateName": "web-" });
    }
    if namespaced && random.percent(80) {
        metadata["namespace"] = json!(random.pick(&NAMESPACES));
    }
    if random.percent(65) {
        metadata["labels"] = labels(random);
    }
    if random.percent(40) {
        metadata["annotations"] = labels(random);
    }
    metadata
}

fn container(random: &mut Random, number: usize) -> Value {
    let mut container = json!({ "name": format!("c{number}"), "image": random.pick(&IMAGES) });
    if random.percent(40) {
        let amounts = ["100Mi", "1Gi", "500m", "0.5", "2", "1024Mi", "1G"];
        let mut resources = json!({});
        for part in ["limits", "requests"] {
            if random.percent(60) {
                resources[part] =
                    json!({ "memory": random.pick(&amounts), "cpu": random.pick(&amounts) });
            }
        }
        container["resources"] = resources;
    }
    if random.percent(40) {
        let mut context = json!({});
        for key in ["privileged", "runAsNonRoot", "allowPrivilegeEscalation"] {
            if random.percent(40) {
                context[key] = json!(random.percent(50));
            }
        }
        if random.percent(30) {
            let names = ["ALL", "NET_ADMIN", "NET_BIND_SERVICE", "CHOWN"];
            context["capabilities"] = json!({
                "drop": random.list(0, 2, |random| random.text(&names)),
                "add": random.list(0, 2, |random| random.text(&names)),
            });
        }
        container["securityContext"] = context;
    }
    if random.percent(35) {
        container["ports"] = Value::Array(random.list(0, 2, |random| {
            json!({ "containerPort": random.pick(&[80, 443, 8080]), "hostPort": random.pick(&[0, 80]) })
        }));
    }
    if random.percent(20) {
        container["env"] = Value::Array(random.list(
            0,
            2,
            |random| json!({ "name": random.pick(&["A", "B"]), "value": random.pick(&TEXTS) }),
        ));
    }
    container
}

fn pod_spec(random: &mut Random) -> Value {
    let mut spec = json!({});
    for (key, percent) in [
        ("containers", 95),
        ("initContainers", 35),
        ("ephemeralContainers", 8),
    ] {
        if random.percent(percent) {
            let count = random.between(0, 3);
            spec[key] = (0..count).map(|number| container(random, number)).collect();
        }
    }
    if random.percent(30) {
        spec["hostNetwork"] = json!(random.percent(50));
    }
    if random.percent(35) {
        spec["volumes"] = Value::Array(random.list(0, 2, |random| match random.percent(50) {
            true => json!({ "name": "v", "hostPath": { "path": random.pick(&["/", "/var/run", "/etc/"]) } }),
            false => json!({ "name": "w", "emptyDir": {} }),
        }));
    }
    if random.percent(25) {
        spec["serviceAccountName"] = json!(random.pick(&["default", "builder", ""]));
    }
    spec
}

/// A resource of one of the kinds in the vocabulary.
pub(super) fn resource(random: &mut Random) -> Value {
    match random.weighted(&[40, 25, 8, 5, 8, 6, 8]) {
        0 => widget(random),
        1 => {
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata(random, true), "spec": pod_spec(random) })
        }
        2 => {
            let template = json!({ "metadata": metadata(random, false), "spec": pod_spec(random) });
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(random, true),
                "spec": { "replicas": random.between(0, 3), "template": template },
            })
        }
        3 => {
            let template = json!({ "spec": pod_spec(random) });
            json!({
                "apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata(random, true),
                "spec": { "schedule": "@daily", "jobTemplate": { "spec": { "template": template } } },
            })
        }
        4 => {
            let ports = random.list(0, 3, |random| {
                json!({ "port": random.pick(&[80, 443, 8080]), "nodePort": random.pick(&[30000, 31000]) })
            });
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": metadata(random, true),
                "spec": { "type": random.pick(&["ClusterIP", "NodePort"]), "ports": ports, "selector": labels(random) },
            })
        }
        5 => {
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata(random, false) })
        }
        _ => {
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(random, true), "data": labels(random) })
        }
    }
}

/// A resource whose `spec` holds any value.
pub(super) fn widget(random: &mut Random) -> Value {
    let spec = match random.percent(95) {
        true => map(random, 3),
        false => value(random, 2),
    };
    json!({ "apiVersion": "acme.io/v1", "kind": "Widget", "metadata": metadata(random, true), "spec": spec })
}

/// A rule without a body that matches the kind of the resource.
pub(super) fn rule(name: &str, resource: &Value) -> Value {
    json!({ "name": name, "match": { "any": [{ "resources": { "kinds": [resource["kind"]] } }] } })
}

/// A policy with these rules.
pub(super) fn policy(rules: Vec<Value>) -> Value {
    json!({
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": { "name": "p" },
        "spec": { "rules": rules },
    })
}

/// A message for a rule or condition.
pub(super) fn message(random: &mut Random) -> String {
    random.text(&[
        "denied",
        "",
        "é",
        "ends.",
        "two words",
        "a, b; c",
        "line\nbreak",
        "$(x)",
        "tab\tend ",
    ])
}

/// The user of an admission request.
pub(super) fn user(random: &mut Random) -> Value {
    let username = random.text(&[
        "alice",
        "bob",
        "",
        "system:serviceaccount:prod:builder",
        "system:serviceaccount:dev:d",
        "system:serviceaccount:x",
        "system:admin",
    ]);
    let mut user = json!({ "userInfo": { "username": username } });
    if random.percent(60) {
        let groups = [
            "system:masters",
            "system:serviceaccounts",
            "devs",
            "system:authenticated",
        ];
        user["userInfo"]["groups"] = json!(random.list(1, 2, |random| random.text(&groups)));
    }
    if random.percent(50) {
        user["roles"] = json!(random.list(1, 2, |random| random.text(&[
            "prod:r",
            "dev:r",
            "kube-system:admin"
        ])));
    }
    if random.percent(50) {
        user["clusterRoles"] = json!(random.list(1, 2, |random| random.text(&[
            "cluster-admin",
            "view",
            "edit"
        ])));
    }
    user
}

/// Adds the object to the case: created, rarely updated or deleted.
pub(super) fn request(random: &mut Random, case: &mut Value, object: Value) {
    match random.weighted(&[82, 10, 8]) {
        0 => case["resource"] = object,
        1 => {
            let mut old = object.clone();
            if random.percent(60) {
                old["spec"] = resource(random)["spec"].take();
                if old["spec"].is_null() {
                    old["spec"] = map(random, 2);
                }
            }
            case["operation"] = json!("UPDATE");
            case["old"] = old;
            case["resource"] = object;
        }
        _ => {
            case["operation"] = json!("DELETE");
            case["old"] = object;
        }
    }
}
