//! Common input of the report writers for other programs: entries, each about one rule and
//! one object, and notices about unusable inputs.
//!
//! Built from a scan or from the rows of a test. The writers of JUnit, SARIF, GitHub
//! annotations and Markdown depend only on this module. Texts are unescaped: each writer
//! escapes them for its format.

use std::borrow::Cow;

use kpvm_format::meta::OmittedRule;

use crate::omitted;
use crate::place::Place;
use crate::policies::Policies;
use crate::report::{Run, Totals};
use crate::scan::{Finding, Object, Outcome, PolicyFacts, Scan, Summary};
use crate::text::rule_name;

/// A whole report.
#[derive(Debug, Default)]
pub struct Entries<'e> {
    /// The rules that were evaluated.
    pub rules: Vec<RuleFacts<'e>>,
    /// Entries, in reading order.
    pub entries: Vec<Entry<'e>>,
    /// Unusable inputs and omissions.
    pub notices: Vec<Notice<'e>>,
    /// Counts by outcome, including those that are not listed as entries.
    pub summary: Summary,
}

/// Metadata of a rule.
#[derive(Debug, Clone, Default)]
pub struct RuleFacts<'e> {
    /// `policy/rule`, prefixed with the policy's namespace if it has one.
    pub id: String,
    /// Short title.
    pub title: Option<&'e str>,
    /// Description.
    pub description: Option<&'e str>,
    /// The policy's category.
    pub category: Option<&'e str>,
    /// `critical`, `high`, `medium`, `low` or `info`.
    pub severity: Option<&'static str>,
}

/// Outcome of one rule for one object, or of a row of a test.
#[derive(Debug, Clone)]
pub struct Entry<'e> {
    /// Group of the entry: the policy, or the file of the test.
    pub group: Cow<'e, str>,
    /// The rule as in [`RuleFacts::id`].
    pub rule: String,
    /// The object for people: `Pod default/web`.
    pub object: Cow<'e, str>,
    /// Stable identifier of the object: `v1/Pod/default/web`.
    pub object_id: Cow<'e, str>,
    /// Outcome.
    pub outcome: Outcome,
    /// The severity of the policy.
    pub severity: Option<&'static str>,
    /// The message.
    pub message: Cow<'e, str>,
    /// Path in the object; empty if unknown.
    pub path: &'e str,
    /// Value found there; empty if no value was examined.
    pub found: &'e str,
    /// Primary location: in the object's file, or in that of the test.
    pub place: Option<&'e Place>,
    /// Other locations.
    pub related: Vec<Related<'e>>,
}

/// A further location of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Related<'e> {
    /// What is at the location.
    pub role: Role,
    /// The location.
    pub place: &'e Place,
}

/// Role of a related location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The demand of the policy.
    Demand,
    /// The rule, if no single demand failed.
    Rule,
    /// The object, or the value found in it.
    Object,
}

impl Role {
    /// Role as text, e.g. `demanded`.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Demand => "demanded",
            Role::Rule => "rule",
            Role::Object => "object",
        }
    }
}

/// Severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// An input could not be used.
    Error,
    /// Something was omitted on request.
    Warning,
}

/// A message about an input that is not the outcome of a rule.
#[derive(Debug, Clone)]
pub struct Notice<'e> {
    /// Severity.
    pub level: Level,
    /// The file; empty if the notice concerns no file.
    pub file: Cow<'e, str>,
    /// Line and character, from 1.
    pub position: Option<(u32, u32)>,
    /// Message text.
    pub message: Cow<'e, str>,
}

impl Entry<'_> {
    /// The message, followed by the value found and the related locations.
    pub fn full_message(&self) -> String {
        let mut text = self.message.trim_end().to_owned();
        if !self.found.is_empty() {
            text.push_str("\nfound: ");
            text.push_str(self.found);
        }
        if !self.path.is_empty() {
            text.push_str("\nat: ");
            text.push_str(self.path);
        }
        for Related { role, place } in &self.related {
            text.push_str(&format!("\n{} at: {place}", role.as_str()));
        }
        text
    }
}

/// Entries of one chunk of the input, object by object.
pub fn entries<'r>(run: &Run<'r>) -> Vec<Entry<'r>> {
    let findings = run.scan.findings.iter();
    findings
        .filter_map(|finding| entry(run.scan, finding))
        .collect()
}

