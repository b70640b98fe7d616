//! Blocks of conditions (docs/spec/conditions.md §2, §3).

use kpvm_compiler::policy::condition::{AnyAll, Condition, Conditions};
use serde_json::Value;

use crate::context::Context;
use crate::failure::Failure;
use crate::operator;
use crate::substitution::substitute_all;
use crate::value::through_json;

/// Whether a block holds, and its message (docs/spec/conditions.md §2.2, §2.4).
pub(crate) fn evaluate(
    context: &mut Context<'_>,
    conditions: &Conditions,
) -> Result<(bool, String), Failure> {
    match conditions {
        Conditions::AnyAll(block) => any_all(context, block),
        Conditions::List(list) => {
            let mut messages = Vec::new();
            for condition in list {
                if !holds(context, condition)? {
                    return Ok((false, message(condition)));
                }
                messages.push(message(condition));
            }
            Ok((true, join(messages, ";")))
        }
    }
}

/// Both parts are evaluated, whatever the first one is (docs/spec/conditions.md §2.2).
pub(crate) fn any_all(
    context: &mut Context<'_>,
    block: &AnyAll,
) -> Result<(bool, String), Failure> {
    let (mut true_messages, mut false_messages) = (Vec::new(), Vec::new());
    let mut any_holds = block.any.is_none();
    for condition in block.any.iter().flatten() {
        if holds(context, condition)? {
            any_holds = true;
            true_messages.push(message(condition));
            break;
        }
        false_messages.push(message(condition));
    }
    let mut all_hold = true;
    for condition in block.all.iter().flatten() {
        if !holds(context, condition)? {
            all_hold = false;
            false_messages.push(message(condition));
            break;
        }
        true_messages.push(message(condition));
    }
    let result = any_holds && all_hold;
    let messages = if result {
        true_messages
    } else {
        false_messages
    };
    Ok((result, join(messages, "; ")))
}

fn message(condition: &Condition) -> String {
    let message = condition.message.as_ref();
    message.map_or_else(String::new, |message| message.value.clone())
}

/// The texts that are not empty (docs/spec/conditions.md §2.4).
pub(crate) fn join(texts: Vec<String>, separator: &str) -> String {
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join(separator)
}

/// One condition (docs/spec/conditions.md §3).
pub(crate) fn holds(context: &mut Context<'_>, condition: &Condition) -> Result<bool, Failure> {
    let mut side = |tree: Option<&kpvm_syntax::tree::Tree>, name: &str| {
        let value = tree.map_or(Value::Null, |tree| tree.to_json());
        // A literal scalar went through JSON, what is inside of lists and maps did not (§3.2).
        let value = match value {
            Value::Number(_) => through_json(&value),
            other => other,
        };
        substitute_all(context, &value).map_err(|error| {
            error.wrap(|text| format!("failed to substitute variables in condition {name}: {text}"))
        })
    };
    let key = side(condition.key.as_ref(), "key")?;
    let value = side(condition.value.as_ref(), "value")?;
    operator::apply(&condition.operator.value, &key, &value)
}
