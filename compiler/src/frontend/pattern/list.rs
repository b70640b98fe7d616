//! Lists: of scalars, of maps, and positional (docs/spec/patterns.md §3.4).

use kpvm_format::instruction::immediate::{ItemCount, ItemIndex};
use kpvm_format::instruction::{FoldSlot, LoopSlot};
use kpvm_syntax::tree::{Tree, TreeValue};

use super::{Lowering, PatternError, Place, may_skip};
use crate::ir::{Label, Operation, Register};

impl Lowering<'_, '_> {
    pub(super) fn loop_begin(
        &mut self,
        slot: LoopSlot,
        list: Register,
        item: Register,
        empty: Label,
    ) {
        self.emitter.block.push(Operation::LoopBegin {
            loop_slot: slot,
            list,
            item,
            target: empty,
        });
    }

    pub(super) fn loop_next(&mut self, slot: LoopSlot, item: Register, body: Label) {
        self.emitter.block.push(Operation::LoopNext {
            loop_slot: slot,
            item,
            target: body,
        });
    }

    /// docs/spec/patterns.md §3.4: by the first item of the pattern.
    pub(super) fn lower_list(
        &mut self,
        pattern: &Tree,
        items: &[Tree],
        place: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let register = self.register(place);
        self.check(
            Operation::RequireList {
                src: register,
                target: on_error,
            },
            pattern.span,
        );
        match items.first().map(|first| (first, &first.value)) {
            None => {
                self.check(
                    Operation::FailEmptyPattern { target: on_error },
                    pattern.span,
                );
                Ok(())
            }
            Some((first, TreeValue::Map(_))) => self.lower_list_of_maps(first, register, on_error),
            Some((_, TreeValue::List(_))) => {
                self.lower_positional(pattern, items, register, on_error)
            }
            Some((first, _)) if self.computed.contains_key(&std::ptr::from_ref(first)) => {
                self.lower_computed_list(pattern, items, register, on_error);
                Ok(())
            }
            Some((first, _)) => {
                self.lower_scalar(first, Place::Register(register), on_error);
                Ok(())
            }
        }
    }

    /// A list whose first item is a variable: its value decides how the list is matched.
    fn lower_computed_list(
        &mut self,
        pattern: &Tree,
        items: &[Tree],
        register: Register,
        on_error: Label,
    ) {
        let list = self.emitter.block.enter_list();
        let begin = Operation::ListBegin { list };
        self.emitter.block.push(begin);
        for item in items {
            let item = match self.computed.get(&std::ptr::from_ref(item)) {
                Some(&computed) => computed,
                // Its variables were substituted without error before; they will be again.
                None => self.emitter.template(item, "", on_error),
            };
            let push = Operation::ListPush { list, src: item };
            self.emitter.block.push(push);
        }
        let value = self.emitter.load(|dst| Operation::ListEnd { dst, list });
        self.emitter.block.leave_list();
        let test = Operation::TestValue {
            src: register,
            pattern: value,
            floats: self.floats,
            target: on_error,
        };
        self.check(test, pattern.span);
    }

    fn lower_list_of_maps(
        &mut self,
        first: &Tree,
        list: Register,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let folding = may_skip(first);
        let (body, end) = (self.emitter.block.label(), self.emitter.block.label());
        let slot = self.emitter.block.enter_loop();
        let item = self.emitter.block.register();
        let fold = folding.then(|| self.emitter.block.enter_fold());
        if let Some(fold) = fold {
            self.emitter.block.push(Operation::FoldBegin { fold });
        }
        self.loop_begin(slot, list, item, end);
        self.emitter.block.place(body);
        match fold {
            None => {
                self.under_index(slot, |this| {
                    this.lower(first, Place::Register(item), on_error)
                })?;
            }
            Some(fold) => {
                self.under_index(slot, |this| {
                    this.lower_folded_item(first, item, fold, on_error)
                })?;
            }
        }
        self.loop_next(slot, item, body);
        self.emitter.block.place(end);
        if let Some(fold) = fold {
            self.emitter.block.push(Operation::FoldItemsEnd {
                fold,
                target: on_error,
            });
            self.emitter.block.leave_fold();
        }
        self.emitter.block.leave_loop();
        Ok(())
    }

    fn lower_folded_item(
        &mut self,
        pattern: &Tree,
        item: Register,
        fold: FoldSlot,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let (failed, next) = (self.emitter.block.label(), self.emitter.block.label());
        self.lower(pattern, Place::Register(item), failed)?;
        self.emitter.block.push(Operation::FoldApplied { fold });
        self.emitter.block.jump(next);
        self.emitter.block.place(failed);
        self.emitter.block.push(Operation::FoldItemError {
            fold,
            target: on_error,
        });
        self.emitter.block.place(next);
        Ok(())
    }

    fn lower_positional(
        &mut self,
        pattern: &Tree,
        items: &[Tree],
        list: Register,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let length = items.len() as u32;
        self.check(
            Operation::RequireLength {
                src: list,
                length: ItemCount(length),
                target: on_error,
            },
            pattern.span,
        );
        let fold = items
            .iter()
            .any(may_skip)
            .then(|| self.emitter.block.enter_fold());
        if let Some(fold) = fold {
            self.emitter.block.push(Operation::FoldBegin { fold });
        }
        for (index, item) in items.iter().enumerate() {
            let register = self.emitter.block.register();
            self.emitter.block.push(Operation::LoadIndex {
                dst: register,
                src: list,
                index: ItemIndex(index as u32),
            });
            self.under(&format!("{index}/"), |this| match fold {
                None => this.lower(item, Place::Register(register), on_error),
                Some(fold) => this.lower_folded_item(item, register, fold, on_error),
            })?;
        }
        if let Some(fold) = fold {
            self.emitter.block.push(Operation::FoldItemsEnd {
                fold,
                target: on_error,
            });
            self.emitter.block.leave_fold();
        }
        Ok(())
    }
}
