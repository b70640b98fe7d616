//! Calls of functions.

use kpvm_format::cel::Function;
use kpvm_syntax::tree::TreeValue;

use super::Lowering;
use super::literal::is_empty_list;
use crate::frontend::cel::ast::Expr;
use crate::frontend::cel::check::Reference;
use crate::ir::{Label, Operation, Register};

impl Lowering<'_, '_> {
    pub(super) fn function(&self, expression: &Expr) -> Option<Function> {
        match self.checked.reference(expression) {
            Some(Reference::Function { function, .. }) => Some(*function),
            _ => None,
        }
    }

    pub(super) fn call(
        &mut self,
        expression: &Expr,
        name: &str,
        target: Option<&Expr>,
        arguments: &[Expr],
        on_error: Label,
    ) -> Register {
        let Some(Reference::Function { function, method }) =
            self.checked.reference(expression).cloned()
        else {
            return self
                .emitter
                .fail(&format!("no such overload: {name}"), on_error);
        };
        let target = target.filter(|_| method);
        let all: Vec<&Expr> = target.into_iter().chain(arguments).collect();
        if let Some(path) = self.path(expression, 0) {
            return self.compute(|dst| Operation::CelPath {
                dst,
                path,
                target: on_error,
            });
        }
        match (function, all.as_slice()) {
            (Function::ToDyn, [value]) => self.value(value, on_error),
            // An empty list contains nothing, and cel-go does not evaluate the left
            // operand.
            (Function::In, [_, list]) if is_empty_list(list) => {
                self.emitter.constant(&TreeValue::Bool(false))
            }
            (Function::Not, [_]) => self.truth(expression, on_error),
            (Function::OptionalIndex, _) => self.optional(expression, on_error),
            (Function::OptionalOf, [value]) => {
                let value = self.value(value, on_error);
                self.emitter
                    .load(|dst| Operation::CelWrap { dst, src: value })
            }
            (Function::OptionalNone, []) => self.emitter.load(|dst| Operation::CelNone { dst }),
            (Function::HasValue, [optional]) if self.is_optional(optional) => {
                let result = self.register();
                let (none, end) = (self.label(), self.label());
                self.held(optional, none, on_error);
                self.set_constant(result, &TreeValue::Bool(true));
                self.jump(end);
                self.place(none);
                self.set_constant(result, &TreeValue::Bool(false));
                self.place(end);
                result
            }
            (Function::OptionalValue, [optional]) if self.is_optional(optional) => {
                let (none, end) = (self.label(), self.label());
                let value = self.held(optional, none, on_error);
                self.jump(end);
                self.place(none);
                let text = self.emitter.module.text("optional.none() dereference");
                self.push(Operation::FailText {
                    text,
                    target: on_error,
                });
                self.place(end);
                value
            }
            (Function::OptionalOrValue, [optional, otherwise]) => {
                let result = self.register();
                let (none, end) = (self.label(), self.label());
                let value = self.held(optional, none, on_error);
                self.emitter.assign(result, value);
                self.jump(end);
                self.place(none);
                let value = self.value(otherwise, on_error);
                self.emitter.assign(result, value);
                self.place(end);
                result
            }
            (Function::OptionalOr, [optional, otherwise]) => {
                let result = self.register();
                let (none, end) = (self.label(), self.label());
                let value = self.value(optional, on_error);
                self.unwrap_strictly(value, none, on_error);
                self.emitter.assign(result, value);
                self.jump(end);
                self.place(none);
                // cel-go does not look at the type of the other one.
                let value = self.value(otherwise, on_error);
                self.emitter.assign(result, value);
                self.place(end);
                result
            }
            (Function::OrValueCompat, [optional, otherwise]) => {
                self.or_value(optional, otherwise, on_error)
            }
            (
                Function::OwnResourceGet | Function::OwnResourceList | Function::OwnResourcePost,
                arguments,
            ) => self.own_resource(function, arguments, on_error),
            (function, [value]) if self.checked.narrowed(expression).is_some() => {
                let wanted = self.checked.narrowed(expression).map(ToString::to_string);
                let value = self.value(value, on_error);
                let wanted = TreeValue::String(wanted.unwrap_or_default().as_str().into());
                let wanted = self.emitter.constant(&wanted);
                self.compute(|dst| Operation::CelBinary {
                    dst,
                    left: value,
                    right: wanted,
                    function,
                    target: on_error,
                })
            }
            (_, [value]) => {
                let value = self.value(value, on_error);
                self.compute(|dst| Operation::CelUnary {
                    dst,
                    src: value,
                    function,
                    target: on_error,
                })
            }
            (_, [left, right]) => {
                let left = self.value(left, on_error);
                let right = self.value(right, on_error);
                self.compute(|dst| Operation::CelBinary {
                    dst,
                    left,
                    right,
                    function,
                    target: on_error,
                })
            }
            (_, arguments) => {
                let list = self.emitter.block.enter_list();
                self.push(Operation::ListBegin { list });
                for argument in arguments {
                    let value = self.value(argument, on_error);
                    self.push(Operation::ListPush { list, src: value });
                }
                let result = self.compute(|dst| Operation::CelCall {
                    dst,
                    list,
                    function,
                    target: on_error,
                });
                self.emitter.block.leave_list();
                result
            }
        }
    }

    /// A call about objects in the policy's own namespace, which is inserted after the
    /// resource.
    fn own_resource(
        &mut self,
        function: Function,
        arguments: &[&Expr],
        on_error: Label,
    ) -> Register {
        let function = match function {
            Function::OwnResourceGet => Function::ResourceGet,
            Function::OwnResourceList => Function::ResourceList,
            _ => Function::ResourcePost,
        };
        let list = self.emitter.block.enter_list();
        self.push(Operation::ListBegin { list });
        for (index, argument) in arguments.iter().enumerate() {
            let value = self.value(argument, on_error);
            self.push(Operation::ListPush { list, src: value });
            if index == 1 {
                let namespace = TreeValue::String(self.bindings.namespace.as_str().into());
                let namespace = self.emitter.constant(&namespace);
                self.push(Operation::ListPush {
                    list,
                    src: namespace,
                });
            }
        }
        let result = self.compute(|dst| Operation::CelCall {
            dst,
            list,
            function,
            target: on_error,
        });
        self.emitter.block.leave_list();
        result
    }

    /// Kyverno's `orValue`: works on any value, and both sides are evaluated
    /// (docs/spec/cel.md §3.1).
    fn or_value(&mut self, optional: &Expr, otherwise: &Expr, on_error: Label) -> Register {
        let result = self.register();
        let (none, end) = (self.label(), self.label());
        if self.cannot_fail(otherwise) {
            let value = self.inner(optional, none, on_error);
            self.emitter.assign(result, value);
            self.jump(end);
            self.place(none);
            let value = self.value(otherwise, on_error);
            self.emitter.assign(result, value);
        } else {
            let optional = self.value(optional, on_error);
            let value = self.value(otherwise, on_error);
            self.emitter.assign(result, value);
            let inner = self.compute(|dst| Operation::CelUnwrap {
                dst,
                src: optional,
                strict: false,
                target: none,
            });
            self.emitter.assign(result, inner);
            self.place(none);
        }
        self.place(end);
        result
    }
}
