//! Cases of `preconditions` and `deny.conditions`: every operator with keys and values
//! of every type.

use serde_json::{Value, json};

use super::random::Random;
use super::vocabulary::{
    OPERATIONS, TEXTS, labels, list, map, message, number, policy, request, rule, scalar, text,
    value, widget,
};

/// Condition operators; the last ones do not exist.
const OPERATORS: [&str; 24] = [
    "Equals",
    "NotEquals",
    "Equal",
    "NotEqual",
    "In",
    "NotIn",
    "AnyIn",
    "AllIn",
    "AnyNotIn",
    "AllNotIn",
    "GreaterThan",
    "GreaterThanOrEquals",
    "LessThan",
    "LessThanOrEquals",
    "DurationGreaterThan",
    "DurationGreaterThanOrEquals",
    "DurationLessThan",
    "DurationLessThanOrEquals",
    "equals",
    "ANYIN",
    "greaterthan",
    "durationlessthan",
    "Foo",
    "",
];

pub(super) fn case(random: &mut Random) -> Value {
    let mut object = widget(random);
    // Values that conditions refer to.
    object["spec"] = json!({
        "v": operand(random), "w": operand(random), "n": number(random), "t": text(random),
        "l": list(random, 2), "m": map(random, 2), "z": null,
    });
    let mut rule = rule("r", &object);
    if random.percent(45) {
        rule["preconditions"] = conditions(random, 93);
    }
    rule["validate"] = match random.percent(85) {
        true => json!({ "deny": { "conditions": conditions(random, 88) } }),
        false => json!({ "deny": {} }),
    };
    if random.percent(25) {
        rule["validate"]["message"] = json!(message(random));
    }
    let mut case = json!({ "policy": policy(vec![rule]) });
    request(random, &mut case, object);
    case
}

/// A block of conditions, in `any_all` percent of the cases with `any` and `all`.
pub(super) fn conditions(random: &mut Random, any_all: u32) -> Value {
    if !random.percent(any_all) {
        return random.list(0, 3, condition).into();
    }
    let mut block = json!({});
    if random.percent(65) {
        block["any"] = random.list(0, 3, condition).into();
    }
    if random.percent(55) {
        block["all"] = random.list(0, 3, condition).into();
    }
    block
}

/// One condition.
pub(super) fn condition(random: &mut Random) -> Value {
    let last = match random.percent(96) {
        true => 18,
        false => OPERATORS.len(),
    };
    let operator = random.text(&OPERATORS[..last]);
    let (key, value) = match operator.as_str() {
        // Most pairs of types do not fit, so make more that do.
        name if name.starts_with("Duration") && random.percent(75) => {
            (amount(random), amount(random))
        }
        name if name.contains("Than") && random.percent(60) => (amount(random), amount(random)),
        name if name.contains("In") && random.percent(50) => (member(random), members(random)),
        _ => (side(random), side(random)),
    };
    let mut condition = json!({ "key": key, "operator": operator, "value": value });
    if random.percent(25) {
        condition["message"] = json!(message(random));
    }
    condition
}

fn side(random: &mut Random) -> Value {
    match random.percent(40) {
        true => json!(variable(random)),
        false => operand(random),
    }
}

fn operand(random: &mut Random) -> Value {
    match random.weighted(&[60, 20, 10, 10]) {
        0 => scalar(random),
        1 => list(random, 1),
        2 => map(random, 1),
        _ => value(random, 2),
    }
}

fn amount(random: &mut Random) -> Value {
    match random.weighted(&[35, 50, 15]) {
        0 => number(random),
        1 => json!(random.pick(&[
            "1Gi",
            "1024Mi",
            "500m",
            "0.5",
            "1",
            "10",
            "1h",
            "60m",
            "3600s",
            "0s",
            "0",
            "-1h",
            "1.2.3",
            "1.10.0",
            "1.2.3-rc.1",
            "1e3",
            "100M",
            "2024-01-02",
            "1h30m",
            "5",
            "1.5h",
            "",
            "v1.2.3",
            "0.1",
            "1000000u",
            "1d",
            "24h",
        ])),
        _ => json!(variable(random)),
    }
}

fn member(random: &mut Random) -> Value {
    match random.weighted(&[45, 25, 15, 15]) {
        0 => json!(random.pick(&[
            "a", "b", "abc", "1", "5", "prod", "10", "*", "a*", "true", "1.5", "100Mi", ""
        ])),
        1 => number(random),
        2 => json!(random.list(0, 3, |random| match random.percent(70) {
            true => json!(random.pick(&["a", "b", "abc", "1", "5", "a*", "prod"])),
            false => scalar(random),
        })),
        _ => json!(variable(random)),
    }
}

fn members(random: &mut Random) -> Value {
    match random.weighted(&[50, 20, 15, 15]) {
        0 => json!(random.list(0, 3, |random| match random.percent(65) {
            true => json!(random.pick(&[
                "a", "b", "a*", "?*", "1", "5", "prod", "1-5", "5-10", "!a", "*"
            ])),
            false => scalar(random),
        })),
        1 => json!(random.pick(&[
            "1-10",
            "5-6",
            "-5-5",
            "1!-10",
            "100Mi-1Gi",
            "a",
            "a*",
            "[\"a\",\"b\"]",
            "[\"a*\"]",
            "[1,2]",
            "5",
            "true",
            "null",
            "{}",
            "[]",
            "\"a\"",
            "1h-2h",
            "1-",
            "",
            "a,b",
        ])),
        2 => json!(random.pick(&OPERATIONS)),
        _ => json!(variable(random)),
    }
}

fn variable(random: &mut Random) -> String {
    let whole = random.percent(85);
    let inner = random.text(&[
        "request.object.spec.v",
        "request.object.spec.w",
        "request.object.spec.n",
        "request.object.spec.t",
        "request.object.spec.l",
        "request.object.spec.m",
        "request.object.spec.z",
        "request.object.spec.nope",
        "request.object.spec.nope || 'd'",
        "request.object.spec.l[0]",
        "request.object.spec.l[]",
        "request.object.spec.l[*].name",
        "request.object.spec.m.a",
        "request.object.spec.m.*",
        "request.object.metadata.name",
        "request.object.metadata.labels",
        "request.object.metadata.labels.app || ''",
        "request.operation",
        "request.userInfo.username",
        "length(request.object.spec.l)",
        "to_string(request.object.spec.v)",
        "to_number('5')",
        "request.object.spec.v || request.object.spec.w",
        "keys(request.object.metadata)",
        "`[\"a\", 1, 2.5]`",
        "`1000000`",
        "request.object.spec.[v, w]",
        "request.object.spec.{a: v, b: w}",
        "type(request.object.spec.v)",
        "request.object.spec.l | length(@)",
    ]);
    match whole {
        true => format!("{{{{ {inner} }}}}"),
        false => {
            let around = random.text(&[
                "{}x",
                "x{}",
                "{}{}",
                " {}",
                "a {} b {}",
                "\\{}",
                ">{}",
                "{}-10",
            ]);
            around.replace("{}", &format!("{{{{{inner}}}}}"))
        }
    }
}

/// A value for labels, which conditions may also refer to.
pub(super) fn context_value(random: &mut Random) -> Value {
    match random.percent(20) {
        true => labels(random),
        false => match random.percent(30) {
            true => json!(random.pick(&TEXTS)),
            false => operand(random),
        },
    }
}
