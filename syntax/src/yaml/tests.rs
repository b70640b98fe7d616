//! Tests of whole documents: the rows of docs/spec/cli.md §8, and the hostile rows 31 to
//! 48, in the order of their sources.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const REFUSE: Options<'static> = Options {
    duplicate_keys: DuplicateKeys::Refuse,
    limits: &Limits::DEFAULT,
};
const LAST_WINS: Options<'static> = Options {
    duplicate_keys: DuplicateKeys::LastWins,
    limits: &Limits::DEFAULT,
};

/// The tree as JSON, floats kept apart from integers.
fn json(tree: &Tree) -> serde_json::Value {
    use serde_json::Value;
    match &tree.value {
        TreeValue::Null => Value::Null,
        TreeValue::Bool(bool) => Value::from(*bool),
        TreeValue::Int(int) => Value::from(*int),
        TreeValue::Float(float) => Value::from(*float),
        TreeValue::String(text) => Value::from(&**text),
        TreeValue::List(items) => items.iter().map(json).collect(),
        TreeValue::Map(members) => members
            .iter()
            .map(|member| (member.key.to_string(), json(&member.value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

fn read_text(text: &str, options: Options<'_>) -> Result<Option<Tree>, YamlErrorKind> {
    read(DocumentText::whole(text), options).map_err(|error| error.kind)
}

fn assert_reads(text: &str, options: Options<'_>, expected: &str) {
    let tree = read_text(text, options).unwrap().unwrap();
    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
    assert_eq!(json(&tree), expected, "{text:?}");
}

fn refusal(text: &str) -> YamlErrorKind {
    read_text(text, LAST_WINS).expect_err(text)
}

/// Runs on a small stack (hostile row 106) with a time limit.
fn on_a_small_stack<T: Send>(within: Duration, work: impl FnOnce() -> T + Send) -> T {
    let start = Instant::now();
    let result = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(256 * 1024)
            .spawn_scoped(scope, work)
            .unwrap()
            .join()
            .unwrap()
    });
    // Allows for unoptimised code on a busy machine.
    let within = if cfg!(debug_assertions) {
        within * 20
    } else {
        within
    };
    assert!(start.elapsed() < within, "took {:?}", start.elapsed());
    result
}

// ---- docs/spec/cli.md §8.2: documents -------------------------------------

#[test]
fn empty_and_null_documents_differ() {
    for blank in ["", "\n \n", "# x", "\u{FEFF}", "\u{FEFF}# x\r\n\r\n"] {
        assert_eq!(read_text(blank, REFUSE), Ok(None), "{blank:?}");
    }
    for null in ["---\n", "---\n# x\n", "~", "...", "---\n...\n# x"] {
        let tree = read_text(null, REFUSE).unwrap().unwrap();
        assert!(tree.is_null(), "{null:?}");
    }
}

#[test]
fn a_bad_document_does_not_stop_the_others() {
    let text = "a: 1\n---\nb: [\n---\nc: 3\n--- foo\nd: 4\n---\n# x\n---\ne: 5\r\n";
    let results = read_all(text, REFUSE);
    let shown: Vec<String> = results
        .iter()
        .map(|result| match result {
            Ok(tree) => json(tree).to_string(),
            Err(error) => format!("{}:{}", error.line, error.column),
        })
        .collect();
    assert_eq!(shown, [r#"{"a":1}"#, "3:4", "6:1", r#"{"e":5}"#]);
    assert_eq!(
        results[2].as_ref().unwrap_err().kind,
        YamlErrorKind::InvalidSeparator
    );
}

#[test]
fn line_ends_are_normalised() {
    for ends in ["\n", "\r\n", "\r"] {
        let text = ["a: |", "  x", "  y", "b: \"p", "  q\"", "c: p", "  q", ""].join(ends);
        assert_reads(&text, REFUSE, r#"{"a":"x\ny\n","b":"p q","c":"p q"}"#);
    }
}

/// Kyverno reads the first document of a chunk and ignores the rest; here the rest is
/// rejected instead of dropped.
#[test]
fn text_behind_the_end_of_a_document_is_refused() {
    for text in ["a: 1\n...\nb: 2\n", "a: 1\n---\nb: 2\n", "a\n...\n---\nb"] {
        assert_eq!(refusal(text), YamlErrorKind::TrailingContent, "{text:?}");
    }
    assert_reads("a: 1\n...\n# x\n", REFUSE, r#"{"a":1}"#);
}

// ---- docs/spec/cli.md §8.3: scalars in their places ------------------------

#[test]
fn scalars_are_resolved_by_style_and_tag() {
    for (text, expected) in [
        ("a: yes", r#"{"a":true}"#),
        ("a: 'yes'", r#"{"a":"yes"}"#),
        ("a: \"5\"", r#"{"a":"5"}"#),
        // The splitter (§8.2) ends every line, also the last one of the file.
        ("a: |\n  5", r#"{"a":"5\n"}"#),
        ("a: |-\n  5", r#"{"a":"5"}"#),
        ("a: >\n  5\n", r#"{"a":"5\n"}"#),
        ("a:", r#"{"a":null}"#),
        ("- \n- ''", r#"[null,""]"#),
        ("a: <<", r#"{"a":"<<"}"#),
        ("a: =", r#"{"a":"="}"#),
        ("a: 0644", r#"{"a":420}"#),
        ("a: 2024-01-31", r#"{"a":"2024-01-31"}"#),
        ("a: !!str 5", r#"{"a":"5"}"#),
        ("a: !!str", r#"{"a":""}"#),
        ("a: !!int \"5\"", r#"{"a":5}"#),
        ("a: !<tag:yaml.org,2002:int> '5'", r#"{"a":5}"#),
        ("a: !!float 1", r#"{"a":1}"#),
        ("a: !!binary |\n  aGVs\n  bG8=\n", r#"{"a":"hello"}"#),
        ("a: ! 5", r#"{"a":"5"}"#),
        ("a: !foo 5", r#"{"a":"5"}"#),
        ("!!map {a: !!seq [1]}", r#"{"a":[1]}"#),
        // Keys.
        (
            "on: 1\n5: 2\n0x1F: 3\n1.5: 4",
            r#"{"true":1,"5":2,"31":3,"1.5":4}"#,
        ),
        ("'on': 1", r#"{"on":1}"#),
        ("!!str 5: a", r#"{"5":"a"}"#),
        // JSON is YAML.
        (
            r#"{"a":[1,1.0,-1.5e3,true,null,"x\u00e9\n"],"b":{}}"#,
            r#"{"a":[1,1,-1500,true,null,"xé\n"],"b":{}}"#,
        ),
        ("{\n\t\"a\": [\n\t\t1\n\t]\n}", r#"{"a":[1]}"#),
    ] {
        assert_reads(text, REFUSE, expected);
    }
}

/// Also hostile rows 35, 40 and 42.
#[test]
fn values_and_keys_without_a_meaning_are_refused() {
    use YamlErrorKind as K;
    let tag = |tag: &str, place| K::UnsupportedTag {
        tag: tag.to_owned(),
        place,
    };
    let collection = "on a map or a list";
    for (text, expected) in [
        ("a: .inf", K::NotFinite),
        ("a: [-.inf]", K::NotFinite),
        ("a: .nan", K::NotFinite),
        ("a: 1e400", K::NumberOutOfRange),
        ("a: !!int x", K::TagMismatch { tag: "!!int" }),
        ("a: !!binary x", K::InvalidBase64),
        ("a: !!timestamp x", tag("!!timestamp", "on a single value")),
        (
            "!!python/object {}",
            tag("tag:yaml.org,2002:python/object", collection),
        ),
        ("a: !foo {}", tag("!foo", collection)),
        ("a: !foo []", tag("!foo", collection)),
        ("a: !!str {}", tag("tag:yaml.org,2002:str", collection)),
        ("~: 1", K::NullKey),
        (": 1", K::NullKey),
        ("{a: {null: 1}}", K::NullKey),
        ("[a]: 1", K::CollectionKey),
        ("{}: 1", K::CollectionKey),
        ("? {a: b}\n: 1", K::CollectionKey),
        ("? - a\n: 1", K::CollectionKey),
        ("18446744073709551615: 1", K::KeyOutOfRange),
    ] {
        assert_eq!(refusal(text), expected, "{text:?}");
    }
}

// ---- docs/spec/cli.md §8.4: duplicate keys; hostile row 41 ------------------

#[test]
fn duplicate_keys_are_refused_or_the_last_one_wins() {
    for (text, expected) in [
        ("a: 1\na: 2", r#"{"a":2}"#),
        ("{a: 1, b: 2, 'a': 3}", r#"{"a":3,"b":2}"#),
        ("1: a\n'1': b", r#"{"1":"b"}"#),
        ("y: a\ntrue: b", r#"{"true":"b"}"#),
        ("x: {a: 1, a: {}}", r#"{"x":{"a":{}}}"#),
    ] {
        assert_reads(text, LAST_WINS, expected);
        assert!(
            matches!(
                read_text(text, REFUSE),
                Err(YamlErrorKind::DuplicateKey { first_line: 1, .. })
            ),
            "{text:?}"
        );
    }
}

#[test]
fn duplicates_in_large_maps_are_found() {
    let mut text: String = (0..100).map(|at| format!("k{at}: {at}\n")).collect();
    text.push_str("k7: x\nk99: z\n");
    let tree = read_text(&text, LAST_WINS).unwrap().unwrap();
    assert_eq!(tree.as_map().unwrap().len(), 100);
    assert_eq!(tree.get("k7").unwrap().as_str(), Some("x"));
    assert_eq!(tree.get("k99").unwrap().as_str(), Some("z"));
    let error = read(DocumentText::whole(&text), REFUSE).unwrap_err();
    assert_eq!((error.line, error.column), (101, 1));
    assert_eq!(
        error.kind,
        YamlErrorKind::DuplicateKey {
            key: "k7".to_owned(),
            first_line: 8
        }
    );
}

// ---- docs/spec/cli.md §8.5: anchors, aliases, merge -------------------------

#[test]
fn aliases_are_expanded_within_one_document() {
    for (text, expected) in [
        ("a: &x 1\nb: *x", r#"{"a":1,"b":1}"#),
        (
            "a: &x {p: [1, 2]}\nb: *x",
            r#"{"a":{"p":[1,2]},"b":{"p":[1,2]}}"#,
        ),
        ("- &x a\n- &x b\n- *x", r#"["a","b","b"]"#),
        ("&k a: 1\nb: *k", r#"{"a":1,"b":"a"}"#),
        ("- &k a\n- *k : 1", r#"["a",{"a":1}]"#),
        ("- &k 1e7\n- *k : 1", r#"[10000000,{"1e+07":1}]"#),
        ("- &x\n- *x", "[null,null]"),
    ] {
        assert_reads(text, REFUSE, expected);
    }
    let results = read_all("a: &x 1\n---\nb: *x", REFUSE);
    assert_eq!(
        results[1].as_ref().unwrap_err().kind,
        YamlErrorKind::UnknownAlias
    );
}

#[test]
fn merge_keys_work_in_the_order_of_the_text() {
    for (text, expected) in [
        // A merge after a key overrides it; keys after a merge override the merge.
        ("{a: 1, <<: {a: 2}}", r#"{"a":2}"#),
        ("{<<: {a: 2}, a: 1}", r#"{"a":1}"#),
        ("{a: 1, <<: {a: 2, b: 2}, b: 3}", r#"{"a":2,"b":3}"#),
        // In a list the earlier map wins.
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", r#"{"a":1,"b":2}"#),
        ("- &x {a: 1}\n- {<<: [*x, {a: 2}]}", r#"[{"a":1},{"a":1}]"#),
        ("{<<: []}", "{}"),
        // A merge inside a merge.
        ("{a: 0, <<: {<<: {a: 1}, b: 2}}", r#"{"a":1,"b":2}"#),
        // Two merges.
        ("{<<: {a: 1}, <<: {a: 2}}", r#"{"a":2}"#),
        // Quoted, it is an ordinary key; with its own tag it is not.
        ("{'<<': {a: 1}}", r#"{"<<":{"a":1}}"#),
        ("{!!merge <<: {a: 1}}", r#"{"a":1}"#),
        ("{! '<<': {a: 1}}", r#"{"a":1}"#),
        ("{!!str <<: 1}", r#"{"<<":1}"#),
    ] {
        assert_reads(text, LAST_WINS, expected);
    }
}

/// In strict mode a key set through merge and key is "already set".
#[test]
fn merged_duplicates_are_refused_in_strict_mode() {
    for text in [
        "{a: 1, <<: {a: 2}}",
        "{<<: {a: 2}, a: 1}",
        "{<<: [{a: 1}, {a: 2}]}",
    ] {
        assert!(
            matches!(
                read_text(text, REFUSE),
                Err(YamlErrorKind::DuplicateKey { .. })
            ),
            "{text:?}"
        );
    }
    assert_reads("{a: 1, <<: {b: 2}}", REFUSE, r#"{"a":1,"b":2}"#);
}

#[test]
fn only_maps_and_lists_of_maps_are_merged() {
    for (text, found) in [
        ("{<<: 1}", "a number"),
        ("{<<: }", "null"),
        ("{<<: [1]}", "a list with something other than a map in it"),
        ("{<<: [[{a: 1}]]}", "a list of lists"),
        ("- &x [{a: 1}]\n- {<<: *x}", "an alias that names a list"),
        ("- &x 1\n- {<<: *x}", "a number"),
    ] {
        assert_eq!(refusal(text), YamlErrorKind::MergeValue { found }, "{text}");
    }
}

// ---- Hostile rows 31 to 33: aliases ----------------------------------------

/// Nine levels, each naming the level before it nine times.
fn bomb(item: impl Fn(&str) -> String) -> String {
    let mut text = format!("a0: &a0 {}\n", item("x"));
    for level in 1..9 {
        text.push_str(&format!(
            "a{level}: &a{level} {}\n",
            item(&format!("*a{}", level - 1))
        ));
    }
    text
}

#[test]
fn row_31_an_alias_bomb_is_refused_at_once() {
    let text = bomb(|name| format!("[{}]", [name; 9].join(", ")));
    let result = on_a_small_stack(Duration::from_millis(50), || read_text(&text, LAST_WINS));
    assert_eq!(result, Err(YamlErrorKind::ExcessiveAliases));
}

#[test]
fn row_32_aliases_out_of_place_are_refused_and_many_are_bounded() {
    assert_eq!(refusal("&a [*a]"), YamlErrorKind::SelfAlias);
    assert_eq!(refusal("&a {b: {c: *a}}"), YamlErrorKind::SelfAlias);
    assert_eq!(refusal("[*a, &a 1]"), YamlErrorKind::UnknownAlias);
    let text = format!("- &a x\n{}", "- *a\n".repeat(1_000_000));
    let count = on_a_small_stack(Duration::from_secs(3), || {
        let tree = read_text(&text, LAST_WINS).unwrap().unwrap();
        tree.as_list().unwrap().len()
    });
    assert_eq!(count, 1_000_001);
    // A large scalar is rejected before the memory is allocated.
    let large = format!("- &a {}\n{}", "x".repeat(1 << 20), "- *a\n".repeat(1_000));
    let limit = Limits::DEFAULT.document_bytes;
    assert_eq!(refusal(&large), YamlErrorKind::TooLarge { limit });
}

#[test]
fn row_33_a_merge_bomb_is_refused() {
    let text = bomb(|name| {
        let map = if name == "x" { "{x: 1}" } else { name };
        format!("{{k: 1, <<: [{}]}}", [map; 9].join(", "))
    });
    let result = on_a_small_stack(Duration::from_millis(50), || read_text(&text, LAST_WINS));
    assert_eq!(result, Err(YamlErrorKind::ExcessiveAliases));
}

#[test]
fn copies_for_anchors_count() {
    let limits = Limits {
        document_nodes: 1_000,
        ..Limits::DEFAULT
    };
    let options = Options {
        limits: &limits,
        ..LAST_WINS
    };
    let anchors: String = (0..20).map(|at| format!("&a{at} [")).collect();
    let text = format!("{anchors}{}{}", "x, ".repeat(100), "]".repeat(20));
    let limit = 1_000;
    assert_eq!(
        read_text(&text, options),
        Err(YamlErrorKind::TooManyNodes { limit })
    );
}

#[test]
fn aliases_do_not_get_around_the_depth_limit() {
    let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
    let text = format!("- &a {deep}\n- {}*a{}", "[".repeat(600), "]".repeat(600));
    let limit = 1_000;
    assert_eq!(refusal(&text), YamlErrorKind::TooDeep { limit });
}

// ---- Hostile rows 34 to 48 --------------------------------------------------

#[test]
fn row_34_what_a_merge_hides_is_seen() {
    assert_reads(
        "priv: &priv {securityContext: {privileged: true}}\nc: {<<: *priv, name: a}",
        REFUSE,
        r#"{"priv":{"securityContext":{"privileged":true}},
            "c":{"securityContext":{"privileged":true},"name":"a"}}"#,
    );
}

#[test]
fn row_36_nesting_is_read_up_to_the_limit_and_refused_beyond() {
    let limit = Limits::DEFAULT.document_depth;
    let flow = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let maps = |depth: usize| format!("{}1{}", "{a: ".repeat(depth), "}".repeat(depth));
    let block = |depth: usize| "- ".repeat(depth);
    let lines = |depth: usize| {
        (0..depth)
            .map(|at| format!("{}a:\n", " ".repeat(at)))
            .collect::<String>()
    };
    let half = |depth: usize| format!("{}{}", block(depth / 2), flow(depth.div_ceil(2)));
    // Stored for aliases, and copied: `{a: &a [...], b: *a}`.
    let anchored = |depth: usize| format!("{{a: &a {}, b: *a}}", flow(depth - 1));
    on_a_small_stack(Duration::from_secs(5), || {
        for make in [
            &flow as &dyn Fn(usize) -> String,
            &maps,
            &block,
            &lines,
            &half,
            &anchored,
        ] {
            for depth in [128, 999, 1_000] {
                assert!(read_text(&make(depth), REFUSE).is_ok(), "{depth}");
            }
            assert_eq!(refusal(&make(1_001)), YamlErrorKind::TooDeep { limit });
        }
        for make in [&flow as &dyn Fn(usize) -> String, &maps, &block] {
            assert_eq!(refusal(&make(1_000_000)), YamlErrorKind::TooDeep { limit });
        }
        assert_eq!(
            refusal(&"[".repeat(1_000_000)),
            YamlErrorKind::TooDeep { limit }
        );
        assert_eq!(
            refusal(&"? ".repeat(1_000_000)),
            YamlErrorKind::CollectionKey
        );
    });
}

/// A byte order mark is skipped only at the start of the file.
#[test]
fn row_43_byte_order_marks() {
    assert_reads("\u{FEFF}a: 1", REFUSE, r#"{"a":1}"#);
    let tree = read_text("\u{FEFF}a: 1", REFUSE).unwrap().unwrap();
    assert_eq!(
        tree.as_map().unwrap()[0].key_span,
        Span { start: 3, end: 4 }
    );
    for text in ["a: 1\n\u{FEFF}b: 2", "a: \u{FEFF}", "a: 1\n\u{FEFF}"] {
        assert!(read_text(text, REFUSE).is_err(), "{text:?}");
    }
    // UTF-16 read as text contains NUL.
    assert_eq!(
        refusal("a\0:\0 \x001\0"),
        YamlErrorKind::ControlCharacter(0)
    );
}

#[test]
fn row_44_control_characters_line_ends_and_tabs() {
    for code in (0..=0x1F).chain(0x7F..=0x9F).chain([0xFFFE, 0xFFFF]) {
        let character = char::from_u32(code).unwrap();
        let text = format!("a: \"x{character} y\"");
        let expected = match character {
            '\t' | '\n' | '\r' => None,
            '\u{85}' => Some(YamlErrorKind::AmbiguousLineEnd(code)),
            _ => Some(YamlErrorKind::ControlCharacter(code)),
        };
        assert_eq!(read_text(&text, REFUSE).err(), expected, "{text:?}");
    }
    for text in ["# x\u{2028}a: 1", "a: x\u{2029}b: 1", "a: x\u{85}b: 1"] {
        assert!(
            matches!(refusal(text), YamlErrorKind::AmbiguousLineEnd(_)),
            "{text:?}"
        );
    }
    assert_reads(r#"a: "\u2028\0""#, REFUSE, "{\"a\":\"\u{2028}\\u0000\"}");
    for text in ["a:\n\tb: 1", "a:\n  b: 1\n\tc: 2", "- a\n\t- b"] {
        assert_eq!(refusal(text), YamlErrorKind::Tab, "{text:?}");
    }
}

#[test]
fn row_48_directives_are_refused() {
    for text in [
        "%YAML 1.2\n---\na: 1",
        "%TAG !! tag:x,1:\n---\na: !!str 1",
        "%FOO\na: 1",
    ] {
        assert_eq!(refusal(text), YamlErrorKind::Directive, "{text:?}");
    }
    assert_reads("a: 50%\nb: '%'", REFUSE, r#"{"a":"50%","b":"%"}"#);
}

/// Places where YAML 1.1's flow grammar has an indicator and YAML 1.2's has none.
#[test]
fn flow_text_that_readers_disagree_about_is_refused() {
    for text in [
        "[a?b]",
        "[?a]",
        "{?a: b}",
        "[:a]",
        "[a:]",
        "{a:}",
        "{a:,b: c}",
    ] {
        assert_eq!(refusal(text), YamlErrorKind::AmbiguousFlowText, "{text:?}");
    }
    assert_reads("[a: , 'a?', b:c]", REFUSE, r#"[{"a":null},"a?","b:c"]"#);
    assert_reads("a?: b?", REFUSE, r#"{"a?":"b?"}"#);
    assert_eq!(refusal("a: &x.y 1"), YamlErrorKind::AnchorName);
    assert_eq!(refusal("|\na\n"), YamlErrorKind::UnindentedBlock);
    assert_reads("|\n\n a\n", REFUSE, r#""\na\n""#);
}

// ---- Places -----------------------------------------------------------------

#[test]
fn spans_are_those_of_the_text() {
    let text = "# é\nplain: some text \n\"quo\\\"ted\": 'it''s'\nempty:\n\
                flow: [é, {a: 1}] # x\nblock:\n  - x\n  - z: |\n      l1\n      l2\n\n# end\nlast: 1\n";
    let tree = read_text(text, REFUSE).unwrap().unwrap();
    let slice = |span: Span| &text[span.start as usize..span.end as usize];
    let members = tree.as_map().unwrap();
    let shown: Vec<(&str, &str)> = members
        .iter()
        .map(|member| (slice(member.key_span), slice(member.value.span)))
        .collect();
    assert_eq!(
        shown,
        [
            ("plain", "some text"),
            ("\"quo\\\"ted\"", "'it''s'"),
            ("empty", ""),
            ("flow", "[é, {a: 1}]"),
            ("block", "- x\n  - z: |\n      l1\n      l2"),
            ("last", "1"),
        ]
    );
    assert_eq!(
        slice(tree.span),
        text[text.find("plain").unwrap()..].trim_end()
    );
    let items = tree.get("block").unwrap().as_list().unwrap();
    assert_eq!(slice(items[1].get("z").unwrap().span), "l1\n      l2");
    // An empty value is located right after its key.
    let before = &text[..tree.get("empty").unwrap().span.start as usize];
    assert_eq!(before.lines().last(), Some("empty"));
}

#[test]
fn spans_and_errors_count_from_the_start_of_the_file() {
    let text = "\u{FEFF}a: 1\n---\nä: 2\n---\né: [*x]\n";
    let results = read_all(text, REFUSE);
    let second = results[1].as_ref().unwrap();
    let key = second.as_map().unwrap()[0].key_span;
    assert_eq!(&text[key.start as usize..key.end as usize], "ä");
    let error = results[2].as_ref().unwrap_err();
    assert_eq!((error.line, error.column), (5, 5));
    assert_eq!(&text[error.span.start as usize..][..2], "*x");
    assert_eq!(
        error.to_string(),
        "line 5, column 5: this alias names an anchor that does not stand before it in the document"
    );
}

// ---- Arbitrary text -----------------------------------------------------------

/// Every span is within the text, on character boundaries, and inside its parent or an
/// anchor's value.
fn check_spans(tree: &Tree, text: &str) {
    let inside = |span: Span| assert!(text.get(span.start as usize..span.end as usize).is_some());
    inside(tree.span);
    for item in tree.as_list().unwrap_or_default() {
        check_spans(item, text);
    }
    for member in tree.as_map().unwrap_or_default() {
        inside(member.key_span);
        check_spans(&member.value, text);
    }
}

fn check_any(text: &str) {
    for options in [REFUSE, LAST_WINS] {
        let start = Instant::now();
        for result in read_all(text, options) {
            match result {
                Ok(tree) => check_spans(&tree, text),
                Err(error) => assert!(error.line > 0 && error.column > 0),
            }
        }
        assert!(start.elapsed() < Duration::from_secs(1), "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics_or_hangs(text in any::<String>()) {
        check_any(&text);
    }

    #[test]
    fn arbitrary_yaml_pieces_never_panic_or_hang(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "a", "b", "1", "1.5", ":", ": ", "- ", "? ", "[", "]", "{", "}", ",", ", ",
                "&a ", "*a", "<<", "!!str ", "!x ", "|", ">", "\"", "'", "\\", "#", "%", "---",
                "...", "\n", "\n  ", "\n    ", " ", "\t", "\r", "é", "\u{FEFF}", "~", ".inf",
            ]),
            0..40,
        )
    ) {
        check_any(&pieces.concat());
    }
}

// ---- Real files -----------------------------------------------------------------

fn yaml_files(directory: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            yaml_files(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
}

/// Real manifests are read completely, as maps with a kind, without duplicate keys.
#[test]
fn real_manifests_are_read() {
    let root = std::path::Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/manifests"
    ));
    if !root.is_dir() {
        println!("skipped: {} is absent", root.display());
        return;
    }
    let mut files = Vec::new();
    yaml_files(root, &mut files);
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for result in read_all(&text, REFUSE) {
            let tree = result.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(tree.get("kind").is_some(), "{}", file.display());
            check_spans(&tree, &text);
        }
    }
}
