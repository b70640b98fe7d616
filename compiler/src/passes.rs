//! The passes over a module between lowering and emission.
//!
//! Each works on blocks of the IR, knows no dialect, and is idempotent. None changes an
//! outcome, a message or the order of checks.

mod copies;
mod dead_code;
mod dead_loads;
mod jump_threading;
mod registers;
mod share_loads;

use crate::ir::{Block, Module};

/// One pass.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    block: fn(&mut Block),
}

/// The passes in the order in which [`optimise`] runs them.
pub const PASSES: [Pass; 6] = [
    Pass {
        name: "jump-threading",
        block: jump_threading::run,
    },
    Pass {
        name: "dead-code",
        block: dead_code::run,
    },
    Pass {
        name: "share-loads",
        block: share_loads::run,
    },
    Pass {
        name: "dead-code",
        block: dead_code::run,
    },
    Pass {
        name: "dead-loads",
        block: dead_loads::run,
    },
    Pass {
        name: "copies",
        block: copies::run,
    },
];

impl Pass {
    /// Runs the pass over every block.
    pub fn run(&self, module: &mut Module) {
        for block in module.blocks.entries_mut() {
            (self.block)(block);
        }
    }
}

/// Runs all passes.
pub fn optimise(module: &mut Module) {
    for pass in PASSES {
        pass.run(module);
    }
}

#[cfg(test)]
mod tests {
    use kpvm_format::instruction::immediate::ForeachDepth;
    use kpvm_format::symbol::SymbolId;

    use super::*;
    use crate::ir::{Item, Label, Operation, Register};

    fn optimised(block: &mut Block) {
        PASSES.iter().for_each(|pass| (pass.block)(block));
    }

    fn names(block: &Block) -> Vec<&'static str> {
        block
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Instruction(instruction) => Some(instruction.op().name()),
                Item::Label(_) => None,
            })
            .collect()
    }

    fn load(block: &mut Block, source: Register, key: u32) -> Register {
        let register = block.register();
        block.push(Operation::LoadField {
            dst: register,
            src: source,
            key: SymbolId(key),
        });
        register
    }

    fn check(block: &mut Block, register: Register, label: Label) {
        block.push(Operation::RequireMap {
            src: register,
            target: label,
        });
    }

    #[test]
    fn a_value_loaded_on_every_way_is_loaded_once() {
        let mut block = Block::new();
        let fail = block.label();
        let first = load(&mut block, Register::SUBJECT, 7);
        check(&mut block, first, fail);
        let second = load(&mut block, Register::SUBJECT, 7);
        check(&mut block, second, fail);
        block.push(Operation::ReturnPass);
        block.place(fail);
        block.push(Operation::ReturnError {
            depth: ForeachDepth(0),
        });
        optimised(&mut block);
        assert_eq!(
            names(&block),
            [
                "LoadField",
                "RequireMap",
                "RequireMap",
                "ReturnPass",
                "ReturnError"
            ]
        );
    }

    #[test]
    fn a_value_loaded_on_one_way_only_is_loaded_again() {
        let mut block = Block::new();
        let (fail, join) = (block.label(), block.label());
        let optional = load(&mut block, Register::SUBJECT, 1);
        block.push(Operation::JumpIfMissing {
            src: optional,
            target: join,
        });
        let inside = load(&mut block, Register::SUBJECT, 2);
        check(&mut block, inside, fail);
        block.place(join);
        let behind = load(&mut block, Register::SUBJECT, 2);
        check(&mut block, behind, fail);
        block.push(Operation::ReturnPass);
        block.place(fail);
        block.push(Operation::ReturnError {
            depth: ForeachDepth(0),
        });
        optimised(&mut block);
        assert_eq!(
            names(&block)
                .iter()
                .filter(|&&name| name == "LoadField")
                .count(),
            3
        );
    }

    fn has(block: &mut Block, when: bool, target: Label, on_error: Label) -> Register {
        let field = block.register();
        let test = Operation::CelIfHas {
            dst: field,
            src: Register::SUBJECT,
            when,
            key: SymbolId(7),
            target,
        };
        block.push(test);
        block.push(Operation::CelOnError { target: on_error });
        field
    }

    fn select(block: &mut Block, on_error: Label) -> Register {
        let field = block.register();
        let select = Operation::CelSelect {
            dst: field,
            src: Register::SUBJECT,
            key: SymbolId(7),
            target: on_error,
        };
        block.push(select);
        field
    }

    fn finish(block: &mut Block, value: Register, others: &[Label]) {
        block.push(Operation::ReturnValue { src: value });
        for &label in others {
            block.place(label);
        }
        block.push(Operation::ReturnNothing);
        optimised(block);
    }

    #[test]
    fn a_field_that_was_found_is_neither_tested_for_nor_loaded_again() {
        let mut block = Block::new();
        let (absent, failed) = (block.label(), block.label());
        has(&mut block, false, absent, failed);
        has(&mut block, false, absent, failed);
        let value = select(&mut block, failed);
        finish(&mut block, value, &[absent, failed]);
        let expected = ["CelIfHas", "CelOnError", "ReturnValue", "ReturnNothing"];
        assert_eq!(names(&block), expected);
    }

    /// With an error, or if the field is missing, nothing was loaded.
    #[test]
    fn a_field_is_known_only_where_it_was_found() {
        for (when, expected) in [(false, 3), (true, 2)] {
            let mut block = Block::new();
            let (target, failed) = (block.label(), block.label());
            has(&mut block, when, target, failed);
            let behind = select(&mut block, failed);
            block.push(Operation::ReturnValue { src: behind });
            block.place(target);
            let there = select(&mut block, failed);
            block.push(Operation::ReturnValue { src: there });
            block.place(failed);
            let failed = block.label();
            let again = select(&mut block, failed);
            finish(&mut block, again, &[failed]);
            // After the test, at its target, and with its error.
            let selects = names(&block)
                .iter()
                .filter(|&&name| name == "CelSelect")
                .count();
            assert_eq!(
                selects,
                if when { expected } else { expected - 1 },
                "{when}"
            );
        }
    }

    #[test]
    fn what_is_only_copied_is_computed_in_place() {
        let mut block = Block::new();
        let failed = block.label();
        let into = block.register();
        let value = select(&mut block, failed);
        block.push(Operation::Move {
            dst: into,
            src: value,
        });
        finish(&mut block, into, &[failed]);
        assert_eq!(names(&block), ["CelSelect", "ReturnValue", "ReturnNothing"]);
        // Another instruction reads it.
        let mut block = Block::new();
        let failed = block.label();
        let into = block.register();
        let value = select(&mut block, failed);
        block.push(Operation::Move {
            dst: into,
            src: value,
        });
        check(&mut block, value, failed);
        finish(&mut block, into, &[failed]);
        assert!(names(&block).contains(&"Move"));
    }

    #[test]
    fn dead_code_and_idle_jumps_go() {
        let mut block = Block::new();
        let (over, end) = (block.label(), block.label());
        load(&mut block, Register::SUBJECT, 1);
        block.jump(over);
        block.push(Operation::ReturnError {
            depth: ForeachDepth(0),
        });
        block.place(over);
        block.jump(end);
        block.place(end);
        block.push(Operation::ReturnPass);
        optimised(&mut block);
        assert_eq!(names(&block), ["ReturnPass"]);
    }
}
