//! Assertion trees (docs/spec/assert.md): what they are about, how values are compared, and what
//! failed.
//!
//! A failure is noted and the tree goes on; what cannot be compared ends it. Both are
//! worded here, with the path that the instruction's site gives.

use kpvm_format::instruction::LoopSlot;
use kpvm_format::instruction::immediate::{
    AssertionFailure, ForeachDepth, PayloadPart, Unassertable,
};
use kpvm_format::site::{InstructionId, Segment};

use super::failure::{Flow, Outcome};
use super::{Ending, FALSE, Machine, NULL, Setting, TRUE, World};
use crate::document::{Kind, Label, NodeId, View};
use crate::function::{FunctionError, Values, go_syntax, spend};
use crate::text;

/// Bytes of a rendered failure that cost one step, and the steps of one failure besides:
/// fuel bounds the memory of all of them.
const BYTES_PER_STEP: u64 = 4;
const STEPS_PER_FAILURE: u64 = 64;

/// One failure of a tree.
#[derive(Debug)]
pub(crate) struct FailedAssertion {
    /// The whole text.
    pub(crate) text: String,
    /// Where in the resource, as far as literal keys lead there.
    pub(crate) path: String,
    /// The value found.
    pub(crate) value: NodeId,
    /// Whether it must not be shown.
    pub(crate) hides: bool,
    /// The instruction, counted in the code section.
    pub(crate) instruction: InstructionId,
}

/// What is wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// It is not the expected one.
    Unequal(NodeId),
    /// It cannot be looked at as the tree wants.
    Form(AssertionFailure),
}

/// How two values compare.
enum Comparison {
    Equal,
    Unequal,
    /// They cannot be compared, for that reason.
    Refused(String),
}

