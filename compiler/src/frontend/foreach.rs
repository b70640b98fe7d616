//! `validate.foreach` (docs/spec/conditions.md §11): loops over elements, each with a body
//! of its own; an element's result is counted, skipped, or ends the rule.

use kpvm_format::instruction::immediate::ForeachDepth;
use kpvm_syntax::tree::{Span, Tree, TreeValue};

use super::condition::Messages;
use super::context;
use super::emitter::Emitter;
use super::pattern::{self, Subject};
use super::reference;
use super::template::{has_variable, unescape_keys};
use crate::ir::{AtSite, Block, EntryId, Label, Operation, Register, SiteKind, SlotId};
use crate::policy::condition::{AnyAll, Conditions};

/// The deepest nesting of foreach blocks.
const MAX_DEPTH: u32 = 16;

/// A foreach block that cannot be lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeachError {
    /// The error.
    pub message: String,
    /// Its place.
    pub span: Span,
}

impl From<pattern::PatternError> for ForeachError {
    fn from(error: pattern::PatternError) -> Self {
        Self {
            message: error.message,
            span: error.span,
        }
    }
}

impl From<context::EntryError> for ForeachError {
    fn from(error: context::EntryError) -> Self {
        Self {
            message: error.message,
            span: error.span,
        }
    }
}

/// The loaders of the nested context entries, to be generated with the rule.
pub type Loaders = Vec<(EntryId, Block)>;

