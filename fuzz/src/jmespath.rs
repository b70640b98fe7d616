//! JMESPath: an expression as bytecode and by the evaluator that walks its tree.

use kpvm::document::{DocumentBuffer, Kind, NodeId, Numbers, Texts, View};
use kpvm::engine::{Bundle, ExpressionSession};
use kpvm::function::{RegexCache, Values};
use kpvm::host::{ExternalQuery, Host, Timestamp};
use kpvm_compiler::expression::compile_expression;
use kpvm_format::symbol::SymbolTable;
use kpvm_syntax::jmespath::{Dialect, parse, parse_in};
use serde_json::{Value, json};

use crate::answers::{LIMITS, depends_on_fuel};
use crate::seeds;
use crate::target::Target;
use crate::text::lines;

/// The target.
pub const TARGET: Target = Target {
    name: "jmespath",
    run,
    seeds,
    words: &[
        "[*]",
        "[]",
        "[?",
        "@",
        "&&",
        "||",
        "!",
        "==",
        "!=",
        ">=",
        "`1`",
        "`[1,2]`",
        "`\"a\"`",
        "'x'",
        "\"q\"",
        ".*",
        "[0]",
        "[-1]",
        "[::2]",
        "[1:]",
        "&",
        "{a:",
        "length(",
        "keys(",
        "values(",
        "to_number(",
        "to_string(",
        "contains(",
        "join(",
        "sort_by(",
        "max_by(",
        "min_by(",
        "map(&",
        "merge(",
        "not_null(",
        "reverse(",
        "sum(",
        "avg(",
        "type(",
        "starts_with(",
        "ends_with(",
        "abs(",
        "ceil(",
        "floor(",
        "compare(",
        "equal_fold(",
        "replace(",
        "replace_all(",
        "to_upper(",
        "to_lower(",
        "trim(",
        "split(",
        "regex_replace_all(",
        "regex_replace_all_literal(",
        "regex_match(",
        "pattern_match(",
        "label_match(",
        "to_boolean(",
        "add(",
        "subtract(",
        "multiply(",
        "divide(",
        "modulo(",
        "round(",
        "base64_decode(",
        "base64_encode(",
        "time_since(",
        "time_now(",
        "path_canonicalize(",
        "truncate(",
        "semver_compare(",
        "parse_json(",
        "parse_yaml(",
        "lookup(",
        "items(",
        "object_from_lists(",
        "random(",
        "x509_decode(",
        "time_to_cron(",
        "time_add(",
        "time_parse(",
        "time_utc(",
        "time_diff(",
        "time_before(",
        "time_after(",
        "time_between(",
        "time_truncate(",
        "trim_prefix(",
        "to_entries(",
        "from_entries(",
        "image_normalize(",
        "is_external_url(",
        "sha256(",
        "md5(",
        "sha1(",
        "zip(",
        "group_by(",
        "find_first(",
        "sort(",
        "range(",
        "concat(",
    ],
    max_bytes: 512,
};

/// A host with a fixed time and a fixed random number.
pub(crate) struct FixedHost;

impl Host for FixedHost {
    fn now(&mut self) -> Option<Timestamp> {
        Some(Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 0,
            offset_seconds: 0,
        })
    }

    fn random(&mut self) -> Option<u64> {
        Some(7)
    }

    fn fetch(&mut self, _query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        Ok(None)
    }
}

/// The value that expressions without their own are evaluated over.
const VALUE: &str = r#"{"a":[1,2.5,-3,"x",null,true],"b":{"c":"d","e":[{"f":1,"g":"h"},{"f":2,"g":"i"}]},"s":"text","n":12,"t":"2023-01-02T03:04:05Z","q":"1.5Gi","d":"1h30m","v":"1.2.3","empty":{},"none":[]}"#;

/// The first line is the expression, the rest the value as JSON.
pub fn run(input: &[u8]) {
    let (text, value) = match lines::<2>(input) {
        Some([text, value]) => (text, value),
        None => match lines::<1>(input) {
            Some([text]) => (text, VALUE),
            None => return,
        },
    };
    let Ok(value) = serde_json::from_str(value) else {
        return;
    };
    let _ = parse_in(text, Dialect::Assertion);
    let parsed = parse(text);
    if let Ok(expression) = &parsed {
        let shown = expression.to_string();
        let again = parse(&shown).unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!(again.to_string(), shown);
    }
    let compiled = compile_expression(text);
    let bytes = match (compiled, &parsed) {
        (Ok(bytes), Ok(_)) => bytes,
        (Err(kpvm_compiler::expression::ExpressionError::TooBig(_)), Ok(_)) => return,
        (Err(error), Err(expected)) => return assert_eq!(error.to_string(), expected.to_string()),
        (compiled, _) => panic!("{compiled:?} and {parsed:?}"),
    };
    let bytecode = run_bytecode(bytes, &value);
    let walked = walk(text, &value);
    let limited = |outcome: &Result<Value, String>| matches!(outcome, Err(text) if depends_on_fuel(text) || text.contains("limit") || text.contains("too many"));
    if !limited(&bytecode) && !limited(&walked) {
        assert_eq!(bytecode, walked, "bytecode and walk");
    }
}

fn run_bytecode(bytes: Vec<u8>, input: &Value) -> Result<Value, String> {
    let bundle = Bundle::load(bytes).expect("a compiled bundle loads");
    let mut session = ExpressionSession::with_limits(&bundle, LIMITS);
    session.set_input(input, Numbers::Exact).expect("room");
    let answer = session.evaluate_with(0, &mut FixedHost);
    answer
        .map(|answer| recorded(&answer.view(), answer.node()))
        .map_err(|error| error.to_string())
}

fn walk(text: &str, input: &Value) -> Result<Value, String> {
    let expression = parse(text).expect("it has been parsed before");
    let mut buffer = DocumentBuffer::new();
    let symbols = SymbolTable::EMPTY;
    let root = buffer
        .push_value(input, &symbols, Numbers::Exact)
        .expect("room");
    let (mut fuel, mut regexes) = (LIMITS.rule_fuel, RegexCache::default());
    let mut values = Values {
        buffer: &mut buffer,
        texts: Texts::NONE,
        symbols,
        host: &mut FixedHost,
        limits: LIMITS,
        fuel: &mut fuel,
        regexes: &mut regexes,
    };
    let node = kpvm::jmespath::evaluate(&expression, root, &mut values);
    let node = node.map_err(|error| error.to_string())?;
    Ok(recorded(&values.view(), node))
}

/// The value with marks for what JSON lacks: NaN, the infinities, references.
fn recorded(view: &View<'_>, node: NodeId) -> Value {
    match view.kind(node) {
        Some(Kind::List) => view
            .children(node)
            .map(|item| recorded(view, item))
            .collect(),
        Some(Kind::Map) if view.is_reference(node) => json!({"$go": "jmespath.expRef"}),
        Some(Kind::Map) => view
            .children(node)
            .map(|member| (view.key_str(member).to_owned(), recorded(view, member)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Some(Kind::Float) => match view.float(node) {
            Some(number) if number.is_finite() => json!(number),
            number => json!({"$float": format!("{number:?}")}),
        },
        _ => view.to_value(node),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (file, step) in [
        ("cases.json", 4),
        ("language.json", 2),
        ("quantities-durations.json", 12),
    ] {
        for (expression, input) in seeds::expressions(file).into_iter().step_by(step) {
            let seed = match input {
                Value::Null => expression,
                input => format!("{expression}\n{input}"),
            };
            if seed.len() <= 512 {
                seeds.push(seed.into_bytes());
            }
        }
    }
    seeds
}
