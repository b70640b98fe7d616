//! The syntax tree of CEL, after macro expansion.
//!
//! cel-go expands macros to one general fold; here each keeps its identity, because each is
//! lowered differently (docs/spec/cel.md §3.6).

use crate::tree::Span;

/// An expression and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Index among the expressions of the text, for side tables.
    pub id: usize,
    /// Source range; diagnostics point at `span.start`.
    pub span: Span,
    /// Kind of expression.
    pub node: Node,
}

/// Kind of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A value.
    Literal(Literal),
    /// A name; with a leading dot it is looked up outside the container.
    Ident(String),
    /// A field access; `optional` for `a.?b`.
    Select {
        /// Value with the field.
        operand: Box<Expr>,
        /// Its name.
        field: String,
        /// Whether the field may be missing.
        optional: bool,
    },
    /// `has(a.b)`
    Has {
        /// Value that may have the field.
        operand: Box<Expr>,
        /// Its name.
        field: String,
        /// `has(a.?b)`
        optional: bool,
    },
    /// A call of a function or operator.
    Call {
        /// Its name; for an operator, cel-go's.
        function: String,
        /// Receiver of the call.
        target: Option<Box<Expr>>,
        /// Its arguments.
        arguments: Vec<Expr>,
    },
    /// A list.
    List(Vec<Element>),
    /// A map.
    Map(Vec<Entry>),
    /// A message.
    Message {
        /// Its type.
        name: String,
        /// Values of its fields.
        values: Vec<Expr>,
    },
    /// `&&` or `||` with two or more operands.
    Logic {
        /// Whether it is `&&`.
        is_and: bool,
        /// All operands of the chain.
        operands: Vec<Expr>,
    },
    /// `a ? b : c`
    Conditional(Box<[Expr; 3]>),
    /// A macro that iterates over a list or map.
    Comprehension(Box<Comprehension>),
    /// `cel.bind(name, value, body)`
    Bind {
        /// The variable.
        name: String,
        /// Its value, computed on first use.
        value: Box<Expr>,
        /// Scope of the variable.
        body: Box<Expr>,
    },
    /// `optMap` and `optFlatMap`
    OptionalMap {
        /// The optional.
        target: Box<Expr>,
        /// Name of the optional's value.
        name: String,
        /// Expression for the result.
        body: Box<Expr>,
        /// Whether the result is itself an optional.
        flat: bool,
    },
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the type that it is called")]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// `?x`: present only if the optional has a value.
    pub optional: bool,
    /// The value.
    pub value: Expr,
}

/// An entry of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// `?k: v`
    pub optional: bool,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
}

/// A macro that iterates over a list or map.
#[derive(Debug, Clone, PartialEq)]
pub struct Comprehension {
    /// Iterated value.
    pub range: Expr,
    /// First variable: an item or key; with a second variable, an index or key.
    pub first: String,
    /// Second variable: an item or a value.
    pub second: Option<String>,
    /// Which macro.
    pub fold: Fold,
    /// Tested predicate; for `filter`, `map` and similar, the condition that selects items.
    pub predicate: Option<Expr>,
    /// Result for each item.
    pub transform: Option<Expr>,
}

/// Result of a comprehension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// Whether the predicate holds for all.
    All,
    /// Whether it holds for any.
    Exists,
    /// Whether it holds for exactly one.
    ExistsOne,
    /// The items for which it holds.
    Filter,
    /// A list of the transformed items.
    List,
    /// A map of the transformed items, by key.
    Map,
    /// The union of maps, one per item.
    Entries,
}
