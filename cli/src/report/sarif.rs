//! SARIF 2.1.0, the form in which code scanning services take results.
//!
//! A run of one tool: the rules with what is known of them, a result for each entry
//! that is no pass and no skip, and a notification for each notice. A result stands in
//! the file of the *object*; where the policy demands it is a related location. Results
//! are known again by object and path, not by line, so that they survive edits.
//!
//! The types hold what we write and no more; the schema is checked in
//! `cli/tests/outputs.rs`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::report::entry::{self, Entries, Entry, Notice, Related, RuleFacts};
use crate::scan::{Outcome, Place};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The name of our fingerprint; the number changes when it is computed otherwise.
const FINGERPRINT: &str = "kpvmObjectPath/v1";

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Log<'e> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'e>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'e> {
    tool: Tool<'e>,
    invocations: [Invocation; 1],
    /// What columns count.
    column_kind: &'static str,
    results: Vec<SarifResult>,
}

#[derive(Debug, Serialize)]
struct Tool<'e> {
    driver: Driver<'e>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver<'e> {
    name: &'static str,
    semantic_version: &'static str,
    information_uri: &'static str,
    rules: Vec<Rule<'e>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule<'e> {
    id: String,
    short_description: Message<'e>,
    full_description: Message<'e>,
    help: Message<'e>,
    default_configuration: Configuration,
    properties: RuleProperties<'e>,
}

#[derive(Debug, Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Debug, Serialize)]
struct RuleProperties<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    /// GitHub sorts by it.
    #[serde(rename = "security-severity", skip_serializing_if = "Option::is_none")]
    security_severity: Option<&'static str>,
    tags: Vec<&'e str>,
}

#[derive(Debug, Serialize)]
struct Message<'e> {
    text: Cow<'e, str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_configuration_notifications: Vec<Notification>,
}

#[derive(Debug, Serialize)]
struct Notification {
    level: &'static str,
    message: Message<'static>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: &'static str,
    message: Message<'static>,
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    partial_fingerprints: BTreeMap<&'static str, String>,
    properties: ResultProperties,
}

#[derive(Debug, Serialize)]
struct ResultProperties {
    /// `fail`, `warn` or `error`.
    outcome: Outcome,
    #[serde(skip_serializing_if = "String::is_empty")]
    found: String,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message<'static>>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Debug, Default, Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    start_column: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_column: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
    kind: &'static str,
}

/// The document for entries.
pub fn log<'e>(entries: &'e Entries<'e>) -> Log<'e> {
    Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            tool: Tool {
                driver: Driver {
                    name: "kpvm",
                    semantic_version: env!("CARGO_PKG_VERSION"),
                    information_uri: env!("CARGO_PKG_REPOSITORY"),
                    rules: entries.rules.iter().map(rule).collect(),
                },
            },
            invocations: [invocation(&entries.notices)],
            column_kind: "unicodeCodePoints",
            results: results(entries),
        }],
    }
}

fn rule<'e>(facts: &'e RuleFacts<'e>) -> Rule<'e> {
    let text = |text: &'e str| Message { text: text.into() };
    let title = facts.title.unwrap_or(&facts.id);
    // GitHub wants all three.
    let description = facts.description.unwrap_or(title);
    Rule {
        id: facts.id.clone(),
        short_description: text(title),
        full_description: text(description),
        help: text(description),
        default_configuration: Configuration {
            level: level(facts.severity),
        },
        properties: RuleProperties {
            category: facts.category,
            severity: facts.severity,
            security_severity: facts.severity.and_then(security_severity),
            tags: facts.category.into_iter().chain(["kubernetes"]).collect(),
        },
    }
}

/// How a failure counts; one of unknown severity as much as the worst.
fn level(severity: Option<&str>) -> &'static str {
    match severity {
        Some("medium") => "warning",
        Some("low" | "info") => "note",
        _ => "error",
    }
}

/// A number in the middle of GitHub's range: critical above 9.0, high from 7.0, medium
/// from 4.0, low above 0.
fn security_severity(severity: &str) -> Option<&'static str> {
    match severity {
        "critical" => Some("9.5"),
        "high" => Some("8.0"),
        "medium" => Some("5.5"),
        "low" => Some("2.0"),
        _ => None,
    }
}

