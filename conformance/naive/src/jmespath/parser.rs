//! Pratt parser (docs/spec/jmespath.md §3).

use serde_json::Value;

use super::lexer::{Token, tokens};

/// A node of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// An index that failed to parse in front of nothing.
    Empty,
    Identity,
    Current,
    Field(String),
    Literal(Value),
    /// Also an index behind its operand.
    Subexpression(Box<Node>, Box<Node>),
    Index(i64),
    Slice([Option<i64>; 3]),
    Comparator(Token, Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Pipe(Box<Node>, Box<Node>),
    List(Vec<Node>),
    Hash(Vec<(String, Node)>),
    /// The name; none if the node before the parentheses has no name.
    Call(Option<String>, Vec<Node>),
    Reference(Box<Node>),
    Projection(Box<Node>, Box<Node>),
    ValueProjection(Box<Node>, Box<Node>),
    /// Left, right, condition.
    Filter(Box<Node>, Box<Node>, Box<Node>),
    Flatten(Box<Node>),
}

/// Parses an expression; the error has its whole text.
pub(crate) fn parse(expression: &str) -> Result<Node, String> {
    let mut parser = Parser {
        tokens: tokens(expression)?,
        at: 0,
    };
    let node = parser.expression(0)?;
    match parser.current() {
        Token::End => Ok(node),
        other => Err(syntax(format!(
            "Unexpected token at the end of the expression: {}",
            other.name()
        ))),
    }
}

fn syntax(text: impl std::fmt::Display) -> String {
    format!("SyntaxError: {text}")
}

