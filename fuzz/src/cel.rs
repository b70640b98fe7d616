//! CEL: compile and evaluate. An expression that the type checker accepts has the same value
//! without it.

use std::str::from_utf8;

use kpvm::cel::{CelValue, read_value};
use kpvm::document::{DocumentBuffer, Numbers, Texts};
use kpvm::engine::{Bundle, ExpressionSession};
use kpvm_compiler::expression::{CelError, compile_cel, compile_cel_unchecked};
use kpvm_compiler::frontend::cel::{Environment, Type};
use kpvm_format::symbol::SymbolTable;
use serde_json::Value;

use crate::answers::{LIMITS, OBJECTS};
use crate::jmespath::FixedHost;
use crate::seeds;
use crate::target::Target;

/// The target.
pub const TARGET: Target = Target {
    name: "cel",
    run,
    seeds,
    words: &[
        "object",
        "object.spec",
        "object.metadata.name",
        ".containers",
        ".all(c, ",
        ".exists(c, ",
        ".exists_one(c, ",
        ".filter(c, ",
        ".map(c, ",
        ".all(i, v, ",
        ".transformList(i, v, ",
        ".transformMap(k, v, ",
        "has(",
        "size(",
        ".size()",
        ".?",
        ".orValue(",
        ".optMap(v, ",
        "[?0]",
        "optional.of(",
        "optional.none()",
        "optional.ofNonZeroValue(",
        ".hasValue()",
        "in",
        "? ",
        " : ",
        "&&",
        "||",
        "==",
        "!=",
        "<=",
        "1u",
        "1.5",
        "0x1F",
        "b'a'",
        "r'\\d'",
        "'''",
        "\"\\u00e9\"",
        "int(",
        "uint(",
        "double(",
        "string(",
        "bytes(",
        "bool(",
        "dyn(",
        "type(",
        "timestamp('2023-01-02T03:04:05Z')",
        "duration('1h')",
        ".getFullYear()",
        ".getHours('UTC')",
        ".contains(",
        ".startsWith(",
        ".endsWith(",
        ".matches(",
        ".find(",
        ".findAll(",
        ".split(",
        ".join(",
        ".replace(",
        ".substring(",
        ".trim()",
        ".lowerAscii()",
        ".upperAscii()",
        ".indexOf(",
        ".lastIndexOf(",
        ".charAt(",
        ".format([",
        "%d",
        "%s",
        "%.2f",
        "%x",
        "%b",
        "strings.quote(",
        ".reverse()",
        "lists.range(",
        ".sort()",
        ".distinct()",
        ".flatten()",
        ".slice(",
        ".first()",
        ".last()",
        "sets.contains(",
        "sets.equivalent(",
        "sets.intersects(",
        "math.greatest(",
        "math.least(",
        "math.ceil(",
        "math.bitAnd(",
        "math.abs(",
        "base64.encode(",
        "base64.decode(",
        "regex.replace(",
        "regex.extract(",
        "cel.bind(x, ",
        "quantity('1Gi')",
        ".isGreaterThan(",
        ".add(",
        ".asInteger()",
        "semver('1.2.3')",
        ".major()",
        "url('http://a/b')",
        ".getHost()",
        "ip('1.2.3.4')",
        "cidr('10.0.0.0/8')",
        ".containsIP(",
        ".isSorted()",
        ".sum()",
        ".min()",
        "format.named('dns1123Label')",
        ".validate(",
        "image('a/b:c')",
        "parseImageReference(",
        "json.unmarshal(",
        "yaml.parse(",
        "hash.sha256(",
        "time.now()",
        "time.truncate(",
        "math.round(",
        "random()",
        "null",
        "true",
    ],
    max_bytes: 512,
};

fn environment() -> Environment {
    let mut environment = Environment::kyverno(false);
    environment.declare("object", Type::Dyn);
    environment.declare("oldObject", Type::Dyn);
    environment.declare("n", Type::Int);
    environment.declare("s", Type::String);
    environment
}

