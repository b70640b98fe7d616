//! The public conformance suite of CEL, run as bytecode: every test that needs neither
//! protobuf messages nor enums.
//!
//! The suite is not part of this repository; without it the test is skipped with a note.

use std::collections::BTreeMap;
use std::path::Path;

use kpvm::cel::CelValue;
use kpvm::engine::{Bundle, ExpressionSession};
use kpvm_compiler::expression::{compile_cel, compile_cel_unchecked};
use kpvm_compiler::frontend::cel::{self, Environment, Type};
use kpvm_format::cel::Library;
use serde_json::Value;

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/conformance/cel");

const LIBRARIES: [Library; 14] = [
    Library::Standard,
    Library::Optional,
    Library::Strings,
    Library::StringsLater,
    Library::Lists,
    Library::Sets,
    Library::TwoVariables,
    Library::Math,
    Library::Encoders,
    Library::Regex,
    Library::Bindings,
    Library::Kubernetes,
    Library::JsonPatch,
    Library::Block,
];

/// Tests that differ on purpose: the end of their path, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "network_ext/ipv4/ipv4_equals_ipv6",
        "Kubernetes refuses IPv4 addresses inside IPv6 (docs/spec/cel.md §3.9)",
    ),
    ("network_ext/ipv4/ipv4_not_equals_ipv6", "as above"),
    (
        "bytes_literals/triple_single_quoted_unescaped_punctuation",
        "the recorded value has a backslash that the literal has not",
    ),
    (
        "bytes_literals/triple_double_quoted_unescaped_punctuation",
        "as above",
    ),
    // In the rest Kyverno 1.19.1 does something else; sections are of docs/spec/cel.md.
    (
        "fields/map_fields/map_bad_key_type_or_true",
        "an index that can be no key is refused when the program is planned (§3.8)",
    ),
    (
        "fields/map_fields/map_bad_key_type_and_false",
        "an index that can be no key is refused when the program is planned (§3.8)",
    ),
    (
        "fields/qualified_identifier_resolution/map_key_float",
        "keys may be doubles (§3.7)",
    ),
    (
        "fields/qualified_identifier_resolution/map_value_repeat_key",
        "of equal keys the last one counts (§3.7)",
    ),
    (
        "fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous",
        "of equal keys the last one counts (§3.7)",
    ),
    (
        "optionals/optionals/map_null_entry_no_such_key",
        "a field of what has no fields is none in an optional chain (§3.4)",
    ),
    (
        "optionals/optionals/map_present_key_invalid_field",
        "a field of what has no fields is none in an optional chain (§3.4)",
    ),
    (
        "string_ext/format/scientific notation formatting clause",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/format/default precision for fixed-point clause with int",
        "`%f` takes doubles only, and writes infinity as a sign (§3.9)",
    ),
    (
        "string_ext/format/default precision for fixed-point clause with uint",
        "`%f` takes doubles only, and writes infinity as a sign (§3.9)",
    ),
    (
        "string_ext/format/default precision for scientific notation",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/format/default precision for scientific notation with int",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/format/default precision for scientific notation with uint",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/format/NaN support for scientific notation",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/format/positive infinity support for scientific notation",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/format/negative infinity support for scientific notation",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/format/NaN support for decimal",
        "`%d` takes no doubles (§3.9)",
    ),
    (
        "string_ext/format/positive infinity support for decimal",
        "`%d` takes no doubles (§3.9)",
    ),
    (
        "string_ext/format/negative infinity support for decimal",
        "`%d` takes no doubles (§3.9)",
    ),
    (
        "string_ext/format/positive infinity support for fixed-point",
        "`%f` takes doubles only, and writes infinity as a sign (§3.9)",
    ),
    (
        "string_ext/format/negative infinity support for fixed-point",
        "`%f` takes doubles only, and writes infinity as a sign (§3.9)",
    ),
    (
        "string_ext/format/list support for string",
        "`%s` writes members as literals (§3.9)",
    ),
    (
        "string_ext/format/map support for string",
        "`%s` writes members as literals (§3.9)",
    ),
    (
        "string_ext/format/map support (all key types)",
        "`%s` writes members as literals (§3.9)",
    ),
    (
        "string_ext/format/dyntype support for scientific notation",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/format/dyntype NaN/infinity support",
        "`%s` writes members as literals (§3.9)",
    ),
    (
        "string_ext/format/dyntype support for lists",
        "`%s` writes members as literals (§3.9)",
    ),
    (
        "string_ext/format/dyntype support for maps",
        "`%s` writes members as literals (§3.9)",
    ),
    (
        "string_ext/format/scientific notation formatting clause in a string variable",
        "`%e` is written with a power of ten, and takes doubles only (§3.9)",
    ),
    (
        "string_ext/value_errors/indexof_out_of_range",
        "an offset beyond the end finds nothing (§3.9)",
    ),
    (
        "string_ext/value_errors/lastindexof_out_of_range",
        "an offset beyond the end finds nothing (§3.9)",
    ),
];

