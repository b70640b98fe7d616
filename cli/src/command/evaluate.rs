//! Common part of `kpvm apply` and `kpvm eval`: evaluates resources, reports and counts the
//! findings, and computes the exit code.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::ValueEnum;
use kpvm::engine::{Bundle, Engine};
use kpvm_compiler::source::SourceId;
use kpvm_semantics::duration;
use kpvm_syntax::tree::Span;

use crate::cel_context::CelContext;
use crate::cluster::Cluster;
use crate::command::circumstances::{CircumstanceArguments, ReadCircumstances};
use crate::command::explain;
use crate::command_host::CommandHost;
use crate::diagnostics::{self, show_error, show_note, show_warning};
use crate::explain::ExplainArguments;
use crate::fake_client::Parameters;
use crate::heading::Heading;
use crate::hints;
use crate::host::report_time;
use crate::nearest::nearest;
use crate::outside::{Outside, needs_no_other_objects};
use crate::part::{Outcome, View};
use crate::piece::Pieces;
use crate::pipeline;
use crate::policies::Policies;
use crate::report::set::Reports;
use crate::report::{FileReport, Format, text};
use crate::resources::{Resources, read_resources};
use crate::scan::{Facts, Scan, Settings};
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::strict::Decoder;
use crate::text::clean;
use crate::why_unmatched;
use crate::worker::Plan;

/// How to evaluate and report.
#[derive(Debug, clap::Args)]
pub struct CommonArguments {
    /// Format of the report; any other value is Kyverno's file for mutated objects, which
    /// are not produced yet
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<Output>,
    /// Format of the report
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<Format>,
    /// Write the report to a file, which is replaced, and only the counts to the terminal
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// An additional report; repeat the option for more
    #[arg(long, value_name = "FORMAT=FILE")]
    pub report: Vec<FileReport>,
    /// Print Kyverno's table: short for --output-format table
    #[arg(short, long)]
    pub table: bool,
    /// Add a column for messages to the table
    #[arg(long)]
    pub detailed_results: bool,
    /// Print Kyverno's policy reports, as YAML, or as JSON with --output-format json
    #[arg(short, long)]
    pub policy_report: bool,
    /// Print an exception for each failure, as YAML, or as JSON with --output-format json:
    /// short for --output-format exceptions
    #[arg(long)]
    pub generate_exceptions: bool,
    /// Lifetime of these exceptions, e.g. 24h; 0 for unlimited
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = read_duration)]
    pub generated_exception_ttl: i64,
    /// Show skipped rules, and why policies matched nothing
    #[arg(long)]
    pub verbose: bool,
    /// Kyverno's log level: 1 and above act as --verbose
    #[arg(short = 'v', long = "v", value_name = "LEVEL", hide_short_help = true)]
    pub log_level: Option<u32>,
    /// No colours
    #[arg(long)]
    pub remove_color: bool,
    /// Inputs besides policies and resources.
    #[command(flatten)]
    pub circumstances: CircumstanceArguments,
    /// Exceptions, added to those of a bundle: files or directories of kind PolicyException
    #[arg(
        short,
        long = "exception",
        visible_alias = "exceptions",
        value_delimiter = ',',
        value_name = "FILE,..."
    )]
    pub exceptions: Vec<PathBuf>,
    /// Apply the exceptions among the resources, instead of those of --exception
    #[arg(long, alias = "exceptions-within-resources")]
    pub exceptions_with_resources: bool,
    /// CustomResourceDefinitions, for the resource names in API calls
    #[arg(
        long,
        alias = "crd-path",
        value_delimiter = ',',
        value_name = "FILE,..."
    )]
    pub crd_paths: Vec<PathBuf>,
    /// Objects that bindings of ValidatingAdmissionPolicies may use as parameters
    #[arg(
        long = "parameter-resource",
        alias = "parameter-resources",
        value_delimiter = ',',
        value_name = "FILE,..."
    )]
    pub parameter_resources: Vec<PathBuf>,
    /// Objects and images that CEL policies can read: a file of kind Context
    #[arg(long, value_name = "FILE")]
    pub context_file: Option<PathBuf>,
    /// Ignore resources that cannot be evaluated in the exit code
    #[arg(long)]
    pub continue_on_fail: bool,
    /// Count failures of policies that only audit as warnings
    #[arg(long)]
    pub audit_warn: bool,
    /// Exit with this code if there are warnings but neither failures nor errors
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    pub warn_exit_code: u8,
    /// Exit with the code of --warn-exit-code if nothing passed
    #[arg(long)]
    pub warn_no_pass: bool,
    /// Exit with 1 if no rule applied to any resource
    #[arg(long)]
    pub fail_on_empty: bool,
    /// What to explain.
    #[command(flatten)]
    pub explain: ExplainArguments,
}

