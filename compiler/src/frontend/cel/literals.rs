//! Compile-time check of literals that a function never accepts: durations, timestamps and
//! regular expressions (docs/spec/cel.md §3.2).

use kpvm_format::cel::Function;
use kpvm_semantics::cel_format::clause;
use kpvm_semantics::{duration, go_regex, timestamp};

use super::ast::{Element, Expr, Literal, Node};
use super::check::{Checked, Reference, TypeError, TypeErrorKind};
use super::types::Type;

/// Literals of an expression that make their call fail whatever the other arguments are.
pub(super) fn check_literals(expression: &Expr, checked: &Checked) -> Vec<TypeError> {
    let mut errors = Vec::new();
    let mut open = vec![expression];
    while let Some(expression) = open.pop() {
        if let Node::Call { arguments, .. } = &expression.node
            && let Some(Reference::Function { function, .. }) = checked.reference(expression)
        {
            if *function == Function::Format
                && let Node::Call {
                    target: Some(template),
                    ..
                } = &expression.node
                && let (Node::Literal(Literal::String(template)), [values]) =
                    (&template.node, arguments.as_slice())
                && let Node::List(values) = &values.node
                && let Err((at, message)) = check_format(template, values, checked)
            {
                errors.push(TypeError {
                    kind: TypeErrorKind::Expression,
                    at: at.unwrap_or(expression.span.start),
                    message,
                    hint: None,
                });
            }
            // cel-go checks the first argument, which in `matches(text, pattern)` is the text.
            if let Some(argument) = arguments.first()
                && let Node::Literal(literal) = &argument.node
                && let Err(problem) = check_literal(*function, literal)
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
fn check_literal(function: Function, literal: &Literal) -> Result<(), String> {
    let is_valid = match (function, literal) {
        (Function::ToDuration, Literal::String(text)) => duration::parse(text).is_some(),
        (Function::ToTimestamp, Literal::String(text)) => {
            matches!(timestamp::parse(text), Some(Ok(_)))
        }
        (Function::ToTimestamp, Literal::Int(seconds)) => {
            timestamp::Timestamp::new(*seconds, 0, 0).is_ok()
        }
        (Function::Matches, Literal::String(text)) => go_regex::translate(text).is_ok(),
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

/// Checks the arguments of `format` as cel-go does at compile time. An error may have a
/// location of its own.
fn check_format(
    template: &str,
    values: &[Element],
    checked: &Checked,
) -> Result<(), (Option<u32>, String)> {
    let (mut rest, mut used) = (template, 0);
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        let value = values
            .get(used)
            .ok_or_else(|| (None, format!("index {used} out of range")))?;
        let clause = clause(after).map_err(|problem| (None, problem))?;
        check_clause(clause.verb, &value.value, checked).map_err(|(at, problem)| {
            let message = format!("error during formatting: {problem}");
            (Some(at), message)
        })?;
        used += 1;
        rest = clause.rest;
    }
    if values.len() > used {
        let given = values.len();
        let message =
            format!("too many arguments supplied to string.format (expected {used}, got {given})");
        return Err((None, message));
    }
    Ok(())
}

fn check_clause(verb: char, value: &Expr, checked: &Checked) -> Result<(), (u32, String)> {
    if verb == 's' {
        return check_shown(value, checked);
    }
    let ty = checked.type_of(value);
    let (is_valid, problem) = match verb {
        'd' => (
            matches!(ty, Type::Int | Type::Uint),
            "decimal clause can only be used on integers",
        ),
        'f' => (
            matches!(ty, Type::Double | Type::String),
            "fixed-point clause can only be used on doubles",
        ),
        'e' => (
            matches!(ty, Type::Double | Type::String),
            "scientific clause can only be used on doubles",
        ),
        'b' => (
            matches!(ty, Type::Int | Type::Uint | Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        'o' => (
            matches!(ty, Type::Int | Type::Uint),
            "octal clause can only be used on integers",
        ),
        _ => (
            matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    };
    if is_valid || ty.is_dyn() {
        return Ok(());
    }
    let message = format!("{problem}, was given {}", runtime_name(ty));
    Err((value.span.start, message))
}

/// Checks what `%s` is to show: also the members of a literal.
fn check_shown(value: &Expr, checked: &Checked) -> Result<(), (u32, String)> {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let ty = checked.type_of(value);
        if matches!(
            ty,
            Type::Optional(_) | Type::Opaque(..) | Type::Object(_) | Type::Wrapper(_)
        ) {
            let message = format!(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
                runtime_name(ty)
            );
            return Err((value.span.start, message));
        }
        if matches!(&value.node, Node::List(_) | Node::Map(_)) {
            open.extend(children(value).into_iter().rev());
        }
    }
    Ok(())
}

/// Name of a type without its parameters.
fn runtime_name(ty: &Type) -> String {
    match ty {
        Type::Null => "null_type".into(),
        Type::Timestamp => "google.protobuf.Timestamp".into(),
        Type::Duration => "google.protobuf.Duration".into(),
        Type::List(_) => "list".into(),
        Type::Map(..) => "map".into(),
        Type::Optional(_) => "optional_type".into(),
        Type::Type(_) => "type".into(),
        Type::Opaque(name, _) => name.clone(),
        other => other.to_string(),
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
