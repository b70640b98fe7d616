//! Keys with anchors (docs/spec/patterns.md §4).

use kpvm_format::instruction::immediate::ExistencePatternDefect;
use kpvm_semantics::anchor::Anchor;
use kpvm_syntax::tree::{Member, Tree};

use super::{Lowering, PatternError, Place, go_type, key_may_skip};
use crate::ir::{Label, Operation, Register, SiteKind};
use kpvm_semantics::anchor::{self, AnchoredKey};

/// The value under a key, plain or anchored; the smallest key text wins.
pub(super) fn find_inner<'t>(members: &'t [Member], inner: &str) -> Option<&'t Tree> {
    members
        .iter()
        .filter(|member| anchor::parse(&member.key).inner == inner)
        .min_by(|left, right| left.key.cmp(&right.key))
        .map(|member| &member.value)
}

impl Lowering<'_, '_> {
    pub(super) fn record_anchor(&mut self, map: Register, text: &str, inner: &str) {
        let symbol = self.emitter.module.symbol(inner);
        let text = self.emitter.module.text(text);
        self.emitter.block.push(Operation::RecordAnchor {
            src: map,
            key: symbol,
            text,
        });
    }

    /// docs/spec/patterns.md §3.2, step 2. Without an entry that can skip, errors need no
    /// folding.
    pub(super) fn lower_anchored(
        &mut self,
        anchored: &[(&Member, AnchoredKey<'_>)],
        parent: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let folding = anchored
            .iter()
            .any(|(member, key)| key_may_skip(key.anchor, &member.value));
        if !folding {
            return anchored
                .iter()
                .try_for_each(|(member, key)| self.lower_anchor(member, *key, parent, on_error));
        }
        let fold = self.emitter.block.enter_fold();
        self.emitter.block.push(Operation::FoldBegin { fold });
        for (member, key) in anchored {
            let (failed, next) = (self.emitter.block.label(), self.emitter.block.label());
            self.lower_anchor(member, *key, parent, failed)?;
            self.emitter.block.push(Operation::FoldApplied { fold });
            self.emitter.block.jump(next);
            self.emitter.block.place(failed);
            self.emitter.block.push(Operation::FoldKeyError {
                fold,
                target: on_error,
            });
            self.emitter.block.place(next);
        }
        self.emitter.block.push(Operation::FoldKeysEnd {
            fold,
            target: on_error,
        });
        self.emitter.block.leave_fold();
        Ok(())
    }

    /// docs/spec/patterns.md §4.2 to §4.5.
    fn lower_anchor(
        &mut self,
        member: &Member,
        key: AnchoredKey<'_>,
        parent: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let place = self.child(parent, key.inner);
        let register = self.register(place);
        let place = match place {
            Place::Register(_) => Place::Register(register),
            place => place,
        };
        self.under(&format!("{}/", key.inner), |this| match key.anchor {
            Anchor::Conditional => this.lower_conditional(member, place, register, on_error),
            Anchor::Equality => {
                let absent = this.emitter.block.label();
                this.jump_if_missing(register, SiteKind::Anchor, member, absent);
                this.lower(&member.value, place, on_error)?;
                this.emitter.block.place(absent);
                Ok(())
            }
            Anchor::Negation => {
                let absent = this.emitter.block.label();
                this.jump_if_missing(register, SiteKind::Absence, member, absent);
                this.check(
                    Operation::FailNegation { target: on_error },
                    member.key_span,
                );
                this.emitter.block.place(absent);
                Ok(())
            }
            Anchor::Existence => this.lower_existence(member, register, on_error),
            Anchor::None | Anchor::Global | Anchor::AddIfNotPresent => Ok(()),
        })
    }

    fn lower_conditional(
        &mut self,
        member: &Member,
        place: Place,
        register: Register,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let (missing, failed, end) = (
            self.emitter.block.label(),
            self.emitter.block.label(),
            self.emitter.block.label(),
        );
        self.jump_if_missing(register, SiteKind::Anchor, member, missing);
        self.lower(&member.value, place, failed)?;
        self.emitter.block.jump(end);
        self.emitter.block.place(missing);
        self.check(
            Operation::FailConditional { target: on_error },
            member.key_span,
        );
        self.emitter.block.place(failed);
        let wrap = Operation::WrapConditional { target: on_error };
        let site = self.site(SiteKind::Structure, member.key_span);
        self.check_at(wrap, site.written(&member.key));
        self.emitter.block.place(end);
        Ok(())
    }

    fn lower_existence(
        &mut self,
        member: &Member,
        register: Register,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let end = self.emitter.block.label();
        let span = member.value.span;
        self.jump_if_missing(register, SiteKind::Anchor, member, end);
        self.check(
            Operation::RequireExistenceList {
                src: register,
                target: on_error,
            },
            span,
        );
        let Some(items) = member.value.as_list() else {
            let kind = self.emitter.module.text(go_type(&member.value));
            self.check(
                Operation::FailExistencePattern {
                    defect: ExistencePatternDefect::NotAList,
                    kind,
                    target: on_error,
                },
                span,
            );
            self.emitter.block.place(end);
            return Ok(());
        };
        for item in items {
            if item.as_map().is_none() {
                let kind = self.emitter.module.text("[]interface {}");
                self.check(
                    Operation::FailExistencePattern {
                        defect: ExistencePatternDefect::ItemNotAMap,
                        kind,
                        target: on_error,
                    },
                    item.span,
                );
                break;
            }
            let (matched, none, other) = (
                self.emitter.block.label(),
                self.emitter.block.label(),
                self.emitter.block.label(),
            );
            let slot = self.emitter.block.enter_loop();
            let element = self.emitter.block.register();
            self.loop_begin(slot, register, element, none);
            let body = self.emitter.block.label();
            self.emitter.block.place(body);
            self.under_index(slot, |this| {
                this.lower(item, Place::Register(element), other)
            })?;
            self.emitter.block.jump(matched);
            self.emitter.block.place(other);
            self.loop_next(slot, element, body);
            self.emitter.block.place(none);
            self.check(Operation::FailExistence { target: on_error }, item.span);
            self.emitter.block.place(matched);
            self.emitter.block.leave_loop();
        }
        self.emitter.block.place(end);
        Ok(())
    }

    pub(super) fn lower_global(
        &mut self,
        member: &Member,
        inner: &str,
        parent: Place,
        on_error: Label,
    ) -> Result<(), PatternError> {
        let place = self.child(parent, inner);
        let register = self.register(place);
        let place = match place {
            Place::Register(_) => Place::Register(register),
            place => place,
        };
        let (failed, end) = (self.emitter.block.label(), self.emitter.block.label());
        self.under(&format!("{inner}/"), |this| {
            this.jump_if_missing(register, SiteKind::Anchor, member, end);
            this.lower(&member.value, place, failed)?;
            this.emitter.block.jump(end);
            this.emitter.block.place(failed);
            let site = this.site(SiteKind::Structure, member.key_span);
            let wrap = Operation::WrapGlobal { target: on_error };
            this.check_at(wrap, site.written(&member.key));
            Ok::<(), PatternError>(())
        })?;
        self.emitter.block.place(end);
        Ok(())
    }
}
