//! Tests of the parser against Kyverno's recorded outcomes and the public suite.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Files of Kyverno's recorded outcomes.
const RECORDED: [&str; 2] = [
    "jmespath-kyverno/cases.json",
    "jmespath-kyverno/language.json",
];

fn recorded(path: &str) -> Vec<Value> {
    serde_json::from_str(&kpvm_golden::read(path).unwrap()).unwrap()
}

/// A file of the public suite, or `None` with a note if it is absent.
fn public_suite(name: &str) -> Option<Vec<Value>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance/jmespath");
    match std::fs::read_to_string(root.join(name)) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(error) => {
            println!("skipped: {name}: {error}");
            None
        }
    }
}

fn text<'v>(case: &'v Value, key: &str) -> Option<&'v str> {
    case.get(key).and_then(Value::as_str)
}

#[test]
fn recorded_expressions_parse_or_fail_as_recorded() {
    for case in RECORDED.into_iter().flat_map(recorded) {
        let expression = text(&case, "expression").unwrap();
        let found = parse(expression).map_err(|error| error.message);
        match text(&case, "compile_error") {
            Some(message) => assert_eq!(found, Err(message.to_owned()), "{expression}"),
            None => assert!(found.is_ok(), "{expression}: {found:?}"),
        }
    }
}

/// Expressions that the public suite rejects and this dialect accepts, and vice versa
/// (docs/spec/jmespath.md §14).
const ACCEPTED_HERE: &[&str] = &["@(foo)", "[:::]"];
const REJECTED_HERE: &[&str] = &[r"'\\'"];

#[test]
fn public_suite_syntax() {
    for name in [
        "basic",
        "benchmarks",
        "boolean",
        "current",
        "escape",
        "filters",
        "functions",
        "identifiers",
        "indices",
        "literal",
        "multiselect",
        "pipe",
        "slice",
        "syntax",
        "unicode",
        "wildcard",
    ] {
        for group in public_suite(&format!("{name}.json")).unwrap_or_default() {
            for case in group.get("cases").and_then(Value::as_array).unwrap() {
                let expression = text(case, "expression").unwrap();
                let syntax = text(case, "error") == Some("syntax");
                let expected = if ACCEPTED_HERE.contains(&expression) {
                    true
                } else {
                    !syntax && !REJECTED_HERE.contains(&expression)
                };
                let found = parse(expression);
                assert_eq!(found.is_ok(), expected, "{name}: {expression}: {found:?}");
            }
        }
    }
}

fn tree(source: &str) -> String {
    parse(source).unwrap().to_string()
}

#[test]
fn precedence() {
    // docs/spec/jmespath.md §3, paragraph "Precedence consequences".
    for (text, grouped) in [
        ("!a.b", "(!a).b"),
        ("!a[0]", "!(a[0])"),
        ("!f(x)", "!(f(x))"),
        ("!a[?x]", "(!a)[?x]"),
        ("!a[]", "(!a)[]"),
        ("a == b == c", "(a == b) == c"),
        ("a || b && c", "a || (b && c)"),
        ("a || b | c", "(a || b) | c"),
        ("a == 'x' || b", "(a == 'x') || b"),
        ("contains(a b)", "contains(a, b)"),
        ("f(a,)", "f(a)"),
        ("{a:b c:d}", "{a: b, c: d}"),
        ("a[:1 2]", "a[:2]"),
        ("(foo)(x)", "foo(x)"),
        ("`\"length\"`(@)", "'length'(@)"),
        ("f(a)(b)", "f(b)"),
        ("a.b[0]", "a.b[0]"),
    ] {
        assert_eq!(parse(text).unwrap(), parse(grouped).unwrap(), "{text}");
    }
    assert_ne!(parse("a.b[0]").unwrap(), parse("(a.b)[0]").unwrap());
    assert_ne!(parse("a || (b | c)").unwrap(), parse("a || b | c").unwrap());
}

