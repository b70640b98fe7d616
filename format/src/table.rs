//! The records that instructions refer to. Every record has a fixed size, holds
//! little-endian integers and needs no alignment, so that tables are used in place
//! from the bundle's bytes.

use zerocopy::little_endian::{I64, U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

macro_rules! record {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $field_doc:literal])+ $field:ident : $type:ty,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[doc = $field_doc])+ pub $field: $type,)+ }
    };
}

pub(crate) use record;

/// Number of comparison operators, `kpvm_semantics::Operator`.
pub const OPERATORS: u8 = 6;

/// Number of wildcard shapes, `kpvm_semantics::WildcardClass`.
pub const WILDCARD_CLASSES: u8 = 6;

/// Number of anchors, `kpvm_semantics::anchor::Anchor`.
pub const ANCHORS: u8 = 7;

/// Stands for "none" where a record names an optional entry.
pub const NONE: u32 = u32::MAX;

record! {
    /// A text: a range of bytes of the string pool, cut at character borders.
    Text {
        /// Offset of the first byte.
        offset: U32,
        /// Number of bytes.
        length: U32,
    }
}

record! {
    /// A range of entries of another table.
    Range {
        /// First entry.
        start: U32,
        /// Number of entries.
        length: U32,
    }
}

record! {
    /// A run of instructions with its frame.
    Block {
        /// First instruction.
        start: U32,
        /// Number of instructions.
        length: U32,
        /// Registers used.
        registers: U16,
        /// Loop slots used.
        loops: u8,
        /// Fold slots used.
        folds: u8,
        /// List accumulators used.
        lists: u8,
        /// Text accumulators used.
        accumulators: u8,
    }
}

record! {
    /// One step of a static path: the value under `symbol` of the value at `parent`.
    Path {
        /// A path with a smaller number, or [`NONE`] for the root.
        parent: U32,
        /// The key.
        symbol: U32,
    }
}

record! {
    /// A leaf predicate (docs/spec/patterns.md §5): the pattern's type and value.
    Leaf {
        /// A [`LeafKind`].
        kind: u8,
        /// bool: 0 or 1; int: two's complement; float: bits.
        value: U64,
        /// The pattern's text for a string; what `%v` prints for others.
        text: Text,
        /// Range of `alternatives`, for a string.
        alternatives: Range,
    }
}

/// Type of a leaf's pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LeafKind {
    /// `null`
    Null,
    /// A boolean.
    Bool,
    /// An int64.
    Int,
    /// A float64.
    Float,
    /// A text with operators, alternatives and wildcards.
    String,
}

impl LeafKind {
    /// Every kind in the order of its number.
    pub const ALL: [LeafKind; 5] = [
        LeafKind::Null,
        LeafKind::Bool,
        LeafKind::Int,
        LeafKind::Float,
        LeafKind::String,
    ];
}

record! {
    /// One comparison of a string pattern, operand parsed at compile time.
    Comparison {
        /// An `kpvm_semantics::Operator`, below [`OPERATORS`].
        operator: u8,
        /// A `kpvm_semantics::WildcardClass`, below [`WILDCARD_CLASSES`] of the operand.
        class: u8,
        /// Bits of [`ComparisonFlags`].
        flags: u8,
        /// A [`Join`]: how the next comparison of the pattern goes on.
        join: u8,
        /// The operand's text.
        operand: Text,
        /// The operand as nanoseconds, if flagged.
        duration: I64,
        /// The operand as 1e-9 units of a quantity (two's complement), if flagged.
        quantity: U128,
    }
}

/// What [`Comparison::flags`] says.
pub struct ComparisonFlags;

impl ComparisonFlags {
    /// The operand is a duration.
    pub const DURATION: u8 = 1;
    /// The operand is a quantity that fits [`Comparison::quantity`].
    pub const QUANTITY: u8 = 2;
    /// The operand is a quantity beyond that; it is parsed from the text when needed.
    pub const BIG_QUANTITY: u8 = 4;
    /// All bits that mean something.
    pub const ALL: u8 = 7;
}

/// How a comparison is joined with the one behind it.
///
/// A string pattern is alternatives of conjunctions of comparisons; a range outside
/// (`a!-b`) is two comparisons of which one must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Join {
    /// Both must hold.
    And,
    /// One of the two must hold (an outside range); binds tighter than [`Join::And`].
    Either,
    /// The last of its alternative.
    End,
}

