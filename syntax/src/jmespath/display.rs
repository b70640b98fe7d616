//! Prints an expression as text that parses to the same tree.
//!
//! Parentheses appear only where necessary. The text may differ from the original in spaces
//! and quotes. Only an unfinished index ([`Node::Empty`]) on the right of a projection
//! cannot be printed faithfully; no expression that can be evaluated contains one.

use std::fmt::{self, Display, Formatter, Write};

use crate::tree::TreeValue;

use super::ast::{
    AssertionNode, Expression, FunctionCall, HashEntry, Node, Projection, ProjectionKind, Slice,
};
use super::lexer::{begins_identifier, continues_identifier};
use super::parser::{
    POWER_AND, POWER_BRACKET, POWER_COMPARATOR, POWER_DOT, POWER_FILTER, POWER_FLATTEN, POWER_NOT,
    POWER_OR, POWER_PAREN, POWER_PIPE, POWER_STAR,
};

/// Higher than every operator: the edge is closed.
const CLOSED: u8 = u8::MAX;

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Node::Identity => Ok(()),
            Node::Current => f.write_str("@"),
            Node::Field(name) => write_key(f, name),
            Node::Literal(value) => write_literal(f, value),
            Node::Subexpression { left, right } => {
                write_left(f, left, POWER_DOT)?;
                write!(f, ".{right}")
            }
            Node::Index { left, index } => {
                write_left(f, left, POWER_BRACKET)?;
                write!(f, "[{index}]")
            }
            Node::Projection(projection) => write_projection(f, projection),
            Node::MultiSelectList(items) => write_list(f, items),
            Node::MultiSelectHash(entries) => write_hash(f, entries),
            Node::Comparison {
                operator,
                left,
                right,
            } => write_binary(f, left, &operator.to_string(), right, POWER_COMPARATOR),
            Node::Or { left, right } => write_binary(f, left, "||", right, POWER_OR),
            Node::And { left, right } => write_binary(f, left, "&&", right, POWER_AND),
            Node::Pipe { left, right } => write_binary(f, left, "|", right, POWER_PIPE),
            Node::Not(operand) => {
                f.write_str("!")?;
                write_right(f, operand, POWER_NOT)
            }
            Node::FunctionCall(call) => write_call(f, call),
            Node::ExpressionReference(operand) => {
                let operand = operand.to_string();
                // Two ampersands in a row would be read as `&&`.
                if operand.starts_with('&') {
                    write!(f, "&({operand})")
                } else {
                    write!(f, "&{operand}")
                }
            }
            Node::Empty => f.write_str("([0)"),
            Node::Assertion(node) => write_assertion(f, node),
        }
    }
}

/// Always in parentheses.
fn write_assertion(f: &mut Formatter<'_>, node: &AssertionNode) -> fmt::Result {
    match node {
        AssertionNode::Root => f.write_str("$"),
        AssertionNode::Variable(name) => write!(f, "${name}"),
        AssertionNode::Arithmetic {
            operator,
            left,
            right,
        } => write!(f, "(({left}) {} ({right}))", operator.as_str()),
        AssertionNode::Sign { negative, operand } => {
            write!(f, "({} ({operand}))", if *negative { '-' } else { '+' })
        }
        AssertionNode::Let { bindings, body } => {
            f.write_str("(let ")?;
            for (index, (name, value)) in bindings.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                write!(f, "${name} = {value}")?;
            }
            write!(f, " in {body})")
        }
    }
}

fn write_binary(
    f: &mut Formatter<'_>,
    left: &Expression,
    operator: &str,
    right: &Expression,
    power: u8,
) -> fmt::Result {
    write_left(f, left, power)?;
    write!(f, " {operator} ")?;
    write_right(f, right, power)
}

/// A left operand of an operator: in parentheses if the operator would otherwise apply to a
/// part of it.
fn write_left(f: &mut Formatter<'_>, operand: &Expression, power: u8) -> fmt::Result {
    write_operand(f, operand, right_edge(&operand.node) < power)
}

/// A right operand: in parentheses if it would otherwise end early.
fn write_right(f: &mut Formatter<'_>, operand: &Expression, least: u8) -> fmt::Result {
    write_operand(f, operand, left_edge(&operand.node) <= least)
}

fn write_operand(f: &mut Formatter<'_>, operand: &Expression, parentheses: bool) -> fmt::Result {
    if parentheses {
        write!(f, "({operand})")
    } else {
        write!(f, "{operand}")
    }
}