fn invocation(notices: &[Notice<'_>]) -> Invocation {
    let of = |level: entry::Level| {
        let notices = notices.iter().filter(|notice| notice.level == level);
        notices.map(notification).collect::<Vec<_>>()
    };
    let errors = of(entry::Level::Error);
    Invocation {
        execution_successful: errors.is_empty(),
        tool_execution_notifications: errors,
        tool_configuration_notifications: of(entry::Level::Warning),
    }
}

fn notification(notice: &Notice<'_>) -> Notification {
    let location = Location {
        physical_location: PhysicalLocation {
            artifact_location: ArtifactLocation {
                uri: uri(&notice.file),
            },
            region: notice.position.map(|(line, column)| Region {
                start_line: line,
                start_column: column,
                end_column: None,
            }),
        },
        ..Location::default()
    };
    Notification {
        level: match notice.level {
            entry::Level::Error => "error",
            entry::Level::Warning => "warning",
        },
        message: message(notice.message.clone().into_owned()),
        locations: match &*notice.file {
            "" => Vec::new(),
            _ => vec![location],
        },
    }
}

fn results(entries: &Entries<'_>) -> Vec<SarifResult> {
    let rules = entries.rules.iter().enumerate();
    let rules: HashMap<&str, usize> = rules
        .map(|(index, rule)| (rule.id.as_str(), index))
        .collect();
    let mut fingerprints = Fingerprints::default();
    let results = entries.entries.iter().filter_map(|entry| {
        let level = match entry.outcome {
            Outcome::Fail => level(entry.severity),
            Outcome::Error => "error",
            // Not scored, or only audited: never the worst.
            Outcome::Warn => match level(entry.severity) {
                "error" => "warning",
                level => level,
            },
            Outcome::Pass | Outcome::Skip => return None,
        };
        Some(SarifResult {
            rule_id: entry.rule.clone(),
            rule_index: rules.get(entry.rule.as_str()).copied(),
            level,
            message: message(format!("{}: {}", entry.object, entry.message)),
            locations: entry
                .place
                .map(|place| location(entry, place))
                .into_iter()
                .collect(),
            related_locations: entry.related.iter().enumerate().map(related).collect(),
            partial_fingerprints: [(FINGERPRINT, fingerprints.of(entry))].into(),
            properties: ResultProperties {
                outcome: entry.outcome,
                found: entry.found.to_owned(),
            },
        })
    });
    results.collect()
}

fn message(text: String) -> Message<'static> {
    Message { text: text.into() }
}

fn location(entry: &Entry<'_>, place: &Place) -> Location {
    let object = LogicalLocation {
        fully_qualified_name: entry.object_id.clone().into_owned(),
        kind: "resource",
    };
    let value = LogicalLocation {
        fully_qualified_name: format!("{}#{}", entry.object_id, entry.path.trim_end_matches('/')),
        kind: "property",
    };
    let logical_locations = match entry.path {
        "" => vec![object],
        _ => vec![object, value],
    };
    Location {
        physical_location: physical_location(place),
        logical_locations,
        ..Location::default()
    }
}

fn related((index, related): (usize, &Related<'_>)) -> Location {
    Location {
        id: Some(index as u32 + 1),
        physical_location: physical_location(related.place),
        message: Some(message(format!("{} here", related.role.as_str()))),
        ..Location::default()
    }
}

fn physical_location(place: &Place) -> PhysicalLocation {
    PhysicalLocation {
        artifact_location: ArtifactLocation {
            uri: uri(&place.file),
        },
        region: Some(Region {
            start_line: place.line.max(1),
            start_column: place.column.max(1),
            end_column: place.end_column,
        }),
    }
}

/// A path as a URI: relative paths stay relative, as code scanning wants them.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut uri = String::with_capacity(path.len());
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// Fingerprints of a run: of group, rule, object and path, and for the same once more
/// of a count.
#[derive(Default)]
struct Fingerprints {
    seen: HashMap<[u8; 32], u32>,
}

impl Fingerprints {
    fn of(&mut self, entry: &Entry<'_>) -> String {
        let digest = |again: u32| -> [u8; 32] {
            let mut hasher = Sha256::new();
            for part in [&*entry.group, &entry.rule, &entry.object_id, entry.path] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
            hasher.update(again.to_le_bytes());
            hasher.finalize().into()
        };
        let first = digest(0);
        let count = self.seen.entry(first).or_default();
        let bytes = match *count {
            0 => first,
            again => digest(again),
        };
        *count += 1;
        bytes
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        for (path, expected) in [
            ("a/b.yaml", "a/b.yaml"),
            ("./a.yaml", "a.yaml"),
            ("../a.yaml", "../a.yaml"),
            ("/a b.yaml", "file:///a%20b.yaml"),
            ("a:b#c?d%e.yaml", "a%3Ab%23c%3Fd%25e.yaml"),
            ("é.yaml", "%C3%A9.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}
