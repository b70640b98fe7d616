//! A bundle as text for people: one line per instruction, operands by name.

use std::fmt::{self, Write};

use crate::bundle::Bundle;
use crate::instruction::{Instruction, Op, Operand, OperandKind};
use crate::sections::Tables;
use crate::site::InstructionId;
use crate::symbol::SymbolId;
use crate::table::NONE;
use crate::table::{ConstantKind, LeafKind, Range, Rule};

/// Writes every rule of the bundle that `wanted` accepts (policy name, rule name).
///
/// # Errors
/// If writing fails.
pub fn disassemble(
    bundle: &Bundle<'_>,
    wanted: &dyn Fn(&str, &str) -> bool,
    out: &mut dyn Write,
) -> fmt::Result {
    let tables = bundle.tables();
    for (number, rule) in (0u32..).zip(tables.rules) {
        let policy = tables
            .policies
            .get(rule.policy.get() as usize)
            .map_or("", |policy| tables.text(policy.name));
        if wanted(policy, tables.text(rule.name)) {
            disassemble_rule(&tables, policy, number, rule, out)?;
        }
    }
    Ok(())
}

fn disassemble_rule(
    tables: &Tables<'_>,
    policy: &str,
    number: u32,
    rule: &Rule,
    out: &mut dyn Write,
) -> fmt::Result {
    let write_block = |title: &str, block: u32, out: &mut dyn Write| {
        disassemble_block(
            tables,
            title,
            BlockOf {
                rule: number,
                block,
            },
            out,
        )
    };
    let kinds: Vec<&str> = Tables::range(tables.index_kinds, rule.kinds)
        .iter()
        .map(|&kind| tables.text(kind))
        .collect();
    writeln!(
        out,
        "rule {policy}/{} for {}",
        tables.text(rule.name),
        kinds.join(", ")
    )?;
    for (title, block) in [("match", rule.match_block), ("body", rule.body_block)] {
        write_block(title, block.get(), out)?;
    }
    if let Some(checks) = checks_of(tables, rule.body_block.get()) {
        write_block(&format!("checks (block{checks})"), checks, out)?;
    }
    for exception in Tables::range(tables.exceptions, rule.exceptions) {
        let title = format!("exception {}", tables.exception_key(exception));
        write_block(&title, exception.block.get(), out)?;
        let title = format!("{title}, what it exempts from");
        write_block(&title, exception.exclusion_block.get(), out)?;
    }
    writeln!(out)
}

/// The block of checks that a body runs, if any.
fn checks_of(tables: &Tables<'_>, body: u32) -> Option<u32> {
    let code = tables.block_code(tables.blocks.get(body as usize)?);
    let run = code.iter().find(|one| one.op == Op::RunChecks as u8)?;
    Some(run.c.get())
}

/// A block that runs for a rule.
#[derive(Debug, Clone, Copy)]
pub struct BlockOf {
    /// The rule, whose place those of the block are relative to.
    pub rule: u32,
    /// The block.
    pub block: u32,
}