#[derive(Default)]
struct Count {
    total: usize,
    passed: usize,
    failed: Vec<String>,
    /// Reasons for which tests do not apply.
    skipped: BTreeMap<&'static str, usize>,
}

#[test]
fn the_public_suite_agrees() {
    if !Path::new(SUITE).is_dir() {
        eprintln!("note: {SUITE} is not there: the conformance suite of CEL was not run");
        return;
    }
    let mut files: Vec<_> = std::fs::read_dir(SUITE)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    let mut failures = Vec::new();
    let mut all = Count::default();
    let mut applicable = 0;
    println!("{:<18} passed applicable total  not applicable", "file");
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let suite: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let count = run_file(&name, &suite);
        let tried = count.passed + count.failed.len();
        let reasons: Vec<String> = count
            .skipped
            .iter()
            .map(|(reason, number)| format!("{number} {reason}"))
            .collect();
        println!(
            "{name:<18} {:6} {tried:10} {:5}  {}",
            count.passed,
            count.total,
            reasons.join(", ")
        );
        all.total += count.total;
        all.passed += count.passed;
        applicable += tried;
        failures.extend(count.failed);
    }
    println!(
        "{:<18} {:6} {applicable:10} {:5}",
        "all", all.passed, all.total
    );
    for failure in &failures {
        println!("{failure}");
    }
    assert!(failures.is_empty(), "{} tests differ", failures.len());
    assert!(all.passed > 1000, "the suite is not read as it should be");
}

fn run_file(name: &str, suite: &Value) -> Count {
    let mut count = Count::default();
    for section in list(&suite["section"]) {
        for test in list(&section["test"]) {
            count.total += 1;
            let path = format!("{name}/{}/{}", text(&section["name"]), text(&test["name"]));
            if let Some(reason) = not_applicable(&path, test) {
                *count.skipped.entry(reason).or_default() += 1;
                continue;
            }
            match run(test) {
                Ok(()) => count.passed += 1,
                Err(_) if DIFFERENCES.iter().any(|(end, _)| path.ends_with(end)) => {
                    count.passed += 1;
                }
                Err(error) => {
                    let expression = text(&test["expr"]);
                    count
                        .failed
                        .push(format!("{path}: {expression}\n    {error}"));
                }
            }
        }
    }
    count
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Reason why a test does not apply to CEL over Kubernetes data.
fn not_applicable(path: &str, test: &Value) -> Option<&'static str> {
    let whole = test.to_string();
    let messages = [
        "TestAllTypes",
        "\"object_value\":{\"@type\":\"type.googleapis.com/cel",
        "message_type",
        "proto.hasExt",
        "proto.getExt",
        "TestRequired",
        "Int32Value",
        "FloatValue",
        "NullValue",
        "google.protobuf.Any",
        "google.protobuf.Bool",
        "google.protobuf.Bytes",
        "google.protobuf.DoubleValue",
        "google.protobuf.Empty",
        "google.protobuf.FieldMask",
        "google.protobuf.Float",
        "google.protobuf.Int",
        "google.protobuf.ListValue",
        "google.protobuf.NullValue",
        "google.protobuf.String",
        "google.protobuf.Struct",
        "google.protobuf.UInt",
        "google.protobuf.Value",
        "google.protobuf.Timestamp{",
        "google.protobuf.Duration{",
    ];
    if messages.iter().any(|marker| whole.contains(marker)) {
        return Some("protobuf messages");
    }
    if whole.contains("enum_value") || path.starts_with("enums/") || whole.contains("GlobalEnum") {
        return Some("enums");
    }
    if whole.contains("\"function\":{\"overloads\"") {
        return Some("functions that the test declares and nobody implements");
    }
    None
}

