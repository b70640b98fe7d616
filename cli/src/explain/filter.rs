//! Filters of `match` and `exclude` as text: what a filter requires, from the tables of the
//! bundle, and what it found in the request.

use kpvm::engine::UserInfo;
use kpvm::engine::observer::Facts;
use kpvm_format::Tables;
use kpvm_format::criterion::Filter;
use kpvm_format::instruction::immediate::{ObjectScope, Operations};
use kpvm_format::table::{KindSelector, Pair, Range, RequirementOperator, Selector, SubjectKind};

/// Shown as found if the request has no user.
pub(super) const NO_USER: &str = "no user";

/// What a filter requires.
pub(crate) fn expected(tables: &Tables<'_>, filter: Filter) -> String {
    let list = |lists: &[Range], index: usize| lists.get(index).copied().unwrap_or(Range::EMPTY);
    match filter {
        Filter::Kinds(kinds) => {
            let kinds = list(tables.kind_lists, kinds.index());
            let kinds = Tables::range(tables.kind_selectors, kinds);
            join(kinds.iter().map(|kind| kind_selector(tables, kind)))
        }
        Filter::Operations(operations) => {
            let names = [
                (Operations::CREATE, "CREATE"),
                (Operations::UPDATE, "UPDATE"),
                (Operations::DELETE, "DELETE"),
                (Operations::CONNECT, "CONNECT"),
            ];
            let listed = names.iter().filter(|(one, _)| operations.has(*one));
            join(listed.map(|(_, name)| (*name).to_owned()))
        }
        Filter::Annotations(pairs) => {
            let pairs = Tables::range(tables.pairs, list(tables.pair_lists, pairs.index()));
            join(pairs.iter().map(|pair| show_pair(tables, pair)))
        }
        Filter::Scope(ObjectScope::Namespaced) => "an object in a namespace".into(),
        Filter::Scope(ObjectScope::Cluster) => "an object in no namespace".into(),
        Filter::Labels(selector) | Filter::NamespaceLabels(selector) => tables
            .selectors
            .get(selector.index())
            .map_or_else(String::new, |selector| show_selector(tables, selector)),
        Filter::Subjects(subjects) => {
            let subjects = list(tables.subject_lists, subjects.index());
            let subjects = Tables::range(tables.subjects, subjects);
            join(subjects.iter().map(|subject| {
                let name = tables.text(subject.name);
                match SubjectKind::ALL.get(usize::from(subject.kind)) {
                    Some(SubjectKind::User) => format!("user {name}"),
                    Some(SubjectKind::Group) => format!("group {name}"),
                    Some(SubjectKind::Unknown) | None => "an unknown kind of subject".into(),
                }
            }))
        }
        Filter::ApiGroups(groups) => join(tables.text_list(groups.0).map(|group| match group {
            "" => "the core group".to_owned(),
            group => group.to_owned(),
        })),
        Filter::Names(texts)
        | Filter::Namespaces(texts)
        | Filter::Roles(texts)
        | Filter::ClusterRoles(texts)
        | Filter::ApiVersions(texts)
        | Filter::Resources(texts) => join(tables.text_list(texts.0).map(str::to_owned)),
    }
}

/// The part of the request that the filter tests.
pub(super) fn found(filter: Filter, facts: &Facts<'_>, limit: usize) -> String {
    let user = |show: fn(&UserInfo<'_>) -> String| facts.user.as_ref().map_or(NO_USER.into(), show);
    match filter {
        Filter::Kinds(_) => {
            let parts = [facts.group, facts.version, facts.kind, facts.subresource];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            parts.join("/")
        }
        Filter::Operations(_) => facts.operation.to_owned(),
        Filter::Names(_) => or_none(facts.name, "no name"),
        Filter::Namespaces(_) | Filter::Scope(_) => or_none(facts.namespace, "no namespace"),
        Filter::ApiGroups(_) => or_none(facts.group, "the core group"),
        Filter::ApiVersions(_) => facts.version.to_owned(),
        Filter::Resources(_) => match facts.subresource {
            "" => facts.resource.to_owned(),
            part => format!("{}/{part}", facts.resource),
        },
        Filter::Annotations(_) => facts.annotations.show(limit),
        Filter::Labels(_) => facts.labels.show(limit),
        Filter::NamespaceLabels(_) => match facts.namespace_labels {
            [] => "a namespace without known labels".into(),
            labels => join(labels.iter().map(|(key, value)| format!("{key}={value}"))),
        },
        Filter::Roles(_) => user(|user| or_none(&user.roles.join(", "), "no role")),
        Filter::ClusterRoles(_) => {
            user(|user| or_none(&user.cluster_roles.join(", "), "no cluster role"))
        }
        Filter::Subjects(_) => user(|user| {
            let groups = user.groups.iter().map(|group| format!("group {group}"));
            join(std::iter::once(format!("user {}", user.username)).chain(groups))
        }),
    }
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(", ")
}

fn or_none(text: &str, none: &str) -> String {
    let shown = if text.is_empty() { none } else { text };
    shown.to_owned()
}

/// Close to the written form: `Pod`, `apps/*/Deployment`, `Pod/exec`.
fn kind_selector(tables: &Tables<'_>, selector: &KindSelector) -> String {
    let [group, version, kind, subresource] = [
        selector.group,
        selector.version,
        selector.kind,
        selector.subresource,
    ]
    .map(|text| tables.text(text));
    let mut shown = match (group, version) {
        ("*", "*") => kind.to_owned(),
        ("*", version) => format!("{version}/{kind}"),
        (group, version) => format!("{group}/{version}/{kind}"),
    };
    if !subresource.is_empty() {
        shown.push('/');
        shown.push_str(subresource);
    }
    shown
}

fn show_pair(tables: &Tables<'_>, pair: &Pair) -> String {
    format!("{}={}", tables.text(pair.key), tables.text(pair.value))
}

fn show_selector(tables: &Tables<'_>, selector: &Selector) -> String {
    if selector.malformed != 0 {
        return "a selector that is malformed and selects nothing".into();
    }
    let labels = Tables::range(tables.pairs, selector.labels);
    let labels = labels.iter().map(|pair| show_pair(tables, pair));
    let requirements = Tables::range(tables.requirements, selector.requirements);
    let requirements = requirements.iter().map(|requirement| {
        let key = tables.text(requirement.key);
        let values = join(
            tables
                .text_list(requirement.values.get())
                .map(str::to_owned),
        );
        match RequirementOperator::ALL.get(usize::from(requirement.operator)) {
            Some(RequirementOperator::In) => format!("{key} in ({values})"),
            Some(RequirementOperator::NotIn) => format!("{key} not in ({values})"),
            Some(RequirementOperator::Exists) => format!("{key} is there"),
            Some(RequirementOperator::DoesNotExist) | None => format!("{key} is not there"),
        }
    });
    let shown = join(labels.chain(requirements));
    if shown.is_empty() {
        "everything".into()
    } else {
        shown
    }
}
