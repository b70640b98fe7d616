//! `validate.pattern` and `validate.anyPattern` (docs/spec/patterns.md): patterns in, IR out.
//!
//! The order of checks is Kyverno's, since it decides which error is seen: anchored
//! keys ascending, then plain keys with anchors inside descending, then the others
//! ascending (section 3.2).

use std::collections::HashMap;

use kpvm::scalar::wildcard::contains_wildcard;
use kpvm::tree::{Member, Span, Tree, TreeValue};
use kpvm_format::instruction::Op;
use kpvm_format::table::{self, Anchor};
use zerocopy::little_endian::U32;

use super::anchor::{self, AnchoredKey};
use super::emitter::Emitter;
use super::template::has_variable;
use crate::ir::{Instruction, Label, Register, Segment, Site, SiteKind};
use crate::source::Location;

/// A pattern that cannot be lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// What is wrong.
    pub message: String,
    /// Where in the policy.
    pub span: Span,
}

/// What a pattern is matched with.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    /// The resource.
    Resource,
    /// A value in a register: the element of a foreach, or the resource.
    Register(Register),
}

/// Lowers a pattern: falls through when it holds, else jumps to `on_mismatch`.
/// Its variables are substituted first; when that fails, jumps to `on_error`.
///
/// # Errors
/// When the pattern is nested deeper than the limit.
pub fn lower_pattern(
    pattern: &Tree,
    subject: Subject,
    emitter: &mut Emitter<'_, '_>,
    on_mismatch: Label,
    on_error: Label,
) -> Result<(), PatternError> {
    let mut lowering = Lowering::new(emitter, false);
    lowering.substitute(pattern, "", on_error);
    lowering.lower_root(pattern, subject, on_mismatch)
}

/// As [`lower_pattern`], for the element of a foreach: jumps to `next` when there is
/// no subject to look at, once the variables are substituted.
///
/// # Errors
/// When the pattern is nested deeper than the limit.
pub fn lower_pattern_of_element(
    pattern: &Tree,
    subject: Subject,
    emitter: &mut Emitter<'_, '_>,
    next: Label,
    on_mismatch: Label,
    on_error: Label,
) -> Result<(), PatternError> {
    let mut lowering = Lowering::new(emitter, false);
    lowering.substitute(pattern, "", on_error);
    lowering.require_subject(subject, next);
    lowering.lower_root(pattern, subject, on_mismatch)
}

/// As [`lower_any_pattern`], for the element of a foreach: jumps to `passed` when an
/// alternative holds.
///
/// # Errors
/// When a pattern is nested deeper than the limit.
pub fn lower_any_pattern_of_element(
    patterns: &[Tree],
    subject: Subject,
    emitter: &mut Emitter<'_, '_>,
    next: Label,
    passed: Label,
    on_error: Label,
) -> Result<(), PatternError> {
    let mut lowering = Lowering::new(emitter, true);
    lowering.substitute_all(patterns, on_error);
    lowering.require_subject(subject, next);
    lowering.alternatives(patterns, subject, &mut |emitter, _| {
        emitter.block.jump(passed)
    })
}

/// Lowers the alternatives of an `anyPattern`: jumps to `on_match` with the first that
/// holds, falls through when none does. All variables are substituted first.
///
/// `ends` writes what follows when the alternative of that number holds.
///
/// # Errors
/// When a pattern is nested deeper than the limit.
pub fn lower_any_pattern(
    patterns: &[Tree],
    subject: Subject,
    emitter: &mut Emitter<'_, '_>,
    mut ends: impl FnMut(&mut Emitter<'_, '_>, u32),
    on_error: Label,
) -> Result<(), PatternError> {
    let mut lowering = Lowering::new(emitter, true);
    lowering.substitute_all(patterns, on_error);
    lowering.alternatives(patterns, subject, &mut ends)
}

