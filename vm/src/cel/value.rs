//! CEL's view of the values of the buffer, and constructors of values that exist only in
//! CEL.

use std::str::from_utf8;

use kpvm_format::cel::Function;

use crate::document::{BufferFull, ChildRange, Extended, Kind, Label, NodeId, Opaque, View};
use crate::function::{FunctionError, Values};

/// A value in CEL.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    /// UTF-8.
    String(&'v [u8]),
    Bytes(&'v [u8]),
    /// Seconds since 1970, nanoseconds, and the offset of its zone in seconds.
    Timestamp(i64, u32, i32),
    /// Nanoseconds.
    Duration(i64),
    List(ChildRange),
    /// A map whose keys are all texts.
    Map(ChildRange),
    /// Any other map: alternating keys and values.
    Table(ChildRange),
    Type(&'v str),
    Optional(Option<NodeId>),
    Opaque(Opaque, &'v str),
    Error(&'v str),
}

/// CEL value of a node.
pub(crate) fn look<'v>(view: &View<'v>, id: NodeId) -> Value<'v> {
    match view.kind(id) {
        None => Value::Null,
        Some(Kind::False) => Value::Bool(false),
        Some(Kind::True) => Value::Bool(true),
        Some(Kind::Int) => Value::Int(view.int(id).unwrap_or_default()),
        Some(Kind::Float) => Value::Double(view.float(id).unwrap_or_default()),
        Some(Kind::String) => Value::String(view.text(id)),
        Some(Kind::List) => Value::List(view.children(id)),
        Some(Kind::Map) => Value::Map(view.children(id)),
        Some(Kind::Null) => match view.extended(id) {
            None => Value::Null,
            Some(Extended::Uint(number)) => Value::Uint(number),
            Some(Extended::Bytes(piece)) => Value::Bytes(view.piece(piece)),
            Some(Extended::Timestamp(seconds, nanoseconds, offset)) => {
                Value::Timestamp(seconds, nanoseconds, offset)
            }
            Some(Extended::Duration(nanoseconds)) => Value::Duration(nanoseconds),
            Some(Extended::Type(name)) => Value::Type(view.piece_str(name)),
            Some(Extended::Optional(inner)) => Value::Optional(inner),
            Some(Extended::Table(list)) => Value::Table(view.children(list)),
            Some(Extended::Opaque(opaque, text)) => Value::Opaque(opaque, view.piece_str(text)),
            Some(Extended::Error(text)) => Value::Error(view.piece_str(text)),
        },
    }
}

impl<'v> Value<'v> {
    /// Name of its type, as returned by `type()`.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(..) => "timestamp",
            Value::Duration(_) => "duration",
            Value::List(_) => "list",
            Value::Map(_) | Value::Table(_) => "map",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Opaque(opaque, _) => opaque.type_name(),
            Value::Error(_) => "error",
        }
    }

    /// Name of its type in errors.
    pub(crate) fn full_type_name(&self) -> &'static str {
        match self {
            Value::Timestamp(..) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            other => other.type_name(),
        }
    }

    /// Name of its type in cel-go's code, for errors.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Value::Null => "types.Null",
            Value::Bool(_) => "types.Bool",
            Value::Int(_) => "types.Int",
            Value::Uint(_) => "types.Uint",
            Value::Double(_) => "types.Double",
            Value::String(_) => "types.String",
            Value::Bytes(_) => "types.Bytes",
            Value::Timestamp(..) => "types.Timestamp",
            Value::Duration(_) => "types.Duration",
            Value::List(_) => "*types.baseList",
            Value::Map(_) | Value::Table(_) => "*types.baseMap",
            Value::Type(_) => "*types.Type",
            Value::Optional(_) => "*types.Optional",
            Value::Opaque(..) => "*types.Opaque",
            Value::Error(_) => "*types.Err",
        }
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<&'v str> {
        match self {
            Value::String(text) => from_utf8(text).ok(),
            _ => None,
        }
    }
}

/// Text of the error that no overload accepts the arguments.
pub(crate) const NO_OVERLOAD: &str = "no such overload";

/// Error: no overload accepts arguments of these types.
pub(crate) fn no_overload() -> FunctionError {
    FunctionError::failed(NO_OVERLOAD)
}

/// Error: no overload of an operator accepts arguments of these types. cel-go names the
/// operator if the first operand's type has no such operator and receives no calls
/// (evalBinary of its interpreter).
pub(crate) fn no_operator(function: Function, operand: &Value<'_>) -> FunctionError {
    let (is_number, is_int) = match operand {
        Value::Int(_) | Value::Uint(_) => (true, true),
        Value::Double(_) => (true, false),
        _ => (false, false),
    };
    let is_known = match (function, operand) {
        (_, Value::String(_) | Value::Timestamp(..) | Value::Duration(_)) => true,
        (Function::Add, Value::Bytes(_) | Value::List(_)) => true,
        (Function::Modulo, _) => is_int,
        (Function::Not | Function::Negate, Value::Uint(_)) => false,
        (Function::Not | Function::Negate, Value::Bool(_)) => true,
        (
            Function::Less | Function::LessOrEqual | Function::Greater | Function::GreaterOrEqual,
            Value::Bool(_) | Value::Bytes(_),
        ) => true,
        (Function::Size, _) => false,
        _ => is_number,
    };
    match is_known {
        true => no_overload(),
        false => FunctionError::Failed(format!("no such overload: {}", function.name())),
    }
}

