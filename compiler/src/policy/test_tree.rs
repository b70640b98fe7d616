//! JSON values as trees, for tests.

use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};
use serde_json::Value;

/// The value as a tree; every node gets a distinct artificial span.
pub(crate) fn tree(value: &Value) -> Tree {
    build(value, &mut 0)
}

fn build(value: &Value, next: &mut u32) -> Tree {
    *next += 1;
    let span = Span {
        start: *next,
        end: *next + 1,
    };
    let value = match value {
        Value::Null => TreeValue::Null,
        Value::Bool(value) => TreeValue::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => TreeValue::Int(integer),
            None => TreeValue::Float(number.as_f64().unwrap()),
        },
        Value::String(text) => TreeValue::String(text.as_str().into()),
        Value::Array(items) => {
            TreeValue::List(items.iter().map(|item| build(item, next)).collect())
        }
        Value::Object(members) => TreeValue::Map(
            members
                .iter()
                .map(|(key, value)| Member {
                    key: key.as_str().into(),
                    key_span: span,
                    value: build(value, next),
                })
                .collect(),
        ),
    };
    Tree::new(value, span)
}

/// The tree as JSON.
pub(crate) fn json(tree: &Tree) -> Value {
    match &tree.value {
        TreeValue::Null => Value::Null,
        TreeValue::Bool(value) => Value::Bool(*value),
        TreeValue::Int(value) => Value::from(*value),
        TreeValue::Float(value) => Value::from(*value),
        TreeValue::String(text) => Value::from(&**text),
        TreeValue::List(items) => items.iter().map(json).collect(),
        TreeValue::Map(members) => members
            .iter()
            .map(|member| (member.key.to_string(), json(&member.value)))
            .collect(),
    }
}
