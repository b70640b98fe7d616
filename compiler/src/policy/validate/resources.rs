//! Checks match blocks and conditions of computed rules (docs/spec/policies.md §2.6).

use kpvm_syntax::tree::{Tree, TreeValue};

use super::Report;
use super::conflicts::canonical;
use super::structure::span_at;
use crate::policy::condition::{AnyAll, Condition, Conditions};
use crate::policy::model::Rule;
use crate::policy::read::{field, items};

/// Every operator that Kyverno's offline check accepts.
const OPERATORS: [&str; 18] = [
    "Equal",
    "Equals",
    "NotEqual",
    "NotEquals",
    "In",
    "AnyIn",
    "AllIn",
    "NotIn",
    "AnyNotIn",
    "AllNotIn",
    "GreaterThanOrEquals",
    "GreaterThan",
    "LessThanOrEquals",
    "LessThan",
    "DurationGreaterThanOrEquals",
    "DurationGreaterThan",
    "DurationLessThanOrEquals",
    "DurationLessThan",
];
const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

pub(super) fn check(rule: &Rule, report: &mut Report<'_>) {
    for key in ["match", "exclude"] {
        if let Some(block) = field(&rule.tree, key) {
            check_mixed_forms(block, report);
        }
    }
    if let Some(block) = field(&rule.tree, "match") {
        check_resources_given(block, report);
    }
    let deny = rule
        .validate
        .as_ref()
        .and_then(|validate| validate.deny.as_ref());
    let conditions = deny.and_then(|deny| field(deny, "conditions"));
    for tree in rule.preconditions.iter().chain(conditions) {
        let Ok(block) = Conditions::read(tree) else {
            continue;
        };
        for condition in block.iter() {
            check_condition(condition, report);
            check_operator(condition, report);
        }
    }
    let foreach = rule
        .validate
        .as_ref()
        .and_then(|validate| validate.foreach.as_ref());
    check_foreach(foreach, report);
}

fn check_mixed_forms(block: &Tree, report: &mut Report<'_>) {
    let uses_lists = ["any", "all"]
        .iter()
        .any(|key| !items(block, key).is_empty());
    if uses_lists && !resources_are_empty(block) {
        report.error(
            "mixed-forms",
            span_at(block, &["resources"]),
            "`resources` cannot stand beside `any` or `all`",
            "move it into a filter of `any` or `all`",
        );
    }
}

fn resources_are_empty(filter: &Tree) -> bool {
    field(filter, "resources").is_none_or(|tree| canonical(tree).as_map() == Some(&[]))
}

fn check_resources_given(block: &Tree, report: &mut Report<'_>) {
    let lists = [items(block, "any"), items(block, "all")];
    let filters = lists.into_iter().find(|list| !list.is_empty());
    for filter in filters.unwrap_or(std::slice::from_ref(block)) {
        if resources_are_empty(filter) {
            report.error(
                "no-resources",
                filter.span,
                "a filter of `match` must say which resources it selects",
                "add `resources.kinds`",
            );
        }
    }
}

fn check_foreach(foreach: Option<&Tree>, report: &mut Report<'_>) {
    for entry in foreach.and_then(Tree::as_list).unwrap_or_default() {
        let preconditions = field(entry, "preconditions")
            .and_then(|tree| AnyAll::read(tree).ok())
            .map(Conditions::AnyAll);
        let deny = field(entry, "deny")
            .and_then(|deny| field(deny, "conditions"))
            .and_then(|tree| Conditions::read(tree).ok());
        for block in preconditions.iter().chain(&deny) {
            for condition in block.iter() {
                check_operator(condition, report);
            }
        }
        // Recursion is bounded by the depth of the document.
        check_foreach(field(entry, "foreach"), report);
    }
}

fn check_condition(condition: &Condition, report: &mut Report<'_>) {
    let missing: Vec<&str> = [
        ("key", condition.key.is_none()),
        ("operator", condition.operator.value.is_empty()),
        ("value", condition.value.is_none()),
    ]
    .into_iter()
    .filter_map(|(name, missing)| missing.then_some(name))
    .collect();
    if !missing.is_empty() {
        let message = format!("a condition lacks {}", missing.join(" and "));
        let hint = "a condition has `key`, `operator` and `value`";
        return report.error("incomplete-condition", condition.span, message, hint);
    }
    let key = condition
        .key
        .as_ref()
        .and_then(Tree::as_str)
        .unwrap_or_default();
    if let (true, Some(value)) = (
        key.replace(' ', "") == "{{request.operation}}",
        &condition.value,
    ) {
        check_operation_value(value, report);
    }
}

/// The request operation is only compared with operations.
fn check_operation_value(value: &Tree, report: &mut Report<'_>) {
    let is_variable =
        |text: &str| text.len() >= 4 && text.starts_with("{{") && text.ends_with("}}");
    let wrong = match &value.value {
        TreeValue::String(text) if is_variable(text) || OPERATIONS.contains(&&**text) => None,
        TreeValue::List(items) => items
            .iter()
            .find(|item| !item.as_str().is_some_and(|text| OPERATIONS.contains(&text))),
        TreeValue::Null
        | TreeValue::Bool(_)
        | TreeValue::Int(_)
        | TreeValue::Float(_)
        | TreeValue::String(_)
        | TreeValue::Map(_) => Some(value),
    };
    if let Some(wrong) = wrong {
        report.error(
            "unknown-operation",
            wrong.span,
            format!(
                "expected a request operation as text, found {}",
                shown(wrong)
            ),
            "the operations are CREATE, UPDATE, DELETE and CONNECT",
        );
    }
}

fn shown(tree: &Tree) -> String {
    match tree.as_str() {
        Some(text) => format!("{text:?}"),
        None => tree.describe().to_owned(),
    }
}

fn check_operator(condition: &Condition, report: &mut Report<'_>) {
    let operator = condition.operator.value.as_str();
    if !OPERATORS.contains(&operator) {
        report.error(
            "unknown-operator",
            condition.operator.span,
            format!("there is no operator {operator:?}"),
            &format!("the operators are {}", OPERATORS.join(", ")),
        );
    }
}
