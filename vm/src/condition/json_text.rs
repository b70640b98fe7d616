//! Strings that are the JSON text of a list of strings (docs/spec/conditions.md §3.3).
//!
//! Determines whether a text is JSON according to Go's `encoding/json`, and iterates over
//! its strings. The text is read twice: once to validate it, then string by string, without
//! storing them.

use std::borrow::Cow;

use smallvec::SmallVec;

/// JSON content of a text.
#[derive(Debug, Clone)]
pub(super) enum JsonText<'t> {
    /// Not JSON.
    Invalid,
    /// JSON, but not a list of strings.
    Other,
    /// A list whose items are strings or null, or null itself.
    Strings(Strings<'t>),
}

impl<'t> JsonText<'t> {
    /// Examines a whole text.
    pub(super) fn new(text: &'t [u8]) -> JsonText<'t> {
        let mut reader = Reader {
            text,
            at: 0,
            open: SmallVec::new(),
            has_others: false,
        };
        match reader.document() {
            None => JsonText::Invalid,
            Some(()) if reader.has_others => JsonText::Other,
            Some(()) => JsonText::Strings(Strings { rest: text }),
        }
    }
}

/// Iterator over the strings of a validated text; null counts as the empty string.
#[derive(Debug, Clone)]
pub(super) struct Strings<'t> {
    rest: &'t [u8],
}

impl Strings<'_> {
    /// Number of bytes left to scan.
    pub(super) fn bytes_left(&self) -> usize {
        self.rest.len()
    }
}

impl<'t> Iterator for Strings<'t> {
    type Item = Cow<'t, [u8]>;

    fn next(&mut self) -> Option<Cow<'t, [u8]>> {
        // Strings are separated by white space, commas and the opening bracket. A null in
        // place of the whole list is not an item.
        let (before, rest) = match self.rest.iter().position(|byte| b"\"n]".contains(byte)) {
            Some(at) => self.rest.split_at_checked(at)?,
            None => return None,
        };
        match rest.split_first()? {
            (b'"', inner) => {
                let end = string_end(inner)?;
                let (string, rest) = inner.split_at_checked(end)?;
                self.rest = rest.get(1..).unwrap_or_default();
                Some(unescaped(string))
            }
            (b'n', _) if before.contains(&b'[') || before.contains(&b',') => {
                self.rest = rest.get(4..).unwrap_or_default();
                Some(Cow::Borrowed(b""))
            }
            _ => None,
        }
    }
}

/// Position of the quote that ends a string, searched from after the opening one.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        let found = memchr::memchr2(b'"', b'\\', rest)?;
        match rest.get(found)? {
            b'"' => return Some(at + found),
            _ => at += found + 2,
        }
    }
}

/// Unescapes a validated string; an unpaired surrogate becomes U+FFFD, as in Go.
fn unescaped(string: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', string).is_none() {
        return Cow::Borrowed(string);
    }
    let mut out = Vec::with_capacity(string.len());
    let mut rest = string;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        let escape = rest.get(at + 1..).unwrap_or_default();
        let (letter, length) = escaped_letter(escape);
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        rest = escape.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

/// Character of an escape, and the number of bytes after its backslash.
fn escaped_letter(escape: &[u8]) -> (char, usize) {
    let letter = match escape.first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode_escape(escape),
        Some(&other) => char::from(other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (letter, 1)
}

fn unicode_escape(escape: &[u8]) -> (char, usize) {
    let first = hex_unit(escape.get(1..)).unwrap_or(0xFFFD);
    let second = match escape.get(5..) {
        Some([b'\\', b'u', digits @ ..]) => hex_unit(Some(digits)),
        _ => None,
    };
    if let Some(letter) = char::from_u32(u32::from(first)) {
        return (letter, 5);
    }
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match pair {
        Some(letter) => (letter, 11),
        None => (char::REPLACEMENT_CHARACTER, 5),
    }
}

/// Four hexadecimal digits.
fn hex_unit(text: Option<&[u8]>) -> Option<u16> {
    let digits = text?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(unit << 4 | digit as u16)
    })
}

/// Maximum nesting of containers in Go's JSON.
const MAX_DEPTH: usize = 10_000;

/// An open container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    List,
    Map,
}

/// Validates a text from left to right.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    open: SmallVec<[Open; 32]>,
    /// Whether a value was found that is not part of a list of strings.
    has_others: bool,
}

/// What is allowed at the current position.
enum Next {
    /// A value.
    Value,
    /// The continuation after a value: a comma, the end of a container or of the text.
    Behind,
}

