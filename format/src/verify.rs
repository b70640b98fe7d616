//! The verifier: checks every number of a bundle once at load, so that the interpreter can
//! trust them and a hostile bundle can do no harm.
//!
//! Guaranteed afterwards: every operation exists; every register, slot and table number is
//! in range; every block ends in an instruction that ends it; jumps go forward, never into
//! a loop from outside; the only jump back is `LoopNext` to the instruction after its own
//! `LoopBegin`, so every block terminates; every text is inside the pool with ends at
//! character boundaries; the index lists exactly the rules it should.

use std::fmt;

mod derived;

use crate::instruction::{Instruction, Op, OperandKind};
use crate::sections::Tables;
use crate::symbol::SymbolTableError;
use crate::table::*;

/// The deepest nesting of loops in a block.
pub const MAX_LOOP_DEPTH: usize = 64;

/// The longest static path in keys; the interpreter follows parents by recursion.
const MAX_PATH_DEPTH: usize = 512;

/// A rule of the format that a bundle violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError(String);

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VerifyError {}

impl VerifyError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<SymbolTableError> for VerifyError {
    fn from(error: SymbolTableError) -> Self {
        Self(error.to_string())
    }
}

type Verified = Result<(), VerifyError>;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Verified {
    if holds {
        Ok(())
    } else {
        Err(VerifyError(what()))
    }
}

fn number(what: &str, number: u32, count: usize) -> Verified {
    ensure((number as usize) < count, || {
        format!("{what} {number} of {count}")
    })
}

fn optional(what: &str, value: u32, count: usize) -> Verified {
    if value == NONE {
        Ok(())
    } else {
        number(what, value, count)
    }
}

fn range(what: &str, range: Range, count: usize) -> Verified {
    let end = u64::from(range.start.get()) + u64::from(range.length.get());
    ensure(end <= count as u64, || {
        format!("{what} up to {end} of {count}")
    })
}

fn bits(what: &str, value: u8, all: u8) -> Verified {
    ensure(value & !all == 0, || format!("unknown {what} {value:#x}"))
}

/// Checks all tables and all code.
pub(crate) fn verify(tables: &Tables<'_>) -> Verified {
    verify_leaves(tables)?;
    verify_matching(tables)?;
    verify_expressions(tables)?;
    verify_shapes(tables)?;
    verify_findings(tables)?;
    verify_rules(tables)?;
    verify_sites(tables)?;
    let mut depths: Vec<usize> = Vec::with_capacity(tables.paths.len());
    for (path, entry) in tables.paths.iter().enumerate() {
        optional("parent of a path", entry.parent.get(), path)?;
        let depth = depths
            .get(entry.parent.get() as usize)
            .map_or(0, |depth| depth + 1);
        ensure(depth <= MAX_PATH_DEPTH, || "a path that is too long".into())?;
        depths.push(depth);
        number("symbol", entry.symbol.get(), tables.symbols.len())?;
    }
    verify_facts(tables)?;
    verify_blocks(tables)?;
    derived::verify(tables)?;
    ensure(crate::index::is_derived_from_rules(tables), || {
        "the match index is not that of the rules".into()
    })
}

/// Checks the facts for people.
fn verify_facts(tables: &Tables<'_>) -> Verified {
    for (what, count, expected) in [
        ("bundles", tables.bundle_facts.len(), 1),
        ("policies", tables.policy_facts.len(), tables.policies.len()),
    ] {
        ensure(count == expected, || {
            format!("facts about {count} {what} of {expected}")
        })?;
    }
    for facts in tables.bundle_facts {
        tables.check_text(facts.compiler)?;
    }
    for &source in tables.sources {
        tables.check_text(source)?;
    }
    for facts in tables.policy_facts {
        tables.check_text(facts.kind)?;
        tables.check_text(facts.api_version)?;
        range("annotations", facts.annotations, tables.pairs.len())?;
        bits("background flag", facts.background, 1)?;
    }
    for rule in tables.omitted {
        [rule.policy, rule.rule, rule.reason, rule.place]
            .into_iter()
            .try_for_each(|text| tables.check_text(text))?;
    }
    Ok(())
}