/// Value of `-o`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Format of the report.
    Format(Format),
    /// As in Kyverno, the file or directory for mutated or generated objects.
    Objects(PathBuf),
}

impl FromStr for Output {
    type Err = String;

    /// A word close to the name of a format is not taken for a path.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(format) = Format::from_str(text, false) {
            return Ok(Self::Format(format));
        }
        let forms: Vec<_> = Format::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .collect();
        let names = || forms.iter().map(clap::builder::PossibleValue::get_name);
        match nearest(text, names()) {
            Some(near) if !text.contains(['.', '/', '\\']) => {
                let known: Vec<&str> = names().collect();
                let known = known.join(", ");
                Err(format!("expected one of {known}; did you mean `{near}`?"))
            }
            _ => Ok(Self::Objects(text.into())),
        }
    }
}

/// Parses a Go duration into nanoseconds.
fn read_duration(text: &str) -> Result<i64, String> {
    duration::parse(text).ok_or_else(|| "expected a duration, e.g. 720h or 1h30m".to_owned())
}

/// Target size of a chunk of the resources, if the input can be split.
const PIECE_BYTES: usize = 256 << 10;

/// Inputs of an evaluation.
pub struct Inputs<'i> {
    /// The policies, compiled.
    pub engine: &'i Engine,
    /// The policies as read; `None` if only a bundle is given.
    pub policies: Option<&'i Policies>,
    /// Number of exceptions.
    pub exceptions: usize,
    /// The resources.
    pub resources: Given,
    /// Inputs besides policies and resources.
    pub circumstances: ReadCircumstances,
    /// Whether a heading is printed for people.
    pub has_heading: bool,
}

/// Resources, read or to be read.
pub enum Given {
    /// All resources in memory.
    Whole(Box<Resources>),
    /// Resources read while they are evaluated.
    Pieces(Box<Pieces>),
}

/// Evaluates, reports, and returns the exit code.
///
/// # Errors
/// Fails if the writer fails.
pub fn evaluate(
    inputs: Inputs<'_>,
    arguments: &CommonArguments,
    streams: &mut Streams<'_>,
) -> io::Result<u8> {
    let Inputs {
        engine,
        policies,
        exceptions,
        resources: given,
        mut circumstances,
        has_heading,
    } = inputs;
    let definitions = read_resources(&arguments.crd_paths, &mut io::empty());
    if !show_definitions(&definitions, streams)? {
        return Ok(EXIT_BAD_INPUT);
    }
    let params = read_resources(&arguments.parameter_resources, &mut io::empty());
    for problem in &params.problems {
        problem.show(&params.sources, streams)?;
    }
    if !params.problems.is_empty() {
        return Ok(EXIT_BAD_INPUT);
    }
    let params = params.list.iter().map(|param| param.tree.to_json());
    let params = Parameters::new(params.collect());
    circumstances.circumstances.plurals = plurals(&definitions);
    let mut context = CelContext::default();
    if let Some(file) = &arguments.context_file {
        let mut decoder = Decoder::new("context-file", SourceId::default());
        let known = &circumstances.circumstances.plurals;
        context = CelContext::read_file(file, Span::default(), known, &mut decoder);
        for problem in &decoder.diagnostics {
            show_error(&clean(&problem.message), streams.err)?;
        }
        if !decoder.diagnostics.is_empty() {
            return Ok(EXIT_BAD_INPUT);
        }
    }
    let outside = Outside {
        definitions,
        params: Arc::new(params),
        context: Arc::new(context),
    };
    let mut reports = Reports::new(
        arguments.format(),
        arguments.output_file.clone(),
        &arguments.report,
    );
    let view = View {
        formats: reports.formats().to_vec(),
        policies,
        now: report_time().as_secs(),
        verbose: arguments.is_verbose(),
        exception_ttl: arguments.generated_exception_ttl,
    };
    let bundle = engine.bundle();
    let facts = Facts::new(bundle);
    let settings = Settings {
        circumstances: circumstances.circumstances.clone(),
        audit_warn: arguments.audit_warn,
        keep_passes: arguments.keeps_passes(),
    };
    let plan = Plan {
        engine,
        facts: &facts,
        settings: &settings,
        outside: &outside,
        view: &view,
    };
    let is_shown = has_heading && arguments.format().is_for_people();
    let heading = Heading::new(bundle, exceptions, is_shown);
    let tables = bundle.tables();
    let mut none = Resources::default();
    let (mut outcome, mut host) = match given {
        Given::Pieces(pieces) => {
            circumstances.show_unused(bundle, policies, &none, streams)?;
            warn_of_exceptions(exceptions, arguments, streams)?;
            let outcome = pipeline::run(plan, *pieces, heading, &mut reports, streams)?;
            (outcome, outside.host(&mut none, &tables))
        }
        Given::Whole(mut resources) => {
            let mut host = outside.host(&mut resources, &tables);
            for warning in &host.warnings {
                diagnostics::show(warning, &resources.sources, streams.err)?;
            }
            circumstances.show_unused(bundle, policies, &resources, streams)?;
            warn_of_exceptions(exceptions, arguments, streams)?;
            if arguments.explain.explain.is_some() {
                return explain_whole(&plan, *resources, &mut host, arguments, streams);
            }
            heading.write(Some(resources.list.len()), streams)?;
            let outcome = pipeline::run_whole(plan, *resources, &mut host, &mut reports, streams)?;
            (outcome, host)
        }
    };
    streams.err.flush()?;
    outcome.scan.unmatched = why_unmatched::find(&tables, &outcome.scan);
    let mut formats = view.formats.iter();
    let is_told = formats.any(|format| format.tells_unmatched())
        || hints::tell_unmatched(&outcome.scan, arguments.is_verbose());
    if is_told {
        let Outcome { scan, samples, .. } = &mut outcome;
        why_unmatched::explain(scan, engine, samples, &settings.circumstances, &mut host);
    }
    // docs/spec/cli.md §9.4.
    outcome.scan.summary.error += policies.map_or(0, |policies| policies.invalid.len());
    outcome.close_notes();
    reports.finish(
        &outcome.totals(policies, arguments.detailed_results),
        streams.out,
    )?;
    if arguments.output_file.is_some() {
        text::write_summary(outcome.scan.summary, streams.err)?;
    }
    streams.out.flush()?;
    hints::show(&outcome, arguments.is_verbose(), streams)?;
    say_what_was_not_done(&outcome, arguments, streams)?;
    let bad_inputs = match arguments.continue_on_fail {
        true => outcome.unreadable,
        false => outcome.problems,
    };
    if bad_inputs > 0 {
        return Ok(EXIT_BAD_INPUT);
    }
    exit_code(&outcome.scan, arguments, streams)
}

