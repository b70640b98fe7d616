//! Checks `podSecurity` blocks and their `exclude` entries, including those of exceptions
//! (docs/spec/policies.md §2.2; docs/spec/pod-security.md §1).
//!
//! What Kyverno's own check rejects is an error. Unknown names are checked only by the
//! schema of the cluster, or not at all: they are [`Report::unworkable`].

use kpvm_syntax::tree::{Span, Tree};

use super::Report;
use super::structure::span_at;
use crate::frontend::pod_security::checks::error_paths;
use crate::frontend::pod_security::controls::{CONTROLS, Control, Level, Scope};
use crate::frontend::pod_security::parse_version;
use crate::policy::read::{field, items, text_of};
use crate::policy::spelling::nearest;

const LEVELS: [&str; 3] = ["baseline", "restricted", "privileged"];

/// Minor versions in the schema of Kyverno 1.19.
const LISTED_VERSIONS: std::ops::RangeInclusive<u32> = 19..=32;

/// Checks a rule's block.
pub(super) fn check(tree: &Tree, report: &mut Report<'_>) {
    let level = text_of(tree, "level");
    check_level(&level, tree, report);
    check_version(tree, report);
    let level = Some(level.as_str()).filter(|level| !level.is_empty());
    check_excludes(items(tree, "exclude"), level, report);
}

fn check_level(level: &str, tree: &Tree, report: &mut Report<'_>) {
    let span = span_at(tree, &["level"]);
    match level {
        "baseline" | "restricted" => {}
        "" => report.warning(
            "pod-security-level",
            tree.span,
            "podSecurity without a level demands everything, as `restricted` does",
            "add `level: baseline` or `level: restricted`",
        ),
        "privileged" => report.warning(
            "pod-security-level",
            span,
            "Kyverno evaluates the level `privileged` as it does `restricted`: it allows nothing more",
            "remove the rule, or use `level: baseline`",
        ),
        other => report.unworkable(
            "pod-security-level",
            span,
            format!("unknown level {other:?}"),
            &suggestion(other, &LEVELS, "the levels are baseline, restricted and privileged"),
        ),
    }
}

fn check_version(tree: &Tree, report: &mut Report<'_>) {
    let version = text_of(tree, "version");
    let span = span_at(tree, &["version"]);
    match parse_version(&version) {
        Ok(u32::MAX) => {}
        Ok(minor) if LISTED_VERSIONS.contains(&minor) => {}
        Ok(_) => report.warning(
            "pod-security-version",
            span,
            format!("the schema of Kyverno 1.19 lists v1.19 to v1.32 and latest: an API server refuses {version:?}"),
            "use one of these",
        ),
        Err(expected) => {
            let with_v = format!("v{version}");
            let hint = match parse_version(&with_v) {
                Ok(_) => format!("did you mean `{with_v}`?"),
                Err(_) => "write `latest`, or for example `v1.29`".into(),
            };
            let message =
                format!("unknown version {version:?}, it {expected}: every evaluation is an error");
            report.unworkable("pod-security-version", span, message, &hint);
        }
    }
}

/// Checks the entries; `level` is that of the rule; exceptions have none.
pub(super) fn check_excludes(excludes: &[Tree], level: Option<&str>, report: &mut Report<'_>) {
    for exclude in excludes {
        let name = text_of(exclude, "controlName");
        let controls: Vec<&Control> = CONTROLS
            .iter()
            .filter(|control| !name.is_empty() && control.name == name)
            .collect();
        check_name(&name, &controls, level, exclude, report);
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
        if has_field && !controls.is_empty() {
            check_field(&name, &controls, exclude, report);
        }
    }
}

fn check_name(
    name: &str,
    controls: &[&Control],
    level: Option<&str>,
    exclude: &Tree,
    report: &mut Report<'_>,
) {
    let span = span_at(exclude, &["controlName"]);
    let Some(control) = controls.first() else {
        let mut names: Vec<&str> = CONTROLS.iter().map(|control| control.name).collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        let (message, hint) = if name.is_empty() {
            let message = "an exclusion needs the name of a control, it excludes nothing".into();
            (message, "add `controlName`".into())
        } else {
            let all = format!("the controls are {}", names.join(", "));
            let message = format!("unknown control {name:?}, the entry excludes nothing");
            (message, suggestion(name, &names, &all))
        };
        return report.unworkable("pod-security-control", span, message, &hint);
    };
    let of_restricted = |control: &&Control| control.level == Level::Restricted;
    if level == Some("baseline") && controls.iter().all(of_restricted) {
        let message = format!("{name:?} is not a control of the level baseline");
        let hint = "remove the entry, or use level restricted";
        report.error("pod-security-control", span, message, hint);
    }
    let has_images = !items(exclude, "images").is_empty();
    if control.scope == Scope::Container && !has_images {
        let message = format!("{name:?} is a control of containers, so images must be given");
        report.error("pod-security-images", span, message, "add `images`");
    }
    if control.scope == Scope::Pod && has_images {
        let message = format!("{name:?} is a control of the pod, so images cannot be given");
        report.error("pod-security-images", span, message, "remove `images`");
    }
}

/// A field matches only in the form that messages use, with stars for numbers.
fn check_field(name: &str, controls: &[&Control], exclude: &Tree, report: &mut Report<'_>) {
    let span = span_at(exclude, &["restrictedField"]);
    let found = text_of(exclude, "restrictedField");
    let paths: Vec<String> = controls
        .iter()
        .flat_map(|control| error_paths(control))
        .collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let is_annotation = found.starts_with("metadata.annotations[") && found.ends_with(']');
    let has_annotations = controls
        .iter()
        .any(|control| control.looks_at_annotations());
    if paths.contains(&found.as_str()) || (is_annotation && has_annotations) {
        return;
    }
    let all = format!("the fields are {}", paths.join(", "));
    let idle = controls
        .iter()
        .any(|control| control.idle_fields.contains(&found.as_str()));
    if idle {
        let message =
            format!("no error of {name:?} has the path {found:?}: the entry excludes nothing");
        return report.warning("pod-security-field", span, message, &all);
    }
    let message = format!("{found:?} is no field of {name:?}: the entry excludes nothing");
    report.unworkable(
        "pod-security-field",
        span,
        message,
        &suggestion(&found, &paths, &all),
    );
}

/// Maximum length of a text that is compared with known ones.
const COMPARED: usize = 256;

/// The nearest known text, or all of them.
fn suggestion(found: &str, known: &[&str], all: &str) -> String {
    let near = (found.len() <= COMPARED).then(|| nearest(found, known));
    match near.flatten() {
        Some(name) => format!("did you mean `{name}`?"),
        None => all.to_owned(),
    }
}

impl Report<'_> {
    /// Reports what Kyverno's offline check accepts although it has no meaning.
    fn unworkable(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        hint: &str,
    ) {
        self.add(self.unworkable, code, (span, span), message.into(), hint);
    }
}
