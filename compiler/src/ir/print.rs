//! A module as text for people: one line per instruction, with operands by their meaning.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::ops::Range;

use kpvm_format::instruction::OperandKind;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{LeafKind, NONE};
use kpvm_syntax::tree::{Span, Tree};

use super::id::*;
use super::module::Module;
use super::record::Constant;
use super::rule::{Exception, Policy, Rule};
use super::{Block, Instruction, Item};
use crate::policy::kind_selector::KindSelector;
use crate::source::{Location, Sources};

/// Writes every policy with its rules and their blocks.
///
/// # Errors
/// If writing fails.
pub fn print(module: &Module, sources: &Sources, out: &mut dyn Write) -> fmt::Result {
    let printer = Printer { module, sources };
    for policy in module.policies.entries() {
        printer.policy(policy, out)?;
    }
    Ok(())
}

struct Printer<'m> {
    module: &'m Module,
    sources: &'m Sources,
}

impl Printer<'_> {
    fn policy(&self, policy: &Policy, out: &mut dyn Write) -> fmt::Result {
        write!(out, "policy {}", policy.name)?;
        if !policy.namespace.is_empty() {
            write!(out, " of namespace {}", policy.namespace)?;
        }
        out.write_str("\n\n")?;
        let Range { start, end } = policy.rules;
        for number in start.0..end.0 {
            if let Some(rule) = self.module.rules.get(RuleId(number)) {
                self.rule(RuleId(number), rule, out)?;
            }
        }
        Ok(())
    }

    fn rule(&self, id: RuleId, rule: &Rule, out: &mut dyn Write) -> fmt::Result {
        let kinds = rule.kinds.join(", ");
        write!(out, "  rule {} ({:?}) for {kinds}", rule.name, rule.body)?;
        self.place(rule.location, out)?;
        for key in &rule.keys {
            let rest = if key.whole { "" } else { "…" };
            writeln!(out, "    key {:?} {:?}{rest}", key.kind, key.text)?;
        }
        let mut known = BTreeSet::new();
        for (title, block) in rule.blocks.named() {
            self.block(title, block, &mut known, out)?;
        }
        for number in rule.entries.start.0..rule.entries.end.0 {
            let entry = self.module.entries.get(EntryId(number));
            if let Some((entry, loader)) = entry.and_then(|entry| Some((entry, entry.loader?))) {
                let title = format!("{} {}", EntryId(number), self.slot(entry.slot));
                self.block(&title, loader, &mut known, out)?;
            }
        }
        let of_rule = |exception: &&Exception| exception.rule == id;
        for exception in self.module.exceptions.iter().filter(of_rule) {
            let title = format!("exception {}", exception.name);
            self.block(&title, exception.block, &mut known, out)?;
            if let Some(block) = exception.exclusion_block {
                let title = format!("{title}, what it exempts from");
                self.block(&title, block, &mut known, out)?;
            }
        }
        out.write_str("\n")
    }

    /// Writes a block, followed by those that its instructions refer to.
    fn block(
        &self,
        title: &str,
        id: BlockId,
        known: &mut BTreeSet<BlockId>,
        out: &mut dyn Write,
    ) -> fmt::Result {
        let Some(block) = self.module.blocks.get(id).filter(|_| known.insert(id)) else {
            return Ok(());
        };
        writeln!(out, "    {title}: {id}")?;
        for item in &block.items {
            match item {
                Item::Label(label) => writeln!(out, "      L{}:", label.0)?,
                Item::Instruction(instruction) => self.instruction(instruction, out)?,
            }
        }
        for named in blocks_of(block) {
            self.block("named above", named, known, out)?;
        }
        Ok(())
    }

    fn instruction(&self, instruction: &Instruction, out: &mut dyn Write) -> fmt::Result {
        write!(out, "        {}", instruction.op().name())?;
        for (index, (operand, value)) in instruction.operation.numbers().enumerate() {
            match index {
                0 => write!(out, "{:1$}", "", 23 - instruction.op().name().len().min(22))?,
                _ => out.write_str(", ")?,
            }
            if let OperandKind::Immediate(kind) = operand.kind {
                if !kind.is_named() {
                    write!(out, "{}=", operand.name)?;
                }
                kind.show(value, out)?;
            } else {
                self.operand(operand.kind, value, out)?;
            }
        }
        match &instruction.site {
            Some(site) => self.place(site.location, out),
            None => out.write_str("\n"),
        }
    }

    fn operand(&self, kind: OperandKind, value: u32, out: &mut dyn Write) -> fmt::Result {
        let module = self.module;
        match kind {
            OperandKind::Source | OperandKind::Destination => write!(out, "v{value}"),
            OperandKind::Loop => write!(out, "loop{value}"),
            OperandKind::Fold => write!(out, "fold{value}"),
            OperandKind::List => write!(out, "list{value}"),
            OperandKind::Accumulator => write!(out, "text{value}"),
            OperandKind::Symbol => write!(out, ".{}", module.symbol_text(SymbolId(value))),
            OperandKind::Path => write!(out, "{}", self.path(PathId(value))),
            OperandKind::Leaf => match module.leaves.get(LeafId(value)) {
                Some(leaf) if leaf.kind == LeafKind::String => write!(out, "{:?}", leaf.text),
                Some(leaf) => out.write_str(&leaf.text),
                None => write!(out, "{}", LeafId(value)),
            },
            OperandKind::Text => match module.texts.get(TextId(value)) {
                Some(text) => write!(out, "{text:?}"),
                None => write!(out, "{}", TextId(value)),
            },
            OperandKind::Texts => match module.text_lists.get(TextListId(value)) {
                Some(texts) => write!(out, "{texts:?}"),
                None => write!(out, "{}", TextListId(value)),
            },
            OperandKind::Kinds => {
                let kinds = module.kind_lists.get(KindListId(value)).into_iter();
                let kinds: Vec<String> = kinds.flatten().map(kind_text).collect();
                write!(out, "[{}]", kinds.join(" "))
            }
            OperandKind::Pairs => {
                let pairs = module.pair_lists.get(PairListId(value)).into_iter();
                let pairs = pairs.flatten().map(|(key, value)| format!("{key}={value}"));
                write!(out, "[{}]", pairs.collect::<Vec<_>>().join(" "))
            }
            OperandKind::Selector => write!(out, "{}", SelectorId(value)),
            OperandKind::Subjects => {
                let subjects = module.subject_lists.get(SubjectListId(value)).into_iter();
                let names: Vec<&str> = subjects.flatten().map(|one| one.name.as_str()).collect();
                write!(out, "[{}]", names.join(" "))
            }
            OperandKind::TagPattern => write!(out, "{}", TagPatternId(value)),
            OperandKind::Constant => match module.constants.get(ConstantId(value)) {
                Some(constant) => constant_text(constant, out),
                None => write!(out, "{}", ConstantId(value)),
            },
            OperandKind::Slice => match module.slices.get(SliceId(value)) {
                Some(slice) => {
                    let part = |part: Option<i64>| part.map_or(String::new(), |it| it.to_string());
                    let parts = [slice.start, slice.stop, slice.step].map(part);
                    write!(out, "[{}]", parts.join(":"))
                }
                None => write!(out, "{}", SliceId(value)),
            },
            OperandKind::Slot => write!(out, "{}", self.slot(SlotId(value))),
            OperandKind::Entry => write!(out, "{}", EntryId(value)),
            OperandKind::OptionalBlock if value == NONE => out.write_str("none"),
            OperandKind::Block | OperandKind::OptionalBlock => write!(out, "{}", BlockId(value)),
            OperandKind::Shape => match module.shapes.get(ShapeId(value)) {
                Some(shape) => out.write_str(&shape.name),
                None => write!(out, "{}", ShapeId(value)),
            },
            OperandKind::Control => match module.controls.get(ControlId(value)) {
                Some(control) => out.write_str(control.id),
                None => write!(out, "{}", ControlId(value)),
            },
            OperandKind::Exclusion => write!(out, "{}", ExclusionId(value)),
            OperandKind::Forward | OperandKind::Backward => write!(out, "->L{value}"),
            OperandKind::Immediate(_) => write!(out, "{value}"),
        }
    }

    fn path(&self, id: PathId) -> String {
        let mut keys = Vec::new();
        let mut next = Some(id);
        while let Some(step) = next.and_then(|id| self.module.paths.get(id)) {
            keys.push(self.module.symbol_text(step.key));
            next = step.parent;
        }
        keys.iter()
            .rev()
            .fold(String::new(), |text, key| text + "/" + key)
    }

    fn slot(&self, id: SlotId) -> String {
        let name = self.module.slots.get(id);
        let name = name.map_or("", |slot| self.module.symbol_text(slot.name));
        match name {
            "" => format!("${id}"),
            name => format!("${name}"),
        }
    }

    /// Ends a line with a source location.
    fn place(&self, location: Location, out: &mut dyn Write) -> fmt::Result {
        let place = self.sources.line_column(location);
        writeln!(out, "  ; {}:{}", place.line, place.column)
    }
}

