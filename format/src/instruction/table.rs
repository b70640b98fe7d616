//! The table of instructions: the only place that lists operations. Everything that depends
//! on the list is generated from it or matches on it exhaustively.

use super::effect::Effects;
use super::immediate::*;
use super::operand::*;
use super::{Field, Instruction, Operand};
use crate::cel::{Function as CelFunction, Root};
use crate::condition::ConditionOperator;
use crate::function::Function;
use crate::symbol::SymbolId;

/// A row is `Name { operand: FIELD Type, … } [EFFECT …];` with an operand type of
/// [`super::operand`] or [`super::immediate`].
macro_rules! instruction_set {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident $( { $( $operand:ident : $field:ident $kind:ident ),+ $(,)? } )?
        [ $( $effect:ident )* ];
    )+) => {
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
                match self { $(Op::$name => &[$($(Operand {
                    name: stringify!($operand),
                    field: Field::$field,
                    kind: <$kind as OperandType>::KIND,
                }),+)?],)+ }
            }

            /// What it may do besides writing its register.
            pub fn effects(self) -> Effects {
                match self { $(Op::$name => const { Effects::NONE $( .and(Effects::$effect) )* },)+ }
            }
        }

        /// The number of each operation, for patterns.
        #[allow(non_upper_case_globals)]
        mod number {
            $( pub(super) const $name: u8 = super::Op::$name as u8; )+
        }

        /// Typed access to the operands of an instruction of a bundle, by operation.
        #[allow(missing_docs, reason = "operands are described with their operation")]
        pub mod operands {
            use super::*;
            $(
                #[derive(Debug, Clone, Copy)]
                pub struct $name<'i>(pub(super) &'i Instruction);

                impl<'i> $name<'i> {
                    pub fn instruction(self) -> &'i Instruction {
                        self.0
                    }

                    $($(
                        #[inline(always)]
                        pub fn $operand(self) -> <$kind as OperandType>::Of<Encoded> {
                            <$kind as OperandType>::read(self.0.operand(Field::$field))
                        }
                    )+)?
                }
            )+
        }

        /// A decoded instruction of a bundle. The interpreter matches on this: operands are
        /// read where they are used, so that dispatch costs one jump.
        #[derive(Debug, Clone, Copy)]
        #[allow(missing_docs, reason = "named after the operations")]
        pub enum Decoded<'i> { $( $name(operands::$name<'i>), )+ }

        impl<'i> Decoded<'i> {
            /// The instruction's operation; `None` if there is no such operation, which the
            /// verifier rules out.
            #[inline(always)]
            pub fn of(instruction: &'i Instruction) -> Option<Self> {
                match instruction.op {
                    $( number::$name => Some(Decoded::$name(operands::$name(instruction))), )+
                    _ => None,
                }
            }
        }

        /// An instruction with typed operands, in a [`Representation`]. Code that handles
        /// instructions matches on this without a wildcard arm, so that a missing
        /// instruction does not compile.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "operands are described with their operation")]
        pub enum Operation<R: Representation = Encoded> {
            $( $(#[doc = $doc])+ $name $( { $( $operand: <$kind as OperandType>::Of<R> ),+ } )?, )+
        }

        impl<R: Representation> Operation<R> {
            /// Which operation it is.
            pub fn op(&self) -> Op {
                match self { $( Operation::$name { .. } => Op::$name, )+ }
            }

            /// The place that it may jump to.
            pub fn target(&self) -> Option<R::Target> {
                match *self {
                    $( Operation::$name $( { $($operand),+ } )? => {
                        None $($( .or(<$kind as OperandType>::target::<R>($operand)) )+)?
                    } )+
                }
            }

            /// The registers that it reads.
            pub fn sources(&self) -> impl Iterator<Item = R::Register> + use<R> {
                let sources: [Option<R::Register>; 5] = match *self {
                    $( Operation::$name $( { $($operand),+ } )? => {
                        #[allow(unused_mut, reason = "there may be no operands")]
                        let mut sources = [None; 5];
                        $(
                            let all = [$( <$kind as OperandType>::source::<R>($operand) ),+];
                            sources[..all.len()].copy_from_slice(&all);
                        )?
                        sources
                    } )+
                };
                sources.into_iter().flatten()
            }

            /// The register that it writes.
            pub fn destination(&self) -> Option<R::Register> {
                match *self {
                    $( Operation::$name $( { $($operand),+ } )? => {
                        None $($( .or(<$kind as OperandType>::destination::<R>($operand)) )+)?
                    } )+
                }
            }

            /// Its operands with their numbers, in the order of the table.
            pub fn numbers(&self) -> impl Iterator<Item = (&'static Operand, u32)> + use<R> {
                let mut numbers = [0; 5];
                match *self {
                    $( Operation::$name $( { $($operand),+ } )? => {
                        $(
                            let all = [$( <$kind as OperandType>::number::<R>($operand) ),+];
                            numbers[..all.len()].copy_from_slice(&all);
                        )?
                    } )+
                }
                self.op().operands().iter().zip(numbers)
            }

            /// The same operation in another representation.
            #[must_use]
            pub fn translate<S: Representation>(
                self,
                translate: &mut impl Translate<R, S>,
            ) -> Operation<S> {
                match self {
                    $( Operation::$name $( { $($operand),+ } )? => Operation::$name $( { $(
                        $operand: <$kind as OperandType>::translate::<R, S, _>($operand, translate)
                    ),+ } )?, )+
                }
            }
        }

        impl Operation<Encoded> {
            /// The instruction's bytes.
            pub fn encode(self) -> Instruction {
                let mut instruction = Instruction::new(self.op());
                match self {
                    $( Operation::$name $( { $($operand),+ } )? => {
                        $($( instruction.set(
                            Field::$field,
                            <$kind as OperandType>::number::<Encoded>($operand),
                        ); )+)?
                    } )+
                }
                instruction
            }

            /// The instruction with these bytes; `None` if there is no such operation or an
            /// immediate is outside its type, which the verifier rules out.
            #[inline(always)]
            pub fn decode(instruction: &Instruction) -> Option<Self> {
                Some(match instruction.op {
                    $( number::$name => Operation::$name $( { $(
                        $operand: <$kind as OperandType>::decode(
                            instruction.operand(Field::$field)
                        )?
                    ),+ } )?, )+
                    _ => return None,
                })
            }
        }
    };
}

