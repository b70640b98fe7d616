//! Values as text: inside a string that contains a variable (docs/spec/conditions.md §4.4),
//! and as printed by Go's `%v` (docs/spec/conditions.md §3.2).
//!
//! Appends to the caller's string, never beyond the caller's limit. There is no recursion:
//! open containers are kept on a stack, and every step writes something.

use std::fmt;

use std::fmt::Write;

use smallvec::SmallVec;

use crate::document::{ChildRange, Kind, NodeId, View};
use kpvm_semantics::number::{format_substituted_float, format_v_float};

/// Reason why a value has no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextError {
    /// The value contains a number that JSON cannot express. The text is Kyverno's, to be
    /// appended to `failed to resolve <name> at path <path>: `.
    NotFinite {
        /// Go's type name of the whole value.
        go_type: &'static str,
        /// The whole value as printed by `%v`.
        value: String,
    },
    /// The text would exceed the limit.
    TooLong(usize),
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinite { go_type, value, .. } => {
                write!(f, "failed to marshal {go_type}: {value}")
            }
            Self::TooLong(value) => write!(f, "the text of a value is longer than {value} bytes"),
        }
    }
}

impl std::error::Error for TextError {}

/// Appends the text that replaces a value inside a longer string: strings unchanged,
/// everything else as JSON (docs/spec/conditions.md §4.4). `limit` bounds `out` as a whole,
/// including its previous content; on an error `out` is unchanged.
pub(crate) fn append_substituted(
    view: &View<'_>,
    node: NodeId,
    out: &mut String,
    limit: usize,
) -> Result<(), TextError> {
    let start = out.len();
    let written = match view.kind(node) {
        Some(Kind::String) => {
            out.push_str(view.str(node));
            within(out, limit)
        }
        _ => append::<Json>(view, node, out, limit),
    };
    written.map_err(|problem| {
        out.truncate(start);
        match problem {
            Problem::TooLong => TextError::TooLong(limit),
            Problem::NotFinite => not_finite(view, node, limit),
        }
    })
}

/// Appends a value as printed by Go's `%v` and `fmt.Sprint` (docs/spec/conditions.md §3.2);
/// fails once `out` exceeds `limit` bytes.
pub(crate) fn append_go_value(
    view: &View<'_>,
    node: NodeId,
    out: &mut String,
    limit: usize,
) -> Result<(), TextError> {
    append::<Go>(view, node, out, limit).map_err(|_| TextError::TooLong(limit))
}

/// Appends a value as JSON for people, with as few escapes as possible. Stops once `out`
/// exceeds `limit` bytes; returns whether the value was written completely.
pub(crate) fn append_shown(view: &View<'_>, node: NodeId, out: &mut String, limit: usize) -> bool {
    let whole = append::<Shown>(view, node, out, limit).is_ok();
    truncate(out, limit);
    whole
}

/// Truncates a text at a character boundary.
pub(crate) fn truncate(text: &mut String, mut length: usize) {
    if text.len() > length {
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        text.truncate(length);
    }
}

