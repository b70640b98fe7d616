//! Lowers checked expressions to IR (docs/spec/cel.md §3.4 to §3.6).
//!
//! Errors jump. Where an error may be absorbed (`&&`, `||`, `all`, `exists`) it is caught
//! in a register, and raised again after the last operand unless one of them decided. The
//! operands of `&&` and `||` that follow one that may fail are emitted twice: once for the
//! usual path, which no error ever joins, so that what is known there (a tested field is
//! present) stays known; and once for the path after an error.

mod call;
mod comprehension;
mod condition;
mod literal;
mod name;
mod optional;

use std::collections::HashMap;

use kpvm_format::cel::Root;
use kpvm_syntax::tree::{Tree, TreeValue};

use self::literal::constant_of;
use super::Program;
use super::ast::{Expr, Fold, Node};
use super::check::Checked;
use crate::frontend::emitter::Emitter;
use crate::ir::{EntryId, Instruction, Item, Label, Operation, Register};

/// Where the value of a declared variable comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The machine.
    Root(Root),
    /// The object whose fields are variables that are computed when needed.
    Variables,
    /// Always null.
    Null,
    /// Nowhere: using it is an error.
    Unbound,
}

/// What names refer to.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    /// Variables that are not keys of the input value, by name.
    pub sources: HashMap<String, Source>,
    /// Entries of the fields of a [`Source::Variables`].
    pub variables: HashMap<String, EntryId>,
    /// Those variables whose value is the same for every resource.
    pub constants: HashMap<String, Tree>,
    /// The namespace of a namespaced policy.
    pub namespace: String,
}

impl Bindings {
    /// Records the entry of a variable.
    pub fn add_variable(&mut self, name: &str, entry: EntryId, program: Option<&Program>) {
        self.variables.insert(name.to_owned(), entry);
        // Of several variables with the same name, the last one counts.
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
    emitter: &mut Emitter<'_>,
    on_error: Label,
) -> Register {
    lowering(program, bindings, emitter).value(&program.expression, on_error)
}

/// Lowers a condition to the value `true` or `false`; its errors jump to `on_error`.
pub fn lower_truth(
    program: &Program,
    bindings: &Bindings,
    emitter: &mut Emitter<'_>,
    on_error: Label,
) -> Register {
    let mut lowering = lowering(program, bindings, emitter);
    let value = lowering.value(&program.expression, on_error);
    if !program.checked.is_bool(&program.expression) {
        let check = Operation::CelRequireBool {
            src: value,
            target: on_error,
        };
        lowering.push(check);
    }
    value
}

/// Lowers a condition: jumps to `on_false` or `on_error`, or falls through.
pub fn lower_condition(
    program: &Program,
    bindings: &Bindings,
    emitter: &mut Emitter<'_>,
    on_false: Label,
    on_error: Label,
) {
    lowering(program, bindings, emitter).branch(&program.expression, false, on_false, on_error);
}

fn lowering<'a, 'p>(
    program: &'a Program,
    bindings: &'a Bindings,
    emitter: &'a mut Emitter<'p>,
) -> Lowering<'a, 'p> {
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
    /// The register may hold an error, which is raised where the variable is used.
    fails: bool,
}

struct Lowering<'a, 'p> {
    emitter: &'a mut Emitter<'p>,
    checked: &'a Checked,
    bindings: &'a Bindings,
    locals: Vec<Local>,
    /// This is the code for the path after an error; it is not duplicated again.
    has_failed: bool,
}

impl Lowering<'_, '_> {
    fn push(&mut self, instruction: impl Into<Instruction>) {
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

    /// Appends an operation that writes a new register and may fail.
    fn compute(&mut self, operation: impl FnOnce(Register) -> Operation) -> Register {
        let register = self.register();
        self.push(operation(register));
        register
    }

    fn set_constant(&mut self, register: Register, value: &TreeValue) {
        let constant = self.emitter.module.constant(value);
        self.push(Operation::LoadConstant {
            dst: register,
            constant,
        });
    }

    /// Whether anything after item `start` of the block jumps to the label.
    fn is_used(&self, label: Label, start: usize) -> bool {
        let items = self.emitter.block.items.get(start..).unwrap_or_default();
        items.iter().any(|item| match item {
            Item::Instruction(instruction) => instruction.jump() == Some(label),
            Item::Label(_) => false,
        })
    }

    /// Inserts an instruction before item `at`.
    fn insert_constant(&mut self, at: usize, register: Register, value: &TreeValue) {
        let constant = self.emitter.module.constant(value);
        let load = Operation::LoadConstant {
            dst: register,
            constant,
        };
        self.emitter
            .block
            .items
            .insert(at, Item::Instruction(load.into()));
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
            self.push(Operation::CelCatch { dst: register });
            self.place(end);
        }
        self.locals.push(Local {
            name: name.to_owned(),
            register,
            fails,
        });
    }

    /// Whether the expression can be evaluated or not without any difference.
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
}
