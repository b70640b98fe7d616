//! Counts what the evaluations of one bundle test.

use std::collections::HashMap;

use kpvm::engine::observer::{Event, NotTried, Observer, Tested, Verdict};
use kpvm::engine::{Bundle, Status};
use kpvm_format::Tables;
use kpvm_format::site::InstructionId;
use kpvm_format::table::{Rule, RuleFlags};

/// How often a check held and how often it did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times it held.
    pub held: u64,
    /// Times it did not.
    pub not_held: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Counts) {
        self.held += other.held;
        self.not_held += other.not_held;
    }

    fn count(&mut self, held: bool) {
        *if held {
            &mut self.held
        } else {
            &mut self.not_held
        } += 1;
    }
}

/// How the evaluations of a rule ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
    /// Skipped by the rule itself.
    pub skipped: u64,
    /// Could not be evaluated.
    pub errored: u64,
    /// No response.
    pub not_applied: u64,
}

impl Outcomes {
    pub(super) fn add(&mut self, other: Outcomes) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.errored += other.errored;
        self.not_applied += other.not_applied;
    }

    /// Number of responses of the rule.
    pub fn applied(&self) -> u64 {
        self.passed + self.failed + self.skipped + self.errored
    }
}

/// Counts what the evaluations of one bundle test; input of [`super::Coverage::add`].
///
/// Among a rule and the rules generated from it, an evaluation counts for the one that
/// applies to the kind of the resource: that a rule for Pods does not match a Deployment is
/// not a finding if a generated rule does.
pub struct Tally<'b> {
    tables: Tables<'b>,
    /// By rule and instruction: rules share code.
    tests: HashMap<(u32, InstructionId), Counts>,
    /// By rule and entry of the label and annotation patterns.
    tags: HashMap<(u32, u32), Counts>,
    /// By context entry.
    pub(super) entries: Vec<u64>,
    /// By rule.
    pub(super) rules: Vec<Outcomes>,
    /// Rules at the same location, for rules that share theirs.
    twins: Vec<Vec<u32>>,
    /// Current rule, if it counts.
    current: Option<u32>,
}

impl<'b> Tally<'b> {
    /// An empty tally.
    pub fn new(bundle: &'b Bundle<'_>) -> Self {
        let tables = bundle.tables();
        let mut at_place: HashMap<(u32, [u32; 3]), Vec<u32>> = HashMap::new();
        let places = (0u32..).zip(tables.rules).zip(tables.rule_places);
        let key = |rule: &Rule, place: &kpvm_format::table::Place| {
            let place = [place.source, place.line, place.column].map(|number| number.get());
            (rule.policy.get(), place)
        };
        for ((number, rule), place) in places.clone() {
            at_place.entry(key(rule, place)).or_default().push(number);
        }
        let twins = places.map(|((_, rule), place)| {
            let rules = at_place.get(&key(rule, place)).cloned();
            rules.filter(|rules| rules.len() > 1).unwrap_or_default()
        });
        Self {
            tests: HashMap::new(),
            tags: HashMap::new(),
            entries: vec![0; tables.entries.len()],
            rules: vec![Outcomes::default(); tables.rules.len()],
            twins: twins.collect(),
            current: None,
            tables,
        }
    }

    /// Whether the rule is the one among its twins for a kind, or the written one if none
    /// is.
    fn stands_for(&self, rule: u32, kind: &str) -> bool {
        let is_about = |rule: u32| {
            let record = self.tables.rules.get(rule as usize);
            let kinds = record.map_or(&[][..], |rule| {
                Tables::range(self.tables.index_kinds, rule.kinds)
            });
            kinds.iter().any(|&text| self.tables.text(text) == kind)
        };
        match self.twins.get(rule as usize).map(Vec::as_slice) {
            None | Some([]) => true,
            Some(twins) => {
                is_about(rule)
                    || !is_generated(&self.tables, rule)
                        && !twins.iter().any(|&twin| is_about(twin))
            }
        }
    }

    fn outcomes(&mut self, rule: u32) -> Option<&mut Outcomes> {
        self.rules.get_mut(rule as usize)
    }

    fn count_test(&mut self, rule: u32, instruction: InstructionId, held: bool) {
        let counts = self.tests.entry((rule, instruction)).or_default();
        counts.count(held);
    }

    /// How often a test of a rule held and did not.
    pub(super) fn test(&self, rule: u32, instruction: InstructionId) -> Counts {
        let counts = self.tests.get(&(rule, instruction));
        counts.copied().unwrap_or_default()
    }

    /// The same for an entry of a label or annotation pattern.
    pub(super) fn tag(&self, rule: u32, entry: u32) -> Counts {
        self.tags.get(&(rule, entry)).copied().unwrap_or_default()
    }
}

pub(super) fn is_generated(tables: &Tables<'_>, rule: u32) -> bool {
    let record = tables.rules.get(rule as usize);
    record.is_some_and(|rule| rule.flags & RuleFlags::GENERATED != 0)
}

impl Observer for Tally<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Tried { rule, kind } => {
                self.current = self.stands_for(rule, kind).then_some(rule);
                return;
            }
            Event::NotTried { rule, reason } => {
                self.current = None;
                let counts = reason != NotTried::Generated && !is_generated(&self.tables, rule);
                if let Some(outcomes) = self.outcomes(rule).filter(|_| counts) {
                    outcomes.not_applied += 1;
                }
                return;
            }
            _ => {}
        }
        let Some(rule) = self.current else {
            return;
        };
        match *event {
            Event::Test(test) => match test.subject {
                Tested::Tag { entry, .. } => {
                    let counts = self.tags.entry((rule, entry)).or_default();
                    counts.count(test.held);
                }
                _ => self.count_test(rule, test.instruction, test.held),
            },
            Event::AnchorSkips { instruction, .. }
            | Event::AlternativeFailed { instruction, .. }
            | Event::Element { instruction, .. } => self.count_test(rule, instruction, true),
            Event::EntryBegins { entry } => {
                if let Some(count) = self.entries.get_mut(entry as usize) {
                    *count += 1;
                }
            }
            Event::Decided(verdict) => {
                if let Some(outcomes) = self.outcomes(rule) {
                    *match verdict {
                        Verdict::NotMatched | Verdict::Deletion | Verdict::NoElement => {
                            &mut outcomes.not_applied
                        }
                        Verdict::Response(response) => match response.status() {
                            Status::Pass => &mut outcomes.passed,
                            Status::Fail => &mut outcomes.failed,
                            Status::Skip => &mut outcomes.skipped,
                            Status::Error => &mut outcomes.errored,
                        },
                    } += 1;
                }
            }
            Event::Tried { .. }
            | Event::NotTried { .. }
            | Event::Stage(_)
            | Event::Finding { .. }
            | Event::Excluded { .. }
            | Event::ElementPassed
            | Event::ElementsEnd { .. }
            | Event::EntryEnds { .. }
            | Event::Failure(_) => {}
        }
    }
}