impl Machine {
    /// Compares a value with the expected one; `index` is the instruction's number in the
    /// code section.
    pub(super) fn assert_value(
        &mut self,
        [value, expected]: [NodeId; 2],
        index: InstructionId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let view = setting.view(world);
        match compare(expected, value, &view, &mut self.fuel) {
            Ok(Comparison::Equal) => Flow::Next,
            Ok(Comparison::Unequal) => {
                let wrong = Wrong::Unequal(expected);
                self.note_failure(wrong, value, index, setting, world)
            }
            Ok(Comparison::Refused(reason)) => {
                self.failure_text = reason;
                self.unassertable(value, Unassertable::Error, index, setting, world)
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Notes a failure that has nothing to do with an expected value.
    pub(super) fn assertion_fails(
        &mut self,
        value: NodeId,
        failure: AssertionFailure,
        index: InstructionId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        self.note_failure(Wrong::Form(failure), value, index, setting, world)
    }

    /// Ends the rule by what was noted.
    pub(super) fn end_assertion(&self) -> Flow {
        Flow::End(match self.failures.is_empty() {
            true => Ending::Pass,
            false => Ending::Assertions,
        })
    }

    /// docs/spec/assert.md §7.
    fn note_failure(
        &mut self,
        wrong: Wrong,
        value: NodeId,
        index: InstructionId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        match self.try_note(wrong, value, index, setting, world) {
            Ok(()) => Flow::Next,
            Err(error) => self.refuse(error),
        }
    }

    fn try_note(
        &mut self,
        wrong: Wrong,
        value: NodeId,
        index: InstructionId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Result<(), FunctionError> {
        let path = self.assertion_path(index, setting, world);
        let hides = setting.subject.is_secret && !is_public(&path);
        let is_missing = wrong == Wrong::Form(AssertionFailure::Missing);
        let body = match wrong {
            Wrong::Form(AssertionFailure::Missing) => {
                "Required value: field not found in the input object".to_owned()
            }
            _ => self.with_values(setting, world, |values| {
                let actual = shown_actual(values, value, hides)?;
                let wanted = match wrong {
                    Wrong::Unequal(expected) => {
                        let expected = shown_expected(values, expected, hides)?;
                        format!("Expected value: {expected}")
                    }
                    Wrong::Form(AssertionFailure::NullList) => "value is null".into(),
                    Wrong::Form(AssertionFailure::Length) => "lengths of slices don't match".into(),
                    Wrong::Form(AssertionFailure::Missing | AssertionFailure::Null) => {
                        "invalid value, must not be null".into()
                    }
                };
                Ok::<_, FunctionError>(format!("Invalid value: {actual}: {wanted}"))
            })?,
        };
        let mut text = format!("{path}: {body}");
        text::truncate(&mut text, setting.limits.message_bytes);
        let cost = STEPS_PER_FAILURE + (path.len() + text.len()) as u64 / BYTES_PER_STEP;
        self.with_values(setting, world, |values| values.charge(cost))?;
        let path = self.resource_path(index, setting, world);
        self.failures.push(FailedAssertion {
            text,
            path,
            value: if is_missing { NodeId::MISSING } else { value },
            hides,
            instruction: index,
        });
        Ok(())
    }

    /// Ends the rule as an error.
    pub(super) fn unassertable(
        &mut self,
        value: NodeId,
        reason: Unassertable,
        index: InstructionId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let path = self.assertion_path(index, setting, world);
        let hides = setting.subject.is_secret && !is_public(&path);
        let wanted = match reason {
            Unassertable::Error => None,
            Unassertable::NotAList => Some("a slice"),
            Unassertable::NotAListOrMap => Some("a slice or a map"),
        };
        let body = match wanted {
            None => Ok(format!("Internal error: {}", self.failure_text)),
            Some(wanted) => self.with_values(setting, world, |values| {
                let actual = shown_actual(values, value, hides)?;
                Ok(format!("Invalid value: {actual}: expected {wanted}"))
            }),
        };
        match body {
            Ok(body) => {
                self.failure_text = format!("failed to apply assertion: {path}: {body}");
                Flow::End(Ending::Failed {
                    depth: ForeachDepth::default(),
                })
            }
            Err(error) => self.refuse(error),
        }
    }

    fn assertion_path(
        &mut self,
        index: InstructionId,
        setting: Setting<'_>,
        world: &World<'_>,
    ) -> String {
        match self.render_path(index, setting.scene(world)) {
            path if path.is_empty() => "<nil>".into(),
            path => path,
        }
    }

    /// The way that the literal keys of a path lead into the object, in slashes. It ends
    /// at the first expression: what that looks at is below.
    fn resource_path(
        &self,
        index: InstructionId,
        setting: Setting<'_>,
        world: &World<'_>,
    ) -> String {
        let scene = setting.scene(world);
        let tables = scene.tables;
        let site = tables.site(index);
        let mut segments = Vec::new();
        if let Some(site) = site {
            tables.path_segments(site.path, &mut |segment| segments.push(segment));
        }
        let mut path = String::new();
        for (number, segment) in segments.into_iter().enumerate() {
            let text = match segment {
                Segment::Text(text) => text,
                Segment::Loop(slot) => {
                    let item = self.loop_item(LoopSlot(slot));
                    match scene.view.key_of(item) {
                        Some(key) => path.push_str(key),
                        None => path.push_str(&self.loop_index(LoopSlot(slot)).to_string()),
                    }
                    path.push('/');
                    continue;
                }
            };
            let key = text.strip_prefix('.').unwrap_or(text);
            let key = match key.strip_prefix('~') {
                Some(behind) => behind.split_once('.').map_or(key, |(_, key)| key),
                None => key,
            };
            let key = key.split("->").next().unwrap_or(key);
            match (number, key) {
                (0, "object") => path.push('/'),
                (0, _) => break,
                (_, "[" | "]") => {}
                (_, key) if key.starts_with(['(', '\\']) => break,
                (_, key) => {
                    path.push_str(key.trim_start_matches('[').trim_end_matches(']'));
                    path.push('/');
                }
            }
        }
        path
    }

    /// What the tree is about (docs/spec/assert.md §3), or a part of it.
    pub(super) fn payload(
        &mut self,
        part: PayloadPart,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Outcome {
        self.with_values(setting, world, |values| match part {
            PayloadPart::Whole => whole_payload(setting, values),
            part => payload_part(part, setting, values),
        })
    }
}

/// All parts, as expressions see them.
fn whole_payload(setting: Setting<'_>, values: &mut Values<'_>) -> Outcome {
    let parts = [
        ("object", PayloadPart::Object),
        ("oldObject", PayloadPart::OldObject),
        ("admissionInfo", PayloadPart::AdmissionInfo),
        ("operation", PayloadPart::Operation),
        ("namespaceLabels", PayloadPart::NamespaceLabels),
        ("admissionOperation", PayloadPart::AdmissionOperation),
        ("requestResource", PayloadPart::RequestResource),
        ("resourceKind", PayloadPart::ResourceKind),
    ];
    let mut members = Vec::with_capacity(parts.len());
    for (name, part) in parts {
        let label = values.label(name)?;
        let value = match part {
            // To expressions this one is opaque too: its type is none that they know.
            PayloadPart::NamespaceLabels => new_opaque(values)?,
            part => payload_part(part, setting, values)?,
        };
        members.push((label, value));
    }
    values.new_map(&members)
}

fn payload_part(part: PayloadPart, setting: Setting<'_>, values: &mut Values<'_>) -> Outcome {
    let facts = setting.request;
    let texts = |values: &mut Values<'_>, members: &[(&str, &str)]| {
        let mut labelled = Vec::with_capacity(members.len());
        for (key, text) in members {
            labelled.push((values.label(key)?, values.new_text(text)?));
        }
        values.new_map(&labelled)
    };
    match part {
        PayloadPart::Whole => whole_payload(setting, values),
        PayloadPart::Object => facts.object.map_or_else(|| values.new_map(&[]), Ok),
        PayloadPart::OldObject if facts.is_old => Ok(NULL),
        PayloadPart::OldObject => facts.old_object.map_or_else(|| values.new_map(&[]), Ok),
        PayloadPart::AdmissionInfo => {
            let user = facts.context_user.unwrap_or_default();
            let list = |values: &mut Values<'_>, list: &[&str]| {
                let mut items = Vec::with_capacity(list.len());
                for text in list {
                    items.push(values.new_text(text)?);
                }
                values.new_list(&items)
            };
            let info = [
                (values.label("username")?, values.new_text(user.username)?),
                (values.label("uID")?, values.new_text("")?),
                (values.label("groups")?, list(values, user.groups)?),
            ];
            let members = [
                (values.label("roles")?, list(values, user.roles)?),
                (
                    values.label("clusterRoles")?,
                    list(values, user.cluster_roles)?,
                ),
                (values.label("admissionUserInfo")?, values.new_map(&info)?),
                (values.label("dryRun")?, FALSE),
            ];
            values.new_map(&members)
        }
        PayloadPart::Operation => new_opaque(values),
        PayloadPart::NamespaceLabels => texts(values, facts.namespace_labels),
        PayloadPart::AdmissionOperation => Ok(if facts.context_user.is_some() {
            TRUE
        } else {
            FALSE
        }),
        PayloadPart::RequestResource => {
            texts(values, &[("group", ""), ("version", ""), ("resource", "")])
        }
        PayloadPart::ResourceKind => {
            let kind = [
                ("group", facts.group),
                ("version", facts.version),
                ("kind", facts.kind),
                ("subResource", facts.subresource),
            ];
            texts(values, &kind)
        }
    }
}

/// A value of a type that neither expressions nor comparisons know.
fn new_opaque(values: &mut Values<'_>) -> Outcome {
    values.buffer.push_reference(Label::ITEM);
    Ok(values.buffer.take()?)
}

/// Whether a value of a Secret may be shown.
pub(super) fn is_public(path: &str) -> bool {
    path.starts_with("object.metadata") || path.starts_with("oldObject.metadata")
}

/// docs/spec/assert.md §7, `<actual>`.
fn shown_actual(
    values: &mut Values<'_>,
    value: NodeId,
    hides: bool,
) -> Result<String, FunctionError> {
    match values.view().kind(value) {
        _ if hides => Ok("***".into()),
        None | Some(Kind::Null) => Ok("\"null\"".into()),
        Some(_) => go_syntax(values, value),
    }
}

/// docs/spec/assert.md §7, `<expected>`.
fn shown_expected(
    values: &mut Values<'_>,
    value: NodeId,
    hides: bool,
) -> Result<String, FunctionError> {
    match values.view().kind(value) {
        // What an expression made of the Secret's data is as secret.
        _ if hides => Ok("***".into()),
        None | Some(Kind::Null) => Ok("<nil>".into()),
        Some(_) => go_syntax(values, value),
    }
}

/// docs/spec/assert.md §6.
fn compare(
    expected: NodeId,
    actual: NodeId,
    view: &View<'_>,
    fuel: &mut u64,
) -> Result<Comparison, FunctionError> {
    let mut pairs = Vec::new();
    let mut next = Some((expected, actual));
    while let Some((expected, actual)) = next.take().or_else(|| pairs.pop()) {
        let members = view.len(expected) as u64;
        let bytes = view.text(expected).len() as u64;
        // Each key is looked for among all of the other map's.
        let searched = members * (view.len(actual) as u64 / 16);
        let steps = 1 + bytes / Values::BYTES_PER_STEP + members + searched;
        spend(fuel, steps)?;
        let is_map = |value| view.kind(value) == Some(Kind::Map) && !view.is_reference(value);
        if view.kind(expected) == Some(Kind::List) {
            if view.kind(actual) != Some(Kind::List) {
                return Ok(wrong_kind("a slice", view, actual));
            }
            if view.len(actual) as u64 != members {
                return Ok(Comparison::Unequal);
            }
            pairs.extend(view.children(expected).zip(view.children(actual)).rev());
        } else if is_map(expected) {
            if !is_map(actual) {
                return Ok(wrong_kind("a map", view, actual));
            }
            for member in view.children(expected).rev() {
                let found = match view.key_symbol(member) {
                    Some(symbol) => view.get(actual, symbol),
                    None => view.get_text(actual, view.key_bytes(member)),
                };
                if found.is_missing() {
                    return Ok(Comparison::Unequal);
                }
                pairs.push((member, found));
            }
        } else {
            match compare_scalars(expected, actual, view) {
                Comparison::Equal => {}
                other => return Ok(other),
            }
        }
    }
    Ok(Comparison::Equal)
}

fn wrong_kind(wanted: &str, view: &View<'_>, actual: NodeId) -> Comparison {
    let found = kind_word(view, actual);
    Comparison::Refused(format!(
        "invalid actual value, must be {wanted}, found {found}"
    ))
}

fn compare_scalars(expected: NodeId, actual: NodeId, view: &View<'_>) -> Comparison {
    let is_null = |value| matches!(view.kind(value), None | Some(Kind::Null));
    let as_float = |value| view.float(value).or(view.int(value).map(|int| int as f64));
    let equal = match (view.kind(expected), view.kind(actual)) {
        _ if is_null(expected) || is_null(actual) => is_null(expected) == is_null(actual),
        (Some(Kind::False | Kind::True), Some(Kind::False | Kind::True)) => {
            view.bool(expected) == view.bool(actual)
        }
        (Some(Kind::String), Some(Kind::String)) => view.text(expected) == view.text(actual),
        (Some(Kind::Int), Some(Kind::Int)) => view.int(expected) == view.int(actual),
        (Some(Kind::Int | Kind::Float), Some(Kind::Int | Kind::Float)) => {
            as_float(expected) == as_float(actual)
        }
        _ if view.is_reference(expected) && view.is_reference(actual) => true,
        _ => {
            return Comparison::Refused(format!(
                "types are not comparable, {} - {}",
                kind_word(view, expected),
                kind_word(view, actual)
            ));
        }
    };
    if equal {
        Comparison::Equal
    } else {
        Comparison::Unequal
    }
}

/// Go's word for a value's kind.
fn kind_word(view: &View<'_>, value: NodeId) -> &'static str {
    match view.kind(value) {
        None | Some(Kind::Null) => "invalid",
        Some(Kind::False | Kind::True) => "bool",
        Some(Kind::Int) => "int64",
        Some(Kind::Float) => "float64",
        Some(Kind::String) => "string",
        Some(Kind::List) => "slice",
        // The one opaque value that is likely to be compared is the operation.
        Some(Kind::Map) if view.is_reference(value) => "string",
        Some(Kind::Map) => "map",
    }
}
