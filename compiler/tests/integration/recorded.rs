//! Shared by tests of expressions: recorded outcomes, and running one expression or
//! document as bytecode.

use std::path::PathBuf;

use kpvm::document::{DocumentBuffer, Kind, NodeId, Numbers, ReadOptions, TextSource, Texts, View};
use kpvm::engine::{Answer, Bundle, ExpressionSession};
use kpvm::function::{RegexCache, Values};
use kpvm::host::{ExternalQuery, Host, Timestamp};
use kpvm::jmespath::evaluate;
use kpvm_compiler::expression::{compile_documents, compile_expression};
use kpvm_format::symbol::SymbolTable;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::jmespath::parse;
use serde_json::{Value, json};

/// A host with a fixed time and fixed random numbers.
pub(crate) struct TestHost;

impl Host for TestHost {
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

/// A file of Kyverno's recorded outcomes.
pub(crate) fn read_recorded(name: &str) -> Value {
    parse_exact(&kpvm_golden::read(name).unwrap())
}

/// A file of the public suite of JMESPath, or `None` with a note if it is absent.
pub(crate) fn read_public_suite(name: &str) -> Option<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    match std::fs::read_to_string(folder.join("jmespath").join(name)) {
        Ok(text) => Some(parse_exact(&text)),
        Err(error) => {
            println!("skipped: {name}: {error}");
            None
        }
    }
}

/// Parses JSON with our own reader, which is exact where serde_json's may be off by the
/// last bit, and distinguishes integers from floats as these files do.
fn parse_exact(text: &str) -> Value {
    let mut buffer = DocumentBuffer::new();
    let (source, symbols) = (TextSource::Object, SymbolTable::EMPTY);
    let options = ReadOptions::default();
    let id = buffer
        .read_json(text.as_bytes(), source, &symbols, &options)
        .unwrap();
    let texts = Texts::only(source, text.as_bytes());
    buffer.view(texts, symbols).to_value(id)
}

/// The recorded form of a value: numbers that JSON lacks, and references, are marked.
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
        Some(Kind::Float) => match view.float(node).unwrap() {
            number if number.is_nan() => json!({"$float": "NaN"}),
            f64::INFINITY => json!({"$float": "+Inf"}),
            f64::NEG_INFINITY => json!({"$float": "-Inf"}),
            number => json!(number),
        },
        _ => view.to_value(node),
    }
}

fn answer(answer: Answer<'_>) -> Value {
    recorded(&answer.view(), answer.node())
}

/// Runs an expression as bytecode; a syntax error begins with `compile: `.
pub(crate) fn run_expression(text: &str, input: &Value) -> Result<Value, String> {
    let bytes = compile_expression(text).map_err(|error| format!("compile: {error}"))?;
    let bundle = Bundle::load(bytes).unwrap();
    let mut session = ExpressionSession::new(&bundle);
    session.set_input(input, Numbers::Exact).unwrap();
    session
        .evaluate_with(0, &mut TestHost)
        .map(answer)
        .map_err(|error| error.to_string())
}

/// Runs documents with variables, one after another, in a context with these entries.
pub(crate) fn run_documents(
    entries: &Value,
    documents: &[Value],
    context: &Value,
) -> Vec<Result<Value, String>> {
    let entries: Vec<_> = entries.as_array().unwrap().iter().map(tree).collect();
    let trees: Vec<_> = documents.iter().map(tree).collect();
    let bundle = Bundle::load(compile_documents(&entries, &trees).unwrap()).unwrap();
    let mut session = ExpressionSession::new(&bundle);
    session.set_input(context, Numbers::Exact).unwrap();
    (0..documents.len() as u32)
        .map(|number| {
            session
                .evaluate_with(number, &mut TestHost)
                .map(answer)
                .map_err(|error| error.to_string())
        })
        .collect()
}

/// Runs one document in a context.
pub(crate) fn run_document(document: &Value, context: &Value) -> Result<Value, String> {
    run_documents(&json!([]), std::slice::from_ref(document), context).remove(0)
}

/// A value as the compiler reads it from a policy.
pub(crate) fn tree(value: &Value) -> kpvm_syntax::tree::Tree {
    use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};
    let span = Span::default();
    let value = match value {
        Value::Null => TreeValue::Null,
        Value::Bool(value) => TreeValue::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => TreeValue::Int(number),
            None => TreeValue::Float(number.as_f64().unwrap()),
        },
        Value::String(text) => TreeValue::String(text.as_str().into()),
        Value::Array(items) => TreeValue::List(items.iter().map(tree).collect()),
        Value::Object(members) => TreeValue::Map(
            members
                .iter()
                .map(|(key, value)| Member {
                    key: key.as_str().into(),
                    key_span: span,
                    value: tree(value),
                })
                .collect(),
        ),
    };
    Tree::new(value, span)
}

/// Runs an expression with the run-time evaluator.
pub(crate) fn walk_expression(text: &str, input: &Value) -> Result<Value, String> {
    let expression = parse(text).map_err(|error| format!("compile: {error}"))?;
    let mut buffer = DocumentBuffer::new();
    let symbols = SymbolTable::EMPTY;
    let root = buffer.push_value(input, &symbols, Numbers::Exact).unwrap();
    let (mut fuel, mut regexes) = (Limits::DEFAULT.rule_fuel, RegexCache::default());
    let mut values = Values {
        buffer: &mut buffer,
        texts: Texts::NONE,
        symbols,
        host: &mut TestHost,
        limits: Limits::DEFAULT,
        fuel: &mut fuel,
        regexes: &mut regexes,
    };
    let node = evaluate(&expression, root, &mut values).map_err(|error| error.to_string())?;
    Ok(recorded(&values.view(), node))
}
