//! Policies and the flow of their rules (docs/spec/policies.md §6, §7).

use std::collections::BTreeMap;

use kpvm_compiler::policy::autogen::compute_rules;
use kpvm_compiler::policy::condition::Conditions;
use kpvm_compiler::policy::model::{ApplyRules, Policy, PolicyException, PolicyKind, Rule};
use kpvm_compiler::policy::read::{read_exception, read_policy};
use kpvm_compiler::source::SourceId;
use kpvm_syntax::tree::Tree;
use serde_json::Value;

use crate::cel;
use crate::condition;
use crate::context::Context;
use crate::exception::Exceptions;
use crate::failure::Failure;
use crate::matching::{Candidate, rule_matches};
use crate::pod_security;
use crate::request::{Request, User, gvk_of, metadata_text};
use crate::substitution::substitute_all;
use crate::validator::Validator;

/// Status of a rule (docs/spec/policies.md §7.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The rule holds.
    Pass,
    /// It does not.
    Fail,
    /// It does not apply after all.
    Skip,
    /// It cannot be evaluated.
    Error,
}

impl Status {
    /// As Kyverno writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::Error => "error",
        }
    }
}

/// Status and message of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status.
    pub status: Status,
    /// Message.
    pub message: String,
}

impl Response {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// An error of a text and its cause (docs/spec/policies.md §8.4).
    pub(crate) fn error(text: &str, cause: Failure) -> Result<Self, Failure> {
        let cause = cause.text()?;
        Ok(Self::new(Status::Error, format!("{text}: {cause}")))
    }
}

/// Response of one computed rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleResponse {
    /// The computed rule.
    pub rule: String,
    /// Status and message.
    pub response: Response,
    /// Report properties.
    pub properties: BTreeMap<String, String>,
}

/// Why there are no responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The policy reader refuses a document.
    Refused(String),
    /// Kyverno panics.
    Panic(&'static str),
    /// This interpreter does not do something that the policy needs.
    NotDone(&'static str),
}

/// Evaluates a policy, without the load checks and without the effect of `assert`
/// (docs/spec/policies.md §1.4).
///
/// # Errors
/// When a document is refused, or something is not done yet.
pub fn evaluate(
    policy: &Value,
    exceptions: &[Value],
    request: &Request,
) -> Result<Vec<RuleResponse>, Stop> {
    let mut diagnostics = Vec::new();
    let refused = |diagnostics: &[kpvm_compiler::diagnostic::Diagnostic]| {
        let first = diagnostics.first();
        Stop::Refused(first.map_or_else(String::new, |first| first.message.clone()))
    };
    let tree = Tree::from(policy);
    let Some(mut policy) = read_policy(&tree, SourceId(0), &mut diagnostics) else {
        return Err(refused(&diagnostics));
    };
    policy.ignore_assert();
    let mut read = Vec::new();
    for exception in exceptions {
        match read_exception(&Tree::from(exception), SourceId(0), &mut diagnostics) {
            Some(exception) => read.push(exception),
            None => return Err(refused(&diagnostics)),
        }
    }
    evaluate_policy(&policy, &read, request).map_err(|failure| match failure {
        Failure::NotDone(what) => Stop::NotDone(what),
        Failure::Panic(what) => Stop::Panic(what),
        Failure::NotFound(text) | Failure::Error(text) => Stop::Refused(text),
    })
}

/// The loop over the rules (docs/spec/policies.md §6, §7.1).
fn evaluate_policy(
    policy: &Policy,
    exceptions: &[PolicyException],
    request: &Request,
) -> Result<Vec<RuleResponse>, Failure> {
    if !applies(policy, request)? {
        return Ok(Vec::new());
    }
    let gvk = request.kind();
    let [_, _, kind] = &gvk;
    // `Policy` in no namespace: the context sees none either (docs/spec/policies.md §5.7).
    let namespace = policy.namespace.clone().unwrap_or_default();
    let mut context = Context::new(request, &namespace);
    let mut responses: Vec<RuleResponse> = Vec::new();
    for rule in compute_rules(policy, Some(kind)) {
        let evaluation = Evaluation {
            policy,
            rule: &rule,
            exceptions: Exceptions::of(policy, &rule, exceptions),
            request,
            gvk: &gvk,
        };
        responses.extend(evaluation.run(&mut context)?);
        let is_applied =
            |one: &RuleResponse| matches!(one.response.status, Status::Pass | Status::Fail);
        if policy.apply_rules == ApplyRules::One && responses.iter().any(is_applied) {
            break;
        }
    }
    Ok(responses)
}

/// The gates before any rule (docs/spec/policies.md §6).
fn applies(policy: &Policy, request: &Request) -> Result<bool, Failure> {
    let conditions = policy.match_conditions.as_ref().and_then(Tree::as_list);
    if conditions.is_some_and(|conditions| !conditions.is_empty()) {
        return Err(Failure::NotDone("matchConditions"));
    }
    if policy.kind == PolicyKind::ClusterPolicy {
        return Ok(true);
    }
    let own = match policy.namespace.as_deref() {
        None | Some("") => "default",
        Some(own) => own,
    };
    let mut objects = [&request.object, &request.old_object].into_iter().flatten();
    Ok(objects.all(|object| metadata_text(object, "namespace") == own))
}

/// One rule on the request.
pub(crate) struct Evaluation<'r> {
    pub(crate) policy: &'r Policy,
    pub(crate) rule: &'r Rule,
    pub(crate) exceptions: Exceptions<'r>,
    pub(crate) request: &'r Request,
    pub(crate) gvk: &'r [String; 3],
}

