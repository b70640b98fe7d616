//! Static types (docs/spec/cel.md §3.2).

use std::collections::BTreeMap;

use kpvm_semantics::go_regex::translate;

use super::Fault;
use super::parser::Expr;
use super::value::Cel;

/// A static type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Static {
    Dyn,
    /// A type parameter, as of the items of `[]`.
    Free,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Type,
    List(Box<Static>),
    Map(Box<Static>, Box<Static>),
    Optional(Box<Static>),
    /// A declared object with these fields.
    Struct(Vec<(&'static str, Static)>),
}

use Static::{Bool, Double, Dyn, Free, Int, List, Map, Null, Optional, Struct, Text, Type, Uint};

impl Static {
    /// The type of a variable of this type: scalars, lists and maps are kept (§2.5).
    pub(super) fn of_variable(self) -> Static {
        match self {
            Optional(_) | Struct(_) | Type | Free => Dyn,
            other => other,
        }
    }

    /// Whether values of the two types may stand for each other.
    fn meets(&self, other: &Static) -> Result<bool, Fault> {
        Ok(match (self, other) {
            (Dyn | Free, _) | (_, Dyn | Free) => true,
            (List(left), List(right)) => left.meets(right)?,
            (Map(key, value), Map(other_key, other_value)) => {
                key.meets(other_key)? && value.meets(other_value)?
            }
            (Optional(left), Optional(right)) => left.meets(right)?,
            (Null, Optional(_) | Struct(_)) | (Optional(_) | Struct(_), Null) => {
                return Err(Fault::NotDone("null and objects of CEL"));
            }
            (left, right) => left == right,
        })
    }

    /// The common type of items or branches; dyn mixes with everything.
    fn join(self, other: Static) -> Result<Static, Fault> {
        if !self.meets(&other)? {
            return Err(Fault::Compile);
        }
        Ok(match (self, other) {
            (Free, other) | (other, Free) => other,
            (Dyn, _) | (_, Dyn) => Dyn,
            (List(left), List(right)) => List(Box::new(left.join(*right)?)),
            (Map(key, value), Map(other_key, other_value)) => Map(
                Box::new(key.join(*other_key)?),
                Box::new(value.join(*other_value)?),
            ),
            (Optional(left), Optional(right)) => Optional(Box::new(left.join(*right)?)),
            (left, _) => left,
        })
    }

    /// The type of items of a literal, which must all have the same one; here even dyn does
    /// not mix.
    fn same(self, other: Static) -> Result<Static, Fault> {
        match (self, other) {
            (Free, other) | (other, Free) => Ok(other),
            (left, right) if left == right => Ok(left),
            // Types with parameters may still become equal.
            (List(_), List(_)) | (Map(..), Map(..)) | (Optional(_), Optional(_)) => {
                Err(Fault::NotDone("composite items of CEL with other types"))
            }
            _ => Err(Fault::Compile),
        }
    }

    fn is(&self, wanted: &[Static]) -> bool {
        matches!(self, Dyn | Free) || wanted.contains(self)
    }
}

fn require(holds: bool) -> Result<(), Fault> {
    match holds {
        true => Ok(()),
        false => Err(Fault::Compile),
    }
}

/// Types of names.
#[derive(Debug, Clone)]
pub(super) struct Types {
    variables: BTreeMap<String, Option<Static>>,
    /// Variables of macros, the innermost last.
    locals: Vec<(String, Static)>,
}

impl Types {
    pub(super) fn new() -> Self {
        Self {
            variables: BTreeMap::new(),
            locals: Vec::new(),
        }
    }

    pub(super) fn declare(&mut self, name: &str, kind: Static) {
        self.variables.insert(name.to_owned(), Some(kind));
    }

    pub(super) fn declare_broken(&mut self, name: &str) {
        self.variables.insert(name.to_owned(), None);
    }

    fn with(&self, name: &str, kind: Static) -> Self {
        let mut types = self.clone();
        types.locals.push((name.to_owned(), kind));
        types
    }
}

/// §2.4
fn request() -> Static {
    let three = |last: &'static str| Struct(vec![("group", Text), ("version", Text), (last, Text)]);
    Struct(vec![
        ("kind", three("kind")),
        ("resource", three("resource")),
        ("subResource", Text),
        ("requestKind", three("kind")),
        ("requestResource", three("resource")),
        ("requestSubResource", Text),
        ("name", Text),
        ("namespace", Text),
        ("operation", Text),
        (
            "userInfo",
            Struct(vec![
                ("username", Text),
                ("uid", Text),
                ("groups", List(Box::new(Text))),
                ("extra", Map(Box::new(Text), Box::new(List(Box::new(Text))))),
            ]),
        ),
        ("dryRun", Bool),
        ("options", Dyn),
    ])
}

/// The static type of an expression.
pub(super) fn check(tree: &Expr, types: &Types) -> Result<Static, Fault> {
    match tree {
        Expr::Literal(value) => Ok(match value {
            Cel::Bool(_) => Bool,
            Cel::Int(_) => Int,
            Cel::Uint(_) => Uint,
            Cel::Double(_) => Double,
            Cel::Text(_) => Text,
            _ => Null,
        }),
        Expr::Name(name) => name_type(name, types),
        Expr::Select(operand, field, is_optional) => {
            if let (Expr::Name(name), false) = (&**operand, is_optional)
                && name == "variables"
                && !types.locals.iter().any(|(local, _)| local == name)
            {
                return match types.variables.get(field) {
                    None => Err(Fault::Compile),
                    Some(None) => Err(Fault::NotDone("a variable of CEL that does not compile")),
                    Some(Some(kind)) => Ok(kind.clone()),
                };
            }
            let operand = check(operand, types)?;
            select(operand, field, *is_optional)
        }
        Expr::Index(operand, index, is_optional) => {
            let operand = check(operand, types)?;
            let index = check(index, types)?;
            at_index(operand, &index, *is_optional)
        }
        Expr::List(items) => {
            let mut kind = Free;
            for item in items {
                kind = kind.same(check(item, types)?)?;
            }
            Ok(List(Box::new(kind)))
        }
        Expr::Map(members) => {
            let (mut key, mut value) = (Free, Free);
            for (member_key, member_value) in members {
                key = key.same(check(member_key, types)?)?;
                value = value.same(check(member_value, types)?)?;
            }
            Ok(Map(Box::new(key), Box::new(value)))
        }
        Expr::Not(operand) => {
            require(check(operand, types)?.is(&[Bool]))?;
            Ok(Bool)
        }
        Expr::Negate(operand) => {
            let operand = check(operand, types)?;
            require(operand.is(&[Int, Double]))?;
            Ok(operand)
        }
        Expr::Binary(operator, left, right) => {
            let left = check(left, types)?;
            let right = check(right, types)?;
            binary(operator, left, right)
        }
        Expr::Ternary(condition, yes, no) => {
            let condition = check(condition, types)?;
            let (yes, no) = (check(yes, types)?, check(no, types)?);
            require(condition.is(&[Bool]))?;
            yes.join(no)
        }
        Expr::Call(receiver, name, arguments) => call(receiver.as_deref(), name, arguments, types),
    }
}

fn name_type(name: &str, types: &Types) -> Result<Static, Fault> {
    let mut locals = types.locals.iter().rev();
    if let Some((_, kind)) = locals.find(|(local, _)| local == name) {
        return Ok(kind.clone());
    }
    match name {
        "object" | "oldObject" => Ok(Dyn),
        "request" => Ok(request()),
        "bool" | "bytes" | "double" | "int" | "list" | "map" | "null_type" | "string" | "type"
        | "uint" => Ok(Type),
        "namespaceObject" | "authorizer" | "variables" => Err(Fault::NotDone(
            "namespaceObject, authorizer or variables as a whole",
        )),
        "optional" | "format" | "sets" | "lists" | "math" | "ip" | "cidr" => {
            Err(Fault::NotDone("a name space of CEL"))
        }
        _ => Err(Fault::Compile),
    }
}

/// §3.4
fn select(operand: Static, field: &str, is_optional: bool) -> Result<Static, Fault> {
    let found = match operand {
        Optional(inner) => {
            let found = select(*inner, field, false)?;
            return Ok(optional(found));
        }
        Dyn => Dyn,
        Free => return Err(Fault::NotDone("a type parameter of CEL")),
        Map(_, value) => *value,
        Struct(fields) => {
            let mut fields = fields.into_iter();
            fields
                .find(|(name, _)| *name == field)
                .map(|(_, kind)| kind)
                .ok_or(Fault::Compile)?
        }
        _ => return Err(Fault::Compile),
    };
    Ok(match is_optional {
        true => optional(found),
        false => found,
    })
}

fn optional(kind: Static) -> Static {
    match kind {
        kind @ Optional(_) => kind,
        other => Optional(Box::new(other)),
    }
}

fn at_index(operand: Static, index: &Static, is_optional: bool) -> Result<Static, Fault> {
    let found = match operand {
        Optional(inner) => return Ok(optional(at_index(*inner, index, false)?)),
        Dyn => {
            if matches!(index, List(_) | Map(..) | Struct(_) | Optional(_)) {
                return Err(Fault::NotDone("a composite as an index of CEL"));
            }
            Dyn
        }
        List(item) => {
            require(index.is(&[Int]))?;
            *item
        }
        Map(key, value) => {
            require(key.meets(index)?)?;
            *value
        }
        _ => return Err(Fault::Compile),
    };
    Ok(match is_optional {
        true => optional(found),
        false => found,
    })
}

/// §3.2, §3.5
fn binary(operator: &str, left: Static, right: Static) -> Result<Static, Fault> {
    let numbers = [Int, Uint, Double];
    match operator {
        "&&" | "||" => {
            require(left.is(&[Bool]) && right.is(&[Bool]))?;
            Ok(Bool)
        }
        "==" | "!=" => {
            require(left.meets(&right)?)?;
            Ok(Bool)
        }
        "<" | "<=" | ">" | ">=" => {
            let all = [Int, Uint, Double, Bool, Text];
            require(left.is(&all) && right.is(&all))?;
            let both_numbers = left.is(&numbers) && right.is(&numbers);
            require(both_numbers || left.meets(&right)?)?;
            Ok(Bool)
        }
        "in" => {
            match &right {
                List(item) => require(left.meets(item)?)?,
                Map(key, _) => require(left.meets(key)?)?,
                Dyn => {}
                _ => return Err(Fault::Compile),
            }
            Ok(Bool)
        }
        "+" => match (left, right) {
            (Dyn, Dyn) => Ok(Dyn),
            (List(left), List(right)) => Ok(List(Box::new(left.join(*right)?))),
            (Dyn, List(item)) | (List(item), Dyn) => {
                drop(item);
                Ok(List(Box::new(Dyn)))
            }
            (Dyn, known) | (known, Dyn) => {
                require(known.is(&[Int, Uint, Double, Text]))?;
                Ok(known)
            }
            (left, right) => {
                require(left == right && left.is(&[Int, Uint, Double, Text]))?;
                Ok(left)
            }
        },
        _ => {
            let allowed: &[Static] = match operator {
                "%" => &[Int, Uint],
                _ => &numbers,
            };
            match (left, right) {
                (Dyn, Dyn) => Ok(Dyn),
                (Dyn, known) | (known, Dyn) => {
                    require(known.is(allowed))?;
                    Ok(known)
                }
                (left, right) => {
                    require(left == right && left.is(allowed))?;
                    Ok(left)
                }
            }
        }
    }
}

/// The name of a variable of a macro.
fn local(argument: Option<&Expr>) -> Result<&str, Fault> {
    match argument {
        Some(Expr::Name(name)) => Ok(name),
        _ => Err(Fault::Compile),
    }
}

/// What a macro goes over (§3.6).
fn range(kind: Static) -> Result<Static, Fault> {
    match kind {
        Dyn => Ok(Dyn),
        List(item) => match *item {
            Free => Err(Fault::NotDone("macros over [] of CEL")),
            item => Ok(item),
        },
        Map(key, _) => match *key {
            Free => Err(Fault::NotDone("macros over {} of CEL")),
            key => Ok(key),
        },
        _ => Err(Fault::Compile),
    }
}

fn call(
    receiver: Option<&Expr>,
    name: &str,
    arguments: &[Expr],
    types: &Types,
) -> Result<Static, Fault> {
    let Some(receiver) = receiver else {
        return global(name, arguments, types);
    };
    if let Expr::Name(space) = receiver
        && space == "optional"
    {
        return match (name, arguments) {
            ("none", []) => Ok(Optional(Box::new(Free))),
            ("of", [value]) => Ok(Optional(Box::new(check(value, types)?))),
            _ => Err(Fault::NotDone("a function of optionals of CEL")),
        };
    }
    if let ("all" | "exists" | "exists_one" | "filter" | "map", [variable, rest @ ..]) =
        (name, arguments)
    {
        let of = check(receiver, types)?;
        let item = range(of.clone())?;
        let inner = types.with(local(Some(variable))?, item.clone());
        let kinds: Result<Vec<Static>, Fault> = rest.iter().map(|one| check(one, &inner)).collect();
        let mut kinds = kinds?;
        return match (name, kinds.len()) {
            ("map", 1) => Ok(List(Box::new(kinds.remove(0)))),
            ("map", 2) => {
                require(kinds.remove(0).is(&[Bool]))?;
                Ok(List(Box::new(kinds.remove(0))))
            }
            ("filter", 1) => {
                require(kinds.remove(0).is(&[Bool]))?;
                Ok(List(Box::new(item)))
            }
            (_, 1) if name != "map" => {
                require(kinds.remove(0).is(&[Bool]))?;
                Ok(Bool)
            }
            _ => Err(Fault::NotDone("a macro of CEL with two variables")),
        };
    }
    const METHODS: [&str; 14] = [
        "orValue",
        "hasValue",
        "size",
        "startsWith",
        "endsWith",
        "contains",
        "matches",
        "lowerAscii",
        "upperAscii",
        "trim",
        "replace",
        "split",
        "substring",
        "charAt",
    ];
    // Before the arguments, to which other rules may apply.
    if !METHODS.contains(&name) && name != "join" {
        return Err(Fault::NotDone("a method of CEL"));
    }
    let own = check(receiver, types)?;
    let kinds: Result<Vec<Static>, Fault> = arguments.iter().map(|one| check(one, types)).collect();
    let kinds = kinds?;
    let texts = |count: std::ops::RangeInclusive<usize>| {
        let all = kinds.iter().all(|kind| kind.is(&[Text]));
        require(own.is(&[Text]) && all && count.contains(&kinds.len()))
    };
    match name {
        "orValue" if kinds.len() == 1 => Ok(Dyn),
        "hasValue" if kinds.is_empty() => match own {
            Optional(_) | Dyn => Ok(Bool),
            _ => Err(Fault::Compile),
        },
        "size" if kinds.is_empty() => size(&own),
        "startsWith" | "endsWith" => texts(1..=1).map(|()| Bool),
        "contains" if matches!(own, Text | Dyn) => texts(1..=1).map(|()| Bool),
        "matches" => {
            texts(1..=1)?;
            match arguments.first() {
                Some(Expr::Literal(Cel::Text(pattern))) if translate(pattern).is_err() => {
                    Err(Fault::Compile)
                }
                _ => Ok(Bool),
            }
        }
        "lowerAscii" | "upperAscii" | "trim" => texts(0..=0).map(|()| Text),
        "replace" if kinds.len() == 2 => texts(2..=2).map(|()| Text),
        "split" if kinds.len() == 1 => texts(1..=1).map(|()| List(Box::new(Text))),
        "substring" => {
            let are_whole = kinds.iter().all(|kind| kind.is(&[Int]));
            require(own.is(&[Text]) && are_whole && [1, 2].contains(&kinds.len()))?;
            Ok(Text)
        }
        "charAt" => {
            require(own.is(&[Text]) && kinds.len() == 1 && kinds.iter().all(|one| one.is(&[Int])))?;
            Ok(Text)
        }
        "join" => {
            let is_list = match &own {
                List(item) => item.is(&[Text]),
                other => *other == Dyn,
            };
            let all = kinds.iter().all(|kind| kind.is(&[Text]));
            require(is_list && all && kinds.len() <= 1)?;
            Ok(Text)
        }
        _ => Err(Fault::NotDone("a method of CEL")),
    }
}

fn size(kind: &Static) -> Result<Static, Fault> {
    match kind {
        Dyn | Text | List(_) | Map(..) => Ok(Int),
        _ => Err(Fault::Compile),
    }
}

fn global(name: &str, arguments: &[Expr], types: &Types) -> Result<Static, Fault> {
    if name == "has" {
        return match arguments {
            [tree @ Expr::Select(..)] => {
                check(tree, types)?;
                Ok(Bool)
            }
            _ => Err(Fault::Compile),
        };
    }
    const FUNCTIONS: [&str; 7] = ["size", "int", "uint", "double", "string", "dyn", "type"];
    if !FUNCTIONS.contains(&name) {
        return Err(Fault::NotDone("a function of CEL"));
    }
    let kinds: Result<Vec<Static>, Fault> = arguments.iter().map(|one| check(one, types)).collect();
    let kinds = kinds?;
    let conversion = |allowed: &[Static], result: Static| match kinds.as_slice() {
        [kind] => require(kind.is(allowed)).map(|()| result),
        _ => Err(Fault::Compile),
    };
    match name {
        "size" => match kinds.as_slice() {
            [kind] => size(kind),
            _ => Err(Fault::Compile),
        },
        "int" => conversion(&[Int, Uint, Double, Text], Int),
        "uint" => conversion(&[Int, Uint, Double, Text], Uint),
        "double" => conversion(&[Int, Uint, Double, Text], Double),
        "string" => conversion(&[Int, Uint, Double, Text, Bool], Text),
        "dyn" if kinds.len() == 1 => Ok(Dyn),
        "type" if kinds.len() == 1 => Ok(Type),
        _ => Err(Fault::NotDone("a function of CEL")),
    }
}
