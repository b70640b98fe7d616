//! Lexer of JMESPath (docs/spec/jmespath.md §2).
//!
//! The whole text is split before anything is parsed, so an unknown character at the end is
//! reported before a misplaced token at the beginning.

use crate::tree::{Span, TreeValue};

use super::{Dialect, MAX_DEPTH, SyntaxError, literal};

/// Kinds of tokens, named as in Kyverno's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Unknown,
    Star,
    Dot,
    Filter,
    Flatten,
    Lparen,
    Rparen,
    Lbracket,
    Rbracket,
    Lbrace,
    Rbrace,
    Or,
    Pipe,
    Number,
    UnquotedIdentifier,
    QuotedIdentifier,
    Comma,
    Colon,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    JsonLiteral,
    StringLiteral,
    Current,
    Expref,
    And,
    Not,
    // Only in assertions.
    Root,
    Variable,
    Assign,
    Plus,
    Minus,
    Multiply,
    Divide,
    DivideWhole,
    Modulo,
    End,
}

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    /// Kind.
    pub(super) kind: TokenKind,
    /// Location.
    pub(super) span: Span,
    /// Digits of a number, decoded text of an identifier or raw string, name of a variable,
    /// undecoded text of a JSON literal; otherwise empty.
    pub(super) text: Box<str>,
}

impl TokenKind {
    /// Name in Kyverno's messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            TokenKind::Unknown => "tUnknown",
            TokenKind::Star => "tStar",
            TokenKind::Dot => "tDot",
            TokenKind::Filter => "tFilter",
            TokenKind::Flatten => "tFlatten",
            TokenKind::Lparen => "tLparen",
            TokenKind::Rparen => "tRparen",
            TokenKind::Lbracket => "tLbracket",
            TokenKind::Rbracket => "tRbracket",
            TokenKind::Lbrace => "tLbrace",
            TokenKind::Rbrace => "tRbrace",
            TokenKind::Or => "tOr",
            TokenKind::Pipe => "tPipe",
            TokenKind::Number => "tNumber",
            TokenKind::UnquotedIdentifier => "tUnquotedIdentifier",
            TokenKind::QuotedIdentifier => "tQuotedIdentifier",
            TokenKind::Comma => "tComma",
            TokenKind::Colon => "tColon",
            TokenKind::Less => "tLT",
            TokenKind::LessOrEqual => "tLTE",
            TokenKind::Greater => "tGT",
            TokenKind::GreaterOrEqual => "tGTE",
            TokenKind::Equal => "tEQ",
            TokenKind::NotEqual => "tNE",
            TokenKind::JsonLiteral => "tJSONLiteral",
            TokenKind::StringLiteral => "tStringLiteral",
            TokenKind::Current => "tCurrent",
            TokenKind::Expref => "tExpref",
            TokenKind::And => "tAnd",
            TokenKind::Not => "tNot",
            TokenKind::Root => "tRoot",
            TokenKind::Variable => "tVarref",
            TokenKind::Assign => "tAssign",
            TokenKind::Plus => "tPlus",
            TokenKind::Minus => "tMinus",
            TokenKind::Multiply => "tMultiply",
            TokenKind::Divide => "tDivide",
            TokenKind::DivideWhole => "tDiv",
            TokenKind::Modulo => "tModulo",
            TokenKind::End => "tEOF",
        }
    }
}

/// Whether a character can begin an unquoted identifier.
pub(super) fn begins_identifier(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Whether a character can continue an unquoted identifier. U+0080 is a side effect of
/// Kyverno's fix for a crash (docs/spec/jmespath.md, quirk Q3).
pub(super) fn continues_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '\u{80}'
}

/// Splits a text into tokens, ending with [`TokenKind::End`].
pub(super) fn tokenize(text: &str, dialect: Dialect) -> Result<Vec<Token>, SyntaxError> {
    let mut lexer = Lexer {
        text,
        dialect,
        position: 0,
        tokens: Vec::new(),
    };
    while let Some(c) = lexer.next() {
        lexer.token(c)?;
    }
    lexer.push(TokenKind::End, text.len(), "");
    Ok(lexer.tokens)
}

