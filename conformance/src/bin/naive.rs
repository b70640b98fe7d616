//! Compares the naive interpreter (`kpvm-naive`) with recorded answers and with the VM.
//!
//! `naive [DIALECT…] [--cases N] [--seed N] [--from N] [--jobs N] [--shown N]` runs all
//! recorded answers, then N generated cases of each dialect (default: all). With
//! `--generated` it leaves out the recorded answers.
//!
//! Prints counts: agree, differ, differences that are listed, not done (by construct) and
//! unsupported by kpvm. Exits with 1 if there is a difference.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use kpvm_conformance::differential::{DIALECTS, Dialect};
use kpvm_conformance::naive::{self, Tally};

struct Options {
    dialects: Vec<String>,
    cases: u64,
    seed: u64,
    from: u64,
    jobs: u64,
    shown: usize,
    recorded: bool,
}

fn main() -> ExitCode {
    match read_options().and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("naive: {error}");
            ExitCode::from(2)
        }
    }
}

fn read_options() -> Result<Options, String> {
    let mut options = Options {
        dialects: Vec::new(),
        cases: 10_000,
        seed: 1,
        from: 0,
        jobs: 1,
        shown: 3,
        recorded: true,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, String> {
            let text = arguments
                .next()
                .ok_or(format!("{argument} needs a value"))?;
            text.parse().map_err(|error| format!("{text}: {error}"))
        };
        match argument.as_str() {
            "--cases" => options.cases = number()?,
            "--seed" => options.seed = number()?,
            "--from" => options.from = number()?,
            "--jobs" => options.jobs = number()?.max(1),
            "--shown" => options.shown = number()? as usize,
            "--generated" => options.recorded = false,
            name if DIALECTS.iter().any(|dialect| dialect.name == name) => {
                options.dialects.push(name.to_owned());
            }
            other => return Err(format!("neither an option nor a dialect: {other}")),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<bool, String> {
    println!(
        "{:<14} {:>9} {:>7} {:>7} {:>9} {:>7} {:>11} {:>9}",
        "area", "agree", "differ", "listed", "not done", "panics", "unsupported", "cases/s"
    );
    let mut total = Tally::default();
    if options.recorded {
        let failed = |error: std::io::Error| error.to_string();
        for (area, tally) in naive::golden().map_err(failed)? {
            print(&area, &tally, options.shown, None);
            total.merge(tally);
        }
        for (area, tally) in [
            ("operators", naive::operators().map_err(failed)?),
            ("jmespath", naive::jmespath().map_err(failed)?),
        ] {
            print(area, &tally, options.shown, None);
            total.merge(tally);
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for folder in ["corpus", "../shared/conformance/kyverno"] {
            let path = root.join(folder);
            if path.is_dir() {
                let tally = naive::suites(&path).map_err(failed)?;
                print("suites", &tally, options.shown, None);
                total.merge(tally);
            }
        }
    }
    let chosen =
        |name: &str| options.dialects.is_empty() || options.dialects.iter().any(|own| own == name);
    for dialect in DIALECTS.iter().filter(|dialect| chosen(dialect.name)) {
        let start = Instant::now();
        let tally = generated(dialect, options);
        let rate = options.cases as f64 / start.elapsed().as_secs_f64();
        print(
            &format!("~{}", dialect.name),
            &tally,
            options.shown,
            Some(rate),
        );
        total.merge(tally);
    }
    print("total", &total, 0, None);
    println!("{} rule responses compared", total.responses);
    Ok(total.differ == 0)
}

/// Every job takes each `jobs`-th case.
fn generated(dialect: &Dialect, options: &Options) -> Tally {
    let job = |first: u64| {
        let mut tally = Tally::default();
        let numbers = options.from + first..options.from + options.cases;
        for number in numbers.step_by(options.jobs as usize) {
            naive::compare_case(&dialect.make(options.seed, number), &mut tally);
        }
        tally
    };
    thread::scope(|scope| {
        let jobs: Vec<_> = (0..options.jobs)
            .map(|first| scope.spawn(move || job(first)))
            .collect();
        let mut total = Tally::default();
        for job in jobs {
            match job.join() {
                Ok(tally) => total.merge(tally),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        total
    })
}

fn print(area: &str, tally: &Tally, shown: usize, rate: Option<f64>) {
    println!(
        "{area:<14} {:>9} {:>7} {:>7} {:>9} {:>7} {:>11} {:>9}",
        tally.agree,
        tally.differ,
        tally.listed,
        tally.not_done_total(),
        tally.panics,
        tally.unsupported,
        rate.map_or_else(String::new, |rate| format!("{rate:.0}")),
    );
    for (construct, count) in &tally.not_done {
        println!("    {count:>9} not done: {construct}");
    }
    for (name, text) in tally.differences.iter().take(shown) {
        println!("  {name}: {text}");
    }
}
