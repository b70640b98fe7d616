//! Evaluates every object against every rule: the engine's responses become findings, which
//! are counted like in Kyverno's command line (docs/spec/cli.md §9.7).

use std::collections::BTreeSet;

use kpvm::engine::{Bundle, Engine, RuleResponse, Status};
use kpvm::host::Host;
use kpvm_compiler::diagnostic::Diagnostic;
use kpvm_compiler::source::Location;
use kpvm_format::Tables;
use kpvm_format::meta::{Meta, OmittedRule};
use kpvm_format::table::{self, PolicyFlags, RuleFlags};
use serde::Serialize;

use crate::evaluation::{Circumstances, Evaluator};
use crate::place::Place;
use crate::problem::Problem;
use crate::resources::{Resource, Resources};
use crate::unmatched::Unmatched;

/// How objects are evaluated.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Inputs other than policies and objects.
    pub circumstances: Circumstances,
    /// Whether failures of policies that only audit count as warnings.
    pub audit_warn: bool,
    /// Whether findings that pass are kept, or only counted.
    pub keep_passes: bool,
}

/// How a finding is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The rule passed.
    Pass,
    /// The rule failed.
    Fail,
    /// The rule failed, but only warns.
    Warn,
    /// The rule could not be evaluated.
    Error,
    /// The rule does not apply, for a reason that it gives.
    Skip,
}

impl Outcome {
    /// `pass`, `fail`, `warn`, `error` or `skip`.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Warn => "warn",
            Outcome::Error => "error",
            Outcome::Skip => "skip",
        }
    }
}

/// The kind, and the source that reports give for its results.
const ADMISSION_POLICY: &str = "ValidatingAdmissionPolicy";

/// The number of findings of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Passed.
    pub pass: usize,
    /// Failed.
    pub fail: usize,
    /// Failed, but only a warning.
    pub warn: usize,
    /// Could not be evaluated.
    pub error: usize,
    /// Not applicable, for a reason given by the rule.
    pub skip: usize,
}

impl Summary {
    /// Counts one more.
    pub fn add(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Pass => &mut self.pass,
            Outcome::Fail => &mut self.fail,
            Outcome::Warn => &mut self.warn,
            Outcome::Error => &mut self.error,
            Outcome::Skip => &mut self.skip,
        } += 1;
    }

    /// Adds other counts.
    pub fn merge(&mut self, more: Self) {
        self.pass += more.pass;
        self.fail += more.fail;
        self.warn += more.warn;
        self.error += more.error;
        self.skip += more.skip;
    }

    /// The number of all findings.
    pub fn total(&self) -> usize {
        self.pass + self.fail + self.warn + self.error + self.skip
    }
}

/// The result of one rule for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Index of the policy in the bundle.
    pub policy: usize,
    /// Name of the rule, prefixed with `autogen-` if generated.
    pub rule: String,
    /// How it is counted.
    pub outcome: Outcome,
    /// Whether the failure would refuse a request.
    pub enforced: bool,
    /// Kyverno's message.
    pub message: String,
    /// Index of the object in [`Scan::objects`].
    pub object: usize,
    /// The check that failed, if any.
    pub check: Option<Check>,
    /// The rule's `reportProperties`, and what Kyverno's reports add to them
    /// (docs/spec/cli.md §10.2).
    pub properties: Vec<(String, String)>,
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Path in the object, e.g. `/spec/containers/0/image/`.
    pub path: String,
    /// The value found there.
    pub found: String,
    /// Place in the object's file.
    pub resource: Place,
    /// The same place in its text.
    pub location: Location,
    /// Place in the policy's file.
    pub policy: Place,
}

/// What reports show about an object; for a payload only its path, as the name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// Namespace, empty if there is none.
    pub namespace: String,
    /// Name, or `generateName` if there is none.
    pub name: String,
    /// `metadata.uid`, usually empty.
    pub uid: String,
    /// `metadata.resourceVersion`, usually empty.
    pub resource_version: String,
    /// Its place.
    pub place: Place,
    /// The same place in its text.
    pub location: Location,
}

impl Object {
    /// The object as people name it: `Pod default/web`.
    pub fn title(&self) -> String {
        let Object {
            kind,
            namespace,
            name,
            ..
        } = self;
        match (kind.as_str(), namespace.as_str()) {
            ("", _) => format!("payload {name}"),
            (kind, "") => format!("{kind} {name}"),
            (kind, namespace) => format!("{kind} {namespace}/{name}"),
        }
    }
}

