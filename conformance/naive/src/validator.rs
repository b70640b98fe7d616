//! Patterns, deny and foreach of a rule (docs/spec/policies.md §7.3, §7.4, §8,
//! docs/spec/conditions.md §11).

use kpvm_compiler::policy::condition::{AnyAll, Conditions};
use kpvm_syntax::tree::Tree;
use serde_json::Value;

use crate::condition;
use crate::context::Context;
use crate::engine::{Evaluation, Response, Status, check_preconditions};
use crate::failure::Failure;
use crate::pattern::{self, Outcome};
use crate::substitution::substitute_all;
use crate::value::{through_json, type_name};

/// One level of a rule: the rule itself, or an entry of `foreach` on one element.
pub(crate) struct Validator<'r> {
    evaluation: &'r Evaluation<'r>,
    context_entries: Vec<Tree>,
    preconditions: Option<Conditions>,
    pattern: Option<Value>,
    any_pattern: Option<Value>,
    deny: Option<Tree>,
    foreach: Option<Vec<Tree>>,
    /// Depth of `foreach`, zero at the rule.
    nesting: usize,
    /// The element that patterns apply to (docs/spec/conditions.md §11.3).
    element: Option<Value>,
}

fn unreadable<T>(_: T) -> Failure {
    Failure::error("failed to unmarshal Conditions")
}

fn not_null(tree: Option<&Tree>) -> Option<&Tree> {
    tree.filter(|tree| !tree.is_null())
}

fn list(tree: Option<&Tree>) -> Option<Vec<Tree>> {
    not_null(tree).and_then(Tree::as_list).map(<[Tree]>::to_vec)
}

impl<'r> Validator<'r> {
    /// The level of the rule.
    pub(crate) fn of_rule(evaluation: &'r Evaluation<'r>) -> Result<Option<Self>, Failure> {
        let Some(validate) = &evaluation.rule.validate else {
            return Ok(None);
        };
        let preconditions = evaluation.rule.preconditions.as_ref().map(Conditions::read);
        Ok(Some(Self {
            evaluation,
            context_entries: Vec::new(),
            preconditions: preconditions.transpose().map_err(unreadable)?,
            pattern: not_null(validate.pattern.as_ref()).map(Tree::to_json),
            any_pattern: not_null(validate.any_pattern.as_ref()).map(Tree::to_json),
            deny: validate.deny.clone(),
            foreach: list(validate.foreach.as_ref()),
            nesting: 0,
            element: None,
        }))
    }

    /// The level of one element.
    fn of_element(&self, foreach: &Tree, element: Option<Value>) -> Result<Self, Failure> {
        let preconditions = not_null(foreach.get("preconditions")).map(AnyAll::read);
        let preconditions = preconditions.transpose().map_err(unreadable)?;
        Ok(Self {
            evaluation: self.evaluation,
            context_entries: list(foreach.get("context")).unwrap_or_default(),
            preconditions: preconditions.map(Conditions::AnyAll),
            pattern: not_null(foreach.get("pattern")).map(Tree::to_json),
            any_pattern: not_null(foreach.get("anyPattern")).map(Tree::to_json),
            deny: not_null(foreach.get("deny")).cloned(),
            // Absent nested entries are an empty list.
            foreach: Some(list(foreach.get("foreach")).unwrap_or_default()),
            nesting: self.nesting + 1,
            element,
        })
    }

    fn rule(&self) -> &str {
        &self.evaluation.rule.name.value
    }

    fn message(&self) -> &str {
        let validate = self.evaluation.rule.validate.as_ref();
        let message = validate.and_then(|validate| validate.message.as_ref());
        message.map_or("", |message| message.value.as_str())
    }

    fn passed(&self) -> Response {
        let text = format!("validation rule '{}' passed.", self.rule());
        Response::new(Status::Pass, text)
    }

