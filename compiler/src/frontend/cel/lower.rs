//! Checked expressions to IR (docs/spec/cel.md §3.4 to 3.6).
//!
//! Errors jump. Where an error may be absorbed (`&&`, `||`, `all`, `exists`) it is
//! caught in a register, and raised again behind the last operand unless one decided.
//! The operands of `&&` and `||` behind one that may fail are there twice: once for the way
//! that everything goes, which no error ever joins, so that what is known there (a field
//! that was looked for is there) stays known; and once for what goes on with an error.
//! A chain of `.?` and `[?]` is followed without making an optional of each step.

use std::collections::HashMap;

use kpvm_syntax::tree::{Tree, TreeValue};
use kpvm_format::cel::{Function, Root};
use kpvm_format::instruction::Op;
use kpvm_format::table::{self, ConstantKind, Range};
use zerocopy::little_endian::U64;

use super::Program;
use super::ast::{Comprehension, Element, Entry, Expr, Fold, Literal, Node};
use super::check::{Checked, Reference};
use super::types::Type;
use crate::frontend::emitter::Emitter;
use crate::ir::{Instruction, Item, Label, Register};
use crate::lower::Pools;

/// Where the value of a declared variable comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The machine.
    Root(Root),
    /// The object whose fields are variables that are computed when needed.
    Variables,
    /// Null, whatever there is.
    Null,
    /// Nowhere: using it is an error.
    Unbound,
}

/// The places that names stand for.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    /// Variables that are no keys of the input value, by name.
    pub sources: HashMap<String, Source>,
    /// Entries of the fields of a [`Source::Variables`].
    pub variables: HashMap<String, u32>,
    /// Those of them that are the same for every resource.
    pub constants: HashMap<String, Tree>,
    /// The namespace of the policy, if it is one of a namespace.
    pub namespace: String,
}

/// Longer paths are followed field by field.
const LONGEST_PATH: usize = 64;

impl Bindings {
    /// Names the entry of a variable.
    pub fn add_variable(&mut self, name: &str, entry: u32, program: Option<&Program>) {
        self.variables.insert(name.to_owned(), entry);
        // Of several of the same name the last counts.
        let constant = program.and_then(|program| constant_of(&program.expression));
        match constant {
            Some(constant) => self.constants.insert(name.to_owned(), constant),
            None => self.constants.remove(name),
        };
    }
}

/// Lowers an expression; its errors jump to `on_error`.
pub fn lower(
    program: &Program,
    bindings: &Bindings,
    emitter: &mut Emitter<'_, '_>,
    on_error: Label,
) -> Register {
    lowering(program, bindings, emitter).value(&program.expression, on_error)
}

/// Lowers a condition to the value `true` or `false`; its errors jump to `on_error`.
pub fn lower_truth(
    program: &Program,
    bindings: &Bindings,
    emitter: &mut Emitter<'_, '_>,
    on_error: Label,
) -> Register {
    let mut lowering = lowering(program, bindings, emitter);
    let value = lowering.value(&program.expression, on_error);
    if !program.checked.is_bool(&program.expression) {
        let check = Instruction::new(Op::CelRequireBool).a(value.0);
        lowering.push(check.target(on_error));
    }
    value
}

/// Lowers a condition: jumps to `on_false` or `on_error`, or falls through.
pub fn lower_condition(
    program: &Program,
    bindings: &Bindings,
    emitter: &mut Emitter<'_, '_>,
    on_false: Label,
    on_error: Label,
) {
    lowering(program, bindings, emitter).branch(&program.expression, false, on_false, on_error);
}

fn lowering<'a, 'p, 'b>(
    program: &'a Program,
    bindings: &'a Bindings,
    emitter: &'a mut Emitter<'p, 'b>,
) -> Lowering<'a, 'p, 'b> {
    Lowering {
        emitter,
        checked: &program.checked,
        bindings,
        locals: Vec::new(),
        has_failed: false,
    }
}

/// A variable of a macro.
struct Local {
    name: String,
    register: Register,
    /// The register may hold an error, to be raised where the variable is used.
    fails: bool,
}

/// A call of `orValue` with a constant.
struct Defaulted<'e> {
    optional: &'e Expr,
    default: &'e Expr,
    /// What is no optional stands for itself.
    takes_anything: bool,
}