/// What reports show about a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFacts {
    /// Its name.
    pub name: String,
    /// Its namespace, empty for a `ClusterPolicy`.
    pub namespace: String,
    /// One of Kyverno's five severities, if annotated with one (docs/spec/cli.md §10.2).
    pub severity: Option<&'static str>,
    /// Its category, if annotated.
    pub category: Option<String>,
    /// Its title, if annotated.
    pub title: Option<String>,
    /// Its description, if annotated.
    pub description: Option<String>,
    /// Whether its failures count.
    pub scored: bool,
    /// The engine of Kyverno that evaluates such policies, as reports name it
    /// (docs/spec/cli.md §10.2).
    pub source: &'static str,
    /// When it is evaluated, as reports name it (docs/spec/cli.md §10.2).
    pub process: &'static str,
    /// Its rules, including generated ones.
    pub rules: Vec<RuleFacts>,
}

/// What reports show about a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFacts {
    /// Its name, prefixed with `autogen-` if generated.
    pub name: String,
    /// Its place.
    pub place: Place,
}

impl PolicyFacts {
    /// The name, prefixed with the namespace if the policy is namespaced.
    pub fn full_name(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        }
    }
}

/// What is known about a bundle before anything is evaluated.
#[derive(Debug, Default)]
pub struct Facts {
    /// The policies of the bundle.
    pub policies: Vec<PolicyFacts>,
    /// The number of rules in the bundle.
    pub rules: usize,
    /// Rules that are not in the bundle.
    pub omitted: Vec<OmittedRule>,
    /// The namespaces of namespaced policies.
    pub namespaces: BTreeSet<String>,
}

impl Facts {
    /// The facts about a bundle.
    pub fn new(bundle: &Bundle<'_>) -> Self {
        let (tables, meta) = (bundle.tables(), bundle.meta());
        let policies = policy_facts(&tables, meta);
        let namespaces = policies.iter().map(|policy| policy.namespace.clone());
        Self {
            namespaces: namespaces.filter(|name| !name.is_empty()).collect(),
            policies,
            rules: tables.rules.len(),
            omitted: meta.omitted.clone(),
        }
    }
}

/// The findings for all objects, or for those of a part of the input.
#[derive(Debug)]
pub struct Scan<'f> {
    /// The facts about the bundle.
    pub facts: &'f Facts,
    /// The objects that were evaluated.
    pub objects: Vec<Object>,
    /// The findings, object by object.
    pub findings: Vec<Finding>,
    /// The counts, including findings that were not kept.
    pub summary: Summary,
    /// By index of the policy, whether one of its rules applied to an object.
    pub applied: Vec<bool>,
    /// The number of objects evaluated.
    pub evaluated: usize,
    /// Policies that no object matched; known once all objects are evaluated.
    pub unmatched: Vec<Unmatched>,
}

/// Evaluates objects one after another.
pub struct Scanner<'b> {
    /// The policies, compiled.
    pub engine: &'b Engine,
    settings: &'b Settings,
    evaluator: Evaluator<'b>,
}

impl<'b> Scanner<'b> {
    /// A scanner with the policies of an engine.
    pub fn new(engine: &'b Engine, settings: &'b Settings) -> Self {
        Self {
            engine,
            settings,
            evaluator: Evaluator::new(engine, &settings.circumstances),
        }
    }

    /// Evaluates all objects; the host answers what rules ask for. Returns the objects that
    /// cannot be evaluated, and why.
    pub fn scan(
        &mut self,
        resources: &Resources,
        scan: &mut Scan<'_>,
        host: &mut dyn Host,
    ) -> Vec<Problem> {
        let tables = self.engine.bundle().tables();
        let mut problems = Vec::new();
        for resource in &resources.list {
            match self.evaluator.evaluate(resource, None, host) {
                Ok(responses) => {
                    scan.add_object(object(resource, resources));
                    for response in &responses {
                        let files = &self.engine.bundle().meta().sources;
                        let failed = || failed_check(response, resource, resources, files);
                        scan.add(response, &tables, self.settings, failed);
                    }
                }
                Err(error) => {
                    let diagnostic =
                        Diagnostic::error("resource", error.to_string(), resource.location());
                    problems.push(Problem::InText(diagnostic));
                }
            }
        }
        problems
    }
}

/// What reports show about a resource.
pub fn object(resource: &Resource, resources: &Resources) -> Object {
    let name = match (&resource.payload, resource.metadata("name")) {
        (Some(payload), _) => &payload.path,
        (None, "") => resource.metadata("generateName"),
        (None, name) => name,
    };
    if resource.payload.is_some() {
        return Object {
            api_version: String::new(),
            kind: String::new(),
            namespace: String::new(),
            name: name.to_owned(),
            uid: String::new(),
            resource_version: String::new(),
            place: resources.place(resource.location()),
            location: resource.location(),
        };
    }
    Object {
        api_version: resource.text("apiVersion").to_owned(),
        kind: resource.text("kind").to_owned(),
        namespace: resource.metadata("namespace").to_owned(),
        name: name.to_owned(),
        uid: resource.metadata("uid").to_owned(),
        resource_version: resource.metadata("resourceVersion").to_owned(),
        place: resources.place(resource.location()),
        location: resource.location(),
    }
}

