//! Runs one suite, from its file to its rows (docs/spec/cli.md §3).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kpvm::engine::observer::Observer;
use kpvm::engine::{Bundle, Engine, Operation, RuleResponse, Status};
use kpvm_compiler::diagnostic::{Diagnostic, Severity};
use kpvm_compiler::source::{Location, SourceId, Sources};
use kpvm_format::Tables;
use kpvm_syntax::tree::Span;
use rayon::prelude::*;

use crate::cel_context::CelContext;
use crate::cluster::Cluster;
use crate::command_host::CommandHost;
use crate::coverage::{Coverage, Tally};
use crate::evaluation::{Circumstances, Evaluator, report_message};
use crate::explain::{self, Explainer, Trace};
use crate::fake_client::Parameters;
use crate::input::{Unreadable, read_file, read_regular_file};
use crate::place::Place;
use crate::problem::{Problem, Report};
use crate::resources::Resource;
use crate::scan::failed_check;
use crate::strict::{Decoder, Text};
use crate::suite::document::{Document, read_documents};
use crate::suite::judge::{Judge, RuleAnswer};
use crate::suite::objects::{Keys, Objects, add_payloads, read_objects};
use crate::suite::policies::{self, SuitePolicies};
use crate::suite::row::{Row, Verdict};
use crate::suite::selector::Selector;
use crate::suite::watch::{Watch, Watched};
use crate::user_info::User;
use crate::values::{Labels, Values};

/// Suites with more rows are rejected.
pub(super) const ROWS: usize = 50_000;
/// Suites whose rules produce more results are rejected.
const ANSWERS: usize = 2_000_000;

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Rows to run.
    pub selector: Selector,
    /// Whether responses that no row covers are listed.
    pub is_complete: bool,
    /// What to observe besides the rows.
    pub watch: Watch,
}

/// Result of one suite.
#[derive(Debug, Clone)]
pub struct SuiteRun {
    /// The suite file.
    pub file: String,
    /// Location of the Test in it.
    pub place: Place,
    /// Name of the Test; empty if the file could not be read as a Test.
    pub name: String,
    /// Number of resources tested.
    pub resources: usize,
    /// The rows, in the order of `results`.
    pub rows: Vec<Row>,
    /// Number of entries of `results` that produced no row: there is no resource, or the
    /// expected file lacks the object (docs/spec/cli.md §4.5).
    pub empty_results: usize,
    /// Errors that prevented the run, and warnings.
    pub reports: Vec<Report>,
    /// Responses that no row covers, if requested: rule, resource, status.
    pub without_row: Vec<(String, String, &'static str)>,
    /// Observations besides the rows.
    pub watched: Watched,
}

impl SuiteRun {
    /// Whether something of the suite could not be used.
    pub fn is_broken(&self) -> bool {
        self.reports.iter().any(Report::is_error)
    }

    /// Number of rows with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows
            .iter()
            .filter(|row| row.verdict() == verdict)
            .count()
    }
}

/// Runs all suites of some files on all cores; the results are in the order of the files.
/// Calls `done` after each file.
pub fn run_files(files: &[PathBuf], options: &Options, done: &(dyn Fn() + Sync)) -> Vec<SuiteRun> {
    let runs: Vec<Vec<SuiteRun>> = files
        .par_iter()
        .map(|file| {
            let runs = run_file(file, options);
            done();
            runs
        })
        .collect();
    runs.into_iter().flatten().collect()
}

