//! Times kpvm, Kyverno and OPA and writes the section of `docs/performance.md` about them:
//! `peers [--write] [--manifests DIR]`.
//!
//! The peers (`benches/peers/build`) time themselves in their own processes; the three take
//! turns, and the median of the turns' medians counts. The command lines are timed as whole
//! processes over the manifests.
//!
//! Without `--write` the section is only printed.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use kpvm::engine::{Engine, Input, Request, Session, Status};
use kpvm_bench::peer::{Peer, program};
use kpvm_bench::workload::{POD, bundle, compliant_pod};
use kpvm_compiler::source::Sources;
use kpvm_semantics::limits::Limits;
use kpvm_syntax::yaml::{self, DuplicateKeys};
use serde_json::{Value, json};

const MODULE: &str = include_str!("../../peers/opa/pod_security.rego");

/// Turns for the median.
const TURNS: usize = 7;

/// Evaluations in one turn; Kyverno takes milliseconds for each.
const KPVM_ROUNDS: usize = 20_000;
const KPVM_TURN: usize = 20;
const KYVERNO_ROUNDS: usize = 60;
const OPA_ROUNDS: usize = 400;

/// Runs of a command line.
const RUNS: usize = 5;

const BEGIN: &str = "<!-- written by the bin `peers`: begin -->\n";
const END: &str = "<!-- written by the bin `peers`: end -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let (mut write, mut manifests) = (false, root().join("../shared/manifests"));
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => write = true,
            "--manifests" => {
                manifests = arguments.next().ok_or("--manifests needs a value")?.into();
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    let section = section(&manifests)?;
    print!("{section}");
    if write {
        let file = root().join("docs/performance.md");
        let failed = |error| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(&file).map_err(failed)?;
        let parts = text
            .split_once(BEGIN)
            .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
        let (before, after) = parts.ok_or("docs/performance.md has no place for the section")?;
        std::fs::write(&file, format!("{before}{BEGIN}{section}{END}{after}")).map_err(failed)?;
    }
    Ok(())
}

fn section(manifests: &Path) -> Result<String, String> {
    let mut text = format!(
        "Measured {} on {}; load of the machine before and after: {} and ",
        output("date", &["-u", "+%Y-%m-%d"]),
        machine(),
        load(),
    );
    let mut table = String::from(
        "| workload | kpvm | Kyverno 1.19.1, engine | ratio | OPA 1.22.0 | ratio |\n|---|---|---|---|---|---|\n",
    );
    for (name, pod) in [("admitted", compliant_pod()), ("refused", POD.to_vec())] {
        table += &in_process(name, &pod)?;
    }
    let processes = processes(manifests)?;
    text += &format!("{}.\n\n{table}\n{processes}", load());
    Ok(text)
}

/// The 17 policies of `corpus/pod-security`.
fn policies() -> Result<Vec<String>, String> {
    let read =
        |file: &String| std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
    policy_files()?.iter().map(read).collect()
}

fn in_process(name: &str, pod: &[u8]) -> Result<String, String> {
    let texts = policies()?;
    let mut sources = Sources::new();
    let mut documents = Vec::new();
    let limits = Limits::default();
    let options = yaml::Options {
        duplicate_keys: DuplicateKeys::Refuse,
        limits: &limits,
    };
    for (number, text) in texts.iter().enumerate() {
        sources.add(format!("{number}.yaml"), text.as_str());
        for document in yaml::read_all(text, options) {
            let tree = document.map_err(|error| error.to_string())?;
            documents.push(tree.to_json());
        }
    }
    let bytes = bundle(&sources);
    let engine = Engine::load(bytes).map_err(|error| error.to_string())?;
    let mut session = Session::new(&engine);
    let resource = String::from_utf8_lossy(pod).into_owned();
    let kyverno_line =
        json!({ "policies": documents, "resource": resource, "rounds": KYVERNO_ROUNDS });
    let opa_line = json!({
        "module": MODULE, "query": "data.pod_security.failed", "resource": resource, "rounds": OPA_ROUNDS,
    });
    let mut kyverno = Peer::start(&program("kyverno-oracle"), &["time"])?;
    let mut opa = Peer::start(&program("opa-peer"), &[])?;
    let ask = |peer: &mut Peer, line: &Value| -> Result<Value, String> {
        let (lines, ()) = peer.ask(&[line.to_string()], || ())?;
        let answer = lines.first().map_or("", String::as_str);
        serde_json::from_str(answer).map_err(|error| format!("{answer}: {error}"))
    };
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..TURNS {
        times[0].push(time_kpvm(&mut session, pod));
        let theirs = ask(&mut kyverno, &kyverno_line)?;
        check_kyverno(&mut session, pod, &theirs)?;
        times[1].push(theirs["medianNanos"].as_f64().unwrap_or_default() / 1e3);
        let theirs = ask(&mut opa, &opa_line)?;
        check_opa(&mut session, pod, &theirs)?;
        times[2].push(theirs["medianNanos"].as_f64().unwrap_or_default() / 1e3);
    }
    let [kpvm, kyverno, opa] = times.map(median);
    Ok(format!(
        "| W1 {name}: {} bytes to verdict | {kpvm:.2} us | {kyverno:.0} us | {:.0} | {opa:.0} us | {:.0} |\n",
        pod.len(),
        kyverno / kpvm,
        opa / kpvm,
    ))
}

