//! The records that instructions and rules refer to.

use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{Join, LeafKind, RequirementOperator, ShapeKind, SubjectKind};
use kpvm_semantics::anchor::Anchor;
use kpvm_semantics::pattern_string::Operator;
use kpvm_semantics::wildcard::WildcardClass;
use kpvm_syntax::tree::TreeValue;

use super::id::{BlockId, LeafId, PathId, ShapeId, SlotId, TextListId};
use crate::source::Location;

/// One step of a static path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathStep {
    /// The path it continues; `None` at the root of the subject.
    pub parent: Option<PathId>,
    /// The key.
    pub key: SymbolId,
}

/// A predicate for a scalar pattern (docs/spec/patterns.md §5).
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// Type of the pattern.
    pub kind: LeafKind,
    /// bool: 0 or 1; int: two's complement; float: bits.
    pub value: u64,
    /// The pattern's text if it is a string, otherwise what Go's `%v` prints.
    pub text: String,
    /// The alternatives of a string, each a conjunction of comparisons.
    pub alternatives: Vec<Vec<Comparison>>,
}

/// One comparison of a string pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// How values are compared with the operand.
    pub operator: Operator,
    /// The shape of the operand's wildcard.
    pub class: WildcardClass,
    /// How the next comparison is joined.
    pub join: Join,
    /// The operand's text.
    pub operand: String,
    /// The operand as nanoseconds, if it is a duration.
    pub duration: Option<i64>,
    /// The operand as a quantity, if it is one.
    pub quantity: Option<OperandQuantity>,
}

/// The operand of a comparison as a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandQuantity {
    /// In units of 1e-9.
    Nano(i128),
    /// Beyond that; it is parsed from the text when needed.
    Big,
}

/// A label selector (docs/spec/policies.md §5.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// Whether it can never be converted and so selects nothing.
    pub is_malformed: bool,
    /// `matchLabels`
    pub labels: Vec<(String, String)>,
    /// `matchExpressions`
    pub requirements: Vec<Requirement>,
}

/// One of `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// `operator`
    pub operator: RequirementOperator,
    /// `key`
    pub key: String,
    /// `values`
    pub values: TextListId,
}

/// A subject of a match block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// User, group, or nobody.
    pub kind: SubjectKind,
    /// A wildcard over the name.
    pub name: String,
}

/// A pattern over labels or annotations with wildcards in its keys.
#[derive(Debug, Clone, PartialEq)]
pub struct TagPattern {
    /// The symbol of `metadata`.
    pub metadata: SymbolId,
    /// The symbol of `labels` or `annotations`.
    pub tag: SymbolId,
    /// Its entries.
    pub entries: Vec<TagEntry>,
}

/// One entry of a [`TagPattern`].
#[derive(Debug, Clone, PartialEq)]
pub struct TagEntry {
    /// The anchor of the key.
    pub anchor: Anchor,
    /// Whether the key has a wildcard.
    pub has_wildcard: bool,
    /// Whether any value but null matches: the value is `*` under a plain key.
    pub is_star: bool,
    /// The key without its anchor.
    pub key: String,
    /// The predicate for the value.
    pub leaf: LeafId,
    /// The variable that holds a pattern computed for the value.
    pub slot: Option<SlotId>,
    /// Where it is written.
    pub location: Location,
}

/// A constant value.
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    /// A value of JSON.
    Value(TreeValue),
    /// An expression reference used as a value.
    Reference,
    /// A uint64 of CEL.
    Uint(u64),
    /// Bytes of CEL, each as the character with its number.
    Bytes(String),
    /// A type of CEL.
    Type(String),
}

/// A slice of a list, as written: omitted parts are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// First item.
    pub start: Option<i64>,
    /// Item before which to stop.
    pub stop: Option<i64>,
    /// The step.
    pub step: Option<i64>,
}

/// A variable of a rule's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its name.
    pub name: SymbolId,
}

/// A context entry of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The variable that it sets.
    pub slot: SlotId,
    /// The block that computes the value; `None` until it is lowered.
    pub loader: Option<BlockId>,
    /// Whether it belongs to a foreach block: inactive until an element makes it active.
    pub is_nested: bool,
    /// Where it is written.
    pub location: Location,
}

/// A type of Go that values are decoded into (docs/spec/pod-security.md §2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Its kind.
    pub kind: ShapeKind,
    /// The type as Go prints it.
    pub name: String,
    /// Shape of the items of a list or the values of a map.
    pub item: Option<ShapeId>,
    /// The fields of a struct.
    pub fields: Vec<ShapeField>,
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeField {
    /// Its key.
    pub key: SymbolId,
    /// Its shape.
    pub shape: ShapeId,
    /// Whether null removes what an earlier equal key set.
    pub is_nullable: bool,
    /// Names of the embedded structs around it, each followed by a dot.
    pub embedded: String,
}

/// A check of the Pod Security Standards (docs/spec/pod-security.md §5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Its id.
    pub id: &'static str,
    /// The name by which policies exclude it; empty where they cannot.
    pub name: &'static str,
    /// The reason that a message gives.
    pub reason: &'static str,
    /// The reason if the number of bad values is not one; empty if it is the same.
    pub reasons: &'static str,
    /// Whether a report names the images of the containers concerned.
    pub names_images: bool,
}

/// One entry of `podSecurity.exclude` (docs/spec/pod-security.md §7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// Name of the controls.
    pub name: String,
    /// The general path that it applies to; empty for every path.
    pub field: String,
    /// Wildcards that bad values must satisfy.
    pub values: Option<TextListId>,
    /// Whether a container's violations count only for the container of the same name.
    pub is_by_owner: bool,
}