/// The weakest operator on the left edge.
fn left_edge(node: &Node) -> u8 {
    let (power, left) = match node {
        Node::Pipe { left, .. } => (POWER_PIPE, left.as_ref()),
        Node::Or { left, .. } => (POWER_OR, left.as_ref()),
        Node::And { left, .. } => (POWER_AND, left.as_ref()),
        Node::Comparison { left, .. } => (POWER_COMPARATOR, left.as_ref()),
        Node::Subexpression { left, .. } => (POWER_DOT, left.as_ref()),
        Node::Index { left, .. } => (POWER_BRACKET, left.as_ref()),
        Node::Projection(projection) => (projection_power(projection), &projection.left),
        Node::FunctionCall(_) => return POWER_PAREN,
        Node::Identity
        | Node::Current
        | Node::Field(_)
        | Node::Literal(_)
        | Node::MultiSelectList(_)
        | Node::MultiSelectHash(_)
        | Node::Not(_)
        | Node::ExpressionReference(_)
        | Node::Empty
        | Node::Assertion(_) => return CLOSED,
    };
    if left.node == Node::Identity {
        return CLOSED;
    }
    if right_edge(&left.node) < power {
        // Printed in parentheses.
        return power;
    }
    power.min(left_edge(&left.node))
}

/// The lowest power with which the right end is still being parsed: a stronger operator
/// after it would be absorbed.
fn right_edge(node: &Node) -> u8 {
    let (power, right) = match node {
        Node::Pipe { right, .. } => (POWER_PIPE, right.as_ref()),
        Node::Or { right, .. } => (POWER_OR, right.as_ref()),
        Node::And { right, .. } => (POWER_AND, right.as_ref()),
        Node::Comparison { right, .. } => (POWER_COMPARATOR, right.as_ref()),
        Node::Not(operand) => (POWER_NOT, operand.as_ref()),
        Node::ExpressionReference(_) => return 0,
        Node::Subexpression { right, .. } => return dotted_edge(POWER_DOT, right),
        Node::Projection(projection) => return projection_edge(projection),
        Node::Identity
        | Node::Current
        | Node::Field(_)
        | Node::Literal(_)
        | Node::Index { .. }
        | Node::MultiSelectList(_)
        | Node::MultiSelectHash(_)
        | Node::FunctionCall(_)
        | Node::Empty
        | Node::Assertion(_) => return CLOSED,
    };
    if left_edge(&right.node) <= power {
        return power;
    }
    power.min(right_edge(&right.node))
}

/// Right edge of the part after a dot: a multi-select is closed.
fn dotted_edge(power: u8, right: &Expression) -> u8 {
    match right.node {
        Node::MultiSelectList(_) | Node::MultiSelectHash(_) => CLOSED,
        _ => power.min(right_edge(&right.node)),
    }
}

fn projection_edge(projection: &Projection) -> u8 {
    match projection.right.node {
        // Absorbs everything that binds stronger than `[]`.
        Node::Identity => POWER_FLATTEN,
        _ => dotted_edge(projected_power(projection), &projection.right),
    }
}

/// Power of the token that begins a projection after its left side.
fn projection_power(projection: &Projection) -> u8 {
    match projection.kind {
        ProjectionKind::List | ProjectionKind::Slice(_) => POWER_BRACKET,
        ProjectionKind::Filter(_) => POWER_FILTER,
        ProjectionKind::Flatten => POWER_FLATTEN,
        ProjectionKind::Object => POWER_DOT,
    }
}

/// Power with which the right side of a projection is parsed.
fn projected_power(projection: &Projection) -> u8 {
    match projection.kind {
        ProjectionKind::List | ProjectionKind::Slice(_) => POWER_STAR,
        ProjectionKind::Filter(_) => POWER_FILTER,
        ProjectionKind::Flatten => POWER_FLATTEN,
        ProjectionKind::Object if projection.left.node == Node::Identity => POWER_STAR,
        ProjectionKind::Object => POWER_DOT,
    }
}

