//! Cases of `context` entries: variables that use each other, and outside data that mocks
//! provide, lack or provide in another form.

use serde_json::{Value, json};

use super::condition::context_value;
use super::expression::expression;
use super::random::Random;
use super::variable::{object, template};
use super::vocabulary::{policy, request, rule, scalar, user, value};

/// Names of entries.
const NAMES: [&str; 9] = ["v", "w", "x", "cm", "call", "glob", "foo", "v", "w"];

pub(super) fn case(random: &mut Random) -> Value {
    let object = object(random);
    let mut rule = rule("r", &object);
    rule["context"] = entries(random);
    if random.percent(30) {
        rule["preconditions"] = json!({ "all": [about_entry(random)] });
    }
    rule["validate"] = match random.weighted(&[55, 25, 20]) {
        0 => json!({ "deny": { "conditions": { "any": random.list(1, 2, about_entry) } } }),
        1 => json!({ "deny": {}, "message": format!("<{}>", use_of_entry(random)) }),
        _ => {
            json!({ "pattern": { "spec": { "t": use_of_entry(random), "=(m)": { "=(a)": use_of_entry(random) } } } })
        }
    };
    let mut case = json!({ "policy": policy(vec![rule]) });
    if random.percent(12) {
        case["policy"]["kind"] = json!("Policy");
        case["policy"]["metadata"]["namespace"] = object["metadata"]["namespace"].clone();
        if object["metadata"]["namespace"].is_null() {
            case["policy"]["metadata"]["namespace"] = json!("default");
        }
    }
    request(random, &mut case, object);
    if random.percent(20) {
        case["user"] = user(random);
    }
    case["mocks"] = mocks(random);
    case
}

/// Context entries.
pub(super) fn entries(random: &mut Random) -> Value {
    random.list(0, 4, entry).into()
}

fn entry(random: &mut Random) -> Value {
    let name = random.text(&NAMES);
    match random.weighted(&[64, 12, 14, 10]) {
        0 => json!({ "name": name, "variable": variable(random) }),
        1 => {
            let config_name = match random.percent(80) {
                true => random.text(&["settings", "other", "nope"]),
                false => template(random),
            };
            let mut reference = json!({ "name": config_name });
            if random.percent(60) {
                reference["namespace"] = json!(random.pick(&[
                    "default",
                    "prod",
                    "{{ request.namespace }}",
                    "{{ request.object.metadata.namespace }}"
                ]));
            }
            json!({ "name": name, "configMap": reference })
        }
        2 => {
            let path = random.text(&[
                "/api/v1/namespaces/default/pods",
                "/api/v1/namespaces/prod/pods",
                "/api/v1/namespaces",
                "/apis/x",
                "/api/v1/namespaces/{{ request.namespace }}/pods",
                "/api/v1/namespaces/{{ request.object.spec.t }}/pods",
                "/apis/{{ v }}",
            ]);
            let mut call = json!({ "urlPath": path });
            if random.percent(45) {
                call["jmesPath"] = json!(random.pick(&[
                    "items[].metadata.name",
                    "length(items)",
                    "@",
                    "nope",
                    "items | length(@)",
                    "items[",
                    "kind"
                ]));
            }
            if random.percent(30) {
                call["default"] = context_value(random);
            }
            // The default of the resource definition is applied by the API server.
            call["method"] = json!(random.pick(&["GET", "GET", "GET", "POST"]));
            json!({ "name": name, "apiCall": call })
        }
        _ => {
            let mut reference = json!({ "name": random.pick(&["pods", "pods.names", "pods.nope", "settings", "nope", "{{ request.object.metadata.name }}", "settings.a.b"]) });
            if random.percent(40) {
                reference["jmesPath"] =
                    json!(random.pick(&["[0]", "@", "length(@)", "a", "names", "a["]));
            }
            json!({ "name": name, "globalReference": reference })
        }
    }
}

