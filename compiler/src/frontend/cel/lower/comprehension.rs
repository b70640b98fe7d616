//! Comprehensions: loops over lists and maps.

use kpvm_format::cel::Function;
use kpvm_format::instruction::Op;
use kpvm_syntax::tree::TreeValue;

use super::Lowering;
use super::literal::is_empty_list;
use crate::frontend::cel::ast::{Comprehension, Fold};
use crate::ir::{Instruction, Label, Register};

impl Lowering<'_, '_> {
    pub(super) fn branch_comprehension(
        &mut self,
        comprehension: &Comprehension,
        when: bool,
        target: Label,
        on_error: Label,
    ) {
        let neutral = comprehension.fold == Fold::All;
        let behind = self.label();
        let decided = if when == neutral { behind } else { target };
        let error = self.register();
        let before = self.emitter.block.items.len();
        let mut fails = false;
        self.each(comprehension, on_error, |this| {
            let (next, failed) = (this.label(), this.label());
            let start = this.emitter.block.items.len();
            if let Some(predicate) = &comprehension.predicate {
                this.branch(predicate, neutral, next, failed);
            }
            this.jump(decided);
            if this.is_used(failed, start) {
                this.place(failed);
                this.push(Instruction::new(Op::CelCatch).a(error.0));
                fails = true;
            }
            this.place(next);
        });
        if fails {
            self.insert_constant(before, error, &TreeValue::Bool(true));
            self.push(Instruction::new(Op::CelRaise).a(error.0).target(on_error));
        }
        if when == neutral {
            self.jump(target);
        }
        self.place(behind);
    }

    /// A loop over the range of a comprehension, its variables bound.
    fn each(
        &mut self,
        comprehension: &Comprehension,
        on_error: Label,
        body: impl FnOnce(&mut Self),
    ) {
        let (start, end) = (self.label(), self.label());
        let range = match self.defaulted(&comprehension.range) {
            // Over nothing, where there is nothing.
            Some(defaulted) if is_empty_list(defaulted.default) => {
                self.followed(&defaulted, end, on_error)
            }
            _ => self.value(&comprehension.range, on_error),
        };
        let two = u32::from(comprehension.second.is_some());
        let items = self.compute(Instruction::new(Op::CelRange).b(range.0).e(two), on_error);
        let slot = self.emitter.block.enter_loop();
        let item = self.register();
        let begin = Instruction::new(Op::LoopBegin).a(slot).b(items.0);
        self.push(begin.e(item.0).target(end));
        self.place(start);
        let locals = self.locals.len();
        self.local(&comprehension.first, item);
        if let Some(second) = &comprehension.second {
            let value = self.compute(
                Instruction::new(Op::CelBinary)
                    .b(range.0)
                    .e(item.0)
                    .c(Function::Index as u32),
                on_error,
            );
            self.local(second, value);
        }
        body(self);
        self.locals.truncate(locals);
        self.push(
            Instruction::new(Op::LoopNext)
                .a(slot)
                .e(item.0)
                .target(start),
        );
        self.place(end);
        self.emitter.block.leave_loop();
    }

    pub(super) fn exists_one(
        &mut self,
        comprehension: &Comprehension,
        on_error: Label,
    ) -> Register {
        // false: none so far, true: one, null: more.
        let found = self.register();
        self.set_constant(found, &TreeValue::Bool(false));
        self.each(comprehension, on_error, |this| {
            let (next, many) = (this.label(), this.label());
            if let Some(predicate) = &comprehension.predicate {
                this.branch(predicate, false, next, on_error);
            }
            this.push(Instruction::new(Op::JumpIfNull).a(found.0).target(next));
            this.push(Instruction::new(Op::JumpIfTrue).a(found.0).target(many));
            this.set_constant(found, &TreeValue::Bool(true));
            this.jump(next);
            this.place(many);
            this.set_constant(found, &TreeValue::Null);
            this.place(next);
        });
        let end = self.label();
        self.push(Instruction::new(Op::JumpIfTrue).a(found.0).target(end));
        self.set_constant(found, &TreeValue::Bool(false));
        self.place(end);
        found
    }

    pub(super) fn make_list(&mut self, comprehension: &Comprehension, on_error: Label) -> Register {
        let list = self.emitter.block.enter_list();
        self.push(Instruction::new(Op::ListBegin).a(list));
        self.each(comprehension, on_error, |this| {
            let next = this.label();
            if let Some(predicate) = &comprehension.predicate {
                this.branch(predicate, false, next, on_error);
            }
            let value = match &comprehension.transform {
                Some(transform) => this.value(transform, on_error),
                None => this
                    .locals
                    .last()
                    .map_or(Register::SUBJECT, |local| local.register),
            };
            this.push(Instruction::new(Op::ListPush).a(list).b(value.0));
            this.place(next);
        });
        let result = self.emitter.load(Instruction::new(Op::ListEnd).b(list));
        self.emitter.block.leave_list();
        result
    }

    pub(super) fn make_map(&mut self, comprehension: &Comprehension, on_error: Label) -> Register {
        let list = self.emitter.block.enter_list();
        self.push(Instruction::new(Op::ListBegin).a(list));
        self.each(comprehension, on_error, |this| {
            let next = this.label();
            let key = this
                .locals
                .iter()
                .rev()
                .nth(1)
                .map_or(Register::SUBJECT, |local| local.register);
            if let Some(predicate) = &comprehension.predicate {
                this.branch(predicate, false, next, on_error);
            }
            if let Some(transform) = &comprehension.transform {
                let value = this.value(transform, on_error);
                if comprehension.fold == Fold::Entries {
                    let extend = Instruction::new(Op::CelMapExtend).a(list).b(value.0);
                    this.push(extend.target(on_error));
                } else {
                    this.push(Instruction::new(Op::ListPush).a(list).b(key.0));
                    this.push(Instruction::new(Op::ListPush).a(list).b(value.0));
                }
            }
            this.place(next);
        });
        let how = u32::from(comprehension.fold == Fold::Entries);
        let end = Instruction::new(Op::CelMapEnd).b(list).c(how);
        let result = self.compute(end, on_error);
        self.emitter.block.leave_list();
        result
    }
}