impl Tables<'_> {
    fn check_text(&self, text: Text) -> Verified {
        let start = text.offset.get() as usize;
        let inside = self
            .pool
            .get(start..start.wrapping_add(text.length.get() as usize))
            .is_some();
        ensure(inside, || format!("a text at {start} outside of the pool"))
    }
}

fn verify_leaves(tables: &Tables<'_>) -> Verified {
    for leaf in tables.leaves {
        number("kind of leaf", u32::from(leaf.kind), LeafKind::ALL.len())?;
        tables.check_text(leaf.text)?;
        range("alternatives", leaf.alternatives, tables.alternatives.len())?;
    }
    for &alternative in tables.alternatives {
        range("comparisons", alternative, tables.comparisons.len())?;
        let comparisons = Tables::range(tables.comparisons, alternative);
        let ends = comparisons
            .iter()
            .filter(|comparison| comparison.join == Join::End as u8)
            .count();
        let last = comparisons.last().map(|comparison| comparison.join);
        ensure(ends == 1 && last == Some(Join::End as u8), || {
            "an alternative that does not end".into()
        })?;
    }
    for comparison in tables.comparisons {
        number(
            "operator",
            u32::from(comparison.operator),
            usize::from(OPERATORS),
        )?;
        number(
            "wildcard class",
            u32::from(comparison.class),
            usize::from(WILDCARD_CLASSES),
        )?;
        number("join", u32::from(comparison.join), Join::ALL.len())?;
        bits(
            "flags of a comparison",
            comparison.flags,
            ComparisonFlags::ALL,
        )?;
        tables.check_text(comparison.operand)?;
    }
    Ok(())
}

/// The deepest nesting of a constant.
const MAX_CONSTANT_DEPTH: usize = 512;

fn verify_expressions(tables: &Tables<'_>) -> Verified {
    let mut depths = vec![0usize; tables.constants.len()];
    for (position, constant) in tables.constants.iter().enumerate() {
        number(
            "kind of constant",
            u32::from(constant.kind),
            ConstantKind::ALL.len(),
        )?;
        tables.check_text(constant.key)?;
        tables.check_text(constant.text)?;
        range("constants", constant.children, tables.constants.len())?;
        let start = constant.children.start.get() as usize;
        let length = constant.children.length.get() as usize;
        ensure(length == 0 || start > position, || {
            format!("constant {position} holds itself")
        })?;
        let depth = depths[position] + 1;
        ensure(depth <= MAX_CONSTANT_DEPTH, || {
            "a constant nested too deep".into()
        })?;
        // Two constants may not share a child, so the cost of building a constant stays
        // linear.
        for child in &mut depths[start..start + length] {
            ensure(*child == 0, || {
                format!("constant {position} shares an item")
            })?;
            *child = depth;
        }
    }
    tables
        .slices
        .iter()
        .try_for_each(|slice| bits("parts of a slice", slice.parts, 7))?;
    for slot in tables.slots {
        number("symbol", slot.name.get(), tables.symbols.len())?;
    }
    for entry in tables.entries {
        number("variable", entry.slot.get(), tables.slots.len())?;
        number("block", entry.block.get(), tables.blocks.len())?;
        bits("flag of an entry", entry.nested, 1)?;
    }
    Ok(())
}

/// The deepest nesting of a shape; the interpreter follows shapes by recursion.
const MAX_SHAPE_DEPTH: usize = 64;

