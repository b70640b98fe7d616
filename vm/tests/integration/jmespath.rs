//! The run-time evaluator, with inputs that no recorded file contains: worked cases, the
//! host, hostile values. `compiler/tests/integration/jmespath.rs` runs the recordings.

use kpvm::document::{DocumentBuffer, Kind, Label, NodeId, Texts};
use kpvm::function::{RegexCache, Values};
use kpvm::host::{ExternalQuery, Host, Timestamp};
use kpvm::jmespath::evaluate;
use kpvm_format::symbol::SymbolTable;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::jmespath::parse;
use serde_json::{Value, json};

/// A host with a fixed time and fixed random numbers.
struct TestHost;

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

/// Reads a recorded value: numbers without point or exponent are integers.
fn push(buffer: &mut DocumentBuffer, value: &Value, label: Label) {
    match value {
        Value::Null => buffer.push_null(label),
        Value::Bool(value) => buffer.push_bool(label, *value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => buffer.push_int(label, number),
            None => buffer.push_float(label, number.as_f64().unwrap()),
        },
        Value::String(text) => {
            let text = buffer.copy_text(text.as_bytes()).unwrap();
            buffer.push_text(label, text);
        }
        Value::Array(items) => {
            buffer.begin(label);
            items
                .iter()
                .for_each(|item| push(buffer, item, Label::ITEM));
            buffer.finish_list();
        }
        Value::Object(members) => {
            buffer.begin(label);
            for (key, value) in members {
                let label = buffer.label(key, &SymbolTable::EMPTY).unwrap();
                push(buffer, value, label);
            }
            buffer.finish_map(Texts::NONE);
        }
    }
}

