//! The records that instructions refer to, one file for each noun. Every record has a
//! fixed size, holds little-endian integers and needs no alignment, so that tables are
//! used in place from the bundle's bytes.

use zerocopy::little_endian::{I32, I64, U16, U32, U64, U128};

macro_rules! record {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $field_doc:literal])+ $field:ident : $type:ty,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
        #[derive(zerocopy::KnownLayout, zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[doc = $field_doc])+ pub $field: $type,)+ }

        impl $crate::table::Texts for $name {
            fn visit_texts(&mut self, visit: &mut dyn FnMut(&mut $crate::table::Text)) {
                $($crate::table::Texts::visit_texts(&mut self.$field, visit);)+
            }
        }
    };
}

pub(crate) use record;

mod block;
mod constant;
mod context;
mod facts;
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
pub use self::facts::*;
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

/// Fields and records that hold texts.
pub(crate) trait Texts {
    /// Visits every text.
    fn visit_texts(&mut self, _visit: &mut dyn FnMut(&mut Text)) {}
}

macro_rules! without_texts {
    ($($type:ty),+) => { $(impl Texts for $type {})+ };
}

without_texts!(u8, U16, U32, U64, U128, I32, I64, Range);
without_texts!([U32; 2], [U32; 4], [Range; 3]);

impl Texts for Text {
    fn visit_texts(&mut self, visit: &mut dyn FnMut(&mut Text)) {
        visit(self);
    }
}

/// A text: a range of bytes of the string pool, cut at character borders.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
    zerocopy::Unaligned,
)]
#[repr(C)]
pub struct Text {
    /// Offset of the first byte.
    pub offset: U32,
    /// Number of bytes.
    pub length: U32,
}

/// A range of entries of another table.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
    zerocopy::Unaligned,
)]
#[repr(C)]
pub struct Range {
    /// First entry.
    pub start: U32,
    /// Number of entries.
    pub length: U32,
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
