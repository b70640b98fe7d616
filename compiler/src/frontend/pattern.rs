//! `validate.pattern` and `validate.anyPattern` (docs/spec/patterns.md): lowers patterns to
//! IR.
//!
//! The order of checks is Kyverno's, since it decides which error is seen: anchored keys
//! ascending, then plain keys with anchors inside descending, then the others ascending
//! (docs/spec/patterns.md §3.2).

mod alternatives;
mod anchors;
mod list;
mod tags;

pub use self::alternatives::{
    lower_any_pattern, lower_any_pattern_of_element, lower_computed_alternatives,
};

use kpvm_format::instruction::LoopSlot;
use kpvm_format::instruction::immediate::Comparison;
use std::collections::HashMap;

use kpvm_semantics::anchor::Anchor;
use kpvm_syntax::tree::{Member, Span, Tree, TreeValue};

use self::tags::Tags;
use super::emitter::Emitter;
use super::template::has_variable;
use crate::ir::{AtSite, Label, Operation, PathId, Register, Segment, Site, SiteKind};
use kpvm_semantics::anchor::{self, AnchoredKey};

/// A pattern that cannot be lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// The error.
    pub message: String,
    /// Its place in the policy.
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

/// Lowers a pattern: falls through if it matches, else jumps to `on_mismatch`. Its
/// variables are substituted first; if that fails, jumps to `on_error`.
///
/// # Errors
/// If the pattern is nested more deeply than the limit.
pub fn lower_pattern(
    pattern: &Tree,
    subject: Subject,
    emitter: &mut Emitter<'_>,
    on_mismatch: Label,
    on_error: Label,
) -> Result<(), PatternError> {
    let mut lowering = Lowering::new(emitter, false);
    lowering.substitute(pattern, "", on_error);
    lowering.lower_root(pattern, subject, on_mismatch)
}

/// Like [`lower_pattern`], for the element of a foreach: jumps to `next` if there is no
/// subject, once the variables are substituted.
///
/// # Errors
/// If the pattern is nested more deeply than the limit.
pub fn lower_pattern_of_element(
    pattern: &Tree,
    subject: Subject,
    emitter: &mut Emitter<'_>,
    next: Label,
    on_mismatch: Label,
    on_error: Label,
) -> Result<(), PatternError> {
    let mut lowering = Lowering::new(emitter, false);
    lowering.substitute(pattern, "", on_error);
    lowering.require_subject(subject, next);
    lowering.lower_root(pattern, subject, on_mismatch)
}

/// Where a value is found.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The subject itself.
    Subject,
    /// At a static path of the subject.
    Path(PathId),
    /// In a register.
    Register(Register),
}

struct Lowering<'e, 'p> {
    emitter: &'e mut Emitter<'p>,
    /// Whether numbers from variables become float64, as in anyPattern.
    floats: bool,
    /// The values of leaves, keys and maps with variables, by address.
    computed: HashMap<*const Tree, Register>,
    path: Vec<Segment>,
    depth: usize,
    /// The plan for the label and annotation maps of the pattern, by address.
    tags: HashMap<*const Tree, Tags>,
    /// Of these, those from which nothing is dropped: the resource has none.
    whole_tags: Vec<*const Tree>,
}

impl<'e, 'p> Lowering<'e, 'p> {
    fn new(emitter: &'e mut Emitter<'p>, floats: bool) -> Self {
        Self {
            emitter,
            floats,
            computed: HashMap::new(),
            path: Vec::new(),
            depth: 0,
            tags: HashMap::new(),
            whole_tags: Vec::new(),
        }
    }

    fn substitute_all(&mut self, patterns: &[Tree], on_error: Label) {
        for (index, pattern) in patterns.iter().enumerate() {
            self.substitute(pattern, &format!("/{index}"), on_error);
        }
    }

