//! Run-time fallback for JMESPath: evaluates the syntax tree of an expression.
//!
//! Used for expressions whose text is known only at run time (a variable inside a variable)
//! and for `kpc jp`. A policy's own expressions are compiled to bytecode instead.
//!
//! Recursion is as deep as the expression's tree, which the parser bounds.

use std::fmt;

use std::collections::HashMap;

use kpvm_format::function::Function;

use crate::document::{Kind, Label, NodeId, Numbers};
use crate::function::{FunctionError, Values, call, check_arguments};
use kpvm_format::signature;
use kpvm_syntax::jmespath::{
    Comparator, Expression, FunctionCall, HashEntry, Node, Projection, ProjectionKind, Slice,
};
use kpvm_syntax::tree::Tree;

/// Reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvaluateError {
    /// A missing key. Most operators turn this into null (docs/spec/jmespath.md §4).
    NotFound(Box<str>),
    /// Any other error of Kyverno, in its words.
    Failed(String),
    /// A limit is exceeded or the host lacks the data; never turned into a value.
    Refused(String),
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(value) => write!(f, "Unknown key \"{value}\" in path"),
            Self::Failed(value) => write!(f, "{value}"),
            Self::Refused(value) => write!(f, "{value}"),
        }
    }
}

impl std::error::Error for EvaluateError {}

impl From<FunctionError> for EvaluateError {
    fn from(error: FunctionError) -> Self {
        match error {
            FunctionError::Failed(text) => EvaluateError::Failed(text),
            FunctionError::Refused(text) => EvaluateError::Refused(text),
        }
    }
}

impl From<crate::document::BufferFull> for EvaluateError {
    fn from(full: crate::document::BufferFull) -> Self {
        EvaluateError::Refused(full.to_string())
    }
}

type Outcome = Result<NodeId, EvaluateError>;

/// Value of an expression for `root` (docs/spec/jmespath.md §4).
///
/// # Errors
/// Kyverno's error, or the exceeded limit.
pub fn evaluate(expression: &Expression, root: NodeId, values: &mut Values<'_>) -> Outcome {
    let null = values.new_null()?;
    let mut evaluator = Evaluator {
        values,
        null,
        literals: HashMap::new(),
    };
    evaluator.eval(expression, root)
}

struct Evaluator<'e, 'v> {
    values: &'e mut Values<'v>,
    /// A shared null.
    null: NodeId,
    /// Literals already in the buffer, by the address of their expression.
    literals: HashMap<usize, NodeId>,
}

impl Evaluator<'_, '_> {
    fn eval(&mut self, expression: &Expression, current: NodeId) -> Outcome {
        self.values.charge(1)?;
        match &expression.node {
            Node::Identity | Node::Current => Ok(current),
            Node::Field(key) => self.field(key, current),
            Node::Literal(_) => self.literal(expression),
            Node::Subexpression { left, right } => {
                let left = self.eval(left, current)?;
                self.eval(right, left)
            }
            Node::Index { left, index } => {
                let left = self.eval(left, current)?;
                Ok(self.index(left, *index))
            }
            Node::Projection(projection) => self.projection(projection, current),
            Node::MultiSelectList(items) => self.multi_select_list(items, current),
            Node::MultiSelectHash(entries) => self.multi_select_hash(entries, current),
            Node::Comparison {
                operator,
                left,
                right,
            } => {
                let left = self.lenient(left, current)?;
                let right = self.lenient(right, current)?;
                self.compare(*operator, left, right)
            }
            Node::Or { left, right } => {
                let left = self.lenient(left, current)?;
                if self.is_truthy(left) {
                    return Ok(left);
                }
                self.lenient(right, current)
            }
            Node::And { left, right } => {
                let left = self.lenient(left, current)?;
                if !self.is_truthy(left) {
                    return Ok(left);
                }
                self.eval(right, current)
            }
            Node::Not(operand) => {
                let operand = self.lenient(operand, current)?;
                let truthy = self.is_truthy(operand);
                Ok(self.values.new_bool(!truthy)?)
            }
            Node::Pipe { left, right } => {
                let left = self.lenient(left, current)?;
                self.lenient(right, left)
            }
            Node::FunctionCall(call) => self.function_call(call, current),
            Node::ExpressionReference(_) => {
                self.values.buffer.push_reference(Label::ITEM);
                Ok(self.values.buffer.take()?)
            }
            Node::Empty => Err(EvaluateError::Failed("Unknown AST node: ASTEmpty".into())),
            // INVARIANT: expressions of assertions are compiled, never parsed at run time.
            Node::Assertion(_) => Err(EvaluateError::Failed(
                "this form belongs to assertion trees".into(),
            )),
        }
    }

