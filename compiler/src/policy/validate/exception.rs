//! The load check of a `PolicyException` (sheet 01, section 9).

use kpvm::tree::{Tree, TreeValue};

use super::structure::{check_filter, span_at};
use super::variables::user_info;
use super::{Report, pod_security};
use crate::diagnostic::{Diagnostic, Severity};
use crate::policy::model::{Filter, MatchBlock};
use crate::policy::read::{field, items, match_block, text_of};
use crate::policy::schema;
use crate::source::SourceId;

/// Checks a `PolicyException` document as Kyverno does before it accepts one.
pub fn validate_exception(tree: &Tree, source: SourceId, diagnostics: &mut Vec<Diagnostic>) {
    let before = diagnostics.len();
    schema::check(tree, &schema::EXCEPTION, source, false, diagnostics);
    let found = diagnostics.get(before..).unwrap_or_default();
    if found.iter().any(|one| one.severity == Severity::Error) {
        return;
    }
    let name = field(tree, "metadata").map(|metadata| text_of(metadata, "name"));
    let mut report = Report::new(source, &name.unwrap_or_default(), diagnostics);
    let nothing = Tree::new(TreeValue::Null, tree.span);
    let spec = field(tree, "spec").unwrap_or(&nothing);
    if let Some(block) = field(spec, "match") {
        let background = !matches!(
            spec.get("background").map(|tree| &tree.value),
            Some(TreeValue::Bool(false))
        );
        check_match(block, background, &mut report);
    }
    for exception in items(spec, "exceptions") {
        if text_of(exception, "policyName").is_empty() {
            let message = "an exception needs the name of the policy";
            report.error(
                "exception-policy",
                exception.span,
                message,
                "add `policyName`",
            );
        }
    }
    pod_security::check_excludes(items(spec, "podSecurity"), None, &mut report);
}

fn check_match(tree: &Tree, background: bool, report: &mut Report<'_>) {
    let block: MatchBlock = match_block(tree);
    let (any, all) = (items(tree, "any"), items(tree, "all"));
    if !any.is_empty() && !all.is_empty() {
        let message = "`any` and `all` cannot be used together";
        report.error("any-and-all", tree.span, message, "keep one of them");
    }
    let filters = [block.any, block.all].into_iter().flatten().flatten();
    for (filter, tree) in filters.zip(any.iter().chain(all)) {
        let filter: Filter = filter;
        check_filter(&filter, tree, false, report);
        if let Some(name) = user_info(&filter).filter(|_| background) {
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
