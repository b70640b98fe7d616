//! The grammar (docs/spec/cel.md §3.7), without bytes, triple quotes and raw texts.

use super::Fault;
use super::value::Cel;

/// An expression.
#[derive(Debug, Clone)]
pub(super) enum Expr {
    Literal(Cel),
    Name(String),
    /// Operand, field, whether it is optional.
    Select(Box<Expr>, String, bool),
    Index(Box<Expr>, Box<Expr>, bool),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Receiver, name, arguments.
    Call(Option<Box<Expr>>, String, Vec<Expr>),
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(String),
    Sign(&'static str),
}

const SIGNS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "?", ":", ".", ",", "(", ")", "[", "]", "{",
    "}", "+", "-", "*", "/", "%", "=", "&", "|",
];

const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Parses an expression.
pub(super) fn parse(source: &str) -> Result<Expr, Fault> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        at: 0,
    };
    let tree = parser.expression()?;
    match parser.at == parser.tokens.len() {
        true => Ok(tree),
        false => Err(Fault::Compile),
    }
}

fn tokens(source: &str) -> Result<Vec<Token>, Fault> {
    let mut rest = source;
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if first.is_ascii_digit() {
            let (token, after) = number(rest)?;
            tokens.push(token);
            rest = after;
        } else if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(length);
            if after.starts_with(['\'', '"']) {
                return Err(Fault::NotDone("raw texts and bytes of CEL"));
            }
            tokens.push(Token::Name(name.to_owned()));
            rest = after;
        } else if first == '\'' || first == '"' {
            let (text, after) = text(rest, first)?;
            tokens.push(Token::Text(text));
            rest = after;
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or(Fault::Compile)?;
            tokens.push(Token::Sign(sign));
            rest = rest.get(sign.len()..).unwrap_or_default();
        }
    }
}

fn number(text: &str) -> Result<(Token, &str), Fault> {
    if text.starts_with("0x") {
        return Err(Fault::NotDone("hexadecimal numbers of CEL"));
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(text);
    let mut is_double = false;
    let after = text.get(length..).unwrap_or_default();
    if after.starts_with('.') && digits(&after[1..]) > 0 {
        length += 1 + digits(&after[1..]);
        is_double = true;
    }
    let after = text.get(length..).unwrap_or_default();
    if let Some(exponent) = after.strip_prefix(['e', 'E']) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits(unsigned) > 0 {
            length += 1 + (exponent.len() - unsigned.len()) + digits(unsigned);
            is_double = true;
        }
    }
    let (number, after) = text.split_at(length);
    if is_double {
        let double = number.parse().map_err(|_| Fault::Compile)?;
        return Ok((Token::Double(double), after));
    }
    let whole: u64 = number.parse().map_err(|_| Fault::Compile)?;
    match after.strip_prefix(['u', 'U']) {
        Some(after) => Ok((Token::Uint(whole), after)),
        None => Ok((Token::Int(whole), after)),
    }
}

fn text(rest: &str, quote: char) -> Result<(String, &str), Fault> {
    let body = rest.get(1..).unwrap_or_default();
    if rest.starts_with("'''") || rest.starts_with("\"\"\"") {
        return Err(Fault::NotDone("texts of CEL in three quotes"));
    }
    let mut text = String::new();
    let mut letters = body.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            end if end == quote => {
                return Ok((text, body.get(at + 1..).unwrap_or_default()));
            }
            '\n' | '\r' => return Err(Fault::Compile),
            '\\' => match letters.next().ok_or(Fault::Compile)?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                same @ ('\\' | '?' | '"' | '\'' | '`') => text.push(same),
                'a' | 'b' | 'f' | 'v' | 'x' | 'X' | 'u' | 'U' | '0'..='3' => {
                    return Err(Fault::NotDone("rare escapes of CEL"));
                }
                _ => return Err(Fault::Compile),
            },
            other => text.push(other),
        }
    }
    Err(Fault::Compile)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

type Parsed = Result<Expr, Fault>;