impl Values<'_> {
    /// Creates a value that exists only in CEL.
    pub(crate) fn new_extended(&mut self, value: Extended) -> Result<NodeId, FunctionError> {
        self.buffer.push_extended(Label::ITEM, value)?;
        Ok(self.buffer.take()?)
    }

    /// A uint64.
    pub(crate) fn new_uint(&mut self, value: u64) -> Result<NodeId, FunctionError> {
        self.new_extended(Extended::Uint(value))
    }

    /// Bytes.
    pub(crate) fn new_bytes(&mut self, bytes: &[u8]) -> Result<NodeId, FunctionError> {
        self.check_text(bytes.len())?;
        self.charge_bytes(bytes.len())?;
        let piece = self.buffer.copy_text(bytes)?;
        self.new_extended(Extended::Bytes(piece))
    }

    /// A type.
    pub(crate) fn new_type(&mut self, name: &str) -> Result<NodeId, FunctionError> {
        let piece = self.buffer.copy_text(name.as_bytes())?;
        self.new_extended(Extended::Type(piece))
    }

    /// An optional.
    pub(crate) fn new_optional(&mut self, inner: Option<NodeId>) -> Result<NodeId, FunctionError> {
        self.new_extended(Extended::Optional(inner))
    }

    /// Creates a value of a library.
    pub(crate) fn new_opaque(
        &mut self,
        opaque: Opaque,
        text: &str,
    ) -> Result<NodeId, FunctionError> {
        self.check_text(text.len())?;
        let piece = self.buffer.copy_text(text.as_bytes())?;
        self.new_extended(Extended::Opaque(opaque, piece))
    }

    /// Creates a list of texts.
    pub(crate) fn new_texts<T: AsRef<str>>(
        &mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<NodeId, FunctionError> {
        let mut items = Vec::new();
        for text in texts {
            self.charge_members(items.len() + 1)?;
            items.push(self.new_text(text.as_ref())?);
        }
        self.new_list(&items)
    }

    /// Creates a map from alternating keys and values, without duplicate keys.
    ///
    /// # Errors
    /// `Failed` with a duplicate key, or with a key of an invalid type.
    pub(crate) fn new_cel_map(&mut self, pairs: &[NodeId]) -> Result<NodeId, DuplicateKey> {
        let view = self.view();
        let only_texts = pairs
            .chunks_exact(2)
            .all(|pair| view.kind(pair[0]) == Some(Kind::String));
        if only_texts {
            return self.new_text_map(pairs);
        }
        for (index, pair) in pairs.chunks_exact(2).enumerate() {
            let key = look(&self.view(), pair[0]);
            // Here cel-go panics.
            if matches!(key, Value::Bytes(_) | Value::Error(_)) {
                let text = format!("unsupported key type: {}", key.type_name());
                return Err(DuplicateKey::Other(FunctionError::Failed(text)));
            }
            self.charge(1 + index as u64 / 4)?;
            let view = self.view();
            let earlier = pairs.chunks_exact(2).take(index);
            for other in earlier {
                if super::compare::is_one_key(&view, other[0], pair[0]) {
                    return Err(DuplicateKey::Key(pair[0]));
                }
            }
        }
        let list = self.new_list(pairs)?;
        Ok(self.new_extended(Extended::Table(list))?)
    }

    fn new_text_map(&mut self, pairs: &[NodeId]) -> Result<NodeId, DuplicateKey> {
        self.charge_members(pairs.len())?;
        let mut members = Vec::with_capacity(pairs.len() / 2);
        let mut keys: Vec<(&[u8], NodeId)> = Vec::new();
        let view = self.view();
        keys.extend(
            pairs
                .chunks_exact(2)
                .map(|pair| (view.text(pair[0]), pair[0])),
        );
        keys.sort_unstable_by_key(|(text, _)| *text);
        if let Some(twice) = keys.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(DuplicateKey::Key(twice[1].1));
        }
        for pair in pairs.chunks_exact(2) {
            let key = self.view().str(pair[0]).to_owned();
            members.push((self.label(&key)?, pair[1]));
        }
        Ok(self.new_map(&members)?)
    }
}

/// Reason why a map cannot be created.
pub(crate) enum DuplicateKey {
    /// Duplicate key.
    Key(NodeId),
    /// Any other error.
    Other(FunctionError),
}

impl From<FunctionError> for DuplicateKey {
    fn from(error: FunctionError) -> Self {
        DuplicateKey::Other(error)
    }
}

impl From<BufferFull> for DuplicateKey {
    fn from(full: BufferFull) -> Self {
        DuplicateKey::Other(full.into())
    }
}
