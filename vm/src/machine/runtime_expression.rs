//! FALLBACK: expressions whose text is known only at run time.

use kpvm_format::Tables;
use kpvm_format::instruction::immediate::{EntryLoading, ExpressionPlace};
use kpvm_format::instruction::{EntryId, RegisterId};
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::NONE;

use super::failure::{Failure, Flow};
use super::{Machine, SUBJECT, Setting, World};
use crate::document::NodeId;
use crate::function::FunctionError;
use crate::jmespath::{self as evaluator, EvaluateError};
use kpvm_syntax::jmespath;

/// The error of such an expression if the host does not allow them.
const SWITCHED_OFF: &str = "an expression whose text is known only at run time is not evaluated: the host has switched this off";

/// Whether such an expression may be evaluated. Without the feature this is never true, so the
/// parser and the evaluator are not linked.
fn is_allowed(setting: Setting<'_>) -> bool {
    cfg!(feature = "runtime-expressions") && setting.runtime_expressions
}

/// Why a query has no value.
enum QueryError {
    /// The text that Kyverno shows, and what failed.
    Failed { text: String, failure: Failure },
    /// A limit was exceeded.
    Refused(FunctionError),
}

impl QueryError {
    fn failed(text: String) -> Self {
        QueryError::Failed {
            text,
            failure: Failure::Other,
        }
    }
}

impl From<FunctionError> for QueryError {
    fn from(error: FunctionError) -> Self {
        match error {
            FunctionError::Failed(text) => QueryError::failed(text),
            refused @ FunctionError::Refused(_) => QueryError::Refused(refused),
        }
    }
}

impl From<EvaluateError> for QueryError {
    fn from(error: EvaluateError) -> Self {
        let text = || format!("JMESPath query failed: {error}");
        match &error {
            EvaluateError::Refused(text) => {
                QueryError::Refused(FunctionError::Refused(text.clone()))
            }
            EvaluateError::NotFound(_) => QueryError::Failed {
                text: text(),
                failure: Failure::UnknownKey,
            },
            EvaluateError::Failed(_) => QueryError::failed(text()),
        }
    }
}

impl Machine {
    /// FALLBACK: an expression whose text is known only now, over the whole context. With a
    /// path, errors are worded like those of a variable at that path.
    pub(super) fn evaluate_text(
        &mut self,
        register: RegisterId,
        source: NodeId,
        path: Option<&str>,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        if !is_allowed(setting) {
            return self.refuse(FunctionError::Refused(SWITCHED_OFF.into()));
        }
        let text = setting.view(world).str(source);
        if path.is_some() && !is_inside_of_one_variable(text) {
            self.fail_with(
                "the value of a variable inside a variable has braces that end neither: it is data, no part of an expression",
            );
            return Flow::Jump;
        }
        let mut query = match path {
            // Braces are removed from a variable wherever they occur, but not from a path.
            Some(_) => text.replace("{{", "").replace("}}", ""),
            None => text.to_owned(),
        };
        query = query.trim().to_owned();
        if setting.is_delete && path.is_some() {
            query = query.replace("request.object", "request.oldObject");
        }
        let mut failed = matches!(self.ensure_mentioned(&query, setting, world), Flow::Jump);
        if !failed && jmespath::mentions(&query, "images") {
            // Images that cannot be read are a failure whatever the query does with them.
            let flow = self.load_images(register, setting, world);
            failed = matches!(flow, Flow::Jump) && self.failure != Failure::Key;
        }
        if failed {
            self.show_failure();
            if let Some(path) = path {
                let prefix = format!("failed to resolve {query} at path {path}: ");
                self.failure_text.insert_str(0, &prefix);
            }
            return Flow::Jump;
        }
        let outcome = match jmespath::parse(&query) {
            Err(_) if query.is_empty() => Err(QueryError::failed("invalid query (nil)".into())),
            Err(error) => Err(QueryError::failed(format!(
                "incorrect query {query}: {}",
                error.message
            ))),
            Ok(expression) => self.evaluate_expression(&expression, setting, world),
        };
        match outcome {
            Ok(value) => self.set(register, value),
            Err(QueryError::Refused(error)) => self.refuse(error),
            Err(QueryError::Failed { text, failure }) => {
                match path {
                    Some(path) => {
                        self.fail_with(&format!(
                            "failed to resolve {query} at path {path}: {text}"
                        ));
                    }
                    None => self.fail_with(&text),
                }
                self.failure = failure;
                Flow::Jump
            }
        }
    }

