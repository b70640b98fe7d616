//! JMESPath expressions over an object whose members have known types.

use super::random::Random;
use super::vocabulary::TEXTS;

/// Type of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Number,
    List,
    Texts,
    Numbers,
    Map,
    /// A quantity, duration or number.
    Amount,
    /// A point in time as RFC 3339.
    Time,
    Duration,
    Version,
    Image,
    Regex,
    Any,
    /// `&expression`
    Reference,
}

use Type::{
    Amount, Any, Duration, Image, List, Map, Number, Numbers, Reference, Regex, Text, Texts, Time,
    Version,
};

/// Functions whose result depends only on their arguments.
const FUNCTIONS: [(&str, &[Type]); 68] = [
    ("abs", &[Number]),
    ("avg", &[Numbers]),
    ("ceil", &[Number]),
    ("contains", &[List, Any]),
    ("contains", &[Text, Text]),
    ("ends_with", &[Text, Text]),
    ("floor", &[Number]),
    ("join", &[Text, Texts]),
    ("keys", &[Map]),
    ("length", &[Any]),
    ("length", &[List]),
    ("map", &[Reference, List]),
    ("max", &[Numbers]),
    ("max", &[Texts]),
    ("max_by", &[List, Reference]),
    ("merge", &[Map, Map]),
    ("min", &[Numbers]),
    ("min_by", &[List, Reference]),
    ("not_null", &[Any, Any]),
    ("reverse", &[List]),
    ("reverse", &[Text]),
    ("sort", &[Texts]),
    ("sort", &[Numbers]),
    ("sort_by", &[List, Reference]),
    ("starts_with", &[Text, Text]),
    ("to_array", &[Any]),
    ("to_number", &[Any]),
    ("to_string", &[Any]),
    ("type", &[Any]),
    ("values", &[Map]),
    ("compare", &[Text, Text]),
    ("equal_fold", &[Text, Text]),
    ("replace", &[Text, Text, Text, Number]),
    ("replace_all", &[Text, Text, Text]),
    ("to_upper", &[Text]),
    ("to_lower", &[Text]),
    ("trim", &[Text, Text]),
    ("trim_prefix", &[Text, Text]),
    ("split", &[Text, Text]),
    ("truncate", &[Text, Number]),
    ("to_boolean", &[Text]),
    ("regex_match", &[Regex, Any]),
    ("regex_replace_all", &[Regex, Text, Text]),
    ("regex_replace_all_literal", &[Regex, Text, Text]),
    ("pattern_match", &[Text, Any]),
    ("label_match", &[Map, Map]),
    ("add", &[Amount, Amount]),
    ("subtract", &[Amount, Amount]),
    ("multiply", &[Amount, Amount]),
    ("divide", &[Amount, Amount]),
    ("modulo", &[Amount, Amount]),
    ("round", &[Number, Number]),
    ("sum", &[List]),
    ("base64_encode", &[Text]),
    ("path_canonicalize", &[Text]),
    ("semver_compare", &[Version, Version]),
    ("parse_json", &[Text]),
    ("lookup", &[Any, Any]),
    ("items", &[Any, Text, Text]),
    ("object_from_lists", &[List, List]),
    ("time_add", &[Time, Duration]),
    ("time_diff", &[Time, Time]),
    ("time_before", &[Time, Time]),
    ("time_between", &[Time, Time, Time]),
    ("time_truncate", &[Time, Duration]),
    ("time_to_cron", &[Time]),
    ("image_normalize", &[Image]),
    ("sha256", &[Text]),
];

