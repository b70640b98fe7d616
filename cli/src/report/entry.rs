//! What reports for other programs are made of: entries, each about one rule and one
//! object, and notices about what could not be used.
//!
//! A scan or the rows of a test go in; the writers of JUnit, SARIF, GitHub annotations
//! and Markdown take it from here and know nothing else. Texts are as they were found:
//! each writer escapes them in its own way.

use std::borrow::Cow;

use kpvm_format::meta::OmittedRule;

use crate::omitted;
use crate::policies::Policies;
use crate::report::{Run, Totals};
use crate::scan::{Finding, Object, Outcome, Place, PolicyFacts, Scan, Summary};
use crate::text::rule_name;

/// A whole report.
#[derive(Debug, Default)]
pub struct Entries<'e> {
    /// The rules that were evaluated.
    pub rules: Vec<RuleFacts<'e>>,
    /// The entries, in the order in which they are to be read.
    pub entries: Vec<Entry<'e>>,
    /// What could not be used, or was left out.
    pub notices: Vec<Notice<'e>>,
    /// How many there are of each outcome, those counted that are no entries.
    pub summary: Summary,
}

/// What is known of a rule.
#[derive(Debug, Clone, Default)]
pub struct RuleFacts<'e> {
    /// `policy/rule`, with the policy's namespace in front where it has one.
    pub id: String,
    /// A few words.
    pub title: Option<&'e str>,
    /// What it is for.
    pub description: Option<&'e str>,
    /// The policy's category.
    pub category: Option<&'e str>,
    /// `critical`, `high`, `medium`, `low` or `info`.
    pub severity: Option<&'static str>,
}

/// What one rule says about one object, or what a row of a test came to.
#[derive(Debug, Clone)]
pub struct Entry<'e> {
    /// What it is listed under: the policy, or the file of the test.
    pub group: Cow<'e, str>,
    /// The rule as in [`RuleFacts::id`].
    pub rule: String,
    /// The object as people say it: `Pod default/web`.
    pub object: Cow<'e, str>,
    /// The object as programs know it again: `v1/Pod/default/web`.
    pub object_id: Cow<'e, str>,
    /// What came of it.
    pub outcome: Outcome,
    /// The severity of the policy.
    pub severity: Option<&'static str>,
    /// The message.
    pub message: Cow<'e, str>,
    /// Where in the object; empty where that is not known.
    pub path: &'e str,
    /// What was found there; empty where nothing was looked at.
    pub found: &'e str,
    /// Where to look first: in the object's file, or in that of the test.
    pub place: Option<&'e Place>,
    /// Where else to look.
    pub related: Vec<Related<'e>>,
}

/// Another place that a result is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Related<'e> {
    /// What stands there.
    pub role: Role,
    /// Where.
    pub place: &'e Place,
}

/// What stands at a related place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What the policy demands.
    Demand,
    /// The rule, where no single demand of it failed.
    Rule,
    /// The object, or what was found in it.
    Object,
}

impl Role {
    /// The place in words, e.g. `demanded`.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Demand => "demanded",
            Role::Rule => "rule",
            Role::Object => "object",
        }
    }
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something could not be used.
    Error,
    /// Something was left out on request.
    Warning,
}

/// Something that is said about an input and no rule's outcome.
#[derive(Debug, Clone)]
pub struct Notice<'e> {
    /// How much it matters.
    pub level: Level,
    /// The file; empty where it is not about one.
    pub file: Cow<'e, str>,
    /// Line and character, from 1.
    pub position: Option<(u32, u32)>,
    /// What it says.
    pub message: Cow<'e, str>,
}

impl Entry<'_> {
    /// The message, and below it what was found and where else to look.
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

/// The entries of one part of the input, object by object.
pub fn entries<'r>(run: &Run<'r>) -> Vec<Entry<'r>> {
    let findings = run.scan.findings.iter();
    findings
        .filter_map(|finding| entry(run.scan, finding))
        .collect()
}

/// Everything but the entries.
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
    // Rules without names of their own are one for people.
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

/// Where the policy demands what failed, else where the rule is.
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

/// Where a policy demands something.
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

/// The parts of `file:line:column`.
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
