//! Kubernetes' `authorizer` (docs/spec/cel.md §3.9): access checks, answered by the host.
//!
//! An authorizer and its checks contain the specification of a SubjectAccessReview as JSON
//! text, which each call extends; a decision contains the status of the review.

use kpvm_format::cel::Function;
use serde_json::{Map, Value as Json, json};

use super::value::{Value, look, no_overload};
use crate::document::{NodeId, Opaque};
use crate::function::{FunctionError, Values};

type Outcome = Result<NodeId, FunctionError>;

/// Error if the host has no cluster.
const NO_CLUSTER: &str =
    "authorizer: who may do what is not known here, only a cluster can check access";

/// Calls a function on authorizers, their checks and decisions.
pub(super) fn call(function: Function, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let view = values.view();
    let shown: Vec<Value<'_>> = arguments.iter().map(|id| look(&view, *id)).collect();
    let [Value::Opaque(opaque, text), rest @ ..] = shown.as_slice() else {
        return Err(no_overload());
    };
    let mut texts = Vec::with_capacity(rest.len());
    for argument in rest {
        let text = argument.text().ok_or_else(no_overload)?;
        texts.push(text.to_owned());
    }
    let opaque = *opaque;
    let mut review: Map<String, Json> = serde_json::from_str(text).unwrap_or_default();
    values.charge_bytes(arguments.len() + texts.iter().map(String::len).sum::<usize>())?;
    match (opaque, function, texts.as_slice()) {
        (Opaque::Authorizer, Function::AuthorizePath, [path]) => {
            require("path", path)?;
            review.insert("nonResourceAttributes".into(), json!({ "path": path }));
            made(Opaque::PathCheck, review, values)
        }
        (Opaque::Authorizer, Function::AuthorizeGroup, [group]) => {
            review.insert("resourceAttributes".into(), json!({ "group": group }));
            made(Opaque::GroupCheck, review, values)
        }
        (Opaque::Authorizer, Function::AuthorizeServiceAccount, [namespace, name]) => {
            review.insert(
                "user".into(),
                format!("system:serviceaccount:{namespace}:{name}").into(),
            );
            let groups = json!([
                "system:serviceaccounts",
                format!("system:serviceaccounts:{namespace}")
            ]);
            review.insert("groups".into(), groups);
            made(Opaque::Authorizer, review, values)
        }
        (Opaque::GroupCheck, Function::AuthorizeResource, [resource]) => {
            require("resource", resource)?;
            set(
                &mut review,
                "resourceAttributes",
                "resource",
                resource.as_str().into(),
            );
            made(Opaque::ResourceCheck, review, values)
        }
        (Opaque::ResourceCheck, Function::AuthorizeCheck, [verb]) => {
            set(
                &mut review,
                "resourceAttributes",
                "verb",
                verb.as_str().into(),
            );
            decide(review, values)
        }
        (Opaque::PathCheck, Function::AuthorizeCheck, [verb]) => {
            set(
                &mut review,
                "nonResourceAttributes",
                "verb",
                verb.as_str().into(),
            );
            decide(review, values)
        }
        (Opaque::ResourceCheck, function, [text]) => {
            let value = match function {
                Function::AuthorizeFieldSelector | Function::AuthorizeLabelSelector => {
                    json!({ "rawSelector": text })
                }
                Function::AuthorizeSubresource
                | Function::AuthorizeNamespace
                | Function::AuthorizeName => text.as_str().into(),
                _ => return Err(no_overload()),
            };
            set(&mut review, "resourceAttributes", function.name(), value);
            made(Opaque::ResourceCheck, review, values)
        }
        (Opaque::Decision, function, []) => {
            let text = |key: &str| review.get(key).and_then(Json::as_str).unwrap_or_default();
            match function {
                Function::IsAllowed => {
                    values.new_bool(review.get("allowed").and_then(Json::as_bool) == Some(true))
                }
                Function::DecisionReason => values.new_text(text("reason")),
                Function::IsErrored => values.new_bool(!text("evaluationError").is_empty()),
                Function::DecisionError => values.new_text(text("evaluationError")),
                _ => Err(no_overload()),
            }
        }
        _ => Err(no_overload()),
    }
}

fn require(what: &str, text: &str) -> Result<(), FunctionError> {
    match text {
        "" => Err(FunctionError::Failed(format!("{what} must not be empty"))),
        _ => Ok(()),
    }
}

fn set(review: &mut Map<String, Json>, part: &str, key: &str, value: Json) {
    if let Some(Json::Object(part)) = review.get_mut(part) {
        part.insert(key.to_owned(), value);
    }
}

fn made(opaque: Opaque, review: Map<String, Json>, values: &mut Values<'_>) -> Outcome {
    values.new_opaque(opaque, &Json::Object(review).to_string())
}

/// An error of the host is part of the decision, not an error of the expression.
fn decide(review: Map<String, Json>, values: &mut Values<'_>) -> Outcome {
    let spec = Json::Object(review);
    let status = match values.host.access_review(&spec) {
        Ok(None) => return Err(FunctionError::failed(NO_CLUSTER)),
        Ok(Some(status)) => status,
        Err(error) => json!({ "allowed": false, "evaluationError": error }),
    };
    values.new_opaque(Opaque::Decision, &status.to_string())
}