/// A shape contains only shapes with smaller numbers, so none contains itself.
fn verify_shapes(tables: &Tables<'_>) -> Verified {
    let mut depths: Vec<usize> = Vec::with_capacity(tables.shapes.len());
    for (position, shape) in tables.shapes.iter().enumerate() {
        number("kind of shape", u32::from(shape.kind), ShapeKind::ALL.len())?;
        tables.check_text(shape.name)?;
        range("fields", shape.fields, tables.shape_fields.len())?;
        let fields = Tables::range(tables.shape_fields, shape.fields);
        range("slots", shape.slots, tables.shape_slots.len())?;
        let slots = Tables::range(tables.shape_slots, shape.slots);
        ensure(slots.is_empty() || slots.len().is_power_of_two(), || {
            format!("shape {position} with {} slots", slots.len())
        })?;
        // A field that is not found would not be checked.
        let is_found = |field: &ShapeField| {
            Shape::field(field.key.get(), fields, slots).is_some_and(|found| found == field)
        };
        ensure(fields.iter().all(is_found), || {
            format!("shape {position} hides a field")
        })?;
        let holds_item = [ShapeKind::List as u8, ShapeKind::Map as u8].contains(&shape.kind);
        ensure(holds_item == (shape.item.get() != NONE), || {
            format!("shape {position} with or without items")
        })?;
        optional("shape", shape.item.get(), position)?;
        for field in fields {
            number("shape", field.shape.get(), position)?;
        }
        let inner = fields.iter().map(|field| field.shape.get());
        let depth = inner
            .chain([shape.item.get()])
            .filter_map(|inner| depths.get(inner as usize))
            .max()
            .map_or(0, |depth| depth + 1);
        ensure(depth <= MAX_SHAPE_DEPTH, || {
            "a shape nested too deep".into()
        })?;
        depths.push(depth);
    }
    for field in tables.shape_fields {
        number("symbol", field.key.get(), tables.symbols.len())?;
        number("shape", field.shape.get(), tables.shapes.len())?;
        bits("flag of a field", field.nullable, 1)?;
        tables.check_text(field.embedded)?;
    }
    Ok(())
}

fn verify_findings(tables: &Tables<'_>) -> Verified {
    for control in tables.controls {
        [control.id, control.name, control.reason, control.reasons]
            .into_iter()
            .try_for_each(|text| tables.check_text(text))?;
        bits("flag of a control", control.names_images, 1)?;
    }
    for exclusion in tables.exclusions {
        tables.check_text(exclusion.name)?;
        tables.check_text(exclusion.field)?;
        optional(
            "list of texts",
            exclusion.values.get(),
            tables.text_lists.len(),
        )?;
        bits("flag of an exclusion", exclusion.by_owner, 1)?;
    }
    Ok(())
}

fn verify_matching(tables: &Tables<'_>) -> Verified {
    tables
        .kind_lists
        .iter()
        .try_for_each(|&list| range("kinds", list, tables.kind_selectors.len()))?;
    tables
        .text_lists
        .iter()
        .try_for_each(|&list| range("texts", list, tables.texts.len()))?;
    tables
        .pair_lists
        .iter()
        .try_for_each(|&list| range("pairs", list, tables.pairs.len()))?;
    tables
        .subject_lists
        .iter()
        .try_for_each(|&list| range("subjects", list, tables.subjects.len()))?;
    for selector in tables.kind_selectors {
        [
            selector.group,
            selector.version,
            selector.kind,
            selector.subresource,
        ]
        .into_iter()
        .try_for_each(|text| tables.check_text(text))?;
    }
    tables
        .texts
        .iter()
        .chain(tables.index_kinds)
        .try_for_each(|&text| tables.check_text(text))?;
    for key in tables.index_keys {
        number("kind of key", u32::from(key.kind), KeyKind::ALL.len())?;
        bits("whole flag", key.whole, 1)?;
        tables.check_text(key.text)?;
    }
    for pair in tables.pairs {
        tables.check_text(pair.key)?;
        tables.check_text(pair.value)?;
    }
    for selector in tables.selectors {
        bits("malformed flag", selector.malformed, 1)?;
        range("labels", selector.labels, tables.pairs.len())?;
        range(
            "requirements",
            selector.requirements,
            tables.requirements.len(),
        )?;
    }
    for requirement in tables.requirements {
        number(
            "requirement operator",
            u32::from(requirement.operator),
            RequirementOperator::ALL.len(),
        )?;
        tables.check_text(requirement.key)?;
        number(
            "list of texts",
            requirement.values.get(),
            tables.text_lists.len(),
        )?;
    }
    for subject in tables.subjects {
        number(
            "kind of subject",
            u32::from(subject.kind),
            SubjectKind::ALL.len(),
        )?;
        tables.check_text(subject.name)?;
    }
    for pattern in tables.tag_patterns {
        number("symbol", pattern.metadata.get(), tables.symbols.len())?;
        number("symbol", pattern.tag.get(), tables.symbols.len())?;
        range("tag entries", pattern.entries, tables.tag_entries.len())?;
    }
    for entry in tables.tag_entries {
        number("anchor", u32::from(entry.anchor), usize::from(ANCHORS))?;
        bits("flag of a tag entry", entry.wildcard | entry.star, 1)?;
        tables.check_text(entry.key)?;
        number("leaf", entry.leaf.get(), tables.leaves.len())?;
        optional("variable", entry.slot.get(), tables.slots.len())?;
    }
    Ok(())
}

