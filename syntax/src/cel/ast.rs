//! The syntax tree of CEL, macros expanded to what they mean.
//!
//! cel-go expands macros to one general fold; here each keeps its name, because each
//! is lowered in its own way (docs/spec/cel.md §3.6).

use crate::tree::Span;

/// An expression and where it stands in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Its number among the expressions of the text, for what is found out about it.
    pub id: usize,
    /// The bytes that it is written with; a diagnostic points at `span.start`.
    pub span: Span,
    /// What it is.
    pub node: Node,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A value.
    Literal(Literal),
    /// A name; with a dot in front it is looked up outside the container.
    Ident(String),
    /// A field; `optional` for `a.?b`.
    Select {
        /// What has the field.
        operand: Box<Expr>,
        /// Its name.
        field: String,
        /// Whether it may be missing.
        optional: bool,
    },
    /// `has(a.b)`
    Has {
        /// What may have the field.
        operand: Box<Expr>,
        /// Its name.
        field: String,
        /// `has(a.?b)`
        optional: bool,
    },
    /// A call of a function or operator.
    Call {
        /// Its name; of an operator, cel-go's.
        function: String,
        /// What it is called on.
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
    /// `&&` or `||` of two or more.
    Logic {
        /// Which.
        is_and: bool,
        /// All of the same chain.
        operands: Vec<Expr>,
    },
    /// `a ? b : c`
    Conditional(Box<[Expr; 3]>),
    /// A macro that goes over a list or map.
    Comprehension(Box<Comprehension>),
    /// `cel.bind(name, value, body)`
    Bind {
        /// The variable.
        name: String,
        /// Its value, computed when it is first needed.
        value: Box<Expr>,
        /// Where it is visible.
        body: Box<Expr>,
    },
    /// `optMap` and `optFlatMap`
    OptionalMap {
        /// The optional.
        target: Box<Expr>,
        /// The name of what it holds.
        name: String,
        /// What is made of it.
        body: Box<Expr>,
        /// Whether that is an optional itself.
        flat: bool,
    },
}

/// A value in the text.
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
    /// `?x`: there only if the optional holds something.
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

/// A macro that goes over a list or map.
#[derive(Debug, Clone, PartialEq)]
pub struct Comprehension {
    /// Over what.
    pub range: Expr,
    /// The variable: an item, or a key; with a second one, an index or a key.
    pub first: String,
    /// The second variable: an item, or a value.
    pub second: Option<String>,
    /// Which macro.
    pub fold: Fold,
    /// What is tested; of `filter`, `map` and the like, what lets an item through.
    pub predicate: Option<Expr>,
    /// What is made of each.
    pub transform: Option<Expr>,
}

/// What a comprehension comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// Whether all hold.
    All,
    /// Whether any holds.
    Exists,
    /// Whether exactly one holds.
    ExistsOne,
    /// The items that hold.
    Filter,
    /// What is made of each.
    List,
    /// What is made of each, under its key.
    Map,
    /// The maps that are made of each, joined.
    Entries,
}