    /// The value; null if a key is unknown.
    fn lenient(&mut self, expression: &Expression, current: NodeId) -> Outcome {
        match self.eval(expression, current) {
            Err(EvaluateError::NotFound(_)) => Ok(self.null),
            outcome => outcome,
        }
    }

    /// The value; null after any error of the expression, but not of a limit.
    fn forgiving(&mut self, expression: &Expression, current: NodeId) -> Outcome {
        match self.eval(expression, current) {
            Err(EvaluateError::NotFound(_) | EvaluateError::Failed(_)) => Ok(self.null),
            outcome => outcome,
        }
    }

    fn kind(&self, id: NodeId) -> Kind {
        self.values.view().kind(id).unwrap_or(Kind::Null)
    }

    fn is_null(&self, id: NodeId) -> bool {
        self.kind(id) == Kind::Null
    }

    /// Numbers are always truthy.
    fn is_truthy(&self, id: NodeId) -> bool {
        let view = self.values.view();
        match self.kind(id) {
            Kind::Null | Kind::False => false,
            Kind::True | Kind::Int | Kind::Float => true,
            Kind::String => !view.text(id).is_empty(),
            Kind::List => !view.is_empty(id),
            Kind::Map => !view.is_empty(id) || view.is_reference(id),
        }
    }

    fn field(&self, key: &str, current: NodeId) -> Outcome {
        let view = self.values.view();
        if self.kind(current) != Kind::Map || view.is_reference(current) {
            return Ok(self.null);
        }
        let found = view.get_text(current, key.as_bytes());
        if found.is_missing() {
            return Err(EvaluateError::NotFound(key.into()));
        }
        Ok(found)
    }

    fn literal(&mut self, expression: &Expression) -> Outcome {
        let Node::Literal(value) = &expression.node else {
            return Ok(self.null);
        };
        let address = std::ptr::from_ref(expression).addr();
        if let Some(known) = self.literals.get(&address) {
            return Ok(*known);
        }
        let tree = Tree::new(value.clone(), expression.span);
        let symbols = self.values.symbols;
        let buffer = &mut self.values.buffer;
        let id = buffer.push_tree(&tree, &symbols, Numbers::Float)?;
        self.literals.insert(address, id);
        Ok(id)
    }

    fn index(&self, list: NodeId, index: i64) -> NodeId {
        if self.kind(list) != Kind::List {
            return self.null;
        }
        let items = self.values.view().children(list);
        let place = if index < 0 {
            index.checked_add_unsigned(items.len() as u64)
        } else {
            Some(index)
        };
        let item = place.and_then(|place| usize::try_from(place).ok());
        match item.map(|place| items.at(place)) {
            Some(item) if !item.is_missing() => item,
            _ => self.null,
        }
    }

