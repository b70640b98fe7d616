//! Turns the table of controls into one block of checks over a pod
//! (docs/spec/pod-security.md §6): first the checks of the pod itself, then one loop over
//! the containers of each kind. Violations are recorded and the checks continue; a pod
//! without violations costs only its tests.
//!
//! The subject of the block is a map with `spec` and `metadata`, decoded.

use kpvm_format::instruction::immediate::ItemCount;
use kpvm_format::instruction::immediate::NoteFlags as How;
use kpvm_format::instruction::immediate::TextOf;
use kpvm_syntax::tree::TreeValue;

use super::controls::{CONTROLS, Control, Demand, Inherited, Of, Revision, Test};
use crate::frontend::emitter::Emitter;
use crate::frontend::scope::Scope;
use crate::ir::{ControlId, Label, Module, Operation, Register, TextListId};
use crate::source::SourceId;

/// The lists of containers, in the order in which they are visited.
pub const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Members of a pod's spec that checks need besides the containers.
pub fn spec_fields() -> Vec<&'static str> {
    let tests = CONTROLS
        .iter()
        .flat_map(|control| control.revisions)
        .flat_map(|revision| revision.tests);
    let mut fields: Vec<&str> = tests
        .filter_map(|test| match test.of {
            Of::Pod(path) => path.split(['.', '[']).next(),
            Of::Containers(_) | Of::Annotations(_) | Of::ContainerAnnotations(_) => None,
        })
        .chain(["os"])
        .collect();
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// The general paths of the errors of a control, over all revisions.
pub fn error_paths(control: &Control) -> Vec<String> {
    let tests = control.revisions.iter().flat_map(|revision| revision.tests);
    let mut paths: Vec<String> = tests
        .flat_map(|test| match test.of {
            Of::Pod(path) => shown_paths(path, "spec", &test.demand),
            Of::Containers(path) => CONTAINERS
                .iter()
                .flat_map(|list| shown_paths(path, &format!("spec.{list}[*]"), &test.demand))
                .collect(),
            Of::Annotations(_) | Of::ContainerAnnotations(_) => Vec::new(),
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

fn shown_paths(path: &str, prefix: &str, demand: &Demand) -> Vec<String> {
    match demand {
        Demand::Set { below, .. } if !below.is_empty() => vec![format!("{prefix}.{path}.{below}")],
        Demand::Sourced { forbidden, .. } => forbidden
            .iter()
            .chain(&["unknown"])
            .map(|key| format!("{prefix}.{path}.{key}"))
            .collect(),
        _ => vec![format!("{prefix}.{path}")],
    }
}

/// A revision with the number of its control.
pub type Chosen = (ControlId, &'static Revision);

/// Writes the block of checks for the chosen revisions.
pub fn emitter<'p>(chosen: &[Chosen], source: SourceId, module: &'p mut Module) -> Emitter<'p> {
    let emitter = Emitter::new(source, Scope::default(), module);
    let mut checks = Checks {
        emitter,
        spec: Register::SUBJECT,
        annotations: Register::SUBJECT,
        lists: Vec::new(),
    };
    checks.spec = checks.field(Register::SUBJECT, "spec");
    let metadata = checks.field(Register::SUBJECT, "metadata");
    checks.annotations = checks.field(metadata, "annotations");
    checks.all(chosen);
    checks.emitter.block.push(Operation::ReturnTrue);
    checks.emitter
}

/// A block of checks under construction.
struct Checks<'p> {
    emitter: Emitter<'p>,
    spec: Register,
    annotations: Register,
    /// Lists of texts with their numbers.
    lists: Vec<(Vec<String>, TextListId)>,
}

/// What a finding reports.
#[derive(Clone, Copy)]
struct Noted<'n> {
    control: ControlId,
    how: How,
    path: &'n str,
    /// The container, if there is one.
    owner: Option<Register>,
}

/// One test with its surroundings.
#[derive(Clone, Copy)]
struct Case {
    control: ControlId,
    test: &'static Test,
    spares_windows: bool,
}

impl Case {
    /// The object without which there is nothing to test: a member of the pod's spec or of
    /// the container, or of its security context.
    fn guard(&self) -> Option<&'static str> {
        let (Of::Pod(path) | Of::Containers(path)) = self.test.of else {
            return None;
        };
        let mut dots = path.match_indices('.').map(|(at, _)| at);
        let skipped = usize::from(path.starts_with("securityContext."));
        let end = dots.nth(skipped)?;
        let object = path.get(..end)?;
        (self.test.demand.allows_nothing() && !object.contains('[')).then_some(object)
    }
}

