//! The variable `images` (docs/spec/conditions.md §7).

use kpvm_semantics::image::{self, ImageDefaults};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::request::text_at;

/// All images of an object, or nothing if it has none (docs/spec/conditions.md §7.1).
pub(crate) fn images(object: &Value) -> Result<Option<Value>, Failure> {
    let prefix: &[&str] = match text_at(object, "kind") {
        "Pod" => &["spec"],
        "DaemonSet"
        | "Deployment"
        | "ReplicaSet"
        | "ReplicationController"
        | "StatefulSet"
        | "Job" => &["spec", "template", "spec"],
        "CronJob" => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return Ok(None),
    };
    let mut groups = Map::new();
    for group in ["initContainers", "containers", "ephemeralContainers"] {
        let mut path: Vec<String> = prefix.iter().map(|part| (*part).to_owned()).collect();
        path.push(group.to_owned());
        let mut found = Map::new();
        let Some(list) = list_at(object, &path)? else {
            continue;
        };
        entries(list, &mut path, &mut found)?;
        if !found.is_empty() {
            groups.insert(group.to_owned(), Value::Object(found));
        }
    }
    Ok((!groups.is_empty()).then_some(Value::Object(groups)))
}

/// The list of containers; null anywhere on the way means none.
fn list_at<'o>(object: &'o Value, path: &[String]) -> Result<Option<&'o Value>, Failure> {
    let mut value = object;
    for part in path {
        let Value::Object(members) = value else {
            return Err(Failure::error("invalid image config"));
        };
        match members.get(part) {
            None | Some(Value::Null) => return Ok(None),
            Some(found) => value = found,
        }
    }
    Ok(Some(value))
}

/// The containers of a list or of a map.
fn entries(
    list: &Value,
    path: &mut Vec<String>,
    found: &mut Map<String, Value>,
) -> Result<(), Failure> {
    match list {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                path.push(at.to_string());
                match item {
                    Value::Object(members) => entry(members, path, found)?,
                    Value::Array(_) => entries(item, path, found)?,
                    _ => {}
                }
                path.pop();
            }
            Ok(())
        }
        Value::Object(members) => {
            for (key, item) in members {
                path.push(key.clone());
                match item {
                    Value::Object(members) => entry(members, path, found)?,
                    Value::Array(_) => return Err(Failure::error("invalid image config")),
                    _ => {}
                }
                path.pop();
            }
            Ok(())
        }
        _ => Err(Failure::error("invalid image config")),
    }
}

/// One container (docs/spec/conditions.md §7.1, §7.2).
fn entry(
    container: &Map<String, Value>,
    path: &[String],
    found: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let Some(name) = container.get("name").and_then(Value::as_str) else {
        return Err(Failure::error("invalid key"));
    };
    let image = container.get("image").and_then(Value::as_str);
    let Some(image) = image.filter(|image| !image.trim().is_empty()) else {
        return Ok(());
    };
    let parsed = image::parse(image, ImageDefaults::KYVERNO)
        .map_err(|error| Failure::error(format!("invalid image '{image}' ({error})")))?;
    let mut info = Map::new();
    let fields = [
        ("registry", parsed.registry.as_str()),
        ("tag", &parsed.tag),
        ("digest", &parsed.digest),
        ("reference", &parsed.reference),
        ("referenceWithTag", &parsed.reference_with_tag),
    ];
    for (field, text) in fields {
        if !text.is_empty() {
            info.insert(field.to_owned(), json!(text));
        }
    }
    info.insert("name".to_owned(), json!(parsed.name()));
    info.insert("path".to_owned(), json!(parsed.path));
    let pointer = format!("/{}/image", path.join("/"));
    info.insert("jsonPointer".to_owned(), json!(pointer));
    found.insert(name.to_owned(), Value::Object(info));
    Ok(())
}
