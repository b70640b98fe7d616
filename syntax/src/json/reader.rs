//! A pull reader: each call returns one token with its place; the reader keeps a stack of
//! its own.

use std::borrow::Cow;

use crate::tree::Span;

/// The longest key, in bytes, that readers of YAML accept as one.
const YAML_KEY_BYTES: usize = 1000;

/// A token of a JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'t> {
    /// `{`
    BeginMap,
    /// `[`
    BeginList,
    /// `}` or `]`
    End,
    /// A key, with the colon that follows it.
    Key(Cow<'t, str>),
    /// A string.
    String(Cow<'t, str>),
    /// A number as it is written.
    Number(&'t str),
    /// `true` or `false`
    Bool(bool),
    /// `null`
    Null,
}

/// What a text has in place of what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The offset of the unexpected byte; the length of the text if it ended too early.
    pub offset: usize,
    /// What was expected there.
    pub expected: Expected,
}

/// What can be expected in a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The first byte of a value.
    Value,
    /// The quote of a key.
    Key,
    /// The colon after a key.
    Colon,
    /// A comma or the end of a map.
    MapEnd,
    /// A comma or the end of a list.
    ListEnd,
    /// The end of the text.
    TextEnd,
    /// A character of a string.
    StringCharacter,
    /// A character after a backslash.
    Escape,
    /// A digit of `\uXXXX`.
    HexDigit,
    /// A letter of a word such as `true`.
    Letter {
        /// The word.
        word: &'static str,
        /// The letter.
        letter: char,
    },
    /// The first digit of a number.
    Digit,
    /// The first digit after a point.
    FractionDigit,
    /// The first digit of an exponent.
    ExponentDigit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    List,
    Map,
}

/// What the next token can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value, or the end of a list without items.
    FirstItem,
    Key,
    /// A key, or the end of a map without members.
    FirstKey,
    /// A comma or an end.
    AfterValue,
}

/// Returns the tokens of JSON values one after another.
#[derive(Debug, Clone)]
pub struct Reader<'t> {
    text: &'t str,
    at: usize,
    start: usize,
    open: Vec<Container>,
    next: Next,
    is_yaml: bool,
}

