//! JSON inside an expression: between backticks, and quoted identifiers.
//!
//! Strict JSON with the error texts of Go's `encoding/json` (docs/spec/jmespath.md §2). All
//! numbers become floats. No leniency, no locations inside the literal.

use kpvm_semantics::limits::Limits;

use crate::json::{self, Expected, Fault};
use crate::tree::DuplicateKeys;
use crate::tree::{Span, Tree, TreeValue};

use super::MAX_DEPTH;

/// Parses one JSON value. Every value gets the location `span`; `depth` is the remaining
/// nesting of lists and maps.
pub(super) fn parse_json(text: &str, span: Span, depth: usize) -> Result<TreeValue, String> {
    let limits = Limits {
        document_depth: depth,
        document_nodes: usize::MAX,
        ..Limits::DEFAULT
    };
    let options = json::Options {
        duplicate_keys: DuplicateKeys::LastWins,
        numbers: json::Numbers::Float,
        limits: &limits,
    };
    match json::read(text, options) {
        Ok((mut tree, _)) => {
            place(&mut tree, span);
            Ok(tree.value)
        }
        Err(json::Error::Syntax(fault)) => Err(explain(text, fault)),
        Err(json::Error::TooDeep) => Err(format!(
            "expression is nested more than {MAX_DEPTH} levels deep"
        )),
        Err(json::Error::NumberRange(Span { start, end })) => {
            let number = text.get(start as usize..end as usize).unwrap_or_default();
            Err(format!(
                "json: cannot unmarshal number {number} into Go value of type float64"
            ))
        }
        Err(json::Error::TooLarge | json::Error::DuplicateKey) => {
            Err("the literal is too large".to_owned())
        }
    }
}

/// Gives one place to a value with everything in it.
fn place(tree: &mut Tree, span: Span) {
    tree.span = span;
    match &mut tree.value {
        TreeValue::List(items) => items.iter_mut().for_each(|item| place(item, span)),
        TreeValue::Map(members) => {
            for member in members {
                member.key_span = span;
                place(&mut member.value, span);
            }
        }
        TreeValue::Null
        | TreeValue::Bool(_)
        | TreeValue::Int(_)
        | TreeValue::Float(_)
        | TreeValue::String(_) => {}
    }
}

/// Go's text about a byte that it did not expect.
fn explain(text: &str, fault: Fault) -> String {
    let mut is_in_token = false;
    let place = match fault.expected {
        Expected::Value => "looking for beginning of value",
        Expected::Key => "looking for beginning of object key string",
        Expected::Colon => "after object key",
        Expected::MapEnd => "after object key:value pair",
        Expected::ListEnd => "after array element",
        Expected::TextEnd => "after top-level value",
        Expected::StringCharacter => "in string literal",
        Expected::HexDigit => r"in \u hexadecimal character escape",
        token => {
            is_in_token = true;
            match token {
                Expected::Escape => "in string escape code",
                Expected::FractionDigit => "after decimal point in numeric literal",
                Expected::ExponentDigit => "in exponent of numeric literal",
                Expected::Letter { word, letter } => {
                    &format!("in literal {word} (expecting '{letter}')")
                }
                _ => "in numeric literal",
            }
        }
    };
    match text.as_bytes().get(fault.offset) {
        Some(&byte) => invalid(byte, place),
        // At the end of a word, a number or an escape, Go's scanner reads a blank and complains
        // about that.
        None if is_in_token => invalid(b' ', place),
        None => "unexpected end of JSON input".to_owned(),
    }
}

/// Go's text about a byte in a place.
fn invalid(byte: u8, place: &str) -> String {
    format!("invalid character {} {place}", quote_byte(byte))
}

/// A byte as quoted by Go's scanner: the character with that code.
fn quote_byte(byte: u8) -> String {
    let c = char::from(byte);
    let escaped = match c {
        '\'' | '\\' => format!("\\{c}"),
        '\u{7}' => "\\a".into(),
        '\u{8}' => "\\b".into(),
        '\u{c}' => "\\f".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        '\u{b}' => "\\v".into(),
        ' '..='~' => c.to_string(),
        '\0'..='\u{7f}' => format!("\\x{byte:02x}"),
        '\u{80}'..='\u{a0}' | '\u{ad}' => format!("\\u{byte:04x}"),
        c => c.to_string(),
    };
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TreeValue, String> {
        parse_json(text, Span::default(), MAX_DEPTH)
    }

    #[test]
    fn values_decode() {
        // docs/spec/jmespath.md §2, paragraph on backtick literals.
        assert_eq!(read(" 1 "), Ok(TreeValue::Float(1.0)));
        assert_eq!(
            read(r#""\ud800""#),
            Ok(TreeValue::String("\u{fffd}".into()))
        );
        assert_eq!(
            read(r#""\ud83d\ude00""#),
            Ok(TreeValue::String("\u{1f600}".into()))
        );
        assert_eq!(
            read(r#""\ud83d\u0041""#),
            Ok(TreeValue::String("\u{fffd}A".into()))
        );
        let map = read(r#"{"a":1,"b":0,"a":2}"#).unwrap();
        let TreeValue::Map(members) = map else {
            panic!()
        };
        assert_eq!(members.len(), 2);
        assert_eq!(members[0].value.value, TreeValue::Float(2.0));
        assert!(matches!(read("-0"), Ok(TreeValue::Float(zero)) if zero.is_sign_negative()));
        assert_eq!(read("1e-400"), Ok(TreeValue::Float(0.0)));
    }

    #[test]
    fn errors_are_those_of_go() {
        // docs/spec/jmespath.md §2; golden language.json, group "syntax"; the rest are the
        // texts of Go's encoding/json scanner.
        for (text, message) in [
            ("", "unexpected end of JSON input"),
            ("[", "unexpected end of JSON input"),
            (
                "foo",
                "invalid character 'o' in literal false (expecting 'a')",
            ),
            (
                "'a'",
                r"invalid character '\'' looking for beginning of value",
            ),
            ("01", "invalid character '1' after top-level value"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "{1",
                "invalid character '1' looking for beginning of object key string",
            ),
            (r#"{"a" 1"#, "invalid character '1' after object key"),
            (
                r#"{"a":1 1"#,
                "invalid character '1' after object key:value pair",
            ),
            (
                r#"{"a":1,}"#,
                "invalid character '}' looking for beginning of object key string",
            ),
            ("-a", "invalid character 'a' in numeric literal"),
            (
                "1.a",
                "invalid character 'a' after decimal point in numeric literal",
            ),
            (
                "1ea",
                "invalid character 'a' in exponent of numeric literal",
            ),
            (r#""\q""#, "invalid character 'q' in string escape code"),
            (
                r#""\u00g0""#,
                r"invalid character 'g' in \u hexadecimal character escape",
            ),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
            (
                "1e400",
                "json: cannot unmarshal number 1e400 into Go value of type float64",
            ),
            ("[1e400", "unexpected end of JSON input"),
        ] {
            assert_eq!(read(text), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read(&nested(MAX_DEPTH)).is_ok());
        assert!(
            read(&nested(MAX_DEPTH + 1))
                .unwrap_err()
                .contains("250 levels")
        );
    }
}
