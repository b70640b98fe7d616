//! What instructions look at, in the resource and in the policy.

use zerocopy::little_endian::U32;

use super::{Range, Text};

record! {
    /// A place in a policy's file.
    Place {
        /// Number of the source file.
        source: U32,
        /// Line from 1.
        line: U32,
        /// Column from 1.
        column: U32,
    }
}

record! {
    /// What an instruction looks at: in the resource and in the policy. Errors are
    /// worded, runs are traced and coverage is counted by it.
    Site {
        /// Number of the instruction in the code section.
        instruction: U32,
        /// A [`SiteKind`].
        kind: u8,
        /// Range of `path_segments`: the path of the value.
        path: Range,
        /// The part of the rule that the instruction belongs to, e.g.
        /// `preconditions.all[0]`.
        part: Text,
        /// What stands there as far as the instruction does not say it itself: the field
        /// of a filter, the key of a condition, an anchored key, the list of a foreach.
        written: Text,
        /// Where that is written.
        place: Place,
    }
}

impl Site {
    /// What the instruction does for the policy.
    pub fn kind(&self) -> SiteKind {
        SiteKind::ALL
            .get(usize::from(self.kind))
            .copied()
            .unwrap_or(SiteKind::Structure)
    }
}

/// What an instruction with a site does for the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SiteKind {
    /// Asks for a map, a list, or something else that only carries other checks.
    Structure,
    /// Tests a filter of `match`.
    Filter,
    /// Tests a filter of `exclude`.
    Exclusion,
    /// Tests a condition of `preconditions` or `deny`.
    Condition,
    /// Tests a value with a leaf of a pattern.
    Leaf,
    /// Tests the entries of a label or annotation pattern; each is a leaf of its own.
    Tags,
    /// Asks whether an anchored key is there.
    Anchor,
    /// Asks whether the key of a negation anchor is absent, as it has to be.
    Absence,
    /// Notes that an alternative of an `anyPattern` holds, or that it does not.
    Alternative,
    /// Takes the elements of a `foreach` one after another.
    Elements,
}

impl SiteKind {
    /// Every kind in the order of its number.
    pub const ALL: [SiteKind; 10] = [
        SiteKind::Structure,
        SiteKind::Filter,
        SiteKind::Exclusion,
        SiteKind::Condition,
        SiteKind::Leaf,
        SiteKind::Tags,
        SiteKind::Anchor,
        SiteKind::Absence,
        SiteKind::Alternative,
        SiteKind::Elements,
    ];
}

record! {
    /// A piece of a path.
    PathSegment {
        /// The text, when `loop_slot` is [`NONE`].
        text: Text,
        /// The loop slot whose index stands here, or [`NONE`].
        loop_slot: U32,
    }
}