/// Go's type name of a value, as printed by `%T`.
pub(crate) fn go_type(view: &View<'_>, node: NodeId) -> &'static str {
    match view.kind(node) {
        None | Some(Kind::Null) => "<nil>",
        Some(Kind::False | Kind::True) => "bool",
        Some(Kind::Int) => "int64",
        Some(Kind::Float) => "float64",
        Some(Kind::String) => "string",
        Some(Kind::List) => "[]interface {}",
        Some(Kind::Map) => "map[string]interface {}",
    }
}

/// Error for a value that contains an infinity or NaN.
fn not_finite(view: &View<'_>, node: NodeId, limit: usize) -> TextError {
    let mut value = String::new();
    match append_go_value(view, node, &mut value, limit) {
        Ok(()) => TextError::NotFinite {
            go_type: go_type(view, node),
            value,
        },
        Err(error) => error,
    }
}

/// Reasons to stop writing.
#[derive(Debug)]
enum Problem {
    TooLong,
    NotFinite,
}

/// Syntax of a notation for containers and scalars.
trait Notation {
    const LIST: [&'static str; 2];
    const MAP: [&'static str; 2];
    const SEPARATOR: &'static str;
    const COLON: &'static str;
    const NULL: &'static str;
    /// Whether members of maps are sorted by key.
    const SORTED: bool = true;
    fn string(text: &str, out: &mut String);
    fn float(value: f64, out: &mut String) -> Result<(), Problem>;
}

/// JSON with the escapes of Kyverno's encoder.
struct Json;

impl Notation for Json {
    const LIST: [&'static str; 2] = ["[", "]"];
    const MAP: [&'static str; 2] = ["{", "}"];
    const SEPARATOR: &'static str = ",";
    const COLON: &'static str = ":";
    const NULL: &'static str = "null";

    fn string(text: &str, out: &mut String) {
        out.push('"');
        let mut rest = text;
        while let Some(at) = rest.find(is_escaped) {
            let (plain, from) = rest.split_at(at);
            out.push_str(plain);
            let mut letters = from.chars();
            if let Some(letter) = letters.next() {
                push_escaped(letter, out);
            }
            rest = letters.as_str();
        }
        out.push_str(rest);
        out.push('"');
    }

    fn float(value: f64, out: &mut String) -> Result<(), Problem> {
        if !value.is_finite() {
            return Err(Problem::NotFinite);
        }
        format_substituted_float(value, out);
        Ok(())
    }
}

fn is_escaped(letter: char) -> bool {
    letter < ' '
        || matches!(
            letter,
            '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}'
        )
}

fn push_escaped(letter: char, out: &mut String) {
    match letter {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        other => {
            let _writing_to_a_string_succeeds = write!(out, "\\u{:04x}", u32::from(other));
        }
    }
}

/// JSON for people.
struct Shown;

/// Longer strings are truncated.
const SHOWN_LETTERS: usize = 1024;

impl Notation for Shown {
    const LIST: [&'static str; 2] = ["[", "]"];
    const MAP: [&'static str; 2] = ["{", "}"];
    const SEPARATOR: &'static str = ", ";
    const COLON: &'static str = ": ";
    const NULL: &'static str = "null";
    // Sorting is not worth it for text that is soon truncated.
    const SORTED: bool = false;

    fn string(text: &str, out: &mut String) {
        out.push('"');
        for (written, letter) in text.chars().enumerate() {
            if written == SHOWN_LETTERS {
                out.push('…');
                break;
            }
            if matches!(letter, '"' | '\\') || letter < ' ' {
                push_escaped(letter, out);
            } else {
                out.push(letter);
            }
        }
        out.push('"');
    }

    fn float(value: f64, out: &mut String) -> Result<(), Problem> {
        format_v_float(value, out);
        Ok(())
    }
}

/// Go's `%v`.
struct Go;

impl Notation for Go {
    const LIST: [&'static str; 2] = ["[", "]"];
    const MAP: [&'static str; 2] = ["map[", "]"];
    const SEPARATOR: &'static str = " ";
    const COLON: &'static str = ":";
    const NULL: &'static str = "<nil>";

    fn string(text: &str, out: &mut String) {
        out.push_str(text);
    }

    fn float(value: f64, out: &mut String) -> Result<(), Problem> {
        format_v_float(value, out);
        Ok(())
    }
}

/// Remaining members of an open container.
enum Rest {
    List(ChildRange),
    /// Members sorted by key.
    Map(std::vec::IntoIter<NodeId>),
    /// Members in document order.
    Members(ChildRange),
}

impl Rest {
    fn close<N: Notation>(&self) -> &'static str {
        match self {
            Rest::List(_) => N::LIST[1],
            Rest::Map(_) | Rest::Members(_) => N::MAP[1],
        }
    }
}

fn append<N: Notation>(
    view: &View<'_>,
    node: NodeId,
    out: &mut String,
    limit: usize,
) -> Result<(), Problem> {
    let mut open: SmallVec<[Rest; 4]> = SmallVec::new();
    open.extend(begin::<N>(view, node, out)?);
    let mut is_first = true;
    while let Some(rest) = open.last_mut() {
        within(out, limit)?;
        let member = match rest {
            Rest::List(items) | Rest::Members(items) => items.next(),
            Rest::Map(members) => members.next(),
        };
        let Some(member) = member else {
            out.push_str(rest.close::<N>());
            open.pop();
            is_first = false;
            continue;
        };
        if !is_first {
            out.push_str(N::SEPARATOR);
        }
        if matches!(rest, Rest::Map(_) | Rest::Members(_)) {
            N::string(view.key_str(member), out);
            out.push_str(N::COLON);
        }
        let container = begin::<N>(view, member, out)?;
        is_first = container.is_some();
        open.extend(container);
    }
    within(out, limit)
}

fn within(out: &str, limit: usize) -> Result<(), Problem> {
    if out.len() > limit {
        return Err(Problem::TooLong);
    }
    Ok(())
}

/// Writes a scalar, or the start of a container, whose members it returns.
fn begin<N: Notation>(
    view: &View<'_>,
    node: NodeId,
    out: &mut String,
) -> Result<Option<Rest>, Problem> {
    match view.kind(node) {
        None | Some(Kind::Null) => out.push_str(N::NULL),
        Some(Kind::False) => out.push_str("false"),
        Some(Kind::True) => out.push_str("true"),
        Some(Kind::Int) => {
            let _writing_to_a_string_succeeds =
                write!(out, "{}", view.int(node).unwrap_or_default());
        }
        Some(Kind::Float) => N::float(view.float(node).unwrap_or_default(), out)?,
        Some(Kind::String) => N::string(view.str(node), out),
        Some(Kind::List) => {
            out.push_str(N::LIST[0]);
            return Ok(Some(Rest::List(view.children(node))));
        }
        Some(Kind::Map) => {
            out.push_str(N::MAP[0]);
            if !N::SORTED {
                return Ok(Some(Rest::Members(view.children(node))));
            }
            let mut members: Vec<NodeId> = view.children(node).collect();
            members.sort_unstable_by_key(|&member| view.key_bytes(member));
            return Ok(Some(Rest::Map(members.into_iter())));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{DocumentBuffer, Label, Numbers, Texts};
    use kpvm_format::symbol::SymbolTable;
    use serde_json::{Value, json};

    const LIMIT: usize = 1 << 20;

    fn with_value<T>(value: &Value, use_it: impl FnOnce(&View<'_>, NodeId) -> T) -> T {
        let mut buffer = DocumentBuffer::new();
        let node = buffer
            .push_value(value, &SymbolTable::EMPTY, Numbers::Exact)
            .unwrap();
        use_it(&buffer.view(Texts::NONE, SymbolTable::EMPTY), node)
    }

    fn substituted(value: &Value) -> Result<String, TextError> {
        with_value(value, |view, node| {
            let mut out = "!".to_owned();
            append_substituted(view, node, &mut out, LIMIT).map(|()| out)
        })
    }

    #[test]
    fn section_4_4_json_inside_a_string() {
        let rows = [
            (json!(null), "!null"),
            (json!(true), "!true"),
            (json!(false), "!false"),
            (json!(5), "!5"),
            (json!(5.0), "!5"),
            (json!(1_000_000.0), "!1000000"),
            (json!(1e-6), "!0.000001"),
            (json!(1e-7), "!1e-07"),
            (json!(1e20), "!100000000000000000000"),
            (json!(1e21), "!1e+21"),
            (json!(-0.0), "!-0"),
            (json!(i64::MIN), "!-9223372036854775808"),
            (json!({"a": "b"}), r#"!{"a":"b"}"#),
            (
                json!({"b": [1, 2.5, null], "a": {}}),
                r#"!{"a":{},"b":[1,2.5,null]}"#,
            ),
            (json!([]), "![]"),
            (json!([[], [[]], {"a": []}]), r#"![[],[[]],{"a":[]}]"#),
            // Strings are inserted unchanged, including quotes.
            (json!("a\"<b>\n"), "!a\"<b>\n"),
            (json!(["<&>"]), r#"!["\u003c\u0026\u003e"]"#),
            (json!({"<": 1}), r#"!{"\u003c":1}"#),
            (json!(["\u{2028}\u{2029}é"]), r#"!["\u2028\u2029é"]"#),
            (json!(["\n\r\t\"\\"]), r#"!["\n\r\t\"\\"]"#),
            (
                json!(["\u{8}\u{c}\u{0}\u{1f}\u{7f}"]),
                "![\"\\u0008\\u000c\\u0000\\u001f\u{7f}\"]",
            ),
        ];
        for (value, expected) in rows {
            assert_eq!(substituted(&value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn section_3_2_go_text_form() {
        let rows = [
            (json!(null), "<nil>"),
            (json!(1_000_000), "1000000"),
            (json!(1_000_000.0), "1e+06"),
            (json!(0.00001), "1e-05"),
            (json!(100_000.0), "100000"),
            (json!(["a", "b", ["c", null]]), "[a b [c <nil>]]"),
            (json!({"k2": "v2", "k1": ["", ""]}), "map[k1:[ ] k2:v2]"),
            (json!({"a": {}, "b": []}), "map[a:map[] b:[]]"),
        ];
        for (value, expected) in rows {
            let text = with_value(&value, |view, node| {
                let mut out = String::new();
                append_go_value(view, node, &mut out, LIMIT).map(|()| out)
            });
            assert_eq!(text.as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn a_number_without_json_is_kyvernos_error() {
        let mut buffer = DocumentBuffer::new();
        buffer.push_float(Label::ITEM, f64::NAN);
        let alone = buffer.take().unwrap();
        buffer.begin(Label::ITEM);
        buffer.push_int(Label::ITEM, 1);
        buffer.push_float(Label::ITEM, f64::INFINITY);
        buffer.finish_list();
        let inside = buffer.take().unwrap();
        let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
        // docs/spec/conditions.md §4.4, also inside a list.
        for (node, expected) in [
            (alone, "failed to marshal float64: NaN"),
            (inside, "failed to marshal []interface {}: [1 +Inf]"),
        ] {
            let mut out = "before".to_owned();
            let error = append_substituted(&view, node, &mut out, LIMIT).unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert_eq!(out, "before");
        }
    }

    #[test]
    fn a_text_ends_at_its_limit() {
        for value in [json!([1, 2, 3, 4]), json!("abcdefghi"), json!({"a": "b"})] {
            for limit in 0..9 {
                with_value(&value, |view, node| {
                    let mut out = String::new();
                    let result = append_substituted(view, node, &mut out, limit);
                    assert_eq!(result, Err(TextError::TooLong(limit)), "{value}");
                    assert_eq!(out, "");
                });
            }
            assert_eq!(substituted(&value).unwrap().len(), 10);
        }
    }

    #[test]
    fn shared_members_do_not_multiply_beyond_the_limit() {
        // Each of 60 lists contains the previous one twice.
        let mut buffer = DocumentBuffer::new();
        buffer.push_int(Label::ITEM, 1);
        let mut node = buffer.take().unwrap();
        for _ in 0..60 {
            buffer.begin(Label::ITEM);
            buffer.push_node(Label::ITEM, node);
            buffer.push_node(Label::ITEM, node);
            buffer.finish_list();
            node = buffer.take().unwrap();
        }
        let view = buffer.view(Texts::NONE, SymbolTable::EMPTY);
        let result = append_substituted(&view, node, &mut String::new(), 10_000);
        assert_eq!(result, Err(TextError::TooLong(10_000)));
    }
}
