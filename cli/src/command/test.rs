//! `kpvm test`

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::coverage::{self, Coverage};
use crate::diagnostics::{show_error, show_note, show_warning};
use crate::explain::{self, ExplainArguments, Trace};
use crate::input::reason;
use crate::output::write_file;
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::suite::discovery::{Discovery, SUITE_FILE, discover};
use crate::suite::report::{self, Detail, Format, Totals};
use crate::suite::selector::Selector;
use crate::suite::watch::Watch;
use crate::suite::{Options, SuiteRun, run_files};
use crate::text::{clean, count};

/// Runs longer than this show their progress.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);
/// Interval between redraws.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Arguments of `kpvm test`.
#[derive(Debug, clap::Args)]
pub struct TestArguments {
    /// Directories, searched recursively, or suite files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Name of suite files in directories
    #[arg(short, long, value_name = "NAME", default_value = SUITE_FILE)]
    pub file_name: String,
    /// Rows to run; * and ? match any text and any character
    #[arg(
        short,
        long,
        value_name = "policy=…,rule=…,resource=…",
        default_value = "policy=*,rule=*,resource=*"
    )]
    pub test_case_selector: String,
    /// Format of the report
    #[arg(
        short,
        long = "output-format",
        visible_alias = "output",
        value_enum,
        default_value_t
    )]
    pub output: Format,
    /// Write the report to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// Show only rows that disagree
    #[arg(long)]
    pub fail_only: bool,
    /// Show messages in tables, and every row in the text
    #[arg(short = 'v', long, visible_alias = "verbose")]
    pub detailed_results: bool,
    /// No colours
    #[arg(long)]
    pub remove_color: bool,
    /// Exit with 1 if there is no suite
    #[arg(long)]
    pub require_tests: bool,
    /// Exit with 1 if there is no row, or if a row agreed without comparing anything
    #[arg(long)]
    pub fail_on_empty: bool,
    /// Exit with 1 if a row needs a feature that is not supported yet
    #[arg(long)]
    pub fail_on_unsupported: bool,
    /// Accepted for compatibility: registries are never accessed
    #[arg(long)]
    pub registry: bool,
    /// Accepted for compatibility: repositories are never fetched
    #[arg(short = 'b', long, value_name = "BRANCH")]
    pub git_branch: Option<String>,
    /// What to explain.
    #[command(flatten)]
    pub explain: ExplainArguments,
    /// Coverage of the policies.
    #[command(flatten)]
    pub coverage: CoverageArguments,
}

/// Coverage of the policies by the suites.
#[derive(Debug, clap::Args)]
pub struct CoverageArguments {
    /// Show which rules, filters, conditions and pattern leaves the suites exercised in
    /// both directions: after the report, or in a file
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text"
    )]
    pub coverage: Option<coverage::Format>,
    /// Write the coverage to a file
    #[arg(long, value_name = "FILE", requires = "coverage")]
    pub coverage_file: Option<PathBuf>,
    /// Exit with 1 if less than this percentage is covered
    #[arg(long, value_name = "PERCENT", requires = "coverage", value_parser = parse_percent)]
    pub coverage_fail_under: Option<f64>,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok();
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "expected a number from 0 to 100".into())
}

