//! Evaluation (docs/spec/cel.md §3.4 to §3.6).

use serde_json::Value;

use super::Fault;
use super::functions;
use super::parser::Expr;
use super::value::{Cel, find, from_json};

/// A variable of the rule, evaluated where it is used (§2.5).
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) tree: Expr,
}

/// Values of names.
pub(super) struct Bindings {
    object: Cel,
    old_object: Cel,
    request: Cel,
    pub(super) variables: Vec<Variable>,
}

impl Bindings {
    pub(super) fn new(object: Value, old_object: Value, request: Value) -> Self {
        Self {
            object: from_json(&object),
            old_object: from_json(&old_object),
            request: from_json(&request),
            variables: Vec::new(),
        }
    }
}

type Evaluated = Result<Cel, Fault>;

/// Variables of macros, the innermost last.
type Locals = Vec<(String, Cel)>;

/// Evaluates an expression that has been checked.
pub(super) fn evaluate(tree: &Expr, bindings: &Bindings) -> Evaluated {
    value(tree, bindings, &mut Vec::new())
}

fn value(tree: &Expr, bindings: &Bindings, locals: &mut Locals) -> Evaluated {
    match tree {
        Expr::Literal(literal) => Ok(literal.clone()),
        Expr::Name(name) => named(name, bindings, locals),
        Expr::Select(operand, field, is_optional) => {
            if let Expr::Name(name) = &**operand
                && name == "variables"
                && !locals.iter().any(|(local, _)| local == name)
            {
                let mut variables = bindings.variables.iter();
                let found = variables.find(|variable| variable.name == *field);
                return value(&found.ok_or(Fault::Error)?.tree, bindings, &mut Vec::new());
            }
            let operand = value(operand, bindings, locals)?;
            let key = Cel::Text(field.clone());
            access(operand, &key, *is_optional)
        }
        Expr::Index(operand, index, is_optional) => {
            let operand = value(operand, bindings, locals)?;
            let index = value(index, bindings, locals)?;
            access(operand, &index, *is_optional)
        }
        Expr::List(items) => {
            let items: Result<Vec<Cel>, Fault> = items
                .iter()
                .map(|item| value(item, bindings, locals))
                .collect();
            Ok(Cel::List(items?))
        }
        Expr::Map(members) => {
            let mut map: Vec<(Cel, Cel)> = Vec::new();
            for (key, member) in members {
                let key = value(key, bindings, locals)?;
                let member = value(member, bindings, locals)?;
                // The last of equal keys counts.
                map.retain(|(known, _)| !known.equals(&key));
                map.push((key, member));
            }
            Ok(Cel::Map(map))
        }
        Expr::Not(operand) => match value(operand, bindings, locals)? {
            Cel::Bool(holds) => Ok(Cel::Bool(!holds)),
            _ => Err(Fault::Error),
        },
        Expr::Negate(operand) => match value(operand, bindings, locals)? {
            Cel::Int(whole) => whole.checked_neg().map(Cel::Int).ok_or(Fault::Error),
            Cel::Double(double) => Ok(Cel::Double(-double)),
            _ => Err(Fault::Error),
        },
        Expr::Binary("&&", left, right) => {
            let left = value(left, bindings, locals);
            logic(left, false, || value(right, bindings, locals))
        }
        Expr::Binary("||", left, right) => {
            let left = value(left, bindings, locals);
            logic(left, true, || value(right, bindings, locals))
        }
        // Nothing is in a literal `[]`, whatever it is (§3.4).
        Expr::Binary("in", _, right) if matches!(&**right, Expr::List(items) if items.is_empty()) => {
            Ok(Cel::Bool(false))
        }
        Expr::Binary(operator, left, right) => {
            let left = value(left, bindings, locals)?;
            let right = value(right, bindings, locals)?;
            binary(operator, left, right)
        }
        Expr::Ternary(condition, yes, no) => match value(condition, bindings, locals)? {
            Cel::Bool(true) => value(yes, bindings, locals),
            Cel::Bool(false) => value(no, bindings, locals),
            _ => Err(Fault::Error),
        },
        Expr::Call(receiver, name, arguments) => {
            call(receiver.as_deref(), name, arguments, bindings, locals)
        }
    }
}