/// Writes a block, if there is one with that number.
///
/// # Errors
/// If writing fails.
pub fn disassemble_block(
    tables: &Tables<'_>,
    title: &str,
    BlockOf {
        rule,
        block: number,
    }: BlockOf,
    out: &mut dyn Write,
) -> fmt::Result {
    let Some(block) = tables.blocks.get(number as usize) else {
        return Ok(());
    };
    writeln!(
        out,
        "  {title}: {} registers, {} loops, {} folds",
        block.registers, block.loops, block.folds
    )?;
    for (position, instruction) in (0u32..).zip(tables.block_code(block)) {
        write!(out, "    {position:4}  ")?;
        disassemble_instruction(tables, instruction, out)?;
        let site = tables.site(InstructionId {
            block: number,
            position,
        });
        if let Some(site) = site {
            let place = tables.place_of(rule, &site.place);
            write!(out, "  ; {}:{}", place.line, place.column)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn disassemble_instruction(
    tables: &Tables<'_>,
    instruction: &Instruction,
    out: &mut dyn Write,
) -> fmt::Result {
    let Some(op) = Op::decode(instruction.op) else {
        return write!(out, "unknown operation {}", instruction.op);
    };
    write!(out, "{:<22}", op.name())?;
    for (index, operand) in op.operands().iter().enumerate() {
        out.write_str(if index == 0 { " " } else { ", " })?;
        write_operand(tables, operand, instruction.operand(operand.field), out)?;
    }
    Ok(())
}

fn write_operand(
    tables: &Tables<'_>,
    operand: &Operand,
    value: u32,
    out: &mut dyn Write,
) -> fmt::Result {
    match operand.kind {
        OperandKind::Source | OperandKind::Destination => write!(out, "r{value}"),
        OperandKind::Loop => write!(out, "loop{value}"),
        OperandKind::Fold => write!(out, "fold{value}"),
        OperandKind::Symbol => write!(out, ".{}", tables.symbols.text(SymbolId(value))),
        OperandKind::Path => write!(out, "{}", path(tables, value)),
        OperandKind::Leaf => write_leaf(tables, value, out),
        OperandKind::Text => {
            write!(
                out,
                "{:?}",
                tables
                    .texts
                    .get(value as usize)
                    .map_or("", |&text| tables.text(text))
            )
        }
        OperandKind::Kinds => {
            let range = tables
                .kind_lists
                .get(value as usize)
                .copied()
                .unwrap_or(Range::EMPTY);
            let kinds = Tables::range(tables.kind_selectors, range)
                .iter()
                .map(|kind| {
                    let parts = [kind.group, kind.version, kind.kind]
                        .map(|part| tables.text(part))
                        .join("/");
                    match tables.text(kind.subresource) {
                        "" => parts,
                        subresource => format!("{parts}/{subresource}"),
                    }
                });
            write!(out, "[{}]", kinds.collect::<Vec<_>>().join(" "))
        }
        OperandKind::Texts => write!(out, "{:?}", tables.text_list(value).collect::<Vec<_>>()),
        OperandKind::Pairs => {
            let range = tables
                .pair_lists
                .get(value as usize)
                .copied()
                .unwrap_or(Range::EMPTY);
            let pairs = Tables::range(tables.pairs, range).iter();
            let pairs =
                pairs.map(|pair| format!("{}={}", tables.text(pair.key), tables.text(pair.value)));
            write!(out, "[{}]", pairs.collect::<Vec<_>>().join(" "))
        }
        OperandKind::Selector => write!(out, "selector{value}"),
        OperandKind::Subjects => {
            let range = tables
                .subject_lists
                .get(value as usize)
                .copied()
                .unwrap_or(Range::EMPTY);
            let subjects = Tables::range(tables.subjects, range)
                .iter()
                .map(|subject| tables.text(subject.name));
            write!(out, "[{}]", subjects.collect::<Vec<_>>().join(" "))
        }
        OperandKind::Constant => write_constant(tables, value, out),
        OperandKind::Slice => write!(out, "slice{value}"),
        OperandKind::Slot => {
            let name = tables
                .slots
                .get(value as usize)
                .map_or(0, |slot| slot.name.get());
            write!(out, "${}", tables.symbols.text(SymbolId(name)))
        }
        OperandKind::Entry => write!(out, "entry{value}"),
        OperandKind::OptionalBlock if value == NONE => write!(out, "none"),
        OperandKind::OptionalBlock => write!(out, "block{value}"),
        OperandKind::List => write!(out, "list{value}"),
        OperandKind::Accumulator => write!(out, "text{value}"),
        OperandKind::TagPattern => write!(out, "tags{value}"),
        OperandKind::Block => write!(out, "block{value}"),
        OperandKind::Shape => {
            let shape = tables.shapes.get(value as usize);
            let name = shape.map_or("?", |shape| tables.text(shape.name));
            write!(out, "{name}")
        }
        OperandKind::Control => {
            let control = tables.controls.get(value as usize);
            let id = control.map_or("?", |control| tables.text(control.id));
            write!(out, "{id}")
        }
        OperandKind::Exclusion => write!(out, "exclusion{value}"),
        OperandKind::Immediate(kind) => {
            if !kind.is_named() {
                write!(out, "{}=", operand.name)?;
            }
            kind.show(value, out)
        }
        OperandKind::Forward | OperandKind::Backward => write!(out, "->{value}"),
    }
}

fn write_leaf(tables: &Tables<'_>, leaf: u32, out: &mut dyn Write) -> fmt::Result {
    let Some(leaf) = tables.leaves.get(leaf as usize) else {
        return Ok(());
    };
    if leaf.kind == LeafKind::String as u8 {
        write!(out, "{:?}", tables.text(leaf.text))
    } else {
        write!(out, "{}", tables.text(leaf.text))
    }
}

fn write_constant(tables: &Tables<'_>, constant: u32, out: &mut dyn Write) -> fmt::Result {
    let Some(constant) = tables.constants.get(constant as usize) else {
        return Ok(());
    };
    let value = constant.value.get();
    match ConstantKind::ALL.get(usize::from(constant.kind)) {
        Some(ConstantKind::Null) | None => write!(out, "null"),
        Some(ConstantKind::Bool) => write!(out, "{}", value != 0),
        Some(ConstantKind::Int) => write!(out, "{}", value as i64),
        Some(ConstantKind::Float) => write!(out, "{:?}", f64::from_bits(value)),
        Some(ConstantKind::String) => write!(out, "{:?}", tables.text(constant.text)),
        Some(ConstantKind::List) => write!(out, "[{} items]", constant.children.length),
        Some(ConstantKind::Map) => write!(out, "{{{} members}}", constant.children.length),
        Some(ConstantKind::Reference) => write!(out, "&"),
        Some(ConstantKind::Uint) => write!(out, "{value}u"),
        Some(ConstantKind::Bytes) => write!(out, "b{:?}", tables.text(constant.text)),
        Some(ConstantKind::Type) => write!(out, "type {}", tables.text(constant.text)),
    }
}

/// A static path as text, e.g. `/spec/containers`.
pub fn path(tables: &Tables<'_>, mut path: u32) -> String {
    let mut keys = Vec::new();
    while let Some(entry) = tables.paths.get(path as usize) {
        keys.push(tables.symbols.text(SymbolId(entry.symbol.get())));
        path = entry.parent.get();
    }
    keys.iter()
        .rev()
        .fold(String::new(), |text, key| text + "/" + key)
}
