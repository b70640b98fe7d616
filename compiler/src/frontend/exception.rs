//! A `PolicyException` for one rule (docs/spec/policies.md §9): a block that says whether
//! it applies to the object, and one that says what it exempts if that is not the whole
//! rule.

use super::emitter::Emitter;
use super::matching::lower_exception_match;
use super::pod_security::exclude::Exclude;
use super::scope::Scope;
use crate::ir::{Block, Module, Operation};
use crate::policy::model::PolicyException;

/// Lowers the match block and the conditions into a block that ends matched or unmatched.
/// `scope` is that of the rule's preconditions.
pub fn lower_exception(exception: &PolicyException, scope: Scope, module: &mut Module) -> Block {
    let mut emitter = Emitter::new(exception.source, scope, module);
    let otherwise = emitter.block.label();
    lower_exception_match(exception, otherwise, &mut emitter);
    if let Some(conditions) = &exception.conditions {
        emitter.exception_conditions(conditions, otherwise);
    }
    emitter.block.push(Operation::ReturnMatched);
    emitter.flush_cold();
    emitter.block.place(otherwise);
    emitter.block.push(Operation::ReturnUnmatched);
    emitter.block
}

/// Lowers `podSecurity` of an exception into a block that removes the findings that its
/// entries exempt (docs/spec/pod-security.md §10).
pub fn lower_exclusions(exception: &PolicyException, module: &mut Module) -> Block {
    let mut emitter = Emitter::new(exception.source, Scope::default(), module);
    let entries: Vec<Exclude> = exception.pod_security.iter().map(Exclude::read).collect();
    emitter.pod_security_exclusions(&entries);
    emitter.block.push(Operation::ReturnTrue);
    emitter.block
}