struct Lexer<'t> {
    text: &'t str,
    dialect: Dialect,
    position: usize,
    tokens: Vec<Token>,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += c.len_utf8();
        Some(c)
    }

    /// Consumes the next character if it is the expected one.
    fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.position += expected.len_utf8();
        }
        found
    }

    fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Adds a token that ends here.
    fn push(&mut self, kind: TokenKind, start: usize, text: impl Into<Box<str>>) {
        self.tokens.push(Token {
            kind,
            span: Span {
                start: start as u32,
                end: self.position as u32,
            },
            text: text.into(),
        });
    }

    /// Reads the token that begins with `c`, which has been consumed.
    fn token(&mut self, c: char) -> Result<(), SyntaxError> {
        let start = self.position - c.len_utf8();
        if self.dialect == Dialect::Assertion && self.assertion_token(c, start) {
            return Ok(());
        }
        let kind = match c {
            ' ' | '\t' | '\n' | '\r' => return Ok(()),
            '.' => TokenKind::Dot,
            '*' => TokenKind::Star,
            ',' => TokenKind::Comma,
            ':' => TokenKind::Colon,
            '{' => TokenKind::Lbrace,
            '}' => TokenKind::Rbrace,
            ']' => TokenKind::Rbracket,
            '(' => TokenKind::Lparen,
            ')' => TokenKind::Rparen,
            '@' => TokenKind::Current,
            '[' if self.take('?') => TokenKind::Filter,
            '[' if self.take(']') => TokenKind::Flatten,
            '[' => TokenKind::Lbracket,
            '|' => self.one_or_two('|', TokenKind::Pipe, TokenKind::Or),
            '&' => self.one_or_two('&', TokenKind::Expref, TokenKind::And),
            '<' => self.one_or_two('=', TokenKind::Less, TokenKind::LessOrEqual),
            '>' => self.one_or_two('=', TokenKind::Greater, TokenKind::GreaterOrEqual),
            '!' => self.one_or_two('=', TokenKind::Not, TokenKind::NotEqual),
            '=' => self.one_or_two('=', TokenKind::Unknown, TokenKind::Equal),
            '"' => return self.quoted_identifier(start),
            '\'' => return self.raw_string(start),
            '`' => return self.json_literal(start),
            '-' | '0'..='9' => {
                self.skip_while(|c| c.is_ascii_digit());
                self.push(TokenKind::Number, start, self.slice(start, self.position));
                return Ok(());
            }
            c if begins_identifier(c) => {
                self.skip_while(continues_identifier);
                let name = self.slice(start, self.position);
                self.push(TokenKind::UnquotedIdentifier, start, name);
                return Ok(());
            }
            c => {
                let message = format!("Unknown char: {}", quote_character(c));
                return Err(SyntaxError::grammar(message, start));
            }
        };
        self.push(kind, start, "");
        Ok(())
    }

    /// Reads a token that exists only in assertions; returns whether there was one.
    fn assertion_token(&mut self, c: char, start: usize) -> bool {
        let digit = self.peek().is_some_and(|next| next.is_ascii_digit());
        let kind = match c {
            '$' if self.peek().is_some_and(begins_identifier) => {
                let name = self.position;
                self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_');
                let name = self.slice(name, self.position);
                self.push(TokenKind::Variable, start, name);
                return true;
            }
            '$' => TokenKind::Root,
            '=' if self.peek() != Some('=') => TokenKind::Assign,
            '+' => TokenKind::Plus,
            '-' if !digit => TokenKind::Minus,
            '\u{2212}' => TokenKind::Minus,
            '\u{d7}' => TokenKind::Multiply,
            '\u{f7}' => TokenKind::Divide,
            '/' => self.one_or_two('/', TokenKind::Divide, TokenKind::DivideWhole),
            '%' => TokenKind::Modulo,
            _ => return false,
        };
        self.push(kind, start, "");
        true
    }

    fn one_or_two(&mut self, second: char, one: TokenKind, two: TokenKind) -> TokenKind {
        if self.take(second) { two } else { one }
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while let Some(c) = self.peek()
            && wanted(c)
        {
            self.position += c.len_utf8();
        }
    }

    fn unclosed(&self, delimiter: char) -> SyntaxError {
        SyntaxError::grammar(format!("Unclosed delimiter: {delimiter}"), self.text.len())
    }

    /// Text up to the delimiter, which is consumed; a backslash always consumes the next
    /// character (quirk Q1).
    fn until(&mut self, delimiter: char) -> Result<&'t str, SyntaxError> {
        let start = self.position;
        while let Some(c) = self.next() {
            if c == delimiter {
                return Ok(self.slice(start, self.position - delimiter.len_utf8()));
            }
            if c == '\\' {
                self.next();
            }
        }
        Err(self.unclosed(delimiter))
    }

    /// `"…"`, decoded as a JSON string; its errors are those of JSON.
    fn quoted_identifier(&mut self, start: usize) -> Result<(), SyntaxError> {
        self.until('"')?;
        let quoted = self.slice(start, self.position);
        let decoded = literal::parse_json(quoted, Span::default(), MAX_DEPTH)
            .map_err(|message| SyntaxError::plain(message, start))?;
        // A text that begins with a quote is either a string or an error.
        if let TreeValue::String(name) = decoded {
            self.push(TokenKind::QuotedIdentifier, start, name);
        }
        Ok(())
    }

    /// `` `… ` ` `; decoded only by the parser, as in Kyverno.
    fn json_literal(&mut self, start: usize) -> Result<(), SyntaxError> {
        let content = self.until('`')?.replace("\\`", "`");
        self.push(TokenKind::JsonLiteral, start, content);
        Ok(())
    }

    /// `'…'`: `\'` is a quote and there are no other escapes, not even `\\` (quirk Q2),
    /// which assertions have.
    fn raw_string(&mut self, start: usize) -> Result<(), SyntaxError> {
        let mut content = String::new();
        while let Some(c) = self.next() {
            match c {
                '\'' => {
                    self.push(TokenKind::StringLiteral, start, content);
                    return Ok(());
                }
                '\\' if self.take('\'') => content.push('\''),
                '\\' if self.dialect == Dialect::Assertion && self.take('\\') => {
                    content.push('\\');
                }
                c => content.push(c),
            }
        }
        Err(self.unclosed('\''))
    }
}

