//! The records that instructions refer to, one file for each noun. Every record has a
//! fixed size, holds little-endian integers and needs no alignment, so that tables are
//! used in place from the bundle's bytes.

use zerocopy::little_endian::U32;

macro_rules! record {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $field_doc:literal])+ $field:ident : $type:ty,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
        #[derive(zerocopy::KnownLayout, zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[doc = $field_doc])+ pub $field: $type,)+ }
    };
}

mod block;
mod constant;
mod context;
mod finding;
mod index_record;
mod leaf;
mod matching;
mod rule;
mod shape;
mod site;
mod tags;

pub use self::block::*;
pub use self::constant::*;
pub use self::context::*;
pub use self::finding::*;
pub use self::index_record::*;
pub use self::leaf::*;
pub use self::matching::*;
pub use self::rule::*;
pub use self::shape::*;
pub use self::site::*;
pub use self::tags::*;

/// Stands for "none" where a record names an optional entry.
pub const NONE: u32 = u32::MAX;

record! {
    /// A text: a range of bytes of the string pool, cut at character borders.
    Text {
        /// Offset of the first byte.
        offset: U32,
        /// Number of bytes.
        length: U32,
    }
}

record! {
    /// A range of entries of another table.
    Range {
        /// First entry.
        start: U32,
        /// Number of entries.
        length: U32,
    }
}

impl Range {
    /// A range without entries.
    pub const EMPTY: Range = Range {
        start: U32::ZERO,
        length: U32::ZERO,
    };

    /// A range of table entries.
    pub fn new(start: usize, length: usize) -> Self {
        Self {
            start: U32::new(start as u32),
            length: U32::new(length as u32),
        }
    }
}
