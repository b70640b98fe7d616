//! Builds a tree from parser events with an explicit stack: no recursion, and every count
//! is checked before memory is allocated.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle, StructureStyle};

use super::copy::copy;
use super::error::{YamlErrorKind, clip, line_column};
use super::scalar::{Scalar, Tag, resolve};
use super::{DuplicateKeys, Options};
use crate::tree::{Member, Span, Tree, TreeValue};

/// An error and its location in the file.
pub(super) type Failure = (YamlErrorKind, Span);

/// From this size on, a map's keys are indexed.
const INDEX_FROM: usize = 16;

/// The tree under construction.
pub(super) struct Builder<'o, 't> {
    options: Options<'o>,
    /// Text of the document, to count lines for messages and to see what follows a plain
    /// scalar.
    text: &'t str,
    /// Offset of the document in the file.
    base: u32,
    /// Line of the file where the document begins.
    line: usize,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Anchored>,
    spent: Weight,
    /// Part of `spent` that came from aliases.
    aliased: usize,
    root: Option<Tree>,
}

/// Cost of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    /// Values: map entries and list items.
    nodes: usize,
    /// Steps as counted by go-yaml: values, keys and aliases.
    steps: usize,
    /// Bytes of text.
    bytes: usize,
    /// Levels of maps and lists.
    height: usize,
}

/// A value that aliases may refer to.
struct Anchored {
    tree: Tree,
    weight: Weight,
    /// Its text as a map key, if it can be one.
    key: Option<Box<str>>,
}

/// A map or list that is still open.
struct Open {
    collection: Collection,
    anchor: usize,
    flow: bool,
    start: u32,
    end: u32,
    /// Levels below and including this one, so far.
    height: usize,
    /// Amount spent before it.
    before: Weight,
}

enum Collection {
    List(Vec<Tree>),
    Map(OpenMap),
}

#[derive(Default)]
struct OpenMap {
    members: Vec<Member>,
    /// Position of each key in `members`, once the map is large.
    index: BTreeMap<Box<str>, usize>,
    pending: Pending,
}

/// Role of the next value in a map.
#[derive(Default)]
enum Pending {
    /// It is a key.
    #[default]
    Key,
    Value(Box<str>, Span),
    Merge,
}

impl<'o, 't> Builder<'o, 't> {
    pub(super) fn new(options: Options<'o>, text: &'t str, base: u32, line: usize) -> Self {
        Self {
            options,
            text,
            base,
            line,
            open: Vec::new(),
            anchors: BTreeMap::new(),
            spent: Weight::default(),
            aliased: 0,
            root: None,
        }
    }

    /// The finished tree, if the document contained a value.
    pub(super) fn into_root(self) -> Option<Tree> {
        self.root
    }

