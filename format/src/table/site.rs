//! Places in policies, and the records that the sites of instructions refer to; the sites
//! themselves are packed ([`crate::site`]).

use zerocopy::little_endian::{I32, U32};

use super::Text;

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
    /// A place in a policy's file, relative to the place of a rule or absolute. What rules
    /// share has relative places: copies of a rule differ in where they are written only.
    SitePlace {
        /// 1 if the place is in the file of the rule at hand and its line is relative to the
        /// rule's.
        relative: u8,
        /// Number of the source file; 0 if the place is relative.
        source: U32,
        /// Line from 1, or its distance from the rule's.
        line: I32,
        /// Column from 1.
        column: U32,
    }
}

impl SitePlace {
    /// The place itself, for a rule that is written at `rule`.
    pub fn of(&self, rule: &Place) -> Place {
        let (source, line) = match self.relative {
            0 => (self.source, 0),
            _ => (rule.source, rule.line.get()),
        };
        Place {
            source,
            line: U32::new(line.wrapping_add_signed(self.line.get())),
            column: self.column,
        }
    }

    /// The same place relative to that of a rule, if it is in the same file.
    #[must_use]
    pub fn relative_to(&self, rule: &Place) -> Self {
        if self.relative != 0 || self.source != rule.source {
            return *self;
        }
        let line = self.line.get().wrapping_sub(rule.line.get() as i32);
        Self {
            relative: 1,
            source: U32::ZERO,
            line: I32::new(line),
            column: self.column,
        }
    }
}

impl From<Place> for SitePlace {
    fn from(place: Place) -> Self {
        Self {
            relative: 0,
            source: place.source,
            line: I32::new(place.line.get() as i32),
            column: place.column,
        }
    }
}

record! {
    /// Some sites of a block: a run of at most [`crate::site::MAX_RUN`].
    SiteRun {
        /// Position in the block of the first site's instruction.
        position: U32,
        /// Offset of the packed sites among those of the bundle.
        offset: U32,
    }
}

record! {
    /// The texts of a site, interned together.
    SiteLabel {
        /// The part of the rule that the instruction belongs to, e.g.
        /// `preconditions.all[0]`.
        part: Text,
        /// What is written there as far as the instruction does not say it itself: the field
        /// of a filter, the key of a condition, an anchored key, the list of a foreach.
        written: Text,
    }
}

record! {
    /// A path to a value that messages name: one segment after another path.
    SitePath {
        /// A path with a smaller number, or [`super::NONE`] for the empty path.
        parent: U32,
        /// Number of a text of `path_texts`, or [`SitePath::LOOP`] with the number of the
        /// loop slot whose index is the segment.
        segment: U32,
    }
}

impl SitePath {
    /// Bit of segments that are the index of a loop.
    pub const LOOP: u32 = 1 << 31;
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
