//! Cases of `pattern` and `anyPattern`: a resource and patterns derived from it, of which
//! about half hold.

use serde_json::{Map, Value, json};

use super::random::Random;
use super::vocabulary::{
    KEYS, LABELS, OPERATIONS, TEXTS, message, number, policy, request, resource, rule, scalar,
    user, value,
};

pub(super) fn case(random: &mut Random) -> Value {
    let object = resource(random);
    let mut rule = rule("r", &object);
    rule["validate"] = body(random, &object);
    if random.percent(25) {
        rule["validate"]["message"] = json!(message(random));
    }
    let mut policy = policy(vec![rule]);
    if random.percent(20) {
        policy["spec"]["validationFailureAction"] = json!("Enforce");
    }
    let mut case = json!({ "policy": policy });
    request(random, &mut case, object);
    if random.percent(10) {
        case["user"] = user(random);
    }
    case
}

/// `pattern` or `anyPattern` for the object.
pub(super) fn body(random: &mut Random, object: &Value) -> Value {
    match random.percent(75) {
        true => json!({ "pattern": document(random, object) }),
        false => {
            let patterns = random.list(0, 3, |random| document(random, object));
            match random.percent(97) {
                true => json!({ "anyPattern": patterns }),
                false => json!({ "anyPattern": value(random, 2) }),
            }
        }
    }
}

/// A pattern for a whole object.
pub(super) fn document(random: &mut Random, object: &Value) -> Value {
    match random.percent(98) {
        true => derived(random, object, Place::Root),
        false => value(random, 2),
    }
}

/// Position of a part of the pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// The map under `metadata`.
    Metadata,
    /// The map under `labels` or `annotations`.
    Labels,
    Other,
}

/// A pattern that the value may match.
fn derived(random: &mut Random, value: &Value, place: Place) -> Value {
    if place != Place::Root && random.percent(3) {
        return super::vocabulary::value(random, 2);
    }
    match value {
        Value::Object(members) => map(random, members, place),
        Value::Array(items) => list(random, items),
        scalar => leaf(random, scalar),
    }
}

fn map(random: &mut Random, members: &Map<String, Value>, place: Place) -> Value {
    let mut pattern = Map::new();
    let keep = if place == Place::Root { 45 } else { 55 };
    for (key, value) in members {
        if !random.percent(keep) {
            continue;
        }
        let inner = match (place, key.as_str()) {
            (Place::Root, "metadata") => Place::Metadata,
            (Place::Metadata, "labels" | "annotations") => Place::Labels,
            _ => Place::Other,
        };
        insert(random, &mut pattern, key, Some(value), inner, place);
    }
    let missing = if place == Place::Labels { 30 } else { 14 };
    if random.percent(missing) {
        let key = match place {
            Place::Labels | Place::Metadata => random.text(&LABELS),
            _ => random.text(&KEYS),
        };
        insert(
            random,
            &mut pattern,
            &key,
            members.get(&key),
            Place::Other,
            place,
        );
    }
    Value::Object(pattern)
}

/// A key, with or without an anchor, and its value.
fn insert(
    random: &mut Random,
    pattern: &mut Map<String, Value>,
    key: &str,
    value: Option<&Value>,
    inner: Place,
    place: Place,
) {
    let anchor = random.weighted(&[58, 12, 13, 6, 5, 5, 1, 1]);
    let missing = Value::Null;
    let value = value.unwrap_or(&missing);
    let mut under = match anchor {
        3 if random.percent(70) => json!(random.pick(&["null", "*", "?*", ""])),
        _ if value.is_null() && random.percent(70) => match random.percent(70) {
            true => leaf(random, &missing),
            false => super::vocabulary::value(random, 2),
        },
        _ => derived(random, value, inner),
    };
    // An existence anchor requires a list of maps.
    if anchor == 4 && random.percent(70) && !under.is_array() {
        under = json!([under]);
    }
    let key = match place {
        Place::Labels if random.percent(30) => wildcard_key(random, key),
        _ => key.to_owned(),
    };
    let key = match anchor {
        0 => key,
        1 => format!("({key})"),
        2 => format!("=({key})"),
        3 => format!("X({key})"),
        4 => format!("^({key})"),
        5 => format!("<({key})"),
        6 => format!("+({key})"),
        _ => {
            let forms = [
                "( {} )", " ({}) ", "=(({}))", "({}", "x({})", "()", "==({})", "!({})",
            ];
            random.text(&forms).replace("{}", &key)
        }
    };
    pattern.insert(key, under);
}

