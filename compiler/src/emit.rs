//! Emission: writes an optimised module into the tables of a bundle.
//!
//! An id of the module is the number of its record in the bundle's table: tables are
//! written in order, after those of the bundle that the module extends.

mod block;
mod registers;

use kpvm_format::MAX_LOOP_DEPTH;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, ComparisonFlags, ConstantKind, NONE, Range};
use kpvm_format::{BundleBuilder, Tables};
use kpvm_syntax::tree::{Tree, TreeValue};
use zerocopy::little_endian::{I64, U32, U64, U128};

use crate::ir::*;
use crate::source::Sources;

/// Why a block exceeds the machine's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodegenError {
    /// Too many values are in use at the same time.
    #[error("the rule needs more than 256 values at a time")]
    Registers,
    /// Loops are nested too deeply.
    #[error("the rule nests lists deeper than {MAX_LOOP_DEPTH}")]
    Loops,
    /// Anchors or expressions are nested too deeply.
    #[error("the rule nests anchors or expressions deeper than 255")]
    Folds,
}

/// A block that needs more than a frame has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooBig {
    /// The block.
    pub block: BlockId,
    /// The limit that it exceeds.
    pub error: CodegenError,
}

/// Writes a module into a bundle, which is empty or the one that the module extends.
///
/// # Errors
/// All blocks that need more than a frame has. The bundle is unusable then.
pub fn emit(
    module: &Module,
    sources: &Sources,
    bundle: &mut BundleBuilder,
) -> Result<(), Vec<TooBig>> {
    for number in 0..module.symbols.len() as u32 {
        let symbol = module.symbols.text(SymbolId(number));
        bundle.symbols.intern(symbol);
    }
    let mut too_big = Vec::new();
    for (id, code) in module.blocks.iter() {
        if let Err(error) = block::emit(code, sources, bundle) {
            too_big.push(TooBig { block: id, error });
        }
    }
    if !too_big.is_empty() {
        return Err(too_big);
    }
    let mut emission = Emission {
        module,
        sources,
        bundle,
    };
    emission.values();
    emission.matching();
    emission.contexts();
    emission.findings();
    emission.policies();
    emission.exceptions();
    Ok(())
}

struct Emission<'e> {
    module: &'e Module,
    sources: &'e Sources,
    bundle: &'e mut BundleBuilder,
}

/// An optional id as stored in records.
fn optional(id: Option<impl Into<u32>>) -> U32 {
    U32::new(id.map_or(NONE, Into::into))
}

fn number(id: impl Into<u32>) -> U32 {
    U32::new(id.into())
}

fn range<I: Id>(range: &std::ops::Range<I>) -> Range {
    let (start, end) = (range.start.number(), range.end.number());
    Range::new(start as usize, end.saturating_sub(start) as usize)
}