fn variable(random: &mut Random) -> Value {
    let mut variable = json!({});
    let form = random.weighted(&[40, 35, 20, 5]);
    if matches!(form, 0 | 2) {
        variable["value"] = match random.percent(45) {
            true => json!(template(random)),
            false => match random.percent(25) {
                true => json!({ "a": template(random), "b": [template(random), scalar(random)] }),
                false => value(random, 2),
            },
        };
    }
    if matches!(form, 1 | 2) {
        let text = match random.weighted(&[45, 35, 20]) {
            0 => expression(random, 2),
            1 => random.text(&[
                "a",
                "@",
                "[0]",
                "length(@)",
                "v",
                "w",
                "v.a",
                "cm.data.mode",
                "call.items[]",
                "nope",
                "request.object.spec.v",
                "x || `1`",
                "add(v, `1`)",
                "element",
                "keys(@)",
                "request.object.spec.maps[?name=='a'] | [0].size",
                "a[",
                "foo || v",
            ]),
            _ => format!(
                "request.object.spec.{}",
                random.pick(&["nope", "z", "v", "t", "{{ v }}"])
            ),
        };
        variable["jmesPath"] = json!(text);
    }
    if random.percent(35) {
        variable["default"] = match random.percent(30) {
            true => json!(template(random)),
            false => context_value(random),
        };
    }
    variable
}

fn use_of_entry(random: &mut Random) -> String {
    match random.percent(75) {
        true => {
            let name = random.text(&NAMES);
            let inner = random.text(&[
                "{}",
                "{}",
                "{}.a",
                "{} || 'd'",
                "{}.nope",
                "{}[0]",
                "length({})",
                "to_string({})",
                "{}.data.mode",
                "{}.data.list",
                "parse_json({}.data.json)",
                "{}.items[].metadata.name",
                "type({})",
                "{}.metadata.name",
                "{} == v",
                "{}.names",
                "{}.data.nope || 'd'",
            ]);
            let inner = inner.replace("{}", &name);
            match random.percent(80) {
                true => format!("{{{{ {inner} }}}}"),
                false => format!("a{{{{ {inner} }}}}-{{{{v}}}}"),
            }
        }
        false => template(random),
    }
}

fn about_entry(random: &mut Random) -> Value {
    let mut condition = super::condition::condition(random);
    condition["key"] = json!(use_of_entry(random));
    if random.percent(25) {
        condition["value"] = json!(use_of_entry(random));
    }
    condition
}

fn mocks(random: &mut Random) -> Value {
    let mut mocks = json!({});
    if random.percent(30) {
        let values = random.list(1, 3, |random| (random.text(&NAMES), value(random, 2)));
        mocks["values"] = Value::Object(values.into_iter().collect());
    }
    if random.percent(75) {
        let data = json!({ "mode": "fast", "list": "[\"a\", \"b\"]", "json": "{\"a\": [1, 2.5]}", "n": "5" });
        let config_map = |namespace: &str, name: &str, data: &Value| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": { "name": name, "namespace": namespace, "labels": { "app": "x" } },
            })
        };
        mocks["configMaps"] = json!({
            "default/settings": config_map("default", "settings", &data),
            "prod/settings": config_map("prod", "settings", &json!({})),
            "default/other": config_map("default", "other", &json!({ "mode": "" })),
        });
    }
    if random.percent(75) {
        let pods = json!({ "kind": "PodList", "items": [{ "metadata": { "name": "web" } }, { "metadata": { "name": "db", "n": 1.5 } }] });
        mocks["apiCalls"] = json!({
            "GET /api/v1/namespaces/default/pods": pods,
            "GET /api/v1/namespaces/prod/pods": { "kind": "PodList", "items": [] },
            "GET /api/v1/namespaces": value(random, 2),
            "POST /apis/x": { "a": 1 },
            "GET /apis/x": value(random, 1),
        });
    }
    if random.percent(75) {
        mocks["globalEntries"] =
            json!({ "pods": { "names": ["web", "db"], "a": 1 }, "settings": value(random, 2) });
    }
    mocks
}