fn wildcard_key(random: &mut Random, key: &str) -> String {
    let start = key.chars().next().unwrap_or('a');
    match random.below(6) {
        0 => "*".into(),
        1 => "?*".into(),
        2 => format!("{start}*"),
        3 => format!("*{}", key.chars().last().unwrap_or('a')),
        4 => key.replacen(start, "?", 1),
        _ => "no*".into(),
    }
}

fn list(random: &mut Random, items: &[Value]) -> Value {
    if random.percent(8) {
        return leaf(random, items.first().unwrap_or(&Value::Null));
    }
    let missing = Value::Null;
    let count = random.weighted(&[4, 76, 16, 4]);
    let patterns = (0..count).map(|_| match items.len() {
        0 => match random.percent(50) {
            true => leaf(random, &missing),
            false => super::vocabulary::map(random, 1),
        },
        length => {
            let item = &items[random.below(length)];
            derived(random, item, Place::Other)
        }
    });
    patterns.collect()
}

/// A scalar pattern for a scalar.
fn leaf(random: &mut Random, value: &Value) -> Value {
    match random.weighted(&[26, 22, 14, 12, 8, 8, 5, 5]) {
        0 => value.clone(),
        1 => json!(operation(random, value)),
        2 => json!(random.pick(&["*", "?*", "*?", "!*", "?", "**", " * "])),
        3 => json!(wildcard(random, value)),
        4 => json!(random.pick(&OPERATIONS)),
        5 => scalar(random),
        6 => json!(random.pick(&[
            "{{ request.object.metadata.name }}",
            "{{ request.object.metadata.namespace || 'prod' }}",
            "{{request.object.spec}}",
            "x-{{ request.operation }}",
            "!{{ request.object.metadata.name }}",
            ">{{ length(request.object.metadata) }}",
            "{{ request.object.nope }}",
            "\\{{ x }}",
            "{{ @ }}",
            "{{ request.object.metadata.labels.app || '*' }} | prod",
        ])),
        _ => json!(random.pick(&[
            "$(../name)",
            "$(./../name)",
            "<=$(./../../limits/memory)",
            "$(/metadata/name)",
            "$(@)",
            "\\$(x)",
            "$(>./../size)",
            "a-$(../b)-c",
            "$(../../metadata/name)",
            "$(a)$(b)",
        ])),
    }
}

/// The value as Go formats it with `%v`, if that is simple.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn operation(random: &mut Random, value: &Value) -> String {
    let own = plain(value);
    let other = match random.percent(70) {
        true => random.text(&TEXTS),
        false => plain(&number(random)),
    };
    match random.below(12) {
        0 => format!(">{other}"),
        1 => format!(">={own}"),
        2 => format!("<{other}"),
        3 => format!("<={own}"),
        4 => format!("!{own}"),
        5 => format!("!{other}"),
        6 => format!("{own} | {other}"),
        7 => format!("{other}|{own}"),
        8 => format!("{own}-{other}"),
        9 => format!("{other}!-{own}"),
        10 => format!("!{other} & {own}"),
        _ => format!(">{other} & <={own} | {other}"),
    }
}

fn wildcard(random: &mut Random, value: &Value) -> String {
    let own = plain(value);
    let characters: Vec<char> = own.chars().collect();
    let cut = random.below(characters.len() + 1);
    let (start, end) = characters.split_at(cut);
    let (start, end): (String, String) = (start.iter().collect(), end.iter().collect());
    match random.below(5) {
        0 => format!("{start}*"),
        1 => format!("*{end}"),
        2 => format!("{start}?{}", end.chars().skip(1).collect::<String>()),
        3 => format!("*{}*", start.chars().last().unwrap_or('a')),
        _ => format!("{start}*{end}"),
    }
}
