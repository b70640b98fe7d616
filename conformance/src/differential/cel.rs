//! Cases of `validate.cel` and `celPreconditions`: expressions over an object with
//! members of every type, mostly well typed.

use serde_json::{Value, json};

use super::random::Random;
use super::variable::object;
use super::vocabulary::{TEXTS, message, policy, request, resource, rule, user};

pub(super) fn case(random: &mut Random) -> Value {
    let object = match random.percent(65) {
        true => object(random),
        false => resource(random),
    };
    let mut rule = rule("r", &object);
    let mut cel = json!({ "expressions": random.list(1, 3, validation) });
    let names: Vec<String> = match random.percent(25) {
        true => match random.percent(50) {
            true => vec!["a".into()],
            false => vec!["b".into(), "ok".into()],
        },
        false => Vec::new(),
    };
    let variables = names.iter().map(|name| {
        let expression = match random.below(3) {
            0 => truth(random, 2),
            1 => whole(random, 1),
            _ => words(random, 1),
        };
        json!({ "name": name, "expression": expression })
    });
    let variables: Vec<Value> = variables.collect();
    if let (Some(name), false) = (names.first(), variables.is_empty()) {
        cel["variables"] = variables.into();
        let used = random.text(&[
            "variables.{} == true",
            "variables.{} != 'x'",
            "has(variables.{})",
            "[variables.{}] == []",
            "type(variables.{}) == string",
        ]);
        cel["expressions"][0]["expression"] = json!(used.replace("{}", name));
    }
    rule["validate"] = json!({ "cel": cel });
    if random.percent(25) {
        rule["validate"]["message"] = json!(message(random));
    }
    if random.percent(25) {
        let condition = |random: &mut Random| json!({ "name": random.text(&["c", "d"]), "expression": truth(random, 1) });
        rule["celPreconditions"] = Value::Array(random.list(1, 2, condition));
    }
    let mut case = json!({ "policy": policy(vec![rule]) });
    request(random, &mut case, object);
    if random.percent(30) {
        case["user"] = user(random);
    }
    case
}

fn validation(random: &mut Random) -> Value {
    let depth = random.between(0, 2);
    let mut validation = json!({ "expression": truth(random, depth) });
    if random.percent(30) {
        validation["message"] = json!(message(random));
    }
    if random.percent(25) {
        let expression = match random.percent(85) {
            true => words(random, 2),
            false => any(random, 1),
        };
        validation["messageExpression"] = json!(expression);
    }
    validation
}

/// Paths of members of the object, by type.
const PATHS: [&str; 30] = [
    "object.spec.t",
    "object.spec.n",
    "object.spec.l",
    "object.spec.m",
    "object.spec.ts",
    "object.spec.ns",
    "object.spec.maps",
    "object.spec.q",
    "object.spec.v",
    "object.spec.z",
    "object.spec['x.y']",
    "object.metadata.name",
    "object.metadata.namespace",
    "object.metadata.labels",
    "object.metadata.labels.app",
    "object.metadata.?labels.?app.orValue('')",
    "object.metadata.?annotations[?'acme.io/tier']",
    "object.spec.?nope",
    "object.spec.nope",
    "object.spec.?m.?a.orValue(1)",
    "object.spec.maps[0].name",
    "object.spec.?maps[?0].?name.orValue('none')",
    "object.spec.containers",
    "object.spec.?containers.orValue([])",
    "object.spec.containers[0].image",
    "object.spec.replicas",
    "object",
    "oldObject",
    "oldObject.spec.t",
    "object.kind",
];

/// Paths that exist in every object.
const SAFE: [&str; 12] = [
    "object.kind",
    "object.apiVersion",
    "object.metadata.?name.orValue('')",
    "object.metadata.?labels.?app.orValue('')",
    "object.metadata.?labels.orValue({})",
    "object.?spec.?t.orValue('')",
    "object.?spec.?n.orValue(1)",
    "object.?spec.?ts.orValue([])",
    "object.?spec.?v.orValue(null)",
    "object.?spec.?maps[?0].?size.orValue(0)",
    "object.?spec.?m.orValue({})",
    "oldObject",
];

const REQUESTS: [&str; 12] = [
    "request.operation",
    "request.namespace",
    "request.name",
    "request.kind.kind",
    "request.kind.group",
    "request.resource.resource",
    "request.userInfo.username",
    "request.subResource",
    "request.dryRun",
    "request.options",
    "namespaceObject.metadata.name",
    "namespaceObject",
];

fn path(random: &mut Random) -> String {
    match random.weighted(&[60, 32, 8]) {
        0 => random.text(&SAFE),
        1 => random.text(&PATHS),
        _ => random.text(&REQUESTS),
    }
}

