//! JMESPath expressions to IR (docs/spec/jmespath.md §4).
//!
//! An unknown key is an error that most places turn into null. Lowering knows the
//! place: where null is wanted (`or_null`), the load itself goes on with null.

use kpvm_format::function::Function;
use kpvm_format::instruction::Op;
use kpvm_syntax::tree::TreeValue;

use super::emitter::Emitter;
use crate::calls;
use crate::ir::{Constant, Instruction, Label, Register, Slice, SliceId};
use kpvm_syntax::jmespath::{
    Comparator, Dialect, Expression, FunctionCall, Node, Projection, ProjectionKind,
};

/// The current value of an expression.
#[derive(Debug, Clone, Copy)]
pub enum Current {
    /// The whole context: names are looked up there.
    Context,
    /// A value.
    Value(Register),
}

/// Whether the result on null is null, so that null may stand for an error before it.
fn is_null_on_null(expression: &Expression) -> bool {
    match &expression.node {
        Node::Identity
        | Node::Current
        | Node::Field(_)
        | Node::MultiSelectList(_)
        | Node::MultiSelectHash(_) => true,
        Node::Subexpression { left, right } => is_null_on_null(left) && is_null_on_null(right),
        Node::Index { left, .. } => is_null_on_null(left),
        Node::Projection(projection) => is_null_on_null(&projection.left),
        Node::Literal(_)
        | Node::Comparison { .. }
        | Node::Or { .. }
        | Node::And { .. }
        | Node::Not(_)
        | Node::Pipe { .. }
        | Node::FunctionCall(_)
        | Node::ExpressionReference(_)
        | Node::Empty
        | Node::Assertion(_) => false,
    }
}

fn field(expression: &Expression, name: &str) -> bool {
    matches!(&expression.node, Node::Field(field) if &**field == name)
}

