//! `--coverage`: which rules, filters, conditions and pattern leaves the suites exercised,
//! and whether in both directions.
//!
//! A [`Tally`] counts the evaluations of one bundle. A [`Coverage`] adds up the tallies of
//! all suites, keyed by the location in the policy files, so it does not matter how many
//! suites use a file, and generated rules count for the rule they were generated from. Only
//! executed checks count: a leaf after a failing one does not.

pub mod lcov;
pub mod structured;
mod tally;
pub mod text;

use std::collections::BTreeMap;
use std::io::{self, Write};

use kpvm::engine::Bundle;
use kpvm_format::Tables;
use kpvm_format::criterion::Criterion;
use kpvm_format::instruction::TagPatternId;
use kpvm_format::meta::OmittedRule;
use kpvm_format::table::{LeafKind, NONE, Place, Range, Rule, Site, SiteKind};
use kpvm_semantics::anchor::Anchor;
use serde::Serialize;

use crate::explain::filter;
pub use tally::{Counts, Outcomes, Tally};

/// Measurements and their totals.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    files: BTreeMap<String, FileCoverage>,
    /// Rules that are not supported yet, by policy, rule and place.
    omitted: BTreeMap<(String, String, String), String>,
}

/// Rules of one file, by location and policy.
type FileCoverage = BTreeMap<(u32, u32, String), RuleCoverage>;

/// One rule as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCoverage {
    /// Name of the policy.
    pub policy: String,
    /// Name of the rule.
    pub rule: String,
    /// Line of the rule, from 1.
    pub line: u32,
    /// Column of the rule, from 1.
    pub column: u32,
    /// How its evaluations ended.
    pub outcomes: Outcomes,
    points: BTreeMap<PointKey, Point>,
}

/// Identity of a point within a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PointKey {
    line: u32,
    column: u32,
    kind: PointKind,
    part: String,
}

/// A check of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// What it is.
    pub kind: PointKind,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// The part of the rule, e.g. `preconditions.all[0]`.
    pub part: String,
    /// What is tested, as text for people.
    pub text: String,
    /// How often it held and how often it did not.
    pub counts: Counts,
}

/// The kinds of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PointKind {
    /// A filter of `match` or `exclude`.
    Filter,
    /// A condition.
    Condition,
    /// A leaf of a pattern.
    Leaf,
    /// A construct without two directions: only whether it was executed counts.
    Line,
}

impl PointKind {
    /// The kinds with two directions.
    pub const TESTS: [PointKind; 3] = [PointKind::Filter, PointKind::Condition, PointKind::Leaf];

    /// `filter`, `condition`, `leaf` or `line`.
    pub fn as_str(self) -> &'static str {
        match self {
            PointKind::Filter => "filter",
            PointKind::Condition => "condition",
            PointKind::Leaf => "leaf",
            PointKind::Line => "line",
        }
    }
}

/// A covered count out of a total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Number covered.
    pub covered: u64,
    /// Total number.
    pub total: u64,
}

impl Share {
    fn add(&mut self, other: Share) {
        self.covered += other.covered;
        self.total += other.total;
    }
}

/// Shares of a rule, a file, or everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Rules: one that gave a response is covered.
    pub rules: Share,
    /// Directions of filters: each filter has two, held and not held.
    pub filters: Share,
    /// Directions of conditions.
    pub conditions: Share,
    /// Directions of pattern leaves.
    pub leaves: Share,
}

impl Summary {
    /// Rules and directions together.
    pub fn all(&self) -> Share {
        let mut all = self.rules;
        all.add(self.filters);
        all.add(self.conditions);
        all.add(self.leaves);
        all
    }

    /// Percentage of covered rules and directions, with one decimal, rounded down; `None`
    /// if there is nothing to cover.
    pub fn percent(&self) -> Option<f64> {
        let Share { covered, total } = self.all();
        (covered * 1000)
            .checked_div(total)
            .map(|tenths| tenths as f64 / 10.0)
    }

