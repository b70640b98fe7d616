//! Expressions by themselves, without policies: a tool that wants to know what one
//! gives over a value, or a program with expressions of its own.
//!
//! A bundle without rules and a value enter; the value of one of the bundle's
//! expressions leaves, or the error in Kyverno's words. The code that runs is the code
//! that rules run.

use kpvm_format::table::{Block, Range};
use serde_json::Value;

use super::{Bundle, EvaluateError, Operation};
use crate::cel::{CelValue, push_value, read_value};
use crate::document::{DocumentBuffer, Kind, Label, NodeId, Numbers, Texts, View};
use crate::host::{Host, NoHost};
use crate::machine::{Ending, Machine, RequestFacts, Setting, Subject, World};
use kpvm_semantics::limits::Limits;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// What Kyverno says, or which limit of a value was crossed.
    #[error("{0}")]
    Failed(String),
    /// It took too many steps.
    #[error("evaluation limit exceeded: rule-fuel is {0} steps an expression")]
    OutOfFuel(u64),
    /// The bundle is one of policies, or has fewer expressions.
    #[error("expected a bundle of at least {} expressions and no rules", .0 + 1)]
    NoExpression(u32),
}

/// Evaluates the expressions of one bundle, over one value after another.
///
/// Give it a value with [`ExpressionSession::set_input`], then ask for expressions by
/// their number, the order in which they were compiled. What an expression computes
/// stays in memory until the next value is set.
pub struct ExpressionSession<'b> {
    bundle: &'b Bundle<'b>,
    limits: Limits,
    buffer: DocumentBuffer,
    machine: Machine,
    input: NodeId,
}

impl<'b> ExpressionSession<'b> {
    /// A session with the default limits; the value is null until one is set.
    pub fn new(bundle: &'b Bundle<'b>) -> Self {
        Self::with_limits(bundle, Limits::DEFAULT)
    }

    /// A session with limits of the host's choice.
    pub fn with_limits(bundle: &'b Bundle<'b>, limits: Limits) -> Self {
        Self {
            bundle,
            limits,
            buffer: DocumentBuffer::new(),
            machine: Machine::new(&bundle.tables()),
            input: NodeId::MISSING,
        }
    }

    /// Forgets the value before and everything computed over it, and takes this one:
    /// what `@` gives to an expression, and the context of a text with variables.
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

    /// As [`ExpressionSession::set_input`], with variables of CEL.
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

    /// The value of an expression that asks for nothing from outside.
    ///
    /// # Errors
    /// Why there is none.
    pub fn evaluate(&mut self, number: u32) -> Result<Answer<'_>, ExpressionError> {
        self.evaluate_with(number, &mut NoHost)
    }

    /// As [`ExpressionSession::evaluate`], with a host that answers what it asks for.
    ///
    /// # Errors
    /// As [`ExpressionSession::evaluate`].
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
    /// The value as JSON, integers and floats apart.
    ///
    /// # Errors
    /// Go's words where JSON has no such number (NaN and the infinities).
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

    /// The value with the types of CEL.
    pub fn to_cel(&self) -> CelValue {
        read_value(&self.view, self.node)
    }

    /// The values around it, for those who look without copying.
    pub fn view(&self) -> View<'a> {
        self.view
    }

    /// Its place in [`Answer::view`].
    pub fn node(&self) -> NodeId {
        self.node
    }
}

impl DocumentBuffer {
    /// The values that every evaluation's buffer begins with.
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
