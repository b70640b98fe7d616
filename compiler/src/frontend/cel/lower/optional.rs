//! Optionals. A chain of `.?` and `[?]` is followed without creating an optional at each
//! step.

use kpvm_format::cel::Function;

use super::Lowering;
use crate::frontend::cel::ast::{Expr, Literal, Node};
use crate::frontend::cel::types::Type;
use crate::ir::{Label, Operation, Register};

impl Lowering<'_, '_> {
    /// The value inside a value that may be an optional; jumps to `none` if it is empty.
    pub(super) fn inner(&mut self, expression: &Expr, none: Label, on_error: Label) -> Register {
        if self.is_chain(expression) {
            return self.held(expression, none, on_error);
        }
        let value = self.value(expression, on_error);
        if !self.may_be_optional(expression) {
            return value;
        }
        self.compute(|dst| Operation::CelUnwrap {
            dst,
            src: value,
            strict: false,
            target: none,
        })
    }

    fn may_be_optional(&self, expression: &Expr) -> bool {
        let ty = self.checked.type_of(expression);
        matches!(ty, Type::Optional(_) | Type::Dyn) || !self.checked.is_strict
    }

    /// Whether the value is certainly an optional.
    pub(super) fn is_optional(&self, expression: &Expr) -> bool {
        // `or` gives what it is given.
        self.checked.is_strict
            && matches!(self.checked.type_of(expression), Type::Optional(_))
            && self.function(expression) != Some(Function::OptionalOr)
    }

    /// Whether the value can be accessed without creating the optional.
    fn is_chain(&self, expression: &Expr) -> bool {
        match &expression.node {
            Node::Select { optional, .. } => {
                *optional && self.checked.reference(expression).is_none()
            }
            Node::Call { .. } => self.function(expression) == Some(Function::OptionalIndex),
            Node::OptionalMap { .. } => true,
            _ => false,
        }
    }

    /// The value of an optional; jumps to `none` if it is empty.
    pub(super) fn held(&mut self, expression: &Expr, none: Label, on_error: Label) -> Register {
        match &expression.node {
            Node::Select {
                operand,
                field,
                optional: true,
            } => {
                if let Some(entry) = self.variable(operand, field) {
                    return self.compute(|dst| Operation::CelVariable {
                        dst,
                        entry,
                        target: on_error,
                    });
                }
                let is_chain = self.is_chain(operand);
                let (inner, unwrap) = if is_chain {
                    (self.held(operand, none, on_error), false)
                } else {
                    let may_be_optional = self.may_be_optional(operand);
                    (self.value(operand, on_error), may_be_optional)
                };
                let key = self.emitter.module.symbol(field);
                let result = self.register();
                let find = Operation::CelIfFind {
                    dst: result,
                    src: inner,
                    unwrap,
                    key,
                    target: none,
                };
                self.test(find, on_error);
                result
            }
            Node::Call {
                arguments,
                target: None,
                ..
            } if self.function(expression) == Some(Function::OptionalIndex) => {
                let [operand, index] = arguments.as_slice() else {
                    return self.unknown("", on_error);
                };
                if let Node::Literal(Literal::String(key)) = &index.node {
                    let inner = self.inner(operand, none, on_error);
                    let key = self.emitter.module.symbol(key);
                    let result = self.register();
                    let find = Operation::CelIfFind {
                        dst: result,
                        src: inner,
                        unwrap: false,
                        key,
                        target: none,
                    };
                    self.test(find, on_error);
                    return result;
                }
                if matches!(&index.node, Node::Literal(Literal::Int(_))) {
                    let inner = self.inner(operand, none, on_error);
                    let index = self.value(index, on_error);
                    return self.compute(|dst| Operation::CelFindIndex {
                        dst,
                        src: inner,
                        index,
                        target: none,
                    });
                }
                // Other indexes can have types that are errors, even if there is nothing to
                // index.
                let operand = self.value(operand, on_error);
                let index = self.value(index, on_error);
                let found = self.compute(|dst| Operation::CelBinary {
                    dst,
                    left: operand,
                    right: index,
                    function: Function::OptionalIndex,
                    target: on_error,
                });
                self.compute(|dst| Operation::CelUnwrap {
                    dst,
                    src: found,
                    strict: false,
                    target: none,
                })
            }
            Node::OptionalMap {
                target,
                name,
                body,
                flat,
            } => {
                let inner = self.held(target, none, on_error);
                self.local(name, inner);
                let result = if *flat {
                    self.held(body, none, on_error)
                } else {
                    self.value(body, on_error)
                };
                self.locals.pop();
                result
            }
            _ => {
                let value = self.value(expression, on_error);
                self.unwrap_strictly(value, none, on_error)
            }
        }
    }

    /// The value of an optional; a value that is not an optional is an error.
    pub(super) fn unwrap_strictly(
        &mut self,
        value: Register,
        none: Label,
        on_error: Label,
    ) -> Register {
        let result = self.register();
        let (missing, end) = (self.label(), self.label());
        let unwrap = Operation::CelUnwrap {
            dst: result,
            src: value,
            strict: true,
            target: missing,
        };
        self.push(unwrap);
        self.jump(end);
        self.place(missing);
        self.push(Operation::CelRaise {
            src: result,
            target: on_error,
        });
        self.jump(none);
        self.place(end);
        result
    }

    /// Creates an optional from the value.
    pub(super) fn optional(&mut self, expression: &Expr, on_error: Label) -> Register {
        let result = self.register();
        let (none, end) = (self.label(), self.label());
        let inner = self.held(expression, none, on_error);
        self.push(Operation::CelWrap {
            dst: result,
            src: inner,
        });
        self.jump(end);
        self.place(none);
        self.push(Operation::CelNone { dst: result });
        self.place(end);
        result
    }
}