/// Left binding power (docs/spec/jmespath.md §3).
fn power(token: &Token) -> u32 {
    match token {
        Token::Pipe => 1,
        Token::Or => 2,
        Token::And => 3,
        Token::Less
        | Token::LessOrEqual
        | Token::Greater
        | Token::GreaterOrEqual
        | Token::Equal
        | Token::NotEqual => 5,
        Token::Flatten => 9,
        Token::Star => 20,
        Token::Filter => 21,
        Token::Dot => 40,
        Token::Not => 45,
        Token::LeftBrace => 50,
        Token::LeftBracket => 55,
        Token::LeftParen => 60,
        _ => 0,
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

type Parsed = Result<Node, String>;

impl Parser {
    fn peek(&self, ahead: usize) -> Token {
        let token = self.tokens.get(self.at + ahead);
        token.cloned().unwrap_or(Token::End)
    }

    fn current(&self) -> Token {
        self.peek(0)
    }

    fn advance(&mut self) -> Token {
        let token = self.current();
        self.at += 1;
        token
    }

    fn expect(&mut self, wanted: &Token) -> Result<(), String> {
        let found = self.current();
        if found == *wanted {
            self.at += 1;
            return Ok(());
        }
        Err(syntax(format!(
            "Expected {}, received: {}",
            wanted.name(),
            found.name()
        )))
    }

    fn expression(&mut self, right: u32) -> Parsed {
        let first = self.advance();
        let mut left = self.prefix(first)?;
        while right < power(&self.current()) {
            let token = self.advance();
            left = self.infix(token, left)?;
        }
        Ok(left)
    }

    fn boxed(&mut self, right: u32) -> Result<Box<Node>, String> {
        self.expression(right).map(Box::new)
    }

    fn prefix(&mut self, token: Token) -> Parsed {
        match token {
            Token::Literal(value) => Ok(Node::Literal(value)),
            Token::Text(text) => Ok(Node::Literal(Value::String(text))),
            Token::Identifier(name) => Ok(Node::Field(name)),
            Token::Quoted(name) => match self.current() {
                Token::LeftParen => Err(syntax("Can't have quoted identifier as function Name.")),
                _ => Ok(Node::Field(name)),
            },
            Token::Star => {
                let right = match self.current() {
                    Token::RightBracket => Node::Identity,
                    _ => self.projection_right(20)?,
                };
                Ok(Node::ValueProjection(
                    Box::new(Node::Identity),
                    Box::new(right),
                ))
            }
            Token::Filter => self.filter(Node::Identity),
            Token::LeftBrace => self.hash(),
            Token::Flatten => self.flatten(Node::Identity),
            Token::LeftBracket => match (self.current(), self.peek(1)) {
                (Token::Number(_) | Token::Colon, _) => {
                    // The error of the index is dropped.
                    match self.index() {
                        Ok(index) => self.indexed(Node::Identity, index),
                        Err(_) => Ok(Node::Empty),
                    }
                }
                (Token::Star, Token::RightBracket) => {
                    self.at += 2;
                    self.project(Node::Identity)
                }
                _ => self.list(),
            },
            Token::Current => Ok(Node::Current),
            Token::Reference => Ok(Node::Reference(self.boxed(0)?)),
            Token::Not => Ok(Node::Not(self.boxed(45)?)),
            Token::LeftParen => {
                let inner = self.expression(0)?;
                self.expect(&Token::RightParen)?;
                Ok(inner)
            }
            Token::End => Err(syntax("Incomplete expression")),
            other => Err(syntax(format!("Invalid token: {}", other.name()))),
        }
    }

    fn infix(&mut self, token: Token, left: Node) -> Parsed {
        let own = power(&token);
        let left_box = |left| Box::new(left);
        match token {
            Token::Dot => match self.current() {
                Token::Star => {
                    self.at += 1;
                    let right = self.projection_right(40)?;
                    Ok(Node::ValueProjection(left_box(left), Box::new(right)))
                }
                _ => {
                    let right = self.dot_right(40)?;
                    Ok(Node::Subexpression(left_box(left), Box::new(right)))
                }
            },
            Token::Pipe => Ok(Node::Pipe(left_box(left), self.boxed(own)?)),
            Token::Or => Ok(Node::Or(left_box(left), self.boxed(own)?)),
            Token::And => Ok(Node::And(left_box(left), self.boxed(own)?)),
            Token::LeftParen => {
                let name = match left {
                    Node::Field(name) | Node::Literal(Value::String(name)) => Some(name),
                    Node::Call(name, _) => name,
                    _ => None,
                };
                let mut arguments = Vec::new();
                while self.current() != Token::RightParen {
                    arguments.push(self.expression(0)?);
                    if self.current() == Token::Comma {
                        self.at += 1;
                    }
                }
                self.at += 1;
                Ok(Node::Call(name, arguments))
            }
            Token::Filter => self.filter(left),
            Token::Flatten => self.flatten(left),
            Token::LeftBracket => match self.current() {
                Token::Number(_) | Token::Colon => {
                    let index = self.index()?;
                    self.indexed(left, index)
                }
                _ => {
                    self.expect(&Token::Star)?;
                    self.expect(&Token::RightBracket)?;
                    self.project(left)
                }
            },
            comparator if own == 5 => {
                let right = self.boxed(own)?;
                Ok(Node::Comparator(comparator, left_box(left), right))
            }
            other => Err(syntax(format!("Unexpected token: {}", other.name()))),
        }
    }

    fn project(&mut self, left: Node) -> Parsed {
        let right = self.projection_right(20)?;
        Ok(Node::Projection(Box::new(left), Box::new(right)))
    }

    fn flatten(&mut self, left: Node) -> Parsed {
        let right = self.projection_right(9)?;
        Ok(Node::Projection(
            Box::new(Node::Flatten(Box::new(left))),
            Box::new(right),
        ))
    }

    /// What follows a dot.
    fn dot_right(&mut self, right: u32) -> Parsed {
        match self.current() {
            Token::Identifier(_) | Token::Quoted(_) | Token::Star => self.expression(right),
            Token::LeftBracket => {
                self.at += 1;
                self.list()
            }
            Token::LeftBrace => {
                self.at += 1;
                self.hash()
            }
            _ => Err(syntax("Expected identifier, lbracket, or lbrace")),
        }
    }

    /// What a projection applies to each item.
    fn projection_right(&mut self, right: u32) -> Parsed {
        match self.current() {
            token if power(&token) < 10 => Ok(Node::Identity),
            Token::LeftBracket | Token::Filter => self.expression(right),
            Token::Dot => {
                self.at += 1;
                self.dot_right(right)
            }
            _ => Err(syntax("Error")),
        }
    }

    fn filter(&mut self, left: Node) -> Parsed {
        let condition = self.boxed(0)?;
        self.expect(&Token::RightBracket)?;
        let right = match self.current() {
            Token::Flatten => Node::Identity,
            _ => self.projection_right(21)?,
        };
        Ok(Node::Filter(Box::new(left), Box::new(right), condition))
    }

    fn hash(&mut self) -> Parsed {
        let mut members = Vec::new();
        loop {
            let key = match self.current() {
                Token::Identifier(key) | Token::Quoted(key) => key,
                _ => {
                    return Err(syntax("Expected tQuotedIdentifier or tUnquotedIdentifier"));
                }
            };
            self.at += 1;
            self.expect(&Token::Colon)?;
            members.push((key, self.expression(0)?));
            match self.current() {
                Token::Comma => self.at += 1,
                Token::RightBrace => {
                    self.at += 1;
                    return Ok(Node::Hash(members));
                }
                _ => {}
            }
        }
    }

    fn list(&mut self) -> Parsed {
        let mut items = Vec::new();
        loop {
            items.push(self.expression(0)?);
            if self.current() == Token::RightBracket {
                self.at += 1;
                return Ok(Node::List(items));
            }
            self.expect(&Token::Comma)?;
        }
    }

    /// An index or a slice, after the bracket.
    fn index(&mut self) -> Parsed {
        if self.current() == Token::Colon || self.peek(1) == Token::Colon {
            return self.slice();
        }
        let index = match self.advance() {
            Token::Number(text) => whole(&text)?,
            _ => 0,
        };
        self.expect(&Token::RightBracket)?;
        Ok(Node::Index(index))
    }

    fn slice(&mut self) -> Parsed {
        let mut parts = [None; 3];
        let mut part = 0;
        while self.current() != Token::RightBracket && part < 3 {
            match self.current() {
                Token::Colon => part += 1,
                Token::Number(text) => {
                    if let Some(slot) = parts.get_mut(part) {
                        *slot = Some(whole(&text)?);
                    }
                }
                other => {
                    return Err(syntax(format!(
                        "Expected tColon or tNumber, received: {}",
                        other.name()
                    )));
                }
            }
            self.at += 1;
        }
        self.expect(&Token::RightBracket)?;
        Ok(Node::Slice(parts))
    }

    fn indexed(&mut self, left: Node, index: Node) -> Parsed {
        let is_slice = matches!(index, Node::Slice(_));
        let node = Node::Subexpression(Box::new(left), Box::new(index));
        match is_slice {
            true => self.project(node),
            false => Ok(node),
        }
    }
}

/// A 64-bit integer in the words of `strconv.Atoi`.
fn whole(text: &str) -> Result<i64, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse::<i64>().map_err(|error| match error.kind() {
        PosOverflow | NegOverflow => {
            format!("strconv.Atoi: parsing \"{text}\": value out of range")
        }
        _ => format!("strconv.Atoi: parsing \"{text}\": invalid syntax"),
    })
}
