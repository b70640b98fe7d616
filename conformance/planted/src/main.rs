//! Plants bugs in a copy of the sources and sees whether the tests notice.
//!
//! ```text
//! cargo run --release --manifest-path conformance/planted/Cargo.toml -- [OPTIONS] COPY
//! ```
//!
//! COPY is a folder outside of the repository; it is built there once, with all bugs in it behind
//! a switch that the environment variable `KPVM_PLANTED` sets. Each bug is then switched on alone,
//! and the test programs run until one fails. The bugs are those of `dangerous.toml`, or with
//! `--sample N` as many random ones. One line of JSON for each is appended to `COPY.results`;
//! a bug that is in there already is not run again.
//!
//! The exit code is 1 if a bug survived that `equivalent.toml` does not explain.

mod bug;
mod find;
mod list;
mod suite;
mod tree;

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::bug::Bug;
use crate::suite::{Built, End, Program};

struct Options {
    copy: PathBuf,
    sample: Option<usize>,
    seed: u64,
    jobs: usize,
    list: bool,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut copy, mut sample, mut seed, mut jobs, mut list) = (None, None, 1, 2, false);
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, Box<dyn Error>> {
            Ok(arguments.next().ok_or("a number is missing")?.parse()?)
        };
        match argument.as_str() {
            "--sample" => sample = Some(usize::try_from(number()?)?),
            "--seed" => seed = number()?,
            "--jobs" => jobs = usize::try_from(number()?)?.max(1),
            "--list" => list = true,
            path => copy = Some(PathBuf::from(path)),
        }
    }
    let copy =
        copy.ok_or("usage: kpvm-planted [--sample N] [--seed N] [--jobs N] [--list] COPY")?;
    Ok(Options {
        copy,
        sample,
        seed,
        jobs,
        list,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    let bugs = match options.sample {
        Some(count) => sampled(&root, count, options.seed)?,
        None => list::dangerous(&root)?,
    };
    if options.list {
        bugs.iter().for_each(|bug| println!("{}", bug.name));
        return Ok(());
    }
    fs::create_dir_all(&options.copy)?;
    let copy = options.copy.canonicalize()?;
    let mut bugs: Vec<Option<Bug>> = bugs.into_iter().map(Some).collect();
    let mut programs = build(&root, &copy, &mut bugs)?;
    measure(&mut programs)?;
    let results = copy.with_extension("results");
    run_all(&bugs, &programs, &results, options.jobs)?;
    report(&root, &bugs, &results)
}

/// Random bugs of the given number, the same for the same seed, no two of them in the same text.
fn sampled(root: &Path, count: usize, seed: u64) -> Result<Vec<Bug>, Box<dyn Error>> {
    let mut all = Vec::new();
    for file in tree::files(root)?
        .iter()
        .filter(|file| tree::is_source(file))
    {
        all.extend(find::bugs(file, &fs::read_to_string(root.join(file))?)?);
    }
    eprintln!("{} places for bugs", all.len());
    fastrand::Rng::with_seed(seed).shuffle(&mut all);
    let mut chosen: Vec<Bug> = Vec::new();
    for bug in all {
        if chosen.len() < count && !chosen.iter().any(|other| other.overlaps(&bug)) {
            chosen.push(bug);
        }
    }
    Ok(chosen)
}

/// Builds the copy. Bugs that the compiler refuses are taken out, and the build is tried again.
fn build(
    root: &Path,
    copy: &Path,
    bugs: &mut [Option<Bug>],
) -> Result<Vec<Program>, Box<dyn Error>> {
    loop {
        tree::write(root, copy, bugs)?;
        let errors = match suite::build(copy)? {
            Built::Programs(programs) => return Ok(programs),
            Built::Errors(errors) => errors,
        };
        let mut refused = 0;
        for (number, bug) in (1..).zip(bugs.iter_mut()) {
            let is_refused = bug.as_ref().is_some_and(|bug| {
                errors.iter().any(|(file, line)| {
                    *file == bug.file && lines(copy, bug, number).contains(line)
                })
            });
            if is_refused {
                *bug = None;
                refused += 1;
            }
        }
        eprintln!("{refused} bugs do not compile");
        if refused == 0 {
            return Err("the copy does not build, and no bug is to blame".into());
        }
    }
}

/// The lines of the copy that hold what was written for the bug.
fn lines(copy: &Path, bug: &Bug, number: usize) -> std::ops::Range<usize> {
    let text = fs::read_to_string(copy.join(&bug.file)).unwrap_or_default();
    let planted = bug.planted(number);
    let Some(start) = text.find(&planted) else {
        return 0..0;
    };
    let first = 1 + text[..start].matches('\n').count();
    first..first + 1 + planted.matches('\n').count()
}

/// Runs everything without a bug: it must pass, and the quick programs come first from then on.
fn measure(programs: &mut [Program]) -> Result<(), Box<dyn Error>> {
    for program in programs.iter_mut() {
        let start = std::time::Instant::now();
        if let End::Caught(test) = suite::run(program, 0, Duration::from_secs(1_200))? {
            return Err(format!("without a bug, this fails: {test}").into());
        }
        program.usual = start.elapsed();
        eprintln!("{}: {:.1} s", program.name, program.usual.as_secs_f64());
    }
    programs.sort_by_key(|program| program.usual);
    Ok(())
}

fn known(results: &Path) -> HashMap<String, Value> {
    let text = fs::read_to_string(results).unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .map(|row| (row["bug"].as_str().unwrap_or_default().to_owned(), row))
        .collect()
}

fn run_all(
    bugs: &[Option<Bug>],
    programs: &[Program],
    results: &Path,
    jobs: usize,
) -> Result<(), Box<dyn Error>> {
    let known = known(results);
    let file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(results)?;
    let (file, next) = (Mutex::new(file), AtomicUsize::new(0));
    let worker = || -> std::io::Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(bug) = bugs.get(index) else {
                return Ok(());
            };
            let Some(bug) = bug.as_ref().filter(|bug| !known.contains_key(&bug.name)) else {
                continue;
            };
            let start = std::time::Instant::now();
            let mut caught = None;
            for program in programs {
                let limit = program.usual * 5 + Duration::from_secs(30);
                if let End::Caught(test) = suite::run(program, index + 1, limit)? {
                    caught = Some(test);
                    break;
                }
            }
            eprintln!("{}: {}", bug.name, caught.as_deref().unwrap_or("SURVIVED"));
            let row = json!({ "bug": bug.name, "caught": caught,
                "seconds": start.elapsed().as_secs() });
            if let Ok(mut file) = file.lock() {
                writeln!(file, "{row}")?;
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(end) => end.map_err(Into::into),
                Err(_) => Err("a worker panicked".into()),
            })
    })
}

fn report(root: &Path, bugs: &[Option<Bug>], results: &Path) -> Result<(), Box<dyn Error>> {
    let (known, equivalent) = (known(results), list::equivalent(root)?);
    let (mut caught, mut explained, mut survivors) = (0, 0, Vec::new());
    for bug in bugs.iter().flatten() {
        match known.get(&bug.name) {
            Some(row) if row["caught"].is_string() => caught += 1,
            _ if equivalent.iter().any(|row| row.explains(bug)) => explained += 1,
            _ => survivors.push(&bug.name),
        }
    }
    let refused = bugs.iter().filter(|bug| bug.is_none()).count();
    println!(
        "caught {caught}, equivalent {explained}, survived {}, not compiled {refused}",
        survivors.len()
    );
    survivors
        .iter()
        .for_each(|name| println!("survived: {name}"));
    if survivors.is_empty() {
        Ok(())
    } else {
        Err("bugs survived".into())
    }
}
