//! `match` and `exclude` (docs/spec/policies.md §4, §5), and the filters of exceptions (§9).

use std::collections::BTreeMap;

use kpvm_compiler::policy::model::{
    Filter, LabelSelector, MatchBlock, ResourceDescription, Subject,
};
use kpvm_semantics::labels::{is_valid_key, is_valid_value};
use kpvm_semantics::wildcard::{contains_wildcard, matches as wildcard};
use serde_json::Value;

use crate::request::{User, metadata_map, metadata_text, text_at};

/// What a block is matched with.
pub(crate) struct Candidate<'r> {
    pub(crate) object: &'r Value,
    pub(crate) gvk: &'r [String; 3],
    pub(crate) subresource: &'r str,
    pub(crate) operation: &'r str,
    pub(crate) user: &'r User,
    pub(crate) namespace_labels: &'r BTreeMap<String, String>,
}

/// Whether a rule applies (docs/spec/policies.md §5.2); the caller checks the namespace of
/// the policy.
pub(crate) fn rule_matches(
    matched: &MatchBlock,
    excluded: Option<&MatchBlock>,
    candidate: &Candidate<'_>,
) -> bool {
    let holds = |filter: &Filter| match_filter_holds(filter, candidate);
    let is_matched = match shape(matched) {
        Shape::Any(filters) => filters.iter().any(holds),
        Shape::All(filters) => filters.iter().all(holds),
        Shape::Direct(filter) => holds(filter),
    };
    is_matched && !excluded.is_some_and(|block| is_excluded(block, candidate))
}