    fn share(&mut self, kind: PointKind) -> Option<&mut Share> {
        match kind {
            PointKind::Filter => Some(&mut self.filters),
            PointKind::Condition => Some(&mut self.conditions),
            PointKind::Leaf => Some(&mut self.leaves),
            PointKind::Line => None,
        }
    }

    fn add(&mut self, other: &Summary) {
        self.rules.add(other.rules);
        self.filters.add(other.filters);
        self.conditions.add(other.conditions);
        self.leaves.add(other.leaves);
    }
}

impl RuleCoverage {
    /// What it tests, in the order of the text.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        let is_test = |point: &&Point| point.kind != PointKind::Line;
        self.points.values().filter(is_test)
    }

    /// Its shares.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            rules: Share {
                covered: u64::from(self.outcomes.applied() > 0),
                total: 1,
            },
            ..Summary::default()
        };
        for point in self.points() {
            let directions = [point.counts.held, point.counts.not_held];
            let covered = directions.iter().filter(|&&count| count > 0).count();
            if let Some(share) = summary.share(point.kind) {
                share.covered += covered as u64;
                share.total += 2;
            }
        }
        summary
    }

    /// How often each line was executed: the maximum over its points.
    fn lines(&self) -> impl Iterator<Item = (u32, u64)> {
        let rule = (self.line, self.outcomes.applied());
        let points = self.points.values();
        let line = |point: &Point| (point.line, point.executed());
        std::iter::once(rule).chain(points.map(line))
    }
}

impl Coverage {
    /// An empty measurement.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the counts of a bundle. Its rules count as measured even if nothing was
    /// evaluated.
    pub fn add(&mut self, bundle: &Bundle<'_>, tally: &Tally<'_>) {
        let tables = bundle.tables();
        let meta = bundle.meta();
        let files: Vec<String> = meta.sources.iter().map(|name| normal(name)).collect();
        for omitted in &meta.omitted {
            self.add_omitted(omitted);
        }
        let reader = Reader { tables };
        for (number, (rule, place)) in tables.rules.iter().zip(tables.rule_places).enumerate() {
            let Some(file) = files.get(place.source.get() as usize) else {
                continue;
            };
            let policy = tables.policies.get(rule.policy.get() as usize);
            let policy = policy.map_or("", |policy| tables.text(policy.name));
            let key = (place.line.get(), place.column.get(), policy.to_owned());
            let file = self.files.entry(file.clone()).or_default();
            let covered = file.entry(key).or_insert_with(|| RuleCoverage {
                policy: policy.to_owned(),
                // The written rule precedes the rules generated from it.
                rule: tables.text(rule.name).to_owned(),
                line: place.line.get(),
                column: place.column.get(),
                outcomes: Outcomes::default(),
                points: BTreeMap::new(),
            });
            if let Some(outcomes) = tally.rules.get(number) {
                covered.outcomes.add(*outcomes);
            }
            let mut points = BTreeMap::new();
            reader.points(rule, tally, &mut |point| add_point(&mut points, point));
            points.into_values().for_each(|point| covered.add(point));
        }
    }

    fn add_omitted(&mut self, omitted: &OmittedRule) {
        let key = (
            omitted.policy.clone(),
            omitted.rule.clone(),
            omitted.place.clone(),
        );
        self.omitted.insert(key, omitted.reason.clone());
    }

    /// Adds another measurement.
    pub fn merge(&mut self, other: Coverage) {
        self.omitted.extend(other.omitted);
        for (file, rules) in other.files {
            let file = self.files.entry(file).or_default();
            for (key, rule) in rules {
                match file.get_mut(&key) {
                    None => {
                        file.insert(key, rule);
                    }
                    Some(known) => {
                        known.outcomes.add(rule.outcomes);
                        rule.points.into_values().for_each(|point| known.add(point));
                    }
                }
            }
        }
    }

    /// Files with their rules, ordered by name and location.
    pub fn files(&self) -> impl Iterator<Item = (&str, Vec<&RuleCoverage>)> {
        let files = self.files.iter();
        files.map(|(name, rules)| (name.as_str(), rules.values().collect()))
    }

