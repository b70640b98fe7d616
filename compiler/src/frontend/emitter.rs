//! What every front end that computes values needs: a block to write to, the pools of
//! the bundle, and the names in scope.

use std::collections::BTreeMap;

use kpvm_syntax::jmespath::mentions;
use kpvm_syntax::tree::{Span, Tree, TreeValue};
use kpvm_format::instruction::Op;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, ConstantKind, Range};
use zerocopy::little_endian::{U32, U64};

use super::assertion::Bindings;
use crate::ir::{Block, Instruction, Label, Register, Site, SiteKind};
use crate::lower::Pools;
use crate::source::{Location, SourceId};

/// Writes one block.
pub struct Emitter<'p, 'b> {
    /// The block.
    pub block: Block,
    /// The pools of the bundle.
    pub pools: &'p mut Pools<'b>,
    /// The names in scope.
    pub scope: Scope,
    /// The policy's file.
    pub source: SourceId,
    /// The part of the rule that code is written for, e.g. `foreach[0].deny`.
    part: String,
    /// Texts of inner variables, by the names that stand for them in the expression.
    pub(super) inner: BTreeMap<String, Register>,
    /// What `$` names in the expressions of an assertion tree; `None` outside of one.
    pub(super) bindings: Option<Bindings>,
    /// Code that runs rarely, kept out of the way until [`Emitter::flush_cold`].
    cold: Vec<(Label, Instruction)>,
}

/// The variables and context entries that an expression sees.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    slots: BTreeMap<String, u32>,
    entries: Vec<ScopeEntry>,
    /// Every entry of the rule so far, those of foreach blocks behind us included.
    seen: Vec<ScopeEntry>,
    /// Whether `request.object` means the old object on DELETE (docs/spec/conditions.md §4.8).
    pub rewrites_delete: bool,
    /// Whether the policy lives in a namespace and reaches nothing outside of it.
    pub is_confined: bool,
}

/// A context entry in scope.
#[derive(Debug, Clone)]
struct ScopeEntry {
    name: String,
    number: u32,
    /// It stands behind the entry whose loader is written: seen only once another
    /// loader ran (docs/spec/conditions.md §8.2).
    restricted: bool,
    /// It mentions `element`.
    volatile: bool,
}

impl Scope {
    /// The entries in scope that mention `element`: they run again for each element.
    pub fn volatile_entries(&self) -> Vec<u32> {
        self.entries
            .iter()
            .filter(|entry| entry.volatile)
            .map(|entry| entry.number)
            .collect()
    }

    /// Whether any context entry is in scope.
    pub fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// The slot of a variable.
    pub fn slot(&self, name: &str) -> Option<u32> {
        self.slots.get(name).copied()
    }

    /// The entries in scope with one of these names.
    pub fn entries_named(&self, names: &[&str]) -> Vec<u32> {
        let named = |entry: &&ScopeEntry| names.contains(&entry.name.as_str());
        self.entries
            .iter()
            .filter(named)
            .map(|entry| entry.number)
            .collect()
    }

    /// Makes a variable known.
    pub fn add_slot(&mut self, name: &str, slot: u32) {
        self.slots.insert(name.to_owned(), slot);
    }

    /// Makes a context entry known, behind those known already.
    pub fn add_entry(&mut self, name: &str, number: u32, volatile: bool) {
        let entry = ScopeEntry {
            name: name.to_owned(),
            number,
            restricted: false,
            volatile,
        };
        self.entries.push(entry.clone());
        self.seen.push(entry);
    }

