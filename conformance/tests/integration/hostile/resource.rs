//! Objects as JSON.

use super::oracle::{Expect, check, policy_with_pattern, run, thing};

const PASS: Expect = Expect::Results(&["r pass"]);
const FAIL: Expect = Expect::Results(&["r fail"]);

/// Row, pattern of the spec (YAML), spec of the object (JSON), required outcome.
type SpecRow = (&'static str, &'static str, String, Expect);

fn check_specs(rows: &[SpecRow]) {
    for (number, pattern, spec, expect) in rows {
        let policy = policy_with_pattern(&format!("{{spec: {pattern}}}"));
        let object = thing(spec);
        let shown: String = spec.chars().take(60).collect();
        check(
            &format!("row {number}, {shown}"),
            object.len(),
            *expect,
            || run(&policy, object.as_bytes()),
        );
    }
}

fn check_objects(number: &str, expect: Expect, objects: &[Vec<u8>]) {
    let policy = policy_with_pattern("{spec: {x: ok}}");
    for object in objects {
        let shown: String = object.escape_ascii().to_string().chars().take(60).collect();
        check(
            &format!("row {number}, {shown}"),
            object.len(),
            expect,
            || run(&policy, object),
        );
    }
}

#[test]
fn keys() {
    let many = format!("{{{}\"p\": true}}", "\"p\": false, ".repeat(100_000));
    check_specs(&[
        (
            "49",
            "{p: false}",
            r#"{"p": false, "p": true}"#.into(),
            FAIL,
        ),
        (
            "49",
            "{p: false}",
            r#"{"p": true, "p": false}"#.into(),
            PASS,
        ),
        ("49", "{p: true}", many.clone(), PASS),
        ("49", "{p: false}", many, FAIL),
        (
            "49",
            "{p: {a: 1}}",
            r#"{"p": {"a": 1}, "p": {"b": 1}}"#.into(),
            FAIL,
        ),
        (
            "51",
            "{hostNetwork: true}",
            r#"{"\u0068ostNetwork": true}"#.into(),
            PASS,
        ),
        (
            "51",
            "{hostNetwork: true}",
            r#"{"HostNetwork": true}"#.into(),
            FAIL,
        ),
        (
            "51",
            "{hostNetwork: true}",
            r#"{"hoſtNetwork": true}"#.into(),
            FAIL,
        ),
        (
            "62",
            "{x: ok}",
            format!(r#"{{"{}": 1, "x": "ok"}}"#, "k".repeat(1 << 20)),
            PASS,
        ),
    ]);
}

#[test]
fn numbers() {
    let digits = |count: usize| format!(r#"{{"x": {}}}"#, "9".repeat(count));
    check_specs(&[
        ("52", "{x: 0}", r#"{"x": -0}"#.into(), PASS),
        ("52", "{x: 0}", r#"{"x": -0.0}"#.into(), PASS),
        ("52", "{x: 1}", r#"{"x": 1.0}"#.into(), PASS),
        ("52", "{x: 1}", r#"{"x": 1e0}"#.into(), PASS),
        (
            "52",
            "{x: 9007199254740993}",
            r#"{"x": 9007199254740993}"#.into(),
            PASS,
        ),
        (
            "52",
            "{x: 9007199254740992}",
            r#"{"x": 9007199254740993}"#.into(),
            FAIL,
        ),
        (
            "52",
            "{x: '<=9007199254740992'}",
            r#"{"x": 9007199254740993}"#.into(),
            FAIL,
        ),
        (
            "52",
            "{x: '<=9007199254740993'}",
            r#"{"x": 9007199254740993}"#.into(),
            PASS,
        ),
        (
            "52",
            "{x: '<=1'}",
            r#"{"x": 18446744073709551616}"#.into(),
            FAIL,
        ),
        (
            "53",
            "{x: '<=1'}",
            r#"{"x": 1e400}"#.into(),
            Expect::Refused(""),
        ),
        (
            "53",
            "{x: '<=1'}",
            r#"{"x": -1e400}"#.into(),
            Expect::Refused(""),
        ),
        ("53", "{x: '<=1'}", digits(400), Expect::Refused("")),
        ("53", "{x: '<=1'}", digits(1_000_000), Expect::Refused("")),
    ]);
}

#[test]
fn what_is_no_json_is_refused() {
    let spec = |spec: &str| thing(spec).into_bytes();
    let values = [
        "NaN",
        "Infinity",
        "-Infinity",
        "01",
        "1.",
        "+1",
        "[1,]",
        "{\"a\": 1,}",
        "'a'",
        "{a: 1}",
        "",
        ".5",
        "1e",
        "0x1",
        "tru",
        "\"\u{1}\"",
        "\"a\nb\"",
        "\"\\x\"",
        "\"\\u12\"",
        "// c\n1",
        "/* c */ 1",
        "[1 2]",
    ];
    let mut objects: Vec<Vec<u8>> = values.iter().map(|value| spec(value)).collect();
    objects.push([thing("{}").as_bytes(), b" x"].concat());
    objects.push([thing("{}").as_bytes(), b"{}"].concat());
    objects.push(vec![]);
    objects.push(b" \n".to_vec());
    check_objects("55", Expect::Refused(""), &objects);

    let marks = ["\u{feff}".as_bytes(), b"\xff\xfe", b"\xfe\xff", b"\0"];
    let objects: Vec<Vec<u8>> = marks
        .iter()
        .map(|mark| [*mark, thing(r#"{"x": "ok"}"#).as_bytes()].concat())
        .collect();
    check_objects("58", Expect::Refused(""), &objects);
    let wide: Vec<u8> = thing("{}").bytes().flat_map(|byte| [byte, 0]).collect();
    check_objects("58", Expect::Refused(""), &[wide]);
}

#[test]
fn damaged_text_is_refused_or_does_not_pass() {
    let with_text = |text: &[u8]| {
        let whole = thing(r#"{"x": "ok@"}"#).into_bytes();
        let at = whole.iter().position(|&byte| byte == b'@').unwrap();
        [&whole[..at], text, &whole[at + 1..]].concat()
    };
    let surrogates: [&[u8]; 4] = [b"\\ud800", b"\\udc00\\ud800", b"\\u0000", b"\\ud800\\ud800"];
    check_objects("56", Expect::NeverPass, &surrogates.map(with_text));
    let bytes: [&[u8]; 6] = [
        b"\xff",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\x01",
        b"\xe2\x82",
    ];
    check_objects("57", Expect::NeverPass, &bytes.map(with_text));
}

#[test]
fn nesting() {
    let nested = |depth: usize, open: &str, close: &str| {
        format!(
            r#"{{"x": "ok", "y": {}1{}}}"#,
            open.repeat(depth),
            close.repeat(depth)
        )
    };
    let mut rows: Vec<SpecRow> = Vec::new();
    for (open, close) in [("[", "]"), (r#"{"a": "#, "}")] {
        for depth in [127, 128, 129, 990] {
            rows.push(("59", "{x: ok}", nested(depth, open, close), PASS));
        }
        for depth in [1_001, 10_000, 1_000_000] {
            rows.push((
                "59",
                "{x: ok}",
                nested(depth, open, close),
                Expect::Refused(""),
            ));
        }
    }
    rows.push((
        "59, open",
        "{x: ok}",
        format!("{{\"x\": \"ok\", \"y\": {}", "[".repeat(1_000_000)),
        Expect::Refused(""),
    ));
    check_specs(&rows);
}

#[test]
fn volume() {
    let items = |item: &str, count: usize| {
        format!(
            r#"{{"x": "ok", "y": [{}{item}]}}"#,
            format!("{item},").repeat(count - 1)
        )
    };
    check_specs(&[
        ("60", "{x: ok}", items("1", 1_500_000), PASS),
        ("60", "{x: ok, 'y': ['1']}", items("1", 300_000), PASS),
        ("60", "{x: ok}", items("{}", 250_000), PASS),
        (
            "60",
            "{x: ok, 'y': [{=(a): 1}]}",
            items("{}", 250_000),
            PASS,
        ),
        (
            "62",
            "{x: ok}",
            format!(r#"{{"x": "ok", "y": "{}"}}"#, "v".repeat(100 << 20)),
            Expect::Refused(""),
        ),
    ]);
}

#[test]
fn roots_and_kinds() {
    let roots = [
        "[]",
        "\"x\"",
        "1",
        "null",
        "true",
        "[{\"kind\": \"Thing\"}]",
        "{}",
    ];
    let objects: Vec<Vec<u8>> = roots.iter().map(|root| root.as_bytes().to_vec()).collect();
    check_objects("63", Expect::Refused("expected"), &objects);

    let ok = r#""metadata": {"name": "t"}, "spec": {"x": "ok"}"#;
    let refused: Vec<Vec<u8>> = [
        r#""apiVersion": "example.com/v1""#,
        r#""apiVersion": "example.com/v1", "kind": 5"#,
        r#""apiVersion": "example.com/v1", "kind": null"#,
        r#""apiVersion": "example.com/v1", "kind": {}"#,
        r#""apiVersion": "example.com/v1", "kind": """#,
        r#""apiVersion": "a/b/c", "kind": "Thing""#,
    ]
    .iter()
    .map(|head| format!("{{{head}, {ok}}}").into_bytes())
    .collect();
    check_objects("64", Expect::Refused("expected"), &refused);
    let evaluated: Vec<Vec<u8>> = ["\"v1/\"", "\"\"", "\"/v1\"", "1", "null"]
        .iter()
        .map(|version| {
            format!(r#"{{"apiVersion": {version}, "kind": "Thing", {ok}}}"#).into_bytes()
        })
        .collect();
    check_objects("64", Expect::Either, &evaluated);
    let long = format!(
        r#"{{"apiVersion": "v1", "kind": "{}", {ok}}}"#,
        "K".repeat(1 << 20)
    );
    check_objects("64", Expect::Results(&[]), &[long.into_bytes()]);
}

/// Row 66: a value of another type never satisfies a pattern by accident.
#[test]
fn wrong_types() {
    check_specs(&[
        ("66", "{c: [{image: '?*'}]}", r#"{"c": {}}"#.into(), FAIL),
        (
            "66",
            "{c: [{image: '?*'}]}",
            r#"{"c": "image"}"#.into(),
            FAIL,
        ),
        ("66", "{c: [{image: '?*'}]}", r#"{"c": [5]}"#.into(), FAIL),
        (
            "66",
            "{c: [{image: '?*'}]}",
            r#"{"c": [null]}"#.into(),
            FAIL,
        ),
        ("66", "{c: [{image: '?*'}]}", r#"{"c": [[]]}"#.into(), FAIL),
        ("66", "{c: true}", r#"{"c": "true"}"#.into(), FAIL),
        ("66", "{c: {d: true}}", r#"{"c": []}"#.into(), FAIL),
        (
            "66",
            "{c: {d: true}}",
            r#"{"c": [{"d": true}]}"#.into(),
            FAIL,
        ),
        ("66", "{c: {=(d): true}}", r#"{"c": []}"#.into(), FAIL),
        ("66", "{c: '*:1'}", r#"{"c": 5}"#.into(), FAIL),
        ("66", "{c: '?*'}", r#"{"c": {}}"#.into(), FAIL),
        // docs/spec/patterns.md, case 1: digits as text equal the number.
        ("66", "{c: 5}", r#"{"c": "5"}"#.into(), PASS),
        ("66", "{c: 5}", r#"{"c": "5.0"}"#.into(), FAIL),
        ("66", "{c: 5}", r#"{"c": true}"#.into(), FAIL),
    ]);
}
