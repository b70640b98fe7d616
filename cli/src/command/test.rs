//! `kpvm test`

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::diagnostics::{show_error, show_note, show_warning};
use crate::input::reason;
use crate::output::write_file;
use crate::problem::show_unreadable;
use crate::stream::{EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, Streams};
use crate::suite::discovery::{Discovery, SUITE_FILE, discover};
use crate::suite::report::{self, Detail, Format, Totals};
use crate::suite::selector::Selector;
use crate::suite::{Options, SuiteRun, run_files};
use crate::text::{clean, count};

/// A run that takes longer than this shows how far it is.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

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
    for unreadable in &discovery.unreadable {
        show_unreadable(unreadable, streams)?;
    }
    let options = Options {
        selector,
        ..Options::default()
    };
    let progress = Progress::new(discovery.files.len());
    let runs = run_files(&discovery.files, &options, &|| progress.step());
    progress.bar.finish_and_clear();
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
    let is_bad = !wrong.is_empty() || !discovery.unreadable.is_empty();
    Ok(exit_code(arguments, &totals, is_bad))
}

/// A bar on the terminal, once a run has taken long enough.
struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    fn new(files: usize) -> Self {
        let target = ProgressDrawTarget::hidden();
        let bar = ProgressBar::with_draw_target(Some(files as u64), target);
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} suite files");
        Self {
            bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
            start: Instant::now(),
        }
    }

    fn step(&self) {
        self.bar.inc(1);
        let is_late = self.start.elapsed() >= PROGRESS_AFTER;
        if is_late && self.bar.is_hidden() && io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
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
    let written = write_file(path, |out| {
        let mut plain = anstream::StripStream::new(out);
        report::write(arguments.output, runs, detail, &mut plain)
    });
    match written {
        Ok(()) => Ok(true),
        Err(error) => {
            let (path, reason) = (path.display().to_string(), reason(&error));
            let message = format!("cannot write {}: {}", clean(&path), clean(&reason));
            show_error(&message, streams.err)?;
            Ok(false)
        }
    }
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
    if discovery.files.is_empty() {
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
            "{} could not be used as it stands; the others were run",
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
