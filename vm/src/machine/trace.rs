//! What a tracing run tells its observer: for every instruction with a site, what it tested
//! and the result.

use kpvm_format::instruction::immediate::{AssertionFailure, Unassertable};
use kpvm_format::instruction::{
    EntryId, Field, Instruction, Op, OperandKind, Operation, RegisterId,
};
use kpvm_format::table::SiteKind;

use super::assertion::is_public;
use super::explain::is_secret_path;
use super::finding::Shown;
use super::{Machine, RequestFacts, Setting, Subject, World};
use crate::document::{NodeId, View};
use crate::engine::observer::{EntryOutcome, Event, Facts, SeenValue, Test, Tested};

/// An entry of a label or annotation pattern that was tested.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenTag {
    pub(super) entry: u32,
    /// The member whose key it took, or the value found.
    pub(super) expanded: Option<NodeId>,
    pub(super) found: NodeId,
    pub(super) pattern: Option<NodeId>,
    pub(super) held: bool,
}

impl World<'_> {
    /// Tells the observer, if there is one.
    #[cold]
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.observe(event);
        }
    }
}

impl Machine {
    /// Reports an instruction that ran; `held`: it fell through.
    #[cold]
    pub(super) fn report(
        &mut self,
        instruction: &Instruction,
        number: u32,
        held: bool,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) {
        let Some(observer) = world.observer.as_deref_mut() else {
            return;
        };
        let Some(operation) = Operation::decode(instruction) else {
            return;
        };
        let tables = setting.tables;
        if let Operation::WrapError { .. } | Operation::WrapPath { .. } = operation {
            return observer.observe(&Event::Failure(&self.failure_text));
        }
        if operation == Operation::CountPass {
            return observer.observe(&Event::ElementPassed);
        }
        let view = world.buffer.view(setting.texts, tables.symbols);
        if let Operation::RunChecks { .. } = operation {
            for (control, path, value) in self.findings.each(Shown { tables, view }) {
                let value = seen(view, value);
                let path = &path;
                observer.observe(&Event::Finding {
                    control,
                    path,
                    value,
                });
            }
            return;
        }
        if let Operation::Exempt { exclusion, .. } = operation {
            return observer.observe(&Event::Excluded {
                exclusion: exclusion.0,
                findings: self.findings.taken(),
            });
        }
        let Some(site) = tables.site(number) else {
            return;
        };
        let seen = |node| seen(view, node);
        let held = match site.kind() {
            SiteKind::Absence => !held,
            _ => held,
        };
        let path = self.path_of(site, view, tables);
        let subject = match operation {
            Operation::WrapConditional { .. } | Operation::WrapGlobal { .. } => {
                return observer.observe(&Event::AnchorSkips { site, path });
            }
            Operation::AlternativeFailed { index } => {
                return observer.observe(&Event::AlternativeFailed {
                    site,
                    index: index.0,
                    skipped: self.error.is_skip(),
                });
            }
            Operation::AlternativeFailedAt { loop_slot } => {
                return observer.observe(&Event::AlternativeFailed {
                    site,
                    index: self.loop_index(loop_slot),
                    skipped: self.error.is_skip(),
                });
            }
            Operation::LoopBegin {
                loop_slot, item, ..
            }
            | Operation::LoopNext {
                loop_slot, item, ..
            } => {
                // `LoopNext` jumps back when there is an element, `LoopBegin` does not.
                let is_over = held == (operation.op() == Op::LoopNext);
                return observer.observe(&if is_over {
                    Event::ElementsEnd { site }
                } else {
                    Event::Element {
                        site,
                        index: self.loop_index(loop_slot),
                        value: seen(self.get(item)),
                    }
                });
            }
            // The test of the anchored key has been reported already.
            Operation::FailConditional { .. } | Operation::FailNegation { .. } => return,
            Operation::TestTags { .. } => {
                for tag in &self.seen_tags {
                    let key = match tag.expanded {
                        Some(member) => view.key_str(member),
                        None => tables
                            .tag_entries
                            .get(tag.entry as usize)
                            .map_or("", |entry| tables.text(entry.key)),
                    };
                    observer.observe(&Event::Test(Test {
                        instruction: number,
                        site,
                        held: tag.held,
                        subject: Tested::Tag {
                            entry: tag.entry,
                            key,
                            found: seen(tag.found),
                            pattern: tag.pattern.map(seen),
                        },
                        path,
                    }));
                }
                self.seen_tags.clear();
                return;
            }
            Operation::TestCondition { key, value, .. } => Tested::Condition {
                key: seen(self.get(key)),
                value: seen(self.get(value)),
            },
            _ if matches!(site.kind(), SiteKind::Filter | SiteKind::Exclusion)
                || operation.op() == Op::JumpIfNoUser =>
            {
                Tested::Request(facts(view, setting.subject, setting.request))
            }
            _ => {
                let hidden = setting.subject.is_secret && hides(operation.op(), &path.to_string());
                let seen = |node| SeenValue {
                    hidden,
                    ..seen(node)
                };
                let found = value_register(operation).map(|register| self.get(register));
                let pattern = match operation {
                    Operation::TestValue { pattern, .. } => Some(pattern),
                    Operation::AssertValue { expected, .. } => Some(expected),
                    _ => None,
                };
                Tested::Value {
                    found: seen(found.unwrap_or(NodeId::MISSING)),
                    pattern: pattern.map(|register| seen(self.get(register))),
                }
            }
        };
        observer.observe(&Event::Test(Test {
            instruction: number,
            site,
            held,
            subject,
            path,
        }));
    }

