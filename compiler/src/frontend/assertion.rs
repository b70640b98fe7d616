//! Assertion trees (docs/spec/assert.md): keys project, leaves compare, failures are
//! recorded.
//!
//! The tree is walked here once; what remains for run time are loads, loops over what `~`
//! iterates, and comparisons, each with the path that its failure shows.

use kpvm_format::instruction::LoopSlot;
use kpvm_format::instruction::immediate::{
    ArithmeticOperator, AssertionFailure, ItemCount, ItemIndex, PayloadPart, Unassertable,
};
use kpvm_syntax::tree::{Member, Tree, TreeValue};

use super::emitter::Emitter;
use super::expression::Current;
use crate::ir::{AtSite, Label, Operation, Register, Segment, Site, SiteKind};
use crate::policy::assertion::{AssertionError, Projection, read_key, read_leaf};
use kpvm_syntax::jmespath::{Arithmetic, AssertionNode, Expression, Node};

/// The value that a node is compared with.
#[derive(Debug, Clone, Copy)]
enum Subject {
    /// The whole payload, whose parts are looked up by name.
    Payload,
    /// A value.
    Value(Register),
    /// A value whose members no literal key can access (docs/spec/assert.md §3).
    Struct(Register),
}

/// The parts of the payload, and whether they are structs.
const PAYLOAD: [(&str, PayloadPart, bool); 8] = [
    ("object", PayloadPart::Object, false),
    ("oldObject", PayloadPart::OldObject, false),
    ("admissionInfo", PayloadPart::AdmissionInfo, true),
    ("operation", PayloadPart::Operation, false),
    ("namespaceLabels", PayloadPart::NamespaceLabels, false),
    ("admissionOperation", PayloadPart::AdmissionOperation, false),
    ("requestResource", PayloadPart::RequestResource, true),
    ("resourceKind", PayloadPart::ResourceKind, false),
];

type Lowered = Result<(), AssertionError>;