fn explain_whole(
    plan: &Plan<'_>,
    mut resources: Resources,
    host: &mut CommandHost,
    arguments: &CommonArguments,
    streams: &mut Streams<'_>,
) -> io::Result<u8> {
    let Some(format) = arguments.format().of_traces() else {
        let message = "--explain gives text, json or yaml, and no other form of output";
        show_error(message, streams.err)?;
        return Ok(EXIT_BAD_INPUT);
    };
    explain::run(
        &arguments.explain,
        format,
        plan.engine,
        &mut resources,
        &plan.settings.circumstances,
        host,
        streams,
    )
}

fn warn_of_exceptions(
    exceptions: usize,
    arguments: &CommonArguments,
    streams: &mut Streams<'_>,
) -> io::Result<()> {
    match exceptions == 0 && arguments.wants_exceptions() {
        true => show_warning("there is no exception in the inputs", streams.err),
        false => Ok(()),
    }
}

impl Given {
    /// Resources at the paths: in chunks, unless something needs all of them at once.
    pub fn new(
        paths: &[PathBuf],
        bundle: &Bundle<'_>,
        arguments: &CommonArguments,
        circumstances: &ReadCircumstances,
    ) -> Self {
        let values = &circumstances.circumstances.values;
        let needs_all = arguments.explain.explain.is_some()
            || values.name_resources()
            || !needs_no_other_objects(&bundle.tables());
        let stdin = io::stdin();
        match needs_all {
            true => Self::Whole(Box::new(read_resources(paths, &mut stdin.lock()))),
            false => {
                let pieces = Pieces::new(paths, Box::new(stdin), PIECE_BYTES);
                Self::Pieces(Box::new(pieces))
            }
        }
    }
}

impl CommonArguments {
    /// Whether the options can be used together; reports conflicts.
    ///
    /// # Errors
    /// Fails if the writer fails.
    pub fn check(&self, streams: &mut Streams<'_>) -> io::Result<bool> {
        let formats = [
            self.table,
            self.output_format.is_some(),
            matches!(self.output, Some(Output::Format(_))),
        ];
        if formats.into_iter().filter(|is_given| *is_given).count() > 1 {
            let message = "the form of the report is given twice: use one of --table, --output and --output-format";
            show_error(message, streams.err)?;
            return Ok(false);
        }
        if self.exceptions_with_resources && !self.exceptions.is_empty() {
            let message = "--exception is ignored, as exceptions are taken from the resources";
            show_warning(message, streams.err)?;
        }
        Ok(true)
    }

    /// Files of exceptions; empty if exceptions are taken from the resources
    /// (docs/spec/cli.md §9.1).
    pub fn exceptions(&self) -> &[PathBuf] {
        match self.exceptions_with_resources {
            true => &[],
            false => &self.exceptions,
        }
    }