fn run(test: &Value) -> Result<(), String> {
    let expression = text(&test["expr"]);
    let mut environment = Environment::new(&LIBRARIES);
    environment.container = text(&test["container"]).to_owned();
    for declaration in list(&test["type_env"]) {
        let ident = &declaration["ident"]["type"];
        environment.declare(text(&declaration["name"]), read_type(ident));
    }
    let mut variables = Vec::new();
    for (name, binding) in test["bindings"].as_object().into_iter().flatten() {
        let value = read_value(&binding["value"]);
        if environment.variable(name).is_none() {
            environment.declare(name, Type::Dyn);
        }
        variables.push((name.as_str(), value));
    }
    let unchecked = test["disable_check"].as_bool() == Some(true);
    let wants_error = test.get("eval_error").is_some();
    if let Some(typed) = test.get("typed_result") {
        let program = cel::compile(expression, &environment)
            .map_err(|errors| cel::render_errors(expression, &errors))?;
        let deduced = program.result().to_string();
        let expected = read_type(&typed["deduced_type"]).to_string();
        if deduced != expected {
            return Err(format!("type {expected} expected, {deduced} deduced"));
        }
    }
    if test["check_only"].as_bool() == Some(true) {
        return Ok(());
    }
    let compiled = if unchecked {
        compile_cel_unchecked(expression, &environment)
    } else {
        compile_cel(expression, &environment)
    };
    let bytes = match compiled {
        Ok(bytes) => bytes,
        // Certain errors are found before it runs.
        Err(_) if wants_error => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let bundle = Bundle::load(bytes).map_err(|error| error.to_string())?;
    let mut session = ExpressionSession::new(&bundle);
    session
        .set_variables(&variables)
        .map_err(|error| error.to_string())?;
    match (session.evaluate(0), wants_error) {
        (Err(_), true) => Ok(()),
        (Ok(answer), true) => Err(format!("an error expected, got {:?}", answer.to_cel())),
        (Err(error), false) => Err(error.to_string()),
        (Ok(answer), false) => {
            let expected = match (test.get("value"), test.get("typed_result")) {
                (Some(value), _) => read_value(value),
                (None, Some(typed)) => read_value(&typed["result"]),
                (None, None) => CelValue::Bool(true),
            };
            let found = answer.to_cel();
            if same(&expected, &found) {
                return Ok(());
            }
            Err(format!("expected {expected:?}\n    found    {found:?}"))
        }
    }
}

fn same(left: &CelValue, right: &CelValue) -> bool {
    match (left, right) {
        (CelValue::Double(left), CelValue::Double(right)) => {
            // The JSON of the suite is parsed with an error in the last place.
            left == right
                || left.is_nan() && right.is_nan()
                || left.is_finite() && (left - right).abs() <= left.abs() * f64::EPSILON
        }
        (CelValue::List(left), CelValue::List(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (CelValue::Map(left), CelValue::Map(right)) => {
            let has = |(key, value): &(CelValue, CelValue)| {
                right
                    .iter()
                    .any(|(other, found)| same(key, other) && same(value, found))
            };
            left.len() == right.len() && left.iter().all(has)
        }
        (CelValue::Type(left), CelValue::Type(right)) => {
            let short = |name: &str| match name {
                "google.protobuf.Timestamp" => "timestamp".to_owned(),
                "google.protobuf.Duration" => "duration".to_owned(),
                other => other.to_owned(),
            };
            short(left) == short(right)
        }
        (left, right) => left == right,
    }
}

fn read_value(value: &Value) -> CelValue {
    let Some((kind, inner)) = value.as_object().and_then(|object| object.iter().next()) else {
        return CelValue::Null;
    };
    match kind.as_str() {
        "bool_value" => CelValue::Bool(inner.as_bool().unwrap()),
        "int64_value" => CelValue::Int(text(inner).parse().unwrap()),
        "uint64_value" => CelValue::Uint(text(inner).parse().unwrap()),
        "double_value" => CelValue::Double(match inner {
            Value::String(name) if name == "NaN" => f64::NAN,
            Value::String(name) if name == "Infinity" => f64::INFINITY,
            Value::String(name) if name == "-Infinity" => f64::NEG_INFINITY,
            Value::String(number) => number.parse().unwrap(),
            number => number.as_f64().unwrap(),
        }),
        "string_value" => CelValue::String(text(inner).to_owned()),
        "bytes_value" => CelValue::Bytes(base64(text(inner))),
        "null_value" => CelValue::Null,
        "type_value" => CelValue::Type(text(inner).to_owned()),
        "list_value" => CelValue::List(list(&inner["values"]).iter().map(read_value).collect()),
        "map_value" => CelValue::Map(
            list(&inner["entries"])
                .iter()
                .map(|entry| (read_value(&entry["key"]), read_value(&entry["value"])))
                .collect(),
        ),
        "object_value" => {
            let shown = text(&inner["value"]);
            match text(&inner["@type"]) {
                "type.googleapis.com/google.protobuf.Timestamp" => constant("timestamp", shown),
                "type.googleapis.com/google.protobuf.Duration" => constant("duration", shown),
                other => panic!("no value of {other}"),
            }
        }
        other => panic!("no value of kind {other}"),
    }
}

/// A timestamp or duration, read by the conversion of the language.
fn constant(function: &str, text: &str) -> CelValue {
    let environment = Environment::new(&LIBRARIES);
    let bytes = compile_cel(&format!("{function}('{text}')"), &environment).unwrap();
    let bundle = Bundle::load(bytes).unwrap();
    let mut session = ExpressionSession::new(&bundle);
    session.evaluate(0).unwrap().to_cel()
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| *byte != b'=')
        .map(digit)
        .collect();
    let mut bytes = Vec::new();
    for chunk in digits.chunks(4) {
        let bits = chunk
            .iter()
            .fold(0u32, |bits, digit| bits << 6 | u32::from(*digit))
            << (6 * (4 - chunk.len()));
        bytes.extend(bits.to_be_bytes()[1..].iter().take(chunk.len() - 1));
    }
    bytes
}

fn read_type(ty: &Value) -> Type {
    let Some((kind, inner)) = ty.as_object().and_then(|object| object.iter().next()) else {
        return Type::Dyn;
    };
    match kind.as_str() {
        "primitive" | "wrapper" => {
            let ty = match text(inner) {
                "BOOL" => Type::Bool,
                "INT64" => Type::Int,
                "UINT64" => Type::Uint,
                "DOUBLE" => Type::Double,
                "STRING" => Type::String,
                "BYTES" => Type::Bytes,
                other => panic!("no primitive {other}"),
            };
            if kind == "wrapper" {
                Type::Wrapper(Box::new(ty))
            } else {
                ty
            }
        }
        "null" => Type::Null,
        "dyn" => Type::Dyn,
        "well_known" => match text(inner) {
            "TIMESTAMP" => Type::Timestamp,
            "DURATION" => Type::Duration,
            _ => Type::Dyn,
        },
        "list_type" => Type::list(read_type(&inner["elem_type"])),
        "map_type" => Type::map(
            read_type(&inner["key_type"]),
            read_type(&inner["value_type"]),
        ),
        "type" => Type::Type(Box::new(read_type(inner))),
        "abstract_type" if text(&inner["name"]) == "optional_type" => {
            Type::optional(read_type(&inner["parameter_types"][0]))
        }
        "abstract_type" => Type::Opaque(
            text(&inner["name"]).to_owned(),
            list(&inner["parameter_types"])
                .iter()
                .map(read_type)
                .collect(),
        ),
        "type_param" => Type::Dyn,
        other => panic!("no type of kind {other}: {ty}"),
    }
}