impl<'t> Reader<'t> {
    /// A reader at the beginning of a text.
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            start: 0,
            open: Vec::new(),
            next: Next::Value,
            is_yaml: true,
        }
    }

    /// The number of maps and lists around the current place.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The place of the last token, without the colon of a key.
    pub fn span(&self) -> Span {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span {
            start: offset(self.start),
            end: offset(self.at),
        }
    }

    /// Whether all tokens so far mean the same to readers of YAML, which accept no
    /// surrogate pairs, and no keys that are long or not on one line with their colon.
    pub fn is_yaml(&self) -> bool {
        self.is_yaml
    }

    /// Whether only white space follows. Skips the white space.
    pub fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at >= self.text.len()
    }

    /// Checks that only white space follows.
    ///
    /// # Errors
    /// The place of whatever else follows.
    pub fn end(&mut self) -> Result<(), Fault> {
        match self.is_at_end() {
            true => Ok(()),
            false => self.expect(Expected::TextEnd),
        }
    }

    /// The next token. After the last token of a value (at depth 0), the next value of a
    /// stream begins.
    ///
    /// # Errors
    /// What was expected, and where.
    pub fn token(&mut self) -> Result<Token<'t>, Fault> {
        self.skip_colon();
        loop {
            self.skip_space();
            self.start = self.at;
            let byte = self.peek();
            match (self.next, self.open.last().copied()) {
                (Next::FirstItem, _) if byte == Some(b']') => return Ok(self.close()),
                (Next::FirstKey, _) if byte == Some(b'}') => return Ok(self.close()),
                (Next::FirstKey | Next::Key, _) => return self.key(),
                (Next::AfterValue, Some(container)) => match (container, byte) {
                    (Container::List, Some(b',')) => self.next = Next::Value,
                    (Container::Map, Some(b',')) => self.next = Next::Key,
                    (Container::List, Some(b']')) | (Container::Map, Some(b'}')) => {
                        return Ok(self.close());
                    }
                    (Container::List, _) => return self.expect(Expected::ListEnd),
                    (Container::Map, _) => return self.expect(Expected::MapEnd),
                },
                (Next::AfterValue | Next::Value | Next::FirstItem, _) => return self.value(),
            }
            self.at += 1;
        }
    }

    /// Skips a value, checking its grammar.
    ///
    /// # Errors
    /// What was expected, and where.
    pub fn skip_value(&mut self) -> Result<(), Fault> {
        let outside = self.depth();
        loop {
            self.token()?;
            if self.depth() == outside {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect<T>(&self, expected: Expected) -> Result<T, Fault> {
        Err(Fault {
            offset: self.at.min(self.text.len()),
            expected,
        })
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips the colon that was checked when its key was read.
    fn skip_colon(&mut self) {
        if self.next == Next::Value && self.open.last() == Some(&Container::Map) {
            self.skip_space();
            self.at += 1;
        }
    }

    fn open(&mut self, container: Container) -> Token<'t> {
        self.at += 1;
        self.open.push(container);
        match container {
            Container::List => {
                self.next = Next::FirstItem;
                Token::BeginList
            }
            Container::Map => {
                self.next = Next::FirstKey;
                Token::BeginMap
            }
        }
    }

    fn close(&mut self) -> Token<'t> {
        self.at += 1;
        self.open.pop();
        self.next = Next::AfterValue;
        Token::End
    }

    fn value(&mut self) -> Result<Token<'t>, Fault> {
        let token = match self.peek() {
            Some(b'{') => return Ok(self.open(Container::Map)),
            Some(b'[') => return Ok(self.open(Container::List)),
            Some(b'"') => Token::String(self.string()?),
            Some(b't') => self.word("true", Token::Bool(true))?,
            Some(b'f') => self.word("false", Token::Bool(false))?,
            Some(b'n') => self.word("null", Token::Null)?,
            Some(b'-' | b'0'..=b'9') => Token::Number(self.number()?),
            _ => return self.expect(Expected::Value),
        };
        self.next = Next::AfterValue;
        Ok(token)
    }

    /// Reads a key, and looks for the colon after it.
    fn key(&mut self) -> Result<Token<'t>, Fault> {
        if self.peek() != Some(b'"') {
            return self.expect(Expected::Key);
        }
        let key = self.string()?;
        let end = self.at;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.expect(Expected::Colon);
        }
        let between = self.text.get(end..self.at).unwrap_or_default();
        self.is_yaml &= self.at - self.start <= YAML_KEY_BYTES && !between.contains(['\n', '\r']);
        // The place is that of the key alone.
        self.at = end;
        self.next = Next::Value;
        Ok(Token::Key(key))
    }

    fn word(&mut self, word: &'static str, token: Token<'t>) -> Result<Token<'t>, Fault> {
        for letter in word.chars() {
            if self.peek().map(char::from) != Some(letter) {
                return self.expect(Expected::Letter { word, letter });
            }
            self.at += 1;
        }
        Ok(token)
    }

    fn number(&mut self) -> Result<&'t str, Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits(Expected::Digit)?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits(Expected::FractionDigit)?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits(Expected::ExponentDigit)?;
        }
        Ok(self.text.get(self.start..self.at).unwrap_or_default())
    }

    /// Skips digits, at least one.
    fn digits(&mut self, expected: Expected) -> Result<(), Fault> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.expect(expected);
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Fault> {
        self.at += 1;
        let mut decoded = Cow::Borrowed("");
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let is_stop = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
            let length = rest.iter().position(is_stop).unwrap_or(rest.len());
            let plain = self.text.get(self.at..self.at + length).unwrap_or_default();
            match decoded.is_empty() {
                true => decoded = Cow::Borrowed(plain),
                false => decoded.to_mut().push_str(plain),
            }
            self.at += length;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => {
                    self.at += 1;
                    let character = self.escape()?;
                    decoded.to_mut().push(character);
                }
                _ => return self.expect(Expected::StringCharacter),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return self.expect(Expected::Escape),
        };
        self.at += 1;
        Ok(character)
    }

    /// The character of `\uXXXX`, or of two of them for a surrogate pair; half a pair is
    /// U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, Fault> {
        let unit = self.hex()?;
        self.is_yaml &= !(0xd800..0xe000).contains(&unit);
        let rest = self.text.get(self.at..).unwrap_or_default();
        if (0xd800..0xdc00).contains(&unit) && rest.starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return self.expect(Expected::HexDigit);
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }
}