    /// The entries in scope now, for [`Scope::leave`].
    pub fn enter(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the entries made known since. Variables stay known by name: an unset one
    /// is looked up further out.
    pub fn leave(&mut self, entered: usize) {
        self.entries.truncate(entered);
    }

    /// The scope of a message: whatever element is bound, its entries are the active ones.
    #[must_use]
    pub fn for_message(&self) -> Scope {
        Scope {
            entries: self.seen.clone(),
            ..self.clone()
        }
    }

    /// The scope of the loader of entry `number`: itself and later entries are restricted.
    #[must_use]
    pub fn for_loader(&self, number: u32) -> Scope {
        let mut scope = self.clone();
        scope
            .entries
            .iter_mut()
            .for_each(|entry| entry.restricted = entry.number >= number);
        scope
    }
}

/// What a DELETE rewrites.
const REQUEST_OBJECT: &str = "request.object";

/// Whether a query says `request.object` where it is no path of its own: in quotes,
/// behind a dot, as a part of longer names, or in front of an index or call, which takes
/// `object` alone.
fn has_odd_request_object(query: &str) -> bool {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut quote = None;
    for (at, character) in query.char_indices() {
        if let Some(rest) = query[at..].strip_prefix(REQUEST_OBJECT) {
            let before = query[..at].trim_end().chars().next_back();
            let joined = query[..at].ends_with(is_name) || before == Some('.');
            let behind = rest.trim_start();
            let is_bound = behind.starts_with(['[', '(', '{'])
                && !behind.starts_with("[]")
                && !behind.starts_with("[?");
            if quote.is_some() || joined || rest.starts_with(is_name) || is_bound {
                return true;
            }
        }
        match quote {
            None if matches!(character, '\'' | '"' | '`') => quote = Some(character),
            Some(open) if open == character => quote = None,
            _ => {}
        }
    }
    false
}

impl<'p, 'b> Emitter<'p, 'b> {
    /// An emitter for a new block.
    pub fn new(source: SourceId, scope: Scope, pools: &'p mut Pools<'b>) -> Self {
        Self {
            block: Block::new(),
            pools,
            scope,
            source,
            part: String::new(),
            inner: BTreeMap::new(),
            bindings: None,
            cold: Vec::new(),
        }
    }

    /// Writes code for a part of the part at hand: `.name` or `[index]`; for the first
    /// part of a rule `name`.
    pub fn in_part<T>(&mut self, part: &str, write: impl FnOnce(&mut Self) -> T) -> T {
        let entered = self.enter_part(part);
        let result = write(self);
        self.leave_part(entered);
        result
    }

    /// As [`Emitter::in_part`], until [`Emitter::leave_part`].
    pub fn enter_part(&mut self, part: &str) -> usize {
        let entered = self.part.len();
        self.part.push_str(part);
        entered
    }

    /// Goes back to the part around the one that was entered.
    pub fn leave_part(&mut self, entered: usize) {
        self.part.truncate(entered);
    }

    /// A site of the part at hand.
    pub fn site(&self, kind: SiteKind, span: Span) -> Site {
        let location = Location {
            source: self.source,
            span,
        };
        Site::new(kind, &self.part, location)
    }

    /// Appends a load into a register of its own.
    pub fn load(&mut self, load: Instruction) -> Register {
        let register = self.block.register();
        self.block.push(load.a(register.0));
        register
    }

    /// Copies a register.
    pub fn assign(&mut self, into: Register, from: Register) {
        self.block
            .push(Instruction::new(Op::Move).a(into.0).b(from.0));
    }

    /// Appends a jump with an error whose text is known; the register is never set.
    pub fn fail(&mut self, text: &str, on_error: Label) -> Register {
        let text = self.pools.text(text);
        self.block
            .push(Instruction::new(Op::FailText).c(text).target(on_error));
        // What stands behind is not reached, but its registers must exist.
        let behind = self.block.label();
        self.block.place(behind);
        self.block.register()
    }

    /// A constant value.
    pub fn constant(&mut self, value: &TreeValue) -> Register {
        let constant = self.pools.constant(value);
        self.load(Instruction::new(Op::LoadConstant).c(constant))
    }

    /// A label that puts `prefix` in front of an error and goes on to `on_error`; with
    /// `shows_query` a DELETE rewrites the prefix as it does the query.
    pub fn wrapping(&mut self, prefix: &str, shows_query: bool, on_error: Label) -> Label {
        let text = self.pools.text(prefix);
        let wrap = Instruction::new(Op::WrapError)
            .b(u32::from(shows_query))
            .c(text)
            .target(on_error);
        self.apart(wrap)
    }

    /// A label of an error whose text is known, which goes on to `on_error`.
    pub fn failing(&mut self, text: &str, on_error: Label) -> Label {
        let text = self.pools.text(text);
        self.apart(Instruction::new(Op::FailText).c(text).target(on_error))
    }

    /// A label of rare code: one instruction that ends the block or goes on to a label
    /// made before.
    pub fn apart(&mut self, instruction: Instruction) -> Label {
        let label = self.block.label();
        self.cold.push((label, instruction));
        label
    }

    /// Writes the rare code here; call it where nothing falls through, or with a jump
    /// over it, and before the labels that it goes on to.
    pub fn flush_cold(&mut self) {
        // Wraps go on to wraps made before them, and jumps only go forward.
        for (label, instruction) in std::mem::take(&mut self.cold).into_iter().rev() {
            self.block.place(label);
            self.block.push(instruction);
        }
    }