    /// docs/spec/conditions.md §1, steps 6 to 9
    pub(crate) fn validate(
        &mut self,
        context: &mut Context<'_>,
    ) -> Result<Option<Response>, Failure> {
        if let Err(failure) = context.add_entries(&self.context_entries) {
            return Response::error("failed to load context", failure).map(Some);
        }
        if let Some(conditions) = &self.preconditions
            && let Some(response) = check_preconditions(context, conditions)?
        {
            return Ok(Some(response));
        }
        let response = self.body(context)?;
        if self.nesting == 0 && self.evaluation.allows_existing_violations() {
            return self.with_old_object(context, response);
        }
        Ok(response)
    }

    fn body(&mut self, context: &mut Context<'_>) -> Result<Option<Response>, Failure> {
        if self.deny.is_some() {
            return self.deny(context).map(Some);
        }
        if self.pattern.is_some() || self.any_pattern.is_some() {
            return self.patterns(context);
        }
        match self.foreach.clone() {
            Some(entries) => self.foreach(context, &entries),
            None => Ok(None),
        }
    }

    /// An existing violation is allowed (docs/spec/policies.md §10).
    fn with_old_object(
        &mut self,
        context: &mut Context<'_>,
        response: Option<Response>,
    ) -> Result<Option<Response>, Failure> {
        let request = self.evaluation.request;
        if request.operation != "UPDATE" {
            return match response {
                Some(_) => Ok(Some(Response::new(
                    Status::Skip,
                    "failed to validate old object",
                ))),
                None => Err(Failure::Panic("properties of no response")),
            };
        }
        let nothing = Value::Null;
        let old = request.old_object.as_ref().unwrap_or(&nothing);
        // With preconditions the old object never counts as failing.
        if self.preconditions.is_some() || !self.evaluation.matches_old(old) {
            return Ok(response);
        }
        let saved = context.simulate_creation(old);
        self.element = Some(old.clone());
        let prior = self.body(context)?;
        context.restore_request(saved);
        let fails =
            |one: &Option<Response>| one.as_ref().is_some_and(|one| one.status == Status::Fail);
        if fails(&response) && fails(&prior) {
            let text = "skipping the rule evaluation as pre-existing violations are allowed";
            return Ok(Some(Response::new(Status::Skip, text)));
        }
        Ok(response)
    }

    /// docs/spec/policies.md §7.3, §8.1
    fn deny(&self, context: &mut Context<'_>) -> Result<Response, Failure> {
        let conditions = self.deny.as_ref().and_then(|deny| deny.get("conditions"));
        let conditions = match conditions {
            Some(tree) => Conditions::read(tree).map_err(unreadable)?,
            None => Conditions::AnyAll(AnyAll::default()),
        };
        let (is_denied, reason) = match condition::evaluate(context, &conditions) {
            Err(failure) => return Response::error("failed to check deny conditions", failure),
            Ok(outcome) => outcome,
        };
        if !is_denied {
            return Ok(self.passed());
        }
        if self.message().is_empty() && reason.is_empty() {
            let text = format!("validation error: rule {} failed", self.rule());
            return Ok(Response::new(Status::Fail, text));
        }
        let text = condition::join(vec![self.message().to_owned(), reason.clone()], "; ");
        let text = match substitute_all(context, &Value::String(text)) {
            Ok(Value::String(text)) => text,
            Ok(_) => "the produced message didn't resolve to a string, \
                      check your policy definition."
                .to_owned(),
            Err(Failure::NotFound(_) | Failure::Error(_)) => reason,
            Err(other) => return Err(other),
        };
        Ok(Response::new(Status::Fail, text))
    }

