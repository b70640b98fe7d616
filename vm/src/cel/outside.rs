//! Kyverno's libraries that need outside data: objects of the API server, global context
//! entries, images, services (docs/spec/cel.md §6.7). The host answers.

use kpvm_format::cel::Function;
use kpvm_format::function::Function as Jmespath;
use serde_json::Value as Json;

use super::value::{Value, look, no_overload};
use crate::document::NodeId;
use crate::function::{self, FunctionError, Values};
use crate::host::Answer;

type Outcome = Result<NodeId, FunctionError>;

/// Default pattern of `random()`.
const RANDOM: &str = "[0-9a-z]{8}";

/// Calls a function that asks the host; `None` for other functions.
pub(super) fn call(
    function: Function,
    arguments: &[NodeId],
    values: &mut Values<'_>,
) -> Option<Outcome> {
    Some(match function {
        Function::ResourceGet => get(arguments, values),
        Function::ResourceList => list(arguments, values),
        Function::ResourcePost | Function::ToGvr => {
            Err(FunctionError::failed("internal error: not implemented"))
        }
        Function::GlobalContextGet => global_context(arguments, values),
        Function::ImageMetadata => image(arguments, values),
        Function::HttpGet => http("GET", arguments, values),
        Function::HttpPost => http("POST", arguments, values),
        Function::Random | Function::RandomRandom => random(arguments, values),
        _ => return None,
    })
}

fn texts<const N: usize>(
    arguments: &[NodeId],
    values: &Values<'_>,
) -> Result<[String; N], FunctionError> {
    let view = values.view();
    let mut texts = std::array::from_fn(|_| String::new());
    if arguments.len() < N {
        return Err(no_overload());
    }
    for (text, argument) in texts.iter_mut().zip(arguments) {
        let value = look(&view, *argument);
        *text = value.text().ok_or_else(no_overload)?.to_owned();
    }
    Ok(texts)
}

/// Makes a value of the host's answer. `what` goes before an error.
fn answer_value(answer: Answer<Json>, values: &mut Values<'_>, what: &str) -> Outcome {
    match answer {
        Ok(Some(value)) => values.new_value(&value),
        Ok(None) => Err(FunctionError::failed(format!(
            "{what}: such data is not provided here"
        ))),
        Err(error) => Err(FunctionError::failed(format!("{what}: {error}"))),
    }
}

fn get(arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let [api_version, resource, namespace, name] = &texts::<4>(arguments, values)?;
    let answer = values.host.resource(api_version, resource, namespace, name);
    answer_value(answer, values, "failed to get resource")
}

/// Ignores labels, as Kyverno's command line does (docs/spec/cel.md §6.6).
fn list(arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let [api_version, resource, namespace] = &texts::<3>(arguments, values)?;
    let answer = values.host.resource_list(api_version, resource, namespace);
    answer_value(answer, values, "failed to list resource")
}

fn global_context(arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let [name] = &texts::<1>(arguments, values)?;
    let projection = match arguments.get(1..) {
        Some(rest @ [_]) => texts::<1>(rest, values)?,
        _ => [String::new()],
    };
    let [projection] = &projection;
    let answer = values.host.global_context(name, projection);
    answer_value(answer, values, "failed to get global reference")
}

fn image(arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let [reference] = &texts::<1>(arguments, values)?;
    let answer = values.host.image_data(reference);
    answer_value(answer, values, "failed to get image data")
}

fn http(method: &str, arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let [url] = &texts::<1>(arguments, values)?;
    let rest = arguments.get(1..).unwrap_or_default();
    let (data, headers) = match (method, rest) {
        ("POST", [data, headers @ ..]) => (Some(values.view().to_value(*data)), headers),
        (_, headers) => (None, headers),
    };
    let headers = headers
        .first()
        .map(|headers| values.view().to_value(*headers));
    let headers = headers.as_ref().and_then(Json::as_object);
    let pairs: Vec<(&str, &str)> = headers
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    let answer = values.host.http(method, url, data.as_ref(), &pairs);
    answer_value(answer, values, "request failed")
}

fn random(arguments: &[NodeId], values: &mut Values<'_>) -> Outcome {
    let pattern = match arguments {
        [] => values.new_text(RANDOM)?,
        [pattern] => match look(&values.view(), *pattern) {
            Value::String(b"") => return Ok(*pattern),
            Value::String(_) => *pattern,
            _ => return Err(no_overload()),
        },
        _ => return Err(no_overload()),
    };
    function::call(Jmespath::Random, &[pattern], values)
}
