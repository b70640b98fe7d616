//! What one part of the input came to, and what all parts come to together.
//!
//! A part carries its findings in the form of each report and what people are to be told;
//! the rest are counts and samples, which do not grow with the number of objects.

use std::collections::BTreeSet;
use std::io;

use crate::policies::Policies;
use crate::report::{self, Format, Note, Run, Totals};
use crate::resources::Resources;
use crate::scan::{Facts, Object, Scan};
use crate::stream::Streams;

/// Kinds of objects that are known apart.
const KINDS: usize = 1000;

/// Inputs that could not be used of which reports speak one by one.
const NOTES: usize = 10_000;

/// What is to be reported, and how.
#[derive(Debug, Clone)]
pub struct View<'p> {
    /// The forms of the reports.
    pub formats: Vec<Format>,
    /// The policies and their texts; `None` where there is only a bundle.
    pub policies: Option<&'p Policies>,
    /// Seconds since 1970, for reports that carry the time.
    pub now: u64,
    /// Whether rules that were skipped are shown to people.
    pub verbose: bool,
    /// How long generated exceptions hold, in nanoseconds; for ever where it is not above 0.
    pub exception_ttl: i64,
}

/// What one part of the input came to.
#[derive(Debug)]
pub struct Part<'f> {
    /// What it adds to each report.
    pub reports: Vec<report::Part>,
    /// What people are told: inputs that could not be used.
    pub told: Vec<u8>,
    /// The rest.
    pub outcome: Outcome<'f>,
}

/// What parts came to together.
#[derive(Debug)]
pub struct Outcome<'f> {
    /// The counts; of the objects as many as tell which policies matched none.
    pub scan: Scan<'f>,
    /// The first object of each kind.
    pub samples: Vec<Resources>,
    /// Inputs that could not be used.
    pub notes: Vec<Note>,
    /// How many these are.
    pub problems: usize,
    /// How many of them could not even be read.
    pub unreadable: usize,
    /// How many lists had no items at all.
    pub empty_lists: usize,
    /// How many texts were read into trees.
    pub texts: usize,
    /// The services that rules wanted to ask.
    pub services: BTreeSet<String>,
    /// Kinds of the samples.
    sampled: BTreeSet<String>,
    /// Kinds and namespaces of the objects.
    known: BTreeSet<[String; 2]>,
}

impl<'f> Part<'f> {
    /// What was found in some objects. `resources` has the texts that they stand in, and all
    /// problems, so many of them from reading.
    ///
    /// # Errors
    /// Fails if a serialiser fails.
    pub fn new(
        scan: Scan<'f>,
        resources: &Resources,
        unreadable: usize,
        view: &View<'_>,
    ) -> io::Result<Self> {
        let run = Run {
            scan: &scan,
            resources,
            policies: view.policies,
            now: view.now,
            verbose: view.verbose,
            exception_ttl: view.exception_ttl,
        };
        let formats = view.formats.iter();
        let reports = formats.map(|format| report::Part::new(*format, &run));
        let reports = reports.collect::<io::Result<Vec<_>>>()?;
        let mut told = Vec::new();
        for problem in &resources.problems {
            let mut streams = Streams {
                out: &mut io::sink(),
                err: &mut told,
            };
            problem.show(&resources.sources, &mut streams)?;
        }
        let mut outcome = Outcome::new(scan.facts);
        outcome.problems = resources.problems.len();
        outcome.unreadable = unreadable;
        outcome.notes = report::notes(resources);
        outcome.empty_lists = resources.empty_lists;
        outcome.texts = resources.sources.iter().count();
        outcome.add_scan(scan);
        Ok(Self {
            reports,
            told,
            outcome,
        })
    }
}

impl<'f> Outcome<'f> {
    /// No part yet.
    pub fn new(facts: &'f Facts) -> Self {
        Self {
            scan: Scan::new(facts),
            samples: Vec::new(),
            notes: Vec::new(),
            problems: 0,
            unreadable: 0,
            empty_lists: 0,
            texts: 0,
            services: BTreeSet::new(),
            sampled: BTreeSet::new(),
            known: BTreeSet::new(),
        }
    }

    /// How many objects there were, those that could not be evaluated as well.
    pub fn objects(&self) -> usize {
        self.scan.evaluated + self.problems.saturating_sub(self.unreadable)
    }

    /// Adds what a later part came to.
    pub fn add(&mut self, more: Self) {
        self.problems += more.problems;
        self.unreadable += more.unreadable;
        self.empty_lists += more.empty_lists;
        self.texts += more.texts;
        self.services.extend(more.services);
        let room = NOTES.saturating_sub(self.notes.len());
        self.notes.extend(more.notes.into_iter().take(room));
        self.add_scan(more.scan);
        for sample in more.samples {
            self.add_sample(sample);
        }
    }

    /// Keeps the objects of a kind that none was kept of.
    pub fn add_sample(&mut self, sample: Resources) {
        let kind = sample.list.first().map(|resource| resource.text("kind"));
        let kind = kind.unwrap_or_default();
        if self.sampled.len() < KINDS && self.sampled.insert(kind.to_owned()) {
            self.samples.push(sample);
        }
    }

    /// The same for all reports.
    pub fn totals<'r>(&'r self, policies: Option<&'r Policies>, detailed: bool) -> Totals<'r> {
        Totals {
            scan: &self.scan,
            problems: &self.notes,
            policies,
            detailed,
        }
    }

    /// Says of how many problems reports have not heard.
    pub fn close_notes(&mut self) {
        let more = self.problems.saturating_sub(self.notes.len());
        if more > 0 {
            self.notes.push(Note {
                file: String::new(),
                position: None,
                message: format!("{more} more inputs could not be used"),
            });
        }
    }

    fn add_scan(&mut self, more: Scan<'f>) {
        self.scan.summary.merge(more.summary);
        self.scan.evaluated += more.evaluated;
        for (own, more) in self.scan.applied.iter_mut().zip(more.applied) {
            *own |= more;
        }
        for object in more.objects {
            // Other namespaces tell nothing.
            let namespaces = &self.scan.facts.namespaces;
            let namespace = match namespaces.contains(&object.namespace) {
                true => object.namespace.clone(),
                false => String::new(),
            };
            let key = [object.kind.clone(), namespace];
            let is_known = self.known.contains(&key) || self.known.len() >= KINDS;
            if !is_known {
                self.known.insert(key);
                self.scan.objects.push(Object {
                    kind: object.kind,
                    namespace: object.namespace,
                    ..Object::default()
                });
            }
        }
    }
}