/// Paths of the widgets of [`super::variable`], by type.
const PATHS: [(Type, &[&str]); 8] = [
    (
        Text,
        &[
            "request.object.spec.t",
            "request.object.metadata.name",
            "request.object.kind",
            "request.object.spec.ts[0]",
        ],
    ),
    (
        Number,
        &[
            "request.object.spec.n",
            "request.object.spec.ns[0]",
            "length(request.object.spec.l)",
        ],
    ),
    (
        List,
        &[
            "request.object.spec.l",
            "request.object.spec.ts",
            "request.object.spec.maps",
            "request.object.spec.maps[].name",
        ],
    ),
    (
        Texts,
        &[
            "request.object.spec.ts",
            "request.object.spec.maps[].name",
            "keys(request.object.spec.m)",
        ],
    ),
    (
        Numbers,
        &["request.object.spec.ns", "request.object.spec.maps[].size"],
    ),
    (
        Map,
        &[
            "request.object.spec.m",
            "request.object.metadata",
            "request.object.metadata.labels",
            "request.object.spec.maps[0]",
        ],
    ),
    (
        Amount,
        &[
            "request.object.spec.q",
            "request.object.spec.n",
            "request.object.spec.maps[0].size",
        ],
    ),
    (
        Any,
        &[
            "request.object.spec.v",
            "request.object.spec",
            "request.object.spec.z",
            "request.object",
            "request.object.spec.nope",
            "request.object.spec.maps",
            "request.operation",
            "request.namespace",
            "request.userInfo.username",
            "serviceAccountName",
            "images",
            "request.oldObject",
        ],
    ),
];

/// An expression of at most this depth.
pub(super) fn expression(random: &mut Random, depth: usize) -> String {
    of_type(random, Any, depth)
}

/// An expression that mostly yields a list.
pub(super) fn list_expression(random: &mut Random, depth: usize) -> String {
    match random.percent(75) {
        true => of_type(random, List, depth),
        false => of_type(random, Any, depth),
    }
}

/// A path to a text that may be missing.
pub(super) fn text_path(random: &mut Random) -> String {
    random.text(PATHS[0].1)
}

fn of_type(random: &mut Random, wanted: Type, depth: usize) -> String {
    // Rarely another type, for type errors.
    let wanted = match random.percent(7) {
        true => *random.pick(&[Text, Number, List, Map, Any, Amount]),
        false => wanted,
    };
    if wanted == Reference {
        return match random.percent(70) {
            true => format!("&{}", random.pick(&["name", "size", "@", "nope", "a"])),
            false => format!("&{}", of_type(random, Any, depth.saturating_sub(1))),
        };
    }
    if depth == 0 {
        return leaf(random, wanted);
    }
    match random.weighted(&[35, 30, 35]) {
        0 => leaf(random, wanted),
        1 => call(random, wanted, depth),
        _ => composed(random, wanted, depth - 1),
    }
}

