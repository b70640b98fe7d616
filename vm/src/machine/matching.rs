//! The match operations (docs/spec/policies.md §4 and 5): facts of the request and of the
//! object against the records of a bundle.

use kpvm_format::Tables;
use kpvm_format::instruction::Op;
use kpvm_format::table::{Range, RequirementOperator, SubjectKind};

use super::Scene;
use crate::document::{Kind, NodeId, View};
use kpvm_semantics::labels;
use kpvm_semantics::wildcard;

/// The object that a rule looks at, with the facts that matching asks for.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'s> {
    /// Its root.
    pub(crate) root: NodeId,
    /// `metadata.name`.
    pub(crate) name: &'s str,
    /// What name patterns look at: `metadata.name`, or `metadata.generateName` if that
    /// is empty.
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
    /// Name of the rule that runs, for messages.
    pub(crate) rule_name: &'s str,
}

impl<'s> Subject<'s> {
    /// What namespace patterns look at: of a Namespace its name.
    pub(crate) fn matched_namespace(&self) -> &'s str {
        match self.kind {
            "Namespace" => self.name,
            _ => self.namespace,
        }
    }

    /// A value that is no object of Kubernetes.
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
    /// Bit of the operation.
    pub(crate) operation: u8,
    /// Name of the operation.
    pub(crate) operation_name: &'s str,
    /// The new object.
    pub(crate) object: Option<NodeId>,
    /// The old object.
    pub(crate) old_object: Option<NodeId>,
    /// Whether the object is the old one, which is looked at again.
    pub(crate) is_old: bool,
    /// `request.namespace`.
    pub(crate) namespace: &'s str,
    /// The user as the context shows it.
    pub(crate) context_user: Option<crate::engine::UserInfo<'s>>,
    /// Values that the host adds to the context.
    pub(crate) variables: Option<&'s serde_json::Value>,
    /// The user; `None` when the request carries no user information at all.
    pub(crate) user: Option<crate::engine::UserInfo<'s>>,
    /// Labels of the namespace.
    pub(crate) namespace_labels: &'s [(&'s str, &'s str)],
    /// The namespace as an object, if it is known.
    pub(crate) namespace_object: Option<&'s serde_json::Value>,
    /// What became of the objects' numbers.
    pub(crate) numbers: crate::document::Numbers,
}

/// Whether a match operation holds.
pub(super) fn holds(op: Op, flag: u8, entry: u32, scene: &Scene<'_>) -> bool {
    let (tables, subject, request) = (scene.tables, scene.subject, scene.request);
    match op {
        Op::MatchKinds => kinds_match(entry, tables, request),
        Op::MatchOperations => flag & request.operation != 0,
        Op::MatchNames => wildcard_list_matches(entry, subject.matched_name, tables),
        Op::MatchNamespaces => wildcard_list_matches(entry, subject.matched_namespace(), tables),
        Op::MatchAnnotations => annotations_match(entry, scene),
        Op::MatchSelector => selector_matches(
            entry,
            tables,
            &SelectorLabels::Document(&scene.view, subject.labels),
        ),
        Op::MatchNamespaceSelector => {
            if subject.kind == "Namespace" {
                flag == 2
            } else if subject.kind.is_empty() && flag != 1 {
                true
            } else {
                selector_matches(
                    entry,
                    tables,
                    &SelectorLabels::Pairs(request.namespace_labels),
                )
            }
        }
        Op::MatchRoles => request
            .user
            .is_some_and(|user| lists_meet(entry, user.roles, tables)),
        Op::MatchClusterRoles => request
            .user
            .is_some_and(|user| lists_meet(entry, user.cluster_roles, tables)),
        // Without a user the name is empty, which `exclude` can describe, as does `*`.
        Op::MatchSubjects => subjects_match(entry, &request.user.unwrap_or_default(), tables),
        Op::JumpIfNoUser => request.user.is_some(),
        // `execute` hands over the operations above only.
        _ => false,
    }
}

/// Whether a list of kind selectors selects the request's kind and subresource.
pub(crate) fn kinds_match(list: u32, tables: &Tables<'_>, request: &RequestFacts<'_>) -> bool {
    let range = tables
        .kind_lists
        .get(list as usize)
        .copied()
        .unwrap_or(Range::EMPTY);
    // Ephemeral containers are a change of the Pod itself (section 4.1).
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

/// Whether one wildcard of a list describes the text.
pub(crate) fn wildcard_list_matches(list: u32, text: &str, tables: &Tables<'_>) -> bool {
    tables
        .text_list(list)
        .any(|pattern| wildcard::matches(pattern.as_bytes(), text.as_bytes()))
}

fn annotations_match(list: u32, scene: &Scene<'_>) -> bool {
    let tables = scene.tables;
    let range = tables
        .pair_lists
        .get(list as usize)
        .copied()
        .unwrap_or(Range::EMPTY);
    let labels = SelectorLabels::Document(&scene.view, scene.subject.annotations);
    Tables::range(tables.pairs, range).iter().all(|pair| {
        labels
            .find_wildcard(tables.text(pair.key), tables.text(pair.value))
            .is_some()
    })
}

fn lists_meet(list: u32, values: &[&str], tables: &Tables<'_>) -> bool {
    tables.text_list(list).any(|text| values.contains(&text))
}

fn subjects_match(list: u32, user: &crate::engine::UserInfo<'_>, tables: &Tables<'_>) -> bool {
    let range = tables
        .subject_lists
        .get(list as usize)
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

/// The labels that a selector is held against.
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

    /// The first label, by key, that a pair of wildcards describes.
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

/// Section 5.4: wildcard pairs take a label's place, then the selector is Kubernetes'.
pub(crate) fn selector_matches(
    selector: u32,
    tables: &Tables<'_>,
    labels: &SelectorLabels<'_>,
) -> bool {
    let Some(selector) = tables.selectors.get(selector as usize) else {
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
                // Without a label that fits, `*` and `?` become `0`: such a label is hardly there.
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