/// Runs every suite of a file. Suites without a selected row are omitted.
pub fn run_file(file: &Path, options: &Options) -> Vec<SuiteRun> {
    let name = file.display().to_string();
    let mut sources = Sources::new();
    let text = match read_file(file) {
        Ok(text) => text,
        Err(reason) => {
            return vec![SuiteRun::unreadable(&Unreadable { name, reason })];
        }
    };
    let suite = sources.add(name.clone(), text.as_str());
    let mut decoder = Decoder::new("test-document", suite);
    let documents = read_documents(&text, suite, &mut decoder);
    let mut runs = Vec::new();
    if !decoder.diagnostics.is_empty() {
        let report = |diagnostic| Report::of_diagnostic(diagnostic, &sources);
        let reports = decoder.diagnostics.iter().map(report).collect();
        runs.push(SuiteRun::unusable(name, reports));
    }
    let directory = file.parent().unwrap_or(Path::new(""));
    for mut document in documents {
        document.results = options.selector.select(document.results);
        if document.results.is_empty() {
            continue;
        }
        let loader = Loader {
            options,
            directory,
            sources: sources.clone(),
            suite,
            reports: Vec::new(),
        };
        runs.push(loader.run(&document));
    }
    runs
}

impl SuiteRun {
    /// Placeholder for a path that cannot be read or searched.
    pub fn unreadable(unreadable: &Unreadable) -> Self {
        let report = Report::of_unreadable(unreadable);
        Self::unusable(unreadable.name.clone(), vec![report])
    }

    fn unusable(file: String, reports: Vec<Report>) -> Self {
        let place = reports.first().and_then(|report| report.place);
        let (line, column) = place.unwrap_or((1, 1));
        Self {
            place: Place {
                file: file.clone(),
                line,
                column,
                end_column: None,
            },
            file,
            name: String::new(),
            resources: 0,
            rows: Vec::new(),
            empty_results: 0,
            reports,
            without_row: Vec::new(),
            watched: Watched::default(),
        }
    }
}

fn unreadable(path: &Path, reason: String) -> Problem {
    let name = path.display().to_string();
    Problem::Unreadable(Unreadable { name, reason })
}

/// Loads the files of one suite.
struct Loader<'s> {
    options: &'s Options,
    directory: &'s Path,
    sources: Sources,
    suite: SourceId,
    reports: Vec<Report>,
}

/// Loaded files of a suite.
struct Loaded {
    policies: SuitePolicies,
    objects: Objects,
    /// Objects that policies may use as parameters.
    params: Objects,
    circumstances: Circumstances,
    host: CommandHost,
}

