//! Metadata that an API server accepts in a new object (`ValidateObjectMeta` in
//! `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`).

use kpvm_semantics::labels;
use kpvm_syntax::tree::{Tree, TreeValue};

use super::{Checker, quoted, table, visit};
use crate::policy::model::PolicyKind;
use crate::policy::read::{DocumentKind, bool_of, document_kind, field, items, text_of};

/// Bytes of all annotations together.
const ANNOTATION_BYTES: usize = 256 << 10;

pub(super) fn check(tree: &Tree, checker: &mut Checker<'_>) {
    let nothing = Tree::new(TreeValue::Null, tree.span);
    let metadata = field(tree, "metadata").unwrap_or(&nothing);
    check_name(tree, metadata, checker);
    check_labels(metadata, checker);
    check_annotations(metadata, checker);
    check_owners(metadata, checker);
    checker.check(metadata, "metadata", &table::METADATA);
    visit(
        metadata,
        "finalizers[]",
        "metadata",
        &mut |finalizer, shown| {
            let name = finalizer.as_str().unwrap_or_default();
            if !labels::is_valid_key(name) {
                let message = format!(
                    "expected a name like `example.com/name` at `{shown}`, found {}",
                    quoted(name)
                );
                checker.refuse("bad-finalizer", finalizer.span, message, REFUSED);
            }
        },
    );
}

const REFUSED: &str = "an API server refuses the document";

fn check_name(tree: &Tree, metadata: &Tree, checker: &mut Checker<'_>) {
    // The readers of the other kinds report a missing name themselves.
    let reports_it = matches!(
        document_kind(tree),
        DocumentKind::Policy(_) | DocumentKind::PolicyException | DocumentKind::CelException
    );
    // No name is generated without a server.
    let name = text_of(metadata, "name");
    if name.is_empty() && reports_it {
        checker.missing(metadata.span, "metadata", "name");
    }
    if !name.is_empty() && !labels::is_dns_subdomain(&name) {
        let message = format!(
            "expected a name of lower-case letters, digits, `-` and `.` at `metadata.name`, found {}",
            quoted(&name)
        );
        let span = field(metadata, "name").map_or(metadata.span, |tree| tree.span);
        let hint = "use at most 253 of them, with a letter or digit at both ends of each part";
        checker.refuse("bad-name", span, message, hint);
    }
    let namespace = text_of(metadata, "namespace");
    let is_label = namespace.len() <= 63 && !namespace.contains('.');
    let is_fine = namespace.is_empty() || is_label && labels::is_dns_subdomain(&namespace);
    if is_namespaced(tree) && !is_fine {
        let message = format!(
            "expected a name of lower-case letters, digits and `-` at `metadata.namespace`, found {}",
            quoted(&namespace)
        );
        let span = field(metadata, "namespace").map_or(metadata.span, |tree| tree.span);
        checker.refuse("bad-name", span, message, "use at most 63 of them");
    }
}

/// Of other kinds the namespace is ignored here.
fn is_namespaced(tree: &Tree) -> bool {
    match document_kind(tree) {
        DocumentKind::Policy(kind) => kind == PolicyKind::Policy,
        DocumentKind::ValidatingPolicy => text_of(tree, "kind") == "NamespacedValidatingPolicy",
        DocumentKind::PolicyException | DocumentKind::CelException => true,
        _ => false,
    }
}

fn check_labels(metadata: &Tree, checker: &mut Checker<'_>) {
    let labels = field(metadata, "labels").and_then(Tree::as_map);
    for member in labels.unwrap_or_default() {
        if !labels::is_valid_key(&member.key) {
            let message = format!(
                "expected a label key in `metadata.labels`, found {}",
                quoted(&member.key)
            );
            checker.refuse("bad-label", member.key_span, message, REFUSED);
        }
        if let Some(value) = member.value.as_str()
            && !labels::is_valid_value(value)
        {
            let message = format!(
                "expected a label value at `metadata.labels.{}`, found {}",
                member.key,
                quoted(value)
            );
            let hint =
                "use at most 63 letters, digits and `-_.`, with a letter or digit at both ends";
            checker.refuse("bad-label", member.value.span, message, hint);
        }
    }
}

fn check_annotations(metadata: &Tree, checker: &mut Checker<'_>) {
    let Some(annotations) = field(metadata, "annotations") else {
        return;
    };
    let mut bytes = 0;
    for member in annotations.as_map().unwrap_or_default() {
        bytes += member.key.len() + member.value.as_str().map_or(0, str::len);
        if !labels::is_valid_key(&member.key.to_lowercase()) {
            let message = format!(
                "expected an annotation key in `metadata.annotations`, found {}",
                quoted(&member.key)
            );
            checker.refuse("bad-annotation", member.key_span, message, REFUSED);
        }
    }
    if bytes > ANNOTATION_BYTES {
        let message =
            format!("expected at most {ANNOTATION_BYTES} bytes of annotations, found {bytes}");
        checker.refuse("bad-annotation", annotations.span, message, REFUSED);
    }
}

fn check_owners(metadata: &Tree, checker: &mut Checker<'_>) {
    let mut controllers = 0;
    for (index, owner) in items(metadata, "ownerReferences").iter().enumerate() {
        let shown = format!("metadata.ownerReferences[{index}]");
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text_of(owner, key).is_empty() {
                checker.missing(owner.span, &shown, key);
            }
        }
        if text_of(owner, "apiVersion") == "v1" && text_of(owner, "kind") == "Event" {
            let message = format!("an Event at `{shown}` owns nothing");
            checker.refuse("bad-owner", owner.span, message, REFUSED);
        }
        controllers += usize::from(bool_of(owner, "controller", false));
        if controllers == 2 {
            let message = format!("there is a second controller at `{shown}`");
            checker.refuse(
                "bad-owner",
                owner.span,
                message,
                "an object has one controller",
            );
            return;
        }
    }
}