fn verify_rules(tables: &Tables<'_>) -> Verified {
    for entry in tables.action_overrides {
        bits("action", entry.enforce, 1)?;
        optional(
            "list of texts",
            entry.namespaces.get(),
            tables.text_lists.len(),
        )?;
        optional("selector", entry.selector.get(), tables.selectors.len())?;
    }
    for rule in tables.rules {
        number("policy", rule.policy.get(), tables.policies.len())?;
        tables.check_text(rule.name)?;
        tables.check_text(rule.message)?;
        number("block", rule.match_block.get(), tables.blocks.len())?;
        number("block", rule.body_block.get(), tables.blocks.len())?;
        optional("block", rule.precondition_block.get(), tables.blocks.len())?;
        optional("block", rule.message_block.get(), tables.blocks.len())?;
        optional("block", rule.properties_block.get(), tables.blocks.len())?;
        range("variables", rule.slots, tables.slots.len())?;
        range("context entries", rule.entries, tables.entries.len())?;
        number("kind of body", u32::from(rule.body), BodyKind::ALL.len())?;
        number(
            "kind of message",
            u32::from(rule.message_kind),
            MessageKind::ALL.len(),
        )?;
        bits("flags of a rule", rule.flags, RuleFlags::ALL)?;
        range("kinds", rule.kinds, tables.index_kinds.len())?;
        range("index keys", rule.keys, tables.index_keys.len())?;
        range(
            "dropped kinds",
            rule.dropped_kinds,
            tables.index_kinds.len(),
        )?;
        range("overrides", rule.overrides, tables.action_overrides.len())?;
        range("properties", rule.properties, tables.pairs.len())?;
        range("exceptions", rule.exceptions, tables.exceptions.len())?;
    }
    for exception in tables.exceptions {
        tables.check_text(exception.namespace)?;
        tables.check_text(exception.name)?;
        number("block", exception.block.get(), tables.blocks.len())?;
        optional(
            "block",
            exception.exclusion_block.get(),
            tables.blocks.len(),
        )?;
        for allowed in exception.allowed {
            optional("list of texts", allowed.get(), tables.text_lists.len())?;
        }
    }
    let mut first = 0;
    for (policy, entry) in tables.policies.iter().enumerate() {
        tables.check_text(entry.name)?;
        tables.check_text(entry.namespace)?;
        bits("flags of a policy", entry.flags, PolicyFlags::ALL)?;
        range("rules", entry.rules, tables.rules.len())?;
        range("overrides", entry.overrides, tables.action_overrides.len())?;
        ensure(entry.rules.start.get() == first, || {
            "rules of a policy that do not follow".into()
        })?;
        first += entry.rules.length.get();
        let own = Tables::range(tables.rules, entry.rules);
        ensure(
            own.iter().all(|rule| rule.policy.get() as usize == policy),
            || "a rule of another policy".into(),
        )?;
    }
    ensure(first as usize == tables.rules.len(), || {
        "rules without a policy".into()
    })
}

/// Segments of a path that messages name; it is followed by recursion.
const MAX_SITE_PATH_DEPTH: usize = 2048;