impl Loader<'_> {
    fn run(mut self, document: &Document) -> SuiteRun {
        let place = self.sources.line_column(Location {
            source: self.suite,
            span: document.span,
        });
        let file = self.sources.file(self.suite).name.clone();
        let mut run = SuiteRun {
            place: Place {
                file: file.clone(),
                line: place.line,
                column: place.column,
                end_column: None,
            },
            file,
            name: document.name.clone(),
            resources: 0,
            rows: Vec::new(),
            empty_results: 0,
            reports: Vec::new(),
            without_row: Vec::new(),
            watched: Watched::default(),
        };
        let loaded = self.load(document);
        run.resources = loaded.objects.resources.list.len();
        if !self.reports.iter().any(Report::is_error) {
            self.judge(document, loaded, &mut run);
        }
        // Errors first; each kind in the order in which it was found.
        self.reports
            .sort_by_key(|report| report.severity != Severity::Error);
        run.reports = self.reports;
        run
    }

    fn report(&mut self, problem: &Problem) {
        self.reports.push(problem.report(&self.sources));
    }

    fn diagnose(&mut self, diagnostics: &[Diagnostic]) {
        let report = |diagnostic| Report::of_diagnostic(diagnostic, &self.sources);
        let reports: Vec<Report> = diagnostics.iter().map(report).collect();
        self.reports.extend(reports);
    }

    fn load(&mut self, document: &Document) -> Loaded {
        let values = self.values(document);
        let user = self.user(document);
        let mut policies = policies::load(
            &document.policies,
            &document.exceptions,
            self.directory,
            self.suite,
            &mut self.sources,
        );
        let (errors, warnings) = (
            std::mem::take(&mut policies.errors),
            std::mem::take(&mut policies.warnings),
        );
        self.diagnose(&errors);
        self.diagnose(&as_warnings(warnings));
        let mut objects = read_objects(&document.resources, self.directory, self.suite);
        let payloads = &document.json_payloads;
        add_payloads(&mut objects, payloads, self.directory, self.suite);
        self.diagnose(&objects.errors);
        let sources = &objects.resources.sources;
        let problems = objects.resources.problems.iter();
        self.reports
            .extend(problems.map(|problem| problem.report(sources)));
        let repeated = objects.warnings.iter();
        self.reports
            .extend(repeated.map(|warning| Report::of_diagnostic(warning, sources)));
        let params = self.params(document);
        let host = self.host(document, &objects.resources.list);
        let mut namespaces: BTreeMap<String, Labels> = BTreeMap::new();
        if let Some(cluster) = host.cluster() {
            namespaces.extend(cluster.namespace_labels());
        }
        namespaces.extend(values.namespaces().clone());
        let circumstances = Circumstances {
            namespace_objects: values.namespace_objects().clone(),
            plurals: host.cluster().map(Cluster::plurals).unwrap_or_default(),
            // A cluster knows subresources itself (docs/spec/cli.md §7.3).
            subresources: match host.cluster() {
                Some(_) => Vec::new(),
                None => values.subresources().to_vec(),
            },
            values,
            namespaces,
            user,
            ..Circumstances::default()
        };
        Loaded {
            policies,
            objects,
            params,
            circumstances,
            host,
        }
    }

    fn params(&mut self, document: &Document) -> Objects {
        let params = read_objects(&document.param_resources, self.directory, self.suite);
        self.diagnose(&params.errors);
        let sources = &params.resources.sources;
        let problems = params.resources.problems.iter();
        self.reports
            .extend(problems.map(|problem| problem.report(sources)));
        params
    }

    fn values(&mut self, document: &Document) -> Values {
        if let Some(values) = &document.values {
            let mut decoder = Decoder::new("values", self.suite);
            let values = Values::read_inline(values, self.suite, &mut decoder);
            self.diagnose(&decoder.diagnostics);
            return values;
        }
        let Some(file) = &document.variables else {
            return Values::default();
        };
        let path = self.directory.join(&file.text);
        let read = match read_regular_file(&path) {
            Ok(text) => Values::read(&path.display().to_string(), &text, &mut self.sources),
            Err(reason) => Err(vec![unreadable(&path, reason)]),
        };
        self.taken(read, file)
    }

    fn user(&mut self, document: &Document) -> Option<User> {
        let file = document.user_info.as_ref()?;
        let path = self.directory.join(&file.text);
        let read = match read_regular_file(&path) {
            Ok(text) => User::read(&path.display().to_string(), &text, &mut self.sources),
            Err(reason) => Err(vec![unreadable(&path, reason)]),
        };
        let user: User = self.taken(read, file);
        if !user.is_typed && !self.reports.iter().any(Report::is_error) {
            let message = format!("{} has no apiVersion or no kind", path.display());
            let location = Location {
                source: self.suite,
                span: file.span,
            };
            let hint = "write `apiVersion: cli.kyverno.io/v1alpha1` and `kind: UserInfo`";
            self.diagnose(&[Diagnostic::error("user-info", message, location).hint(hint)]);
        }
        Some(user)
    }

    /// Content of a file that the suite names, or the default after reporting its problems.
    fn taken<T: Default>(&mut self, read: Result<T, Vec<Problem>>, named: &Text) -> T {
        let problems = match read {
            Ok(value) => return value,
            Err(problems) => problems,
        };
        for problem in &problems {
            match problem {
                // Where the file is named is more useful than that it is missing.
                Problem::Unreadable(Unreadable { name, reason }) => {
                    let location = Location {
                        source: self.suite,
                        span: named.span,
                    };
                    let message = format!("cannot read {name}: {reason}");
                    self.diagnose(&[Diagnostic::error("missing-file", message, location)]);
                }
                Problem::InText(_) => self.report(problem),
            }
        }
        T::default()
    }

    fn host(&mut self, document: &Document, resources: &[Resource]) -> CommandHost {
        let mut host = CommandHost::of_suite();
        let mut decoder = Decoder::new("mock", self.suite);
        host.read_calls(document.api_call_responses.as_ref(), &mut decoder);
        let entries = document.global_context_entries.as_ref();
        host.read_global_entries(entries, self.directory, &mut decoder);
        if !document.cluster_resources.is_empty() {
            let files = &document.cluster_resources;
            let mut cluster = Cluster::read(files, self.directory, &mut decoder);
            for resource in resources {
                cluster.add(resource.tree.to_json());
            }
            host.set_cluster(cluster, true);
        }
        if let Some(file) = &document.context {
            let plurals = host.cluster().map(Cluster::plurals).unwrap_or_default();
            let path = self.directory.join(&file.text);
            let context = CelContext::read_file(&path, file.span, &plurals, &mut decoder);
            host.set_context(Arc::new(context));
        }
        self.diagnose(&decoder.diagnostics);
        host
    }

    fn too_large(&mut self, span: Span, what: String) {
        let location = Location {
            source: self.suite,
            span,
        };
        let message = format!("the suite is too large: {what}");
        let hint = "name the resources that a row is about, or split the suite";
        self.diagnose(&[Diagnostic::error("too-large", message, location).hint(hint)]);
    }

    /// Evaluates again to explain a rule, if requested.
    fn explain(
        &self,
        document: &Document,
        bundle: &Bundle<'_>,
        objects: &Objects,
        evaluator: &mut Evaluator<'_>,
        host: &mut CommandHost,
        run: &mut SuiteRun,
    ) {
        let watch = &self.options.watch;
        let Some(rule) = &watch.explain else {
            return;
        };
        run.watched.rules = explain::rule_names(&bundle.tables());
        let Some(explainer) = Explainer::new(bundle, rule) else {
            return;
        };
        run.watched.has_rule = true;
        let resources = &objects.resources;
        for operation in operations(document) {
            for resource in &resources.list {
                if !explain::is_wanted(resource, watch.explain_resource.as_deref()) {
                    continue;
                }
                // Evaluation errors have already been reported.
                let found = explainer.trace(resource, resources, operation, evaluator, host);
                let found = found.unwrap_or_default().into_iter();
                let of_suite = |trace: Trace| Trace {
                    suite: Some(run.file.clone()),
                    ..trace
                };
                run.watched.traces.extend(found.map(of_suite));
            }
        }
    }

    fn judge(&mut self, document: &Document, loaded: Loaded, run: &mut SuiteRun) {
        let Loaded {
            policies,
            objects,
            params,
            circumstances,
            mut host,
        } = loaded;
        let engine = match Engine::load(policies.bundle.clone()) {
            Ok(engine) => engine,
            Err(error) => {
                let message = format!("the compiled policies cannot be loaded: {error}");
                let location = Location {
                    source: self.suite,
                    span: document.span,
                };
                self.diagnose(&[Diagnostic::error("bundle", message, location)]);
                return;
            }
        };
        let bundle = engine.bundle();
        if bundle.tables().outside_data().parameters {
            let own = params.resources.list.iter();
            let own = own.map(|resource| resource.tree.to_json()).collect();
            host.set_params(Arc::new(Parameters::new(own)));
            let resources = objects.resources.list.iter();
            let all = resources.chain(&params.resources.list);
            host.set_client(all.map(|resource| resource.tree.to_json()));
        }
        let known = policies.known_rules();
        let all = objects.resources.list.iter();
        let names: BTreeSet<&str> = all.map(|resource| resource.metadata("name")).collect();
        self.diagnose(&circumstances.values.unused(&known, &names));
        let files = &bundle.meta().sources;
        let tables = bundle.tables();
        let mut evaluator = Evaluator::new(&engine, &circumstances);
        let mut tally = self.options.watch.coverage.then(|| Tally::new(bundle));
        let (mut answers, mut count) = (Vec::new(), 0);
        for operation in operations(document) {
            let mut of_resources = Vec::new();
            for resource in &objects.resources.list {
                let observer = tally.as_mut().map(|tally| tally as &mut dyn Observer);
                let found = evaluator.evaluate_observed(resource, operation, &mut host, observer);
                let responses = match found {
                    Ok(responses) => responses,
                    Err(error) => {
                        let location = resource.location();
                        let diagnostic = Diagnostic::error("resource", error.to_string(), location);
                        let sources = &objects.resources.sources;
                        self.reports
                            .push(Report::of_diagnostic(&diagnostic, sources));
                        return;
                    }
                };
                let answer = |response: &RuleResponse<'_>| RuleAnswer {
                    policy: response.policy_index(),
                    number: rule_in_policy(&tables, response),
                    rule: response.rule().to_owned(),
                    status: report_status(response),
                    message: report_message(response).into_owned(),
                    check: failed_check(response, resource, &objects.resources, files),
                };
                let found: Vec<RuleAnswer> = responses.iter().map(answer).collect();
                count += found.len();
                if count > ANSWERS {
                    return self.too_large(document.span, format!("more than {ANSWERS} results"));
                }
                of_resources.push(found);
            }
            answers.push((operation, of_resources));
        }
        if let Some(tally) = &tally {
            let mut coverage = Coverage::new();
            coverage.add(bundle, tally);
            run.watched.coverage = Some(coverage);
        }
        self.explain(document, bundle, &objects, &mut evaluator, &mut host, run);
        let judge = Judge {
            directory: self.directory,
            sources: &self.sources,
            suite: self.suite,
            policies: &policies.policies,
            omitted: &policies.omitted,
            resources: &objects.resources,
            keys: Keys::of(&objects.resources.list),
            expected: RefCell::default(),
            answers,
            unsupported: unsupported_part(document),
        };
        let mut warnings = Vec::new();
        for expectation in &document.results {
            let rows = judge.judge(expectation);
            run.empty_results += usize::from(rows.is_empty());
            run.rows.extend(rows);
            if run.rows.len() > ROWS {
                run.rows.clear();
                return self.too_large(expectation.span, format!("more than {ROWS} rows"));
            }
            warnings.extend(judge.warnings(expectation));
        }
        if self.options.is_complete {
            run.without_row = judge.answers_without_row(&document.results);
        }
        self.diagnose(&warnings);
    }
}

