//! Parser of JMESPath (docs/spec/jmespath.md §3): operator precedence parsing with
//! Kyverno's table of powers.
//!
//! The order of checks decides which error is reported, so it follows the specification
//! exactly, including the mistakes of the original.

use crate::tree::{Span, TreeValue};

use super::ast::{
    Arithmetic, AssertionNode, Comparator, Expression, FunctionCall, HashEntry, Node, Projection,
    ProjectionKind, Slice,
};
use super::lexer::{Token, TokenKind, tokenize};
use super::{Dialect, MAX_CODE_POINTS, MAX_DEPTH, SyntaxError, literal};

/// Parses one expression. Surrounding white space is allowed.
///
/// # Errors
/// The error of Kyverno's parser for that text (docs/spec/jmespath.md §2 and §3), or one
/// about [`MAX_DEPTH`] or [`MAX_CODE_POINTS`].
pub fn parse(text: &str) -> Result<Expression, SyntaxError> {
    parse_in(text, Dialect::Kyverno)
}

/// Parses one expression of a dialect. Errors in assertions also use the texts of Kyverno's
/// dialect.
///
/// # Errors
/// Like [`parse`].
pub fn parse_in(text: &str, dialect: Dialect) -> Result<Expression, SyntaxError> {
    if let Some((offset, _)) = text.char_indices().nth(MAX_CODE_POINTS) {
        let message = format!("expression is longer than {MAX_CODE_POINTS} code points");
        return Err(SyntaxError::plain(message, offset));
    }
    let mut parser = Parser {
        tokens: tokenize(text, dialect)?,
        dialect,
        index: 0,
        depth: 0,
    };
    let expression = parser.expression(0).map_err(|error| *error)?;
    match parser.current() {
        TokenKind::End => Ok(*expression),
        other => Err(*parser.error(format_args!(
            "Unexpected token at the end of the expression: {}",
            other.name()
        ))),
    }
}

type Parsed = Result<Box<Expression>, Failure>;

/// Boxed to keep the frames of the recursion small, which determine the stack an expression
/// needs.
type Failure = Box<SyntaxError>;

// Powers that printing also needs. An operator parses its right operand with its own power.
pub(super) const POWER_PIPE: u8 = 1;
pub(super) const POWER_OR: u8 = 2;
pub(super) const POWER_AND: u8 = 3;
pub(super) const POWER_COMPARATOR: u8 = 5;
const POWER_SUM: u8 = 6;
const POWER_PRODUCT: u8 = 7;
pub(super) const POWER_FLATTEN: u8 = 9;
pub(super) const POWER_STAR: u8 = 20;
pub(super) const POWER_FILTER: u8 = 21;
pub(super) const POWER_DOT: u8 = 40;
pub(super) const POWER_NOT: u8 = 45;
pub(super) const POWER_BRACKET: u8 = 55;
pub(super) const POWER_PAREN: u8 = 60;

/// A projection ends before a token with a power below this one.
const PROJECTION_STOP: u8 = 10;

/// How strongly a token binds the expression before it.
fn power(kind: TokenKind) -> u8 {
    match kind {
        TokenKind::End
        | TokenKind::Unknown
        | TokenKind::UnquotedIdentifier
        | TokenKind::QuotedIdentifier
        | TokenKind::JsonLiteral
        | TokenKind::StringLiteral
        | TokenKind::Rbracket
        | TokenKind::Rparen
        | TokenKind::Comma
        | TokenKind::Rbrace
        | TokenKind::Number
        | TokenKind::Current
        | TokenKind::Expref
        | TokenKind::Colon
        | TokenKind::Root
        | TokenKind::Variable
        | TokenKind::Assign => 0,
        TokenKind::Plus | TokenKind::Minus => POWER_SUM,
        TokenKind::Multiply | TokenKind::Divide | TokenKind::DivideWhole | TokenKind::Modulo => {
            POWER_PRODUCT
        }
        TokenKind::Pipe => POWER_PIPE,
        TokenKind::Or => POWER_OR,
        TokenKind::And => POWER_AND,
        TokenKind::Equal
        | TokenKind::NotEqual
        | TokenKind::Less
        | TokenKind::LessOrEqual
        | TokenKind::Greater
        | TokenKind::GreaterOrEqual => POWER_COMPARATOR,
        TokenKind::Flatten => POWER_FLATTEN,
        TokenKind::Star => POWER_STAR,
        TokenKind::Filter => POWER_FILTER,
        TokenKind::Dot => POWER_DOT,
        TokenKind::Not => POWER_NOT,
        TokenKind::Lbrace => 50,
        TokenKind::Lbracket => POWER_BRACKET,
        TokenKind::Lparen => POWER_PAREN,
    }
}

