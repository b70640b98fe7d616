//! The node buffer, and the primitives that build values in it, innermost first.
//!
//! A container under construction keeps its finished members on a stack (`pending`), above
//! a placeholder for the container itself. When it closes, they move to `nodes` together,
//! so they become contiguous. The placeholder stores (in `x`) the position of the enclosing
//! placeholder and (in `y`) its place in the projection.

use std::fmt;

use std::cell::Cell;

use kpvm_format::symbol::{SymbolTable, key_hash, key_head};

use super::extended::Extended;
use super::node::{Key, Kind, Label, MARKED, Node, NodeId, TextRef, TextSource, Texts, text_bytes};
use super::projection::Place;
use super::view::View;

/// The buffer cannot number more nodes or text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferFull;

impl fmt::Display for BufferFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the values of one evaluation need more than 4 GiB")
    }
}

impl std::error::Error for BufferFull {}

/// All values of one evaluation, in one flat buffer of nodes.
///
/// Between two calls of [`DocumentBuffer::clear`], a buffer uses a single symbol table.
#[derive(Debug, Default)]
pub struct DocumentBuffer {
    /// Finished nodes.
    pub(super) nodes: Vec<Node>,
    /// Members of containers under construction.
    pub(super) pending: Vec<Node>,
    /// Texts that are not in an outside text.
    pub(super) scratch: Vec<u8>,
    /// Keys that are not symbols.
    pub(super) keys: Vec<TextRef>,
    /// Values that exist only in CEL.
    pub(super) extended: Vec<Extended>,
    /// Position on `pending` of the placeholder of the container under construction.
    innermost: u32,
    /// Number of containers under construction.
    depth: usize,
    /// Scratch space for maps with many members.
    order: Vec<u32>,
    /// Whether an unread map or list was accessed.
    missed: Cell<bool>,
}

/// Sizes to restore if an input is rejected midway.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    nodes: usize,
    pending: usize,
    scratch: usize,
    keys: usize,
    innermost: u32,
    depth: usize,
}

/// Maps up to this size compare keys pairwise to find duplicates, larger ones sort them.
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

    /// Removes all values and keeps the allocations.
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

    /// Whether an unread map or list was accessed since the buffer was cleared. If so,
    /// results are invalid and the evaluation must be repeated.
    pub(crate) fn has_looked_at_unread(&self) -> bool {
        self.missed.get()
    }

    /// View of the values; `texts` are the bytes that were read into the buffer.
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
    /// [`BufferFull`] if its offset cannot be numbered.
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

    /// Label of a computed key; a text that is not a symbol is copied.
    ///
    /// # Errors
    /// [`BufferFull`] if the key cannot be numbered.
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

    /// Begins a list or map; values pushed until [`DocumentBuffer::finish_list`] or
    /// [`DocumentBuffer::finish_map`] become its members.
    pub fn begin(&mut self, label: Label) {
        self.open(label, Kind::List);
    }

    /// Begins a container of a known kind.
    #[inline]
    pub(super) fn open(&mut self, label: Label, kind: Kind) {
        self.open_at(label, kind, Place::WHOLE);
    }

    /// Like [`DocumentBuffer::open`], for a container at a place of a projection.
    #[inline]
    pub(super) fn open_at(&mut self, label: Label, kind: Kind, place: Place) {
        let start = self.pending.len() as u32;
        self.push(Node::new(label, kind, self.innermost, place.0));
        self.innermost = start;
        self.depth += 1;
    }

    /// Kind of the container under construction; not a container kind if there is none.
    #[inline(always)]
    pub(super) fn open_kind(&self) -> Kind {
        match self.pending.get(self.innermost as usize) {
            Some(container) => container.kind,
            None => Kind::Null,
        }
    }

    /// Place in the projection of the container under construction, if there is one.
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

    /// Adds a text that is already in the buffer; see [`DocumentBuffer::copy_text`].
    pub fn push_text(&mut self, label: Label, text: TextRef) {
        self.push(Node::text(label, text));
    }

    /// Adds a value that is already in the buffer; its members are shared, not copied.
    /// [`NodeId::MISSING`] adds `null`.
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

    /// Closes the innermost container as a list. No effect if there is none.
    #[inline]
    pub fn finish_list(&mut self) {
        self.close(Kind::List);
    }

    /// Closes the innermost container as the list that `items()` returns, which some
    /// functions distinguish from a list (docs/spec/jmespath.md §6.3).
    pub fn finish_entries(&mut self) {
        let start = self.innermost as usize;
        self.close(Kind::List);
        if let Some(list) = self.pending.get_mut(start) {
            list.source = MARKED;
        }
    }

    /// Adds an expression reference used as a value: opaque, and an empty map if accessed
    /// (docs/spec/jmespath.md §1.1).
    pub fn push_reference(&mut self, label: Label) {
        self.push(Node {
            source: MARKED,
            ..Node::new(label, Kind::Map, 0, 0)
        });
    }

    /// Label of a map's member, for use in another map.
    pub fn label_of(&self, member: NodeId) -> Label {
        match self.nodes.get(member.0 as usize) {
            Some(node) => Label {
                key: node.key,
                hash: node.hash,
            },
            None => Label::ITEM,
        }
    }

    /// Closes the innermost container as a map. Of members with equal keys the last one is
    /// kept (as in Go's JSON decoder; hostile row 49). `texts` are the texts that keys of
    /// the members may be in. No effect if there is no container.
    #[inline]
    pub fn finish_map(&mut self, texts: Texts<'_>) {
        self.close_map(texts);
    }

    /// Like [`DocumentBuffer::finish_map`]; returns whether there were duplicate keys.
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

    /// Whether two members of the innermost map may have the same key: whether both halves
    /// of a member's hash have occurred before.
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

    /// Makes the value pushed last a finished root value.
    ///
    /// # Errors
    /// [`BufferFull`] if the nodes cannot be numbered.
    pub fn take(&mut self) -> Result<NodeId, BufferFull> {
        let node = self.pending.pop().ok_or(BufferFull)?;
        let id = u32::try_from(self.nodes.len()).map_err(|_| BufferFull)?;
        if id == NodeId::MISSING.0 {
            return Err(BufferFull);
        }
        self.nodes.push(node);
        Ok(NodeId(id))
    }

    /// Nesting depth of the container under construction.
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

    /// Removes everything added since `mark`.
    pub(super) fn reset(&mut self, mark: Mark) {
        self.nodes.truncate(mark.nodes);
        self.pending.truncate(mark.pending);
        self.scratch.truncate(mark.scratch);
        self.keys.truncate(mark.keys);
        self.innermost = mark.innermost;
        self.depth = mark.depth;
    }

    /// Removes members of the innermost map that a later one replaces.
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

    /// The same for large maps: sorts equal keys next to each other in `order`, clears the
    /// key of earlier ones, and removes members without a key.
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

/// Sort key: equal only for equal keys. A symbol's number, or an unknown key's text.
fn sort_key<'a>(node: &Node, keys: &[TextRef], texts: &[&'a [u8]; 4]) -> (u32, &'a [u8]) {
    match node.key.unknown_index() {
        None => (node.key.0, &[]),
        Some(index) => match keys.get(index) {
            Some(&piece) => (u32::MAX, text_bytes(texts, piece)),
            None => (u32::MAX, &[]),
        },
    }
}
