//! Blocks of code and the static paths that they load.

use zerocopy::little_endian::{U16, U32};

use super::Range;

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
        /// Range of `site_runs`.
        sites: Range,
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

impl Block {
    /// Its range of instructions.
    pub fn code(&self) -> Range {
        Range {
            start: self.start,
            length: self.length,
        }
    }

    /// Whether two blocks have the same code with the same frame.
    pub(crate) fn has_code_of(&self, other: &Block) -> bool {
        *self
            == Block {
                sites: self.sites,
                ..*other
            }
    }
}
