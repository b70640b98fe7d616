//! Macro expansion (docs/spec/cel.md §3.1, §3.6 and §3.8).

use crate::tree::Span;

use super::SyntaxError;
use super::ast::{Comprehension, Element, Expr, Fold, Literal, Node};
use super::parser::{Parser, qualified_name};

type Parsed = Result<Expr, SyntaxError>;

/// Variable in which `sortBy` keeps its list.
const SORT_INPUT: &str = "@__sortBy_input__";

impl Parser {
    /// Expands a call without a receiver.
    pub(super) fn expand_function(
        &mut self,
        function: String,
        mut arguments: Vec<Expr>,
        span: Span,
    ) -> Parsed {
        if function == "has" && arguments.len() == 1 {
            let only = arguments.remove(0);
            let at = only.span.start as usize;
            return match only.node {
                Node::Select {
                    operand,
                    field,
                    optional: false,
                } => Ok(self.new_expr(
                    span,
                    Node::Has {
                        operand,
                        field,
                        optional: false,
                    },
                )),
                _ => Err(SyntaxError::new(at, "invalid argument to has() macro")),
            };
        }
        Ok(self.call(span, &function, arguments))
    }

    /// Expands a call with a receiver; `whole` is the range of both.
    pub(super) fn expand_method(
        &mut self,
        target: Expr,
        function: String,
        arguments: Vec<Expr>,
        span: Span,
        whole: Span,
    ) -> Parsed {
        let two = self.macros.two_variables;
        let optional = self.macros.optional;
        let namespace = qualified_name(&target);
        let namespace = namespace
            .as_deref()
            .map(|name| name.trim_start_matches('.'));
        let one = |fold| Some((fold, 1));
        let fold = match (&*function, arguments.len()) {
            ("all", 2) => one(Fold::All),
            ("exists", 2) => one(Fold::Exists),
            ("exists_one", 2) => one(Fold::ExistsOne),
            ("filter", 2) => one(Fold::Filter),
            ("map", 2 | 3) => one(Fold::List),
            ("all", 3) if two => Some((Fold::All, 2)),
            ("exists", 3) if two => Some((Fold::Exists, 2)),
            ("exists_one" | "existsOne", 3) if two => Some((Fold::ExistsOne, 2)),
            ("transformList", 3 | 4) if two => Some((Fold::List, 2)),
            ("transformMap", 3 | 4) if two => Some((Fold::Map, 2)),
            ("transformMapEntry", 3 | 4) if two => Some((Fold::Entries, 2)),
            _ => None,
        };
        if let Some((fold, variables)) = fold {
            return self.comprehension(target, fold, variables, arguments, span);
        }
        match (namespace, &*function, arguments.len()) {
            (_, "optMap" | "optFlatMap", 2) if optional => {
                let flat = function == "optFlatMap";
                let [name, body] = two_of(arguments, span)?;
                let node = Node::OptionalMap {
                    target: Box::new(target),
                    name: simple_name(&name)?,
                    body: Box::new(body),
                    flat,
                };
                Ok(self.new_expr(span, node))
            }
            (_, "orValue", 1) if self.macros.or_value => {
                let arguments = std::iter::once(target).chain(arguments).collect();
                Ok(self.call(span, "__orValueCompat__", arguments))
            }
            (_, "sortBy", 2) if self.macros.lists => self.sort_by(target, arguments, span),
            (Some("cel"), "bind", 3) if self.macros.bindings => {
                let mut arguments = arguments.into_iter();
                let (Some(name), Some(value), Some(body)) =
                    (arguments.next(), arguments.next(), arguments.next())
                else {
                    return Err(SyntaxError::new(span.start as usize, "invalid bind"));
                };
                let node = Node::Bind {
                    name: simple_name(&name)?,
                    value: Box::new(value),
                    body: Box::new(body),
                };
                Ok(self.new_expr(span, node))
            }
            (Some("cel"), "block", 2) if self.macros.block => self.block(arguments, span),
            (Some("cel"), "index", 1) if self.macros.block => {
                match arguments.first().map(|index| &index.node) {
                    Some(Node::Literal(Literal::Int(index))) => {
                        let name = format!("@index{index}");
                        Ok(self.new_expr(span, Node::Ident(name)))
                    }
                    _ => Err(SyntaxError::new(span.start as usize, "invalid index")),
                }
            }
            (Some("cel"), "iterVar" | "accuVar", 2) if self.macros.block => {
                let numbers: Vec<String> = arguments
                    .iter()
                    .filter_map(|argument| match &argument.node {
                        Node::Literal(Literal::Int(number)) => Some(number.to_string()),
                        _ => None,
                    })
                    .collect();
                let name = format!("@it:{}", numbers.join(":"));
                Ok(self.new_expr(span, Node::Ident(name)))
            }
            (Some("math"), "greatest" | "least", _) if self.macros.math => {
                let name = if function == "greatest" {
                    "math.@max"
                } else {
                    "math.@min"
                };
                self.extreme(name, arguments, whole, span)
            }
            _ => {
                let node = Node::Call {
                    function,
                    target: Some(Box::new(target)),
                    arguments,
                };
                Ok(self.new_expr(span, node))
            }
        }
    }

