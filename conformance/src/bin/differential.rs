//! Compares kpvm with Kyverno's engine, case by case.
//!
//! `differential [DIALECT…] [--seed N] [--from N] [--cases N]` generates cases of the
//! dialects (by default all). `differential --replay FILE` takes the cases of a file, one
//! JSON object per line.
//! `differential --record FILE` prints the cases of a file with the peer's answers, in the
//! form of `conformance/regressions.ndjson`.
//! `differential --golden conformance/data/golden` asks the peer for the recorded golden
//! answers, to check the peer itself.
//!
//! Further options: `--oracle PROGRAM` (default `benches/peers/bin/kyverno-oracle`),
//! `--shown N` differences that are shrunk and printed for each area (default 5),
//! `--listed` to print cases of the differences that `docs/differences.md` lists.
//!
//! Exits with 1 if an unexplained difference remains.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kpvm_bench::peer::program;
use kpvm_conformance::case::{Answer, Case, RuleAnswer, answer};
use kpvm_conformance::differential::compare::{Aside, Comparison, Difference, compare};
use kpvm_conformance::differential::oracle::{Oracle, OracleAnswer};
use kpvm_conformance::differential::{DIALECTS, shrink};
use kpvm_golden::{case_files, read_file};
use serde_json::{Value, json};

/// Cases per batch.
const BATCH: usize = 500;

/// Kept cases of listed differences.
const EXAMPLES: usize = 30;

/// Evaluations to find out whether an answer depends on chance.
const REPEATS: u32 = 100;

struct Options {
    dialects: Vec<String>,
    seed: u64,
    from: u64,
    cases: u64,
    golden: Option<PathBuf>,
    replay: Option<PathBuf>,
    record: Option<PathBuf>,
    oracle: PathBuf,
    shown: usize,
    listed: bool,
}

fn main() -> ExitCode {
    match read_options().and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("differential: {error}");
            ExitCode::from(2)
        }
    }
}