enum Shape<'b> {
    Any(&'b [Filter]),
    All(&'b [Filter]),
    Direct(&'b Filter),
}

/// `any` if it is not empty, else `all` if it is not empty, else the direct form
/// (docs/spec/policies.md §5.1).
fn shape(block: &MatchBlock) -> Shape<'_> {
    match (&block.any, &block.all) {
        (Some(any), _) if !any.is_empty() => Shape::Any(any),
        (_, Some(all)) if !all.is_empty() => Shape::All(all),
        _ => Shape::Direct(&block.direct),
    }
}

fn is_excluded(block: &MatchBlock, candidate: &Candidate<'_>) -> bool {
    let excludes = |filter: &Filter| !is_empty(filter) && constraints_hold(filter, candidate, USE);
    match shape(block) {
        Shape::Any(filters) => filters.iter().any(excludes),
        Shape::All(filters) => filters.iter().all(excludes),
        Shape::Direct(filter) => excludes(filter),
    }
}

/// A filter of `match`: without information about the user its part is dropped
/// (docs/spec/policies.md §5.2).
fn match_filter_holds(filter: &Filter, candidate: &Candidate<'_>) -> bool {
    let mut filter = filter.clone();
    if candidate.user.is_empty() {
        (filter.roles, filter.cluster_roles, filter.subjects) = (None, None, None);
    }
    !is_empty(&filter) && constraints_hold(&filter, candidate, USE)
}

/// No constraint at all; an explicit empty list about the user is one
/// (docs/spec/policies.md §5.2, edge).
fn is_empty(filter: &Filter) -> bool {
    let has_user = filter.roles.is_some() || filter.cluster_roles.is_some();
    has_no_resources(&filter.resources) && !has_user && filter.subjects.is_none()
}

fn has_no_resources(resources: &ResourceDescription) -> bool {
    let no_lists = resources.kinds.is_empty()
        && resources.names.is_empty()
        && resources.namespaces.is_empty()
        && resources.operations.is_empty();
    no_lists
        && resources.name.is_empty()
        && resources.annotations.as_ref().is_none_or(Vec::is_empty)
        && resources.selector.is_none()
        && resources.namespace_selector.is_none()
}

/// Whether the filters of an exception cover the resource (docs/spec/policies.md §9).
pub(crate) fn exception_matches(block: &MatchBlock, candidate: &Candidate<'_>) -> bool {
    let holds = |filter: &Filter| {
        let lists = [&filter.roles, &filter.cluster_roles];
        let no_user = lists
            .iter()
            .all(|list| list.as_ref().is_none_or(Vec::is_empty))
            && filter.subjects.as_ref().is_none_or(Vec::is_empty);
        !(has_no_resources(&filter.resources) && no_user)
            && constraints_hold(filter, candidate, IGNORE)
    };
    match shape(block) {
        Shape::Any(filters) => filters.iter().any(holds),
        Shape::All(filters) => filters.iter().all(holds),
        Shape::Direct(_) => false,
    }
}

/// Whether operations count, and whether a namespace selector fails for Namespaces:
/// exceptions ignore both (docs/spec/policies.md §9).
type Strictness = bool;
const USE: Strictness = true;
const IGNORE: Strictness = false;

/// All constraints of one filter (docs/spec/policies.md §5.3).
fn constraints_hold(filter: &Filter, candidate: &Candidate<'_>, strictness: Strictness) -> bool {
    let object = candidate.object;
    let resources = &filter.resources;
    let operations = &resources.operations;
    if strictness == USE
        && !operations.is_empty()
        && !operations
            .iter()
            .any(|operation| operation == candidate.operation)
    {
        return false;
    }
    let kinds: Vec<&str> = resources
        .kinds
        .iter()
        .map(|kind| kind.value.as_str())
        .collect();
    let name = match metadata_text(object, "name") {
        "" => metadata_text(object, "generateName"),
        name => name,
    };
    let is_namespace = text_at(object, "kind") == "Namespace";
    let namespace = match is_namespace {
        true => metadata_text(object, "name"),
        false => metadata_text(object, "namespace"),
    };
    let annotations = metadata_map(object, "annotations");
    let has_annotation = |(key, value): &(String, String)| {
        let mut all = annotations.iter();
        all.any(|(found, text)| wildcard(key, found) && wildcard(value, text))
    };
    let labels = owned(&metadata_map(object, "labels"));
    let some_wildcard = |patterns: &[String], text: &str| {
        patterns.is_empty() || patterns.iter().any(|pattern| wildcard(pattern, text))
    };
    (kinds.is_empty() || kinds.iter().any(|kind| kind_matches(kind, candidate)))
        && (resources.name.is_empty() || wildcard(&resources.name, name))
        && some_wildcard(&resources.names, name)
        && some_wildcard(&resources.namespaces, namespace)
        && resources.annotations.iter().flatten().all(has_annotation)
        && resources
            .selector
            .as_ref()
            .is_none_or(|one| selects(one, &labels))
        && resources
            .namespace_selector
            .as_ref()
            .is_none_or(|selector| {
                namespace_selects(selector, &kinds, candidate, is_namespace, strictness)
            })
        && user_holds(filter, candidate.user)
}

fn owned(labels: &BTreeMap<&str, &str>) -> BTreeMap<String, String> {
    let labels = labels.iter();
    labels
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// docs/spec/policies.md §5.5; exceptions: §9.
fn namespace_selects(
    selector: &LabelSelector,
    kinds: &[&str],
    candidate: &Candidate<'_>,
    is_namespace: bool,
    strictness: Strictness,
) -> bool {
    if is_namespace {
        return strictness == IGNORE;
    }
    let has_no_kind = text_at(candidate.object, "kind").is_empty();
    if has_no_kind && (strictness == IGNORE || !kinds.contains(&"*")) {
        return true;
    }
    selects(selector, candidate.namespace_labels)
}

/// Roles, cluster roles and subjects, all ANDed (docs/spec/policies.md §5.3).
fn user_holds(filter: &Filter, user: &User) -> bool {
    let shares = |wanted: &Option<Vec<String>>, given: &[String]| {
        let wanted = wanted.as_deref().unwrap_or_default();
        wanted.is_empty() || wanted.iter().any(|one| given.contains(one))
    };
    let subjects = filter.subjects.as_deref().unwrap_or_default();
    shares(&filter.roles, &user.roles)
        && shares(&filter.cluster_roles, &user.cluster_roles)
        && (subjects.is_empty() || subjects.iter().any(|one| subject_matches(one, user)))
}

fn subject_matches(subject: &Subject, user: &User) -> bool {
    match subject.kind.as_str() {
        "ServiceAccount" => {
            let account = format!(
                "system:serviceaccount:{}:{}",
                subject.namespace, subject.name
            );
            wildcard(account, &user.name)
        }
        "Group" => user
            .groups
            .iter()
            .any(|group| wildcard(&subject.name, group)),
        "User" => wildcard(&subject.name, &user.name),
        _ => false,
    }
}

/// An entry of `kinds` (docs/spec/policies.md §4, §4.1).
fn kind_matches(selector: &str, candidate: &Candidate<'_>) -> bool {
    let [group, version, kind] = candidate.gvk;
    let [
        wanted_group,
        wanted_version,
        wanted_kind,
        wanted_subresource,
    ] = parse_kind(selector);
    let is_ephemeral = [group.as_str(), version, kind] == ["", "v1", "Pod"]
        && candidate.subresource == "ephemeralcontainers";
    wildcard(wanted_group, group)
        && wildcard(wanted_version, version)
        && wildcard(wanted_kind, kind)
        && (wildcard(wanted_subresource, candidate.subresource) || is_ephemeral)
}

/// Group, version, kind and subresource (docs/spec/policies.md §4).
fn parse_kind(selector: &str) -> [&str; 4] {
    let (start, last) = selector.rsplit_once('/').unwrap_or(("", selector));
    let mut parts: Vec<&str> = match selector.contains('/') {
        true => start.split('/').collect(),
        false => Vec::new(),
    };
    parts.extend(last.split('.'));
    match *parts.as_slice() {
        [kind] => ["*", "*", kind, ""],
        ["*", "*"] => ["*", "*", "*", "*"],
        ["*", second] if second == second.to_lowercase() => ["*", "*", "*", second],
        [version, kind] if is_version(version) => ["*", version, kind, ""],
        [kind, subresource] => ["*", "*", kind, subresource],
        [version, kind, subresource] if is_version(version) => ["*", version, kind, subresource],
        [group, version, kind] => [group, version, kind, ""],
        [group, version, kind, subresource] => [group, version, kind, subresource],
        _ => [""; 4],
    }
}

/// `^(v\d+((alpha|beta)\d+)?|\*)$`
fn is_version(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_numbered = |rest: &str| {
        let stages = ["alpha", "beta"];
        let mut stages = stages.iter().filter_map(|stage| rest.split_once(stage));
        digits(rest) || stages.any(|(major, minor)| digits(major) && digits(minor))
    };
    text == "*" || text.strip_prefix('v').is_some_and(is_numbered)
}

/// A label selector (docs/spec/policies.md §5.4); a malformed one selects nothing.
pub(crate) fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let expand = |(key, value): &(String, String)| -> (String, String) {
        if !contains_wildcard(key) && !contains_wildcard(value) {
            return (key.clone(), value.clone());
        }
        let mut found = labels.iter();
        let found = found.find(|(name, text)| wildcard(key, name) && wildcard(value, text));
        match found {
            Some((name, text)) => (name.clone(), text.clone()),
            None => (without_wildcards(key), without_wildcards(value)),
        }
    };
    // Of two pairs for one label, Kyverno keeps any; here both have to hold.
    let pairs: Vec<(String, String)> = selector.match_labels.iter().map(expand).collect();
    let well_formed = pairs
        .iter()
        .all(|(key, value)| is_valid_key(key) && is_valid_value(value));
    if !well_formed {
        return false;
    }
    let pairs_hold = pairs
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value));
    let mut all_hold = pairs_hold;
    for requirement in &selector.match_expressions {
        let values = &requirement.values;
        let found = labels.get(&requirement.key);
        let is_listed = found.is_some_and(|value| values.contains(value));
        let values_are_valid = values.iter().all(|value| is_valid_value(value));
        let (well_formed, holds) = match requirement.operator.as_str() {
            "In" => (!values.is_empty(), is_listed),
            "NotIn" => (!values.is_empty(), !is_listed),
            "Exists" => (values.is_empty(), found.is_some()),
            "DoesNotExist" => (values.is_empty(), found.is_none()),
            _ => return false,
        };
        if !well_formed || !values_are_valid || !is_valid_key(&requirement.key) {
            return false;
        }
        all_hold &= holds;
    }
    all_hold
}

/// Every wildcard becomes `0`, so that the pair matches nothing (docs/spec/policies.md
/// §5.4).
fn without_wildcards(text: &str) -> String {
    text.replace(['*', '?'], "0")
}
