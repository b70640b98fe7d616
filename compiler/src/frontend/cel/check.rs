//! The type checker of CEL: determines the type of every expression and the meaning of
//! every name, and reports what is wrong for every resource (docs/spec/cel.md §3.2).
//!
//! The algorithm and its error texts are cel-go's.

use std::collections::HashMap;

use kpvm_format::cel::Function;
use kpvm_syntax::tree::Span;

use super::ast::{Comprehension, Expr, Fold, Literal, Node};
use super::environment::Environment;
use super::types::{Substitution, Type, most_general};
use kpvm_syntax::cel::qualified_name;

/// Meaning of a name.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// A declared variable, by its full name.
    Variable(String),
    /// A macro variable.
    Local,
    /// A type, identified by its name.
    Type(String),
    /// A function; `method` if its receiver is its first argument.
    Function {
        /// The function.
        function: Function,
        /// Whether the receiver is an argument.
        method: bool,
    },
}

/// What a type error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeErrorKind {
    /// The expression itself.
    Expression,
    /// Its result, which has another type than its place in the policy demands.
    Result,
    /// What cel-go refuses when it plans the program.
    Plan,
}

/// A type error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeError {
    /// What it is about.
    pub kind: TypeErrorKind,
    /// Offset.
    pub at: u32,
    /// Text, in cel-go's words.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// Result of checking an expression.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    types: HashMap<usize, Type>,
    references: HashMap<usize, Reference>,
    /// The type that a call's only overload takes, of calls whose argument may have any.
    narrowed: HashMap<usize, Type>,
    /// Its errors.
    pub errors: Vec<TypeError>,
    /// Whether types can be relied on.
    pub is_strict: bool,
}

impl Checked {
    /// The type of an expression.
    pub fn type_of(&self, expression: &Expr) -> &Type {
        self.types.get(&expression.id).unwrap_or(&Type::Dyn)
    }

    /// What an expression refers to.
    pub fn reference(&self, expression: &Expr) -> Option<&Reference> {
        self.references.get(&expression.id)
    }

    /// The only type of argument that a conversion accepts because of how its overload was
    /// resolved, if its argument can have another (docs/spec/cel.md §3.8).
    pub fn narrowed(&self, expression: &Expr) -> Option<&Type> {
        self.narrowed.get(&expression.id)
    }

    /// Whether its value is certainly a boolean.
    pub fn is_bool(&self, expression: &Expr) -> bool {
        self.is_strict && *self.type_of(expression) == Type::Bool
    }
}

/// Checks an expression.
pub fn check(expression: &Expr, environment: &Environment) -> Checked {
    let mut checker = Checker {
        environment,
        checked: Checked::default(),
        substitution: Substitution::default(),
        locals: Vec::new(),
        mixed: Vec::new(),
        formats: 0,
    };
    checker.check(expression);
    let Checker {
        mut checked,
        substitution,
        mixed,
        ..
    } = checker;
    // cel-go reports these only for expressions without other errors.
    if checked.errors.is_empty() {
        checked.errors = mixed;
    }
    for ty in checked.types.values_mut() {
        *ty = substitution.apply(ty, true);
    }
    checked.is_strict = checked.errors.is_empty();
    checked
}

struct Checker<'e> {
    environment: &'e Environment,
    checked: Checked,
    substitution: Substitution,
    /// Macro variables, inner ones last.
    locals: Vec<(String, Type)>,
    /// Items of literals with different types.
    mixed: Vec<TypeError>,
    /// Nesting in calls of `format`, where types may differ.
    formats: usize,
}

