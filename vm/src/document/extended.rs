//! CEL values that JSON does not have.
//!
//! Other dialects never see such a value; to them it would be null.

use super::buffer::{BufferFull, DocumentBuffer};
use super::node::{Kind, Label, MARKED, Node, NodeId, TextRef, text_bytes};
use super::view::View;

/// A value that exists only in CEL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    /// A uint64.
    Uint(u64),
    /// Bytes, not necessarily UTF-8.
    Bytes(TextRef),
    /// A point in time: seconds since 1970, nanoseconds, and the offset of the zone in which
    /// it was written, in seconds.
    Timestamp(i64, u32, i32),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A type, identified by its name.
    Type(TextRef),
    /// An optional and its value.
    Optional(Option<NodeId>),
    /// A map with non-text keys: a list of alternating keys and values.
    Table(NodeId),
    /// A value of a library.
    Opaque(Opaque, TextRef),
    /// The error of an expression.
    Error(TextRef),
}

/// Types that libraries add; the accompanying text is the value's canonical form.
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
    /// An authorizer.
    Authorizer,
    /// An access check for a path.
    PathCheck,
    /// An access check for an API group.
    GroupCheck,
    /// An access check for a resource.
    ResourceCheck,
    /// An access decision.
    Decision,
    /// An image reference.
    Image,
    /// A group, version and resource.
    Gvr,
}

impl Opaque {
    /// Name of the type, as in cel-go.
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
    /// Adds a value that exists only in CEL.
    ///
    /// # Errors
    /// [`BufferFull`] if it cannot be numbered.
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
    /// The value, if it exists only in CEL.
    #[inline]
    pub fn extended(&self, id: NodeId) -> Option<Extended> {
        let node = self.nodes.get(id.0 as usize)?;
        if node.kind != Kind::Null || node.source != MARKED {
            return None;
        }
        self.extended.get(node.x as usize).copied()
    }

    /// Bytes of a piece; empty if it is out of range.
    #[inline]
    pub fn piece(&self, piece: TextRef) -> &'a [u8] {
        text_bytes(&self.texts, piece)
    }

    /// Text of a piece; empty if it is invalid.
    pub fn piece_str(&self, piece: TextRef) -> &'a str {
        std::str::from_utf8(self.piece(piece)).unwrap_or("")
    }
}
