//! Results per chunk of the input, and their merge.
//!
//! The result of a chunk contains its share of each report and its messages for people; the
//! rest are counts and samples, which do not grow with the number of objects.

use std::collections::BTreeSet;
use std::io;

use crate::policies::Policies;
use crate::report::{self, Format, Note, Run, Totals};
use crate::resources::Resources;
use crate::scan::{Facts, Object, Scan};
use crate::stream::Streams;

/// Maximum number of distinct kinds that are tracked.
const KINDS: usize = 1000;

/// Maximum number of unusable inputs listed in reports.
const NOTES: usize = 10_000;

/// What to report, and how.
#[derive(Debug, Clone)]
pub struct View<'p> {
    /// Formats of the reports.
    pub formats: Vec<Format>,
    /// The policies and their texts; `None` if only a bundle is available.
    pub policies: Option<&'p Policies>,
    /// Seconds since 1970, for reports that contain the time.
    pub now: u64,
    /// Whether skipped rules are shown to people.
    pub verbose: bool,
    /// Lifetime of generated exceptions, in nanoseconds; unlimited if not above 0.
    pub exception_ttl: i64,
}

/// Result of one chunk of the input.
#[derive(Debug)]
pub struct Part<'f> {
    /// Its share of each report.
    pub reports: Vec<report::Part>,
    /// Messages for people: unusable inputs.
    pub told: Vec<u8>,
    /// The rest.
    pub outcome: Outcome<'f>,
}

/// Merged results of chunks.
#[derive(Debug)]
pub struct Outcome<'f> {
    /// The counts; of the objects, as many as needed to know which policies matched none.
    pub scan: Scan<'f>,
    /// The first object of each kind.
    pub samples: Vec<Resources>,
    /// Inputs that could not be used.
    pub notes: Vec<Note>,
    /// Number of unusable inputs.
    pub problems: usize,
    /// Number of inputs that could not even be read.
    pub unreadable: usize,
    /// Number of lists without items.
    pub empty_lists: usize,
    /// How many texts were read into trees.
    pub texts: usize,
    /// Services that rules tried to call.
    pub services: BTreeSet<String>,
    /// Kinds of the samples.
    sampled: BTreeSet<String>,
    /// Kinds and namespaces of the objects.
    known: BTreeSet<[String; 2]>,
}

impl<'f> Part<'f> {
    /// Result for some objects. `resources` contains their texts and all problems;
    /// `unreadable` of them are from reading.
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
    /// An empty result.
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

    /// Number of objects, including those that could not be evaluated.
    pub fn objects(&self) -> usize {
        self.scan.evaluated + self.problems.saturating_sub(self.unreadable)
    }

    /// Merges the result of a later chunk.
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

    /// Keeps the objects of kinds without a sample.
    pub fn add_sample(&mut self, sample: Resources) {
        let kind = sample.list.first().map(|resource| resource.text("kind"));
        let kind = kind.unwrap_or_default();
        if self.sampled.len() < KINDS && self.sampled.insert(kind.to_owned()) {
            self.samples.push(sample);
        }
    }

    /// The totals for all reports.
    pub fn totals<'r>(&'r self, policies: Option<&'r Policies>, detailed: bool) -> Totals<'r> {
        Totals {
            scan: &self.scan,
            problems: &self.notes,
            policies,
            detailed,
        }
    }

    /// Notes how many problems the reports omit.
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
            // Other namespaces are irrelevant.
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
