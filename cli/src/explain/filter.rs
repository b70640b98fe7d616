//! Filters of `match` and `exclude` as text: what one asks for, from the tables of the
//! bundle, and what it found in the request.

use kpvm::engine::UserInfo;
use kpvm::engine::observer::Facts;
use kpvm_format::Tables;
use kpvm_format::instruction::{Instruction, Op};
use kpvm_format::table::{KindSelector, Pair, Range, RequirementOperator, Selector, SubjectKind};

/// What is found of the user where the request has none.
pub(super) const NO_USER: &str = "no user";

/// What the instruction of a filter asks for.
pub(crate) fn expected(tables: &Tables<'_>, op: Op, instruction: &Instruction) -> String {
    let number = instruction.c.get();
    let list = |lists: &[Range]| lists.get(number as usize).copied().unwrap_or(Range::EMPTY);
    match op {
        Op::MatchKinds => {
            let kinds = Tables::range(tables.kind_selectors, list(tables.kind_lists));
            join(kinds.iter().map(|kind| kind_selector(tables, kind)))
        }
        Op::MatchOperations => {
            let names = ["CREATE", "UPDATE", "DELETE", "CONNECT"].into_iter();
            let names = names.enumerate();
            let listed = names.filter(|(bit, _)| instruction.b & (1 << bit) != 0);
            join(listed.map(|(_, name)| name.to_owned()))
        }
        Op::MatchAnnotations => {
            let pairs = Tables::range(tables.pairs, list(tables.pair_lists));
            join(pairs.iter().map(|pair| show_pair(tables, pair)))
        }
        Op::MatchScope => match instruction.b {
            0 => "an object in a namespace".into(),
            _ => "an object in no namespace".into(),
        },
        Op::MatchSelector
        | Op::MatchNamespaceSelector
        | Op::MatchObjectLabels
        | Op::MatchNamespaceLabels => tables
            .selectors
            .get(number as usize)
            .map_or_else(String::new, |selector| show_selector(tables, selector)),
        Op::MatchSubjects => {
            let subjects = Tables::range(tables.subjects, list(tables.subject_lists));
            join(subjects.iter().map(|subject| {
                let name = tables.text(subject.name);
                match SubjectKind::ALL.get(usize::from(subject.kind)) {
                    Some(SubjectKind::User) => format!("user {name}"),
                    Some(SubjectKind::Group) => format!("group {name}"),
                    Some(SubjectKind::Unknown) | None => "an unknown kind of subject".into(),
                }
            }))
        }
        Op::MatchApiGroups => join(tables.text_list(number).map(|group| match group {
            "" => "the core group".to_owned(),
            group => group.to_owned(),
        })),
        // Names, namespaces, roles, cluster roles, and what resource rules list.
        _ => join(tables.text_list(number).map(str::to_owned)),
    }
}

/// What the request has where the filter looks.
pub(super) fn found(op: Op, facts: &Facts<'_>, limit: usize) -> String {
    let user = |show: fn(&UserInfo<'_>) -> String| facts.user.as_ref().map_or(NO_USER.into(), show);
    match op {
        Op::MatchKinds => {
            let parts = [facts.group, facts.version, facts.kind, facts.subresource];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            parts.join("/")
        }
        Op::MatchOperations => facts.operation.to_owned(),
        Op::MatchNames | Op::MatchResourceNames => or_none(facts.name, "no name"),
        Op::MatchNamespaces | Op::MatchScope => or_none(facts.namespace, "no namespace"),
        Op::MatchApiGroups => or_none(facts.group, "the core group"),
        Op::MatchApiVersions => facts.version.to_owned(),
        Op::MatchResources => match facts.subresource {
            "" => facts.resource.to_owned(),
            part => format!("{}/{part}", facts.resource),
        },
        Op::MatchAnnotations => facts.annotations.show(limit),
        Op::MatchSelector | Op::MatchObjectLabels => facts.labels.show(limit),
        Op::MatchNamespaceSelector | Op::MatchNamespaceLabels => match facts.namespace_labels {
            [] => "a namespace without known labels".into(),
            labels => join(labels.iter().map(|(key, value)| format!("{key}={value}"))),
        },
        Op::MatchRoles => user(|user| or_none(&user.roles.join(", "), "no role")),
        Op::MatchClusterRoles => {
            user(|user| or_none(&user.cluster_roles.join(", "), "no cluster role"))
        }
        Op::MatchSubjects => user(|user| {
            let groups = user.groups.iter().map(|group| format!("group {group}"));
            join(std::iter::once(format!("user {}", user.username)).chain(groups))
        }),
        _ => String::new(),
    }
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(", ")
}

fn or_none(text: &str, none: &str) -> String {
    let shown = if text.is_empty() { none } else { text };
    shown.to_owned()
}

/// As written, more or less: `Pod`, `apps/*/Deployment`, `Pod/exec`.
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
