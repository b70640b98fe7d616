//! Records the events of an evaluation as traces of the explained rules.

use kpvm::engine::Status;
use std::collections::BTreeSet;

use kpvm::engine::observer::{
    EntryOutcome, Event, NotTried, Observer, Stage, Test, Tested, Verdict,
};
use kpvm_format::Tables;
use kpvm_format::condition::ConditionOperator;
use kpvm_format::criterion::Criterion;
use kpvm_format::symbol::SymbolId;
use kpvm_format::table::{self, Leaf, LeafKind, Site, SiteKind};
use kpvm_semantics::anchor::Anchor;

use super::filter;
use super::step::{Outcome, Step, StepKind, Trace, TracedResource};
use crate::place::Place;
use crate::resources::{Resource, Resources};
use crate::scan::{place_in, policy_place};
use crate::text::count;

/// Maximum length of a shown value, in bytes.
const SHOWN_BYTES: usize = 240;

/// Maximum length of the text of a failure, in characters.
const FAILURE_CHARACTERS: usize = 1000;

/// Maximum number of steps of a trace; further ones are only counted.
const STEPS: usize = 10_000;

/// Records what happens to some rules on one resource.
pub(super) struct Recorder<'r> {
    tables: Tables<'r>,
    /// Names of the policy files.
    files: &'r [String],
    rules: &'r BTreeSet<u32>,
    resources: &'r Resources,
    resource: &'r Resource,
    finished: Vec<Trace>,
    current: Option<Current>,
}

/// The current rule.
struct Current {
    trace: Trace,
    /// Steps that are still open, outermost first.
    open: Vec<Step>,
    steps: usize,
}

impl Current {
    fn add(&mut self, step: Step) {
        match self.open.last_mut() {
            Some(outer) => outer.steps.push(step),
            None => self.trace.steps.push(step),
        }
    }

    fn open(&mut self, step: Step) {
        self.open.push(step);
    }

    fn close(&mut self) {
        if let Some(step) = self.open.pop() {
            // A message or a property without context variables is not interesting.
            let is_aside = SIDE_STAGES
                .iter()
                .any(|stage| step.part == stage_name(*stage));
            if !(step.step == StepKind::Stage && is_aside && step.steps.is_empty()) {
                self.add(step);
            }
        }
    }

    /// Closes open steps down to `depth`.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            self.close();
        }
    }

    fn is_in(&self, kind: StepKind, part: &str) -> bool {
        let innermost = self.open.last();
        innermost.is_some_and(|step| step.step == kind && step.part == part)
    }

    /// An alternative followed by another test, or by the end, has held.
    fn close_alternative(&mut self) {
        if let Some(step) = self.open.last_mut()
            && step.step == StepKind::Alternative
        {
            step.held = Some(true);
            self.close();
        }
    }
}

impl<'r> Recorder<'r> {
    /// A recorder for these rules of a bundle; `files` are the names of its sources.
    pub(super) fn new(
        tables: Tables<'r>,
        files: &'r [String],
        rules: &'r BTreeSet<u32>,
        resources: &'r Resources,
        resource: &'r Resource,
    ) -> Self {
        Self {
            tables,
            files,
            rules,
            resources,
            resource,
            finished: Vec::new(),
            current: None,
        }
    }

    /// The traces: of the rules with a response, otherwise only of the first rule.
    pub(super) fn finish(self) -> Vec<Trace> {
        let mut traces = self.finished;
        if traces.iter().any(has_response) {
            traces.retain(has_response);
        } else {
            traces.truncate(1);
        }
        traces
    }

    fn begin(&self, rule: u32) -> Option<Current> {
        if !self.rules.contains(&rule) {
            return None;
        }
        let record = self.tables.rules.get(rule as usize)?;
        let policy = self.tables.policies.get(record.policy.get() as usize)?;
        let name = match self.resource.metadata("name") {
            "" => self.resource.metadata("generateName"),
            name => name,
        };
        let place = self.tables.rule_places.get(rule as usize);
        let trace = Trace {
            suite: None,
            policy: self.tables.text(policy.name).to_owned(),
            policy_namespace: self.tables.text(policy.namespace).to_owned(),
            rule: self.tables.text(record.name).to_owned(),
            rule_place: place.map_or_else(Place::default, |place| self.place(place)),
            resource: TracedResource {
                kind: self.resource.text("kind").to_owned(),
                namespace: self.resource.metadata("namespace").to_owned(),
                name: name.to_owned(),
                place: self.resources.place(self.resource.location()),
            },
            operation: String::new(),
            result: Outcome::NoResponse,
            message: String::new(),
            steps: Vec::new(),
            left_out: 0,
        };
        Some(Current {
            trace,
            open: Vec::new(),
            steps: 0,
        })
    }