/// Lowers an `anyPattern` that is written as no list. Where it is one variable, the
/// value may be a list; anything else is an error.
///
/// An empty list passes with the raw `message`.
pub fn lower_computed_alternatives(patterns: &Tree, message: &str, emitter: &mut Emitter<'_, '_>) {
    let failed = emitter.block.label();
    let unresolved = emitter.wrapping("variable substitution failed: ", false, failed);
    let list = emitter.template(patterns, "", unresolved);
    let (empty, body, done) = (
        emitter.block.label(),
        emitter.block.label(),
        emitter.block.label(),
    );
    // Whether there is a resource to look at comes before what kind of value it is.
    let no_subject = Instruction::new(Op::JumpIfNoSubject).a(Register::SUBJECT.0);
    emitter.block.push(no_subject.target(done));
    emitter.block.push(
        Instruction::new(Op::RequireAlternatives)
            .a(list.0)
            .target(failed),
    );
    emitter.block.push(
        Instruction::new(Op::JumpIfShorter)
            .a(list.0)
            .c(1)
            .target(empty),
    );
    let slot = emitter.block.enter_loop();
    let item = emitter.block.register();
    let next = emitter.block.label();
    emitter.block.push(
        Instruction::new(Op::LoopBegin)
            .a(slot)
            .b(list.0)
            .e(item.0)
            .target(done),
    );
    emitter.block.place(body);
    let span = patterns.span;
    let site = emitter
        .site(SiteKind::Leaf, span)
        .path(vec![Segment::Text("/".into())])
        .written(patterns.as_str().unwrap_or_default());
    let test = Instruction::new(Op::TestValue)
        .a(Register::SUBJECT.0)
        .b(item.0)
        .c(1);
    emitter.block.push(test.target(next).site(site));
    emitter
        .block
        .push(Instruction::new(Op::ReturnAlternativeAt).a(slot));
    emitter.block.place(next);
    let note = Instruction::new(Op::AlternativeFailedAt).a(slot);
    let site = emitter.site(SiteKind::Alternative, span);
    emitter.block.push(note.site(site));
    emitter.block.push(
        Instruction::new(Op::LoopNext)
            .a(slot)
            .e(item.0)
            .target(body),
    );
    emitter.block.place(done);
    emitter.block.leave_loop();
    emitter
        .block
        .push(Instruction::new(Op::ReturnAlternativesFailed));
    emitter.block.place(empty);
    let message = emitter.pools.text(message);
    emitter
        .block
        .push(Instruction::new(Op::ReturnText).c(message));
    emitter.flush_cold();
    emitter.block.place(failed);
    emitter.block.push(Instruction::new(Op::ReturnFailed));
}

/// Where a value is found.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The subject itself.
    Subject,
    /// At a static path of the subject.
    Path(u32),
    /// In a register.
    Register(Register),
}

struct Lowering<'e, 'p, 'b> {
    emitter: &'e mut Emitter<'p, 'b>,
    /// Whether numbers that variables bring become float64, as in anyPattern.
    floats: bool,
    /// The values of leaves, keys and maps with variables, by address.
    computed: HashMap<*const Tree, Register>,
    path: Vec<Segment>,
    depth: usize,
    /// What becomes of the label and annotation maps of the pattern, by address.
    tags: HashMap<*const Tree, Tags>,
}

/// A map under `metadata.labels` or `metadata.annotations`: entries that are not text
/// are dropped there (section 9).
#[derive(Debug, Clone, Copy)]
enum Tags {
    /// No key has a wildcard.
    Static,
    /// Some key has one: expanded at run time.
    Dynamic(u32),
}

impl<'e, 'p, 'b> Lowering<'e, 'p, 'b> {
    fn new(emitter: &'e mut Emitter<'p, 'b>, floats: bool) -> Self {
        Self {
            emitter,
            floats,
            computed: HashMap::new(),
            path: Vec::new(),
            depth: 0,
            tags: HashMap::new(),
        }
    }

    fn substitute_all(&mut self, patterns: &[Tree], on_error: Label) {
        for (index, pattern) in patterns.iter().enumerate() {
            self.substitute(pattern, &format!("/{index}"), on_error);
        }
    }

    /// Jumps when the subject is the resource and the request deletes it.
    fn require_subject(&mut self, subject: Subject, next: Label) {
        if let Subject::Register(register) = subject {
            self.emitter.block.push(
                Instruction::new(Op::JumpIfNoSubject)
                    .a(register.0)
                    .target(next),
            );
        }
    }

    fn alternatives(
        &mut self,
        patterns: &[Tree],
        subject: Subject,
        ends: &mut dyn FnMut(&mut Emitter<'_, '_>, u32),
    ) -> Result<(), PatternError> {
        for (index, pattern) in patterns.iter().enumerate() {
            let entered = self.emitter.enter_part(&format!("[{index}]"));
            let failed = self.emitter.block.label();
            self.lower_root(pattern, subject, failed)?;
            ends(self.emitter, index as u32);
            self.emitter.block.place(failed);
            let site = self.emitter.site(SiteKind::Alternative, pattern.span);
            let note = Instruction::new(Op::AlternativeFailed).c(index as u32);
            self.emitter.block.push(note.site(site));
            self.emitter.leave_part(entered);
        }
        Ok(())
    }