/// The recorded form of a value.
fn recorded(values: &Values<'_>, id: NodeId) -> Value {
    let view = values.view();
    match view.kind(id) {
        Some(Kind::List) => view
            .children(id)
            .map(|item| recorded(values, item))
            .collect(),
        Some(Kind::Map) if view.is_reference(id) => json!({"$go": "jmespath.expRef"}),
        Some(Kind::Map) => view
            .children(id)
            .map(|member| (view.key_str(member).to_owned(), recorded(values, member)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Some(Kind::Float) => match view.float(id).unwrap() {
            number if number.is_nan() => json!({"$float": "NaN"}),
            f64::INFINITY => json!({"$float": "+Inf"}),
            f64::NEG_INFINITY => json!({"$float": "-Inf"}),
            number => json!(number),
        },
        _ => view.to_value(id),
    }
}

/// Evaluates in a fresh buffer.
fn run(expression: &str, input: &Value) -> Result<Value, String> {
    let expression = parse(expression).map_err(|error| format!("compile: {error}"))?;
    let mut buffer = DocumentBuffer::new();
    push(&mut buffer, input, Label::ITEM);
    let root = buffer.take().unwrap();
    let (mut fuel, mut regexes) = (Limits::DEFAULT.rule_fuel, RegexCache::default());
    let mut values = Values {
        buffer: &mut buffer,
        texts: Texts::NONE,
        symbols: SymbolTable::EMPTY,
        host: &mut TestHost,
        limits: Limits::DEFAULT,
        fuel: &mut fuel,
        regexes: &mut regexes,
    };
    let id = evaluate(&expression, root, &mut values).map_err(|error| error.to_string())?;
    Ok(recorded(&values, id))
}

#[test]
fn worked_cases_that_no_file_holds() {
    // docs/spec/jmespath.md, worked cases; the number is the case's.
    let rows: &[(u32, &str, Value, Result<Value, &str>)] = &[
        (
            1,
            "foo",
            json!({"bar": 1}),
            Err("Unknown key \"foo\" in path"),
        ),
        (3, "a.b | @", json!({}), Ok(json!(null))),
        (
            7,
            "a[0].b",
            json!({"a": [{}]}),
            Err("Unknown key \"b\" in path"),
        ),
        (
            14,
            "!foo.bar",
            json!({"foo": {"bar": false}}),
            Ok(json!(null)),
        ),
        (
            16,
            "*.type(@)",
            json!({"a": 1.0, "b": 2.0}),
            Ok(json!(["null", "null", "number", "number"])),
        ),
        (30, "divide('10Ki',`3`)", json!(null), Ok(json!("3413"))),
        (
            31,
            "multiply('1Gi',`0.3`)",
            json!(null),
            Ok(json!("322122547200m")),
        ),
        (
            52,
            "time_truncate('2023-02-02T15:44:05+05:30','1h')",
            json!(null),
            Ok(json!("2023-02-02T15:30:00+05:30")),
        ),
        (
            58,
            "elementIndex == `0`",
            json!({"elementIndex": 0}),
            Ok(json!(false)),
        ),
        (
            59,
            "contains(a b)",
            json!({"a": "x", "b": "x"}),
            Ok(json!(true)),
        ),
        (
            60,
            "nofunc(a)",
            json!({"a": 1}),
            Err("unknown function: nofunc"),
        ),
    ];
    for (number, expression, input, expected) in rows {
        let outcome = run(expression, input);
        assert_eq!(
            outcome.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|text| *text),
            "case {number}"
        );
    }
    // Case 55: Kyverno sorts in place, so its second value is 1; here earlier values never
    // change.
    let input = json!({"a": [{"n": 2.0}, {"n": 1.0}]});
    assert_eq!(
        run("[sort_by(a,&n)[0].n, a[0].n]", &input),
        Ok(json!([1.0, 2.0]))
    );
}

#[test]
fn what_comes_from_outside_comes_from_the_host() {
    // docs/spec/jmespath.md §11; the clock of the test host is fixed at
    // 2023-11-14T22:13:20Z.
    for (expression, expected) in [
        ("time_now()", "2023-11-14T22:13:20Z"),
        ("time_now_utc(`1`, 'ignored')", "2023-11-14T22:13:20Z"),
        ("time_since('', '2023-11-14T22:13:00Z', '')", "20s"),
        ("random('[a-c]{3}')", "bbb"),
    ] {
        assert_eq!(
            run(expression, &json!(null)),
            Ok(json!(expected)),
            "{expression}"
        );
    }
    let refused = run("is_external_url('http://example.com')", &json!(null)).unwrap_err();
    assert!(
        refused.contains("example.com cannot be looked up"),
        "{refused}"
    );
}

#[test]
fn hostile_values_end_in_an_error_and_soon() {
    // Hostile inputs, rows 77 to 88. Each must be rejected, none ignored.
    let many = "a".repeat(100_000);
    let input = json!({
        "many": many,
        "nested": "(".repeat(10_000),
        "long": "x".repeat(2_000_000),
        "text": "ab".repeat(1_000),
        "pieces": "1.0.0 || ".repeat(100_000),
    });
    for expression in [
        "regex_match(nested, 'a')",
        "regex_match(long, 'a')",
        "regex_match('a{1001}', 'a')",
        "regex_match('(a{500}){500}', 'a')",
        "regex_match('(\\pL{100}){10}', 'a')",
        "regex_replace_all('a.*[^a]|a', many, 'b')",
        "regex_replace_all('a.*[^a]|a', many, 'b')[]",
        "replace_all(many, '', many)",
        "join(many, split(many, ''))",
        "regex_match('(.{900})(.{900})b', long)",
        "random('[a-z]{1000}{1000}')",
        "random('([a-z]{1000}){1000}')",
        "add('1e2147483647', '0')",
        "add('1e-2147483647', '1e600')",
        "divide('1', '0')",
        "modulo(`1`, `-0`)",
        "time_add('9999-12-31T23:59:59Z', '1e400h')",
        "time_add('2024-01-01T00:00:00Z', '9223372036854775808ns')",
        "semver_compare('1.0.0', pieces)",
    ] {
        let start = std::time::Instant::now();
        let outcome = run(expression, &input);
        assert!(outcome.is_err(), "{expression}");
        assert!(start.elapsed().as_secs() < 20, "{expression}");
    }
    // These must return quickly.
    for (expression, expected) in [
        ("add('1e-999999999', '0')", json!("1e-9")),
        // The low 32 bits of the exponent are a large negative number.
        ("add('2E6024865272343', '1')", json!("1000000001e-9")),
        ("add('9Ei', '0')", json!("9223372036854775807")),
        ("round(`1`, `400`)", json!({"$float": "NaN"})),
        (
            "time_add('0000-01-01T00:00:00Z', '-1h')",
            json!("-0001-12-31T23:00:00Z"),
        ),
        (
            "time_add('9999-12-31T23:59:59Z', '1s')",
            json!("10000-01-01T00:00:00Z"),
        ),
        ("length(split(many, ''))", json!(100_000.0)),
        ("truncate(many, `1e300`)", json!("")),
    ] {
        assert_eq!(run(expression, &input), Ok(expected), "{expression}");
    }
}

#[test]
fn values_that_share_members_cannot_make_work_explode() {
    // Thirty doublings: 10^12 values in thirty lists.
    let doubled = vec!["[@, @]"; 40].join(" | ");
    for end in [
        "to_string(@)",
        "@ == @",
        "abs(@)",
        "[*][][][][][][][][][][][][][][][][][][][][][][]",
    ] {
        let outcome = run(&format!("{doubled} | {end}"), &json!("x"));
        assert!(outcome.is_err(), "{end}");
    }
}

#[test]
fn the_deepest_expressions_fit_a_small_stack() {
    // Hostile inputs, row 106: 256 KiB. A debug build needs more.
    let stack = if cfg!(debug_assertions) {
        2 << 20
    } else {
        256 << 10
    };
    let deep = |open: &str, close: &str, times: usize| {
        format!("{}@{}", open.repeat(times), close.repeat(times))
    };
    let expressions = [
        deep("[", "]", 240),
        deep("to_array(", ")", 120),
        deep("map(&", ", [@])", 80),
        deep("@ | (", ")", 120),
    ];
    let thread = std::thread::Builder::new().stack_size(stack);
    let outcomes = thread.spawn(move || expressions.map(|text| run(&text, &json!(1.0)).is_ok()));
    assert_eq!(outcomes.unwrap().join().unwrap(), [true; 4]);
}
