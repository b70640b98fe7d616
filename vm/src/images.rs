//! The `images` variable of a resource (docs/spec/conditions.md §7).
//!
//! No registry is contacted, and `imageExtractors` are ignored: only image verification
//! uses them.

use std::fmt;

use std::collections::HashMap;

use kpvm_format::symbol::SymbolTable;
use kpvm_semantics::image::{ImageDefaults, ImageError, ImageReference, parse};

use crate::document::{BufferFull, DocumentBuffer, Kind, Label, NodeId, Texts, View};

/// Reason why the images of a resource are unknown, in Kyverno's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImagesError {
    /// A container, or a value on the path to the containers, is not a map.
    NotAMap,
    /// The containers are neither a list nor a map.
    NotAList,
    /// A container has no name.
    NoName,
    /// A container's image is invalid.
    Image {
        /// The image.
        image: String,
        /// The problem.
        reason: ImageError,
    },
    /// The value does not fit into the buffer.
    Full(BufferFull),
}

impl fmt::Display for ImagesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAMap => f.write_str("invalid image config"),
            Self::NotAList => f.write_str("invalid type"),
            Self::NoName => f.write_str("invalid key"),
            Self::Image { image, reason, .. } => write!(f, "invalid image '{image}' ({reason})"),
            Self::Full(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImagesError {}

impl From<BufferFull> for ImagesError {
    fn from(error: BufferFull) -> Self {
        Self::Full(error)
    }
}

/// The lists of containers, in Kyverno's order.
const GROUPS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Path to the lists of containers, by kind alone (docs/spec/conditions.md §7.1).
fn pod_spec_path(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "Pod" => Some(&["spec"]),
        "DaemonSet"
        | "Deployment"
        | "ReplicaSet"
        | "ReplicationController"
        | "StatefulSet"
        | "Job" => Some(&["spec", "template", "spec"]),
        "CronJob" => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
        _ => None,
    }
}

/// Image of one container.
struct Found {
    group: &'static str,
    container: String,
    pointer: String,
    image: ImageReference,
}

/// Builds the value of `images` for a resource (docs/spec/conditions.md §7.1); `None` if it
/// has no images, in which case the variable does not exist. `texts` and `symbols` are
/// those of the buffer's view.
pub(crate) fn extract_images(
    resource: NodeId,
    defaults: ImageDefaults<'_>,
    buffer: &mut DocumentBuffer,
    texts: Texts<'_>,
    symbols: &SymbolTable<'_>,
) -> Result<Option<NodeId>, ImagesError> {
    let found = find_images(&buffer.view(texts, *symbols), resource, defaults)?;
    if found.is_empty() {
        return Ok(None);
    }
    buffer.begin(Label::ITEM);
    for images in found.chunk_by(|a, b| a.group == b.group) {
        let group = images.first().map_or("", |image| image.group);
        let label = buffer.label(group, symbols)?;
        buffer.begin(label);
        for image in images {
            push_image(image, buffer, symbols)?;
        }
        // Of containers with the same name the last one is kept.
        buffer.finish_map(texts);
    }
    buffer.finish_map(texts);
    Ok(Some(buffer.take()?))
}

/// Full image reference of each container, by container name; empty if the images of the
/// resource are unknown. If a name occurs in several lists, `containers` takes precedence,
/// then `initContainers` (docs/spec/pod-security.md §11).
pub(crate) fn images_by_container(view: &View<'_>, resource: NodeId) -> HashMap<String, String> {
    let mut found = find_images(view, resource, ImageDefaults::KYVERNO).unwrap_or_default();
    let rank = |group: &str| match group {
        "containers" => 2,
        "initContainers" => 1,
        _ => 0,
    };
    // Of equal keys the last one is kept.
    found.sort_by_key(|image| rank(image.group));
    found
        .into_iter()
        .map(|image| (image.container, image.image.reference))
        .collect()
}

fn find_images(
    view: &View<'_>,
    resource: NodeId,
    defaults: ImageDefaults<'_>,
) -> Result<Vec<Found>, ImagesError> {
    let mut found = Vec::new();
    let kind = view.str(view.get_text(resource, b"kind"));
    let Some(path) = pod_spec_path(kind) else {
        return Ok(found);
    };
    let Some(pod_spec) = walk(view, resource, path)? else {
        return Ok(found);
    };
    for group in GROUPS {
        let containers = view.get_text(pod_spec, group.as_bytes());
        let is_map = match view.kind(containers) {
            None | Some(Kind::Null) => continue,
            Some(Kind::List) => false,
            Some(Kind::Map) => true,
            Some(Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::String) => {
                return Err(ImagesError::NotAList);
            }
        };
        for (index, container) in view.children(containers).enumerate() {
            let Some((name, image)) = name_and_image(view, container)? else {
                continue;
            };
            let place = if is_map {
                view.key_str(container).to_owned()
            } else {
                index.to_string()
            };
            found.push(Found {
                group,
                container: name.to_owned(),
                pointer: format!("/{}/{group}/{place}/image", path.join("/")),
                image: parse(image, defaults).map_err(|reason| ImagesError::Image {
                    image: image.to_owned(),
                    reason,
                })?,
            });
        }
    }
    Ok(found)
}

