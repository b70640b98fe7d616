//! Compile-time check of literals that a function never accepts: durations, timestamps and
//! regular expressions (docs/spec/cel.md §3.2).

use kpvm_format::cel::Function;
use kpvm_semantics::{duration, go_regex, timestamp};

use super::ast::{Expr, Literal, Node};
use super::check::{Checked, Reference, TypeError, TypeErrorKind};

/// Literals of an expression that make their call fail whatever the other arguments are.
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
                && let Err(problem) = check_literal(*function, text)
            {
                errors.push(TypeError {
                    kind: TypeErrorKind::Expression,
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

/// Checks a literal argument as cel-go does at compile time (docs/spec/cel.md §3.2).
fn check_literal(function: Function, text: &str) -> Result<(), String> {
    let is_valid = match function {
        Function::ToDuration => duration::parse(text).is_some(),
        Function::ToTimestamp => matches!(timestamp::parse(text), Some(Ok(_))),
        Function::Matches => go_regex::translate(text).is_ok(),
        _ => true,
    };
    let what = match function {
        Function::ToDuration => "duration",
        Function::ToTimestamp => "timestamp",
        _ => "matches",
    };
    if is_valid {
        Ok(())
    } else {
        Err(format!("invalid {what} argument"))
    }
}

/// Direct subexpressions.
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
