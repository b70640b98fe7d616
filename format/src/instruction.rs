//! The instruction set, defined once: [`instruction_set!`] below is the only place
//! that lists operations, and the encoder, the decoder, the verifier, the
//! disassembler and the documentation derive from it.
//!
//! An instruction is twelve bytes: operation, three one-byte operands `a`, `b`
//! and `e` (registers and slots), and two four-byte operands `c` (a number of a
//! table entry, or an immediate) and `d` (a jump target, counted in instructions
//! from the start of the block). All integers are little endian; no alignment is
//! needed, so code is run in place from the bundle's bytes.
//!
//! A *check* falls through when it holds; otherwise it sets the machine's error
//! (kind, text, path) and jumps to `d`. A *match* operation does the same without
//! an error. The kinds of error and how folds combine them: sheet 02, section 3.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One encoded instruction.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Instruction {
    /// Number of the operation, an [`Op`].
    pub op: u8,
    /// First small operand.
    pub a: u8,
    /// Second small operand.
    pub b: u8,
    /// Third small operand.
    pub e: u8,
    /// Table entry or immediate.
    pub c: U32,
    /// Jump target, or a second table entry.
    pub d: U32,
}

/// What an operand's number means, and therefore what the verifier checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandKind {
    /// A register of the frame that is read.
    Source,
    /// A register of the frame that is written.
    Destination,
    /// A loop slot of the frame.
    Loop,
    /// A fold slot of the frame.
    Fold,
    /// A symbol.
    Symbol,
    /// A static path from the root of the subject.
    Path,
    /// A leaf predicate.
    Leaf,
    /// A text of the string pool.
    Text,
    /// A list of kind selectors.
    Kinds,
    /// A list of texts.
    Texts,
    /// A list of annotation pairs.
    Pairs,
    /// A label selector.
    Selector,
    /// A list of subjects.
    Subjects,
    /// A label or annotation pattern whose keys have wildcards.
    TagPattern,
    /// A number that stands for itself.
    Immediate,
    /// A jump forward in the block.
    Forward,
    /// A jump back to the instruction behind the `LoopBegin` of the same slot.
    Backward,
}

/// Which field of the instruction an operand stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// [`Instruction::a`]
    A,
    /// [`Instruction::b`]
    B,
    /// [`Instruction::e`]
    E,
    /// [`Instruction::c`]
    C,
    /// [`Instruction::d`]
    D,
}

/// One operand of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Name shown by the disassembler.
    pub name: &'static str,
    /// Where it is encoded.
    pub field: Field,
    /// What it means.
    pub kind: OperandKind,
}

macro_rules! instruction_set {
    ($( $(#[doc = $doc:literal])+ $name:ident ( $($operand:ident : $field:ident $kind:ident),* ) $($flow:ident)? ;)+) => {
        /// The operations.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op { $( $(#[doc = $doc])+ $name, )+ }

        impl Op {
            /// Every operation, in the order of its number.
            pub const ALL: &'static [Op] = &[$(Op::$name),+];

            /// The operation's name.
            pub fn name(self) -> &'static str {
                match self { $(Op::$name => stringify!($name),)+ }
            }

            /// What it does, in the words of the table.
            pub fn documentation(self) -> &'static str {
                match self { $(Op::$name => concat!($($doc),+),)+ }
            }

            /// Its operands in the order of the table.
            pub fn operands(self) -> &'static [Operand] {
                match self { $(Op::$name => &[$(Operand {
                    name: stringify!($operand),
                    field: Field::$field,
                    kind: OperandKind::$kind,
                }),*],)+ }
            }

            /// Whether the block never goes on behind it.
            pub fn ends_block(self) -> bool {
                match self { $(Op::$name => instruction_set!(@ends $($flow)?),)+ }
            }
        }
    };
    (@ends) => { false };
    (@ends ends) => { true };
}

