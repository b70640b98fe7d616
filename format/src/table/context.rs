//! The context of a rule: its variables and the entries that set them.

use zerocopy::little_endian::U32;

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
