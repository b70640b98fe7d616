//! Immediates: operands that are values themselves rather than numbers of something else.
//!
//! Each has a type of its own, so that no bare number has two meanings. The values of a
//! type are `0..=LAST` in the encoding: the verifier rejects every other number.

use std::fmt::{self, Write};

/// A type of immediates.
pub trait Immediate: Copy {
    /// Largest number that encodes a value; all smaller ones do too.
    const LAST: u32;

    /// The number in the encoding.
    fn encode(self) -> u32;

    /// The value with that number.
    fn decode(number: u32) -> Option<Self>;

    /// The value with that number in verified code; some value if there is none.
    fn read(number: u32) -> Self;

    /// Writes the value as the disassembler shows it.
    ///
    /// # Errors
    /// If writing fails.
    fn show(self, out: &mut dyn Write) -> fmt::Result;
}

/// Types of immediates that are one of a few choices.
macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])+
        $type:ident { $( $(#[doc = $choice_doc:literal])+ $choice:ident ),+ $(,)? }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $type { $( $(#[doc = $choice_doc])+ $choice, )+ }

        impl $type {
            /// Every choice, in the order of its number.
            pub const ALL: &'static [$type] = &[$($type::$choice),+];
        }

        impl Immediate for $type {
            const LAST: u32 = $type::ALL.len() as u32 - 1;

            #[inline]
            fn encode(self) -> u32 {
                self as u32
            }

            #[inline]
            fn decode(number: u32) -> Option<Self> {
                // A chain of comparisons, which becomes one check of the range.
                $( if number == $type::$choice as u32 { return Some($type::$choice); } )+
                None
            }

            #[inline]
            fn read(number: u32) -> Self {
                Self::decode(number).unwrap_or(Self::ALL[0])
            }

            fn show(self, out: &mut dyn Write) -> fmt::Result {
                write!(out, "{self:?}")
            }
        }
    )+};
}