    /// Jumps if the subject is the resource and the request deletes it.
    fn require_subject(&mut self, subject: Subject, next: Label) {
        if let Subject::Register(register) = subject {
            self.emitter.block.push(Operation::JumpIfNoSubject {
                src: register,
                target: next,
            });
        }
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

    /// Computes every leaf that has variables, and every map that has variables in a key,
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

    /// Appends a structural check whose error is at the current path.
    fn check(&mut self, operation: Operation, span: Span) {
        let site = self.site(SiteKind::Structure, span);
        self.check_at(operation, site);
    }

    /// Appends a check whose error is at a site.
    fn check_at(&mut self, operation: Operation, site: Site) {
        self.emitter.block.push(operation.site(site));
    }

    /// Appends a jump for an anchored key that is missing.
    fn jump_if_missing(&mut self, register: Register, kind: SiteKind, key: &Member, label: Label) {
        let site = self.site(kind, key.key_span).written(&key.key);
        let jump = Operation::JumpIfMissing {
            src: register,
            target: label,
        };
        self.check_at(jump, site);
    }

    fn register(&mut self, place: Place) -> Register {
        match place {
            Place::Subject => Register::SUBJECT,
            Place::Register(register) => register,
            Place::Path(path) => {
                let register = self.emitter.block.register();
                self.emitter.block.push(Operation::LoadPath {
                    dst: register,
                    path,
                });
                register
            }
        }
    }

    fn child(&mut self, parent: Place, key: &str) -> Place {
        let symbol = self.emitter.module.symbol(key);
        match parent {
            Place::Subject => Place::Path(self.emitter.module.path(None, symbol)),
            Place::Path(path) => Place::Path(self.emitter.module.path(Some(path), symbol)),
            Place::Register(source) => {
                let register = self.emitter.block.register();
                self.emitter.block.push(Operation::LoadField {
                    dst: register,
                    src: source,
                    key: symbol,
                });
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
    fn under_index<T>(&mut self, slot: LoopSlot, body: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push(Segment::LoopIndex(slot));
        self.path.push(Segment::Text("/".into()));
        let result = body(self);
        self.path.truncate(length);
        result
    }

    /// docs/spec/patterns.md §3.1: by the type of the pattern.
    fn lower(&mut self, pattern: &Tree, place: Place, on_error: Label) -> Result<(), PatternError> {
        if self.depth >= self.emitter.module.limits.pattern_depth {
            let limit = self.emitter.module.limits.pattern_depth;
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
            let test = Operation::TestValue {
                src: register,
                pattern: value,
                floats: self.floats,
                target: on_error,
            };
            let written = pattern.as_str().unwrap_or(pattern.describe());
            let site = self.site(SiteKind::Leaf, pattern.span).written(written);
            return self.check_at(test, site);
        }
        if let Some(leaf) = self.emitter.module.leaf(&pattern.value) {
            let register = self.register(place);
            let test = Operation::TestLeaf {
                src: register,
                leaf,
                target: on_error,
            };
            let site = self.site(SiteKind::Leaf, pattern.span);
            self.check_at(test, site);
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
            Operation::RequireMap {
                src: register,
                target: on_error,
            },
            pattern.span,
        );
        // Children are loaded from the static path if there is one, so that all rules share
        // the path cache, else from the register.
        let parent = match place {
            Place::Register(_) => Place::Register(register),
            Place::Subject | Place::Path(_) => place,
        };
        let kept: Vec<&Member> = match self.tags.get(&std::ptr::from_ref(pattern)) {
            Some(Tags::Dynamic(tags)) => {
                let test = Operation::TestTags {
                    src: register,
                    tags: *tags,
                    target: on_error,
                };
                let site = self.site(SiteKind::Tags, pattern.span);
                self.check_at(test, site);
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
        let undecided = self.dropped_anchors(&plain);
        self.lower_plain_keys(&plain, &undecided, parent, on_error)
    }

    /// Lowers the plain keys in their order. It depends on the labels and annotations of the
    /// resource where what is dropped from a pattern for them contains an anchor: nothing is
    /// dropped if the resource has none (docs/spec/patterns.md §9). Each order has its code.
    fn lower_plain_keys<'t>(
        &mut self,
        plain: &[(&'t Member, AnchoredKey<'t>)],
        undecided: &[DroppedAnchors<'t>],
        parent: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let Some((first, rest)) = undecided.split_first() else {
            for (member, key) in self.order_plain(plain.to_vec()) {
                self.lower_plain(member, key, parent, on_error)?;
            }
            return Ok(());
        };
        let (absent, end) = (self.emitter.block.label(), self.emitter.block.label());
        let mut place = parent;
        for key in &first.path {
            place = self.child(place, key);
        }
        let src = self.register(place);
        let has_tags = Operation::RequireMap {
            src,
            target: absent,
        };
        self.check(has_tags, first.tags.span);
        self.lower_plain_keys(plain, rest, parent, on_error)?;
        self.emitter.block.jump(end);
        self.emitter.block.place(absent);
        self.whole_tags.push(std::ptr::from_ref(first.tags));
        let result = self.lower_plain_keys(plain, rest, parent, on_error);
        self.whole_tags.pop();
        self.emitter.block.place(end);
        result
    }

    /// Patterns for labels and annotations at most two levels below a map, from which an
    /// anchor may be dropped.
    fn dropped_anchors<'t>(
        &self,
        plain: &[(&'t Member, AnchoredKey<'t>)],
    ) -> Vec<DroppedAnchors<'t>> {
        let mut found = Vec::new();
        if plain.len() < 2 {
            return found;
        }
        for (member, key) in plain {
            let own = (&member.value, vec![key.inner]);
            let below = member.value.as_map().unwrap_or_default().iter();
            let below = below.map(|child| {
                let path = vec![key.inner, anchor::parse(&child.key).inner];
                (&child.value, path)
            });
            for (tags, path) in std::iter::once(own).chain(below) {
                let drops = |entry: &Member| {
                    !matches!(entry.value.value, TreeValue::String(_))
                        && (is_anchor(&entry.key) || self.has_anchor(&entry.value))
                };
                if self.tags.contains_key(&std::ptr::from_ref(tags))
                    && tags.as_map().unwrap_or_default().iter().any(drops)
                {
                    found.push(DroppedAnchors { tags, path });
                }
            }
        }
        found
    }

    /// docs/spec/patterns.md §3.2, step 3: keys containing anchors descending, then the
    /// others ascending.
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

    /// Whether a map key at any depth is an anchor (`+( )` does not count), after dropping
    /// entries as in docs/spec/patterns.md §9.
    fn has_anchor(&self, tree: &Tree) -> bool {
        let pointer = std::ptr::from_ref(tree);
        let tags = self.tags.contains_key(&pointer) && !self.whole_tags.contains(&pointer);
        match &tree.value {
            TreeValue::Map(members) => members
                .iter()
                .filter(|member| !tags || matches!(member.value.value, TreeValue::String(_)))
                .any(|member| is_anchor(&member.key) || self.has_anchor(&member.value)),
            TreeValue::List(items) => items.iter().any(|item| self.has_anchor(item)),
            _ => false,
        }
    }

    /// docs/spec/patterns.md §3.3 and, for global anchors, §4.6.
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
        // `+(key)` is not an anchor here: the key is looked up as written.
        let name = &*member.key;
        let place = self.child(parent, name);
        if member.value.as_str() == Some("*") {
            let register = self.register(place);
            self.require_present(member, register, on_error);
            return Ok(());
        }
        let computed = self.computed.get(&std::ptr::from_ref(&member.value));
        if let Some(&value) = computed.filter(|_| may_become_star(&member.value)) {
            let register = self.register(place);
            let star = self.emitter.constant(&TreeValue::String("*".into()));
            let is_star = self.emitter.load(|dst| Operation::Compare {
                dst,
                left: value,
                right: star,
                comparison: Comparison::Equal,
            });
            let (otherwise, end) = (self.emitter.block.label(), self.emitter.block.label());
            self.emitter.block.push(Operation::JumpIfFalse {
                src: is_star,
                target: otherwise,
            });
            self.require_present(member, register, on_error);
            self.emitter.block.push(Operation::Jump { target: end });
            self.emitter.block.place(otherwise);
            self.under(&format!("{name}/"), |this| {
                this.lower_scalar(&member.value, Place::Register(register), on_error);
            });
            self.emitter.block.place(end);
            return Ok(());
        }
        self.under(&format!("{name}/"), |this| {
            this.lower(&member.value, place, on_error)
        })
    }

    /// Appends the check of a plain key whose pattern is `*` (docs/spec/patterns.md §3.3).
    fn require_present(&mut self, member: &Member, register: Register, on_error: Label) {
        let symbol = self.emitter.module.symbol(&member.key);
        let check = Operation::RequirePresent {
            src: register,
            key: symbol,
            target: on_error,
        };
        let site = self.site(SiteKind::Leaf, member.key_span);
        self.check_at(check, site);
    }
}

/// Whether the value of a text with variables or references can be `*` alone.
fn may_become_star(written: &Tree) -> bool {
    let starts = ["{{", "$(", "*"];
    let text = written.as_str();
    text.is_none_or(|text| starts.iter().any(|start| text.starts_with(start)))
}

/// A pattern for labels or annotations from which an anchor may be dropped, and where the
/// resource has them, seen from the map whose keys are ordered.
struct DroppedAnchors<'t> {
    tags: &'t Tree,
    path: Vec<&'t str>,
}

/// Whether a key is an anchor; `+( )` does not count.
fn is_anchor(key: &str) -> bool {
    !matches!(
        anchor::parse(key).anchor,
        Anchor::None | Anchor::AddIfNotPresent
    )
}

/// Whether matching the pattern can end in a skip.
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
        // Whatever happens to an item stays inside an existence anchor, and the value of a
        // negation is never evaluated.
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
