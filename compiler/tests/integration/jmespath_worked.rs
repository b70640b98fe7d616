//! The worked cases of docs/spec/jmespath.md as bytecode: the result of an expression for a
//! value. `error …` is the beginning of an error, `crash` any error where Kyverno crashes.
//!
//! Omitted: 58 (`elementIndex`, covered by docs/spec/conditions.md).

use crate::recorded::run_expression;
use serde_json::Value;

fn check(rows: &[(&str, &str, &str, &str)]) {
    for (case, data, expression, expected) in rows {
        let input: Value = serde_json::from_str(data).unwrap();
        let outcome = run_expression(expression, &input);
        let shown = format!("case {case}: {data} ⊢ {expression}: {outcome:?}");
        match (&outcome, expected.strip_prefix("error ")) {
            (Err(error), Some(text)) => assert!(error.starts_with(text), "{shown}"),
            (Err(_), None) => assert_eq!(*expected, "crash", "{shown}"),
            (Ok(value), None) => {
                let expected: Value = serde_json::from_str(expected).unwrap();
                assert_eq!(value, &expected, "{shown}");
            }
            (Ok(_), Some(_)) => panic!("{shown}"),
        }
    }
}

#[test]
fn keys_that_are_not_there() {
    check(&[
        (
            "1",
            r#"{"bar": 1.0}"#,
            "foo",
            "error Unknown key \"foo\" in path",
        ),
        ("2", r#"{"foo": null}"#, "foo.bar", "null"),
        ("2", r#"{"foo": "s"}"#, "foo.bar", "null"),
        ("3", "{}", "a.b || 'd'", r#""d""#),
        ("3", "{}", "a.b | @", "null"),
        (
            "4",
            r#"{"a": 1.0}"#,
            "a && b",
            "error Unknown key \"b\" in path",
        ),
        ("4", "{}", "a && b", "null"),
        ("5", "{}", "a == b", "true"),
        ("5", "{}", "a > `1`", "null"),
        ("6", r#"{"a": 1.0}"#, "[a,b]", "[1.0, null]"),
        ("6", "null", "[a]", "null"),
        ("7", r#"{"a": []}"#, "a[0].b", "null"),
        (
            "7",
            r#"{"a": [{}]}"#,
            "a[0].b",
            "error Unknown key \"b\" in path",
        ),
        ("8", "{}", "a[*].b", "null"),
        (
            "8",
            "{}",
            "a[].b | length(@)",
            "error Invalid type for: <nil>",
        ),
        ("8", r#"{"a": []}"#, "a[].b | length(@)", "0.0"),
        ("9", "{}", "a[] || `[]`", "[]"),
        (
            "10",
            "{}",
            "length(a)",
            r#"error Invalid type for: <nil>, expected: []jmespath.JpType{"string", "array", "object"}"#,
        ),
        (
            "11",
            r#"{"a": [{"foo": "x"}, {}]}"#,
            "a[?contains(foo,'x')]",
            "error Invalid type for",
        ),
        (
            "12",
            r#"{"a": [{"f": {"b": 1.0}}, {"f": {}}, {}]}"#,
            "a[?f.b == `null`]",
            r#"[{"f": {}}, {}]"#,
        ),
        ("13", r#"{"a": [{"f": {}}, {}]}"#, "a[?!f.b]", "[]"),
        ("14", r#"{"foo": {"bar": false}}"#, "!foo.bar", "null"),
        ("15", "null", "length(`1`)[]", "null"),
        ("15", "null", "length(`1`)[*]", "error Invalid type for: 1"),
    ]);
}

#[test]
fn values_and_their_kinds() {
    check(&[
        (
            "16",
            r#"{"a": 1.0, "b": 2.0}"#,
            "*.type(@)",
            r#"["null", "null", "number", "number"]"#,
        ),
        ("17", "null", "compare('a','b')", "-1"),
        ("17", "null", "compare('a','b') < `0`", "null"),
        ("18", "null", "'abc' > 'abb'", "null"),
        ("19", "null", "`foo`", "error compile: "),
        ("19", "null", r#"`"foo"`"#, r#""foo""#),
        ("20", "null", r"'a\\b'", r#""a\\\\b""#),
        ("20", "null", r"'it\'s'", r#""it's""#),
        ("20", "null", r"'\\'", "error compile: "),
        (
            "21",
            "null",
            "a-b",
            "error compile: SyntaxError: Unexpected token at the end of the expression: tNumber",
        ),
        (
            "22",
            "null",
            r#"items(`{"b":1,"a":2}`,'k','v')[?k=='a'].v | [0]"#,
            "2.0",
        ),
        (
            "22",
            "null",
            r#"map(&k, items(`{"b":1}`,'k','v'))"#,
            "crash",
        ),
        (
            "22",
            "null",
            r#"map(&k, items(`{"b":1,"a":2}`,'k','v')[])"#,
            r#"["a", "b"]"#,
        ),
        ("23", r#"{"a": {}}"#, "merge(a, missing)", "crash"),
        ("23", r#"{"a": {}}"#, "merge(a, missing || `{}`)", "{}"),
        ("24", "null", "avg(`[]`)", r#"{"$float": "NaN"}"#),
        ("25", "null", r#"max_by(`[{"b":1}]`,&a)"#, r#"{"b": 1.0}"#),
        (
            "55",
            r#"{"a": [{"n": 2.0}, {"n": 1.0}]}"#,
            "sort_by(a,&n)[0].n",
            "1.0",
        ),
        (
            "56",
            r#"{"a": [1.0, 2.0, 3.0]}"#,
            "a[::0]",
            "error Invalid slice",
        ),
        ("56", r#"{"a": [1.0, 2.0, 3.0]}"#, "a[5:1:-1]", "[3.0]"),
        ("59", r#"{"a": "x", "b": "x"}"#, "contains(a b)", "true"),
        (
            "60",
            r#"{"a": 1.0}"#,
            "nofunc(a)",
            "error unknown function: nofunc",
        ),
    ]);
}

/// `sort_by` sorts a copy here; in Kyverno it sorts the caller's list.
#[test]
fn sort_by_leaves_its_list_alone() {
    let data = r#"{"a": [{"n": 2.0}, {"n": 1.0}]}"#;
    check(&[("55", data, "[sort_by(a,&n)[0].n, a[0].n]", "[1.0, 2.0]")]);
}

#[test]
fn arithmetic() {
    let rows = [
        ("26", "add('1','1')", r#""2""#),
        (
            "26",
            "add(`1`,'1')",
            "error JMESPath function 'add': Types mismatch",
        ),
        ("27", "add('5m','5m')", r#""10m""#),
        (
            "27",
            "add('5m','5s')",
            "error JMESPath function 'add': Types mismatch",
        ),
        ("28", "add('12Ki','13')", r#""12301""#),
        ("28", "add('1000','0')", r#""1k""#),
        ("29", "subtract('1Gi','1Gi')", r#""0""#),
        ("30", "divide('10Ki',`3`)", r#""3413""#),
        ("30", "divide('1Gi','1Mi')", "1024.0"),
        ("31", "multiply('1Gi',`0.3`)", r#""322122547200m""#),
        ("32", "multiply(`2.5`,'40s')", r#""1m40s""#),
        ("33", "modulo('13Ki','5Ki')", r#""3Ki""#),
        ("33", "modulo(`-13`,`5`)", "-3.0"),
        ("34", "round(`2.5`,`0`)", "3.0"),
        ("34", "round(`-2.5`,`0`)", "-3.0"),
        ("35", r#"sum(`["abc"]`)"#, r#""abc""#),
        (
            "35",
            r#"sum(`[1,"1"]`)"#,
            "error JMESPath function 'sum': Types mismatch",
        ),
    ];
    check(&rows.map(|(case, expression, expected)| (case, "null", expression, expected)));
}

#[test]
fn texts_and_times() {
    let rows = [
        ("36", "semver_compare('v1.2.3','<1.0.0')", "true"),
        ("37", "semver_compare('2.0.0','!1.x')", "false"),
        ("37", "semver_compare('1.0.0','9')", "error "),
        ("38", r"regex_replace_all('(\d)','1','$1x')", r#""""#),
        ("38", r"regex_replace_all('(\d)','1','${1}x')", r#""1x""#),
        ("38", r"regex_replace_all('(\d)','1','$01')", r#""""#),
        ("39", "regex_match('^16777216$', `16777217`)", "true"),
        (
            "40",
            "regex_match('(','a')",
            "error error parsing regexp: missing closing )",
        ),
        ("41", "regex_match('a{,3}','a{,3}')", "true"),
        ("42", "split('','')", "[]"),
        ("42", "split('',',')", r#"[""]"#),
        ("43", "to_lower('İ')", r#""i""#),
        ("43", "to_upper('ß')", r#""ß""#),
        ("44", "truncate('héllo',`2`)", r#""hé""#),
        ("45", "path_canonicalize('')", r#""""#),
        ("46", "base64_decode('w6k')", "error illegal base64 data"),
        ("47", r#"lookup(`{"a":1}`,'b')"#, "null"),
        ("47", "lookup(`[1]`,`-1`)", "null"),
        (
            "47",
            "lookup(`{}`,`1`)",
            "error JMESPath function 'lookup': argument #2",
        ),
        (
            "48",
            r#"object_from_lists(`[1,true]`,`["x"]`)"#,
            r#"{"1": "x", "true": null}"#,
        ),
        (
            "49",
            "time_parse('1','1702691171')",
            r#""2023-12-16T01:46:11Z""#,
        ),
        (
            "49",
            "time_parse('2006','2021')",
            r#""1970-01-01T00:33:41Z""#,
        ),
        (
            "50",
            "time_add('2021-01-02T15:04:05Z','1d')",
            "error time: unknown unit",
        ),
        (
            "51",
            "time_to_cron('2023-02-02T15:04:05+05:30')",
            r#""4 15 2 2 4""#,
        ),
        (
            "52",
            "time_truncate('2023-02-02T15:44:05+05:30','1h')",
            r#""2023-02-02T15:30:00+05:30""#,
        ),
        (
            "53",
            "time_diff('2021-01-02T15:04:05Z','2021-01-02T15:04:05.5Z')",
            r#""500ms""#,
        ),
        (
            "54",
            r#"to_string(`{"b":1,"a":"<"}`)"#,
            r#""{\"a\":\"\\u003c\",\"b\":1}""#,
        ),
        ("57", "is_external_url('http://169.254.1.1')", "true"),
    ];
    check(&rows.map(|(case, expression, expected)| (case, "null", expression, expected)));
}
