//! CEL types, their spelling and assignability (the rules of cel-go's checker, which decide
//! what is a compile error; docs/spec/cel.md §3.2).

use std::fmt;

/// A static type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the type that it is called")]
pub enum Type {
    /// Any type; that of values in resources.
    Dyn,
    /// Type of an expression with an error.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Optional(Box<Type>),
    /// The type of types.
    Type(Box<Type>),
    /// A nullable scalar.
    Wrapper(Box<Type>),
    /// A declared object with fields.
    Object(String),
    /// A library type, and its parameters.
    Opaque(String, Vec<Type>),
    /// A type parameter of an overload.
    Parameter(String),
    /// A type variable still to be inferred.
    Variable(usize),
}

impl Type {
    /// A list type.
    pub fn list(item: Type) -> Type {
        Type::List(Box::new(item))
    }

    /// A map type.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Box::new(key), Box::new(value))
    }

    /// An optional type.
    pub fn optional(inner: Type) -> Type {
        Type::Optional(Box::new(inner))
    }

    /// Whether it is dyn.
    pub fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Component types.
    fn parts(&self) -> Vec<&Type> {
        match self {
            Type::List(inner) | Type::Optional(inner) => vec![inner],
            Type::Map(key, value) => vec![key, value],
            Type::Opaque(_, parts) => parts.iter().collect(),
            _ => Vec::new(),
        }
    }

    fn map_parts(&self, each: &mut dyn FnMut(&Type) -> Type) -> Type {
        match self {
            Type::List(inner) => Type::list(each(inner)),
            Type::Optional(inner) => Type::optional(each(inner)),
            Type::Type(inner) => Type::Type(Box::new(each(inner))),
            Type::Wrapper(inner) => Type::Wrapper(Box::new(each(inner))),
            Type::Map(key, value) => Type::map(each(key), each(value)),
            Type::Opaque(name, parts) => {
                Type::Opaque(name.clone(), parts.iter().map(each).collect())
            }
            other => other.clone(),
        }
    }

    /// Whether two types are built in the same way of parts.
    fn same_head(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::List(_), Type::List(_))
            | (Type::Map(..), Type::Map(..))
            | (Type::Optional(_), Type::Optional(_))
            | (Type::Type(_), Type::Type(_)) => true,
            (Type::Opaque(left, lefts), Type::Opaque(right, rights)) => {
                left == right && lefts.len() == rights.len()
            }
            (left, right) => left == right,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn | Type::Variable(_) => f.write_str("dyn"),
            Type::Error => f.write_str("!error!"),
            Type::Null => f.write_str("null"),
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::String => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Duration => f.write_str("duration"),
            Type::List(item) => write!(f, "list({item})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Optional(inner) => write!(f, "optional_type({inner})"),
            Type::Type(inner) => write!(f, "type({inner})"),
            Type::Wrapper(inner) => write!(f, "wrapper({inner})"),
            Type::Object(name) | Type::Parameter(name) => f.write_str(name),
            Type::Opaque(name, parts) => {
                f.write_str(name)?;
                for (index, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if index == 0 { "(" } else { ", " })?;
                }
                f.write_str(if parts.is_empty() { "" } else { ")" })
            }
        }
    }
}

/// An overload of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Overload {
    /// Whether its first argument is the receiver.
    pub is_method: bool,
    /// The types of its arguments.
    pub arguments: Vec<Type>,
    /// That of its result.
    pub result: Type,
}

impl Overload {
    /// Parses an overload from the table of functions.
    pub fn parse(text: &str) -> Overload {
        let (call, result) = text.split_once(" -> ").unwrap_or((text, "dyn"));
        let (target, rest) = match call.split_once(".(") {
            Some((target, rest)) => (Some(target), rest),
            None => (None, call.trim_start_matches('(')),
        };
        let inner = rest.strip_suffix(')').unwrap_or(rest);
        let arguments = target.into_iter().chain(split_types(inner));
        Overload {
            is_method: target.is_some(),
            arguments: arguments.map(parse_type).collect(),
            result: parse_type(result),
        }
    }
}