    /// Processes the next event of the document.
    pub(super) fn event(&mut self, event: Event<'t>, span: Span) -> Result<(), Failure> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let name = tag.as_deref().map(tag_name);
                self.scalar(text, style, anchor, tag_kind(name.as_deref()), span)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.check_collection_tag(tag.as_deref(), "tag:yaml.org,2002:seq", span)?;
                self.begin(Collection::List(Vec::new()), style, anchor, span)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.check_collection_tag(tag.as_deref(), "tag:yaml.org,2002:map", span)?;
                self.begin(Collection::Map(OpenMap::default()), style, anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Anchor(_, name) => check_anchor_name(&name).map_err(|kind| (kind, span)),
            Event::UnresolvedAlias(_) => Err((YamlErrorKind::UnknownAlias, span)),
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd => Ok(()),
            // The parser's event type may grow; new events are unknown.
            _ => Err((
                YamlErrorKind::Syntax("the parser found an unknown construct".to_owned()),
                span,
            )),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Tag<'_>,
        span: Span,
    ) -> Result<(), Failure> {
        let plain = style == ScalarStyle::Plain;
        if plain {
            self.check_flow_text(&text, span)?;
        }
        let span = match style {
            ScalarStyle::Literal | ScalarStyle::Folded => {
                self.check_block_indent(span)?;
                self.without_blank_end(span)
            }
            _ => span,
        };
        let is_key = self.awaits_key();
        let weight = Weight {
            nodes: usize::from(!is_key),
            steps: 1,
            bytes: text.len(),
            height: 0,
        };
        self.spend(weight, span)?;
        if is_key && &*text == "<<" && is_merge_key(plain, tag) {
            self.set_pending(Pending::Merge);
            return Ok(());
        }
        let fail = |kind| (kind, span);
        let scalar = resolve(text, plain, tag).map_err(fail)?;
        if anchor != 0 {
            let weight = Weight { nodes: 1, ..weight };
            let tree = Tree::new(scalar.clone().into_value().map_err(fail)?, span);
            self.keep(anchor, &tree, weight, Some(&scalar))
                .map_err(fail)?;
        }
        if is_key {
            self.set_pending(Pending::Value(scalar.into_key().map_err(fail)?, span));
            return Ok(());
        }
        let tree = Tree::new(scalar.into_value().map_err(fail)?, span);
        self.place(tree, 0, span, false)
    }

    /// Rejects a block scalar at the root with text at column 0: go-yaml treats it as empty
    /// and ignores the text.
    fn check_block_indent(&self, span: Span) -> Result<(), Failure> {
        let range = (span.start - self.base) as usize..(span.end - self.base) as usize;
        let text = self.text.get(range).unwrap_or_default();
        let before = self.text.get(..(span.start - self.base) as usize);
        let at_line_start = before.is_some_and(|before| before.ends_with(['\n', '\r']));
        let blank = ['\n', '\r', ' '];
        let unindented = at_line_start && !text.is_empty() && !text.starts_with(blank);
        if self.open.is_empty() && unindented {
            return Err((YamlErrorKind::UnindentedBlock, span));
        }
        Ok(())
    }

    /// The range of a block scalar ends with its last line of text; the parser includes the
    /// blank lines after it.
    fn without_blank_end(&self, span: Span) -> Span {
        let range = (span.start - self.base) as usize..(span.end - self.base) as usize;
        let blank = self.text.get(range).map_or(0, |text| {
            text.len() - text.trim_end_matches([' ', '\t', '\n', '\r']).len()
        });
        Span {
            end: span.end - u32::try_from(blank).unwrap_or(0),
            ..span
        }
    }

    /// Rejects plain text in a flow collection where go-yaml's older grammar sees an
    /// indicator and this parser does not.
    fn check_flow_text(&self, text: &str, span: Span) -> Result<(), Failure> {
        if !self.open.last().is_some_and(|open| open.flow) {
            return Ok(());
        }
        let behind = (span.end - self.base) as usize;
        let behind = self.text.as_bytes().get(behind..).unwrap_or_default();
        let colon_is_text = matches!(behind, [b':', b',' | b'[' | b']' | b'{' | b'}', ..]);
        let written_colon = text.starts_with(':') || (!text.is_empty() && colon_is_text);
        if text.contains('?') || written_colon {
            return Err((YamlErrorKind::AmbiguousFlowText, span));
        }
        Ok(())
    }

    fn begin(
        &mut self,
        collection: Collection,
        style: StructureStyle,
        anchor: usize,
        span: Span,
    ) -> Result<(), Failure> {
        if self.awaits_key() {
            return Err((YamlErrorKind::CollectionKey, span));
        }
        let limit = self.options.limits.document_depth;
        if self.open.len() >= limit {
            return Err((YamlErrorKind::TooDeep { limit }, span));
        }
        let before = self.spent;
        let weight = Weight {
            nodes: 1,
            steps: 1,
            ..Weight::default()
        };
        self.spend(weight, span)?;
        self.open.push(Open {
            collection,
            anchor,
            flow: style == StructureStyle::Flow,
            start: span.start,
            end: span.end,
            height: 1,
            before,
        });
        Ok(())
    }

    fn end(&mut self, span: Span) -> Result<(), Failure> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        // A block collection ends with its last value, not where the parser noticed its end
        // (after blank lines and comments).
        let place = Span {
            start: open.start,
            end: if open.flow { span.end } else { open.end },
        };
        let value = match open.collection {
            Collection::List(items) => TreeValue::List(items),
            Collection::Map(map) => TreeValue::Map(map.members),
        };
        let tree = Tree::new(value, place);
        if open.anchor != 0 {
            let weight = Weight {
                nodes: self.spent.nodes - open.before.nodes,
                steps: self.spent.steps - open.before.steps,
                bytes: self.spent.bytes - open.before.bytes,
                height: open.height,
            };
            self.keep(open.anchor, &tree, weight, None)
                .map_err(|kind| (kind, place))?;
        }
        self.place(tree, open.height, place, false)
    }

