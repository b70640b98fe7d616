//! Writes Pods as NDJSON: `pods [--server] COUNT [SEED] > pods.ndjson`. Those of workload W4 have
//! about a kilobyte each; with `--server` they are as an API server returns them, 7 KB each.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use kpvm_bench::workload::{write_pods, write_server_pods};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let is_server = arguments.next_if_eq("--server").is_some();
    let mut numbers = arguments.map(|text| text.parse::<u64>());
    let (count, seed) = match (numbers.next(), numbers.next()) {
        (Some(Ok(count)), None) => (count as usize, 1),
        (Some(Ok(count)), Some(Ok(seed))) => (count as usize, seed),
        _ => {
            let _ = writeln!(io::stderr(), "usage: pods [--server] COUNT [SEED]");
            return ExitCode::from(2);
        }
    };
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let written = match is_server {
        true => write_server_pods(count, seed, &mut out),
        false => write_pods(count, seed, &mut out),
    };
    match written.and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}
