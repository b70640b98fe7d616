//! A value read from YAML or JSON text, with source locations.
//!
//! The compiler works on trees because every diagnostic needs a location, and a resource
//! given as YAML becomes a tree before it becomes a document. Maps keep the order of the
//! text; keys are unique (the reader decides which duplicate wins).

use serde_json::Value;

/// Treatment of duplicate keys in a map (docs/spec/cli.md §8.4). Keys are compared as text:
/// `1` and `"1"` are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateKeys {
    /// It is an error: policies, exceptions, values and test files.
    Refuse,
    /// The last one wins: resources.
    LastWins,
}

/// A range of bytes in the source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

/// A value and its location.
///
/// Equality compares values, not locations.
#[derive(Debug, Clone)]
pub struct Tree {
    /// What the value is.
    pub value: TreeValue,
    /// Location.
    pub span: Span,
}

/// Value of a [`Tree`]: the JSON data model with separate int64 and float64
/// (docs/spec/patterns.md §1).
#[derive(Debug, Clone, PartialEq)]
pub enum TreeValue {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number that Kubernetes' decoder keeps as int64.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    String(Box<str>),
    /// A sequence.
    List(Vec<Tree>),
    /// A mapping, in the order of the text, with unique keys.
    Map(Vec<Member>),
}

/// One entry of a map.
#[derive(Debug, Clone)]
pub struct Member {
    /// The key's text.
    pub key: Box<str>,
    /// Location of the key.
    pub key_span: Span,
    /// The value.
    pub value: Tree,
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl Tree {
    /// Creates a tree with the given value and location.
    pub fn new(value: TreeValue, span: Span) -> Self {
        Self { value, span }
    }

    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.member(key).map(|member| &member.value)
    }

    /// The entry under `key`, if this is a map that has it.
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.as_map()?.iter().find(|member| &*member.key == key)
    }

    /// The entries, if this is a map.
    pub fn as_map(&self) -> Option<&[Member]> {
        match &self.value {
            TreeValue::Map(members) => Some(members),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_list(&self) -> Option<&[Tree]> {
        match &self.value {
            TreeValue::List(items) => Some(items),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            TreeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.value, TreeValue::Null)
    }

    /// The value without its locations.
    pub fn to_json(&self) -> Value {
        match &self.value {
            TreeValue::Null => Value::Null,
            TreeValue::Bool(value) => Value::Bool(*value),
            TreeValue::Int(value) => Value::from(*value),
            TreeValue::Float(value) => Value::from(*value),
            TreeValue::String(value) => Value::from(&**value),
            TreeValue::List(items) => items.iter().map(Tree::to_json).collect(),
            TreeValue::Map(members) => members
                .iter()
                .map(|member| (member.key.to_string(), member.value.to_json()))
                .collect(),
        }
    }

    /// Name of this kind of value for people: "a map", "a list", "text", ...
    pub fn describe(&self) -> &'static str {
        match self.value {
            TreeValue::Null => "null",
            TreeValue::Bool(_) => "a boolean",
            TreeValue::Int(_) | TreeValue::Float(_) => "a number",
            TreeValue::String(_) => "text",
            TreeValue::List(_) => "a list",
            TreeValue::Map(_) => "a map",
        }
    }
}

/// A value without locations; integers within range stay distinct from floats.
impl From<&Value> for Tree {
    fn from(value: &Value) -> Self {
        let value = match value {
            Value::Null => TreeValue::Null,
            Value::Bool(value) => TreeValue::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(number) => TreeValue::Int(number),
                None => TreeValue::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => TreeValue::String(text.as_str().into()),
            Value::Array(items) => TreeValue::List(items.iter().map(Tree::from).collect()),
            Value::Object(members) => {
                let member = |(key, value): (&String, &Value)| Member {
                    key: key.as_str().into(),
                    key_span: Span::default(),
                    value: Tree::from(value),
                };
                TreeValue::Map(members.iter().map(member).collect())
            }
        };
        Tree::new(value, Span::default())
    }
}

/// Go prints floats below 1e21 without an exponent, as the shortest digits that parse back,
/// and Kubernetes parses that text as int64 if it fits. So the integer is that of the
/// digits, not of the float's exact value.
pub(crate) fn integral(float: f64) -> Option<i64> {
    if float.fract() == 0.0 && float.abs() < 1e21 {
        float.to_string().parse().ok()
    } else {
        None
    }
}
