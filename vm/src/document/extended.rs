//! Values of CEL that JSON does not have.
//!
//! To every other dialect such a value is null; none of them ever sees one.

use super::buffer::{BufferFull, DocumentBuffer};
use super::node::{Kind, Label, MARKED, Node, NodeId, TextRef, text_bytes};
use super::view::View;

/// A value that only CEL has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    /// A uint64.
    Uint(u64),
    /// Bytes that need not be text.
    Bytes(TextRef),
    /// A point in time: seconds since 1970 and nanoseconds on top.
    Timestamp(i64, u32),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A type, by its name.
    Type(TextRef),
    /// An optional and what it holds.
    Optional(Option<NodeId>),
    /// A map with a key that is no text: a list of keys and values in turn.
    Table(NodeId),
    /// A value of a library.
    Opaque(Opaque, TextRef),
    /// The error that an expression had.
    Error(TextRef),
}

/// The types that libraries add; the text beside it is the value's canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opaque {
    /// A quantity.
    Quantity,
    /// An IP address.
    Ip,
    /// A network.
    Cidr,
    /// A URL.
    Url,
    /// A semantic version.
    Semver,
    /// A named format.
    Format,
    /// Who asks for access.
    Authorizer,
    /// Access to a path.
    PathCheck,
    /// Access to what an API group has.
    GroupCheck,
    /// Access to a resource.
    ResourceCheck,
    /// Whether access is granted.
    Decision,
    /// A reference to an image.
    Image,
    /// A group, version and resource.
    Gvr,
}

impl Opaque {
    /// The type's name, as cel-go shows it.
    pub fn type_name(self) -> &'static str {
        match self {
            Opaque::Quantity => "kubernetes.Quantity",
            Opaque::Ip => "net.IP",
            Opaque::Cidr => "net.CIDR",
            Opaque::Url => "kubernetes.URL",
            Opaque::Semver => "kubernetes.Semver",
            Opaque::Format => "kubernetes.NamedFormat",
            Opaque::Authorizer => "kubernetes.authorization.Authorizer",
            Opaque::PathCheck => "kubernetes.authorization.PathCheck",
            Opaque::GroupCheck => "kubernetes.authorization.GroupCheck",
            Opaque::ResourceCheck => "kubernetes.authorization.ResourceCheck",
            Opaque::Decision => "kubernetes.authorization.Decision",
            Opaque::Image => "kyverno.ImageReference",
            Opaque::Gvr => "kyverno.GVR",
        }
    }
}

impl DocumentBuffer {
    /// Adds a value that only CEL has.
    ///
    /// # Errors
    /// [`BufferFull`] if it would have no number.
    pub fn push_extended(&mut self, label: Label, value: Extended) -> Result<(), BufferFull> {
        let index = u32::try_from(self.extended.len()).map_err(|_| BufferFull)?;
        self.extended.push(value);
        self.push(Node {
            source: MARKED,
            ..Node::new(label, Kind::Null, index, 0)
        });
        Ok(())
    }
}

impl<'a> View<'a> {
    /// The value, if it is one that only CEL has.
    #[inline]
    pub fn extended(&self, id: NodeId) -> Option<Extended> {
        let node = self.nodes.get(id.0 as usize)?;
        if node.kind != Kind::Null || node.source != MARKED {
            return None;
        }
        self.extended.get(node.x as usize).copied()
    }

    /// The bytes of a piece; none if it does not lie in its text.
    #[inline]
    pub fn piece(&self, piece: TextRef) -> &'a [u8] {
        text_bytes(&self.texts, piece)
    }

    /// The text of a piece; empty if it is none.
    pub fn piece_str(&self, piece: TextRef) -> &'a str {
        std::str::from_utf8(self.piece(piece)).unwrap_or("")
    }
}