impl Emitter<'_> {
    /// Lowers the body of an assert rule.
    ///
    /// # Errors
    /// If an expression is invalid, or the tree is nested too deeply.
    pub fn assertion_rule(&mut self, tree: &Tree) -> Lowered {
        self.bindings = Some(Vec::new());
        self.in_part("assert", |this| {
            this.assertion(tree, Subject::Payload, &[], 0)
        })?;
        self.bindings = None;
        self.block.push(Operation::ReturnAssertion);
        self.flush_cold();
        Ok(())
    }

    fn assertion(
        &mut self,
        tree: &Tree,
        subject: Subject,
        path: &[Segment],
        depth: usize,
    ) -> Lowered {
        let limit = self.module.limits.pattern_depth;
        if depth >= limit {
            return Err(AssertionError {
                message: format!("the tree is nested deeper than {limit}"),
                span: tree.span,
                hint: "assert less, or in several rules".into(),
            });
        }
        let site = self.site(SiteKind::Leaf, tree.span).path(path.to_vec());
        match &tree.value {
            TreeValue::Map(members) if members.is_empty() => {
                let value = self.subject(subject);
                let (null, end) = (self.block.label(), self.block.label());
                self.block.push(Operation::JumpIfNull {
                    src: value,
                    target: null,
                });
                self.block.jump(end);
                self.block.place(null);
                self.note_failure(AssertionFailure::Null, value, site);
                self.block.place(end);
                Ok(())
            }
            TreeValue::Map(members) => members
                .iter()
                .try_for_each(|member| self.assertion_member(member, subject, path, depth)),
            TreeValue::List(items) => self.positional(items, subject, path, site, depth),
            _ => self.assertion_leaf(tree, subject, site),
        }
    }

    /// A key, its projection, and the tree below.
    fn assertion_member(
        &mut self,
        member: &Member,
        subject: Subject,
        path: &[Segment],
        depth: usize,
    ) -> Lowered {
        let statement = read_key(&member.key, member.key_span)?;
        let path = with_key(path, &member.key);
        let site = self.site(SiteKind::Structure, member.key_span);
        let site = site.path(path.clone());
        let (missing, end) = (self.block.label(), self.block.label());
        let projected = match statement.projection {
            Projection::Expression(expression) => {
                let current = Current::Value(self.subject(subject));
                let failed =
                    self.unassertable(Unassertable::Error, Register::SUBJECT, site.clone());
                Subject::Value(self.expression(&expression, current, failed, true))
            }
            Projection::Key(key) => self.project(key, subject, missing, &site),
        };
        let visible = self.bound(&[]);
        if let Some(name) = statement.binding {
            let value = self.subject(projected);
            self.bind(name, value);
        }
        match statement.iteration {
            None => self.assertion(&member.value, projected, &path, depth + 1)?,
            Some(iteration) => self.iterate(projected, &site, |this, item, slot| {
                if let Some(name) = iteration.name {
                    let index = this.load(|dst| Operation::LoopIndex {
                        dst,
                        loop_slot: slot,
                    });
                    this.bind(name, index);
                }
                let mut path = path.clone();
                path.push(Segment::Text("[".into()));
                path.push(Segment::LoopIndex(slot));
                path.push(Segment::Text("]".into()));
                this.assertion(&member.value, Subject::Value(item), &path, depth + 1)
            })?,
        }
        self.unbind(visible);
        self.block.jump(end);
        self.block.place(missing);
        self.note_failure(AssertionFailure::Missing, Register::SUBJECT, site);
        self.block.place(end);
        Ok(())
    }

    /// The value under a literal key; jumps to `missing` if there is none. If there can
    /// never be one, the code lowered after it is unreachable.
    fn project(&mut self, key: &str, subject: Subject, missing: Label, site: &Site) -> Subject {
        let unknown = "projection not recognized";
        match subject {
            Subject::Payload => match PAYLOAD.iter().find(|(name, ..)| *name == key) {
                None => {
                    self.block.jump(missing);
                    Subject::Value(self.constant(&TreeValue::Null))
                }
                Some(&(_, part, is_struct)) => {
                    let value = self.load(|dst| Operation::LoadPayload { dst, part });
                    match is_struct {
                        true => Subject::Struct(value),
                        false => Subject::Value(value),
                    }
                }
            },
            Subject::Struct(_) => {
                let failed =
                    self.unassertable(Unassertable::Error, Register::SUBJECT, site.clone());
                self.fail(unknown, failed);
                Subject::Value(self.constant(&TreeValue::Null))
            }
            Subject::Value(value) => {
                let failed =
                    self.unassertable(Unassertable::Error, Register::SUBJECT, site.clone());
                let no_map = self.failing(unknown, failed);
                let symbol = self.module.symbol(key);
                self.block.push(Operation::JumpIfNull {
                    src: value,
                    target: missing,
                });
                self.block.push(Operation::JumpIfNotMap {
                    src: value,
                    target: no_map,
                });
                let found = self.load(|dst| Operation::LoadField {
                    dst,
                    src: value,
                    key: symbol,
                });
                self.block.push(Operation::JumpIfMissing {
                    src: found,
                    target: missing,
                });
                Subject::Value(found)
            }
        }
    }

    /// Runs `body` for each item of a list, or each value of a map by key.
    fn iterate(
        &mut self,
        subject: Subject,
        site: &Site,
        body: impl FnOnce(&mut Self, Register, LoopSlot) -> Lowered,
    ) -> Lowered {
        let value = self.subject(subject);
        let failed = self.unassertable(Unassertable::NotAListOrMap, value, site.clone());
        if let Subject::Struct(_) = subject {
            self.block.jump(failed);
        }
        let items = self.block.register();
        let convert = Operation::ToIterable {
            dst: items,
            src: value,
            target: failed,
        };
        self.block.push(convert);
        let mut result = Ok(());
        self.each_at(items, |this, item, slot| result = body(this, item, slot));
        result
    }

    /// A list: its length is compared, and each item with the tree at its index.
    fn positional(
        &mut self,
        items: &[Tree],
        subject: Subject,
        path: &[Segment],
        site: Site,
        depth: usize,
    ) -> Lowered {
        let value = self.subject(subject);
        let no_list = self.unassertable(Unassertable::NotAList, value, site.clone());
        if let Subject::Struct(_) = subject {
            self.block.jump(no_list);
        }
        let (null, differs) = (self.block.label(), self.block.label());
        let (same, end) = (self.block.label(), self.block.label());
        let length = items.len() as u32;
        let shorter = |length, target| Operation::JumpIfShorter {
            src: value,
            length: ItemCount(length),
            target,
        };
        self.block.push(Operation::JumpIfNull {
            src: value,
            target: null,
        });
        self.block.push(Operation::JumpIfNotList {
            src: value,
            target: no_list,
        });
        self.block.push(shorter(length, differs));
        self.block.push(shorter(length.saturating_add(1), same));
        self.block.place(differs);
        self.note_failure(AssertionFailure::Length, value, site.clone());
        self.block.jump(end);
        self.block.place(null);
        self.note_failure(AssertionFailure::NullList, value, site);
        self.block.jump(end);
        self.block.place(same);
        for (index, item) in items.iter().enumerate() {
            let found = self.load(|dst| Operation::LoadIndex {
                dst,
                src: value,
                index: ItemIndex(index as u32),
            });
            let mut path = path.to_vec();
            path.push(Segment::Text(format!("[{index}]")));
            self.assertion(item, Subject::Value(found), &path, depth + 1)?;
        }
        self.block.place(end);
        Ok(())
    }

    /// A leaf: a value to compare with, or an expression that computes one.
    fn assertion_leaf(&mut self, leaf: &Tree, subject: Subject, site: Site) -> Lowered {
        let value = self.subject(subject);
        let expression = read_leaf(leaf)?;
        let failed = self.unassertable(Unassertable::Error, Register::SUBJECT, site.clone());
        let expected = match &expression {
            Some(expression) => self.expression(expression, Current::Value(value), failed, true),
            None => self.constant(&leaf.value),
        };
        let kind = match (&leaf.value, subject) {
            (TreeValue::Bool(_), Subject::Struct(_)) => "bool",
            (TreeValue::Int(_), Subject::Struct(_)) => "int64",
            (TreeValue::Float(_), Subject::Struct(_)) => "float64",
            (TreeValue::String(_), Subject::Struct(_)) if expression.is_none() => "string",
            _ => {
                let compare = Operation::AssertValue {
                    actual: value,
                    expected,
                };
                self.block.push(compare.site(site));
                return Ok(());
            }
        };
        let text = format!("types are not comparable, {kind} - struct");
        self.fail(&text, failed);
        Ok(())
    }

    /// The value of a subject.
    fn subject(&mut self, subject: Subject) -> Register {
        match subject {
            Subject::Payload => self.load(|dst| Operation::LoadPayload {
                dst,
                part: PayloadPart::Whole,
            }),
            Subject::Value(value) | Subject::Struct(value) => value,
        }
    }

    fn note_failure(&mut self, failure: AssertionFailure, value: Register, site: Site) {
        let note = Operation::NoteFailure {
            src: value,
            failure,
        };
        self.block.push(note.site(site));
    }

    /// A label that ends the rule as an error.
    fn unassertable(&mut self, reason: Unassertable, value: Register, site: Site) -> Label {
        let end = Operation::ReturnUnassertable { src: value, reason };
        self.apart(end.site(site))
    }

    /// Names a value, until [`Emitter::unbind`].
    fn bind(&mut self, name: &str, value: Register) {
        if let Some(bindings) = &mut self.bindings {
            bindings.push((name.into(), value));
        }
    }

    /// Adds names; returns how many there were before.
    fn bound(&mut self, names: &[(Box<str>, Register)]) -> usize {
        self.bindings.as_mut().map_or(0, |bindings| {
            let before = bindings.len();
            bindings.extend_from_slice(names);
            before
        })
    }

    fn unbind(&mut self, visible: usize) {
        if let Some(bindings) = &mut self.bindings {
            bindings.truncate(visible);
        }
    }

    /// What only expressions in assertion trees have (docs/spec/assert.md §8).
    pub(super) fn assertion_expression(
        &mut self,
        node: &AssertionNode,
        current: Current,
        on_error: Label,
    ) -> Register {
        match node {
            // Kyverno's engine passes no root.
            AssertionNode::Root => self.constant(&TreeValue::Null),
            AssertionNode::Variable(name) => self.named_value(name, on_error),
            AssertionNode::Arithmetic {
                operator,
                left,
                right,
            } => {
                let left = self.number(left, current, on_error);
                let right = self.number(right, current, on_error);
                self.arithmetic(*operator, left, right)
            }
            AssertionNode::Sign { negative, operand } => {
                let operand = self.number(operand, current, on_error);
                let sign = if *negative { -1.0 } else { 1.0 };
                let sign = self.constant(&TreeValue::Float(sign));
                self.arithmetic(Arithmetic::Multiply, operand, sign)
            }
            AssertionNode::Let { bindings, body } => {
                let values: Vec<(Box<str>, Register)> = bindings
                    .iter()
                    .map(|(name, value)| {
                        let value = self.expression(value, current, on_error, true);
                        (name.clone(), value)
                    })
                    .collect();
                let visible = self.bound(&values);
                let result = self.expression(body, current, on_error, true);
                self.unbind(visible);
                result
            }
        }
    }

    /// `$name`: a binding, or else a context entry of the rule.
    fn named_value(&mut self, name: &str, on_error: Label) -> Register {
        let mut bound = self.bindings.iter().flatten().rev();
        if let Some((_, value)) = bound.find(|(bound, _)| **bound == *name) {
            return *value;
        }
        if self.scope.entries_named(&[name]).is_empty() {
            return self.fail(&format!("variable not defined: ${name}"), on_error);
        }
        // The entry's own expressions do not belong to the tree.
        let bindings = self.bindings.take();
        let value = self.with_rare_code_inline(|this| this.query(name, on_error));
        self.bindings = bindings;
        value
    }

    /// An operand: any number is converted to a float.
    pub(super) fn number(
        &mut self,
        operand: &Expression,
        current: Current,
        on_error: Label,
    ) -> Register {
        let value = self.expression(operand, current, on_error, true);
        match operand.node {
            Node::Literal(_) => value,
            _ => self.load(|dst| Operation::ToFloat { dst, src: value }),
        }
    }

    fn arithmetic(&mut self, operator: Arithmetic, left: Register, right: Register) -> Register {
        let operator = match operator {
            Arithmetic::Add => ArithmeticOperator::Add,
            Arithmetic::Subtract => ArithmeticOperator::Subtract,
            Arithmetic::Multiply => ArithmeticOperator::Multiply,
            Arithmetic::Divide => ArithmeticOperator::Divide,
            Arithmetic::DivideWhole => ArithmeticOperator::DivideWhole,
            Arithmetic::Modulo => ArithmeticOperator::Remainder,
        };
        self.load(|dst| Operation::Arithmetic {
            dst,
            left,
            right,
            operator,
        })
    }
}

/// The path of a key: the key as written, including its modifiers.
fn with_key(path: &[Segment], key: &str) -> Vec<Segment> {
    let mut path = path.to_vec();
    path.push(Segment::Text(match (path.is_empty(), key) {
        (_, "") => "[]".into(),
        (true, key) => key.into(),
        (false, key) => format!(".{key}"),
    }));
    path
}
