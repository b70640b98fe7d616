//! Calls and steps of an expression that can only fail at run time.
//!
//! Kyverno compiles such an expression and fails when it evaluates it
//! (docs/spec/jmespath.md §5), so each problem also contains the run-time text. Whether the
//! failure reaches the result is not decided here: some projections suppress it.

use kpvm_format::signature::{self, Accepted, ArgumentType, Arguments, Function};
use kpvm_syntax::jmespath::{Dialect, Expression, FunctionCall, Node, ProjectionKind};
use kpvm_syntax::tree::{Span, TreeValue};

/// A part of an expression that can only fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionProblem {
    /// What is wrong.
    pub kind: ProblemKind,
    /// One sentence for people.
    pub message: String,
    /// Offset of the part in the expression's text.
    pub offset: usize,
    /// Range of the part.
    pub span: Span,
    /// How to fix it.
    pub hint: Option<String>,
    /// Kyverno's run-time error, if it does not depend on a value.
    pub runtime_error: Option<String>,
}

/// The kinds of [`ExpressionProblem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// No function has that name.
    UnknownFunction,
    /// Too few or too many arguments.
    WrongArity,
    /// An argument of known, wrong type.
    WrongArgumentType,
    /// The text before `(` is not a name.
    NotCallable,
    /// An unfinished prefix `[0`.
    UnfinishedIndex,
    /// A slice with step 0.
    ZeroStep,
}

/// All problems of an expression, in the order of its text.
pub fn check(expression: &Expression) -> Vec<ExpressionProblem> {
    check_in(expression, Dialect::Kyverno)
}

/// All problems of an expression of a dialect.
pub fn check_in(expression: &Expression, dialect: Dialect) -> Vec<ExpressionProblem> {
    let mut problems = Vec::new();
    visit(expression, dialect, &mut problems);
    problems.sort_by_key(|problem| problem.offset);
    problems
}

/// The function of a name in a dialect.
pub(crate) fn lookup(name: &str, dialect: Dialect) -> Option<&'static Function> {
    match dialect {
        Dialect::Kyverno => signature::lookup(name),
        Dialect::Assertion => signature::lookup_in_assertion(name),
    }
}

/// Recursion depth: that of the tree, which the parser bounds.
fn visit(expression: &Expression, dialect: Dialect, problems: &mut Vec<ExpressionProblem>) {
    problems.extend(problem_of(expression, dialect));
    for child in expression.node.children() {
        visit(child, dialect, problems);
    }
}

fn problem_of(expression: &Expression, dialect: Dialect) -> Option<ExpressionProblem> {
    match &expression.node {
        Node::FunctionCall(call) => check_call(call, expression.span, dialect),
        Node::Empty => Some(problem(
            ProblemKind::UnfinishedIndex,
            "this index has no end".into(),
            expression.span,
            Some("close it with `]`".into()),
            Some("Unknown AST node: ASTEmpty".into()),
        )),
        Node::Projection(projection) => match projection.kind {
            ProjectionKind::Slice(slice) if slice.step == Some(0) => Some(problem(
                ProblemKind::ZeroStep,
                "a slice cannot have step 0".into(),
                expression.span,
                None,
                Some("Invalid slice, step cannot be 0".into()),
            )),
            _ => None,
        },
        _ => None,
    }
}

fn problem(
    kind: ProblemKind,
    message: String,
    span: Span,
    hint: Option<String>,
    runtime_error: Option<String>,
) -> ExpressionProblem {
    ExpressionProblem {
        kind,
        message,
        offset: span.start as usize,
        span,
        hint,
        runtime_error,
    }
}

fn check_call(call: &FunctionCall, span: Span, dialect: Dialect) -> Option<ExpressionProblem> {
    let Some(name) = &call.name else {
        return Some(problem(
            ProblemKind::NotCallable,
            "what stands before `(` is not the name of a function".into(),
            call.name_span,
            None,
            Some("invalid node value type".into()),
        ));
    };
    let Some(function) = lookup(name, dialect) else {
        return Some(problem(
            ProblemKind::UnknownFunction,
            format!("there is no function `{name}`"),
            call.name_span,
            signature::nearest(name).map(|near| format!("did you mean `{}`?", near.name)),
            Some(format!("unknown function: {name}")),
        ));
    };
    match function.arguments {
        Arguments::Ignored => None,
        Arguments::OneOrMore(_) if call.arguments.is_empty() => Some(problem(
            ProblemKind::WrongArity,
            format!("`{name}` needs at least one argument"),
            span,
            Some(usage(function)),
            Some("Invalid arity.".into()),
        )),
        Arguments::OneOrMore(_) => None,
        Arguments::Exactly(accepted) if accepted.len() != call.arguments.len() => Some(problem(
            ProblemKind::WrongArity,
            format!(
                "`{name}` takes {}, not {}",
                counted(accepted.len()),
                call.arguments.len()
            ),
            span,
            Some(usage(function)),
            Some("incorrect number of args".into()),
        )),
        Arguments::AtLeast { required, accepted }
            if !(required..=accepted.len()).contains(&call.arguments.len()) =>
        {
            Some(problem(
                ProblemKind::WrongArity,
                format!(
                    "`{name}` takes {required} to {}, not {}",
                    counted(accepted.len()),
                    call.arguments.len()
                ),
                span,
                Some(usage(function)),
                Some("incorrect number of args".into()),
            ))
        }
        Arguments::Exactly(accepted) | Arguments::AtLeast { accepted, .. } => {
            check_types(function, accepted, &call.arguments)
        }
    }
}