/// The map at the end of a path; `None` if it does not exist.
fn walk(view: &View<'_>, from: NodeId, path: &[&str]) -> Result<Option<NodeId>, ImagesError> {
    let mut node = from;
    for key in path {
        node = view.get_text(node, key.as_bytes());
        match view.kind(node) {
            None | Some(Kind::Null) => return Ok(None),
            Some(Kind::Map) => {}
            Some(
                Kind::False | Kind::True | Kind::Int | Kind::Float | Kind::String | Kind::List,
            ) => return Err(ImagesError::NotAMap),
        }
    }
    Ok(Some(node))
}

/// Name and image of a container; `None` if there is no container or no image.
fn name_and_image<'v>(
    view: &View<'v>,
    container: NodeId,
) -> Result<Option<(&'v str, &'v str)>, ImagesError> {
    match view.kind(container) {
        None | Some(Kind::Null) => return Ok(None),
        Some(Kind::Map) => {}
        Some(_) => return Err(ImagesError::NotAMap),
    }
    let name = view.get_text(container, b"name");
    if view.kind(name) != Some(Kind::String) {
        return Err(ImagesError::NoName);
    }
    let image = view.str(view.get_text(container, b"image"));
    Ok((!image.trim().is_empty()).then(|| (view.str(name), image)))
}

fn push_image(
    found: &Found,
    buffer: &mut DocumentBuffer,
    symbols: &SymbolTable<'_>,
) -> Result<(), BufferFull> {
    let image = &found.image;
    // `name`, `path` and `jsonPointer` are present even if empty.
    let fields = [
        ("registry", image.registry.as_str(), true),
        ("name", image.name(), false),
        ("path", &image.path, false),
        ("tag", &image.tag, true),
        ("digest", &image.digest, true),
        ("reference", &image.reference, true),
        ("referenceWithTag", &image.reference_with_tag, true),
        ("jsonPointer", &found.pointer, false),
    ];
    let label = buffer.label(&found.container, symbols)?;
    buffer.begin(label);
    for (key, text, is_optional) in fields {
        if !(is_optional && text.is_empty()) {
            let label = buffer.label(key, symbols)?;
            let text = buffer.copy_text(text.as_bytes())?;
            buffer.push_text(label, text);
        }
    }
    // No texts are needed: the keys are symbols or were copied, and are distinct.
    buffer.finish_map(Texts::NONE);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Numbers;
    use serde_json::{Value, json};

    /// The value of `images`, null if there is none.
    fn images_of(resource: &Value) -> Result<Value, String> {
        let symbols = SymbolTable::EMPTY;
        let mut buffer = DocumentBuffer::new();
        let resource = buffer
            .push_value(resource, &symbols, Numbers::Exact)
            .unwrap();
        let defaults = ImageDefaults::KYVERNO;
        match extract_images(resource, defaults, &mut buffer, Texts::NONE, &symbols) {
            Ok(Some(images)) => Ok(buffer.view(Texts::NONE, symbols).to_value(images)),
            Ok(None) => Ok(Value::Null),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn recorded_images() {
        let text = kpvm_golden::read("operators/images.json").unwrap();
        let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
        // Queries into the value are tested with JMESPath.
        let whole = rows.iter().filter(|row| row["query"] == "images");
        let unknown = "JMESPath query failed: Unknown key \"images\" in path";
        let mut count = 0;
        for row in whole {
            let expected = match row["error"].as_str() {
                None => Ok(row["result"].clone()),
                Some(error) if error == unknown => Ok(Value::Null),
                Some(error) => Err(error.to_owned()),
            };
            assert_eq!(images_of(&row["resource"]), expected, "{}", row["resource"]);
            count += 1;
        }
        println!("{count} of {} rows", rows.len());
        assert_eq!(count, 48);
    }

    #[test]
    fn fields_that_are_empty_are_absent() {
        // docs/spec/conditions.md §7.2: neither digest nor init containers.
        let images = images_of(&json!({
            "kind": "Pod",
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        }));
        let images = images.unwrap();
        assert!(images["containers"]["c"].get("digest").is_none());
        assert!(images.get("initContainers").is_none());
    }
}
