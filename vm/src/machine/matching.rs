//! The match operations (docs/spec/policies.md §4 and §5): compare facts about the request
//! and the object with the records of a bundle.

use kpvm_format::Tables;
use kpvm_format::instruction::immediate::{NamespaceSelection, Operations};
use kpvm_format::instruction::{KindListId, PairListId, SelectorId, SubjectListId, TextListId};
use kpvm_format::table::{Range, RequirementOperator, SubjectKind};

use super::Scene;
use crate::document::{Kind, NodeId, View};
use kpvm_semantics::labels;
use kpvm_semantics::wildcard;

/// The object that a rule evaluates, with the facts that matching needs.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'s> {
    /// Its root.
    pub(crate) root: NodeId,
    /// `metadata.name`.
    pub(crate) name: &'s str,
    /// The name that patterns match: `metadata.name`, or `metadata.generateName` if that is
    /// empty.
    pub(crate) matched_name: &'s str,
    /// `metadata.namespace` as written.
    pub(crate) namespace: &'s str,
    /// `kind` of the object itself.
    pub(crate) kind: &'s str,
    /// `metadata.labels`.
    pub(crate) labels: NodeId,
    /// `metadata.annotations`.
    pub(crate) annotations: NodeId,
    /// Whether values under `data` and `stringData` are secret.
    pub(crate) is_secret: bool,
    /// Name of the running rule, for messages.
    pub(crate) rule_name: &'s str,
}

impl<'s> Subject<'s> {
    /// The namespace that patterns match: for a Namespace its name.
    pub(crate) fn matched_namespace(&self) -> &'s str {
        match self.kind {
            "Namespace" => self.name,
            _ => self.namespace,
        }
    }

    /// A value that is not a Kubernetes object.
    pub(crate) fn of_value(root: NodeId) -> Self {
        Self {
            root,
            name: "",
            matched_name: "",
            namespace: "",
            kind: "",
            labels: NodeId::MISSING,
            annotations: NodeId::MISSING,
            is_secret: false,
            rule_name: "",
        }
    }
}

/// The request around the object.
#[derive(Clone, Copy, Default)]
pub(crate) struct RequestFacts<'s> {
    /// API group of the request's kind.
    pub(crate) group: &'s str,
    /// API version.
    pub(crate) version: &'s str,
    /// Kind.
    pub(crate) kind: &'s str,
    /// Name of the kind's resource, e.g. `pods`.
    pub(crate) resource: &'s str,
    /// Subresource, usually empty.
    pub(crate) subresource: &'s str,
    /// The operation as a set of one, empty if there is none.
    pub(crate) operation: Operations,
    /// Name of the operation.
    pub(crate) operation_name: &'s str,
    /// The new object.
    pub(crate) object: Option<NodeId>,
    /// The old object.
    pub(crate) old_object: Option<NodeId>,
    /// Whether the object is the old one, which is evaluated again.
    pub(crate) is_old: bool,
    /// `request.namespace`.
    pub(crate) namespace: &'s str,
    /// The user as the context shows it.
    pub(crate) context_user: Option<crate::engine::UserInfo<'s>>,
    /// Values that the host adds to the context.
    pub(crate) variables: Option<&'s serde_json::Value>,
    /// The user; `None` if the request has no user information at all.
    pub(crate) user: Option<crate::engine::UserInfo<'s>>,
    /// Labels of the namespace.
    pub(crate) namespace_labels: &'s [(&'s str, &'s str)],
    /// The namespace as an object, if it is known.
    pub(crate) namespace_object: Option<&'s serde_json::Value>,
    /// How the objects' numbers were read.
    pub(crate) numbers: crate::document::Numbers,
}

/// Whether a label selector selects the object.
pub(super) fn labels_match(selector: SelectorId, scene: &Scene<'_>) -> bool {
    let labels = SelectorLabels::Document(&scene.view, scene.subject.labels);
    selector_matches(selector, scene.tables, &labels)
}

