//! Standalone expressions, without policies: for tools that evaluate an expression over a
//! value, and for programs with their own expressions.
//!
//! Evaluates expressions of a bundle without rules, with the same code that rules run.
//! Errors are in Kyverno's words.

use std::fmt;

use kpvm_format::table::{Block, Range};
use serde_json::Value;

use super::{Bundle, EvaluateError, Operation};
use crate::cel::{CelValue, push_value, read_value};
use crate::document::{DocumentBuffer, Kind, Label, NodeId, Numbers, Texts, View};
use crate::host::{Host, NoHost};
use crate::machine::{Ending, Machine, RequestFacts, Setting, Subject, World};
use kpvm_semantics::limits::Limits;

/// Reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionError {
    /// Kyverno's error, or an exceeded limit on values.
    Failed(String),
    /// The expression took too many steps.
    OutOfFuel(u64),
    /// The bundle contains policies, or has fewer expressions.
    NoExpression(u32),
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(value) => write!(f, "{value}"),
            Self::OutOfFuel(value) => write!(
                f,
                "evaluation limit exceeded: rule-fuel is {value} steps an expression"
            ),
            Self::NoExpression(number) => write!(
                f,
                "expected a bundle of at least {} expressions and no rules",
                number + 1
            ),
        }
    }
}

impl std::error::Error for ExpressionError {}

/// Evaluates the expressions of one bundle, over one value after another.
///
/// Set a value with [`ExpressionSession::set_input`], then evaluate expressions by their
/// index, in the order in which they were compiled. Computed values stay in memory until
/// the next value is set.
pub struct ExpressionSession<'b> {
    bundle: &'b Bundle<'b>,
    limits: Limits,
    buffer: DocumentBuffer,
    machine: Machine,
    input: NodeId,
}

impl<'b> ExpressionSession<'b> {
    /// A session with the default limits and null as its value.
    pub fn new(bundle: &'b Bundle<'b>) -> Self {
        Self::with_limits(bundle, Limits::DEFAULT)
    }

    /// A session with the given limits.
    pub fn with_limits(bundle: &'b Bundle<'b>, limits: Limits) -> Self {
        Self {
            bundle,
            limits,
            buffer: DocumentBuffer::new(),
            machine: Machine::new(&bundle.tables()),
            input: NodeId::MISSING,
        }
    }

    /// Replaces the value and discards everything computed from the previous one. The value
    /// is the result of `@`, and the context of a text with variables.
    ///
    /// # Errors
    /// [`EvaluateError::TooLarge`].
    pub fn set_input(&mut self, value: &Value, numbers: Numbers) -> Result<(), EvaluateError> {
        let symbols = self.bundle.tables().symbols;
        self.input = NodeId::MISSING;
        self.buffer.clear();
        self.buffer
            .push_well_known()
            .and_then(|()| self.buffer.push_value(value, &symbols, numbers))
            .map(|input| self.input = input)
            .map_err(|_| EvaluateError::TooLarge { role: "value" })?;
        self.machine.begin_evaluation();
        self.machine.begin_rule();
        self.machine.set_base(self.input);
        Ok(())
    }

    /// Like [`ExpressionSession::set_input`], with CEL variables.
    ///
    /// # Errors
    /// [`EvaluateError::TooLarge`].
    pub fn set_variables(&mut self, variables: &[(&str, CelValue)]) -> Result<(), EvaluateError> {
        let symbols = self.bundle.tables().symbols;
        self.input = NodeId::MISSING;
        self.buffer.clear();
        let map = CelValue::Map(
            variables
                .iter()
                .map(|(name, value)| (CelValue::String((*name).to_owned()), value.clone()))
                .collect(),
        );
        self.buffer
            .push_well_known()
            .and_then(|()| push_value(&mut self.buffer, &map, &symbols))
            .map(|input| self.input = input)
            .map_err(|_| EvaluateError::TooLarge { role: "value" })?;
        self.machine.begin_evaluation();
        self.machine.begin_rule();
        self.machine.set_base(self.input);
        Ok(())
    }

