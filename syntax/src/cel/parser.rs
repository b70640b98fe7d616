//! Parser of CEL: builds an [`Expr`] with macros expanded.
//!
//! Uses precedence climbing. Nesting is bounded, and so is the depth of the tree for a long
//! chain of operators, because all later phases traverse it recursively.

use crate::tree::Span;

use super::Macros;
use super::SyntaxError;
use super::ast::{Element, Entry, Expr, Literal, Node};
use super::lexer::{Lexeme, Token, lex};

/// Maximum nesting of an expression. cel-go allows 250; realistic expressions stay far
/// below either, and all phases up to code generation fit a small stack.
const MAX_DEPTH: usize = 100;

/// Maximum length of an expression in code points, as in cel-go.
const MAX_CODE_POINTS: usize = 100_000;

/// Words that cannot be names (docs/spec/cel.md §3.2).
const RESERVED: [&str; 18] = [
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
    "in",
];

/// Parses an expression and expands the available macros.
///
/// # Errors
/// The first syntax error.
pub fn parse(text: &str, macros: Macros) -> Result<Expr, SyntaxError> {
    let size = text.chars().count();
    if size > MAX_CODE_POINTS {
        return Err(SyntaxError::new(
            0,
            format!(
                "expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}"
            ),
        ));
    }
    let mut parser = Parser {
        lexemes: lex(text)?,
        at: 0,
        depth: 0,
        next_id: 0,
        macros,
    };
    let expression = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => parser.unexpected("the end of the expression"),
    }
}

/// Parser state; also used by macro expansion.
pub(super) struct Parser {
    lexemes: Vec<Lexeme>,
    at: usize,
    depth: usize,
    next_id: usize,
    pub(super) macros: Macros,
}

type Parsed = Result<Expr, SyntaxError>;

impl Parser {
    fn peek(&self) -> &Token {
        self.lexemes
            .get(self.at)
            .map_or(&Token::End, |lexeme| &lexeme.token)
    }

    fn place(&self) -> Span {
        self.lexemes
            .get(self.at)
            .or(self.lexemes.last())
            .map_or(Span::default(), |lexeme| lexeme.span)
    }