    /// The shares of everything.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for rule in self.files.values().flat_map(BTreeMap::values) {
            summary.add(&rule.summary());
        }
        summary
    }
}

impl RuleCoverage {
    fn add(&mut self, point: Point) {
        match self.points.get_mut(&point.key()) {
            Some(known) => known.counts.add(point.counts),
            None => {
                self.points.insert(point.key(), point);
            }
        }
    }
}

impl Point {
    fn executed(&self) -> u64 {
        self.counts.held + self.counts.not_held
    }

    fn key(&self) -> PointKey {
        PointKey {
            line: self.line,
            column: self.column,
            kind: self.kind,
            part: self.part.clone(),
        }
    }
}

/// Adds a point of one rule. Autogen wraps a pattern in maps that have its location: the
/// line counts as often as the most frequent of them.
fn add_point(points: &mut BTreeMap<PointKey, Point>, point: Point) {
    match points.get_mut(&point.key()) {
        None => {
            points.insert(point.key(), point);
        }
        Some(known) if known.kind == PointKind::Line => {
            let executed = known.executed().max(point.executed());
            known.counts = Counts {
                held: executed,
                not_held: 0,
            };
        }
        Some(known) => known.counts.add(point.counts),
    }
}

/// Normalises a path: removes `.`, and `..` after a name, so that a file has one name
/// whatever path a suite uses.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for (index, part) in path.split('/').enumerate() {
        match (part, parts.last()) {
            (".", _) => {}
            ("", _) if index > 0 => {}
            ("..", Some(&last)) if !matches!(last, ".." | "") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Reads what a rule tests from the tables of a bundle.
struct Reader<'b> {
    tables: Tables<'b>,
}