    fn comprehension(
        &mut self,
        range: Expr,
        fold: Fold,
        variables: usize,
        arguments: Vec<Expr>,
        span: Span,
    ) -> Parsed {
        let mut rest = arguments.into_iter();
        let mut names = Vec::new();
        for name in rest.by_ref().take(variables) {
            names.push(simple_name(&name)?);
        }
        let mut names = names.into_iter();
        let (first, second) = (names.next().unwrap_or_default(), names.next());
        if second.as_ref() == Some(&first) {
            return Err(SyntaxError::new(
                span.start as usize,
                format!("duplicate variable name: {first}"),
            ));
        }
        let (one, other) = (rest.next(), rest.next());
        let (predicate, transform) = match fold {
            Fold::All | Fold::Exists | Fold::ExistsOne | Fold::Filter => (one, None),
            Fold::List | Fold::Map | Fold::Entries => match other {
                Some(transform) => (one, Some(transform)),
                None => (None, one),
            },
        };
        let node = Node::Comprehension(Box::new(Comprehension {
            range,
            first,
            second,
            fold,
            predicate,
            transform,
        }));
        Ok(self.new_expr(span, node))
    }

    /// `l.sortBy(v, k)`: the list together with the list of its keys.
    fn sort_by(&mut self, target: Expr, arguments: Vec<Expr>, span: Span) -> Parsed {
        let [name, key] = two_of(arguments, span)?;
        let input = |this: &mut Self| this.new_expr(span, Node::Ident(SORT_INPUT.into()));
        let node = Node::Comprehension(Box::new(Comprehension {
            range: input(self),
            first: simple_name(&name)?,
            second: None,
            fold: Fold::List,
            predicate: None,
            transform: Some(key),
        }));
        let keys = self.new_expr(span, node);
        let node = Node::Call {
            function: "@sortByAssociatedKeys".into(),
            target: Some(Box::new(input(self))),
            arguments: vec![keys],
        };
        let sorted = self.new_expr(span, node);
        let node = Node::Bind {
            name: SORT_INPUT.into(),
            value: Box::new(target),
            body: Box::new(sorted),
        };
        Ok(self.new_expr(span, node))
    }

    /// `cel.block([a, b], c)`: variables `@index0`, `@index1` around `c`.
    fn block(&mut self, arguments: Vec<Expr>, span: Span) -> Parsed {
        let [values, mut body] = two_of(arguments, span)?;
        let Node::List(elements) = values.node else {
            return Err(SyntaxError::new(span.start as usize, "invalid block"));
        };
        for (index, Element { value, .. }) in elements.into_iter().enumerate().rev() {
            let node = Node::Bind {
                name: format!("@index{index}"),
                value: Box::new(value),
                body: Box::new(body),
            };
            body = self.new_expr(span, node);
        }
        Ok(body)
    }

    /// `math.greatest` and `math.least` with any number of arguments.
    fn extreme(&mut self, name: &str, arguments: Vec<Expr>, whole: Span, span: Span) -> Parsed {
        let macro_name = if name.ends_with("max") {
            "math.greatest()"
        } else {
            "math.least()"
        };
        if arguments.is_empty() {
            return Err(SyntaxError::new(
                whole.start as usize,
                format!("{macro_name} requires at least one argument"),
            ));
        }
        for argument in &arguments {
            let problem = match &argument.node {
                Node::Literal(Literal::Int(_) | Literal::Uint(_) | Literal::Double(_)) => None,
                Node::Literal(_) | Node::Map(_) | Node::Message { .. } => {
                    Some("simple literal arguments must be numeric")
                }
                Node::List(_) if arguments.len() > 1 => {
                    Some("simple literal arguments must be numeric")
                }
                Node::List(elements) if elements.is_empty() => {
                    Some("invalid single argument value")
                }
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(SyntaxError::new(
                    argument.span.start as usize,
                    format!("{macro_name} {problem}"),
                ));
            }
        }
        if arguments.len() <= 2 {
            return Ok(self.call(span, name, arguments));
        }
        let elements = arguments
            .into_iter()
            .map(|value| Element {
                optional: false,
                value,
            })
            .collect();
        let list = self.new_expr(span, Node::List(elements));
        Ok(self.call(span, name, vec![list]))
    }
}

fn two_of(arguments: Vec<Expr>, span: Span) -> Result<[Expr; 2], SyntaxError> {
    arguments
        .try_into()
        .map_err(|_| SyntaxError::new(span.start as usize, "expected two arguments"))
}

/// The variable of a macro.
fn simple_name(argument: &Expr) -> Result<String, SyntaxError> {
    match &argument.node {
        Node::Ident(name) if !name.starts_with('.') => Ok(name.clone()),
        _ => Err(SyntaxError::new(
            argument.span.start as usize,
            "argument must be a simple name",
        )),
    }
}
