//! Meaning of a YAML scalar: go-yaml v2's YAML 1.1 interpretation, and the conversion
//! through JSON text after it (docs/spec/cli.md §8.3).
//!
//! Text, style and tag become a value or the text of a map key. Locations are unknown here.

use std::borrow::Cow;

use super::error::{YamlErrorKind, clip};
use crate::tree::TreeValue;
use crate::tree::integral;

/// Tag of a value, as far as it affects the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag<'t> {
    /// No tag.
    None,
    /// `!!str`
    Str,
    /// `!!int`
    Int,
    /// `!!float`
    Float,
    /// `!!bool`
    Bool,
    /// `!!null`
    Null,
    /// `!!binary`
    Binary,
    /// `!!merge`
    Merge,
    /// Another tag of YAML's own namespace (`!!timestamp`, `!!set`, ...).
    OtherCore(&'t str),
    /// A tag such as `!foo`, or `!` alone.
    Local(&'t str),
}

/// A scalar after go-yaml and before JSON.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    Int(i64),
    /// Above the range of `i64`.
    Unsigned(u64),
    Float(f64),
    Text(Cow<'t, str>),
}

/// Resolves a scalar. `plain` means that it was unquoted.
pub(super) fn resolve<'t>(
    text: Cow<'t, str>,
    plain: bool,
    tag: Tag<'_>,
) -> Result<Scalar<'t>, YamlErrorKind> {
    match tag {
        Tag::None if plain => resolve_plain(text),
        // go-yaml treats any value with an unknown tag as text.
        Tag::None | Tag::Str | Tag::Merge | Tag::Local(_) => Ok(Scalar::Text(text)),
        Tag::Binary => decode_binary(&text).map(|decoded| Scalar::Text(Cow::Owned(decoded))),
        Tag::Int | Tag::Float | Tag::Bool | Tag::Null => resolve_as(text, tag),
        Tag::OtherCore(name) => Err(YamlErrorKind::UnsupportedTag {
            tag: format!("!!{}", clip(name)),
            place: "on a single value",
        }),
    }
}

/// A value that must match its tag, quoted or not. An integer is valid for `!!float`,
/// unless it is above the signed range.
fn resolve_as<'t>(text: Cow<'t, str>, tag: Tag<'_>) -> Result<Scalar<'t>, YamlErrorKind> {
    let name = match tag {
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Bool => "!!bool",
        _ => "!!null",
    };
    match (tag, resolve_plain(text)?) {
        (Tag::Float, Scalar::Int(int)) => Ok(Scalar::Float(int as f64)),
        (Tag::Float, scalar @ Scalar::Float(_))
        | (Tag::Int, scalar @ (Scalar::Int(_) | Scalar::Unsigned(_)))
        | (Tag::Bool, scalar @ Scalar::Bool(_))
        | (Tag::Null, scalar @ Scalar::Null) => Ok(scalar),
        _ => Err(YamlErrorKind::TagMismatch { tag: name }),
    }
}

/// The first character decides what a plain scalar can be, as in go-yaml.
fn resolve_plain(text: Cow<'_, str>) -> Result<Scalar<'_>, YamlErrorKind> {
    let resolved = match text.as_bytes().first() {
        None => Some(Scalar::Null),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            word(&text)
        }
        Some(b'.') => match special_float(&text) {
            Some(float) => Some(float),
            None => point_float(&text)?,
        },
        Some(b'0'..=b'9' | b'+' | b'-') => match special_float(&text) {
            Some(float) => Some(float),
            None => number(&text)?,
        },
        Some(_) => None,
    };
    Ok(resolved.unwrap_or(Scalar::Text(text)))
}

fn word(text: &str) -> Option<Scalar<'static>> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ => return None,
    })
}

fn special_float(text: &str) -> Option<Scalar<'static>> {
    Some(Scalar::Float(match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => f64::INFINITY,
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY,
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        _ => return None,
    }))
}

/// Text that begins with a point is passed to Go's float parser unchanged, which allows an
/// underscore only between two digits.
fn point_float(text: &str) -> Result<Option<Scalar<'static>>, YamlErrorKind> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let well_placed = memchr::memchr_iter(b'_', bytes)
        .all(|at| digit(at.checked_sub(1)) && digit(at.checked_add(1)));
    if well_placed {
        float(&text.replace('_', ""))
    } else {
        Ok(None)
    }
}

/// Text that begins with a digit or a sign: without underscores, it is an integer, a float,
/// or text.
fn number(text: &str) -> Result<Option<Scalar<'static>>, YamlErrorKind> {
    let without: Cow<'_, str> = if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    };
    if let Some(integer) = integer(&without) {
        return Ok(Some(integer));
    }
    if let Some(float) = float(&without)? {
        return Ok(Some(float));
    }
    Ok(signed_binary(&without))
}

