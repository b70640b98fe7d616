//! Cases of `match`, `exclude`, autogen and everything else that decides whether a rule
//! applies.

use serde_json::{Value, json};

use super::random::Random;
use super::vocabulary::{LABELS, NAMES, NAMESPACES, policy, resource, user};

pub(super) fn case(random: &mut Random) -> Value {
    let object = resource(random);
    let count = random.weighted(&[0, 70, 20, 10]);
    let rules = (0..count)
        .map(|number| rule(random, &object, number))
        .collect();
    let mut policy = policy(rules);
    if random.percent(20) {
        policy["kind"] = json!("Policy");
        policy["metadata"]["namespace"] = json!(random.pick(&NAMESPACES));
    }
    if random.percent(10) {
        policy["spec"]["applyRules"] = json!(random.pick(&["One", "All"]));
    }
    if random.percent(30) {
        policy["spec"]["validationFailureAction"] = json!(random.pick(&["Enforce", "Audit"]));
    }
    if random.percent(15) {
        let controllers = random.text(&[
            "none",
            "",
            "Deployment",
            "CronJob",
            "DaemonSet,Job",
            "Deployment,CronJob",
            "all",
            "deployment",
            "Deployment, CronJob",
            "Pod",
        ]);
        policy["metadata"]["annotations"] =
            json!({ "pod-policies.kyverno.io/autogen-controllers": controllers });
    }
    let mut case = json!({ "policy": policy });
    super::vocabulary::request(random, &mut case, object.clone());
    if random.percent(4) && case.get("resource").is_some() {
        case["operation"] = json!("CONNECT");
    }
    if random.percent(60) {
        case["user"] = user(random);
    }
    if random.percent(40) {
        case["namespaceLabels"] = super::vocabulary::labels(random);
    }
    if random.percent(15) {
        case["subresource"] =
            json!(random.pick(&["status", "scale", "exec", "ephemeralcontainers"]));
    }
    if random.percent(12) {
        let kind = match random.percent(60) {
            true => object["kind"].clone(),
            false => json!(random.pick(&["Pod", "Deployment", "Widget", "Scale"])),
        };
        let group = random.text(&["", "apps", "acme.io", "autoscaling"]);
        case["gvk"] = json!([group, random.pick(&["v1", "v1beta1"]), kind]);
    }
    case
}

fn rule(random: &mut Random, object: &Value, number: usize) -> Value {
    let name = match random.percent(90) {
        true => format!("r{number}"),
        false => random.text(&[
            "autogen-x",
            "a-very-long-name-that-makes-the-generated-rules-cut-it-ok",
            "é",
        ]),
    };
    let mut rule = json!({ "name": name, "match": block(random, object, false) });
    if random.percent(40) {
        rule["exclude"] = block(random, object, true);
    }
    let body = match random.below(6) {
        0 => json!({ "deny": {} }),
        1 => json!({ "deny": { "conditions": { "any": [] } } }),
        2 => json!({ "pattern": { "kind": "*" }, "message": "m" }),
        3 => json!({ "pattern": { "spec": { "containers": [{ "image": "!*:latest" }] } } }),
        4 => {
            json!({ "anyPattern": [{ "metadata": { "name": "w*" } }, { "spec": { "replicas": ">1" } }] })
        }
        _ => {
            json!({ "message": "{{ request.operation }} {{ request.object.metadata.name }}", "deny": {} })
        }
    };
    rule["validate"] = body;
    if random.percent(15) {
        rule["validate"]["failureAction"] = json!(random.pick(&["Enforce", "Audit"]));
    }
    if random.percent(6) {
        rule["validate"]["allowExistingViolations"] = json!(random.percent(50));
    }
    rule
}

/// A `match` or `exclude` block for the object or a similar one.
pub(super) fn block(random: &mut Random, object: &Value, is_exclude: bool) -> Value {
    let filters =
        |random: &mut Random| random.list(1, 2, |random| filter(random, object, is_exclude));
    match random.weighted(&[45, 20, 30, 3, 2]) {
        0 => json!({ "any": filters(random) }),
        1 => json!({ "all": filters(random) }),
        2 => filter(random, object, is_exclude),
        3 => json!({ "any": [], "all": filters(random) }),
        _ => json!({ "any": filters(random), "all": filters(random) }),
    }
}

fn filter(random: &mut Random, object: &Value, is_exclude: bool) -> Value {
    let mut filter = json!({});
    if !is_exclude || random.percent(75) {
        filter["resources"] = resources(random, object, is_exclude);
    }
    if random.percent(14) {
        filter["subjects"] = random.list(0, 2, subject).into();
    }
    if random.percent(12) {
        filter["roles"] = json!(random.list(0, 2, |random| {
            random.text(&["prod:r", "dev:r", "*:r", "r", "?rod:*"])
        }));
    }
    if random.percent(12) {
        let names = ["cluster-admin", "view", "v*", "*", "edit"];
        filter["clusterRoles"] = json!(random.list(0, 2, |random| random.text(&names)));
    }
    filter
}

