//! Condition blocks (docs/spec/conditions.md §2 and §3): `preconditions` and
//! `deny.conditions`.

use kpvm_format::condition::ConditionOperator;
use kpvm_format::instruction::immediate::MessageSeparator;
use kpvm_syntax::tree::{Tree, TreeValue};

use super::emitter::Emitter;
use crate::ir::{AtSite, Label, Operation, Register, SiteKind};
use crate::policy::condition::{AnyAll, Condition, Conditions};

/// Which conditions' messages are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    /// Those of conditions that are true (deny).
    OfTrue,
    /// Those of conditions that are false (preconditions).
    OfFalse,
    /// None (exceptions).
    None,
}

impl Emitter<'_> {
    /// Falls through if the block is true; else jumps to `on_false`.
    pub fn conditions(
        &mut self,
        conditions: &Conditions,
        messages: Messages,
        on_false: Label,
        on_error: Label,
    ) {
        self.block.push(Operation::ClearMessages);
        match conditions {
            Conditions::List(list) => self.all(
                list,
                messages,
                MessageSeparator::Semicolon,
                on_false,
                on_error,
            ),
            Conditions::AnyAll(block) => {
                let any = block.any.as_deref();
                let any =
                    any.map(|any| self.in_part(".any", |this| this.any(any, messages, on_error)));
                // `all` is evaluated even if `any` was false: it may be an error.
                let all = block.all.as_deref().unwrap_or_default();
                self.in_part(".all", |this| {
                    this.all(
                        all,
                        messages,
                        MessageSeparator::SemicolonSpace,
                        on_false,
                        on_error,
                    )
                });
                if let Some(any) = any {
                    self.block.push(Operation::JumpIfFalse {
                        src: any,
                        target: on_false,
                    });
                }
            }
        }
    }

    /// Falls through if the conditions of an exception are true; any error makes them
    /// false. Unlike elsewhere `all` comes first, and an empty `any` counts as absent
    /// (docs/spec/policies.md §9).
    pub fn exception_conditions(&mut self, conditions: &AnyAll, otherwise: Label) {
        let all = conditions.all.as_deref().unwrap_or_default();
        self.in_part(".all", |this| {
            this.all(
                all,
                Messages::None,
                MessageSeparator::SemicolonSpace,
                otherwise,
                otherwise,
            )
        });
        let any = conditions.any.as_deref().unwrap_or_default();
        if !any.is_empty() {
            let held = self.in_part(".any", |this| this.any(any, Messages::None, otherwise));
            self.block.push(Operation::JumpIfFalse {
                src: held,
                target: otherwise,
            });
        }
    }

    /// Whether one of the conditions is true; false for an empty list.
    fn any(&mut self, any: &[Condition], messages: Messages, on_error: Label) -> Register {
        let result = self.block.register();
        let end = self.block.label();
        let no = self.constant(&TreeValue::Bool(false));
        self.assign(result, no);
        for (index, condition) in any.iter().enumerate() {
            let next = self.block.label();
            self.condition(condition, index, next, on_error);
            self.note(
                condition,
                messages == Messages::OfTrue,
                MessageSeparator::SemicolonSpace,
            );
            let yes = self.constant(&TreeValue::Bool(true));
            self.assign(result, yes);
            self.block.jump(end);
            self.block.place(next);
            self.note(
                condition,
                messages == Messages::OfFalse,
                MessageSeparator::SemicolonSpace,
            );
        }
        self.block.place(end);
        result
    }

    fn all(
        &mut self,
        all: &[Condition],
        messages: Messages,
        separator: MessageSeparator,
        on_false: Label,
        on_error: Label,
    ) {
        for (index, condition) in all.iter().enumerate() {
            let has_message = condition
                .message
                .as_ref()
                .is_some_and(|message| !message.value.is_empty());
            if messages == Messages::OfFalse && has_message {
                let (holds, fails) = (self.block.label(), self.block.label());
                self.condition(condition, index, fails, on_error);
                self.block.jump(holds);
                self.block.place(fails);
                self.note(condition, true, separator);
                self.block.jump(on_false);
                self.block.place(holds);
            } else {
                self.condition(condition, index, on_false, on_error);
                self.note(condition, messages == Messages::OfTrue, separator);
            }
        }
    }

    fn note(&mut self, condition: &Condition, wanted: bool, separator: MessageSeparator) {
        if let Some(message) = condition
            .message
            .as_ref()
            .filter(|message| wanted && !message.value.is_empty())
        {
            let text = self.module.text(&message.value);
            let block = self.module.message_block(message, &self.scope, self.source);
            self.block.push(Operation::NoteMessage {
                separator,
                text,
                block,
            });
        }
    }

    /// Falls through if the condition, number `index` of its list, is true.
    fn condition(&mut self, condition: &Condition, index: usize, on_false: Label, on_error: Label) {
        let key_failed = self.wrapping(
            "failed to substitute variables in condition key: ",
            false,
            on_error,
        );
        let key = self.operand(condition.key.as_ref(), key_failed);
        let value_failed = self.wrapping(
            "failed to substitute variables in condition value: ",
            false,
            on_error,
        );
        let value = self.operand(condition.value.as_ref(), value_failed);
        match ConditionOperator::parse(&condition.operator.value) {
            None => {
                self.fail(
                    "failed to create handler for condition operator: %!w(<nil>)",
                    on_error,
                );
            }
            Some(operator) => {
                let site = self.in_part(&format!("[{index}]"), |this| {
                    this.site(SiteKind::Condition, condition.span)
                });
                let key_tree = condition.key.as_ref();
                let written = key_tree.map_or("", |key| key.as_str().unwrap_or(key.describe()));
                self.block.push(
                    Operation::TestCondition {
                        key,
                        value,
                        operator,
                        target: on_false,
                    }
                    .site(site.written(written)),
                );
            }
        }
    }

    /// A scalar literal is serialised as JSON once more, which makes it a float64
    /// (docs/spec/conditions.md §3.2).
    fn operand(&mut self, operand: Option<&Tree>, on_error: Label) -> Register {
        match operand.map(|tree| &tree.value) {
            None => self.constant(&TreeValue::Null),
            Some(TreeValue::Int(number)) => self.constant(&TreeValue::Float(*number as f64)),
            Some(_) => match operand {
                Some(tree) => self.document(tree, on_error),
                None => self.constant(&TreeValue::Null),
            },
        }
    }
}