#[test]
fn spans_are_those_of_the_text() {
    let source = "(a || b).c[?x == `1`] | f(@, {k: 'v'})";
    let expression = parse(source).unwrap();
    let mut texts = Vec::new();
    let mut waiting = vec![&expression];
    while let Some(expression) = waiting.pop() {
        let span = expression.span;
        texts.push(&source[span.start as usize..span.end as usize]);
        waiting.extend(expression.node.children());
    }
    texts.sort_unstable();
    assert_eq!(
        texts,
        [
            "",
            "'v'",
            "(a || b).c",
            "(a || b).c[?x == `1`]",
            source,
            "@",
            "`1`",
            "a",
            "a || b",
            "b",
            "c",
            "f(@, {k: 'v'})",
            "x",
            "x == `1`",
            "{k: 'v'}"
        ]
    );
}

#[test]
fn error_offsets() {
    // docs/spec/jmespath.md §2 (last paragraph but one): unclosed at the input's length;
    // §3: the token that was examined.
    for (text, offset) in [
        ("a..b", 2),
        ("a.", 2),
        ("a b", 2),
        ("é", 0),
        ("a.é", 2),
        ("a | 'x", 6),
        ("foo[1.5]", 5),
        ("f(a,,b)", 4),
        ("\"length\"(a)", 0),
        ("a || `foo`", 5),
        ("a[--1]", 2),
        ("", 0),
    ] {
        assert_eq!(parse(text).unwrap_err().offset, offset, "{text}");
    }
}

#[test]
fn dropped_index_errors() {
    // docs/spec/jmespath.md §3, row about a prefix `[` whose index part fails.
    assert_eq!(parse("[0").unwrap().node, Node::Empty);
    assert_eq!(parse("[1:").unwrap().node, Node::Empty);
    assert_eq!(
        parse("[-]").unwrap_err().message,
        "SyntaxError: Unexpected token at the end of the expression: tNumber"
    );
    assert_eq!(tree("[0 | a"), "([0) | a");
}

/// Texts with the given nesting, in every way the grammar nests.
fn nested(levels: usize) -> Vec<String> {
    let around = |open: &str, close: &str| open.repeat(levels) + "a" + &close.repeat(levels);
    vec![
        around("(", ")"),
        around("!", ""),
        around("& ", ""),
        around("[", "]"),
        around("{k:", "}"),
        around("f(", ")"),
        around("a[?", "]"),
        around("a || (", ")"),
        around("a[*].", ""),
        around("*.", ""),
        around("", ".a"),
        around("", " || a"),
        around("", "[0]"),
        around("", "[]"),
        format!("`{}{}`", "[".repeat(levels), "]".repeat(levels)),
        format!("{}`[]`{}", "[".repeat(levels), "]".repeat(levels)),
    ]
}

#[test]
fn nesting_is_bounded_on_a_small_stack() {
    // Unoptimised frames are up to twice as large.
    let kibibytes = if cfg!(debug_assertions) { 512 } else { 256 };
    let worker = std::thread::Builder::new().stack_size(kibibytes << 10);
    let handle = worker.spawn(|| {
        // Excessive nesting is an error, never an overflow; nesting just below the limit
        // can be parsed, printed and dropped.
        for text in nested(20_000) {
            let error = parse(&text).unwrap_err();
            assert!(
                error.message.starts_with("expression is "),
                "{}",
                error.message
            );
        }
        for text in nested(MAX_DEPTH / 2 - 2) {
            assert!(parse(&text).is_ok());
        }
        for expression in nested(MAX_DEPTH - 2).iter().flat_map(|text| parse(text)) {
            assert!(expression.height() <= MAX_DEPTH);
        }
    });
    handle.unwrap().join().unwrap();
}

#[test]
fn length_is_bounded() {
    let fits = format!("'{}'", "é".repeat(MAX_CODE_POINTS - 2));
    assert!(parse(&fits).is_ok());
    let error = parse(&format!("{fits} ")).unwrap_err();
    assert_eq!(error.offset, fits.len());
}

/// Fragments of random expressions.
const PIECES: &[&str] = &[
    "a",
    "b",
    "\"c d\"",
    "f(",
    "(",
    ")",
    "[",
    "]",
    "[]",
    "[?",
    "[*]",
    "[0]",
    "[1:2]",
    "[0",
    "{",
    "}",
    "k:",
    ",",
    ".",
    "*",
    "|",
    "||",
    "&&",
    "!",
    "&",
    "==",
    "<",
    "@",
    "'x'",
    "'it\\'s'",
    "`1.5`",
    "`{\"k\":[null,1e30]}`",
    " ",
    "-1",
    ":",
    "a.b",
    "x | y",
    "a || b",
];