impl Reader<'_> {
    /// Reads the whole text; `None` if it is not JSON.
    fn document(&mut self) -> Option<()> {
        let mut next = Next::Value;
        loop {
            next = match next {
                Next::Value => self.value()?,
                Next::Behind => match self.open.last() {
                    Some(&container) => self.behind(container)?,
                    None => return self.peek().is_none().then_some(()),
                },
            };
        }
    }

    /// The next byte that is not white space, without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += rest.iter().take_while(is_blank).count();
        self.text.get(self.at).copied()
    }

    /// Reads a scalar, or the start of a container.
    fn value(&mut self) -> Option<Next> {
        let first = self.peek()?;
        let is_root_list = first == b'[' && self.open.is_empty();
        let is_item = first == b'"' && self.open.as_slice() == [Open::List];
        let is_null = first == b'n' && self.open.len() <= 1;
        self.has_others |= !(is_root_list || is_item || is_null);
        match first {
            b'"' => self.string()?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            b'[' => return self.begin(Open::List, b']'),
            b'{' => return self.begin(Open::Map, b'}'),
            _ => self.number()?,
        }
        Some(Next::Behind)
    }

    fn begin(&mut self, container: Open, end: u8) -> Option<Next> {
        self.at += 1;
        self.open.push(container);
        if self.open.len() > MAX_DEPTH {
            return None;
        }
        if self.peek()? == end {
            return Some(Next::Behind);
        }
        self.before_value(container)
    }

    /// Reads what precedes a value: nothing in a list, the key in a map.
    fn before_value(&mut self, container: Open) -> Option<Next> {
        if container == Open::Map {
            self.peek().filter(|&byte| byte == b'"')?;
            self.string()?;
            self.peek().filter(|&byte| byte == b':')?;
            self.at += 1;
        }
        Some(Next::Value)
    }

    /// Continues after a value in a container, or in an empty container.
    fn behind(&mut self, container: Open) -> Option<Next> {
        let found = self.peek()?;
        self.at += 1;
        match (container, found) {
            (_, b',') => self.before_value(container),
            (Open::List, b']') | (Open::Map, b'}') => {
                self.open.pop();
                Some(Next::Behind)
            }
            _ => None,
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        rest.starts_with(word).then(|| self.at += word.len())
    }

    fn string(&mut self) -> Option<()> {
        let inner = self.text.get(self.at + 1..)?;
        let end = string_end(inner)?;
        let string = inner.get(..end)?;
        self.at += end + 2;
        let mut rest = string;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            let escape = rest.get(at + 1..)?;
            let length = match escape.first()? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 1,
                b'u' => hex_unit(escape.get(1..)).map(|_| 5)?,
                _ => return None,
            };
            rest = escape.get(length..)?;
        }
        string.iter().all(|&byte| byte >= b' ').then_some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.text.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.text.get(self.at)? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The strings, `None` for other JSON, an error for non-JSON.
    fn read(text: &str) -> Result<Option<Vec<String>>, ()> {
        match JsonText::new(text.as_bytes()) {
            JsonText::Invalid => Err(()),
            JsonText::Other => Ok(None),
            JsonText::Strings(strings) => Ok(Some(
                strings
                    .map(|text| String::from_utf8(text.into_owned()).unwrap())
                    .collect(),
            )),
        }
    }

    #[test]
    fn lists_of_strings_are_read() {
        let rows: &[(&str, &[&str])] = &[
            ("[]", &[]),
            ("null", &[]),
            (" null ", &[]),
            (r#"["a"]"#, &["a"]),
            (" [ \"a\" ,\n\"b\"\t] ", &["a", "b"]),
            (r#"["a",null]"#, &["a", ""]),
            ("[null]", &[""]),
            (r#"[null,"n","]",null]"#, &["", "n", "]", ""]),
            (r#"["","[,n"]"#, &["", "[,n"]),
            (r#"["\"\\\/\b\f\n\r\t"]"#, &["\"\\/\u{8}\u{c}\n\r\t"]),
            (r#"["a\u00e9\ud83d\ude00z"]"#, &["aé😀z"]),
            // Unpaired surrogates, as replaced by Go.
            (
                r#"["\ud83d","\ude00x","\ud83d\u0041"]"#,
                &["\u{FFFD}", "\u{FFFD}x", "\u{FFFD}A"],
            ),
        ];
        for (text, expected) in rows {
            let expected = expected.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(read(text), Ok(Some(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_json_agrees_with_another_reader() {
        let texts = [
            "",
            " ",
            "5",
            "-5",
            "-0",
            "00",
            "05",
            "+5",
            "5.",
            ".5",
            "5.0",
            "1e3",
            "1E+3",
            "1e",
            "1e400",
            "-",
            "true",
            "True",
            "truex",
            "nul",
            "nullx",
            "{}",
            "{",
            "}",
            "[",
            "]",
            "[]]",
            "[,]",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\":1,\"b\":[{}]}",
            "{1:2}",
            "{\"a\" : [ ] }",
            "[[\"a\"]]",
            "[{}]",
            "[\"a\",1]",
            "\"a\"",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\u{1}\"",
            "\"\t\"",
            "[\"a\"] x",
            "[\"a\\\"]",
            "[\"x\"",
            "{]",
            "[}",
            "[null,[null]]",
            "a",
            "1-10",
            "\u{a0}1",
        ];
        for text in texts {
            let other: Result<serde_json::Value, _> = serde_json::from_str(text);
            // A number beyond all floats is valid JSON for Go, and an error for serde_json.
            let is_json = other.is_ok() || text == "1e400";
            let expected = if is_json { Ok(None) } else { Err(()) };
            let expected = if text == "[]" {
                Ok(Some(Vec::new()))
            } else {
                expected
            };
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn depth_is_bounded_as_in_go() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(read(&nested(MAX_DEPTH)), Ok(None));
        assert_eq!(read(&nested(MAX_DEPTH + 1)), Err(()));
    }
}