/// Splits at commas outside brackets.
fn split_types(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

fn parse_type(text: &str) -> Type {
    let (head, parts) = match text.split_once('(') {
        Some((head, rest)) => {
            let inner = rest.strip_suffix(')').unwrap_or(rest);
            (head, split_types(inner).map(parse_type).collect())
        }
        None => (text, Vec::new()),
    };
    let mut parts = parts.into_iter();
    let mut part = || parts.next().unwrap_or(Type::Dyn);
    match head {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null" => Type::Null,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "list" => Type::list(part()),
        "map" => Type::map(part(), part()),
        "optional" => Type::optional(part()),
        "type" => Type::Type(Box::new(part())),
        name if name.len() == 1 => Type::Parameter(name.to_owned()),
        name => Type::Opaque(name.to_owned(), Vec::new()),
    }
}

/// Inferred types of type variables.
#[derive(Debug, Clone, Default)]
pub struct Substitution {
    found: Vec<Option<Type>>,
}

impl Substitution {
    /// A fresh type variable.
    pub fn fresh(&mut self) -> Type {
        self.found.push(None);
        Type::Variable(self.found.len() - 1)
    }

    /// Replaces the parameters of an overload by fresh type variables.
    pub fn instantiate(&mut self, overload: &Overload) -> Overload {
        let mut names: Vec<(String, Type)> = Vec::new();
        let mut rename = |ty: &Type| self.rename(ty, &mut names);
        let arguments = overload.arguments.iter().map(&mut rename).collect();
        Overload {
            is_method: overload.is_method,
            arguments,
            result: rename(&overload.result),
        }
    }

    fn rename(&mut self, ty: &Type, names: &mut Vec<(String, Type)>) -> Type {
        match ty {
            Type::Parameter(name) => match names.iter().find(|(known, _)| known == name) {
                Some((_, variable)) => variable.clone(),
                None => {
                    let variable = self.fresh();
                    names.push((name.clone(), variable.clone()));
                    variable
                }
            },
            other => other.map_parts(&mut |part| self.rename(part, names)),
        }
    }

    /// The type with its variables replaced; unknown ones become dyn if requested.
    pub fn apply(&self, ty: &Type, to_dyn: bool) -> Type {
        match ty {
            Type::Variable(number) => match self.find(*number) {
                Some(known) => self.apply(known, to_dyn),
                None if to_dyn => Type::Dyn,
                None => ty.clone(),
            },
            other => other.map_parts(&mut |part| self.apply(part, to_dyn)),
        }
    }

    fn find(&self, number: usize) -> Option<&Type> {
        self.found.get(number)?.as_ref()
    }

    fn set(&mut self, number: usize, ty: Type) {
        if let Some(slot) = self.found.get_mut(number) {
            *slot = Some(ty);
        }
    }

    /// Whether each of `from` is assignable to its counterpart; keeps the inferred
    /// variables only if so.
    pub fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        let mut trial = self.clone();
        let fits = from.len() == to.len()
            && from
                .iter()
                .zip(to)
                .all(|(from, to)| trial.assignable(from, to));
        if fits {
            *self = trial;
        }
        fits
    }

    /// Like [`Substitution::assign_all`], for one type.
    pub fn assign(&mut self, from: &Type, to: &Type) -> bool {
        self.assign_all(std::slice::from_ref(from), std::slice::from_ref(to))
    }

    fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Variable(number) = to {
            match self.substitute(from, *number) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Variable(number) = from {
            return self.substitute(to, *number).0;
        }
        if from.is_dyn() || to.is_dyn() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Wrapper(_)
                    | Type::Object(_)
                    | Type::Opaque(..)
                    | Type::Optional(_)
                    | Type::Timestamp
                    | Type::Duration
            ),
            (Type::Wrapper(from), to) | (to, Type::Wrapper(from)) => match to {
                Type::Wrapper(to) => from == to,
                to => **from == *to,
            },
            (Type::Type(_), Type::Type(_)) => true,
            (from, to) => {
                let parts = from.parts().into_iter().zip(to.parts());
                let parts: Vec<(Type, Type)> =
                    parts.map(|(from, to)| (from.clone(), to.clone())).collect();
                from.same_head(to) && parts.iter().all(|(from, to)| self.assignable(from, to))
            }
        }
    }

    /// Whether the variable can denote the type, and whether it already had one.
    fn substitute(&mut self, ty: &Type, number: usize) -> (bool, bool) {
        if *ty == Type::Variable(number) {
            return (true, true);
        }
        let Some(known) = self.find(number).cloned() else {
            if self.mentions(ty, number) {
                return (false, false);
            }
            self.set(number, ty.clone());
            return (true, false);
        };
        if *ty == known {
            return (true, true);
        }
        if !self.assignable(ty, &known) {
            return (false, true);
        }
        let general = most_general(ty, &known).clone();
        if !self.mentions(&general, number) {
            self.set(number, general);
        }
        (true, true)
    }

    fn mentions(&self, ty: &Type, number: usize) -> bool {
        match ty {
            Type::Variable(other) => {
                *other == number
                    || self
                        .find(*other)
                        .is_some_and(|ty| self.mentions(ty, number))
            }
            other => other.parts().iter().any(|part| self.mentions(part, number)),
        }
    }
}

/// The less specific of two types.
pub fn most_general<'t>(left: &'t Type, right: &'t Type) -> &'t Type {
    if *right == Type::Null || *left != Type::Null && is_equal_or_less_specific(left, right) {
        left
    } else {
        right
    }
}

fn is_equal_or_less_specific(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Dyn | Type::Variable(_), _) => true,
        (_, Type::Dyn | Type::Variable(_)) => false,
        (Type::Type(_), Type::Type(_)) => true,
        (left, right) => {
            let mut parts = left.parts().into_iter().zip(right.parts());
            left.same_head(right)
                && parts.all(|(left, right)| is_equal_or_less_specific(left, right))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overloads_read_as_they_are_written() {
        let overload = Overload::parse("list(A).(map(A, B), int) -> optional(list(B))");
        assert!(overload.is_method);
        let shown: Vec<String> = overload.arguments.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["list(A)", "map(A, B)", "int"]);
        assert_eq!(overload.result.to_string(), "optional_type(list(B))");
        let none = Overload::parse("() -> net.IP");
        assert!(none.arguments.is_empty() && !none.is_method);
        assert_eq!(none.result.to_string(), "net.IP");
    }

    /// The checker accepts every row of the table of functions.
    #[test]
    fn every_overload_of_the_table_reads_back() {
        for function in kpvm_format::cel::Function::ALL {
            for text in function.overloads() {
                let overload = Overload::parse(text);
                let mut shown = String::new();
                let mut arguments = overload.arguments.iter();
                if overload.is_method {
                    shown = format!("{}.", arguments.next().expect("a target"));
                }
                let rest: Vec<String> = arguments.map(ToString::to_string).collect();
                shown += &format!("({}) -> {}", rest.join(", "), overload.result);
                assert_eq!(
                    shown.replace("optional_type", "optional"),
                    *text,
                    "{function:?}"
                );
            }
        }
    }
}
