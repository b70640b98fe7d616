//! Literals that a function can never take, found at compile time: durations,
//! timestamps and regular expressions (docs/spec/cel.md §3.2).

use kpvm_format::cel::Function;

use super::ast::{Expr, Literal, Node};
use super::check::{Checked, Reference, TypeError};

/// The literals of an expression that make their call fail whatever else is given.
pub(super) fn check_literals(expression: &Expr, checked: &Checked) -> Vec<TypeError> {
    let mut errors = Vec::new();
    let mut open = vec![expression];
    while let Some(expression) = open.pop() {
        if let Node::Call {
            target, arguments, ..
        } = &expression.node
            && let Some(Reference::Function { function, .. }) = checked.reference(expression)
        {
            let count = arguments.len() + usize::from(target.is_some());
            let place = match function {
                Function::ToDuration | Function::ToTimestamp => 0,
                Function::Matches => count.saturating_sub(1) - usize::from(target.is_some()),
                _ => usize::MAX,
            };
            if let Some(argument) = arguments.get(place)
                && let Node::Literal(Literal::String(text)) = &argument.node
                && let Err(problem) = kpvm::cel::check_literal(*function, text)
            {
                errors.push(TypeError {
                    at: argument.span.start,
                    message: problem,
                    hint: None,
                });
            }
        }
        open.extend(children(expression));
    }
    errors.sort_by_key(|error| error.at);
    errors
}

/// The expressions that an expression is made of.
pub(super) fn children(expression: &Expr) -> Vec<&Expr> {
    match &expression.node {
        Node::Literal(_) | Node::Ident(_) => Vec::new(),
        Node::Select { operand, .. } | Node::Has { operand, .. } => vec![operand],
        Node::Call {
            target, arguments, ..
        } => target
            .iter()
            .map(|target| &**target)
            .chain(arguments)
            .collect(),
        Node::List(elements) => elements.iter().map(|element| &element.value).collect(),
        Node::Map(entries) => entries
            .iter()
            .flat_map(|entry| [&entry.key, &entry.value])
            .collect(),
        Node::Message { values, .. } => values.iter().collect(),
        Node::Logic { operands, .. } => operands.iter().collect(),
        Node::Conditional(parts) => parts.iter().collect(),
        Node::Comprehension(comprehension) => std::iter::once(&comprehension.range)
            .chain(&comprehension.predicate)
            .chain(&comprehension.transform)
            .collect(),
        Node::Bind { value, body, .. } => vec![value, body],
        Node::OptionalMap { target, body, .. } => vec![target, body],
    }
}
