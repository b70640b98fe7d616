//! The buffer and the primitives that put values into it, innermost first.
//!
//! A container under construction keeps its finished members on a stack
//! (`pending`), behind a placeholder for the container itself; when it closes,
//! they move to `nodes` together and thereby become neighbours. The placeholder
//! remembers (in `x`) where the placeholder of the container around it is, and (in `y`)
//! its place in the projection.

use std::cell::Cell;

use kpvm_format::symbol::{SymbolTable, key_hash, key_head};

use super::extended::Extended;
use super::node::{Key, Kind, Label, MARKED, Node, NodeId, TextRef, TextSource, Texts, text_bytes};
use super::projection::Place;
use super::view::View;

/// More nodes or text than the buffer can number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the values of one evaluation need more than 4 GiB")]
pub struct BufferFull;

/// Every value of one evaluation, in one flat buffer of nodes.
///
/// A buffer works with one symbol table between two [`DocumentBuffer::clear`]s.
#[derive(Debug, Default)]
pub struct DocumentBuffer {
    /// Finished nodes.
    pub(super) nodes: Vec<Node>,
    /// Members of containers under construction.
    pub(super) pending: Vec<Node>,
    /// Texts that lie in no outside text.
    pub(super) scratch: Vec<u8>,
    /// Keys that are no symbols.
    pub(super) keys: Vec<TextRef>,
    /// Values that only CEL has.
    pub(super) extended: Vec<Extended>,
    /// Where the placeholder of the container under construction is on `pending`.
    innermost: u32,
    /// Containers under construction.
    depth: usize,
    /// Work space for maps with many members.
    order: Vec<u32>,
    /// Somebody looked inside a map or list that was not read.
    missed: Cell<bool>,
}

/// Sizes to go back to when an input is refused midway.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    nodes: usize,
    pending: usize,
    scratch: usize,
    keys: usize,
    innermost: u32,
    depth: usize,
}

/// Maps up to this size look for duplicates pairwise, larger ones by sorting.
const PAIRWISE: usize = 24;