/// The blocks that instructions of a block refer to.
fn blocks_of(block: &Block) -> Vec<BlockId> {
    let mut blocks = Vec::new();
    for item in &block.items {
        let Item::Instruction(instruction) = item else {
            continue;
        };
        for (operand, value) in instruction.operation.numbers() {
            let is_block = matches!(
                operand.kind,
                OperandKind::Block | OperandKind::OptionalBlock
            );
            if is_block && value != NONE {
                blocks.push(BlockId(value));
            }
        }
    }
    blocks
}

fn kind_text(kind: &KindSelector) -> String {
    let text = format!("{}/{}/{}", kind.group, kind.version, kind.kind);
    match kind.subresource.as_str() {
        "" => text,
        subresource => format!("{text}/{subresource}"),
    }
}

fn constant_text(constant: &Constant, out: &mut dyn Write) -> fmt::Result {
    match constant {
        Constant::Value(value) => {
            let tree = Tree::new(value.clone(), Span::default());
            write!(out, "{}", tree.to_json())
        }
        Constant::Reference => out.write_str("&"),
        Constant::Uint(number) => write!(out, "{number}u"),
        Constant::Bytes(bytes) => write!(out, "b{bytes:?}"),
        Constant::Type(name) => write!(out, "type {name}"),
    }
}