fn any(random: &mut Random, depth: usize) -> String {
    match random.below(6) {
        0 => path(random),
        1 => truth(random, depth),
        2 => whole(random, depth),
        3 => words(random, depth),
        4 => sequence(random, depth),
        _ => random.text(&[
            "null",
            "1.5",
            "2u",
            "{}",
            "{'a': 1}",
            "[1, 2]",
            "b'a'",
            "duration('1h')",
            "timestamp('2024-01-02T03:04:05Z')",
            "optional.none()",
            "type(1)",
            "dyn(1.0)",
            "quantity('1Gi')",
        ]),
    }
}

fn quoted(random: &mut Random) -> String {
    format!("'{}'", random.text(&TEXTS))
}

/// An expression that yields a bool or an error.
fn truth(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return match random.below(6) {
            0 => random.text(&["true", "false"]),
            1 => format!(
                "has({})",
                random.text(&[
                    "object.spec",
                    "object.spec.t",
                    "object.spec.nope",
                    "object.spec.nope.x",
                    "object.metadata.labels",
                    "object.spec.z",
                    "object.spec.t.x",
                    "object.spec.maps",
                    "request.namespace",
                    "oldObject.spec",
                ])
            ),
            2 => format!("{} == {}", path(random), any(random, 0)),
            3 => format!("{} != {}", path(random), quoted(random)),
            4 => format!("{} > {}", path(random), whole(random, 0)),
            _ => format!("{} in {}", any(random, 0), path(random)),
        };
    }
    let inner = depth - 1;
    match random.below(18) {
        0 => format!("{} && {}", truth(random, inner), truth(random, inner)),
        1 => format!("{} || {}", truth(random, inner), truth(random, inner)),
        2 => format!("!({})", truth(random, inner)),
        3 => format!(
            "({}) ? ({}) : ({})",
            truth(random, inner),
            truth(random, inner),
            truth(random, inner)
        ),
        4 => {
            let operator = random.text(&["==", "!="]);
            format!("{} {operator} {}", any(random, inner), any(random, inner))
        }
        5 => {
            let operator = random.text(&["<", "<=", ">", ">="]);
            match random.percent(60) {
                true => format!(
                    "{} {operator} {}",
                    whole(random, inner),
                    whole(random, inner)
                ),
                false => format!("{} {operator} {}", any(random, inner), any(random, inner)),
            }
        }
        6 => format!("{} in {}", any(random, inner), sequence(random, inner)),
        7 | 8 => {
            let list = sequence(random, inner);
            let test = about(random, inner);
            let call = random.text(&["all", "exists", "exists_one"]);
            format!("{list}.{call}(x, {test})")
        }
        9 => format!("{}.startsWith({})", words(random, inner), quoted(random)),
        10 => format!("{}.endsWith({})", words(random, inner), quoted(random)),
        11 => format!(
            "{}.contains({})",
            words(random, inner),
            words(random, inner)
        ),
        12 => format!(
            "{}.matches({})",
            words(random, inner),
            random.text(&["'^[a-z]+$'", "'.*:latest$'", "'['", "''", "r'\\d+'"])
        ),
        13 => format!(
            "type({}) == {}",
            any(random, inner),
            random.text(&[
                "string",
                "int",
                "double",
                "list",
                "map",
                "bool",
                "null_type"
            ])
        ),
        14 => format!("isQuantity({})", words(random, inner)),
        15 => format!(
            "{}.hasValue()",
            random.text(&[
                "object.spec.?t",
                "object.?nope.?x",
                "object.metadata.?labels[?'app']",
                "optional.of(1)"
            ])
        ),
        16 => random.text(&[
            "quantity('1Gi').isGreaterThan(quantity('1024Mi'))",
            "quantity(object.spec.q).compareTo(quantity('1')) >= 0",
            "url('https://a.b/c?d=e').getHost() == 'a.b'",
            "isIP('10.0.0.1') && ip('10.0.0.1').family() == 4",
            "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
            "isSemver('1.2.3') && semver('1.2.3').isLessThan(semver('1.10.0'))",
            "sets.contains([1, 2], [2])",
            "duration(object.spec.q) > duration('30m')",
            "timestamp(object.metadata.creationTimestamp).getFullYear() > 2000",
            "format.dns1123Label().validate(object.metadata.name) == optional.none()",
            "object.spec.q.find('[0-9]+') == '1'",
            "object.spec.ts.isSorted()",
            "object.spec.ns.sum() > 3.0",
        ]),
        _ => truth(random, 0),
    }
}