/// Go's integer syntax with the base in the text: `0x`, `0b`, `0o`, a leading
/// zero for octal. A sign is allowed up to the signed range.
fn integer(text: &str) -> Option<Scalar<'static>> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (digits, radix) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (unsigned.get(2..)?, 16),
        [b'0', b'b' | b'B', _, ..] => (unsigned.get(2..)?, 2),
        [b'0', b'o' | b'O', _, ..] => (unsigned.get(2..)?, 8),
        [b'0', _, ..] => (unsigned.get(1..)?, 8),
        _ => (unsigned, 10),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(int) => Some(Scalar::Int(int)),
        Err(_) if unsigned.len() == text.len() => Some(Scalar::Unsigned(magnitude)),
        Err(_) => None,
    }
}

/// A decimal float by go-yaml's pattern: digits with an optional point, or a point and
/// digits, and an optional exponent.
///
/// Difference from Kyverno: go-yaml keeps a number beyond 64-bit floats (`1e400`) as text,
/// which silently turns a comparison of numbers into one of texts. Here it is an error.
fn float(text: &str) -> Result<Option<Scalar<'static>>, YamlErrorKind> {
    if !is_decimal_float(text.as_bytes()) {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(Some(Scalar::Float(float))),
        _ => Err(YamlErrorKind::NumberOutOfRange),
    }
}

fn is_decimal_float(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"+").or(text.strip_prefix(b"-"));
    let (whole, rest) = take_digits(unsigned.unwrap_or(text));
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => take_digits(rest),
        _ => (0, rest),
    };
    let exponent = match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..] => {
            matches!(take_digits(digits), (1.., []))
        }
        _ => false,
    };
    whole + fraction > 0 && exponent
}

fn take_digits(text: &[u8]) -> (usize, &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count, text.get(count..).unwrap_or_default())
}

/// go-yaml's second attempt at binary digits allows a sign after `0b`: `0b-11` is -3.
fn signed_binary(text: &str) -> Option<Scalar<'static>> {
    let signed = text.strip_prefix("0b")?;
    i64::from_str_radix(signed, 2).ok().map(Scalar::Int)
}

impl Scalar<'_> {
    /// The value after the conversion through JSON text: a whole number within int64 is an
    /// integer, any other number a float (docs/spec/cli.md §8.3).
    pub(super) fn into_value(self) -> Result<TreeValue, YamlErrorKind> {
        Ok(match self {
            Scalar::Null => TreeValue::Null,
            Scalar::Bool(bool) => TreeValue::Bool(bool),
            Scalar::Int(int) => TreeValue::Int(int),
            Scalar::Unsigned(unsigned) => TreeValue::Float(unsigned as f64),
            Scalar::Float(float) if !float.is_finite() => return Err(YamlErrorKind::NotFinite),
            Scalar::Float(float) => match integral(float) {
                Some(int) => TreeValue::Int(int),
                None => TreeValue::Float(float),
            },
            Scalar::Text(text) => TreeValue::String(text.into()),
        })
    }

    /// The text of a map key (docs/spec/cli.md §8.3).
    pub(super) fn into_key(self) -> Result<Box<str>, YamlErrorKind> {
        Ok(match self {
            Scalar::Null => return Err(YamlErrorKind::NullKey),
            Scalar::Unsigned(_) => return Err(YamlErrorKind::KeyOutOfRange),
            Scalar::Bool(bool) => bool.to_string().into(),
            Scalar::Int(int) => int.to_string().into(),
            Scalar::Float(float) => float_key(float as f32).into(),
            Scalar::Text(text) => text.into(),
        })
    }
}

/// Go's shortest `%g` of a 32-bit float, with infinity and not-a-number spelled as in YAML.
fn float_key(float: f32) -> String {
    if float.is_nan() {
        return ".nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => float.to_string(),
    }
}

/// Decodes base64 like Go's standard decoder: padding is required, line ends are skipped,
/// bits after the last byte are ignored. Each byte that is not UTF-8 becomes U+FFFD, as in
/// Go's JSON writer.
fn decode_binary(text: &str) -> Result<String, YamlErrorKind> {
    let symbols: Vec<u8> = text
        .bytes()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let mut bytes = Vec::with_capacity(symbols.len() / 4 * 3);
    let mut groups = symbols.chunks(4).peekable();
    while let Some(group) = groups.next() {
        let last = groups.peek().is_none();
        decode_group(group, last, &mut bytes).ok_or(YamlErrorKind::InvalidBase64)?;
    }
    let mut decoded = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(decoded)
}