    /// Reports the result of a context entry.
    #[cold]
    pub(super) fn report_entry(
        &self,
        entry: EntryId,
        ending: super::Ending,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) {
        let Some(observer) = world.observer.as_deref_mut() else {
            return;
        };
        let view = world.buffer.view(setting.texts, setting.tables.symbols);
        let outcome = match ending {
            super::Ending::Value(value) => EntryOutcome::Loaded(seen(view, value)),
            super::Ending::Nothing => EntryOutcome::Missing,
            super::Ending::Failed { .. } => EntryOutcome::Failed(&self.failure_text),
            _ => EntryOutcome::Failed("evaluation limit exceeded"),
        };
        observer.observe(&Event::EntryEnds {
            entry: entry.0,
            outcome,
        });
    }
}

/// The register that an operation tests, if that is its first operand.
fn value_register(operation: Operation) -> Option<RegisterId> {
    match operation {
        // There is no value, or the reason is an error rather than the value.
        Operation::NoteFailure {
            failure: AssertionFailure::Missing,
            ..
        }
        | Operation::ReturnUnassertable {
            reason: Unassertable::Error,
            ..
        } => None,
        _ => {
            let mut operands = operation.op().operands().iter();
            operands
                .any(|operand| operand.field == Field::A && operand.kind == OperandKind::Source)
                .then(|| RegisterId(operation.encode().a))
        }
    }
}

/// Whether a Secret's value at that path must not be shown.
fn hides(op: Op, path: &str) -> bool {
    match op {
        Op::AssertValue | Op::NoteFailure | Op::ReturnUnassertable => !is_public(path),
        _ => is_secret_path(path),
    }
}

fn seen(view: View<'_>, node: NodeId) -> SeenValue<'_> {
    SeenValue {
        view,
        node,
        hidden: false,
    }
}

fn facts<'e>(view: View<'e>, subject: &Subject<'e>, request: &RequestFacts<'e>) -> Facts<'e> {
    Facts {
        group: request.group,
        version: request.version,
        kind: request.kind,
        resource: request.resource,
        subresource: request.subresource,
        operation: request.operation_name,
        name: subject.matched_name,
        namespace: subject.matched_namespace(),
        labels: seen(view, subject.labels),
        annotations: seen(view, subject.annotations),
        namespace_labels: request.namespace_labels,
        user: request.user,
    }
}
