//! Read access to the values of a buffer. No function here fails: a wrong kind, an invalid
//! node or an unavailable text returns nothing.

use std::cell::Cell;

use kpvm_format::symbol::{SymbolId, SymbolTable};
use serde_json::{Map, Value};

use super::extended::Extended;
use super::node::{Key, Kind, MARKED, Node, NodeId, TextRef, text_bytes, unknown_text_hash};

/// Values of a buffer, with the texts and symbols they refer to.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub(super) nodes: &'a [Node],
    pub(super) texts: [&'a [u8]; 4],
    pub(super) keys: &'a [TextRef],
    pub(super) extended: &'a [Extended],
    pub(super) symbols: SymbolTable<'a>,
    pub(super) missed: &'a Cell<bool>,
}

/// Children of a container, in order; also an iterator over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildRange {
    next: u32,
    end: u32,
}

impl ChildRange {
    const EMPTY: ChildRange = ChildRange { next: 0, end: 0 };

    /// Child at `index`; [`NodeId::MISSING`] after the end.
    #[inline]
    pub fn at(&self, index: usize) -> NodeId {
        if index < self.len() {
            NodeId(self.next + index as u32)
        } else {
            NodeId::MISSING
        }
    }
}

impl Iterator for ChildRange {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        let child = self.next;
        if child == self.end {
            return None;
        }
        self.next += 1;
        Some(NodeId(child))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let length = (self.end - self.next) as usize;
        (length, Some(length))
    }
}

impl DoubleEndedIterator for ChildRange {
    fn next_back(&mut self) -> Option<NodeId> {
        if self.next == self.end {
            return None;
        }
        self.end -= 1;
        Some(NodeId(self.end))
    }
}

impl ExactSizeIterator for ChildRange {}