fn verify_sites(tables: &Tables<'_>) -> Verified {
    for label in tables.site_labels {
        tables.check_text(label.part)?;
        tables.check_text(label.written)?;
    }
    for &text in tables.path_texts {
        tables.check_text(text)?;
    }
    let mut depths: Vec<usize> = Vec::with_capacity(tables.site_paths.len());
    for (position, path) in tables.site_paths.iter().enumerate() {
        optional("parent of a path", path.parent.get(), position)?;
        let depth = depths
            .get(path.parent.get() as usize)
            .map_or(1, |depth| depth + 1);
        ensure(depth <= MAX_SITE_PATH_DEPTH, || {
            "a path of too many segments".into()
        })?;
        depths.push(depth);
        let segment = path.segment.get();
        match segment & SitePath::LOOP {
            0 => number("text", segment, tables.path_texts.len())?,
            _ => number("loop slot", segment & !SitePath::LOOP, MAX_LOOP_DEPTH)?,
        }
    }
    let mut last_positions = Vec::with_capacity(tables.site_runs.len());
    for run in tables.site_runs {
        let last = tables.verify_run(run);
        last_positions.push(last.ok_or_else(|| VerifyError::new("a malformed run of sites"))?);
    }
    for block in tables.blocks {
        range("sites", block.sites, tables.site_runs.len())?;
        let runs = Tables::range(tables.site_runs, block.sites);
        let lasts = Tables::range(&last_positions, block.sites);
        let mut next = 0;
        for (run, &last) in runs.iter().zip(lasts) {
            ensure(next <= run.position.get(), || "sites out of order".into())?;
            number("instruction", last, block.length.get() as usize)?;
            next = last + 1;
        }
    }
    for (what, count, expected) in [
        ("rules", tables.rule_places.len(), tables.rules.len()),
        (
            "context entries",
            tables.entry_places.len(),
            tables.entries.len(),
        ),
        (
            "tag entries",
            tables.tag_places.len(),
            tables.tag_entries.len(),
        ),
    ] {
        ensure(count == expected, || {
            format!("{count} places of {expected} {what}")
        })?;
    }
    for place in tables.tag_places {
        ensure(tables.has_source(place), || "a place in no file".into())?;
    }
    let places = tables.rule_places.iter().chain(tables.entry_places);
    places
        .into_iter()
        .try_for_each(|place| number("source", place.source.get(), tables.sources.len()))
}

/// The loop that encloses each instruction: position of its `LoopBegin`, and the
/// loop around that.
struct LoopNesting {
    innermost: Vec<Option<usize>>,
    parent: Vec<Option<usize>>,
}

impl LoopNesting {
    fn encloses(&self, outer: Option<usize>, mut inner: Option<usize>) -> bool {
        loop {
            if outer == inner {
                return true;
            }
            match inner {
                Some(begin) => inner = self.parent[begin],
                None => return false,
            }
        }
    }
}

fn decode(instruction: &Instruction) -> Result<Op, VerifyError> {
    Op::decode(instruction.op)
        .ok_or_else(|| VerifyError(format!("unknown operation {}", instruction.op)))
}

fn loop_nesting(code: &[Instruction]) -> Result<LoopNesting, VerifyError> {
    let mut nesting = LoopNesting {
        innermost: vec![None; code.len()],
        parent: vec![None; code.len()],
    };
    let mut open: Vec<usize> = Vec::new();
    for (position, instruction) in code.iter().enumerate() {
        nesting.innermost[position] = open.last().copied();
        match decode(instruction)? {
            Op::LoopBegin => {
                ensure(open.len() < MAX_LOOP_DEPTH, || {
                    "loops nested too deep".into()
                })?;
                let reused = open.iter().any(|&begin| code[begin].a == instruction.a);
                ensure(!reused, || {
                    format!("loop slot {} used twice in nested loops", instruction.a)
                })?;
                nesting.parent[position] = open.last().copied();
                open.push(position);
            }
            Op::LoopNext => {
                let begin = open
                    .pop()
                    .ok_or_else(|| VerifyError::new("LoopNext without LoopBegin"))?;
                let same =
                    code[begin].a == instruction.a && instruction.d.get() as usize == begin + 1;
                ensure(same && code[begin].e == instruction.e, || {
                    "LoopNext of another loop".into()
                })?;
            }
            _ => {}
        }
    }
    ensure(open.is_empty(), || "LoopBegin without LoopNext".into())?;
    Ok(nesting)
}

/// Blocks come in the order of their code; a block that shares code with an earlier one has
/// all of it and an equal frame.
fn verify_blocks(tables: &Tables<'_>) -> Verified {
    // One block for each piece of code, ascending by start.
    let mut pieces: Vec<&Block> = Vec::new();
    let mut end = 0;
    for block in tables.blocks {
        if block.start.get() < end {
            let found = pieces.binary_search_by_key(&block.start.get(), |piece| piece.start.get());
            let piece = found.ok().and_then(|found| pieces.get(found));
            ensure(piece.is_some_and(|piece| piece.has_code_of(block)), || {
                "a block that shares a part of another's code".into()
            })?;
            continue;
        }
        ensure(block.start.get() == end, || {
            "a block does not begin where the one before ends".into()
        })?;
        range("block", block.code(), tables.code.len())?;
        end += block.length.get();
        verify_block(tables, block)?;
        pieces.push(block);
    }
    ensure(end as usize == tables.code.len(), || {
        "code outside of blocks".into()
    })
}

