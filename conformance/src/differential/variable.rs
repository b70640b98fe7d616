//! Cases of variables: JMESPath expressions in every place that allows one.

use serde_json::{Value, json};

use super::expression::{expression, text_path};
use super::random::Random;
use super::vocabulary::{
    TEXTS, labels, list, map, number, policy, request, resource, rule, scalar, text, user, value,
};

pub(super) fn case(random: &mut Random) -> Value {
    let object = object(random);
    let mut rule = rule("r", &object);
    match random.weighted(&[45, 20, 20, 15]) {
        0 => rule["validate"] = json!({ "deny": { "conditions": { "any": [condition(random)] } } }),
        1 => rule["validate"] = json!({ "pattern": pattern(random, &object) }),
        2 => {
            // The message shows the result of an expression.
            let message = format!("<{}>", template(random));
            rule["validate"] = json!({ "deny": {}, "message": message });
        }
        _ => {
            rule["preconditions"] = json!({ "all": [condition(random)] });
            rule["validate"] = json!({ "deny": {} });
        }
    }
    if random.percent(20) {
        rule["validate"]["message"] = json!(template(random));
    }
    if random.percent(15) {
        rule["reportProperties"] = json!({ "p": template(random), "q": template(random) });
    }
    let mut case = json!({ "policy": policy(vec![rule]) });
    request(random, &mut case, object);
    if random.percent(40) {
        case["user"] = user(random);
    }
    case
}

/// An object with members of every type, which the paths of [`super::expression`] reach.
pub(super) fn object(random: &mut Random) -> Value {
    if random.percent(20) {
        return resource(random);
    }
    let mut object = super::vocabulary::widget(random);
    let maps = random.list(0, 3, |random| {
        let mut item =
            json!({ "name": random.pick(&["a", "b", "web", "x"]), "size": number(random) });
        if random.percent(30) {
            item["tags"] = json!(random.list(0, 2, |random| random.text(&TEXTS)));
        }
        if random.percent(15) {
            item["size"] = scalar(random);
        }
        item
    });
    // The command line reads whole numbers as floats.
    let float = random.percent(70);
    let count = |random: &mut Random| {
        let number = *random.pick(&[0.0, 1.0, 2.0, 3.5, -1.0, 80.0]);
        match float {
            true => json!(number),
            false => json!(number as i64),
        }
    };
    object["spec"] = json!({
        "t": random.pick(&TEXTS), "n": count(random), "l": list(random, 2), "m": map(random, 1),
        "ts": random.list(0, 3, |random| random.text(&TEXTS)),
        "ns": random.list(0, 3, count), "maps": maps,
        "q": random.pick(&["1Gi", "500m", "1h", "30m", "2", "1.5", "0", "100Mi", "1e3", "-1", "x"]),
        "v": value(random, 2), "z": null, "x.y": text(random),
    });
    if random.percent(50) {
        object["metadata"]["labels"] = labels(random);
    }
    object
}

/// A text that is a variable or contains variables.
pub(super) fn template(random: &mut Random) -> String {
    let depth = random.between(0, 3);
    let one = |random: &mut Random| {
        let inner = expression(random, depth);
        match random.percent(85) {
            true => format!("{{{{ {inner} }}}}"),
            false => format!("{{{{{inner}}}}}"),
        }
    };
    match random.weighted(&[60, 12, 10, 6, 6, 3, 3]) {
        0 => one(random),
        1 => format!("x {}", one(random)),
        2 => format!("{}-{}", one(random), one(random)),
        3 => format!("{} ", one(random)),
        4 => format!("\\{}", one(random)),
        // Values of inner variables contain no braces here: see `docs/differences.md`.
        5 => format!(
            "{{{{ request.object.spec.\"{{{{ {} }}}}\" }}}}",
            text_path(random)
        ),
        _ => format!("{{{{ to_upper('{{{{{}}}}}') }}}}", text_path(random)),
    }
}

fn condition(random: &mut Random) -> Value {
    let mut condition = super::condition::condition(random);
    for side in ["key", "value"] {
        if random.percent(70) {
            condition[side] = match random.percent(90) {
                true => json!(template(random)),
                false => json!([template(random), scalar(random)]),
            };
        }
    }
    condition
}

fn pattern(random: &mut Random, object: &Value) -> Value {
    let mut spec = json!({});
    let members: Vec<String> = object["spec"]
        .as_object()
        .map(|spec| spec.keys().cloned().collect())
        .unwrap_or_default();
    for key in members {
        if !random.percent(20) {
            continue;
        }
        let under = match random.below(4) {
            0 => format!("{{{{ request.object.spec.\"{key}\" }}}}"),
            1 => format!(
                "{}{}",
                random.pick(&["!", ">", "<=", "*", ""]),
                template(random)
            ),
            _ => template(random),
        };
        let key = match random.below(6) {
            0 => format!("({key})"),
            1 => format!("=({key})"),
            _ => key,
        };
        spec[key] = json!(under);
    }
    if random.percent(10) {
        let key = "{{ request.object.metadata.name }}";
        spec[key] = json!("*");
    }
    json!({ "spec": spec })
}
