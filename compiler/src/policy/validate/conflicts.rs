//! Checks whether `exclude` removes everything that `match` selects, as far as Kyverno
//! detects it (docs/spec/policies.md §2.2.1).

use kpvm_syntax::tree::{Member, Tree, TreeValue};

use super::Report;
use crate::policy::model::{Filter, LabelRequirement, LabelSelector, Rule, Spanned};
use crate::policy::read::items;
use kpvm_semantics::wildcard::matches;

pub(super) fn check(rule: &Rule, report: &mut Report<'_>) {
    let Some(exclude) = rule.tree.get("exclude").filter(|tree| !tree.is_null()) else {
        return;
    };
    let nothing = Tree::new(TreeValue::Null, rule.tree.span);
    let included = rule.tree.get("match").unwrap_or(&nothing);
    if conflicts(rule, included, exclude) {
        report.error(
            "empty-match",
            exclude.span,
            "`exclude` takes away everything that `match` selects",
            "exclude less, and use any/all in both or in neither",
        );
    }
}

fn conflicts(rule: &Rule, included: &Tree, exclude: &Tree) -> bool {
    let filled = |tree: &Tree, key: &str| !items(tree, key).is_empty();
    if filled(exclude, "all") || filled(included, "all") {
        return false;
    }
    if filled(included, "any") && filled(exclude, "any") {
        let excluded: Vec<Tree> = items(exclude, "any").iter().map(canonical).collect();
        let mut filters = items(included, "any").iter();
        return filters.any(|filter| excluded.contains(&canonical(filter)));
    }
    if canonical(exclude).as_map() == Some(&[]) {
        return false;
    }
    let Some(excluded) = rule.exclude_block.as_ref().map(|block| &block.direct) else {
        return false;
    };
    !leaves_something(&rule.match_block.direct, excluded)
}

/// Direct fields: whether one of them shows that something remains.
fn leaves_something(included: &Filter, excluded: &Filter) -> bool {
    let (matched, taken) = (&included.resources, &excluded.resources);
    if outside(&included.roles, &excluded.roles)
        || outside(&included.cluster_roles, &excluded.cluster_roles)
        || outside(&included.subjects, &excluded.subjects)
    {
        return true;
    }
    if !taken.name.is_empty() && !matches(&taken.name, &matched.name) {
        return true;
    }
    if !taken.names.is_empty() {
        // If present, this field alone decides.
        let covered = |name: &String| taken.names.iter().any(|pattern| matches(pattern, name));
        return !matched.names.iter().any(covered);
    }
    let texts =
        |kinds: &[Spanned<String>]| Some(kinds.iter().map(|kind| kind.value.clone()).collect());
    let namespaces = |list: &[String]| Some(list.to_vec());
    let kinds_outside = outside::<String>(&texts(&matched.kinds), &texts(&taken.kinds));
    outside(
        &namespaces(&matched.namespaces),
        &namespaces(&taken.namespaces),
    ) || kinds_outside
        || selector_outside(&matched.selector, &taken.selector)
        || selector_outside(&matched.namespace_selector, &taken.namespace_selector)
        || annotations_differ(&matched.annotations, &taken.annotations)
}

/// Whether the exclude list is present and does not cover the whole match list.
fn outside<T: PartialEq>(included: &Option<Vec<T>>, excluded: &Option<Vec<T>>) -> bool {
    let included = included.as_deref().unwrap_or_default();
    let excluded = excluded.as_deref().unwrap_or_default();
    !excluded.is_empty()
        && (included.is_empty() || !included.iter().all(|one| excluded.contains(one)))
}

fn selector_outside(included: &Option<LabelSelector>, excluded: &Option<LabelSelector>) -> bool {
    let (included, excluded) = match (included, excluded) {
        (None, None) => return false,
        (None, Some(_)) | (Some(_), None) => return true,
        (Some(included), Some(excluded)) => (included, excluded),
    };
    let expressions = |selector: &LabelSelector| -> Option<Vec<LabelRequirement>> {
        Some(selector.match_expressions.clone())
    };
    let labels = |selector: &LabelSelector| Some(selector.match_labels.clone());
    outside(&expressions(included), &expressions(excluded))
        || outside(&labels(included), &labels(excluded))
}

type Annotations = Option<Vec<(String, String)>>;

fn annotations_differ(included: &Annotations, excluded: &Annotations) -> bool {
    let sorted = |annotations: &Annotations| {
        annotations.clone().map(|mut annotations| {
            annotations.sort();
            annotations
        })
    };
    sorted(included) != sorted(excluded)
}

/// Canonical form: equal for two blocks if Kyverno's typed values are deeply equal. The
/// order of keys, nulls, empty texts and an empty `resources` do not count; an explicit
/// empty list does.
pub(super) fn canonical(tree: &Tree) -> Tree {
    let value = match &tree.value {
        TreeValue::Map(members) => {
            let mut members: Vec<Member> = members
                .iter()
                .map(|member| Member {
                    value: canonical(&member.value),
                    ..member.clone()
                })
                .filter(|member| !is_zero(member))
                .collect();
            members.sort_by(|left, right| left.key.cmp(&right.key));
            TreeValue::Map(members)
        }
        TreeValue::List(items) => TreeValue::List(items.iter().map(canonical).collect()),
        TreeValue::Null
        | TreeValue::Bool(_)
        | TreeValue::Int(_)
        | TreeValue::Float(_)
        | TreeValue::String(_) => tree.value.clone(),
    };
    Tree::new(value, tree.span)
}

fn is_zero(member: &Member) -> bool {
    const TEXT_FIELDS: [&str; 4] = ["name", "namespace", "kind", "apiGroup"];
    member.value.is_null()
        || (TEXT_FIELDS.contains(&&*member.key) && member.value.as_str() == Some(""))
        || (&*member.key == "resources" && member.value.as_map() == Some(&[]))
}
