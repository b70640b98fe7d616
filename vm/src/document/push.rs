//! Copies existing trees into the buffer: resources read from YAML, and values from the
//! host.

use std::slice;

use kpvm_format::symbol::SymbolTable;
use serde_json::Value;
use smallvec::SmallVec;

use super::buffer::{BufferFull, DocumentBuffer};
use super::json::Numbers;
use super::node::{Label, NodeId, Texts};
use kpvm_syntax::tree::{Member, Tree, TreeValue};

/// A container of a tree with members still to copy.
enum TreeRest<'t> {
    List(slice::Iter<'t, Tree>),
    Map(slice::Iter<'t, Member>),
}

/// The same for a `serde_json::Value`.
enum ValueRest<'v> {
    List(slice::Iter<'v, Value>),
    Map(serde_json::map::Iter<'v>),
}

impl DocumentBuffer {
    /// Copies a tree, including texts. Its size and depth were bounded when it was read.
    ///
    /// # Errors
    /// [`BufferFull`]; the buffer is then unchanged.
    pub fn push_tree(
        &mut self,
        tree: &Tree,
        symbols: &SymbolTable<'_>,
        numbers: Numbers,
    ) -> Result<NodeId, BufferFull> {
        let mark = self.mark();
        let result = self.copy_tree(tree, symbols, numbers);
        result.inspect_err(|_| self.reset(mark))
    }

    fn copy_tree(
        &mut self,
        tree: &Tree,
        symbols: &SymbolTable<'_>,
        numbers: Numbers,
    ) -> Result<NodeId, BufferFull> {
        let mut open: SmallVec<[TreeRest<'_>; 16]> = SmallVec::new();
        let (mut next, mut label) = (tree, Label::ITEM);
        loop {
            match &next.value {
                TreeValue::Null => self.push_null(label),
                TreeValue::Bool(value) => self.push_bool(label, *value),
                TreeValue::Int(value) => self.push_integer(label, *value, numbers),
                TreeValue::Float(value) => self.push_float(label, *value),
                TreeValue::String(text) => {
                    let text = self.copy_text(text.as_bytes())?;
                    self.push_text(label, text);
                }
                TreeValue::List(items) => {
                    self.begin(label);
                    open.push(TreeRest::List(items.iter()));
                }
                TreeValue::Map(members) => {
                    self.begin(label);
                    open.push(TreeRest::Map(members.iter()));
                }
            }
            // Close containers until one has more members.
            (next, label) = loop {
                match open.last_mut() {
                    None => return self.take(),
                    Some(TreeRest::List(items)) => match items.next() {
                        Some(item) => break (item, Label::ITEM),
                        None => self.finish_list(),
                    },
                    Some(TreeRest::Map(members)) => match members.next() {
                        Some(member) => break (&member.value, self.label(&member.key, symbols)?),
                        None => self.finish_map(Texts::NONE),
                    },
                }
                open.pop();
            };
        }
    }

    /// Copies a value, including texts.
    ///
    /// # Errors
    /// [`BufferFull`]; the buffer is then unchanged.
    pub fn push_value(
        &mut self,
        value: &Value,
        symbols: &SymbolTable<'_>,
        numbers: Numbers,
    ) -> Result<NodeId, BufferFull> {
        let mark = self.mark();
        let result = self.copy_value(value, symbols, numbers);
        result.inspect_err(|_| self.reset(mark))
    }

    fn copy_value(
        &mut self,
        value: &Value,
        symbols: &SymbolTable<'_>,
        numbers: Numbers,
    ) -> Result<NodeId, BufferFull> {
        let mut open: SmallVec<[ValueRest<'_>; 16]> = SmallVec::new();
        let (mut next, mut label) = (value, Label::ITEM);
        loop {
            match next {
                Value::Null => self.push_null(label),
                Value::Bool(value) => self.push_bool(label, *value),
                Value::Number(number) => match number.as_i64() {
                    Some(value) => self.push_integer(label, value, numbers),
                    None => self.push_float(label, number.as_f64().unwrap_or(0.0)),
                },
                Value::String(text) => {
                    let text = self.copy_text(text.as_bytes())?;
                    self.push_text(label, text);
                }
                Value::Array(items) => {
                    self.begin(label);
                    open.push(ValueRest::List(items.iter()));
                }
                Value::Object(members) => {
                    self.begin(label);
                    open.push(ValueRest::Map(members.iter()));
                }
            }
            // Close containers until one has more members.
            (next, label) = loop {
                match open.last_mut() {
                    None => return self.take(),
                    Some(ValueRest::List(items)) => match items.next() {
                        Some(item) => break (item, Label::ITEM),
                        None => self.finish_list(),
                    },
                    Some(ValueRest::Map(members)) => match members.next() {
                        Some((key, value)) => break (value, self.label(key, symbols)?),
                        None => self.finish_map(Texts::NONE),
                    },
                }
                open.pop();
            };
        }
    }

    /// Adds an integer as an Int or, if requested, as a Float.
    fn push_integer(&mut self, label: Label, value: i64, numbers: Numbers) {
        match numbers {
            Numbers::Exact => self.push_int(label, value),
            Numbers::Float => self.push_float(label, value as f64),
        }
    }
}
