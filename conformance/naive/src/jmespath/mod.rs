//! Kyverno's dialect of JMESPath (docs/spec/jmespath.md).

mod arithmetic;
mod base64;
mod evaluate;
mod functions;
mod lexer;
mod parser;
mod regex;
mod times;

pub(crate) use evaluate::Datum;
pub(crate) use functions::clean_path;
pub(crate) use regex::is_match as regex_matches;

use serde_json::Value;

use crate::failure::Failure;

/// Compiles and evaluates an expression.
pub(crate) fn search(expression: &str, data: &Value) -> Result<Datum, Failure> {
    let tree = parser::parse(expression).map_err(Failure::Error)?;
    evaluate::evaluate(&tree, &Datum::Json(data.clone()))
}

/// The parser's error, if there is one.
pub(crate) fn syntax_error(expression: &str) -> Option<String> {
    parser::parse(expression).err()
}
