//! The tree of one expression.
//!
//! A [`Node`] says what is computed, the [`Expression`] around it where it stood
//! in the text. Parentheses leave no node. Nothing here knows how a node is
//! evaluated; the comments name the rule of docs/spec/jmespath.md that does.

use std::fmt;

use crate::tree::{Span, TreeValue};

/// One node of an expression and its place.
///
/// Equality compares what is computed, not places.
#[derive(Debug, Clone)]
pub struct Expression {
    /// What is computed.
    pub node: Node,
    /// The bytes of the expression's text that it was read from, parentheses
    /// around an operand included where it is the left one.
    pub span: Span,
    height: u16,
}

/// What an [`Expression`] computes (docs/spec/jmespath.md §3 and 4).
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// The current value, written without a character: the left side of a prefix
    /// `[0]`, `*` or `[?…]`, and the right side of a projection that ends there.
    Identity,
    /// `@`: the current value.
    Current,
    /// `name` or `"name"`: the value under that key of the current map. The only
    /// node that can fail with an unknown key.
    Field(Box<str>),
    /// A JSON literal between backticks or a raw string between quotes. Every
    /// number is a float; the spans inside are those of the whole literal.
    Literal(TreeValue),
    /// `left.right`: right evaluated on left's value, even on null.
    Subexpression {
        /// Evaluated first.
        left: Box<Expression>,
        /// Evaluated on its value.
        right: Box<Expression>,
    },
    /// `left[index]`; negative numbers count from the end.
    Index {
        /// The list; [`Node::Identity`] for a prefix `[0]`.
        left: Box<Expression>,
        /// Which item.
        index: i64,
    },
    /// `left[*]right` and its four relatives.
    Projection(Box<Projection>),
    /// `[a, b]`; null on a null current value.
    MultiSelectList(Vec<Expression>),
    /// `{key: a}`; null on a null current value.
    MultiSelectHash(Vec<HashEntry>),
    /// `left == right` and the five others.
    Comparison {
        /// Which comparison.
        operator: Comparator,
        /// Left operand.
        left: Box<Expression>,
        /// Right operand.
        right: Box<Expression>,
    },
    /// `left || right`: an operand's value, not a boolean.
    Or {
        /// Evaluated first; its unknown key counts as null.
        left: Box<Expression>,
        /// Evaluated if left is falsy; its unknown key counts as null.
        right: Box<Expression>,
    },
    /// `left && right`: an operand's value, not a boolean.
    And {
        /// Evaluated first; its unknown key counts as null.
        left: Box<Expression>,
        /// Evaluated if left is truthy; its unknown key is an error.
        right: Box<Expression>,
    },
    /// `!operand`; binds tighter than `.`, so `!a.b` is `(!a).b`.
    Not(Box<Expression>),
    /// `left | right`; an unknown key on either side counts as null.
    Pipe {
        /// Evaluated first.
        left: Box<Expression>,
        /// Evaluated on its value.
        right: Box<Expression>,
    },
    /// `name(arguments)`.
    FunctionCall(Box<FunctionCall>),
    /// `&operand`: the expression itself as a value.
    ExpressionReference(Box<Expression>),
    /// A prefix `[0` or `[1:` without its end, which Kyverno's parser accepts by
    /// mistake. Evaluating it fails with `Unknown AST node: ASTEmpty`.
    Empty,
    /// What only [`Dialect::Assertion`](super::Dialect::Assertion) has.
    Assertion(Box<AssertionNode>),
}

/// The forms of assertion trees that Kyverno's dialect lacks (docs/spec/assert.md §8).
#[derive(Debug, Clone, PartialEq)]
pub enum AssertionNode {
    /// `$`: the value that the whole expression is about.
    Root,
    /// `$name`: what a binding holds.
    Variable(Box<str>),
    /// `left + right` and the four others; null unless both are numbers.
    Arithmetic {
        /// Which operation.
        operator: Arithmetic,
        /// Left operand.
        left: Box<Expression>,
        /// Right operand.
        right: Box<Expression>,
    },
    /// `-operand` or `+operand`; null unless it is a number.
    Sign {
        /// Whether it is a minus.
        negative: bool,
        /// The operand.
        operand: Box<Expression>,
    },
    /// `let $a = x, $b = y in body`; a binding does not see those beside it.
    Let {
        /// Names and values, in order.
        bindings: Vec<(Box<str>, Expression)>,
        /// What sees them.
        body: Box<Expression>,
    },
}

/// An arithmetic operation on floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`, `−`
    Subtract,
    /// `*`, `×`
    Multiply,
    /// `/`, `÷`
    Divide,
    /// `//`: rounded down.
    DivideWhole,
    /// `%`: with the sign of the left operand.
    Modulo,
}