    /// Inserts a copy of the anchored value. All counts come first.
    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Failure> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            // The parser knows the name, so its value is still open.
            return Err((YamlErrorKind::SelfAlias, span));
        };
        let weight = anchored.weight;
        if self.awaits_key() {
            let key = anchored.key.clone();
            let key = key.ok_or((YamlErrorKind::CollectionKey, span))?;
            self.spend(Weight { nodes: 0, ..weight }, span)?;
            self.set_pending(Pending::Value(key, span));
            return Ok(());
        }
        self.aliased += weight.steps;
        self.spend(
            Weight {
                steps: weight.steps + 1,
                ..weight
            },
            span,
        )?;
        if is_excessive(self.aliased, self.spent.steps) {
            return Err((YamlErrorKind::ExcessiveAliases, span));
        }
        let limit = self.options.limits.document_depth;
        if self.open.len() + weight.height > limit {
            return Err((YamlErrorKind::TooDeep { limit }, span));
        }
        match self.anchors.get(&anchor).map(|known| copy(&known.tree)) {
            Some(tree) => self.place(tree, weight.height, span, true),
            None => Ok(()),
        }
    }

    /// Stores a copy for aliases. The copy counts like the value itself; otherwise a value
    /// under a thousand anchors would be stored a thousand times for free.
    fn keep(
        &mut self,
        anchor: usize,
        tree: &Tree,
        weight: Weight,
        scalar: Option<&Scalar<'_>>,
    ) -> Result<(), YamlErrorKind> {
        let kept = Weight { steps: 0, ..weight };
        self.spend(kept, tree.span).map_err(|(kind, _)| kind)?;
        let anchored = Anchored {
            tree: copy(tree),
            weight,
            key: scalar.and_then(|scalar| scalar.clone().into_key().ok()),
        };
        self.anchors.insert(anchor, anchored);
        Ok(())
    }

    fn spend(&mut self, weight: Weight, span: Span) -> Result<(), Failure> {
        let limits = self.options.limits;
        self.spent.nodes = self.spent.nodes.saturating_add(weight.nodes);
        self.spent.steps = self.spent.steps.saturating_add(weight.steps);
        self.spent.bytes = self.spent.bytes.saturating_add(weight.bytes);
        if self.spent.nodes > limits.document_nodes {
            let limit = limits.document_nodes;
            return Err((YamlErrorKind::TooManyNodes { limit }, span));
        }
        if self.spent.bytes > limits.document_bytes {
            let limit = limits.document_bytes;
            return Err((YamlErrorKind::TooLarge { limit }, span));
        }
        Ok(())
    }

    fn awaits_key(&self) -> bool {
        matches!(
            self.open.last().map(|open| &open.collection),
            Some(Collection::Map(OpenMap {
                pending: Pending::Key,
                ..
            }))
        )
    }

    fn set_pending(&mut self, pending: Pending) {
        if let Some(Open {
            collection: Collection::Map(map),
            ..
        }) = self.open.last_mut()
        {
            map.pending = pending;
        }
    }

    /// Adds a finished value to its parent. `span` is the location of its text here, which
    /// for an alias is not the value's own.
    fn place(
        &mut self,
        tree: Tree,
        height: usize,
        span: Span,
        from_alias: bool,
    ) -> Result<(), Failure> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(tree);
            return Ok(());
        };
        open.end = open.end.max(span.end);
        open.height = open.height.max(height + 1);
        let map = match &mut open.collection {
            Collection::List(items) => {
                items.push(tree);
                return Ok(());
            }
            Collection::Map(map) => map,
        };
        let refuse = self.options.duplicate_keys == DuplicateKeys::Refuse;
        let result = match std::mem::take(&mut map.pending) {
            Pending::Value(key, key_span) => {
                let member = Member {
                    key,
                    key_span,
                    value: tree,
                };
                map.insert(member, refuse)
                    .map_err(|duplicate| (duplicate, key_span))
            }
            Pending::Merge => map
                .merge(tree, refuse, from_alias)
                .map_err(|reason| (reason, span)),
            // A value ends here only after its key was set.
            Pending::Key => Ok(()),
        };
        result.map_err(|(reason, place)| (self.explain(reason), place))
    }

    fn explain(&self, reason: Unplaced) -> YamlErrorKind {
        match reason {
            Unplaced::Duplicate { key, first } => {
                let offset = first.start.saturating_sub(self.base) as usize;
                YamlErrorKind::DuplicateKey {
                    key: clip(&key),
                    first_line: line_column(self.text, offset).0 + self.line - 1,
                }
            }
            Unplaced::NotMergeable(found) => YamlErrorKind::MergeValue { found },
        }
    }

    fn check_collection_tag(
        &self,
        tag: Option<&granit_parser::Tag>,
        own: &str,
        span: Span,
    ) -> Result<(), Failure> {
        match tag.map(tag_name) {
            Some(name) if name != own => Err((
                YamlErrorKind::UnsupportedTag {
                    tag: clip(&name),
                    place: "on a map or a list",
                },
                span,
            )),
            _ => Ok(()),
        }
    }
}

