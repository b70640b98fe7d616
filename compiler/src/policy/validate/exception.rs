//! The load check of a `PolicyException` (docs/spec/policies.md §9).

use kpvm_syntax::tree::{Tree, TreeValue};

use super::structure::{check_filter, span_at};
use super::variables::user_info;
use super::{Report, pod_security};
use crate::diagnostic::Diagnostic;
use crate::policy::model::PolicyException;
use crate::policy::read::{field, items};

/// Checks a `PolicyException` as Kyverno does when it loads one, and warns of one that can
/// never apply.
pub fn validate_exception(exception: &PolicyException, diagnostics: &mut Vec<Diagnostic>) {
    let key = exception.key();
    let mut report = Report::new(exception.source, &key, diagnostics);
    let nothing = Tree::new(TreeValue::Null, exception.tree.span);
    let spec = field(&exception.tree, "spec").unwrap_or(&nothing);
    check_match(
        exception,
        field(spec, "match").unwrap_or(&nothing),
        &mut report,
    );
    for (covered, tree) in exception.covered.iter().zip(items(spec, "exceptions")) {
        if covered.policy.value.is_empty() {
            report.error(
                "exception-policy",
                tree.span,
                "an exception needs the name of the policy",
                "add `policyName`",
            );
        }
    }
    pod_security::check_excludes(&exception.pod_security, None, &mut report);
    if exception
        .covered
        .iter()
        .all(|covered| covered.rules.is_empty())
    {
        report.warning(
            "exception-without-rules",
            span_at(spec, &["exceptions"]),
            "the exception names no rule, so it covers none",
            "name policies and rules under `spec.exceptions`, e.g. {policyName: p, ruleNames: [\"*\"]}",
        );
    }
}

fn check_match(exception: &PolicyException, tree: &Tree, report: &mut Report<'_>) {
    let block = &exception.match_block;
    let (any, all) = (items(tree, "any"), items(tree, "all"));
    if !any.is_empty() && !all.is_empty() {
        let message = "`any` and `all` cannot be used together";
        report.error("any-and-all", tree.span, message, "keep one of them");
    }
    if any.is_empty() && all.is_empty() {
        report.warning(
            "exception-without-match",
            block.span,
            "the exception matches no resource, so it never holds",
            "list resources under `spec.match.any` or `spec.match.all`",
        );
    }
    let filters = [&block.any, &block.all].into_iter().flatten().flatten();
    for (filter, tree) in filters.zip(any.iter().chain(all)) {
        check_filter(filter, tree, false, report);
        if let Some(name) = user_info(filter).filter(|_| exception.background) {
            let message = format!("`{name}` cannot be known in a background scan");
            let hint = "set spec.background to false, or do without it";
            report.error(
                "user-info-in-background",
                span_at(tree, &[name]),
                message,
                hint,
            );
        }
    }
}