impl Emitter<'_> {
    /// Lowers an expression; errors jump to `on_error`, an unknown key too unless
    /// `or_null`. In an assertion tree no key is unknown: it gives null.
    pub fn expression(
        &mut self,
        expression: &Expression,
        current: Current,
        on_error: Label,
        or_null: bool,
    ) -> Register {
        let or_null = or_null || self.is_assertion();
        match &expression.node {
            Node::Identity | Node::Current => match current {
                Current::Value(register) => register,
                Current::Context => self.load(Instruction::new(Op::LoadContext)),
            },
            Node::Field(name) => self.field(name, current, on_error, or_null),
            Node::Literal(value) => match value {
                TreeValue::String(text) if !self.inner.is_empty() => self
                    .inner_text(text, on_error)
                    .unwrap_or_else(|| self.constant(value)),
                value => self.constant(value),
            },
            Node::Subexpression { left, right } => {
                self.subexpression(left, right, current, on_error, or_null)
            }
            Node::Index { left, index } => {
                let list = self.expression(left, current, on_error, or_null);
                let index = i32::try_from(*index).unwrap_or(i32::MAX);
                self.load(Instruction::new(Op::GetItem).b(list.0).c(index as u32))
            }
            Node::Projection(projection) => self.projection(projection, current, on_error),
            Node::MultiSelectList(items) => {
                let items: Vec<&Expression> = items.iter().collect();
                self.multi_select(&items, None, current, on_error)
            }
            Node::MultiSelectHash(entries) => {
                let keys: Vec<String> = entries.iter().map(|entry| entry.key.to_string()).collect();
                let values: Vec<&Expression> = entries.iter().map(|entry| &entry.value).collect();
                self.multi_select(&values, Some(&keys), current, on_error)
            }
            Node::Comparison {
                operator,
                left,
                right,
            } => {
                let left = self.compared(*operator, left, current, on_error);
                let right = self.compared(*operator, right, current, on_error);
                let number = comparator(*operator);
                self.load(Instruction::new(Op::Compare).b(left.0).e(right.0).c(number))
            }
            Node::Or { left, right } => {
                let result = self.block.register();
                let end = self.block.label();
                let left = self.expression(left, current, on_error, true);
                self.assign(result, left);
                self.block
                    .push(Instruction::new(Op::JumpIfTrue).a(result.0).target(end));
                let right = self.expression(right, current, on_error, true);
                self.assign(result, right);
                self.block.place(end);
                result
            }
            Node::And { left, right } => {
                let result = self.block.register();
                let end = self.block.label();
                let left = self.expression(left, current, on_error, true);
                self.assign(result, left);
                self.block
                    .push(Instruction::new(Op::JumpIfFalse).a(result.0).target(end));
                let right = self.expression(right, current, on_error, or_null);
                self.assign(result, right);
                self.block.place(end);
                result
            }
            Node::Not(operand) => {
                let operand = self.expression(operand, current, on_error, true);
                self.load(Instruction::new(Op::Not).b(operand.0))
            }
            Node::Pipe { left, right } => {
                let left = self.expression(left, current, on_error, true);
                self.expression(right, Current::Value(left), on_error, true)
            }
            Node::FunctionCall(call) => self.function_call(call, current, on_error),
            // Functions that look inside are lowered by name; to all others it is opaque.
            Node::ExpressionReference(_) => {
                let reference = self.module.special_constant(Constant::Reference);
                self.load(Instruction::new(Op::LoadConstant).c(reference))
            }
            Node::Empty => self.fail("Unknown AST node: ASTEmpty", on_error),
            Node::Assertion(node) => self.assertion_expression(node, current, on_error),
        }
    }

    fn field(&mut self, name: &str, current: Current, on_error: Label, or_null: bool) -> Register {
        match current {
            Current::Value(source) if self.inner.contains_key(name) => {
                let key = self.inner[name];
                let load = Instruction::new(Op::GetKeyOf).b(source.0).e(key.0);
                self.load_or_null(load, on_error, or_null)
            }
            Current::Value(source) => {
                let symbol = self.module.symbol(name);
                self.load_or_null(
                    Instruction::new(Op::GetKey).b(source.0).c(symbol.0),
                    on_error,
                    or_null,
                )
            }
            Current::Context if name == "images" && self.scope.slot(name).is_none() => {
                let result = self.block.register();
                let caught = self.block.label();
                let target = if or_null { caught } else { on_error };
                self.block
                    .push(Instruction::new(Op::LoadImages).a(result.0).target(target));
                if or_null {
                    let end = self.block.label();
                    self.block.jump(end);
                    self.block.place(caught);
                    self.block.push(
                        Instruction::new(Op::CatchMissing)
                            .a(result.0)
                            .target(on_error),
                    );
                    self.block.place(end);
                }
                result
            }
            Current::Context => {
                let load = match self.scope.slot(name) {
                    Some(slot) => Instruction::new(Op::LoadVariable).c(slot),
                    None => Instruction::new(Op::LoadBase).c(self.module.symbol(name).0),
                };
                self.load_or_null(load, on_error, or_null)
            }
        }
    }

    /// A load that sets null and jumps where there is nothing: to what stands behind it
    /// if null is wanted.
    fn load_or_null(&mut self, load: Instruction, on_error: Label, or_null: bool) -> Register {
        let result = self.block.register();
        if or_null {
            let next = self.block.label();
            self.block.push(load.a(result.0).target(next));
            self.block.place(next);
        } else {
            self.block.push(load.a(result.0).target(on_error));
        }
        result
    }

    fn subexpression(
        &mut self,
        left: &Expression,
        right: &Expression,
        current: Current,
        on_error: Label,
        or_null: bool,
    ) -> Register {
        let is_object =
            matches!(current, Current::Context) && field(left, "request") && field(right, "object");
        if is_object && self.scope.rewrites_delete && self.scope.slot("request").is_none() {
            return self.load_or_null(Instruction::new(Op::LoadRequestObject), on_error, or_null);
        }
        if self.is_assertion() {
            let result = self.block.register();
            let end = self.block.label();
            let left = self.expression(left, current, on_error, true);
            self.assign(result, left);
            self.block
                .push(Instruction::new(Op::JumpIfNull).a(result.0).target(end));
            let right = self.expression(right, Current::Value(left), on_error, true);
            self.assign(result, right);
            self.block.place(end);
            return result;
        }
        if or_null && !is_null_on_null(right) {
            // Null on the left would not end in null: the error has to skip the right.
            return self.or_null(on_error, |this, caught| {
                let left = this.expression(left, current, caught, false);
                this.expression(right, Current::Value(left), caught, false)
            });
        }
        let left = self.expression(left, current, on_error, or_null);
        self.expression(right, Current::Value(left), on_error, or_null)
    }

    /// Runs `body`; its unknown key becomes null.
    fn or_null(
        &mut self,
        on_error: Label,
        body: impl FnOnce(&mut Self, Label) -> Register,
    ) -> Register {
        let result = self.block.register();
        let (caught, end) = (self.block.label(), self.block.label());
        let value = body(self, caught);
        self.assign(result, value);
        self.block.jump(end);
        self.block.place(caught);
        self.block.push(
            Instruction::new(Op::CatchMissing)
                .a(result.0)
                .target(on_error),
        );
        self.block.place(end);
        result
    }

    /// Runs `body`; any error becomes null.
    fn or_null_on_any_error(
        &mut self,
        body: impl FnOnce(&mut Self, Label) -> Register,
    ) -> Register {
        let result = self.block.register();
        let (caught, end) = (self.block.label(), self.block.label());
        let value = body(self, caught);
        self.assign(result, value);
        self.block.jump(end);
        self.block.place(caught);
        self.block.push(Instruction::new(Op::CatchAny).a(result.0));
        self.block.place(end);
        result
    }

    /// Whether the expression is of an assertion tree.
    fn is_assertion(&self) -> bool {
        self.bindings.is_some()
    }

    fn dialect(&self) -> Dialect {
        match self.is_assertion() {
            true => Dialect::Assertion,
            false => Dialect::Kyverno,
        }
    }

    /// The numbers of a resource are ints and floats, those of expressions floats: in an
    /// assertion tree they are made that where they are computed with. Elsewhere the
    /// context holds floats only.
    fn with_floats(&mut self, value: Register, on_error: Label) -> Register {
        match self.is_assertion() {
            true => self.load(Instruction::new(Op::ToFloats).b(value.0).target(on_error)),
            false => value,
        }
    }

    fn compared(
        &mut self,
        operator: Comparator,
        operand: &Expression,
        current: Current,
        on_error: Label,
    ) -> Register {
        let is_order = !matches!(operator, Comparator::Equal | Comparator::NotEqual);
        if is_order && self.is_assertion() {
            return self.number(operand, current, on_error);
        }
        self.argument(operand, current, on_error)
    }

    /// An argument of a function, or what is equal to it.
    fn argument(&mut self, argument: &Expression, current: Current, on_error: Label) -> Register {
        let value = self.expression(argument, current, on_error, true);
        match argument.node {
            Node::Literal(_) => value,
            _ => self.with_floats(value, on_error),
        }
    }

    /// The five projections: what is gone through differs, what is done does not.
    fn projection(
        &mut self,
        projection: &Projection,
        current: Current,
        on_error: Label,
    ) -> Register {
        let Projection { left, kind, right } = projection;
        let result = self.block.register();
        let null = self.constant(&TreeValue::Null);
        self.assign(result, null);
        let end = self.block.label();
        let (items, condition) = match kind {
            ProjectionKind::List => (self.expression(left, current, on_error, true), None),
            ProjectionKind::Slice(slice) => {
                let list = self.expression(left, current, on_error, true);
                let slice = self.slice(*slice);
                let part = self.block.register();
                self.block.push(
                    Instruction::new(Op::GetSlice)
                        .a(part.0)
                        .b(list.0)
                        .e(u32::from(self.is_assertion()))
                        .c(slice)
                        .target(on_error),
                );
                if self.is_assertion() {
                    // A part of a text is the result itself.
                    self.assign(result, part);
                }
                (part, None)
            }
            ProjectionKind::Filter(condition) => {
                let list = self.or_null_on_any_error(|this, caught| {
                    this.expression(left, current, caught, false)
                });
                (list, Some(&**condition))
            }
            ProjectionKind::Flatten => {
                let list = self.or_null_on_any_error(|this, caught| {
                    this.expression(left, current, caught, false)
                });
                self.block
                    .push(Instruction::new(Op::JumpIfNotList).a(list.0).target(end));
                (self.flatten(list), None)
            }
            ProjectionKind::Object => {
                let map = self.or_null_on_any_error(|this, caught| {
                    this.expression(left, current, caught, false)
                });
                self.block
                    .push(Instruction::new(Op::JumpIfNotMap).a(map.0).target(end));
                // Kyverno evaluates the right side on as many nulls first.
                let nulls = u32::from(!is_null_on_null(right) && !self.is_assertion());
                (
                    self.load(Instruction::new(Op::MapValues).b(map.0).c(nulls)),
                    None,
                )
            }
        };
        self.block
            .push(Instruction::new(Op::JumpIfNotList).a(items.0).target(end));
        let list = self.block.enter_list();
        self.block.push(Instruction::new(Op::ListBegin).a(list));
        self.each(items, |this, item| {
            let next = this.block.label();
            if let Some(condition) = condition {
                let holds = this.expression(condition, Current::Value(item), on_error, true);
                this.block
                    .push(Instruction::new(Op::JumpIfFalse).a(holds.0).target(next));
            }
            let value = this.expression(right, Current::Value(item), on_error, true);
            this.block
                .push(Instruction::new(Op::ListPushSome).a(list).b(value.0));
            this.block.place(next);
        });
        self.block
            .push(Instruction::new(Op::ListEnd).a(result.0).b(list));
        self.block.leave_list();
        self.block.place(end);
        result
    }

    fn slice(&mut self, slice: kpvm_syntax::jmespath::Slice) -> SliceId {
        self.module.slices.push(Slice {
            start: slice.start,
            stop: slice.stop,
            step: slice.step,
        })
    }

    fn flatten(&mut self, list: Register) -> Register {
        let flat = self.block.enter_list();
        self.block.push(Instruction::new(Op::ListBegin).a(flat));
        self.each(list, |this, item| {
            this.block
                .push(Instruction::new(Op::ListExtend).a(flat).b(item.0))
        });
        let result = self.load(Instruction::new(Op::ListEnd).b(flat));
        self.block.leave_list();
        result
    }

    /// A loop over the items of a list.
    pub fn each(&mut self, list: Register, body: impl FnOnce(&mut Self, Register)) {
        self.each_at(list, |this, item, _| body(this, item));
    }

    /// As [`Emitter::each`], for a body that asks for the slot of the loop too.
    pub fn each_at(&mut self, list: Register, body: impl FnOnce(&mut Self, Register, u32)) {
        let (start, end) = (self.block.label(), self.block.label());
        let slot = self.block.enter_loop();
        let item = self.block.register();
        self.block.push(
            Instruction::new(Op::LoopBegin)
                .a(slot)
                .b(list.0)
                .e(item.0)
                .target(end),
        );
        self.block.place(start);
        body(self, item, slot);
        self.block.push(
            Instruction::new(Op::LoopNext)
                .a(slot)
                .e(item.0)
                .target(start),
        );
        self.block.place(end);
        self.block.leave_loop();
    }

    fn multi_select(
        &mut self,
        values: &[&Expression],
        keys: Option<&[String]>,
        current: Current,
        on_error: Label,
    ) -> Register {
        let result = self.block.register();
        let end = self.block.label();
        // In an assertion tree a list of nulls is made of null.
        let makes_nulls = self.is_assertion() && keys.is_none();
        if let (Current::Value(register), false) = (current, makes_nulls) {
            self.assign(result, register);
            self.block
                .push(Instruction::new(Op::JumpIfNull).a(register.0).target(end));
        }
        let list = self.block.enter_list();
        self.block.push(Instruction::new(Op::ListBegin).a(list));
        for value in values {
            let value = self.expression(value, current, on_error, true);
            self.block
                .push(Instruction::new(Op::ListPush).a(list).b(value.0));
        }
        let finish = match keys {
            None => Instruction::new(Op::ListEnd),
            Some(keys) => Instruction::new(Op::MapEnd).c(self.module.text_list(keys)),
        };
        self.block.push(finish.a(result.0).b(list));
        self.block.leave_list();
        self.block.place(end);
        result
    }

    fn function_call(
        &mut self,
        call: &FunctionCall,
        current: Current,
        on_error: Label,
    ) -> Register {
        let name = call.name.as_deref();
        let by_key = match (name, call.arguments.as_slice()) {
            (Some("map"), [function, list]) => {
                reference(function).map(|function| (Function::MapResults, list, function))
            }
            (Some("sort_by"), [list, function]) => {
                reference(function).map(|function| (Function::SortByKeys, list, function))
            }
            (Some("max_by"), [list, function]) => {
                reference(function).map(|function| (Function::MaxByKeys, list, function))
            }
            (Some("min_by"), [list, function]) => {
                reference(function).map(|function| (Function::MinByKeys, list, function))
            }
            (Some("group_by"), [list, function]) if self.is_assertion() => {
                reference(function).map(|function| (Function::GroupByKeys, list, function))
            }
            _ => None,
        };
        if let Some((function, list, expression)) = by_key {
            return self.call_by_key(function, list, expression, current, on_error);
        }
        let list = self.block.enter_list();
        self.block.push(Instruction::new(Op::ListBegin).a(list));
        for argument in &call.arguments {
            let value = self.argument(argument, current, on_error);
            self.block
                .push(Instruction::new(Op::ListPush).a(list).b(value.0));
        }
        let result =
            match name.map(|name| (name, calls::lookup(name, self.dialect()).map(|row| row.id))) {
                None => self.fail("invalid node value type", on_error),
                Some((name, None)) => self.fail(&format!("unknown function: {name}"), on_error),
                Some((_, Some(function))) => {
                    let result = self.block.register();
                    self.block.push(
                        Instruction::new(Op::Call)
                            .a(result.0)
                            .b(list)
                            .c(u32::from(function as u8))
                            .target(on_error),
                    );
                    result
                }
            };
        self.block.leave_list();
        result
    }

    /// `map`, `sort_by`, `max_by` and `min_by`: the expression runs in a loop here, the
    /// function gets its results.
    fn call_by_key(
        &mut self,
        function: Function,
        list: &Expression,
        expression: &Expression,
        current: Current,
        on_error: Label,
    ) -> Register {
        let items = self.expression(list, current, on_error, true);
        let keys = self.block.enter_list();
        self.block.push(Instruction::new(Op::ListBegin).a(keys));
        let enough = self.block.label();
        // A wrong type is the function's error, before any of the expression's.
        self.block.push(
            Instruction::new(Op::JumpIfNotList)
                .a(items.0)
                .target(enough),
        );
        if matches!(function, Function::MapResults | Function::GroupByKeys) {
            self.each(items, |this, item| {
                let value = this.expression(expression, Current::Value(item), on_error, true);
                this.block
                    .push(Instruction::new(Op::ListPush).a(keys).b(value.0));
            });
        } else {
            // Fewer than two items are in order without looking at their keys.
            self.block.push(
                Instruction::new(Op::JumpIfShorter)
                    .a(items.0)
                    .c(2)
                    .target(enough),
            );
            let mut rest = items;
            if function == Function::SortByKeys {
                // To `sort_by` all failures but the first one look the same.
                let first = self.load(Instruction::new(Op::LoadIndex).b(items.0).c(0));
                let key = self.expression(expression, Current::Value(first), on_error, true);
                let key = self.with_floats(key, on_error);
                self.block
                    .push(Instruction::new(Op::ListPush).a(keys).b(key.0));
                let slice = self.slice(kpvm_syntax::jmespath::Slice {
                    start: Some(1),
                    stop: None,
                    step: None,
                });
                rest = self.block.register();
                self.block.push(
                    Instruction::new(Op::GetSlice)
                        .a(rest.0)
                        .b(items.0)
                        .c(slice)
                        .target(on_error),
                );
            }
            let forgives = function == Function::SortByKeys;
            self.each(rest, |this, item| {
                let value = if forgives {
                    this.or_null_on_any_error(|this, caught| {
                        this.expression(expression, Current::Value(item), caught, false)
                    })
                } else {
                    this.expression(expression, Current::Value(item), on_error, true)
                };
                let value = this.with_floats(value, on_error);
                this.block
                    .push(Instruction::new(Op::ListPush).a(keys).b(value.0));
            });
        }
        self.block.place(enough);
        let keys_list = self.load(Instruction::new(Op::ListEnd).b(keys));
        self.block.push(Instruction::new(Op::ListBegin).a(keys));
        self.block
            .push(Instruction::new(Op::ListPush).a(keys).b(items.0));
        self.block
            .push(Instruction::new(Op::ListPush).a(keys).b(keys_list.0));
        let result = self.block.register();
        let call = Instruction::new(Op::Call)
            .a(result.0)
            .b(keys)
            .c(u32::from(function as u8));
        self.block.push(call.target(on_error));
        self.block.leave_list();
        result
    }
}

fn reference(expression: &Expression) -> Option<&Expression> {
    match &expression.node {
        Node::ExpressionReference(inner) => Some(inner),
        _ => None,
    }
}

fn comparator(operator: Comparator) -> u32 {
    match operator {
        Comparator::Equal => 0,
        Comparator::NotEqual => 1,
        Comparator::Less => 2,
        Comparator::LessOrEqual => 3,
        Comparator::Greater => 4,
        Comparator::GreaterOrEqual => 5,
    }
}
