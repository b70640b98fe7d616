//! Go types that JSON values are decoded into (docs/spec/pod-security.md §2).

use zerocopy::little_endian::U32;

use super::{Range, Text};

record! {
    /// A type of Go that a JSON value is decoded into (docs/spec/pod-security.md §2).
    Shape {
        /// A [`ShapeKind`].
        kind: u8,
        /// The type as Go prints it, e.g. `v1.Container`.
        name: Text,
        /// Shape of the items of a list or the values of a map, with a smaller number;
        /// [`NONE`] for others.
        item: U32,
        /// Range of `shape_fields`, for a struct.
        fields: Range,
        /// Range of `shape_slots`: where [`Shape::slot`] finds the fields; a power of two.
        slots: Range,
    }
}

impl Shape {
    /// What stands in a slot without a field.
    pub const EMPTY_SLOT: u8 = u8::MAX;

    /// The slot at which the search for a symbol's field begins, among so many; where it
    /// is taken by another, the next one is looked at.
    #[inline]
    pub fn slot(symbol: u32, slots: usize) -> usize {
        let hash = symbol.wrapping_mul(0x9E37_79B1);
        (hash >> 16) as usize & slots.wrapping_sub(1)
    }

    /// The field of a symbol, among the fields and slots of a shape.
    #[inline]
    pub fn field<'t>(
        symbol: u32,
        fields: &'t [ShapeField],
        slots: &[u8],
    ) -> Option<&'t ShapeField> {
        let start = Self::slot(symbol, slots.len());
        for offset in 0..slots.len() {
            let slot = (start + offset) & slots.len().wrapping_sub(1);
            let field = fields.get(usize::from(*slots.get(slot)?))?;
            if field.key.get() == symbol {
                return Some(field);
            }
        }
        None
    }
}

record! {
    /// A field of a struct's [`Shape`].
    ShapeField {
        /// The symbol of its key.
        key: U32,
        /// Its shape, with a smaller number than the struct's.
        shape: U32,
        /// 1 where null takes away what an equal key gave before: pointers, lists, maps.
        nullable: u8,
        /// Names of the embedded structs that it stands in, each with a dot behind it.
        embedded: Text,
    }
}

/// What a [`Shape`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ShapeKind {
    /// Anything.
    Any,
    /// A boolean.
    Bool,
    /// A text.
    Text,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A quantity, as a text or a number.
    Quantity,
    /// A text, or a whole number of 32 bits.
    IntOrText,
    /// A time of RFC 3339.
    Time,
    /// A list.
    List,
    /// A map.
    Map,
    /// A struct.
    Struct,
}

impl ShapeKind {
    /// Every kind in the order of its number.
    pub const ALL: [ShapeKind; 11] = [
        ShapeKind::Any,
        ShapeKind::Bool,
        ShapeKind::Text,
        ShapeKind::Int32,
        ShapeKind::Int64,
        ShapeKind::Quantity,
        ShapeKind::IntOrText,
        ShapeKind::Time,
        ShapeKind::List,
        ShapeKind::Map,
        ShapeKind::Struct,
    ];
}