    /// Value of an expression that needs no outside data.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn evaluate(&mut self, number: u32) -> Result<Answer<'_>, ExpressionError> {
        self.evaluate_with(number, &mut NoHost)
    }

    /// Like [`ExpressionSession::evaluate`], with a host for outside data.
    ///
    /// # Errors
    /// Like [`ExpressionSession::evaluate`].
    pub fn evaluate_with(
        &mut self,
        number: u32,
        host: &mut dyn Host,
    ) -> Result<Answer<'_>, ExpressionError> {
        let tables = self.bundle.tables();
        let block: Option<&Block> = tables.blocks.get(number as usize);
        if block.is_none() || !tables.rules.is_empty() {
            return Err(ExpressionError::NoExpression(number));
        }
        if self.input.is_missing() {
            self.set_input(&Value::Null, Numbers::Exact)
                .map_err(|error| ExpressionError::Failed(error.to_string()))?;
        }
        let view = self.buffer.view(Texts::NONE, tables.symbols);
        let request = view.get_text(self.input, b"request");
        let object = view.get_text(request, b"object");
        let operation = view.get_text(request, b"operation");
        let facts = RequestFacts {
            object: (view.kind(object) == Some(Kind::Map)).then_some(object),
            ..RequestFacts::default()
        };
        let subject = Subject::of_value(self.input);
        let setting = Setting {
            tables: &tables,
            texts: Texts::NONE,
            subject: &subject,
            request: &facts,
            limits: &self.limits,
            is_delete: Operation::parse(view.str(operation)) == Some(Operation::Delete),
            rule_slots: Range::new(0, tables.slots.len()),
            rule_entries: Range::new(0, tables.entries.len()),
            policy_namespace: "",
            runtime_expressions: true,
        };
        self.machine.fuel = self.limits.rule_fuel;
        let mut world = World {
            buffer: &mut self.buffer,
            host,
            observer: None,
        };
        match self.machine.check(number, setting, &mut world) {
            Ending::Value(node) => Ok(Answer {
                view: self.buffer.view(Texts::NONE, self.bundle.tables().symbols),
                node,
            }),
            Ending::Failed { .. } => {
                Err(ExpressionError::Failed(self.machine.failure_text.clone()))
            }
            Ending::OutOfFuel => Err(ExpressionError::OutOfFuel(self.limits.rule_fuel)),
            _ => Err(ExpressionError::NoExpression(number)),
        }
    }
}

/// The value of an expression.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    view: View<'a>,
    node: NodeId,
}

impl<'a> Answer<'a> {
    /// The value as JSON, with distinct integers and floats.
    ///
    /// # Errors
    /// Go's text if JSON cannot express a number (NaN and the infinities).
    pub fn to_value(&self) -> Result<Value, ExpressionError> {
        let mut open = vec![self.node];
        while let Some(node) = open.pop() {
            match self.view.float(node) {
                Some(number) if !number.is_finite() => {
                    let shown = match number {
                        f64::INFINITY => "+Inf",
                        f64::NEG_INFINITY => "-Inf",
                        _ => "NaN",
                    };
                    let text = format!("json: unsupported value: {shown}");
                    return Err(ExpressionError::Failed(text));
                }
                _ => open.extend(self.view.children(node)),
            }
        }
        Ok(self.view.to_value(self.node))
    }

    /// The value with CEL types.
    pub fn to_cel(&self) -> CelValue {
        read_value(&self.view, self.node)
    }

    /// View of the values, to examine them without copying.
    pub fn view(&self) -> View<'a> {
        self.view
    }

    /// Node in [`Answer::view`].
    pub fn node(&self) -> NodeId {
        self.node
    }
}

impl DocumentBuffer {
    /// Well-known values at the start of every evaluation's buffer.
    pub(super) fn push_well_known(&mut self) -> Result<(), crate::document::BufferFull> {
        self.push_null(Label::ITEM);
        self.take()?;
        for value in [false, true] {
            self.push_bool(Label::ITEM, value);
            self.take()?;
        }
        Ok(())
    }
}
