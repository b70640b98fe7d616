//! `validate.podSecurity` (docs/spec/pod-security.md).

mod checks;
mod exclude;
mod typed;

use kpvm_compiler::policy::model::PolicyException;
use serde_json::Value;

use self::checks::{Failing, FieldError, Version, run};
use self::typed::Problem;
use crate::context::Context;
use crate::engine::{Evaluation, Response, Status};
use crate::exception::pod_security_of;
use crate::failure::{Failure, UNFIXED};
use crate::request::text_at;
use crate::value::go_text;

/// The handler (docs/spec/pod-security.md §8).
pub(crate) fn evaluate(
    evaluation: &Evaluation<'_>,
    body: &Value,
    context: &mut Context<'_>,
) -> Result<Option<Response>, Failure> {
    let request = evaluation.request;
    if request.is_delete() {
        return Ok(None);
    }
    let Some(object) = request.subject() else {
        return Ok(None);
    };
    let exceptions = evaluation.exceptions.matching(evaluation, context)?;
    let response = on_object(evaluation, body, object, &exceptions);
    if response.status != Status::Fail || !evaluation.allows_existing_violations() {
        return Ok(Some(response));
    }
    // §9
    if request.operation != "UPDATE" {
        let text = "failed to validate old object";
        return Ok(Some(Response::new(Status::Skip, text)));
    }
    let nothing = Value::Null;
    let old = request.old_object.as_ref().unwrap_or(&nothing);
    if evaluation.rule.preconditions.is_some() || !evaluation.matches_old(old) {
        return Ok(Some(response));
    }
    let saved = context.simulate_creation(old);
    let exceptions = evaluation
        .exceptions
        .matching_old(evaluation, old, context)?;
    context.restore_request(saved);
    let prior = on_object(evaluation, body, old, &exceptions);
    if prior.status == response.status {
        let text = "skipping the rule evaluation as pre-existing violations are allowed";
        return Ok(Some(Response::new(Status::Skip, text)));
    }
    Ok(Some(response))
}

/// Rows 2 to 7 of docs/spec/pod-security.md §8.
fn on_object(
    evaluation: &Evaluation<'_>,
    body: &Value,
    object: &Value,
    exceptions: &[&PolicyException],
) -> Response {
    let rule = &evaluation.rule.name.value;
    if let Some(whole) = exceptions.iter().find(|one| one.pod_security.is_empty()) {
        let text = format!("rule is skipped due to policy exception {}", whole.key());
        return Response::new(Status::Skip, text);
    }
    let pod = match typed::pod(object) {
        Ok(pod) => pod,
        Err(problem) => {
            let reason = match problem {
                Problem::UnknownKind => "could not find correct resource type",
                Problem::WrongType => UNFIXED,
            };
            let text = format!("Error while getting new resource: {reason}");
            return Response::new(Status::Error, text);
        }
    };
    let (level, version_text) = (text_at(body, "level"), text_at(body, "version"));
    let Some(version) = read_version(version_text) else {
        let text = "failed to parse pod security api version: must be \"latest\" or \"v1.x\"";
        return Response::new(Status::Error, text);
    };
    let failing = run(&pod, level, version);
    let excludes = body.get("exclude").and_then(Value::as_array);
    let excludes = excludes.cloned().unwrap_or_default();
    let failing = exclude::apply(failing, &excludes, &pod, level, version);
    if failing.is_empty() {
        return Response::new(Status::Pass, format!("Validation rule '{rule}' passed."));
    }
    let excused: Vec<Value> = exceptions
        .iter()
        .flat_map(|one| pod_security_of(one))
        .collect();
    let failing = exclude::apply(failing, &excused, &pod, level, version);
    if failing.is_empty() {
        let keys: Vec<String> = exceptions.iter().map(|one| one.key()).collect();
        let text = format!(
            "rule is skipped due to policy exceptions {}",
            keys.join(", ")
        );
        return Response::new(Status::Skip, text);
    }
    let checks: String = failing
        .iter()
        .map(|one| shown(one, text_at(object, "kind")))
        .collect();
    Response::new(
        Status::Fail,
        format!(
            "Validation rule '{rule}' failed. It violates PodSecurity \
             \"{level}:{version_text}\": {checks}"
        ),
    )
}

/// `v1.N`, or the latest (docs/spec/pod-security.md §1); none if it is neither.
fn read_version(text: &str) -> Option<Version> {
    if ["", "latest"].contains(&text) {
        return Some(None);
    }
    let minor = text.strip_prefix("v1.")?;
    let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = is_number && (minor == "0" || !minor.starts_with('0'));
    is_plain.then(|| minor.parse().ok()).flatten().map(Some)
}

/// One failing check in a message (docs/spec/pod-security.md §8).
fn shown(failing: &Failing, kind: &str) -> String {
    let errors = failing.errors.iter().flatten();
    let errors: Vec<String> = errors.map(|error| shown_error(error, kind)).collect();
    format!(
        "(Forbidden reason: {}, field error list: [{}])",
        failing.reason,
        errors.join(", ")
    )
}

fn shown_error(error: &FieldError, kind: &str) -> String {
    let path = match kind {
        "Pod" => error.path.clone(),
        "CronJob" => error
            .path
            .replace("spec", "spec.jobTemplate.spec.template.spec"),
        _ => error.path.replace("spec", "spec.template.spec"),
    };
    let path = path.replace("metadata", "spec.template.metadata");
    if error.is_required {
        return format!("{path}: Required value");
    }
    match &error.bad {
        Value::String(text) if text.is_empty() => format!("{path}: Forbidden"),
        bad => {
            let bad = go_text(bad);
            format!("{path} is forbidden, forbidden values found: {bad}")
        }
    }
}
