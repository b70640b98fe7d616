//! SARIF 2.1.0, the format that code scanning services read.
//!
//! One run of one tool: the rules with their metadata, a result for each entry that is
//! neither pass nor skip, and a notification for each notice. A result is located in the
//! file of the *object*; the demand in the policy is a related location. Results are
//! identified by object and path, not by line, so that they survive edits.
//!
//! The types contain only the fields we write; `cli/tests` checks the output against the
//! published schema.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use memchr::memmem;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::place::Place;
use crate::report::entry::{self, Entries, Entry, Notice, Related, RuleFacts};
use crate::report::section::{Key, Section, Sections, between};
use crate::scan::{Outcome, Summary};
use crate::text::clean_json;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Name of our fingerprint; the number changes with the algorithm.
const FINGERPRINT: &str = "kpvmObjectPath/v1";

/// The whole document.
#[derive(Debug, Serialize)]
struct Log<'e> {
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
    /// Unit of columns.
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

/// Share of one chunk of the input: its results, and the identity of each.
#[derive(Debug)]
pub struct Part {
    results: Section,
    identities: Vec<Identity>,
}

/// Only the results, at their nesting depth in the document.
#[derive(Debug, Serialize)]
struct Results {
    runs: [RunOfResults; 1],
}

#[derive(Debug, Serialize)]
struct RunOfResults {
    results: Vec<SarifResult>,
}

/// No results, and the text before and after some.
const RESULTS: [&str; 3] = [
    "\n      \"results\": []",
    "\n      \"results\": [\n",
    "\n      ]",
];

/// Builds results for entries; `rules` are all rules of the run.
///
/// # Errors
/// Fails if the serialiser fails.
pub fn part<'e>(
    entries: &[Entry<'e>],
    rules: impl Iterator<Item = RuleFacts<'e>>,
) -> io::Result<Part> {
    let rules = rules.enumerate().map(|(index, rule)| (rule.id, index));
    let (results, identities) = results(entries, &rules.collect());
    let items = results.len();
    let text = match items {
        0 => String::new(),
        _ => {
            let results = Results {
                runs: [RunOfResults { results }],
            };
            let text = serde_json::to_string_pretty(&results)?;
            clean_json(between(&text, RESULTS[1], RESULTS[2])?).into_owned()
        }
    };
    Ok(Part {
        results: Section {
            key: Key::All,
            text: text.into_bytes(),
            items,
            summary: Summary::default(),
        },
        identities,
    })
}

/// Results of all parts.
#[derive(Debug, Default)]
pub struct AllResults {
    sections: Sections,
    fingerprints: Fingerprints,
}

impl AllResults {
    /// Adds the results of a part. Duplicates of earlier results can be told apart only
    /// here.
    ///
    /// # Errors
    /// Fails if the temporary file fails.
    pub fn add(&mut self, part: Part) -> io::Result<()> {
        let Part {
            mut results,
            identities,
        } = part;
        // Quotes within texts are escaped, so this matches only the key.
        let mark = format!("\"{FINGERPRINT}\": \"");
        let starts: Vec<usize> = memmem::find_iter(&results.text, &mark)
            .map(|at| at + mark.len())
            .collect();
        for (start, identity) in starts.into_iter().zip(identities) {
            let Some(fingerprint) = self.fingerprints.again(identity) else {
                continue;
            };
            let place = results.text.get_mut(start..start + fingerprint.len());
            if let Some(place) = place {
                place.copy_from_slice(fingerprint.as_bytes());
            }
        }
        self.sections.add(results, ",\n")
    }

    /// Writes the document.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn write(&mut self, entries: &Entries<'_>, out: &mut dyn Write) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&log(entries))?;
        self.sections.splice(&clean_json(&text), RESULTS, out)?;
        writeln!(out)
    }
}

/// Writes the document for entries.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(entries: &Entries<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut results = AllResults::default();
    results.add(part(&entries.entries, entries.rules.iter().cloned())?)?;
    results.write(entries, out)
}

/// The document without its results.
fn log<'e>(entries: &'e Entries<'e>) -> Log<'e> {
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
            results: Vec::new(),
        }],
    }
}

fn rule<'e>(facts: &'e RuleFacts<'e>) -> Rule<'e> {
    let text = |text: &'e str| Message { text: text.into() };
    let title = facts.title.unwrap_or(&facts.id);
    // GitHub requires all three.
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

/// Level of a failure; an unknown severity counts as the worst.
fn level(severity: Option<&str>) -> &'static str {
    match severity {
        Some("medium") => "warning",
        Some("low" | "info") => "note",
        _ => "error",
    }
}

/// A number in the middle of GitHub's ranges: critical above 9.0, high from 7.0, medium
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

fn results(
    entries: &[Entry<'_>],
    rules: &HashMap<String, usize>,
) -> (Vec<SarifResult>, Vec<Identity>) {
    let results = entries.iter().filter_map(|entry| {
        let level = match entry.outcome {
            Outcome::Fail => level(entry.severity),
            Outcome::Error => "error",
            // Not scored or only audited: never the worst level.
            Outcome::Warn => match level(entry.severity) {
                "error" => "warning",
                level => level,
            },
            Outcome::Pass | Outcome::Skip => return None,
        };
        let identity = Identity::of(entry);
        let result = SarifResult {
            rule_id: entry.rule.clone(),
            rule_index: rules.get(&entry.rule).copied(),
            level,
            message: message(format!("{}: {}", entry.object, entry.message)),
            locations: entry
                .place
                .map(|place| location(entry, place))
                .into_iter()
                .collect(),
            related_locations: entry.related.iter().enumerate().map(related).collect(),
            partial_fingerprints: [(FINGERPRINT, fingerprint(&identity.digest(0)))].into(),
            properties: ResultProperties {
                outcome: entry.outcome,
                found: entry.found.to_owned(),
            },
        };
        Some((result, identity))
    });
    results.unzip()
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

/// A path as a URI: relative paths stay relative, as code scanning requires.
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

/// Identity of a result: group, rule, object and path.
#[derive(Debug)]
struct Identity(Sha256);

impl Identity {
    fn of(entry: &Entry<'_>) -> Self {
        let mut hasher = Sha256::new();
        for part in [&*entry.group, &entry.rule, &entry.object_id, entry.path] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(hasher)
    }

    /// Bytes of the fingerprint; `again` counts earlier results with the same identity.
    fn digest(&self, again: u32) -> [u8; 16] {
        let mut hasher = self.0.clone();
        hasher.update(again.to_le_bytes());
        let whole: [u8; 32] = hasher.finalize().into();
        std::array::from_fn(|at| whole.get(at).copied().unwrap_or_default())
    }
}

fn fingerprint(digest: &[u8; 16]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How often each identity occurred.
#[derive(Debug, Default)]
struct Fingerprints {
    seen: HashMap<[u8; 16], u32>,
}

impl Fingerprints {
    /// A distinct fingerprint for a result whose identity occurred before.
    fn again(&mut self, identity: Identity) -> Option<String> {
        let count = self.seen.entry(identity.digest(0)).or_default();
        let again = *count;
        *count = count.saturating_add(1);
        (again > 0).then(|| fingerprint(&identity.digest(again)))
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
