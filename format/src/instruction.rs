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
//! an error. The kinds of error and how folds combine them: docs/spec/patterns.md §3.
//! A *test* has three ways to go on: where it comes out as `d` wants, at `d`; otherwise
//! behind the `CelOnError` that stands behind it; with an error, at that.

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
    /// A constant value.
    Constant,
    /// A slice of a list.
    Slice,
    /// A variable of the rule's context.
    Slot,
    /// A context entry.
    Entry,
    /// A block, or none.
    OptionalBlock,
    /// A list accumulator of the frame.
    List,
    /// A text accumulator of the frame.
    Accumulator,
    /// A built-in function.
    Function,
    /// A function of CEL.
    CelFunction,
    /// A condition operator.
    ConditionOperator,
    /// A block.
    Block,
    /// A shape that a value is decoded into.
    Shape,
    /// A control that a finding belongs to.
    Control,
    /// An exclusion of findings.
    Exclusion,
    /// A number that stands for itself.
    Immediate,
    /// A number of `cel::Root`.
    CelRoot,
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

            /// Whether a `CelOnError` belongs to it.
            pub fn is_test(self) -> bool {
                match self { $(Op::$name => instruction_set!(@tests $($flow)?),)+ }
            }
        }
    };
    (@ends) => { false };
    (@ends ends) => { true };
    (@ends tests) => { false };
    (@tests) => { false };
    (@tests ends) => { false };
    (@tests tests) => { true };
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
    /// Notes for the error downgrade whether the map has the anchored key (docs/spec/patterns.md §4.7).
    RecordAnchor(src: A Source, key: C Symbol, text: D Text);

    /// Expands the wildcard keys of a label or annotation pattern on this map, for good (docs/spec/patterns.md §9).
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
    /// As `AlternativeFailed`, for the alternative that a loop is at.
    AlternativeFailedAt(loop_slot: A Loop);
    /// Ends: the rule passes by the alternative that a loop is at.
    ReturnAlternativeAt(loop_slot: A Loop) ends;
    /// Fails: an anyPattern that a variable gave is no list.
    RequireAlternatives(src: A Source, target: D Forward);
    /// Ends: the rule passes.
    ReturnPass() ends;
    /// Ends: the rule passes by an anyPattern alternative.
    ReturnAlternative(index: C Immediate) ends;
    /// Ends: the pattern's error decides; `depth` counts the foreach loops around it.
    ReturnError(depth: B Immediate) ends;
    /// Ends: no alternative held.
    ReturnAlternativesFailed(depth: B Immediate) ends;
    /// Ends: the rule denies.
    ReturnDeny(depth: B Immediate) ends;
    /// Ends: the rule passes (0), is an error (1), is one even where there is no
    /// resource to look at (2), or is skipped (3), with a message known at compile time.
    ReturnText(status: B Immediate, text: C Text) ends;

    /// Makes a constant value.
    LoadConstant(dst: A Destination, constant: C Constant);
    /// Copies a register.
    Move(dst: A Destination, src: B Source);
    /// Loads a variable of the context by its name: of the rule, else of the request; an unknown one is a missing key.
    LoadVariable(dst: A Destination, slot: C Slot, target: D Forward);
    /// Loads a value of the request's context: `request`, `serviceAccountName`, values given by the host.
    LoadBase(dst: A Destination, name: C Symbol, target: D Forward);
    /// Loads `request.object`, or `request.oldObject` when the operation is DELETE.
    LoadRequestObject(dst: A Destination, target: D Forward);
    /// Loads `images` of the resource.
    LoadImages(dst: A Destination, target: D Forward);
    /// Makes a map of the whole context.
    LoadContext(dst: A Destination);
    /// Puts a value into a variable of the context.
    StoreVariable(slot: C Slot, src: A Source);
    /// Loads a variable without looking further; missing when it is not set.
    SaveVariable(dst: A Destination, slot: C Slot);
    /// Runs the loader of a context entry unless it has run. `how`: 1 restricted, only if another loader ran for an earlier query; 2 first of its query.
    EnsureEntry(entry: C Entry, how: B Immediate, target: D Forward);
    /// Makes a context entry of a foreach block inactive.
    DropEntry(entry: C Entry);
    /// Makes a context entry active, to run when it is needed.
    ResetEntry(entry: C Entry);
    /// Lets the context entries of the rule that failed run again.
    RetryEntries();

    /// The value under a key: a map without it is a missing key, anything but a map gives null.
    GetKey(dst: A Destination, src: B Source, key: C Symbol, target: D Forward);
    /// The value under a key that is a text in a register.
    GetKeyOf(dst: A Destination, src: B Source, key: E Source, target: D Forward);
    /// The list item at an index (two's complement, negative from the end); null without one.
    GetItem(dst: A Destination, src: B Source, index: C Immediate);
    /// A part of a list, or of a text where `texts` are cut too; null of anything else.
    GetSlice(dst: A Destination, src: B Source, texts: E Immediate, slice: C Slice, target: D Forward);
    /// The values of a map in the order of their keys, behind as many nulls if asked for.
    MapValues(dst: A Destination, src: B Source, nulls: C Immediate);
    /// Negates the truth of a value.
    Not(dst: A Destination, src: B Source);
    /// Compares two values: 0 `==`, 1 `!=`, 2 `<`, 3 `<=`, 4 `>`, 5 `>=`.
    Compare(dst: A Destination, left: B Source, right: E Source, comparator: C Immediate);
    /// Jumps when the value is truthy.
    JumpIfTrue(src: A Source, target: D Forward);
    /// Jumps when the value is falsy.
    JumpIfFalse(src: A Source, target: D Forward);
    /// Jumps when the value is null.
    JumpIfNull(src: A Source, target: D Forward);
    /// Jumps when the value is no list.
    JumpIfNotList(src: A Source, target: D Forward);
    /// Jumps when the value is no map.
    JumpIfNotMap(src: A Source, target: D Forward);
    /// Jumps when a list has fewer items.
    JumpIfShorter(src: A Source, length: C Immediate, target: D Forward);
    /// Jumps unless the operation is DELETE.
    JumpUnlessDelete(target: D Forward);
    /// Makes null of a missing key; another error goes on at the target.
    CatchMissing(dst: A Destination, target: D Forward);
    /// Makes null of any error.
    CatchAny(dst: A Destination);
    /// Empties a list accumulator.
    ListBegin(list: A List);
    /// Appends a value.
    ListPush(list: A List, src: B Source);
    /// Appends a value unless it is null.
    ListPushSome(list: A List, src: B Source);
    /// Appends the items of a list, or another value itself.
    ListExtend(list: A List, src: B Source);
    /// Makes a list of what was appended.
    ListEnd(dst: A Destination, list: B List);
    /// Makes a map of what was appended, under the keys of a list of texts.
    MapEnd(dst: A Destination, list: B List, keys: C Texts);
    /// Makes a map of what was appended: keys (texts) and values in turn.
    MapEndPairs(dst: A Destination, list: B List);
    /// Calls a function with what was appended as arguments.
    Call(dst: A Destination, list: B List, function: C Function, target: D Forward);
    /// The loop's index as an int; over a map, the key.
    LoopIndex(dst: A Destination, loop_slot: B Loop);
    /// Fails with a text known at compile time.
    FailText(text: C Text, target: D Forward) ends;
    /// Puts a text in front of the error's and goes on at the target; `query` when it shows a query, which a DELETE rewrites.
    WrapError(query: B Immediate, text: C Text, target: D Forward) ends;

    /// Empties a text accumulator.
    TextBegin(accumulator: A Accumulator);
    /// Appends a text.
    TextLiteral(accumulator: A Accumulator, text: C Text);
    /// Appends a value as a variable inside a text shows it.
    TextValue(accumulator: A Accumulator, src: B Source, target: D Forward);
    /// Makes a text of what was appended.
    TextEnd(dst: A Destination, accumulator: B Accumulator);
    /// Jumps when nothing was appended yet.
    JumpIfTextEmpty(accumulator: A Accumulator, target: D Forward);
    /// FALLBACK: parses a text as an expression now and evaluates it over the whole context.
    EvaluateText(dst: A Destination, src: B Source, path: C Text, target: D Forward);
    /// FALLBACK: as `EvaluateText`, for a query whose errors are shown as they are.
    EvaluateQuery(dst: A Destination, src: B Source, target: D Forward);
    /// FALLBACK: parses a text as an expression now and evaluates it over a value.
    EvaluateOver(dst: A Destination, src: B Source, over: E Source, target: D Forward);
    /// Puts `failed to apply jmespath`, the text of a path and `to variable <nil>` in front of the error's text and goes on at the target.
    WrapPath(path: A Source, target: D Forward) ends;
    /// Takes what a key's variables gave; anything but text fails with a text known at compile time.
    RequireKeyText(dst: A Destination, src: B Source, text: C Text, typed: E Immediate, target: D Forward);

    /// Condition: jumps when it does not hold; fails the block when it cannot be evaluated.
    TestCondition(key: A Source, value: B Source, operator: E ConditionOperator, target: D Forward);
    /// Adds a condition's message to those of the block, `separator` 0 `; `, 1 `;`, with the block that computes it if it has variables.
    NoteMessage(separator: B Immediate, text: C Text, block: D OptionalBlock);
    /// Forgets the messages of the block.
    ClearMessages();

    /// Check: the value satisfies a pattern known only now, numbers made floats for anyPattern.
    TestValue(src: A Source, pattern: B Source, floats: C Immediate, target: D Forward);
    /// Begins a match of its own: anchors seen and keys expanded so far do not count.
    BeginPattern();
    /// The subject of an element's pattern: the element if it is a map, else what it was.
    SelectSubject(dst: A Destination, element: B Source, outer: E Source);
    /// Jumps when a pattern's subject is the resource and there is none to look at.
    JumpIfNoSubject(src: A Source, target: D Forward);
    /// Fails: the element of a foreach with `elementScope` is no map.
    RequireScope(src: A Source, target: D Forward);
    /// Counts an element that passed.
    CountPass();
    /// Jumps when the last error is about an unknown key.
    JumpIfUnknownKey(target: D Forward);
    /// Keeps the last error as that of a list that could not be evaluated.
    KeepListError();
    /// Ends a foreach rule by what was counted: pass, list error, or no response.
    ReturnForeach() ends;
    /// Begins a nested foreach: what was counted so far is put aside.
    EnterNested();
    /// Ends a nested foreach: jumps when it counted nothing; a list of it that could not be evaluated ends the rule.
    LeaveNested(depth: B Immediate, target: D Forward);
    /// Jumps when no alternative failed rather than skipped.
    JumpIfAllSkipped(target: D Forward);
    /// Runs a context entry again if it has run: the element that it saw is gone.
    RefreshEntry(entry: C Entry);
    /// Jumps when the pattern's error is a skip.
    JumpIfSkip(target: D Forward);
    /// The elements of a foreach list: none of null, the items of a list, else the value alone.
    ToElements(dst: A Destination, src: B Source);
    /// The value that `element` has: a number is a float64. Jumps for one that is not finite.
    ToElement(dst: A Destination, src: B Source, target: D Forward);
    /// A number as float64; any other value as it is.
    ToFloat(dst: A Destination, src: B Source);
    /// The value as it is stored in the context: every number a float64. Jumps when one is not finite.
    ToFloats(dst: A Destination, src: B Source, target: D Forward);
    /// What stands in the context once a value was added to another: maps merge at every depth, anything else is replaced.
    MergeStored(dst: A Destination, existing: B Source, added: E Source);
    /// Jumps unless the host has outside data of a kind, numbered as in `Fetch`.
    JumpUnlessProvided(kind: E Immediate, target: D Forward);
    /// Asks the host for outside data: 0 configMap, 1 apiCall, 2 globalReference, 3 imageRegistry; missing when the host has none of that kind.
    Fetch(dst: A Destination, request: B Source, kind: E Immediate, target: D Forward);
    /// Jumps unless a text can stand in an expression as it is: as a name (0), a quoted key (1), or in a raw string (2).
    JumpUnlessPlain(src: A Source, place: B Immediate, target: D Forward);
    /// Jumps unless a register holds something.
    JumpUnlessSet(src: A Source, target: D Forward);

    /// Decodes a value into a shape: keys in any case, null for what is not there; fails where a type differs.
    Conform(dst: A Destination, src: B Source, shape: C Shape, target: D Forward);
    /// Jumps when a text satisfies one of the wildcards: that of a value (0), empty where it is none, or the key that it stands under (1).
    JumpIfText(src: A Source, of: E Immediate, texts: C Texts, target: D Forward);
    /// Runs a block of checks over a value and keeps what it notes as findings; `places` are those of the value's `spec` and `metadata` in the resource.
    RunChecks(src: A Source, block: C Block, places: D Texts);
    /// Notes that a value breaks a control; `how`: bits of `NoteFlags`; `owner`: the container concerned, if any.
    Note(value: A Source, owner: B Source, how: E Immediate, path: C Text, control: D Control);
    /// The value that the findings are about.
    LoadChecked(dst: A Destination);
    /// Jumps unless there are findings of the exclusion's controls.
    JumpUnlessFound(exclusion: C Exclusion, target: D Forward);
    /// Runs the same checks over another value and takes away the findings that what they note there stands for.
    Exempt(src: A Source, exclusion: C Exclusion);
    /// Ends: the rule passes if no finding is left, else fails with what is left.
    ReturnFindings() ends;

    /// Loads what an assertion tree is about: all of it as expressions see it (0), `object` (1), `oldObject` (2), `admissionInfo` (3),
    /// `operation` (4), `namespaceLabels` (5), `admissionOperation` (6), `requestResource` (7), `resourceKind` (8).
    LoadPayload(dst: A Destination, part: B Immediate);
    /// Computes with two floats: 0 `+`, 1 `-`, 2 `*`, 3 `/`, 4 `//`, 5 `%`; null of anything else.
    Arithmetic(dst: A Destination, left: B Source, right: E Source, operator: C Immediate);
    /// A list itself, or a map in the order of its keys; jumps on anything else.
    ToIterable(dst: A Destination, src: B Source, target: D Forward);
    /// Assertion: notes a failure unless the value is as expected; ends as an error where the two cannot be compared.
    AssertValue(actual: A Source, expected: B Source);
    /// Notes a failure: 0 the field is missing, 1 null instead of a list, 2 a list of another length, 3 null.
    NoteFailure(src: A Source, reason: B Immediate);
    /// Ends: the assertion cannot be evaluated: 0 by the last error, 1 for no list, 2 for no list and no map.
    ReturnUnassertable(src: A Source, reason: B Immediate) ends;
    /// Ends: the rule passes if no failure was noted, else fails once for each.
    ReturnAssertion() ends;

    /// Ends: the conditions hold, or a part of a rule may go on.
    ReturnTrue() ends;
    /// Ends: the conditions do not hold.
    ReturnFalse() ends;
    /// Ends with a value.
    ReturnValue(src: A Source) ends;
    /// Ends: evaluating failed with the error's text.
    ReturnFailed(depth: B Immediate) ends;
    /// Ends: the rule gives no response.
    ReturnNothing() ends;

    /// CEL: a field of a map, of an optional (then an optional), of a declared object.
    CelSelect(dst: A Destination, src: B Source, key: C Symbol, target: D Forward);
    /// CEL: the value at a static path of `object`; jumps with the error of the first field that is not there.
    CelPath(dst: A Destination, path: C Path, target: D Forward);
    /// CEL test: a field, as `CelSelect` gives it. Jumps where there is none (0), or where there is one (1). A list has no
    /// fields to look for, which is an error.
    CelIfHas(dst: A Destination, src: B Source, when: E Immediate, key: C Symbol, target: D Forward) tests;
    /// CEL test: a field, as `CelFind` gives it, of what an optional holds if `src` is one (1). Jumps where there is none; a list
    /// has no fields to look for, which is an error.
    CelIfFind(dst: A Destination, src: B Source, unwrap: E Immediate, key: C Symbol, target: D Forward) tests;
    /// CEL test: compares with a constant. `how`: jumps where it does not hold (0) or where it does (1); 2 more where the
    /// constant is the left one.
    CelIfCompare(src: A Source, how: B Immediate, function: E CelFunction, constant: C Constant, target: D Forward) tests;
    /// CEL test: jumps where the value is `false` (0) or `true` (1); another is an error.
    CelIf(src: A Source, when: B Immediate, target: D Forward) tests;
    /// CEL: goes on at the target with the error of the test in front, which otherwise goes on behind this.
    CelOnError(target: D Forward);
    /// CEL: jumps with an error for a list, which has no fields to look for.
    CelRequireFields(src: B Source, target: D Forward);
    /// CEL: whether there is such a field; false of what has no fields.
    CelHas(dst: A Destination, src: B Source, key: C Symbol);
    /// CEL: a field; an optional is looked into. Jumps where there is none.
    CelFind(dst: A Destination, src: B Source, key: C Symbol, target: D Forward);
    /// CEL: as `CelFind`, for an index.
    CelFindIndex(dst: A Destination, src: B Source, index: E Source, target: D Forward);
    /// CEL: what an optional holds; jumps where it holds nothing. Another value is itself (0), or an error (1) that is left in the register, where an optional that holds nothing leaves none.
    CelUnwrap(dst: A Destination, src: B Source, strict: E Immediate, target: D Forward);
    /// CEL: an optional that holds a value.
    CelWrap(dst: A Destination, src: B Source);
    /// CEL: the optional that holds nothing.
    CelNone(dst: A Destination);
    /// CEL: calls a function of one argument.
    CelUnary(dst: A Destination, src: B Source, function: C CelFunction, target: D Forward);
    /// CEL: calls a function of two arguments.
    CelBinary(dst: A Destination, left: B Source, right: E Source, function: C CelFunction, target: D Forward);
    /// CEL: calls a function with what was appended to a list.
    CelCall(dst: A Destination, list: B List, function: C CelFunction, target: D Forward);
    /// CEL: what a comprehension goes over: the items of a list or the keys of a map (0), or indices or keys (1).
    CelRange(dst: A Destination, src: B Source, how: E Immediate, target: D Forward);
    /// CEL: makes a map of what was appended: keys and values in turn, no key twice; `joined` when they come of maps.
    CelMapEnd(dst: A Destination, list: B List, joined: C Immediate, target: D Forward);
    /// CEL: appends the members of a map: keys and values in turn.
    CelMapExtend(list: A List, src: B Source, target: D Forward);
    /// CEL: appends what an optional holds, if anything.
    CelPushOptional(list: A List, src: B Source, target: D Forward);
    /// CEL check: the value is a boolean.
    CelRequireBool(src: A Source, target: D Forward);
    /// CEL check: the expression of a policy holds.
    CelTest(src: A Source, target: D Forward);
    /// CEL: makes a value of the error, unless the register holds an earlier one.
    CelCatch(dst: A Destination);
    /// CEL: goes on with the error that a register holds, if it holds one.
    CelRaise(src: A Source, target: D Forward);
    /// CEL: goes on with all the errors of a list, if there are any: as one list of different ones (0), or one behind the
    /// other (1).
    CelRaiseAll(list: A List, form: B Immediate, target: D Forward);
    /// CEL: begins an expression, which has a budget of its own (docs/spec/cel.md §2.7).
    CelBegin(text: C Text);
    /// CEL: one of the values that an expression is given, a number of `cel::Root`.
    CelRoot(dst: A Destination, root: C CelRoot);
    /// CEL: a variable, computed when it is first needed; its error is the same each time.
    CelVariable(dst: A Destination, entry: C Entry, target: D Forward);
    /// CEL: the parameters that a map of `paramKind` and `paramRef` asks for: a list of them. As a rule asks (0;
    /// docs/spec/cel.md §2.6), or as a binding does (1; section 5).
    CelParams(dst: A Destination, src: B Source, how: E Immediate, target: D Forward);
    /// CEL: what follows sees this value as `params`, and computes variables anew.
    CelBindParams(src: A Source);
    /// Ends: a CEL rule cannot be evaluated, with the error's text.
    ReturnErrorText() ends;
    /// Ends: a CEL expression does not hold, with a message known at compile time; `number` counts the expressions.
    ReturnFailText(text: C Text, number: D Immediate) ends;
    /// Ends: a CEL expression failed, with the error's text.
    ReturnFailError(number: D Immediate) ends;
    /// CEL: ends with a computed message; falls through where it is none: what Kubernetes takes for one (0;
    /// docs/spec/cel.md §2.3), or any but the empty one, that of an error too (1).
    ReturnFailValue(src: A Source, any: B Immediate, number: D Immediate);

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
    /// Match: the selector selects the namespace's labels. Of an object without a kind this is asked only when the
    /// filter's kinds hold `*` (`filter` 1); a Namespace it holds for only in an exception (2).
    MatchNamespaceSelector(filter: B Immediate, selector: C Selector, target: D Forward);
    /// Match: the user has one of the roles.
    MatchRoles(roles: C Texts, target: D Forward);
    /// Match: the user has one of the cluster roles.
    MatchClusterRoles(roles: C Texts, target: D Forward);
    /// Match: the user is one of the subjects.
    MatchSubjects(subjects: C Subjects, target: D Forward);
    /// Jumps when the request carries no user information at all.
    JumpIfNoUser(target: D Forward);
    /// Match: the API group of the resource is one of the texts, or `*` is (docs/spec/cel.md §6.3).
    MatchApiGroups(groups: C Texts, target: D Forward);
    /// Match: the API version of the resource is one of the texts, or `*` is.
    MatchApiVersions(versions: C Texts, target: D Forward);
    /// Match: the resource with its subresource is one of `pods`, `pods/log`, `pods/*`, `*/log`, `*` and `*/*`.
    MatchResources(resources: C Texts, target: D Forward);
    /// Match: the object's name is one of the texts; where it has none, its generateName begins with one.
    MatchResourceNames(names: C Texts, target: D Forward);
    /// Match: the object is in a namespace (0), or it is not (1).
    MatchScope(scope: B Immediate, target: D Forward);
    /// Match: the selector selects the labels of the object or of the old object; one that is not there counts as an object
    /// without labels (`absent` 1).
    MatchObjectLabels(absent: B Immediate, selector: C Selector, target: D Forward);
    /// Match: the selector selects the labels of the namespace; what is in no namespace is not asked, a Namespace has its own.
    MatchNamespaceLabels(selector: C Selector, target: D Forward);
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

    /// Sets the operand in `field`; of a small one only the low byte is kept.
    pub fn set(&mut self, field: Field, value: u32) {
        match field {
            Field::A => self.a = value as u8,
            Field::B => self.b = value as u8,
            Field::E => self.e = value as u8,
            Field::C => self.c = U32::new(value),
            Field::D => self.d = U32::new(value),
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
