//! W4, start-up, loading and compiling: measured from outside, as processes where the
//! process matters.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kpvm::engine::Bundle;
use kpvm_bench::workload::{
    About, POD, bundle, further_policies, pod_security_policies, write_pods,
};
use kpvm_compiler::source::Sources;

use crate::rows::{Rows, Target};

/// Pods of W4 by default; `KPVM_W4_PODS=1000000` for all of them.
const W4_PODS: usize = 50_000;

/// Runs for the median.
const RUNS: usize = 21;

/// The program, built with its release profile by `cargo build --release`.
fn program() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/kpvm");
    if path.is_file() {
        return Some(path);
    }
    println!("left out: build the programs first (cargo build --release -p kpvm-cli)");
    None
}

/// A scratch directory below the target directory.
fn scratch(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(directory).expect("the target directory can be written");
    directory.join(name)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Policies with one rule each, for distinct kinds.
fn policies(count: usize) -> Sources {
    let mut sources = Sources::new();
    sources.add("policies.yaml", further_policies(About::OtherKinds, count));
    sources
}

/// W4: NDJSON of Pods through the program.
pub(crate) fn measure_w4(rows: &mut Rows) {
    let Some(program) = program() else { return };
    let count = std::env::var("KPVM_W4_PODS").ok();
    let count = count.map_or(W4_PODS, |count| count.parse().expect("a number of Pods"));
    let (policies, pods) = (scratch("w4.kpb"), scratch("w4.ndjson"));
    std::fs::write(&policies, bundle(&pod_security_policies())).expect("the bundle is written");
    let file = std::fs::File::create(&pods).expect("the Pods can be written");
    let mut file = std::io::BufWriter::new(file);
    write_pods(count, 1, &mut file).expect("the Pods can be written");
    drop(file);
    let bytes = std::fs::metadata(&pods).map_or(0, |metadata| metadata.len());
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(["eval".as_ref(), policies.as_os_str(), pods.as_os_str()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let mut peak = 0;
    let status = loop {
        peak = peak.max(resident(child.id()));
        match child.try_wait().expect("the program can be waited for") {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let time = start.elapsed();
    if status.code() != Some(1) {
        println!("W4 is left out: the program ended with {status}");
        return;
    }
    let _ = std::fs::remove_file(&pods);
    rows.group(&format!(
        "W4: {count} Pods as NDJSON, {} MB",
        bytes / 1_000_000
    ));
    rows.figure(
        "`kpvm eval`, the whole process",
        &format!(
            "{:.2} s, {:.0} MB/s, {:.0} Pods/s",
            time.as_secs_f64(),
            bytes as f64 / 1e6 / time.as_secs_f64(),
            count as f64 / time.as_secs_f64(),
        ),
    );
    rows.target_of(
        "W4: memory of the process at its peak",
        Target::AtMost(200.0),
        peak as f64 / 1000.0,
        " MB",
    );
}

/// Peak memory of a process, in kilobytes.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = peak.and_then(|peak| peak.split_whitespace().next());
    number.map_or(0, |number| number.parse().unwrap_or(0))
}

/// Loading, the whole process for one Pod, and compiling.
pub(crate) fn measure_start(rows: &mut Rows) {
    rows.group("Start-up and compiling");
    let few = bundle(&policies(500));
    let loads = (0..RUNS).map(|_| {
        let start = Instant::now();
        black_box(Bundle::load(few.as_slice()).expect("a fresh bundle loads"));
        start.elapsed()
    });
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let load = milliseconds(median(loads.collect()));
    rows.target_of(
        "loading and verifying a bundle of 500 rules",
        Target::AtMost(2.0),
        load,
        " ms",
    );
    if let Some(program) = program() {
        let (policies, pod) = (scratch("500.kpb"), scratch("pod.json"));
        std::fs::write(&policies, &few).expect("the bundle is written");
        std::fs::write(&pod, POD).expect("the Pod is written");
        let runs = (0..RUNS).map(|_| {
            let start = Instant::now();
            let output = Command::new(&program)
                .args(["eval".as_ref(), policies.as_os_str(), pod.as_os_str()])
                .output()
                .expect("the program runs");
            assert_eq!(output.status.code(), Some(0));
            start.elapsed()
        });
        rows.target_of(
            "`kpvm eval` of one Pod with 500 rules, the whole process",
            Target::AtMost(10.0),
            milliseconds(median(runs.collect())),
            " ms",
        );
    }
    let thousand = policies(1000);
    let compiles = (0..5).map(|_| {
        let start = Instant::now();
        black_box(bundle(&thousand));
        start.elapsed()
    });
    rows.target_of(
        "compiling 1,000 policies on one core",
        Target::AtMost(1.0),
        median(compiles.collect()).as_secs_f64(),
        " s",
    );
}
