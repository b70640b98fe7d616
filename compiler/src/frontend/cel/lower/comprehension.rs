//! Comprehensions: loops over lists and maps.

use kpvm_format::cel::Function;
use kpvm_format::instruction::immediate::RangeOver;
use kpvm_syntax::tree::TreeValue;

use super::Lowering;
use super::literal::is_empty_list;
use crate::frontend::cel::ast::{Comprehension, Fold};
use crate::ir::{Label, Operation, Register};

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
                this.push(Operation::CelCatch { dst: error });
                fails = true;
            }
            this.place(next);
        });
        if fails {
            self.insert_constant(before, error, &TreeValue::Bool(true));
            self.push(Operation::CelRaise {
                src: error,
                target: on_error,
            });
        }
        if when == neutral {
            self.jump(target);
        }
        self.place(behind);
    }

    /// A loop over the range of a comprehension, with its variables bound.
    fn each(
        &mut self,
        comprehension: &Comprehension,
        on_error: Label,
        body: impl FnOnce(&mut Self),
    ) {
        let (start, end) = (self.label(), self.label());
        let range = match self.defaulted(&comprehension.range) {
            // An empty optional whose default is an empty list: no elements.
            Some(defaulted) if is_empty_list(defaulted.default) => {
                self.followed(&defaulted, end, on_error)
            }
            _ => self.value(&comprehension.range, on_error),
        };
        let over = match comprehension.second {
            Some(_) => RangeOver::Indices,
            None => RangeOver::Items,
        };
        let items = self.compute(|dst| Operation::CelRange {
            dst,
            src: range,
            over,
            target: on_error,
        });
        let slot = self.emitter.block.enter_loop();
        let item = self.register();
        self.push(Operation::LoopBegin {
            loop_slot: slot,
            list: items,
            item,
            target: end,
        });
        self.place(start);
        let locals = self.locals.len();
        self.local(&comprehension.first, item);
        if let Some(second) = &comprehension.second {
            let value = self.compute(|dst| Operation::CelBinary {
                dst,
                left: range,
                right: item,
                function: Function::Index,
                target: on_error,
            });
            self.local(second, value);
        }
        body(self);
        self.locals.truncate(locals);
        self.push(Operation::LoopNext {
            loop_slot: slot,
            item,
            target: start,
        });
        self.place(end);
        self.emitter.block.leave_loop();
    }

    pub(super) fn exists_one(
        &mut self,
        comprehension: &Comprehension,
        on_error: Label,
    ) -> Register {
        // false: none so far, true: one, null: more than one.
        let found = self.register();
        self.set_constant(found, &TreeValue::Bool(false));
        self.each(comprehension, on_error, |this| {
            let (next, many) = (this.label(), this.label());
            if let Some(predicate) = &comprehension.predicate {
                this.branch(predicate, false, next, on_error);
            }
            this.push(Operation::JumpIfNull {
                src: found,
                target: next,
            });
            this.push(Operation::JumpIfTrue {
                src: found,
                target: many,
            });
            this.set_constant(found, &TreeValue::Bool(true));
            this.jump(next);
            this.place(many);
            this.set_constant(found, &TreeValue::Null);
            this.place(next);
        });
        let end = self.label();
        self.push(Operation::JumpIfTrue {
            src: found,
            target: end,
        });
        self.set_constant(found, &TreeValue::Bool(false));
        self.place(end);
        found
    }

    pub(super) fn make_list(&mut self, comprehension: &Comprehension, on_error: Label) -> Register {
        let list = self.emitter.block.enter_list();
        self.push(Operation::ListBegin { list });
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
            this.push(Operation::ListPush { list, src: value });
            this.place(next);
        });
        let result = self.emitter.load(|dst| Operation::ListEnd { dst, list });
        self.emitter.block.leave_list();
        result
    }

    pub(super) fn make_map(&mut self, comprehension: &Comprehension, on_error: Label) -> Register {
        let list = self.emitter.block.enter_list();
        self.push(Operation::ListBegin { list });
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
                    let extend = Operation::CelMapExtend {
                        list,
                        src: value,
                        target: on_error,
                    };
                    this.push(extend);
                } else {
                    this.push(Operation::ListPush { list, src: key });
                    this.push(Operation::ListPush { list, src: value });
                }
            }
            this.place(next);
        });
        let result = self.compute(|dst| Operation::CelMapEnd {
            dst,
            list,
            joined: comprehension.fold == Fold::Entries,
            target: on_error,
        });
        self.emitter.block.leave_list();
        result
    }
}