    fn place(&self, place: &table::Place) -> Place {
        policy_place(place, self.files)
    }

    fn step(&self, kind: StepKind, site: &Site) -> Step {
        Step {
            written: self.tables.text(site.written).to_owned(),
            policy_place: Some(self.place(&site.place)),
            ..Step::new(kind, self.tables.text(site.part))
        }
    }

    /// Step of a test; none for structure that holds.
    fn test(&self, test: &Test<'_>) -> Option<Step> {
        let criterion = self.tables.criterion(test.instruction)?;
        let kind = match test.site.kind() {
            SiteKind::Filter => StepKind::Filter,
            SiteKind::Exclusion => StepKind::Exclusion,
            SiteKind::Condition => StepKind::Condition,
            SiteKind::Leaf | SiteKind::Tags | SiteKind::Absence => StepKind::Leaf,
            SiteKind::Anchor => StepKind::Anchor,
            SiteKind::Structure if test.held => return None,
            SiteKind::Structure | SiteKind::Alternative | SiteKind::Elements => StepKind::Structure,
        };
        let mut step = self.step(kind, test.site);
        step.held = Some(test.held);
        step.path = test.path.to_string();
        match test.subject {
            Tested::Request(facts) => match criterion {
                Criterion::Filter(filter) => {
                    step.expected = Some(filter::expected(&self.tables, filter));
                    step.found = Some(filter::found(filter, &facts, SHOWN_BYTES));
                }
                _ => {
                    step.found = Some(filter::NO_USER.into());
                    step.expected = Some("a user, for roles, clusterRoles and subjects".into());
                }
            },
            Tested::Condition { key, value } => {
                step.found = Some(key.show(SHOWN_BYTES));
                step.operator = match criterion {
                    Criterion::Condition(operator) => Some(ConditionOperator::name(operator)),
                    _ => None,
                };
                step.expected = Some(value.show(SHOWN_BYTES));
            }
            Tested::Value { found, pattern } => {
                if let Criterion::Present(key) = criterion {
                    let key = self.tables.symbols.text(key);
                    step.path = format!("{}{key}/", step.path);
                }
                let looks = !matches!(
                    criterion,
                    Criterion::ExistingItem
                        | Criterion::NonEmptyPattern
                        | Criterion::ExistencePattern
                );
                step.found = looks.then(|| found.show(SHOWN_BYTES));
                step.expected = match pattern {
                    Some(pattern) => Some(pattern.show(SHOWN_BYTES)),
                    None => self.pattern(criterion, test.site.kind()),
                };
            }
            Tested::Tag {
                entry,
                key,
                found,
                pattern,
            } => self.tag(
                &mut step,
                entry,
                key,
                found.show(SHOWN_BYTES),
                pattern.map(|pattern| pattern.show(SHOWN_BYTES)),
            ),
        }
        if !step.path.is_empty() && !step.part.starts_with("foreach") {
            let location = self.resources.location_of_path(self.resource, &step.path);
            step.resource_place = Some(self.resources.place(location));
        }
        Some(step)
    }

    fn tag(&self, step: &mut Step, entry: u32, key: &str, found: String, pattern: Option<String>) {
        let Some(record) = self.tables.tag_entries.get(entry as usize) else {
            return;
        };
        let anchor = Anchor::ALL.get(usize::from(record.anchor));
        let anchor = anchor.copied().unwrap_or(Anchor::None);
        let written = self.tables.text(record.key);
        step.written = match anchor {
            Anchor::None => written.to_owned(),
            anchor => format!("{}({written})", anchor.modifier()),
        };
        step.path.push_str(key);
        step.path.push('/');
        step.found = Some(found);
        step.expected = match (anchor, pattern) {
            (Anchor::Negation, _) => Some(ABSENT.into()),
            (_, Some(pattern)) => Some(pattern),
            (_, None) => self.leaf(record.leaf.get()),
        };
        let place = self.tables.tag_places.get(entry as usize);
        step.policy_place = place.map(|place| self.place(place));
    }

    /// Expected value of a pattern.
    fn pattern(&self, criterion: Criterion, kind: SiteKind) -> Option<String> {
        Some(match criterion {
            Criterion::Leaf(leaf) => return self.leaf(leaf.0),
            Criterion::Absent if kind == SiteKind::Absence => ABSENT.into(),
            Criterion::Present(_) => "\"*\"".into(),
            Criterion::Map => "a map".into(),
            Criterion::List => "a list".into(),
            Criterion::Length(length) => format!("at least {} items", length.0),
            Criterion::ExistingItem => "an item that fits".into(),
            Criterion::NonEmptyPattern => "a pattern that is no empty list".into(),
            Criterion::ExistencePattern => "an existence anchor over a list of maps".into(),
            Criterion::Absent
            | Criterion::Filter(_)
            | Criterion::User
            | Criterion::Condition(_)
            | Criterion::Expression
            | Criterion::Tags(_)
            | Criterion::Other => return None,
        })
    }

