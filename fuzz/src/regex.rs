//! Go's regular expressions: what is translated compiles, and matches the same texts compiled and
//! at run time.

use kpvm::document::Numbers;
use kpvm::engine::{Bundle, ExpressionSession};
use kpvm_compiler::expression::compile_expression;
use kpvm_semantics::go_regex::translate;
use serde_json::{Value, json};
use std::sync::OnceLock;

use crate::answers::LIMITS;
use crate::target::Target;
use crate::text::{lines, texts};

/// The target.
pub const TARGET: Target = Target {
    name: "regex",
    run,
    seeds,
    words: &[
        "(?i)",
        "(?P<n>",
        "(?:",
        "(?s:",
        "(?U)",
        "[[:alpha:]]",
        "[^a-z]",
        "\\d",
        "\\W",
        "\\b",
        "\\pL",
        "\\p{Greek}",
        "\\Q",
        "\\E",
        "{2,3}",
        "*?",
        "+",
        "|",
        "^",
        "$",
        "\\A",
        "\\z",
        "\\x{10FFFF}",
        "\\C",
        "\n",
    ],
    max_bytes: 256,
};

/// The first line is the pattern, the rest the text.
pub fn run(input: &[u8]) {
    let Some([pattern, text]) = lines::<2>(input) else {
        return;
    };
    static BUNDLE: OnceLock<Bundle<'static>> = OnceLock::new();
    let bundle = BUNDLE.get_or_init(|| load("regex_match(p, t)"));
    let outcome = evaluate(bundle, pattern, text);
    let translated = translate(pattern);
    match (&translated, &outcome) {
        (Err(problem), Err(found)) => {
            assert!(found.contains(problem.as_str()), "{problem} and {found}")
        }
        (Err(problem), Ok(_)) => panic!("matched, but {problem}"),
        (Ok(_), Err(found)) => assert!(found.contains("limit") || found.contains("too"), "{found}"),
        (Ok(_), Ok(_)) => {}
    }
    // A literal pattern is compiled with the expression.
    if !pattern.contains(['\'', '\\']) {
        let literal = load(&format!("regex_match('{pattern}', t)"));
        let found = evaluate(&literal, pattern, text);
        assert_eq!(
            found, outcome,
            "a literal pattern and one known at run time"
        );
    }
}

fn load(expression: &str) -> Bundle<'static> {
    let bytes = compile_expression(expression).expect("an expression");
    Bundle::load(bytes).expect("a compiled bundle loads")
}

fn evaluate(bundle: &Bundle<'static>, pattern: &str, text: &str) -> Result<Value, String> {
    let mut session = ExpressionSession::with_limits(bundle, LIMITS);
    let value = json!({"p": pattern, "t": text});
    session.set_input(&value, Numbers::Exact).expect("room");
    let answer = session.evaluate(0).map_err(|error| error.to_string())?;
    answer.to_value().map_err(|error| error.to_string())
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\nabc-1",
        "(?i)abc|d{2,3}\nABC",
        "\\p{Greek}+\\d\\b\nαβγ1",
        "(?P<name>a)(?:b)\nab",
        "[[:alpha:]_-]+?\nabc",
        "a{1001}\na",
        "(((a)))*\naaa",
        "\\Qa.b\\E$\na.b",
        "[^\\W\\d]\nx",
        "(?s).\\z\na\n",
        "(\na",
        "\\8\nx",
        "[z-a]\nx",
        "a**\nx",
    ])
}