fn write_projection(f: &mut Formatter<'_>, projection: &Projection) -> fmt::Result {
    write_left(f, &projection.left, projection_power(projection))?;
    match &projection.kind {
        ProjectionKind::List => f.write_str("[*]")?,
        ProjectionKind::Slice(slice) => write_slice(f, slice)?,
        ProjectionKind::Filter(condition) => write!(f, "[?{condition}]")?,
        ProjectionKind::Flatten => f.write_str("[]")?,
        ProjectionKind::Object if projection.left.node == Node::Identity => f.write_str("*")?,
        ProjectionKind::Object => f.write_str(".*")?,
    }
    let right = projection.right.to_string();
    // A leading bracket of a multi-select needs a dot, other brackets must not have one.
    let bracket = right.starts_with('[')
        && !matches!(projection.right.node, Node::MultiSelectList(_))
        && !begins_with_list(&projection.right.node);
    if !right.is_empty() && !bracket {
        f.write_str(".")?;
    }
    f.write_str(&right)
}

/// Whether the text of a node begins with a multi-select list.
fn begins_with_list(node: &Node) -> bool {
    match node {
        Node::MultiSelectList(_) => true,
        Node::Subexpression { left, .. } | Node::Index { left, .. } => begins_with_list(&left.node),
        Node::Projection(projection) => begins_with_list(&projection.left.node),
        _ => false,
    }
}

fn write_slice(f: &mut Formatter<'_>, slice: &Slice) -> fmt::Result {
    let part = |part: Option<i64>| part.map_or_else(String::new, |number| number.to_string());
    let (start, stop) = (part(slice.start), part(slice.stop));
    match slice.step {
        None => write!(f, "[{start}:{stop}]"),
        Some(step) => write!(f, "[{start}:{stop}:{step}]"),
    }
}

fn write_list(f: &mut Formatter<'_>, items: &[Expression]) -> fmt::Result {
    f.write_str("[")?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        let text = item.to_string();
        // `[*]` is a projection, not a list with one item.
        if items.len() == 1 && text == "*" {
            f.write_str("(*)")?;
        } else {
            f.write_str(&text)?;
        }
    }
    f.write_str("]")
}

fn write_hash(f: &mut Formatter<'_>, entries: &[HashEntry]) -> fmt::Result {
    f.write_str("{")?;
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write_key(f, &entry.key)?;
        write!(f, ": {}", entry.value)?;
    }
    f.write_str("}")
}

fn write_call(f: &mut Formatter<'_>, call: &FunctionCall) -> fmt::Result {
    match &call.name {
        Some(name) if is_plain_identifier(name) => f.write_str(name)?,
        Some(name) => write_literal(f, &TreeValue::String(name.clone()))?,
        None => f.write_str("_[0]")?,
    }
    f.write_str("(")?;
    for (index, argument) in call.arguments.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{argument}")?;
    }
    f.write_str(")")
}

fn is_plain_identifier(name: &str) -> bool {
    name.starts_with(begins_identifier) && name.chars().all(continues_identifier)
}

fn write_key(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    if is_plain_identifier(name) {
        f.write_str(name)
    } else {
        write_string(f, name)
    }
}

fn write_literal(f: &mut Formatter<'_>, value: &TreeValue) -> fmt::Result {
    match value {
        TreeValue::String(text) if !text.contains(['\'', '\\']) => write!(f, "'{text}'"),
        value => {
            f.write_str("`")?;
            write_json(f, value)?;
            f.write_str("`")
        }
    }
}

fn write_json(f: &mut Formatter<'_>, value: &TreeValue) -> fmt::Result {
    match value {
        TreeValue::Null => f.write_str("null"),
        TreeValue::Bool(value) => write!(f, "{value}"),
        TreeValue::Int(number) => write!(f, "{number}"),
        // A whole number without `.0`, others in the shortest form that parses back.
        TreeValue::Float(number) if number.abs() < 1e15 => write!(f, "{number}"),
        TreeValue::Float(number) => write!(f, "{number:e}"),
        TreeValue::String(text) => write_string(f, text),
        TreeValue::List(items) => {
            f.write_str("[")?;
            for (index, item) in items.iter().enumerate() {
                f.write_str(if index > 0 { "," } else { "" })?;
                write_json(f, &item.value)?;
            }
            f.write_str("]")
        }
        TreeValue::Map(members) => {
            f.write_str("{")?;
            for (index, member) in members.iter().enumerate() {
                f.write_str(if index > 0 { "," } else { "" })?;
                write_string(f, &member.key)?;
                f.write_str(":")?;
                write_json(f, &member.value.value)?;
            }
            f.write_str("}")
        }
    }
}

/// A JSON string that is also valid between backticks.
fn write_string(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '`' | '\0'..='\u{1f}' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