impl Parser {
    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Fault> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(Fault::Compile),
        }
    }

    fn expression(&mut self) -> Parsed {
        let condition = self.level(0)?;
        if !self.takes("?") {
            return Ok(condition);
        }
        let yes = self.level(0)?;
        self.expect(":")?;
        let no = self.expression()?;
        Ok(Expr::Ternary(
            Box::new(condition),
            Box::new(yes),
            Box::new(no),
        ))
    }

    /// Binary operators by precedence, all left-associative.
    fn level(&mut self, level: usize) -> Parsed {
        const LEVELS: [&[&str]; 5] = [
            &["||"],
            &["&&"],
            &["<=", ">=", "<", ">", "==", "!=", "in"],
            &["+", "-"],
            &["*", "/", "%"],
        ];
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.level(level + 1)?;
        'next: loop {
            for operator in *operators {
                let is_in = *operator == "in"
                    && self.tokens.get(self.at) == Some(&Token::Name("in".into()));
                self.at += usize::from(is_in);
                if is_in || self.takes(operator) {
                    let right = self.level(level + 1)?;
                    left = Expr::Binary(operator, Box::new(left), Box::new(right));
                    continue 'next;
                }
            }
            return Ok(left);
        }
    }

    fn unary(&mut self) -> Parsed {
        if self.takes("!") {
            return Ok(Expr::Not(Box::new(self.unary()?)));
        }
        if self.takes("-") {
            // The sign is part of a literal.
            let literal = match self.tokens.get(self.at) {
                Some(Token::Int(whole)) => {
                    let whole = 0i64.checked_sub_unsigned(*whole);
                    Some(Cel::Int(whole.ok_or(Fault::Compile)?))
                }
                Some(Token::Double(double)) => Some(Cel::Double(-double)),
                _ => None,
            };
            if let Some(literal) = literal {
                self.at += 1;
                return self.members(Expr::Literal(literal));
            }
            return Ok(Expr::Negate(Box::new(self.unary()?)));
        }
        let primary = self.primary()?;
        self.members(primary)
    }

    fn members(&mut self, mut operand: Expr) -> Parsed {
        loop {
            if self.takes(".") {
                let is_optional = self.takes("?");
                let Some(Token::Name(name)) = self.tokens.get(self.at).cloned() else {
                    return Err(Fault::Compile);
                };
                self.at += 1;
                if !is_optional && self.takes("(") {
                    let arguments = self.list(")")?;
                    operand = Expr::Call(Some(Box::new(operand)), name, arguments);
                } else {
                    operand = Expr::Select(Box::new(operand), name, is_optional);
                }
            } else if self.takes("[") {
                let is_optional = self.takes("?");
                let index = self.expression()?;
                self.expect("]")?;
                operand = Expr::Index(Box::new(operand), Box::new(index), is_optional);
            } else {
                return Ok(operand);
            }
        }
    }

    /// Expressions up to a closing sign, with commas between them.
    fn list(&mut self, end: &str) -> Result<Vec<Expr>, Fault> {
        let mut items = Vec::new();
        if self.takes(end) {
            return Ok(items);
        }
        loop {
            if self.takes("?") {
                return Err(Fault::NotDone("optional items of CEL"));
            }
            items.push(self.expression()?);
            if self.takes(end) {
                return Ok(items);
            }
            self.expect(",")?;
            if end == "]" && self.takes(end) {
                return Ok(items);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let token = self.tokens.get(self.at).cloned().ok_or(Fault::Compile)?;
        self.at += 1;
        match token {
            Token::Int(whole) => {
                let whole = i64::try_from(whole).map_err(|_| Fault::Compile)?;
                Ok(Expr::Literal(Cel::Int(whole)))
            }
            Token::Uint(whole) => Ok(Expr::Literal(Cel::Uint(whole))),
            Token::Double(double) => Ok(Expr::Literal(Cel::Double(double))),
            Token::Text(text) => Ok(Expr::Literal(Cel::Text(text))),
            Token::Name(name) => match name.as_str() {
                "true" => Ok(Expr::Literal(Cel::Bool(true))),
                "false" => Ok(Expr::Literal(Cel::Bool(false))),
                "null" => Ok(Expr::Literal(Cel::Null)),
                "in" => Err(Fault::Compile),
                reserved if RESERVED.contains(&reserved) => Err(Fault::Compile),
                _ if self.takes("(") => {
                    let arguments = self.list(")")?;
                    Ok(Expr::Call(None, name, arguments))
                }
                _ => Ok(Expr::Name(name)),
            },
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("[") => Ok(Expr::List(self.list("]")?)),
            Token::Sign("{") => {
                let mut members = Vec::new();
                while !self.takes("}") {
                    if self.takes("?") {
                        return Err(Fault::NotDone("optional members of CEL"));
                    }
                    let key = self.expression()?;
                    self.expect(":")?;
                    members.push((key, self.expression()?));
                    if !self.takes(",") {
                        self.expect("}")?;
                        break;
                    }
                }
                Ok(Expr::Map(members))
            }
            Token::Sign(".") => Err(Fault::NotDone("names of CEL behind a dot")),
            Token::Sign(_) => Err(Fault::Compile),
        }
    }
}