/// Reason why a value is not allowed in a map.
enum Unplaced {
    Duplicate { key: Box<str>, first: Span },
    NotMergeable(&'static str),
}

impl OpenMap {
    fn position(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() {
            self.members.iter().position(|member| &*member.key == key)
        } else {
            self.index.get(key).copied()
        }
    }

    /// Adds an entry. A duplicate key is rejected, or the entry is replaced: the last one
    /// wins (docs/spec/cli.md §8.4).
    fn insert(&mut self, member: Member, refuse: bool) -> Result<(), Unplaced> {
        if let Some(at) = self.position(&member.key) {
            let Some(present) = self.members.get_mut(at) else {
                return Ok(());
            };
            if refuse {
                return Err(Unplaced::Duplicate {
                    key: member.key,
                    first: present.key_span,
                });
            }
            *present = member;
            return Ok(());
        }
        if !self.index.is_empty() {
            self.index.insert(member.key.clone(), self.members.len());
        }
        self.members.push(member);
        if self.index.is_empty() && self.members.len() >= INDEX_FROM {
            let keys = self.members.iter().map(|member| member.key.clone());
            self.index = keys.zip(0..).collect();
        }
        Ok(())
    }

    /// Inserts the entries of a map in place of `<<`; in a list of maps the first one wins
    /// (docs/spec/cli.md §8.5). go-yaml accepts an alias to a map, but not an alias to a
    /// list of maps.
    fn merge(&mut self, tree: Tree, refuse: bool, from_alias: bool) -> Result<(), Unplaced> {
        let found = tree.describe();
        match tree.value {
            TreeValue::Map(members) => self.insert_all(members, refuse),
            TreeValue::List(_) if from_alias => {
                Err(Unplaced::NotMergeable("an alias that names a list"))
            }
            TreeValue::List(items) => items.into_iter().rev().try_for_each(|item| {
                let found = item.describe();
                match item.value {
                    TreeValue::Map(members) => self.insert_all(members, refuse),
                    _ => Err(Unplaced::NotMergeable(match found {
                        "a list" => "a list of lists",
                        _ => "a list with something other than a map in it",
                    })),
                }
            }),
            _ => Err(Unplaced::NotMergeable(found)),
        }
    }

    fn insert_all(&mut self, members: Vec<Member>, refuse: bool) -> Result<(), Unplaced> {
        members
            .into_iter()
            .try_for_each(|member| self.insert(member, refuse))
    }
}

/// go-yaml's limit on the share of steps that come from aliases: 99 % in a small document,
/// falling to 10 % between 400,000 and 4,000,000 steps.
fn is_excessive(aliased: usize, steps: usize) -> bool {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    let total = steps as f64;
    let beyond = (total.clamp(LOW, HIGH) - LOW) / (HIGH - LOW);
    let allowed = 0.99 - 0.89 * beyond;
    aliased > 100 && steps > 1_000 && aliased as f64 / total > allowed
}

/// Whether a key `<<` merges: unquoted, or by its tag. For go-yaml, `!` means that quotes
/// do not matter.
fn is_merge_key(plain: bool, tag: Tag<'_>) -> bool {
    match tag {
        Tag::None => plain,
        Tag::Merge | Tag::Local("!") => true,
        _ => false,
    }
}

fn check_anchor_name(name: &str) -> Result<(), YamlErrorKind> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.bytes().all(known) {
        Ok(())
    } else {
        Err(YamlErrorKind::AnchorName)
    }
}

fn tag_name(tag: &granit_parser::Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix())
}

fn tag_kind(name: Option<&str>) -> Tag<'_> {
    let Some(name) = name else {
        return Tag::None;
    };
    match name.strip_prefix("tag:yaml.org,2002:") {
        Some("str") => Tag::Str,
        Some("int") => Tag::Int,
        Some("float") => Tag::Float,
        Some("bool") => Tag::Bool,
        Some("null") => Tag::Null,
        Some("binary") => Tag::Binary,
        Some("merge") => Tag::Merge,
        Some(other) => Tag::OtherCore(other),
        None => Tag::Local(name),
    }
}
