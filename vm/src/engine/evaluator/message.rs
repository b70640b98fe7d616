//! Messages of rules, with variables substituted, and the details of failed checks.

use kpvm_format::instruction::TextId;
use kpvm_format::instruction::immediate::{ForeachDepth, MessageSeparator};
use std::fmt::Write;

use kpvm_format::table::{MessageKind, Rule};

use super::{Evaluator, Judgement};
use crate::document::{Kind, NodeId};
use crate::engine::observer::Stage;
use crate::engine::response::{Message, Status, TextRange};
use crate::machine::{Ending, Setting, is_secret_path, render_go_value};
use crate::text::{append_substituted, truncate};

impl<'e> Evaluator<'e, '_> {
    /// Appends to the text buffer.
    pub(super) fn append(&mut self, text: &str) -> TextRange {
        let start = self.text.len();
        self.text.push_str(text);
        TextRange {
            start: start as u32,
            end: self.text.len() as u32,
        }
    }

    /// Appends to the text buffer, within the limit of a message.
    pub(super) fn render(&mut self, write: impl FnOnce(&mut String)) -> TextRange {
        let start = self.text.len();
        write(self.text);
        truncate(self.text, start + self.limits.message_bytes);
        TextRange {
            start: start as u32,
            end: self.text.len() as u32,
        }
    }

    pub(super) fn text_entry(&self, text: TextId) -> &'e str {
        self.tables
            .texts
            .get(text.index())
            .map_or("", |&text| self.tables.text(text))
    }

    /// The messages of conditions as written, joined.
    pub(super) fn noted_messages(&self) -> String {
        let mut joined = String::new();
        for noted in &self.machine.messages {
            if !joined.is_empty() {
                joined.push_str(separator(noted.separator));
            }
            joined.push_str(self.text_entry(noted.text));
        }
        joined
    }

    /// The rule's message and those of its conditions, with variables substituted; `None`
    /// if that fails.
    pub(super) fn deny_message(&mut self, rule: &Rule, setting: Setting<'_>) -> Option<String> {
        let noted = std::mem::take(&mut self.machine.messages);
        let mut message = match message_kind(rule) {
            MessageKind::Absent => String::new(),
            MessageKind::Text => self.tables.text(rule.message).to_owned(),
            MessageKind::Unresolvable => return None,
            MessageKind::Computed => {
                self.computed_text(rule.message_block.get(), noted.is_empty(), setting)?
            }
        };
        // Texts are joined before variables are substituted, which may be empty.
        let has_own = message_kind(rule) != MessageKind::Absent;
        let alone = noted.len() == 1 && !has_own;
        for (index, noted) in noted.iter().enumerate() {
            if index > 0 {
                message.push_str(separator(noted.separator));
            } else if has_own {
                message.push_str("; ");
            }
            match noted.block {
                None => message.push_str(self.text_entry(noted.text)),
                Some(block) => {
                    message.push_str(&self.computed_text(block.0, alone, setting)?);
                }
            }
        }
        Some(message)
    }

    /// The text that a message block computes. If the message is a single variable whose
    /// value is not a text, Kyverno says so.
    pub(super) fn computed_text(
        &mut self,
        block: u32,
        alone: bool,
        setting: Setting<'_>,
    ) -> Option<String> {
        let Ending::Value(value) = self.run_block(block, Stage::Message, setting) else {
            return None;
        };
        let view = self.world.buffer.view(self.texts, self.tables.symbols);
        if alone && view.kind(value) != Some(Kind::String) {
            return Some(
                "the produced message didn't resolve to a string, check your policy definition."
                    .into(),
            );
        }
        let mut text = String::new();
        append_substituted(&view, value, &mut text, self.limits.string_bytes).ok()?;
        Some(text)
    }

    /// `validation error: `, the rule's message if any, and the error; if the message
    /// cannot be computed, `error` alone.
    pub(super) fn failure(
        &mut self,
        rule: &Rule,
        status: Status,
        depth: ForeachDepth,
        detail: &str,
        error: &str,
        setting: Setting<'_>,
    ) -> Judgement {
        let message = match message_kind(rule) {
            MessageKind::Absent => Some(String::new()),
            MessageKind::Text => Some(self.tables.text(rule.message).to_owned()),
            MessageKind::Unresolvable => None,
            MessageKind::Computed => self.computed_text(rule.message_block.get(), false, setting),
        };
        let range = self.render(|out| {
            out.push_str(&element_prefix(depth));
            out.push_str("validation error: ");
            match message.as_deref() {
                None => {
                    let name = setting.subject.rule_name;
                    let _ = write!(
                        out,
                        "variables substitution error in rule {name} execution error: {error}"
                    );
                }
                Some("") if message_kind(rule) == MessageKind::Absent => out.push_str(detail),
                Some(message) => {
                    let stop = if message.ends_with('.') { "" } else { "." };
                    let _ = write!(out, "{message}{stop} {detail}");
                }
            }
        });
        Judgement::plain(status, Message::Rendered(range))
    }

    /// Adds the path, value and place of the failed check.
    pub(super) fn with_detail(
        &mut self,
        mut judgement: Judgement,
        path: &str,
        value: NodeId,
        instruction: u32,
        setting: Setting<'_>,
    ) -> Judgement {
        judgement.instruction = instruction;
        judgement.path = self.render(|out| out.push_str(path));
        let secret = setting.subject.is_secret && is_secret_path(path);
        let view = self.world.buffer.view(self.texts, self.tables.symbols);
        let mut found = String::new();
        match view.kind(value) {
            _ if secret => found.push_str("***"),
            None => found.push_str("nothing"),
            Some(Kind::String) => {
                let _ = write!(found, "{:?}", view.str(value));
            }
            Some(Kind::Null) => found.push_str("null"),
            Some(_) => render_go_value(&view, value, &mut found),
        }
        truncate(&mut found, FOUND_BYTES);
        judgement.found = self.render(|out| out.push_str(&found));
        judgement
    }
}

/// How many bytes of a found value a response contains.
const FOUND_BYTES: usize = 256;

/// The separator between two messages of conditions.
fn separator(separator: MessageSeparator) -> &'static str {
    match separator {
        MessageSeparator::SemicolonSpace => "; ",
        MessageSeparator::Semicolon => ";",
    }
}

/// The prefix of an element's message, once for each enclosing foreach.
pub(super) fn element_prefix(depth: ForeachDepth) -> String {
    "validation failure: ".repeat(depth.0 as usize)
}

pub(super) fn message_kind(rule: &Rule) -> MessageKind {
    MessageKind::ALL
        .get(usize::from(rule.message_kind))
        .copied()
        .unwrap_or(MessageKind::Absent)
}
