//! Conditions: expressions that jump instead of computing a value.

use kpvm_format::cel::Function;
use kpvm_format::instruction::immediate::CompareFlags;
use kpvm_syntax::tree::{Tree, TreeValue};

use super::Lowering;
use super::literal::constant_of;
use crate::frontend::cel::ast::{Expr, Fold, Literal, Node};
use crate::frontend::cel::check::Reference;
use crate::frontend::cel::types::Type;
use crate::ir::{Constant, ConstantId, Label, Operation, Register};

/// A call of `orValue` with a constant.
pub(super) struct Defaulted<'e> {
    optional: &'e Expr,
    pub(super) default: &'e Expr,
    /// A value that is not an optional stands for itself.
    takes_anything: bool,
}

/// The result of comparing constants; `None` if that takes CEL's rules for numbers or is an
/// error.
pub(super) fn fold(function: Function, left: &Tree, right: &Tree) -> Option<bool> {
    use TreeValue::{Bool, Int, List, String};
    Some(match (function, &left.value, &right.value) {
        (Function::In, value, List(items)) => {
            let known = items.iter().map(|item| match (value, &item.value) {
                (String(left), String(right)) => Some(left == right),
                _ => None,
            });
            known.collect::<Option<Vec<_>>>()?.contains(&true)
        }
        (function, String(left), String(right)) => match function {
            Function::Equal => left == right,
            Function::NotEqual => left != right,
            Function::StartsWith => left.starts_with(&**right),
            Function::EndsWith => left.ends_with(&**right),
            Function::Contains => left.contains(&**right),
            _ => return None,
        },
        (function, Bool(left), Bool(right)) => match function {
            Function::Equal => left == right,
            Function::NotEqual => left != right,
            _ => return None,
        },
        (function, Int(left), Int(right)) => match function {
            Function::Equal => left == right,
            Function::NotEqual => left != right,
            Function::Less => left < right,
            Function::LessOrEqual => left <= right,
            Function::Greater => left > right,
            Function::GreaterOrEqual => left >= right,
            _ => return None,
        },
        _ => return None,
    })
}