fn leaf(random: &mut Random, wanted: Type) -> String {
    let paths = PATHS.iter().find(|(of, _)| *of == wanted);
    if let Some((_, paths)) = paths
        && random.percent(60)
    {
        return random.text(paths);
    }
    match wanted {
        Text => match random.percent(70) {
            true => raw(&random.text(&TEXTS)),
            false => random.text(&[
                "''",
                "'a'",
                "'-'",
                "'x-y-z'",
                "`\"a\\u0062\"`",
                "'é日'",
                "'%s'",
                "'it\\'s'",
            ]),
        },
        Number | Numbers if wanted == Number => random.text(&[
            "`0`",
            "`1`",
            "`2`",
            "`-1`",
            "`1.5`",
            "`10`",
            "`1e3`",
            "`-0`",
            "`100000000`",
            "`1e21`",
            "`0.1`",
            "`3`",
        ]),
        Numbers => random.text(&[
            "`[]`",
            "`[1]`",
            "`[1, 2, 3]`",
            "`[1.5, -1]`",
            "`[3, 1, 2]`",
            "`[1, \"a\"]`",
        ]),
        Texts => random.text(&[
            "`[]`",
            "`[\"a\"]`",
            "`[\"b\", \"a\"]`",
            "`[\"a\", 1]`",
            "`[\"x\", \"\", \"é\"]`",
        ]),
        List => random.text(&[
            "`[]`",
            "`[1, \"a\", null]`",
            "`[[1], [2, [3]]]`",
            "`[{\"name\": \"a\", \"size\": 1}, {\"name\": \"b\"}]`",
            "`[null, false, 0, \"\", []]`",
            "`[\"1Gi\", \"500m\"]`",
            "`[1, 2]`",
        ]),
        Map => random.text(&[
            "`{}`",
            "`{\"a\": 1}`",
            "`{\"a\": \"b\", \"c\": null}`",
            "{a: 'x', b: `1`}",
            "`{\"app\": \"a*\"}`",
        ]),
        Amount => random.text(&[
            "'1Gi'",
            "'500m'",
            "'1'",
            "`2`",
            "'1h'",
            "'30m'",
            "'0'",
            "`0`",
            "'-1h'",
            "'1.5'",
            "`0.5`",
            "'1Ki'",
            "'1e3'",
            "'100Mi'",
            "''",
            "'x'",
            "'0.1'",
            "'3'",
            "'7'",
            "'1h30m15s'",
            "'1ns'",
            "'1u'",
            "'2E'",
            "'1Ei'",
        ]),
        Time => random.text(&[
            "'2024-01-02T03:04:05Z'",
            "'2024-02-29T00:00:00+02:00'",
            "'1970-01-01T00:00:00Z'",
            "'2024-12-31T23:59:59.5Z'",
            "'2024-01-02'",
            "'x'",
            "''",
            "'2021-01-02T15:04:05-07:00'",
        ]),
        Duration => random.text(&[
            "'1h'", "'-30m'", "'1h30m'", "'0s'", "'24h'", "'x'", "''", "'1d'", "'1.5h'", "'100ms'",
        ]),
        Version => random.text(&[
            "'1.2.3'",
            "'v1.2.3'",
            "'>=1.2.0'",
            "'<2.0.0'",
            "'1.2.x'",
            "'>1.0.0 <2.0.0'",
            "'1.2.3-rc.1'",
            "'1.2'",
            "''",
            "'1.10.0'",
            "'!1.2.3'",
            "'>=1.0.0 || <0.5.0'",
            "'1.2.3+b'",
        ]),
        Image => random.text(&[
            "'nginx'",
            "'ghcr.io/acme/app:v1'",
            "'localhost:5000/x'",
            "'a:b:c'",
            "''",
            "'REG/x'",
            "'nginx@sha256:0'",
            "'docker.io/nginx'",
        ]),
        Regex => random.text(&[
            "'^a'",
            "'[0-9]+'",
            "'.*'",
            "'(a)(b)?'",
            "'a{2,3}'",
            "'['",
            "'(?i)A'",
            "'\\\\w+$'",
            "'^$'",
            "'é'",
            "'a|b'",
            "'\\\\d'",
            "'[^-]+'",
            "'(?P<n>.)'",
        ]),
        _ => random.text(&[
            "@",
            "`null`",
            "`true`",
            "`false`",
            "`1`",
            "'a'",
            "`[]`",
            "`{}`",
            "*",
            "request",
            "request.object.*",
            "request.object.spec.\"x.y\"",
            "nope",
            "request.object.metadata.labels.\"acme.io/tier\"",
            "''",
        ]),
    }
}

/// A raw string with its quotes escaped.
fn raw(text: &str) -> String {
    format!("'{}'", text.replace('\'', "\\'"))
}

