//! Lexer of CEL (docs/spec/cel.md §3.7).

use crate::tree::Span;

use super::SyntaxError;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Ident(String),
    Int(u64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    /// An operator or a bracket, as written.
    Mark(&'static str),
    End,
}

/// A token and its location.
#[derive(Debug, Clone)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) span: Span,
}

/// Ordered so that no entry is preceded by one of its prefixes.
const MARKS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

/// Splits a text into tokens, followed by [`Token::End`].
pub(super) fn lex(text: &str) -> Result<Vec<Lexeme>, SyntaxError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut lexemes = Vec::new();
    loop {
        lexer.skip_blanks();
        let start = lexer.at;
        let last = lexemes.last().map(|lexeme: &Lexeme| &lexeme.token);
        let is_field = matches!(last, Some(Token::Mark("." | "?")));
        let quoted = match is_field {
            true => lexer.quoted_field(),
            false => None,
        };
        let token = match quoted {
            Some(field) => field,
            None => lexer.token()?,
        };
        let is_end = token == Token::End;
        lexemes.push(Lexeme {
            token,
            span: span(start, lexer.at),
        });
        if is_end {
            return Ok(lexemes);
        }
    }
}

fn span(start: usize, end: usize) -> Span {
    Span {
        start: start as u32,
        end: end as u32,
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn error<T>(&self, start: usize, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError::new(start, message))
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// The name of a field in back quotes.
    fn quoted_field(&mut self) -> Option<Token> {
        let (name, _) = self.rest().strip_prefix('`')?.split_once('`')?;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
        if name.is_empty() || !name.chars().all(is_allowed) {
            return None;
        }
        self.at += name.len() + 2;
        Some(Token::Ident(name.to_owned()))
    }

    fn token(&mut self) -> Result<Token, SyntaxError> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let Some(&first) = bytes.first() else {
            return Ok(Token::End);
        };
        if let Some((prefix, quote)) = string_start(rest) {
            return self.string(prefix, quote);
        }
        if first.is_ascii_alphabetic() || first == b'_' {
            let length = bytes
                .iter()
                .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
                .unwrap_or(bytes.len());
            self.at += length;
            return Ok(Token::Ident(rest[..length].to_owned()));
        }
        let fraction = first == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit);
        if first.is_ascii_digit() || fraction {
            return self.number();
        }
        if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            self.at += mark.len();
            return Ok(Token::Mark(mark));
        }
        let found = rest.chars().next().unwrap_or(' ');
        self.error(
            self.at,
            format!("Syntax error: token recognition error at: '{found}'"),
        )
    }

    fn number(&mut self) -> Result<Token, SyntaxError> {
        let start = self.at;
        let bytes = self.rest().as_bytes();
        let digits = |from: usize, is_digit: fn(&u8) -> bool| {
            bytes
                .get(from..)
                .unwrap_or_default()
                .iter()
                .position(|byte| !is_digit(byte))
                .map_or(bytes.len(), |length| from + length)
        };
        let (mut end, radix, is_double);
        if bytes.starts_with(b"0x") || bytes.starts_with(b"0X") {
            end = digits(2, u8::is_ascii_hexdigit);
            (radix, is_double) = (16, false);
        } else {
            end = digits(0, u8::is_ascii_digit);
            let whole = end;
            if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
                end = digits(end + 1, u8::is_ascii_digit);
            }
            if matches!(bytes.get(end), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
                if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                    end = digits(end + 1 + sign, u8::is_ascii_digit);
                }
            }
            (radix, is_double) = (10, end > whole);
        }
        let text = self.text.get(start..start + end).unwrap_or("");
        let is_unsigned = !is_double && matches!(bytes.get(end), Some(b'u' | b'U'));
        self.at += end + usize::from(is_unsigned);
        if is_double {
            return match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Token::Double(number)),
                _ => self.error(start, "invalid double literal"),
            };
        }
        let digits = if radix == 16 { &text[2..] } else { text };
        match (u64::from_str_radix(digits, radix), is_unsigned) {
            (Ok(number), true) => Ok(Token::Uint(number)),
            (Ok(number), false) if number <= 1 << 63 => Ok(Token::Int(number)),
            (_, true) => self.error(start, "invalid uint literal"),
            (_, false) => self.error(start, "invalid int literal"),
        }
    }

    fn string(&mut self, prefix: &str, quote: &str) -> Result<Token, SyntaxError> {
        let start = self.at;
        let is_raw = prefix.contains(['r', 'R']);
        let is_bytes = prefix.contains(['b', 'B']);
        self.at += prefix.len() + quote.len();
        let body_start = self.at;
        let body = self.rest();
        let mut end = None;
        let mut characters = body.char_indices();
        while let Some((at, character)) = characters.next() {
            if body[at..].starts_with(quote) {
                end = Some(at);
                break;
            }
            match character {
                '\\' if !is_raw => {
                    characters.next();
                }
                '\n' | '\r' if quote.len() == 1 => break,
                _ => {}
            }
        }
        let Some(end) = end else {
            let shown: String = self.text[start..].chars().take(24).collect();
            return self.error(
                start,
                format!("Syntax error: token recognition error at: '{shown}'"),
            );
        };
        self.at += end + quote.len();
        let body = &body[..end];
        let mut text = String::new();
        let mut bytes = Vec::new();
        let mut rest = body;
        while let Some(character) = rest.chars().next() {
            if character != '\\' || is_raw {
                // As in cel-go, which normalises line ends.
                let (character, length) = match character {
                    '\r' if rest.starts_with("\r\n") => ('\n', 2),
                    '\r' => ('\n', 1),
                    other => (other, other.len_utf8()),
                };
                rest = &rest[length..];
                text.push(character);
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            let at = body_start + (body.len() - rest.len());
            let Some((value, length, is_octet)) = escape(&rest[1..], is_bytes) else {
                return self.error(
                    at,
                    "Syntax error: invalid escape sequence: write the backslash as `\\\\`, or the text as r'…'",
                );
            };
            rest = &rest[1 + length..];
            if is_octet && is_bytes {
                bytes.push(value as u8);
            } else {
                let Some(character) = char::from_u32(value) else {
                    return self.error(at, "Syntax error: invalid unicode code point");
                };
                text.push(character);
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        Ok(if is_bytes {
            Token::Bytes(bytes)
        } else {
            Token::String(text)
        })
    }
}

/// Prefix and quote of the string that begins here, if any.
fn string_start(text: &str) -> Option<(&str, &'static str)> {
    let quote_at = text
        .bytes()
        .take(3)
        .position(|byte| matches!(byte, b'"' | b'\''))?;
    let prefix = text.get(..quote_at)?;
    let known = ["", "r", "b", "rb", "br"];
    if !known.iter().any(|known| prefix.eq_ignore_ascii_case(known)) {
        return None;
    }
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let quote = quotes
        .iter()
        .find(|quote| text[quote_at..].starts_with(**quote))?;
    Some((prefix, quote))
}

/// Meaning of the characters after a backslash: their code, their number, and whether the
/// code is an octet.
fn escape(text: &str, is_bytes: bool) -> Option<(u32, usize, bool)> {
    let digits = |from: usize, count: usize, radix: u32| {
        let digits = text.get(from..from + count)?;
        let valid = digits.chars().all(|digit| digit.is_digit(radix));
        valid.then(|| u32::from_str_radix(digits, radix).ok())?
    };
    let simple = |character: char| Some((character as u32, 1, false));
    match text.chars().next()? {
        'a' => simple('\u{7}'),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\u{b}'),
        same @ ('\\' | '?' | '"' | '\'' | '`') => simple(same),
        'x' | 'X' => Some((digits(1, 2, 16)?, 3, true)),
        'u' if !is_bytes => Some((digits(1, 4, 16)?, 5, false)),
        'U' if !is_bytes => Some((digits(1, 8, 16)?, 9, false)),
        '0'..='3' => Some((digits(0, 3, 8)?, 3, true)),
        _ => None,
    }
}