impl DocumentBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of the texts that were copied or computed.
    pub fn text_bytes(&self) -> usize {
        self.scratch.len()
    }

    /// Forgets all values and keeps the space.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.pending.clear();
        self.scratch.clear();
        self.keys.clear();
        self.extended.clear();
        self.innermost = 0;
        self.depth = 0;
        self.missed.set(false);
    }

    /// Whether a map or list that was left out by the reader has been looked into since
    /// the buffer was cleared: what came of that does not count.
    pub(crate) fn has_looked_at_unread(&self) -> bool {
        self.missed.get()
    }

    /// Looks at the values; `texts` are the bytes that were read into the buffer.
    pub fn view<'a>(&'a self, texts: Texts<'a>, symbols: SymbolTable<'a>) -> View<'a> {
        View {
            nodes: &self.nodes,
            texts: texts.with_scratch(&self.scratch),
            keys: &self.keys,
            extended: &self.extended,
            symbols,
            missed: &self.missed,
        }
    }

    /// Copies a computed text into the buffer.
    ///
    /// # Errors
    /// [`BufferFull`] if its place would have no number.
    pub fn copy_text(&mut self, text: &[u8]) -> Result<TextRef, BufferFull> {
        let offset = u32::try_from(self.scratch.len()).map_err(|_| BufferFull)?;
        let length = u32::try_from(text.len()).map_err(|_| BufferFull)?;
        self.scratch.extend_from_slice(text);
        Ok(TextRef {
            source: TextSource::Scratch,
            offset,
            length,
        })
    }

    /// The label for a computed key; a text that is no symbol is copied.
    ///
    /// # Errors
    /// [`BufferFull`] if the key would have no number.
    pub fn label(&mut self, key: &str, symbols: &SymbolTable<'_>) -> Result<Label, BufferFull> {
        let key = key.as_bytes();
        let hash = key_hash(key);
        match symbols.lookup_hashed(hash, key_head(key), key) {
            Some(symbol) => Ok(Label::symbol(symbol)),
            None => {
                let piece = self.copy_text(key)?;
                self.unknown_label(piece, hash)
            }
        }
    }

    fn unknown_label(&mut self, piece: TextRef, hash: u32) -> Result<Label, BufferFull> {
        let index = u32::try_from(self.keys.len()).map_err(|_| BufferFull)?;
        if Key::unknown(index) == Key::NONE || Key(index).symbol().is_none() {
            return Err(BufferFull);
        }
        self.keys.push(piece);
        Ok(Label::unknown(index, hash))
    }

    /// Begins a list or map; what is pushed until [`DocumentBuffer::finish_list`] or
    /// [`DocumentBuffer::finish_map`] becomes its members.
    pub fn begin(&mut self, label: Label) {
        self.open(label, Kind::List);
    }

    /// Begins a container of a known kind.
    #[inline]
    pub(super) fn open(&mut self, label: Label, kind: Kind) {
        self.open_at(label, kind, Place::WHOLE);
    }

    /// As [`DocumentBuffer::open`], for a container at a place of a projection.
    #[inline]
    pub(super) fn open_at(&mut self, label: Label, kind: Kind, place: Place) {
        let start = self.pending.len() as u32;
        self.push(Node::new(label, kind, self.innermost, place.0));
        self.innermost = start;
        self.depth += 1;
    }

    /// The kind with which the container under construction was begun; none of the
    /// container kinds where there is none.
    #[inline(always)]
    pub(super) fn open_kind(&self) -> Kind {
        match self.pending.get(self.innermost as usize) {
            Some(container) => container.kind,
            None => Kind::Null,
        }
    }

    /// The place in the projection of the container under construction, if there is one.
    #[inline(always)]
    pub(super) fn open_place(&self) -> Option<Place> {
        let container = self.pending.get(self.innermost as usize)?;
        Some(Place(container.y))
    }

    /// Adds a member to the container under construction.
    #[inline(always)]
    pub(super) fn push(&mut self, node: Node) {
        self.pending.push(node);
    }

    /// Adds `null`.
    pub fn push_null(&mut self, label: Label) {
        self.push(Node::new(label, Kind::Null, 0, 0));
    }

    /// Adds `true` or `false`.
    pub fn push_bool(&mut self, label: Label, value: bool) {
        let kind = if value { Kind::True } else { Kind::False };
        self.push(Node::new(label, kind, 0, 0));
    }

    /// Adds an int64.
    pub fn push_int(&mut self, label: Label, value: i64) {
        self.push(Node::number(label, Kind::Int, value as u64));
    }

    /// Adds a float64.
    pub fn push_float(&mut self, label: Label, value: f64) {
        self.push(Node::number(label, Kind::Float, value.to_bits()));
    }

    /// Adds a text that is there already; see [`DocumentBuffer::copy_text`].
    pub fn push_text(&mut self, label: Label, text: TextRef) {
        self.push(Node::text(label, text));
    }

    /// Adds a value that is in the buffer already; its members are shared, not
    /// copied. [`NodeId::MISSING`] adds `null`.
    pub fn push_node(&mut self, label: Label, node: NodeId) {
        let node = match self.nodes.get(node.0 as usize) {
            Some(node) => Node {
                key: label.key,
                hash: label.hash,
                ..*node
            },
            None => Node::new(label, Kind::Null, 0, 0),
        };
        self.push(node);
    }

    /// Ends the container begun last, as a list. Does nothing where none was begun.
    #[inline]
    pub fn finish_list(&mut self) {
        self.close(Kind::List);
    }

    /// Ends the container begun last, as the list that `items()` returns: nearly a list,
    /// but not to every function (docs/spec/jmespath.md §6.3).
    pub fn finish_entries(&mut self) {
        let start = self.innermost as usize;
        self.close(Kind::List);
        if let Some(list) = self.pending.get_mut(start) {
            list.source = MARKED;
        }
    }

    /// Adds an expression reference that is used as a value: opaque, and an empty map
    /// to whoever looks inside (docs/spec/jmespath.md §1.1).
    pub fn push_reference(&mut self, label: Label) {
        self.push(Node {
            source: MARKED,
            ..Node::new(label, Kind::Map, 0, 0)
        });
    }

    /// The label that a map's member stands under, for a member of another map.
    pub fn label_of(&self, member: NodeId) -> Label {
        match self.nodes.get(member.0 as usize) {
            Some(node) => Label {
                key: node.key,
                hash: node.hash,
            },
            None => Label::ITEM,
        }
    }

    /// Ends the container begun last, as a map. Of members with equal keys the
    /// last one stays (Go's JSON decoder; hostile row 49). `texts` are the texts
    /// that the members' keys may lie in. Does nothing where none was begun.
    #[inline]
    pub fn finish_map(&mut self, texts: Texts<'_>) {
        self.close_map(texts);
    }

    /// As [`DocumentBuffer::finish_map`]; whether there were members with equal keys.
    #[inline]
    pub(super) fn close_map(&mut self, texts: Texts<'_>) -> bool {
        let before = self.pending.len();
        if self.depth > 0 && self.may_have_duplicates() {
            self.remove_duplicates(texts);
        }
        let has_duplicates = self.pending.len() < before;
        self.close(Kind::Map);
        has_duplicates
    }

    /// Whether two members of the innermost map may have the same key: whether
    /// both halves of one member's hash have been seen before.
    #[inline(always)]
    fn may_have_duplicates(&self) -> bool {
        let members = self.pending.get(self.innermost as usize + 1..);
        let (mut seen, mut suspicious) = ([0u64; 2], 0);
        for member in members.unwrap_or(&[]) {
            let first = 1u64 << (member.hash & 63);
            let second = 1u64 << (member.hash >> 6 & 63);
            suspicious |= u64::from(seen[0] & first != 0 && seen[1] & second != 0);
            seen[0] |= first;
            seen[1] |= second;
        }
        suspicious != 0
    }

    #[inline]
    fn close(&mut self, kind: Kind) {
        if self.depth == 0 {
            return;
        }
        let start = self.innermost as usize;
        let first = self.nodes.len();
        let members = self.pending.get(start + 1..).unwrap_or(&[]);
        let count = members.len();
        self.nodes.extend_from_slice(members);
        self.pending.truncate(start + 1);
        self.depth -= 1;
        if let Some(container) = self.pending.get_mut(start) {
            self.innermost = container.x;
            container.kind = kind;
            container.x = first as u32;
            container.y = count as u32;
        }
    }

    /// Makes the value pushed last a finished value of its own.
    ///
    /// # Errors
    /// [`BufferFull`] if there are more nodes than numbers for them.
    pub fn take(&mut self) -> Result<NodeId, BufferFull> {
        let node = self.pending.pop().ok_or(BufferFull)?;
        let id = u32::try_from(self.nodes.len()).map_err(|_| BufferFull)?;
        if id == NodeId::MISSING.0 {
            return Err(BufferFull);
        }
        self.nodes.push(node);
        Ok(NodeId(id))
    }

    /// How deep the container under construction is.
    #[inline(always)]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            nodes: self.nodes.len(),
            pending: self.pending.len(),
            scratch: self.scratch.len(),
            keys: self.keys.len(),
            innermost: self.innermost,
            depth: self.depth,
        }
    }

    /// Forgets what was added since `mark`.
    pub(super) fn reset(&mut self, mark: Mark) {
        self.nodes.truncate(mark.nodes);
        self.pending.truncate(mark.pending);
        self.scratch.truncate(mark.scratch);
        self.keys.truncate(mark.keys);
        self.innermost = mark.innermost;
        self.depth = mark.depth;
    }

    /// Removes every member of the innermost map that a later one replaces.
    #[cold]
    #[inline(never)]
    fn remove_duplicates(&mut self, texts: Texts<'_>) {
        let first = self.innermost as usize + 1;
        if self.pending.len() - first > PAIRWISE {
            return self.remove_duplicates_sorted(first, texts);
        }
        let texts = texts.with_scratch(&self.scratch);
        let mut next = first;
        while let Some(&late) = self.pending.get(next) {
            let early = self.pending[first..next].iter().position(|early| {
                early.hash == late.hash
                    && sort_key(early, &self.keys, &texts) == sort_key(&late, &self.keys, &texts)
            });
            match early {
                Some(early) => drop(self.pending.remove(first + early)),
                None => next += 1,
            }
        }
    }

    /// The same for large maps: equal keys become neighbours in `order`, the
    /// earlier ones lose their key, and members without a key go.
    fn remove_duplicates_sorted(&mut self, first: usize, texts: Texts<'_>) {
        let texts = texts.with_scratch(&self.scratch);
        let (keys, order) = (&self.keys, &mut self.order);
        let members = &mut self.pending[first..];
        order.clear();
        order.extend(0..members.len() as u32);
        let key_of = |index: u32| sort_key(&members[index as usize], keys, &texts);
        order.sort_unstable_by(|&a, &b| key_of(a).cmp(&key_of(b)).then(a.cmp(&b)));
        let mut replaced = 0;
        for place in 1..order.len() {
            if key_of(order[place - 1]) == key_of(order[place]) {
                order[replaced] = order[place - 1];
                replaced += 1;
            }
        }
        for &index in &order[..replaced] {
            members[index as usize].key = Key::NONE;
        }
        let mut kept = first;
        for index in first..self.pending.len() {
            let member = self.pending[index];
            if member.key != Key::NONE {
                self.pending[kept] = member;
                kept += 1;
            }
        }
        self.pending.truncate(kept);
    }
}

/// Equal for equal keys only: a symbol's number, or an unknown key's text.
fn sort_key<'a>(node: &Node, keys: &[TextRef], texts: &[&'a [u8]; 4]) -> (u32, &'a [u8]) {
    match node.key.unknown_index() {
        None => (node.key.0, &[]),
        Some(index) => match keys.get(index) {
            Some(&piece) => (u32::MAX, text_bytes(texts, piece)),
            None => (u32::MAX, &[]),
        },
    }
}