/// Whether a selector selects the labels of the namespace, for objects to which that
/// applies.
pub(super) fn namespace_matches(
    selection: NamespaceSelection,
    selector: SelectorId,
    scene: &Scene<'_>,
) -> bool {
    match (scene.subject.kind, selection) {
        ("Namespace", selection) => selection == NamespaceSelection::Exception,
        ("", NamespaceSelection::Ordinary | NamespaceSelection::Exception) => true,
        _ => {
            let labels = SelectorLabels::Pairs(scene.request.namespace_labels);
            selector_matches(selector, scene.tables, &labels)
        }
    }
}

/// Whether the user has one of the roles.
pub(super) fn has_role(roles: TextListId, scene: &Scene<'_>) -> bool {
    let user = scene.request.user;
    user.is_some_and(|user| lists_meet(roles, user.roles, scene.tables))
}

/// Whether the user has one of the cluster roles.
pub(super) fn has_cluster_role(roles: TextListId, scene: &Scene<'_>) -> bool {
    let user = scene.request.user;
    user.is_some_and(|user| lists_meet(roles, user.cluster_roles, scene.tables))
}

/// Whether the user is one of the subjects.
pub(super) fn is_subject(subjects: SubjectListId, scene: &Scene<'_>) -> bool {
    // Without a user the name is empty, which a wildcard in `exclude` such as `*` can
    // match.
    subjects_match(
        subjects,
        &scene.request.user.unwrap_or_default(),
        scene.tables,
    )
}

/// Whether a list of kind selectors selects the request's kind and subresource.
pub(crate) fn kinds_match(
    list: KindListId,
    tables: &Tables<'_>,
    request: &RequestFacts<'_>,
) -> bool {
    let range = tables
        .kind_lists
        .get(list.index())
        .copied()
        .unwrap_or(Range::EMPTY);
    // Ephemeral containers are a change of the Pod itself (docs/spec/policies.md §4.1).
    let ephemeral = request.subresource == "ephemeralcontainers"
        && request.group.is_empty()
        && request.version == "v1"
        && request.kind == "Pod";
    Tables::range(tables.kind_selectors, range)
        .iter()
        .any(|selector| {
            let holds = |pattern, text: &str| {
                wildcard::matches(tables.text(pattern).as_bytes(), text.as_bytes())
            };
            holds(selector.kind, request.kind)
                && holds(selector.group, request.group)
                && holds(selector.version, request.version)
                && (holds(selector.subresource, request.subresource) || ephemeral)
        })
}

/// Whether one wildcard of a list matches the text.
pub(crate) fn wildcard_list_matches(list: TextListId, text: &str, tables: &Tables<'_>) -> bool {
    tables
        .text_list(list.0)
        .any(|pattern| wildcard::matches(pattern.as_bytes(), text.as_bytes()))
}

pub(super) fn annotations_match(list: PairListId, scene: &Scene<'_>) -> bool {
    let tables = scene.tables;
    let range = tables
        .pair_lists
        .get(list.index())
        .copied()
        .unwrap_or(Range::EMPTY);
    let labels = SelectorLabels::Document(&scene.view, scene.subject.annotations);
    Tables::range(tables.pairs, range).iter().all(|pair| {
        labels
            .find_wildcard(tables.text(pair.key), tables.text(pair.value))
            .is_some()
    })
}

fn lists_meet(list: TextListId, values: &[&str], tables: &Tables<'_>) -> bool {
    tables.text_list(list.0).any(|text| values.contains(&text))
}