fn named(name: &str, bindings: &Bindings, locals: &Locals) -> Evaluated {
    let mut inner = locals.iter().rev();
    if let Some((_, found)) = inner.find(|(local, _)| local == name) {
        return Ok(found.clone());
    }
    Ok(match name {
        "object" => bindings.object.clone(),
        "oldObject" => bindings.old_object.clone(),
        "request" => bindings.request.clone(),
        "bool" => Cel::Type("bool"),
        "bytes" => Cel::Type("bytes"),
        "double" => Cel::Type("double"),
        "int" => Cel::Type("int"),
        "list" => Cel::Type("list"),
        "map" => Cel::Type("map"),
        "null_type" => Cel::Type("null_type"),
        "string" => Cel::Type("string"),
        "type" => Cel::Type("type"),
        "uint" => Cel::Type("uint"),
        _ => return Err(Fault::NotDone("a name of CEL")),
    })
}

/// A field or an index (§3.4).
fn access(operand: Cel, key: &Cel, is_optional: bool) -> Evaluated {
    if let Cel::Optional(inner) = operand {
        // Once optional, the chain stays so.
        return match inner {
            None => Ok(Cel::Optional(None)),
            Some(inner) => access(*inner, key, true),
        };
    }
    let found = match &operand {
        Cel::Map(members) => find(members, key).cloned(),
        Cel::List(items) => match key {
            Cel::Int(_) | Cel::Uint(_) => position(key).and_then(|at| items.get(at).cloned()),
            Cel::Double(at) if at.fract() == 0.0 => {
                position(key).and_then(|at| items.get(at).cloned())
            }
            Cel::Text(_) => return Err(Fault::Error),
            _ => return Err(Fault::NotDone("an odd index of a list of CEL")),
        },
        _ => None,
    };
    match (found, is_optional) {
        (Some(Cel::Optional(found)), true) => Ok(Cel::Optional(found)),
        (Some(found), true) => Ok(Cel::Optional(Some(Box::new(found)))),
        (None, true) => Ok(Cel::Optional(None)),
        (Some(found), false) => Ok(found),
        (None, false) => Err(Fault::Error),
    }
}

/// An int, uint or whole double as a position.
fn position(key: &Cel) -> Option<usize> {
    match key {
        Cel::Int(at) => usize::try_from(*at).ok(),
        Cel::Uint(at) => usize::try_from(*at).ok(),
        Cel::Double(at) if at.fract() == 0.0 && *at >= 0.0 && *at < 1e15 => Some(*at as usize),
        _ => None,
    }
}

/// `&&` and `||`: the value that decides absorbs whatever the other side is (§3.6).
fn logic(left: Evaluated, decides: bool, right: impl FnOnce() -> Evaluated) -> Evaluated {
    let left = match left {
        Ok(Cel::Bool(left)) if left == decides => return Ok(Cel::Bool(decides)),
        Ok(Cel::Bool(_)) => None,
        Err(fault @ (Fault::NotDone(_) | Fault::Compile)) => return Err(fault),
        _ => Some(Fault::Error),
    };
    match (right(), left) {
        (Ok(Cel::Bool(right)), _) if right == decides => Ok(Cel::Bool(decides)),
        (Err(fault @ Fault::NotDone(_)), _) => Err(fault),
        (_, Some(fault)) => Err(fault),
        (Ok(Cel::Bool(right)), None) => Ok(Cel::Bool(right)),
        (Ok(_), None) => Err(Fault::Error),
        (Err(fault), None) => Err(fault),
    }
}

/// §3.5
fn binary(operator: &str, left: Cel, right: Cel) -> Evaluated {
    match operator {
        "==" => Ok(Cel::Bool(left.equals(&right))),
        "!=" => Ok(Cel::Bool(!left.equals(&right))),
        "<" | "<=" | ">" | ">=" => {
            let order = left.order(&right).ok_or(Fault::Error)?;
            Ok(Cel::Bool(match operator {
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                _ => order.is_ge(),
            }))
        }
        "in" => match right {
            Cel::List(items) => Ok(Cel::Bool(items.iter().any(|item| left.equals(item)))),
            Cel::Map(members) => Ok(Cel::Bool(find(&members, &left).is_some())),
            _ => Err(Fault::Error),
        },
        _ => arithmetic(operator, left, right).ok_or(Fault::Error),
    }
}