/// Time of an evaluation in microseconds: the median over short runs, most of which are not
/// interrupted.
fn time_kpvm(session: &mut Session<'_>, pod: &[u8]) -> f64 {
    let time = |_| {
        let start = Instant::now();
        for _ in 0..KPVM_TURN {
            let request = Request::create(Input::Json(black_box(pod)));
            let count = session.evaluate(&request);
            black_box(count.map(|evaluation| evaluation.responses().len())).ok();
        }
        start.elapsed().as_secs_f64() * 1e6 / KPVM_TURN as f64
    };
    median((0..KPVM_ROUNDS / KPVM_TURN).map(time).collect())
}

/// Policy of each response, and whether it is a failure.
fn responses(session: &mut Session<'_>, pod: &[u8]) -> Result<Vec<(String, bool)>, String> {
    let evaluation = session
        .evaluate(&Request::create(Input::Json(pod)))
        .map_err(|error| error.to_string())?;
    let found = evaluation.responses().map(|response| {
        let fails = response.status() != Status::Pass;
        (response.policy().to_owned(), fails)
    });
    Ok(found.collect())
}

fn check_kyverno(session: &mut Session<'_>, pod: &[u8], theirs: &Value) -> Result<(), String> {
    let ours = responses(session, pod)?;
    let failing = ours.iter().filter(|(_, fails)| *fails).count();
    let count = |status: &str| theirs["statuses"][status].as_u64().unwrap_or_default() as usize;
    match count("fail") == failing && count("pass") == ours.len() - failing {
        true => Ok(()),
        false => Err(format!(
            "Kyverno answers otherwise: {theirs}, kpvm {ours:?}"
        )),
    }
}

fn check_opa(session: &mut Session<'_>, pod: &[u8], theirs: &Value) -> Result<(), String> {
    let mut ours: Vec<String> = responses(session, pod)?
        .into_iter()
        .filter_map(|(policy, fails)| fails.then_some(policy))
        .collect();
    ours.sort();
    ours.dedup();
    match theirs["failed"] == json!(ours) {
        true => Ok(()),
        false => Err(format!("OPA answers otherwise: {theirs}, kpvm {ours:?}")),
    }
}

/// The programs over each folder of manifests, as whole processes.
fn processes(manifests: &Path) -> Result<String, String> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(manifests)
        .map_err(|error| format!("{}: {error}", manifests.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    let kpvm = std::env::current_exe()
        .ok()
        .and_then(|own| Some(own.parent()?.join("kpvm")))
        .ok_or("the program kpvm is not found")?;
    let mut text = String::from(
        "| `apply` of the 17 policies, whole process | kpvm | Kyverno CLI 1.19.1 | ratio | counts |\n\
         |---|---|---|---|---|\n",
    );
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let count = resource_files(&folder).len();
        let mut options = policy_files()?;
        options.extend(["--resource".into(), folder.display().to_string()]);
        text += &match time_both(&kpvm, &options) {
            Ok(([ours, theirs], counts)) => format!(
                "| {name}, {count} files | {ours:.0} ms | {theirs:.0} ms | {:.0} | {counts} |\n",
                theirs / ours
            ),
            Err(error) => format!("| {name}, {count} files | | not compared: {error} | | |\n"),
        };
    }
    Ok(text)
}

fn policy_files() -> Result<Vec<String>, String> {
    let directory = root().join("corpus/pod-security");
    let mut list: Vec<String> = std::fs::read_dir(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?
        .flatten()
        .map(|entry| entry.path().join("policy.yaml").display().to_string())
        .collect();
    list.sort();
    Ok(list)
}

/// Median times in milliseconds, and the counts, which must be equal.
fn time_both(kpvm: &Path, options: &[String]) -> Result<([f64; 2], String), String> {
    let mut times: [Vec<f64>; 2] = Default::default();
    let mut counts = String::new();
    for _ in 0..RUNS {
        let (ours, our_counts) = time_process(kpvm, options)?;
        let (theirs, their_counts) = time_process(&program("kyverno"), options)?;
        if our_counts != their_counts {
            return Err(format!("kpvm counts {our_counts}, Kyverno {their_counts}"));
        }
        times[0].push(ours.as_secs_f64() * 1e3);
        times[1].push(theirs.as_secs_f64() * 1e3);
        counts = our_counts;
    }
    Ok((times.map(median), counts))
}

fn resource_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(resource_files(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// Run time of a program, and the line of counts it prints.
fn time_process(program: &Path, options: &[String]) -> Result<(Duration, String), String> {
    let start = Instant::now();
    let output = Command::new(program)
        .arg("apply")
        .args(options)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let time = start.elapsed();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let is_cause = |line: &&str| line.starts_with("panic: ") || line.starts_with("Error: ");
    match text.lines().find(|line| line.starts_with("pass: ")) {
        Some(summary) => Ok((time, summary.trim().to_owned())),
        None => Err(text
            .lines()
            .find(is_cause)
            .unwrap_or("no counts")
            .to_owned()),
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| "?".into(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// Processor and number of cores.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("a processor that does not say its name", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores")
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}