/// The place in its file of a path in a resource, as the engine reports it.
pub fn place_in(resource: &Resource, resources: &Resources, path: &str) -> Place {
    resources.place(resources.location_of_path(resource, path))
}

/// A place from a bundle; `files` are those of the bundle.
pub fn policy_place(place: &table::Place, files: &[String]) -> Place {
    let file = files.get(place.source.get() as usize);
    Place {
        file: file.cloned().unwrap_or_default(),
        line: place.line.get(),
        column: place.column.get(),
        end_column: None,
    }
}

/// The check that decided a response, if any; `files` are those of the bundle.
pub fn failed_check(
    response: &RuleResponse<'_>,
    resource: &Resource,
    resources: &Resources,
    files: &[String],
) -> Option<Check> {
    let failure = response.failure()?;
    let file = files.get(failure.source as usize);
    let location = resources.location_of_path(resource, failure.path);
    Some(Check {
        path: failure.path.to_owned(),
        found: failure.found.to_owned(),
        resource: resources.place(location),
        location,
        policy: Place {
            file: file.cloned().unwrap_or_default(),
            line: failure.line,
            column: failure.column,
            end_column: None,
        },
    })
}

/// The rule's properties, with the exceptions that skip it and the controls that it
/// violates (docs/spec/cli.md §10.2); these replace properties of the same name.
fn properties(response: &RuleResponse<'_>) -> Vec<(String, String)> {
    let exceptions: Vec<&str> = response.exceptions().map(|(_, name)| name).collect();
    let exceptions = (!exceptions.is_empty()).then(|| ("exceptions", exceptions.join(",")));
    let controls = response.pod_security().into_iter().flat_map(|detail| {
        [
            ("standard", detail.standard),
            ("version", detail.version),
            ("controls", detail.controls),
            ("controlsJSON", detail.controls_json),
        ]
        .map(|(key, value)| (key, value.to_owned()))
    });
    let added: Vec<(&str, String)> = exceptions.into_iter().chain(controls).collect();
    let own = response
        .properties()
        .filter(|(key, _)| !added.iter().any(|(name, _)| name == key))
        .map(|(key, value)| (key, value.to_owned()));
    let all = own
        .collect::<Vec<_>>()
        .into_iter()
        .chain(added.iter().cloned());
    all.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The action of the policy as a whole, which decides what `--audit-warn` applies to: that
/// of the first written rule with an action of its own, else the policy's
/// (docs/spec/policies.md §11.3). If overrides decide, those for the failed rule are used
/// instead.
fn policy_enforces(tables: &Tables<'_>, response: &RuleResponse<'_>) -> bool {
    let policy = tables.policies.get(response.policy_index());
    let rules = policy.map_or(&[][..], |policy| Tables::range(tables.rules, policy.rules));
    let first = rules
        .iter()
        .filter(|rule| rule.flags & RuleFlags::GENERATED == 0)
        .find(|rule| rule.flags & RuleFlags::OWN_ACTION != 0 || rule.overrides.length.get() > 0);
    match first {
        Some(rule) if rule.overrides.length.get() == 0 => rule.flags & RuleFlags::ENFORCE != 0,
        Some(_) | None => response.is_enforced(),
    }
}

impl<'f> Scan<'f> {
    /// An empty scan.
    pub fn new(facts: &'f Facts) -> Self {
        Self {
            facts,
            objects: Vec::new(),
            findings: Vec::new(),
            summary: Summary::default(),
            applied: vec![false; facts.policies.len()],
            evaluated: 0,
            unmatched: Vec::new(),
        }
    }

    /// Adds an object, to which the following findings belong.
    pub fn add_object(&mut self, object: Object) {
        self.evaluated += 1;
        self.objects.push(object);
    }

    /// Counts an object without findings to keep; remembers its kind and namespace.
    pub fn count_object(&mut self, kind: &str, namespace: &str) {
        self.evaluated += 1;
        let is_same = |last: &Object| last.kind == kind && last.namespace == namespace;
        if !self.objects.last().is_some_and(is_same) {
            self.objects.push(Object {
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                ..Object::default()
            });
        }
    }

    /// Counts a rule's result for the last object, and keeps it if it is to be reported.
    /// `failed` returns the check that failed.
    pub fn add(
        &mut self,
        response: &RuleResponse<'_>,
        tables: &Tables<'_>,
        settings: &Settings,
        failed: impl FnOnce() -> Option<Check>,
    ) {
        if let Some(applied) = self.applied.get_mut(response.policy_index()) {
            *applied = true;
        }
        if response.status() == Status::Pass && !settings.keep_passes {
            self.summary.pass += 1;
            return;
        }
        // docs/spec/cli.md §9.7: for a CEL policy neither counts.
        let policy = self.facts.policies.get(response.policy_index());
        let is_classic = policy.is_none_or(|policy| policy.source == "kyverno");
        let outcome = match response.status() {
            Status::Pass => Outcome::Pass,
            Status::Fail if is_classic && only_warns(response, tables, settings) => Outcome::Warn,
            Status::Fail => Outcome::Fail,
            Status::Error => Outcome::Error,
            Status::Skip => Outcome::Skip,
        };
        // Nor do match conditions of Kubernetes' own policies that are false.
        let is_admission = policy.is_some_and(|policy| policy.source == ADMISSION_POLICY);
        if !(is_admission && outcome == Outcome::Skip) {
            self.summary.add(outcome);
        }
        self.findings.push(Finding {
            policy: response.policy_index(),
            rule: response.rule().to_owned(),
            outcome,
            enforced: response.is_enforced(),
            message: response.message().into_owned(),
            object: self.objects.len().saturating_sub(1),
            check: failed(),
            properties: properties(response),
        });
    }

    /// The policy of a finding.
    pub fn policy(&self, finding: &Finding) -> Option<&'f PolicyFacts> {
        self.facts.policies.get(finding.policy)
    }

    /// The place of the rule of a finding.
    pub fn rule_place(&self, finding: &Finding) -> Option<&'f Place> {
        let mut rules = self.policy(finding)?.rules.iter();
        // A CEL policy has one place, whatever name the result has.
        let rule = rules.find(|rule| rule.name.is_empty() || rule.name == finding.rule)?;
        (rule.place.line > 0).then_some(&rule.place)
    }

    /// The object of a finding.
    pub fn object(&self, finding: &Finding) -> Option<&Object> {
        self.objects.get(finding.object)
    }
}

