//! Typed CEL values, for programs that examine results.

use super::value::{Value, look};
use kpvm_format::symbol::SymbolTable;

use crate::document::{BufferFull, DocumentBuffer, Extended, Label, NodeId, Texts, View};

/// A CEL value.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the type that it is called")]
pub enum CelValue {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    /// Seconds since 1970 and nanoseconds.
    Timestamp(i64, u32),
    /// Nanoseconds.
    Duration(i64),
    List(Vec<CelValue>),
    /// Keys and values, in storage order.
    Map(Vec<(CelValue, CelValue)>),
    /// A type, identified by its name.
    Type(String),
    Optional(Option<Box<CelValue>>),
    /// A value of a library: its type and its text.
    Opaque(&'static str, String),
}

/// Maximum nesting; deeper values are truncated.
const MAX_DEPTH: usize = 200;

/// Copies a value out of the buffer.
pub fn read_value(view: &View<'_>, id: NodeId) -> CelValue {
    read(view, id, 0)
}

fn read(view: &View<'_>, id: NodeId, depth: usize) -> CelValue {
    if depth > MAX_DEPTH {
        return CelValue::Null;
    }
    let inner = |id| read(view, id, depth + 1);
    match look(view, id) {
        Value::Null | Value::Error(_) => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(value),
        Value::Int(number) => CelValue::Int(number),
        Value::Uint(number) => CelValue::Uint(number),
        Value::Double(number) => CelValue::Double(number),
        Value::String(text) => CelValue::String(String::from_utf8_lossy(text).into_owned()),
        Value::Bytes(bytes) => CelValue::Bytes(bytes.to_vec()),
        Value::Timestamp(seconds, nanos, _) => CelValue::Timestamp(seconds, nanos),
        Value::Duration(nanos) => CelValue::Duration(nanos),
        Value::List(items) => CelValue::List(items.map(inner).collect()),
        Value::Map(members) => CelValue::Map(
            members
                .map(|member| {
                    let key = CelValue::String(view.key_str(member).to_owned());
                    (key, inner(member))
                })
                .collect(),
        ),
        Value::Table(table) => CelValue::Map(
            (0..table.len())
                .step_by(2)
                .map(|place| (inner(table.at(place)), inner(table.at(place + 1))))
                .collect(),
        ),
        Value::Type(name) => CelValue::Type(name.to_owned()),
        Value::Optional(held) => CelValue::Optional(held.map(|held| Box::new(inner(held)))),
        Value::Opaque(opaque, text) => CelValue::Opaque(opaque.type_name(), text.to_owned()),
    }
}

/// Copies a value into the buffer; the caller bounds its nesting depth.
pub(crate) fn push_value(
    buffer: &mut DocumentBuffer,
    value: &CelValue,
    symbols: &SymbolTable<'_>,
) -> Result<NodeId, BufferFull> {
    push(buffer, Label::ITEM, value, symbols)?;
    buffer.take()
}

fn push(
    buffer: &mut DocumentBuffer,
    label: Label,
    value: &CelValue,
    symbols: &SymbolTable<'_>,
) -> Result<(), BufferFull> {
    let extended = match value {
        CelValue::Null | CelValue::Opaque(..) => {
            buffer.push_null(label);
            return Ok(());
        }
        CelValue::Bool(value) => {
            buffer.push_bool(label, *value);
            return Ok(());
        }
        CelValue::Int(number) => {
            buffer.push_int(label, *number);
            return Ok(());
        }
        CelValue::Double(number) => {
            buffer.push_float(label, *number);
            return Ok(());
        }
        CelValue::String(text) => {
            let text = buffer.copy_text(text.as_bytes())?;
            buffer.push_text(label, text);
            return Ok(());
        }
        CelValue::List(items) => {
            buffer.begin(label);
            for item in items {
                push(buffer, Label::ITEM, item, symbols)?;
            }
            buffer.finish_list();
            return Ok(());
        }
        CelValue::Map(members) => {
            let texts = members
                .iter()
                .all(|(key, _)| matches!(key, CelValue::String(_)));
            buffer.begin(if texts { label } else { Label::ITEM });
            for (key, value) in members {
                let label = match key {
                    CelValue::String(key) if texts => buffer.label(key, symbols)?,
                    key => {
                        push(buffer, Label::ITEM, key, symbols)?;
                        Label::ITEM
                    }
                };
                push(buffer, label, value, symbols)?;
            }
            if texts {
                buffer.finish_map(Texts::NONE);
                return Ok(());
            }
            buffer.finish_list();
            Extended::Table(buffer.take()?)
        }
        CelValue::Uint(number) => Extended::Uint(*number),
        CelValue::Bytes(bytes) => Extended::Bytes(buffer.copy_text(bytes)?),
        CelValue::Timestamp(seconds, nanos) => Extended::Timestamp(*seconds, *nanos, 0),
        CelValue::Duration(nanos) => Extended::Duration(*nanos),
        CelValue::Type(name) => Extended::Type(buffer.copy_text(name.as_bytes())?),
        CelValue::Optional(None) => Extended::Optional(None),
        CelValue::Optional(Some(inner)) => {
            push(buffer, Label::ITEM, inner, symbols)?;
            Extended::Optional(Some(buffer.take()?))
        }
    };
    buffer.push_extended(label, extended)
}
