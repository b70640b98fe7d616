//! Cases of `foreach`: lists of any items, nested loops, elements in patterns and
//! conditions.

use serde_json::{Value, json};

use super::condition::{condition, conditions};
use super::context::entries;
use super::expression::{expression, list_expression};
use super::pattern;
use super::random::Random;
use super::variable::object;
use super::vocabulary::{message, policy, request, resource, rule, user};

/// Lists of [`object`] and of Pods.
const LISTS: [&str; 18] = [
    "request.object.spec.maps",
    "request.object.spec.l",
    "request.object.spec.ts",
    "request.object.spec.ns",
    "request.object.spec.containers",
    "request.object.spec.[initContainers, containers][]",
    "request.object.spec.containers[].ports[]",
    "request.object.spec.m",
    "request.object.spec.t",
    "request.object.spec.z",
    "request.object.spec.nope",
    "request.object.spec.maps[?name=='a']",
    "request.object.metadata.labels",
    "items(request.object.spec.m, 'k', 'v')",
    "request.object.spec.maps[].tags[]",
    "keys(request.object.metadata)",
    "request.object.spec.maps || `[]`",
    "`[1, \"a\", null, {\"name\": \"a\"}]`",
];

pub(super) fn case(random: &mut Random) -> Value {
    let object = match random.percent(70) {
        true => object(random),
        false => resource(random),
    };
    let mut rule = rule("r", &object);
    rule["validate"] = json!({ "foreach": random.list(1, 2, |random| each(random, &object, 0)) });
    if random.percent(40) {
        let text = random.text(&[
            "{{ element.name }} is bad",
            "{{ elementIndex }}",
            "no",
            "",
            "{{ element }}",
            "{{ request.object.kind }}",
        ]);
        rule["validate"]["message"] = json!(match random.percent(70) {
            true => text,
            false => message(random),
        });
    }
    if random.percent(15) {
        rule["preconditions"] = conditions(random, 95);
    }
    if random.percent(20) {
        rule["context"] = entries(random);
    }
    let mut case = json!({ "policy": policy(vec![rule]) });
    request(random, &mut case, object);
    if random.percent(15) {
        case["user"] = user(random);
    }
    case
}

fn each(random: &mut Random, object: &Value, nesting: usize) -> Value {
    let list = match (nesting, random.below(10)) {
        (0, 0) => list_expression(random, 2),
        (0, _) => random.text(&LISTS),
        (_, 0) => random.text(&LISTS),
        _ => random.text(&[
            "element.tags",
            "element",
            "element.ports",
            "element0.tags || `[]`",
            "element.env[]",
            "[element]",
            "element.nope",
            "element.[name, size]",
            "request.object.spec.ts",
        ]),
    };
    let mut each = json!({ "list": list });
    if random.percent(20) {
        each["elementScope"] = json!(random.percent(50));
    }
    if random.percent(25) {
        each["context"] = entries(random);
    }
    if random.percent(30) {
        let mut block = json!({});
        for part in ["any", "all"] {
            if random.percent(50) {
                block[part] = random.list(0, 2, about_element).into();
            }
        }
        each["preconditions"] = block;
    }
    match random.weighted(&[50, 30, 15, 5]) {
        0 => {
            let part = random.text(&["any", "all"]);
            each["deny"] = json!({ "conditions": { part: random.list(1, 2, about_element) } });
        }
        1 => {
            let element = element_of(random, object, each["list"].as_str().unwrap_or_default());
            let body = match random.percent(80) {
                true => json!({ "pattern": pattern::document(random, &element) }),
                false => {
                    json!({ "anyPattern": random.list(1, 2, |random| pattern::document(random, &element)) })
                }
            };
            for (key, value) in body.as_object().into_iter().flatten() {
                each[key] = value.clone();
            }
        }
        2 if nesting < 2 => {
            each["foreach"] = random
                .list(1, 2, |random| each_inner(random, object, nesting))
                .into();
        }
        _ => {}
    }
    each
}

fn each_inner(random: &mut Random, object: &Value, nesting: usize) -> Value {
    each(random, object, nesting + 1)
}

/// A pattern for an element.
fn element_of(random: &mut Random, object: &Value, list: &str) -> Value {
    let path = list.trim_start_matches("request.object.").replace('.', "/");
    match object.pointer(&format!("/{path}")) {
        Some(Value::Array(items)) if !items.is_empty() => random.pick(items).clone(),
        Some(Value::Object(members)) => Value::Object(members.clone()),
        _ => match random.percent(50) {
            true => json!({ "name": "a", "size": 1 }),
            false => object.clone(),
        },
    }
}

fn about_element(random: &mut Random) -> Value {
    let mut condition = condition(random);
    if random.percent(75) {
        let text = match random.percent(80) {
            true => random.text(&[
                "{{ element }}",
                "{{ element.name }}",
                "{{ element.size }}",
                "{{ element.image }}",
                "{{ elementIndex }}",
                "{{ element0 }}",
                "{{ element1.name }}",
                "{{ elementIndex0 }}-{{ elementIndex }}",
                "{{ element.tags || `[]` }}",
                "{{ element.nope }}",
                "{{ element.nope || 'd' }}",
                "{{ element.securityContext.privileged || `false` }}",
                "{{ element.resources.limits.memory || '0' }}",
                "{{ element.k }}",
                "{{ length(element) }}",
                "{{ to_string(element) }}",
                "{{ type(element) }}",
                "{{ v }}",
                "{{ w }}",
                "{{ images.containers.\"{{ element.name }}\".tag }}",
                "{{ add(elementIndex, `1`) }}",
                "{{ element.name == 'a' }}",
                "{{ elementIndex == `0` }}",
            ]),
            false => format!("{{{{ {} }}}}", expression(random, 1)),
        };
        condition["key"] = json!(text);
    }
    condition
}