/// A character as printed by Go's `strconv.QuoteRuneToASCII`.
fn quote_character(c: char) -> String {
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
        '\0'..='\u{7f}' => format!("\\x{:02x}", u32::from(c)),
        '\u{80}'..='\u{ffff}' => format!("\\u{:04x}", u32::from(c)),
        _ => format!("\\U{:08x}", u32::from(c)),
    };
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenize(text: &str) -> Result<Vec<Token>, SyntaxError> {
        super::tokenize(text, Dialect::Kyverno)
    }

    fn kinds(text: &str) -> Vec<&'static str> {
        let tokens = tokenize(text).unwrap();
        tokens.iter().map(|token| token.kind.name()).collect()
    }

    #[test]
    fn tokens_of_two_characters_must_be_adjacent() {
        // docs/spec/jmespath.md §2, table row "[ family" and the next one.
        assert_eq!(kinds("[?"), ["tFilter", "tEOF"]);
        assert_eq!(kinds("[]"), ["tFlatten", "tEOF"]);
        assert_eq!(kinds("[ ]"), ["tLbracket", "tRbracket", "tEOF"]);
        assert_eq!(kinds("| ||"), ["tPipe", "tOr", "tEOF"]);
        assert_eq!(
            kinds("= == ==="),
            ["tUnknown", "tEQ", "tEQ", "tUnknown", "tEOF"]
        );
        assert_eq!(
            kinds("< <= > >= ! !="),
            ["tLT", "tLTE", "tGT", "tGTE", "tNot", "tNE", "tEOF"]
        );
        assert_eq!(kinds("& &&"), ["tExpref", "tAnd", "tEOF"]);
    }

    #[test]
    fn numbers_may_lack_digits() {
        // docs/spec/jmespath.md §2, row "number" and quirk Q4.
        assert_eq!(
            kinds("a-b"),
            [
                "tUnquotedIdentifier",
                "tNumber",
                "tUnquotedIdentifier",
                "tEOF"
            ]
        );
        assert_eq!(kinds("--1"), ["tNumber", "tNumber", "tEOF"]);
    }

    #[test]
    fn positions_are_bytes() {
        let tokens = tokenize("a.\"é\" == 'ü'").unwrap();
        let spans: Vec<_> = tokens.iter().map(|t| (t.span.start, t.span.end)).collect();
        assert_eq!(spans, [(0, 1), (1, 2), (2, 6), (7, 9), (10, 14), (14, 14)]);
    }

    #[test]
    fn raw_strings_keep_backslashes() {
        // docs/spec/jmespath.md, quirk Q2 and worked case 20.
        let text = |source: &str| tokenize(source).map(|tokens| tokens[0].text.to_string());
        assert_eq!(text(r"'it\'s'").unwrap(), "it's");
        assert_eq!(text(r"'a\\b'").unwrap(), r"a\\b");
        assert_eq!(text(r"'a\\'b'").unwrap(), r"a\'b");
        let error = text(r"'\\'").unwrap_err();
        assert_eq!(error.message, "SyntaxError: Unclosed delimiter: '");
        assert_eq!(error.offset, 4);
    }

    #[test]
    fn unknown_characters_are_quoted_as_go_does() {
        // docs/spec/jmespath.md §2, last row of the table.
        for (text, message, offset) in [
            ("a $", "SyntaxError: Unknown char: '$'", 2),
            ("é", r"SyntaxError: Unknown char: '\u00e9'", 0),
            ("a.\u{1F600}", r"SyntaxError: Unknown char: '\U0001f600'", 2),
            ("\u{0}", r"SyntaxError: Unknown char: '\x00'", 0),
            ("\u{b}", r"SyntaxError: Unknown char: '\v'", 0),
            ("\\", r"SyntaxError: Unknown char: '\\'", 0),
        ] {
            let error = tokenize(text).unwrap_err();
            assert_eq!((error.message.as_str(), error.offset), (message, offset));
        }
    }
}