/// The values of the variables.
fn variables() -> Vec<(&'static str, CelValue)> {
    let object: Value = serde_json::from_slice(OBJECTS[0]).expect("JSON");
    let mut buffer = DocumentBuffer::new();
    let symbols = SymbolTable::EMPTY;
    let root = buffer
        .push_value(&object, &symbols, Numbers::Exact)
        .expect("room");
    let object = read_value(&buffer.view(Texts::NONE, symbols), root);
    vec![
        ("object", object),
        ("oldObject", CelValue::Null),
        ("n", CelValue::Int(7)),
        ("s", CelValue::String("text".to_owned())),
    ]
}

/// Runs the harness.
pub fn run(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let environment = environment();
    let checked = compile_cel(text, &environment);
    let unchecked = compile_cel_unchecked(text, &environment);
    if let Err(CelError::Invalid { errors, .. }) = &checked {
        assert!(!errors.is_empty(), "refused without an error");
    }
    match (checked, unchecked) {
        (Ok(checked), Ok(unchecked)) => {
            let checked = evaluate(checked);
            assert_eq!(checked, evaluate(unchecked), "checked and unchecked");
        }
        (Ok(_), Err(CelError::Invalid { text, .. })) => panic!("only unchecked invalid: {text}"),
        (Err(_), Ok(unchecked)) => drop(evaluate(unchecked)),
        _ => {}
    }
}

/// The value as text, since NaN is not equal to itself; `None` if there is none.
fn evaluate(bytes: Vec<u8>) -> Option<String> {
    let bundle = Bundle::load(bytes).expect("a compiled bundle loads");
    let mut session = ExpressionSession::with_limits(&bundle, LIMITS);
    session.set_variables(&variables()).expect("room");
    let first = session
        .evaluate_with(0, &mut FixedHost)
        .map(|answer| format!("{:?}", answer.to_cel()));
    session.set_variables(&variables()).expect("room");
    let second = session
        .evaluate_with(0, &mut FixedHost)
        .map(|answer| format!("{:?}", answer.to_cel()));
    assert_eq!(first, second, "a fresh session and a used one");
    first.ok()
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for policy in seeds::policies() {
        for line in policy.lines() {
            let line = line.trim_start_matches([' ', '-']);
            if let Some((_, text)) = line.split_once("xpression: ") {
                let text = text.trim_matches(['"', '\'', ' ', '>', '|', '-']);
                seeds.push(text.as_bytes().to_vec());
            }
        }
    }
    for text in [
        "object.spec.containers.all(c, c.image.startsWith('nginx') || has(c.securityContext))",
        "[1, 2, 3].map(x, x * 2).filter(x, x > 2).size() == 2",
        "{'a': 1, 'b': 2u}.exists(k, k == 'a')",
        "object.?metadata.?labels['app'].orValue('none') == 'a'",
        "quantity('1.5Gi').isGreaterThan(quantity('500Mi'))",
        "timestamp('2023-01-02T03:04:05Z') + duration('1h30m') > timestamp('2023-01-02T03:04:05Z')",
        "'%s has %d and %.2f'.format(['a', 1, 2.5])",
        "cel.bind(x, 'a.b.c'.split('.'), x.join('-') + x[0])",
        "math.greatest(1, 2.5, 3u)",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, [2]].size() == 2",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "url('https://a.b/c?d=e').getHost()",
        "'abc'.matches('^[a-z]+$') && 'abc'.find('b') == 'b'",
        "b'abc' == bytes('abc') && string(b'\\x41') == 'A'",
        "1 / 0 == 1 || true",
        "[1, 2].transformMap(i, v, v)[0] == 1",
        "image('ghcr.io/a/b:c').registry()",
        "type(1) == int && dyn(1.0) == 1",
        "semver('1.2.3').isLessThan(semver('1.3.0-a'))",
        "-9223372036854775808 - n",
    ] {
        seeds.push(text.as_bytes().to_vec());
    }
    seeds.retain(|seed| !seed.is_empty() && seed.len() <= 512);
    seeds
}
