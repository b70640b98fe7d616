//! Checks the body of a validate rule: exactly one form, allowed anchors in patterns,
//! required fields of foreach and CEL (docs/spec/policies.md §2.8).

use kpvm_syntax::tree::Tree;

use super::variables::anchored;
use super::{Bodies, Report};
use crate::policy::model::{Rule, Validate};
use crate::policy::read::{field, items, text_of};

pub(super) fn check(rule: &Rule, report: &mut Report<'_>) {
    let Some(validate) = rule.validate.as_ref().filter(|_| Bodies::of(rule).validate) else {
        return;
    };
    check_form_count(rule, validate, report);
    if let Some(pattern) = &validate.pattern {
        check_anchors(pattern, report);
    }
    if let Some(any_pattern) = &validate.any_pattern {
        match any_pattern.as_list() {
            Some(patterns) => patterns.iter().for_each(|one| check_anchors(one, report)),
            None => report.error(
                "any-pattern-no-list",
                any_pattern.span,
                format!(
                    "expected a list of patterns, found {}",
                    any_pattern.describe()
                ),
                "write a list, or use `pattern`",
            ),
        }
    }
    let foreach = validate.foreach.as_ref().and_then(Tree::as_list);
    for entry in foreach.unwrap_or_default() {
        check_foreach(entry, report);
    }
    match &validate.cel {
        Some(cel) => check_cel(cel, report),
        None => {
            if let Some(tree) = rule
                .cel_preconditions
                .as_ref()
                .filter(|tree| tree.as_list() != Some(&[]))
            {
                let message = "celPreconditions only go with validate.cel";
                report.error(
                    "cel-preconditions",
                    tree.span,
                    message,
                    "use `preconditions`",
                );
            }
        }
    }
}

/// Requires exactly one form (for assertions: docs/spec/assert.md §1 and §2).
fn check_form_count(rule: &Rule, validate: &Validate, report: &mut Report<'_>) {
    let attestors = validate
        .manifests
        .as_ref()
        .map(|tree| items(tree, "attestors"));
    let forms: Vec<&str> = [
        ("pattern", validate.pattern.is_some()),
        ("anyPattern", validate.any_pattern.is_some()),
        ("deny", validate.deny.is_some()),
        ("foreach", validate.foreach.is_some()),
        ("podSecurity", validate.pod_security.is_some()),
        ("cel", validate.cel.is_some()),
        ("manifests", attestors.is_some_and(|list| !list.is_empty())),
    ]
    .into_iter()
    .filter_map(|(name, there)| there.then_some(name))
    .collect();
    let written = rule.tree.get("validate");
    let written = written.and_then(|validate| field(validate, "assert"));
    match (&forms[..], written) {
        ([], Some(assert)) if validate.assert.is_some() => {
            report.warning(
                "assert-is-deprecated",
                assert.span,
                "`assert` is what Kyverno 1.13 to 1.18 make of it: since 1.19 it has no effect",
                "use pattern, deny or cel",
            );
            check_binding_names(rule, report);
        }
        ([], Some(assert)) => report.error(
            "assert-has-no-effect",
            assert.span,
            "`assert` has no effect, and there is no other check",
            "use pattern, deny or cel",
        ),
        ([form], Some(assert)) => report.warning(
            "assert-has-no-effect",
            assert.span,
            format!("`assert` has no effect beside `{form}`"),
            "make a rule of its own of it",
        ),
        _ => {}
    }
    match forms[..] {
        [_] => {}
        [] if written.is_some() => {}
        [] => report.error(
            "no-check",
            validate.span,
            "`validate` checks nothing",
            "add one of pattern, anyPattern, deny, foreach, podSecurity, cel",
        ),
        _ => report.error(
            "several-checks",
            validate.span,
            format!(
                "`validate` has one check, this one has {}",
                forms.join(" and ")
            ),
            "make one rule of each check",
        ),
    }
}

/// Context entries are visible in an assertion as `$name`.
fn check_binding_names(rule: &Rule, report: &mut Report<'_>) {
    for name in rule.context.iter().filter_map(|entry| field(entry, "name")) {
        let text = name.as_str().unwrap_or_default();
        let mut characters = text.chars();
        let begins = characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        if !begins || characters.any(|c| !c.is_ascii_alphanumeric() && c != '_') {
            report.error(
                "context-name",
                name.span,
                format!("an assertion cannot say `${text}`"),
                "use letters, digits and _ alone",
            );
        }
    }
}

/// Anchors allowed in validate patterns; an existence anchor requires a list.
fn check_anchors(pattern: &Tree, report: &mut Report<'_>) {
    for item in pattern.as_list().unwrap_or_default() {
        check_anchors(item, report);
    }
    for member in pattern.as_map().unwrap_or_default() {
        match anchored(member.key.trim()) {
            Some(("+", _)) => report.error(
                "unsupported-anchor",
                member.key_span,
                format!("anchor {:?} cannot be used in a validate rule", member.key),
                "use one of (key), =(key), ^(key), X(key), <(key)",
            ),
            Some(("^", _)) if member.value.as_list().is_none_or(<[Tree]>::is_empty) => report
                .error(
                    "existence-anchor",
                    member.value.span,
                    "an existence anchor needs a list with at least one value",
                    "write the wanted element as a list item",
                ),
            Some(_) | None => {}
        }
        check_anchors(&member.value, report);
    }
}

fn check_foreach(entry: &Tree, report: &mut Report<'_>) {
    if text_of(entry, "list").is_empty() {
        let message = "a foreach needs the list it goes over";
        report.error("foreach-list", entry.span, message, "add `list`");
    }
    let forms = ["pattern", "anyPattern", "deny", "foreach"];
    let count = forms
        .iter()
        .filter(|key| field(entry, key).is_some())
        .count();
    if count != 1 {
        let message = format!("a foreach has one check, this one has {count}");
        let hint = format!("use exactly one of {}", forms.join(", "));
        report.error("foreach-check", entry.span, message, &hint);
    }
}

fn check_cel(cel: &Tree, report: &mut Report<'_>) {
    for expression in items(cel, "expressions") {
        require(expression, &["expression"], report);
    }
    for annotation in items(cel, "auditAnnotations") {
        require(annotation, &["key", "valueExpression"], report);
    }
    let (kind, reference) = (field(cel, "paramKind"), field(cel, "paramRef"));
    if let Some(kind) = kind {
        require(kind, &["apiVersion", "kind"], report);
    }
    let Some(reference) = reference else {
        if let Some(kind) = kind {
            let message = "paramKind needs a paramRef";
            report.error("cel-params", kind.span, message, "add `paramRef`");
        }
        return;
    };
    if kind.is_none() {
        let message = "paramRef needs a paramKind";
        report.error("cel-params", reference.span, message, "add `paramKind`");
    }
    let has_name = !text_of(reference, "name").is_empty();
    if has_name == field(reference, "selector").is_some() {
        let message = "paramRef has either a name or a selector";
        report.error(
            "cel-params",
            reference.span,
            message,
            "use exactly one of them",
        );
    }
    require(reference, &["parameterNotFoundAction"], report);
}

fn require(tree: &Tree, keys: &[&str], report: &mut Report<'_>) {
    for key in keys {
        if text_of(tree, key).is_empty() {
            let message = format!("`{key}` is required here");
            report.error("cel-required", tree.span, message, &format!("add `{key}`"));
        }
    }
}
