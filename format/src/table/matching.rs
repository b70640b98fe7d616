//! What match blocks ask for: kinds, labels, users.

use zerocopy::little_endian::U32;

use super::{Range, Text};

record! {
    /// A kind selector (docs/spec/policies.md §4).
    KindSelector {
        /// Wildcard over the group.
        group: Text,
        /// Wildcard over the version.
        version: Text,
        /// Wildcard over the kind.
        kind: Text,
        /// Wildcard over the subresource.
        subresource: Text,
    }
}

record! {
    /// Two texts: a label or annotation with its value.
    Pair {
        /// Key.
        key: Text,
        /// Value.
        value: Text,
    }
}

record! {
    /// A label selector (docs/spec/policies.md §5.4).
    Selector {
        /// 1 when the selector can never be converted: it selects nothing.
        malformed: u8,
        /// Range of `pairs`: `matchLabels`.
        labels: Range,
        /// Range of `requirements`: `matchExpressions`.
        requirements: Range,
    }
}

record! {
    /// One of `matchExpressions`.
    Requirement {
        /// A [`RequirementOperator`].
        operator: u8,
        /// The label's key.
        key: Text,
        /// Number of a list of texts.
        values: U32,
    }
}

/// Operators of `matchExpressions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RequirementOperator {
    /// The label is there with one of the values.
    In,
    /// The label is absent or has another value.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl RequirementOperator {
    /// Every operator in the order of its number.
    pub const ALL: [RequirementOperator; 4] = [
        RequirementOperator::In,
        RequirementOperator::NotIn,
        RequirementOperator::Exists,
        RequirementOperator::DoesNotExist,
    ];
}

record! {
    /// A subject of a match block.
    Subject {
        /// A [`SubjectKind`].
        kind: u8,
        /// A wildcard over the user name or a group; for a service account the whole
        /// `system:serviceaccount:namespace:name`.
        name: Text,
    }
}

/// Kinds of subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SubjectKind {
    /// A user or a service account, by user name.
    User,
    /// A group.
    Group,
    /// A kind that nobody has: never matches.
    Unknown,
}

impl SubjectKind {
    /// Every kind in the order of its number.
    pub const ALL: [SubjectKind; 3] = [SubjectKind::User, SubjectKind::Group, SubjectKind::Unknown];
}
