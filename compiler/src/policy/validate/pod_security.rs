//! `podSecurity.exclude` entries, of rules and of exceptions (sheet 01, section 2.2).

use kpvm::tree::Tree;

use super::Report;
use super::structure::span_at;
use crate::policy::read::{field, items, text_of};

const RESTRICTED_ONLY: [&str; 4] = [
    "Volume Types",
    "Privilege Escalation",
    "Running as Non-root",
    "Running as Non-root user",
];
const CONTAINER_LEVEL: [&str; 5] = [
    "Capabilities",
    "Privileged Containers",
    "Host Ports",
    "/proc Mount Type",
    "Privilege Escalation",
];
const POD_LEVEL: [&str; 4] = [
    "Host Namespaces",
    "HostPath Volumes",
    "Sysctls",
    "Volume Types",
];

/// Checks the entries; `level` is that of the rule, exceptions have none.
pub(super) fn check_excludes(excludes: &[Tree], level: Option<&str>, report: &mut Report<'_>) {
    for exclude in excludes {
        let control = text_of(exclude, "controlName");
        let control = control.as_str();
        let span = span_at(exclude, &["controlName"]);
        if level == Some("baseline") && RESTRICTED_ONLY.contains(&control) {
            let message = format!("{control:?} is not a control of the level baseline");
            let hint = "remove the entry, or use level restricted";
            report.error("pod-security-control", span, message, hint);
        }
        let has_images = !items(exclude, "images").is_empty();
        if CONTAINER_LEVEL.contains(&control) && !has_images {
            let message =
                format!("{control:?} is a control of containers, so images must be given");
            report.error("pod-security-images", span, message, "add `images`");
        }
        if POD_LEVEL.contains(&control) && has_images {
            let message = format!("{control:?} is a control of the pod, so images cannot be given");
            report.error("pod-security-images", span, message, "remove `images`");
        }
        let has_field =
            field(exclude, "restrictedField").is_some_and(|tree| tree.as_str() != Some(""));
        let has_values = !items(exclude, "values").is_empty();
        if has_field != has_values {
            report.error(
                "pod-security-values",
                exclude.span,
                "`restrictedField` and `values` go together",
                "add the missing one",
            );
        }
    }
}