fn counted(number: usize) -> String {
    match number {
        1 => "1 argument".into(),
        number => format!("{number} arguments"),
    }
}

/// How to call a function, for a hint.
fn usage(function: &Function) -> String {
    let one = |accepted: &Accepted| {
        let names: Vec<_> = accepted.iter().map(|accepted| accepted.name()).collect();
        names.join("|")
    };
    let arguments = match function.arguments {
        Arguments::Exactly(accepted) | Arguments::AtLeast { accepted, .. } => {
            accepted.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        Arguments::OneOrMore(accepted) => format!("{}, …", one(&accepted)),
        Arguments::Ignored => String::new(),
    };
    format!("{}({arguments}): {}", function.name, function.description)
}

/// The first argument that has a wrong type for every input.
fn check_types(
    function: &Function,
    accepted: &[Accepted],
    arguments: &[Expression],
) -> Option<ExpressionProblem> {
    let mut pairs = accepted.iter().zip(arguments);
    let (accepted, argument) = pairs.find(|(accepted, argument)| {
        !accepted
            .iter()
            .any(|accepted| may_be(&argument.node, *accepted))
    })?;
    let wanted: Vec<_> = accepted.iter().map(|accepted| accepted.name()).collect();
    let hint = if accepted.contains(&ArgumentType::Reference) {
        "write `&` before the expression to pass it on instead of its value".into()
    } else {
        usage(function)
    };
    let runtime_error = match &argument.node {
        Node::Literal(value) => Some(type_error(value, accepted)),
        _ => None,
    };
    Some(problem(
        ProblemKind::WrongArgumentType,
        format!("`{}` wants {} here", function.name, wanted.join(" or ")),
        argument.span,
        Some(hint),
        runtime_error,
    ))
}

/// Whether an argument can have a type, as far as its text tells.
fn may_be(node: &Node, accepted: ArgumentType) -> bool {
    match node {
        Node::Literal(value) => is(value, accepted),
        Node::ExpressionReference(_) => {
            matches!(accepted, ArgumentType::Reference | ArgumentType::Any)
        }
        // Values of a context are never references.
        Node::Field(_) => accepted != ArgumentType::Reference,
        _ => true,
    }
}

/// docs/spec/jmespath.md §5, step 5.
fn is(value: &TreeValue, accepted: ArgumentType) -> bool {
    match accepted {
        ArgumentType::Any => true,
        ArgumentType::Reference => false,
        ArgumentType::Number => matches!(value, TreeValue::Float(_)),
        ArgumentType::String => matches!(value, TreeValue::String(_)),
        ArgumentType::Array => matches!(value, TreeValue::List(_)),
        ArgumentType::Object => matches!(value, TreeValue::Map(_)),
        ArgumentType::ArrayNumber => items_are(value, ArgumentType::Number),
        ArgumentType::ArrayString => items_are(value, ArgumentType::String),
    }
}

fn items_are(value: &TreeValue, accepted: ArgumentType) -> bool {
    match value {
        TreeValue::List(items) => items.iter().all(|item| is(&item.value, accepted)),
        _ => false,
    }
}

/// Kyverno's text for an argument of the wrong type (docs/spec/jmespath.md §5, step 4).
fn type_error(value: &TreeValue, accepted: Accepted) -> String {
    let names: Vec<_> = accepted
        .iter()
        .map(|accepted| format!("\"{}\"", accepted.name()))
        .collect();
    format!(
        "Invalid type for: {}, expected: []jmespath.JpType{{{}}}",
        go_text(value),
        names.join(", ")
    )
}

/// A value as printed by Go's `%v`. Recursion depth: that of a literal, which is bounded.
fn go_text(value: &TreeValue) -> String {
    match value {
        TreeValue::Null => "<nil>".into(),
        TreeValue::Bool(value) => value.to_string(),
        TreeValue::Int(number) => number.to_string(),
        TreeValue::Float(number) => go_float(*number),
        TreeValue::String(text) => text.to_string(),
        TreeValue::List(items) => {
            let items: Vec<_> = items.iter().map(|item| go_text(&item.value)).collect();
            format!("[{}]", items.join(" "))
        }
        TreeValue::Map(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|left, right| left.key.cmp(&right.key));
            let members: Vec<_> = members
                .iter()
                .map(|member| format!("{}:{}", member.key, go_text(&member.value.value)))
                .collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

/// A float as printed by Go's `%v`: shortest digits, with an exponent of at least two
/// digits below 1e-4 and from 1e6 on.
fn go_float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kpvm_syntax::jmespath::parse;
    use serde_json::Value;

    use super::*;

    fn problems(text: &str) -> Vec<(ProblemKind, usize, Option<String>)> {
        check(&parse(text).unwrap())
            .into_iter()
            .map(|problem| (problem.kind, problem.offset, problem.runtime_error))
            .collect()
    }

    #[test]
    fn unknown_functions_are_found_with_a_hint() {
        // docs/spec/jmespath.md, worked case 60.
        let found = check(&parse("a[?lenght(@) > `1`]").unwrap());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].offset, 3);
        assert_eq!(found[0].hint.as_deref(), Some("did you mean `length`?"));
        assert_eq!(
            found[0].runtime_error.as_deref(),
            Some("unknown function: lenght")
        );
    }

    #[test]
    fn each_kind_has_its_runtime_text() {
        // docs/spec/jmespath.md §5 steps 1 to 4, §3 last table, §4 "Slice".
        for (text, kind, offset, error) in [
            (
                "nofunc(a)",
                ProblemKind::UnknownFunction,
                0,
                "unknown function: nofunc",
            ),
            (
                "abs()",
                ProblemKind::WrongArity,
                0,
                "incorrect number of args",
            ),
            ("x | merge()", ProblemKind::WrongArity, 4, "Invalid arity."),
            (
                "@(x)",
                ProblemKind::NotCallable,
                0,
                "invalid node value type",
            ),
            (
                "a[0](x)",
                ProblemKind::NotCallable,
                0,
                "invalid node value type",
            ),
            (
                "[0",
                ProblemKind::UnfinishedIndex,
                0,
                "Unknown AST node: ASTEmpty",
            ),
            (
                "a[::0]",
                ProblemKind::ZeroStep,
                0,
                "Invalid slice, step cannot be 0",
            ),
            (
                "length(`null`)",
                ProblemKind::WrongArgumentType,
                7,
                r#"Invalid type for: <nil>, expected: []jmespath.JpType{"string", "array", "object"}"#,
            ),
            (
                "to_upper(`{\"b\":[1,\"x\"],\"a\":1000000}`)",
                ProblemKind::WrongArgumentType,
                9,
                r#"Invalid type for: map[a:1e+06 b:[1 x]], expected: []jmespath.JpType{"string"}"#,
            ),
        ] {
            assert_eq!(
                problems(text),
                [(kind, offset, Some(error.to_owned()))],
                "{text}"
            );
        }
        // The text depends on the value of `a`.
        assert_eq!(
            problems("map(a, b)"),
            [(ProblemKind::WrongArgumentType, 4, None)]
        );
    }

    #[test]
    fn calls_that_may_succeed_are_not_reported() {
        for text in [
            "time_now('ignored', `1`)",
            "time_now_utc()",
            "max(`[]`)",
            "sort_by(a, &b)",
            "contains(a, `null`)",
            "merge(a, b, c)",
            "not_null(`1`)",
            "'length'(@)",
            "map(@, a)",
            "add(`1`, '1')",
            "a[::-1]",
        ] {
            assert_eq!(problems(text), [], "{text}");
        }
    }

    /// Files of Kyverno's recorded outcomes.
    const RECORDED: [&str; 2] = [
        "jmespath-kyverno/cases.json",
        "jmespath-kyverno/language.json",
    ];

    fn recorded(path: &str) -> Vec<Value> {
        serde_json::from_str(&kpvm_golden::read(path).unwrap()).unwrap()
    }

    fn text<'v>(case: &'v Value, key: &str) -> Option<&'v str> {
        case.get(key).and_then(Value::as_str)
    }

    /// `check` predicts the recorded run-time errors word for word where it can, and
    /// reports no recorded success as a failure.
    #[test]
    fn golden_problems() {
        for path in RECORDED {
            for case in recorded(path) {
                let expression = text(&case, "expression").unwrap();
                let Ok(parsed) = parse(expression) else {
                    continue;
                };
                let problems = check(&parsed);
                if let Some(error) = text(&case, "error") {
                    let group = text(&case, "group").unwrap();
                    let foreseeable = error.starts_with("unknown function")
                        || ["incorrect number of args", "Invalid arity."].contains(&error)
                        || ["first-arg-type", "later-arg-type"].contains(&group)
                            && error.starts_with("Invalid type");
                    let foreseen = |problem: &ExpressionProblem| {
                        problem.runtime_error.as_deref() == Some(error)
                    };
                    assert!(
                        !foreseeable || problems.iter().any(foreseen),
                        "{expression}: {error}: {problems:?}"
                    );
                } else if case.get("result").is_some_and(|result| !result.is_null())
                    && !NEVER_CALLED.contains(&expression)
                {
                    assert_eq!(problems, [], "{expression}");
                }
            }
        }
    }

    /// Recorded successes around a call that would fail: the list before it is empty.
    const NEVER_CALLED: &[&str] = &["a.e[*].bad(@)"];
}