instruction_set! {
    /// Loads the value at a static path of the subject; missing when the path does not lead anywhere.
    LoadPath(dst: A Destination, path: C Path);
    /// Loads the value under a key; missing when `src` is no map or lacks it.
    LoadField(dst: A Destination, src: B Source, key: C Symbol);
    /// Loads the list item at an index; missing when there is none.
    LoadIndex(dst: A Destination, src: B Source, index: C Immediate);
    /// Goes on at the target.
    Jump(target: D Forward) ends;
    /// Jumps when the value is missing; an explicit null is not.
    JumpIfMissing(src: A Source, target: D Forward);

    /// Check: the value is a map.
    RequireMap(src: A Source, target: D Forward);
    /// Check: the value is a list.
    RequireList(src: A Source, target: D Forward);
    /// Check: the value under a plain key with the pattern `*` is there and not null.
    RequirePresent(src: A Source, key: C Symbol, target: D Forward);
    /// Check: the list has at least so many items (positional lists).
    RequireLength(src: A Source, length: C Immediate, target: D Forward);
    /// Check: the value under an existence anchor is a list.
    RequireExistenceList(src: A Source, target: D Forward);
    /// Check: the value satisfies a leaf predicate; every item of a list must.
    TestLeaf(src: A Source, leaf: C Leaf, target: D Forward);
    /// Fails: the pattern is an empty list.
    FailEmptyPattern(target: D Forward) ends;
    /// Fails: no item satisfied the existence anchor.
    FailExistence(target: D Forward) ends;
    /// Fails: the pattern under an existence anchor is no list (0), or an item of it no map (1).
    FailExistencePattern(reason: B Immediate, kind: C Text, target: D Forward) ends;
    /// Fails: a key under a negation anchor is there.
    FailNegation(target: D Forward) ends;
    /// Fails as skip: the key of a conditional anchor is not there.
    FailConditional(target: D Forward) ends;
    /// Turns the error into that of a conditional anchor and goes on at the target.
    WrapConditional(target: D Forward) ends;
    /// Turns the error into that of a global anchor and goes on at the target.
    WrapGlobal(target: D Forward) ends;
    /// Notes for the error downgrade whether the map has the anchored key (sheet 02, section 4.7).
    RecordAnchor(src: A Source, key: C Symbol, text: D Text);

    /// Expands the wildcard keys of a label or annotation pattern on this map, for good (sheet 02, section 9).
    ExpandTags(src: A Source, tags: C TagPattern);
    /// Check: the labels or annotations satisfy the expanded pattern.
    TestTags(src: A Source, tags: C TagPattern, target: D Forward);

    /// Starts collecting outcomes of anchored siblings or of list items.
    FoldBegin(fold: A Fold);
    /// Counts a sibling or item that held.
    FoldApplied(fold: A Fold);
    /// Takes the error of an anchored sibling: skips are collected, others jump unless a sibling decided to skip.
    FoldKeyError(fold: A Fold, target: D Forward);
    /// Takes the error of a list item: skips are collected, others jump.
    FoldItemError(fold: A Fold, target: D Forward);
    /// Ends a group of anchored siblings; jumps when they amount to a skip.
    FoldKeysEnd(fold: A Fold, target: D Forward);
    /// Ends a list; jumps when every item was skipped.
    FoldItemsEnd(fold: A Fold, target: D Forward);

    /// Starts over the items of a list; jumps when there are none.
    LoopBegin(loop_slot: A Loop, list: B Source, item: E Destination, target: D Forward);
    /// Goes to the next item and back, or falls through behind the last.
    LoopNext(loop_slot: A Loop, item: E Destination, target: D Backward);

    /// Notes the error of an anyPattern alternative and falls through.
    AlternativeFailed(index: C Immediate);
    /// Ends: the rule passes.
    ReturnPass() ends;
    /// Ends: the rule passes by an anyPattern alternative.
    ReturnAlternative(index: C Immediate) ends;
    /// Ends: the pattern's error decides.
    ReturnError() ends;
    /// Ends: no alternative held.
    ReturnAlternativesFailed() ends;
    /// Ends: the rule denies.
    ReturnDeny() ends;
    /// Ends: the rule passes (0), is an error (1), or is one even where there is no
    /// resource to look at (2), with a message known at compile time.
    ReturnText(status: B Immediate, text: C Text) ends;

    /// Match: the request's kind and subresource are selected.
    MatchKinds(kinds: C Kinds, target: D Forward);
    /// Match: the operation is in the set (bit 0 CREATE, 1 UPDATE, 2 DELETE, 3 CONNECT).
    MatchOperations(set: B Immediate, target: D Forward);
    /// Match: the object's name, or generateName, satisfies one wildcard.
    MatchNames(names: C Texts, target: D Forward);
    /// Match: the object's namespace (a Namespace's own name) satisfies one wildcard.
    MatchNamespaces(namespaces: C Texts, target: D Forward);
    /// Match: every annotation pair is found.
    MatchAnnotations(annotations: C Pairs, target: D Forward);
    /// Match: the label selector selects the object.
    MatchSelector(selector: C Selector, target: D Forward);
    /// Match: the selector selects the namespace's labels; `any_kind` when the filter's kinds hold `*`.
    MatchNamespaceSelector(any_kind: B Immediate, selector: C Selector, target: D Forward);
    /// Match: the user has one of the roles.
    MatchRoles(roles: C Texts, target: D Forward);
    /// Match: the user has one of the cluster roles.
    MatchClusterRoles(roles: C Texts, target: D Forward);
    /// Match: the user is one of the subjects.
    MatchSubjects(subjects: C Subjects, target: D Forward);
    /// Jumps when the request carries no user information at all.
    JumpIfNoUser(target: D Forward);
    /// Ends: the rule applies to the resource.
    ReturnMatched() ends;
    /// Ends: the rule does not apply.
    ReturnUnmatched() ends;
}

impl Op {
    /// The operation with that number.
    #[inline]
    pub fn decode(number: u8) -> Option<Op> {
        Op::ALL.get(number as usize).copied()
    }
}

impl Instruction {
    /// An instruction with all operands zero.
    pub fn new(op: Op) -> Self {
        Self {
            op: op as u8,
            a: 0,
            b: 0,
            e: 0,
            c: U32::ZERO,
            d: U32::ZERO,
        }
    }

    /// The value of the operand in `field`.
    pub fn operand(&self, field: Field) -> u32 {
        match field {
            Field::A => u32::from(self.a),
            Field::B => u32::from(self.b),
            Field::E => u32::from(self.e),
            Field::C => self.c.get(),
            Field::D => self.d.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_one_to_one() {
        for (number, &op) in Op::ALL.iter().enumerate() {
            assert_eq!(Op::decode(number as u8), Some(op));
            assert!(!op.documentation().is_empty());
        }
        assert_eq!(Op::decode(Op::ALL.len() as u8), None);
    }

    #[test]
    fn no_two_operands_share_a_field() {
        for &op in Op::ALL {
            let operands = op.operands();
            for (index, operand) in operands.iter().enumerate() {
                assert!(
                    operands[..index]
                        .iter()
                        .all(|other| other.field != operand.field),
                    "{} encodes two operands in one field",
                    op.name()
                );
            }
        }
    }
}