    fn last_end(&self) -> u32 {
        self.at
            .checked_sub(1)
            .and_then(|before| self.lexemes.get(before))
            .map_or(0, |lexeme| lexeme.span.end)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.peek(), Token::Mark(found) if *found == mark)
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = self.is(mark);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &str) -> Result<(), SyntaxError> {
        if self.take(mark) {
            return Ok(());
        }
        self.unexpected(&format!("'{mark}'"))
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, SyntaxError> {
        let found = match self.peek() {
            Token::End => "<EOF>".to_owned(),
            Token::Ident(name) => name.clone(),
            Token::Int(number) => number.to_string(),
            Token::Uint(number) => format!("{number}u"),
            Token::Double(number) => number.to_string(),
            Token::String(_) | Token::Bytes(_) => "a string".to_owned(),
            Token::Mark(mark) => (*mark).to_owned(),
        };
        Err(SyntaxError::new(
            self.place().start as usize,
            format!("Syntax error: mismatched input '{found}' expecting {expected}"),
        ))
    }

    /// Creates an expression with the next index.
    pub(super) fn new_expr(&mut self, span: Span, node: Node) -> Expr {
        self.next_id += 1;
        Expr {
            id: self.next_id - 1,
            span,
            node,
        }
    }

    /// Creates a call of an operator or of a function without a receiver.
    pub(super) fn call(&mut self, span: Span, function: &str, arguments: Vec<Expr>) -> Expr {
        let node = Node::Call {
            function: function.to_owned(),
            target: None,
            arguments,
        };
        self.new_expr(span, node)
    }

    fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SyntaxError::new(
                self.place().start as usize,
                format!("expression recursion limit exceeded: {MAX_DEPTH}"),
            ));
        }
        Ok(())
    }

    fn expression(&mut self) -> Parsed {
        let depth = self.depth;
        self.enter()?;
        let mut result = self.operation(0)?;
        // Errors point to the operator.
        let operator = self.place().start;
        if self.take("?") {
            let then = self.operation(0)?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            let node = Node::Conditional(Box::new([result, then, otherwise]));
            result = self.new_expr(self.since(operator), node);
        }
        self.depth = depth;
        Ok(result)
    }

    fn since(&self, start: u32) -> Span {
        Span {
            start,
            end: self.last_end().max(start),
        }
    }

    /// The current operator and its precedence.
    fn operator(&self) -> Option<(u8, &'static str)> {
        Some(match self.peek() {
            Token::Ident(name) if name == "in" => (2, "@in"),
            Token::Mark("||") => (0, "||"),
            Token::Mark("&&") => (1, "&&"),
            Token::Mark("==") => (2, "_==_"),
            Token::Mark("!=") => (2, "_!=_"),
            Token::Mark("<") => (2, "_<_"),
            Token::Mark("<=") => (2, "_<=_"),
            Token::Mark(">") => (2, "_>_"),
            Token::Mark(">=") => (2, "_>=_"),
            Token::Mark("+") => (3, "_+_"),
            Token::Mark("-") => (3, "_-_"),
            Token::Mark("*") => (4, "_*_"),
            Token::Mark("/") => (4, "_/_"),
            Token::Mark("%") => (4, "_%_"),
            _ => return None,
        })
    }

    /// Parses operators of at least this precedence, and their operands.
    fn operation(&mut self, least: u8) -> Parsed {
        let depth = self.depth;
        let mut left = self.unary()?;
        while let Some((strength, operator)) = self.operator().filter(|(own, _)| *own >= least) {
            let place = self.place();
            self.at += 1;
            let is_logic = strength < 2;
            if !is_logic {
                // A chain of `&&` or `||` is a single expression, however long.
                self.enter()?;
            }
            let right = self.operation(strength + 1)?;
            left = if is_logic {
                self.join(operator == "&&", left, right)
            } else {
                self.call(place, operator, vec![left, right])
            };
        }
        self.depth = depth;
        Ok(left)
    }

    /// `left && right` or `left || right`, merged into `left` if it is such a chain.
    fn join(&mut self, is_and: bool, left: Expr, right: Expr) -> Expr {
        let span = Span {
            start: left.span.start,
            end: right.span.end,
        };
        let operands = match left.node {
            Node::Logic {
                is_and: same,
                mut operands,
            } if same == is_and => {
                operands.push(right);
                operands
            }
            _ => vec![left, right],
        };
        self.new_expr(span, Node::Logic { is_and, operands })
    }

    fn unary(&mut self) -> Parsed {
        let depth = self.depth;
        let mut operators = Vec::new();
        let mark = if self.is("!") { "!" } else { "-" };
        while self.is(mark) && !(mark == "-" && self.is_negative_number()) {
            self.enter()?;
            operators.push(self.place());
            self.at += 1;
        }
        let mut operand = self.member()?;
        // As in cel-go: two of them cancel out.
        if let (1, Some(place)) = (operators.len() % 2, operators.first()) {
            let name = if mark == "!" { "!_" } else { "-_" };
            operand = self.call(*place, name, vec![operand]);
        }
        self.depth = depth;
        Ok(operand)
    }

    /// Whether a minus and a number follow, which form one literal.
    fn is_negative_number(&self) -> bool {
        let next = self.lexemes.get(self.at + 1).map(|lexeme| &lexeme.token);
        self.is("-") && matches!(next, Some(Token::Int(_) | Token::Double(_)))
    }

    fn member(&mut self) -> Parsed {
        let depth = self.depth;
        let start = self.place().start;
        let mut operand = self.primary()?;
        loop {
            let place = self.place();
            if self.take(".") {
                self.enter()?;
                let optional = self.optional_mark()?;
                let field = self.field()?;
                if !optional && self.is("(") {
                    let open = self.place();
                    let arguments = self.arguments()?;
                    operand = self.method(operand, field, arguments, start, open)?;
                } else {
                    let node = Node::Select {
                        operand: Box::new(operand),
                        field,
                        optional,
                    };
                    operand = self.new_expr(
                        Span {
                            start: place.start,
                            end: self.last_end(),
                        },
                        node,
                    );
                }
            } else if self.take("[") {
                self.enter()?;
                let optional = self.optional_mark()?;
                let index = self.expression()?;
                self.expect("]")?;
                let operator = if optional { "_[?_]" } else { "_[_]" };
                operand = self.call(place, operator, vec![operand, index]);
            } else if self.is("{") {
                let Some(name) = qualified_name(&operand) else {
                    break;
                };
                self.enter()?;
                operand = self.message(name, start)?;
            } else {
                break;
            }
        }
        self.depth = depth;
        Ok(operand)
    }

    fn optional_mark(&mut self) -> Result<bool, SyntaxError> {
        let place = self.place().start as usize;
        let optional = self.take("?");
        if optional && !self.macros.optional {
            return Err(SyntaxError::new(place, "unsupported syntax '.?'"));
        }
        Ok(optional)
    }

    /// Name after a dot: reserved words are allowed there, `in` is not.
    fn field(&mut self) -> Result<String, SyntaxError> {
        match self.peek() {
            Token::Ident(name) if !matches!(&**name, "in" | "true" | "false" | "null") => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.unexpected("a name"),
        }
    }

    fn method(
        &mut self,
        target: Expr,
        function: String,
        arguments: Vec<Expr>,
        start: u32,
        open: Span,
    ) -> Parsed {
        let span = Span {
            start: open.start,
            end: self.last_end(),
        };
        let whole = self.since(start);
        self.expand_method(target, function, arguments, span, whole)
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, SyntaxError> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.take(")") {
            arguments.push(self.expression()?);
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
            if self.is(")") {
                return self.unexpected("an expression");
            }
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Parsed {
        let place = self.place();
        if self.is_negative_number() {
            self.at += 1;
            let literal = match self.next() {
                Token::Int(number) => Literal::Int((number as i64).wrapping_neg()),
                Token::Double(number) => Literal::Double(-number),
                _ => Literal::Null,
            };
            return Ok(self.new_expr(self.since(place.start), Node::Literal(literal)));
        }
        let literal = match self.peek().clone() {
            Token::Int(number) => match i64::try_from(number) {
                Ok(number) => Literal::Int(number),
                Err(_) => {
                    return Err(SyntaxError::new(
                        place.start as usize,
                        "invalid int literal",
                    ));
                }
            },
            Token::Uint(number) => Literal::Uint(number),
            Token::Double(number) => Literal::Double(number),
            Token::String(text) => Literal::String(text),
            Token::Bytes(bytes) => Literal::Bytes(bytes),
            Token::Ident(name) => match &*name {
                "true" => Literal::Bool(true),
                "false" => Literal::Bool(false),
                "null" => Literal::Null,
                _ => return self.name(name, ""),
            },
            Token::Mark("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Mark("[") => return self.list(),
            Token::Mark("{") => return self.map(),
            Token::Mark(".") => {
                self.at += 1;
                let Token::Ident(name) = self.peek().clone() else {
                    return self.unexpected("a name");
                };
                return self.name(name, ".");
            }
            Token::Mark(_) | Token::End => return self.unexpected("an expression"),
        };
        self.at += 1;
        Ok(self.new_expr(place, Node::Literal(literal)))
    }

    fn name(&mut self, name: String, dot: &str) -> Parsed {
        let place = self.place();
        if RESERVED.contains(&&*name) {
            return Err(SyntaxError::new(
                place.start as usize,
                format!("reserved identifier: {name}"),
            ));
        }
        self.at += 1;
        let name = format!("{dot}{name}");
        if self.is("(") {
            let open = self.place();
            let arguments = self.arguments()?;
            let span = Span {
                start: open.start,
                end: self.last_end(),
            };
            return self.expand_function(name, arguments, span);
        }
        Ok(self.new_expr(place, Node::Ident(name)))
    }

    fn list(&mut self) -> Parsed {
        let start = self.place().start;
        self.expect("[")?;
        let mut elements = Vec::new();
        while !self.take("]") {
            let optional = self.optional_mark()?;
            let value = self.expression()?;
            elements.push(Element { optional, value });
            if !self.take(",") {
                self.expect("]")?;
                break;
            }
        }
        Ok(self.new_expr(self.since(start), Node::List(elements)))
    }

    fn map(&mut self) -> Parsed {
        let start = self.place().start;
        self.expect("{")?;
        let mut entries = Vec::new();
        while !self.take("}") {
            let optional = self.optional_mark()?;
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            entries.push(Entry {
                optional,
                key,
                value,
            });
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(self.new_expr(self.since(start), Node::Map(entries)))
    }

    fn message(&mut self, name: String, start: u32) -> Parsed {
        self.expect("{")?;
        let mut values = Vec::new();
        while !self.take("}") {
            self.optional_mark()?;
            self.field()?;
            self.expect(":")?;
            values.push(self.expression()?);
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(self.new_expr(self.since(start), Node::Message { name, values }))
    }
}

/// The dotted name that an expression spells, if any.
pub fn qualified_name(expression: &Expr) -> Option<String> {
    match &expression.node {
        Node::Ident(name) => Some(name.clone()),
        Node::Select {
            operand,
            field,
            optional: false,
        } => Some(format!("{}.{field}", qualified_name(operand)?)),
        _ => None,
    }
}
