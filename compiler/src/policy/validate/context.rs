//! Checks the context entries of a rule (docs/spec/policies.md §2.7). As in Kyverno, those
//! of foreach blocks are not checked.

use kpvm_syntax::tree::Tree;

use super::{Report, expressions};
use crate::policy::model::Rule;
use crate::policy::read::{field, text_of};
use crate::policy::text;

const SOURCES: [&str; 5] = [
    "configMap",
    "apiCall",
    "globalReference",
    "imageRegistry",
    "variable",
];
const RESERVED: [&str; 6] = [
    "images",
    "request",
    "serviceAccountName",
    "serviceAccountNamespace",
    "element",
    "elementIndex",
];

pub(super) fn check(rule: &Rule, report: &mut Report<'_>) {
    let is_cel = rule
        .validate
        .as_ref()
        .is_some_and(|validate| validate.cel.is_some());
    for entry in &rule.context {
        if is_cel {
            let message = "rules with CEL expressions cannot use context entries";
            let hint = "use cel.variables";
            report.error("context-with-cel", entry.span, message, hint);
        }
        check_name(entry, report);
        let present: Vec<(&str, &Tree)> = SOURCES
            .iter()
            .filter_map(|key| Some((*key, field(entry, key)?)))
            .collect();
        match present[..] {
            [(key, source)] => check_source(key, source, report),
            _ => {
                let message = format!(
                    "a context entry has one source, this one has {}",
                    present.len()
                );
                let hint = format!("use exactly one of {}", SOURCES.join(", "));
                report.error("context-source", entry.span, message, &hint);
            }
        }
    }
}

fn check_name(entry: &Tree, report: &mut Report<'_>) {
    let name = text_of(entry, "name");
    let span = field(entry, "name").map_or(entry.span, |name| name.span);
    if name.is_empty() {
        return report.error(
            "context-name",
            span,
            "a context entry needs a name",
            "add `name`",
        );
    }
    let is_part_of = |reserved: &str| {
        let rest = name.strip_prefix(reserved);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if RESERVED.iter().any(|reserved| is_part_of(reserved)) {
        let message = format!("{name:?} hides a predefined variable");
        report.error("context-name", span, message, "choose another name");
    }
}

fn check_source(key: &str, source: &Tree, report: &mut Report<'_>) {
    let has =
        |field_name: &str| field(source, field_name).is_some_and(|tree| tree.as_str() != Some(""));
    let mut wrong = |message: &str, hint: &str| {
        report.error("context-source", source.span, message, hint);
    };
    match key {
        "configMap" => {
            if !has("name") {
                wrong(
                    "a configMap entry needs the name of the ConfigMap",
                    "add `name`",
                );
            }
            if !has("namespace") {
                wrong("a configMap entry needs a namespace", "add `namespace`");
            }
            return;
        }
        "apiCall" => {
            if has("urlPath") && has("service") {
                wrong("urlPath and service exclude each other", "keep one of them");
            }
        }
        "globalReference" => {
            if !has("name") {
                wrong("a globalReference entry needs a name", "add `name`");
            }
        }
        "imageRegistry" => {
            let reference = text_of(source, "reference");
            if reference.is_empty() {
                wrong(
                    "an imageRegistry entry needs a reference",
                    "add `reference`",
                );
            } else if text::variables(&reference).is_empty() && !is_image_reference(&reference) {
                wrong(
                    "this is not a reference to an image",
                    "write registry/repository:tag",
                );
            }
        }
        _ => {
            let has_path = has("jmesPath");
            if !has("value") && !has_path && field(source, "value").is_none() {
                wrong(
                    "a variable needs a value or a jmesPath",
                    "add `value` or `jmesPath`",
                );
            }
            if field(source, "default").is_some() && !has_path {
                wrong("a default only goes with a jmesPath", "use `value`");
            }
        }
    }
    expressions::check_path(source, report);
}

/// `[host[:port]/]path[:tag][@digest]`, as registries spell it.
fn is_image_reference(reference: &str) -> bool {
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let (name, tag) = match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => (before, Some(tag)),
        _ => (name, None),
    };
    let is_path = |path: &str| path.split('/').all(is_path_component);
    let named = is_path(name)
        || name
            .split_once('/')
            .is_some_and(|(host, path)| is_host(host) && is_path(path));
    name.len() <= 255 && named && tag.is_none_or(is_tag) && digest.is_none_or(is_digest)
}

/// Lower-case letters and digits, joined by `.`, `_`, `__` or any number of `-`.
fn is_path_component(component: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators: Vec<&str> = component
        .split(is_word)
        .filter(|part| !part.is_empty())
        .collect();
    component.starts_with(is_word)
        && component.ends_with(is_word)
        && separators.iter().all(|separator| {
            [".", "_", "__"].contains(separator) || separator.chars().all(|c| c == '-')
        })
}

fn is_host(host: &str) -> bool {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "0"));
    let is_label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_alphanumeric())
            && label.ends_with(|c: char| c.is_ascii_alphanumeric())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let is_port = !port.is_empty() && port.chars().all(|c| c.is_ascii_digit());
    let is_ip6 = name.starts_with('[')
        && name.ends_with(']')
        && name.len() > 2
        && name
            .trim_matches(['[', ']'])
            .chars()
            .all(|c| c.is_ascii_hexdigit() || c == ':');
    is_port && (is_ip6 || name.split('.').all(is_label))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=128).contains(&tag.len())
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || c == '.' || c == '-')
}

fn is_digest(digest: &str) -> bool {
    let length = match digest.split_once(':') {
        Some(("sha256", _)) => 64,
        Some(("sha384", _)) => 96,
        Some(("sha512", _)) => 128,
        _ => return false,
    };
    let (_, hex) = digest.split_once(':').unwrap_or_default();
    let is_lower_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    hex.len() == length && hex.chars().all(is_lower_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_references() {
        let cases = [
            ("nginx", true),
            ("ghcr.io/kyverno/kyverno:latest", true),
            ("localhost:5000/a/b:v1.2-x", true),
            ("Upper/case", true),
            ("docker.io/Upper/case", false),
            ("a/b:", false),
            ("a b", false),
            ("a__b/c.d/e--f", true),
            ("a..b", false),
            ("a@sha256:12", false),
        ];
        for (reference, expected) in cases {
            assert_eq!(is_image_reference(reference), expected, "{reference}");
        }
    }
}
