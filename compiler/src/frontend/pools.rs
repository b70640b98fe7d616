//! The tables that blocks refer to, while they are made.

use std::collections::HashMap;

use kpvm_format::BundleBuilder;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, ConstantKind, Range};
use kpvm_semantics::limits::Limits;
use kpvm_syntax::tree::{Tree, TreeValue};
use zerocopy::little_endian::{U32, U64};

use super::leaf::Leaves;
use super::variable;
use crate::codegen::{self, CodegenError};
use crate::ir::Block;
use crate::optimise::optimise;
use crate::source::{Location, Sources};

/// The bundle under construction, with everything that gives equal entries equal numbers.
pub struct Pools<'b> {
    /// The bundle.
    pub bundle: &'b mut BundleBuilder,
    /// The limits of the compiler.
    pub limits: &'b Limits,
    /// Numbers of constants, for [`Pools::constant`].
    pub(crate) constants: &'b mut HashMap<String, u32>,
    pub(crate) sources: &'b Sources,
    pub(crate) leaves: &'b mut Leaves,
    pub(crate) paths: &'b mut HashMap<(u32, SymbolId), u32>,
    pub(crate) texts: &'b mut HashMap<String, u32>,
    /// Blocks of podSecurity checks by the revisions that they hold.
    pub(crate) checks: &'b mut HashMap<Vec<(u32, u32)>, u32>,
    /// Numbers of shapes by the text of their type.
    pub(crate) shapes: &'b mut HashMap<String, u32>,
}

impl Pools<'_> {
    /// The number of the path that leads from `parent` to the value under `key`.
    pub fn path(&mut self, parent: u32, key: SymbolId) -> u32 {
        *self.paths.entry((parent, key)).or_insert_with(|| {
            self.bundle.paths.push(table::Path {
                parent: U32::new(parent),
                symbol: U32::new(key.0),
            });
            self.bundle.paths.len() as u32 - 1
        })
    }

    /// The number of a text of the table of texts.
    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.texts.get(text) {
            return number;
        }
        let entry = self.bundle.text(text);
        self.bundle.texts.push(entry);
        let number = self.bundle.texts.len() as u32 - 1;
        self.texts.insert(text.to_owned(), number);
        number
    }

    /// The number of the predicate for a scalar pattern; `None` for maps and lists.
    /// Escapes of variables in a text are undone.
    pub fn leaf(&mut self, pattern: &TreeValue) -> Option<u32> {
        match pattern {
            TreeValue::String(text) => {
                let text = TreeValue::String(variable::unescape_variables(text).into());
                self.leaves.intern(&text, self.bundle)
            }
            other => self.leaves.intern(other, self.bundle),
        }
    }

    /// A place as the bundle keeps it.
    pub fn place(&self, location: Location) -> table::Place {
        codegen::place(location, self.sources)
    }

    /// Optimises a block and writes it.
    ///
    /// # Errors
    /// When the block needs more than a frame has.
    pub fn generate(&mut self, mut block: Block) -> Result<u32, CodegenError> {
        optimise(&mut block);
        codegen::generate(&block, self.sources, self.bundle)
    }

    /// The number of a constant value; equal scalars share one.
    pub fn constant(&mut self, value: &TreeValue) -> u32 {
        let key = match value {
            TreeValue::List(_) | TreeValue::Map(_) => None,
            TreeValue::Float(number) => Some(format!("float {:x}", number.to_bits())),
            scalar => Some(format!("{scalar:?}")),
        };
        if let Some(&number) = key.as_ref().and_then(|key| self.constants.get(key)) {
            return number;
        }
        let number = self.reserve_constants(1);
        self.fill_constant(number, "", value);
        if let Some(key) = key {
            self.constants.insert(key, number);
        }
        number
    }

    /// The number of the constant that is an expression reference.
    pub fn reference_constant(&mut self) -> u32 {
        let key = "expression reference".to_owned();
        if let Some(&number) = self.constants.get(&key) {
            return number;
        }
        let number = self.reserve_constants(1);
        if let Some(constant) = self.bundle.constants.get_mut(number as usize) {
            constant.kind = ConstantKind::Reference as u8;
        }
        self.constants.insert(key, number);
        number
    }

    fn reserve_constants(&mut self, count: usize) -> u32 {
        let start = self.bundle.constants.len();
        let empty = self.bundle.text("");
        let blank = table::Constant {
            kind: ConstantKind::Null as u8,
            value: U64::ZERO,
            key: empty,
            text: empty,
            children: Range::EMPTY,
        };
        self.bundle.constants.resize(start + count, blank);
        start as u32
    }

    fn fill_constant(&mut self, number: u32, key: &str, value: &TreeValue) {
        let (kind, bits, text) = match value {
            TreeValue::Null => (ConstantKind::Null, 0, ""),
            TreeValue::Bool(value) => (ConstantKind::Bool, u64::from(*value), ""),
            TreeValue::Int(value) => (ConstantKind::Int, *value as u64, ""),
            TreeValue::Float(value) => (ConstantKind::Float, value.to_bits(), ""),
            TreeValue::String(text) => (ConstantKind::String, 0, &**text),
            TreeValue::List(_) => (ConstantKind::List, 0, ""),
            TreeValue::Map(_) => (ConstantKind::Map, 0, ""),
        };
        let children: Vec<(&str, &Tree)> = match value {
            TreeValue::List(items) => items.iter().map(|item| ("", item)).collect(),
            TreeValue::Map(members) => members
                .iter()
                .map(|member| (&*member.key, &member.value))
                .collect(),
            _ => Vec::new(),
        };
        let start = self.reserve_constants(children.len());
        let entry = table::Constant {
            kind: kind as u8,
            value: U64::new(bits),
            key: self.bundle.text(key),
            text: self.bundle.text(text),
            children: Range::new(start as usize, children.len()),
        };
        if let Some(slot) = self.bundle.constants.get_mut(number as usize) {
            *slot = entry;
        }
        for (offset, (key, child)) in children.into_iter().enumerate() {
            self.fill_constant(start + offset as u32, key, &child.value);
        }
    }

    /// A new variable of a rule's context.
    pub fn slot(&mut self, name: &str) -> u32 {
        let SymbolId(symbol) = self.bundle.symbols.intern(name);
        self.bundle.slots.push(table::Slot {
            name: U32::new(symbol),
        });
        self.bundle.slots.len() as u32 - 1
    }
}