/// Runs suites.
///
/// # Errors
/// Fails if the writer fails.
pub fn run(arguments: &TestArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let (selector, wrong) = Selector::parse(&arguments.test_case_selector);
    for error in &wrong {
        show_error(&clean(error), streams.err)?;
    }
    let discovery = discover(&arguments.paths, &arguments.file_name);
    if let Some(reason) = why_not_written(arguments) {
        show_error(reason, streams.err)?;
        return Ok(EXIT_BAD_INPUT);
    }
    let options = Options {
        selector,
        watch: Watch {
            coverage: arguments.coverage.coverage.is_some(),
            explain: arguments.explain.explain.clone(),
            explain_resource: arguments.explain.explain_resource.clone(),
        },
        ..Options::default()
    };
    let searched = run_with_progress(&discovery.files, &options);
    // A path that cannot be searched hides suites, so it counts as a broken one.
    let unreadable = discovery.unreadable.iter().map(SuiteRun::unreadable);
    let runs: Vec<SuiteRun> = unreadable.chain(searched).collect();
    for report in runs.iter().flat_map(|run| &run.reports) {
        write!(streams.err, "{}", report.shown)?;
    }
    streams.err.flush()?;
    if !write_results(arguments, &runs, streams)? {
        return Ok(EXIT_BAD_INPUT);
    }
    let Some(covered) = write_coverage(&arguments.coverage, &runs, streams)? else {
        return Ok(EXIT_BAD_INPUT);
    };
    streams.out.flush()?;
    let totals = Totals::of(&runs);
    say_what_is_missing(arguments, &discovery, &totals, streams)?;
    let code = exit_code(arguments, &totals, !wrong.is_empty());
    Ok(match covered {
        Covered::TooLittle if code == EXIT_OK => EXIT_FAILED,
        Covered::TooLittle | Covered::Enough => code,
    })
}

/// Two documents for programs cannot share one output.
fn why_not_written(arguments: &TestArguments) -> Option<&'static str> {
    let coverage = &arguments.coverage;
    let shares = coverage.coverage.is_some()
        && coverage.coverage_file.is_none()
        && arguments.output_file.is_none();
    let is_text = arguments.output.is_for_people()
        && coverage.coverage.unwrap_or_default() == coverage::Format::Text;
    if arguments.explain.explain.is_some() && arguments.output.of_traces().is_none() {
        Some("--explain gives text, json or yaml, and no other form of output")
    } else if shares && !is_text {
        Some(
            "report and coverage cannot share standard output unless both are text: name a --coverage-file or an --output-file",
        )
    } else {
        None
    }
}

/// Writes the report, or the traces instead; returns whether that succeeded.
fn write_results(
    arguments: &TestArguments,
    runs: &[SuiteRun],
    streams: &mut Streams<'_>,
) -> io::Result<bool> {
    let file = arguments.output_file.as_deref();
    let Some(rule) = &arguments.explain.explain else {
        let detail = Detail {
            fail_only: arguments.fail_only,
            detailed: arguments.detailed_results,
        };
        return write_to(file, streams, |out| {
            report::write(arguments.output, runs, detail, out)
        });
    };
    let watched = || runs.iter().map(|run| &run.watched);
    let traces: Vec<Trace> = watched().flat_map(|seen| seen.traces.clone()).collect();
    if !watched().any(|seen| seen.has_rule) {
        let known = watched().flat_map(|seen| &seen.rules);
        let message = explain::unknown_rule(rule, known.map(String::as_str));
        show_error(&clean(&message), streams.err)?;
        return Ok(false);
    }
    if let (true, Some(name)) = (traces.is_empty(), &arguments.explain.explain_resource) {
        let message = format!("no suite with the rule has a resource {name}");
        show_error(&clean(&message), streams.err)?;
        return Ok(false);
    }
    let format = arguments
        .output
        .of_traces()
        .unwrap_or(explain::Format::Text);
    write_to(file, streams, |out| explain::write(format, &traces, out))
}

/// Whether enough is covered.
enum Covered {
    Enough,
    TooLittle,
}

/// Writes the coverage if it is requested; `None` if that failed.
fn write_coverage(
    arguments: &CoverageArguments,
    runs: &[SuiteRun],
    streams: &mut Streams<'_>,
) -> io::Result<Option<Covered>> {
    let Some(format) = arguments.coverage else {
        return Ok(Some(Covered::Enough));
    };
    let mut coverage = Coverage::new();
    for run in runs {
        coverage.merge(run.watched.coverage.clone().unwrap_or_default());
    }
    let file = arguments.coverage_file.as_deref();
    let is_written = write_to(file, streams, |out| {
        if file.is_none() {
            writeln!(out)?;
        }
        coverage::write(format, &coverage, out)
    })?;
    let Some(wanted) = arguments.coverage_fail_under.filter(|_| is_written) else {
        return Ok(is_written.then_some(Covered::Enough));
    };
    let message = match coverage.summary().percent() {
        Some(percent) if percent >= wanted => return Ok(Some(Covered::Enough)),
        Some(percent) => format!("coverage is {percent:.1} %, less than {wanted} %"),
        None => format!("there is no rule to cover, and so less than {wanted} %"),
    };
    streams.out.flush()?;
    show_error(&message, streams.err)?;
    Ok(Some(Covered::TooLittle))
}