impl Lowering<'_, '_> {
    /// Jumps to the target if the expression is `when`, falls through if it is not.
    pub(super) fn branch(&mut self, expression: &Expr, when: bool, target: Label, on_error: Label) {
        match &expression.node {
            Node::Literal(Literal::Bool(value)) => {
                if *value == when {
                    self.jump_over(target);
                }
            }
            Node::Logic { is_and, operands } => {
                self.branch_logic(*is_and, operands, when, target, on_error);
            }
            Node::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                let (other, end) = (self.label(), self.label());
                self.branch(condition, false, other, on_error);
                self.branch(then, when, target, on_error);
                self.jump(end);
                self.place(other);
                self.branch(otherwise, when, target, on_error);
                self.place(end);
            }
            Node::Comprehension(comprehension)
                if matches!(comprehension.fold, Fold::All | Fold::Exists) =>
            {
                self.branch_comprehension(comprehension, when, target, on_error);
            }
            Node::Bind { name, value, body } => {
                self.bind(name, value, on_error);
                self.branch(body, when, target, on_error);
                self.locals.pop();
            }
            Node::Call {
                target: None,
                arguments,
                ..
            } if self.function(expression) == Some(Function::Not) => {
                if let [operand] = arguments.as_slice() {
                    self.branch(operand, !when, target, on_error);
                }
            }
            Node::Has {
                operand,
                field,
                optional,
            } if self.variable(operand, field).is_none() => {
                self.branch_has(operand, field, *optional, when, target, on_error);
            }
            _ if self.branch_compare(expression, when, target, on_error) => {}
            _ => {
                let value = self.value(expression, on_error);
                if self.checked.is_bool(expression) {
                    self.push(match when {
                        true => Operation::JumpIfTrue { src: value, target },
                        false => Operation::JumpIfFalse { src: value, target },
                    });
                } else {
                    let test = Operation::CelIf {
                        src: value,
                        when,
                        target,
                    };
                    self.test(test, on_error);
                }
            }
        }
    }

    /// Appends a test: it continues at the target, after itself, or at `on_error`.
    pub(super) fn test(&mut self, test: Operation, on_error: Label) {
        self.push(test);
        self.push(Operation::CelOnError { target: on_error });
    }

    fn branch_has(
        &mut self,
        operand: &Expr,
        field: &str,
        optional: bool,
        when: bool,
        target: Label,
        on_error: Label,
    ) {
        let behind = self.label();
        let operand = if optional || matches!(self.checked.type_of(operand), Type::Optional(_)) {
            let none = if when { behind } else { target };
            self.inner(operand, none, on_error)
        } else {
            self.value(operand, on_error)
        };
        let key = self.emitter.module.symbol(field);
        let field = self.register();
        let test = Operation::CelIfHas {
            dst: field,
            src: operand,
            when,
            key,
            target,
        };
        self.test(test, on_error);
        self.place(behind);
    }

    /// Jumps like [`Lowering::branch`] if the expression is a comparison with a constant.
    fn branch_compare(
        &mut self,
        expression: &Expr,
        when: bool,
        target: Label,
        on_error: Label,
    ) -> bool {
        let Some((function, [left, right])) = self.comparison(expression) else {
            return false;
        };
        let (value, constant, is_left) = match self.comparable(function, right) {
            Some(constant) => (left, constant, false),
            None => match self.scalar_constant(left) {
                Some(constant) => (right, constant, true),
                None => return false,
            },
        };
        let behind = self.label();
        let known = self.defaulted(value).and_then(|defaulted| {
            let (left, right) = match is_left {
                true => (left, defaulted.default),
                false => (defaulted.default, right),
            };
            let holds = fold(function, &self.constant(left)?, &self.constant(right)?)?;
            Some((defaulted, holds))
        });
        let value = match known {
            Some((defaulted, holds)) => {
                let none = if holds == when { target } else { behind };
                self.followed(&defaulted, none, on_error)
            }
            None => self.value(value, on_error),
        };
        let test = Operation::CelIfCompare {
            src: value,
            flags: CompareFlags::NONE
                .with_if(when, CompareFlags::JUMPS_IF_TRUE)
                .with_if(is_left, CompareFlags::CONSTANT_IS_LEFT),
            function,
            constant,
            target,
        };
        self.test(test, on_error);
        self.place(behind);
        true
    }

    /// An optional and its default, if that is a constant.
    pub(super) fn defaulted<'e>(&self, expression: &'e Expr) -> Option<Defaulted<'e>> {
        let (function, [optional, default]) = self.two_operands(expression)?;
        let takes_anything = match function {
            Function::OptionalOrValue => false,
            Function::OrValueCompat => true,
            _ => return None,
        };
        let defaulted = Defaulted {
            optional,
            default,
            takes_anything,
        };
        constant_of(default).map(|_| defaulted)
    }

    /// The value of the optional; jumps to `none` if it is empty.
    pub(super) fn followed(
        &mut self,
        defaulted: &Defaulted<'_>,
        none: Label,
        on_error: Label,
    ) -> Register {
        match defaulted.takes_anything {
            true => self.inner(defaulted.optional, none, on_error),
            false => self.held(defaulted.optional, none, on_error),
        }
    }

    /// The operands of a comparison of two values.
    fn comparison<'e>(&self, expression: &'e Expr) -> Option<(Function, [&'e Expr; 2])> {
        let (function, operands) = self.two_operands(expression)?;
        let is_comparison = matches!(
            function,
            Function::Equal
                | Function::NotEqual
                | Function::Less
                | Function::LessOrEqual
                | Function::Greater
                | Function::GreaterOrEqual
                | Function::In
                | Function::StartsWith
                | Function::EndsWith
                | Function::Contains
        );
        is_comparison.then_some((function, operands))
    }

    /// The function of a call with two operands.
    fn two_operands<'e>(&self, expression: &'e Expr) -> Option<(Function, [&'e Expr; 2])> {
        let Node::Call {
            target, arguments, ..
        } = &expression.node
        else {
            return None;
        };
        let Some(Reference::Function { function, method }) = self.checked.reference(expression)
        else {
            return None;
        };
        let target = target.as_deref().filter(|_| *method);
        match (target, arguments.as_slice()) {
            (Some(left), [right]) | (None, [left, right]) => Some((*function, [left, right])),
            _ => None,
        }
    }

    /// The right operand of a comparison if it is a constant: a scalar, or a list of
    /// scalars for `in`.
    fn comparable(&mut self, function: Function, operand: &Expr) -> Option<ConstantId> {
        if function != Function::In {
            return self.scalar_constant(operand);
        }
        let constant = self.constant(operand)?;
        match &constant.value {
            TreeValue::List(items) if !items.is_empty() => {
                let is_scalar =
                    |item: &Tree| !matches!(item.value, TreeValue::List(_) | TreeValue::Map(_));
                let all = items.iter().all(is_scalar);
                all.then(|| self.emitter.module.constant(&constant.value))
            }
            _ => None,
        }
    }

    fn scalar_constant(&mut self, operand: &Expr) -> Option<ConstantId> {
        match &operand.node {
            Node::Literal(Literal::Bytes(_)) => None,
            Node::Literal(Literal::Uint(number)) => {
                let module = &mut self.emitter.module;
                Some(module.special_constant(Constant::Uint(*number)))
            }
            _ => {
                let constant = self.constant(operand)?;
                let is_scalar = !matches!(constant.value, TreeValue::List(_) | TreeValue::Map(_));
                is_scalar.then(|| self.emitter.module.constant(&constant.value))
            }
        }
    }

    /// A jump with code after it that nothing reaches.
    fn jump_over(&mut self, target: Label) {
        self.jump(target);
        let behind = self.label();
        self.place(behind);
    }

    fn branch_logic(
        &mut self,
        is_and: bool,
        operands: &[Expr],
        when: bool,
        target: Label,
        on_error: Label,
    ) {
        if self.has_failed {
            return self.branch_logic_once(is_and, operands, when, target, on_error);
        }
        let neutral = is_and;
        // Where an operand jumps when it decides: to the target, or to the end of all this.
        let behind = self.label();
        let decided = if when == neutral { behind } else { target };
        let mut failures = Vec::new();
        for (index, operand) in operands.iter().enumerate() {
            if index + 1 == operands.len() {
                self.branch(operand, !neutral, decided, on_error);
                break;
            }
            let failed = self.label();
            let start = self.emitter.block.items.len();
            self.branch(operand, !neutral, decided, failed);
            if self.is_used(failed, start) {
                failures.push((index + 1, failed));
            }
        }
        self.jump(if when == neutral { target } else { behind });
        if let Some(&(first, _)) = failures.first() {
            let error = self.register();
            self.has_failed = true;
            for (index, operand) in operands.iter().enumerate().skip(first) {
                let next = self.label();
                if let Some(&(_, failed)) = failures.iter().find(|(next, _)| *next == index) {
                    if index > first {
                        self.jump(next);
                    }
                    self.place(failed);
                    self.set_constant(error, &TreeValue::Bool(true));
                    self.push(Operation::CelCatch { dst: error });
                }
                self.place(next);
                // Of several errors the first one counts.
                let (end, failed) = (self.label(), self.label());
                self.branch(operand, !neutral, decided, failed);
                self.jump(end);
                self.place(failed);
                self.push(Operation::CelCatch { dst: error });
                self.place(end);
            }
            self.has_failed = false;
            // There certainly is one.
            self.push(Operation::CelRaise {
                src: error,
                target: on_error,
            });
        }
        self.place(behind);
    }

    /// Like [`Lowering::branch_logic`], with the operands emitted once.
    fn branch_logic_once(
        &mut self,
        is_and: bool,
        operands: &[Expr],
        when: bool,
        target: Label,
        on_error: Label,
    ) {
        let neutral = is_and;
        let behind = self.label();
        let decided = if when == neutral { behind } else { target };
        let start = self.emitter.block.items.len();
        let error = self.register();
        let mut fails = false;
        for operand in operands {
            let (next, failed) = (self.label(), self.label());
            let before = self.emitter.block.items.len();
            self.branch(operand, neutral, next, failed);
            self.jump(decided);
            if self.is_used(failed, before) {
                self.place(failed);
                self.push(Operation::CelCatch { dst: error });
                fails = true;
            }
            self.place(next);
        }
        if fails {
            self.insert_constant(start, error, &TreeValue::Bool(true));
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
}