/// A report without entries.
pub fn without_entries<'r>(totals: &Totals<'r>) -> Entries<'r> {
    let facts = totals.scan.facts;
    let problems = totals.problems.iter().map(|problem| Notice {
        level: Level::Error,
        file: problem.file.as_str().into(),
        position: problem.position,
        message: problem.message.as_str().into(),
    });
    Entries {
        rules: facts.policies.iter().flat_map(rules).collect(),
        entries: Vec::new(),
        notices: problems
            .chain(invalid_policies(totals.policies))
            .chain(omitted_rules(&facts.omitted))
            .chain(omitted_policies(totals.policies))
            .collect(),
        summary: totals.scan.summary,
    }
}

/// The rules of a policy.
pub fn rules(policy: &PolicyFacts) -> impl Iterator<Item = RuleFacts<'_>> {
    // Rules without their own names are shown as one.
    let all = policy.rules.iter().enumerate();
    let named = all.filter(|(number, rule)| *number == 0 || !rule.name.is_empty());
    named.map(|(_, rule)| rule).map(|rule| RuleFacts {
        id: rule_id(policy, &rule.name),
        title: policy.title.as_deref(),
        description: policy.description.as_deref(),
        category: policy.category.as_deref(),
        severity: policy.severity,
    })
}

fn rule_id(policy: &PolicyFacts, rule: &str) -> String {
    rule_name(&policy.full_name(), rule)
}

fn entry<'s>(scan: &'s Scan<'_>, finding: &'s Finding) -> Option<Entry<'s>> {
    let (policy, object) = (scan.policy(finding)?, scan.object(finding)?);
    let check = finding.check.as_ref();
    Some(Entry {
        group: policy.full_name().into(),
        rule: rule_id(policy, &finding.rule),
        object: object.title().into(),
        object_id: object_id(object).into(),
        outcome: finding.outcome,
        severity: policy.severity,
        message: finding.message.as_str().into(),
        path: check.map_or("", |check| &check.path),
        found: check.map_or("", |check| &check.found),
        place: Some(check.map_or(&object.place, |check| &check.resource)),
        related: related(scan, finding),
    })
}

/// Location of the failed demand in the policy, otherwise of the rule.
fn related<'s>(scan: &'s Scan<'_>, finding: &'s Finding) -> Vec<Related<'s>> {
    let rule = || {
        let place = scan.rule_place(finding)?;
        Some(Related {
            role: Role::Rule,
            place,
        })
    };
    let check = finding.check.as_ref();
    let related = check.map(|check| demand(&check.policy)).or_else(rule);
    related.into_iter().collect()
}

/// Location of a demand in a policy.
pub fn demand(place: &Place) -> Related<'_> {
    Related {
        role: Role::Demand,
        place,
    }
}

fn object_id(object: &Object) -> String {
    let parts = [
        object.api_version.as_str(),
        &object.kind,
        &object.namespace,
        &object.name,
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

fn omitted_rules(rules: &[OmittedRule]) -> impl Iterator<Item = Notice<'_>> {
    omitted::group(rules).into_iter().map(|group| {
        let (file, position) = split_place(&group.rule.place);
        Notice {
            level: Level::Warning,
            file: file.into(),
            position,
            message: group.describe().into(),
        }
    })
}

fn invalid_policies(policies: Option<&Policies>) -> impl Iterator<Item = Notice<'_>> {
    let policies = policies.map_or(&[][..], |policies| &policies.invalid);
    policies.iter().map(|policy| {
        let (file, position) = split_place(&policy.place);
        Notice {
            level: Level::Error,
            file: file.into(),
            position,
            message: policy.describe().into(),
        }
    })
}

fn omitted_policies(policies: Option<&Policies>) -> impl Iterator<Item = Notice<'_>> {
    let policies = policies.map_or(&[][..], |policies| &policies.omitted_policies);
    policies.iter().map(|policy| {
        let (file, position) = split_place(&policy.place);
        Notice {
            level: Level::Warning,
            file: file.into(),
            position,
            message: policy.describe().into(),
        }
    })
}

/// Splits `file:line:column`.
fn split_place(place: &str) -> (&str, Option<(u32, u32)>) {
    let mut parts = place.rsplitn(3, ':');
    let (column, line, file) = (parts.next(), parts.next(), parts.next());
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    match (file, number(line), number(column)) {
        (Some(file), Some(line), Some(column)) => (file, Some((line, column))),
        _ => (place, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_words_are_taken_apart() {
        for (place, expected) in [
            ("a.yaml:3:14", ("a.yaml", Some((3, 14)))),
            ("c:/a.yaml:3:14", ("c:/a.yaml", Some((3, 14)))),
            ("a.yaml", ("a.yaml", None)),
            ("a:b:c", ("a:b:c", None)),
            ("", ("", None)),
        ] {
            assert_eq!(split_place(place), expected, "{place}");
        }
    }
}
