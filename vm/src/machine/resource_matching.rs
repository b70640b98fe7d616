//! The match constraints of admission policies: compares resource rules and label selectors
//! with the request (docs/spec/cel.md §6.3).

use kpvm_format::Tables;
use kpvm_format::instruction::immediate::ObjectScope;
use kpvm_format::instruction::{SelectorId, TextListId};

use super::Scene;
use super::matching::{RequestFacts, SelectorLabels, selector_matches};
use crate::document::NodeId;

/// The label that stands for a namespace about which nothing else is known.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Whether a list contains the text or `*`.
pub(super) fn lists(list: TextListId, text: &str, tables: &Tables<'_>) -> bool {
    tables
        .text_list(list.0)
        .any(|listed| listed == "*" || listed == text)
}

/// Whether the resource, with its subresource, is one of a list.
pub(super) fn resource_matches(resources: TextListId, scene: &Scene<'_>) -> bool {
    let request = scene.request;
    scene
        .tables
        .text_list(resources.0)
        .any(|pattern| is_resource(pattern, request.resource, request.subresource))
}

/// Whether the object's name is in a list, or its generateName begins with a name in it.
pub(super) fn name_matches(names: TextListId, scene: &Scene<'_>) -> bool {
    let subject = scene.subject;
    scene.tables.text_list(names.0).any(|name| {
        if subject.name.is_empty() {
            subject.matched_name.starts_with(name)
        } else {
            subject.name == name
        }
    })
}

/// Whether the object has a scope.
pub(super) fn scope_matches(scope: ObjectScope, scene: &Scene<'_>) -> bool {
    let is_cluster_scoped = is_namespace(scene.request) || scene.subject.namespace.is_empty();
    is_cluster_scoped == (scope == ObjectScope::Cluster)
}

/// Whether a selector selects the labels of the object or of the old object; `absent`: a
/// missing one counts as an object without labels.
pub(super) fn labels_match(absent: bool, selector: SelectorId, scene: &Scene<'_>) -> bool {
    let sides = [scene.request.object, scene.request.old_object];
    sides.into_iter().any(|side| match side {
        None if !absent => false,
        None => selector_matches(selector, scene.tables, &SelectorLabels::Pairs(&[])),
        Some(object) => object_labels_match(selector, object, scene),
    })
}

/// `pods`, `pods/log`, `pods/*`, `*/log`, `*` (no subresource) and `*/*`.
fn is_resource(pattern: &str, resource: &str, subresource: &str) -> bool {
    let (wanted, wanted_part) = pattern.split_once('/').unwrap_or((pattern, ""));
    (wanted == "*" || wanted == resource) && (wanted_part == "*" || wanted_part == subresource)
}

/// Whether the request concerns a Namespace.
fn is_namespace(request: &RequestFacts<'_>) -> bool {
    request.resource == "namespaces"
}

fn object_labels_match(selector: SelectorId, object: NodeId, scene: &Scene<'_>) -> bool {
    let metadata = scene.view.get_text(object, b"metadata");
    let labels = scene.view.get_text(metadata, b"labels");
    let labels = SelectorLabels::Document(&scene.view, labels);
    selector_matches(selector, scene.tables, &labels)
}

/// Whether a selector selects the labels of the namespace.
pub(super) fn namespace_matches(selector: SelectorId, scene: &Scene<'_>) -> bool {
    let (tables, request, subject) = (scene.tables, scene.request, scene.subject);
    if !is_namespace(request) && subject.namespace.is_empty() {
        return true;
    }
    let changes_namespace = matches!(request.operation_name, "CREATE" | "UPDATE");
    if is_namespace(request) && request.subresource.is_empty() && changes_namespace {
        let object = request.object.unwrap_or(NodeId::MISSING);
        return object_labels_match(selector, object, scene);
    }
    let is_known = request.namespace_object.is_some() || !request.namespace_labels.is_empty();
    let unknown = [(NAME_LABEL, subject.namespace)];
    let labels = if is_known {
        request.namespace_labels
    } else {
        &unknown
    };
    selector_matches(selector, tables, &SelectorLabels::Pairs(labels))
}

#[cfg(test)]
mod tests {
    use super::is_resource;

    /// docs/spec/cel.md §6.3.
    #[test]
    fn forms_of_resources() {
        for (pattern, pods, log) in [
            ("pods", true, false),
            ("pods/log", false, true),
            ("pods/*", true, true),
            ("*", true, false),
            ("*/*", true, true),
            ("*/log", false, true),
            ("*/scale", false, false),
            ("po*", false, false),
            ("services", false, false),
        ] {
            assert_eq!(is_resource(pattern, "pods", ""), pods, "{pattern}");
            assert_eq!(is_resource(pattern, "pods", "log"), log, "{pattern}");
        }
    }
}