impl<'a> View<'a> {
    #[inline]
    fn node(&self, id: NodeId) -> Option<&'a Node> {
        self.nodes.get(id.0 as usize)
    }

    /// Kind of the value; `None` for [`NodeId::MISSING`].
    #[inline]
    pub fn kind(&self, id: NodeId) -> Option<Kind> {
        self.node(id).map(|node| node.kind)
    }

    /// Whether this is a map or list that the reader left out.
    #[inline]
    pub(crate) fn is_unread(&self, id: NodeId) -> bool {
        let is_container = matches!(self.kind(id), Some(Kind::Map | Kind::List));
        is_container && self.node(id).is_some_and(Node::is_unread)
    }

    /// Members of a map; empty for other kinds.
    #[inline]
    fn members(&self, map: NodeId) -> (u32, &'a [Node]) {
        match self.node(map) {
            Some(node) if node.kind == Kind::Map => {
                if node.is_unread() {
                    self.missed.set(true);
                    return (0, &[]);
                }
                let (start, length) = (node.x as usize, node.y as usize);
                let members = self.nodes.get(start..start.saturating_add(length));
                (node.x, members.unwrap_or(&[]))
            }
            _ => (0, &[]),
        }
    }

    /// Value under a symbol; [`NodeId::MISSING`] if `map` is not a map or has no such key.
    #[inline]
    pub fn get(&self, map: NodeId, key: SymbolId) -> NodeId {
        let (first, members) = self.members(map);
        match members.iter().position(|member| member.key.0 == key.0) {
            Some(index) => NodeId(first + index as u32),
            None => NodeId::MISSING,
        }
    }

    /// Value under a key that is not necessarily a symbol.
    pub fn get_text(&self, map: NodeId, key: &[u8]) -> NodeId {
        if let Some(symbol) = self.symbols.lookup(key) {
            return self.get(map, symbol);
        }
        let hash = unknown_text_hash(key);
        let (first, members) = self.members(map);
        let found = members.iter().position(|member| {
            member.hash == hash
                && member.key.symbol().is_none()
                && self.node_key_bytes(member) == key
        });
        match found {
            Some(index) => NodeId(first + index as u32),
            None => NodeId::MISSING,
        }
    }

    /// Members of a map or list; empty for other kinds.
    #[inline]
    pub fn children(&self, id: NodeId) -> ChildRange {
        match self.node(id) {
            Some(node) => match node.kind {
                Kind::List | Kind::Map if node.is_unread() => {
                    self.missed.set(true);
                    ChildRange::EMPTY
                }
                Kind::List | Kind::Map => ChildRange {
                    next: node.x,
                    end: node.x.saturating_add(node.y),
                },
                Kind::Null | Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::String => {
                    ChildRange::EMPTY
                }
            },
            None => ChildRange::EMPTY,
        }
    }

    /// Number of members of a map or list; 0 for other kinds.
    #[inline]
    pub fn len(&self, id: NodeId) -> usize {
        self.children(id).len()
    }

    /// Whether there are no members: true for empty maps and lists and for all other kinds.
    pub fn is_empty(&self, id: NodeId) -> bool {
        self.len(id) == 0
    }

    /// Bytes of a string, which are UTF-8; empty for other kinds.
    #[inline]
    pub fn text(&self, id: NodeId) -> &'a [u8] {
        match self.node(id) {
            Some(node) if node.kind == Kind::String => text_bytes(&self.texts, node.piece()),
            _ => &[],
        }
    }

    /// Text of a string; empty for other kinds.
    pub fn str(&self, id: NodeId) -> &'a str {
        std::str::from_utf8(self.text(id)).unwrap_or("")
    }

    /// Text range of a string.
    pub fn text_ref(&self, id: NodeId) -> Option<TextRef> {
        self.node(id)
            .filter(|node| node.kind == Kind::String)
            .map(Node::piece)
    }

    /// Value of an Int; `None` for other kinds.
    #[inline]
    pub fn int(&self, id: NodeId) -> Option<i64> {
        self.node(id)
            .filter(|node| node.kind == Kind::Int)
            .map(|node| node.bits() as i64)
    }

    /// Value of a Float; `None` for other kinds, including Int.
    #[inline]
    pub fn float(&self, id: NodeId) -> Option<f64> {
        self.node(id)
            .filter(|node| node.kind == Kind::Float)
            .map(|node| f64::from_bits(node.bits()))
    }

    /// Value of a boolean; `None` for other kinds.
    #[inline]
    pub fn bool(&self, id: NodeId) -> Option<bool> {
        match self.kind(id)? {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::Null | Kind::Int | Kind::Float | Kind::String | Kind::List | Kind::Map => None,
        }
    }

    /// Whether this is an unmodified result of `items()`.
    #[inline]
    pub fn is_entries(&self, id: NodeId) -> bool {
        self.is_marked(id, Kind::List)
    }

    /// Whether this is an expression reference used as a value.
    #[inline]
    pub fn is_reference(&self, id: NodeId) -> bool {
        self.is_marked(id, Kind::Map)
    }

    #[inline]
    fn is_marked(&self, id: NodeId, kind: Kind) -> bool {
        self.node(id)
            .is_some_and(|node| node.kind == kind && node.source == MARKED)
    }

    /// Key of a map's member; empty for list items and roots.
    #[inline]
    pub fn key_bytes(&self, id: NodeId) -> &'a [u8] {
        self.node(id).map_or(&[], |node| self.node_key_bytes(node))
    }

    /// [`View::key_bytes`] as text.
    pub fn key_str(&self, id: NodeId) -> &'a str {
        std::str::from_utf8(self.key_bytes(id)).unwrap_or("")
    }

    /// The text of a symbol.
    #[inline]
    pub fn symbol_bytes(&self, symbol: SymbolId) -> &'a [u8] {
        self.symbols.bytes(symbol)
    }

    /// Key of a value; `None` if it is not a member of a map.
    pub fn key_of(&self, id: NodeId) -> Option<&'a str> {
        let node = self.node(id).filter(|node| node.key != Key::NONE)?;
        std::str::from_utf8(self.node_key_bytes(node)).ok()
    }

    /// Symbol of a map's member, if its key is one.
    #[inline]
    pub fn key_symbol(&self, id: NodeId) -> Option<SymbolId> {
        self.node(id).and_then(|node| node.key.symbol())
    }

    #[inline]
    fn node_key_bytes(&self, node: &Node) -> &'a [u8] {
        match node.key.symbol() {
            Some(symbol) => self.symbols.bytes(symbol),
            None => match node
                .key
                .unknown_index()
                .and_then(|index| self.keys.get(index))
            {
                Some(&piece) => text_bytes(&self.texts, piece),
                None => &[],
            },
        }
    }

    /// The value as a `serde_json::Value`; `null` for [`NodeId::MISSING`].
    pub fn to_value(&self, id: NodeId) -> Value {
        let mut open: Vec<Partial> = Vec::new();
        let mut next = id;
        loop {
            let mut value = match self.kind(next) {
                Some(kind @ (Kind::List | Kind::Map)) => {
                    open.push(Partial {
                        id: next,
                        rest: self.children(next),
                        value: match kind {
                            Kind::Map => Value::Object(Map::new()),
                            _ => Value::Array(Vec::with_capacity(self.len(next))),
                        },
                    });
                    None
                }
                _ => Some((next, self.scalar(next))),
            };
            // Hand finished values to their parents until one has more members.
            loop {
                let Some(parent) = open.last_mut() else {
                    return value.map_or(Value::Null, |(_, value)| value);
                };
                if let Some((id, member)) = value.take() {
                    parent.add(self.key_str(id), member);
                }
                match parent.rest.next() {
                    Some(child) => {
                        next = child;
                        break;
                    }
                    None => value = open.pop().map(|done| (done.id, done.value)),
                }
            }
        }
    }

    fn scalar(&self, id: NodeId) -> Value {
        match self.kind(id) {
            Some(Kind::False) => Value::Bool(false),
            Some(Kind::True) => Value::Bool(true),
            Some(Kind::Int) => self.int(id).map_or(Value::Null, Value::from),
            Some(Kind::Float) => self.float(id).map_or(Value::Null, Value::from),
            Some(Kind::String) => Value::from(self.str(id)),
            Some(Kind::Null | Kind::List | Kind::Map) | None => Value::Null,
        }
    }
}

/// A container being converted into a `serde_json::Value`.
struct Partial {
    id: NodeId,
    rest: ChildRange,
    value: Value,
}

impl Partial {
    fn add(&mut self, key: &str, member: Value) {
        match &mut self.value {
            Value::Array(items) => items.push(member),
            Value::Object(members) => {
                members.insert(key.to_owned(), member);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
