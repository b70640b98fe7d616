//! Exceptions from rules (docs/spec/policies.md §9).

use kpvm_compiler::policy::model::{Policy, PolicyException, PolicyKind, Rule};
use kpvm_semantics::wildcard::matches as wildcard;
use serde_json::Value;

use crate::condition::holds;
use crate::context::Context;
use crate::engine::Evaluation;
use crate::failure::Failure;
use crate::matching::{Candidate, exception_matches};
use crate::request::User;

/// The exceptions that name a rule.
pub(crate) struct Exceptions<'r>(Vec<&'r PolicyException>);

impl<'r> Exceptions<'r> {
    /// By the key of the policy and the name of the computed rule (docs/spec/policies.md
    /// §9).
    pub(crate) fn of(policy: &Policy, rule: &Rule, all: &'r [PolicyException]) -> Self {
        let name = &policy.name.value;
        let key = match (policy.kind, policy.namespace.as_deref().unwrap_or_default()) {
            (PolicyKind::ClusterPolicy, _) | (_, "") => name.clone(),
            (PolicyKind::Policy, namespace) => format!("{namespace}/{name}"),
        };
        let covers = |exception: &&PolicyException| {
            exception.covered.iter().any(|covered| {
                let mut rules = covered.rules.iter();
                covered.policy.value == key
                    && rules.any(|pattern| wildcard(&pattern.value, &rule.name.value))
            })
        };
        Self(all.iter().filter(covers).collect())
    }

    /// Those whose filters and conditions hold.
    pub(crate) fn matching(
        &self,
        evaluation: &Evaluation<'_>,
        context: &mut Context<'_>,
    ) -> Result<Vec<&'r PolicyException>, Failure> {
        let nobody = User::default();
        let request = evaluation.request;
        let Some(object) = request.subject() else {
            return Ok(Vec::new());
        };
        self.matching_object(
            &Candidate {
                object,
                gvk: evaluation.gvk,
                subresource: &request.subresource,
                operation: &request.operation,
                user: request.user.as_ref().unwrap_or(&nobody),
                namespace_labels: &request.namespace_labels,
            },
            context,
        )
    }

    /// Those that cover the old object as if it were created (docs/spec/policies.md §10).
    pub(crate) fn matching_old(
        &self,
        evaluation: &Evaluation<'_>,
        old: &Value,
        context: &mut Context<'_>,
    ) -> Result<Vec<&'r PolicyException>, Failure> {
        let nobody = User::default();
        let request = evaluation.request;
        self.matching_object(
            &Candidate {
                object: old,
                gvk: evaluation.gvk,
                subresource: &request.subresource,
                operation: "CREATE",
                user: request.user.as_ref().unwrap_or(&nobody),
                namespace_labels: &request.namespace_labels,
            },
            context,
        )
    }

    fn matching_object(
        &self,
        candidate: &Candidate<'_>,
        context: &mut Context<'_>,
    ) -> Result<Vec<&'r PolicyException>, Failure> {
        let mut matching = Vec::new();
        for exception in &self.0 {
            if exception_matches(&exception.match_block, candidate)
                && conditions_hold(exception, context)?
            {
                matching.push(*exception);
            }
        }
        Ok(matching)
    }
}

/// `all` first, which decides alone when false; an empty `any` counts as absent; an error is
/// false (docs/spec/policies.md §9).
fn conditions_hold(
    exception: &PolicyException,
    context: &mut Context<'_>,
) -> Result<bool, Failure> {
    let Some(block) = &exception.conditions else {
        return Ok(true);
    };
    let mut holds = |condition| match holds(context, condition) {
        Err(failure) if !failure.is_error() => Err(failure),
        Ok(holds) => Ok(Some(holds)),
        Err(_) => Ok(None),
    };
    for condition in block.all.iter().flatten() {
        if holds(condition)? != Some(true) {
            return Ok(false);
        }
    }
    let any = block.any.as_deref().unwrap_or_default();
    for condition in any {
        match holds(condition)? {
            Some(true) => return Ok(true),
            Some(false) => {}
            None => return Ok(false),
        }
    }
    Ok(any.is_empty())
}

/// The entries of `podSecurity` of an exception.
pub(crate) fn pod_security_of(exception: &PolicyException) -> Vec<Value> {
    let entries = exception.pod_security.iter();
    entries.map(|entry| entry.to_json()).collect()
}