/// Four symbols give three bytes; only the last group may be padded.
fn decode_group(group: &[u8], last: bool, bytes: &mut Vec<u8>) -> Option<()> {
    let (symbols, count) = match group {
        [a, b, b'=', b'='] if last => ([*a, *b, b'A', b'A'], 1),
        [a, b, c, b'='] if last => ([*a, *b, *c, b'A'], 2),
        [a, b, c, d] => ([*a, *b, *c, *d], 3),
        _ => return None,
    };
    let mut bits = 0_u32;
    for symbol in symbols {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
    }
    bytes.extend(bits.to_be_bytes().iter().skip(1).take(count));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Result<TreeValue, YamlErrorKind> {
        resolve(Cow::Borrowed(text), true, Tag::None)?.into_value()
    }

    fn text(text: &str) -> TreeValue {
        TreeValue::String(text.into())
    }

    /// docs/spec/cli.md §8.3, row by row.
    #[test]
    fn plain_scalars_mean_what_go_yaml_says() {
        for word in "y Y yes Yes YES true True TRUE on On ON".split(' ') {
            assert_eq!(plain(word), Ok(TreeValue::Bool(true)), "{word}");
        }
        for word in "n N no No NO false False FALSE off Off OFF".split(' ') {
            assert_eq!(plain(word), Ok(TreeValue::Bool(false)), "{word}");
        }
        for word in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(plain(word), Ok(TreeValue::Null), "{word}");
        }
        for same in [
            "yES",
            "nULL",
            "tRUE",
            "oN",
            "nO",
            "1:30",
            "190:20:30",
            "1:30:00",
            "2024-01-31",
            "2001-01-01T00:00:00Z",
            "<<",
            "=",
            "abc",
            "-",
            "+",
            ".",
            "_1",
            "._5",
            ".5_",
            "0x",
            "0b2",
            "0o8",
            "1e",
            "e1",
            "1.2.3",
            "1Gi",
            "1_000m",
            "-0b2",
            "- 5",
            "+-5",
            "inf",
            "nan",
            "+.nan",
            "0x1p3",
            "0xFFFFFFFFFFFFFFFFFFFF",
        ] {
            assert_eq!(plain(same), Ok(text(same)), "{same}");
        }
    }

    /// docs/spec/cli.md §8.3; hostile rows 37 and 38.
    #[test]
    fn numbers_mean_what_go_yaml_and_the_json_trip_say() {
        let int = TreeValue::Int;
        for (written, expected) in [
            ("0", int(0)),
            ("-0", int(0)),
            ("0644", int(420)),
            ("0777", int(511)),
            ("-0644", int(-420)),
            ("0o777", int(511)),
            ("0O17", int(15)),
            ("0b11", int(3)),
            ("-0b11", int(-3)),
            ("0b-11", int(-3)),
            ("0x1F", int(31)),
            ("0X1f", int(31)),
            ("+0x1F", int(31)),
            ("1_000", int(1000)),
            ("1__0_", int(10)),
            ("0_7", int(7)),
            ("+1", int(1)),
            ("-12", int(-12)),
            ("08", int(8)),
            ("09", int(9)),
            ("0128", int(128)),
            ("1.", int(1)),
            ("1.0", int(1)),
            ("1e3", int(1000)),
            ("1E+3", int(1000)),
            (".5", TreeValue::Float(0.5)),
            ("+.5", TreeValue::Float(0.5)),
            (".5_0", TreeValue::Float(0.5)),
            ("1_0.5", TreeValue::Float(10.5)),
            ("1e-3", TreeValue::Float(0.001)),
            ("-0.0", int(0)),
            ("9223372036854775807", int(i64::MAX)),
            ("-9223372036854775808", int(i64::MIN)),
            (
                "9223372036854775808",
                TreeValue::Float(9_223_372_036_854_775_808.0),
            ),
            (
                "18446744073709551615",
                TreeValue::Float(18_446_744_073_709_551_615.0),
            ),
            (
                "18446744073709551616",
                TreeValue::Float(18_446_744_073_709_551_616.0),
            ),
            ("9223372036854774784.0", int(9_223_372_036_854_775_000)),
            ("1e18", int(1_000_000_000_000_000_000)),
            ("1e19", TreeValue::Float(1e19)),
            ("1e300", TreeValue::Float(1e300)),
        ] {
            assert_eq!(plain(written), Ok(expected), "{written}");
        }
    }

    /// docs/spec/cli.md §8.3; hostile row 40.
    #[test]
    fn numbers_that_json_cannot_hold_are_errors() {
        for written in [
            ".inf", ".Inf", ".INF", "-.inf", "-.Inf", "-.INF", "+.inf", "+.Inf", "+.INF", ".nan",
            ".NaN", ".NAN",
        ] {
            assert_eq!(plain(written), Err(YamlErrorKind::NotFinite), "{written}");
        }
        let digits = "9".repeat(400);
        for written in ["1e400", "-1e400", ".1e999", "1_0e400", &digits] {
            assert_eq!(
                plain(written),
                Err(YamlErrorKind::NumberOutOfRange),
                "{written}"
            );
        }
    }

    /// docs/spec/cli.md §8.3: quoted text and explicit tags.
    #[test]
    fn quotes_and_tags_are_honoured() {
        let read = |written: &'static str, plain, tag| {
            resolve(Cow::Borrowed(written), plain, tag)?.into_value()
        };
        for written in ["yes", "5", "", "~", ".inf", "<<"] {
            assert_eq!(read(written, false, Tag::None), Ok(text(written)));
            assert_eq!(read(written, true, Tag::Str), Ok(text(written)));
            assert_eq!(read(written, true, Tag::Local("!foo")), Ok(text(written)));
        }
        for (written, tag, expected) in [
            ("5", Tag::Int, TreeValue::Int(5)),
            ("0x10", Tag::Int, TreeValue::Int(16)),
            ("1", Tag::Float, TreeValue::Int(1)),
            ("1.5", Tag::Float, TreeValue::Float(1.5)),
            ("yes", Tag::Bool, TreeValue::Bool(true)),
            ("", Tag::Null, TreeValue::Null),
            ("aGk=", Tag::Binary, text("hi")),
        ] {
            assert_eq!(read(written, false, tag), Ok(expected.clone()), "{written}");
            assert_eq!(read(written, true, tag), Ok(expected), "{written}");
        }
        for (written, tag, name) in [
            ("x", Tag::Int, "!!int"),
            ("1.5", Tag::Int, "!!int"),
            ("", Tag::Int, "!!int"),
            ("x", Tag::Float, "!!float"),
            ("18446744073709551615", Tag::Float, "!!float"),
            ("1", Tag::Bool, "!!bool"),
            ("x", Tag::Null, "!!null"),
        ] {
            assert_eq!(
                read(written, true, tag),
                Err(YamlErrorKind::TagMismatch { tag: name }),
                "{written}"
            );
        }
        assert!(matches!(
            read("2001-01-01", true, Tag::OtherCore("timestamp")),
            Err(YamlErrorKind::UnsupportedTag { .. })
        ));
    }

    /// RFC 4648, section 10, and the rules of Go's standard decoder.
    #[test]
    fn binary_is_base64() {
        for (encoded, expected) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9v\nYmFy\n", "foobar"),
            ("Zh==", "f"),
            ("/w==", "\u{FFFD}"),
            ("8J8=", "\u{FFFD}\u{FFFD}"),
        ] {
            assert_eq!(decode_binary(encoded).as_deref(), Ok(expected), "{encoded}");
        }
        for encoded in [
            "Z", "Zg", "Zg=", "Zg==Zg==", "Zm 9v", "====", "Z===", "Zm-_",
        ] {
            assert_eq!(
                decode_binary(encoded),
                Err(YamlErrorKind::InvalidBase64),
                "{encoded}"
            );
        }
    }

    /// docs/spec/cli.md §8.3, on map keys; hostile row 42.
    #[test]
    fn keys_become_text() {
        let key =
            |written: &'static str| resolve(Cow::Borrowed(written), true, Tag::None)?.into_key();
        for (written, expected) in [
            ("a", "a"),
            ("1", "1"),
            ("0x1F", "31"),
            ("-0644", "-420"),
            ("on", "true"),
            ("y", "true"),
            ("No", "false"),
            ("1.0", "1"),
            ("1.5", "1.5"),
            ("1e3", "1000"),
            ("100000.0", "100000"),
            ("1e7", "1e+07"),
            ("1234567.0", "1.234567e+06"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("0.1", "0.1"),
            ("1e30", "1e+30"),
            ("-0.0", "-0"),
            ("1e300", ".inf"),
            (".inf", ".inf"),
            ("-.inf", "-.inf"),
            (".nan", ".nan"),
            ("2024-01-31", "2024-01-31"),
        ] {
            assert_eq!(key(written).as_deref(), Ok(expected), "{written}");
        }
        assert_eq!(key(""), Err(YamlErrorKind::NullKey));
        assert_eq!(key("~"), Err(YamlErrorKind::NullKey));
        assert_eq!(
            key("18446744073709551615"),
            Err(YamlErrorKind::KeyOutOfRange)
        );
    }
}