impl Evaluation<'_> {
    /// docs/spec/policies.md §7.2
    fn run(&self, context: &mut Context<'_>) -> Result<Option<RuleResponse>, Failure> {
        if !self.matches() {
            return Ok(None);
        }
        let Some(validate) = &self.rule.validate else {
            return match self.rule.verify_images {
                Some(_) => Err(Failure::NotDone("verifyImages")),
                None => Ok(None),
            };
        };
        if validate.manifests.is_some() {
            return Err(Failure::NotDone("manifests"));
        }
        context.checkpoint();
        let mut properties: BTreeMap<String, String> = BTreeMap::new();
        for (key, value) in &self.rule.report_properties {
            properties.insert(key.clone(), value.value.clone());
        }
        let response = self.guarded(context, &mut properties)?;
        context.restore()?;
        Ok(response.map(|response| RuleResponse {
            rule: self.rule.name.value.clone(),
            response,
            properties,
        }))
    }

    /// Steps 3 to 7 of docs/spec/policies.md §7.2.
    fn guarded(
        &self,
        context: &mut Context<'_>,
        properties: &mut BTreeMap<String, String>,
    ) -> Result<Option<Response>, Failure> {
        if let Err(failure) = context.add_entries(&self.rule.context) {
            return Response::error("failed to load context", failure).map(Some);
        }
        if let Some(response) = self.preconditions(context)? {
            return Ok(Some(response));
        }
        self.substitute_properties(context, properties)?;
        let validate = self.rule.validate.as_ref();
        let body = |select: fn(&kpvm_compiler::policy::model::Validate) -> &Option<Tree>| {
            let body = validate.and_then(|validate| select(validate).as_ref());
            body.filter(|body| is_content(&body.to_json()))
        };
        if let Some(body) = body(|validate| &validate.pod_security) {
            return pod_security::evaluate(self, &body.to_json(), context);
        }
        let matched = self.exceptions.matching(self, context)?;
        if !matched.is_empty() {
            let keys: Vec<String> = matched.iter().map(|one| one.key()).collect();
            return Ok(Some(Response::new(
                Status::Skip,
                format!(
                    "rule is skipped due to policy exceptions{}",
                    keys.join(", ")
                ),
            )));
        }
        if let Some(cel) = body(|validate| &validate.cel) {
            return cel::evaluate(self, &cel.to_json());
        }
        let Some(mut validator) = Validator::of_rule(self)? else {
            return Ok(None);
        };
        validator.validate(context)
    }

    /// The response of preconditions that do not hold (docs/spec/policies.md §7.2, step 4).
    pub(crate) fn preconditions(
        &self,
        context: &mut Context<'_>,
    ) -> Result<Option<Response>, Failure> {
        let Some(tree) = &self.rule.preconditions else {
            return Ok(None);
        };
        let conditions =
            Conditions::read(tree).map_err(|_| Failure::error("failed to unmarshal Conditions"))?;
        check_preconditions(context, &conditions)
    }

    /// All or nothing (docs/spec/policies.md §7.2, step 5).
    fn substitute_properties(
        &self,
        context: &mut Context<'_>,
        properties: &mut BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let raw: Value = properties
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect();
        let substituted = match substitute_all(context, &raw) {
            Ok(Value::Object(members)) => members,
            Err(failure) if !failure.is_error() => return Err(failure),
            _ => return Ok(()),
        };
        let texts: Option<BTreeMap<String, String>> = substituted
            .into_iter()
            .map(|(key, value)| match value {
                // Null decodes to an empty text.
                Value::Null => Some((key, String::new())),
                other => Some((key, other.as_str()?.to_owned())),
            })
            .collect();
        if let Some(texts) = texts {
            *properties = texts;
        }
        Ok(())
    }

    /// docs/spec/policies.md §5.2, §5.6
    fn matches(&self) -> bool {
        let nobody = User::default();
        self.request.subject().is_some_and(|object| {
            self.matches_object(
                object,
                &Candidate {
                    object,
                    gvk: self.gvk,
                    subresource: &self.request.subresource,
                    operation: &self.request.operation,
                    user: self.request.user.as_ref().unwrap_or(&nobody),
                    namespace_labels: &self.request.namespace_labels,
                },
            )
        })
    }

    /// The old object as if it were created, by nobody (docs/spec/policies.md §10).
    pub(crate) fn matches_old(&self, old: &Value) -> bool {
        let invalid = || vec!["kyverno:invalidrole".to_owned()];
        let dummy = User {
            name: "kyverno:kyverno-invalid-controller".into(),
            groups: vec!["kyverno:invalidgroup".into()],
            roles: invalid(),
            cluster_roles: invalid(),
        };
        self.matches_object(
            old,
            &Candidate {
                object: old,
                gvk: &gvk_of(old),
                subresource: "",
                operation: "CREATE",
                user: &dummy,
                namespace_labels: &self.request.namespace_labels,
            },
        )
    }

    fn matches_object(&self, object: &Value, candidate: &Candidate<'_>) -> bool {
        let own = self.policy.namespace.as_deref().unwrap_or_default();
        let is_here = own.is_empty() || own == metadata_text(object, "namespace");
        let rule = self.rule;
        is_here && rule_matches(&rule.match_block, rule.exclude_block.as_ref(), candidate)
    }

    /// Whether the old object may excuse a failure (docs/spec/policies.md §10).
    pub(crate) fn allows_existing_violations(&self) -> bool {
        let Some(validate) = &self.rule.validate else {
            return false;
        };
        let action = validate
            .failure_action
            .as_ref()
            .or(self.policy.failure_action.as_ref());
        let is_enforced = action.is_some_and(|action| action == "Enforce" || action == "enforce");
        let has_both = self.request.object.is_some() && self.request.old_object.is_some();
        is_enforced
            && validate.allow_existing_violations
            && (self.request.operation == "UPDATE" || has_both)
    }
}

/// The response of preconditions that do not hold.
pub(crate) fn check_preconditions(
    context: &mut Context<'_>,
    conditions: &Conditions,
) -> Result<Option<Response>, Failure> {
    match condition::evaluate(context, conditions) {
        Err(failure) => Response::error("failed to evaluate preconditions", failure).map(Some),
        Ok((true, _)) => Ok(None),
        Ok((false, message)) => Ok(Some(Response::new(
            Status::Skip,
            condition::join(vec!["preconditions not met".into(), message], "; "),
        ))),
    }
}

/// Whether a body differs from an empty one (docs/spec/policies.md §7.2, step 2).
fn is_content(body: &Value) -> bool {
    match body {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        // An explicit empty list is not Go's zero value.
        Value::Array(_) => true,
        Value::Object(members) => members.values().any(is_content),
        _ => true,
    }
}