impl Arithmetic {
    /// The operator in ASCII.
    pub fn as_str(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::DivideWhole => "//",
            Arithmetic::Modulo => "%",
        }
    }
}

/// A list of results, one per element of the left side (docs/spec/jmespath.md §4).
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// The source; [`Node::Identity`] for a prefix form.
    pub left: Expression,
    /// What is done with it.
    pub kind: ProjectionKind,
    /// Evaluated on each element; null results are dropped.
    pub right: Expression,
}

/// The five kinds of projection. They differ in the values they accept and in
/// the errors of the left side that they swallow.
#[derive(Debug, Clone, PartialEq)]
pub enum ProjectionKind {
    /// `[*]`: the items of a list.
    List,
    /// `[start:stop:step]`: the items of that part of a list.
    Slice(Slice),
    /// `[?condition]`: the items of a list for which the condition is truthy.
    Filter(Box<Expression>),
    /// `[]`: the items of a list, lists among them opened once.
    Flatten,
    /// `*`: the values of a map.
    Object,
}

/// The parts of a slice as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slice {
    /// First item.
    pub start: Option<i64>,
    /// The item before which to stop.
    pub stop: Option<i64>,
    /// Distance; zero is an error at run time.
    pub step: Option<i64>,
}

/// One pair of a [`Node::MultiSelectHash`].
#[derive(Debug, Clone)]
pub struct HashEntry {
    /// The key of the result.
    pub key: Box<str>,
    /// Where the key stood.
    pub key_span: Span,
    /// Computes the value.
    pub value: Expression,
}

/// A call (docs/spec/jmespath.md §5).
#[derive(Debug, Clone)]
pub struct FunctionCall {
    /// The function. `None` where the text before `(` is no name, as in `@(x)`:
    /// Kyverno compiles that and fails with `invalid node value type`.
    pub name: Option<Box<str>>,
    /// Where the name stood.
    pub name_span: Span,
    /// The arguments, all evaluated before the name is looked up.
    pub arguments: Vec<Expression>,
}

/// A comparison. The four orders hold between floats only, else give null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Expression {
    /// A node and its place; the height follows from the node.
    pub fn new(node: Node, span: Span) -> Self {
        let below = node
            .children()
            .iter()
            .map(|child| child.height)
            .max()
            .unwrap_or(0);
        Self {
            node,
            span,
            height: below.saturating_add(1),
        }
    }

    /// Number of nodes on the longest way from here to a leaf, 1 for a leaf. At
    /// most [`MAX_DEPTH`](super::MAX_DEPTH) in what [`parse`](super::parse) returns.
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }
}

impl Node {
    /// The expressions directly below, in the order of the text.
    pub fn children(&self) -> Vec<&Expression> {
        match self {
            Node::Identity | Node::Current | Node::Field(_) | Node::Literal(_) | Node::Empty => {
                Vec::new()
            }
            Node::Subexpression { left, right }
            | Node::Comparison { left, right, .. }
            | Node::Or { left, right }
            | Node::And { left, right }
            | Node::Pipe { left, right } => vec![left, right],
            Node::Index { left, .. } => vec![left],
            Node::Not(operand) | Node::ExpressionReference(operand) => vec![operand],
            Node::Projection(projection) => match &projection.kind {
                ProjectionKind::Filter(condition) => {
                    vec![&projection.left, condition, &projection.right]
                }
                ProjectionKind::List
                | ProjectionKind::Slice(_)
                | ProjectionKind::Flatten
                | ProjectionKind::Object => vec![&projection.left, &projection.right],
            },
            Node::MultiSelectList(items) => items.iter().collect(),
            Node::MultiSelectHash(entries) => entries.iter().map(|entry| &entry.value).collect(),
            Node::FunctionCall(call) => call.arguments.iter().collect(),
            Node::Assertion(node) => match &**node {
                AssertionNode::Root | AssertionNode::Variable(_) => Vec::new(),
                AssertionNode::Arithmetic { left, right, .. } => vec![left, right],
                AssertionNode::Sign { operand, .. } => vec![operand],
                AssertionNode::Let { bindings, body } => {
                    let values = bindings.iter().map(|(_, value)| value);
                    values.chain(std::iter::once(&**body)).collect()
                }
            },
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl PartialEq for HashEntry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl PartialEq for FunctionCall {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.arguments == other.arguments
    }
}

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparator::Equal => "==",
            Comparator::NotEqual => "!=",
            Comparator::Less => "<",
            Comparator::LessOrEqual => "<=",
            Comparator::Greater => ">",
            Comparator::GreaterOrEqual => ">=",
        })
    }
}
