//! Checks that labels and annotations in patterns are texts (docs/spec/policies.md §2.9).

use kpvm_syntax::tree::Tree;

use super::Report;
use crate::policy::model::Rule;
use crate::policy::read::field;

pub(super) fn check(rule: &Rule, report: &mut Report<'_>) {
    if let Some(validate) = field(&rule.tree, "validate") {
        check_body(validate, "pattern", report);
        let has_map_pattern =
            field(validate, "pattern").is_some_and(|tree| tree.as_map().is_some());
        if field(validate, "foreach").is_none() && !has_map_pattern {
            let patterns = field(validate, "anyPattern").and_then(Tree::as_list);
            for pattern in patterns.unwrap_or_default() {
                check_pattern(pattern, report);
            }
        }
    }
    if let Some(mutate) = field(&rule.tree, "mutate") {
        check_body(mutate, "patchStrategicMerge", report);
    }
}

/// The pattern of the first foreach with a map, otherwise the body's own.
fn check_body(body: &Tree, key: &str, report: &mut Report<'_>) {
    let pattern = match field(body, "foreach").and_then(Tree::as_list) {
        Some(entries) => entries
            .iter()
            .filter_map(|entry| field(entry, key))
            .find(|pattern| pattern.as_map().is_some()),
        None => field(body, key),
    };
    if let Some(pattern) = pattern {
        check_pattern(pattern, report);
    }
}

/// If a pattern has both places, Kyverno checks one of them at random; a policy that it may
/// reject is rejected here.
fn check_pattern(pattern: &Tree, report: &mut Report<'_>) {
    let template = ["spec", "template", "metadata"];
    let in_template = template.iter().try_fold(pattern, |tree, key| tree.get(key));
    for metadata in pattern.get("metadata").into_iter().chain(in_template) {
        for key in ["labels", "annotations"] {
            let values = metadata.get(key).and_then(Tree::as_map);
            for member in values.unwrap_or_default() {
                if member.value.as_str().is_none() {
                    let found = member.value.describe();
                    let message = format!("expected text in `{key}`, found {found}");
                    let hint = "put the value in double quotes";
                    report.error("label-not-text", member.value.span, message, hint);
                }
            }
        }
    }
}