    /// `pattern` or `anyPattern` (docs/spec/patterns.md §2, §11).
    fn patterns(&mut self, context: &mut Context<'_>) -> Result<Option<Response>, Failure> {
        // Only the first one is used; what is substituted stays for the old object.
        let given = self.pattern.clone().or_else(|| self.any_pattern.clone());
        let substituted = match substitute_all(context, &given.unwrap_or_default()) {
            Ok(substituted) => substituted,
            Err(failure) => {
                return Response::error("variable substitution failed", failure).map(Some);
            }
        };
        let request = self.evaluation.request;
        let subject = match (&self.element, &request.object) {
            (Some(element), _) => element.clone(),
            (None, _) if request.is_delete() => {
                self.keep(substituted);
                return Ok(None);
            }
            (None, object) => object.clone().unwrap_or_default(),
        };
        match self.pattern.is_some() {
            true => {
                let mut pattern = substituted;
                if pattern.is_null() {
                    return Err(Failure::Panic("a pattern that resolves to null"));
                }
                let outcome = pattern::evaluate(&subject, &mut pattern);
                self.keep(pattern);
                self.pattern_response(context, outcome).map(Some)
            }
            false => {
                let patterns = through_json(&substituted);
                self.keep(substituted);
                self.any_pattern(context, &subject, &patterns).map(Some)
            }
        }
    }

    fn keep(&mut self, substituted: Value) {
        match self.pattern.is_some() {
            true => self.pattern = Some(substituted),
            false => self.any_pattern = Some(substituted),
        }
    }