fn call(random: &mut Random, wanted: Type, depth: usize) -> String {
    let returns = |name: &str| match name {
        "abs" | "avg" | "ceil" | "floor" | "length" | "max" | "min" | "to_number" | "round"
        | "compare" => Number,
        "join" | "to_string" | "to_upper" | "to_lower" | "trim" | "replace_all" | "truncate"
        | "type" => Text,
        "keys" | "split" | "sort" => Texts,
        "map" | "reverse" | "to_array" | "values" | "sort_by" | "items" => List,
        "merge" | "object_from_lists" => Map,
        "add" | "subtract" | "multiply" | "divide" | "sum" => Amount,
        _ => Any,
    };
    // A function of that type, if one is found within a few tries.
    let mut chosen = random.pick(&FUNCTIONS);
    for _ in 0..6 {
        if wanted == Any || returns(chosen.0) == wanted {
            break;
        }
        chosen = random.pick(&FUNCTIONS);
    }
    let (name, types) = *chosen;
    let mut arguments: Vec<String> = types
        .iter()
        .map(|wanted| of_type(random, *wanted, depth.saturating_sub(1)))
        .collect();
    if random.percent(2) {
        arguments.pop();
    }
    if random.percent(1) {
        arguments.push("`1`".into());
    }
    let name = match random.percent(1) {
        true => "no_such_function",
        false => name,
    };
    format!("{name}({})", arguments.join(", "))
}

fn composed(random: &mut Random, wanted: Type, depth: usize) -> String {
    let inner = |random: &mut Random| of_type(random, wanted, depth);
    match random.below(18) {
        0 => format!("{} || {}", inner(random), inner(random)),
        1 => format!("{} && {}", inner(random), inner(random)),
        2 => format!("!{}", inner(random)),
        3 => {
            let operator = random.text(&["==", "!=", "<", "<=", ">", ">="]);
            format!(
                "{} {operator} {}",
                of_type(random, Any, depth),
                of_type(random, Any, depth)
            )
        }
        4 => format!(
            "{} | {}",
            of_type(random, List, depth),
            random.pick(&[
                "[0]",
                "length(@)",
                "@",
                "[]",
                "[-1]",
                "sort(@)",
                "type(@)",
                "join('-', @)"
            ])
        ),
        5 => format!(
            "{}[?{}]",
            of_type(random, List, depth),
            filter(random, depth)
        ),
        6 => format!(
            "{}[{}]",
            of_type(random, List, depth),
            random.pick(&[
                "0", "-1", "5", "1:", ":2", "::2", "::-1", "-2:", "::0", "*", "0:1:1"
            ])
        ),
        7 => format!("{}[]", of_type(random, List, depth)),
        8 => format!(
            "{}[].{}",
            of_type(random, List, depth),
            random.pick(&["name", "size", "nope", "*", "[name, size]", "{n: name}"])
        ),
        9 => format!(
            "{}[*].{}",
            of_type(random, List, depth),
            random.pick(&["name", "size", "name | [0]", "tags[]", "[0]"])
        ),
        10 => format!(
            "{}.{}",
            of_type(random, Map, depth),
            random.pick(&[
                "a", "b", "*", "name", "\"x.y\"", "labels", "nope", "keys(@)"
            ])
        ),
        11 => format!("[{}, {}]", inner(random), of_type(random, Any, depth)),
        12 => format!(
            "{{a: {}, \"b-c\": {}}}",
            inner(random),
            of_type(random, Any, depth)
        ),
        13 => format!("({})", inner(random)),
        14 => format!(
            "{} == {} && {}",
            inner(random),
            inner(random),
            inner(random)
        ),
        15 => format!("to_string({})", inner(random)),
        16 => format!(
            "{} || `null` || {}",
            of_type(random, Any, depth),
            inner(random)
        ),
        _ => format!(
            "not_null({}, {})",
            of_type(random, Any, depth),
            inner(random)
        ),
    }
}

fn filter(random: &mut Random, depth: usize) -> String {
    match random.below(8) {
        0 => "name".into(),
        1 => "!name".into(),
        2 => format!("name == {}", raw(&random.text(&["a", "b", "web"]))),
        3 => "size > `1`".into(),
        4 => "@ != `null`".into(),
        5 => "contains(@, 'a')".into(),
        6 => "starts_with(name, 'a')".into(),
        _ => of_type(random, Any, depth.saturating_sub(1)),
    }
}