fn subject(random: &mut Random) -> Value {
    let name = random.text(&[
        "alice",
        "a*",
        "*",
        "system:masters",
        "devs",
        "builder",
        "build*",
        "",
        "bob",
        "system:*",
    ]);
    match random.below(4) {
        0 => json!({ "kind": "User", "name": name }),
        1 => json!({ "kind": "Group", "name": name }),
        2 => {
            json!({ "kind": "ServiceAccount", "name": name, "namespace": random.pick(&["prod", "dev", "*", "p*", ""]) })
        }
        _ => json!({ "kind": random.pick(&["user", "User", "Robot", ""]), "name": name }),
    }
}

fn resources(random: &mut Random, object: &Value, is_exclude: bool) -> Value {
    let mut resources = json!({});
    if !is_exclude || random.percent(60) {
        resources["kinds"] = json!(random.list(1, 2, |random| kind(random, object)));
    }
    let metadata = &object["metadata"];
    let near = |random: &mut Random, own: &Value, others: &[&str]| -> String {
        let own = own.as_str().unwrap_or("web");
        match random.below(6) {
            0 | 1 => own.to_owned(),
            2 => format!("{}*", own.chars().take(2).collect::<String>()),
            3 => format!("*{}", own.chars().last().unwrap_or('x')),
            4 => random.text(&["*", "?*", "", "??", "w?b*"]),
            _ => random.text(others),
        }
    };
    if random.percent(12) {
        resources["name"] = json!(near(random, &metadata["name"], &NAMES));
    }
    if random.percent(15) {
        resources["names"] =
            json!(random.list(0, 2, |random| near(random, &metadata["name"], &NAMES)));
    }
    if random.percent(20) {
        resources["namespaces"] = json!(random.list(0, 2, |random| near(
            random,
            &metadata["namespace"],
            &NAMESPACES
        )));
    }
    if random.percent(15) {
        let annotations = random.list(0, 2, |random| {
            let key = match random.percent(70) {
                true => random.text(&LABELS),
                false => random.text(&["a*", "*", "?pp", "acme.io/*"]),
            };
            (
                key,
                json!(random.pick(&["a", "b", "prod", "*", "p*", "", "?"])),
            )
        });
        resources["annotations"] = Value::Object(annotations.into_iter().collect());
    }
    if random.percent(22) {
        resources["selector"] = selector(random);
    }
    if random.percent(15) {
        resources["namespaceSelector"] = selector(random);
    }
    if random.percent(15) {
        let operations = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
        resources["operations"] = json!(random.list(0, 2, |random| random.text(&operations)));
    }
    resources
}

fn kind(random: &mut Random, object: &Value) -> String {
    let own = object["kind"].as_str().unwrap_or("Pod");
    let api = object["apiVersion"].as_str().unwrap_or("v1");
    match random.weighted(&[40, 25, 20, 15]) {
        0 => own.to_owned(),
        1 => {
            let form = random.text(&[
                "{api}/{kind}",
                "*/{kind}",
                "*/*/{kind}",
                "{api}/*",
                "{kind}/*",
                "*",
                "*/*",
                "*/*/*",
                "{kind}/status",
                "{kind}/scale",
                "*/status",
                "{kind}.status",
                "{start}*",
                "?{rest}",
                "{api}/{kind}/status",
                "*/*/*/*",
                "{api}.{kind}",
                "v1/{kind}",
                "{kind}/exec",
                "*/{kind}/*",
                "/{kind}",
                "{kind}/",
                "apps/*/{kind}",
                "{kind} ",
            ]);
            let (start, rest) = own.split_at(1);
            form.replace("{api}", api)
                .replace("{kind}", own)
                .replace("{start}", start)
                .replace("{rest}", rest)
        }
        2 => random.text(&[
            "Pod",
            "Deployment",
            "CronJob",
            "Job",
            "StatefulSet",
            "ReplicaSet",
            "DaemonSet",
        ]),
        _ => random.text(&[
            "Service",
            "Namespace",
            "ConfigMap",
            "Widget",
            "pod",
            "v1/Pod",
            "apps/v1/Deployment",
            "Pod/exec",
            "P?d",
            "batch/v1/*",
        ]),
    }
}

fn selector(random: &mut Random) -> Value {
    let mut selector = json!({});
    if random.percent(75) {
        let labels = random.list(0, 2, |random| {
            let key = match random.percent(75) {
                true => random.text(&LABELS),
                false => random.text(&["a*", "*", "?pp", "acme.io/*", "", "b/c/d", "-x"]),
            };
            (
                key,
                json!(random.pick(&["a", "b", "prod", "*", "p*", "", "?", "web", "a b", "x!"])),
            )
        });
        selector["matchLabels"] = Value::Object(labels.into_iter().collect());
    }
    if random.percent(40) {
        selector["matchExpressions"] = random
            .list(0, 2, |random| {
                let operator = random.text(&["In", "NotIn", "Exists", "DoesNotExist", "in", "Gt"]);
                let mut expression = json!({ "key": random.pick(&LABELS), "operator": operator });
                if random.percent(60) {
                    let values = ["a", "b", "prod", "*", "", "web"];
                    expression["values"] = json!(random.list(0, 2, |random| random.text(&values)));
                }
                expression
            })
            .into();
    }
    selector
}
