//! Scalar patterns: parsed once, here, by the same code that parses patterns known only at
//! run time.

use kpvm_syntax::tree::TreeValue;

use super::variable;
use crate::ir::{LeafId, Module};

impl Module {
    /// The predicate for a scalar pattern; `None` for maps and lists. Escapes of variables in
    /// a text are undone.
    pub fn leaf(&mut self, pattern: &TreeValue) -> Option<LeafId> {
        match pattern {
            TreeValue::String(text) => {
                let text = TreeValue::String(variable::unescape_variables(text).into());
                self.plain_leaf(&text)
            }
            other => self.plain_leaf(other),
        }
    }
}
