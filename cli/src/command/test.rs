//! `kpvm test`

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::diagnostics::{show_error, show_note, show_warning};
use crate::input::reason;
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::suite::discovery::{Discovery, SUITE_FILE, discover};
use crate::suite::report::{self, Detail, Format, Totals};
use crate::suite::selector::Selector;
use crate::suite::{Options, SuiteRun, run_files};
use crate::text::{clean, count};

/// A run that takes longer than this shows how far it is.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);
/// How often that is drawn anew.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Arguments of `kpvm test`.
#[derive(Debug, clap::Args)]
pub struct TestArguments {
    /// Directories, searched with all below them, or suite files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The name of suite files in directories
    #[arg(short, long, value_name = "NAME", default_value = SUITE_FILE)]
    pub file_name: String,
    /// Which rows to look at; * and ? stand for any text and any character
    #[arg(
        short,
        long,
        value_name = "policy=…,rule=…,resource=…",
        default_value = "policy=*,rule=*,resource=*"
    )]
    pub test_case_selector: String,
    /// The form of the report
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
    /// Show messages in tables, and in the text every row
    #[arg(short = 'v', long, visible_alias = "verbose")]
    pub detailed_results: bool,
    /// No colours
    #[arg(long)]
    pub remove_color: bool,
    /// Exit with 1 when there is no suite
    #[arg(long)]
    pub require_tests: bool,
    /// Exit with 1 when there is no row, or a row agreed without anything being compared
    #[arg(long)]
    pub fail_on_empty: bool,
    /// Exit with 1 when a row needs something that is not supported yet
    #[arg(long)]
    pub fail_on_unsupported: bool,
    /// Taken for compatibility: registries are never asked
    #[arg(long)]
    pub registry: bool,
    /// Taken for compatibility: repositories are never fetched
    #[arg(short = 'b', long, value_name = "BRANCH")]
    pub git_branch: Option<String>,
}

/// Runs suites.
///
/// # Errors
/// Those of the writers.
pub fn run(arguments: &TestArguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let (selector, wrong) = Selector::parse(&arguments.test_case_selector);
    for error in &wrong {
        show_error(&clean(error), streams.err)?;
    }
    let discovery = discover(&arguments.paths, &arguments.file_name);
    let options = Options {
        selector,
        ..Options::default()
    };
    let searched = run_with_progress(&discovery.files, &options);
    // A path that cannot be searched hides suites, which is like one that is broken.
    let unreadable = discovery.unreadable.iter().map(SuiteRun::unreadable);
    let runs: Vec<SuiteRun> = unreadable.chain(searched).collect();
    for report in runs.iter().flat_map(|run| &run.reports) {
        write!(streams.err, "{}", report.shown)?;
    }
    streams.err.flush()?;
    if !write_report(arguments, &runs, streams)? {
        return Ok(EXIT_BAD_INPUT);
    }
    streams.out.flush()?;
    let totals = Totals::of(&runs);
    say_what_is_missing(arguments, &discovery, &totals, streams)?;
    Ok(exit_code(arguments, &totals, !wrong.is_empty()))
}

/// Runs all suites, and shows on a terminal how far that is once it has taken long
/// enough. Only this thread writes: it holds the streams, and any other would wait for it.
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

/// Whether the report could be written.
fn write_report(
    arguments: &TestArguments,
    runs: &[SuiteRun],
    streams: &mut Streams<'_>,
) -> io::Result<bool> {
    let detail = Detail {
        fail_only: arguments.fail_only,
        detailed: arguments.detailed_results,
    };
    let Some(path) = &arguments.output_file else {
        report::write(arguments.output, runs, detail, streams.out)?;
        return Ok(true);
    };
    match write_file(path, arguments.output, runs, detail) {
        Ok(()) => Ok(true),
        Err(error) => {
            let (path, reason) = (path.display().to_string(), reason(&error));
            let message = format!("cannot write {}: {}", clean(&path), clean(&reason));
            show_error(&message, streams.err)?;
            Ok(false)
        }
    }
}

fn write_file(path: &Path, format: Format, runs: &[SuiteRun], detail: Detail) -> io::Result<()> {
    let mut plain = io::BufWriter::new(anstream::StripStream::new(File::create(path)?));
    report::write(format, runs, detail, &mut plain)?;
    plain.flush()
}

/// Silence must not look like success.
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

/// Bad input first, as everywhere; then what failed.
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
