//! How an operation ends, and the error that it leaves behind.

use kpvm_format::instruction::immediate::ForeachDepth;
use kpvm_format::instruction::{RegisterId, TextId};

use super::{Ending, Machine, NULL, Setting, World};
use crate::document::NodeId;
use crate::function::FunctionError;

/// Where to continue.
pub(super) enum Flow {
    /// After the instruction.
    Next,
    /// At its target.
    Jump,
    /// Nowhere: the block ends.
    End(Ending),
}

impl Flow {
    pub(super) fn jump_if(jumps: bool) -> Flow {
        if jumps { Flow::Jump } else { Flow::Next }
    }
}

/// Why the last computation failed; the text is kept in [`Machine::failure_text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Failure {
    /// For any reason, given by the text.
    #[default]
    Other,
    /// A key is unknown, and the text is only that key so far: wherever it is shown,
    /// `Unknown key "…" in path` is made of it.
    Key,
    /// A key is unknown; the text says so.
    UnknownKey,
}

pub(super) type Outcome = Result<NodeId, FunctionError>;

impl Machine {
    /// Sets the result; a failure, which here is a crossed limit, ends the block.
    pub(super) fn set_or_end(&mut self, register: RegisterId, outcome: Outcome) -> Flow {
        match outcome {
            Ok(value) => self.set(register, value),
            Err(error) => self.refuse(error),
        }
    }

    /// Sets the result, or jumps to the target with the failure.
    pub(super) fn set_or_jump(&mut self, register: RegisterId, outcome: Outcome) -> Flow {
        match outcome {
            Ok(value) => self.set(register, value),
            Err(FunctionError::Failed(text)) => {
                self.fail_with(&text);
                Flow::Jump
            }
            Err(error @ FunctionError::Refused(_)) => self.refuse(error),
        }
    }

    /// A crossed limit: nothing can turn it into a value, so the rule is an error.
    pub(super) fn refuse(&mut self, error: FunctionError) -> Flow {
        self.fail_with(&error.to_string());
        Flow::End(Ending::Failed {
            depth: ForeachDepth::default(),
        })
    }

    /// Records a failure with this text.
    pub(super) fn fail_with(&mut self, text: &str) {
        self.failure = Failure::Other;
        self.failure_text.clear();
        self.failure_text.push_str(text);
    }

    /// Records a failure with this text; the operation jumps.
    pub(super) fn fail(&mut self, text: &str) -> Flow {
        self.fail_with(text);
        Flow::Jump
    }

    pub(super) fn missing_key(&mut self, register: RegisterId, key: &str) -> Flow {
        self.put(register, NULL);
        self.fail_with(key);
        self.failure = Failure::Key;
        Flow::Jump
    }

    /// Whether the last failure is about an unknown key.
    pub(super) fn is_unknown_key(&self) -> bool {
        match self.failure {
            Failure::Key | Failure::UnknownKey => true,
            Failure::Other => false,
        }
    }

    /// Replaces a missing key by null; any other error stays.
    pub(super) fn catch_missing(&mut self, register: RegisterId) -> Flow {
        match self.failure {
            Failure::Key => self.set(register, NULL),
            Failure::Other | Failure::UnknownKey => Flow::Jump,
        }
    }

    /// Turns a key into the text of the error.
    pub(super) fn show_failure(&mut self) {
        if self.failure == Failure::Key {
            self.failure = Failure::UnknownKey;
            self.failure_text.insert_str(0, "Unknown key \"");
            self.failure_text.push_str("\" in path");
        }
    }

    /// Prefixes the error's text. If it shows a query, a DELETE rewrites it.
    pub(super) fn wrap_error(&mut self, query: bool, text: TextId, setting: Setting<'_>) -> Flow {
        self.show_failure();
        let prefix = super::text_of(setting.tables, text);
        if query && setting.is_delete {
            let prefix = prefix.replace("request.object", "request.oldObject");
            self.failure_text.insert_str(0, &prefix);
        } else {
            self.failure_text.insert_str(0, prefix);
        }
        Flow::Jump
    }

    /// Prefixes the error's text with the path of an expression.
    pub(super) fn wrap_path(
        &mut self,
        path: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        self.show_failure();
        let path = setting.view(world).str(path);
        let prefix = format!("failed to apply jmespath {path} to variable <nil>: ");
        self.failure_text.insert_str(0, &prefix);
        Flow::Jump
    }
}
