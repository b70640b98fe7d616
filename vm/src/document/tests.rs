//! Tests of the reader, the builder and the views. A row is one of the hostile inputs in
//! `conformance/tests/integration/hostile/resource.rs`.

use kpvm_format::symbol::{SymbolId, SymbolTable, SymbolTableBuilder};
use serde_json::{Value, json};

use super::*;
use kpvm_semantics::limits::Limits;

mod properties;

fn symbol_bytes() -> Vec<u8> {
    let mut builder = SymbolTableBuilder::new();
    for name in [
        "kind",
        "spec",
        "containers",
        "image",
        "name",
        "privileged",
        "hostNetwork",
    ] {
        builder.intern(name);
    }
    builder.intern("a-symbol-of-more-than-16-bytes");
    builder.finish()
}

fn options(numbers: Numbers) -> ReadOptions {
    ReadOptions {
        numbers,
        limits: Limits::DEFAULT,
    }
}

/// Reads with symbols, without symbols, and as scratch; all three must agree.
fn read_with(input: &[u8], options: &ReadOptions) -> Result<Value, JsonError> {
    let bytes = symbol_bytes();
    let symbols = SymbolTable::verify(&bytes).unwrap();
    let mut results = Vec::new();
    for (symbols, source) in [
        (symbols, TextSource::Object),
        (SymbolTable::EMPTY, TextSource::OldObject),
        (symbols, TextSource::Scratch),
    ] {
        let mut buffer = DocumentBuffer::new();
        // Something before it, so that no offset is zero by accident.
        let first = buffer.read_json(
            b"[\"\\n\",{\"?\":1}]",
            TextSource::Scratch,
            &symbols,
            options,
        );
        first.unwrap();
        let before = (buffer.nodes.len(), buffer.scratch.len(), buffer.keys.len());
        let result = buffer.read_json(input, source, &symbols, options);
        assert!(
            buffer.pending.is_empty(),
            "nothing stays under construction"
        );
        if result.is_err() {
            let after = (buffer.nodes.len(), buffer.scratch.len(), buffer.keys.len());
            assert_eq!(before, after, "a refused input leaves nothing");
        }
        let view = buffer.view(Texts::only(source, input), symbols);
        results.push(result.map(|root| view.to_value(root)));
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    results.pop().unwrap()
}

fn read(input: impl AsRef<[u8]>) -> Result<Value, JsonError> {
    read_with(input.as_ref(), &options(Numbers::Exact))
}

#[track_caller]
fn refused(input: impl AsRef<[u8]>) -> JsonError {
    match read(&input) {
        Err(error) => error,
        Ok(value) => panic!("{:?} became {value}", input.as_ref()),
    }
}

#[test]
fn values_come_out_as_they_went_in() {
    let rows: &[(&str, Value)] = &[
        ("null", json!(null)),
        ("true", json!(true)),
        ("false", json!(false)),
        ("\"\"", json!("")),
        ("\"text\"", json!("text")),
        ("[]", json!([])),
        ("{}", json!({})),
        (" [ ] ", json!([])),
        ("\t{\r\n} ", json!({})),
        ("[[],{},[[]]]", json!([[], {}, [[]]])),
        ("[1,\"a\",null]", json!([1, "a", null])),
        (
            "{\"a\":{\"b\":[{\"c\":1}]}}",
            json!({"a": {"b": [{"c": 1}]}}),
        ),
        (
            "{ \"a\" : 1 , \"b\" : [ 1 , 2 ] }",
            json!({"a": 1, "b": [1, 2]}),
        ),
        ("{\"\":1}", json!({"": 1})),
        (
            "{\"kind\":\"Pod\",\"unknown\":1}",
            json!({"kind": "Pod", "unknown": 1}),
        ),
        (
            "{\"a-symbol-of-more-than-16-bytes\":1,\"a-key-of-more-than-16-bytes\":2}",
            json!({"a-symbol-of-more-than-16-bytes": 1, "a-key-of-more-than-16-bytes": 2}),
        ),
        ("\"\u{7f}é€😀\"", json!("\u{7f}é€😀")),
    ];
    for (text, expected) in rows {
        assert_eq!(read(text).as_ref(), Ok(expected), "{text}");
    }
    for length in 0..70 {
        let text = "x".repeat(length);
        let input = format!("{{\"{text}\":\"{text}\"}}");
        assert_eq!(read(&input), Ok(json!({ text.clone(): text })), "{length}");
    }
}

/// docs/spec/patterns.md §1, and rows 52 and 53.
#[test]
fn numbers_are_int_where_they_are_integers_that_fit() {
    enum Is {
        Int(i64),
        Float(f64),
    }
    use Is::{Float, Int};
    let rows = [
        ("0", Int(0)),
        ("-0", Int(0)),
        ("7", Int(7)),
        ("-42", Int(-42)),
        ("123456789012345678", Int(123_456_789_012_345_678)),
        ("1234567890123456789", Int(1_234_567_890_123_456_789)),
        ("9007199254740993", Int(9_007_199_254_740_993)),
        ("9223372036854775807", Int(i64::MAX)),
        ("-9223372036854775808", Int(i64::MIN)),
        ("9223372036854775808", Float(9_223_372_036_854_775_808.0)),
        ("-9223372036854775809", Float(-9_223_372_036_854_775_808.0)),
        ("18446744073709551616", Float(18_446_744_073_709_551_616.0)),
        ("-0.0", Float(-0.0)),
        ("1.0", Float(1.0)),
        ("1e0", Float(1.0)),
        ("1E+2", Float(100.0)),
        ("25e-2", Float(0.25)),
        ("0.1", Float(0.1)),
        ("1.7976931348623157e308", Float(f64::MAX)),
        ("5e-324", Float(5e-324)),
        ("1e-400", Float(0.0)),
        // Halfway between two float64 values: rounds to even.
        ("9007199254740993.0", Float(9_007_199_254_740_992.0)),
        (
            "9007199254740993.0000000000000000000001",
            Float(9_007_199_254_740_994.0),
        ),
    ];
    for (text, expected) in rows {
        for (numbers, text) in [(Numbers::Exact, text), (Numbers::Float, text)] {
            let mut buffer = DocumentBuffer::new();
            let symbols = SymbolTable::EMPTY;
            let root = buffer
                .read_json(
                    text.as_bytes(),
                    TextSource::Object,
                    &symbols,
                    &options(numbers),
                )
                .unwrap();
            let view = buffer.view(Texts::only(TextSource::Object, text.as_bytes()), symbols);
            let (int, float) = match (&expected, numbers) {
                (Int(value), Numbers::Exact) => (Some(*value), None),
                (Int(value), Numbers::Float) => (None, Some(*value as f64)),
                (Float(value), _) => (None, Some(*value)),
            };
            assert_eq!(view.int(root), int, "{text}");
            assert_eq!(
                view.float(root).map(f64::to_bits),
                float.map(f64::to_bits),
                "{text}"
            );
        }
    }
}

/// Rows 49 and 51: the last of equal keys wins, an escaped key is the same key, a key in
/// another case is a different key.
#[test]
fn the_last_of_equal_keys_wins() {
    let rows = [
        (
            "{\"privileged\":false,\"privileged\":true}",
            json!({"privileged": true}),
        ),
        (
            "{\"privileged\":true,\"privileged\":false}",
            json!({"privileged": false}),
        ),
        (
            "{\"x\":1,\"y\":2,\"x\":{\"z\":3}}",
            json!({"x": {"z": 3}, "y": 2}),
        ),
        ("{\"x\":{\"a\":1},\"x\":{\"b\":2}}", json!({"x": {"b": 2}})),
        (
            "{\"hostNetwork\":true,\"\\u0068ostNetwork\":false}",
            json!({"hostNetwork": false}),
        ),
        ("{\"\\u0078\":1,\"x\":2,\"x\":3}", json!({"x": 3})),
        ("{\"x\":1,\"\\u0078\":2}", json!({"x": 2})),
        (
            "{\"hostNetwork\":true,\"hostnetwork\":false,\"HostNetwork\":1}",
            json!({"hostNetwork": true, "hostnetwork": false, "HostNetwork": 1}),
        ),
        ("{\"\":1,\"\":2}", json!({"": 2})),
        (
            "{\"an-unknown-key-of-more-than-16\":1,\"an-unknown-key-of-more-than-16\":2}",
            json!({"an-unknown-key-of-more-than-16": 2}),
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(read(text), Ok(expected), "{text}");
    }
}

/// Row 49: every number of members, duplicates in every arrangement.
#[test]
fn one_of_many_equal_keys_stays_in_maps_of_every_size() {
    for count in [2, 23, 24, 25, 26, 100, 1000, 100_000] {
        for distinct in [1, 2, count / 2, count - 1, count] {
            let names = |index: usize| match index % 3 {
                0 => format!("image{}", index / 3),
                1 => format!("k\\u00{:02x}{index}", 0x41),
                _ => {
                    ["kind", "spec", "name"][index / 3 % 3].to_owned() + &".".repeat(index / 9 % 2)
                }
            };
            let members: Vec<String> = (0..count)
                .map(|index| format!("\"{}\":{index}", names(index % distinct.max(1))))
                .collect();
            let text = format!("{{{}}}", members.join(","));
            let expected: Value = serde_json::from_str(&text).unwrap();
            let mut buffer = DocumentBuffer::new();
            let bytes = symbol_bytes();
            let symbols = SymbolTable::verify(&bytes).unwrap();
            let root = buffer
                .read_json(
                    text.as_bytes(),
                    TextSource::Object,
                    &symbols,
                    &ReadOptions::default(),
                )
                .unwrap();
            let view = buffer.view(Texts::only(TextSource::Object, text.as_bytes()), symbols);
            assert_eq!(
                view.len(root),
                expected.as_object().unwrap().len(),
                "{count} {distinct}"
            );
            assert_eq!(view.to_value(root), expected, "{count} {distinct}");
        }
    }
}

/// Row 56: escapes as in Go's decoder; unpaired surrogates become U+FFFD.
#[test]
fn escapes_become_what_go_makes_of_them() {
    let rows = [
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r#""a\u0062c""#, "abc"),
        (r#""\u00e9\u20AC""#, "é€"),
        (r#""\u0000""#, "\0"),
        (r#""\ud83d\ude00""#, "😀"),
        (r#""\ud800""#, "\u{FFFD}"),
        (r#""\udc00""#, "\u{FFFD}"),
        (r#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}"),
        (r#""\ud800\u0041""#, "\u{FFFD}A"),
        (r#""\ud800x""#, "\u{FFFD}x"),
        (r#""\ud800\n""#, "\u{FFFD}\n"),
        (r#""\ud800\ud83d\ude00""#, "\u{FFFD}😀"),
        (
            r#""a long plain run before \n and a long plain run behind""#,
            "a long plain run before \n and a long plain run behind",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(read(text), Ok(json!(expected)), "{text}");
        let as_key = format!("{{{text}:1}}");
        assert_eq!(read(&as_key), Ok(json!({ expected: 1 })), "{as_key}");
    }
}

/// Rows 53, 55, 57, 58 and 63: rejected, and where.
#[test]
fn malformed_texts_are_refused_at_their_place() {
    let rows: &[(&[u8], usize, &str)] = &[
        (
            b"",
            0,
            "expected a value, found the end of the text at line 1, column 1",
        ),
        (
            b"  ",
            2,
            "expected a value, found the end of the text at line 1, column 3",
        ),
        (b"nul", 0, "expected `null`, `true` or `false`, found `n`"),
        (b"True", 0, "expected a value, found `T`"),
        (b"NaN", 0, "expected a value, found `N`"),
        (b"Infinity", 0, "expected a value, found `I`"),
        (b"-Infinity", 1, "expected a digit, found `I`"),
        (b"+1", 0, "expected a value, found `+`"),
        (b".5", 0, "expected a value, found `.`"),
        (
            b"01",
            1,
            "expected no digit behind a leading zero, found `1`",
        ),
        (
            b"-01",
            2,
            "expected no digit behind a leading zero, found `1`",
        ),
        (
            b"00.5",
            1,
            "expected no digit behind a leading zero, found `0`",
        ),
        (b"1.", 2, "expected a digit, found the end of the text"),
        (b"1.e3", 2, "expected a digit, found `e`"),
        (b"1e", 2, "expected a digit, found the end of the text"),
        (b"1e+", 3, "expected a digit, found the end of the text"),
        (b"-", 1, "expected a digit, found the end of the text"),
        (b"0x10", 1, "expected the end of the text, found `x`"),
        (b"[1,]", 3, "expected a value, found `]`"),
        (b"[,1]", 1, "expected a value, found `,`"),
        (b"[1 2]", 3, "expected `,` or `]`, found `2`"),
        (b"[1}", 2, "expected `,` or `]`, found `}`"),
        (b"{\"a\":1]", 6, "expected `,` or `}`, found `]`"),
        (
            b"{\"a\":1,}",
            7,
            "expected a key in double quotes, found `}`",
        ),
        (b"{\"a\" 1}", 5, "expected `:`, found `1`"),
        (b"{\"a\":}", 5, "expected a value, found `}`"),
        (b"{\"a\"}", 4, "expected `:`, found `}`"),
        (b"{a:1}", 1, "expected a key in double quotes, found `a`"),
        (b"{1:1}", 1, "expected a key in double quotes, found `1`"),
        (b"{'a':1}", 1, "expected a key in double quotes, found `'`"),
        (b"'a'", 0, "expected a value, found `'`"),
        (b"// c\n1", 0, "expected a value, found `/`"),
        (b"[1 /* c */]", 3, "expected `,` or `]`, found `/`"),
        (b"{} {}", 3, "expected the end of the text, found `{`"),
        (b"1 x", 2, "expected the end of the text, found `x`"),
        (
            b"null\0",
            4,
            "expected the end of the text, found the control character U+0000",
        ),
        (b"]", 0, "expected a value, found `]`"),
        (
            b"\"abc",
            4,
            "expected `\"` at the end of the text, found the end of the text",
        ),
        (
            b"\"abc\\",
            5,
            "expected one of `\"\\/bfnrtu` behind a backslash, found the end",
        ),
        (
            b"\"\\x\"",
            2,
            "expected one of `\"\\/bfnrtu` behind a backslash, found `x`",
        ),
        (
            b"\"\\u12\"",
            5,
            "expected four hexadecimal digits behind `\\u`, found `\"`",
        ),
        (
            b"\"\\ud800\\u12\"",
            11,
            "expected four hexadecimal digits behind `\\u`, found `\"`",
        ),
        (
            b"\"a\nb\"",
            2,
            "expected an escape (`\\n`, `\\u000a`) for a control character, found",
        ),
        (
            b"\"\x1f\"",
            1,
            "expected an escape (`\\n`, `\\u000a`) for a control character, found",
        ),
        (
            b"{\"a\tb\":1}",
            3,
            "expected an escape (`\\n`, `\\u000a`) for a control character",
        ),
        (
            b"\"\xff\"",
            1,
            "expected UTF-8 text, found the byte 0xFF at line 1, column 2",
        ),
        (
            b"\"\xc0\xaf\"",
            1,
            "expected UTF-8 text, found the byte 0xC0",
        ),
        (
            b"\"\xed\xa0\x80\"",
            1,
            "expected UTF-8 text, found the byte 0xED",
        ),
        (
            b"\"\xe2\x82\"",
            1,
            "expected UTF-8 text, found the byte 0xE2",
        ),
        (b"\xef\xbb\xbf{}", 0, "expected a value, found `\u{feff}`"),
        (
            b"\xfe\xff\0{\0}",
            0,
            "expected UTF-8 text, found the byte 0xFE",
        ),
        (
            b"{\0}\0",
            1,
            "expected a key in double quotes, found the control character U+0000",
        ),
        (
            b"\x0b1",
            0,
            "expected a value, found the control character U+000B",
        ),
        ("\u{a0}1".as_bytes(), 0, "expected a value, found `\u{a0}`"),
        (
            b"1e400",
            0,
            "expected a number that fits float64, found a larger one",
        ),
        (
            b"[-1e400]",
            1,
            "expected a number that fits float64, found a larger one",
        ),
        (
            "{\n \"é\": 1,\n \"é\" 2}".as_bytes(),
            18,
            "expected `:`, found `2` at line 3, column 6",
        ),
    ];
    for (text, offset, message) in rows {
        let error = refused(text);
        let shown = String::from_utf8_lossy(text);
        assert_eq!(error.offset, *offset, "{shown}: {error}");
        assert!(error.to_string().starts_with(message), "{shown}: {error}");
    }
}

/// Row 53: very long numbers are rejected or rounded in linear time.
#[test]
fn long_numbers_take_linear_time() {
    assert!(refused("9".repeat(400)).to_string().contains("float64"));
    refused("9".repeat(1_000_000));
    let fraction = format!("0.{}", "3".repeat(1_000_000));
    assert_eq!(read(&fraction), Ok(json!(1.0 / 3.0)));
}

/// Row 59: the limit itself is allowed, and 10,000 levels work if it allows them.
#[test]
fn nesting_is_bounded_by_the_limit_alone() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let mixed = |depth: usize| "{\"a\":[".repeat(depth / 2) + "1" + &"]}".repeat(depth / 2);
    let accepts = |limit: usize, text: &str| {
        let mut options = ReadOptions::default();
        options.limits.document_depth = limit;
        let mut buffer = DocumentBuffer::new();
        let symbols = SymbolTable::EMPTY;
        let result = buffer.read_json(text.as_bytes(), TextSource::Object, &symbols, &options);
        result.map(|_| ()).map_err(|error| error.problem)
    };
    for depth in [127, 128, 129, 1_000] {
        assert_eq!(accepts(1_000, &nested(depth)), Ok(()), "{depth}");
    }
    assert_eq!(accepts(1_000, &mixed(1_000)), Ok(()));
    assert_eq!(accepts(10_000, &nested(10_000)), Ok(()));
    for (limit, depth) in [(1_000, 1_001), (10_000, 10_001), (1_000, 1_000_000), (0, 1)] {
        let problem = Err(JsonProblem::TooDeep { limit });
        assert_eq!(accepts(limit, &nested(depth)), problem, "{depth}");
        assert_eq!(accepts(limit, &"[".repeat(depth)), problem, "{depth} open");
    }
    assert_eq!(accepts(0, "1"), Ok(()));
}

/// Row 59: no step recurses.
#[test]
fn deep_nesting_needs_little_stack() {
    let work = || {
        let text = "[{\"a\":".repeat(5_000) + "1" + &"}]".repeat(5_000);
        let mut options = ReadOptions::default();
        options.limits.document_depth = 10_000;
        let mut buffer = DocumentBuffer::new();
        let symbols = SymbolTable::EMPTY;
        let input = text.as_bytes();
        let root = buffer
            .read_json(input, TextSource::Object, &symbols, &options)
            .unwrap();
        let view = buffer.view(Texts::only(TextSource::Object, input), symbols);
        let value = view.to_value(root);
        buffer.push_value(&value, &symbols, Numbers::Exact).unwrap();
        // Dropping it would recurse in serde_json, not in our code.
        std::mem::forget(value);
    };
    let thread = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(work);
    thread.unwrap().join().unwrap();
}

/// Rows 60 and 62.
#[test]
fn size_and_number_of_values_are_bounded() {
    let mut options = ReadOptions::default();
    options.limits.document_bytes = 10;
    options.limits.document_nodes = 4;
    let rows: &[(&str, Option<JsonProblem>)] = &[
        ("[1,2,3]", None),
        ("{\"a\":[1]}", None),
        ("[1,2,3,4]", Some(JsonProblem::TooManyValues { limit: 4 })),
        ("[[],[[]]]", None),
        ("[{},{},{}]", None),
        ("[[[[[]]]]]", Some(JsonProblem::TooManyValues { limit: 4 })),
        ("\"12345678\"", None),
        (
            "\"123456789\"",
            Some(JsonProblem::TooLarge {
                limit: 10,
                bytes: 11,
            }),
        ),
    ];
    for (text, problem) in rows {
        let result = read_with_limits(text, &options);
        assert_eq!(result.err().map(|error| error.problem), *problem, "{text}");
    }
    let many = format!("[{}0]", "0,".repeat(1_500_000));
    assert_eq!(
        read_with_limits(&many, &ReadOptions::default()),
        Ok(1_500_001)
    );
    let empty = format!("[{}{{}}]", "{},".repeat(250_000));
    assert_eq!(
        read_with_limits(&empty, &ReadOptions::default()),
        Ok(250_001)
    );
}

/// Number of the root's members.
fn read_with_limits(text: &str, options: &ReadOptions) -> Result<usize, JsonError> {
    let mut buffer = DocumentBuffer::new();
    let symbols = SymbolTable::EMPTY;
    let root = buffer.read_json(text.as_bytes(), TextSource::Object, &symbols, options)?;
    Ok(buffer.view(Texts::NONE, symbols).len(root))
}

/// A Pod of the size and shape that an API server sends.
const POD: &str = include_str!("../../../corpus/bench/pod-7k.json");

#[test]
fn a_real_object_comes_out_as_it_went_in_and_no_prefix_of_it_is_accepted() {
    let value: Value = serde_json::from_str(POD).unwrap();
    assert_eq!(read(POD), Ok(value.clone()));
    assert_eq!(
        read(serde_json::to_string_pretty(&value).unwrap()),
        Ok(value)
    );
    for end in 0..POD.len() {
        refused(&POD[..end]);
    }
}

#[test]
fn views_find_members_by_symbol_and_by_text() {
    let bytes = symbol_bytes();
    let symbols = SymbolTable::verify(&bytes).unwrap();
    let symbol = |name: &str| symbols.lookup(name.as_bytes()).unwrap();
    let object =
        br#"{"kind":"Pod","spec":{"containers":[{"image":"a"},{"image":"b\n"}]},"x":1,"no":false}"#;
    let old = br#"{"kind":"Old","x":true}"#;
    let mut buffer = DocumentBuffer::new();
    let options = ReadOptions::default();
    let root = buffer
        .read_json(object, TextSource::Object, &symbols, &options)
        .unwrap();
    let before = buffer
        .read_json(old, TextSource::OldObject, &symbols, &options)
        .unwrap();
    let texts = Texts {
        object,
        old_object: old,
        bundle: b"",
    };
    let view = buffer.view(texts, symbols);

    assert_eq!(view.str(view.get(root, symbol("kind"))), "Pod");
    assert_eq!(view.str(view.get(before, symbol("kind"))), "Old");
    assert_eq!(view.get(root, symbol("name")), NodeId::MISSING);
    assert_eq!(view.get(root, SymbolId(u32::MAX)), NodeId::MISSING);
    assert_eq!(view.int(view.get_text(root, b"x")), Some(1));
    assert_eq!(view.bool(view.get_text(before, b"x")), Some(true));
    assert_eq!(view.bool(view.get_text(root, b"no")), Some(false));
    assert_eq!(view.get_text(root, b"y"), NodeId::MISSING);
    assert_eq!(view.get_text(root, b"kind"), view.get(root, symbol("kind")));

    let containers = view.get(view.get(root, symbol("spec")), symbol("containers"));
    assert_eq!(view.kind(containers), Some(Kind::List));
    let images: Vec<&str> = view
        .children(containers)
        .map(|container| view.str(view.get(container, symbol("image"))))
        .collect();
    assert_eq!(images, ["a", "b\n"]);
    assert_eq!(view.children(containers).at(2), NodeId::MISSING);
    assert_eq!(
        view.children(containers).next_back(),
        Some(view.children(containers).at(1))
    );
    let keys: Vec<&str> = view
        .children(root)
        .map(|member| view.key_str(member))
        .collect();
    assert_eq!(keys, ["kind", "spec", "x", "no"]);
    let first = view.children(root).at(0);
    assert_eq!(view.key_symbol(first), Some(symbol("kind")));
}

#[test]
fn a_missing_node_is_nothing_to_every_question() {
    let buffer = DocumentBuffer::new();
    let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
    for id in [NodeId::MISSING, NodeId(0), NodeId(7)] {
        assert_eq!(view.kind(id), None);
        assert_eq!(view.get(id, SymbolId(0)), NodeId::MISSING);
        assert_eq!(view.get_text(id, b"a"), NodeId::MISSING);
        assert_eq!((view.len(id), view.is_empty(id)), (0, true));
        assert_eq!(
            (view.text(id), view.str(id), view.key_bytes(id)),
            (&b""[..], "", &b""[..])
        );
        assert_eq!(
            (view.int(id), view.float(id), view.bool(id)),
            (None, None, None)
        );
        assert_eq!((view.text_ref(id), view.key_symbol(id)), (None, None));
        assert_eq!(view.to_value(id), Value::Null);
    }
}

#[test]
fn a_view_with_the_wrong_texts_is_wrong_but_answers() {
    let mut buffer = DocumentBuffer::new();
    let symbols = SymbolTable::EMPTY;
    let root = buffer
        .read_json(
            b"{\"key\":\"value\"}",
            TextSource::Object,
            &symbols,
            &ReadOptions::default(),
        )
        .unwrap();
    let view = buffer.view(Texts::only(TextSource::Object, b"{"), symbols);
    assert_eq!(view.to_value(root), json!({"": ""}));
}

#[test]
fn computed_values_are_built_from_pieces() {
    let bytes = symbol_bytes();
    let symbols = SymbolTable::verify(&bytes).unwrap();
    let bundle = b"..literal..";
    let mut buffer = DocumentBuffer::new();
    let old = br#"{"deep":{"kind":"Pod"}}"#;
    let options = ReadOptions::default();
    let other = buffer
        .read_json(old, TextSource::OldObject, &symbols, &options)
        .unwrap();

    let name = buffer.label("name", &symbols).unwrap();
    let odd = buffer.label("odd key", &symbols).unwrap();
    let again = buffer.label("odd key", &symbols).unwrap();
    let text = buffer.copy_text(b"computed").unwrap();
    let literal = TextRef {
        source: TextSource::Bundle,
        offset: 2,
        length: 7,
    };
    let texts = Texts {
        object: b"",
        old_object: old,
        bundle,
    };
    buffer.begin(Label::ITEM);
    buffer.push_text(name, text);
    buffer.push_int(odd, 1);
    buffer.begin(Label::symbol(SymbolId(0)));
    buffer.push_text(Label::ITEM, literal);
    buffer.push_node(Label::ITEM, other);
    buffer.push_node(Label::ITEM, NodeId::MISSING);
    buffer.push_null(Label::ITEM);
    buffer.push_bool(Label::ITEM, true);
    buffer.push_float(Label::ITEM, 0.5);
    buffer.finish_list();
    buffer.push_int(again, 2);
    buffer.finish_map(texts);
    let root = buffer.take().unwrap();
    assert_eq!(
        buffer.view(texts, symbols).to_value(root),
        json!({
            "name": "computed",
            "kind": ["literal", {"deep": {"kind": "Pod"}}, null, null, true, 0.5],
            "odd key": 2,
        })
    );
    assert_eq!(buffer.take(), Err(BufferFull), "nothing is left to take");
    buffer.finish_list();
    buffer.finish_map(texts);
    assert_eq!(
        buffer.take(),
        Err(BufferFull),
        "ending what was not begun does nothing"
    );
}

#[test]
fn a_reading_inside_a_value_under_construction_leaves_it_alone() {
    let symbols = SymbolTable::EMPTY;
    let mut buffer = DocumentBuffer::new();
    buffer.begin(Label::ITEM);
    buffer.push_int(Label::ITEM, 1);
    let options = ReadOptions::default();
    let inner = buffer
        .read_json(b"[2,\"x\"]", TextSource::Scratch, &symbols, &options)
        .unwrap();
    buffer
        .read_json(b"[2,{\"y\":[", TextSource::Scratch, &symbols, &options)
        .unwrap_err();
    buffer.push_node(Label::ITEM, inner);
    buffer.finish_list();
    let root = buffer.take().unwrap();
    assert_eq!(
        buffer.view(Texts::NONE, symbols).to_value(root),
        json!([1, [2, "x"]])
    );
}
