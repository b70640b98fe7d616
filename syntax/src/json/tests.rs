use kpvm_semantics::limits::Limits;

use super::*;
use crate::tree::{Tree, TreeValue};
use crate::yaml::{self, DuplicateKeys};

fn options(duplicate_keys: DuplicateKeys) -> Options<'static> {
    Options {
        duplicate_keys,
        numbers: Numbers::Kubernetes,
        limits: &Limits::DEFAULT,
    }
}

fn last_wins(text: &str) -> Result<(Tree, bool), Error> {
    read(text, options(DuplicateKeys::LastWins))
}

/// Values and places, for comparisons.
fn shown(tree: &Tree) -> String {
    format!("{tree:?}")
}

/// Texts of JSON, built from pieces in many ways.
fn texts() -> Vec<String> {
    let scalars = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "12",
        "-7",
        "1.0",
        "1.50",
        "1e3",
        "1E-2",
        "2.5e+3",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "1e21",
        "123456789012345678901.0",
        "\"\"",
        "\"a\"",
        "\"null\"",
        "\"a b\"",
        "\" x \"",
        "\"é日\"",
        "\"a\\nb\\t\\\"\\\\\\/\"",
        "\"\\u00e9\\u0041\\u0000\"",
        "\"#: - [\"",
        "\"'\"",
        "\"<<\"",
        "{}",
        "[]",
        "{ }",
        "[\n]",
    ];
    let mut texts = Vec::new();
    for (index, scalar) in scalars.iter().enumerate() {
        let other = scalars[(index * 7 + 3) % scalars.len()];
        texts.push(format!("{{\"a\":{scalar}}}"));
        texts.push(format!("[{scalar},{other}]"));
        texts.push(format!(
            "{{\n\t\"a\" : {scalar} ,\r\n  \"b\":[ {other} , [{scalar}]\n]\n}}\n"
        ));
        texts.push(format!(
            " {{\"k\": {{\"a\": {scalar}, \"b\": {other}, \"a\": [{other}]}}}} "
        ));
        texts.push(format!("{{\"a\":\n{scalar}\n,\n\"<<\"\n:{other}}}"));
    }
    let many: Vec<String> = (0..40).map(|n| format!("\"k{}\":{n}", n % 33)).collect();
    texts.push(format!("{{{}}}", many.join(",")));
    texts.push(format!("{{\"{}\":1}}", "k".repeat(2000)));
    texts
}

/// Where the YAML reader reads a JSON text, this reader reads the same, in the same places.
#[test]
fn the_yaml_reader_agrees() {
    for duplicate_keys in [DuplicateKeys::LastWins, DuplicateKeys::Refuse] {
        for text in texts() {
            let yaml = yaml::read_all(
                &text,
                yaml::Options {
                    duplicate_keys,
                    limits: &Limits::DEFAULT,
                },
            );
            match (read(&text, options(duplicate_keys)), yaml.as_slice()) {
                (Ok((tree, true)), [Ok(other)]) => assert_eq!(shown(&tree), shown(other), "{text}"),
                (Ok((_, false)), _) => {}
                (Err(Error::DuplicateKey), [Err(_)]) => {}
                (found, other) => panic!("{text}: {found:?}, as YAML {other:?}"),
            }
        }
    }
}

#[test]
fn what_readers_of_yaml_refuse_is_told() {
    let long = format!("{{\"{}\":1}}", "k".repeat(1001));
    for (text, expected) in [
        (r#"{"a":"b"}"#, true),
        (r#"{"a":"\ud83c\udf88"}"#, false),
        (r#"{"\ud83c":1}"#, false),
        ("{\"a\"\n:1}", false),
        ("{\"a\":\n1}", true),
        (&long, false),
    ] {
        assert_eq!(last_wins(text).unwrap().1, expected, "{text}");
    }
}

/// What is JSON agrees with another reader, for texts cut and changed in every place.
#[test]
fn what_is_json_agrees_with_another_reader() {
    let originals = [
        r#"{"a": [1, -2.5e+3, {"b": null}], "c\n\u0041": "x\"y", "d": {}, "e": [], "f": true}"#,
        r#"[0.1, 1e5, "é", false, [[]], {"k": {"l": "m"}}]"#,
    ];
    for original in originals {
        for at in (0..=original.len()).filter(|at| original.is_char_boundary(*at)) {
            let (front, rest) = original.split_at(at);
            let after = rest.get(1..).unwrap_or_default();
            let mut changed = vec![front.to_owned(), format!("{front}{after}")];
            for with in [
                "\"", ",", "]", "}", "{", "1", "0", "-", ".", "e", "\\", "n", " ", "\u{1}",
            ] {
                changed.push(format!("{front}{with}{after}"));
                changed.push(format!("{front}{with}{rest}"));
            }
            for text in changed {
                let other: Result<serde_json::Value, _> = serde_json::from_str(&text);
                match (last_wins(&text), other) {
                    (Ok((tree, _)), Ok(other)) => {
                        let json = |value: serde_json::Value| shown(&Tree::from(&value));
                        let plain = |tree: &Tree| json(tree.to_json());
                        let floats = |value: &serde_json::Value| {
                            plain(
                                &read(&value.to_string(), options(DuplicateKeys::LastWins))
                                    .unwrap()
                                    .0,
                            )
                        };
                        assert_eq!(plain(&tree), floats(&other), "{text}");
                    }
                    (Err(_), Err(_)) => {}
                    // A number beyond all floats.
                    (Err(Error::NumberRange(_)), _) => {}
                    (found, other) => panic!("{text}: {found:?}, serde_json {other:?}"),
                }
            }
        }
    }
}

#[test]
fn streams_have_places() {
    let text = "{\"a\":1}\n{\"b\":2} [3]4\n";
    let trees = read_stream(text, options(DuplicateKeys::LastWins)).unwrap();
    let places: Vec<_> = trees
        .iter()
        .map(|tree| (tree.span.start, tree.span.end))
        .collect();
    assert_eq!(places, [(0, 7), (8, 15), (16, 19), (19, 20)]);
    assert_eq!(
        read_stream(" \n", options(DuplicateKeys::LastWins)),
        Ok(vec![])
    );
    assert!(read_stream("{} x", options(DuplicateKeys::LastWins)).is_err());
}

#[test]
fn halves_of_surrogate_pairs_are_replaced() {
    for (text, expected) in [
        (r#""\ud83d\ude00""#, "\u{1f600}"),
        (r#""\ud800""#, "\u{fffd}"),
        (r#""\ude00x""#, "\u{fffd}x"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
    ] {
        let (tree, _) = last_wins(text).unwrap();
        assert_eq!(tree.value, TreeValue::String(expected.into()), "{text}");
    }
}

#[test]
fn limits_hold() {
    let limits = Limits {
        document_depth: 3,
        document_nodes: 5,
        ..Limits::DEFAULT
    };
    let options = Options {
        limits: &limits,
        ..options(DuplicateKeys::LastWins)
    };
    assert!(read("[[[]]]", options).is_ok());
    assert_eq!(read("[[[[]]]]", options), Err(Error::TooDeep));
    assert!(read("[1,2,3,4]", options).is_ok());
    assert_eq!(read("[1,2,3,4,5]", options), Err(Error::TooLarge));
    // Of a stream, each value counts for itself.
    assert!(read_stream("[1,2,3,4] [1,2,3,4]", options).is_ok());
    let nested = "[".repeat(100_000);
    assert_eq!(read(&nested, options), Err(Error::TooDeep));
}