    /// Runs the loaders of the context entries that a text known only now mentions.
    fn ensure_mentioned(
        &mut self,
        query: &str,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        let tables = setting.tables;
        let start = setting.rule_entries.start.get();
        let mut first = EntryLoading::FIRST;
        for (offset, entry) in Tables::range(tables.entries, setting.rule_entries)
            .iter()
            .enumerate()
        {
            let number = EntryId(start + offset as u32);
            let slot = tables
                .slots
                .get(entry.slot.get() as usize)
                .map_or(NONE, |slot| slot.name.get());
            if jmespath::mentions(query, tables.symbols.text(SymbolId(slot))) {
                let restricted = self.frame.loading.is_some_and(|loading| number >= loading);
                let loading = first.with_if(restricted, EntryLoading::RESTRICTED);
                first = EntryLoading::NONE;
                if let Flow::Jump = self.ensure_entry(number, loading, setting, world) {
                    return Flow::Jump;
                }
            }
        }
        Flow::Next
    }

    fn evaluate_expression(
        &mut self,
        expression: &jmespath::Expression,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Result<NodeId, QueryError> {
        let subject = self.subject();
        let flow = self.load_images(SUBJECT, setting, world);
        let images = std::mem::replace(&mut self.frame.registers[0], subject);
        let context = self.whole_context(setting, world)?;
        let has_images = matches!(flow, Flow::Next);
        self.with_values(setting, world, |values| {
            let mut root = context;
            if has_images {
                let mut members = Vec::new();
                let view = values.view();
                let known: Vec<(String, NodeId)> = view
                    .children(context)
                    .map(|member| (view.key_str(member).to_owned(), member))
                    .collect();
                for (key, member) in known {
                    members.push((values.label(&key)?, member));
                }
                members.push((values.label("images")?, images));
                root = values.new_map(&members)?;
            }
            Ok(evaluator::evaluate(expression, root, values)?)
        })
    }

    /// FALLBACK: like `evaluate_text`, over a value.
    pub(super) fn evaluate_over(
        &mut self,
        register: RegisterId,
        source: NodeId,
        over: NodeId,
        setting: Setting<'_>,
        world: &mut World<'_>,
    ) -> Flow {
        if !is_allowed(setting) {
            return self.refuse(FunctionError::Refused(SWITCHED_OFF.into()));
        }
        let query = setting.view(world).str(source).to_owned();
        let outcome = match jmespath::parse(&query) {
            Err(error) => Err(FunctionError::Failed(format!(
                "failed to compile JMESPath: {query}, error: {}",
                error.message
            ))),
            Ok(expression) => self.with_values(setting, world, |values| {
                evaluator::evaluate(&expression, over, values).map_err(|error| match error {
                    evaluator::EvaluateError::Refused(text) => FunctionError::Refused(text),
                    error => FunctionError::Failed(error.to_string()),
                })
            }),
        };
        self.set_or_jump(register, outcome)
    }
}

/// Whether a text means itself in an expression.
pub(super) fn is_plain(text: &str, place: ExpressionPlace) -> bool {
    match place {
        ExpressionPlace::Name => {
            text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        }
        ExpressionPlace::QuotedKey => {
            !text.contains(|found: char| found.is_control() || matches!(found, '"' | '\\'))
        }
        // In a raw string a backslash escapes only the closing quote.
        ExpressionPlace::RawString => !text.contains('\'') && !text.ends_with('\\'),
    }
}

/// Whether Kyverno reads a text with `{{` and `}}` around it as one variable: braces inside
/// are in pairs and not nested.
fn is_inside_of_one_variable(text: &str) -> bool {
    let mut open = false;
    for byte in text.bytes() {
        match (byte, open) {
            (b'{', false) => open = true,
            (b'}', true) => open = false,
            (b'{' | b'}', _) => return false,
            _ => {}
        }
    }
    !open
}