impl Join {
    /// Every join in the order of its number.
    pub const ALL: [Join; 3] = [Join::And, Join::Either, Join::End];
}

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
    /// A constant value.
    Constant {
        /// A [`ConstantKind`].
        kind: u8,
        /// bool: 0 or 1; int: two's complement; float: bits.
        value: U64,
        /// The key it stands under in a map.
        key: Text,
        /// The text of a string.
        text: Text,
        /// Range of `constants` with larger numbers: items or members.
        children: Range,
    }
}

/// Type of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ConstantKind {
    /// `null`
    Null,
    /// A boolean.
    Bool,
    /// An int64.
    Int,
    /// A float64.
    Float,
    /// A text.
    String,
    /// A list.
    List,
    /// A map.
    Map,
    /// An expression reference used as a value.
    Reference,
    /// A uint64 of CEL.
    Uint,
    /// Bytes of CEL, each the character with its number in the text.
    Bytes,
    /// A type of CEL, by its name.
    Type,
}

impl ConstantKind {
    /// Every kind in the order of its number.
    pub const ALL: [ConstantKind; 11] = [
        ConstantKind::Null,
        ConstantKind::Bool,
        ConstantKind::Int,
        ConstantKind::Float,
        ConstantKind::String,
        ConstantKind::List,
        ConstantKind::Map,
        ConstantKind::Reference,
        ConstantKind::Uint,
        ConstantKind::Bytes,
        ConstantKind::Type,
    ];
}

record! {
    /// A slice `[start:stop:step]`; each part with a flag for being there.
    Slice {
        /// Bit 0 start, 1 stop, 2 step.
        parts: u8,
        /// First item.
        start: I64,
        /// Item before which to stop.
        stop: I64,
        /// Distance.
        step: I64,
    }
}

record! {
    /// A variable of a rule's context.
    Slot {
        /// The symbol of its name.
        name: U32,
    }
}

record! {
    /// A context entry of a rule.
    Entry {
        /// The variable that it sets.
        slot: U32,
        /// Block that computes the value.
        block: U32,
        /// 1 for an entry of a foreach block: inactive until an element makes it active.
        nested: u8,
    }
}

record! {
    /// A type of Go that a JSON value is decoded into (docs/spec/pod-security.md §2).
    Shape {
        /// A [`ShapeKind`].
        kind: u8,
        /// The type as Go prints it, e.g. `v1.Container`.
        name: Text,
        /// Shape of the items of a list or the values of a map, with a smaller number;
        /// [`NONE`] for others.
        item: U32,
        /// Range of `shape_fields`, for a struct.
        fields: Range,
        /// Range of `shape_slots`: where [`Shape::slot`] finds the fields; a power of two.
        slots: Range,
    }
}

impl Shape {
    /// What stands in a slot without a field.
    pub const EMPTY_SLOT: u8 = u8::MAX;

    /// The slot at which the search for a symbol's field begins, among so many; where it
    /// is taken by another, the next one is looked at.
    #[inline]
    pub fn slot(symbol: u32, slots: usize) -> usize {
        let hash = symbol.wrapping_mul(0x9E37_79B1);
        (hash >> 16) as usize & slots.wrapping_sub(1)
    }

    /// The field of a symbol, among the fields and slots of a shape.
    #[inline]
    pub fn field<'t>(
        symbol: u32,
        fields: &'t [ShapeField],
        slots: &[u8],
    ) -> Option<&'t ShapeField> {
        let start = Self::slot(symbol, slots.len());
        for offset in 0..slots.len() {
            let slot = (start + offset) & slots.len().wrapping_sub(1);
            let field = fields.get(usize::from(*slots.get(slot)?))?;
            if field.key.get() == symbol {
                return Some(field);
            }
        }
        None
    }
}

record! {
    /// A field of a struct's [`Shape`].
    ShapeField {
        /// The symbol of its key.
        key: U32,
        /// Its shape, with a smaller number than the struct's.
        shape: U32,
        /// 1 where null takes away what an equal key gave before: pointers, lists, maps.
        nullable: u8,
        /// Names of the embedded structs that it stands in, each with a dot behind it.
        embedded: Text,
    }
}

/// What a [`Shape`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ShapeKind {
    /// Anything.
    Any,
    /// A boolean.
    Bool,
    /// A text.
    Text,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A quantity, as a text or a number.
    Quantity,
    /// A text, or a whole number of 32 bits.
    IntOrText,
    /// A time of RFC 3339.
    Time,
    /// A list.
    List,
    /// A map.
    Map,
    /// A struct.
    Struct,
}

