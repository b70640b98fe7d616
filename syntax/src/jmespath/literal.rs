//! JSON inside an expression: between backticks, and quoted identifiers.
//!
//! Strict JSON with the error texts of Go's `encoding/json` (docs/spec/jmespath.md §2). All
//! numbers become floats. No leniency, no locations inside the literal.

use crate::tree::{Member, Span, Tree, TreeValue};

use super::MAX_DEPTH;

/// Parses one JSON value. Every value gets the location `span`; `depth` is the remaining
/// nesting of lists and maps.
pub(super) fn parse_json(text: &str, span: Span, depth: usize) -> Result<TreeValue, String> {
    let mut reader = Reader {
        text,
        position: 0,
        span,
        out_of_range: None,
    };
    reader.skip_space();
    let value = reader.value(depth)?;
    reader.skip_space();
    if let Some(byte) = reader.peek() {
        return Err(invalid(byte, "after top-level value"));
    }
    // Go validates the whole text before it converts numbers.
    match reader.out_of_range {
        Some(message) => Err(message),
        None => Ok(value),
    }
}

struct Reader<'t> {
    text: &'t str,
    position: usize,
    span: Span,
    /// Message for the first number out of range.
    out_of_range: Option<String>,
}

const END: &str = "unexpected end of JSON input";

/// Go's text for an unexpected byte.
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

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or(END)?;
        self.position += 1;
        Ok(byte)
    }

    /// Next byte of a word, number or escape. After the end, Go's scanner reads a space and
    /// reports that.
    fn next_or_blank(&mut self) -> u8 {
        self.next().unwrap_or(b' ')
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    /// Next byte that is not white space.
    fn next_visible(&mut self) -> Result<u8, String> {
        self.skip_space();
        self.next()
    }

    fn value(&mut self, depth: usize) -> Result<TreeValue, String> {
        match self.next()? {
            b'{' => self.map(depth),
            b'[' => self.list(depth),
            b'"' => Ok(TreeValue::String(self.string()?.into())),
            b't' => self.word("true", TreeValue::Bool(true)),
            b'f' => self.word("false", TreeValue::Bool(false)),
            b'n' => self.word("null", TreeValue::Null),
            byte @ (b'-' | b'0'..=b'9') => self.number(byte),
            byte => Err(invalid(byte, "looking for beginning of value")),
        }
    }

    fn word(&mut self, word: &str, value: TreeValue) -> Result<TreeValue, String> {
        for expected in word.bytes().skip(1) {
            let byte = self.next_or_blank();
            if byte != expected {
                let expected = char::from(expected);
                let place = format!("in literal {word} (expecting '{expected}')");
                return Err(invalid(byte, &place));
            }
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<TreeValue, String> {
        let depth = deeper(depth)?;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.position += 1;
            return Ok(TreeValue::List(items));
        }
        loop {
            self.skip_space();
            items.push(Tree::new(self.value(depth)?, self.span));
            match self.next_visible()? {
                b',' => {}
                b']' => return Ok(TreeValue::List(items)),
                byte => return Err(invalid(byte, "after array element")),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<TreeValue, String> {
        let depth = deeper(depth)?;
        let mut members = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.position += 1;
            return Ok(TreeValue::Map(members));
        }
        loop {
            let member = self.member(depth)?;
            members.push(member);
            match self.next_visible()? {
                b',' => {}
                b'}' => return Ok(TreeValue::Map(last_wins(members))),
                byte => return Err(invalid(byte, "after object key:value pair")),
            }
        }
    }

    fn member(&mut self, depth: usize) -> Result<Member, String> {
        match self.next_visible()? {
            b'"' => {}
            byte => return Err(invalid(byte, "looking for beginning of object key string")),
        }
        let key = self.string()?.into();
        match self.next_visible()? {
            b':' => {}
            byte => return Err(invalid(byte, "after object key")),
        }
        self.skip_space();
        let value = self.value(depth)?;
        Ok(Member {
            key,
            key_span: self.span,
            value: Tree::new(value, self.span),
        })
    }

    /// Rest of a number whose first byte has been consumed.
    fn number(&mut self, first: u8) -> Result<TreeValue, String> {
        let start = self.position - 1;
        let first = if first == b'-' {
            self.digit("in numeric literal")?
        } else {
            first
        };
        if first != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.position += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.position += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        let text = self.text.get(start..self.position).unwrap_or_default();
        let number: f64 = text.parse().unwrap_or(f64::INFINITY);
        if number.is_infinite() && self.out_of_range.is_none() {
            self.out_of_range = Some(format!(
                "json: cannot unmarshal number {text} into Go value of type float64"
            ));
        }
        Ok(TreeValue::Float(number))
    }

    fn digit(&mut self, place: &str) -> Result<u8, String> {
        match self.next_or_blank() {
            byte @ b'0'..=b'9' => Ok(byte),
            byte => Err(invalid(byte, place)),
        }
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
    }

    /// Rest of a string whose opening quote has been consumed.
    fn string(&mut self) -> Result<String, String> {
        let mut decoded = String::new();
        loop {
            let start = self.position;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.position += 1;
            }
            decoded.push_str(self.text.get(start..self.position).unwrap_or_default());
            match self.next()? {
                b'"' => return Ok(decoded),
                b'\\' => decoded.push(self.escape()?),
                byte => return Err(invalid(byte, "in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        Ok(match self.next_or_blank() {
            byte @ (b'"' | b'\\' | b'/') => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            byte => return Err(invalid(byte, "in string escape code")),
        })
    }

    /// Character of `\uXXXX`, or of a surrogate pair; an unpaired surrogate is U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, String> {
        let unit = self.hex()?;
        let rest = self.text.get(self.position..).unwrap_or_default();
        if (0xd800..0xdc00).contains(&unit) && rest.starts_with("\\u") {
            let before = self.position;
            self.position += 2;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.position = before;
        }
        Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut unit = 0;
        for _ in 0..4 {
            let byte = self.next()?;
            let digit = char::from(byte)
                .to_digit(16)
                .ok_or_else(|| invalid(byte, r"in \u hexadecimal character escape"))?;
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }
}

fn deeper(depth: usize) -> Result<usize, String> {
    depth
        .checked_sub(1)
        .ok_or_else(|| format!("expression is nested more than {MAX_DEPTH} levels deep"))
}

/// Keeps the last value of each key, at the position of the first.
fn last_wins(members: Vec<Member>) -> Vec<Member> {
    let mut places = std::collections::HashMap::new();
    let mut kept: Vec<Member> = Vec::new();
    for member in members {
        match places
            .get(&member.key)
            .and_then(|&place: &usize| kept.get_mut(place))
        {
            Some(first) => *first = member,
            None => {
                places.insert(member.key.clone(), kept.len());
                kept.push(member);
            }
        }
    }
    kept
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