    fn leaf(&self, number: u32) -> Option<String> {
        let leaf: &Leaf = self.tables.leaves.get(number as usize)?;
        let text = self.tables.text(leaf.text);
        Some(if leaf.kind == LeafKind::String as u8 {
            format!("\"{text}\"")
        } else if leaf.kind == LeafKind::Null as u8 {
            "null".into()
        } else {
            text.to_owned()
        })
    }

    fn entry_name(&self, entry: u32) -> &'r str {
        let record = self.tables.entries.get(entry as usize);
        let slot = record.and_then(|entry| self.tables.slots.get(entry.slot.get() as usize));
        slot.map_or("", |slot| {
            self.tables.symbols.text(SymbolId(slot.name.get()))
        })
    }

    fn record(&self, event: &Event<'_>, current: &mut Current) {
        if current.steps >= STEPS {
            current.trace.left_out += 1;
            return;
        }
        current.steps += 1;
        match *event {
            // These begin or end a trace.
            Event::NotTried { .. } | Event::Tried { .. } | Event::Decided(_) => {}
            Event::Stage(stage) => {
                current.close_to(0);
                let mut step = Step::new(StepKind::Stage, stage_name(stage));
                if let Stage::Exception { exception } = stage {
                    let record = self.tables.exceptions.get(exception as usize);
                    step.written = record.map_or_else(String::new, |exception| {
                        self.tables.exception_key(exception)
                    });
                }
                current.open(step);
            }
            Event::Test(test) => {
                if let Tested::Request(facts) = test.subject
                    && current.trace.operation.is_empty()
                {
                    facts.operation.clone_into(&mut current.trace.operation);
                }
                if let Some(step) = self.test(&test) {
                    let alternative = alternative_of(&step.part).map(str::to_owned);
                    match alternative {
                        None => current.close_alternative(),
                        Some(part) if current.is_in(StepKind::Alternative, &part) => {}
                        Some(part) => {
                            current.close_alternative();
                            current.open(Step::new(StepKind::Alternative, &part));
                        }
                    }
                    current.add(step);
                }
            }
            Event::AnchorSkips { site, path } => {
                let mut step = self.step(StepKind::Skipped, site);
                step.path = path.to_string();
                current.add(step);
            }
            Event::AlternativeFailed {
                site,
                index,
                skipped,
            } => {
                let part = self.tables.text(site.part);
                if !current.is_in(StepKind::Alternative, part) {
                    current.close_alternative();
                    let part = match alternative_of(part) {
                        Some(part) => part.to_owned(),
                        None => format!("{part}[{index}]"),
                    };
                    current.open(Step::new(StepKind::Alternative, &part));
                }
                if let Some(step) = current.open.last_mut() {
                    step.held = Some(false);
                    step.found = Some(if skipped { "skipped" } else { "failed" }.into());
                    step.policy_place = Some(self.place(&site.place));
                }
                current.close();
            }
            Event::Element { site, index, value } => {
                self.leave_element(site, current);
                let mut step = self.step(StepKind::Element, site);
                step.part = format!("{}.element[{index}]", step.part);
                step.found = Some(value.show(SHOWN_BYTES));
                current.open(step);
            }
            Event::ElementPassed => {
                current.close_alternative();
                let mut open = current.open.iter_mut().rev();
                if let Some(element) = open.find(|step| step.step == StepKind::Element) {
                    element.held = Some(true);
                }
            }
            Event::ElementsEnd { site } => {
                if !self.leave_element(site, current) {
                    current.add(self.step(StepKind::NoElement, site));
                }
            }
            Event::Finding {
                control,
                path,
                value,
            } => {
                let mut step = Step::new(StepKind::Finding, "podSecurity");
                let record = self.tables.controls.get(control as usize);
                step.written = record
                    .map_or("", |control| self.tables.text(control.id))
                    .into();
                path.clone_into(&mut step.path);
                step.held = Some(false);
                step.found = Some(value.show(SHOWN_BYTES));
                step.resource_place = Some(place_in(self.resource, self.resources, path));
                current.add(step);
            }
            Event::Excluded {
                exclusion,
                findings,
            } => {
                let mut step = Step::new(StepKind::Excluded, "podSecurity.exclude");
                let record = self.tables.exclusions.get(exclusion as usize);
                let name = record.map_or("", |exclusion| self.tables.text(exclusion.name));
                name.clone_into(&mut step.written);
                step.held = Some(findings > 0);
                step.found = (findings > 0).then(|| count(findings as usize, "finding"));
                current.add(step);
            }
            Event::EntryBegins { entry } => {
                let mut step = Step::new(StepKind::Entry, "context");
                self.entry_name(entry).clone_into(&mut step.written);
                let place = self.tables.entry_places.get(entry as usize);
                step.policy_place = place.map(|place| self.place(place));
                current.open(step);
            }
            Event::EntryEnds { outcome, .. } => {
                if let Some(step) = current.open.last_mut() {
                    let (held, found) = match outcome {
                        EntryOutcome::Loaded(value) => (true, value.show(SHOWN_BYTES)),
                        EntryOutcome::Missing => (false, "nothing: there is no such data".into()),
                        EntryOutcome::Failed(text) => (false, cut(text)),
                    };
                    (step.held, step.found) = (Some(held), Some(found));
                }
                current.close();
            }
            Event::Failure(text) => {
                let inside = match current.open.last_mut() {
                    Some(outer) => &mut outer.steps,
                    None => &mut current.trace.steps,
                };
                // Of consecutive failures the last one is the most specific.
                inside.pop_if(|step| step.step == StepKind::Failure);
                let mut step = Step::new(StepKind::Failure, "");
                step.found = Some(cut(text));
                inside.push(step);
            }
        }
    }

    /// Closes the finished element of a foreach; returns whether there was one.
    fn leave_element(&self, site: &Site, current: &mut Current) -> bool {
        let prefix = format!("{}.element[", self.tables.text(site.part));
        let is_own = |step: &Step| step.step == StepKind::Element && step.part.starts_with(&prefix);
        let depth = current.open.iter().position(is_own);
        if let Some(depth) = depth {
            current.close_to(depth);
        }
        depth.is_some()
    }
}