impl Checker<'_> {
    fn error(&mut self, span: Span, message: String) -> Type {
        self.error_with_hint(span, message, None)
    }

    fn error_with_hint(&mut self, span: Span, message: String, hint: Option<String>) -> Type {
        self.checked.errors.push(TypeError {
            kind: TypeErrorKind::Expression,
            at: span.start,
            message,
            hint,
        });
        Type::Error
    }

    fn set(&mut self, expression: &Expr, ty: Type) -> Type {
        self.checked.types.insert(expression.id, ty.clone());
        ty
    }

    fn known(&self, ty: &Type) -> Type {
        self.substitution.apply(ty, false)
    }

    fn shown(&self, ty: &Type) -> String {
        self.substitution.apply(ty, true).to_string()
    }

    fn check(&mut self, expression: &Expr) -> Type {
        let ty = match &expression.node {
            Node::Literal(literal) => type_of_literal(literal),
            Node::Ident(name) => self.ident(expression, name),
            Node::Select {
                operand,
                field,
                optional,
            } => self.select(expression, operand, field, *optional),
            Node::Has {
                operand,
                field,
                optional,
            } => {
                let operand_type = self.check(operand);
                self.field(expression.span, &operand_type, field, *optional);
                Type::Bool
            }
            Node::Call {
                function,
                target,
                arguments,
            } => self.call(expression, function, target.as_deref(), arguments),
            Node::List(elements) => {
                let mut item: Option<Type> = None;
                let mut mixed_here = false;
                for element in elements {
                    let ty = self.check(&element.value);
                    let ty = if element.optional {
                        self.unwrap_optional(&ty, element.value.span)
                    } else {
                        ty
                    };
                    let before = self.mixed.len();
                    item = Some(self.join(item, ty, element.value.span));
                    // Only the first mismatching item of a list is reported.
                    if mixed_here {
                        self.mixed.truncate(before);
                    }
                    mixed_here |= self.mixed.len() > before;
                }
                Type::list(item.unwrap_or_else(|| self.substitution.fresh()))
            }
            Node::Map(entries) => {
                let (mut key, mut value): (Option<Type>, Option<Type>) = (None, None);
                for entry in entries {
                    let key_type = self.check(&entry.key);
                    key = Some(self.join(key, key_type, entry.key.span));
                    let ty = self.check(&entry.value);
                    let ty = if entry.optional {
                        self.unwrap_optional(&ty, entry.value.span)
                    } else {
                        ty
                    };
                    value = Some(self.join(value, ty, entry.value.span));
                }
                let key = key.unwrap_or_else(|| self.substitution.fresh());
                Type::map(key, value.unwrap_or_else(|| self.substitution.fresh()))
            }
            Node::Message { name, values } => {
                for value in values {
                    self.check(value);
                }
                let message = self.undeclared(name);
                self.error(expression.span, message)
            }
            Node::Logic { is_and, operands } => {
                let operator = if *is_and { "_&&_" } else { "_||_" };
                for operand in operands {
                    let ty = self.check(operand);
                    self.require_bool(&ty, operand.span, |ty| {
                        format!(
                            "found no matching overload for '{operator}' applied to '(bool, {ty})'"
                        )
                    });
                }
                Type::Bool
            }
            Node::Conditional(parts) => self.conditional(expression, parts),
            Node::Comprehension(comprehension) => self.comprehension(expression, comprehension),
            Node::Bind { name, value, body } => {
                let ty = self.check(value);
                self.locals.push((name.clone(), ty));
                let result = self.check(body);
                self.locals.pop();
                result
            }
            Node::OptionalMap {
                target,
                name,
                body,
                flat,
            } => {
                let ty = self.check(target);
                let inner = self.unwrap_optional(&ty, target.span);
                self.locals.push((name.clone(), inner));
                let result = self.check(body);
                self.locals.pop();
                if *flat {
                    let inner = self.unwrap_optional(&result, body.span);
                    Type::optional(inner)
                } else {
                    Type::optional(result)
                }
            }
        };
        self.set(expression, ty)
    }

    fn undeclared(&self, name: &str) -> String {
        format!(
            "undeclared reference to '{name}' (in container '{}')",
            self.environment.container
        )
    }

    /// Variable or type of a name, wherever it is declared.
    fn lookup(&mut self, expression: &Expr, name: &str) -> Option<Type> {
        if let Some((_, ty)) = self.locals.iter().rev().find(|(known, _)| known == name) {
            let ty = ty.clone();
            self.checked
                .references
                .insert(expression.id, Reference::Local);
            return Some(ty);
        }
        for candidate in self.environment.candidates(name) {
            if let Some(ty) = self.environment.variable(&candidate) {
                let reference = Reference::Variable(candidate);
                self.checked.references.insert(expression.id, reference);
                return Some(ty.clone());
            }
            if let Some(ty) = self.environment.type_name(&candidate) {
                let reference = Reference::Type(candidate);
                self.checked.references.insert(expression.id, reference);
                return Some(Type::Type(Box::new(ty)));
            }
        }
        None
    }

    fn ident(&mut self, expression: &Expr, name: &str) -> Type {
        match self.lookup(expression, name) {
            Some(ty) => ty,
            None => {
                let message = self.undeclared(name);
                let hint = self
                    .environment
                    .similar(name)
                    .map(|known| format!("did you mean `{known}`?"));
                self.error_with_hint(expression.span, message, hint)
            }
        }
    }

    fn select(&mut self, expression: &Expr, operand: &Expr, field: &str, optional: bool) -> Type {
        let name = qualified_name(expression);
        let is_local = |this: &Self, name: &str| {
            let first = name.split('.').next().unwrap_or_default();
            this.locals.iter().any(|(known, _)| known == first)
        };
        if let Some(name) = name.filter(|name| !is_local(self, name))
            && let Some(ty) = self.lookup(expression, &name)
        {
            return ty;
        }
        let operand = self.check(operand);
        self.field(expression.span, &operand, field, optional)
    }

    /// Type of a field; for an optional operand, an optional.
    fn field(&mut self, span: Span, operand: &Type, field: &str, optional: bool) -> Type {
        let operand = self.known(operand);
        let (inner, was_optional) = match operand {
            Type::Optional(inner) => (self.known(&inner), true),
            other => (other, false),
        };
        let ty = match &inner {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(name) | Type::Opaque(name, _) if self.environment.has_object(name) => {
                match self.environment.field(name, field) {
                    Some(ty) => ty.clone(),
                    None => {
                        let message = format!("undefined field '{field}'");
                        let hint = format!("`{name}` has no such field");
                        self.error_with_hint(span, message, Some(hint))
                    }
                }
            }
            Type::Variable(_) => {
                self.substitution.assign(&Type::Dyn, &inner);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let message = format!(
                    "type '{}' does not support field selection",
                    self.shown(other)
                );
                self.error(span, message)
            }
        };
        if optional || was_optional {
            Type::optional(ty)
        } else {
            ty
        }
    }

    fn unwrap_optional(&mut self, ty: &Type, span: Span) -> Type {
        match self.known(ty) {
            Type::Optional(inner) => *inner,
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let message = format!(
                    "expected type 'optional_type({0})' but found '{0}'",
                    self.shown(&other)
                );
                self.error(span, message)
            }
        }
    }

    /// Common type of two items of a list.
    fn join(&mut self, before: Option<Type>, ty: Type, span: Span) -> Type {
        let Some(before) = before else { return ty };
        let fits = self.substitution.assign(&ty, &before);
        let (known, other) = (self.known(&before), self.known(&ty));
        // Here, dyn is a type like any other and mixes with nothing.
        if fits && (!self.environment.homogeneous || self.formats > 0 || known == other) {
            return most_general(&known, &other).clone();
        }
        if self.environment.homogeneous && self.formats == 0 {
            let message = format!(
                "expected type '{}' but found '{}'",
                self.shown(&before),
                self.shown(&ty)
            );
            let hint = "write dyn(…) around each of them to mix types".to_owned();
            self.mixed.push(TypeError {
                kind: TypeErrorKind::Expression,
                at: span.start,
                message,
                hint: Some(hint),
            });
        }
        Type::Dyn
    }

    fn require_bool(&mut self, ty: &Type, span: Span, message: impl FnOnce(&str) -> String) {
        if !self.substitution.assign(ty, &Type::Bool) {
            let shown = self.shown(ty);
            self.error(span, message(&shown));
        }
    }

    fn conditional(&mut self, expression: &Expr, parts: &[Expr; 3]) -> Type {
        let [condition, then, otherwise] = parts;
        let types = [
            self.check(condition),
            self.check(then),
            self.check(otherwise),
        ];
        let result = self.substitution.fresh();
        let wanted = [Type::Bool, result.clone(), result.clone()];
        if self.substitution.assign_all(&types, &wanted) {
            return self.known(&result);
        }
        let shown: Vec<String> = types.iter().map(|ty| self.shown(ty)).collect();
        let message = format!(
            "found no matching overload for '_?_:_' applied to '({})'",
            shown.join(", ")
        );
        self.error(expression.span, message)
    }

    fn call(
        &mut self,
        expression: &Expr,
        function: &str,
        target: Option<&Expr>,
        arguments: &[Expr],
    ) -> Type {
        let is_format = usize::from(function == "format");
        self.formats += is_format;
        let ty = self.call_checked(expression, function, target, arguments);
        self.formats -= is_format;
        ty
    }

    fn call_checked(
        &mut self,
        expression: &Expr,
        function: &str,
        target: Option<&Expr>,
        arguments: &[Expr],
    ) -> Type {
        let types: Vec<Type> = arguments.iter().map(|value| self.check(value)).collect();
        let Some(target) = target else {
            return match self.function(function) {
                Some(name) => self.resolve(expression, &name, false, types),
                None => self.unknown_function(expression, function),
            };
        };
        if let Some(namespace) = qualified_name(target)
            && let Some(name) = self.function(&format!("{namespace}.{function}"))
        {
            return self.resolve(expression, &name, false, types);
        }
        let target_type = self.check(target);
        if self.environment.functions(function).next().is_none() {
            return self.unknown_function(expression, function);
        }
        let types = std::iter::once(target_type).chain(types).collect();
        self.resolve(expression, function, true, types)
    }

    /// Full name of a function.
    fn function(&self, name: &str) -> Option<String> {
        let mut candidates = self.environment.candidates(name).into_iter();
        candidates.find(|name| self.environment.functions(name).next().is_some())
    }

    fn unknown_function(&mut self, expression: &Expr, name: &str) -> Type {
        let message = self.undeclared(name);
        let hint = self
            .environment
            .similar(name)
            .map(|known| format!("did you mean `{known}`?"));
        self.error_with_hint(expression.span, message, hint)
    }

    fn resolve(&mut self, expression: &Expr, name: &str, method: bool, types: Vec<Type>) -> Type {
        let environment = self.environment;
        let mut result: Option<Type> = None;
        // The first overload gives a type that is not known a meaning, as in cel-go.
        let is_open = matches!(
            types.first().map(|ty| self.known(ty)),
            Some(Type::Variable(_))
        );
        self.checked.narrowed.remove(&expression.id);
        let rows = environment.functions(name);
        for (function, overload) in rows.filter(|(_, overload)| overload.is_method == method) {
            let reference = self.checked.references.entry(expression.id);
            let reference = reference.or_insert(Reference::Function {
                function: *function,
                method,
            });
            let overload = self.substitution.instantiate(overload);
            if !self.substitution.assign_all(&types, &overload.arguments) {
                continue;
            }
            let ty = self.substitution.apply(&overload.result, false);
            result = Some(match result {
                None => {
                    if is_open
                        && function.is_conversion()
                        && let [wanted] = overload.arguments.as_slice()
                    {
                        let narrowed = &mut self.checked.narrowed;
                        narrowed.insert(expression.id, wanted.clone());
                    }
                    *reference = Reference::Function {
                        function: *function,
                        method,
                    };
                    ty
                }
                Some(known) if known == ty => known,
                Some(_) => Type::Dyn,
            });
        }
        if let Some(result) = result {
            return result;
        }
        let shown: Vec<String> = types.iter().map(|ty| self.shown(ty)).collect();
        let shown = match (method, shown.split_first()) {
            (true, Some((target, rest))) => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        let message = format!("found no matching overload for '{name}' applied to '{shown}'");
        let hint = overload_hint(name, &types);
        self.error_with_hint(expression.span, message, hint)
    }

    fn comprehension(&mut self, expression: &Expr, comprehension: &Comprehension) -> Type {
        let range = self.check(&comprehension.range);
        let range = self.known(&range);
        let (key, item) = match &range {
            Type::List(item) => (Type::Int, (**item).clone()),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error => (Type::Dyn, Type::Dyn),
            Type::Variable(_) => {
                self.substitution.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    self.shown(other)
                );
                let hint = matches!(other, Type::Optional(_)).then(|| {
                    "an optional is no list: put .orValue([]) in front of the macro".to_owned()
                });
                self.error_with_hint(comprehension.range.span, message, hint);
                (Type::Dyn, Type::Dyn)
            }
        };
        let locals = self.locals.len();
        match &comprehension.second {
            Some(second) => {
                self.locals.push((comprehension.first.clone(), key.clone()));
                self.locals.push((second.clone(), item.clone()));
            }
            None => {
                let ty = match &range {
                    Type::Map(..) => key.clone(),
                    _ => item.clone(),
                };
                self.locals.push((comprehension.first.clone(), ty));
            }
        }
        let operator = match comprehension.fold {
            Fold::All => "_&&_",
            Fold::Exists => "_||_",
            _ => "_?_:_",
        };
        if let Some(predicate) = &comprehension.predicate {
            let ty = self.check(predicate);
            self.require_bool(&ty, predicate.span, |ty| {
                let types = if operator == "_?_:_" {
                    format!("({ty}, list(dyn), list(dyn))")
                } else {
                    format!("(bool, {ty})")
                };
                format!("found no matching overload for '{operator}' applied to '{types}'")
            });
        }
        let transform = comprehension
            .transform
            .as_ref()
            .map(|transform| self.check(transform));
        let variable = self.locals.get(locals).map(|(_, ty)| ty.clone());
        self.locals.truncate(locals);
        match comprehension.fold {
            Fold::All | Fold::Exists | Fold::ExistsOne => Type::Bool,
            Fold::Filter => Type::list(variable.unwrap_or(Type::Dyn)),
            Fold::List => Type::list(transform.unwrap_or(Type::Dyn)),
            Fold::Map => Type::map(key, transform.unwrap_or(Type::Dyn)),
            Fold::Entries => match self.known(&transform.unwrap_or(Type::Dyn)) {
                map @ (Type::Map(..) | Type::Dyn | Type::Error) => map,
                other => {
                    let message = format!(
                        "found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), {})'",
                        self.shown(&other)
                    );
                    self.error(expression.span, message)
                }
            },
        }
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Common fix for a missing overload.
fn overload_hint(name: &str, types: &[Type]) -> Option<String> {
    let optional = |ty: &Type| matches!(ty, Type::Optional(_));
    if types.iter().any(optional) && !types.iter().all(optional) {
        return Some("one side is an optional: use .orValue(…) to get at what it holds".into());
    }
    match name {
        "_==_" | "_!=_" | "@in" => {
            Some("values of different types are never equal: convert one, or write dyn(…)".into())
        }
        "_+_" | "_-_" | "_*_" | "_/_" | "_%_" => {
            Some("arithmetic does not mix types: convert one side, e.g. with string(…)".into())
        }
        _ => None,
    }
}