fn read_options() -> Result<Options, String> {
    let mut options = Options {
        dialects: Vec::new(),
        seed: 1,
        from: 0,
        cases: 10_000,
        golden: None,
        replay: None,
        record: None,
        oracle: program("kyverno-oracle"),
        shown: 5,
        listed: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| {
            text.parse::<u64>()
                .map_err(|error| format!("{text}: {error}"))
        };
        match argument.as_str() {
            "--seed" => options.seed = number(value()?)?,
            "--from" => options.from = number(value()?)?,
            "--cases" => options.cases = number(value()?)?,
            "--shown" => options.shown = number(value()?)? as usize,
            "--listed" => options.listed = true,
            "--oracle" => options.oracle = value()?.into(),
            "--golden" => options.golden = Some(value()?.into()),
            "--record" => options.record = Some(value()?.into()),
            "--replay" => options.replay = Some(value()?.into()),
            option if option.starts_with('-') => return Err(format!("unknown option {option}")),
            name if DIALECTS.iter().any(|dialect| dialect.name == name) => {
                options.dialects.push(name.to_owned());
            }
            name => {
                let known = DIALECTS.map(|dialect| dialect.name).join(", ");
                return Err(format!("unknown dialect {name}; expected some of {known}"));
            }
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<bool, String> {
    let mut oracle = Oracle::start(&options.oracle)?;
    if let Some(directory) = &options.golden {
        return check_oracle(&mut oracle, directory);
    }
    if let Some(file) = &options.record {
        return record(&mut oracle, file);
    }
    let mut is_clean = true;
    Area::print_header();
    if let Some(file) = &options.replay {
        let mut area = Area::default();
        area.add(&mut oracle, read_cases(file)?)?;
        return area.finish("replay", &mut oracle, options.shown);
    }
    let chosen =
        |name: &str| options.dialects.is_empty() || options.dialects.iter().any(|own| own == name);
    for dialect in DIALECTS.iter().filter(|dialect| chosen(dialect.name)) {
        let mut area = Area::default();
        let end = options.from + options.cases;
        let mut start = options.from;
        while start < end {
            let next = end.min(start + BATCH as u64);
            let cases = (start..next).map(|number| dialect.make(options.seed, number));
            area.add(&mut oracle, cases.collect())?;
            start = next;
        }
        if options.listed {
            for (kind, case) in &area.examples {
                println!("  {kind}: {case}");
            }
        }
        is_clean &= area.finish(dialect.name, &mut oracle, options.shown)?;
    }
    Ok(is_clean)
}

fn read_cases(file: &Path) -> Result<Vec<Value>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    let cases = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>();
    cases.map_err(|error| failed(&error))
}

/// Prints the cases with the peer's answers.
fn record(oracle: &mut Oracle, file: &Path) -> Result<bool, String> {
    let cases = read_cases(file)?;
    for (mut case, (theirs, _)) in cases.iter().cloned().zip(ask(oracle, &cases, 1)?) {
        if !theirs.error.is_empty() {
            return Err(format!("{}: {}", case["id"], theirs.error));
        }
        case["rules"] = json!(theirs.rules());
        case["panic"] = json!(!theirs.panic.is_empty());
        println!("{case}");
    }
    Ok(true)
}

/// Results of one area.
#[derive(Default)]
struct Area {
    cases: usize,
    statuses: BTreeMap<String, usize>,
    agree: usize,
    aside: BTreeMap<Aside, usize>,
    differing: Vec<(Value, Difference)>,
    /// Cases of listed kinds of differences.
    examples: Vec<(String, Value)>,
    evaluation: Duration,
    elapsed: Duration,
}

impl Area {
    fn print_header() {
        println!(
            "{:<12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
            "area", "cases", "agree", "aside", "status", "message", "cases/s"
        );
    }

    fn add(&mut self, oracle: &mut Oracle, cases: Vec<Value>) -> Result<(), String> {
        let start = Instant::now();
        for cases in cases.chunks(BATCH) {
            let answers = ask(oracle, cases, 1)?;
            for (case, (theirs, ours)) in cases.iter().zip(answers) {
                self.cases += 1;
                self.evaluation += Duration::from_nanos(theirs.nanos);
                let none = [None];
                let rules: Vec<Option<&RuleAnswer>> = theirs.rules().iter().map(Some).collect();
                for rule in if rules.is_empty() { &none[..] } else { &rules } {
                    let status = rule.map_or("none", |rule| &rule.status);
                    *self.statuses.entry(status.to_owned()).or_default() += 1;
                }
                match compare(case, &theirs, &ours) {
                    Comparison::Agree => self.agree += 1,
                    Comparison::Set(aside) => {
                        if matches!(aside, Aside::Listed(_)) && self.examples.len() < EXAMPLES {
                            self.examples.push((aside.to_string(), case.clone()));
                        }
                        self.set(aside);
                    }
                    Comparison::Differ(difference) => {
                        self.differing.push((case.clone(), difference))
                    }
                }
            }
        }
        self.elapsed += start.elapsed();
        Ok(())
    }

    fn set(&mut self, aside: Aside) {
        *self.aside.entry(aside).or_default() += 1;
    }

    /// Removes answers that depend on chance, prints the rest, and returns whether it is empty.
    fn finish(mut self, name: &str, oracle: &mut Oracle, shown: usize) -> Result<bool, String> {
        let differing = std::mem::take(&mut self.differing);
        for chunk in differing.chunks(BATCH) {
            let cases: Vec<Value> = chunk.iter().map(|(case, _)| case.clone()).collect();
            for ((case, _), (theirs, ours)) in chunk.iter().zip(ask(oracle, &cases, REPEATS)?) {
                match compare(case, &theirs, &ours) {
                    Comparison::Agree => self.set(Aside::Chance),
                    Comparison::Set(aside) => self.set(aside),
                    Comparison::Differ(difference) => {
                        self.differing.push((case.clone(), difference))
                    }
                }
            }
        }
        let in_status = self
            .differing
            .iter()
            .filter(|(_, difference)| difference.in_status)
            .count();
        println!(
            "{name:<12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9.0}",
            self.cases,
            self.agree,
            self.aside.values().sum::<usize>(),
            in_status,
            self.differing.len() - in_status,
            self.cases as f64 / self.elapsed.as_secs_f64().max(1e-9),
        );
        let shares: Vec<String> = self
            .statuses
            .iter()
            .map(|(status, count)| format!("{status} {count}"))
            .collect();
        println!(
            "    responses: {}; {:.0} us an evaluation by Kyverno",
            shares.join(", "),
            self.evaluation.as_secs_f64() * 1e6 / self.cases.max(1) as f64
        );
        for (aside, count) in &self.aside {
            println!("    {count:>6} aside: {aside}");
        }
        let mut order: Vec<&(Value, Difference)> = self.differing.iter().collect();
        order.sort_by_key(|(case, difference)| (!difference.in_status, case.to_string().len()));
        for (case, difference) in order.into_iter().take(shown) {
            print_shrunk(oracle, case, difference)?;
        }
        Ok(self.differing.is_empty())
    }
}

/// Both answers to every case.
fn ask(
    oracle: &mut Oracle,
    cases: &[Value],
    repeat: u32,
) -> Result<Vec<(OracleAnswer, Answer)>, String> {
    let lines: Vec<String> = cases
        .iter()
        .map(|case| {
            let mut case = case.clone();
            case["repeat"] = json!(repeat);
            case.to_string()
        })
        .collect();
    let ours = || -> Vec<Answer> {
        let answer_line = |line: &String| match serde_json::from_str::<Case<'_>>(line) {
            Ok(case) => std::panic::catch_unwind(|| answer(&case))
                .unwrap_or_else(|_| Answer::Refused("kpvm PANICKED".into())),
            Err(error) => Answer::Unsupported(format!("not a case: {error}")),
        };
        lines.iter().map(answer_line).collect()
    };
    let (theirs, ours) = oracle.ask(&lines, ours)?;
    Ok(theirs.into_iter().zip(ours).collect())
}

fn print_shrunk(oracle: &mut Oracle, case: &Value, difference: &Difference) -> Result<(), String> {
    let smallest = shrink::shrink(case.clone(), |candidates| -> Result<Vec<bool>, String> {
        let answers = ask(oracle, candidates, 3)?;
        let differs = |(case, (theirs, ours)): (&Value, &(OracleAnswer, Answer))| {
            compare(case, theirs, ours) == Comparison::Differ(difference.clone())
        };
        Ok(candidates.iter().zip(&answers).map(differs).collect())
    })?;
    let what = if difference.in_status {
        "STATUS"
    } else {
        "MESSAGE"
    };
    println!(
        "  {what} {}: Kyverno {}, kpvm {}",
        case["id"], difference.theirs, difference.ours
    );
    println!("    {smallest}");
    for (theirs, ours) in ask(oracle, std::slice::from_ref(&smallest), 1)? {
        for rule in theirs.rules() {
            println!(
                "    Kyverno {}: {} {:?} {:?}",
                rule.rule, rule.status, rule.message, rule.properties
            );
        }
        match ours {
            Answer::Rules(rules) => {
                for rule in rules {
                    println!(
                        "    kpvm    {}: {} {:?} {:?}",
                        rule.rule, rule.status, rule.message, rule.properties
                    );
                }
            }
            Answer::Refused(reason) | Answer::Unsupported(reason) => {
                println!("    kpvm    refused: {reason}")
            }
        }
    }
    Ok(())
}

/// Whether the peer gives the recorded answers.
fn check_oracle(oracle: &mut Oracle, directory: &Path) -> Result<bool, String> {
    let mut is_clean = true;
    for file in case_files(directory).map_err(|error| error.to_string())? {
        let text = read_file(&file).map_err(|error| error.to_string())?;
        let mut lines = Vec::new();
        let mut recordings = Vec::new();
        for line in text.lines() {
            let recording: Recording =
                serde_json::from_str(line).map_err(|error| error.to_string())?;
            // Other modes of the format have no rule responses.
            if recording.mode.is_none() {
                lines.push(line.to_owned());
                recordings.push(recording);
            }
        }
        let (answers, ()) = oracle.ask(&lines, || ())?;
        let mut equal = 0;
        for (golden, answer) in recordings.iter().zip(&answers) {
            if golden.panic != answer.panic.is_empty() && golden.rules == answer.rules() {
                equal += 1;
            } else {
                println!("  {} differs", answer.id);
            }
        }
        println!("{}: {equal} of {} equal", file.display(), lines.len());
        is_clean &= equal == lines.len();
    }
    Ok(is_clean)
}

/// The answer in a golden file.
#[derive(serde::Deserialize)]
struct Recording {
    mode: Option<String>,
    #[serde(default)]
    rules: Vec<RuleAnswer>,
    #[serde(default)]
    panic: bool,
}
