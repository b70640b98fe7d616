//! Names of the objects in a request and their kinds, copied from the documents so that
//! values can be added to the document buffer while rules use the names.

use kpvm_semantics::resource_kind::make_plural;

use super::error::{EvaluateError, describe};
use super::request::GroupVersionKind;
use crate::document::{Kind, NodeId, View};
use crate::machine::Subject;

/// A range of the session's buffer of names.
pub(super) type NameRange = std::ops::Range<usize>;

/// Appends a name.
pub(super) fn push_name(names: &mut String, name: &str) -> NameRange {
    let start = names.len();
    names.push_str(name);
    start..names.len()
}

/// Turns the kind that begins at `start` into the name of its resource.
pub(super) fn plural_behind(names: &mut String, start: usize) -> NameRange {
    make_plural(names, start);
    start..names.len()
}

/// The facts about an object that matching needs; the names are copied so that values can
/// be added to the buffer while they are in use.
pub(super) struct ObjectNames {
    pub(super) root: NodeId,
    pub(super) name: NameRange,
    pub(super) matched_name: NameRange,
    pub(super) namespace: NameRange,
    pub(super) kind: NameRange,
    pub(super) labels: NodeId,
    pub(super) annotations: NodeId,
}

impl ObjectNames {
    pub(super) fn collect(view: &View<'_>, root: NodeId, names: &mut String) -> Self {
        let metadata = view.get_text(root, b"metadata");
        let text = |key: &[u8]| view.str(view.get_text(metadata, key));
        let name = push_name(names, text(b"name"));
        let matched_name = if name.is_empty() {
            push_name(names, text(b"generateName"))
        } else {
            name.clone()
        };
        Self {
            root,
            name,
            matched_name,
            namespace: push_name(names, text(b"namespace")),
            kind: push_name(names, view.str(view.get_text(root, b"kind"))),
            labels: view.get_text(metadata, b"labels"),
            annotations: view.get_text(metadata, b"annotations"),
        }
    }

    pub(super) fn namespace<'n>(&self, names: &'n str) -> &'n str {
        names.get(self.namespace.clone()).unwrap_or("")
    }

    pub(super) fn subject<'n>(&self, names: &'n str) -> Subject<'n> {
        let get = |range: &NameRange| names.get(range.clone()).unwrap_or("");
        let kind = get(&self.kind);
        Subject {
            root: self.root,
            name: get(&self.name),
            matched_name: get(&self.matched_name),
            namespace: get(&self.namespace),
            kind,
            labels: self.labels,
            annotations: self.annotations,
            is_secret: kind == "Secret",
            rule_name: "",
        }
    }
}

/// A kind, copied in the same way.
pub(super) struct KindNames {
    pub(super) group: NameRange,
    pub(super) version: NameRange,
    pub(super) kind: NameRange,
}

impl KindNames {
    pub(super) fn of(kind: GroupVersionKind<'_>, names: &mut String) -> Self {
        Self {
            group: push_name(names, kind.group),
            version: push_name(names, kind.version),
            kind: push_name(names, kind.kind),
        }
    }

    pub(super) fn get(self, names: &str) -> GroupVersionKind<'_> {
        let get = |range: NameRange| names.get(range).unwrap_or("");
        GroupVersionKind {
            group: get(self.group),
            version: get(self.version),
            kind: get(self.kind),
        }
    }
}

/// The kind that an object claims to be.
pub(super) fn kind_of<'v>(
    view: &View<'v>,
    object: NodeId,
) -> Result<GroupVersionKind<'v>, EvaluateError> {
    let kind = view.get_text(object, b"kind");
    if view.text(kind).is_empty() {
        let found = match view.kind(kind) {
            Some(Kind::String) => "an empty text",
            other => describe(other),
        };
        return Err(EvaluateError::NoKind { found });
    }
    let api_version = view.str(view.get_text(object, b"apiVersion"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if version.contains('/') {
        return Err(EvaluateError::ApiVersion {
            found: api_version.chars().take(64).collect(),
        });
    }
    Ok(GroupVersionKind {
        group,
        version,
        kind: view.str(kind),
    })
}
