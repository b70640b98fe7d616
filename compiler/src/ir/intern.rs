//! Assigns numbers: equal things get equal numbers.

use std::collections::HashMap;

use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{Join, LeafKind};
use kpvm_semantics::number::format_v_float;
use kpvm_semantics::pattern_string::{self, Conjunct, StringPattern};
use kpvm_syntax::tree::TreeValue;

use super::id::*;
use super::module::Module;
use super::record::*;

/// The numbers assigned so far.
#[derive(Debug, Default)]
pub(crate) struct Interned {
    paths: HashMap<PathStep, PathId>,
    texts: HashMap<String, TextId>,
    leaves: HashMap<(LeafKind, u64, String), LeafId>,
    constants: HashMap<String, ConstantId>,
    /// Shapes by the text of their type.
    pub(crate) shapes: HashMap<String, ShapeId>,
    /// Blocks of podSecurity checks by the revisions that they hold.
    pub(crate) checks: HashMap<Vec<(u32, u32)>, BlockId>,
}

impl Module {
    /// The symbol of a key.
    pub fn symbol(&mut self, text: &str) -> SymbolId {
        self.symbols.intern(text)
    }

    /// The path that leads from `parent` to the value under `key`.
    pub fn path(&mut self, parent: Option<PathId>, key: SymbolId) -> PathId {
        let step = PathStep { parent, key };
        let paths = &mut self.paths;
        *self
            .interned
            .paths
            .entry(step)
            .or_insert_with(|| paths.push(step))
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> TextId {
        if let Some(&known) = self.interned.texts.get(text) {
            return known;
        }
        let id = self.texts.push(text.to_owned());
        self.interned.texts.insert(text.to_owned(), id);
        id
    }

    /// A list of texts.
    pub fn text_list(&mut self, texts: &[impl AsRef<str>]) -> TextListId {
        let texts = texts.iter().map(|text| text.as_ref().to_owned());
        self.text_lists.push(texts.collect())
    }

    /// The predicate for a scalar pattern as written; `None` for maps and lists.
    pub fn plain_leaf(&mut self, pattern: &TreeValue) -> Option<LeafId> {
        let (kind, value, text) = match pattern {
            TreeValue::Null => (LeafKind::Null, 0, "<nil>".to_owned()),
            TreeValue::Bool(value) => (LeafKind::Bool, u64::from(*value), value.to_string()),
            TreeValue::Int(value) => (LeafKind::Int, *value as u64, value.to_string()),
            TreeValue::Float(value) => {
                let mut text = String::new();
                format_v_float(*value, &mut text);
                (LeafKind::Float, value.to_bits(), text)
            }
            TreeValue::String(text) => (LeafKind::String, 0, text.to_string()),
            TreeValue::List(_) | TreeValue::Map(_) => return None,
        };
        let key = (kind, value, text);
        if let Some(&known) = self.interned.leaves.get(&key) {
            return Some(known);
        }
        let alternatives = match kind {
            LeafKind::String => alternatives(&key.2),
            LeafKind::Null | LeafKind::Bool | LeafKind::Int | LeafKind::Float => Vec::new(),
        };
        let id = self.leaves.push(Leaf {
            kind,
            value,
            text: key.2.clone(),
            alternatives,
        });
        self.interned.leaves.insert(key, id);
        Some(id)
    }

    /// A constant value; equal scalars share one.
    pub fn constant(&mut self, value: &TreeValue) -> ConstantId {
        let key = match value {
            TreeValue::List(_) | TreeValue::Map(_) => {
                return self.constants.push(Constant::Value(value.clone()));
            }
            TreeValue::Float(number) => format!("float {:x}", number.to_bits()),
            scalar => format!("{scalar:?}"),
        };
        self.keyed_constant(key, || Constant::Value(value.clone()))
    }

    /// A constant that JSON does not have; equal ones share one.
    pub fn special_constant(&mut self, constant: Constant) -> ConstantId {
        self.keyed_constant(format!("{constant:?}"), || constant)
    }

    fn keyed_constant(&mut self, key: String, make: impl FnOnce() -> Constant) -> ConstantId {
        let constants = &mut self.constants;
        *self
            .interned
            .constants
            .entry(key)
            .or_insert_with(|| constants.push(make()))
    }

    /// A new variable of a rule's context.
    pub fn slot(&mut self, name: &str) -> SlotId {
        let name = self.symbol(name);
        self.slots.push(Slot { name })
    }
}

/// The alternatives of a string pattern.
fn alternatives(text: &str) -> Vec<Vec<Comparison>> {
    let pattern = StringPattern::parse(text);
    let conjunction = |conjuncts: &[Conjunct<'_>]| {
        let mut comparisons = Vec::new();
        for conjunct in conjuncts {
            match conjunct {
                Conjunct::Compare(one) => comparisons.push(comparison(one, Join::And)),
                Conjunct::Inside(low, high) => {
                    comparisons.push(comparison(low, Join::And));
                    comparisons.push(comparison(high, Join::And));
                }
                Conjunct::Outside(low, high) => {
                    comparisons.push(comparison(low, Join::Either));
                    comparisons.push(comparison(high, Join::And));
                }
            }
        }
        if let Some(last) = comparisons.last_mut() {
            last.join = Join::End;
        }
        comparisons
    };
    let alternatives = pattern.alternatives().iter();
    alternatives.map(|one| conjunction(one)).collect()
}

fn comparison(comparison: &pattern_string::Comparison<'_>, join: Join) -> Comparison {
    let quantity = comparison
        .quantity()
        .map(|quantity| match quantity.as_nano() {
            Some(nano) => OperandQuantity::Nano(nano),
            None => OperandQuantity::Big,
        });
    Comparison {
        operator: comparison.operator(),
        class: comparison.class(),
        join,
        operand: comparison.operand().to_owned(),
        duration: comparison.duration(),
        quantity,
    }
}