impl ShapeKind {
    /// Every kind in the order of its number.
    pub const ALL: [ShapeKind; 11] = [
        ShapeKind::Any,
        ShapeKind::Bool,
        ShapeKind::Text,
        ShapeKind::Int32,
        ShapeKind::Int64,
        ShapeKind::Quantity,
        ShapeKind::IntOrText,
        ShapeKind::Time,
        ShapeKind::List,
        ShapeKind::Map,
        ShapeKind::Struct,
    ];
}

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

record! {
    /// A pattern over labels or annotations with wildcards in its keys.
    TagPattern {
        /// The symbol of `metadata`.
        metadata: U32,
        /// The symbol of `labels` or `annotations`.
        tag: U32,
        /// Range of `tag_entries`.
        entries: Range,
    }
}

record! {
    /// One entry of a [`TagPattern`].
    TagEntry {
        /// An `kpvm_semantics::anchor::Anchor`, below [`ANCHORS`].
        anchor: u8,
        /// 1 when the key has a wildcard.
        wildcard: u8,
        /// 1 when the value is exactly `*` under a plain key: any value that is not null.
        star: u8,
        /// The key without anchor.
        key: Text,
        /// The predicate for the value.
        leaf: U32,
        /// The variable that holds the pattern computed for the value, or [`NONE`].
        slot: U32,
    }
}

record! {
    /// One entry of `validationFailureActionOverrides` (docs/spec/policies.md §11.2).
    ActionOverride {
        /// 1 for Enforce, 0 for Audit.
        enforce: u8,
        /// List of namespace wildcards, or [`NONE`] when absent.
        namespaces: U32,
        /// Selector over namespace labels, or [`NONE`].
        selector: U32,
    }
}

record! {
    /// A rule as it runs: written or generated.
    Rule {
        /// The policy it belongs to.
        policy: U32,
        /// Its name.
        name: Text,
        /// Block that decides whether the rule applies.
        match_block: U32,
        /// Block that decides the outcome.
        body_block: U32,
        /// Block of the preconditions, or [`NONE`].
        precondition_block: U32,
        /// Block of a message with variables, or [`NONE`].
        message_block: U32,
        /// Block of report properties with variables, or [`NONE`].
        properties_block: U32,
        /// Range of `slots`: the variables of its context.
        slots: Range,
        /// Range of `entries`: the entries of its context.
        entries: Range,
        /// A [`BodyKind`].
        body: u8,
        /// Bits of [`RuleFlags`].
        flags: u8,
        /// A [`MessageKind`].
        message_kind: u8,
        /// The message with its full stop, or as it is for a deny rule; `level:version`
        /// for podSecurity.
        message: Text,
        /// Kinds, or names of resources, under which the index lists the rule: range of
        /// `index_kinds`.
        kinds: Range,
        /// What an object must have to be matched: range of `index_keys`; empty when
        /// nothing is known, else the rule matches none that has no key of the list.
        keys: Range,
        /// Kinds for which autogen drops the rule: range of `index_kinds`.
        dropped_kinds: Range,
        /// Range of `action_overrides`.
        overrides: Range,
        /// `reportProperties`: range of `pairs`.
        properties: Range,
        /// Range of `exceptions`: those that may hold for the rule, in order.
        exceptions: Range,
    }
}

record! {
    /// A `PolicyException` as one rule sees it (docs/spec/policies.md §9).
    Exception {
        /// Its namespace, empty without one.
        namespace: Text,
        /// Its name.
        name: Text,
        /// Block that decides whether it holds: its match block and its conditions.
        block: U32,
        /// Block that takes away the findings which its `podSecurity` entries exempt from,
        /// for a podSecurity rule; [`NONE`] where it skips the whole rule.
        exclusion_block: U32,
        /// 1 where what it exempts from passes rather than being skipped.
        passes: u8,
        /// Which of several says so: the highest, then the first.
        priority: U32,
        /// Lists of texts that it allows instead of exempting from the whole policy: images
        /// and values; [`NONE`] without any.
        allowed: [U32; 2],
    }
}

/// What a rule's body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BodyKind {
    /// `pattern`
    Pattern,
    /// `anyPattern`
    AnyPattern,
    /// `deny`
    Deny,
    /// `foreach`
    Foreach,
    /// `cel`
    Cel,
    /// `podSecurity`
    PodSecurity,
    /// `assert`
    Assert,
    /// The validations of a ValidatingPolicy.
    Validations,
    /// The validations of a ValidatingAdmissionPolicy of Kubernetes.
    AdmissionPolicy,
}