/// Whether a failure counts as a warning.
fn only_warns(response: &RuleResponse<'_>, tables: &Tables<'_>, settings: &Settings) -> bool {
    !response.is_scored() || settings.audit_warn && !policy_enforces(tables, response)
}

fn policy_facts(tables: &Tables<'_>, meta: &Meta) -> Vec<PolicyFacts> {
    let facts = |(index, policy): (usize, &kpvm_format::table::Policy)| {
        let annotations = meta
            .policies
            .get(index)
            .map_or(&[][..], |policy| &policy.annotations);
        let annotation = |name: &str| {
            let found = annotations
                .iter()
                .find(|(key, _)| key.strip_prefix("policies.kyverno.io/") == Some(name));
            found.map(|(_, value)| value.as_str())
        };
        let text = |name: &str| {
            let text = annotation(name).map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let first = policy.rules.start.get() as usize;
        let rules = Tables::range(tables.rules, policy.rules).iter().enumerate();
        let rules = rules.map(|(index, rule)| RuleFacts {
            name: tables.text(rule.name).to_owned(),
            place: tables
                .rule_places
                .get(first + index)
                .map_or_else(Place::default, |place| policy_place(place, &meta.sources)),
        });
        PolicyFacts {
            name: tables.text(policy.name).to_owned(),
            namespace: tables.text(policy.namespace).to_owned(),
            severity: annotation("severity").and_then(known_severity),
            category: annotation("category")
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            title: text("title"),
            description: text("description"),
            scored: policy.flags & PolicyFlags::UNSCORED == 0,
            source: match meta.policies.get(index).map(|policy| policy.kind.as_str()) {
                Some(ADMISSION_POLICY) => ADMISSION_POLICY,
                _ if policy.flags & PolicyFlags::RESOURCES != 0 => "KyvernoValidatingPolicy",
                _ => "kyverno",
            },
            process: match meta.policies.get(index) {
                Some(policy) if policy.background => "background scan",
                Some(_) | None => "admission review",
            },
            rules: rules.collect(),
        }
    };
    tables.policies.iter().enumerate().map(facts).collect()
}

/// docs/spec/cli.md §10.2: exactly one of five texts.
fn known_severity(text: &str) -> Option<&'static str> {
    ["critical", "high", "medium", "low", "info"]
        .into_iter()
        .find(|&known| known == text)
}