impl Reader<'_> {
    fn points(&self, rule: &Rule, tally: &Tally<'_>, add: &mut dyn FnMut(Point)) {
        let blocks = [rule.match_block, rule.precondition_block, rule.body_block];
        for block in blocks {
            let Some(block) = self.tables.blocks.get(block.get() as usize) else {
                continue;
            };
            let first = block.start.get();
            for number in first..first.saturating_add(block.length.get()) {
                let Some((site, criterion)) =
                    self.tables.site(number).zip(self.tables.criterion(number))
                else {
                    continue;
                };
                let counts = tally
                    .tests
                    .get(number as usize)
                    .copied()
                    .unwrap_or_default();
                if let Criterion::Tags(pattern) = criterion {
                    self.tags(pattern, site, tally, add);
                }
                add(self.point(criterion, site, counts));
            }
        }
        let first = rule.entries.start.get() as usize;
        let entries = Tables::range(self.tables.entry_places, rule.entries);
        for (number, place) in (first..).zip(entries) {
            let held = tally.entries.get(number).copied().unwrap_or_default();
            let counts = Counts { held, not_held: 0 };
            add(point(
                PointKind::Line,
                place,
                "context",
                String::new(),
                counts,
            ));
        }
    }

    fn point(&self, criterion: Criterion, site: &Site, counts: Counts) -> Point {
        let part = self.tables.text(site.part);
        let written = self.tables.text(site.written);
        let (kind, text) = match site.kind() {
            SiteKind::Filter | SiteKind::Exclusion => {
                let expected = match criterion {
                    Criterion::Filter(filter) => filter::expected(&self.tables, filter),
                    _ => String::new(),
                };
                (PointKind::Filter, format!("{part}.{written}: {expected}"))
            }
            SiteKind::Condition => {
                let text = match criterion {
                    Criterion::Condition(operator) => {
                        format!("{part}: {written} {}", operator.name())
                    }
                    _ => format!("{part}: {written}"),
                };
                (PointKind::Condition, text)
            }
            SiteKind::Leaf | SiteKind::Absence => {
                let path = self.path(site.path);
                (PointKind::Leaf, self.leaf(criterion, &path, written))
            }
            SiteKind::Structure
            | SiteKind::Tags
            | SiteKind::Anchor
            | SiteKind::Alternative
            | SiteKind::Elements => (PointKind::Line, String::new()),
        };
        point(kind, &site.place, part, text, counts)
    }

    fn leaf(&self, criterion: Criterion, path: &str, written: &str) -> String {
        match criterion {
            Criterion::Leaf(leaf) => format!("{path}: {}", self.leaf_text(leaf.0)),
            Criterion::Present(key) => {
                let key = self.tables.symbols.text(key);
                format!("{path}/{key}: \"*\"").replace("//", "/")
            }
            Criterion::Absent => format!("{path}: {written}"),
            _ => format!("{path}: \"{written}\""),
        }
    }

    fn leaf_text(&self, number: u32) -> String {
        let Some(leaf) = self.tables.leaves.get(number as usize) else {
            return String::new();
        };
        let text = self.tables.text(leaf.text);
        match LeafKind::ALL.get(usize::from(leaf.kind)) {
            Some(LeafKind::String) => format!("\"{text}\""),
            Some(LeafKind::Null) => "null".into(),
            _ => text.to_owned(),
        }
    }

    /// Path of a value, with `*` for any item of a list.
    fn path(&self, path: Range) -> String {
        let segments = Tables::range(self.tables.path_segments, path);
        let path: String = segments
            .iter()
            .map(|segment| match segment.loop_slot.get() {
                NONE => self.tables.text(segment.text),
                _ => "*",
            })
            .collect();
        match path.trim_end_matches('/') {
            "" => "/".into(),
            path => path.to_owned(),
        }
    }

    /// Each entry of a label or annotation pattern is a leaf.
    fn tags(
        &self,
        pattern: TagPatternId,
        site: &Site,
        tally: &Tally<'_>,
        add: &mut dyn FnMut(Point),
    ) {
        let pattern = self.tables.tag_patterns.get(pattern.index());
        let entries = pattern.map_or(Range::EMPTY, |pattern| pattern.entries);
        let first = entries.start.get() as usize;
        let records = Tables::range(self.tables.tag_entries, entries);
        let places = Tables::range(self.tables.tag_places, entries);
        for ((number, record), place) in (first..).zip(records).zip(places) {
            let anchor = Anchor::ALL.get(usize::from(record.anchor));
            let anchor = anchor.copied().unwrap_or(Anchor::None);
            let key = self.tables.text(record.key);
            let key = match anchor {
                Anchor::None => key.to_owned(),
                anchor => format!("{}({key})", anchor.modifier()),
            };
            let path = self.path(site.path);
            let text = format!("{path}/{key}: {}", self.leaf_text(record.leaf.get()));
            let counts = tally.tags.get(number).copied().unwrap_or_default();
            let part = self.tables.text(site.part);
            add(point(PointKind::Leaf, place, part, text, counts));
        }
    }
}

fn point(kind: PointKind, place: &Place, part: &str, text: String, counts: Counts) -> Point {
    Point {
        kind,
        line: place.line.get(),
        column: place.column.get(),
        part: part.to_owned(),
        text,
        counts,
    }
}

/// Output formats of coverage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// A table, and what was not exercised in both directions
    #[default]
    Text,
    /// One JSON object with every rule and point
    Json,
    /// LCOV over the policies' files, for tools that show coverage
    Lcov,
}

/// Writes the coverage.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(format: Format, coverage: &Coverage, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text => text::write(coverage, out),
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &structured::document(coverage))?;
            writeln!(out)
        }
        Format::Lcov => lcov::write(coverage, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_name() {
        for (path, expected) in [
            ("policy.yaml", "policy.yaml"),
            ("./policy.yaml", "policy.yaml"),
            ("suites/a/../policy.yaml", "suites/policy.yaml"),
            ("suites/a/../../policy.yaml", "policy.yaml"),
            ("../policy.yaml", "../policy.yaml"),
            ("../../x/../policy.yaml", "../../policy.yaml"),
            ("/a//b/./policy.yaml", "/a/b/policy.yaml"),
            ("/../policy.yaml", "/../policy.yaml"),
            ("<stdin>", "<stdin>"),
        ] {
            assert_eq!(normal(path), expected, "{path}");
        }
    }
}