    /// What the projection runs over; `None` where its result is null.
    fn sources(
        &mut self,
        projection: &Projection,
        current: NodeId,
    ) -> Result<Option<Vec<NodeId>>, EvaluateError> {
        let left = match projection.kind {
            ProjectionKind::List | ProjectionKind::Slice(_) => {
                self.lenient(&projection.left, current)?
            }
            ProjectionKind::Filter(_) | ProjectionKind::Flatten | ProjectionKind::Object => {
                self.forgiving(&projection.left, current)?
            }
        };
        let wanted = match projection.kind {
            ProjectionKind::Object => Kind::Map,
            _ => Kind::List,
        };
        if self.kind(left) != wanted || self.values.view().is_reference(left) {
            return Ok(None);
        }
        let members = self.values.view().len(left);
        self.values.charge(members as u64)?;
        let items = self.values.view().children(left);
        Ok(Some(match &projection.kind {
            ProjectionKind::List | ProjectionKind::Filter(_) => items.collect(),
            ProjectionKind::Slice(slice) => {
                let places = slice_places(*slice, items.len())?;
                places.map(|place| items.at(place)).collect()
            }
            ProjectionKind::Flatten => self.flatten(items.collect())?,
            ProjectionKind::Object => self.values.sorted_members(left)?,
        }))
    }

    fn projection(&mut self, projection: &Projection, current: NodeId) -> Outcome {
        let Some(sources) = self.sources(projection, current)? else {
            return Ok(self.null);
        };
        let mut results = Vec::new();
        if projection.kind == ProjectionKind::Object && !sources.is_empty() {
            // Kyverno's list of values begins with as many nulls as there are values.
            let result = self.lenient(&projection.right, self.null)?;
            if !self.is_null(result) {
                results.resize(sources.len(), result);
            }
        }
        for source in sources {
            if let ProjectionKind::Filter(condition) = &projection.kind {
                let verdict = self.lenient(condition, source)?;
                if !self.is_truthy(verdict) {
                    continue;
                }
            }
            let result = self.lenient(&projection.right, source)?;
            if !self.is_null(result) {
                results.push(result);
            }
        }
        Ok(self.values.new_list(&results)?)
    }

    /// Lists among the items give way to their items, once.
    fn flatten(&mut self, items: Vec<NodeId>) -> Result<Vec<NodeId>, EvaluateError> {
        let mut flat = Vec::with_capacity(items.len());
        for item in items {
            if self.kind(item) == Kind::List {
                let inner = self.values.view().children(item);
                self.values
                    .charge_members(flat.len().max(inner.len()) / 8)?;
                flat.extend(inner);
            } else {
                flat.push(item);
            }
        }
        Ok(flat)
    }

    fn multi_select_list(&mut self, items: &[Expression], current: NodeId) -> Outcome {
        if self.is_null(current) {
            return Ok(self.null);
        }
        let mut results = Vec::with_capacity(items.len());
        for item in items {
            results.push(self.lenient(item, current)?);
        }
        Ok(self.values.new_list(&results)?)
    }

    fn multi_select_hash(&mut self, entries: &[HashEntry], current: NodeId) -> Outcome {
        if self.is_null(current) {
            return Ok(self.null);
        }
        let mut members = Vec::with_capacity(entries.len());
        for entry in entries {
            let value = self.lenient(&entry.value, current)?;
            members.push((self.values.label(&entry.key)?, value));
        }
        Ok(self.values.new_map(&members)?)
    }

    fn compare(&mut self, operator: Comparator, left: NodeId, right: NodeId) -> Outcome {
        let verdict = match operator {
            Comparator::Equal => self.values.equal(left, right)?,
            Comparator::NotEqual => !self.values.equal(left, right)?,
            Comparator::Less
            | Comparator::LessOrEqual
            | Comparator::Greater
            | Comparator::GreaterOrEqual => {
                let view = self.values.view();
                let (Some(left), Some(right)) = (view.float(left), view.float(right)) else {
                    return Ok(self.null);
                };
                match operator {
                    Comparator::Less => left < right,
                    Comparator::LessOrEqual => left <= right,
                    Comparator::Greater => left > right,
                    _ => left >= right,
                }
            }
        };
        Ok(self.values.new_bool(verdict)?)
    }