impl Emission<'_> {
    /// Paths, predicates, texts and constants.
    fn values(&mut self) {
        let module = self.module;
        for step in module.paths.entries() {
            self.bundle.paths.push(table::Path {
                parent: optional(step.parent),
                symbol: U32::new(step.key.0),
            });
        }
        for leaf in module.leaves.entries() {
            self.leaf(leaf);
        }
        for text in module.texts.entries() {
            let text = self.bundle.text(text);
            self.bundle.texts.push(text);
        }
        for texts in module.text_lists.entries() {
            let start = self.bundle.texts.len();
            for text in texts {
                let text = self.bundle.text(text);
                self.bundle.texts.push(text);
            }
            let list = Range::new(start, texts.len());
            self.bundle.text_lists.push(list);
        }
        for slice in module.slices.entries() {
            let part = |value: Option<i64>, bit| (value.map_or(0, |_| bit), value.unwrap_or(0));
            let (start, stop, step) = (
                part(slice.start, 1),
                part(slice.stop, 2),
                part(slice.step, 4),
            );
            self.bundle.slices.push(table::Slice {
                parts: start.0 | stop.0 | step.0,
                start: I64::new(start.1),
                stop: I64::new(stop.1),
                step: I64::new(step.1),
            });
        }
        self.constants();
    }

    fn leaf(&mut self, leaf: &Leaf) {
        let mut alternatives = Vec::with_capacity(leaf.alternatives.len());
        for comparisons in &leaf.alternatives {
            let start = self.bundle.comparisons.len();
            for comparison in comparisons {
                self.comparison(comparison);
            }
            alternatives.push(Range::new(start, comparisons.len()));
        }
        let start = self.bundle.alternatives.len();
        self.bundle.alternatives.extend(&alternatives);
        let text = self.bundle.text(&leaf.text);
        self.bundle.leaves.push(table::Leaf {
            kind: leaf.kind as u8,
            value: U64::new(leaf.value),
            text,
            alternatives: match alternatives.as_slice() {
                [] => Range::EMPTY,
                some => Range::new(start, some.len()),
            },
        });
    }

    fn comparison(&mut self, comparison: &Comparison) {
        let mut flags = match comparison.duration {
            Some(_) => ComparisonFlags::DURATION,
            None => 0,
        };
        let mut quantity = 0;
        match comparison.quantity {
            Some(OperandQuantity::Nano(nano)) => {
                flags |= ComparisonFlags::QUANTITY;
                quantity = nano as u128;
            }
            Some(OperandQuantity::Big) => flags |= ComparisonFlags::BIG_QUANTITY,
            None => {}
        }
        let operand = self.bundle.text(&comparison.operand);
        self.bundle.comparisons.push(table::Comparison {
            operator: comparison.operator as u8,
            class: comparison.class as u8,
            flags,
            join: comparison.join as u8,
            operand,
            duration: I64::new(comparison.duration.unwrap_or(0)),
            quantity: U128::new(quantity),
        });
    }

    /// The constants that code refers to come first, so that their numbers are their ids;
    /// items and members follow.
    fn constants(&mut self) {
        let constants = self.module.constants.entries();
        let first = self.reserve_constants(constants.len());
        for (index, constant) in constants.iter().enumerate() {
            let special = |kind, bits, text| (kind, bits, text);
            let (kind, bits, text) = match constant {
                Constant::Value(value) => {
                    self.constant_value(first + index, "", value);
                    continue;
                }
                Constant::Reference => special(ConstantKind::Reference, 0, ""),
                Constant::Uint(number) => special(ConstantKind::Uint, *number, ""),
                Constant::Bytes(bytes) => special(ConstantKind::Bytes, 0, bytes),
                Constant::Type(name) => special(ConstantKind::Type, 0, name),
            };
            let entry = table::Constant {
                kind: kind as u8,
                value: U64::new(bits),
                key: self.bundle.text(""),
                text: self.bundle.text(text),
                children: Range::EMPTY,
            };
            self.set_constant(first + index, entry);
        }
    }

    fn reserve_constants(&mut self, count: usize) -> usize {
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
        start
    }

    fn set_constant(&mut self, number: usize, entry: table::Constant) {
        if let Some(constant) = self.bundle.constants.get_mut(number) {
            *constant = entry;
        }
    }

    fn constant_value(&mut self, number: usize, key: &str, value: &TreeValue) {
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
            children: Range::new(start, children.len()),
        };
        self.set_constant(number, entry);
        for (offset, (key, child)) in children.into_iter().enumerate() {
            self.constant_value(start + offset, key, &child.value);
        }
    }

    /// The tables for match blocks and label patterns.
    fn matching(&mut self) {
        let module = self.module;
        for kinds in module.kind_lists.entries() {
            let start = self.bundle.kind_selectors.len();
            for kind in kinds {
                let entry = table::KindSelector {
                    group: self.bundle.text(&kind.group),
                    version: self.bundle.text(&kind.version),
                    kind: self.bundle.text(&kind.kind),
                    subresource: self.bundle.text(&kind.subresource),
                };
                self.bundle.kind_selectors.push(entry);
            }
            let list = Range::new(start, kinds.len());
            self.bundle.kind_lists.push(list);
        }
        for pairs in module.pair_lists.entries() {
            let list = self.pairs(pairs);
            self.bundle.pair_lists.push(list);
        }
        for selector in module.selectors.entries() {
            let labels = self.pairs(&selector.labels);
            let start = self.bundle.requirements.len();
            for requirement in &selector.requirements {
                let entry = table::Requirement {
                    operator: requirement.operator as u8,
                    key: self.bundle.text(&requirement.key),
                    values: number(requirement.values),
                };
                self.bundle.requirements.push(entry);
            }
            self.bundle.selectors.push(table::Selector {
                malformed: u8::from(selector.is_malformed),
                labels,
                requirements: Range::new(start, selector.requirements.len()),
            });
        }
        for subjects in module.subject_lists.entries() {
            let start = self.bundle.subjects.len();
            for subject in subjects {
                let entry = table::Subject {
                    kind: subject.kind as u8,
                    name: self.bundle.text(&subject.name),
                };
                self.bundle.subjects.push(entry);
            }
            let list = Range::new(start, subjects.len());
            self.bundle.subject_lists.push(list);
        }
        for pattern in module.tag_patterns.entries() {
            self.tag_pattern(pattern);
        }
    }

    fn pairs(&mut self, pairs: &[(String, String)]) -> Range {
        let start = self.bundle.pairs.len();
        for (key, value) in pairs {
            let pair = table::Pair {
                key: self.bundle.text(key),
                value: self.bundle.text(value),
            };
            self.bundle.pairs.push(pair);
        }
        Range::new(start, pairs.len())
    }

    fn tag_pattern(&mut self, pattern: &TagPattern) {
        let start = self.bundle.tag_entries.len();
        for entry in &pattern.entries {
            let record = table::TagEntry {
                anchor: entry.anchor as u8,
                wildcard: u8::from(entry.has_wildcard),
                star: u8::from(entry.is_star),
                key: self.bundle.text(&entry.key),
                leaf: number(entry.leaf),
                slot: optional(entry.slot),
            };
            self.bundle.tag_entries.push(record);
            let place = block::place(entry.location, self.sources);
            self.bundle.tag_places.push(place);
        }
        self.bundle.tag_patterns.push(table::TagPattern {
            metadata: U32::new(pattern.metadata.0),
            tag: U32::new(pattern.tag.0),
            entries: Range::new(start, pattern.entries.len()),
        });
    }

    /// Variables and entries.
    fn contexts(&mut self) {
        let module = self.module;
        for slot in module.slots.entries() {
            self.bundle.slots.push(table::Slot {
                name: U32::new(slot.name.0),
            });
        }
        for entry in module.entries.entries() {
            self.bundle.entries.push(table::Entry {
                slot: number(entry.slot),
                block: entry.loader.map_or(U32::ZERO, number),
                nested: u8::from(entry.is_nested),
            });
            let place = block::place(entry.location, self.sources);
            self.bundle.entry_places.push(place);
        }
    }

    /// The tables for podSecurity rules.
    fn findings(&mut self) {
        let module = self.module;
        for shape in module.shapes.entries() {
            self.shape(shape);
        }
        for control in module.controls.entries() {
            let entry = table::Control {
                id: self.bundle.text(control.id),
                name: self.bundle.text(control.name),
                reason: self.bundle.text(control.reason),
                reasons: self.bundle.text(control.reasons),
                names_images: u8::from(control.names_images),
            };
            self.bundle.controls.push(entry);
        }
        for exclusion in module.exclusions.entries() {
            let entry = table::Exclusion {
                name: self.bundle.text(&exclusion.name),
                field: self.bundle.text(&exclusion.field),
                values: optional(exclusion.values),
                by_owner: u8::from(exclusion.is_by_owner),
            };
            self.bundle.exclusions.push(entry);
        }
    }

    fn shape(&mut self, shape: &Shape) {
        let fields = match shape.fields.len() {
            0 => Range::EMPTY,
            count => Range::new(self.bundle.shape_fields.len(), count),
        };
        for field in &shape.fields {
            let entry = table::ShapeField {
                key: U32::new(field.key.0),
                shape: number(field.shape),
                nullable: u8::from(field.is_nullable),
                embedded: self.bundle.text(&field.embedded),
            };
            self.bundle.shape_fields.push(entry);
        }
        let slots = self.shape_slots(fields);
        let entry = table::Shape {
            kind: shape.kind as u8,
            name: self.bundle.text(&shape.name),
            item: optional(shape.item),
            fields,
            slots,
        };
        self.bundle.shapes.push(entry);
    }

    /// A hash table for the fields of a struct, with at least twice as many slots.
    fn shape_slots(&mut self, fields: Range) -> Range {
        let bundle = &mut *self.bundle;
        let first = fields.start.get() as usize;
        let count = fields.length.get() as usize;
        if count == 0 {
            return Range::EMPTY;
        }
        let mut slots = vec![table::Shape::EMPTY_SLOT; (2 * count).next_power_of_two()];
        for (place, field) in (0..).zip(bundle.shape_fields.iter().skip(first).take(count)) {
            let start = table::Shape::slot(field.key.get(), slots.len());
            let places = (start..slots.len()).chain(0..start);
            let free = |slot: &usize| slots.get(*slot) == Some(&table::Shape::EMPTY_SLOT);
            if let Some(slot) = { places }.find(free).and_then(|slot| slots.get_mut(slot)) {
                *slot = place;
            }
        }
        let start = bundle.shape_slots.len();
        bundle.shape_slots.extend(&slots);
        Range::new(start, slots.len())
    }

    fn policies(&mut self) {
        let module = self.module;
        for policy in module.policies.entries() {
            let entry = table::Policy {
                name: self.bundle.text(&policy.name),
                namespace: self.bundle.text(&policy.namespace),
                flags: policy.flags,
                rules: range(&policy.rules),
                overrides: self.overrides(&policy.overrides),
            };
            self.bundle.policies.push(entry);
        }
        for rule in module.rules.entries() {
            self.rule(rule);
        }
    }

    fn rule(&mut self, rule: &Rule) {
        let entry = table::Rule {
            policy: number(rule.policy),
            name: self.bundle.text(&rule.name),
            match_block: number(rule.blocks.matching),
            body_block: number(rule.blocks.body),
            precondition_block: optional(rule.blocks.preconditions),
            message_block: optional(rule.blocks.message),
            properties_block: optional(rule.blocks.properties),
            slots: range(&rule.slots),
            entries: range(&rule.entries),
            body: rule.body as u8,
            flags: rule.flags,
            message_kind: rule.message_kind as u8,
            message: self.bundle.text(&rule.message),
            kinds: self.index_kinds(&rule.kinds),
            keys: self.index_keys(&rule.keys),
            dropped_kinds: self.index_kinds(&rule.dropped_kinds),
            overrides: self.overrides(&rule.overrides),
            properties: self.pairs(&rule.properties),
            exceptions: Range::EMPTY,
        };
        self.bundle.rules.push(entry);
        let place = block::place(rule.location, self.sources);
        self.bundle.rule_places.push(place);
    }

    fn index_kinds(&mut self, kinds: &[String]) -> Range {
        let start = self.bundle.index_kinds.len();
        for kind in kinds {
            let text = self.bundle.text(kind);
            self.bundle.index_kinds.push(text);
        }
        Range::new(start, kinds.len())
    }

    fn index_keys(&mut self, keys: &[IndexKey]) -> Range {
        let start = self.bundle.index_keys.len();
        for key in keys {
            let entry = table::IndexKey {
                kind: key.kind as u8,
                whole: u8::from(key.whole),
                text: self.bundle.text(&key.text),
            };
            self.bundle.index_keys.push(entry);
        }
        Range::new(start, keys.len())
    }

    fn overrides(&mut self, overrides: &[ActionOverride]) -> Range {
        let start = self.bundle.action_overrides.len();
        let records = overrides.iter().map(|entry| table::ActionOverride {
            enforce: u8::from(entry.enforces),
            namespaces: optional(entry.namespaces),
            selector: optional(entry.selector),
        });
        self.bundle.action_overrides.extend(records);
        Range::new(start, overrides.len())
    }

    /// Appends exceptions to those that rules already have.
    fn exceptions(&mut self) {
        let module = self.module;
        if module.exceptions.is_empty() {
            return;
        }
        let mut added: Vec<(RuleId, table::Exception)> = Vec::new();
        for exception in &module.exceptions {
            let entry = table::Exception {
                namespace: self.bundle.text(&exception.namespace),
                name: self.bundle.text(&exception.name),
                block: number(exception.block),
                exclusion_block: optional(exception.exclusion_block),
                passes: u8::from(exception.passes),
                priority: U32::new(exception.priority),
                allowed: exception.allowed.map(optional),
            };
            added.push((exception.rule, entry));
        }
        // The sort is stable: the exceptions of one rule stay in order.
        added.sort_by_key(|(rule, _)| *rule);
        let known = std::mem::take(&mut self.bundle.exceptions);
        let mut all = Vec::with_capacity(known.len() + added.len());
        let mut added = added.into_iter().peekable();
        for (id, rule) in (0..).map(RuleId).zip(&mut self.bundle.rules) {
            let start = all.len();
            all.extend_from_slice(Tables::range(&known, rule.exceptions));
            while let Some((_, exception)) = added.next_if(|(rule, _)| *rule == id) {
                all.push(exception);
            }
            rule.exceptions = Range::new(start, all.len() - start);
        }
        self.bundle.exceptions = all;
    }
}
