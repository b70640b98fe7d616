//! Grammar of `resources.kinds` (docs/spec/policies.md §4): parses a text into patterns for
//! group, version, kind and subresource.
//!
//! Parsing never fails: a text with too many parts becomes a selector that matches nothing
//! real, as in Kyverno.

use kpvm_semantics::wildcard::matches;

/// One entry of a `kinds` list; every part may contain wildcards.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct KindSelector {
    /// API group pattern; `*` if the text has none.
    pub group: String,
    /// Version pattern; `*` if the text has none.
    pub version: String,
    /// Kind pattern.
    pub kind: String,
    /// Subresource pattern; empty matches only requests without a subresource.
    pub subresource: String,
}

impl KindSelector {
    /// Parses one entry of `kinds` (docs/spec/policies.md §4, table of part counts).
    pub fn parse(text: &str) -> Self {
        let (front, last) = match text.rsplit_once('/') {
            Some((front, last)) => (Some(front), last),
            None => (None, text),
        };
        // Only the part after the last slash is split on dots: a group may contain dots.
        let parts: Vec<&str> = front
            .into_iter()
            .flat_map(|front| front.split('/'))
            .chain(last.split('.'))
            .collect();
        match parts[..] {
            [kind] => Self::of("*", "*", kind, ""),
            ["*", "*"] => Self::of("*", "*", "*", "*"),
            ["*", subresource] if subresource == subresource.to_lowercase() => {
                Self::of("*", "*", "*", subresource)
            }
            [version, kind] if is_version(version) => Self::of("*", version, kind, ""),
            [kind, subresource] => Self::of("*", "*", kind, subresource),
            [version, kind, subresource] if is_version(version) => {
                Self::of("*", version, kind, subresource)
            }
            [group, version, kind] => Self::of(group, version, kind, ""),
            [group, version, kind, subresource] => Self::of(group, version, kind, subresource),
            _ => Self::default(),
        }
    }

    fn of(group: &str, version: &str, kind: &str, subresource: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// Whether a request for this kind and subresource is selected (docs/spec/policies.md §4.1).
    pub fn matches(&self, group: &str, version: &str, kind: &str, subresource: &str) -> bool {
        // A plain Pod selector also covers `pods/ephemeralcontainers`.
        let ephemeral =
            (group, version, kind, subresource) == ("", "v1", "Pod", "ephemeralcontainers");
        matches(&self.group, group)
            && matches(&self.version, version)
            && matches(&self.kind, kind)
            && (ephemeral || matches(&self.subresource, subresource))
    }
}

/// Whether any entry names this kind, whatever its group, version and subresource; compared
/// literally, without wildcards (docs/spec/policies.md §12.1).
pub fn contains_kind<'a>(kinds: impl IntoIterator<Item = &'a str>, kind: &str) -> bool {
    kinds
        .into_iter()
        .any(|entry| KindSelector::parse(entry).kind == kind)
}

/// `v1`, `v2beta1`, ... or `*`.
fn is_version(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let Some(rest) = text.strip_prefix('v').and_then(strip_digits) else {
        return false;
    };
    rest.is_empty()
        || ["alpha", "beta"].iter().any(|stage| {
            rest.strip_prefix(stage)
                .and_then(strip_digits)
                .is_some_and(str::is_empty)
        })
}

/// The text after leading digits; `None` if there are none.
fn strip_digits(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_cases_of_parsing() {
        let cases = [
            ("*.*", ["*", "*", "*", "*"]),
            ("*/*", ["*", "*", "*", "*"]),
            ("*/*/*", ["*", "*", "*", "*"]),
            ("*/*/*/*/*", ["", "", "", ""]),
            ("*/scale", ["*", "*", "*", "scale"]),
            ("*/Scale", ["*", "*", "Scale", ""]),
            ("batch/*/CronJob", ["batch", "*", "CronJob", ""]),
            ("v1.demo/v1/Demo", ["v1.demo", "v1", "Demo", ""]),
            ("v1beta10/Pod", ["*", "v1beta10", "Pod", ""]),
            ("v1x/Pod", ["*", "*", "v1x", "Pod"]),
            (
                "apps/v1/Deployment.scale",
                ["apps", "v1", "Deployment", "scale"],
            ),
            (
                "apps/v1/Deployment/scale",
                ["apps", "v1", "Deployment", "scale"],
            ),
            ("apps/Deployment", ["*", "*", "apps", "Deployment"]),
        ];
        for (text, [group, version, kind, subresource]) in cases {
            let expected = KindSelector::of(group, version, kind, subresource);
            assert_eq!(KindSelector::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn worked_cases_of_matching() {
        let cases = [
            ("*", ("apps", "v1", "Deployment", ""), true),
            ("*", ("", "v1", "Pod", "status"), false),
            ("v1/Pod", ("", "v1", "Pod", "ephemeralcontainers"), true),
            ("v1/Pod", ("", "v1", "Pod", "status"), false),
            ("*/*", ("", "v1", "Pod", "exec"), true),
            ("*/*/*/*/*", ("", "v1", "Pod", ""), false),
            ("*/scale", ("apps", "v1", "Deployment", "scale"), true),
            ("v1x/Pod", ("", "v1", "Pod", ""), false),
            ("Postgresdb", ("acme", "v1", "postgresdb", ""), false),
            ("apps/Deployment", ("apps", "v1", "Deployment", ""), false),
            (
                "tekton.dev/*/TaskRun",
                ("tekton.dev", "v1alpha1", "TaskRun", ""),
                true,
            ),
            ("Pod/*", ("", "v1", "Pod", ""), true),
            ("Pod/*", ("", "v1", "Pod", "exec"), true),
        ];
        for (text, (group, version, kind, subresource), expected) in cases {
            let selector = KindSelector::parse(text);
            let found = selector.matches(group, version, kind, subresource);
            assert_eq!(
                found, expected,
                "{text} on {group}/{version}/{kind}/{subresource}"
            );
        }
    }
}