/// Types of immediates that are sets of flags.
macro_rules! flag_sets {
    ($(
        $(#[doc = $doc:literal])+
        $type:ident { $( $(#[doc = $flag_doc:literal])+ $flag:ident = $bit:literal ),+ $(,)? }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $type(u8);

        impl $type {
            $( $(#[doc = $flag_doc])+ pub const $flag: $type = $type(1 << $bit); )+

            /// The empty set.
            pub const NONE: $type = $type(0);

            /// Every flag.
            pub const ALL: $type = $type($( (1 << $bit) )|+);

            /// Whether any of `flags` is set.
            #[inline]
            pub const fn has(self, flags: $type) -> bool {
                self.0 & flags.0 != 0
            }

            /// The flags of both.
            #[must_use]
            pub const fn with(self, flags: $type) -> $type {
                $type(self.0 | flags.0)
            }

            /// Adds `flags` if `condition` is true.
            #[must_use]
            pub const fn with_if(self, condition: bool, flags: $type) -> $type {
                if condition { self.with(flags) } else { self }
            }
        }

        impl std::ops::BitOr for $type {
            type Output = $type;

            fn bitor(self, flags: $type) -> $type {
                self.with(flags)
            }
        }

        impl Immediate for $type {
            const LAST: u32 = $type::ALL.0 as u32;

            #[inline]
            fn encode(self) -> u32 {
                u32::from(self.0)
            }

            #[inline]
            fn decode(number: u32) -> Option<Self> {
                (number <= Self::LAST).then_some($type(number as u8))
            }

            #[inline]
            fn read(number: u32) -> Self {
                $type(number as u8 & Self::ALL.0)
            }

            fn show(self, out: &mut dyn Write) -> fmt::Result {
                let mut separator = "";
                $(if self.has($type::$flag) {
                    write!(out, "{separator}{}", stringify!($flag))?;
                    separator = "|";
                })+
                match separator {
                    "" => out.write_str("NONE"),
                    _ => Ok(()),
                }
            }
        }
    )+};
}

/// Types of immediates that count something or are positions.
macro_rules! counts {
    ($( $(#[doc = $doc:literal])+ $type:ident up_to $last:expr; )+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $type(pub u32);

        impl Immediate for $type {
            const LAST: u32 = $last;

            #[inline]
            fn encode(self) -> u32 {
                self.0
            }

            #[inline]
            fn decode(number: u32) -> Option<Self> {
                (number <= Self::LAST).then_some($type(number))
            }

            #[inline]
            fn read(number: u32) -> Self {
                $type(number)
            }

            fn show(self, out: &mut dyn Write) -> fmt::Result {
                write!(out, "{}", self.0)
            }
        }
    )+};
}

choices! {
    /// How [`Compare`](super::Op::Compare) compares.
    Comparison {
        /// `==`
        Equal,
        /// `!=`
        NotEqual,
        /// `<`
        Less,
        /// `<=`
        LessOrEqual,
        /// `>`
        Greater,
        /// `>=`
        GreaterOrEqual,
    }

    /// What [`Arithmetic`](super::Op::Arithmetic) computes.
    ArithmeticOperator {
        /// `+`
        Add,
        /// `-`
        Subtract,
        /// `*`
        Multiply,
        /// `/`
        Divide,
        /// `//`
        DivideWhole,
        /// `%`
        Remainder,
    }

    /// Data from outside that a host may have.
    Provision {
        /// ConfigMaps.
        ConfigMap,
        /// Answers of an API server or a service.
        ApiCall,
        /// Global context entries.
        GlobalReference,
        /// Facts about images of a registry.
        ImageRegistry,
    }

    /// The ending of a rule whose message is known at compile time.
    ReturnStatus {
        /// It passes.
        Pass,
        /// It is an error.
        Error,
        /// It is an error even if there is no resource.
        ErrorWithoutResource,
        /// It is skipped.
        Skip,
    }

    /// Why a pattern under an existence anchor cannot be used.
    ExistencePatternDefect {
        /// It is not a list.
        NotAList,
        /// An item of it is not a map.
        ItemNotAMap,
    }

    /// What separates messages of conditions.
    MessageSeparator {
        /// `; `
        SemicolonSpace,
        /// `;`
        Semicolon,
    }

    /// The role of a text in an expression.
    ExpressionPlace {
        /// As a name.
        Name,
        /// As a key in quotes.
        QuotedKey,
        /// Inside a raw string.
        RawString,
    }

    /// Which text of a value is used.
    TextOf {
        /// The value's; empty if it is not a text.
        Value,
        /// Its key in the map.
        Key,
    }

    /// A part of the payload of an assertion tree.
    PayloadPart {
        /// All of it, as expressions see it.
        Whole,
        /// `object`
        Object,
        /// `oldObject`
        OldObject,
        /// `admissionInfo`
        AdmissionInfo,
        /// `operation`
        Operation,
        /// `namespaceLabels`
        NamespaceLabels,
        /// `admissionOperation`
        AdmissionOperation,
        /// `requestResource`
        RequestResource,
        /// `resourceKind`
        ResourceKind,
    }

    /// What is wrong with a value that an assertion tests.
    AssertionFailure {
        /// The field is missing.
        Missing,
        /// It is null and should be a list.
        NullList,
        /// It is a list of another length.
        Length,
        /// It is null.
        Null,
    }

    /// Why an assertion cannot be evaluated.
    Unassertable {
        /// The last error.
        Error,
        /// The value is not a list.
        NotAList,
        /// The value is neither a list nor a map.
        NotAListOrMap,
    }

    /// What a comprehension of CEL iterates over.
    RangeOver {
        /// The items of a list or the keys of a map.
        Items,
        /// The indices of a list or the keys of a map.
        Indices,
    }

    /// How several errors of CEL are combined.
    ErrorList {
        /// A list of the different ones.
        Distinct,
        /// All of them, joined with `; `.
        Joined,
    }

    /// Whose parameters are looked up.
    ParametersFor {
        /// A rule's (docs/spec/cel.md §2.6).
        Rule,
        /// A binding's (docs/spec/cel.md §5).
        Binding,
    }

    /// What counts as the message of a CEL expression.
    MessageForm {
        /// What Kubernetes accepts (docs/spec/cel.md §2.3).
        Kubernetes,
        /// Anything but the empty text, including an error's text.
        NotEmpty,
    }

    /// To which objects a filter's namespace selector applies.
    NamespaceSelection {
        /// To those of a kind other than Namespace; an object without a kind is selected.
        Ordinary,
        /// To those and to objects without a kind: the filter's kinds contain `*`.
        WithoutKind,
        /// Like `Ordinary`, but every Namespace is selected: the filter belongs to an
        /// exception.
        Exception,
    }

    /// The scope that an object must have.
    ObjectScope {
        /// It is namespaced.
        Namespaced,
        /// It is cluster-wide.
        Cluster,
    }
}

flag_sets! {
    /// When a context entry is loaded.
    EntryLoading {
        /// Only if another loader ran for an earlier query.
        RESTRICTED = 0,
        /// It is the first entry of its query.
        FIRST = 1,
    }

    /// How a comparison with a constant branches.
    CompareFlags {
        /// Jumps if it is true; otherwise jumps if it is false.
        JUMPS_IF_TRUE = 0,
        /// The constant is the left operand.
        CONSTANT_IS_LEFT = 1,
    }

    /// Operations of a request.
    Operations {
        /// `CREATE`
        CREATE = 0,
        /// `UPDATE`
        UPDATE = 1,
        /// `DELETE`
        DELETE = 2,
        /// `CONNECT`
        CONNECT = 3,
    }

    /// How a finding of a control is listed.
    NoteFlags {
        /// Low bit of its place among the findings of its control.
        PLACE_LOW = 0,
        /// High bit of its place.
        PLACE_HIGH = 1,
        /// A value is missing; otherwise one is forbidden.
        REQUIRED = 2,
        /// The control fails without listing it.
        UNLISTED = 3,
        /// It counts only if the control has no other.
        FALLBACK = 4,
        /// Its path ends with the key of the value.
        KEYED = 5,
        /// It concerns one container.
        OWNED = 6,
    }
}

impl Operations {
    /// Each operation with its name.
    pub const NAMED: [(&'static str, Operations); 4] = [
        ("CREATE", Operations::CREATE),
        ("UPDATE", Operations::UPDATE),
        ("DELETE", Operations::DELETE),
        ("CONNECT", Operations::CONNECT),
    ];

    /// The operation of that name; the empty set if there is none.
    pub fn named(name: &str) -> Operations {
        let known = Self::NAMED.iter().find(|(known, _)| *known == name);
        known.map_or(Self::NONE, |&(_, operation)| operation)
    }
}

impl NoteFlags {
    /// The flags of a place among the findings of a control; the last of the four for any
    /// later place.
    #[must_use]
    pub const fn at_place(place: u8) -> NoteFlags {
        NoteFlags(if place > 3 { 3 } else { place })
    }

    /// Its place among the findings of its control.
    pub const fn place(self) -> u8 {
        self.0 & 3
    }
}

/// The largest item number of an instruction: what an `i32` holds.
const MAX_ITEMS: u32 = i32::MAX as u32;

counts! {
    /// Number of items of a list.
    ItemCount up_to MAX_ITEMS;
    /// Index of an item of a list.
    ItemIndex up_to MAX_ITEMS;
    /// Index of an alternative of `anyPattern`.
    AlternativeIndex up_to MAX_ITEMS;
    /// Number of an expression of a CEL rule, in order.
    ExpressionNumber up_to MAX_ITEMS;
    /// Number of `foreach` loops around an instruction.
    ForeachDepth up_to crate::verify::MAX_LOOP_DEPTH as u32;
}

/// Index of an item of a list; a negative one counts from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignedIndex(pub i32);

impl Immediate for SignedIndex {
    const LAST: u32 = u32::MAX;

    #[inline]
    fn encode(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn decode(number: u32) -> Option<Self> {
        Some(Self::read(number))
    }

    #[inline]
    fn read(number: u32) -> Self {
        SignedIndex(number as i32)
    }

    fn show(self, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

impl Immediate for bool {
    const LAST: u32 = 1;

    #[inline]
    fn encode(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn decode(number: u32) -> Option<Self> {
        match number {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    #[inline]
    fn read(number: u32) -> Self {
        number != 0
    }

    fn show(self, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{self}")
    }
}

/// Types of the format that are immediates too: each is numbered in a table of its own.
macro_rules! numbered {
    ($( $type:ty, $name:expr; )+) => {$(
        impl Immediate for $type {
            const LAST: u32 = <$type>::ALL.len() as u32 - 1;

            #[inline]
            fn encode(self) -> u32 {
                self as u32
            }

            #[inline]
            fn decode(number: u32) -> Option<Self> {
                <$type>::ALL.get(number as usize).copied()
            }

            #[inline]
            fn read(number: u32) -> Self {
                <Self as Immediate>::decode(number).unwrap_or(<$type>::ALL[0])
            }

            fn show(self, out: &mut dyn Write) -> fmt::Result {
                let name: fn($type) -> String = $name;
                out.write_str(&name(self))
            }
        }
    )+};
}

numbered! {
    crate::function::Function, |function| function.name().to_owned();
    crate::cel::Function, |function| function.name().to_owned();
    crate::cel::Root, |root| format!("{root:?}");
    crate::condition::ConditionOperator, |operator| format!("{operator:?}");
}

/// The type of an immediate, for queries at run time.
macro_rules! immediate_types {
    ($( $kind:ident = $type:ty; )+) => {
        /// A type of immediates.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "named after the types")]
        pub enum ImmediateType { $( $kind, )+ }

        impl ImmediateType {
            /// Name of the type.
            pub const fn name(self) -> &'static str {
                match self { $( ImmediateType::$kind => stringify!($kind), )+ }
            }

            /// Whether its values are self-explanatory when shown.
            pub const fn is_named(self) -> bool {
                !matches!(
                    self,
                    ImmediateType::Bool
                        | ImmediateType::EntryLoading
                        | ImmediateType::CompareFlags
                        | ImmediateType::Operations
                        | ImmediateType::NoteFlags
                        | ImmediateType::ItemCount
                        | ImmediateType::ItemIndex
                        | ImmediateType::SignedIndex
                        | ImmediateType::AlternativeIndex
                        | ImmediateType::ExpressionNumber
                        | ImmediateType::ForeachDepth
                )
            }

            /// Largest number that encodes a value of the type; all smaller ones do too.
            pub const fn last(self) -> u32 {
                match self { $( ImmediateType::$kind => <$type as Immediate>::LAST, )+ }
            }

            /// Writes the value with that number, if there is one.
            ///
            /// # Errors
            /// If writing fails.
            pub fn show(self, number: u32, out: &mut dyn Write) -> fmt::Result {
                match self {
                    $( ImmediateType::$kind => match <$type as Immediate>::decode(number) {
                        Some(value) => value.show(out),
                        None => out.write_str("?"),
                    } )+
                }
            }
        }

        $( impl super::operand::OperandType for $type {
            type Of<R: super::operand::Representation> = $type;

            const KIND: super::OperandKind = super::OperandKind::Immediate(ImmediateType::$kind);

            #[inline(always)]
            fn number<R: super::operand::Representation>(value: $type) -> u32 {
                Immediate::encode(value)
            }

            #[inline(always)]
            fn decode(number: u32) -> Option<$type> {
                Immediate::decode(number)
            }

            #[inline(always)]
            fn read(number: u32) -> $type {
                Immediate::read(number)
            }

            fn translate<R, S, T>(value: $type, _: &mut T) -> $type
            where
                R: super::operand::Representation,
                S: super::operand::Representation,
                T: super::operand::Translate<R, S>,
            {
                value
            }
        } )+
    };
}

immediate_types! {
    Bool = bool;
    Comparison = Comparison;
    ArithmeticOperator = ArithmeticOperator;
    Provision = Provision;
    ReturnStatus = ReturnStatus;
    ExistencePatternDefect = ExistencePatternDefect;
    MessageSeparator = MessageSeparator;
    ExpressionPlace = ExpressionPlace;
    TextOf = TextOf;
    PayloadPart = PayloadPart;
    AssertionFailure = AssertionFailure;
    Unassertable = Unassertable;
    RangeOver = RangeOver;
    ErrorList = ErrorList;
    ParametersFor = ParametersFor;
    MessageForm = MessageForm;
    NamespaceSelection = NamespaceSelection;
    ObjectScope = ObjectScope;
    EntryLoading = EntryLoading;
    CompareFlags = CompareFlags;
    Operations = Operations;
    NoteFlags = NoteFlags;
    ItemCount = ItemCount;
    ItemIndex = ItemIndex;
    SignedIndex = SignedIndex;
    AlternativeIndex = AlternativeIndex;
    ExpressionNumber = ExpressionNumber;
    ForeachDepth = ForeachDepth;
    Function = crate::function::Function;
    CelFunction = crate::cel::Function;
    CelRoot = crate::cel::Root;
    ConditionOperator = crate::condition::ConditionOperator;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips<T: Immediate + PartialEq + std::fmt::Debug>() {
        for number in (0..=T::LAST.min(1000)).chain([T::LAST]) {
            assert_eq!(T::decode(number).map(T::encode), Some(number));
        }
        if let Some(outside) = T::LAST.checked_add(1) {
            assert_eq!(T::decode(outside), None);
            assert_eq!(T::decode(u32::MAX), None);
        }
    }

    #[test]
    fn values_are_the_numbers_up_to_the_last() {
        round_trips::<bool>();
        round_trips::<Comparison>();
        round_trips::<PayloadPart>();
        round_trips::<EntryLoading>();
        round_trips::<NoteFlags>();
        round_trips::<Operations>();
        round_trips::<ItemCount>();
        round_trips::<SignedIndex>();
        round_trips::<ForeachDepth>();
        round_trips::<crate::function::Function>();
        round_trips::<crate::cel::Function>();
    }

    #[test]
    fn flags_are_shown_by_name() {
        let mut shown = String::new();
        let _ = (EntryLoading::RESTRICTED | EntryLoading::FIRST).show(&mut shown);
        assert_eq!(shown, "RESTRICTED|FIRST");
        shown.clear();
        let _ = Operations::NONE.show(&mut shown);
        assert_eq!(shown, "NONE");
    }
}
