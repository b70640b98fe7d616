//! What every front end that computes values needs: a block to write to, the module, and
//! the names in scope.

use std::collections::BTreeMap;

use kpvm_syntax::tree::{Span, TreeValue};

use super::scope::Scope;
use crate::ir::{Block, Instruction, Label, Module, Operation, Register, Site, SiteKind};
use crate::source::{Location, SourceId};

/// Names of values in the expressions of an assertion tree, innermost last.
pub(super) type Bindings = Vec<(Box<str>, Register)>;

/// Writes one block.
pub struct Emitter<'p> {
    /// The block.
    pub block: Block,
    /// The module under construction.
    pub module: &'p mut Module,
    /// The names in scope.
    pub scope: Scope,
    /// The policy's file.
    pub source: SourceId,
    /// The part of the rule for which code is being written, e.g. `foreach[0].deny`.
    part: String,
    /// Texts of inner variables, by the names that replace them in the expression.
    pub(super) inner: BTreeMap<String, Register>,
    /// What `$` names in the expressions of an assertion tree; `None` outside one.
    pub(super) bindings: Option<Bindings>,
    /// Rarely executed code, kept aside until [`Emitter::flush_cold`].
    cold: Vec<(Label, Instruction)>,
}

impl<'p> Emitter<'p> {
    /// An emitter for a new block.
    pub fn new(source: SourceId, scope: Scope, module: &'p mut Module) -> Self {
        Self {
            block: Block::new(),
            module,
            scope,
            source,
            part: String::new(),
            inner: BTreeMap::new(),
            bindings: None,
            cold: Vec::new(),
        }
    }

    /// Writes code for a subpart of the current part: `.name` or `[index]`; for the first
    /// part of a rule `name`.
    pub fn in_part<T>(&mut self, part: &str, write: impl FnOnce(&mut Self) -> T) -> T {
        let entered = self.enter_part(part);
        let result = write(self);
        self.leave_part(entered);
        result
    }

    /// Like [`Emitter::in_part`], until [`Emitter::leave_part`].
    pub fn enter_part(&mut self, part: &str) -> usize {
        let entered = self.part.len();
        self.part.push_str(part);
        entered
    }

    /// Returns to the part that was current before [`Emitter::enter_part`].
    pub fn leave_part(&mut self, entered: usize) {
        self.part.truncate(entered);
    }

    /// A site in the current part.
    pub fn site(&self, kind: SiteKind, span: Span) -> Site {
        let location = Location {
            source: self.source,
            span,
        };
        Site::new(kind, &self.part, location)
    }

    /// Appends a load into a new register.
    pub fn load(&mut self, load: impl FnOnce(Register) -> Operation) -> Register {
        let register = self.block.register();
        self.block.push(load(register));
        register
    }

    /// Copies a register.
    pub fn assign(&mut self, into: Register, from: Register) {
        self.block.push(Operation::Move {
            dst: into,
            src: from,
        });
    }

    /// Appends a jump with an error whose text is known; the register is never set.
    pub fn fail(&mut self, text: &str, on_error: Label) -> Register {
        let text = self.module.text(text);
        self.block.push(Operation::FailText {
            text,
            target: on_error,
        });
        // The code after it is unreachable, but its registers must exist.
        let behind = self.block.label();
        self.block.place(behind);
        self.block.register()
    }

    /// A constant value.
    pub fn constant(&mut self, value: &TreeValue) -> Register {
        let constant = self.module.constant(value);
        self.load(|dst| Operation::LoadConstant { dst, constant })
    }

    /// A label that prefixes an error with `prefix` and continues at `on_error`; with
    /// `shows_query`, DELETE rewrites the prefix like the query.
    pub fn wrapping(&mut self, prefix: &str, shows_query: bool, on_error: Label) -> Label {
        let text = self.module.text(prefix);
        let wrap = Operation::WrapError {
            query: shows_query,
            text,
            target: on_error,
        };
        self.apart(wrap)
    }

    /// A label that raises an error with a known text and continues at `on_error`.
    pub fn failing(&mut self, text: &str, on_error: Label) -> Label {
        let text = self.module.text(text);
        self.apart(Operation::FailText {
            text,
            target: on_error,
        })
    }

    /// A label of rare code: one instruction that ends the block or jumps to an earlier
    /// label.
    pub fn apart(&mut self, instruction: impl Into<Instruction>) -> Label {
        let label = self.block.label();
        self.cold.push((label, instruction.into()));
        label
    }

    /// Writes the rare code here. Call it where no code falls through, or with a jump over
    /// it, and before the labels to which the rare code jumps.
    pub fn flush_cold(&mut self) {
        // Wraps jump to wraps created before them, and jumps only go forward.
        for (label, instruction) in std::mem::take(&mut self.cold).into_iter().rev() {
            self.block.place(label);
            self.block.push(instruction);
        }
    }

    /// Like [`Emitter::flush_cold`], in the middle of code that falls through.
    pub fn flush_cold_inline(&mut self) {
        if !self.cold.is_empty() {
            let over = self.block.label();
            self.block.jump(over);
            self.flush_cold();
            self.block.place(over);
        }
    }

    /// Runs `body` and writes its rare code right after it: its jump targets may follow
    /// immediately, while earlier rare code waits for the end.
    pub fn with_rare_code_inline<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let waiting = std::mem::take(&mut self.cold);
        let result = body(self);
        self.flush_cold_inline();
        self.cold = waiting;
        result
    }
}