fn subjects_match(
    list: SubjectListId,
    user: &crate::engine::UserInfo<'_>,
    tables: &Tables<'_>,
) -> bool {
    let range = tables
        .subject_lists
        .get(list.index())
        .copied()
        .unwrap_or(Range::EMPTY);
    Tables::range(tables.subjects, range).iter().any(|subject| {
        let holds =
            |text: &str| wildcard::matches(tables.text(subject.name).as_bytes(), text.as_bytes());
        match SubjectKind::ALL.get(usize::from(subject.kind)) {
            Some(SubjectKind::User) => holds(user.username),
            Some(SubjectKind::Group) => user.groups.iter().any(|group| holds(group)),
            Some(SubjectKind::Unknown) | None => false,
        }
    })
}

/// The labels to which a selector is applied.
pub(crate) enum SelectorLabels<'l> {
    /// A map of the document.
    Document(&'l View<'l>, NodeId),
    /// Pairs given by the host.
    Pairs(&'l [(&'l str, &'l str)]),
}

impl<'l> SelectorLabels<'l> {
    fn get(&self, key: &str) -> Option<&'l str> {
        match self {
            SelectorLabels::Document(view, map) => {
                let value = view.get_text(*map, key.as_bytes());
                (view.kind(value) == Some(Kind::String)).then(|| view.str(value))
            }
            SelectorLabels::Pairs(pairs) => pairs
                .iter()
                .find(|(name, _)| *name == key)
                .map(|&(_, value)| value),
        }
    }

    /// The first label, by key, that a pair of wildcards matches.
    fn find_wildcard(&self, key: &str, value: &str) -> Option<(&'l str, &'l str)> {
        let fits = |(name, text): &(&str, &str)| {
            wildcard::matches(key.as_bytes(), name.as_bytes())
                && wildcard::matches(value.as_bytes(), text.as_bytes())
        };
        match self {
            SelectorLabels::Document(view, map) => view
                .children(*map)
                .filter(|&member| view.kind(member) == Some(Kind::String))
                .map(|member| (view.key_str(member), view.str(member)))
                .filter(fits)
                .min(),
            SelectorLabels::Pairs(pairs) => pairs.iter().copied().filter(fits).min(),
        }
    }
}

/// docs/spec/policies.md §5.4: wildcard pairs are replaced by a label, then the selector is
/// Kubernetes'.
pub(crate) fn selector_matches(
    selector: SelectorId,
    tables: &Tables<'_>,
    labels: &SelectorLabels<'_>,
) -> bool {
    let Some(selector) = tables.selectors.get(selector.index()) else {
        return false;
    };
    if selector.malformed != 0 {
        return false;
    }
    let labels_hold = Tables::range(tables.pairs, selector.labels)
        .iter()
        .all(|pair| {
            let (key, value) = (tables.text(pair.key), tables.text(pair.value));
            if wildcard::contains_wildcard(key) || wildcard::contains_wildcard(value) {
                // If no label matches, `*` and `?` become `0`: such a label hardly exists.
                match labels.find_wildcard(key, value) {
                    Some((key, value)) => {
                        labels::is_valid_key(key) && labels::is_valid_value(value)
                    }
                    None => {
                        let literal = |text: &str| text.replace(['*', '?'], "0");
                        let (key, value) = (literal(key), literal(value));
                        labels::is_valid_key(&key)
                            && labels::is_valid_value(&value)
                            && labels.get(&key) == Some(&value)
                    }
                }
            } else {
                labels.get(key) == Some(value)
            }
        });
    labels_hold
        && Tables::range(tables.requirements, selector.requirements)
            .iter()
            .all(|requirement| {
                let found = labels.get(tables.text(requirement.key));
                let listed = || {
                    found.is_some_and(|found| {
                        tables
                            .text_list(requirement.values.get())
                            .any(|text| text == found)
                    })
                };
                match RequirementOperator::ALL.get(usize::from(requirement.operator)) {
                    Some(RequirementOperator::In) => listed(),
                    Some(RequirementOperator::NotIn) => found.is_none() || !listed(),
                    Some(RequirementOperator::Exists) => found.is_some(),
                    Some(RequirementOperator::DoesNotExist) => found.is_none(),
                    None => false,
                }
            })
}