    /// docs/spec/patterns.md §2.1, §12.1
    fn pattern_response(
        &self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Response, Failure> {
        let rule = self.rule();
        let execution_error = |text: &str| format!("rule {rule} execution error: {text}");
        let (status, reason, text) = match outcome {
            Outcome::Pass => return Ok(self.passed()),
            Outcome::Skip(text) => return Ok(Response::new(Status::Skip, text)),
            Outcome::Fail { path, text } => (
                Status::Fail,
                format!("rule {rule} failed at path {path}"),
                text,
            ),
            Outcome::NoPath(text) => (Status::Error, execution_error(&text), text),
        };
        let text = match self.substituted_message(context)? {
            Message::None => format!("validation error: {reason}"),
            // The text of the mismatch, even if there is a path.
            Message::Unresolved => format!(
                "validation error: variables substitution error in {}",
                execution_error(&text)
            ),
            Message::Text(text) => format!("validation error: {} {reason}", with_dot(text)),
        };
        Ok(Response::new(status, text))
    }

    /// docs/spec/patterns.md §11, §12.2
    fn any_pattern(
        &self,
        context: &mut Context<'_>,
        subject: &Value,
        patterns: &Value,
    ) -> Result<Response, Failure> {
        let rule = self.rule();
        let Some(patterns) = patterns.as_array() else {
            let found = match patterns {
                Value::Object(_) => "object",
                Value::String(_) => "string",
                Value::Number(_) => "number",
                _ => "bool",
            };
            let text = match patterns {
                // Null decodes to no patterns.
                Value::Null => return Ok(Response::new(Status::Pass, self.message())),
                _ => format!(
                    "failed to deserialize anyPattern, expected type array: json: cannot \
                     unmarshal {found} into Go value of type []interface {{}}"
                ),
            };
            return Ok(Response::new(Status::Error, text));
        };
        let (mut failed, mut skipped) = (Vec::new(), Vec::new());
        for (at, pattern) in patterns.iter().enumerate() {
            match pattern::evaluate(subject, &mut pattern.clone()) {
                Outcome::Pass => {
                    let text = format!("validation rule '{rule}' anyPattern[{at}] passed.");
                    return Ok(Response::new(Status::Pass, text));
                }
                Outcome::Skip(text) => skipped.push(format!("rule {rule}[{at}] skipped: {text}")),
                Outcome::Fail { path, .. } => {
                    failed.push(format!("rule {rule}[{at}] failed at path {path}"));
                }
                Outcome::NoPath(text) => failed.push(format!("rule {rule}[{at}] failed: {text}")),
            }
        }
        if failed.is_empty() {
            return Ok(match skipped.is_empty() {
                true => Response::new(Status::Pass, self.message()),
                false => Response::new(Status::Skip, skipped.join(" ")),
            });
        }
        let reasons = failed.join(" ");
        let text = match self.substituted_message(context)? {
            Message::None => format!("validation error: {reasons}"),
            Message::Unresolved => format!(
                "validation error: variables substitution error in rule {rule} \
                 execution error: {reasons}"
            ),
            Message::Text(text) => format!("validation error: {} {reasons}", with_dot(text)),
        };
        Ok(Response::new(Status::Fail, text))
    }

    /// docs/spec/patterns.md §12.3
    fn substituted_message(&self, context: &mut Context<'_>) -> Result<Message, Failure> {
        if self.message().is_empty() {
            return Ok(Message::None);
        }
        match substitute_all(context, &Value::from(self.message())) {
            Ok(Value::String(text)) => Ok(Message::Text(text)),
            Ok(_) => Err(Failure::Panic("a message that is no text")),
            Err(Failure::NotFound(_) | Failure::Error(_)) => Ok(Message::Unresolved),
            Err(other) => Err(other),
        }
    }

    /// docs/spec/conditions.md §11.2
    fn foreach(
        &self,
        context: &mut Context<'_>,
        entries: &[Tree],
    ) -> Result<Option<Response>, Failure> {
        let mut applied = 0;
        let mut list_error = None;
        for entry in entries {
            let list = entry.get("list").and_then(Tree::as_str).unwrap_or_default();
            let elements = match context.query(list) {
                Ok(Value::Array(items)) => items,
                Ok(other) => vec![other],
                Err(failure) => {
                    let text = failure.text()?;
                    if !text.contains("Unknown key") {
                        list_error = Some(text);
                    }
                    continue;
                }
            };
            context.checkpoint();
            let outcome = self.elements(context, entry, &elements);
            context.restore()?;
            match outcome? {
                Ok(count) => applied += count,
                Err(response) => return Ok(Some(response)),
            }
        }
        Ok(match (applied, list_error) {
            (0, None) => None,
            (0, Some(text)) => Some(Response::new(
                Status::Error,
                format!("failed to evaluate list: {text}"),
            )),
            _ => Some(Response::new(Status::Pass, "rule passed")),
        })
    }

    /// How many elements pass, or the response of the first that fails.
    fn elements(
        &self,
        context: &mut Context<'_>,
        entry: &Tree,
        elements: &[Value],
    ) -> Result<Result<usize, Response>, Failure> {
        let scope = match entry.get("elementScope").map(|scope| &scope.value) {
            Some(kpvm_syntax::tree::TreeValue::Bool(scope)) => Some(*scope),
            _ => None,
        };
        let mut count = 0;
        for (index, element) in elements.iter().enumerate() {
            if element.is_null() {
                continue;
            }
            context.reset()?;
            context.add_element(element, index, self.nesting);
            let scoped = match (scope, element.is_object()) {
                (None | Some(true), true) => Some(element.clone()),
                (Some(true), false) => {
                    // A scalar number is a float64 by now.
                    let found = match element {
                        Value::Number(_) => "float64",
                        other => type_name(other),
                    };
                    let text = format!(
                        "failed to process foreach: cannot use elementScope=true foreach rules \
                         for elements that are not maps, expected type=map got type={found}"
                    );
                    return Ok(Err(Response::new(Status::Error, text)));
                }
                _ => self.element.clone(),
            };
            let response = self.of_element(entry, scoped)?.validate(context)?;
            match response {
                None => {}
                Some(response) => match response.status {
                    Status::Skip => {}
                    Status::Pass => count += 1,
                    Status::Error
                        if response
                            .message
                            .contains("failed to evaluate preconditions") => {}
                    status => {
                        let text = format!("validation failure: {}", response.message);
                        return Ok(Err(Response::new(status, text)));
                    }
                },
            }
        }
        Ok(Ok(count))
    }
}

/// The rule's message after substitution.
enum Message {
    None,
    Unresolved,
    Text(String),
}

/// Ends in a full stop (docs/spec/patterns.md §12.1).
fn with_dot(text: String) -> String {
    match text.ends_with('.') {
        true => text,
        false => text + ".",
    }
}