instruction_set! {
    /// Loads the value at a static path of the subject; missing if the path leads nowhere.
    LoadPath { dst: A Destination, path: C PathId } [READS_SUBJECT];
    /// Loads the value under a key; missing if `src` is not a map or lacks it.
    LoadField { dst: A Destination, src: B Source, key: C SymbolId } [READS_SUBJECT];
    /// Loads the list item at an index; missing if there is none.
    LoadIndex { dst: A Destination, src: B Source, index: C ItemIndex } [READS_SUBJECT];
    /// Continues at the target.
    Jump { target: D Forward } [JUMPS ENDS];
    /// Jumps if the value is missing; an explicit null is not.
    JumpIfMissing { src: A Source, target: D Forward } [JUMPS];

    /// Check: the value is a map.
    RequireMap { src: A Source, target: D Forward } [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Check: the value is a list.
    RequireList { src: A Source, target: D Forward } [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Check: the value under a plain key with the pattern `*` is present and not null.
    RequirePresent { src: A Source, key: C SymbolId, target: D Forward }
        [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Check: the list has at least this many items (positional lists).
    RequireLength { src: A Source, length: C ItemCount, target: D Forward }
        [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Check: the value under an existence anchor is a list.
    RequireExistenceList { src: A Source, target: D Forward } [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Check: the value satisfies a leaf predicate; in a list every item must.
    TestLeaf { src: A Source, leaf: C LeafId, target: D Forward }
        [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Fails: the pattern is an empty list.
    FailEmptyPattern { target: D Forward } [WRITES_ERROR JUMPS ENDS];
    /// Fails: no item satisfied the existence anchor.
    FailExistence { target: D Forward } [WRITES_ERROR JUMPS ENDS];
    /// Fails: the pattern under an existence anchor is not a list, or an item of it not a
    /// map.
    FailExistencePattern { defect: B ExistencePatternDefect, kind: C TextId, target: D Forward }
        [WRITES_ERROR JUMPS ENDS];
    /// Fails: a key under a negation anchor is present.
    FailNegation { target: D Forward } [WRITES_ERROR JUMPS ENDS];
    /// Fails as skip: the key of a conditional anchor is missing.
    FailConditional { target: D Forward } [WRITES_ERROR JUMPS ENDS];
    /// Turns the error into that of a conditional anchor and continues at the target.
    WrapConditional { target: D Forward } [READS_ERROR WRITES_ERROR JUMPS ENDS];
    /// Turns the error into that of a global anchor and continues at the target.
    WrapGlobal { target: D Forward } [READS_ERROR WRITES_ERROR JUMPS ENDS];
    /// Records for the error downgrade whether the map has the anchored key
    /// (docs/spec/patterns.md §4.7).
    RecordAnchor { src: A Source, key: C SymbolId, text: D TextId } [READS_SUBJECT NOTES];

    /// Expands the wildcard keys of a label or annotation pattern on this map, permanently
    /// (docs/spec/patterns.md §9).
    ExpandTags { src: A Source, tags: C TagPatternId } [READS_SUBJECT WRITES_STATE];
    /// Check: the labels or annotations satisfy the expanded pattern.
    TestTags { src: A Source, tags: C TagPatternId, target: D Forward }
        [READS_SUBJECT READS_CONTEXT READS_STATE WRITES_ERROR JUMPS];

    /// Starts collecting outcomes of anchored siblings or of list items.
    FoldBegin { fold: A FoldSlot } [WRITES_SLOT];
    /// Counts a sibling or item that matched.
    FoldApplied { fold: A FoldSlot } [WRITES_SLOT];
    /// Adds the error of an anchored sibling: skips are collected, others jump unless a
    /// sibling decided to skip.
    FoldKeyError { fold: A FoldSlot, target: D Forward } [READS_ERROR WRITES_SLOT JUMPS];
    /// Adds the error of a list item: skips are collected, others jump.
    FoldItemError { fold: A FoldSlot, target: D Forward } [READS_ERROR WRITES_SLOT JUMPS];
    /// Ends a group of anchored siblings; jumps if the result is a skip.
    FoldKeysEnd { fold: A FoldSlot, target: D Forward } [READS_SLOT WRITES_ERROR JUMPS];
    /// Ends a list; jumps if every item was skipped.
    FoldItemsEnd { fold: A FoldSlot, target: D Forward } [READS_SLOT WRITES_ERROR JUMPS];

    /// Starts iterating over the items of a list; jumps if there are none.
    LoopBegin { loop_slot: A LoopSlot, list: B Source, item: E Destination, target: D Forward }
        [READS_SUBJECT LOOPS JUMPS];
    /// Advances to the next item and jumps back, or falls through after the last.
    LoopNext { loop_slot: A LoopSlot, item: E Destination, target: D Backward } [LOOPS JUMPS];

    /// Records the error of an anyPattern alternative and falls through.
    AlternativeFailed { index: C AlternativeIndex } [READS_ERROR NOTES];
    /// Like `AlternativeFailed`, for the current alternative of a loop.
    AlternativeFailedAt { loop_slot: A LoopSlot } [READS_ERROR NOTES];
    /// Ends: the rule passes by the current alternative of a loop.
    ReturnAlternativeAt { loop_slot: A LoopSlot } [ENDS];
    /// Fails: an anyPattern computed from a variable is not a list.
    RequireAlternatives { src: A Source, target: D Forward } [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Ends: the rule passes.
    ReturnPass [ENDS];
    /// Ends: the rule passes by an anyPattern alternative.
    ReturnAlternative { index: C AlternativeIndex } [ENDS];
    /// Ends: the pattern's error decides; `depth` counts the foreach loops around it.
    ReturnError { depth: B ForeachDepth } [READS_ERROR ENDS];
    /// Ends: no alternative matched.
    ReturnAlternativesFailed { depth: B ForeachDepth } [READS_ERROR ENDS];
    /// Ends: the rule denies.
    ReturnDeny { depth: B ForeachDepth } [ENDS];
    /// Ends with a status and a message known at compile time.
    ReturnText { status: B ReturnStatus, text: C TextId } [ENDS];

    /// Loads a constant value.
    LoadConstant { dst: A Destination, constant: C ConstantId } [MAKES_VALUE];
    /// Copies a register.
    Move { dst: A Destination, src: B Source } [];
    /// Loads a variable of the context by its name: of the rule, else of the request; an
    /// unknown one is a missing key.
    LoadVariable { dst: A Destination, slot: C SlotId, target: D Forward }
        [READS_CONTEXT READS_REQUEST MAKES_VALUE WRITES_ERROR JUMPS];
    /// Loads a value of the request's context: `request`, `serviceAccountName`, values given by the
    /// host.
    LoadBase { dst: A Destination, name: C SymbolId, target: D Forward }
        [READS_REQUEST MAKES_VALUE WRITES_ERROR JUMPS];
    /// Loads `request.object`, or `request.oldObject` if the operation is DELETE.
    LoadRequestObject { dst: A Destination, target: D Forward }
        [READS_SUBJECT READS_REQUEST MAKES_VALUE WRITES_ERROR JUMPS];
    /// Loads `images` of the resource.
    LoadImages { dst: A Destination, target: D Forward }
        [READS_SUBJECT MAKES_VALUE WRITES_ERROR JUMPS];
    /// Builds a map of the whole context.
    LoadContext { dst: A Destination } [READS_SUBJECT READS_REQUEST READS_CONTEXT MAKES_VALUE];
    /// Stores a value in a variable of the context.
    StoreVariable { slot: C SlotId, src: A Source } [WRITES_CONTEXT];
    /// Loads a variable without looking further; missing if it is not set.
    SaveVariable { dst: A Destination, slot: C SlotId } [READS_CONTEXT];
    /// Runs the loader of a context entry unless it has run.
    EnsureEntry { entry: C EntryId, loading: B EntryLoading, target: D Forward }
        [READS_CONTEXT WRITES_CONTEXT RUNS_BLOCK WRITES_ERROR JUMPS ASKS_HOST IS_RANDOM READS_SUBJECT READS_REQUEST];
    /// Makes a context entry of a foreach block inactive.
    DropEntry { entry: C EntryId } [WRITES_CONTEXT];
    /// Makes a context entry active, to run when it is needed.
    ResetEntry { entry: C EntryId } [WRITES_CONTEXT];
    /// Lets the context entries of the rule that failed run again.
    RetryEntries [WRITES_CONTEXT];

    /// The value under a key: a map without it is a missing key, anything but a map gives
    /// null.
    GetKey { dst: A Destination, src: B Source, key: C SymbolId, target: D Forward }
        [READS_SUBJECT WRITES_ERROR JUMPS];
    /// The value under a key that is a text in a register.
    GetKeyOf { dst: A Destination, src: B Source, key: E Source, target: D Forward }
        [READS_SUBJECT WRITES_ERROR JUMPS];
    /// The list item at an index, a negative one counting from the end; null if there is
    /// none.
    GetItem { dst: A Destination, src: B Source, index: C SignedIndex } [READS_SUBJECT];
    /// A part of a list, or of a text if `texts` are sliced too; null for anything else.
    GetSlice {
        dst: A Destination,
        src: B Source,
        texts: E bool,
        slice: C SliceId,
        target: D Forward,
    } [READS_SUBJECT MAKES_VALUE WRITES_ERROR JUMPS];
    /// The values of a map in the order of their keys, preceded by as many nulls if
    /// requested.
    MapValues { dst: A Destination, src: B Source, nulls: C bool } [READS_SUBJECT MAKES_VALUE];
    /// Negates the truth of a value.
    Not { dst: A Destination, src: B Source } [READS_SUBJECT];
    /// Compares two values; ordering anything but numbers gives null.
    Compare { dst: A Destination, left: B Source, right: E Source, comparison: C Comparison }
        [READS_SUBJECT MAKES_VALUE];
    /// Jumps if the value is truthy.
    JumpIfTrue { src: A Source, target: D Forward } [READS_SUBJECT JUMPS];
    /// Jumps if the value is falsy.
    JumpIfFalse { src: A Source, target: D Forward } [READS_SUBJECT JUMPS];
    /// Jumps if the value is null.
    JumpIfNull { src: A Source, target: D Forward } [READS_SUBJECT JUMPS];
    /// Jumps if the value is not a list.
    JumpIfNotList { src: A Source, target: D Forward } [READS_SUBJECT JUMPS];
    /// Jumps if the value is not a map.
    JumpIfNotMap { src: A Source, target: D Forward } [READS_SUBJECT JUMPS];
    /// Jumps if a list has fewer items.
    JumpIfShorter { src: A Source, length: C ItemCount, target: D Forward } [READS_SUBJECT JUMPS];
    /// Jumps unless the operation is DELETE.
    JumpUnlessDelete { target: D Forward } [READS_REQUEST JUMPS];
    /// Replaces a missing key by null; another error continues at the target.
    CatchMissing { dst: A Destination, target: D Forward } [READS_ERROR JUMPS];
    /// Replaces any error by null.
    CatchAny { dst: A Destination } [];
    /// Empties a list accumulator.
    ListBegin { list: A ListSlot } [WRITES_SLOT];
    /// Appends a value.
    ListPush { list: A ListSlot, src: B Source } [WRITES_SLOT];
    /// Appends a value unless it is null.
    ListPushSome { list: A ListSlot, src: B Source } [READS_SUBJECT WRITES_SLOT];
    /// Appends the items of a list, or another value itself.
    ListExtend { list: A ListSlot, src: B Source } [READS_SUBJECT WRITES_SLOT];
    /// Builds a list of what was appended.
    ListEnd { dst: A Destination, list: B ListSlot } [READS_SLOT MAKES_VALUE];
    /// Builds a map of what was appended, under the keys of a list of texts.
    MapEnd { dst: A Destination, list: B ListSlot, keys: C TextListId } [READS_SLOT MAKES_VALUE];
    /// Builds a map of what was appended: alternating keys (texts) and values.
    MapEndPairs { dst: A Destination, list: B ListSlot } [READS_SLOT MAKES_VALUE];
    /// Calls a function with what was appended as arguments.
    Call { dst: A Destination, list: B ListSlot, function: C Function, target: D Forward }
        [READS_SUBJECT READS_SLOT MAKES_VALUE ASKS_HOST IS_RANDOM WRITES_ERROR JUMPS];
    /// The loop's index as an int; over a map, the key.
    LoopIndex { dst: A Destination, loop_slot: B LoopSlot } [READS_SUBJECT MAKES_VALUE];
    /// Fails with a text known at compile time.
    FailText { text: C TextId, target: D Forward } [WRITES_ERROR JUMPS ENDS];
    /// Prefixes the error's text and continues at the target; `query` if it shows a query,
    /// which a DELETE rewrites.
    WrapError { query: B bool, text: C TextId, target: D Forward }
        [READS_REQUEST READS_ERROR WRITES_ERROR JUMPS ENDS];

    /// Empties a text accumulator.
    TextBegin { accumulator: A TextSlot } [WRITES_SLOT];
    /// Appends a text.
    TextLiteral { accumulator: A TextSlot, text: C TextId } [WRITES_SLOT];
    /// Appends a value as a variable inside a text shows it.
    TextValue { accumulator: A TextSlot, src: B Source, target: D Forward }
        [READS_SUBJECT WRITES_SLOT WRITES_ERROR JUMPS];
    /// Builds a text of what was appended.
    TextEnd { dst: A Destination, accumulator: B TextSlot } [READS_SLOT MAKES_VALUE];
    /// Jumps if nothing has been appended yet.
    JumpIfTextEmpty { accumulator: A TextSlot, target: D Forward } [READS_SLOT JUMPS];
    /// FALLBACK: parses a text as an expression now and evaluates it over the whole context.
    EvaluateText { dst: A Destination, src: B Source, path: C TextId, target: D Forward }
        [READS_SUBJECT READS_REQUEST READS_CONTEXT WRITES_CONTEXT RUNS_BLOCK MAKES_VALUE ASKS_HOST IS_RANDOM WRITES_ERROR JUMPS];
    /// FALLBACK: like `EvaluateText`, for a query whose errors are shown unchanged.
    EvaluateQuery { dst: A Destination, src: B Source, target: D Forward }
        [READS_SUBJECT READS_REQUEST READS_CONTEXT WRITES_CONTEXT RUNS_BLOCK MAKES_VALUE ASKS_HOST IS_RANDOM WRITES_ERROR JUMPS];
    /// FALLBACK: parses a text as an expression now and evaluates it over a value.
    EvaluateOver { dst: A Destination, src: B Source, over: E Source, target: D Forward }
        [READS_SUBJECT READS_REQUEST READS_CONTEXT WRITES_CONTEXT RUNS_BLOCK MAKES_VALUE ASKS_HOST IS_RANDOM WRITES_ERROR JUMPS];
    /// Prefixes the error's text with `failed to apply jmespath`, the text of a path and
    /// `to variable <nil>`, and continues at the target.
    WrapPath { path: A Source, target: D Forward }
        [READS_SUBJECT READS_ERROR WRITES_ERROR JUMPS ENDS];
    /// Takes the value of a key's variables; anything but text fails with a text known at
    /// compile time.
    RequireKeyText {
        dst: A Destination,
        src: B Source,
        text: C TextId,
        typed: E bool,
        target: D Forward,
    } [READS_SUBJECT WRITES_ERROR JUMPS];

    /// Condition: jumps if it is false; fails the block if it cannot be evaluated.
    TestCondition {
        key: A Source,
        value: B Source,
        operator: E ConditionOperator,
        target: D Forward,
    } [READS_SUBJECT JUMPS];
    /// Adds a condition's message to those of the block, with the block that computes it if it has
    /// variables.
    NoteMessage { separator: B MessageSeparator, text: C TextId, block: D OptionalBlock } [NOTES];
    /// Forgets the messages of the block.
    ClearMessages [NOTES];

    /// Check: the value matches a pattern known only at run time, with numbers converted to
    /// floats for anyPattern.
    TestValue { src: A Source, pattern: B Source, floats: C bool, target: D Forward }
        [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Begins an independent match: anchors seen and keys expanded so far do not count.
    BeginPattern [WRITES_STATE];
    /// The subject of an element's pattern: the element if it is a map, else the previous
    /// subject.
    SelectSubject { dst: A Destination, element: B Source, outer: E Source } [READS_SUBJECT];
    /// Jumps if a pattern's subject is the resource and there is none.
    JumpIfNoSubject { src: A Source, target: D Forward } [READS_REQUEST JUMPS];
    /// Fails: the element of a foreach with `elementScope` is not a map.
    RequireScope { src: A Source, target: D Forward } [READS_SUBJECT WRITES_ERROR JUMPS];
    /// Counts an element that passed.
    CountPass [NOTES];
    /// Jumps if the last error is about an unknown key.
    JumpIfUnknownKey { target: D Forward } [READS_ERROR JUMPS];
    /// Keeps the last error as that of a list that could not be evaluated.
    KeepListError [READS_ERROR NOTES];
    /// Ends a foreach rule according to the counts: pass, list error, or no response.
    ReturnForeach [READS_STATE ENDS];
    /// Begins a nested foreach: the counts so far are put aside.
    EnterNested [WRITES_STATE];
    /// Ends a nested foreach: jumps if it counted nothing; a list of it that could not be
    /// evaluated ends the rule.
    LeaveNested { depth: B ForeachDepth, target: D Forward } [WRITES_STATE READS_STATE JUMPS MAY_END];
    /// Jumps if no alternative failed rather than skipped.
    JumpIfAllSkipped { target: D Forward } [READS_STATE JUMPS];
    /// Runs a context entry again if it has run: the element that it saw is gone.
    RefreshEntry { entry: C EntryId }
        [READS_CONTEXT WRITES_CONTEXT RUNS_BLOCK WRITES_ERROR ASKS_HOST IS_RANDOM READS_SUBJECT READS_REQUEST];
    /// Jumps if the pattern's error is a skip.
    JumpIfSkip { target: D Forward } [READS_ERROR JUMPS];
    /// The elements of a foreach list: none for null, the items of a list, else only the
    /// value.
    ToElements { dst: A Destination, src: B Source } [READS_SUBJECT MAKES_VALUE];
    /// The value of `element`: a number becomes a float64. Jumps for one that is not
    /// finite.
    ToElement { dst: A Destination, src: B Source, target: D Forward }
        [READS_SUBJECT MAKES_VALUE WRITES_ERROR JUMPS];
    /// A number as float64; any other value unchanged.
    ToFloat { dst: A Destination, src: B Source } [READS_SUBJECT MAKES_VALUE];
    /// The value as stored in the context: every number a float64. Jumps if one is not
    /// finite.
    ToFloats { dst: A Destination, src: B Source, target: D Forward }
        [READS_SUBJECT MAKES_VALUE WRITES_ERROR JUMPS];
    /// The value of the context after adding a value to an existing one: maps are merged at
    /// every depth, anything else is replaced.
    MergeStored { dst: A Destination, existing: B Source, added: E Source }
        [READS_SUBJECT MAKES_VALUE];
    /// Jumps unless the host has outside data of a kind.
    JumpUnlessProvided { provision: E Provision, target: D Forward } [ASKS_HOST JUMPS];
    /// Queries the host for outside data; missing if the host has none of that kind.
    Fetch { dst: A Destination, request: B Source, provision: E Provision, target: D Forward }
        [READS_SUBJECT ASKS_HOST MAKES_VALUE WRITES_ERROR JUMPS];
    /// Jumps unless a text can be used in an expression unchanged.
    JumpUnlessPlain { src: A Source, place: B ExpressionPlace, target: D Forward }
        [READS_SUBJECT JUMPS];
    /// Jumps unless a register has a value.
    JumpUnlessSet { src: A Source, target: D Forward } [JUMPS];

    /// Decodes a value into a shape: keys in any case, null for missing values; fails if a
    /// type differs.
    Conform { dst: A Destination, src: B Source, shape: C ShapeId, target: D Forward }
        [READS_SUBJECT MAKES_VALUE WRITES_ERROR JUMPS];
    /// Jumps if a value's text or key matches one of the wildcards.
    JumpIfText { src: A Source, of: E TextOf, texts: C TextListId, target: D Forward }
        [READS_SUBJECT JUMPS];
    /// Runs a block of checks over a value and keeps what it records as findings; `places`
    /// are those of the value's `spec` and `metadata` in the resource.
    RunChecks { src: A Source, block: C BlockId, places: D TextListId }
        [READS_SUBJECT RUNS_BLOCK NOTES WRITES_STATE];
    /// Records that a value violates a control; `owner`: the container, if there is one.
    Note {
        value: A Source,
        owner: B Source,
        flags: E NoteFlags,
        path: C TextId,
        control: D ControlId,
    } [NOTES];
    /// The value that the findings concern.
    LoadChecked { dst: A Destination } [READS_STATE];
    /// Jumps unless there are findings of the exclusion's controls.
    JumpUnlessFound { exclusion: C ExclusionId, target: D Forward } [READS_STATE JUMPS];
    /// Runs the same checks over another value and removes the findings that correspond to
    /// what they record there.
    Exempt { src: A Source, exclusion: C ExclusionId }
        [READS_SUBJECT RUNS_BLOCK NOTES WRITES_STATE READS_STATE];
    /// Ends: the rule passes if no findings remain, else fails with the remaining ones.
    ReturnFindings [READS_STATE ENDS];

    /// Loads the payload of an assertion tree, or a part of it.
    LoadPayload { dst: A Destination, part: B PayloadPart }
        [READS_SUBJECT READS_REQUEST MAKES_VALUE];
    /// Computes with two floats; null for anything else.
    Arithmetic {
        dst: A Destination,
        left: B Source,
        right: E Source,
        operator: C ArithmeticOperator,
    } [READS_SUBJECT MAKES_VALUE];
    /// A list itself, or a map's entries in the order of its keys; jumps for anything else.
    ToIterable { dst: A Destination, src: B Source, target: D Forward }
        [READS_SUBJECT MAKES_VALUE JUMPS];
    /// Assertion: records a failure unless the value is as expected; ends as an error if
    /// the two cannot be compared.
    AssertValue { actual: A Source, expected: B Source } [READS_SUBJECT NOTES WRITES_ERROR MAY_END];
    /// Assertion: records a failure.
    NoteFailure { src: A Source, failure: B AssertionFailure } [READS_SUBJECT NOTES];
    /// Ends: the assertion cannot be evaluated.
    ReturnUnassertable { src: A Source, reason: B Unassertable }
        [READS_SUBJECT READS_ERROR WRITES_ERROR ENDS];
    /// Ends: the rule passes if no failure was recorded, else fails once for each.
    ReturnAssertion [READS_STATE ENDS];

    /// Ends: the conditions are true, or a part of a rule may continue.
    ReturnTrue [ENDS];
    /// Ends: the conditions are false.
    ReturnFalse [ENDS];
    /// Ends with a value.
    ReturnValue { src: A Source } [ENDS];
    /// Ends: an evaluation failed with the error's text.
    ReturnFailed { depth: B ForeachDepth } [READS_ERROR ENDS];
    /// Ends: the rule gives no response.
    ReturnNothing [ENDS];

    /// CEL: a field of a map, of an optional (then an optional), of a declared object.
    CelSelect { dst: A Destination, src: B Source, key: C SymbolId, target: D Forward }
        [READS_SUBJECT MAKES_VALUE WRITES_ERROR JUMPS];
    /// CEL: the value at a static path of `object`; jumps with the error of the first
    /// missing field.
    CelPath { dst: A Destination, path: C PathId, target: D Forward }
        [READS_SUBJECT WRITES_ERROR JUMPS];
    /// CEL test: a field, as loaded by `CelSelect`. Jumps if it is present (`when`), or if
    /// it is missing. Testing a list for a field is an error.
    CelIfHas { dst: A Destination, src: B Source, when: E bool, key: C SymbolId, target: D Forward }
        [READS_SUBJECT MAKES_VALUE WRITES_ERROR JUMPS TESTS];
    /// CEL test: a field, as loaded by `CelFind`; with `unwrap`, of the value inside an
    /// optional `src`. Jumps if it is missing; testing a list for a field is an error.
    CelIfFind {
        dst: A Destination,
        src: B Source,
        unwrap: E bool,
        key: C SymbolId,
        target: D Forward,
    } [READS_SUBJECT WRITES_ERROR JUMPS TESTS];
    /// CEL test: compares with a constant, which may be the left operand; jumps if the
    /// result is true, or if it is false.
    CelIfCompare {
        src: A Source,
        flags: B CompareFlags,
        function: E CelFunction,
        constant: C ConstantId,
        target: D Forward,
    } [READS_SUBJECT WRITES_ERROR JUMPS TESTS];
    /// CEL test: jumps if the value is the boolean `when`; anything but a boolean is an error.
    CelIf { src: A Source, when: B bool, target: D Forward }
        [READS_SUBJECT WRITES_ERROR JUMPS TESTS];
    /// CEL: continues at the target with the error of the test before it; without an error
    /// the test skips this.
    CelOnError { target: D Forward } [JUMPS];
    /// CEL: jumps with an error for a list, which has no fields.
    CelRequireFields { src: B Source, target: D Forward } [READS_SUBJECT WRITES_ERROR JUMPS];
    /// CEL: whether there is such a field; false for values without fields.
    CelHas { dst: A Destination, src: B Source, key: C SymbolId } [READS_SUBJECT];
    /// CEL: a field; an optional is unwrapped. Jumps if it is missing.
    CelFind { dst: A Destination, src: B Source, key: C SymbolId, target: D Forward }
        [READS_SUBJECT JUMPS];
    /// CEL: like `CelFind`, for an index.
    CelFindIndex { dst: A Destination, src: B Source, index: E Source, target: D Forward }
        [READS_SUBJECT JUMPS];
    /// CEL: the value of an optional; jumps if it is empty. Another value is itself or, if
    /// `strict`, an error that is left in the register; an empty optional leaves none.
    CelUnwrap { dst: A Destination, src: B Source, strict: E bool, target: D Forward }
        [READS_SUBJECT MAKES_VALUE JUMPS];
    /// CEL: an optional with a value.
    CelWrap { dst: A Destination, src: B Source } [MAKES_VALUE];
    /// CEL: the empty optional.
    CelNone { dst: A Destination } [MAKES_VALUE];
    /// CEL: calls a function of one argument.
    CelUnary { dst: A Destination, src: B Source, function: C CelFunction, target: D Forward }
        [READS_SUBJECT MAKES_VALUE ASKS_HOST IS_RANDOM WRITES_ERROR JUMPS];
    /// CEL: calls a function of two arguments.
    CelBinary {
        dst: A Destination,
        left: B Source,
        right: E Source,
        function: C CelFunction,
        target: D Forward,
    } [READS_SUBJECT MAKES_VALUE ASKS_HOST IS_RANDOM WRITES_ERROR JUMPS];
    /// CEL: calls a function with what was appended to a list.
    CelCall { dst: A Destination, list: B ListSlot, function: C CelFunction, target: D Forward }
        [READS_SUBJECT READS_SLOT MAKES_VALUE ASKS_HOST IS_RANDOM WRITES_ERROR JUMPS];
    /// CEL: what a comprehension iterates over.
    CelRange { dst: A Destination, src: B Source, over: E RangeOver, target: D Forward }
        [READS_SUBJECT MAKES_VALUE WRITES_ERROR JUMPS];
    /// CEL: builds a map of what was appended: alternating keys and values, no key twice;
    /// `joined` if they come from maps.
    CelMapEnd { dst: A Destination, list: B ListSlot, joined: C bool, target: D Forward }
        [READS_SUBJECT READS_SLOT MAKES_VALUE WRITES_ERROR JUMPS];
    /// CEL: appends the members of a map: alternating keys and values.
    CelMapExtend { list: A ListSlot, src: B Source, target: D Forward }
        [READS_SUBJECT WRITES_SLOT WRITES_ERROR JUMPS];
    /// CEL: appends the value of an optional, if any.
    CelPushOptional { list: A ListSlot, src: B Source, target: D Forward }
        [READS_SUBJECT WRITES_SLOT WRITES_ERROR JUMPS];
    /// CEL check: the value is a boolean.
    CelRequireBool { src: A Source, target: D Forward } [READS_SUBJECT WRITES_ERROR JUMPS];
    /// CEL check: the expression of a policy is true.
    CelTest { src: A Source, target: D Forward } [READS_SUBJECT JUMPS];
    /// CEL: turns the error into a value, unless the register holds an earlier one.
    CelCatch { dst: A Destination } [READS_ERROR MAKES_VALUE];
    /// CEL: continues with the error in a register, if there is one.
    CelRaise { src: A Source, target: D Forward } [READS_SUBJECT WRITES_ERROR JUMPS];
    /// CEL: continues at the target with all the errors of a list, if there are any.
    CelRaiseAll { list: A ListSlot, form: B ErrorList, target: D Forward }
        [READS_SUBJECT READS_SLOT WRITES_ERROR JUMPS];
    /// CEL: begins an expression, which has a budget of its own (docs/spec/cel.md §2.7).
    CelBegin { text: C TextId } [WRITES_STATE];
    /// CEL: one of the values that the machine provides.
    CelRoot { dst: A Destination, root: C Root } [READS_SUBJECT READS_REQUEST READS_STATE];
    /// CEL: a variable, computed when it is first needed; its error is the same each time.
    CelVariable { dst: A Destination, entry: C EntryId, target: D Forward }
        [READS_SUBJECT READS_REQUEST READS_CONTEXT WRITES_CONTEXT RUNS_BLOCK ASKS_HOST IS_RANDOM MAKES_VALUE WRITES_ERROR JUMPS];
    /// CEL: the list of parameters that a map of `paramKind` and `paramRef` asks for.
    CelParams { dst: A Destination, src: B Source, whose: E ParametersFor, target: D Forward }
        [READS_SUBJECT READS_REQUEST ASKS_HOST MAKES_VALUE WRITES_ERROR JUMPS];
    /// CEL: from here on this value is `params`, and variables are computed again.
    CelBindParams { src: A Source } [WRITES_CONTEXT WRITES_STATE];
    /// Ends: a CEL rule cannot be evaluated, with the error's text.
    ReturnErrorText [READS_ERROR ENDS];
    /// Ends: a CEL expression is false, with a message known at compile time; `number`
    /// counts the expressions.
    ReturnFailText { text: C TextId, number: D ExpressionNumber } [ENDS];
    /// Ends: a CEL expression failed, with the error's text.
    ReturnFailError { number: D ExpressionNumber } [READS_ERROR ENDS];
    /// CEL: ends with a computed message; falls through if it is not a message.
    ReturnFailValue { src: A Source, form: B MessageForm, number: D ExpressionNumber }
        [READS_SUBJECT MAY_END];

    /// Match: the request's kind and subresource are selected.
    MatchKinds { kinds: C KindListId, target: D Forward } [READS_REQUEST JUMPS];
    /// Match: the operation is in the set.
    MatchOperations { operations: B Operations, target: D Forward } [READS_REQUEST JUMPS];
    /// Match: the object's name, or generateName, matches one of the wildcards.
    MatchNames { names: C TextListId, target: D Forward } [READS_SUBJECT READS_REQUEST JUMPS];
    /// Match: the object's namespace (a Namespace's own name) matches one of the wildcards.
    MatchNamespaces { namespaces: C TextListId, target: D Forward }
        [READS_SUBJECT READS_REQUEST JUMPS];
    /// Match: every annotation pair is found.
    MatchAnnotations { annotations: C PairListId, target: D Forward }
        [READS_SUBJECT READS_REQUEST JUMPS];
    /// Match: the label selector selects the object.
    MatchSelector { selector: C SelectorId, target: D Forward } [READS_SUBJECT READS_REQUEST JUMPS];
    /// Match: the selector selects the namespace's labels, for the objects to which it
    /// applies.
    MatchNamespaceSelector {
        selection: B NamespaceSelection,
        selector: C SelectorId,
        target: D Forward,
    } [READS_SUBJECT READS_REQUEST JUMPS];
    /// Match: the user has one of the roles.
    MatchRoles { roles: C TextListId, target: D Forward } [READS_REQUEST JUMPS];
    /// Match: the user has one of the cluster roles.
    MatchClusterRoles { roles: C TextListId, target: D Forward } [READS_REQUEST JUMPS];
    /// Match: the user is one of the subjects.
    MatchSubjects { subjects: C SubjectListId, target: D Forward } [READS_REQUEST JUMPS];
    /// Jumps if the request has no user information at all.
    JumpIfNoUser { target: D Forward } [READS_REQUEST JUMPS];
    /// Match: the API group of the resource is one of the texts, or `*` is (docs/spec/cel.md §6.3).
    MatchApiGroups { groups: C TextListId, target: D Forward } [READS_REQUEST JUMPS];
    /// Match: the API version of the resource is one of the texts, or `*` is.
    MatchApiVersions { versions: C TextListId, target: D Forward } [READS_REQUEST JUMPS];
    /// Match: the resource with its subresource is one of `pods`, `pods/log`, `pods/*`, `*/log`,
    /// `*` and `*/*`.
    MatchResources { resources: C TextListId, target: D Forward } [READS_REQUEST JUMPS];
    /// Match: the object's name is one of the texts; if it has none, its generateName
    /// begins with one.
    MatchResourceNames { names: C TextListId, target: D Forward } [READS_SUBJECT READS_REQUEST JUMPS];
    /// Match: the object has that scope.
    MatchScope { scope: B ObjectScope, target: D Forward } [READS_SUBJECT READS_REQUEST JUMPS];
    /// Match: the selector selects the labels of the object or of the old object; a missing
    /// one counts as an object without labels (`absent`).
    MatchObjectLabels { absent: B bool, selector: C SelectorId, target: D Forward }
        [READS_SUBJECT READS_REQUEST JUMPS];
    /// Match: the selector selects the labels of the namespace; cluster-wide objects always
    /// match, a Namespace has its own labels.
    MatchNamespaceLabels { selector: C SelectorId, target: D Forward }
        [READS_SUBJECT READS_REQUEST JUMPS];
    /// Ends: the rule applies to the resource.
    ReturnMatched [ENDS];
    /// Ends: the rule does not apply.
    ReturnUnmatched [ENDS];
}
