//! The match constraints of admission policies: resource rules and label selectors
//! against the request (docs/spec/cel.md §6.3).

use kpvm_format::Tables;
use kpvm_format::instruction::Op;

use super::matching::{RequestFacts, SelectorLabels, selector_matches};
use super::{Scene, Subject};
use crate::document::NodeId;

/// The label that stands for a namespace of which nothing else is known.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Whether a match operation of resource rules holds.
pub(super) fn holds(op: Op, flag: u8, entry: u32, scene: &Scene<'_>) -> bool {
    let (tables, subject, request) = (scene.tables, scene.subject, scene.request);
    match op {
        Op::MatchApiGroups => lists(tables, entry, request.group),
        Op::MatchApiVersions => lists(tables, entry, request.version),
        Op::MatchResources => tables
            .text_list(entry)
            .any(|pattern| is_resource(pattern, request.resource, request.subresource)),
        Op::MatchResourceNames => tables.text_list(entry).any(|name| {
            if subject.name.is_empty() {
                subject.matched_name.starts_with(name)
            } else {
                subject.name == name
            }
        }),
        Op::MatchScope => {
            let is_cluster_scoped = is_namespace(request) || subject.namespace.is_empty();
            is_cluster_scoped == (flag != 0)
        }
        Op::MatchObjectLabels => {
            let sides = [request.object, request.old_object];
            sides.into_iter().any(|side| match side {
                None if flag == 0 => false,
                None => selector_matches(entry, tables, &SelectorLabels::Pairs(&[])),
                Some(object) => object_labels_match(entry, object, scene),
            })
        }
        Op::MatchNamespaceLabels => namespace_labels_match(entry, subject, scene),
        // `execute` hands over the operations above only.
        _ => false,
    }
}

fn lists(tables: &Tables<'_>, list: u32, text: &str) -> bool {
    tables
        .text_list(list)
        .any(|listed| listed == "*" || listed == text)
}

/// `pods`, `pods/log`, `pods/*`, `*/log`, `*` (no subresource) and `*/*`.
fn is_resource(pattern: &str, resource: &str, subresource: &str) -> bool {
    let (wanted, wanted_part) = pattern.split_once('/').unwrap_or((pattern, ""));
    (wanted == "*" || wanted == resource) && (wanted_part == "*" || wanted_part == subresource)
}

/// Whether the request is about a Namespace.
fn is_namespace(request: &RequestFacts<'_>) -> bool {
    request.resource == "namespaces"
}

fn object_labels_match(selector: u32, object: NodeId, scene: &Scene<'_>) -> bool {
    let metadata = scene.view.get_text(object, b"metadata");
    let labels = scene.view.get_text(metadata, b"labels");
    let labels = SelectorLabels::Document(&scene.view, labels);
    selector_matches(selector, scene.tables, &labels)
}

fn namespace_labels_match(selector: u32, subject: &Subject<'_>, scene: &Scene<'_>) -> bool {
    let (tables, request) = (scene.tables, scene.request);
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
