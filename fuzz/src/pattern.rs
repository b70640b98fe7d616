//! Patterns over values: a compiled pattern and the pattern language as defined on one scalar;
//! every way to evaluate a pattern says the same.

use kpvm::engine::{Bundle, Input, Request};
use kpvm_compiler::compile::{Options, compile};
use kpvm_compiler::source::Sources;
use kpvm_semantics::pattern_string::{StringPattern, matches_text};
use kpvm_semantics::{LeafPattern, Scalar};
use serde_json::{Value, json};

use crate::answers::{Engines, LIMITS};
use crate::seeds;
use crate::target::Target;
use crate::text::lines;

/// The target.
pub const TARGET: Target = Target {
    name: "pattern",
    run,
    seeds,
    words: &[
        "*", "?*", "!", ">", ">=", "<", "<=", "|", " & ", "-", "!-", "1Gi", "500m", "1h", "10s",
        "1e3", "0.5", "true", "null", "\"=(a)\"", "\"^(a)\"", "\"X(a)\"", "\"(a)\"", "\"<(a)\"",
        "\"+(a)\"", "\"a*\"", "$(", "{{ ", " }}", "[{", "}]", "1-3", "\n",
    ],
    max_bytes: 1 << 10,
};

/// The first line is a pattern, the rest a value, both as JSON.
pub fn run(input: &[u8]) {
    let Some([pattern, value]) = lines::<2>(input) else {
        return;
    };
    let (Ok(pattern), Ok(value)) = (
        serde_json::from_str::<Value>(pattern),
        serde_json::from_str::<Value>(value),
    ) else {
        return;
    };
    let passes = evaluate(&pattern, &value);
    if let (Some(leaf), Some(scalar)) = (leaf(&pattern), scalar(&value)) {
        let expected = leaf.matches(&scalar);
        if let LeafPattern::String(pattern) = &leaf {
            assert_eq!(
                expected,
                matches_text(pattern.text(), &scalar),
                "parsed and not"
            );
        }
        if let Some(passes) = passes {
            assert_eq!(passes, expected, "a compiled pattern and its definition");
        }
    }
}

/// A pattern that is one scalar without variables.
fn leaf(pattern: &Value) -> Option<LeafPattern<'_>> {
    Some(match pattern {
        Value::Bool(value) => LeafPattern::Bool(*value),
        Value::Number(value) => match value.as_i64() {
            Some(value) => LeafPattern::Int(value),
            // Kubernetes' decoder makes integral floats integers.
            None => LeafPattern::Float(value.as_f64().filter(|value| value.fract() != 0.0)?),
        },
        Value::String(text) if !text.contains(['{', '$', '\\']) => {
            LeafPattern::String(StringPattern::parse(text))
        }
        _ => return None,
    })
}

fn scalar(value: &Value) -> Option<Scalar<'_>> {
    Some(match value {
        Value::Bool(value) => Scalar::Bool(*value),
        Value::Number(value) => match value.as_i64() {
            Some(value) => Scalar::Int(value),
            None => Scalar::Float(value.as_f64()?),
        },
        Value::String(text) => Scalar::String(text),
        _ => return None,
    })
}

/// Whether the value passes, in every way to evaluate it; `None` if the pattern is refused or no
/// verdict about the value comes out.
fn evaluate(pattern: &Value, value: &Value) -> Option<bool> {
    let policy = json!({
        "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"},
        "spec": {"rules": [{
            "name": "r", "match": {"any": [{"resources": {"kinds": ["Thing"]}}]},
            "validate": {"message": "m", "pattern": {"spec": {"v": pattern}}},
        }]},
    });
    let mut sources = Sources::new();
    sources.add("p.json", policy.to_string());
    let options = Options {
        limits: LIMITS,
        ..Options::default()
    };
    let bytes = compile(&sources, &options).bundle?;
    let bundle = Bundle::load(bytes).expect("a compiled bundle loads");
    let engines = Engines::new(&bundle);
    let mut sessions = engines.sessions();
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"v": value},
    });
    let text = object.to_string();
    let json = sessions.assert_same(&Request::create(Input::Json(text.as_bytes())), true);
    let read = sessions.assert_same(&Request::create(Input::Value(&object)), true);
    assert_eq!(json, read, "a text and a value");
    match json.split(' ').nth(1)? {
        "pass" => Some(true),
        "fail" => Some(false),
        _ => None,
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for case in seeds::recorded("patterns", 12) {
        let rule = &case["policy"]["spec"]["rules"][0];
        let (pattern, resource) = (
            &rule["validate"]["pattern"]["spec"],
            &case["resource"]["spec"],
        );
        if !pattern.is_null() {
            seeds.push(format!("{pattern}\n{resource}").into_bytes());
        }
    }
    for (pattern, value) in [
        (json!("1-3"), json!(2)),
        (json!(">1h & <2h"), json!("90m")),
        (json!("!1Gi | 2*"), json!("1024Mi")),
        (json!(1.5), json!("1.5")),
        (json!(true), json!("true")),
        (json!("nginx:?*"), json!("nginx:1")),
        (json!(null), json!(0)),
        (json!("1!-3"), json!("5")),
    ] {
        seeds.push(format!("{pattern}\n{value}").into_bytes());
    }
    seeds.retain(|seed| seed.len() <= 1 << 10);
    seeds
}