/// A predicate over the item `x` of a list.
fn about(random: &mut Random, depth: usize) -> String {
    match random.below(9) {
        0 => format!("x == {}", any(random, 0)),
        1 => "has(x.name) && x.name != ''".into(),
        2 => "x.size > 1".into(),
        3 => "x.startsWith('a')".into(),
        4 => format!("x.image.contains({})", quoted(random)),
        5 => "!has(x.securityContext) || !x.securityContext.privileged".into(),
        6 => "x.?resources.?limits.?memory.orValue('') != ''".into(),
        7 => format!("x in {}", sequence(random, 0)),
        _ => truth(random, depth.min(1)),
    }
}

fn whole(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.text(&[
            "0",
            "1",
            "2",
            "-1",
            "80",
            "9223372036854775807",
            "1.5",
            "object.spec.n",
            "2u",
            "object.spec.?replicas.orValue(1)",
            "size(object.spec.ts)",
            "object.spec.ns[0]",
        ]);
    }
    let inner = depth - 1;
    match random.below(8) {
        0 => format!("{} + {}", whole(random, inner), whole(random, inner)),
        1 => format!("{} - {}", whole(random, inner), whole(random, inner)),
        2 => format!("{} * {}", whole(random, inner), whole(random, inner)),
        3 => {
            let operator = random.text(&["/", "%"]);
            format!("{} {operator} {}", whole(random, inner), whole(random, 0))
        }
        4 => format!("size({})", sequence(random, inner)),
        5 => format!("size({})", words(random, inner)),
        6 => format!(
            "{}({})",
            random.text(&["int", "double", "uint"]),
            any(random, inner)
        ),
        _ => format!("{}.indexOf({})", words(random, inner), quoted(random)),
    }
}

fn words(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return match random.percent(40) {
            true => quoted(random),
            false => random.text(&[
                "object.spec.t",
                "object.?spec.?t.orValue('a')",
                "object.?spec.?q.orValue('1')",
                "object.metadata.name",
                "object.apiVersion",
                "object.metadata.?labels.?app.orValue('x')",
                "object.spec.maps[0].name",
                "object.spec.ts[0]",
                "request.operation",
                "object.kind",
            ]),
        };
    }
    let inner = depth - 1;
    match random.below(11) {
        0 => format!("{} + {}", words(random, inner), words(random, inner)),
        1 => format!("string({})", any(random, inner)),
        2 => format!(
            "{}.{}()",
            words(random, inner),
            random.text(&["lowerAscii", "upperAscii", "trim"])
        ),
        3 => format!(
            "{}.replace({}, {})",
            words(random, inner),
            quoted(random),
            quoted(random)
        ),
        4 => format!(
            "{}.substring({})",
            words(random, inner),
            random.text(&["0", "1", "0, 2", "2, 1", "5"])
        ),
        5 => format!(
            "{}.split({}).join('-')",
            words(random, inner),
            quoted(random)
        ),
        6 => format!("{}.charAt({})", words(random, inner), random.below(3)),
        7 => format!(
            "({}) ? {} : {}",
            truth(random, inner),
            words(random, inner),
            words(random, inner)
        ),
        8 => format!(
            "'%s:%d'.format([{}, {}])",
            any(random, inner),
            whole(random, inner)
        ),
        9 => "object.spec.ts.join(',')".into(),
        _ => words(random, 0),
    }
}

fn sequence(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.text(&[
            "object.?spec.?ts.orValue([])",
            "object.?spec.?ns.orValue([])",
            "object.?spec.?maps.orValue([])",
            "object.?spec.?l.orValue([])",
            "object.?spec.?m.orValue({})",
            "object.?spec.?containers.orValue([])",
            "object.metadata.?labels.orValue({})",
            "object.spec.ts",
            "object.spec.maps",
            "[]",
            "[1, 2, 3]",
            "['a', 'b']",
            "object.spec.?containers.orValue([])",
            "object.spec.containers",
            "object.metadata.labels",
            "[dyn(1), 'a', null]",
            "[object.spec.t]",
            "object.spec.nope",
        ]);
    }
    let inner = depth - 1;
    match random.below(6) {
        0 => format!(
            "{}.filter(x, {})",
            sequence(random, inner),
            about(random, inner)
        ),
        1 => format!(
            "{}.map(x, {})",
            sequence(random, inner),
            random.text(&["x", "x.name", "[x]", "size(x)", "x + x"])
        ),
        2 => format!("{} + {}", sequence(random, inner), sequence(random, inner)),
        3 => format!("{}.split({})", words(random, inner), quoted(random)),
        4 => format!("[{}, {}]", any(random, inner), any(random, inner)),
        _ => sequence(random, 0),
    }
}
