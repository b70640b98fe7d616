//! The CEL front end (docs/spec/cel.md).
//!
//! Parses and checks the text of an expression against an [`Environment`]; returns a typed
//! syntax tree, or errors with their locations in the text. [`lower`] translates it to IR,
//! like every other dialect.

pub mod check;
pub mod environment;
pub mod lower;
pub mod place;
pub mod rule;
pub mod types;
pub mod validating_policy;

use std::fmt::Write;

pub use check::{Checked, TypeError, TypeErrorKind, check};
pub use environment::Environment;
pub use kpvm_syntax::cel::{SyntaxError, ast, parse};
pub use types::Type;

use self::ast::Expr;

impl From<SyntaxError> for TypeError {
    fn from(error: SyntaxError) -> Self {
        TypeError {
            kind: TypeErrorKind::Expression,
            at: error.at as u32,
            message: error.message,
            hint: None,
        }
    }
}

/// An expression ready for lowering.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its syntax tree.
    pub expression: Expr,
    /// Types and references of its parts.
    pub checked: Checked,
}

impl Program {
    /// The type of its value.
    pub fn result(&self) -> &Type {
        self.checked.type_of(&self.expression)
    }
}

/// Parses and checks an expression.
///
/// # Errors
/// All type errors, or the first syntax error.
pub fn compile(text: &str, environment: &Environment) -> Result<Program, Vec<TypeError>> {
    let expression = parse(text, environment.macros()).map_err(|error| vec![error.into()])?;
    let mut checked = check(&expression, environment);
    // cel-go looks at literals only if the types are right.
    if checked.errors.is_empty() {
        checked.errors = literals::check_literals(&expression, &checked);
    }
    if checked.errors.is_empty()
        && let Some(problem) = plan::plan_error(&expression, &checked)
    {
        checked.errors.push(TypeError {
            kind: TypeErrorKind::Plan,
            at: expression.span.start,
            message: problem,
            hint: None,
        });
    }
    if checked.errors.is_empty() {
        return Ok(Program {
            expression,
            checked,
        });
    }
    checked.errors.sort_by_key(|error| error.at);
    Err(checked.errors)
}

mod literals;
mod plan;

/// Parses an expression without checking it: errors are found at run time.
///
/// # Errors
/// The first syntax error.
pub fn compile_unchecked(text: &str, environment: &Environment) -> Result<Program, SyntaxError> {
    let expression = parse(text, environment.macros())?;
    let mut checked = check(&expression, environment);
    checked.is_strict = false;
    Ok(Program {
        expression,
        checked,
    })
}

/// Formats errors like cel-go, each with its source line.
pub fn render_errors(text: &str, errors: &[TypeError]) -> String {
    let mut out = String::new();
    for error in errors {
        let at = (error.at as usize).min(text.len());
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_number = before.matches('\n').count() + 1;
        let before = text.get(line_start..at).unwrap_or("");
        let column = before.chars().count();
        // cel-go marks characters of several bytes with wide marks.
        let is_wide = text.get(at..).and_then(|rest| rest.chars().next());
        let is_wide = is_wide.is_some_and(|next| !next.is_ascii());
        let dots: String = before
            .chars()
            .map(|c| if c.is_ascii() { '.' } else { '．' })
            .collect();
        let line = text
            .get(line_start..)
            .and_then(|rest| rest.lines().next())
            .unwrap_or("");
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = write!(
            out,
            "ERROR: <input>:{line_number}:{}: {}\n | {line}\n | {dots}{}",
            column + 1,
            error.message,
            if is_wide { '＾' } else { '^' }
        );
    }
    out
}
