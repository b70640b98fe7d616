//! Syntax tree of a JMESPath expression.
//!
//! A [`Node`] describes what is computed, the surrounding [`Expression`] its location.
//! Parentheses leave no node. Evaluation is defined elsewhere; comments cite the rules in
//! docs/spec/jmespath.md.

use std::fmt;

use crate::tree::{Span, TreeValue};

/// A node and its location.
///
/// Equality compares nodes, not locations.
#[derive(Debug, Clone)]
pub struct Expression {
    /// What is computed.
    pub node: Node,
    /// Source range, including the parentheses of a left operand.
    pub span: Span,
    height: u16,
}

/// Computation of an [`Expression`] (docs/spec/jmespath.md §3 and §4).
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// The current value, without any text: the left side of a prefix `[0]`, `*` or `[?…]`,
    /// and the right side of a projection without further steps.
    Identity,
    /// `@`: the current value.
    Current,
    /// `name` or `"name"`: the value of that key in the current map. The only node that can
    /// fail with an unknown key.
    Field(Box<str>),
    /// A JSON literal in backticks or a raw string in quotes. Every number is a float;
    /// inner spans are that of the whole literal.
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
        /// The index.
        index: i64,
    },
    /// `left[*]right` and the four other forms.
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
    /// `left || right`: returns an operand's value, not a boolean.
    Or {
        /// Evaluated first; its unknown key counts as null.
        left: Box<Expression>,
        /// Evaluated if left is falsy; its unknown key counts as null.
        right: Box<Expression>,
    },
    /// `left && right`: returns an operand's value, not a boolean.
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
    /// An unfinished prefix `[0` or `[1:`, which Kyverno's parser accepts by mistake.
    /// Evaluating it fails with `Unknown AST node: ASTEmpty`.
    Empty,
    /// A form available only in [`Dialect::Assertion`](super::Dialect::Assertion).
    Assertion(Box<AssertionNode>),
}

/// Forms of assertion trees that Kyverno's dialect lacks (docs/spec/assert.md §8).
#[derive(Debug, Clone, PartialEq)]
pub enum AssertionNode {
    /// `$`: the input of the whole expression.
    Root,
    /// `$name`: the value of a binding.
    Variable(Box<str>),
    /// `left + right` and the four others; null unless both are numbers.
    Arithmetic {
        /// The operation.
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
    /// `let $a = x, $b = y in body`; bindings do not see each other.
    Let {
        /// Names and values, in order.
        bindings: Vec<(Box<str>, Expression)>,
        /// Scope of the bindings.
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
    /// `//`: rounds down.
    DivideWhole,
    /// `%`: the sign is that of the left operand.
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
    /// Kind of projection.
    pub kind: ProjectionKind,
    /// Evaluated on each element; null results are dropped.
    pub right: Expression,
}

/// The five kinds of projection. They differ in the values they accept and in which errors
/// of the left side they suppress.
#[derive(Debug, Clone, PartialEq)]
pub enum ProjectionKind {
    /// `[*]`: the items of a list.
    List,
    /// `[start:stop:step]`: the items in that range of a list.
    Slice(Slice),
    /// `[?condition]`: the items of a list for which the condition is truthy.
    Filter(Box<Expression>),
    /// `[]`: the items of a list, with nested lists flattened once.
    Flatten,
    /// `*`: the values of a map.
    Object,
}

/// Parts of a slice as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slice {
    /// First item.
    pub start: Option<i64>,
    /// Item after the last one.
    pub stop: Option<i64>,
    /// Step; zero is a run-time error.
    pub step: Option<i64>,
}

/// A pair of a [`Node::MultiSelectHash`].
#[derive(Debug, Clone)]
pub struct HashEntry {
    /// Key of the result.
    pub key: Box<str>,
    /// Location of the key.
    pub key_span: Span,
    /// Computes the value.
    pub value: Expression,
}

/// A call (docs/spec/jmespath.md §5).
#[derive(Debug, Clone)]
pub struct FunctionCall {
    /// The function. `None` if the text before `(` is not a name, as in `@(x)`: Kyverno
    /// compiles that and fails with `invalid node value type`.
    pub name: Option<Box<str>>,
    /// Location of the name.
    pub name_span: Span,
    /// Arguments, all evaluated before the name is looked up.
    pub arguments: Vec<Expression>,
}

/// A comparison. The four ordering comparisons apply only to floats and otherwise return
/// null.
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
    /// Creates a node with its location and computes its height.
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

    /// Number of nodes on the longest path to a leaf, 1 for a leaf. At most
    /// [`MAX_DEPTH`](super::MAX_DEPTH) for results of [`parse`](super::parse).
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }
}

impl Node {
    /// Direct subexpressions, in the order of the text.
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
