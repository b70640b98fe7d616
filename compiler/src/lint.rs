//! Additional warnings: policies that Kyverno silently accepts although they check less
//! than they seem to.
//!
//! Never rejects a policy.

use kpvm_syntax::tree::{Span, Tree, TreeValue};

use crate::diagnostic::Diagnostic;
use crate::policy::assertion::unbound_names;
use crate::policy::model::Policy;
use crate::source::Location;

/// Adds warnings about a policy.
pub fn check(policy: &Policy, diagnostics: &mut Vec<Diagnostic>) {
    let mut warn = |code, span: Span, message: &str, hint: &str| {
        let location = Location {
            source: policy.source,
            span,
        };
        diagnostics.push(
            Diagnostic::warning(code, message, location)
                .hint(hint)
                .subject(&policy.name.value),
        );
    };
    if policy.rules.is_empty() {
        let message = "the policy has no rules, so it checks nothing";
        warn(
            "no-rules",
            policy.name.span,
            message,
            "add a rule under spec.rules",
        );
    }
    for rule in &policy.rules {
        let Some(validate) = rule.tree.get("validate") else {
            continue;
        };
        let assert = rule
            .validate
            .as_ref()
            .and_then(|validate| validate.assert.as_ref());
        let entries = rule.context.iter().filter_map(|entry| entry.get("name"));
        let entries: Vec<&str> = entries.filter_map(Tree::as_str).collect();
        let unbound = assert.map(|tree| unbound_names(tree, &entries));
        for (name, span) in unbound.into_iter().flatten() {
            let message =
                format!("nothing gives `${name}` a value here, so that using it is an error");
            let hint = "bind it with -> in a key above, or add a context entry of that name";
            warn("unbound-name", span, &message, hint);
        }
        let alternatives = validate.get("anyPattern").and_then(Tree::as_list);
        let patterns = alternatives.unwrap_or_default().iter();
        for pattern in patterns.chain(validate.get("pattern")) {
            find_ignored_items(pattern, &mut |span| {
                let message =
                    "only the first item of a list in a pattern counts, this one is ignored";
                let hint = "join texts with |, use anyPattern, or an existence anchor ^( )";
                warn("ignored-item", span, message, hint);
            });
        }
    }
}

/// Lists of maps and of scalars use only their first item; lists of lists are compared by
/// position, and an existence anchor uses all items (docs/spec/patterns.md §3.4).
///
/// The reader bounds the nesting of the tree.
fn find_ignored_items(pattern: &Tree, ignored: &mut dyn FnMut(Span)) {
    match &pattern.value {
        TreeValue::Map(members) => {
            for member in members {
                let items = member.value.as_list();
                match items.filter(|_| member.key.trim().starts_with("^(")) {
                    Some(items) => items
                        .iter()
                        .for_each(|item| find_ignored_items(item, ignored)),
                    None => find_ignored_items(&member.value, ignored),
                }
            }
        }
        TreeValue::List(items) => {
            let by_position = items.first().is_some_and(|item| item.as_list().is_some());
            for (number, item) in items.iter().enumerate() {
                if number > 0 && !by_position {
                    ignored(item.span);
                } else {
                    find_ignored_items(item, ignored);
                }
            }
        }
        TreeValue::Null
        | TreeValue::Bool(_)
        | TreeValue::Int(_)
        | TreeValue::Float(_)
        | TreeValue::String(_) => {}
    }
}
