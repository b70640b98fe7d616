//! Properties: every value survives reading and pushing, the verdict on any text is that of
//! serde_json, and what is skipped is what would be read.

use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};
use proptest::prelude::*;

use super::*;

fn tree(value: &Value) -> Tree {
    let value = match value {
        Value::Null => TreeValue::Null,
        Value::Bool(value) => TreeValue::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) => TreeValue::Int(value),
            None => TreeValue::Float(number.as_f64().unwrap()),
        },
        Value::String(text) => TreeValue::String(text.as_str().into()),
        Value::Array(items) => TreeValue::List(items.iter().map(tree).collect()),
        Value::Object(members) => TreeValue::Map(
            members
                .iter()
                .map(|(key, value)| Member {
                    key: key.as_str().into(),
                    key_span: Span::default(),
                    value: tree(value),
                })
                .collect(),
        ),
    };
    Tree::new(value, Span::default())
}

/// Integers as floats, as with [`Numbers::Float`].
fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap()),
        Value::Array(items) => items.iter().map(as_floats).collect(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.clone(), as_floats(value)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

fn values() -> impl Strategy<Value = Value> {
    let text = || {
        prop_oneof![
            "[a-z]{0,3}",
            "(kind|spec|image|name)",
            "\\PC{0,40}",
            any::<String>()
        ]
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        (proptest::num::f64::NORMAL | proptest::num::f64::ZERO).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 30, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..30)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Fragments of JSON, concatenated without regard to its grammar.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b" ",
        b"\n",
        b"\"a\"",
        b"\"kind\"",
        b"\"",
        b"\\u00e9",
        b"\\n",
        b"\\x",
        b"0",
        b"12",
        b"-",
        b".5",
        b"e3",
        b"E-7",
        b"+",
        b"true",
        b"false",
        b"null",
        b"nul",
        b"\"a\":",
        b"\"a long key that is longer\":",
        b"\xc3\xa9",
        b"\xff",
        b"\x01",
        b"{}",
        b"[]",
        b"1,",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..12).prop_map(|pieces| pieces.concat())
}

/// Whether our reader and serde_json must agree on this text. They need not if a `\u`
/// escape is an unpaired surrogate (we accept it, as Go does).
fn comparable(text: &[u8]) -> bool {
    let half = |window: &[u8]| {
        matches!(
            window,
            [
                b'\\',
                b'u',
                b'd' | b'D',
                b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F',
            ]
        )
    };
    !text.windows(4).any(half)
}

fn assert_same_verdict(text: &[u8]) {
    let theirs = serde_json::from_slice::<Value>(text);
    let ours = read(text);
    if comparable(text) {
        let shown = String::from_utf8_lossy(text);
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{shown}: {ours:?} {theirs:?}");
    }
}

/// Number of values and depth of one map or list, according to the reader.
fn measured(text: &[u8]) -> Option<(usize, usize)> {
    let mut buffer = DocumentBuffer::new();
    let symbols = SymbolTable::EMPTY;
    let options = ReadOptions::default();
    buffer
        .read_json(text, TextSource::Object, &symbols, &options)
        .ok()?;
    let (mut depth, mut deepest, mut values) = (0usize, 0, 0);
    let mut bytes = text.iter();
    let mut inside_text = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => inside_text = !inside_text,
            b'\\' => drop(bytes.next()),
            b'{' | b'[' if !inside_text => {
                // A container's first value, unless it is empty.
                let next = bytes.clone().find(|byte| !byte.is_ascii_whitespace());
                if next != Some(&(byte + 2)) {
                    depth += 1;
                    deepest = deepest.max(depth);
                    values += 1;
                } else {
                    bytes.find(|byte| !byte.is_ascii_whitespace());
                }
            }
            b'}' | b']' if !inside_text => depth -= 1,
            b',' if !inside_text => values += 1,
            _ => {}
        }
    }
    Some((values, deepest))
}

/// Compares skipping the map or list at the start of `text` with the reader, for everything
/// that may follow it.
fn assert_skipped_as_read(text: &[u8]) {
    let is_map = text.first() == Some(&b'{');
    let inside = scan::space(text, 1);
    let is_empty = text.get(inside) == Some(&if is_map { b'}' } else { b']' });
    if !(is_map || text.first() == Some(&b'[')) || is_empty {
        return;
    }
    let shown = String::from_utf8_lossy(text);
    let whole = measured(text);
    let tail = r#""b":{"f:c":{},"d":[{"e":"a text of some length"}]},"f":0}"#;
    for behind in ["", "}", ",\"a\":1}", &" ".repeat(64), tail] {
        let input = [text, behind.as_bytes()].concat();
        match (skip::skip(&input, inside, is_map), whole) {
            (Some(skipped), _) => {
                let read = measured(&input[..skipped.end]);
                let found = Some((skipped.values, skipped.depth));
                assert_eq!(read, found, "{shown} before {behind}");
            }
            (None, Some((_, deepest))) => {
                assert!(deepest > 64, "{shown} before {behind}");
            }
            (None, None) => {}
        }
    }
}