/// Well-formed expressions, so that many of them nest deeply.
fn well_formed() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "@", "'x'", "`1`", "\"c d\"", "*", "[0]", "[*]",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(6, 40, 3, |inner| {
        let one = inner.clone();
        let shapes = vec![
            "(#)", "!#", "&#", "[#]", "{k: #}", "f(#)", "#.a", "#.*", "#.[a]", "#[0]", "#[1:2]",
            "#[*]", "#[]", "#[?b]", "a[?#]", "#.a[*].b", "*.a.#", "#(x)", "(#).a", "#[][*]",
        ];
        let binary = vec!["|", "||", "&&", "==", "<", ".", ","];
        prop_oneof![
            (prop::sample::select(shapes), one).prop_map(|(shape, a)| shape.replace('#', &a)),
            (inner.clone(), prop::sample::select(binary), inner).prop_map(|(a, operator, b)| {
                if operator == "," {
                    format!("[{a}, {b}]")
                } else {
                    format!("{a}{operator}{b}")
                }
            }),
        ]
    })
}

fn printing_keeps_the_tree(source: &str) -> Result<(), TestCaseError> {
    if let Ok(expression) = parse(source) {
        let printed = expression.to_string();
        if printed.contains("([0)") {
            // An unfinished index cannot be printed everywhere.
            return Ok(());
        }
        let again = parse(&printed);
        prop_assert_eq!(again.as_ref(), Ok(&expression), "{} -> {}", source, printed);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn printed_expressions_read_the_same(source in well_formed()) {
        printing_keeps_the_tree(&source)?;
    }

    #[test]
    fn pieces_never_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12)) {
        printing_keeps_the_tree(&pieces.concat())?;
    }

    #[test]
    fn any_text_never_panics(source in any::<String>()) {
        let offset = parse(&source).map_or_else(|error| error.offset, |_| 0);
        prop_assert!(source.is_char_boundary(offset));
    }
}

#[test]
fn golden_expressions_print_and_read_the_same() {
    for path in RECORDED {
        for case in recorded(path) {
            printing_keeps_the_tree(text(&case, "expression").unwrap()).unwrap();
        }
    }
}

/// docs/spec/assert.md §8: precedence, shown with all parentheses.
#[test]
fn the_dialect_of_assertions() {
    for (text, meaning) in [
        ("a + b * c", "((a) + (((b) * (c))))"),
        ("a - b - c", "((((a) - (b))) - (c))"),
        (
            "a * b / c // d % e",
            "((((((((a) * (b))) / (c))) // (d))) % (e))",
        ),
        ("a × b ÷ c − d", "((((((a) * (b))) / (c))) - (d))"),
        ("a + b == c", "((a) + (b)) == c"),
        ("a + b < c && d", "((a) + (b)) < c && d"),
        ("-a.b", "(- (a.b))"),
        ("+a", "(+ (a))"),
        ("-(a + b)", "(- (((a) + (b))))"),
        ("a.* | @", "a.* | @"),
        ("$.a", "$.a"),
        ("$x.a[0]", "$x.a[0]"),
        (
            "let $x = a, $y = b in $x + $y",
            "(let $x = a, $y = b in (($x) + ($y)))",
        ),
        ("let.a", "let.a"),
        ("in", "in"),
        (r"'a\\b'", r#"`"a\\b"`"#),
    ] {
        let expression =
            parse_in(text, Dialect::Assertion).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(expression.to_string(), meaning, "{text}");
        let again =
            parse_in(meaning, Dialect::Assertion).unwrap_or_else(|e| panic!("{meaning}: {e}"));
        assert_eq!(again, expression, "{text}");
        let is_of_both = ["a.* | @", "let.a", "in", r"'a\\b'"].contains(&text);
        assert_eq!(parse(text).is_ok(), is_of_both, "{text}");
    }
    for text in [
        "a +",
        "let $x = a",
        "let $x a in b",
        "let $x = a in",
        "$1",
        "a = b",
        "[0",
        "@(a)",
        "a ++",
    ] {
        assert!(parse_in(text, Dialect::Assertion).is_err(), "{text}");
    }
}