    fn wants_exceptions(&self) -> bool {
        self.exceptions_with_resources || !self.exceptions.is_empty()
    }

    fn is_verbose(&self) -> bool {
        self.verbose || self.log_level.is_some_and(|level| level > 0)
    }

    /// Format of the report on standard output or in `--output-file`.
    fn format(&self) -> Format {
        let of_output = match &self.output {
            Some(Output::Format(format)) => Some(*format),
            Some(Output::Objects(_)) | None => None,
        };
        let given = self.output_format.or(of_output).unwrap_or_default();
        let is_json = given == Format::Json;
        // Precedence if several are given is Kyverno's.
        match () {
            () if self.policy_report && is_json => Format::KyvernoReportJson,
            () if self.policy_report => Format::KyvernoReport,
            () if self.generate_exceptions && is_json => Format::ExceptionsJson,
            () if self.generate_exceptions => Format::Exceptions,
            () if self.table => Format::Table,
            () => given,
        }
    }

    fn keeps_passes(&self) -> bool {
        let more = self.report.iter().map(|report| report.format);
        more.chain([self.format()]).any(Format::lists_passes)
    }
}

/// Plural names of resources by group and kind.
fn plurals(definitions: &Resources) -> BTreeMap<(String, String), String> {
    let mut cluster = Cluster::default();
    for definition in &definitions.list {
        cluster.define(&definition.tree.to_json());
    }
    cluster.plurals()
}

/// Whether only CustomResourceDefinitions were read; reports anything else.
fn show_definitions(definitions: &Resources, streams: &mut Streams<'_>) -> io::Result<bool> {
    for problem in &definitions.problems {
        problem.show(&definitions.sources, streams)?;
    }
    let mut is_good = definitions.problems.is_empty();
    for other in &definitions.list {
        let kind = other.text("kind");
        if kind != "CustomResourceDefinition" {
            is_good = false;
            let place = definitions.place(other.location());
            let message = format!(
                "expected CustomResourceDefinitions behind --crd-paths, found a {} ({})",
                clean(kind),
                clean(&place.to_string())
            );
            show_error(&message, streams.err)?;
        }
    }
    Ok(is_good)
}

fn say_what_was_not_done(
    outcome: &Outcome<'_>,
    arguments: &CommonArguments,
    streams: &mut Streams<'_>,
) -> io::Result<()> {
    if !outcome.services.is_empty() {
        let services: Vec<_> = outcome.services.iter().map(|url| clean(url)).collect();
        let message = format!(
            "services are never asked, so context entries were left out; give their data in a values file: {}",
            services.join(", ")
        );
        show_warning(&message, streams.err)?;
    }
    if let Some(Output::Objects(path)) = &arguments.output {
        let path = path.display().to_string();
        let message = format!(
            "nothing is written to {}: mutation and generation are not supported yet (for the report there is --output-file)",
            clean(&path)
        );
        show_warning(&message, streams.err)?;
    }
    Ok(())
}

/// docs/spec/cli.md §9.9.
fn exit_code(
    scan: &Scan<'_>,
    arguments: &CommonArguments,
    streams: &mut Streams<'_>,
) -> io::Result<u8> {
    let (summary, code) = (scan.summary, arguments.warn_exit_code);
    let is_empty = arguments.fail_on_empty && summary.total() == 0;
    if summary.fail > 0 || summary.error > 0 || is_empty {
        Ok(EXIT_FAILED)
    } else if summary.warn > 0 && code != 0 {
        show_note(&format!("exit as warnExitCode is {code}"), streams.err)?;
        Ok(code)
    } else if summary.pass == 0 && arguments.warn_no_pass {
        show_note("exit as no objects satisfied policy", streams.err)?;
        Ok(code)
    } else {
        Ok(EXIT_OK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_a_form_or_a_path() {
        for (text, expected) in [
            ("json", Ok(Output::Format(Format::Json))),
            ("out.yaml", Ok(Output::Objects("out.yaml".into()))),
            ("mutated/", Ok(Output::Objects("mutated/".into()))),
            ("junit.xml", Ok(Output::Objects("junit.xml".into()))),
            ("results", Ok(Output::Objects("results".into()))),
            ("jsn", Err("json")),
            ("JSON", Err("json")),
            ("junt", Err("junit")),
        ] {
            match (text.parse::<Output>(), expected) {
                (Err(found), Err(near)) => {
                    assert!(
                        found.ends_with(&format!("did you mean `{near}`?")),
                        "{found}"
                    );
                }
                (found, expected) => {
                    assert_eq!(found.ok(), expected.ok(), "{text}");
                }
            }
        }
    }
}