/// Every position of a key and what follows it, in the window of the skipper and at its
/// borders.
#[test]
fn keys_of_all_lengths_are_skipped_as_they_are_read() {
    let values = [
        "{}",
        "{ }",
        "[]",
        "{\"a\":{}}",
        "{\"\":1}",
        "{ \"a\":1}",
        "\"\"",
        "\"b\"",
        "1",
        "-0.5e3",
        "true",
        "null",
        "[1,\"x\"]",
        "",
        "}",
        "]",
        "{",
        "{]",
        "tru",
        "01",
        "\"",
        "{},",
        "{}}",
        "{\"a\"}",
        "{,}",
    ];
    for length in (0..20).chain(29..36).chain([47, 48, 62, 63, 64, 65]) {
        for value in values {
            for key in ["x".repeat(length), format!("{}\\n", "x".repeat(length))] {
                for colon in [":", ": ", " :\n ", "", "::", ",", ":\u{1}"] {
                    let text = format!("{{\"{key}\"{colon}{value},\"f:y\":{{}}}}");
                    assert_skipped_as_read(text.as_bytes());
                }
            }
        }
    }
}

#[test]
fn nesting_is_followed_to_its_limit() {
    for depth in 1..70 {
        let maps = format!("{}{{}}{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_skipped_as_read(maps.as_bytes());
        let texts = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_skipped_as_read(texts.as_bytes());
        let lists = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_skipped_as_read(lists.as_bytes());
        assert_skipped_as_read(lists.replacen(']', "}", 1).as_bytes());
    }
}

/// Maps shaped like `managedFields`, with keys of all lengths.
fn fields() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "f:[a-zA-Z./-]{0,40}",
        Just(".".to_owned()),
        "k:\\{\"[a-z]{1,8}\":\"[a-z]{0,20}\"\\}"
    ];
    let leaf = prop_oneof![
        4 => Just(json!({})),
        1 => Just(json!([])),
        1 => "[a-z]{0,20}".prop_map(Value::from),
        1 => any::<i16>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, move |inner| {
        prop::collection::vec((key.clone(), inner), 1..8)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    })
}

proptest! {
    #[test]
    fn what_is_skipped_is_what_would_be_read(
        value in prop_oneof![values(), fields()],
        place in any::<prop::sample::Index>(),
        piece in soup(),
        removed in 0usize..3,
    ) {
        for text in [value.to_string(), format!("{value:#}")] {
            assert_skipped_as_read(text.as_bytes());
            let mut text = text.into_bytes();
            let place = place.index(text.len());
            let end = (place + removed).min(text.len());
            text.splice(place..end, piece.iter().copied());
            if std::str::from_utf8(&text).is_ok() {
                assert_skipped_as_read(&text);
            }
        }
    }

    #[test]
    fn a_changed_byte_of_a_pod_is_skipped_as_it_is_read(place in 1..POD.len(), byte in prop_oneof![any::<u8>(), Just(b'"'), Just(b'}')]) {
        let mut text = POD.as_bytes().to_vec();
        text[place] = byte;
        if std::str::from_utf8(&text).is_ok() {
            assert_skipped_as_read(&text);
        }
    }
}

proptest! {
    #[test]
    fn any_value_survives_text_and_back(value in values()) {
        prop_assert_eq!(read(value.to_string()), Ok(value.clone()));
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(read(&pretty), Ok(value.clone()));
        let floats = read_with(pretty.as_bytes(), &options(Numbers::Float));
        prop_assert_eq!(floats, Ok(as_floats(&value)));
    }

    #[test]
    fn any_value_survives_being_pushed(value in values()) {
        let bytes = symbol_bytes();
        let symbols = SymbolTable::verify(&bytes).unwrap();
        let mut buffer = DocumentBuffer::new();
        let direct = buffer.push_value(&value, &symbols, Numbers::Exact).unwrap();
        let tree = tree(&value);
        let from_tree = buffer.push_tree(&tree, &symbols, Numbers::Exact).unwrap();
        let floats = buffer.push_tree(&tree, &symbols, Numbers::Float).unwrap();
        let view = buffer.view(Texts::NONE, symbols);
        prop_assert_eq!(view.to_value(direct), value.clone());
        prop_assert_eq!(view.to_value(from_tree), value.clone());
        prop_assert_eq!(view.to_value(floats), as_floats(&value));
    }

    #[test]
    fn members_are_found_where_they_are(value in values()) {
        let bytes = symbol_bytes();
        let symbols = SymbolTable::verify(&bytes).unwrap();
        let mut buffer = DocumentBuffer::new();
        let root = buffer.push_value(&value, &symbols, Numbers::Exact).unwrap();
        let view = buffer.view(Texts::NONE, symbols);
        for member in view.children(root).filter(|_| value.is_object()) {
            prop_assert_eq!(view.get_text(root, view.key_bytes(member)), member);
            if let Some(symbol) = view.key_symbol(member) {
                prop_assert_eq!(view.get(root, symbol), member);
            }
        }
    }

    #[test]
    fn every_prefix_of_a_container_is_refused(value in values()) {
        let text = json!([value]).to_string();
        for end in 0..text.len() {
            prop_assert!(read(&text.as_bytes()[..end]).is_err());
        }
    }

    #[test]
    fn random_bytes_get_the_verdict_of_serde_json(text in prop::collection::vec(any::<u8>(), 0..40)) {
        assert_same_verdict(&text);
    }

    #[test]
    fn pieces_of_json_get_the_verdict_of_serde_json(text in soup()) {
        assert_same_verdict(&text);
    }

    #[test]
    fn changed_json_gets_the_verdict_of_serde_json(
        value in values(),
        place in any::<prop::sample::Index>(),
        piece in soup(),
        removed in 0usize..3,
    ) {
        let mut text = value.to_string().into_bytes();
        let place = place.index(text.len());
        let end = (place + removed).min(text.len());
        text.splice(place..end, piece);
        assert_same_verdict(&text);
    }
}
