//! Names, fields, and paths.

use kpvm_format::cel::{Function, Root};
use kpvm_syntax::tree::{Tree, TreeValue};

use super::{Lowering, Source};
use crate::frontend::cel::ast::{Expr, Literal, Node};
use crate::frontend::cel::check::Reference;
use crate::frontend::cel::types::Type;
use crate::ir::{Constant, EntryId, Label, Operation, PathId, Register};

/// Longer paths are followed field by field.
const LONGEST_PATH: usize = 64;

impl Lowering<'_, '_> {
    pub(super) fn ident(&mut self, expression: &Expr, name: &str, on_error: Label) -> Register {
        if let Some(local) = self.locals.iter().rev().find(|local| local.name == name) {
            let (register, fails) = (local.register, local.fails);
            if fails {
                let raise = Operation::CelRaise {
                    src: register,
                    target: on_error,
                };
                self.push(raise);
            }
            return register;
        }
        match self.checked.reference(expression).cloned() {
            Some(reference) => self.reference(&reference, on_error),
            None => self.unknown(name, on_error),
        }
    }

    pub(super) fn unknown(&mut self, name: &str, on_error: Label) -> Register {
        let name = name.trim_start_matches('.');
        self.emitter
            .fail(&format!("no such attribute(s): {name}"), on_error)
    }

    pub(super) fn reference(&mut self, reference: &Reference, on_error: Label) -> Register {
        match reference {
            Reference::Variable(name) => match self.bindings.sources.get(name) {
                Some(Source::Root(root)) => {
                    let root = *root;
                    self.emitter.load(|dst| Operation::CelRoot { dst, root })
                }
                Some(Source::Null) => self.emitter.constant(&TreeValue::Null),
                Some(Source::Variables | Source::Unbound) => self.unknown(name, on_error),
                None => self.input(name, on_error),
            },
            Reference::Type(name) => {
                let constant = self
                    .emitter
                    .module
                    .special_constant(Constant::Type(name.clone()));
                self.emitter
                    .load(|dst| Operation::LoadConstant { dst, constant })
            }
            Reference::Local | Reference::Function { .. } => self.unknown("", on_error),
        }
    }

    /// A key of the value over which the expression is evaluated.
    fn input(&mut self, name: &str, on_error: Label) -> Register {
        let symbol = self.emitter.module.symbol(name);
        let result = self.register();
        let (missing, end) = (self.label(), self.label());
        let load = Operation::LoadBase {
            dst: result,
            name: symbol,
            target: missing,
        };
        self.push(load);
        self.jump(end);
        self.place(missing);
        let text = self
            .emitter
            .module
            .text(&format!("no such attribute(s): {name}"));
        self.push(Operation::FailText {
            text,
            target: on_error,
        });
        self.place(end);
        result
    }

    /// The number of the entry, if the expression is a field of the variables object.
    pub(super) fn variable(&self, operand: &Expr, field: &str) -> Option<EntryId> {
        let Some(Reference::Variable(name)) = self.checked.reference(operand) else {
            return None;
        };
        if self.bindings.sources.get(name) != Some(&Source::Variables) {
            return None;
        }
        self.bindings.variables.get(field).copied()
    }

    /// The value of such a field, if it is constant.
    pub(super) fn constant_variable(&self, operand: &Expr, field: &str) -> Option<&Tree> {
        self.variable(operand, field)?;
        self.bindings.constants.get(field)
    }

    pub(super) fn select(
        &mut self,
        expression: &Expr,
        operand: &Expr,
        field: &str,
        optional: bool,
        on_error: Label,
    ) -> Register {
        if let Some(reference @ (Reference::Variable(_) | Reference::Type(_))) =
            self.checked.reference(expression).cloned()
        {
            return self.reference(&reference, on_error);
        }
        if optional {
            return self.optional(expression, on_error);
        }
        if let Some(constant) = self.constant_variable(operand, field).cloned() {
            return self.emitter.constant(&constant.value);
        }
        if let Some(entry) = self.variable(operand, field) {
            return self.compute(|dst| Operation::CelVariable {
                dst,
                entry,
                target: on_error,
            });
        }
        if let Some(path) = self.path(expression, 0) {
            return self.compute(|dst| Operation::CelPath {
                dst,
                path,
                target: on_error,
            });
        }
        let operand = self.value(operand, on_error);
        let key = self.emitter.module.symbol(field);
        self.compute(|dst| Operation::CelSelect {
            dst,
            src: operand,
            key,
            target: on_error,
        })
    }

    /// The static path in the object that the expression denotes; `length` keys follow it.
    pub(super) fn path(&mut self, expression: &Expr, length: usize) -> Option<PathId> {
        let (operand, key) = match &expression.node {
            Node::Select {
                operand,
                field,
                optional: false,
            } if self.checked.reference(expression).is_none() => (&**operand, field),
            // A key of the object is a field of it.
            Node::Call { arguments, .. } if self.function(expression) == Some(Function::Index) => {
                let [operand, index] = arguments.as_slice() else {
                    return None;
                };
                let Node::Literal(Literal::String(key)) = &index.node else {
                    return None;
                };
                (operand, key)
            }
            _ => return None,
        };
        if length == LONGEST_PATH {
            return None;
        }
        let parent = match self.is_object(operand) {
            true => None,
            false => Some(self.path(operand, length + 1)?),
        };
        let key = self.emitter.module.symbol(key);
        Some(self.emitter.module.path(parent, key))
    }

    /// Whether the expression is the object of the request.
    fn is_object(&self, expression: &Expr) -> bool {
        let Some(Reference::Variable(name)) = self.checked.reference(expression) else {
            return false;
        };
        let is_local = self.locals.iter().any(|local| local.name == *name);
        let source = self.bindings.sources.get(name);
        let is_object = matches!(
            source,
            Some(Source::Root(Root::Object | Root::ObjectOrEmpty))
        );
        is_object && !is_local
    }

    pub(super) fn has(
        &mut self,
        operand: &Expr,
        field: &str,
        optional: bool,
        on_error: Label,
    ) -> Register {
        if let Some(entry) = self.variable(operand, field) {
            // The entry exists, but its error takes precedence.
            self.compute(|dst| Operation::CelVariable {
                dst,
                entry,
                target: on_error,
            });
            return self.emitter.constant(&TreeValue::Bool(true));
        }
        let key = self.emitter.module.symbol(field);
        if optional || matches!(self.checked.type_of(operand), Type::Optional(_)) {
            let result = self.register();
            let (none, end) = (self.label(), self.label());
            let inner = self.inner(operand, none, on_error);
            self.require_fields(inner, on_error);
            self.push(Operation::CelHas {
                dst: result,
                src: inner,
                key,
            });
            self.jump(end);
            self.place(none);
            self.set_constant(result, &TreeValue::Bool(false));
            self.place(end);
            return result;
        }
        let operand = self.value(operand, on_error);
        self.require_fields(operand, on_error);
        self.emitter.load(|dst| Operation::CelHas {
            dst,
            src: operand,
            key,
        })
    }

    /// Testing a list for a field is an error rather than false.
    fn require_fields(&mut self, operand: Register, on_error: Label) {
        self.push(Operation::CelRequireFields {
            src: operand,
            target: on_error,
        });
    }
}