impl BodyKind {
    /// Every kind in the order of its number.
    pub const ALL: [BodyKind; 9] = [
        BodyKind::Pattern,
        BodyKind::AnyPattern,
        BodyKind::Deny,
        BodyKind::Foreach,
        BodyKind::Cel,
        BodyKind::PodSecurity,
        BodyKind::Assert,
        BodyKind::Validations,
        BodyKind::AdmissionPolicy,
    ];
}

/// What a rule's message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// There is none.
    Absent,
    /// A text.
    Text,
    /// Substituting its references fails.
    Unresolvable,
    /// A block makes it when it is needed.
    Computed,
}

impl MessageKind {
    /// Every kind in the order of its number.
    pub const ALL: [MessageKind; 4] = [
        MessageKind::Absent,
        MessageKind::Text,
        MessageKind::Unresolvable,
        MessageKind::Computed,
    ];
}

/// What [`Rule::flags`] says.
pub struct RuleFlags;

impl RuleFlags {
    /// The rule's own action, else the policy's, is Enforce.
    pub const ENFORCE: u8 = 1;
    /// The rule has an action of its own.
    pub const OWN_ACTION: u8 = 2;
    /// Violations that the old object has too are allowed.
    pub const ALLOW_EXISTING: u8 = 4;
    /// The rule was generated by autogen.
    pub const GENERATED: u8 = 8;
    /// The rule looks at any JSON, of Kubernetes or not.
    pub const PAYLOAD: u8 = 16;
    /// A match condition that fails means that it does not hold.
    pub const IGNORE_FAILURE: u8 = 32;
    /// All bits that mean something.
    pub const ALL: u8 = 63;
}

record! {
    /// A policy.
    Policy {
        /// Its name.
        name: Text,
        /// Namespace of a namespaced policy.
        namespace: Text,
        /// Bits of [`PolicyFlags`].
        flags: u8,
        /// Its rules: range of `rules`.
        rules: Range,
        /// Range of `action_overrides`: those of the spec.
        overrides: Range,
    }
}

/// What [`Policy::flags`] says.
pub struct PolicyFlags;

impl PolicyFlags {
    /// A `Policy`, bound to its namespace.
    pub const NAMESPACED: u8 = 1;
    /// `applyRules: One`
    pub const APPLY_ONE: u8 = 2;
    /// `validationFailureAction` is Enforce.
    pub const ENFORCE: u8 = 4;
    /// Annotated `policies.kyverno.io/scored: "false"`: failures are warnings.
    pub const UNSCORED: u8 = 8;
    /// Its rules match resources such as `pods`, not kinds: the policy is one of CEL.
    pub const RESOURCES: u8 = 16;
    /// All bits that mean something.
    pub const ALL: u8 = 31;
}

/// What an index key looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum KeyKind {
    /// The namespace of the object; of a Namespace its name.
    Namespace,
    /// The name of the object.
    Name,
    /// The operation: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    Operation,
}

impl KeyKind {
    /// Every kind in the order of its number.
    pub const ALL: [KeyKind; 3] = [KeyKind::Namespace, KeyKind::Name, KeyKind::Operation];
}

record! {
    /// A text that an object must have for a rule to match.
    IndexKey {
        /// A [`KeyKind`].
        kind: u8,
        /// 1: the whole text; 0: what it begins with.
        whole: u8,
        /// The text, not empty unless whole.
        text: Text,
    }
}

record! {
    /// The rules to try for one kind, or for one resource (`pods`).
    IndexEntry {
        /// The symbol of the kind or resource; [`NONE`], in the last entry, stands for every kind: its
        /// rules name kinds with wildcards.
        kind: U32,
        /// The rules to try always: range of `index_rules`, ascending.
        rules: Range,
        /// The rules with keys, by [`KeyKind`]: ranges of `index_nodes`, ascending by
        /// text, the whole text behind the same beginning.
        keyed: [Range; 3],
    }
}

record! {
    /// The rules to try for objects that have a key.
    IndexNode {
        /// The text of the key.
        text: Text,
        /// 1: the whole text; 0: what it begins with.
        whole: u8,
        /// The node of the longest other beginning of the text, counted from the first
        /// node of the list, or [`NONE`].
        parent: U32,
        /// The rules: range of `index_rules`, ascending.
        rules: Range,
    }
}

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

impl Site {
    /// What the instruction does for the policy.
    pub fn kind(&self) -> SiteKind {
        SiteKind::ALL
            .get(usize::from(self.kind))
            .copied()
            .unwrap_or(SiteKind::Structure)
    }
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
