//! Cases of PolicyException: exceptions of every form for rules with any body.

use serde_json::{Value, json};

use super::matching::block;
use super::random::Random;
use super::vocabulary::{LABELS, NAMES, policy, request, resource, user};
use super::{condition, pattern, pod_security};

pub(super) fn case(random: &mut Random) -> Value {
    let is_pod_security = random.percent(35);
    let object = match is_pod_security {
        true => pod_security::object(random),
        false => resource(random),
    };
    let mut rule = super::vocabulary::rule("r", &object);
    if object["kind"] != "Pod" && random.percent(40) {
        // Generated rules have other names.
        rule["match"] = json!({ "any": [{ "resources": { "kinds": ["Pod"] } }] });
    }
    rule["validate"] = match random.weighted(&[40, 30, 30]) {
        _ if is_pod_security => {
            json!({ "podSecurity": { "level": random.pick(&["baseline", "restricted"]) } })
        }
        0 => json!({ "deny": {} }),
        1 => pattern::body(random, &object),
        _ => json!({ "deny": { "conditions": condition::conditions(random, 90) } }),
    };
    if random.percent(15) {
        rule["preconditions"] = condition::conditions(random, 95);
    }
    let mut policy = policy(vec![rule]);
    if random.percent(15) {
        policy["kind"] = json!("Policy");
        policy["metadata"]["namespace"] = match random.percent(70) {
            true => object["metadata"]["namespace"].clone(),
            false => json!("prod"),
        };
    }
    let mut case = json!({ "policy": policy });
    case["exceptions"] =
        Value::Array(random.list(1, 3, |random| exception(random, &object, is_pod_security)));
    request(random, &mut case, object);
    if random.percent(40) {
        case["user"] = user(random);
    }
    if random.percent(30) {
        case["namespaceLabels"] = super::vocabulary::labels(random);
    }
    case
}

fn exception(random: &mut Random, object: &Value, is_pod_security: bool) -> Value {
    let policy = match random.percent(85) {
        true => "p".to_owned(),
        false => random.text(&["prod/p", "default/p", "*", "q", "p*"]),
    };
    let rules = [
        "r",
        "*",
        "autogen-r",
        "autogen-cronjob-r",
        "*r",
        "autogen-*",
        "x",
        "",
    ];
    let rules = random.list(1, 2, |random| random.text(&rules));
    let mut exception = json!({
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": { "name": random.pick(&["e1", "e2", "web"]) },
        "spec": { "exceptions": [{ "policyName": policy, "ruleNames": rules }] },
    });
    if random.percent(85) {
        exception["metadata"]["namespace"] = json!(random.pick(&["prod", "default", "x"]));
    }
    exception["spec"]["match"] = match random.percent(55) {
        true => json!({ "any": [{ "resources": { "kinds": [object["kind"]] } }] }),
        false => match block(random, object, false) {
            // Exceptions have no filters without `any` or `all`.
            filter if filter.get("resources").is_some() => json!({ "all": [filter] }),
            block => block,
        },
    };
    if random.percent(30) {
        let part = random.text(&["any", "all"]);
        let conditions = random.list(0, 2, |random| {
            let key = format!(
                "{{{{ request.object.metadata.labels.\"{}\" || '' }}}}",
                random.pick(&LABELS)
            );
            let value = random.text(&["", "a", "prod", "*"]);
            match random.percent(70) {
                true => json!({ "key": key, "operator": random.pick(&["Equals", "NotEquals", "AnyIn"]), "value": value }),
                false => json!({ "key": "{{ request.object.metadata.name }}", "operator": "Equals", "value": random.pick(&NAMES) }),
            }
        });
        exception["spec"]["conditions"] = json!({ part: conditions });
    }
    if random.percent(match is_pod_security {
        true => 60,
        false => 3,
    }) {
        exception["spec"]["podSecurity"] = Value::Array(random.list(1, 4, pod_security::exclusion));
    }
    exception
}