    /// docs/spec/jmespath.md §5. All arguments are evaluated before anything is checked.
    fn function_call(&mut self, function: &FunctionCall, current: NodeId) -> Outcome {
        let mut arguments = Vec::with_capacity(function.arguments.len());
        for argument in &function.arguments {
            arguments.push(self.lenient(argument, current)?);
        }
        let Some(name) = &function.name else {
            return Err(EvaluateError::Failed("invalid node value type".into()));
        };
        let Some(row) = signature::lookup(name) else {
            return Err(EvaluateError::Failed(format!("unknown function: {name}")));
        };
        let helper = match row.id {
            Function::Map => return self.map(function, &arguments),
            Function::SortBy => Function::SortByKeys,
            Function::MaxBy => Function::MaxByKeys,
            Function::MinBy => Function::MinByKeys,
            other => return Ok(call(other, &arguments, self.values)?),
        };
        check_arguments(row.id, &arguments, self.values)?;
        let (Some(list), Some(key)) = (arguments.first(), reference(function.arguments.get(1)))
        else {
            return Err(not_written_in_place());
        };
        let keys = self.keys(row.id, *list, key)?;
        Ok(call(helper, &[*list, keys], self.values)?)
    }

    fn map(&mut self, function: &FunctionCall, arguments: &[NodeId]) -> Outcome {
        check_arguments(Function::Map, arguments, self.values)?;
        let (Some(expression), Some(list)) =
            (reference(function.arguments.first()), arguments.get(1))
        else {
            return Err(not_written_in_place());
        };
        let items = self.values.view().children(*list);
        let mut results = Vec::new();
        for item in items {
            results.push(self.lenient(expression, item)?);
        }
        let results = self.values.new_list(&results)?;
        Ok(call(Function::MapResults, &[*list, results], self.values)?)
    }

    /// The key of every item; none where the function looks at no key.
    fn keys(&mut self, function: Function, list: NodeId, key: &Expression) -> Outcome {
        let items = self.values.view().children(list);
        let mut keys = Vec::new();
        if items.len() > 1 && !self.values.view().is_entries(list) {
            for (index, item) in items.enumerate() {
                // To `sort_by` all failures but the first one look the same.
                keys.push(if function == Function::SortBy && index > 0 {
                    self.forgiving(key, item)?
                } else {
                    self.lenient(key, item)?
                });
            }
        }
        Ok(self.values.new_list(&keys)?)
    }
}

/// The expression after `&`.
fn reference(argument: Option<&Expression>) -> Option<&Expression> {
    match &argument?.node {
        Node::ExpressionReference(expression) => Some(expression),
        _ => None,
    }
}

fn not_written_in_place() -> EvaluateError {
    EvaluateError::Refused(
        "an expression reference can only be written where it is used".to_owned(),
    )
}

/// Positions selected by a slice, in order.
pub(crate) fn slice_places(
    slice: Slice,
    length: usize,
) -> Result<impl Iterator<Item = usize>, EvaluateError> {
    let step = slice.step.unwrap_or(1);
    if step == 0 {
        return Err(EvaluateError::Failed(
            "Invalid slice, step cannot be 0".into(),
        ));
    }
    let length = length as i64;
    let (lowest, highest) = if step > 0 {
        (0, length)
    } else {
        (-1, length - 1)
    };
    let clamp = |part: i64| {
        let part = if part < 0 {
            part.saturating_add(length)
        } else {
            part
        };
        part.clamp(lowest, highest)
    };
    let (first, last) = if step > 0 {
        (lowest, highest)
    } else {
        (highest, lowest)
    };
    let start = slice.start.map_or(first, clamp);
    let stop = slice.stop.map_or(last, clamp);
    let places = std::iter::successors(Some(start), move |place| place.checked_add(step));
    Ok(places
        .take_while(move |place| {
            if step > 0 {
                *place < stop
            } else {
                *place > stop
            }
        })
        .map(|place| place as usize))
}