impl Emitter<'_> {
    /// Lowers the body of a foreach rule.
    ///
    /// # Errors
    /// If a block is malformed or nested too deeply.
    pub fn foreach_rule(
        &mut self,
        blocks: &Tree,
        loaders: &mut Loaders,
    ) -> Result<(), ForeachError> {
        self.foreach_blocks(blocks, 0, Register::SUBJECT, loaders)?;
        self.block.push(Operation::ReturnForeach);
        Ok(())
    }

    fn foreach_blocks(
        &mut self,
        blocks: &Tree,
        depth: u32,
        subject: Register,
        loaders: &mut Loaders,
    ) -> Result<(), ForeachError> {
        if depth >= MAX_DEPTH {
            let message = format!("foreach blocks are nested deeper than {MAX_DEPTH}");
            return Err(ForeachError {
                message,
                span: blocks.span,
            });
        }
        let list = blocks.as_list().unwrap_or_default();
        list.iter().enumerate().try_for_each(|(index, block)| {
            self.in_part(&format!("foreach[{index}]"), |this| {
                this.foreach_block(block, depth, subject, loaders)
            })
        })
    }

    fn foreach_block(
        &mut self,
        block: &Tree,
        depth: u32,
        outer: Register,
        loaders: &mut Loaders,
    ) -> Result<(), ForeachError> {
        let (list_failed, end) = (self.block.label(), self.block.label());
        let list_tree = block.get("list");
        let list = list_tree.and_then(Tree::as_str).unwrap_or_default();
        let site = self
            .site(
                SiteKind::Elements,
                list_tree.map_or(block.span, |tree| tree.span),
            )
            .written(list);
        // The list is an expression, not a text with variables: DELETE does not rewrite it.
        let rewrites = std::mem::replace(&mut self.scope.rewrites_delete, false);
        let list = self.query(list, list_failed);
        self.scope.rewrites_delete = rewrites;
        let elements = self.load(|dst| Operation::ToElements { dst, src: list });
        let over = self.block.label();
        self.block.jump(over);
        self.flush_cold();
        self.block.place(list_failed);
        self.block.push(Operation::JumpIfUnknownKey { target: end });
        self.block.push(Operation::KeepListError);
        self.block.jump(end);
        self.block.place(over);
        let entered = self.scope.enter();
        let names = ["element".to_owned(), format!("element{depth}")];
        let indices = ["elementIndex".to_owned(), format!("elementIndex{depth}")];
        for name in names.iter().chain(&indices) {
            if self.scope.slot(name).is_none() {
                let slot = self.module.slot(name);
                self.scope.add_slot(name, slot);
            }
        }
        let entries = block
            .get("context")
            .and_then(Tree::as_list)
            .unwrap_or_default();
        let volatile = self.scope.volatile_entries();
        // An outer entry that an inner one redefines is loaded again for each element.
        let names_inside = entries
            .iter()
            .filter_map(|entry| entry.get("name").and_then(Tree::as_str));
        let redefined = self.scope.entries_named(&names_inside.collect::<Vec<_>>());
        let mut entries =
            context::lower_entries(entries, self.source, true, &mut self.scope, self.module)?;
        loaders.append(&mut entries.loaders);
        // After the loop, the names have their outer values again.
        let saved: Vec<(SlotId, Register)> = names
            .iter()
            .chain(&indices)
            .filter_map(|name| self.scope.slot(name))
            .chain(entries.slots.iter().copied())
            .collect::<Vec<SlotId>>()
            .into_iter()
            .map(|slot| (slot, self.load(|dst| Operation::SaveVariable { dst, slot })))
            .collect();
        let slot = self.block.enter_loop();
        let (start, next) = (self.block.label(), self.block.label());
        let done = self.block.label();
        let item = self.block.register();
        self.block.push(
            Operation::LoopBegin {
                loop_slot: slot,
                list: elements,
                item,
                target: done,
            }
            .site(site.clone()),
        );
        self.block.place(start);
        self.block.push(Operation::JumpIfNull {
            src: item,
            target: next,
        });
        for &(slot, outer) in &saved {
            self.block
                .push(Operation::StoreVariable { slot, src: outer });
        }
        for entry in &volatile {
            self.block.push(Operation::RefreshEntry { entry: *entry });
        }
        for entry in redefined.iter().chain(&entries.numbers) {
            self.block.push(Operation::ResetEntry { entry: *entry });
        }
        let has_entries = self.scope.has_entries();
        if has_entries {
            self.block.push(Operation::RetryEntries);
        }
        let (unfit, fits) = (self.block.label(), self.block.label());
        let element = self.load(|dst| Operation::ToElement {
            dst,
            src: item,
            target: unfit,
        });
        self.block.jump(fits);
        self.block.place(unfit);
        self.block.push(Operation::ReturnFailed {
            depth: ForeachDepth(depth),
        });
        self.block.place(fits);
        let index = self.load(|dst| Operation::LoopIndex {
            dst,
            loop_slot: slot,
        });
        self.store(&names, element);
        self.store(&indices, index);
        let subject = self.element_subject(block, item, element, outer, depth);
        self.element_body(block, depth, subject, next, loaders)?;
        self.block.place(next);
        self.block.push(
            Operation::LoopNext {
                loop_slot: slot,
                item,
                target: start,
            }
            .site(site),
        );
        self.block.place(done);
        self.block.leave_loop();
        if has_entries {
            self.block.push(Operation::RetryEntries);
        }
        for (slot, register) in saved {
            self.block.push(Operation::StoreVariable {
                slot,
                src: register,
            });
        }
        for entry in &redefined {
            self.block.push(Operation::ResetEntry { entry: *entry });
        }
        for entry in &entries.numbers {
            self.block.push(Operation::DropEntry { entry: *entry });
        }
        self.block.place(end);
        self.scope.leave(entered);
        Ok(())
    }

    fn store(&mut self, names: &[String], value: Register) {
        for slot in names
            .iter()
            .filter_map(|name| self.scope.slot(name))
            .collect::<Vec<_>>()
        {
            self.block
                .push(Operation::StoreVariable { slot, src: value });
        }
    }

    /// docs/spec/conditions.md §11.3: what a pattern is matched with. An error names the
    /// type that the element has in the context.
    fn element_subject(
        &mut self,
        block: &Tree,
        item: Register,
        element: Register,
        outer: Register,
        depth: u32,
    ) -> Register {
        match block.get("elementScope").map(|scope| &scope.value) {
            Some(TreeValue::Bool(false)) => outer,
            Some(TreeValue::Bool(true)) => {
                let (failed, fits) = (self.block.label(), self.block.label());
                let require = Operation::RequireScope {
                    src: element,
                    target: failed,
                };
                self.block.push(require);
                self.block.jump(fits);
                self.block.place(failed);
                self.block.push(Operation::ReturnFailed {
                    depth: ForeachDepth(depth),
                });
                self.block.place(fits);
                item
            }
            _ => self.load(|dst| Operation::SelectSubject {
                dst,
                element: item,
                outer,
            }),
        }
    }

    /// Runs one element; jumps to `next` or falls through to it, or ends the rule.
    fn element_body(
        &mut self,
        block: &Tree,
        depth: u32,
        subject: Register,
        next: Label,
        loaders: &mut Loaders,
    ) -> Result<(), ForeachError> {
        let inner = depth + 1;
        if let Some(preconditions) = block.get("preconditions").filter(|tree| !tree.is_null()) {
            let conditions = AnyAll::read(preconditions).map(Conditions::AnyAll);
            let conditions = conditions.map_err(|error| ForeachError {
                message: error.to_string(),
                span: error.span,
            })?;
            // An error here skips the element, just like conditions that are false.
            self.in_part(".preconditions", |this| {
                this.conditions(&conditions, Messages::OfFalse, next, next);
            });
            self.flush_cold_inline();
        }
        let failed = self.block.label();
        let over = self.block.label();
        let part = |name: &str| block.get(name).filter(|tree| !tree.is_null());
        if let Some(deny) = part("deny") {
            let conditions = match deny.get("conditions") {
                None => Conditions::AnyAll(AnyAll::default()),
                Some(tree) => Conditions::read(tree).map_err(|error| ForeachError {
                    message: error.to_string(),
                    span: error.span,
                })?,
            };
            let passes = self.block.label();
            let deny_failed = self.wrapping("failed to check deny conditions: ", false, failed);
            self.in_part(".deny.conditions", |this| {
                this.conditions(&conditions, Messages::OfTrue, passes, deny_failed);
            });
            self.block.push(Operation::ReturnDeny {
                depth: ForeachDepth(inner),
            });
            self.block.place(passes);
            self.block.push(Operation::CountPass);
        } else if let Some(pattern) = part("pattern") {
            self.in_part(".pattern", |this| {
                this.element_pattern(pattern, subject, inner, next, failed)
            })?;
        } else if let Some(patterns) = part("anyPattern") {
            self.in_part(".anyPattern", |this| {
                this.element_any_pattern(patterns, subject, inner, next, failed)
            })?;
        } else if let Some(nested) = part("foreach") {
            self.block.push(Operation::EnterNested);
            self.in_part(".", |this| {
                this.foreach_blocks(nested, inner, subject, loaders)
            })?;
            self.block.push(Operation::LeaveNested {
                depth: ForeachDepth(inner),
                target: next,
            });
            self.block.push(Operation::CountPass);
        }
        self.block.jump(over);
        self.flush_cold();
        self.block.place(failed);
        self.block.push(Operation::ReturnFailed {
            depth: ForeachDepth(inner),
        });
        self.block.place(over);
        Ok(())
    }

    fn element_pattern(
        &mut self,
        pattern: &Tree,
        subject: Register,
        depth: u32,
        next: Label,
        failed: Label,
    ) -> Result<(), ForeachError> {
        let failed = self.wrapping("variable substitution failed: ", false, failed);
        self.block.push(Operation::BeginPattern);
        match reference::resolve(pattern) {
            Err(error) => {
                self.fail(&error, failed);
            }
            Ok(resolved) => {
                let resolved = unescape_keys(&resolved);
                let mismatch = self.block.label();
                let over = self.block.label();
                // Without a subject there is no response, but variables are substituted
                // first.
                pattern::lower_pattern_of_element(
                    &resolved,
                    Subject::Register(subject),
                    self,
                    next,
                    mismatch,
                    failed,
                )?;
                self.block.push(Operation::CountPass);
                self.block.jump(over);
                self.block.place(mismatch);
                self.block.push(Operation::JumpIfSkip { target: next });
                self.block.push(Operation::ReturnError {
                    depth: ForeachDepth(depth),
                });
                self.block.place(over);
            }
        }
        Ok(())
    }

    fn element_any_pattern(
        &mut self,
        patterns: &Tree,
        subject: Register,
        depth: u32,
        next: Label,
        failed: Label,
    ) -> Result<(), ForeachError> {
        let refused = failed;
        let failed = self.wrapping("variable substitution failed: ", false, failed);
        self.block.push(Operation::BeginPattern);
        let resolved = match reference::resolve(patterns) {
            Err(error) => {
                self.fail(&error, failed);
                return Ok(());
            }
            Ok(resolved) => super::template::floats_only(&unescape_keys(&resolved)),
        };
        if resolved.as_str().is_some_and(has_variable) {
            return Err(ForeachError {
                message: "expected a list as the anyPattern of a foreach, found a variable: what it gives is known too late".into(),
                span: patterns.span,
            });
        }
        if resolved.as_list().is_none() {
            let value = self.template(&resolved, "", failed);
            let require = Operation::RequireAlternatives {
                src: value,
                target: refused,
            };
            self.block.push(require);
        }
        let over = self.block.label();
        let passed = self.block.label();
        let items = resolved.as_list().unwrap_or_default();
        pattern::lower_any_pattern_of_element(
            items,
            Subject::Register(subject),
            self,
            next,
            passed,
            failed,
        )?;
        if !items.is_empty() {
            self.block
                .push(Operation::JumpIfAllSkipped { target: next });
            self.block.push(Operation::ReturnAlternativesFailed {
                depth: ForeachDepth(depth),
            });
        }
        self.block.place(passed);
        self.block.push(Operation::CountPass);
        self.block.jump(over);
        self.block.place(over);
        Ok(())
    }
}
