//! What a tracing run tells its observer: of every instruction that has a site, what
//! it looked at and what came of it.

use kpvm_format::instruction::{Field, Instruction, Op, OperandKind};
use kpvm_format::site::InstructionId;
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
    /// Tells of an instruction that ran; `held`: it fell through.
    #[cold]
    pub(super) fn report(
        &mut self,
        op: Op,
        instruction: &Instruction,
        number: InstructionId,
        held: bool,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) {
        let Some(observer) = world.observer.as_deref_mut() else {
            return;
        };
        let tables = setting.tables;
        if matches!(op, Op::WrapError | Op::WrapPath) {
            return observer.observe(&Event::Failure(&self.failure_text));
        }
        if op == Op::CountPass {
            return observer.observe(&Event::ElementPassed);
        }
        let view = world.buffer.view(setting.texts, tables.symbols);
        if op == Op::RunChecks {
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
        if op == Op::Exempt {
            return observer.observe(&Event::Excluded {
                exclusion: instruction.c.get(),
                findings: self.findings.taken(),
            });
        }
        let Some(site) = &tables.site(number) else {
            return;
        };
        let value = |register: u8| self.frame.registers[usize::from(register)];
        let seen = |node| seen(view, node);
        let held = match site.kind {
            SiteKind::Absence => !held,
            _ => held,
        };
        let path = self.path_of(site, view, tables);
        let subject = match op {
            Op::WrapConditional | Op::WrapGlobal => {
                let instruction = number;
                return observer.observe(&Event::AnchorSkips {
                    instruction,
                    site,
                    path,
                });
            }
            Op::AlternativeFailed | Op::AlternativeFailedAt => {
                let index = match op {
                    Op::AlternativeFailed => instruction.c.get(),
                    _ => self.loop_index(instruction.a),
                };
                let skipped = self.error.is_skip();
                return observer.observe(&Event::AlternativeFailed {
                    instruction: number,
                    site,
                    index,
                    skipped,
                });
            }
            Op::LoopBegin | Op::LoopNext => {
                // `LoopNext` jumps back when there is an element, `LoopBegin` does not.
                let is_over = held == (op == Op::LoopNext);
                return observer.observe(&if is_over {
                    Event::ElementsEnd { site }
                } else {
                    Event::Element {
                        instruction: number,
                        site,
                        index: self.loop_index(instruction.a),
                        value: seen(value(instruction.e)),
                    }
                });
            }
            // The test of the anchored key has told already.
            Op::FailConditional | Op::FailNegation => return,
            Op::TestTags => {
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
            Op::TestCondition => Tested::Condition {
                key: seen(value(instruction.a)),
                value: seen(value(instruction.b)),
            },
            _ if matches!(site.kind, SiteKind::Filter | SiteKind::Exclusion)
                || op == Op::JumpIfNoUser =>
            {
                Tested::Request(facts(view, setting.subject, setting.request))
            }
            _ => {
                let hidden = setting.subject.is_secret && hides(op, &path.to_string());
                let seen = |node| SeenValue {
                    hidden,
                    ..seen(node)
                };
                Tested::Value {
                    found: seen(match looks_at_register(op, instruction) {
                        true => value(instruction.a),
                        false => NodeId::MISSING,
                    }),
                    pattern: matches!(op, Op::TestValue | Op::AssertValue)
                        .then(|| seen(value(instruction.b))),
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

    /// Tells what came of a context entry.
    #[cold]
    pub(super) fn report_entry(
        &self,
        entry: u32,
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
        observer.observe(&Event::EntryEnds { entry, outcome });
    }
}

/// Whether an operation looks at the value of its first operand.
fn looks_at_register(op: Op, instruction: &Instruction) -> bool {
    let has_value = !matches!(op, Op::NoteFailure | Op::ReturnUnassertable) || instruction.b != 0;
    let mut operands = op.operands().iter();
    has_value
        && operands.any(|operand| operand.field == Field::A && operand.kind == OperandKind::Source)
}

/// Whether a value of a Secret at that path must not be shown.
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
