//! The effects of instructions besides writing their register: a column of the instruction
//! table that analyses query instead of listing operations.

use std::fmt;

macro_rules! effects {
    ($( $(#[doc = $doc:literal])+ $name:ident = $bit:literal; )+) => {
        /// A set of effects. It says what an operation *may* do; an operation with the
        /// empty set has a result that depends only on the identity of its operands.
        #[derive(Clone, Copy, PartialEq, Eq, Default)]
        pub struct Effects(u32);

        impl Effects {
            $( $(#[doc = $doc])+ pub const $name: Effects = Effects(1 << $bit); )+

            /// No effect.
            pub const NONE: Effects = Effects(0);

            const NAMES: &'static [(&'static str, Effects)] =
                &[$( (stringify!($name), Effects::$name) ),+];
        }
    };
}

effects! {
    /// Reads the resource or a value that may be a part of it.
    READS_SUBJECT = 0;
    /// Depends on the request around the resource: its kind, operation, user, labels.
    READS_REQUEST = 1;
    /// Depends on variables or entries of the rule's context.
    READS_CONTEXT = 2;
    /// Changes variables or entries of the rule's context.
    WRITES_CONTEXT = 3;
    /// Builds a value that may be new, which the limits count.
    MAKES_VALUE = 4;
    /// Sets the machine's error.
    WRITES_ERROR = 5;
    /// Depends on the machine's error.
    READS_ERROR = 6;
    /// Queries the host.
    ASKS_HOST = 7;
    /// Depends on the clock or on random numbers.
    IS_RANDOM = 8;
    /// Begins or continues a loop.
    LOOPS = 9;
    /// May continue at its target.
    JUMPS = 10;
    /// Never continues after itself.
    ENDS = 11;
    /// Is followed by the `CelOnError` that says where its errors continue.
    TESTS = 12;
    /// Records something for the outcome: a message, a finding, a failure, a count.
    NOTES = 13;
    /// Changes a fold or an accumulator of the frame.
    WRITES_SLOT = 14;
    /// Depends on a fold or an accumulator of the frame.
    READS_SLOT = 15;
    /// Runs another block.
    RUNS_BLOCK = 16;
    /// Changes other state of the machine: expanded patterns, the budget of an expression,
    /// the bound parameters.
    WRITES_STATE = 17;
    /// Depends on such state.
    READS_STATE = 18;
    /// Ends the block in some cases other than errors.
    MAY_END = 19;
}

impl Effects {
    /// Effects of operations that only read: an operation with no other effects can be left
    /// out if nothing reads its register, and done once instead of twice.
    pub const READING: Effects = Effects::READS_SUBJECT
        .and(Effects::READS_REQUEST)
        .and(Effects::READS_CONTEXT)
        .and(Effects::READS_ERROR)
        .and(Effects::READS_SLOT)
        .and(Effects::READS_STATE);

    /// The effects of both.
    #[must_use]
    pub const fn and(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    /// Whether any of `others` is among them.
    #[inline]
    pub const fn has(self, others: Effects) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether all of them are among `others`.
    pub const fn are_within(self, others: Effects) -> bool {
        self.0 & !others.0 == 0
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.iter().filter(|(_, effect)| self.has(*effect));
        out.debug_set()
            .entries(names.map(|(name, _)| name))
            .finish()
    }
}