impl Checks<'_> {
    fn all(&mut self, chosen: &[Chosen]) {
        let cases: Vec<Case> = chosen
            .iter()
            .flat_map(|&(control, revision)| {
                revision.tests.iter().map(move |test| Case {
                    control,
                    test,
                    spares_windows: revision.spares_windows,
                })
            })
            .collect();
        self.for_systems(&cases, self.spec, |checks, case| match case.test.of {
            Of::Pod(path) if !path.contains("[*]") => {
                checks.test_path(case, path, checks.spec, "spec", None);
            }
            Of::Annotations(keys) => checks.test_annotations(case, keys),
            Of::Pod(_) | Of::Containers(_) | Of::ContainerAnnotations(_) => {}
        });
        self.test_lists(&cases);
        for list in CONTAINERS {
            let containers = self.field(self.spec, list);
            let of_containers: Vec<Case> = cases
                .iter()
                .filter(|case| {
                    matches!(
                        case.test.of,
                        Of::Containers(_) | Of::ContainerAnnotations(_)
                    )
                })
                .copied()
                .collect();
            self.for_each(containers, |checks, container| {
                checks.for_systems(&of_containers, container, |checks, case| {
                    match case.test.of {
                        Of::Containers(path) => {
                            let shown = format!("spec.{list}[*]");
                            checks.test_path(case, path, container, &shown, Some(container));
                        }
                        Of::ContainerAnnotations(prefix) => {
                            checks.test_container_annotation(case, prefix, container);
                        }
                        Of::Pod(_) | Of::Annotations(_) => {}
                    }
                });
            });
        }
    }

    /// Emits tests of the value `from`; those that Windows is exempt from are skipped by a
    /// jump for pods that run on it.
    fn for_systems(
        &mut self,
        cases: &[Case],
        from: Register,
        mut emit: impl FnMut(&mut Self, &Case),
    ) {
        let (spare, all): (Vec<Case>, Vec<Case>) =
            cases.iter().partition(|case| case.spares_windows);
        self.guarded(&all, from, &mut emit);
        if !spare.is_empty() {
            let (spared, elsewhere) = (self.emitter.block.label(), self.emitter.block.label());
            let system = self.field(self.spec, "os");
            let name = self.field(system, "name");
            self.jump_if_null(name, elsewhere);
            self.jump_if_text(name, &["windows"], spared);
            self.emitter.block.place(elsewhere);
            self.guarded(&spare, from, &mut emit);
            self.emitter.block.place(spared);
        }
    }

    /// Emits tests; adjacent ones that test members of the same object are skipped by a
    /// jump if it is missing.
    fn guarded(&mut self, cases: &[Case], from: Register, emit: &mut impl FnMut(&mut Self, &Case)) {
        for group in cases.chunk_by(|a, b| a.guard().is_some() && a.guard() == b.guard()) {
            let behind = self.emitter.block.label();
            let guard = group.first().and_then(Case::guard);
            if let Some(object) = guard.filter(|_| group.len() > 1) {
                let object = self.walk(from, object);
                self.jump_if_null(object, behind);
            }
            group.iter().for_each(|case| emit(self, case));
            self.emitter.block.place(behind);
        }
    }

    /// One loop for all tests of items of the same list of the pod.
    fn test_lists(&mut self, cases: &[Case]) {
        let list_of = |case: &Case| match case.test.of {
            Of::Pod(path) => path.split_once("[*]"),
            Of::Containers(_) | Of::Annotations(_) | Of::ContainerAnnotations(_) => None,
        };
        let mut lists: Vec<&str> = cases
            .iter()
            .filter_map(|case| Some(list_of(case)?.0))
            .collect();
        lists.sort_unstable();
        lists.dedup();
        for list in lists {
            let items = self.walk(self.spec, list);
            self.for_each(items, |checks, item| {
                for case in cases {
                    if let Some((_, rest)) = list_of(case).filter(|(of, _)| *of == list) {
                        let shown = format!("spec.{list}[*]");
                        let rest = rest.strip_prefix('.').unwrap_or(rest);
                        checks.test_path(case, rest, item, &shown, None);
                    }
                }
            });
        }
    }

    /// Tests the value that a path leads to, starting from a value whose path is `shown`.
    fn test_path(
        &mut self,
        case: &Case,
        path: &str,
        from: Register,
        shown: &str,
        owner: Option<Register>,
    ) {
        if let Some((list, rest)) = path.split_once("[*].") {
            let items = self.walk(from, list);
            let shown = format!("{shown}.{list}[*]");
            self.for_each(items, |checks, item| {
                checks.test_path(case, rest, item, &shown, owner);
            });
            return;
        }
        let (parents, key) = path.rsplit_once('.').unwrap_or(("", path));
        let parent = self.walk(from, parents);
        let value = self.walk(parent, key);
        let shown = match path {
            "" => shown.to_owned(),
            path => format!("{shown}.{path}"),
        };
        let noted = Noted {
            control: case.control,
            how: How::at_place(case.test.place).with_if(owner.is_some(), How::OWNED),
            path: &shown,
            owner,
        };
        let has_parent = !parents.is_empty();
        self.demand(&case.test.demand, parent, has_parent, value, noted);
    }

    fn demand(
        &mut self,
        demand: &Demand,
        parent: Register,
        has_parent: bool,
        value: Register,
        noted: Noted<'_>,
    ) {
        let fine = self.emitter.block.label();
        match demand {
            Demand::NotTrue => {
                self.jump_if_false(value, fine);
                self.note(value, noted);
            }
            Demand::NotFalse => {
                self.jump_if_null(value, fine);
                self.jump_if_true(value, fine);
                self.note(value, noted);
            }
            Demand::False => self.demand_false(parent, value, noted, fine),
            Demand::NotZero => {
                self.jump_if_null(value, fine);
                self.check_zero(value, fine);
                self.note(value, noted);
            }
            Demand::Zero => {
                let bad = self.emitter.block.label();
                self.jump_if_null(value, fine);
                self.check_zero(value, bad);
                self.emitter.block.jump(fine);
                self.emitter.block.place(bad);
                self.note(value, noted);
            }
            Demand::OneOf(allowed) => {
                if has_parent {
                    self.jump_if_null(parent, fine);
                }
                self.jump_if_text(value, allowed, fine);
                self.note(value, noted);
            }
            Demand::OneOfIfSet(allowed) => {
                self.jump_if_null(value, fine);
                self.jump_if_text(value, allowed, fine);
                self.note(value, noted);
            }
            Demand::EachOneOf(allowed) => self.demand_each(allowed, value, noted, fine),
            Demand::Holds(text) => self.demand_held(text, value, noted, fine),
            Demand::Set {
                below,
                inherits,
                is_fallback,
            } => {
                let path = match *below {
                    "" => noted.path.to_owned(),
                    below => format!("{}.{below}", noted.path),
                };
                let required = How::REQUIRED.with_if(*is_fallback, How::FALLBACK);
                let noted = Noted {
                    how: noted.how | required,
                    path: &path,
                    ..noted
                };
                self.demand_set(inherits, value, noted, fine);
            }
            Demand::Absent(bad) => {
                self.jump_if_null(value, fine);
                let bad = self.field(value, bad);
                self.note(bad, noted);
            }
            Demand::Sourced { allowed, forbidden } => {
                self.demand_source(allowed, forbidden, value, noted, fine);
            }
            Demand::EmptyUnlisted => {
                self.jump_if_false(value, fine);
                let noted = Noted {
                    how: noted.how | How::UNLISTED,
                    ..noted
                };
                self.note(value, noted);
            }
        }
        self.emitter.block.place(fine);
    }

    fn demand_false(&mut self, parent: Register, value: Register, noted: Noted<'_>, fine: Label) {
        let (unset, missing) = (self.emitter.block.label(), self.emitter.block.label());
        self.jump_if_null(value, unset);
        self.jump_if_false(value, fine);
        self.note(value, noted);
        self.emitter.block.jump(fine);
        self.emitter.block.place(unset);
        self.jump_if_null(parent, missing);
        let nil = self.emitter.constant(&TreeValue::String("nil".into()));
        self.note(nil, noted);
        self.emitter.block.jump(fine);
        self.emitter.block.place(missing);
        self.note_required(value, noted);
    }

    /// A first loop finds out whether any text is bad, a second one collects the bad ones.
    fn demand_each(&mut self, allowed: &[&str], list: Register, noted: Noted<'_>, fine: Label) {
        let bad = self.emitter.block.label();
        self.for_each(list, |checks, item| {
            let next = checks.emitter.block.label();
            checks.jump_if_text(item, allowed, next);
            checks.emitter.block.jump(bad);
            checks.emitter.block.place(next);
        });
        self.emitter.block.jump(fine);
        self.emitter.block.place(bad);
        let collected = self.emitter.block.enter_list();
        let begin = Operation::ListBegin { list: collected };
        self.emitter.block.push(begin);
        self.for_each(list, |checks, item| {
            let next = checks.emitter.block.label();
            checks.jump_if_text(item, allowed, next);
            let push = Operation::ListPush {
                list: collected,
                src: item,
            };
            checks.emitter.block.push(push);
            checks.emitter.block.place(next);
        });
        let values = self.emitter.load(|dst| Operation::ListEnd {
            dst,
            list: collected,
        });
        self.emitter.block.leave_list();
        self.note(values, noted);
    }

    fn demand_held(&mut self, text: &str, list: Register, noted: Noted<'_>, fine: Label) {
        self.for_each(list, |checks, item| {
            checks.jump_if_text(item, &[text], fine);
        });
        let empty = self.emitter.block.label();
        let shorter = Operation::JumpIfShorter {
            src: list,
            length: ItemCount(1),
            target: empty,
        };
        self.emitter.block.push(shorter);
        self.note(list, noted);
        self.emitter.block.jump(fine);
        self.emitter.block.place(empty);
        self.note_required(list, noted);
    }

    fn demand_set(&mut self, inherits: &Inherited, value: Register, noted: Noted<'_>, fine: Label) {
        let unset = self.emitter.block.label();
        self.jump_if_null(value, unset);
        self.emitter.block.jump(fine);
        self.emitter.block.place(unset);
        // The same field of the pod: the part of the path after the container.
        let field = noted.path.split_once("[*].").map_or("", |(_, rest)| rest);
        let of_pod = self.walk(self.spec, field);
        match inherits {
            Inherited::True => self.jump_if_true(of_pod, fine),
            Inherited::OneOf(allowed) => self.jump_if_text(of_pod, allowed, fine),
        }
        self.note(value, noted);
    }

    fn demand_source(
        &mut self,
        allowed: &[&str],
        forbidden: &[&str],
        value: Register,
        noted: Noted<'_>,
        fine: Label,
    ) {
        let has = |checks: &mut Self, key: &str, yes: Label| {
            let no = checks.emitter.block.label();
            let source = checks.field(value, key);
            checks.jump_if_null(source, no);
            checks.emitter.block.jump(yes);
            checks.emitter.block.place(no);
        };
        for key in allowed {
            has(self, key, fine);
        }
        let nothing = self.emitter.constant(&TreeValue::Null);
        for key in forbidden {
            let (yes, no) = (self.emitter.block.label(), self.emitter.block.label());
            has(self, key, yes);
            self.emitter.block.jump(no);
            self.emitter.block.place(yes);
            self.note_below(nothing, key, noted);
            self.emitter.block.jump(fine);
            self.emitter.block.place(no);
        }
        self.note_below(nothing, "unknown", noted);
    }

    fn test_annotations(&mut self, case: &Case, keys: &str) {
        let Demand::OneOf(allowed) = &case.test.demand else {
            return;
        };
        let annotations = self.annotations;
        self.for_each(annotations, |checks, annotation| {
            let (meant, next) = (checks.emitter.block.label(), checks.emitter.block.label());
            checks.jump_if(annotation, TextOf::Key, &[keys], meant);
            checks.emitter.block.jump(next);
            checks.emitter.block.place(meant);
            checks.jump_if_text(annotation, allowed, next);
            checks.note_annotation(case, annotation);
            checks.emitter.block.place(next);
        });
    }

    fn test_container_annotation(&mut self, case: &Case, prefix: &str, container: Register) {
        let Demand::OneOf(allowed) = &case.test.demand else {
            return;
        };
        let fine = self.emitter.block.label();
        self.jump_if_not_map(self.annotations, fine);
        let accumulator = self.emitter.block.enter_accumulator();
        let prefix = self.emitter.module.text(prefix);
        let name = self.field(container, "name");
        let unnamed = self.emitter.block.label();
        for instruction in [
            Operation::TextBegin { accumulator },
            Operation::TextLiteral {
                accumulator,
                text: prefix,
            },
            Operation::JumpIfNull {
                src: name,
                target: unnamed,
            },
            Operation::TextValue {
                accumulator,
                src: name,
                target: unnamed,
            },
        ] {
            self.emitter.block.push(instruction);
        }
        self.emitter.block.place(unnamed);
        let key = self
            .emitter
            .load(|dst| Operation::TextEnd { dst, accumulator });
        self.emitter.block.leave_accumulator();
        let annotation = self.emitter.load(|dst| Operation::GetKeyOf {
            dst,
            src: self.annotations,
            key,
            target: fine,
        });
        self.jump_if_text(annotation, allowed, fine);
        self.note_annotation(case, annotation);
        self.emitter.block.place(fine);
    }

    fn note_annotation(&mut self, case: &Case, annotation: Register) {
        let noted = Noted {
            control: case.control,
            how: How::at_place(case.test.place) | How::KEYED,
            path: "metadata.annotations",
            owner: None,
        };
        self.note(annotation, noted);
    }

    /// A field of a map; missing if the value is not a map.
    fn field(&mut self, map: Register, key: &str) -> Register {
        let key = self.emitter.module.symbol(key);
        self.emitter
            .load(|dst| Operation::LoadField { dst, src: map, key })
    }

    /// The value that a path of keys leads to; the empty path is the value itself.
    fn walk(&mut self, from: Register, path: &str) -> Register {
        let keys = path.split('.').filter(|key| !key.is_empty());
        keys.fold(from, |map, key| self.field(map, key))
    }

    fn for_each(&mut self, list: Register, body: impl FnOnce(&mut Self, Register)) {
        let slot = self.emitter.block.enter_loop();
        let (start, end) = (self.emitter.block.label(), self.emitter.block.label());
        let item = self.emitter.block.register();
        let begin = Operation::LoopBegin {
            loop_slot: slot,
            list,
            item,
            target: end,
        };
        self.emitter.block.push(begin);
        self.emitter.block.place(start);
        body(self, item);
        let next = Operation::LoopNext {
            loop_slot: slot,
            item,
            target: start,
        };
        self.emitter.block.push(next);
        self.emitter.block.leave_loop();
        self.emitter.block.place(end);
    }

    fn jump_if_null(&mut self, src: Register, target: Label) {
        let jump = Operation::JumpIfNull { src, target };
        self.emitter.block.push(jump);
    }

    fn jump_if_true(&mut self, src: Register, target: Label) {
        let jump = Operation::JumpIfTrue { src, target };
        self.emitter.block.push(jump);
    }

    fn jump_if_false(&mut self, src: Register, target: Label) {
        let jump = Operation::JumpIfFalse { src, target };
        self.emitter.block.push(jump);
    }

    fn jump_if_not_map(&mut self, src: Register, target: Label) {
        let jump = Operation::JumpIfNotMap { src, target };
        self.emitter.block.push(jump);
    }

    /// Jumps if a text of a value satisfies one of the wildcards.
    fn jump_if(&mut self, value: Register, of: TextOf, wildcards: &[&str], label: Label) {
        let texts = match self.lists.iter().find(|(known, _)| known == wildcards) {
            Some(&(_, number)) => number,
            None => {
                let number = self.emitter.module.text_list(wildcards);
                let owned = wildcards.iter().map(|&text| text.to_owned()).collect();
                self.lists.push((owned, number));
                number
            }
        };
        let jump = Operation::JumpIfText {
            src: value,
            of,
            texts,
            target: label,
        };
        self.emitter.block.push(jump);
    }

    fn jump_if_text(&mut self, value: Register, wildcards: &[&str], label: Label) {
        self.jump_if(value, TextOf::Value, wildcards, label);
    }

    /// Falls through if a number is 0.
    fn check_zero(&mut self, value: Register, otherwise: Label) {
        if let Some(zero) = self.emitter.module.leaf(&TreeValue::Int(0)) {
            let test = Operation::TestLeaf {
                src: value,
                leaf: zero,
                target: otherwise,
            };
            self.emitter.block.push(test);
        }
    }

    fn note(&mut self, value: Register, noted: Noted<'_>) {
        let path = self.emitter.module.text(noted.path);
        let note = Operation::Note {
            value,
            owner: noted.owner.unwrap_or(value),
            flags: noted.how,
            path,
            control: noted.control,
        };
        self.emitter.block.push(note);
    }

    fn note_required(&mut self, value: Register, noted: Noted<'_>) {
        let noted = Noted {
            how: noted.how | How::REQUIRED,
            ..noted
        };
        self.note(value, noted);
    }

    fn note_below(&mut self, value: Register, key: &str, noted: Noted<'_>) {
        let path = format!("{}.{key}", noted.path);
        let noted = Noted {
            path: &path,
            ..noted
        };
        self.note(value, noted);
    }
}