/// The default run and one per operation of a row (docs/spec/cli.md §3, step 7).
fn operations(document: &Document) -> Vec<Option<Operation>> {
    let mut operations = vec![None];
    for expectation in &document.results {
        if !operations.contains(&expectation.operation) {
            operations.push(expectation.operation);
        }
    }
    operations
}

/// Index of the rule in its policy.
fn rule_in_policy(tables: &Tables<'_>, response: &RuleResponse<'_>) -> usize {
    let policy = tables.policies.get(response.policy_index());
    let first = policy.map_or(0, |policy| policy.rules.start.get() as usize);
    response.rule_index().saturating_sub(first)
}

/// The status that reports show: failures of a policy that is not scored only warn
/// (docs/spec/cli.md §10.2).
fn report_status(response: &RuleResponse<'_>) -> &'static str {
    match response.status() {
        Status::Fail if !response.is_scored() => "warn",
        status => status.as_str(),
    }
}

/// Policies that Kyverno drops are not errors of the suite.
fn as_warnings(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let as_warning = |diagnostic| Diagnostic {
        severity: Severity::Warning,
        ..diagnostic
    };
    diagnostics.into_iter().map(as_warning).collect()
}

/// An unsupported feature of the suite itself.
fn unsupported_part(document: &Document) -> Option<String> {
    let parts = [
        ("targetResources", !document.target_resources.is_empty()),
        ("httpPayloads", !document.http_payloads.is_empty()),
        ("envoyPayloads", !document.envoy_payloads.is_empty()),
    ];
    let part = parts.into_iter().find(|(_, is_there)| *is_there);
    part.map(|(field, _)| format!("`{field}` of a test is not supported yet"))
}
