//! Literals, lists and maps.

use kpvm_syntax::tree::{Tree, TreeValue};

use super::Lowering;
use crate::frontend::cel::ast::{Element, Entry, Expr, Literal, Node};
use crate::ir::{Constant, Label, Operation, Register};

pub(super) fn is_empty_list(expression: &Expr) -> bool {
    matches!(&expression.node, Node::List(items) if items.is_empty())
}

/// The value of a list or map of literals that JSON can represent.
pub(super) fn constant_of(expression: &Expr) -> Option<Tree> {
    let value = match &expression.node {
        Node::Literal(Literal::Uint(_) | Literal::Bytes(_)) => return None,
        Node::Literal(literal) => tree_of_literal(literal),
        Node::List(elements) => {
            let item = |element: &Element| {
                if element.optional {
                    return None;
                }
                constant_of(&element.value)
            };
            TreeValue::List(elements.iter().map(item).collect::<Option<_>>()?)
        }
        Node::Map(entries) => {
            let mut members: Vec<kpvm_syntax::tree::Member> = Vec::new();
            for entry in entries {
                let Node::Literal(Literal::String(key)) = &entry.key.node else {
                    return None;
                };
                if entry.optional || members.iter().any(|member| *member.key == **key) {
                    return None;
                }
                members.push(kpvm_syntax::tree::Member {
                    key: key.as_str().into(),
                    key_span: entry.key.span,
                    value: constant_of(&entry.value)?,
                });
            }
            TreeValue::Map(members)
        }
        _ => return None,
    };
    Some(Tree::new(value, expression.span))
}

fn tree_of_literal(literal: &Literal) -> TreeValue {
    match literal {
        Literal::Null | Literal::Uint(_) | Literal::Bytes(_) => TreeValue::Null,
        Literal::Bool(value) => TreeValue::Bool(*value),
        Literal::Int(value) => TreeValue::Int(*value),
        Literal::Double(value) => TreeValue::Float(*value),
        Literal::String(text) => TreeValue::String(text.as_str().into()),
    }
}

impl Lowering<'_, '_> {
    pub(super) fn literal(&mut self, literal: &Literal) -> Register {
        let constant = match literal {
            Literal::Uint(number) => self
                .emitter
                .module
                .special_constant(Constant::Uint(*number)),
            Literal::Bytes(bytes) => {
                let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
                self.emitter.module.special_constant(Constant::Bytes(text))
            }
            literal => {
                let value = tree_of_literal(literal);
                return self.emitter.constant(&value);
            }
        };
        self.emitter
            .load(|dst| Operation::LoadConstant { dst, constant })
    }

    /// The value of an expression that is the same for every resource.
    pub(super) fn constant(&self, expression: &Expr) -> Option<Tree> {
        match &expression.node {
            Node::Select { operand, field, .. } => self.constant_variable(operand, field).cloned(),
            _ => constant_of(expression),
        }
    }

    pub(super) fn list(
        &mut self,
        expression: &Expr,
        elements: &[Element],
        on_error: Label,
    ) -> Register {
        if let Some(constant) = constant_of(expression) {
            return self.emitter.constant(&constant.value);
        }
        let list = self.emitter.block.enter_list();
        self.push(Operation::ListBegin { list });
        for Element { optional, value } in elements {
            let value = self.value(value, on_error);
            self.push(match optional {
                true => Operation::CelPushOptional {
                    list,
                    src: value,
                    target: on_error,
                },
                false => Operation::ListPush { list, src: value },
            });
        }
        let result = self.emitter.load(|dst| Operation::ListEnd { dst, list });
        self.emitter.block.leave_list();
        result
    }

    pub(super) fn map(
        &mut self,
        expression: &Expr,
        entries: &[Entry],
        on_error: Label,
    ) -> Register {
        if let Some(constant) = constant_of(expression) {
            return self.emitter.constant(&constant.value);
        }
        let list = self.emitter.block.enter_list();
        self.push(Operation::ListBegin { list });
        for entry in entries {
            let key = self.value(&entry.key, on_error);
            let none = self.label();
            let value = if entry.optional {
                self.held(&entry.value, none, on_error)
            } else {
                self.value(&entry.value, on_error)
            };
            self.push(Operation::ListPush { list, src: key });
            self.push(Operation::ListPush { list, src: value });
            self.place(none);
        }
        let result = self.compute(|dst| Operation::CelMapEnd {
            dst,
            list,
            joined: false,
            target: on_error,
        });
        self.emitter.block.leave_list();
        result
    }
}