fn arithmetic(operator: &str, left: Cel, right: Cel) -> Option<Cel> {
    match (operator, left, right) {
        ("+", Cel::Text(left), Cel::Text(right)) => Some(Cel::Text(left + &right)),
        ("+", Cel::List(mut left), Cel::List(right)) => {
            left.extend(right);
            Some(Cel::List(left))
        }
        (operator, Cel::Int(left), Cel::Int(right)) => match operator {
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            "/" => left.checked_div(right),
            _ => left.checked_rem(right),
        }
        .map(Cel::Int),
        (operator, Cel::Uint(left), Cel::Uint(right)) => match operator {
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            "/" => left.checked_div(right),
            _ => left.checked_rem(right),
        }
        .map(Cel::Uint),
        (operator, Cel::Double(left), Cel::Double(right)) => match operator {
            "+" => Some(left + right),
            "-" => Some(left - right),
            "*" => Some(left * right),
            "/" => Some(left / right),
            _ => None,
        }
        .map(Cel::Double),
        _ => None,
    }
}

fn call(
    receiver: Option<&Expr>,
    name: &str,
    arguments: &[Expr],
    bindings: &Bindings,
    locals: &mut Locals,
) -> Evaluated {
    match (receiver, name, arguments) {
        (None, "has", [Expr::Select(operand, field, _)]) => {
            let operand = value(operand, bindings, locals)?;
            has(operand, field)
        }
        (Some(Expr::Name(space)), "none", []) if space == "optional" => Ok(Cel::Optional(None)),
        (Some(Expr::Name(space)), "of", [inner]) if space == "optional" => {
            let inner = value(inner, bindings, locals)?;
            Ok(Cel::Optional(Some(Box::new(inner))))
        }
        (
            Some(receiver),
            "all" | "exists" | "exists_one" | "filter" | "map",
            [Expr::Name(variable), rest @ ..],
        ) => {
            let range = value(receiver, bindings, locals)?;
            comprehension(range, name, variable, rest, bindings, locals)
        }
        _ => {
            let receiver = receiver.map(|receiver| value(receiver, bindings, locals));
            let receiver = receiver.transpose()?;
            let arguments: Result<Vec<Cel>, Fault> = arguments
                .iter()
                .map(|one| value(one, bindings, locals))
                .collect();
            match receiver {
                Some(receiver) => functions::method(receiver, name, &arguments?),
                None => functions::global(name, &arguments?),
            }
        }
    }
}

/// §3.4
fn has(operand: Cel, field: &str) -> Evaluated {
    let key = Cel::Text(field.to_owned());
    match operand {
        Cel::Optional(Some(inner)) => has(*inner, field),
        Cel::Map(members) => Ok(Cel::Bool(find(&members, &key).is_some())),
        Cel::List(_) | Cel::Type(_) => Err(Fault::NotDone("has() on a list or type of CEL")),
        _ => Ok(Cel::Bool(false)),
    }
}

/// §3.6
fn comprehension(
    range: Cel,
    name: &str,
    variable: &str,
    body: &[Expr],
    bindings: &Bindings,
    locals: &mut Locals,
) -> Evaluated {
    let items: Vec<Cel> = match range {
        Cel::List(items) => items,
        Cel::Map(members) => members.into_iter().map(|(key, _)| key).collect(),
        _ => return Err(Fault::Error),
    };
    let mut with = |tree: &Expr, item: &Cel| {
        locals.push((variable.to_owned(), item.clone()));
        let result = value(tree, bindings, locals);
        locals.pop();
        result
    };
    let truth = |result: Evaluated| match result? {
        Cel::Bool(holds) => Ok(holds),
        _ => Err(Fault::Error),
    };
    let (first, second) = match body {
        [first] => (first, None),
        [first, second] => (first, Some(second)),
        _ => return Err(Fault::Compile),
    };
    match name {
        "all" | "exists" => {
            let decides = name == "exists";
            let mut result = Ok(Cel::Bool(!decides));
            for item in &items {
                let found = with(first, item);
                result = logic(result, decides, || found);
                match result {
                    Ok(Cel::Bool(found)) if found == decides => return result,
                    Err(Fault::NotDone(_)) => return result,
                    _ => {}
                }
            }
            result
        }
        "exists_one" => {
            let mut count = 0;
            for item in &items {
                count += u32::from(truth(with(first, item))?);
            }
            Ok(Cel::Bool(count == 1))
        }
        "filter" => {
            let mut kept = Vec::new();
            for item in &items {
                if truth(with(first, item))? {
                    kept.push(item.clone());
                }
            }
            Ok(Cel::List(kept))
        }
        _ => {
            let mut mapped = Vec::new();
            for item in &items {
                match second {
                    None => mapped.push(with(first, item)?),
                    Some(second) => {
                        if truth(with(first, item))? {
                            mapped.push(with(second, item)?);
                        }
                    }
                }
            }
            Ok(Cel::List(mapped))
        }
    }
}