/// Content of `[` and `]` after a number or a colon.
enum Subscript {
    Index(i64),
    Slice(Slice),
}

struct Parser {
    tokens: Vec<Token>,
    dialect: Dialect,
    index: usize,
    depth: usize,
}

impl Parser {
    fn kind(&self, ahead: usize) -> TokenKind {
        self.tokens
            .get(self.index + ahead)
            .map_or(TokenKind::End, |token| token.kind)
    }

    fn current(&self) -> TokenKind {
        self.kind(0)
    }

    /// Location of the current token.
    fn place(&self) -> Span {
        let token = self.tokens.get(self.index).or(self.tokens.last());
        token.map_or_else(Span::default, |token| token.span)
    }

    fn advance(&mut self) {
        self.index += 1;
    }

    /// Text of the current token, which is not needed afterwards.
    fn take_text(&mut self) -> Box<str> {
        match self.tokens.get_mut(self.index) {
            Some(token) => std::mem::take(&mut token.text),
            None => Box::default(),
        }
    }

    /// An error at the current token.
    fn error(&self, message: impl std::fmt::Display) -> Failure {
        Box::new(SyntaxError::grammar(message, self.place().start as usize))
    }

    fn expect(&mut self, wanted: TokenKind) -> Result<(), Failure> {
        let found = self.current();
        if found == wanted {
            self.advance();
            return Ok(());
        }
        Err(self.error(format_args!(
            "Expected {}, received: {}",
            wanted.name(),
            found.name()
        )))
    }

    /// From a start to the end of the last consumed token.
    fn span_from(&self, start: u32) -> Span {
        let last = self.index.checked_sub(1);
        let end = last
            .and_then(|last| self.tokens.get(last))
            .map_or(start, |token| token.span.end);
        Span { start, end }
    }

    /// A node from `start` to the end of the last consumed token.
    fn finish(&self, node: Node, start: u32) -> Parsed {
        let expression = Expression::new(node, self.span_from(start));
        if expression.height() > MAX_DEPTH {
            return Err(too_deep(start));
        }
        Ok(Box::new(expression))
    }

    /// The current value, without any text.
    fn identity(&self) -> Box<Expression> {
        let start = self.place().start;
        Box::new(Expression::new(Node::Identity, Span { start, end: start }))
    }