impl Observer for Recorder<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Tried { rule, .. } => self.current = self.begin(rule),
            Event::NotTried { rule, reason } => {
                self.current = None;
                if let Some(mut current) = self.begin(rule) {
                    current.trace.message = not_tried(reason);
                    self.finished.push(current.trace);
                }
            }
            Event::Decided(verdict) => {
                if let Some(mut current) = self.current.take() {
                    current.close_alternative();
                    current.close_to(0);
                    decide(&mut current.trace, verdict);
                    self.finished.push(current.trace);
                }
            }
            _ => {
                if let Some(mut current) = self.current.take() {
                    self.record(event, &mut current);
                    self.current = Some(current);
                }
            }
        }
    }
}

/// Stages that decide nothing.
const SIDE_STAGES: [Stage; 2] = [Stage::Properties, Stage::Message];

const ABSENT: &str = "no such key";

fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(FAILURE_CHARACTERS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

fn has_response(trace: &Trace) -> bool {
    trace.result != Outcome::NoResponse
}

fn decide(trace: &mut Trace, verdict: Verdict<'_>) {
    let reason = match verdict {
        Verdict::NotMatched => "the rule does not apply to the resource",
        Verdict::Deletion => "the rule has a pattern, which says nothing about a deletion",
        Verdict::NoElement => "no element of a foreach counted",
        Verdict::Response(response) => {
            trace.result = match response.status() {
                Status::Pass => Outcome::Pass,
                Status::Fail => Outcome::Fail,
                Status::Error => Outcome::Error,
                Status::Skip => Outcome::Skip,
            };
            trace.message = response.message().into_owned();
            return;
        }
    };
    reason.clone_into(&mut trace.message);
}

fn not_tried(reason: NotTried<'_>) -> String {
    match reason {
        NotTried::Generated => "a rule that autogen made takes its place for this kind".into(),
        NotTried::Namespace { namespace } => {
            format!("the policy looks at resources of the namespace {namespace} only")
        }
        NotTried::AppliedOne => {
            "an earlier rule of the policy decided, and the policy applies one rule only".into()
        }
    }
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Match => "match",
        Stage::Preconditions => "preconditions",
        Stage::Properties => "reportProperties",
        Stage::Exception { .. } => "exception",
        Stage::Body => "validate",
        Stage::Message => "message",
        Stage::OldMatch => "match of the old object",
        Stage::OldBody => "validate of the old object",
    }
}

/// `anyPattern[0]` of `anyPattern[0]…`, with its prefix.
fn alternative_of(part: &str) -> Option<&str> {
    let start = part.find("anyPattern[")?;
    let length = part.get(start..)?.find(']')?;
    part.get(..=start + length)
}
