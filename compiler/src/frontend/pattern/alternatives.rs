//! `anyPattern`: alternatives, one of which must match.

use kpvm_format::instruction::immediate::{
    AlternativeIndex, ForeachDepth, ItemCount, ReturnStatus,
};
use kpvm_syntax::tree::Tree;

use super::{Lowering, PatternError, Subject};
use crate::frontend::emitter::Emitter;
use crate::ir::{AtSite, Label, Operation, Register, Segment, SiteKind};

/// Like [`lower_any_pattern`], for the element of a foreach: jumps to `passed` if an
/// alternative matches.
///
/// # Errors
/// If a pattern is nested more deeply than the limit.
pub fn lower_any_pattern_of_element(
    patterns: &[Tree],
    subject: Subject,
    emitter: &mut Emitter<'_>,
    next: Label,
    passed: Label,
    on_error: Label,
) -> Result<(), PatternError> {
    let mut lowering = Lowering::new(emitter, true);
    lowering.substitute_all(patterns, on_error);
    lowering.require_subject(subject, next);
    lowering.alternatives(patterns, subject, &mut |emitter, _| {
        emitter.block.jump(passed)
    })
}

/// Lowers the alternatives of an `anyPattern`: jumps to `on_match` at the first that
/// matches, falls through if none does. All variables are substituted first.
///
/// `ends` writes the code for a match of the alternative with that number.
///
/// # Errors
/// If a pattern is nested more deeply than the limit.
pub fn lower_any_pattern(
    patterns: &[Tree],
    subject: Subject,
    emitter: &mut Emitter<'_>,
    mut ends: impl FnMut(&mut Emitter<'_>, u32),
    on_error: Label,
) -> Result<(), PatternError> {
    let mut lowering = Lowering::new(emitter, true);
    lowering.substitute_all(patterns, on_error);
    lowering.alternatives(patterns, subject, &mut ends)
}

/// Lowers an `anyPattern` that is not written as a list. If it is a single variable, the
/// value may be a list; anything else is an error.
///
/// An empty list passes with the raw `message`.
pub fn lower_computed_alternatives(patterns: &Tree, message: &str, emitter: &mut Emitter<'_>) {
    let failed = emitter.block.label();
    let unresolved = emitter.wrapping("variable substitution failed: ", false, failed);
    let list = emitter.template(patterns, "", unresolved);
    let (empty, body, done) = (
        emitter.block.label(),
        emitter.block.label(),
        emitter.block.label(),
    );
    // The check for a resource comes before that of the value's type.
    let no_subject = Operation::JumpIfNoSubject {
        src: Register::SUBJECT,
        target: done,
    };
    emitter.block.push(no_subject);
    emitter.block.push(Operation::RequireAlternatives {
        src: list,
        target: failed,
    });
    emitter.block.push(Operation::JumpIfShorter {
        src: list,
        length: ItemCount(1),
        target: empty,
    });
    let slot = emitter.block.enter_loop();
    let item = emitter.block.register();
    let next = emitter.block.label();
    emitter.block.push(Operation::LoopBegin {
        loop_slot: slot,
        list,
        item,
        target: done,
    });
    emitter.block.place(body);
    let span = patterns.span;
    let site = emitter
        .site(SiteKind::Leaf, span)
        .path(vec![Segment::Text("/".into())])
        .written(patterns.as_str().unwrap_or_default());
    let test = Operation::TestValue {
        src: Register::SUBJECT,
        pattern: item,
        floats: true,
        target: next,
    };
    emitter.block.push(test.site(site));
    emitter
        .block
        .push(Operation::ReturnAlternativeAt { loop_slot: slot });
    emitter.block.place(next);
    let note = Operation::AlternativeFailedAt { loop_slot: slot };
    let site = emitter.site(SiteKind::Alternative, span);
    emitter.block.push(note.site(site));
    emitter.block.push(Operation::LoopNext {
        loop_slot: slot,
        item,
        target: body,
    });
    emitter.block.place(done);
    emitter.block.leave_loop();
    emitter.block.push(Operation::ReturnAlternativesFailed {
        depth: ForeachDepth(0),
    });
    emitter.block.place(empty);
    let message = emitter.module.text(message);
    emitter.block.push(Operation::ReturnText {
        status: ReturnStatus::Pass,
        text: message,
    });
    emitter.flush_cold();
    emitter.block.place(failed);
    emitter.block.push(Operation::ReturnFailed {
        depth: ForeachDepth(0),
    });
}

impl Lowering<'_, '_> {
    fn alternatives(
        &mut self,
        patterns: &[Tree],
        subject: Subject,
        ends: &mut dyn FnMut(&mut Emitter<'_>, u32),
    ) -> Result<(), PatternError> {
        for (index, pattern) in patterns.iter().enumerate() {
            let entered = self.emitter.enter_part(&format!("[{index}]"));
            let failed = self.emitter.block.label();
            self.lower_root(pattern, subject, failed)?;
            ends(self.emitter, index as u32);
            self.emitter.block.place(failed);
            let site = self.emitter.site(SiteKind::Alternative, pattern.span);
            let note = Operation::AlternativeFailed {
                index: AlternativeIndex(index as u32),
            };
            self.emitter.block.push(note.site(site));
            self.emitter.leave_part(entered);
        }
        Ok(())
    }
}
