//! Lowers JMESPath expressions to IR (docs/spec/jmespath.md §4).
//!
//! An unknown key is an error that most places turn into null. Lowering knows the place:
//! where null is wanted (`or_null`), the load itself continues with null.

use kpvm_format::function::Function;
use kpvm_format::instruction::LoopSlot;
use kpvm_format::instruction::immediate::{Comparison, ItemCount, ItemIndex, SignedIndex};
use kpvm_syntax::tree::TreeValue;

use super::emitter::Emitter;
use crate::calls;
use crate::ir::{Constant, Label, Operation, Register, Slice, SliceId};
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

/// Whether the result for null is null, so that null may replace an error before it.
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
    /// Lowers an expression; errors jump to `on_error`, and so does an unknown key unless
    /// `or_null`. In an assertion tree an unknown key is null.
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
                Current::Context => self.load(|dst| Operation::LoadContext { dst }),
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
                self.load(|dst| Operation::GetItem {
                    dst,
                    src: list,
                    index: SignedIndex(index),
                })
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
                let comparison = comparison(*operator);
                self.load(|dst| Operation::Compare {
                    dst,
                    left,
                    right,
                    comparison,
                })
            }
            Node::Or { left, right } => {
                let result = self.block.register();
                let end = self.block.label();
                let left = self.expression(left, current, on_error, true);
                self.assign(result, left);
                self.block.push(Operation::JumpIfTrue {
                    src: result,
                    target: end,
                });
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
                self.block.push(Operation::JumpIfFalse {
                    src: result,
                    target: end,
                });
                let right = self.expression(right, current, on_error, or_null);
                self.assign(result, right);
                self.block.place(end);
                result
            }
            Node::Not(operand) => {
                let operand = self.expression(operand, current, on_error, true);
                self.load(|dst| Operation::Not { dst, src: operand })
            }
            Node::Pipe { left, right } => {
                let left = self.expression(left, current, on_error, true);
                self.expression(right, Current::Value(left), on_error, true)
            }
            Node::FunctionCall(call) => self.function_call(call, current, on_error),
            // Functions that evaluate it are lowered by name; to all others it is opaque.
            Node::ExpressionReference(_) => {
                let reference = self.module.special_constant(Constant::Reference);
                self.load(|dst| Operation::LoadConstant {
                    dst,
                    constant: reference,
                })
            }
            Node::Empty => self.fail("Unknown AST node: ASTEmpty", on_error),
            Node::Assertion(node) => self.assertion_expression(node, current, on_error),
        }
    }

    fn field(&mut self, name: &str, current: Current, on_error: Label, or_null: bool) -> Register {
        match current {
            Current::Value(source) if self.inner.contains_key(name) => {
                let key = self.inner[name];
                let load = |dst, target| Operation::GetKeyOf {
                    dst,
                    src: source,
                    key,
                    target,
                };
                self.load_or_null(load, on_error, or_null)
            }
            Current::Value(source) => {
                let key = self.module.symbol(name);
                let load = |dst, target| Operation::GetKey {
                    dst,
                    src: source,
                    key,
                    target,
                };
                self.load_or_null(load, on_error, or_null)
            }
            Current::Context if name == "images" && self.scope.slot(name).is_none() => {
                let result = self.block.register();
                let caught = self.block.label();
                let target = if or_null { caught } else { on_error };
                self.block.push(Operation::LoadImages {
                    dst: result,
                    target,
                });
                if or_null {
                    let end = self.block.label();
                    self.block.jump(end);
                    self.block.place(caught);
                    self.block.push(Operation::CatchMissing {
                        dst: result,
                        target: on_error,
                    });
                    self.block.place(end);
                }
                result
            }
            Current::Context => {
                if let Some(slot) = self.scope.slot(name) {
                    let load = |dst, target| Operation::LoadVariable { dst, slot, target };
                    return self.load_or_null(load, on_error, or_null);
                }
                let name = self.module.symbol(name);
                let load = |dst, target| Operation::LoadBase { dst, name, target };
                self.load_or_null(load, on_error, or_null)
            }
        }
    }

    /// A load that sets null and jumps if there is no value: to the code after it if null
    /// is wanted.
    fn load_or_null(
        &mut self,
        load: impl FnOnce(Register, Label) -> Operation,
        on_error: Label,
        or_null: bool,
    ) -> Register {
        let result = self.block.register();
        if or_null {
            let next = self.block.label();
            self.block.push(load(result, next));
            self.block.place(next);
        } else {
            self.block.push(load(result, on_error));
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
            let load = |dst, target| Operation::LoadRequestObject { dst, target };
            return self.load_or_null(load, on_error, or_null);
        }
        if self.is_assertion() {
            let result = self.block.register();
            let end = self.block.label();
            let left = self.expression(left, current, on_error, true);
            self.assign(result, left);
            self.block.push(Operation::JumpIfNull {
                src: result,
                target: end,
            });
            let right = self.expression(right, Current::Value(left), on_error, true);
            self.assign(result, right);
            self.block.place(end);
            return result;
        }
        if or_null && !is_null_on_null(right) {
            // Null on the left would not result in null: the error must skip the right
            // side.
            return self.or_null(on_error, |this, caught| {
                let left = this.expression(left, current, caught, false);
                this.expression(right, Current::Value(left), caught, false)
            });
        }
        let left = self.expression(left, current, on_error, or_null);
        self.expression(right, Current::Value(left), on_error, or_null)
    }

    /// Runs `body`, with an unknown key becoming null.
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
        self.block.push(Operation::CatchMissing {
            dst: result,
            target: on_error,
        });
        self.block.place(end);
        result
    }

    /// Runs `body`, with any error becoming null.
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
        self.block.push(Operation::CatchAny { dst: result });
        self.block.place(end);
        result
    }

    /// Whether the expression belongs to an assertion tree.
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
    /// assertion tree they are converted where they are used in arithmetic. Elsewhere the
    /// context holds only floats.
    fn with_floats(&mut self, value: Register, on_error: Label) -> Register {
        match self.is_assertion() {
            true => self.load(|dst| Operation::ToFloats {
                dst,
                src: value,
                target: on_error,
            }),
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

    /// An argument of a function, or something equal to it.
    fn argument(&mut self, argument: &Expression, current: Current, on_error: Label) -> Register {
        let value = self.expression(argument, current, on_error, true);
        match argument.node {
            Node::Literal(_) => value,
            _ => self.with_floats(value, on_error),
        }
    }

    /// The five projections: they differ in what they iterate over, not in what they do.
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
                self.block.push(Operation::GetSlice {
                    dst: part,
                    src: list,
                    texts: self.is_assertion(),
                    slice,
                    target: on_error,
                });
                if self.is_assertion() {
                    // A slice of a text is the result itself.
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
                self.block.push(Operation::JumpIfNotList {
                    src: list,
                    target: end,
                });
                (self.flatten(list), None)
            }
            ProjectionKind::Object => {
                let map = self.or_null_on_any_error(|this, caught| {
                    this.expression(left, current, caught, false)
                });
                self.block.push(Operation::JumpIfNotMap {
                    src: map,
                    target: end,
                });
                // Kyverno first evaluates the right side on as many nulls.
                let nulls = !is_null_on_null(right) && !self.is_assertion();
                (
                    self.load(|dst| Operation::MapValues {
                        dst,
                        src: map,
                        nulls,
                    }),
                    None,
                )
            }
        };
        self.block.push(Operation::JumpIfNotList {
            src: items,
            target: end,
        });
        let list = self.block.enter_list();
        self.block.push(Operation::ListBegin { list });
        self.each(items, |this, item| {
            let next = this.block.label();
            if let Some(condition) = condition {
                let holds = this.expression(condition, Current::Value(item), on_error, true);
                this.block.push(Operation::JumpIfFalse {
                    src: holds,
                    target: next,
                });
            }
            let value = this.expression(right, Current::Value(item), on_error, true);
            this.block
                .push(Operation::ListPushSome { list, src: value });
            this.block.place(next);
        });
        self.block.push(Operation::ListEnd { dst: result, list });
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
        self.block.push(Operation::ListBegin { list: flat });
        self.each(list, |this, item| {
            this.block.push(Operation::ListExtend {
                list: flat,
                src: item,
            })
        });
        let result = self.load(|dst| Operation::ListEnd { dst, list: flat });
        self.block.leave_list();
        result
    }

    /// A loop over the items of a list.
    pub fn each(&mut self, list: Register, body: impl FnOnce(&mut Self, Register)) {
        self.each_at(list, |this, item, _| body(this, item));
    }

    /// Like [`Emitter::each`], for a body that also needs the loop's slot.
    pub fn each_at(&mut self, list: Register, body: impl FnOnce(&mut Self, Register, LoopSlot)) {
        let (start, end) = (self.block.label(), self.block.label());
        let slot = self.block.enter_loop();
        let item = self.block.register();
        self.block.push(Operation::LoopBegin {
            loop_slot: slot,
            list,
            item,
            target: end,
        });
        self.block.place(start);
        body(self, item, slot);
        self.block.push(Operation::LoopNext {
            loop_slot: slot,
            item,
            target: start,
        });
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
        // In an assertion tree null becomes a list of nulls.
        let makes_nulls = self.is_assertion() && keys.is_none();
        if let (Current::Value(register), false) = (current, makes_nulls) {
            self.assign(result, register);
            self.block.push(Operation::JumpIfNull {
                src: register,
                target: end,
            });
        }
        let list = self.block.enter_list();
        self.block.push(Operation::ListBegin { list });
        for value in values {
            let value = self.expression(value, current, on_error, true);
            self.block.push(Operation::ListPush { list, src: value });
        }
        let finish = match keys {
            None => Operation::ListEnd { dst: result, list },
            Some(keys) => Operation::MapEnd {
                dst: result,
                list,
                keys: self.module.text_list(keys),
            },
        };
        self.block.push(finish);
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
        self.block.push(Operation::ListBegin { list });
        for argument in &call.arguments {
            let value = self.argument(argument, current, on_error);
            self.block.push(Operation::ListPush { list, src: value });
        }
        let result =
            match name.map(|name| (name, calls::lookup(name, self.dialect()).map(|row| row.id))) {
                None => self.fail("invalid node value type", on_error),
                Some((name, None)) => self.fail(&format!("unknown function: {name}"), on_error),
                Some((_, Some(function))) => {
                    let result = self.block.register();
                    self.block.push(Operation::Call {
                        dst: result,
                        list,
                        function,
                        target: on_error,
                    });
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
        self.block.push(Operation::ListBegin { list: keys });
        let enough = self.block.label();
        // A wrong type is the function's error, before any of the expression's.
        self.block.push(Operation::JumpIfNotList {
            src: items,
            target: enough,
        });
        if matches!(function, Function::MapResults | Function::GroupByKeys) {
            self.each(items, |this, item| {
                let value = this.expression(expression, Current::Value(item), on_error, true);
                this.block.push(Operation::ListPush {
                    list: keys,
                    src: value,
                });
            });
        } else {
            // Fewer than two items are in order without evaluating their keys.
            self.block.push(Operation::JumpIfShorter {
                src: items,
                length: ItemCount(2),
                target: enough,
            });
            let mut rest = items;
            if function == Function::SortByKeys {
                // `sort_by` treats all failures but the first one alike.
                let first = self.load(|dst| Operation::LoadIndex {
                    dst,
                    src: items,
                    index: ItemIndex(0),
                });
                let key = self.expression(expression, Current::Value(first), on_error, true);
                let key = self.with_floats(key, on_error);
                self.block.push(Operation::ListPush {
                    list: keys,
                    src: key,
                });
                let slice = self.slice(kpvm_syntax::jmespath::Slice {
                    start: Some(1),
                    stop: None,
                    step: None,
                });
                rest = self.block.register();
                self.block.push(Operation::GetSlice {
                    dst: rest,
                    src: items,
                    texts: false,
                    slice,
                    target: on_error,
                });
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
                this.block.push(Operation::ListPush {
                    list: keys,
                    src: value,
                });
            });
        }
        self.block.place(enough);
        let keys_list = self.load(|dst| Operation::ListEnd { dst, list: keys });
        self.block.push(Operation::ListBegin { list: keys });
        self.block.push(Operation::ListPush {
            list: keys,
            src: items,
        });
        self.block.push(Operation::ListPush {
            list: keys,
            src: keys_list,
        });
        let result = self.block.register();
        let call = Operation::Call {
            dst: result,
            list: keys,
            function,
            target: on_error,
        };
        self.block.push(call);
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

fn comparison(operator: Comparator) -> Comparison {
    match operator {
        Comparator::Equal => Comparison::Equal,
        Comparator::NotEqual => Comparison::NotEqual,
        Comparator::Less => Comparison::Less,
        Comparator::LessOrEqual => Comparison::LessOrEqual,
        Comparator::Greater => Comparison::Greater,
        Comparator::GreaterOrEqual => Comparison::GreaterOrEqual,
    }
}
