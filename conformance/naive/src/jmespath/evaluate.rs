//! Evaluation (docs/spec/jmespath.md §4).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::functions;
use super::lexer::Token;
use super::parser::Node;
use crate::failure::Failure;

/// A value of an expression: JSON, or one of the kinds that leak in
/// (docs/spec/jmespath.md §1.1). The other kinds never lie inside of JSON here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Datum {
    Json(Value),
    /// Result of `items()`.
    Items(Vec<Value>),
    /// NaN or an infinity.
    NotFinite(f64),
    /// `&expression`.
    Reference(Node),
}

pub(super) const NULL: Datum = Datum::Json(Value::Null);

pub(super) type Evaluated = Result<Datum, Failure>;

impl Datum {
    pub(super) fn is_null(&self) -> bool {
        *self == NULL
    }

    /// The value as a part of another one.
    pub(super) fn into_part(self) -> Result<Value, Failure> {
        match self {
            Self::Json(value) => Ok(value),
            Self::Items(_) => Err(Failure::NotDone("a result of items() inside of a value")),
            Self::NotFinite(_) => Err(Failure::NotDone("NaN or infinity inside of a value")),
            Self::Reference(_) => Err(Failure::NotDone("&expression inside of a value")),
        }
    }

    /// The value outside of JMESPath.
    pub(crate) fn into_value(self) -> Result<Value, Failure> {
        match self {
            Self::Json(value) => Ok(value),
            Self::Items(items) => Ok(Value::Array(items)),
            Self::NotFinite(_) => Err(Failure::NotDone("NaN or infinity as a result")),
            Self::Reference(_) => Err(Failure::NotDone("&expression as a result")),
        }
    }

    /// The items of a list of either kind.
    pub(super) fn items(&self) -> Option<&[Value]> {
        match self {
            Self::Json(Value::Array(items)) | Self::Items(items) => Some(items),
            _ => None,
        }
    }
}

/// NF becomes null.
pub(super) fn or_null(result: Evaluated) -> Evaluated {
    match result {
        Err(Failure::NotFound(_)) => Ok(NULL),
        other => other,
    }
}

/// Any error becomes null, but not what this interpreter cannot tell.
fn any_error_or_null(result: Evaluated) -> Evaluated {
    match result {
        Err(Failure::NotFound(_) | Failure::Error(_)) => Ok(NULL),
        other => other,
    }
}

/// Truth (docs/spec/jmespath.md §4).
pub(super) fn is_true(datum: &Datum) -> bool {
    match datum {
        Datum::Json(Value::Null | Value::Bool(false)) => false,
        Datum::Json(Value::String(text)) => !text.is_empty(),
        Datum::Json(Value::Object(members)) => !members.is_empty(),
        Datum::Json(Value::Array(items)) | Datum::Items(items) => !items.is_empty(),
        _ => true,
    }
}

/// Evaluates a node on a value (docs/spec/jmespath.md §4).
pub(crate) fn evaluate(node: &Node, data: &Datum) -> Evaluated {
    match node {
        Node::Empty => Err(Failure::error("Unknown AST node: ASTEmpty")),
        Node::Identity | Node::Current => Ok(data.clone()),
        Node::Literal(value) => Ok(Datum::Json(value.clone())),
        Node::Field(key) => match data {
            Datum::Json(value) => field(key, value).map(|found| Datum::Json(found.into_owned())),
            _ => Ok(NULL),
        },
        Node::Subexpression(left, right) => {
            // A path of plain fields needs no copy of what it passes.
            if let (Datum::Json(value), Some(path)) = (data, fields(node)) {
                let mut found = Cow::Borrowed(value);
                for key in path {
                    found = match found {
                        Cow::Borrowed(value) => field(key, value)?,
                        Cow::Owned(value) => Cow::Owned(field(key, &value)?.into_owned()),
                    };
                }
                return Ok(Datum::Json(found.into_owned()));
            }
            let left = evaluate(left, data)?;
            evaluate(right, &left)
        }
        Node::Index(index) => {
            let items = data.items().unwrap_or_default();
            let length = items.len() as i64;
            let at = if *index < 0 { index + length } else { *index };
            let found = usize::try_from(at).ok().and_then(|at| items.get(at));
            Ok(found.cloned().map_or(NULL, Datum::Json))
        }
        Node::Slice(parts) => slice(parts, data),
        Node::Comparator(operator, left, right) => {
            let left = or_null(evaluate(left, data))?;
            let right = or_null(evaluate(right, data))?;
            Ok(Datum::Json(compare(operator, &left, &right)))
        }
        Node::Or(left, right) => {
            let left = or_null(evaluate(left, data))?;
            match is_true(&left) {
                true => Ok(left),
                false => or_null(evaluate(right, data)),
            }
        }
        Node::And(left, right) => {
            let left = or_null(evaluate(left, data))?;
            match is_true(&left) {
                true => evaluate(right, data),
                false => Ok(left),
            }
        }
        Node::Not(operand) => {
            let operand = or_null(evaluate(operand, data))?;
            Ok(Datum::Json(Value::Bool(!is_true(&operand))))
        }
        Node::Pipe(left, right) => {
            let left = or_null(evaluate(left, data))?;
            or_null(evaluate(right, &left))
        }
        Node::List(_) | Node::Hash(_) if data.is_null() => Ok(NULL),
        Node::List(items) => {
            let items = items.iter();
            let items: Result<Vec<Value>, Failure> = items
                .map(|item| or_null(evaluate(item, data))?.into_part())
                .collect();
            Ok(Datum::Json(Value::Array(items?)))
        }
        Node::Hash(members) => {
            let mut map = Map::new();
            for (key, member) in members {
                let value = or_null(evaluate(member, data))?.into_part()?;
                map.insert(key.clone(), value);
            }
            Ok(Datum::Json(Value::Object(map)))
        }
        Node::Call(name, arguments) => {
            let Some(name) = name else {
                return Err(Failure::error("invalid node value type"));
            };
            let arguments: Result<Vec<Datum>, Failure> = arguments
                .iter()
                .map(|argument| or_null(evaluate(argument, data)))
                .collect();
            functions::call(name, arguments?)
        }
        Node::Reference(inner) => Ok(Datum::Reference((**inner).clone())),
        Node::Projection(left, right) => {
            let left = or_null(evaluate(left, data))?;
            match left.items() {
                Some(items) => project(items, right),
                None => Ok(NULL),
            }
        }
        Node::Filter(left, right, condition) => {
            let left = any_error_or_null(evaluate(left, data))?;
            let Some(items) = left.items() else {
                return Ok(NULL);
            };
            let mut kept = Vec::new();
            for item in items {
                let item_datum = Datum::Json(item.clone());
                if is_true(&or_null(evaluate(condition, &item_datum))?) {
                    kept.push(item.clone());
                }
            }
            project(&kept, right)
        }
        Node::Flatten(left) => {
            let left = any_error_or_null(evaluate(left, data))?;
            let Some(items) = left.items() else {
                return Ok(NULL);
            };
            let mut flat = Vec::new();
            for item in items {
                match item {
                    Value::Array(inner) => flat.extend(inner.iter().cloned()),
                    other => flat.push(other.clone()),
                }
            }
            Ok(Datum::Json(Value::Array(flat)))
        }
        Node::ValueProjection(left, right) => {
            let left = any_error_or_null(evaluate(left, data))?;
            let Datum::Json(Value::Object(members)) = left else {
                return Ok(NULL);
            };
            // The list starts with as many nulls as there are members.
            let nulls = std::iter::repeat_n(Value::Null, members.len());
            let values: Vec<Value> = nulls.chain(members.values().cloned()).collect();
            project(&values, right)
        }
    }
}