/// Runs all suites and shows progress on a terminal once the run has taken long enough.
/// Only this thread writes, because it holds the streams.
fn run_with_progress(files: &[PathBuf], options: &Options) -> Vec<SuiteRun> {
    let is_terminal = io::stderr().is_terminal();
    let done = AtomicUsize::new(0);
    let count = || {
        done.fetch_add(1, Ordering::Relaxed);
    };
    if !is_terminal {
        return run_files(files, options, &count);
    }
    let (finished, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let runs = run_files(files, options, &count);
            drop(finished);
            runs
        });
        let mut bar: Option<ProgressBar> = None;
        let mut patience = PROGRESS_AFTER;
        while waiting.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            let bar = bar.get_or_insert_with(|| progress_bar(files.len()));
            bar.set_position(done.load(Ordering::Relaxed) as u64);
            patience = PROGRESS_EVERY;
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        match worker.join() {
            Ok(runs) => runs,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn progress_bar(files: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(files as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} suite files");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Writes to a file, without colours, or to standard output; returns whether that
/// succeeded.
fn write_to(
    path: Option<&Path>,
    streams: &mut Streams<'_>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<bool> {
    let Some(path) = path else {
        write(streams.out)?;
        return Ok(true);
    };
    let written = write_file(path, |out| write(&mut anstream::StripStream::new(out)));
    if let Err(error) = &written {
        let (path, reason) = (path.display().to_string(), reason(error));
        let message = format!("cannot write {}: {}", clean(&path), clean(&reason));
        show_error(&message, streams.err)?;
    }
    Ok(written.is_ok())
}

/// Reports empty results: silence must not look like success.
fn say_what_is_missing(
    arguments: &TestArguments,
    discovery: &Discovery,
    totals: &Totals,
    streams: &mut Streams<'_>,
) -> io::Result<()> {
    if arguments.registry {
        let message = "--registry has no effect: registries are never asked";
        show_warning(message, streams.err)?;
    }
    if arguments.git_branch.is_some() {
        let message = "--git-branch has no effect: repositories are never fetched; clone first";
        show_warning(message, streams.err)?;
    }
    if discovery.files.is_empty() && discovery.unreadable.is_empty() {
        let name = clean(&arguments.file_name);
        show_warning(
            &format!("there is no file named {name} below the paths"),
            streams.err,
        )?;
    } else if totals.rows == 0 && totals.broken_suites == 0 {
        let files = count(discovery.files.len(), "suite file");
        show_warning(
            &format!("there is no row to look at in {files}"),
            streams.err,
        )?;
    }
    if totals.broken_suites > 0 {
        let message = format!(
            "{} could not be used; the others were run",
            count(totals.broken_suites, "suite")
        );
        show_error(&message, streams.err)?;
    }
    if totals.verdicts.unsupported > 0 && !arguments.fail_on_unsupported {
        let message = format!(
            "{} could not be judged, which does not fail the run without --fail-on-unsupported",
            count(totals.verdicts.unsupported, "row")
        );
        show_note(&message, streams.err)?;
    }
    Ok(())
}

/// Bad input takes precedence, as everywhere; then failures.
fn exit_code(arguments: &TestArguments, totals: &Totals, is_bad: bool) -> u8 {
    let fails = totals.verdicts.disagree > 0
        || arguments.fail_on_unsupported && totals.verdicts.unsupported > 0
        || arguments.require_tests && totals.suites == 0
        || arguments.fail_on_empty && totals.has_empty_passes();
    if is_bad || totals.broken_suites > 0 {
        EXIT_BAD_INPUT
    } else if fails {
        EXIT_FAILED
    } else {
        EXIT_OK
    }
}