fn verify_block(tables: &Tables<'_>, block: &Block) -> Verified {
    let code = tables.block_code(block);
    let last = code
        .last()
        .ok_or_else(|| VerifyError::new("an empty block"))?;
    ensure(decode(last)?.ends_block(), || {
        "a block that does not end".into()
    })?;
    ensure(block.registers.get() <= 256, || {
        format!("{} registers", block.registers)
    })?;
    ensure(usize::from(block.loops) <= MAX_LOOP_DEPTH, || {
        format!("{} loop slots", block.loops)
    })?;
    let nesting = loop_nesting(code)?;
    for (position, instruction) in code.iter().enumerate() {
        let op = decode(instruction)?;
        verify_pair(op, code.get(position + 1))?;
        for operand in op.operands() {
            let value = instruction.operand(operand.field);
            verify_operand(tables, block, operand.kind, value)?;
            if operand.kind == OperandKind::Forward {
                let target = value as usize;
                let forward = target > position && target < code.len();
                ensure(forward, || {
                    format!("a jump from {position} to {target} of {}", code.len())
                })?;
                let inside =
                    nesting.encloses(nesting.innermost[target], nesting.innermost[position]);
                ensure(inside, || {
                    format!("a jump from {position} into a loop at {target}")
                })?;
            }
        }
    }
    Ok(())
}

/// A test is followed by its `CelOnError`, which occurs nowhere else.
fn verify_pair(op: Op, next: Option<&Instruction>) -> Verified {
    let is_followed = next.is_some_and(|next| Op::decode(next.op) == Some(Op::CelOnError));
    ensure(op.is_test() == is_followed, || {
        format!("{} and CelOnError are no pair", op.name())
    })
}

fn verify_operand(tables: &Tables<'_>, block: &Block, kind: OperandKind, value: u32) -> Verified {
    match kind {
        OperandKind::Source | OperandKind::Destination => {
            number("register", value, usize::from(block.registers.get()))
        }
        OperandKind::Loop => number("loop slot", value, usize::from(block.loops)),
        OperandKind::Fold => number("fold slot", value, usize::from(block.folds)),
        OperandKind::Symbol => number("symbol", value, tables.symbols.len()),
        OperandKind::Path => number("path", value, tables.paths.len()),
        OperandKind::Leaf => number("leaf", value, tables.leaves.len()),
        OperandKind::Text => number("text", value, tables.texts.len()),
        OperandKind::Kinds => number("list of kinds", value, tables.kind_lists.len()),
        OperandKind::Texts => number("list of texts", value, tables.text_lists.len()),
        OperandKind::Pairs => number("list of pairs", value, tables.pair_lists.len()),
        OperandKind::Selector => number("selector", value, tables.selectors.len()),
        OperandKind::Subjects => number("list of subjects", value, tables.subject_lists.len()),
        OperandKind::Constant => number("constant", value, tables.constants.len()),
        OperandKind::Slice => number("slice", value, tables.slices.len()),
        OperandKind::Slot => number("variable", value, tables.slots.len()),
        OperandKind::Entry => number("context entry", value, tables.entries.len()),
        OperandKind::OptionalBlock => optional("block", value, tables.blocks.len()),
        OperandKind::List => number("list accumulator", value, usize::from(block.lists)),
        OperandKind::Accumulator => {
            number("text accumulator", value, usize::from(block.accumulators))
        }
        OperandKind::TagPattern => number("tag pattern", value, tables.tag_patterns.len()),
        OperandKind::Immediate(kind) => ensure(value <= kind.last(), || {
            format!("{} {value} is not in 0..={}", kind.name(), kind.last())
        }),
        OperandKind::Block => number("block", value, tables.blocks.len()),
        OperandKind::Shape => number("shape", value, tables.shapes.len()),
        OperandKind::Control => number("control", value, tables.controls.len()),
        OperandKind::Exclusion => number("exclusion", value, tables.exclusions.len()),
        // Jumps are checked with their position: forward ones by `verify_block`, backward
        // ones by `loop_nesting`.
        OperandKind::Forward | OperandKind::Backward => Ok(()),
    }
}