/// The keys of a path that consists of fields alone.
fn fields(node: &Node) -> Option<Vec<&str>> {
    match node {
        Node::Field(key) => Some(vec![key]),
        Node::Subexpression(left, right) => {
            let mut path = fields(left)?;
            path.extend(fields(right)?);
            Some(path)
        }
        _ => None,
    }
}

/// A field of an object; of anything else null.
fn field<'v>(key: &str, value: &'v Value) -> Result<Cow<'v, Value>, Failure> {
    match value {
        Value::Object(members) => match members.get(key) {
            Some(found) => Ok(Cow::Borrowed(found)),
            None => Err(Failure::NotFound(key.to_owned())),
        },
        _ => Ok(Cow::Owned(Value::Null)),
    }
}

/// The right side for each item; nulls are dropped.
fn project(items: &[Value], right: &Node) -> Evaluated {
    let mut results = Vec::new();
    for item in items {
        let result = or_null(evaluate(right, &Datum::Json(item.clone())))?;
        if !result.is_null() {
            results.push(result.into_part()?);
        }
    }
    Ok(Datum::Json(Value::Array(results)))
}

/// Like Python (docs/spec/jmespath.md §4).
fn slice(parts: &[Option<i64>; 3], data: &Datum) -> Evaluated {
    let [start, stop, step] = *parts;
    let Some(items) = data.items() else {
        return Ok(NULL);
    };
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Failure::error("Invalid slice, step cannot be 0"));
    }
    let length = items.len() as i64;
    let (lowest, highest) = if step < 0 {
        (-1, length - 1)
    } else {
        (0, length)
    };
    let cap = |part: i64| {
        let part = if part < 0 {
            part.saturating_add(length)
        } else {
            part
        };
        part.clamp(lowest, highest)
    };
    let (first, last) = if step < 0 {
        (length - 1, -1)
    } else {
        (0, length)
    };
    let mut at = start.map_or(first, cap);
    let stop = stop.map_or(last, cap);
    let mut found = Vec::new();
    while if step < 0 { at > stop } else { at < stop } {
        let item = usize::try_from(at).ok().and_then(|at| items.get(at));
        found.extend(item.cloned());
        at = at.saturating_add(step);
    }
    Ok(Datum::Json(Value::Array(found)))
}

/// `==` and `!=` compare deeply, the others only float64 (docs/spec/jmespath.md §4).
fn compare(operator: &Token, left: &Datum, right: &Datum) -> Value {
    let float = |datum: &Datum| match datum {
        Datum::Json(Value::Number(number)) if number.is_f64() => number.as_f64(),
        Datum::NotFinite(float) => Some(*float),
        _ => None,
    };
    let is_equal = match (left, right) {
        (Datum::NotFinite(left), Datum::NotFinite(right)) => left == right,
        // Pointers are compared.
        (Datum::Reference(_), Datum::Reference(_)) => false,
        _ => left == right,
    };
    let order = || Some((float(left)?, float(right)?));
    let ordered = |holds: fn(f64, f64) -> bool| match order() {
        Some((left, right)) => Value::Bool(holds(left, right)),
        None => Value::Null,
    };
    match operator {
        Token::Equal => Value::Bool(is_equal),
        Token::NotEqual => Value::Bool(!is_equal),
        Token::Less => ordered(|left, right| left < right),
        Token::LessOrEqual => ordered(|left, right| left <= right),
        Token::Greater => ordered(|left, right| left > right),
        _ => ordered(|left, right| left >= right),
    }
}