    fn lower_root(
        &mut self,
        pattern: &Tree,
        subject: Subject,
        on_error: Label,
    ) -> Result<(), PatternError> {
        self.path = vec![Segment::Text("/".into())];
        let place = match subject {
            Subject::Resource => Place::Subject,
            Subject::Register(register) => Place::Register(register),
        };
        self.lower(pattern, place, on_error)
    }

    /// Computes every leaf that has variables, and every map that has them in a key,
    /// in the order of the keys (docs/spec/patterns.md §10.2).
    fn substitute(&mut self, pattern: &Tree, path: &str, on_error: Label) {
        match &pattern.value {
            TreeValue::String(text) if has_variable(text) => {
                let value = self.emitter.text_template(text, path, on_error);
                self.computed.insert(std::ptr::from_ref(pattern), value);
            }
            TreeValue::Map(members) if members.iter().any(|member| has_variable(&member.key)) => {
                let value = self.emitter.template(pattern, path, on_error);
                self.computed.insert(std::ptr::from_ref(pattern), value);
            }
            TreeValue::Map(members) => {
                let mut members: Vec<&Member> = members.iter().collect();
                members.sort_by(|left, right| left.key.cmp(&right.key));
                for member in members {
                    let path = format!("{path}/{}", member.key.replace('/', "\\/"));
                    self.substitute(&member.value, &path, on_error);
                }
            }
            TreeValue::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.substitute(item, &format!("{path}/{index}"), on_error);
                }
            }
            _ => {}
        }
    }

    fn site(&self, kind: SiteKind, span: Span) -> Site {
        self.emitter.site(kind, span).path(self.path.clone())
    }

    /// Appends a check of the structure whose error lies at the current path.
    fn check(&mut self, instruction: Instruction, span: Span, on_error: Label) {
        let site = self.site(SiteKind::Structure, span);
        self.check_at(instruction, site, on_error);
    }

    /// Appends a check whose error lies at a site.
    fn check_at(&mut self, instruction: Instruction, site: Site, on_error: Label) {
        self.emitter
            .block
            .push(instruction.target(on_error).site(site));
    }

    /// Appends a jump for an anchored key that is not there.
    fn jump_if_missing(&mut self, register: Register, kind: SiteKind, key: &Member, label: Label) {
        let site = self.site(kind, key.key_span).written(&key.key);
        let jump = Instruction::new(Op::JumpIfMissing).a(register.0);
        self.check_at(jump, site, label);
    }

    fn register(&mut self, place: Place) -> Register {
        match place {
            Place::Subject => Register::SUBJECT,
            Place::Register(register) => register,
            Place::Path(path) => {
                let register = self.emitter.block.register();
                self.emitter
                    .block
                    .push(Instruction::new(Op::LoadPath).a(register.0).c(path));
                register
            }
        }
    }

    fn child(&mut self, parent: Place, key: &str) -> Place {
        let symbol = self.emitter.pools.bundle.symbols.intern(key);
        match parent {
            Place::Subject => Place::Path(self.emitter.pools.path(table::NONE, symbol)),
            Place::Path(path) => Place::Path(self.emitter.pools.path(path, symbol)),
            Place::Register(source) => {
                let register = self.emitter.block.register();
                self.emitter.block.push(
                    Instruction::new(Op::LoadField)
                        .a(register.0)
                        .b(source.0)
                        .c(symbol.0),
                );
                Place::Register(register)
            }
        }
    }

    /// Runs `body` with text appended to the path.
    fn under<T>(&mut self, text: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        match self.path.last_mut() {
            Some(Segment::Text(last)) => {
                let before = last.len();
                last.push_str(text);
                let result = body(self);
                self.path.truncate(length);
                if let Some(Segment::Text(last)) = self.path.last_mut() {
                    last.truncate(before);
                }
                result
            }
            _ => {
                self.path.push(Segment::Text(text.into()));
                let result = body(self);
                self.path.truncate(length);
                result
            }
        }
    }

    /// Runs `body` with a loop's index and a slash appended to the path.
    fn under_index<T>(&mut self, slot: u32, body: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push(Segment::LoopIndex(slot));
        self.path.push(Segment::Text("/".into()));
        let result = body(self);
        self.path.truncate(length);
        result
    }

    /// Section 3.1: by the type of the pattern.
    fn lower(&mut self, pattern: &Tree, place: Place, on_error: Label) -> Result<(), PatternError> {
        if self.depth >= self.emitter.pools.limits.pattern_depth {
            let limit = self.emitter.pools.limits.pattern_depth;
            let message = format!("the pattern is nested deeper than {limit} maps and lists");
            return Err(PatternError {
                message,
                span: pattern.span,
            });
        }
        if self.computed.contains_key(&std::ptr::from_ref(pattern)) {
            self.lower_scalar(pattern, place, on_error);
            return Ok(());
        }
        self.depth += 1;
        let result = match &pattern.value {
            TreeValue::Map(members) => self.lower_map(pattern, members, place, on_error),
            TreeValue::List(items) => self.lower_list(pattern, items, place, on_error),
            _ => {
                self.lower_scalar(pattern, place, on_error);
                Ok(())
            }
        };
        self.depth -= 1;
        result
    }

    fn lower_scalar(&mut self, pattern: &Tree, place: Place, on_error: Label) {
        if let Some(&value) = self.computed.get(&std::ptr::from_ref(pattern)) {
            let register = self.register(place);
            let floats = u32::from(self.floats);
            let test = Instruction::new(Op::TestValue)
                .a(register.0)
                .b(value.0)
                .c(floats);
            let written = pattern.as_str().unwrap_or(pattern.describe());
            let site = self.site(SiteKind::Leaf, pattern.span).written(written);
            return self.check_at(test, site, on_error);
        }
        if let Some(leaf) = self.emitter.pools.leaf(&pattern.value) {
            let register = self.register(place);
            let test = Instruction::new(Op::TestLeaf).a(register.0).c(leaf);
            let site = self.site(SiteKind::Leaf, pattern.span);
            self.check_at(test, site, on_error);
        }
    }

    fn lower_map(
        &mut self,
        pattern: &Tree,
        members: &[Member],
        place: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let register = self.register(place);
        self.check(
            Instruction::new(Op::RequireMap).a(register.0),
            pattern.span,
            on_error,
        );
        // Children are loaded from the static path if there is one, so that the path
        // cache is shared by all rules, else from the register.
        let parent = match place {
            Place::Register(_) => Place::Register(register),
            Place::Subject | Place::Path(_) => place,
        };
        let kept: Vec<&Member> = match self.tags.get(&std::ptr::from_ref(pattern)) {
            Some(Tags::Dynamic(tags)) => {
                let test = Instruction::new(Op::TestTags).a(register.0).c(*tags);
                let site = self.site(SiteKind::Tags, pattern.span);
                self.check_at(test, site, on_error);
                return Ok(());
            }
            Some(Tags::Static) => members
                .iter()
                .filter(|member| matches!(member.value.value, TreeValue::String(_)))
                .collect(),
            None => members.iter().collect(),
        };
        let mut anchored = Vec::new();
        let mut plain = Vec::new();
        for member in kept {
            let key = anchor::parse(&member.key);
            match key.anchor {
                Anchor::Conditional | Anchor::Existence | Anchor::Equality | Anchor::Negation => {
                    anchored.push((member, key));
                }
                Anchor::None | Anchor::Global | Anchor::AddIfNotPresent => {
                    plain.push((member, key))
                }
            }
        }
        anchored.sort_by(|(left, _), (right, _)| left.key.cmp(&right.key));
        for (member, key) in &anchored {
            if matches!(key.anchor, Anchor::Conditional | Anchor::Existence) {
                self.record_anchor(register, &member.key, key.inner);
            }
        }
        self.plan_tags(members, register);
        self.lower_anchored(&anchored, parent, on_error)?;
        for (member, key) in self.order_plain(plain) {
            self.lower_plain(member, key, parent, on_error)?;
        }
        Ok(())
    }

    fn record_anchor(&mut self, map: Register, text: &str, inner: &str) {
        let symbol = self.emitter.pools.bundle.symbols.intern(inner);
        let text = self.emitter.pools.text(text);
        self.emitter.block.push(
            Instruction::new(Op::RecordAnchor)
                .a(map.0)
                .c(symbol.0)
                .d(text),
        );
    }

    /// Section 9: looks for label and annotation maps below this map's `metadata`.
    fn plan_tags(&mut self, members: &[Member], register: Register) {
        let Some(metadata) = find_inner(members, "metadata").and_then(Tree::as_map) else {
            return;
        };
        for tag in ["labels", "annotations"] {
            let Some(tree) = find_inner(metadata, tag) else {
                continue;
            };
            let Some(entries) = tree.as_map() else {
                continue;
            };
            // What a variable gives may be no text, which is known only then.
            let is_dynamic = |member: &Member| {
                matches!(member.value.value, TreeValue::String(_))
                    && (contains_wildcard(anchor::parse(&member.key).inner)
                        || self
                            .computed
                            .contains_key(&std::ptr::from_ref(&member.value)))
            };
            let plan = if entries.iter().any(is_dynamic) {
                let tags = self.write_tag_pattern(tag, entries);
                self.emitter
                    .block
                    .push(Instruction::new(Op::ExpandTags).a(register.0).c(tags));
                Tags::Dynamic(tags)
            } else {
                Tags::Static
            };
            self.tags.insert(std::ptr::from_ref(tree), plan);
        }
    }

    fn write_tag_pattern(&mut self, tag: &str, members: &[Member]) -> u32 {
        let mut entries = Vec::new();
        let mut places = Vec::new();
        for member in members {
            let TreeValue::String(value) = &member.value.value else {
                continue;
            };
            let AnchoredKey { anchor, inner } = anchor::parse(&member.key);
            let wildcard = contains_wildcard(inner);
            let Some(leaf) = self.emitter.pools.leaf(&member.value.value) else {
                continue;
            };
            let star = anchor == Anchor::None && &**value == "*";
            // A value with variables travels in a variable of its own.
            let slot = match self.computed.get(&std::ptr::from_ref(&member.value)) {
                None => table::NONE,
                Some(&computed) => {
                    let slot = self.emitter.pools.slot("");
                    let store = Instruction::new(Op::StoreVariable).a(computed.0).c(slot);
                    self.emitter.block.push(store);
                    slot
                }
            };
            let key = self.emitter.pools.bundle.text(inner);
            entries.push(table::TagEntry {
                anchor: anchor as u8,
                wildcard: u8::from(wildcard),
                star: u8::from(star),
                key,
                leaf: U32::new(leaf),
                slot: U32::new(slot),
            });
            let place = self.emitter.pools.place(Location {
                source: self.emitter.source,
                span: member.value.span,
            });
            places.push(table::SitePlace::from(place));
        }
        let bundle = &mut self.emitter.pools.bundle;
        let range = table::Range::new(bundle.tag_entries.len(), entries.len());
        bundle.tag_entries.extend(&entries);
        bundle.tag_places.extend(&places);
        let (metadata, tag) = (
            bundle.symbols.intern("metadata"),
            bundle.symbols.intern(tag),
        );
        bundle.tag_patterns.push(table::TagPattern {
            metadata: U32::new(metadata.0),
            tag: U32::new(tag.0),
            entries: range,
        });
        bundle.tag_patterns.len() as u32 - 1
    }

    /// Section 3.2, step 2. Without an entry that can skip, errors need no folding.
    fn lower_anchored(
        &mut self,
        anchored: &[(&Member, AnchoredKey<'_>)],
        parent: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let folding = anchored
            .iter()
            .any(|(member, key)| key_may_skip(key.anchor, &member.value));
        if !folding {
            return anchored
                .iter()
                .try_for_each(|(member, key)| self.lower_anchor(member, *key, parent, on_error));
        }
        let fold = self.emitter.block.enter_fold();
        self.emitter
            .block
            .push(Instruction::new(Op::FoldBegin).a(fold));
        for (member, key) in anchored {
            let (failed, next) = (self.emitter.block.label(), self.emitter.block.label());
            self.lower_anchor(member, *key, parent, failed)?;
            self.emitter
                .block
                .push(Instruction::new(Op::FoldApplied).a(fold));
            self.emitter.block.jump(next);
            self.emitter.block.place(failed);
            self.emitter
                .block
                .push(Instruction::new(Op::FoldKeyError).a(fold).target(on_error));
            self.emitter.block.place(next);
        }
        self.emitter
            .block
            .push(Instruction::new(Op::FoldKeysEnd).a(fold).target(on_error));
        self.emitter.block.leave_fold();
        Ok(())
    }

    /// Sections 4.2 to 4.5.
    fn lower_anchor(
        &mut self,
        member: &Member,
        key: AnchoredKey<'_>,
        parent: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let place = self.child(parent, key.inner);
        let register = self.register(place);
        let place = match place {
            Place::Register(_) => Place::Register(register),
            place => place,
        };
        self.under(&format!("{}/", key.inner), |this| match key.anchor {
            Anchor::Conditional => this.lower_conditional(member, place, register, on_error),
            Anchor::Equality => {
                let absent = this.emitter.block.label();
                this.jump_if_missing(register, SiteKind::Anchor, member, absent);
                this.lower(&member.value, place, on_error)?;
                this.emitter.block.place(absent);
                Ok(())
            }
            Anchor::Negation => {
                let absent = this.emitter.block.label();
                this.jump_if_missing(register, SiteKind::Absence, member, absent);
                this.check(
                    Instruction::new(Op::FailNegation),
                    member.key_span,
                    on_error,
                );
                this.emitter.block.place(absent);
                Ok(())
            }
            Anchor::Existence => this.lower_existence(member, register, on_error),
            Anchor::None | Anchor::Global | Anchor::AddIfNotPresent => Ok(()),
        })
    }

    fn lower_conditional(
        &mut self,
        member: &Member,
        place: Place,
        register: Register,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let (missing, failed, end) = (
            self.emitter.block.label(),
            self.emitter.block.label(),
            self.emitter.block.label(),
        );
        self.jump_if_missing(register, SiteKind::Anchor, member, missing);
        self.lower(&member.value, place, failed)?;
        self.emitter.block.jump(end);
        self.emitter.block.place(missing);
        self.check(
            Instruction::new(Op::FailConditional),
            member.key_span,
            on_error,
        );
        self.emitter.block.place(failed);
        let wrap = Instruction::new(Op::WrapConditional);
        let site = self.site(SiteKind::Structure, member.key_span);
        self.check_at(wrap, site.written(&member.key), on_error);
        self.emitter.block.place(end);
        Ok(())
    }

    fn lower_existence(
        &mut self,
        member: &Member,
        register: Register,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let end = self.emitter.block.label();
        let span = member.value.span;
        self.jump_if_missing(register, SiteKind::Anchor, member, end);
        self.check(
            Instruction::new(Op::RequireExistenceList).a(register.0),
            span,
            on_error,
        );
        let Some(items) = member.value.as_list() else {
            let kind = self.emitter.pools.text(go_type(&member.value));
            self.check(
                Instruction::new(Op::FailExistencePattern).b(0).c(kind),
                span,
                on_error,
            );
            self.emitter.block.place(end);
            return Ok(());
        };
        for item in items {
            if item.as_map().is_none() {
                let kind = self.emitter.pools.text("[]interface {}");
                self.check(
                    Instruction::new(Op::FailExistencePattern).b(1).c(kind),
                    item.span,
                    on_error,
                );
                break;
            }
            let (matched, none, other) = (
                self.emitter.block.label(),
                self.emitter.block.label(),
                self.emitter.block.label(),
            );
            let slot = self.emitter.block.enter_loop();
            let element = self.emitter.block.register();
            self.loop_begin(slot, register, element, none);
            let body = self.emitter.block.label();
            self.emitter.block.place(body);
            self.under_index(slot, |this| {
                this.lower(item, Place::Register(element), other)
            })?;
            self.emitter.block.jump(matched);
            self.emitter.block.place(other);
            self.loop_next(slot, element, body);
            self.emitter.block.place(none);
            self.check(Instruction::new(Op::FailExistence), item.span, on_error);
            self.emitter.block.place(matched);
            self.emitter.block.leave_loop();
        }
        self.emitter.block.place(end);
        Ok(())
    }

    fn loop_begin(&mut self, slot: u32, list: Register, item: Register, empty: Label) {
        self.emitter.block.push(
            Instruction::new(Op::LoopBegin)
                .a(slot)
                .b(list.0)
                .e(item.0)
                .target(empty),
        );
    }

    fn loop_next(&mut self, slot: u32, item: Register, body: Label) {
        self.emitter.block.push(
            Instruction::new(Op::LoopNext)
                .a(slot)
                .e(item.0)
                .target(body),
        );
    }

    /// Section 3.2, step 3: anchor-bearing keys descending, then the others ascending.
    fn order_plain<'t>(
        &self,
        mut plain: Vec<(&'t Member, AnchoredKey<'t>)>,
    ) -> Vec<(&'t Member, AnchoredKey<'t>)> {
        plain.sort_by(|(left, _), (right, _)| left.key.cmp(&right.key));
        let (mut front, back): (Vec<_>, Vec<_>) = plain.into_iter().partition(|(member, key)| {
            key.anchor == Anchor::Global || self.has_anchor(&member.value)
        });
        front.reverse();
        front.extend(back);
        front
    }

    /// Whether a map key at any depth is an anchor (`+( )` does not count), once the
    /// entries that section 9 drops are gone.
    fn has_anchor(&self, tree: &Tree) -> bool {
        let tags = self.tags.contains_key(&std::ptr::from_ref(tree));
        match &tree.value {
            TreeValue::Map(members) => members
                .iter()
                .filter(|member| !tags || matches!(member.value.value, TreeValue::String(_)))
                .any(|member| {
                    !matches!(
                        anchor::parse(&member.key).anchor,
                        Anchor::None | Anchor::AddIfNotPresent
                    ) || self.has_anchor(&member.value)
                }),
            TreeValue::List(items) => items.iter().any(|item| self.has_anchor(item)),
            _ => false,
        }
    }

    /// Section 3.3 and, for global anchors, 4.6.
    fn lower_plain(
        &mut self,
        member: &Member,
        key: AnchoredKey<'_>,
        parent: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        if key.anchor == Anchor::Global {
            return self.lower_global(member, key.inner, parent, on_error);
        }
        // `+(key)` is no anchor here: the key is looked up as it stands.
        let name = &*member.key;
        let place = self.child(parent, name);
        if member.value.as_str() == Some("*") {
            let register = self.register(place);
            let symbol = self.emitter.pools.bundle.symbols.intern(name);
            let check = Instruction::new(Op::RequirePresent)
                .a(register.0)
                .c(symbol.0);
            let site = self.site(SiteKind::Leaf, member.key_span);
            self.check_at(check, site, on_error);
            return Ok(());
        }
        self.under(&format!("{name}/"), |this| {
            this.lower(&member.value, place, on_error)
        })
    }

    fn lower_global(
        &mut self,
        member: &Member,
        inner: &str,
        parent: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let place = self.child(parent, inner);
        let register = self.register(place);
        let place = match place {
            Place::Register(_) => Place::Register(register),
            place => place,
        };
        let (failed, end) = (self.emitter.block.label(), self.emitter.block.label());
        self.under(&format!("{inner}/"), |this| {
            this.jump_if_missing(register, SiteKind::Anchor, member, end);
            this.lower(&member.value, place, failed)?;
            this.emitter.block.jump(end);
            this.emitter.block.place(failed);
            let site = this.site(SiteKind::Structure, member.key_span);
            let wrap = Instruction::new(Op::WrapGlobal);
            this.check_at(wrap, site.written(&member.key), on_error);
            Ok::<(), PatternError>(())
        })?;
        self.emitter.block.place(end);
        Ok(())
    }

    /// Section 3.4: by the first item of the pattern.
    fn lower_list(
        &mut self,
        pattern: &Tree,
        items: &[Tree],
        place: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let register = self.register(place);
        self.check(
            Instruction::new(Op::RequireList).a(register.0),
            pattern.span,
            on_error,
        );
        match items.first().map(|first| (first, &first.value)) {
            None => {
                self.check(
                    Instruction::new(Op::FailEmptyPattern),
                    pattern.span,
                    on_error,
                );
                Ok(())
            }
            Some((first, TreeValue::Map(_))) => self.lower_list_of_maps(first, register, on_error),
            Some((_, TreeValue::List(_))) => {
                self.lower_positional(pattern, items, register, on_error)
            }
            Some((first, _)) if self.computed.contains_key(&std::ptr::from_ref(first)) => {
                self.lower_computed_list(pattern, items, register, on_error);
                Ok(())
            }
            Some((first, _)) => {
                self.lower_scalar(first, Place::Register(register), on_error);
                Ok(())
            }
        }
    }

    /// A list whose first item is a variable: what that gives decides how the list is
    /// matched.
    fn lower_computed_list(
        &mut self,
        pattern: &Tree,
        items: &[Tree],
        register: Register,
        on_error: Label,
    ) {
        let list = self.emitter.block.enter_list();
        let begin = Instruction::new(Op::ListBegin).a(list);
        self.emitter.block.push(begin);
        for item in items {
            let item = match self.computed.get(&std::ptr::from_ref(item)) {
                Some(&computed) => computed,
                // Its variables came out before; they do so again.
                None => self.emitter.template(item, "", on_error),
            };
            let push = Instruction::new(Op::ListPush).a(list).b(item.0);
            self.emitter.block.push(push);
        }
        let value = self.emitter.load(Instruction::new(Op::ListEnd).b(list));
        self.emitter.block.leave_list();
        let test = Instruction::new(Op::TestValue)
            .a(register.0)
            .b(value.0)
            .c(u32::from(self.floats));
        self.check(test, pattern.span, on_error);
    }

    fn lower_list_of_maps(
        &mut self,
        first: &Tree,
        list: Register,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let folding = may_skip(first);
        let (body, end) = (self.emitter.block.label(), self.emitter.block.label());
        let slot = self.emitter.block.enter_loop();
        let item = self.emitter.block.register();
        let fold = folding.then(|| self.emitter.block.enter_fold());
        if let Some(fold) = fold {
            self.emitter
                .block
                .push(Instruction::new(Op::FoldBegin).a(fold));
        }
        self.loop_begin(slot, list, item, end);
        self.emitter.block.place(body);
        match fold {
            None => {
                self.under_index(slot, |this| {
                    this.lower(first, Place::Register(item), on_error)
                })?;
            }
            Some(fold) => {
                self.under_index(slot, |this| {
                    this.lower_folded_item(first, item, fold, on_error)
                })?;
            }
        }
        self.loop_next(slot, item, body);
        self.emitter.block.place(end);
        if let Some(fold) = fold {
            self.emitter
                .block
                .push(Instruction::new(Op::FoldItemsEnd).a(fold).target(on_error));
            self.emitter.block.leave_fold();
        }
        self.emitter.block.leave_loop();
        Ok(())
    }

    fn lower_folded_item(
        &mut self,
        pattern: &Tree,
        item: Register,
        fold: u32,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let (failed, next) = (self.emitter.block.label(), self.emitter.block.label());
        self.lower(pattern, Place::Register(item), failed)?;
        self.emitter
            .block
            .push(Instruction::new(Op::FoldApplied).a(fold));
        self.emitter.block.jump(next);
        self.emitter.block.place(failed);
        self.emitter
            .block
            .push(Instruction::new(Op::FoldItemError).a(fold).target(on_error));
        self.emitter.block.place(next);
        Ok(())
    }

    fn lower_positional(
        &mut self,
        pattern: &Tree,
        items: &[Tree],
        list: Register,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let length = items.len() as u32;
        self.check(
            Instruction::new(Op::RequireLength).a(list.0).c(length),
            pattern.span,
            on_error,
        );
        let fold = items
            .iter()
            .any(may_skip)
            .then(|| self.emitter.block.enter_fold());
        if let Some(fold) = fold {
            self.emitter
                .block
                .push(Instruction::new(Op::FoldBegin).a(fold));
        }
        for (index, item) in items.iter().enumerate() {
            let register = self.emitter.block.register();
            self.emitter.block.push(
                Instruction::new(Op::LoadIndex)
                    .a(register.0)
                    .b(list.0)
                    .c(index as u32),
            );
            self.under(&format!("{index}/"), |this| match fold {
                None => this.lower(item, Place::Register(register), on_error),
                Some(fold) => this.lower_folded_item(item, register, fold, on_error),
            })?;
        }
        if let Some(fold) = fold {
            self.emitter
                .block
                .push(Instruction::new(Op::FoldItemsEnd).a(fold).target(on_error));
            self.emitter.block.leave_fold();
        }
        Ok(())
    }
}

