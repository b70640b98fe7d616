//! Compiles, evaluates and disassembles single expressions, with the same code that rules
//! run.

use kpvm::document::Numbers;
use kpvm::engine::{Bundle, ExpressionSession};
use kpvm_compiler::calls;
use kpvm_compiler::diagnostic::{Diagnostic, Severity};
use kpvm_compiler::expression::{self, ExpressionError};
use kpvm_compiler::source::{Location, SourceId};
use kpvm_format::disassemble::{BlockOf, disassemble_block};
use kpvm_syntax::jmespath::{Expression, Node, ProjectionKind, SyntaxError};
use kpvm_syntax::tree::{Span, Tree, TreeValue};
use serde_json::Value;

use crate::host::ProcessHost;

/// Value of an expression for an input whose numbers are all floats, as in
/// `kyverno jp query` (docs/spec/cli.md §11).
///
/// # Errors
/// In Kyverno's words.
pub fn evaluate(text: &str, input: &Value) -> Result<Value, String> {
    let code = compile(text)?;
    let bundle = Bundle::load(code).map_err(|error| error.to_string())?;
    let mut session = ExpressionSession::new(&bundle);
    session
        .set_input(input, Numbers::Float)
        .map_err(|error| error.to_string())?;
    session
        .evaluate_with(0, &mut ProcessHost)
        .and_then(|answer| answer.to_value())
        .map_err(|error| error.to_string())
}

/// The value of an expression over a value, without time or randomness.
///
/// # Errors
/// What is wrong with the expression, or with running it.
pub fn query(text: &str, root: &Value) -> Result<Value, String> {
    let shown = |error: &dyn std::fmt::Display| format!("{text}: {error}");
    let code = expression::compile_expression(text).map_err(|error| shown(&error))?;
    let bundle = Bundle::load(code).map_err(|error| shown(&error))?;
    let mut session = ExpressionSession::new(&bundle);
    session
        .set_input(root, Numbers::Float)
        .map_err(|error| shown(&error))?;
    session
        .evaluate(0)
        .and_then(|answer| answer.to_value())
        .map_err(|error| shown(&error))
}

/// Code of an expression as text.
///
/// # Errors
/// The reason why there is none.
pub fn disassemble(text: &str) -> Result<String, String> {
    let bundle = Bundle::load(compile(text)?).map_err(|error| error.to_string())?;
    let mut code = String::new();
    let whole = BlockOf { rule: 0, block: 0 };
    disassemble_block(&bundle.tables(), "code", whole, &mut code)
        .map_err(|error| error.to_string())?;
    Ok(code)
}

fn compile(text: &str) -> Result<Vec<u8>, String> {
    expression::compile_expression(text).map_err(|error: ExpressionError| error.to_string())
}

/// Diagnostic of a source that is not an expression.
pub fn syntax_problem(error: &SyntaxError, text: &str, source: SourceId) -> Diagnostic {
    let rest = text.get(error.offset..).unwrap_or_default();
    let length = rest.chars().next().map_or(0, char::len_utf8);
    let span = Span {
        start: error.offset as u32,
        end: (error.offset + length) as u32,
    };
    Diagnostic::error("bad-jmespath", &*error.message, Location { source, span })
}

/// Calls that can only fail in an expression that is a whole source. They are warnings if
/// the value could still be computed, because some projections suppress errors.
pub fn call_problems(
    expression: &Expression,
    source: SourceId,
    severity: Severity,
) -> Vec<Diagnostic> {
    let diagnostic = |problem: calls::ExpressionProblem| Diagnostic {
        severity,
        hint: problem.hint,
        ..Diagnostic::error(
            "expression-fails",
            problem.message,
            Location {
                source,
                span: problem.span,
            },
        )
    };
    let problems = calls::check(expression).into_iter();
    problems.map(diagnostic).collect()
}

/// Prints the tree of an expression, one node per line. Recursion depth: that of the tree,
/// which the parser bounds.
pub fn write_tree(expression: &Expression, indent: usize, out: &mut String) {
    out.push_str(&"  ".repeat(indent));
    out.push_str(&title(expression));
    out.push('\n');
    if let Node::MultiSelectHash(entries) = &expression.node {
        for entry in entries {
            out.push_str(&format!("{}{:?}:\n", "  ".repeat(indent + 1), entry.key));
            write_tree(&entry.value, indent + 2, out);
        }
        return;
    }
    for child in expression.node.children() {
        write_tree(child, indent + 1, out);
    }
}

fn title(expression: &Expression) -> String {
    match &expression.node {
        Node::Identity => "identity".into(),
        Node::Current => "current @".into(),
        Node::Field(name) => format!("field {name:?}"),
        Node::Literal(_) => format!("literal {expression}"),
        Node::Subexpression { .. } => "subexpression".into(),
        Node::Index { index, .. } => format!("index {index}"),
        Node::Projection(projection) => match projection.kind {
            ProjectionKind::List => "projection of items [*]".into(),
            ProjectionKind::Slice(slice) => {
                let part = |part: Option<i64>| part.map_or(String::new(), |part| part.to_string());
                let step = slice.step.map_or(String::new(), |step| format!(":{step}"));
                let (start, stop) = (part(slice.start), part(slice.stop));
                format!("projection of a slice [{start}:{stop}{step}]")
            }
            ProjectionKind::Filter(_) => "projection by a filter [?]".into(),
            ProjectionKind::Flatten => "projection of opened lists []".into(),
            ProjectionKind::Object => "projection of values *".into(),
        },
        Node::MultiSelectList(_) => "list".into(),
        Node::MultiSelectHash(_) => "map".into(),
        Node::Comparison { operator, .. } => format!("comparison {operator}"),
        Node::Or { .. } => "or ||".into(),
        Node::And { .. } => "and &&".into(),
        Node::Not(_) => "not !".into(),
        Node::Pipe { .. } => "pipe |".into(),
        Node::FunctionCall(call) => match &call.name {
            Some(name) => format!("call {name}"),
            None => "call of no function".into(),
        },
        Node::ExpressionReference(_) => "reference &".into(),
        Node::Empty => "unfinished index".into(),
        Node::Assertion(_) => "a form of assertion trees".into(),
    }
}

/// A tree as JSON, without locations. Recursion depth: that of the input, which is limited.
pub fn to_json(tree: &Tree) -> Value {
    match &tree.value {
        TreeValue::Null => Value::Null,
        TreeValue::Bool(value) => Value::from(*value),
        TreeValue::Int(value) => Value::from(*value),
        TreeValue::Float(value) => Value::from(*value),
        TreeValue::String(text) => Value::from(&**text),
        TreeValue::List(items) => items.iter().map(to_json).collect(),
        TreeValue::Map(members) => members
            .iter()
            .map(|member| (member.key.to_string(), to_json(&member.value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}
