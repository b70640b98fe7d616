//! Findings of `podSecurity` rules: controls and exclusions from them.

use zerocopy::little_endian::U32;

use super::Text;

/// What the operand `how` of `Note` says of a finding.
pub struct NoteFlags;

impl NoteFlags {
    /// Its place among the findings of its control.
    pub const PLACE: u8 = 0b11;
    /// A value is missing; else one is forbidden.
    pub const REQUIRED: u8 = 1 << 2;
    /// The control fails without listing it.
    pub const UNLISTED: u8 = 1 << 3;
    /// It counts only where the control has no other.
    pub const FALLBACK: u8 = 1 << 4;
    /// Its path ends with the key that the value stands under.
    pub const KEYED: u8 = 1 << 5;
    /// It concerns one container.
    pub const OWNED: u8 = 1 << 6;
}

record! {
    /// What findings belong to: a check of the Pod Security Standards (docs/spec/pod-security.md §5).
    Control {
        /// Its id, e.g. `seccompProfile_baseline`.
        id: Text,
        /// The name by which policies exclude it; empty where they cannot.
        name: Text,
        /// The reason that a message gives.
        reason: Text,
        /// The reason where not exactly one value is bad; empty for the same.
        reasons: Text,
        /// 1 where a report names the images of the containers concerned.
        names_images: u8,
    }
}

record! {
    /// One entry of `podSecurity.exclude` (docs/spec/pod-security.md §7).
    Exclusion {
        /// Name of the controls.
        name: Text,
        /// The general path that it is about; empty for every path.
        field: Text,
        /// List of wildcards that bad values must satisfy, or [`NONE`].
        values: U32,
        /// 1 where what a container breaks counts for the container of the same name alone.
        by_owner: u8,
    }
}