/// The value under a key, plain or anchored; the smallest key text wins.
fn find_inner<'t>(members: &'t [Member], inner: &str) -> Option<&'t Tree> {
    members
        .iter()
        .filter(|member| anchor::parse(&member.key).inner == inner)
        .min_by(|left, right| left.key.cmp(&right.key))
        .map(|member| &member.value)
}

/// Whether matching against the pattern can end in a skip.
fn may_skip(tree: &Tree) -> bool {
    match &tree.value {
        TreeValue::Map(members) => members
            .iter()
            .any(|member| key_may_skip(anchor::parse(&member.key).anchor, &member.value)),
        TreeValue::List(items) => items.iter().any(may_skip),
        _ => false,
    }
}

fn key_may_skip(anchor: Anchor, value: &Tree) -> bool {
    match anchor {
        Anchor::Conditional | Anchor::Global => true,
        // Nothing that happens to an item leaves an existence anchor, and the value
        // of a negation is never looked at.
        Anchor::Existence | Anchor::Negation => false,
        Anchor::None | Anchor::Equality | Anchor::AddIfNotPresent => may_skip(value),
    }
}

/// Go's name of a value's type, as `%T` prints it.
pub fn go_type(tree: &Tree) -> &'static str {
    match &tree.value {
        TreeValue::Null => "<nil>",
        TreeValue::Bool(_) => "bool",
        TreeValue::Int(_) => "int64",
        TreeValue::Float(_) => "float64",
        TreeValue::String(_) => "string",
        TreeValue::List(_) => "[]interface {}",
        TreeValue::Map(_) => "map[string]interface {}",
    }
}