    /// Parses everything that binds stronger than `least`.
    fn expression(&mut self, least: u8) -> Parsed {
        let start = self.place().start;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep(start));
        }
        let mut left = self.prefix(start)?;
        while least < power(self.current()) {
            left = self.infix(left, start)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Parses what the current token begins.
    fn prefix(&mut self, start: u32) -> Parsed {
        match self.current() {
            TokenKind::JsonLiteral => self.json_literal(start),
            TokenKind::StringLiteral => self.string_literal(start),
            TokenKind::UnquotedIdentifier if self.begins_let() => self.let_expression(start),
            TokenKind::UnquotedIdentifier => self.field(start),
            TokenKind::QuotedIdentifier => self.quoted_field(start),
            TokenKind::Current => self.leaf(Node::Current, start),
            TokenKind::Root => self.assertion_leaf(AssertionNode::Root, start),
            TokenKind::Variable => {
                let name = self.take_text();
                self.assertion_leaf(AssertionNode::Variable(name), start)
            }
            TokenKind::Plus => self.sign(false, start),
            TokenKind::Minus => self.sign(true, start),
            TokenKind::Star => self.prefix_star(start),
            TokenKind::Filter => {
                let left = self.identity();
                self.filter(left, start)
            }
            TokenKind::Flatten => {
                let left = self.identity();
                self.flatten(left, start)
            }
            TokenKind::Lbracket => self.prefix_bracket(start),
            TokenKind::Lbrace => self.multi_select_hash(start),
            TokenKind::Expref => self.expression_reference(start),
            TokenKind::Not => self.not(start),
            TokenKind::Lparen => self.parenthesis(),
            TokenKind::End => Err(self.error("Incomplete expression")),
            TokenKind::Unknown
            | TokenKind::Dot
            | TokenKind::Rparen
            | TokenKind::Rbracket
            | TokenKind::Rbrace
            | TokenKind::Or
            | TokenKind::Pipe
            | TokenKind::Number
            | TokenKind::Comma
            | TokenKind::Colon
            | TokenKind::Less
            | TokenKind::LessOrEqual
            | TokenKind::Greater
            | TokenKind::GreaterOrEqual
            | TokenKind::Equal
            | TokenKind::NotEqual
            | TokenKind::And
            | TokenKind::Assign
            | TokenKind::Multiply
            | TokenKind::Divide
            | TokenKind::DivideWhole
            | TokenKind::Modulo => Err(self.invalid_token()),
        }
    }

    /// Error: the current token cannot begin an expression.
    fn invalid_token(&self) -> Failure {
        self.error(format_args!("Invalid token: {}", self.current().name()))
    }

    /// Error: the current token cannot continue an expression; it is reported at the next
    /// one.
    fn unexpected_token(&mut self) -> Failure {
        let name = self.current().name();
        self.advance();
        self.error(format_args!("Unexpected token: {name}"))
    }

    /// A node of a single token.
    fn leaf(&mut self, node: Node, start: u32) -> Parsed {
        self.advance();
        self.finish(node, start)
    }

    fn string_literal(&mut self, start: u32) -> Parsed {
        let text = self.take_text();
        self.leaf(Node::Literal(TreeValue::String(text)), start)
    }

    fn field(&mut self, start: u32) -> Parsed {
        let name = self.take_text();
        self.leaf(Node::Field(name), start)
    }

    fn json_literal(&mut self, start: u32) -> Parsed {
        let text = self.take_text();
        let span = self.place();
        let value = literal::parse_json(&text, span, MAX_DEPTH - self.depth)
            .map_err(|message| Box::new(SyntaxError::plain(message, start as usize)))?;
        self.leaf(Node::Literal(value), start)
    }

    fn quoted_field(&mut self, start: u32) -> Parsed {
        if self.kind(1) == TokenKind::Lparen {
            return Err(self.error("Can't have quoted identifier as function Name."));
        }
        self.field(start)
    }

    fn expression_reference(&mut self, start: u32) -> Parsed {
        self.advance();
        let operand = self.expression(0)?;
        self.finish(Node::ExpressionReference(operand), start)
    }

    fn not(&mut self, start: u32) -> Parsed {
        self.advance();
        let operand = self.expression(POWER_NOT)?;
        self.finish(Node::Not(operand), start)
    }

    fn parenthesis(&mut self) -> Parsed {
        self.advance();
        let inner = self.expression(0)?;
        self.expect(TokenKind::Rparen)?;
        Ok(inner)
    }

    fn prefix_star(&mut self, start: u32) -> Parsed {
        let left = self.identity();
        self.advance();
        let right = self.projected(POWER_STAR)?;
        self.projection(left, ProjectionKind::Object, right, start)
    }

    fn prefix_bracket(&mut self, start: u32) -> Parsed {
        let left = self.identity();
        self.advance();
        match self.current() {
            TokenKind::Number | TokenKind::Colon => match self.subscript() {
                Ok(subscript) => self.subscripted(left, subscript, start),
                Err(error) if self.dialect == Dialect::Assertion => Err(error),
                // The original drops the error here and continues (docs/spec/jmespath.md
                // §3, last table).
                Err(_) => self.finish(Node::Empty, start),
            },
            TokenKind::Star if self.kind(1) == TokenKind::Rbracket => {
                self.advance();
                self.advance();
                let right = self.projected(POWER_STAR)?;
                self.projection(left, ProjectionKind::List, right, start)
            }
            _ => self.multi_select_list(start),
        }
    }

    /// Continues `left` with the current token, which binds it.
    fn infix(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        match self.current() {
            TokenKind::Dot => self.dot(left, start),
            TokenKind::Pipe => self.pipe(left, start),
            TokenKind::Or => self.or(left, start),
            TokenKind::And => self.and(left, start),
            TokenKind::Equal => self.comparison(left, Comparator::Equal, start),
            TokenKind::NotEqual => self.comparison(left, Comparator::NotEqual, start),
            TokenKind::Less => self.comparison(left, Comparator::Less, start),
            TokenKind::LessOrEqual => self.comparison(left, Comparator::LessOrEqual, start),
            TokenKind::Greater => self.comparison(left, Comparator::Greater, start),
            TokenKind::GreaterOrEqual => self.comparison(left, Comparator::GreaterOrEqual, start),
            TokenKind::Lparen => self.call(left, start),
            TokenKind::Filter => self.filter(left, start),
            TokenKind::Flatten => self.flatten(left, start),
            TokenKind::Lbracket => self.bracket(left, start),
            TokenKind::Plus => self.arithmetic(left, Arithmetic::Add, POWER_SUM, start),
            TokenKind::Minus => self.arithmetic(left, Arithmetic::Subtract, POWER_SUM, start),
            TokenKind::Multiply => {
                self.arithmetic(left, Arithmetic::Multiply, POWER_PRODUCT, start)
            }
            TokenKind::Divide => self.arithmetic(left, Arithmetic::Divide, POWER_PRODUCT, start),
            TokenKind::DivideWhole => {
                self.arithmetic(left, Arithmetic::DivideWhole, POWER_PRODUCT, start)
            }
            TokenKind::Modulo => self.arithmetic(left, Arithmetic::Modulo, POWER_PRODUCT, start),
            // A star between operands binds stronger than the other multiplication sign.
            TokenKind::Star if self.dialect == Dialect::Assertion => {
                self.arithmetic(left, Arithmetic::Multiply, POWER_STAR, start)
            }
            // Of the other tokens only `*`, `!` and `{` have a power.
            _ => Err(self.unexpected_token()),
        }
    }

    fn dot(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        self.advance();
        if self.current() == TokenKind::Star {
            self.advance();
            let right = self.projected(POWER_DOT)?;
            return self.projection(left, ProjectionKind::Object, right, start);
        }
        let right = self.after_dot(POWER_DOT)?;
        self.finish(Node::Subexpression { left, right }, start)
    }

    fn pipe(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        let (left, right) = self.operands(left, POWER_PIPE)?;
        self.finish(Node::Pipe { left, right }, start)
    }

    fn or(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        let (left, right) = self.operands(left, POWER_OR)?;
        self.finish(Node::Or { left, right }, start)
    }

    fn and(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        let (left, right) = self.operands(left, POWER_AND)?;
        self.finish(Node::And { left, right }, start)
    }

    fn comparison(&mut self, left: Box<Expression>, operator: Comparator, start: u32) -> Parsed {
        let (left, right) = self.operands(left, POWER_COMPARATOR)?;
        let node = Node::Comparison {
            operator,
            left,
            right,
        };
        self.finish(node, start)
    }

    fn arithmetic(
        &mut self,
        left: Box<Expression>,
        operator: Arithmetic,
        power: u8,
        start: u32,
    ) -> Parsed {
        let (left, right) = self.operands(left, power)?;
        let node = AssertionNode::Arithmetic {
            operator,
            left,
            right,
        };
        self.finish(Node::Assertion(Box::new(node)), start)
    }

    fn sign(&mut self, negative: bool, start: u32) -> Parsed {
        self.advance();
        let operand = self.expression(POWER_SUM)?;
        let node = AssertionNode::Sign { negative, operand };
        self.finish(Node::Assertion(Box::new(node)), start)
    }

    fn assertion_leaf(&mut self, node: AssertionNode, start: u32) -> Parsed {
        self.leaf(Node::Assertion(Box::new(node)), start)
    }

    fn is_word(&self, word: &str) -> bool {
        let token = self.tokens.get(self.index);
        token.is_some_and(|token| {
            token.kind == TokenKind::UnquotedIdentifier && &*token.text == word
        })
    }

    /// `let` is a name unless a variable follows.
    fn begins_let(&self) -> bool {
        self.kind(1) == TokenKind::Variable && self.is_word("let")
    }

    /// `let`, bindings between commas, `in`, body.
    fn let_expression(&mut self, start: u32) -> Parsed {
        self.advance();
        let mut bindings = Vec::new();
        loop {
            let name = self.take_text();
            self.expect(TokenKind::Variable)?;
            self.expect(TokenKind::Assign)?;
            bindings.push((name, *self.expression(0)?));
            if self.current() != TokenKind::Comma {
                break;
            }
            self.advance();
        }
        if !self.is_word("in") {
            return Err(self.error("Expected keyword in"));
        }
        self.advance();
        let body = self.expression(0)?;
        let node = AssertionNode::Let { bindings, body };
        self.finish(Node::Assertion(Box::new(node)), start)
    }

    /// Consumes the operator and parses its right operand.
    fn operands(
        &mut self,
        left: Box<Expression>,
        power: u8,
    ) -> Result<(Box<Expression>, Box<Expression>), Failure> {
        self.advance();
        Ok((left, self.expression(power)?))
    }

    /// `(`, arguments, `)`. A comma between or after arguments may be missing.
    #[expect(
        clippy::boxed_local,
        reason = "a box keeps the frames of the recursion small"
    )]
    fn call(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        let name_span = self.span_from(start);
        if self.dialect == Dialect::Assertion && !matches!(left.node, Node::Field(_)) {
            return Err(self.error("Invalid node as function name."));
        }
        self.advance();
        let mut arguments = Vec::new();
        while self.current() != TokenKind::Rparen {
            arguments.push(*self.expression(0)?);
            if self.current() == TokenKind::Comma {
                self.advance();
            }
        }
        self.advance();
        let call = FunctionCall {
            name: callable_name(left.node),
            name_span,
            arguments,
        };
        self.finish(Node::FunctionCall(Box::new(call)), start)
    }

    /// `[?`, condition, `]` and the projected expression.
    fn filter(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        self.advance();
        let condition = self.expression(0)?;
        self.expect(TokenKind::Rbracket)?;
        let right = self.projected(POWER_FILTER)?;
        self.projection(left, ProjectionKind::Filter(condition), right, start)
    }

    /// `[]` and the projected expression.
    fn flatten(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        self.advance();
        let right = self.projected(POWER_FLATTEN)?;
        self.projection(left, ProjectionKind::Flatten, right, start)
    }

    /// `[` after an expression: index, slice or `*`.
    fn bracket(&mut self, left: Box<Expression>, start: u32) -> Parsed {
        self.advance();
        if matches!(self.current(), TokenKind::Number | TokenKind::Colon) {
            let subscript = self.subscript()?;
            return self.subscripted(left, subscript, start);
        }
        self.expect(TokenKind::Star)?;
        self.expect(TokenKind::Rbracket)?;
        let right = self.projected(POWER_STAR)?;
        self.projection(left, ProjectionKind::List, right, start)
    }

    #[expect(
        clippy::boxed_local,
        reason = "a box keeps the frames of the recursion small"
    )]
    fn projection(
        &mut self,
        left: Box<Expression>,
        kind: ProjectionKind,
        right: Box<Expression>,
        start: u32,
    ) -> Parsed {
        let projection = Box::new(Projection {
            left: *left,
            kind,
            right: *right,
        });
        self.finish(Node::Projection(projection), start)
    }

    fn subscripted(&mut self, left: Box<Expression>, subscript: Subscript, start: u32) -> Parsed {
        match subscript {
            Subscript::Index(index) => self.finish(Node::Index { left, index }, start),
            Subscript::Slice(slice) => {
                let right = self.projected(POWER_STAR)?;
                self.projection(left, ProjectionKind::Slice(slice), right, start)
            }
        }
    }

    /// An index or a slice including its `]`.
    fn subscript(&mut self) -> Result<Subscript, Failure> {
        if self.current() == TokenKind::Colon || self.kind(1) == TokenKind::Colon {
            return Ok(Subscript::Slice(self.slice()?));
        }
        let index = self.number()?;
        self.expect(TokenKind::Rbracket)?;
        Ok(Subscript::Index(index))
    }

    /// Parts of a slice: a later number replaces an earlier one of the same part, and a
    /// third colon is ignored.
    fn slice(&mut self) -> Result<Slice, Failure> {
        let mut slice = Slice::default();
        let mut colons = 0;
        while self.current() != TokenKind::Rbracket && colons < 3 {
            match self.current() {
                TokenKind::Colon => {
                    colons += 1;
                    self.advance();
                }
                TokenKind::Number => {
                    let part = match colons {
                        0 => &mut slice.start,
                        1 => &mut slice.stop,
                        _ => &mut slice.step,
                    };
                    *part = Some(self.number()?);
                }
                other => {
                    return Err(self.error(format_args!(
                        "Expected tColon or tNumber, received: {}",
                        other.name()
                    )));
                }
            }
        }
        self.expect(TokenKind::Rbracket)?;
        Ok(slice)
    }

    /// Consumes a number as parsed by Go's `strconv.Atoi`; on an error the token remains.
    fn number(&mut self) -> Result<i64, Failure> {
        let token = self.tokens.get(self.index);
        let text = token.map_or("", |token| &*token.text);
        match text.parse::<i64>() {
            Ok(number) => {
                self.advance();
                Ok(number)
            }
            Err(_) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                let reason = if digits.is_empty() {
                    "invalid syntax"
                } else {
                    "value out of range"
                };
                let message = format!("strconv.Atoi: parsing \"{text}\": {reason}");
                let offset = self.place().start as usize;
                Err(Box::new(SyntaxError::plain(message, offset)))
            }
        }
    }

    /// Parses what may follow a dot.
    fn after_dot(&mut self, least: u8) -> Parsed {
        match self.current() {
            TokenKind::QuotedIdentifier | TokenKind::UnquotedIdentifier | TokenKind::Star => {
                self.expression(least)
            }
            TokenKind::Lbracket => {
                let start = self.place().start;
                self.advance();
                self.multi_select_list(start)
            }
            TokenKind::Lbrace => {
                let start = self.place().start;
                self.multi_select_hash(start)
            }
            _ => Err(self.error("Expected identifier, lbracket, or lbrace")),
        }
    }

    /// The right side of a projection.
    fn projected(&mut self, least: u8) -> Parsed {
        match self.current() {
            kind if power(kind) < PROJECTION_STOP => Ok(self.identity()),
            TokenKind::Lbracket | TokenKind::Filter => self.expression(least),
            TokenKind::Dot => {
                self.advance();
                self.after_dot(least)
            }
            _ => Err(self.error("Error")),
        }
    }

    /// Items of a list whose `[` has been consumed.
    fn multi_select_list(&mut self, start: u32) -> Parsed {
        let mut items = Vec::new();
        loop {
            items.push(*self.expression(0)?);
            if self.current() == TokenKind::Rbracket {
                break;
            }
            self.expect(TokenKind::Comma)?;
        }
        self.advance();
        self.finish(Node::MultiSelectList(items), start)
    }

    /// `{` and pairs up to `}`; a comma between pairs may be missing.
    fn multi_select_hash(&mut self, start: u32) -> Parsed {
        self.advance();
        let mut entries = Vec::new();
        loop {
            let key_span = self.place();
            let key = match self.current() {
                TokenKind::UnquotedIdentifier | TokenKind::QuotedIdentifier => self.take_text(),
                _ => {
                    return Err(self.error("Expected tQuotedIdentifier or tUnquotedIdentifier"));
                }
            };
            self.advance();
            self.expect(TokenKind::Colon)?;
            let value = *self.expression(0)?;
            entries.push(HashEntry {
                key,
                key_span,
                value,
            });
            match self.current() {
                TokenKind::Comma => self.advance(),
                TokenKind::Rbrace => break,
                _ => {}
            }
        }
        self.advance();
        self.finish(Node::MultiSelectHash(entries), start)
    }
}

fn too_deep(offset: u32) -> Failure {
    let message = format!("expression is nested more than {MAX_DEPTH} levels deep");
    Box::new(SyntaxError::plain(message, offset as usize))
}

/// The text in the value slot of the node before `(` (docs/spec/jmespath.md §3): a field's
/// name, a string literal, or the name of a call.
fn callable_name(node: Node) -> Option<Box<str>> {
    match node {
        Node::Field(name) | Node::Literal(TreeValue::String(name)) => Some(name),
        Node::FunctionCall(call) => call.name,
        _ => None,
    }
}