    /// As [`Emitter::flush_cold`] in the middle of code that falls through.
    pub fn flush_cold_inline(&mut self) {
        if !self.cold.is_empty() {
            let over = self.block.label();
            self.block.jump(over);
            self.flush_cold();
            self.block.place(over);
        }
    }

    /// Runs `body`, and writes its rare code behind it: what it goes on to may stand right
    /// behind that, while rare code of before waits for the end.
    pub fn with_rare_code_inline<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let waiting = std::mem::take(&mut self.cold);
        let result = body(self);
        self.flush_cold_inline();
        self.cold = waiting;
        result
    }

    /// Lowers a query: the text of an expression over the whole context, with the
    /// loaders of the entries that it mentions (docs/spec/jmespath.md §1).
    pub fn query(&mut self, text: &str, on_error: Label) -> Register {
        let text = text.trim();
        self.ensure_entries(text, on_error);
        if mentions(text, "images") {
            self.ensure_images(on_error);
        }
        if text.is_empty() {
            return self.fail("invalid query (nil)", on_error);
        }
        let rewrites = self.scope.rewrites_delete;
        let result = if rewrites && has_odd_request_object(text) {
            self.query_for_each_operation(text, on_error)
        } else {
            self.scope.rewrites_delete &= text.contains(REQUEST_OBJECT);
            self.search(text, rewrites, on_error)
        };
        self.scope.rewrites_delete = rewrites;
        result
    }

    /// On DELETE the text is rewritten wherever it says `request.object`, in string
    /// literals too (docs/spec/conditions.md §4.8): two expressions, of which one runs.
    fn query_for_each_operation(&mut self, text: &str, on_error: Label) -> Register {
        self.scope.rewrites_delete = false;
        let result = self.block.register();
        let (otherwise, end) = (self.block.label(), self.block.label());
        self.block
            .push(Instruction::new(Op::JumpUnlessDelete).target(otherwise));
        let rewritten = text.replace(REQUEST_OBJECT, "request.oldObject");
        let value = self.search(&rewritten, false, on_error);
        self.assign(result, value);
        self.block.jump(end);
        self.block.place(otherwise);
        let value = self.search(text, false, on_error);
        self.assign(result, value);
        self.block.place(end);
        result
    }

    /// The expression of a query, or its syntax error.
    fn search(&mut self, text: &str, shows_query: bool, on_error: Label) -> Register {
        match kpvm_syntax::jmespath::parse(text) {
            Err(error) => {
                let prefix = format!("incorrect query {text}: ");
                let failed = self.wrapping(&prefix, shows_query, on_error);
                self.fail(&error.message, failed)
            }
            Ok(expression) => {
                let failed = self.wrapping("JMESPath query failed: ", false, on_error);
                let over = super::expression::Current::Context;
                self.expression(&expression, over, failed, false)
            }
        }
    }

    /// Images that cannot be read fail the query that mentions them, whether or not it
    /// looks at them (docs/spec/conditions.md §7.1); that there are none does not.
    pub(super) fn ensure_images(&mut self, on_error: Label) {
        let (caught, end) = (self.block.label(), self.block.label());
        let images = self.block.register();
        self.block
            .push(Instruction::new(Op::LoadImages).a(images.0).target(caught));
        self.block.jump(end);
        self.block.place(caught);
        self.block.push(
            Instruction::new(Op::CatchMissing)
                .a(images.0)
                .target(on_error),
        );
        self.block.place(end);
    }

    /// Runs the loaders of the context entries that a query mentions.
    pub fn ensure_entries(&mut self, query: &str, on_error: Label) {
        let mut first = 2;
        for entry in &self.scope.entries {
            if mentions(query, &entry.name) {
                self.block.push(
                    Instruction::new(Op::EnsureEntry)
                        .c(entry.number)
                        .b(u32::from(entry.restricted) | first)
                        .target(on_error),
                );
                first = 0;
            }
        }
    }
}

impl Pools<'_> {
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

#[cfg(test)]
mod tests {
    use super::has_odd_request_object;

    /// docs/spec/conditions.md §4.8.
    #[test]
    fn request_object_in_odd_places() {
        for plain in [
            "request.object.a",
            "[request.object]",
            "a || request.object",
            "'x'",
        ] {
            assert!(!has_odd_request_object(plain), "{plain}");
        }
        for odd in [
            "'request.object'",
            "request.objects",
            "a.request.object",
            "xrequest.object",
        ] {
            assert!(has_odd_request_object(odd), "{odd}");
        }
    }
}
