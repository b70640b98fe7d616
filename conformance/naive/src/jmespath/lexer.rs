//! Tokens (docs/spec/jmespath.md §2).

use serde_json::Value;

use crate::failure::UNFIXED;
use crate::value::{parse_json, through_json};

/// A token; texts are decoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Unknown,
    Star,
    Dot,
    Filter,
    Flatten,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Or,
    Pipe,
    Number(String),
    Identifier(String),
    Quoted(String),
    Comma,
    Colon,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Literal(Value),
    Text(String),
    Current,
    Reference,
    And,
    Not,
    End,
}

impl Token {
    /// The name in messages (docs/spec/jmespath.md §3).
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "tUnknown",
            Self::Star => "tStar",
            Self::Dot => "tDot",
            Self::Filter => "tFilter",
            Self::Flatten => "tFlatten",
            Self::LeftParen => "tLparen",
            Self::RightParen => "tRparen",
            Self::LeftBracket => "tLbracket",
            Self::RightBracket => "tRbracket",
            Self::LeftBrace => "tLbrace",
            Self::RightBrace => "tRbrace",
            Self::Or => "tOr",
            Self::Pipe => "tPipe",
            Self::Number(_) => "tNumber",
            Self::Identifier(_) => "tUnquotedIdentifier",
            Self::Quoted(_) => "tQuotedIdentifier",
            Self::Comma => "tComma",
            Self::Colon => "tColon",
            Self::Less => "tLT",
            Self::LessOrEqual => "tLTE",
            Self::Greater => "tGT",
            Self::GreaterOrEqual => "tGTE",
            Self::Equal => "tEQ",
            Self::NotEqual => "tNE",
            Self::Literal(_) => "tJSONLiteral",
            Self::Text(_) => "tStringLiteral",
            Self::Current => "tCurrent",
            Self::Reference => "tExpref",
            Self::And => "tAnd",
            Self::Not => "tNot",
            Self::End => "tEOF",
        }
    }
}

/// All tokens, the last one `End`; an error has its whole text.
pub(crate) fn tokens(expression: &str) -> Result<Vec<Token>, String> {
    let mut characters = expression.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(first) = characters.next() {
        let mut followed_by = |wanted: char| characters.next_if_eq(&wanted).is_some();
        let token = match first {
            ' ' | '\t' | '\n' | '\r' => continue,
            '.' => Token::Dot,
            '*' => Token::Star,
            ',' => Token::Comma,
            ':' => Token::Colon,
            '{' => Token::LeftBrace,
            '}' => Token::RightBrace,
            ']' => Token::RightBracket,
            '(' => Token::LeftParen,
            ')' => Token::RightParen,
            '@' => Token::Current,
            '[' if followed_by('?') => Token::Filter,
            '[' if followed_by(']') => Token::Flatten,
            '[' => Token::LeftBracket,
            '|' if followed_by('|') => Token::Or,
            '|' => Token::Pipe,
            '<' if followed_by('=') => Token::LessOrEqual,
            '<' => Token::Less,
            '>' if followed_by('=') => Token::GreaterOrEqual,
            '>' => Token::Greater,
            '!' if followed_by('=') => Token::NotEqual,
            '!' => Token::Not,
            '&' if followed_by('&') => Token::And,
            '&' => Token::Reference,
            '=' if followed_by('=') => Token::Equal,
            '=' => Token::Unknown,
            'A'..='Z' | 'a'..='z' | '_' => {
                let mut text = String::from(first);
                // U+0080 is part of an identifier (quirk Q3).
                let goes_on =
                    |next: &char| next.is_ascii_alphanumeric() || matches!(next, '_' | '\u{80}');
                while let Some(next) = characters.next_if(goes_on) {
                    text.push(next);
                }
                Token::Identifier(text)
            }
            '-' | '0'..='9' => {
                let mut text = String::from(first);
                while let Some(next) = characters.next_if(char::is_ascii_digit) {
                    text.push(next);
                }
                Token::Number(text)
            }
            '"' => Token::Quoted(quoted(&until('"', &mut characters)?)?),
            '`' => Token::Literal(literal(&until('`', &mut characters)?)?),
            '\'' => Token::Text(raw(&mut characters)?),
            other => {
                return Err(format!("SyntaxError: Unknown char: {}", quoted_rune(other)));
            }
        };
        tokens.push(token);
    }
    tokens.push(Token::End);
    Ok(tokens)
}

type Characters<'t> = std::iter::Peekable<std::str::Chars<'t>>;

fn unclosed(delimiter: char) -> String {
    format!("SyntaxError: Unclosed delimiter: {delimiter}")
}

/// The text up to a delimiter; a backslash keeps the next character (quirk Q1).
fn until(delimiter: char, characters: &mut Characters<'_>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match characters.next().ok_or_else(|| unclosed(delimiter))? {
            '\\' => {
                text.push('\\');
                text.push(characters.next().ok_or_else(|| unclosed(delimiter))?);
            }
            end if end == delimiter => return Ok(text),
            other => text.push(other),
        }
    }
}

/// A raw string: only `\'` is an escape (quirk Q2).
fn raw(characters: &mut Characters<'_>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match characters.next().ok_or_else(|| unclosed('\''))? {
            '\\' if characters.next_if_eq(&'\'').is_some() => text.push('\''),
            '\'' => return Ok(text),
            other => text.push(other),
        }
    }
}

fn quoted(text: &str) -> Result<String, String> {
    match parse_json(&format!("\"{text}\"")) {
        Ok(Value::String(text)) => Ok(text),
        Ok(_) => Err(UNFIXED.into()),
        Err(error) => Err(error.text()),
    }
}

fn literal(text: &str) -> Result<Value, String> {
    match parse_json(&text.replace("\\`", "`")) {
        Ok(value) => Ok(through_json(&value)),
        Err(error) => Err(error.text()),
    }
}

/// `%q` of a rune that starts no token, non-ASCII escaped.
fn quoted_rune(rune: char) -> String {
    match rune {
        '\\' => r"'\\'".into(),
        '\u{7}' => r"'\a'".into(),
        '\u{8}' => r"'\b'".into(),
        '\u{b}' => r"'\v'".into(),
        '\u{c}' => r"'\f'".into(),
        ' '..='~' => format!("'{rune}'"),
        '\0'..='\u{7f}' => format!("'\\x{:02x}'", u32::from(rune)),
        '\u{80}'..='\u{ffff}' => format!("'\\u{:04x}'", u32::from(rune)),
        _ => format!("'\\U{:08x}'", u32::from(rune)),
    }
}