struct Lowering<'a, 'p, 'b> {
    emitter: &'a mut Emitter<'p, 'b>,
    checked: &'a Checked,
    bindings: &'a Bindings,
    locals: Vec<Local>,
    /// This is code for what goes on with an error; no second such code is made for it.
    has_failed: bool,
}

impl Lowering<'_, '_, '_> {
    fn push(&mut self, instruction: Instruction) {
        self.emitter.block.push(instruction);
    }

    fn label(&mut self) -> Label {
        self.emitter.block.label()
    }

    fn place(&mut self, label: Label) {
        self.emitter.block.place(label);
    }

    fn jump(&mut self, label: Label) {
        self.emitter.block.jump(label);
    }

    fn register(&mut self) -> Register {
        self.emitter.block.register()
    }

    /// Appends an operation that writes a register of its own and may fail.
    fn compute(&mut self, instruction: Instruction, on_error: Label) -> Register {
        let register = self.register();
        self.push(instruction.a(register.0).target(on_error));
        register
    }

    fn set_constant(&mut self, register: Register, value: &TreeValue) {
        let constant = self.emitter.pools.constant(value);
        self.push(Instruction::new(Op::LoadConstant).a(register.0).c(constant));
    }

    /// Whether anything behind item `start` of the block jumps to the label.
    fn is_used(&self, label: Label, start: usize) -> bool {
        let items = self.emitter.block.items.get(start..).unwrap_or_default();
        items.iter().any(|item| match item {
            Item::Instruction(instruction) => instruction.jump() == Some(label),
            Item::Label(_) => false,
        })
    }

    /// Puts an instruction in front of item `at`.
    fn insert_constant(&mut self, at: usize, register: Register, value: &TreeValue) {
        let constant = self.emitter.pools.constant(value);
        let load = Instruction::new(Op::LoadConstant).a(register.0).c(constant);
        self.emitter.block.items.insert(at, Item::Instruction(load));
    }

    fn value(&mut self, expression: &Expr, on_error: Label) -> Register {
        match &expression.node {
            Node::Literal(literal) => self.literal(literal),
            Node::Ident(name) => self.ident(expression, name, on_error),
            Node::Select {
                operand,
                field,
                optional,
            } => self.select(expression, operand, field, *optional, on_error),
            Node::Has {
                operand,
                field,
                optional,
            } => self.has(operand, field, *optional, on_error),
            Node::Call {
                function,
                target,
                arguments,
            } => self.call(expression, function, target.as_deref(), arguments, on_error),
            Node::List(elements) => self.list(expression, elements, on_error),
            Node::Map(entries) => self.map(expression, entries, on_error),
            Node::Message { name, .. } => self.unknown(name, on_error),
            Node::Logic { .. } => self.truth(expression, on_error),
            Node::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                let result = self.register();
                let (other, end) = (self.label(), self.label());
                self.branch(condition, false, other, on_error);
                let value = self.value(then, on_error);
                self.emitter.assign(result, value);
                self.jump(end);
                self.place(other);
                let value = self.value(otherwise, on_error);
                self.emitter.assign(result, value);
                self.place(end);
                result
            }
            Node::Comprehension(comprehension) => match comprehension.fold {
                Fold::All | Fold::Exists => self.truth(expression, on_error),
                Fold::ExistsOne => self.exists_one(comprehension, on_error),
                Fold::Filter | Fold::List => self.make_list(comprehension, on_error),
                Fold::Map | Fold::Entries => self.make_map(comprehension, on_error),
            },
            Node::Bind { name, value, body } => {
                self.bind(name, value, on_error);
                let result = self.value(body, on_error);
                self.locals.pop();
                result
            }
            Node::OptionalMap { .. } => self.optional(expression, on_error),
        }
    }

    /// A condition as a value.
    fn truth(&mut self, expression: &Expr, on_error: Label) -> Register {
        let result = self.register();
        let (on_false, end) = (self.label(), self.label());
        self.branch(expression, false, on_false, on_error);
        self.set_constant(result, &TreeValue::Bool(true));
        self.jump(end);
        self.place(on_false);
        self.set_constant(result, &TreeValue::Bool(false));
        self.place(end);
        result
    }

    /// Jumps to the target if the expression is `when`, falls through if it is not.
    fn branch(&mut self, expression: &Expr, when: bool, target: Label, on_error: Label) {
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
                    let op = if when {
                        Op::JumpIfTrue
                    } else {
                        Op::JumpIfFalse
                    };
                    self.push(Instruction::new(op).a(value.0).target(target));
                } else {
                    let test = Instruction::new(Op::CelIf).a(value.0).b(u32::from(when));
                    self.test(test, target, on_error);
                }
            }
        }
    }

    /// Appends a test: it goes on at the target, behind itself, or at `on_error`.
    fn test(&mut self, test: Instruction, target: Label, on_error: Label) {
        self.push(test.target(target));
        self.push(Instruction::new(Op::CelOnError).target(on_error));
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
        let key = self.emitter.pools.bundle.symbols.intern(field);
        let field = self.register();
        let test = Instruction::new(Op::CelIfHas).a(field.0).b(operand.0);
        self.test(test.e(u32::from(when)).c(key.0), target, on_error);
        self.place(behind);
    }

    /// Jumps as [`Lowering::branch`] does, if the expression compares with a constant.
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
        let test = Instruction::new(Op::CelIfCompare)
            .a(value.0)
            .b(u32::from(when) | u32::from(is_left) << 1)
            .e(function as u32)
            .c(constant);
        self.test(test, target, on_error);
        self.place(behind);
        true
    }

    /// An optional and what stands for it where it holds nothing, if that is a constant.
    fn defaulted<'e>(&self, expression: &'e Expr) -> Option<Defaulted<'e>> {
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

    /// What the optional holds; jumps to `none` if it holds nothing.
    fn followed(&mut self, defaulted: &Defaulted<'_>, none: Label, on_error: Label) -> Register {
        match defaulted.takes_anything {
            true => self.inner(defaulted.optional, none, on_error),
            false => self.held(defaulted.optional, none, on_error),
        }
    }

    /// The operands of an expression that is true or false of two values.
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

    /// The function that an expression calls with two operands.
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

    /// The constant that the right operand of a comparison is: a scalar, or a list of
    /// scalars to be in.
    fn comparable(&mut self, function: Function, operand: &Expr) -> Option<u32> {
        if function != Function::In {
            return self.scalar_constant(operand);
        }
        let constant = self.constant(operand)?;
        match &constant.value {
            TreeValue::List(items) if !items.is_empty() => {
                let is_scalar =
                    |item: &Tree| !matches!(item.value, TreeValue::List(_) | TreeValue::Map(_));
                let all = items.iter().all(is_scalar);
                all.then(|| self.emitter.pools.constant(&constant.value))
            }
            _ => None,
        }
    }

    fn scalar_constant(&mut self, operand: &Expr) -> Option<u32> {
        match &operand.node {
            Node::Literal(Literal::Bytes(_)) => None,
            Node::Literal(Literal::Uint(number)) => {
                let pools = &mut self.emitter.pools;
                Some(pools.cel_constant(ConstantKind::Uint, *number, ""))
            }
            _ => {
                let constant = self.constant(operand)?;
                let is_scalar = !matches!(constant.value, TreeValue::List(_) | TreeValue::Map(_));
                is_scalar.then(|| self.emitter.pools.constant(&constant.value))
            }
        }
    }

    /// A jump behind which the code goes on, though nothing reaches it.
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
        // Where an operand goes that decides: to the target, or behind all of this.
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
                    self.push(Instruction::new(Op::CelCatch).a(error.0));
                }
                self.place(next);
                // Of several errors the first counts.
                let (end, failed) = (self.label(), self.label());
                self.branch(operand, !neutral, decided, failed);
                self.jump(end);
                self.place(failed);
                self.push(Instruction::new(Op::CelCatch).a(error.0));
                self.place(end);
            }
            self.has_failed = false;
            // There is one for sure.
            self.push(Instruction::new(Op::CelRaise).a(error.0).target(on_error));
        }
        self.place(behind);
    }

    /// As [`Lowering::branch_logic`], with the operands once.
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
                self.push(Instruction::new(Op::CelCatch).a(error.0));
                fails = true;
            }
            self.place(next);
        }
        if fails {
            self.insert_constant(start, error, &TreeValue::Bool(true));
            self.push(Instruction::new(Op::CelRaise).a(error.0).target(on_error));
        }
        if when == neutral {
            self.jump(target);
        }
        self.place(behind);
    }

    fn branch_comprehension(
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

    fn local(&mut self, name: &str, register: Register) {
        self.locals.push(Local {
            name: name.to_owned(),
            register,
            fails: false,
        });
    }

    /// Computes a variable; its error is raised where the variable is used.
    fn bind(&mut self, name: &str, value: &Expr, _on_error: Label) {
        let register = self.register();
        let failed = self.label();
        let start = self.emitter.block.items.len();
        let result = self.value(value, failed);
        self.emitter.assign(register, result);
        let fails = self.is_used(failed, start);
        if fails {
            let end = self.label();
            self.jump(end);
            self.place(failed);
            self.set_constant(register, &TreeValue::Null);
            self.push(Instruction::new(Op::CelCatch).a(register.0));
            self.place(end);
        }
        self.locals.push(Local {
            name: name.to_owned(),
            register,
            fails,
        });
    }

    fn exists_one(&mut self, comprehension: &Comprehension, on_error: Label) -> Register {
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

    fn make_list(&mut self, comprehension: &Comprehension, on_error: Label) -> Register {
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

    fn make_map(&mut self, comprehension: &Comprehension, on_error: Label) -> Register {
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

    fn literal(&mut self, literal: &Literal) -> Register {
        let constant = match literal {
            Literal::Uint(number) => {
                self.emitter
                    .pools
                    .cel_constant(ConstantKind::Uint, *number, "")
            }
            Literal::Bytes(bytes) => {
                let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
                self.emitter
                    .pools
                    .cel_constant(ConstantKind::Bytes, 0, &text)
            }
            literal => {
                let value = tree_of_literal(literal);
                return self.emitter.constant(&value);
            }
        };
        self.emitter
            .load(Instruction::new(Op::LoadConstant).c(constant))
    }

    fn ident(&mut self, expression: &Expr, name: &str, on_error: Label) -> Register {
        if let Some(local) = self.locals.iter().rev().find(|local| local.name == name) {
            let (register, fails) = (local.register, local.fails);
            if fails {
                let raise = Instruction::new(Op::CelRaise).a(register.0);
                self.push(raise.target(on_error));
            }
            return register;
        }
        match self.checked.reference(expression).cloned() {
            Some(reference) => self.reference(&reference, on_error),
            None => self.unknown(name, on_error),
        }
    }

    fn unknown(&mut self, name: &str, on_error: Label) -> Register {
        let name = name.trim_start_matches('.');
        self.emitter
            .fail(&format!("no such attribute(s): {name}"), on_error)
    }

    fn reference(&mut self, reference: &Reference, on_error: Label) -> Register {
        match reference {
            Reference::Variable(name) => match self.bindings.sources.get(name) {
                Some(Source::Root(root)) => {
                    let root = *root;
                    let load = Instruction::new(Op::CelRoot).c(root as u32);
                    self.emitter.load(load)
                }
                Some(Source::Null) => self.emitter.constant(&TreeValue::Null),
                Some(Source::Variables | Source::Unbound) => self.unknown(name, on_error),
                None => self.input(name, on_error),
            },
            Reference::Type(name) => {
                let shown = match name.as_str() {
                    "google.protobuf.Timestamp" => "timestamp",
                    "google.protobuf.Duration" => "duration",
                    other => other,
                };
                let constant = self
                    .emitter
                    .pools
                    .cel_constant(ConstantKind::Type, 0, shown);
                self.emitter
                    .load(Instruction::new(Op::LoadConstant).c(constant))
            }
            Reference::Local | Reference::Function { .. } => self.unknown("", on_error),
        }
    }

    /// A key of the value that the expression is evaluated over.
    fn input(&mut self, name: &str, on_error: Label) -> Register {
        let symbol = self.emitter.pools.bundle.symbols.intern(name);
        let result = self.register();
        let (missing, end) = (self.label(), self.label());
        let load = Instruction::new(Op::LoadBase).a(result.0).c(symbol.0);
        self.push(load.target(missing));
        self.jump(end);
        self.place(missing);
        let text = self
            .emitter
            .pools
            .text(&format!("no such attribute(s): {name}"));
        self.push(Instruction::new(Op::FailText).c(text).target(on_error));
        self.place(end);
        result
    }

    /// The number of the entry, if the expression is a field of the object of variables.
    fn variable(&self, operand: &Expr, field: &str) -> Option<u32> {
        let Some(Reference::Variable(name)) = self.checked.reference(operand) else {
            return None;
        };
        if self.bindings.sources.get(name) != Some(&Source::Variables) {
            return None;
        }
        self.bindings.variables.get(field).copied()
    }

    /// The value of such a field, if it is known.
    fn constant_variable(&self, operand: &Expr, field: &str) -> Option<&Tree> {
        self.variable(operand, field)?;
        self.bindings.constants.get(field)
    }

    /// The value of an expression that is the same for every resource.
    fn constant(&self, expression: &Expr) -> Option<Tree> {
        match &expression.node {
            Node::Select { operand, field, .. } => self.constant_variable(operand, field).cloned(),
            _ => constant_of(expression),
        }
    }

    fn select(
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
            return self.compute(Instruction::new(Op::CelVariable).c(entry), on_error);
        }
        if let Some(path) = self.path(expression, 0) {
            return self.compute(Instruction::new(Op::CelPath).c(path), on_error);
        }
        let operand = self.value(operand, on_error);
        let key = self.emitter.pools.bundle.symbols.intern(field);
        self.compute(
            Instruction::new(Op::CelSelect).b(operand.0).c(key.0),
            on_error,
        )
    }

    /// The static path that the expression is of the object; `length` keys were behind it.
    fn path(&mut self, expression: &Expr, length: usize) -> Option<u32> {
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
            true => table::NONE,
            false => self.path(operand, length + 1)?,
        };
        let key = self.emitter.pools.bundle.symbols.intern(key);
        Some(self.emitter.pools.path(parent, key))
    }

    /// Whether the expression is the object that the request is about.
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

    fn has(&mut self, operand: &Expr, field: &str, optional: bool, on_error: Label) -> Register {
        if let Some(entry) = self.variable(operand, field) {
            // It is there, but its error goes first.
            self.compute(Instruction::new(Op::CelVariable).c(entry), on_error);
            return self.emitter.constant(&TreeValue::Bool(true));
        }
        let key = self.emitter.pools.bundle.symbols.intern(field);
        if optional || matches!(self.checked.type_of(operand), Type::Optional(_)) {
            let result = self.register();
            let (none, end) = (self.label(), self.label());
            let inner = self.inner(operand, none, on_error);
            self.require_fields(inner, on_error);
            self.push(Instruction::new(Op::CelHas).a(result.0).b(inner.0).c(key.0));
            self.jump(end);
            self.place(none);
            self.set_constant(result, &TreeValue::Bool(false));
            self.place(end);
            return result;
        }
        let operand = self.value(operand, on_error);
        self.require_fields(operand, on_error);
        self.emitter
            .load(Instruction::new(Op::CelHas).b(operand.0).c(key.0))
    }

    /// A list has no fields to look for: that is an error, not an absence.
    fn require_fields(&mut self, operand: Register, on_error: Label) {
        self.push(
            Instruction::new(Op::CelRequireFields)
                .b(operand.0)
                .target(on_error),
        );
    }

    /// What a value that may be an optional holds; jumps to `none` if it holds nothing.
    fn inner(&mut self, expression: &Expr, none: Label, on_error: Label) -> Register {
        if self.is_chain(expression) {
            return self.held(expression, none, on_error);
        }
        let value = self.value(expression, on_error);
        if !self.may_be_optional(expression) {
            return value;
        }
        self.compute(Instruction::new(Op::CelUnwrap).b(value.0), none)
    }

    fn may_be_optional(&self, expression: &Expr) -> bool {
        let ty = self.checked.type_of(expression);
        matches!(ty, Type::Optional(_) | Type::Dyn) || !self.checked.is_strict
    }

    /// Whether the optional need not be made to look into it.
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

    /// What an optional holds; jumps to `none` if it holds nothing.
    fn held(&mut self, expression: &Expr, none: Label, on_error: Label) -> Register {
        match &expression.node {
            Node::Select {
                operand,
                field,
                optional: true,
            } => {
                if let Some(entry) = self.variable(operand, field) {
                    return self.compute(Instruction::new(Op::CelVariable).c(entry), on_error);
                }
                let is_chain = self.is_chain(operand);
                let (inner, unwrap) = if is_chain {
                    (self.held(operand, none, on_error), false)
                } else {
                    let may_be_optional = self.may_be_optional(operand);
                    (self.value(operand, on_error), may_be_optional)
                };
                let key = self.emitter.pools.bundle.symbols.intern(field);
                let result = self.register();
                let find = Instruction::new(Op::CelIfFind).a(result.0).b(inner.0);
                self.test(find.e(u32::from(unwrap)).c(key.0), none, on_error);
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
                    let key = self.emitter.pools.bundle.symbols.intern(key);
                    let find = Instruction::new(Op::CelFind).b(inner.0).c(key.0);
                    return self.compute(find, none);
                }
                // The index is evaluated whatever there is to look into.
                let (inner, index) = if self.cannot_fail(index) {
                    let inner = self.inner(operand, none, on_error);
                    (inner, self.value(index, on_error))
                } else {
                    let operand = self.value(operand, on_error);
                    let index = self.value(index, on_error);
                    let inner = Instruction::new(Op::CelUnwrap).b(operand.0);
                    (self.compute(inner, none), index)
                };
                self.compute(
                    Instruction::new(Op::CelFindIndex).b(inner.0).e(index.0),
                    none,
                )
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

    /// What an optional holds; what is none is an error.
    fn unwrap_strictly(&mut self, value: Register, none: Label, on_error: Label) -> Register {
        let result = self.register();
        let (missing, end) = (self.label(), self.label());
        let unwrap = Instruction::new(Op::CelUnwrap).a(result.0).b(value.0).e(1);
        self.push(unwrap.target(missing));
        self.jump(end);
        self.place(missing);
        self.push(Instruction::new(Op::CelRaise).a(result.0).target(on_error));
        self.jump(none);
        self.place(end);
        result
    }

    /// An optional made of what is held.
    fn optional(&mut self, expression: &Expr, on_error: Label) -> Register {
        let result = self.register();
        let (none, end) = (self.label(), self.label());
        let inner = self.held(expression, none, on_error);
        self.push(Instruction::new(Op::CelWrap).a(result.0).b(inner.0));
        self.jump(end);
        self.place(none);
        self.push(Instruction::new(Op::CelNone).a(result.0));
        self.place(end);
        result
    }

    fn function(&self, expression: &Expr) -> Option<Function> {
        match self.checked.reference(expression) {
            Some(Reference::Function { function, .. }) => Some(*function),
            _ => None,
        }
    }

    fn call(
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
            return self.compute(Instruction::new(Op::CelPath).c(path), on_error);
        }
        match (function, all.as_slice()) {
            (Function::ToDyn, [value]) => self.value(value, on_error),
            // Nothing is in an empty list, and cel-go does not look what it is that is not.
            (Function::In, [_, list]) if is_empty_list(list) => {
                self.emitter.constant(&TreeValue::Bool(false))
            }
            (Function::Not, [_]) => self.truth(expression, on_error),
            (Function::OptionalIndex, _) => self.optional(expression, on_error),
            (Function::OptionalOf, [value]) => {
                let value = self.value(value, on_error);
                self.emitter.load(Instruction::new(Op::CelWrap).b(value.0))
            }
            (Function::OptionalNone, []) => self.emitter.load(Instruction::new(Op::CelNone)),
            (Function::HasValue, [optional]) => {
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
            (Function::OptionalValue, [optional]) => {
                let (none, end) = (self.label(), self.label());
                let value = self.held(optional, none, on_error);
                self.jump(end);
                self.place(none);
                let text = self.emitter.pools.text("optional.none() dereference");
                self.push(Instruction::new(Op::FailText).c(text).target(on_error));
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
                let value = self.value(otherwise, on_error);
                let failed = self.label();
                self.unwrap_strictly(value, failed, on_error);
                self.place(failed);
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
            (_, [value]) => {
                let value = self.value(value, on_error);
                self.compute(
                    Instruction::new(Op::CelUnary).b(value.0).c(function as u32),
                    on_error,
                )
            }
            (_, [left, right]) => {
                let left = self.value(left, on_error);
                let right = self.value(right, on_error);
                self.compute(
                    Instruction::new(Op::CelBinary)
                        .b(left.0)
                        .e(right.0)
                        .c(function as u32),
                    on_error,
                )
            }
            (_, arguments) => {
                let list = self.emitter.block.enter_list();
                self.push(Instruction::new(Op::ListBegin).a(list));
                for argument in arguments {
                    let value = self.value(argument, on_error);
                    self.push(Instruction::new(Op::ListPush).a(list).b(value.0));
                }
                let call = Instruction::new(Op::CelCall).b(list).c(function as u32);
                let result = self.compute(call, on_error);
                self.emitter.block.leave_list();
                result
            }
        }
    }

    /// A call about objects of the policy's own namespace: its name goes behind that of
    /// the resource.
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
        self.push(Instruction::new(Op::ListBegin).a(list));
        for (index, argument) in arguments.iter().enumerate() {
            let value = self.value(argument, on_error);
            self.push(Instruction::new(Op::ListPush).a(list).b(value.0));
            if index == 1 {
                let namespace = TreeValue::String(self.bindings.namespace.as_str().into());
                let namespace = self.emitter.constant(&namespace);
                self.push(Instruction::new(Op::ListPush).a(list).b(namespace.0));
            }
        }
        let call = Instruction::new(Op::CelCall).b(list).c(function as u32);
        let result = self.compute(call, on_error);
        self.emitter.block.leave_list();
        result
    }

    /// Kyverno's `orValue`: of anything, and both sides are evaluated (docs/spec/cel.md, 3.1).
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
            let inner = self.compute(Instruction::new(Op::CelUnwrap).b(optional.0), none);
            self.emitter.assign(result, inner);
            self.place(none);
        }
        self.place(end);
        result
    }

    /// Whether evaluating it is the same as not evaluating it.
    fn cannot_fail(&self, expression: &Expr) -> bool {
        match &expression.node {
            Node::Literal(_) => true,
            Node::Ident(name) => self
                .locals
                .iter()
                .rev()
                .find(|local| local.name == *name)
                .is_some_and(|local| !local.fails),
            Node::List(_) | Node::Map(_) => constant_of(expression).is_some(),
            _ => false,
        }
    }

    fn list(&mut self, expression: &Expr, elements: &[Element], on_error: Label) -> Register {
        if let Some(constant) = constant_of(expression) {
            return self.emitter.constant(&constant.value);
        }
        let list = self.emitter.block.enter_list();
        self.push(Instruction::new(Op::ListBegin).a(list));
        for Element { optional, value } in elements {
            let value = self.value(value, on_error);
            let push = if *optional {
                Instruction::new(Op::CelPushOptional).target(on_error)
            } else {
                Instruction::new(Op::ListPush)
            };
            self.push(push.a(list).b(value.0));
        }
        let result = self.emitter.load(Instruction::new(Op::ListEnd).b(list));
        self.emitter.block.leave_list();
        result
    }

    fn map(&mut self, expression: &Expr, entries: &[Entry], on_error: Label) -> Register {
        if let Some(constant) = constant_of(expression) {
            return self.emitter.constant(&constant.value);
        }
        let list = self.emitter.block.enter_list();
        self.push(Instruction::new(Op::ListBegin).a(list));
        for entry in entries {
            let key = self.value(&entry.key, on_error);
            let none = self.label();
            let value = if entry.optional {
                self.held(&entry.value, none, on_error)
            } else {
                self.value(&entry.value, on_error)
            };
            self.push(Instruction::new(Op::ListPush).a(list).b(key.0));
            self.push(Instruction::new(Op::ListPush).a(list).b(value.0));
            self.place(none);
        }
        let result = self.compute(Instruction::new(Op::CelMapEnd).b(list), on_error);
        self.emitter.block.leave_list();
        result
    }
}

fn is_empty_list(expression: &Expr) -> bool {
    matches!(&expression.node, Node::List(items) if items.is_empty())
}

/// Whether a comparison of constants holds; nothing where that takes CEL's rules for
/// numbers or an error.
fn fold(function: Function, left: &Tree, right: &Tree) -> Option<bool> {
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

/// The value of a list or map of literals that JSON has too.
fn constant_of(expression: &Expr) -> Option<Tree> {
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

impl Pools<'_> {
    /// The number of a constant of a type that JSON does not have.
    pub(crate) fn cel_constant(&mut self, kind: ConstantKind, bits: u64, text: &str) -> u32 {
        let key = format!("{kind:?} {bits} {text}");
        if let Some(&number) = self.constants.get(&key) {
            return number;
        }
        let number = self.bundle.constants.len() as u32;
        let empty = self.bundle.text("");
        let text = self.bundle.text(text);
        self.bundle.constants.push(table::Constant {
            kind: kind as u8,
            value: U64::new(bits),
            key: empty,
            text,
            children: Range::EMPTY,
        });
        self.constants.insert(key, number);
        number
    }
}
