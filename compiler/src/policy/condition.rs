//! Reads condition blocks: `preconditions` and `deny.conditions` (docs/spec/policies.md
//! §1.4; docs/spec/conditions.md §2.1).
//!
//! Operators and values are not checked here; the load checks do that.

use kpvm_syntax::tree::{Span, Tree, TreeValue};
use thiserror::Error;

use super::spanned::Spanned;

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// `key`; `None` if absent or null.
    pub key: Option<Tree>,
    /// `operator` as written, empty if absent.
    pub operator: Spanned<String>,
    /// `value`; `None` if absent or null.
    pub value: Option<Tree>,
    /// `message`
    pub message: Option<Spanned<String>>,
    /// Location of the condition.
    pub span: Span,
}

/// The `{any, all}` form. An explicit empty list is not absent: `any: []` is false.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnyAll {
    /// `any`
    pub any: Option<Vec<Condition>>,
    /// `all`
    pub all: Option<Vec<Condition>>,
}

/// A block of conditions in either form.
#[derive(Debug, Clone, PartialEq)]
pub enum Conditions {
    /// `{any, all}`
    AnyAll(AnyAll),
    /// The legacy plain list: all conditions must hold.
    List(Vec<Condition>),
}

/// Reason why a tree is not a block of conditions.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("expected {expected}, found {found}")]
pub struct ConditionsError {
    /// What is allowed at the location.
    pub expected: &'static str,
    /// What was found.
    pub found: &'static str,
    /// The location.
    pub span: Span,
}

impl ConditionsError {
    fn new(expected: &'static str, tree: &Tree) -> Self {
        Self {
            expected,
            found: tree.describe(),
            span: tree.span,
        }
    }
}

impl Conditions {
    /// Reads either form; `null` is an empty block.
    ///
    /// # Errors
    /// If the tree has neither form, or a part of it has the wrong type.
    pub fn read(tree: &Tree) -> Result<Self, ConditionsError> {
        match &tree.value {
            TreeValue::List(_) => Ok(Self::List(read_list(tree)?)),
            TreeValue::Map(_) | TreeValue::Null => Ok(Self::AnyAll(AnyAll::read(tree)?)),
            TreeValue::Bool(_) | TreeValue::Int(_) | TreeValue::Float(_) | TreeValue::String(_) => {
                Err(ConditionsError::new(
                    "a map with `any` and `all`, or a list of conditions",
                    tree,
                ))
            }
        }
    }

    /// Every condition, those of `any` first.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        let (first, second) = match self {
            Self::AnyAll(block) => (
                block.any.as_deref().unwrap_or_default(),
                block.all.as_deref().unwrap_or_default(),
            ),
            Self::List(list) => (list.as_slice(), [].as_slice()),
        };
        first.iter().chain(second)
    }
}

impl AnyAll {
    /// Reads the `{any, all}` form, the only one that `foreach` accepts.
    ///
    /// # Errors
    /// If the tree is not a map or a part of it has the wrong type.
    pub fn read(tree: &Tree) -> Result<Self, ConditionsError> {
        if tree.is_null() {
            return Ok(Self::default());
        }
        if tree.as_map().is_none() {
            return Err(ConditionsError::new("a map with `any` and `all`", tree));
        }
        let list = |key| match tree.get(key) {
            Some(list) if !list.is_null() => read_list(list).map(Some),
            _ => Ok(None),
        };
        Ok(Self {
            any: list("any")?,
            all: list("all")?,
        })
    }
}

fn read_list(tree: &Tree) -> Result<Vec<Condition>, ConditionsError> {
    tree.as_list()
        .ok_or_else(|| ConditionsError::new("a list of conditions", tree))?
        .iter()
        .map(read_condition)
        .collect()
}

fn read_condition(tree: &Tree) -> Result<Condition, ConditionsError> {
    if tree.as_map().is_none() && !tree.is_null() {
        return Err(ConditionsError::new("a condition (a map)", tree));
    }
    let raw = |key| tree.get(key).filter(|value| !value.is_null());
    let text = |key| match raw(key) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(Spanned {
                value: text.to_owned(),
                span: value.span,
            })),
            None => Err(ConditionsError::new("text", value)),
        },
    };
    Ok(Condition {
        key: raw("key").cloned(),
        operator: text("operator")?.unwrap_or(Spanned {
            value: String::new(),
            span: tree.span,
        }),
        value: raw("value").cloned(),
        message: text("message")?,
        span: tree.span,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::test_tree::tree;

    #[test]
    fn shapes() {
        let accepted = [
            json!([]),
            json!({}),
            json!(null),
            json!({"anyy": [1]}),
            json!([{"any": [{"key": 1}]}]),
            json!({"any": [null]}),
            json!({"any": [], "all": []}),
        ];
        for value in accepted {
            assert!(Conditions::read(&tree(&value)).is_ok(), "{value}");
        }
        let rejected = [
            json!([5]),
            json!({"any": {}}),
            json!("x"),
            json!(5),
            json!({"all": [{"operator": 1}]}),
        ];
        for value in rejected {
            assert!(Conditions::read(&tree(&value)).is_err(), "{value}");
        }
    }

    #[test]
    fn an_empty_any_is_kept_apart_from_an_absent_one() {
        let read = |value| AnyAll::read(&tree(&value)).unwrap();
        assert_eq!(read(json!({"any": []})).any, Some(vec![]));
        assert_eq!(read(json!({})).any, None);
    }
}
