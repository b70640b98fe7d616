//! The passes over a module between lowering and emission.

use crate::ir::Module;
use crate::optimise;

/// Runs all passes.
pub fn optimise(module: &mut Module) {
    for block in module.blocks.entries_mut() {
        optimise::optimise(block);
    }
}
